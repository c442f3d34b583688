"""All releases together: Bayes' rule where it is known, honest where it is not."""

import math

import numpy as np
import pytest

from reticent.inference.moment_model.clipped_noise import ClippedNoise
from reticent.inference.moment_model.clipping import NoiseTail
from reticent.inference.moment_model.joint_posterior import (
    ClipBias,
    StageMoments,
    _Latents,
    _Linearisation,
    _Problem,
    joint_posterior,
)
from reticent.inference.moment_model.log_density import (
    DensityModel,
    density_modes,
    least_factor,
    likely_mean_square,
)

M, G = 5, 64
POINTS = ((np.arange(G) + 0.5) / G * 2 - 1)[:, None]


def features(x):
    """Five smooth functions of one input; the first is a constant."""
    return 0.4 * np.cos(np.pi / 2 * np.arange(M) * (x + 1)) / (1 + 0.3 * np.arange(M))


def simulated(seed, n=2000, noise=0.2, sd=1e-6, r=1e3, stages=4, draw=None):
    """Weights, records and the releases of some stages, each centred at a noisy fit."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (n, 1)) if draw is None else draw(rng, n)
    phi = features(x)
    w = rng.normal(size=M)
    y = phi @ w + noise * rng.normal(size=n)
    B = phi.T @ phi
    centres = np.zeros((stages, M))
    centres[1:] = w + 0.1 * rng.normal(size=(stages - 1, M))
    thresholds = np.full(stages, r)
    cross = np.array(
        [phi.T @ np.clip(y - phi @ centre, -r, r) + sd * rng.normal(size=M) for centre in centres]
    )
    error = rng.normal(size=(M, M)) * sd
    told = B + (error + error.T) / math.sqrt(2)
    moments = StageMoments(cross, np.full(stages, sd), thresholds, centres)
    model = DensityModel(
        features(POINTS), density_modes(POINTS), n, 0.0, told, sd**2, np.zeros((M, M))
    )
    return w, phi, y, moments, model


def no_bias(stages=4):
    one = np.eye(M)[0] / 0.4
    return ClipBias(
        np.zeros((stages, 2, M)),
        np.zeros(2),
        np.eye(2),
        np.zeros(stages),
        one,
        np.eye(M),
        local_sd=0.5,
    )


def solved(moments, model, noise=0.2, bias=None):
    start = np.zeros(M), np.eye(M)
    law = ClippedNoise.normal(noise**2)
    return joint_posterior(moments, model, np.eye(M), law, bias or no_bias(), start)


def clusters(rng, n):
    """Nine of ten records around −.5, the others around .6."""
    centre = np.where(rng.random((n, 1)) < 0.9, -0.5, 0.6)
    return np.clip(centre + 0.05 * rng.normal(size=(n, 1)), -1, 1)


@pytest.mark.parametrize("draw", [None, clusters], ids=["even", "clusters"])
def test_without_clips_and_noise_it_is_bayesian_linear_regression(draw):
    _, phi, y, moments, model = simulated(0, draw=draw)
    found = solved(moments, model)
    precision = np.eye(M) + phi.T @ phi / 0.04
    exact = np.linalg.inv(precision)
    mean = exact @ (phi.T @ y) / 0.04
    assert np.abs(found.mean - mean).max() < 0.02 * math.sqrt(exact.diagonal().max())
    # a direction with less than a tenth of a record counts as if it had that
    assert found.covariance.diagonal() == pytest.approx(exact.diagonal(), rel=0.1)


@pytest.mark.parametrize("draw", [None, clusters], ids=["even", "clusters"])
@pytest.mark.parametrize("r", [1e3, 0.3])
def test_errors_are_as_large_as_the_posterior_says(draw, r):
    squares = []
    for seed in range(40):
        w, _, _, moments, model = simulated(seed, sd=30.0, r=r, draw=draw)
        found = solved(moments, model)
        error = found.mean - w
        squares.append(error @ np.linalg.solve(found.covariance, error) / M)
    # 200 squares of standard normal numbers have a mean of 1 ± .1; errors of the Gram matrix are
    # taken to be independent between directions, which is on the safe side
    assert 0.5 < np.mean(squares) < 1.3


def test_a_wrong_start_and_noisy_matrices_leave_no_trace():
    """Where it begins is of no consequence."""
    _, _, _, moments, model = simulated(3, sd=20.0, r=0.5)
    law = ClippedNoise.normal(0.04)
    starts = (np.zeros(M), np.eye(M)), (3 * np.ones(M), 0.01 * np.eye(M))
    first, second = (
        joint_posterior(moments, model, np.eye(M), law, no_bias(), start) for start in starts
    )
    sd = np.sqrt(first.covariance.diagonal())
    assert (np.abs(first.mean - second.mean) < 0.1 * sd).all()


def test_equal_releases_give_equal_bits():
    _, _, _, moments, model = simulated(4, sd=20.0, r=0.5)
    first, second = solved(moments, model), solved(moments, model)
    assert (first.mean == second.mean).all()
    assert (first.covariance == second.covariance).all()


def test_slopes_are_those_of_what_is_expected():
    _, _, _, moments, model = simulated(5, sd=20.0, r=0.4)
    rng = np.random.default_rng(0)
    law = ClippedNoise(0.02, np.array([0.1]), np.array([0.6]))
    problem = _Problem(moments, model, np.diag(np.linspace(1, 2, M)), law, no_bias())
    at = _Latents(0.5 * rng.normal(size=M), 0.3 * rng.normal(size=model.size))
    linear = _Linearisation(problem, at, 0.1 * np.eye(M), np.zeros((model.size, model.size)))
    slopes = linear._slopes(problem.prior_root @ at.weights)
    directions = linear._view.directions
    for i in (0, 3, M, M + 4):
        step = 1e-5 * np.eye(M + model.size)[i]
        up, down = (linear._expected(at.moved(step, sign)) @ directions for sign in (1, -1))
        expected = (up - down) / 2e-5
        assert slopes[:, :, i] == pytest.approx(expected, rel=1e-4, abs=1e-3)


def test_doubt_about_the_level_is_in_the_band_and_moves_the_level():
    _, _, _, moments, model = simulated(6, sd=20.0)
    plain = solved(moments, model)
    one = np.eye(M)[0] / 0.4

    def with_bias(mean, variance, unseen):
        shifts = np.full((4, 2, 1), [[0.1], [0.0]]) * one
        covariance = variance * np.diag([1.0, 0.0])
        mean = np.array([mean, 0.0])
        return ClipBias(shifts, mean, covariance, np.full(4, unseen), one, np.eye(M), 0.0)

    # all stages are off by −.1: the level of the function by as much
    moved = solved(moments, model, bias=with_bias(1.0, 0.0, 0.0))
    level = features(POINTS) @ (plain.mean - moved.mean)
    assert level == pytest.approx(0.1, abs=0.02)
    for bias in (with_bias(0.0, 1.0, 0.0), with_bias(0.0, 0.0, 0.1)):
        wider = solved(moments, model, bias=bias).covariance - plain.covariance
        added = np.sqrt(np.einsum("gi,ij,gj->g", features(POINTS), wider, features(POINTS)))
        assert added == pytest.approx(0.1, abs=0.02)


def test_a_shift_that_differs_between_places_is_taken_out_where_it_is():
    _, _, _, moments, model = simulated(7, sd=20.0)
    plain = solved(moments, model)
    one = np.eye(M)[0] / 0.4
    growing = np.array([0.25, 0.3, 0.0, 0.0, 0.0])
    shifts = np.broadcast_to(growing, (4, 1, M))
    bias = ClipBias(shifts, np.ones(1), np.zeros((1, 1)), np.zeros(4), one, np.eye(M), 0.0)
    moved = features(POINTS) @ (plain.mean - solved(moments, model, bias=bias).mean)
    assert moved == pytest.approx(features(POINTS) @ growing, abs=0.02)


def test_clipped_moments_of_noise_are_those_of_draws():
    rng = np.random.default_rng(0)
    law = ClippedNoise(0.04, np.array([0.1, 0.05]), np.array([0.5, 1.5]))
    draws = 400_000
    kind = rng.choice(3, draws, p=[0.85, 0.1, 0.05])
    size = np.array([0.0, 0.5, 1.5])[kind] * rng.choice([-1, 1], draws)
    noise = np.where(kind == 0, 0.2 * rng.normal(size=draws), size)
    delta = np.array([[0.0, 0.3], [0.1, -0.6]])
    r = np.array([0.3, 0.9])
    variance = np.array([0.0, 0.05])
    unknown = np.sqrt(variance) * rng.normal(size=(draws, 2))
    mean, gain = law.clipped_mean(delta, variance, r)
    residuals = delta[:, None] + unknown + noise[:, None]
    expected = np.clip(residuals, -r[:, None, None], r[:, None, None]).mean(axis=1)
    assert mean == pytest.approx(expected, abs=0.003)
    step = 1e-4 * np.array([0.0, 1.0])  # where δ is not known, the mean is smooth
    up, down = (law.clipped_mean(delta + sign * step, variance, r)[0] for sign in (1, -1))
    assert gain[:, 1] == pytest.approx((up - down)[:, 1] / 2e-4, rel=1e-4)
    density = np.array([0.7, 0.3])
    clipped = np.clip(delta[:, None] + noise[:, None], -r[:, None, None], r[:, None, None])
    covariance = sum(p * np.cov(clipped[:, :, g]) for g, p in enumerate(density))
    assert law.covariance(delta, r, density) == pytest.approx(covariance, rel=0.03)


def test_laws_are_averaged_by_their_weights():
    tail = NoiseTail(
        np.array([0.04, 0.01]), np.array([0.0, 0.2]), np.array([1.0, 2.0]), np.array([0.75, 0.25])
    )
    law = ClippedNoise.averaged(tail)
    assert law.rare == pytest.approx([0.05])
    assert law.lengths == pytest.approx([2.0])
    assert law.core == pytest.approx((0.75 * 0.04 + 0.2 * 0.01) / 0.95)


def test_the_density_is_found_and_its_gradient_is_right():
    rng = np.random.default_rng(1)
    _, phi, _, _, model = simulated(7, sd=5.0, draw=clusters)
    p = model.density(model.fit())
    assert p.sum() == pytest.approx(1)
    assert p[(POINTS[:, 0] < 0)].sum() == pytest.approx(0.9, abs=0.05)
    assert len(phi) * (features(POINTS).T * p) @ features(POINTS) == pytest.approx(
        phi.T @ phi, abs=40
    )
    z = 0.3 * rng.normal(size=model.size)
    view = model.view(z)
    _, gradient = view.likelihood()
    for i in (0, 5, 20):
        step = 1e-5 * np.eye(model.size)[i]
        slope = (view.misfit(z - step) - view.misfit(z + step)) / 2e-5
        assert gradient[i] == pytest.approx(slope, rel=1e-4)


def test_variances_grow_only_where_chance_does_not_do():
    rng = np.random.default_rng(2)
    noise = rng.normal(size=400)
    most = likely_mean_square(400)
    assert least_factor(lambda factor: np.mean(noise**2 / factor) > most) == 1.0
    factor = least_factor(lambda factor: np.mean((5 * noise) ** 2 / factor) > most)
    assert np.mean((5 * noise) ** 2 / factor) == pytest.approx(most, rel=1e-3)
