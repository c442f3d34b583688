"""Moments, correlations and factors of columns.

Against dense formulas, draws of the noise, and scikit-learn.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal
from sklearn.decomposition import FactorAnalysis

from reticent.inference.mixtures.factor_model import (
    ColumnEstimates,
    CorrelationEstimate,
    factor_analysis,
    factor_em_step,
    factor_log_density,
    factor_scores,
    nearest_correlation,
)


def model(seed=0, d=5, k=2):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(d, k)), rng.uniform(0.2, 1.5, d)


def moments(u, centre, reach, offset):
    t = np.clip((u - centre) / reach, -1, 1)
    return np.concatenate([t.mean(axis=0), (t**2 - offset).mean(axis=0)])


def told(u, stages=2, sd=1e-9):
    """Columns that have seen records without noise worth the name."""
    columns = ColumnEstimates(u.shape[1])
    for _ in range(stages):
        _, reach, offset = columns.next_window(1e4, 1.0)
        columns.add(columns.mean, reach, offset, moments(u, columns.mean, reach, offset), sd)
    return columns


def test_scores_and_densities_are_those_of_the_dense_model():
    W, psi = model()
    x = np.random.default_rng(1).normal(size=(6, 5)) * 2
    covariance = W @ W.T + np.diag(psi)
    assert factor_log_density(x, W, psi) == pytest.approx(
        multivariate_normal(np.zeros(5), covariance).logpdf(x)
    )
    assert factor_scores(x, W, psi) == pytest.approx(x @ np.linalg.solve(covariance, W))


def test_em_is_that_of_the_textbook():
    """E[z|x] and E[zzᵀ|x] for records with this very covariance, and the regression of x on z."""
    W, psi = model(2)
    x = np.random.default_rng(3).normal(size=(40, 5))
    covariance = x.T @ x / 40
    beta = W.T @ np.linalg.inv(W @ W.T + np.diag(psi))
    z = x @ beta.T
    second = 40 * (np.eye(2) - beta @ W) + z.T @ z
    expected = x.T @ z @ np.linalg.inv(second)
    noise = np.diag(x.T @ x - expected @ z.T @ x) / 40
    new, psi_new = factor_em_step(covariance, W, psi, 1e-9)
    assert new == pytest.approx(expected)
    assert psi_new == pytest.approx(noise)
    assert factor_em_step(covariance, W, psi, 0.9)[1] == pytest.approx(np.maximum(noise, 0.9))


def test_the_truth_is_a_fixed_point_and_factors_may_be_turned():
    W, psi = model(4)
    covariance = W @ W.T + np.diag(psi)
    assert factor_em_step(covariance, W, psi, 1e-9)[0] == pytest.approx(W)
    assert factor_em_step(covariance, W, psi, 1e-9)[1] == pytest.approx(psi)
    turn = np.linalg.qr(np.random.default_rng(5).normal(size=(2, 2)))[0]
    start = model(6)
    plain, turned = (
        factor_em_step(covariance, one, start[1], 1e-9) for one in (start[0], start[0] @ turn)
    )
    assert turned[0] == pytest.approx(plain[0] @ turn)
    assert turned[1] == pytest.approx(plain[1])


@pytest.mark.parametrize("k", [1, 2])
def test_factors_are_as_likely_as_those_of_scikit_learn(k):
    W, psi = model(7)
    x = multivariate_normal(np.zeros(5), W @ W.T + np.diag(psi)).rvs(2000, random_state=8)
    x -= x.mean(axis=0)
    ours = factor_analysis(x.T @ x / len(x), k, 1e-6, iterations=400)
    theirs = FactorAnalysis(k, tol=1e-6, max_iter=3000, svd_method="lapack").fit(x)
    assert factor_log_density(x, *ours).mean() == pytest.approx(theirs.score(x), abs=2e-4)


def test_no_column_is_explained_completely():
    covariance = np.ones((3, 3)) + np.diag([0.0, 0.0, 0.5])
    W, psi = factor_analysis(covariance, 1, 0.05)
    assert psi.min() == 0.05
    assert np.isfinite(W).all()
    alone, own = factor_analysis(np.array([[0.7]]), 1, 0.05)
    assert alone.item() ** 2 + own.item() == pytest.approx(0.7, rel=0.05)


def test_the_first_look_is_at_the_whole_box():
    columns = ColumnEstimates(3)
    _, reach, expected = columns.next_window(1e4, 1.0)
    assert reach.tolist() == [1, 1, 1]
    assert expected.tolist() == [1, 1, 1]  # as large as it can be, like that of the first moments


def test_moments_without_noise_are_those_of_the_records():
    """After the first look the clip cuts off what lies beyond 2.5 sd, and nothing here does."""
    rng = np.random.default_rng(9)
    u = rng.uniform(-1, 1, size=(4000, 2)) * [0.2, 0.05] + [0.5, -0.3]
    columns = told(u, 3)
    assert columns.mean == pytest.approx(u.mean(axis=0))
    assert columns.variance == pytest.approx(u.var(axis=0))
    assert columns.scale() == pytest.approx(u.std(axis=0))
    _, reach, expected = columns.next_window(1e4, 1.0)
    assert reach == pytest.approx(2.5 * u.std(axis=0), rel=1e-3)
    assert expected == pytest.approx(np.full(2, 1 / 6.25), rel=1e-3)


def test_a_look_grows_to_the_box_as_noise_falls():
    """The clip cuts off long tails only where that saves noise that matters."""
    columns = ColumnEstimates(1)
    columns.add(np.zeros(1), np.ones(1), np.zeros(1), np.array([0.2, 0.05]), 1e-9)
    widths = [float(columns.next_window(1e4, sd)[1][0]) for sd in (1e-1, 1e-5, 1e-7, 1e-9)]
    assert widths == sorted(widths)
    assert widths[0] == pytest.approx(2.5 * 0.1, rel=1e-3)
    assert widths[-1] == pytest.approx(1.2)


def test_a_mean_is_from_a_wider_look_where_a_narrow_one_cut_variance_off():
    columns = ColumnEstimates(2)
    columns.add(np.zeros(2), np.ones(2), np.zeros(2), np.array([0.2, 0.05, 0.2, 0.0125]), 0.001)
    columns.add(np.zeros(2), np.full(2, 0.5), np.zeros(2), np.array([0.1, 0.1, 0.1, 0.05]), 0.001)
    assert columns.mean == pytest.approx([0.2, 0.05], abs=1e-9)
    assert columns.mean_sd[0] == pytest.approx(0.001)
    assert 0.0005 <= columns.mean_sd[1] < 0.0009, "a little may have been cut off unseen"
    _, reach, _ = columns.next_window(1e3, 0.001)
    assert reach[0] == pytest.approx(1.2), "the whole box, where the tail is"
    assert reach[1] < 1.05


def test_a_look_is_wider_where_variances_are_hardly_known():
    columns = ColumnEstimates(2)
    columns.add(np.zeros(2), np.ones(2), np.zeros(2), np.array([0.0, 0.9, 0.01, 0.82]), 0.02)
    _, reach, expected = columns.next_window(1e4, 1.0)
    assert columns.variance_sd == pytest.approx([0.02, 0.02 * np.sqrt(1 + 4 * 0.81)])
    assert reach[0] == pytest.approx(1.5 * np.sqrt(0.01 + 0.04))
    assert reach[1] == pytest.approx(1.5 * np.sqrt(0.01 + 2 * columns.variance_sd[1]))
    assert expected == pytest.approx(columns.variance_sd / reach**2), "what noise could hide"
    loud = ColumnEstimates(1)
    loud.add(np.zeros(1), np.ones(1), np.zeros(1), np.array([0.4, 0.5]), 1e6)
    assert loud.next_window(1e4, 1.0)[1] == pytest.approx([1.4]), "the far end of the box"


@pytest.mark.parametrize("step", [0.0, 0.5])
def test_claimed_noise_is_that_of_draws(step):
    rng = np.random.default_rng(10)
    sd = 0.02
    reach = 0.4
    found = []
    claimed = []
    for _ in range(800):
        columns = ColumnEstimates(1)
        noisy = np.array([step, 0.6]) + sd * rng.normal(size=2)
        columns.add(np.array([0.1]), np.array([reach]), np.array([0.1]), noisy, sd)
        found.append([columns.mean[0], columns.variance[0]])
        claimed.append([columns.mean_sd[0], columns.variance_sd[0]])
    assert np.mean(found, axis=0) == pytest.approx(
        [0.1 + reach * step, reach**2 * (0.7 - step**2)], abs=2e-3
    )
    assert np.std(found, axis=0) == pytest.approx(np.mean(claimed, axis=0), rel=0.08)


def test_looks_that_agree_are_better_together():
    columns = ColumnEstimates(1)
    for _ in range(2):
        columns.add(np.zeros(1), np.ones(1), np.zeros(1), np.array([0.0, 0.3]), 0.02)
    assert columns.variance == pytest.approx([0.3], rel=0.02)
    assert columns.variance_sd == pytest.approx([0.02 / np.sqrt(2)], rel=0.01)
    columns.add(np.zeros(1), np.full(1, 0.5), np.zeros(1), np.array([0.0, 0.2]), 0.02)
    assert columns.variance == pytest.approx([0.3], rel=0.07), (
        "a narrow look has missed what a wide one saw"
    )
    assert columns.variance_sd == pytest.approx([0.02 / np.sqrt(2)], rel=0.01), (
        "and so has the noise of the wide ones"
    )


@settings(max_examples=25)
@given(st.lists(st.floats(-1e6, 1e6), min_size=4, max_size=4), st.floats(1e-6, 1e6))
def test_means_stay_in_the_box_and_scales_positive_for_all_noise(values, sd):
    columns = ColumnEstimates(2)
    for _ in range(2):
        _, reach, offset = columns.next_window(1e4, 1.0)
        columns.add(columns.mean, reach, offset, np.array(values), sd)
    assert np.abs(columns.mean).max() <= 1
    assert (columns.scale() > 0).all()
    assert (columns.variance_sd > 0).all()
    assert np.isfinite(columns.next_window(1e4, 1.0)).all()


def test_no_scale_is_below_what_noise_could_hide():
    columns = ColumnEstimates(1)
    columns.add(np.zeros(1), np.ones(1), np.zeros(1), np.array([0.0, 0.0]), 0.5)
    assert columns.scale() == pytest.approx([np.sqrt(0.5)])
    columns.add(np.zeros(1), np.full(1, 0.01), np.zeros(1), np.zeros(2), 0.5)
    assert columns.scale() == pytest.approx([np.sqrt(0.06 * 0.5)], rel=0.05), (
        "rare values far away would not be seen"
    )


def correlated(shortened=1.0, sd=1e-7, d=4, seed=11):
    """Records of known correlation, their columns, and the Gram matrix of standardised ones,
    shortened by a factor.
    """
    root = np.random.default_rng(seed).normal(size=(d, d)) / 3 + np.eye(d)
    x = np.random.default_rng(seed + 1).uniform(-1, 1, size=(3000, d)) @ root
    u = x / np.abs(x).max() * np.geomspace(1, 0.2, d)
    u -= u.mean(axis=0)
    columns = ColumnEstimates(d)
    columns.add(np.zeros(d), np.ones(d), np.zeros(d), moments(u, 0.0, 1.0, 0.0), 1e-7)
    z = u / columns.scale()
    noise = np.random.default_rng(seed + 2).normal(size=(d, d))
    gram = shortened * z.T @ z / len(z) + sd * (noise + noise.T) / 2
    return u, columns, CorrelationEstimate(columns, columns.scale(), gram, sd)


@pytest.mark.parametrize("shortened", [1.0, 0.6])
def test_correlations_without_noise_are_those_of_the_records(shortened):
    u, columns, found = correlated(shortened)
    assert found.correlation == pytest.approx(np.corrcoef(u.T), abs=1e-5)
    assert found.covariance == pytest.approx(np.cov(u.T, bias=True), rel=1e-3, abs=1e-6)
    assert found.scale == pytest.approx(columns.scale(), rel=1e-4)
    assert (found.mean == columns.mean).all()
    assert found.least == pytest.approx(1e-6, rel=0.2)


@pytest.mark.parametrize(("shortened", "believed"), [(1.0, 1.0), (0.5, 0.5), (0.1, 0.3)])
def test_shortening_is_believed_up_to_a_limit(shortened, believed):
    """Noise counts for more where records were made shorter.

    The largest eigenvalue of noise alone is 2√d·σ.
    """
    _, _, found = correlated(shortened, sd=1e-4)
    assert found.edge == pytest.approx(2 * np.sqrt(4) * 1e-4 / np.sqrt(2) / believed, rel=1e-3)
    assert found.least == pytest.approx(1e-4 / np.sqrt(2) / believed + 1e-6, rel=1e-3)


@pytest.mark.parametrize("sd", [0.05, 1.0, 1e6])
def test_correlations_exist_for_all_noise(sd):
    _, columns, found = correlated(sd=sd)
    assert np.diag(found.correlation) == pytest.approx(np.ones(4))
    assert np.abs(found.correlation).max() <= 1 + 1e-12
    assert np.linalg.eigvalsh(found.correlation)[0] > 0
    ratio = (found.scale / columns.scale()) ** 2
    assert ((ratio >= 0.5 - 1e-9) & (ratio <= 2 + 1e-9)).all()
    assert 1e-6 < found.least <= 0.1 + 1e-6


def test_a_gram_matrix_tells_variances_that_were_not_known():
    """Noise of the columns' variances as large as they are.

    Then the diagonal of the Gram matrix decides.
    """
    columns = ColumnEstimates(2)
    columns.add(np.zeros(2), np.ones(2), np.zeros(2), np.array([0.0, 0.0, 0.04, 0.04]), 0.04)
    scale = columns.scale()
    found = CorrelationEstimate(columns, scale, np.diag([1.4, 0.6]), 1e-4)
    assert found.scale**2 == pytest.approx(scale**2 * [1.4, 0.6], rel=0.01)
    three = ColumnEstimates(3)
    three.add(np.zeros(3), np.ones(3), np.zeros(3), np.array([0.0] * 3 + [0.04] * 3), 0.04)
    far = CorrelationEstimate(three, three.scale(), np.diag([9.0, 0.01, 0.01]), 1e-4)
    assert far.scale**2 == pytest.approx(0.04 * np.array([2.0, 0.5, 0.5])), "within a factor of two"
    half = ColumnEstimates(2)
    half.add(np.zeros(2), np.ones(2), np.zeros(2), np.array([0.0, 0.0, 0.04, 0.04]), 0.02)
    both = CorrelationEstimate(
        half, half.scale(), np.diag([1.4, 0.6]), 0.5
    )  # precisions of 4 for each of both
    assert both.scale**2 == pytest.approx(0.04 * np.array([1.2, 0.8]))
    sure = ColumnEstimates(2)
    sure.add(np.zeros(2), np.ones(2), np.zeros(2), np.array([0.0, 0.0, 0.04, 0.04]), 1e-9)
    assert CorrelationEstimate(sure, sure.scale(), np.diag([1.4, 0.6]), 0.1).scale == pytest.approx(
        sure.scale()
    )


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.floats(1e-3, 0.1))
def test_a_correlation_matrix_is_made_of_any_symmetric_one(seed, least):
    raw = np.random.default_rng(seed).normal(size=(5, 5)) * 3
    found = nearest_correlation(raw + raw.T, least)
    assert np.diag(found) == pytest.approx(np.ones(5))
    assert (found == found.T).all()
    assert np.linalg.eigvalsh(found)[0] > 0
    again = nearest_correlation(found, np.linalg.eigvalsh(found)[0] / 2)
    assert again == pytest.approx(found), "what is one already stays"


def long_tails(stages, sd, *, n, seed=21, whole=True):
    """Columns of lognormal records near one end of the box, from so many noisy looks."""
    rng = np.random.default_rng(seed)
    u = np.minimum(np.exp(0.8 * rng.normal(size=(n, 40))) / 30 - 1, 1.0)
    columns = ColumnEstimates(40)
    centre, reach, offset = np.zeros(40), np.ones(40), np.ones(40)
    for _ in range(stages):
        told = moments(u, centre, reach, offset) + sd * rng.normal(size=80)
        columns.add(centre, reach, offset, told, sd, n)
        centre, reach, offset = columns.next_window(n, sd, whole=whole)
    return u, columns


def test_a_window_ends_where_the_box_does():
    """Then it is half as wide for what it reaches, and its mean square is about its middle."""
    _, columns = long_tails(1, 1e-5, n=5000)
    centre, reach, offset = columns.next_window(5000, 1e-4, whole=True)
    assert centre - reach == pytest.approx(np.full(40, -1.0))
    around, wide, _ = columns.next_window(5000, 1e-4)
    assert around == pytest.approx(columns.mean), "about the mean if rows may be shortened"
    assert (wide < 2 * reach).all()
    assert offset * reach**2 == pytest.approx(
        np.maximum(columns.variance, columns.variance_sd) + (columns.mean - centre) ** 2
    )
    whole = columns.next_window(5000, 1e-9, whole=True)
    assert whole[0] == pytest.approx(np.zeros(40)), "the whole box, in the end"
    assert whole[1] == pytest.approx(np.ones(40))


@pytest.mark.parametrize("sd", [7e-5, 3e-4])
def test_bands_of_means_of_long_tails_hold_what_windows_cut_off(sd):
    u, columns = long_tails(4, sd, n=5000)
    z = (columns.mean - u.mean(axis=0)) / columns.mean_sd
    assert np.mean(np.abs(z) < 1.96) >= 0.85
    assert np.abs(z).max() < 4


def test_a_variance_is_that_of_the_records_as_noise_vanishes():
    u, columns = long_tails(3, 1e-9, n=5000)
    assert columns.variance == pytest.approx(u.var(axis=0), rel=1e-4)
    assert columns.mean == pytest.approx(u.mean(axis=0), abs=1e-7)
