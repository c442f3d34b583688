"""Noise whose scale depends on the inputs: found where sizes tell it, constant elsewhere."""

from dataclasses import replace

import numpy as np
import pytest

from reticent.inference.moment_model.noise_scale import (
    ReleasedSizes,
    clipped_size,
    fit_noise_scale,
)

POINTS = np.linspace(-1, 1, 101)
FUNCTIONS = np.polynomial.legendre.legvander(POINTS, 5)
EVEN = np.full(len(POINTS), 1 / len(POINTS))


def released(log_variance, privacy_sd, n=20_000, unknown=0.0, seed=0):
    """Sizes of residuals with this log variance at the points, under noise; weights are one."""
    mean, scatter, _ = clipped_size(np.exp(log_variance) + unknown, 2.0)
    cross = n * FUNCTIONS.T @ (EVEN * (2 * mean - 1))
    gram = n * FUNCTIONS.T @ (EVEN[:, None] * FUNCTIONS)
    rng = np.random.default_rng(seed)
    sampling = n * FUNCTIONS.T @ ((4 * EVEN * scatter)[:, None] * FUNCTIONS)
    cross += np.linalg.cholesky(sampling) @ rng.normal(size=6) + privacy_sd * rng.normal(size=6)
    constant = np.eye(6)[0]
    nothing = np.zeros(len(POINTS))
    return ReleasedSizes(
        cross,
        privacy_sd**2,
        2.0,
        gram,
        np.zeros_like(gram),
        n,
        EVEN,
        FUNCTIONS,
        FUNCTIONS,
        constant,
        np.diag(nothing + unknown),
        nothing,
    )


@pytest.mark.parametrize("sd", [0.05, 0.7, 5.0])
def test_moments_of_clipped_sizes(sd):
    size = np.minimum(np.abs(sd * np.random.default_rng(0).normal(size=400_000)), 2.0) / 2.0
    mean, variance, slope = (float(one) for one in clipped_size(np.array(sd**2), 2.0))
    assert mean == pytest.approx(size.mean(), rel=5e-3)
    assert variance == pytest.approx(size.var(), rel=2e-2)
    more = float(clipped_size(np.array(sd**2 * np.exp(1e-4)), 2.0)[0])
    assert slope == pytest.approx((more - mean) / 1e-4, rel=1e-3)


@pytest.mark.parametrize("unknown", [0.0, 0.05])
def test_scales_that_sizes_tell_are_found(unknown):
    truth = 2 * POINTS - 1
    found = fit_noise_scale(released(truth, 30.0, unknown=unknown), 0.5, np.eye(6))
    assert found.varying > 0.999
    wanted = truth - np.log(np.mean(np.exp(truth)))
    assert found.log_ratio(FUNCTIONS) == pytest.approx(wanted, abs=0.2 + 5 * unknown)
    assert found.range == pytest.approx(np.exp(wanted[[0, -1]] / 2), rel=0.1 + 3 * unknown)
    assert np.mean(np.exp(found.log_ratio(FUNCTIONS))) == pytest.approx(1.0, rel=1e-3)


def test_beyond_the_records_no_scale_is_larger_or_smaller_than_among_them():
    found = fit_noise_scale(released(2 * POINTS, 30.0), 1.0, np.eye(6))
    outside = np.polynomial.legendre.legvander(np.array([-3.0, 3.0]), 5)
    low, high = np.log(found.range)
    assert found.log_ratio(outside).min() >= 2 * low - 1e-9
    assert found.log_ratio(outside).max() <= 2 * high + 1e-9


def test_a_constant_alone_has_one_scale():
    sizes = released(2 * POINTS, 10.0)
    one = replace(sizes, cross=sizes.cross[:1], gram=sizes.gram[:1], functions=FUNCTIONS[:, :1])
    found = fit_noise_scale(one, 1.0, np.eye(1))
    assert (found.log_ratio(FUNCTIONS) == 0).all()
    assert found.range == (1.0, 1.0)


@pytest.mark.parametrize("privacy_sd", [10.0, 1e6])
def test_noise_of_one_scale_or_unseen_stays_constant(privacy_sd):
    """One scale, told exactly; or scales that are drowned."""
    truth = np.zeros(len(POINTS)) if privacy_sd < 1e3 else 2 * POINTS
    ratios = []
    for seed in range(5):
        found = fit_noise_scale(released(truth, privacy_sd, seed=seed), 1.0, np.eye(6))
        assert found.varying < 0.6
        ratios.append(np.exp(np.abs(found.log_ratio(FUNCTIONS))).max())
    assert max(ratios) < 1.1


def test_what_the_error_of_the_function_does_to_sizes_of_lopsided_noise_is_no_scale():
    """Nine of ten records lie below the mean: where that is too low by .1, sizes are by .08."""
    error = 0.1 * np.sin(3 * POINTS)
    sizes = released(np.zeros(len(POINTS)), 30.0)
    moved = 20_000 * FUNCTIONS.T @ (EVEN * 2 * 0.8 * error / 2.0)
    unknown = 0.01 * np.exp(-((POINTS[:, None] - POINTS) ** 2) / 0.5)
    found = fit_noise_scale(
        replace(sizes, cross=sizes.cross + moved, unknown=unknown), 1.0, np.eye(6)
    )
    assert found.varying < 0.7
    assert np.abs(found.log_ratio(FUNCTIONS)).max() < 0.1
