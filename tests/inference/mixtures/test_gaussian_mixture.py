"""Moments of shortened residuals, and what is computed from them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.stats import chi, multivariate_normal

from reticent.inference.mixtures.gaussian_mixture import (
    ClipGains,
    NormalMixture,
    chi_quantile,
    clamp_eigenvalues,
    clip_gains,
    correct_moments,
    grid_mixture,
    map_estimate,
    merge_components,
    significant_counts,
)


@pytest.mark.parametrize("d", [1, 2, 10])
def test_gains_are_those_of_shortened_normal_vectors(d):
    """By simulation with common random numbers.

    Small changes of mean and covariance, and what is left of them.
    """
    rng = np.random.default_rng(0)
    z = rng.normal(size=(400_000, d))
    radius = chi_quantile(d, 0.6)
    gain = clip_gains(d, radius)

    def moments(vectors):
        u = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), radius)
        return u.mean(axis=0), (u**2).mean(axis=0)

    small = 0.02
    _, plain = moments(z)
    assert plain.mean() == pytest.approx(gain.identity_moment, rel=0.01)
    moved, _ = moments(np.vstack([z, -z]) + np.eye(d)[0] * small)
    assert moved[0] / small == pytest.approx(gain.mean_gain, rel=0.02)
    _, wider = moments(z * (1 + small))
    assert (wider - plain).mean() / (2 * small) == pytest.approx(gain.trace_gain, rel=0.08)
    if d > 1:
        _, bent = moments(
            z * (1 + small * np.where(np.arange(d) == 0, 1, np.where(np.arange(d) == 1, -1, 0)))
        )
        assert (bent - plain)[0] / (2 * small) == pytest.approx(gain.deviation_gain, rel=0.08)


def change_and_shift(*asked):
    """E and δ of z ~ N(δ, I + E)."""
    shift, values, vectors = correct_moments(*asked)
    return (vectors * (values - 1)) @ vectors.T, shift


def test_corrections_find_the_change_and_take_noise_for_nothing():
    d = 8
    rng = np.random.default_rng(1)
    gain = clip_gains(d, chi_quantile(d, 0.6))
    truth = np.zeros((d, d))
    truth[0, 1] = truth[1, 0] = 0.3
    truth[2, 2] = 0.4
    level = np.eye(d) * (gain.identity_moment + gain.trace_gain * np.trace(truth) / d)
    second = level + gain.deviation_gain * (truth - np.eye(d) * np.trace(truth) / d)
    change, shift = change_and_shift(gain, np.full(d, 0.01), second, 1e-8)
    assert shift == pytest.approx(np.full(d, 0.01 / gain.mean_gain))
    assert change == pytest.approx(truth, abs=0.02)
    diagonal, _ = change_and_shift(gain, np.zeros(d), np.diag(second), 1e-8)
    assert np.diag(diagonal) == pytest.approx(np.diag(truth), abs=0.02)
    trace, _ = change_and_shift(gain, np.zeros(d), np.array(np.trace(second)), 1e-8)
    assert trace == pytest.approx(np.eye(d) * 0.05, abs=1e-9)
    noise = rng.normal(size=(40, 40))
    many = clip_gains(40, chi_quantile(40, 0.6))
    off = np.triu(noise, 1) * 0.5 * many.deviation_gain
    nothing, _ = change_and_shift(
        many,
        np.zeros(40),
        np.eye(40) * many.identity_moment + off + off.T,
        (0.5 * many.deviation_gain) ** 2,
    )
    assert np.abs(nothing).max() < 0.3  # eigenvalues of the noise reach 6


def test_a_change_never_makes_a_variance_vanish_or_explode():
    plain = ClipGains(1.0, 1.0, 1.0, 1.0, 1.0)
    for value in (-1e9, 1e9):
        change, _ = change_and_shift(plain, np.zeros(3), np.eye(3) * value, 1.0)
        assert np.linalg.eigvalsh(change).min() >= -0.8
        assert np.linalg.eigvalsh(change).max() <= 4.0
    assert np.linalg.eigvalsh(clamp_eigenvalues(np.zeros((3, 3)), 0.1)).min() == pytest.approx(0.1)


def mixture():
    rng = np.random.default_rng(2)
    roots = np.array([np.linalg.cholesky(a @ a.T + np.eye(3)) for a in rng.normal(size=(2, 3, 3))])
    return NormalMixture(np.array([0.3, 0.7]), rng.normal(size=(2, 3)), roots)


def test_densities_and_chances_agree_with_scipy():
    one = mixture()
    x = np.random.default_rng(3).normal(size=(20, 3))
    parts = [
        w * multivariate_normal(m, c).pdf(x)
        for w, m, c in zip(one.weights, one.means, one.covariances, strict=True)
    ]
    assert one.score(x) == pytest.approx(np.log(sum(parts)))
    assert one.responsibilities(x)[:, 0] == pytest.approx(parts[0] / sum(parts))


def test_samples_have_the_moments_of_the_mixture():
    one = mixture()
    x = one.sample(100_000, np.random.default_rng(4))
    mean = one.weights @ one.means
    assert x.mean(axis=0) == pytest.approx(mean, abs=0.05)
    away = one.means - mean
    covariance = np.einsum("k,kpq->pq", one.weights, one.covariances) + away.T @ (
        away * one.weights[:, None]
    )
    assert np.cov(x.T) == pytest.approx(covariance, abs=0.15)


def test_joining_keeps_weight_and_mean_and_joins_the_nearest():
    weights = np.array([0.2, 0.3, 0.5])
    means = np.array([[0.0, 0.0], [0.1, 0.0], [5.0, 5.0]])
    w, m = merge_components(weights, means, 2)
    assert np.sort(w) == pytest.approx([0.5, 0.5])
    assert w @ m == pytest.approx(weights @ means)
    assert sorted(m[:, 0]) == pytest.approx([0.06, 5.0])


def test_a_mixture_is_found_in_a_noisy_histogram():
    rng = np.random.default_rng(5)
    x = np.concatenate([rng.normal(-1.5, 0.5, 6000), rng.normal(1.0, 0.7, 4000)])
    counts, edges = np.histogram(x, bins=64, range=(-4, 4))
    points = ((edges[1:] + edges[:-1]) / 2)[:, None]
    found = grid_mixture(points, counts + rng.normal(0, 15, 64), 0.125, 2, 15.0)
    order = np.argsort(found.means[:, 0])
    assert found.means[order, 0] == pytest.approx([-1.5, 1.0], abs=0.1)
    assert found.weights[order] == pytest.approx([0.6, 0.4], abs=0.04)
    assert np.sqrt(found.covariances[order, 0, 0]) == pytest.approx([0.5, 0.7], abs=0.1)
    empty = grid_mixture(points, np.full(64, -1.0), 0.125, 3, 15.0)
    assert np.isfinite(empty.score(points)).all()


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("share", [0.3, 0.9])
def test_gains_are_integrals_over_the_length(d, share):
    """E[min(‖z‖, r)²]/d and E[∂u] by quadrature of the chi law; the length itself by its share."""
    r = chi_quantile(d, share)
    law = chi(d)
    assert law.cdf(r) == pytest.approx(share)
    found = clip_gains(d, r)

    def mean(h):
        return (
            quad(lambda s: h(s) * law.pdf(s), 0, r)[0] + quad(lambda s: h(s) * law.pdf(s), r, 40)[0]
        )

    assert found.identity_moment * r**2 == pytest.approx(
        mean(lambda s: min(s, r) ** 2) / d, rel=1e-6
    )
    assert found.mean_gain * r == pytest.approx(
        mean(lambda s: 1.0 if s < r else (1 - 1 / d) * r / s), rel=1e-6
    )
    # E[uuᵀ] of N(0, (1 + t)I) is that of lengths √(1 + t)·s: its slope in t at 0
    wider, narrower = (
        mean(lambda s, t=t: min(s * np.sqrt(1 + t), r) ** 2) / d for t in (1e-4, -1e-4)
    )
    assert found.trace_gain * r**2 == pytest.approx((wider - narrower) / 2e-4, rel=1e-3)


def test_without_shortening_gains_are_one():
    far = clip_gains(3, 40.0)
    assert (
        far.mean_gain * 40,
        far.identity_moment * 1600,
        far.deviation_gain * 1600,
        far.trace_gain * 1600,
    ) == pytest.approx((1, 1, 1, 1))


@pytest.mark.parametrize("second", [0, 1, 2], ids=["trace", "diagonal", "matrix"])
@settings(max_examples=10)
@given(st.integers(0, 10**6))
def test_small_changes_are_found_exactly_without_noise(second, seed):
    """To first order in δ² and E.

    Moments of N(δ, I + E), made by the gains themselves, lead back to it.
    """
    d = 4
    rng = np.random.default_rng(seed)
    gain = clip_gains(d, chi_quantile(d, 0.7))
    E = 0.05 * rng.normal(size=(d, d))
    E = (E + E.T) / 2
    delta = 0.1 * rng.normal(size=d)
    E = {0: np.eye(d) * np.trace(E) / d, 1: np.diag(np.diag(E)), 2: E}[second]
    whole = E + np.outer(delta, delta)
    level = np.trace(whole) / d
    moments = (gain.identity_moment + gain.trace_gain * level) * np.eye(d) + gain.deviation_gain * (
        whole - level * np.eye(d)
    )
    # the trace of δδᵀ is told by E[uuᵀ] with the gain of the trace, the rest with the other
    told = {0: np.array(np.trace(moments)), 1: np.diag(moments), 2: moments}[second]
    change, shift = change_and_shift(gain, gain.mean_gain * delta, told, 1e-14)
    assert shift == pytest.approx(delta)
    expected = np.eye(d) * np.trace(E) / d if second == 0 else E
    assert change == pytest.approx(expected, abs=1e-5)


def test_noise_on_the_diagonal_is_shrunk_by_what_it_explains():
    """A diagonal that varies as much as noise does is taken for even.

    One that varies more keeps its share.
    """
    plain = ClipGains(1.0, 1.0, 0.0, 1.0, 1.0)
    d = 400
    rest = np.random.default_rng(6).normal(size=d)
    rest -= rest.mean()
    for size, noise2 in ((1.0, 0.6), (1.0, 0.05), (2.0, 0.05)):
        diagonal = 0.1 + size * rest * 0.3
        shift, values, vectors = correct_moments(plain, np.zeros(d), diagonal, noise2)
        signal = max(np.mean((size * 0.3 * rest) ** 2) - 2 * noise2, 0.0)
        kept = signal / (signal + 2 * noise2)
        least = min(max(np.sqrt(noise2 * d) / 2, 0.2), 0.7)
        assert values == pytest.approx(np.clip(1.1 + kept * size * 0.3 * rest, least, 5.0))
        assert (vectors == np.eye(d)).all()
        assert not shift.any()


def test_prior_knowledge_is_that_of_conjugate_laws():
    """The mode of Dirichlet and normal–inverse-Wishart posteriors, by maximising their density over
    a grid.
    """
    one = NormalMixture(np.ones(1), np.zeros((1, 1)), np.ones((1, 1, 1)))
    parts = NormalMixture(
        np.array([0.25, 0.75]), np.array([[1.0], [-2.0]]), np.array([[[0.5]], [[2.0]]])
    )
    n = 40
    alpha = 3.0
    kappa = 5.0
    nu = 4.0
    found = map_estimate(parts, one, n, alpha, kappa, nu)
    assert found.weights == pytest.approx((np.array([10, 30]) + 2) / 44)
    for k, size in enumerate((10.0, 30.0)):
        mean = parts.means[k, 0]
        variance = parts.covariances[k, 0, 0]

        def minus_log(at, size=size, mean=mean, variance=variance):
            mu = at[0]
            s2 = np.exp(at[1])
            data = size * (np.log(s2) + (variance + (mean - mu) ** 2) / s2)
            return (
                data + np.log(s2) + kappa * mu**2 / s2 + (nu + 2) * np.log(s2) + (nu + 3) / s2
            ) / 2

        best = minimize(
            minus_log, [mean, 0.0], method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12}
        ).x
        assert found.means[k, 0] == pytest.approx(best[0], abs=1e-5)
        assert found.covariances[k, 0, 0] == pytest.approx(np.exp(best[1]), rel=1e-4)
    same = map_estimate(parts, one, n, 1.0, 0.0, None)
    assert same.weights == pytest.approx(parts.weights)
    assert (same.means == parts.means).all()
    assert (same.roots == parts.roots).all()


def test_only_what_stands_out_with_its_neighbours_is_supported():
    counts = np.zeros((9, 9))
    counts[2, 2] = 13.0
    counts[7, 7] = 11.0
    counts[6:9, 6:9] -= 1.0
    found = significant_counts(counts, 2.0).reshape(9, 9)
    assert found[2, 2] == 13.0, "above two sds of nine cells together, which are 12"
    assert not found[5:, 5:].any()
    assert significant_counts(np.full(6, 2.5), 1.0).tolist() == [2.5] * 6
    assert significant_counts(np.full(6, 1.1), 1.0).tolist() == [0.0] * 6


@pytest.mark.parametrize("parts", [1, 4, 7])
def test_joining_never_spreads_more_than_the_best_pair(parts):
    rng = np.random.default_rng(7)
    weights = rng.dirichlet(np.ones(7))
    means = rng.normal(size=(7, 2))
    w, m = merge_components(weights, means, parts)
    assert len(w) == parts
    assert w.sum() == pytest.approx(1)
    assert w @ m == pytest.approx(weights @ means)
    if parts == 7:
        assert (m == means).all()


def test_eigenvalues_are_raised_and_nothing_else():
    turn = np.linalg.qr(np.random.default_rng(8).normal(size=(3, 3)))[0]
    found = clamp_eigenvalues(turn @ np.diag([-1.0, 0.05, 2.0]) @ turn.T, 0.1)
    assert turn.T @ found @ turn == pytest.approx(np.diag([0.1, 0.1, 2.0]))


def test_cells_stand_for_places_within_them():
    """One heap narrower than a cell.

    Its variance is at least a sixteenth of a cell's square, not a twelfth more.
    """
    points = np.arange(-2.0, 3.0)[:, None]

    def fitted(*counts):
        return grid_mixture(points, np.array(counts), 1.0, 1, 1.0, starts=2, steps=3)

    one = fitted(0.0, 0, 100, 0, 0)
    wide = fitted(10.0, 20, 40, 20, 10)
    assert one.covariances.item() == pytest.approx(1 / 16)
    assert one.means.item() == pytest.approx(0)
    assert wide.covariances.item() == pytest.approx(1.2 - 1 / 12)
    assert (fitted(10.0, 20, 40, 20, 10).roots == wide.roots).all(), "the same each time"
