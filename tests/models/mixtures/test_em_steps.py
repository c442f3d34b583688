"""Searching centres, and clip thresholds of residuals."""

import numpy as np
import pytest

from reticent.inference.mixtures.gaussian_mixture import LengthHistogram, chi_quantile, clip_edges
from reticent.models.mixtures.em_steps import _reseeded, best_radius
from reticent.models.mixtures.settings import MIXTURE


@pytest.mark.parametrize("d", [10, 100])
def test_normal_residuals_are_clipped_as_narrowly_as_noise_asks_for(d):
    """Edges of bins lie far apart where lengths are all alike: that is no bias of a threshold."""
    first = chi_quantile(d, MIXTURE.clip_quantile)
    edges = clip_edges(first, 8 * first)
    lengths = np.linalg.norm(np.random.default_rng(0).normal(size=(20_000, d)), axis=1)
    counts = np.histogram(lengths, bins=np.append(0.0, edges))[0].astype(float)

    def threshold(sd):
        return best_radius(LengthHistogram(edges, counts, max(sd, 0.5), sd, 20_000.0), d, 1 / 16)

    assert threshold(300.0) == pytest.approx(first)
    assert threshold(1e-3) == pytest.approx(edges[-1])


def test_a_bias_that_noise_may_hide_makes_thresholds_wider():
    """Where nothing is seen, lengths are not taken for exactly those of normal residuals."""
    first = chi_quantile(2, MIXTURE.clip_quantile)
    edges = clip_edges(first, 32 * first)
    lengths = np.linalg.norm(np.random.default_rng(0).normal(size=(5_000, 2)), axis=1)
    counts = np.histogram(lengths, bins=np.append(0.0, edges))[0].astype(float)

    def threshold(sd):
        return best_radius(LengthHistogram(edges, counts, max(sd, 0.5), sd, 5_000.0), 2, 1 / 16)

    assert first < threshold(230.0) < 3 * first
    assert threshold(230.0) < threshold(20.0) < edges[-1]
    assert threshold(1e-3) == pytest.approx(edges[-1])


def test_a_first_radius_holds_half_of_the_records():
    """A third of them at one point says nothing about how far from it the others are."""
    counts = np.array([3_000.0, 0.0, 0.0, 4_000.0, 2_000.0, 1_000.0])
    lengths = LengthHistogram(2.0 ** np.arange(6), counts, 0.5, 0.1, 10_000.0)
    assert lengths.holding().tolist() == [False, False, False, True, True, True]


def test_centres_without_records_are_put_beside_the_largest():
    weights = np.array([0.5, 0.3, 0.1, 0.1])
    means = np.arange(8.0).reshape(4, 2)
    found = np.array([True, True, False, False])
    random = np.random.default_rng(0)
    moved_weights, moved = _reseeded(weights, means, found, random)
    assert moved_weights == pytest.approx([0.25, 0.15, 0.25, 0.15])
    for old, new in ((0, 2), (1, 3)):
        assert (moved[old] + moved[new]) / 2 == pytest.approx(means[old])
        assert np.linalg.norm(moved[new] - moved[old]) == pytest.approx(2 * MIXTURE.split_distance)
    same = _reseeded(weights, means, np.ones(4, dtype=bool), random)
    assert np.array_equal(same[1], means)
    assert np.array_equal(means, np.arange(8.0).reshape(4, 2))  # as it was
