"""Samples in a box have the mean and the variance that were asked for."""

import numpy as np
import pytest

from reticent.inference.mixtures.bounded_normal import sample_bounded_normal

BOX = -np.ones(2), np.ones(2)


@pytest.mark.parametrize(
    ("mean", "sd"),
    [(0.0, 0.3), (0.9, 0.15), (-0.7, 0.4), (0.0, 0.9), (0.3, 1e-5), (0.99999, 1e-5), (0.8, 0.02)],
)
def test_mean_and_variance_are_kept_within_the_box(mean, sd):
    covariance = np.array([[sd**2, 0.1 * sd], [0.1 * sd, 0.04]])
    drawn = sample_bounded_normal(
        100_000, np.array([mean, 0.1]), covariance, *BOX, np.random.default_rng(0)
    )
    assert (np.abs(drawn) <= 1).all()
    assert drawn.mean(axis=0) == pytest.approx([mean, 0.1], abs=0.02 * max(sd, 0.2))
    assert drawn.std(axis=0) == pytest.approx([sd, 0.2], rel=0.02)


def test_far_from_the_edges_it_is_the_normal_distribution():
    covariance = np.array([[0.0025, 0.002], [0.002, 0.0025]])
    drawn = sample_bounded_normal(100_000, np.zeros(2), covariance, *BOX, np.random.default_rng(0))
    assert np.cov(drawn.T) == pytest.approx(covariance, rel=0.03)


@pytest.mark.parametrize(("mean", "sd"), [(0.2, 50.0), (1.0, 0.3), (-1.0, 1e-5), (1.0, 50.0)])
def test_more_variance_than_the_box_has_room_for(mean, sd):
    drawn = sample_bounded_normal(
        1000, np.full(2, mean), sd**2 * np.eye(2), *BOX, np.random.default_rng(0)
    )
    assert np.isfinite(drawn).all()
    assert (np.abs(drawn) <= 1).all()
    assert drawn.mean(axis=0) == pytest.approx(np.full(2, mean), abs=0.15)
