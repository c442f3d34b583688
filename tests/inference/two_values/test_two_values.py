"""Outputs that are all at an end of their range: their moments, and whether releases show it."""

import math

import numpy as np
import pytest

from reticent.inference.moment_model.gram_estimation import GramEstimator
from reticent.inference.two_values.evidence import (
    ClippedMoments,
    TwoValuedResiduals,
    amounts_log_evidence,
    noise_log_evidence,
)
from reticent.inference.two_values.posterior import TwoValuedPosterior

THRESHOLDS = np.array([1.0, 0.3, 0.1, 1.9])
CENTRES = np.array([0.0, -0.8, -0.9, -0.9])


def clipped(residuals, r):
    return np.clip(residuals, -r[:, None], r[:, None])


def test_clipped_residuals_of_two_values_are_linear_in_the_function():
    rng = np.random.default_rng(0)
    centres = rng.uniform(-1, 1, (4, 7))
    weights = np.linspace(0.5, 1, 7)
    residuals = TwoValuedResiduals(centres, THRESHOLDS, weights)
    f = weights * np.linspace(-0.9, 0.7, 7)
    chance = (1 + f / weights) / 2
    high, low = (clipped(side * weights - centres, THRESHOLDS) for side in (1, -1))
    mean = chance * high + (1 - chance) * low
    square = chance * high**2 + (1 - chance) * low**2
    assert residuals.offset + residuals.gain * f == pytest.approx(mean)
    assert residuals.square_offset + residuals.square_slope * f == pytest.approx(square)
    whole = TwoValuedResiduals(centres, np.full(4, 2.0), weights)
    assert whole.whole.all()
    assert whole.gain == pytest.approx(np.ones((4, 7)))


def released(outputs, sd=0.003):
    """Moments of residuals of these outputs, and noise in proportion to the clips."""
    rng = np.random.default_rng(1)
    residuals = clipped(outputs - CENTRES[:, None], THRESHOLDS)
    mean_sd = sd * THRESHOLDS
    square_sd = sd * THRESHOLDS**2
    return ClippedMoments(
        residuals.mean(axis=1) + mean_sd * rng.normal(size=4),
        mean_sd,
        (residuals**2).mean(axis=1) + square_sd * rng.normal(size=4),
        square_sd,
        THRESHOLDS,
    )


def evidences(outputs):
    """Of noise around a function that is nearly known, and of amounts at an end of the range."""
    moments = released(outputs)
    level = float(outputs.mean())
    inside = np.stack([-1 - CENTRES, -1 + CENTRES])
    return (
        noise_log_evidence(moments, level - CENTRES, np.full(4, 1e-4), 2.0),
        amounts_log_evidence(moments, inside[:, None], 1.0),
    )


def test_amounts_and_noise_are_told_apart():
    rng = np.random.default_rng(2)
    amounts = np.minimum(-1 + (rng.random(100_000) < 0.3) * rng.exponential(0.13, 100_000), 1)
    noise = rng.normal(-0.7, 0.1, 100_000)
    of_noise, of_amounts = evidences(amounts)
    assert of_amounts > of_noise + 3
    of_noise, of_amounts = evidences(noise)
    assert of_noise > of_amounts + 3


def posterior_of(outputs, log_odds=0.0, sd=0.003):
    """Posterior of a level and a slope, from the moments of four stages."""
    n = len(outputs)
    x = np.linspace(-1, 1, n)
    phi = np.column_stack([np.ones(n), x]) / math.sqrt(2)
    points = np.column_stack([np.ones(64), np.linspace(-1, 1, 64)]) / math.sqrt(2)
    gram = GramEstimator(points, n)
    B = phi.T @ phi
    gram.add(B, np.full((2, 2), 1e-3 * n))
    gram.update()
    nothing = np.zeros((0, 2)), np.zeros(0)
    posterior = TwoValuedPosterior(
        points,
        np.array([math.sqrt(2), 0.0]),
        log_odds,
        weighted=False,
        damped=False,
        prior_observation=nothing,
    )
    rng = np.random.default_rng(3)
    roots = np.array([[2.0, 2.0]])
    for centre, r in zip(CENTRES, THRESHOLDS, strict=True):
        w = np.array([centre * math.sqrt(2), 0.0])
        e = np.clip(outputs - centre, -r, r)
        noise = sd * r * n
        posterior.add(
            phi.T @ e + noise * rng.normal(size=2),
            noise,
            w,
            r,
            (float(np.mean(e**2) + sd * r**2 * rng.normal()), sd * r**2),
        )
        posterior.update(gram, roots, np.zeros(1), review=True)
    otherwise = posterior.mean, posterior.covariance
    posterior.weigh(gram, otherwise, 2.0, 1e-8)
    return posterior, points


@pytest.mark.parametrize("slope", [0.0, 0.04])
def test_rare_ones_are_recognised_and_counted_whatever_the_clips_are(slope):
    rng = np.random.default_rng(4)
    x = np.linspace(-1, 1, 20_000)
    outputs = np.where(rng.random(20_000) < 0.05 + slope * x, 1.0, -1.0)
    posterior, points = posterior_of(outputs)
    assert posterior.probability > 0.9
    sd = np.sqrt(((points @ posterior.covariance) * points).sum(axis=1))
    truth = -1 + 2 * (0.05 + slope * np.linspace(-1, 1, 64))
    assert (np.abs(points @ posterior.mean - truth) < 4 * sd).all()
    assert sd.max() < 0.03


@pytest.mark.parametrize("law", ["normal", "amounts", "wide"])
def test_other_outputs_are_not_taken_for_two_values(law):
    rng = np.random.default_rng(5)
    outputs = {
        "normal": rng.normal(-0.9, 0.05, 20_000),
        "amounts": -1 + (rng.random(20_000) < 0.3) * rng.exponential(0.13, 20_000),
        "wide": rng.normal(0, 1, 20_000),  # bounds are too narrow: the mean square is 1 by accident
    }[law]
    assert posterior_of(outputs)[0].probability < 0.01


def test_noise_that_hides_everything_leaves_the_odds_about_as_they_were():
    rng = np.random.default_rng(6)
    outputs = np.where(rng.random(2_000) < 0.02, 1.0, -1.0)
    assert 0.02 < posterior_of(outputs, sd=1.0)[0].probability < 0.9


@pytest.mark.parametrize("sd", [10.0, 100.0])
def test_more_noise_than_that_leaves_the_odds_exactly_as_they_were(sd):
    rng = np.random.default_rng(6)
    outputs = rng.uniform(-0.6, 0.6, 2_000)
    posterior, _ = posterior_of(outputs, log_odds=-1.5, sd=sd)
    assert posterior.log_odds == pytest.approx(-1.5, abs=0.3)
