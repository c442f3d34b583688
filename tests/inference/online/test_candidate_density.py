"""Density of the candidates, by what was chosen among them.

Choices are those of a bandit, derivatives are right, and even candidates are left even.
"""

import numpy as np
import pytest

from reticent.inference.kernels.eigenbasis import quasi_random_points
from reticent.inference.online.candidate_density import CandidateDensity, chosen_weights

ARMS = 10
SD = 4.0
POINTS = quasi_random_points(1, 200)
FEATURES = np.cos(np.pi * np.arange(9) * (POINTS + 1) / 2) / 3
HEAPS = np.exp(-(((POINTS[:, 0] - 0.4) / 0.1) ** 2)) + np.exp(-(((POINTS[:, 0] + 0.6) / 0.1) ** 2))
HEAPS /= HEAPS.sum()
EVEN = np.full(200, 1 / 200)


def batches(rng, p, count=8, n=600):
    """A density that has learned from batches; later ones are chosen by rising scores."""
    density = CandidateDensity(POINTS, ARMS)
    for batch in range(count):
        scores = batch * POINTS[:, 0]
        chosen = rng.choice(200, size=n, p=chosen_weights(p, scores, ARMS))
        phi = FEATURES[chosen]
        noise = rng.normal(size=(9, 9)) * SD
        density.learn(FEATURES, scores, phi.T @ phi + (noise + noise.T) / np.sqrt(2), SD, n)
    return density


def distance(p, q):
    """Total variation."""
    return np.abs(p - q).sum() / 2


def test_the_best_of_several_is_chosen_as_often_as_is_foretold():
    rng = np.random.default_rng(0)
    scores = np.round(np.sin(4 * POINTS[:, 0]), 1)  # with ties
    drawn = rng.choice(200, size=(40_000, ARMS), p=HEAPS)
    best = scores[drawn].max(axis=1)
    foretold = chosen_weights(HEAPS, scores, ARMS)
    assert foretold.sum() == pytest.approx(1)
    for level in np.unique(scores):
        share = foretold[scores == level].sum()
        assert np.mean(best == level) == pytest.approx(share, abs=0.012)
    np.testing.assert_array_equal(chosen_weights(HEAPS, np.ones(200), ARMS), HEAPS)


@pytest.mark.parametrize("slope", [0.0, 1.0])
def test_derivatives_are_those_of_finite_differences(slope):
    density = CandidateDensity(POINTS, ARMS)
    rng = np.random.default_rng(1)
    z = rng.normal(size=density._mean.shape) / 3
    scores = slope * np.sin(4 * POINTS[:, 0])
    step = rng.normal(size=z.shape) * 1e-6
    moved = density._chosen(z + step, scores) - density._chosen(z - step, scores)
    foretold = 2 * density._chosen_slopes(z, scores) @ step
    np.testing.assert_allclose(moved, foretold, atol=1e-4 * np.abs(foretold).max())


def test_heaps_are_found_and_even_candidates_stay_even():
    found = [batches(np.random.default_rng(seed), HEAPS) for seed in range(3)]
    for density in found:
        assert distance(density.weights, HEAPS) < 0.5 * distance(EVEN, HEAPS)
        assert density.weights.sum() == pytest.approx(1)
    left = [batches(np.random.default_rng(seed), EVEN).weights for seed in range(6)]
    assert np.mean([distance(p, EVEN) for p in left]) < 0.1


def test_candidates_are_drawn_with_these_weights_inside_the_box():
    density = CandidateDensity(quasi_random_points(2, 256), ARMS)
    density.weights = np.where(density._points[:, 0] > 0.2, 1.0, 0.0)
    density.weights /= density.weights.sum()
    drawn = density.draw(np.random.default_rng(2), 5000)
    assert drawn.shape == (5000, 2)
    assert np.abs(drawn).max() <= 1
    assert drawn[:, 0].min() > 0.2 - 1 / 16
    middle = density.weights @ density._points
    assert drawn.mean(axis=0) == pytest.approx(middle, abs=0.03)
