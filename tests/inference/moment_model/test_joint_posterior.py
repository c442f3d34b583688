"""The joint posterior: exact without privacy noise, right in each of its parts."""

import math

import numpy as np
import pytest

from reticent.inference.moment_model.gram_likelihood import GramLikelihood
from reticent.inference.moment_model.input_log_density import InputLogDensity
from reticent.inference.moment_model.joint_posterior import (
    JointProblem,
    StagedReleases,
    joint_posterior,
)
from reticent.inference.moment_model.noise_shapes import NOISE_SHAPES

INPUTS = np.linspace(-1, 1, 129)[:, None]


def features(x):
    return np.column_stack([np.cos(math.pi * k * (x[:, 0] + 1) / 2) for k in range(5)]) / 3


def released(x, y, thresholds, sd, rng, centres=None, gram_sd=None):
    """Releases of stages with these clip thresholds, with noise of standard deviation sd."""
    phi = features(x)
    K, m = len(thresholds), phi.shape[1]
    centres = np.zeros((K, m)) if centres is None else centres
    clipped = [np.clip(y - phi @ w, -r, r) for w, r in zip(centres, thresholds, strict=True)]
    noise = rng.normal(size=(m, m)) * (sd if gram_sd is None else gram_sd)
    return StagedReleases(
        cross=np.array([phi.T @ e for e in clipped]) + sd * rng.normal(size=(K, m)),
        cross_sd=np.full(K, sd),
        centres=centres,
        clip_thresholds=np.array(thresholds),
        squares=np.array([e @ e for e in clipped]) + sd * rng.normal(size=K),
        square_sd=np.full(K, sd),
        gram=phi.T @ phi + (noise + noise.T) / math.sqrt(2) / math.sqrt(2),
        gram_noise=(sd if gram_sd is None else gram_sd) ** 2 / 2,
    )


def problem(releases, n, noise_variance, learn_noise=False):
    return JointProblem(
        releases=releases,
        features=features(INPUTS),
        inputs=INPUTS,
        n=n,
        count_variance=0.0,
        prior_root=np.eye(5),
        noise_variance=noise_variance,
        truncation_variance=0.0,
        learn_noise=learn_noise,
        mean=np.zeros(5),
        covariance=np.eye(5),
    )


def data(n, noise, seed=0, inputs=None):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, size=(n, 1)) if inputs is None else inputs(rng)
    w = rng.normal(size=5)
    return rng, x, w, features(x) @ w + noise(rng)


@pytest.mark.parametrize("shape", NOISE_SHAPES, ids=lambda shape: shape.name)
def test_clipped_moments_are_those_of_draws(shape):
    rng = np.random.default_rng(0)
    component = rng.choice(len(shape.means), size=400_000, p=shape.probabilities)
    noise = np.array(shape.means)[component]
    noise += np.array(shape.sds)[component] * rng.normal(size=len(noise))
    assert noise.mean() == pytest.approx(0, abs=0.01)
    assert noise.var() == pytest.approx(1, rel=0.03)
    shift = np.array([[0.0, 0.3, -2.0], [0.0, 0.3, -2.0]])
    r = np.array([0.7, 2.5])
    further = np.array([0.0, 0.1, 0.5]) + 1e-12
    mean, gain = shape.clipped_mean(shift, r, 0.25, further)
    square = shape.clipped_square(shift, r, 0.25, further)
    up, _ = shape.clipped_mean(shift + 1e-5, r, 0.25, further)
    down, _ = shape.clipped_mean(shift - 1e-5, r, 0.25, further)
    assert gain == pytest.approx((up - down) / 2e-5, abs=1e-5)
    normal = rng.normal(size=len(noise))
    for k in range(2):
        for g in range(3):
            residual = shift[k, g] + 0.5 * noise + math.sqrt(further[g]) * normal
            clipped = np.clip(residual, -r[k], r[k])
            assert mean[k, g] == pytest.approx(clipped.mean(), abs=0.006)
            assert square[k, g] == pytest.approx(np.mean(clipped**2), abs=0.01)
    nodes, weights = shape.quadrature(0.25, 0.1)
    assert nodes @ weights == pytest.approx(0, abs=1e-3)
    assert nodes**2 @ weights == pytest.approx(0.35, rel=0.01)


def test_the_density_counts_all_records_and_knows_its_slope():
    density = InputLogDensity(INPUTS, 0.3, 1000.0, 0.01)
    z = np.random.default_rng(0).normal(size=density.size) / 2
    records, slopes = density.expected_records(z)
    assert records.sum() == pytest.approx(1000 * math.exp(0.1 * z[-1]))
    for j in (0, 3, density.size - 1):
        step = 1e-5 * np.eye(density.size)[j]
        ahead = density.expected_records(z + step)[0]
        behind = density.expected_records(z - step)[0]
        assert slopes[:, j] == pytest.approx((ahead - behind) / 2e-5, abs=1e-4)


def test_a_density_is_found_from_gram_matrices():
    rng = np.random.default_rng(1)
    x = np.clip(0.4 + 0.15 * rng.normal(size=(2000, 1)), -1, 1)
    phi = features(x)
    gram = phi.T @ phi
    likelihood = GramLikelihood(
        features(INPUTS), InputLogDensity(INPUTS, 0.3, 2000.0, 0.0), gram, 1.0
    )
    law = likelihood.fit()
    records, _ = likelihood.density.expected_records(law.latents)
    mean = float(records @ INPUTS[:, 0]) / records.sum()
    assert mean == pytest.approx(0.4, abs=0.03)
    geometry = likelihood.geometry(records)
    directions = geometry.directions
    estimate = features(INPUTS).T @ (records[:, None] * features(INPUTS))
    corrected = (
        estimate + directions @ likelihood.sample_deviation(geometry, records) @ directions.T
    )
    assert np.abs(corrected - gram).max() < np.abs(estimate - gram).max()
    even = GramLikelihood(features(INPUTS), InputLogDensity(INPUTS, 0.3, 2000.0, 0.0), gram, 1e-9)
    geometry = even.geometry(records)
    rotated = geometry.directions @ even.sample_deviation(geometry, records) @ geometry.directions.T
    assert estimate + rotated == pytest.approx(gram, abs=1e-3)


@pytest.mark.parametrize("ties", [False, True])
def test_without_privacy_noise_it_is_bayesian_linear_regression(ties):
    places = np.array([-0.7, -0.1, 0.35, 0.8])
    inputs = (lambda rng: rng.choice(places, size=(600, 1))) if ties else None
    rng, x, _, y = data(600, lambda rng: 0.2 * rng.normal(size=600), inputs=inputs)
    found = joint_posterior(problem(released(x, y, [20.0, 20.0], 1e-5, rng), 600, 0.04))
    phi = features(x)
    precision = np.eye(5) + phi.T @ phi / 0.04
    assert found.mean == pytest.approx(np.linalg.solve(precision, phi.T @ y / 0.04), abs=2e-3)
    assert np.diag(found.covariance) == pytest.approx(np.diag(np.linalg.inv(precision)), rel=0.03)


def test_what_a_clip_takes_is_put_back():
    rng, x, w, y = data(20_000, lambda rng: 0.3 * rng.normal(size=20_000))
    centres = np.array([w + 0.2, w - 0.1])
    narrow = released(x, y, [0.3, 0.3], 1e-3, rng, centres)
    found = joint_posterior(problem(narrow, 20_000, 0.09))
    error = (found.mean - w) / np.sqrt(np.diag(found.covariance))
    assert np.abs(error).max() < 3.5
    assert np.sqrt(np.diag(found.covariance)).max() < 0.05


@pytest.mark.parametrize("sign", [1, -1])
def test_skewed_noise_does_not_move_the_function(sign):
    def noise(rng):
        return sign * 0.3 * (rng.exponential(size=20_000) - 1)

    rng, x, w, y = data(20_000, noise)
    thresholds = [2.0, 0.6, 0.3, 0.3, 1.2]
    releases = released(x, y, thresholds, 2.0, rng, np.array([w + 0.05] * 5), gram_sd=5.0)
    found = joint_posterior(problem(releases, 20_000, 0.01, learn_noise=True))
    error = (found.mean - w) / np.sqrt(np.diag(found.covariance))
    assert np.abs(error).max() < 3.5
    assert math.sqrt(found.noise_variance) == pytest.approx(0.3, rel=0.1)


def test_noise_in_b_keeps_gaps_open():
    def inputs(rng):
        return np.clip(-0.5 + 0.1 * rng.normal(size=(500, 1)), -1, 1)

    rng, x, _, y = data(500, lambda rng: 0.1 * rng.normal(size=500), inputs=inputs)
    found = joint_posterior(problem(released(x, y, [1.0] * 3, 0.5, rng, gram_sd=5.0), 500, 0.01))
    sd = np.sqrt(((features(INPUTS) @ found.covariance) * features(INPUTS)).sum(axis=1))
    here = sd[np.abs(INPUTS[:, 0] + 0.5) < 0.1].max()
    there = sd[np.abs(INPUTS[:, 0] - 0.7) < 0.1].min()
    assert there > 3 * here
