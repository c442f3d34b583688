"""Staged posteriors.

Right without noise, positive definite with any noise, and honest about clipping.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reticent.inference.linalg import as_matrix, quadratic_forms
from reticent.inference.moment_model.gram_estimation import denoise_spectrum
from reticent.inference.moment_model.noise_scale import NoiseScale
from reticent.inference.moment_model.posterior import StagedPosterior
from reticent.inference.moment_model.settings import POSTERIOR


def alone(prior, points, n, noise2, **learn):
    """A belief with one hypothesis about the prior."""
    return StagedPosterior([prior], np.zeros(1), points, n, noise2, **learn)


def problem(n=4000, m=6, seed=0, noise=0.1):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(400, m)) * 0.3
    phi = rng.normal(size=(n, m)) * 0.3
    w = rng.normal(size=m)
    return points, phi, w, phi @ w + noise * rng.normal(size=n)


def test_without_noise_it_is_bayesian_linear_regression():
    points, phi, _, y = problem()
    staged = alone(np.eye(6), points, len(y), 0.01)
    B = phi.T @ phi
    for _ in range(3):
        e = y - phi @ staged.mean
        r = 50.0
        staged.add(phi.T @ e, 1e-9, B, np.full((6, 6), 1e-9), float(e @ e), 1e-9, r, staged.mean)
    precision = np.eye(6) + B / 0.01
    assert staged.mean == pytest.approx(np.linalg.solve(precision, phi.T @ y / 0.01), abs=1e-5)
    assert np.diag(staged.covariance) == pytest.approx(np.diag(np.linalg.inv(precision)), rel=0.02)


def test_mean_squares_of_features_are_what_b_tells_near_those_at_points():
    points, phi, _, y = problem()
    points[:, 0] = np.linspace(0.2, 0.6, 400)
    staged = alone(np.eye(6), points, len(y), 0.01)
    assert staged.feature_mean_square(0) == pytest.approx(np.mean(points[:, 0] ** 2))
    for length, told in ((0.5, 0.25), (0.0, 0.02), (0.9, 0.36)):
        phi[:, 0], staged = length, alone(np.eye(6), points, len(y), 0.01)
        staged.add(
            phi.T @ y,
            1e-3,
            phi.T @ phi,
            np.full((6, 6), 1e-3),
            float(y @ y),
            1e-3,
            50.0,
            np.zeros(6),
        )
        assert staged.feature_mean_square(0) == pytest.approx(told, rel=0.01)


def test_the_error_is_the_covariance_and_more_from_a_part_of_the_box():
    points, phi, _, y = problem()
    B = phi.T @ phi
    rng = np.random.default_rng(1)
    for sd, damping in ((1e-9, 0.0), (30.0, 0.0), (30.0, 0.1)):
        staged = StagedPosterior(
            [np.eye(6), 4 * np.eye(6)], np.zeros(2), points, len(y), 0.01, damping=damping
        )
        for _ in range(3):
            e = y - phi @ staged.mean
            noise = rng.normal(size=(6, 6)) * sd
            told = B + (noise + noise.T) / 2
            staged.add(
                phi.T @ e + sd * rng.normal(size=6),
                sd,
                told,
                np.full((6, 6), sd),
                float(e @ e),
                sd,
                50.0,
                staged.mean,
            )
        error = np.diag(staged.error_covariance())
        assert error == pytest.approx(np.diag(staged.covariance), rel=0.02)
        assert np.linalg.eigvalsh(staged.error_covariance())[0] > 0
        # learned in half of the box, the prior leaves open twice as much, and noise is what it was
        more = staged.error_covariance(0.5) - staged.error_covariance()
        most = staged.error_covariance(0.25) - staged.error_covariance()
        assert most == pytest.approx(3 * more)
        assert np.linalg.eigvalsh(more)[0] > 0
        assert np.linalg.eigvalsh(staged.error_covariance() - more)[0] > 0


@pytest.mark.parametrize("sd", [1e-6, 10.0])
def test_uneven_noise_is_in_the_error_of_the_mean(sd):
    """Noise with three times the standard deviation at one end of the first input as at the other.

    Covariances that are told are the mean square of errors, over fresh noise.
    """
    points = np.polynomial.legendre.legvander(np.linspace(-1, 1, 200), 5)
    phi = np.tile(points, (10, 1))
    n = len(phi)
    variance = np.exp(2.2 * phi[:, 1])
    level = float(np.log(variance.mean()))
    scale = NoiseScale(np.array([0.0, 2.2]), (-2.2, 2.2), level, 1.0)
    B = phi.T @ phi
    rng = np.random.default_rng(0)
    truth = np.array([0.3, -0.2, 0.1, 0.0, 0.0, 0.0])
    errors = []
    for _ in range(600):
        staged = alone(100 * np.eye(6), points, n, variance.mean())
        y = phi @ truth + np.sqrt(variance) * rng.normal(size=n)
        cross = phi.T @ y + sd * rng.normal(size=6)
        staged.add(cross, sd, B, np.full((6, 6), 1e-9), float(y @ y), 1e-9, 1e3, staged.mean)
        errors.append(staged.mean - truth)
    told = staged.with_uneven_noise(staged.covariance, scale, points, private=True)
    found = np.mean(np.square(np.array(errors) @ points.T), axis=0)
    at = quadratic_forms(points, told)
    even = quadratic_forms(points, staged.covariance)
    assert at == pytest.approx(found, rel=0.25)
    if sd < 1:
        assert even[0] > 1.5 * found[0]
        assert even[-1] < found[-1] / 1.5
        nonprivate = staged.with_uneven_noise(staged.covariance, scale, points, private=False)
        assert quadratic_forms(points, nonprivate) == pytest.approx(found, rel=0.25)
    even_scale = NoiseScale(np.zeros(6), (0.0, 0.0), 0.0, 0.0)
    same = staged.with_uneven_noise(staged.covariance, even_scale, points, private=True)
    assert same == pytest.approx(staged.covariance)


@pytest.mark.parametrize("together", [2**16, 100])
@pytest.mark.parametrize("alone", [True, False], ids=["diagonal", "dense"])
@pytest.mark.parametrize("sd", [1e-9, 3.0, 300.0])
def test_all_hypotheses_at_once_are_fitted_as_one_by_one(sd, alone, together, monkeypatch):
    """One basis serves them all, whatever noise each of them has been given, and however many are
    taken together.
    """
    with_blocks = replace(POSTERIOR, block_entries=together)
    monkeypatch.setattr("reticent.inference.moment_model.posterior.POSTERIOR", with_blocks)
    points, phi, _, y = problem()
    B = phi.T @ phi
    rng = np.random.default_rng(2)
    variances = rng.uniform(0.01, 4, size=(5, 6))
    mix = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    priors = variances if alone else np.array([mix @ np.diag(v) @ mix.T for v in variances])
    staged = StagedPosterior(
        priors, rng.uniform(0, 0.1, 5), points, len(y), 0.02, learn_noise=True, damping=0.1
    )
    for _ in range(3):
        e = y - phi @ staged.mean
        noise = rng.normal(size=(6, 6)) * sd
        told = (
            phi.T @ e + sd * rng.normal(size=6),
            sd,
            B + (noise + noise.T) / 2,
            np.full((6, 6), sd),
        )
        staged.add(*told, float(e @ e), sd, 1.0, staged.mean)
    staged._s2 = staged.s2 * np.geomspace(0.01, 100, 5)
    which = np.array([0, 1, 3, 4])
    means, variances, evidence = staged._fits(which)
    B = staged._gram.damped_estimate
    G = staged._gram.estimate
    expected = []
    for h in which:
        W = staged._W + (staged._s2[h] - staged.s2) * G
        covariance = np.linalg.inv(np.linalg.inv(as_matrix(priors[h])) + B @ np.linalg.solve(W, B))
        mean = covariance @ B @ np.linalg.solve(W, staged._observed)
        marginal = B @ as_matrix(priors[h]) @ B + W
        fit = staged._observed @ np.linalg.solve(marginal, staged._observed)
        expected.append((mean, (covariance * G).sum(), -np.linalg.slogdet(marginal)[1] - fit))
    for found, (mean, variance, doubled) in zip(
        zip(means, variances, evidence - evidence[0], strict=True), expected, strict=True
    ):
        assert found[0] == pytest.approx(mean, rel=1e-5, abs=1e-7)
        assert found[1] == pytest.approx(variance, rel=1e-5)
        assert found[2] == pytest.approx((doubled - expected[0][2]) / 2, rel=1e-6, abs=1e-4)


def test_weighted_records_are_weighted_bayesian_linear_regression():
    """Levels from 0.1 to 1.

    The products with 0.1/level have noise 0.1 each, and B tells the mean square of the weights.
    """
    points, phi, w, _ = problem()
    rng = np.random.default_rng(1)
    sd = np.where(rng.random(len(phi)) < 0.5, 0.1, 1.0)
    y = phi @ w + sd * rng.normal(size=len(phi))
    weight = 0.1 / sd
    f = phi * weight[:, None]
    t = y * weight
    staged = alone(np.eye(6), points, len(y), 0.01, min_square_weight=0.01)
    for _ in range(3):
        e = t - f @ staged.mean
        r = 50.0
        staged.add(
            f.T @ e, 1e-9, f.T @ f, np.full((6, 6), 1e-9), float(e @ e), 1e-9, r, staged.mean
        )
    precision = np.eye(6) + phi.T @ (phi / sd[:, None] ** 2)
    assert staged.mean == pytest.approx(np.linalg.solve(precision, phi.T @ (y / sd**2)), abs=1e-5)
    assert np.diag(staged.covariance) == pytest.approx(np.diag(np.linalg.inv(precision)), rel=0.02)
    # as far as the points are like the records
    assert staged._gram.mean_square_weight == pytest.approx(np.mean(weight**2), rel=0.15)


@pytest.mark.parametrize(("scale", "share"), [(1e-9, 0.505), (1e9, 0.215)])
def test_the_share_is_what_b_tells_or_else_the_usual(scale, share):
    _, phi, _, _ = problem(n=400)
    staged = alone(np.eye(6), phi, 400, 0.01, min_square_weight=0.01)
    assert staged._gram.mean_square_weight == pytest.approx(0.215, abs=1e-3)
    staged.add(
        np.zeros(6), 1.0, 0.505 * phi.T @ phi, np.full((6, 6), scale), 1.0, 1.0, 1.0, np.zeros(6)
    )
    assert staged._gram.mean_square_weight == pytest.approx(share, abs=1e-3)


@settings(max_examples=40)
@given(st.integers(0, 10_000), st.floats(1e-3, 1e6), st.booleans())
def test_any_noise_leaves_a_proper_posterior(seed, scale, learn_noise):
    """Noise far above the signal, of any draw.

    Finite, symmetric, no wider than the prior, and no blow-up.
    """
    rng = np.random.default_rng(seed)
    points, phi, _, y = problem(n=50, seed=seed)
    staged = alone(np.eye(6), points, 50, 0.01, learn_noise=learn_noise)
    for _ in range(3):
        r = 2 * staged.residual_sd()
        e = np.clip(y - phi @ staged.mean, -r, r)
        noise = rng.normal(size=(6, 6)) * scale
        B = phi.T @ phi + (noise + noise.T) / 2
        A = phi.T @ e + rng.normal(size=6) * scale * r
        staged.add(
            A,
            scale * r,
            B,
            np.full((6, 6), scale),
            float(e @ e) + rng.normal() * scale * r * r,
            scale * r * r,
            r,
            staged.mean,
        )
        values = np.linalg.eigvalsh(staged.covariance)
        assert np.isfinite(staged.mean).all()
        assert values[0] > 0
        assert values[-1] <= 1 + 1e-9
        assert np.isfinite(staged.s2)
    assert np.linalg.norm(staged.mean) < 50


def staged_fit(hypotheses, noise2, *, noise=0.1, seed=3, **learn):
    points, phi, w, y = problem(seed=seed, noise=noise)
    staged = StagedPosterior(
        hypotheses(w), np.zeros(len(hypotheses(w))), points, len(y), noise2, **learn
    )
    for _ in range(4):
        r = 2 * staged.residual_sd()
        e = np.clip(y - phi @ staged.mean, -r, r)
        told = (phi.T @ e, 1.0, phi.T @ phi, np.full((6, 6), 1.0), float(e @ e), 1.0, r)
        staged.add(*told, staged.mean)
    return staged, w


def test_evidence_prefers_the_prior_that_made_the_weights():
    staged, w = staged_fit(lambda w: [np.eye(6) * s for s in (1e-3, float(w @ w) / 6, 1e3)], 0.01)
    assert np.argmax(staged.hypothesis_weights) == 1
    narrow, _ = staged_fit(lambda w: [np.eye(6) * 1e-6], 0.01)
    assert (
        np.linalg.norm(narrow.mean)
        < np.linalg.norm(staged.mean)
        == pytest.approx(np.linalg.norm(w), rel=0.1)
    )


def test_hypotheses_that_are_not_to_be_weighed_keep_their_weights():
    staged, _ = staged_fit(lambda w: [np.eye(6) * s for s in (1e-3, 1.0)], 0.01, learn_prior=False)
    assert staged.hypothesis_weights == pytest.approx([0.5, 0.5])


@pytest.mark.parametrize("noise", [0.03, 0.1, 0.5])
def test_the_noise_is_found_from_a_first_guess_that_is_far_off(noise):
    staged, _ = staged_fit(lambda w: [np.eye(6)], 0.04, noise=noise, learn_noise=True)
    assert np.sqrt(staged.s2) == pytest.approx(noise, rel=0.15)


@pytest.mark.parametrize(
    ("uneven", "sd", "most"),
    [(0.0, 1.0, 0.05), (0.3, 1.0, 0.05), (0.45, 1.0, 0.15), (0.45, 600.0, 0.15)],
)
def test_noise_of_uneven_size_is_taken_for_as_large_as_it_is(uneven, sd, most):
    """Narrow clips see its middle, the wide one at the end most of it.

    What is beyond has to be inferred. Before: 5 % off.
    """
    points, phi, w, _ = problem(n=100_000)
    rng = np.random.default_rng(1)
    noise = 0.3 * np.exp(uneven * rng.normal(size=len(phi))) * rng.normal(size=len(phi))
    y = phi @ w + noise
    staged = alone(np.eye(6), points, len(phi), 0.04, learn_noise=True)
    for z in (2.0, 1.5, 1.5, 1.5, 1.5, 4.0):
        r = z * staged.residual_sd()
        e = np.clip(y - phi @ staged.mean, -r, r)
        q_sd = sd if z == 4.0 else 1.0
        staged.add(
            phi.T @ e, 1.0, phi.T @ phi, np.full((6, 6), 1.0), float(e @ e), q_sd, r, staged.mean
        )
    found = math.sqrt(staged.tail.variance())
    true = math.sqrt(np.mean(noise**2))
    assert found == pytest.approx(true, rel=most)


@pytest.mark.parametrize(("share", "least", "most"), [(0.0, 0.1, 0.11), (0.1, 0.12, 0.3)])
def test_a_known_noise_is_the_least(share, least, most):
    """Outliers count as more noise, clean records as what was said."""
    rng = np.random.default_rng(0)
    points, phi, _, y = problem()
    y = np.where(rng.random(len(y)) < share, rng.choice([-5.0, 5.0], len(y)), y)
    staged = alone(np.eye(6), points, len(y), 0.01)
    for _ in range(6):
        r = staged.residual_sd()
        e = np.clip(y - phi @ staged.mean, -r, r)
        staged.add(
            phi.T @ e, 1.0, phi.T @ phi, np.full((6, 6), 1.0), float(e @ e), 1.0, r, staged.mean
        )
    assert least - 1e-9 <= np.sqrt(staged.s2) <= most


def test_directions_without_records_stay_unknown():
    """All records in a plane: noise in B outside it must not count as knowledge."""
    rng = np.random.default_rng(0)
    points, phi, _, _ = problem()
    phi[:, 3:] = 0.0
    doubts = []
    for _ in range(20):
        staged = alone(np.eye(6), points, len(phi), 0.01)
        w = rng.normal(size=6)
        y = phi @ w + 0.1 * rng.normal(size=len(phi))
        for _ in range(6):
            r = 2 * staged.residual_sd()
            e = np.clip(y - phi @ staged.mean, -r, r)
            E = rng.normal(size=(6, 6)) * 20
            A = phi.T @ e + 20 * r * rng.normal(size=6)
            B = phi.T @ phi + (E + E.T) / np.sqrt(2)
            staged.add(A, 20 * r, B, np.full((6, 6), 20.0), float(e @ e), 1.0, r, staged.mean)
        doubts.append(np.diag(staged.covariance)[3:].mean())
    assert np.mean(doubts) > 0.7
    assert np.mean(np.diag(staged.covariance)[:3]) < 0.1


@pytest.mark.parametrize("strength", [0.0, 1.0, 30.0])
def test_matrices_are_denoised_almost_as_well_as_with_known_eigenvectors(strength):
    """Pure noise becomes nothing; signal keeps its size.

    The error is below that of the noise, and of giving up, and is known.
    """
    m = 60
    errors = []
    claimed = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        vectors = np.linalg.qr(rng.normal(size=(m, m)))[0]
        truth = (
            vectors * np.concatenate([strength * np.linspace(1, 8, 6), np.zeros(m - 6)])
        ) @ vectors.T
        noise = rng.normal(size=(m, m))
        found, left, signal = denoise_spectrum(truth + (noise + noise.T) / np.sqrt(2), 1.0)
        errors.append(((found - truth) ** 2).sum())
        claimed.append(left * m**2)
        assert signal == pytest.approx((truth**2).sum(), rel=0.1, abs=6 * m)
    assert np.mean(errors) < 0.35 * min(m * (m + 1), max((truth**2).sum(), 0.5 * m * (m + 1)))
    assert np.mean(claimed) == pytest.approx(np.mean(errors), abs=0.15 * m * (m + 1))


def test_quadratic_forms():
    rows = np.random.default_rng(0).normal(size=(5, 3))
    matrix = np.diag([1.0, 2.0, 3.0])
    assert quadratic_forms(rows, matrix) == pytest.approx([row @ matrix @ row for row in rows])


def test_what_the_basis_cannot_show_is_sought_among_the_noise_too():
    """Four hypotheses: nothing is outside, little, as much as all residuals, more than these."""
    points, _, _, y = problem()
    outside = np.array([0.0, 1e-4, 0.04, 0.2])

    def unseen(h, s2, **options):
        staged = StagedPosterior([np.eye(6)] * 4, outside, points, len(y), 0.04, **options)
        staged.hypothesis_weights = np.eye(4)[h]
        staged._s2 = np.full(4, s2)
        return staged.estimated_truncation_variance()

    assert [
        unseen(h, 0.04) for h in range(4)
    ] == outside.tolist()  # noise that is known is no part of a function
    assert unseen(0, 0.04, learn_noise=True) < 1e-6
    assert 1e-4 < unseen(1, 0.04, learn_noise=True) < 3e-4
    assert 0.04 < unseen(2, 0.4, learn_noise=True) < 0.2
    assert unseen(2, 0.04, learn_noise=True) == 0.04
    assert unseen(3, 0.2, learn_noise=True) == 0.2
    halfway = [unseen(2, s2, learn_noise=True) for s2 in (0.05, 0.1, 0.2)]
    assert halfway == sorted(halfway)


def one_stage(staged, phi, y, r, rng):
    """Release a stage with a noise of 10 in the sums."""
    e = np.clip(y - phi @ staged.mean, -r, r)
    A = phi.T @ e + 10 * r * rng.normal(size=phi.shape[1])
    B_sd = np.full((phi.shape[1],) * 2, 1.0)
    staged.add(A, 10 * r, phi.T @ phi, B_sd, float(e @ e), 10 * r**2, r, staged.mean)


@pytest.mark.parametrize("law", ["normal", "exponential", "rare"])
def test_the_level_is_right_whatever_the_law_of_the_noise(law):
    """Three wide stages and six narrow ones.

    With all alike, clips of exponential noise would move the level by about .009, of rare large
    residuals by .037.
    """
    rng = np.random.default_rng(0)
    n = 20_000
    phi = np.column_stack([np.full(n, 0.5), 0.3 * rng.normal(size=(n, 2))])
    noise = {
        "normal": 0.1 * rng.normal(size=n),
        "exponential": 0.1 * (rng.exponential(size=n) - 1),
        "rare": 0.03 * rng.normal(size=n) + np.where(rng.random(n) < 0.02, 1.96, -0.04),
    }[law]
    w = np.array([1.0, -0.5, 0.3])
    y = phi @ w + noise
    staged = alone(np.eye(3), phi[:400], n, 0.01, learn_noise=True)
    for r in (2.0, 2.0, 2.0, 0.15, 0.15, 0.15, 0.15, 0.15, 0.15):
        one_stage(staged, phi, y, r, rng)
    level_sd = 0.5 * math.sqrt(staged.error_covariance()[0, 0])
    assert abs(staged.mean[0] * 0.5 - 0.5) < 3 * level_sd
    assert staged.mean[0] * 0.5 == pytest.approx(0.5, abs=0.005)


def test_clips_widen_where_a_rare_part_was_seen():
    rng = np.random.default_rng(0)
    n = 20_000
    phi = np.column_stack([np.full(n, 0.5), 0.3 * rng.normal(size=(n, 2))])
    thresholds = np.geomspace(0.02, 2.0, 30)
    best = {}
    for chance in (0.0, 0.05):
        y = 0.03 * rng.normal(size=n) + np.where(rng.random(n) < chance, 1.9, 0.0)
        staged = alone(np.eye(3), phi[:400], n, 0.01, learn_noise=True)
        for r in (2.0, 0.2, 0.1, 0.1, 2.0, 0.1):
            one_stage(staged, phi, y, r, rng)
        best[chance] = thresholds[np.argmin(staged.clip_errors(thresholds, 20))]
    assert best[0.0] < 0.2
    assert best[0.05] > 0.8


def test_averages_leave_out_the_short_waves_of_hypotheses_that_hardly_count():
    """The mean of two priors lets noise through as the second function, which only an unlikely
    hypothesis has.
    """
    rng = np.random.default_rng(1)
    phi = rng.normal(size=(4000, 2)) * 0.3
    y = phi @ np.array([1.0, 0.0]) + 0.1 * rng.normal(size=4000)
    flat = np.diag([1.0, 1e-8])
    wavy = np.diag([1.0, 100.0])
    staged = StagedPosterior([flat, wavy], np.zeros(2), phi[:400], 4000, 0.01)
    for _ in range(3):
        e = y - phi @ staged.mean
        A = phi.T @ e + np.array([0.0, 5.0])
        staged.add(A, 5.0, phi.T @ phi, np.full((2, 2), 1e-3), float(e @ e), 1.0, 50.0, staged.mean)
    assert staged.hypothesis_weights[1] < 0.05
    assert abs(staged.model_averaged_mean()[1]) < abs(staged.mean[1]) / 3
    alike = alone(np.eye(2), phi[:400], 4000, 0.01)
    alike.add(A, 5.0, phi.T @ phi, np.full((2, 2), 1e-3), float(e @ e), 1.0, 50.0, alike.mean)
    assert alike.model_averaged_mean() is alike.mean


def staged_once(sd, seed=0, **how):
    """A belief after one stage whose A has noise of this sd, the exact sums, and the outputs."""
    points, phi, _w, y = problem(seed=seed)
    staged = alone(np.eye(6), points, len(y), 0.01, **how)
    B = phi.T @ phi
    e = y - phi @ staged.mean
    A = phi.T @ e + sd * np.random.default_rng(seed).normal(size=6)
    staged.add(A, sd, B, np.full((6, 6), 1e-9), float(e @ e), 1e-9, 50.0, staged.mean)
    return staged, B, phi.T @ y


def test_what_is_known_beforehand_counts_like_an_observation():
    rng = np.random.default_rng(0)
    H = rng.normal(size=(4, 6))
    z = rng.normal(size=4)
    begun, B, told = staged_once(1e-9, prior_observation=(H, z), clipped=False)
    precision = np.eye(6) + H.T @ H + B / 0.01
    assert begun.mean == pytest.approx(np.linalg.solve(precision, told / 0.01 + H.T @ z), abs=1e-5)
    assert np.diag(begun.covariance) == pytest.approx(np.diag(np.linalg.inv(precision)), rel=0.02)
    assert np.diag(begun.error_covariance()) == pytest.approx(np.diag(begun.covariance), rel=0.05)
    first = alone(np.eye(6), problem()[0], 4000, 0.01, prior_observation=(H, z))
    assert first.mean == pytest.approx(np.linalg.solve(np.eye(6) + H.T @ H, H.T @ z))


def test_hypotheses_are_fitted_with_what_is_known_beforehand():
    """Two hypotheses that are the same weigh as much as their odds say, and are fitted like one."""
    rng = np.random.default_rng(1)
    earlier = (rng.normal(size=(6, 6)), rng.normal(size=6))
    points, phi, _, y = problem()
    one = alone(np.eye(6), points, len(y), 0.01, prior_observation=earlier, clipped=False)
    two = StagedPosterior(
        [np.eye(6)] * 2,
        np.zeros(2),
        points,
        len(y),
        0.01,
        prior_observation=earlier,
        clipped=False,
        log_prior_weights=np.log([1.0, 3.0]),
    )
    for staged in (one, two):
        e = y - phi @ staged.mean
        staged.add(
            phi.T @ e, 5.0, phi.T @ phi, np.full((6, 6), 5.0), float(e @ e), 5.0, 50.0, staged.mean
        )
    assert two.mean == pytest.approx(one.mean, rel=1e-3)
    assert two.hypothesis_weights == pytest.approx([0.25, 0.75])
    assert two._fits(np.arange(2))[0] == pytest.approx(np.array([one.mean] * 2), rel=1e-6)
    wrong = StagedPosterior(
        [np.eye(6), 1e-4 * np.eye(6)],
        np.zeros(2),
        points,
        len(y),
        0.01,
        prior_observation=(10 * np.eye(6), np.full(6, 20.0)),
    )
    e = y - phi @ wrong.mean
    wrong.add(
        phi.T @ e, 1e4, phi.T @ phi, np.full((6, 6), 5.0), float(e @ e), 5.0, 50.0, wrong.mean
    )
    assert wrong.hypothesis_weights[0] > 0.99, "the evidence is that of both"


def test_the_gradient_of_the_evidence():
    staged, _, _ = staged_once(30.0)
    prior = np.diag(np.linspace(0.5, 2.0, 6))
    step = np.random.default_rng(2).normal(size=(6, 6))
    step = 1e-5 * (step + step.T)
    value, slope = staged.evidence(prior)
    above, below = (staged.evidence(prior + sign * step)[0] for sign in (1, -1))
    assert (above - below) / 2 == pytest.approx((slope * step).sum(), rel=1e-4)
    assert value > staged.evidence(1e-4 * prior)[0]


@pytest.mark.parametrize("sd", [0.1, 3.0, 300.0])
def test_what_is_passed_on_is_what_the_stages_to_come_do_not_see_again(sd):
    """Records' noise C is in all stages.

    Together they know 1/(C + N/(1 + left)), those to come 1/(C + N/left).
    """
    staged, B, _ = staged_once(sd)
    H, z = staged.transferred_observation(np.eye(6), np.zeros((6, 6)), 5.0)
    same = staged.s2 * staged._gram.damped_estimate
    own = staged._W - staged.s2 * staged._gram.damped_estimate
    both, later = (B @ np.linalg.solve(same + own / parts, B) for parts in (6.0, 5.0))
    assert pytest.approx(both - later, rel=0.02, abs=2e-6 * np.trace(both)) == H.T @ H
    assert np.linalg.solve(H, z) == pytest.approx(
        np.linalg.solve(B, staged._observed), abs=0.02 + 1e-3 * sd
    )
    wide, _ = staged.transferred_observation(np.eye(6), np.eye(6), 5.0)
    assert np.trace(wide.T @ wide) < np.trace(H.T @ H), "what other weights do not show is noise"


def test_very_unlikely_hypotheses_are_left_out_and_nothing_else_changes(monkeypatch):
    """Against all hypotheses in all stages: the same weights, mean and noise."""
    points, phi, _, y = problem()
    B = phi.T @ phi

    def fitted():
        rng = np.random.default_rng(3)
        staged = StagedPosterior(
            np.outer(10.0 ** np.arange(-6, 3), np.ones(6)),
            np.zeros(9),
            points,
            len(y),
            0.02,
            learn_noise=True,
        )
        for _ in range(9):
            e = y - phi @ staged.mean
            A = phi.T @ e + 3 * rng.normal(size=6)
            staged.add(A, 3.0, B, np.full((6, 6), 3.0), float(e @ e), 3.0, 50.0, staged.mean)
        staged.finish()
        return staged

    pruned = fitted()
    settings = replace(POSTERIOR, unlikely=0.0, review_growth=1.0, tolerance=1e-9)
    monkeypatch.setattr("reticent.inference.moment_model.posterior.POSTERIOR", settings)
    whole = fitted()
    assert len(pruned._likely) < 9
    assert pruned.hypothesis_weights[:3].max() == 0
    assert pruned.hypothesis_weights == pytest.approx(whole.hypothesis_weights, abs=0.02)
    assert pruned.mean == pytest.approx(whole.mean, abs=0.1 * np.sqrt(whole.covariance.max()))
    assert pruned.s2 == pytest.approx(whole.s2, rel=0.02)


def test_the_last_stages_count_in_the_end():
    """Between two reviews the Gram matrix stays as it was; at the end all releases are in it."""
    points, phi, _, y = problem()
    B = phi.T @ phi
    staged = alone(np.eye(6), points, len(y), 0.01)
    for k in range(8):
        e = y - phi @ staged.mean
        told = B if k < 6 else 1.2 * B
        staged.add(phi.T @ e, 1.0, told, np.full((6, 6), 1.0), float(e @ e), 1.0, 50.0, staged.mean)
    before = staged.posterior_variance()
    staged.finish()
    assert staged._stages_at_review == 8
    after = staged.posterior_variance()
    staged.finish()
    assert staged.posterior_variance() == after <= before
