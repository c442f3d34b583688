"""Densities of inputs from noisy moments and counts, and where predictions extrapolate."""

import numpy as np
import pytest

from reticent.inference.inputs.density import (
    DENSITY_BINS,
    dense_interval,
    density_from_counts,
    density_from_moments,
    density_threshold,
    effective_support,
    extrapolation_weight,
    informative_bins,
    marginal_densities,
    quantile_points,
    shrink_to_common_mean,
)
from reticent.inference.inputs.warping import equalizing_warp

EDGES = np.linspace(-1, 1, DENSITY_BINS + 1)
MIDDLES = (EDGES[:-1] + EDGES[1:]) / 2


def moments(x):
    return float(x.mean()), float((x**2).mean())


def test_a_density_from_moments_has_these_moments():
    density = density_from_moments(0.3, 0.3**2 + 0.1**2, 1e-6)
    normal = (density - 0.1 / DENSITY_BINS) / 0.9
    assert density.sum() == pytest.approx(1)
    assert normal @ MIDDLES == pytest.approx(0.3, abs=0.005)
    assert np.sqrt(normal @ MIDDLES**2 - 0.3**2) == pytest.approx(0.1, rel=0.02)


def test_moments_that_are_noise_say_nothing():
    density = density_from_moments(5.0, -7.0, 10.0)
    assert density.max() < 2 * density.min()


@pytest.mark.parametrize("mean", [-1e9, 1e9, 0.0])
@pytest.mark.parametrize("square", [-1e9, 1e9, 0.0])
def test_densities_exist_for_all_noise(mean, square):
    for sd in (1e-9, 1.0, 1e9):
        density = density_from_counts(
            density_from_moments(mean, square, sd), np.linspace(-1e9, 1e9, DENSITY_BINS), 1.0, 100
        )
        assert np.isfinite(density).all()
        assert density.sum() == pytest.approx(1)
        knots = np.array(equalizing_warp(density))
        assert (np.diff(knots) > 0).all()
        assert knots[[0, -1]].tolist() == [-1, 1]


def test_counts_correct_a_density_that_is_not_normal():
    x = np.concatenate([np.full(5000, -0.8), np.full(5000, 0.61)])
    counts = np.histogram(x, EDGES)[0].astype(float)
    density = density_from_counts(
        density_from_moments(*moments(x), 1e-3),
        counts + 3 * np.random.default_rng(0).normal(size=DENSITY_BINS),
        3.0,
        10_000,
    )
    assert density[counts > 0].sum() > 0.95


def test_counts_that_are_noise_are_known_beforehand():
    assert informative_bins(1e3, 500) == 0
    assert informative_bins(3.0, 10_000) == DENSITY_BINS
    found = [informative_bins(sd, 500) for sd in (10.0, 20.0, 30.0, 40.0, 60.0)]
    assert found == sorted(found, reverse=True)
    assert {DENSITY_BINS, 0} < set(found)  # in between, there are fewer bins


def test_few_bins_show_where_the_crowds_are():
    x = np.concatenate([np.full(5000, -0.8), np.full(5000, 0.61)])
    counts = np.histogram(x, 16, (-1, 1))[0].astype(float)
    density = density_from_counts(density_from_moments(*moments(x), 1e-3), counts, 3.0, 10_000)
    assert density.sum() == pytest.approx(1.0)
    assert density.reshape(16, -1).sum(axis=1)[counts > 0].min() > 0.45


def test_the_effective_support_is_that_of_the_usual_input():
    density = np.zeros(DENSITY_BINS)
    even = np.full(DENSITY_BINS, 1 / DENSITY_BINS)
    density[: DENSITY_BINS // 4] = 4 / DENSITY_BINS
    assert effective_support([even]) == pytest.approx(1.0)
    assert effective_support([density]) == pytest.approx(0.25)
    assert effective_support([np.stack([density, density[::-1]])]) == pytest.approx(
        0.5
    )  # of densities that an input may have, their mean
    assert effective_support([even, density]) == pytest.approx(0.5)


def test_few_of_many_records_are_no_extrapolation():
    """A place with a tenth of the usual records is less known if they are 500, and not if they are
    20,000.
    """
    density = np.full(DENSITY_BINS, 1.0)
    density[: DENSITY_BINS // 4] = 0.1
    density /= density.sum()
    few, many = (
        extrapolation_weight([density], np.array([[-0.8]]), density_threshold(1, n, 4.0))[0]
        for n in (500, 20_000)
    )
    assert few > 0.7
    assert many == 0
    assert (
        density_threshold(1, 20_000, 4e3)[1]
        == density_threshold(1, 20, 4.0)[1]
        == density_threshold(1, 500, 4.0)[1]
    )  # noise counts as fewer
    assert density_threshold(2, 20_000, 4.0) == density_threshold(2, 20, 4.0)


def test_points_without_records_nearby_are_extrapolation():
    density = np.zeros(DENSITY_BINS)
    density[DENSITY_BINS // 2 :] = 2 / DENSITY_BINS  # nobody in the lower half
    at = np.linspace(-1, 1, 21)[:, None]
    found = extrapolation_weight([density], at)
    assert (found[:4] > 0.99).all()
    assert (found[10:] == 0).all()
    assert (extrapolation_weight([density], at, density_threshold(1, 500, 3.3))[:9] > 0.99).all()
    assert extrapolation_weight(
        [np.stack([np.full(DENSITY_BINS, 1 / DENSITY_BINS), density])], at
    ) == pytest.approx(found / 2)  # one of two densities has nobody there
    assert (np.diff(found) <= 0).all()
    even = np.full(DENSITY_BINS, 1 / DENSITY_BINS)
    assert not extrapolation_weight([even], at).any()
    assert (
        extrapolation_weight([even, density], np.hstack([at, at])).tolist() == found.tolist()
    )  # the emptier one decides
    assert not extrapolation_weight([], np.empty((3, 0))).any()


def test_gaps_of_single_densities_in_different_places_are_no_gap():
    """Densities that only noise makes differ: one in eight has nobody at a place."""
    densities = np.ones((8, DENSITY_BINS))
    width = DENSITY_BINS // 8
    for k in range(8):
        densities[k, k * width : (k + 1) * width] = 0.0
    densities /= densities.sum(axis=1, keepdims=True)
    at = np.linspace(-1, 1, 65)[:, None]
    threshold = density_threshold(1, 500, 4.0)
    assert extrapolation_weight([densities], at, threshold).max() < 0.15
    levels = np.full((4, 4), 1 / 3)
    np.fill_diagonal(levels, 0.0)
    middles = np.array([[-0.75], [-0.25], [0.25], [0.75]])
    found = extrapolation_weight([levels], middles, levels=(4,), least_share=0.1)
    assert found == pytest.approx(0.25)


def test_what_counts_say_beside_their_noise_is_little():
    density = density_from_moments(0.1, 0.2, 0.01)
    counts = 500 * density + 8 * np.random.default_rng(0).normal(size=DENSITY_BINS)
    sd = 8.0
    assert (
        np.abs(density_from_counts(density, counts, sd, 500) - density).sum()
        < 0.3 * np.abs(counts / 500 - density).sum()
    )


def test_noisy_moments_of_many_inputs_are_nearer_to_the_truth_together():
    rng = np.random.default_rng(0)
    truth = rng.normal(-0.4, 0.2, size=(2, 30))
    found, sd = shrink_to_common_mean(truth + 0.5 * rng.normal(size=(2, 30)), 0.5)
    assert np.sqrt(np.mean((found - truth) ** 2)) < 0.25  # 0.5 without
    assert sd < 0.15


def test_moments_without_noise_stay_as_they_are_and_so_does_one_input_with_it():
    values = np.random.default_rng(0).uniform(-1, 1, size=(2, 5))
    found, sd = shrink_to_common_mean(values, 1e-6)
    assert found == pytest.approx(values, abs=1e-9)
    assert sd == pytest.approx(1e-6)
    found, sd = shrink_to_common_mean(values[:, :1], 3.0)
    assert (found == values[:, :1]).all()
    assert sd == pytest.approx(3.0)


def test_points_are_placed_like_the_records():
    x = np.random.default_rng(3).beta(2, 6, size=20_000) * 2 - 1
    density = density_from_counts(
        density_from_moments(*moments(x), 1e-4),
        np.histogram(x, EDGES)[0].astype(float),
        0.1,
        len(x),
    )
    at = quantile_points(density, np.linspace(-1, 1, 2001))
    for share in (0.1, 0.5, 0.9):
        assert np.quantile(at, share) == pytest.approx(np.quantile(x, share), abs=0.03)


def test_densities_on_points_have_marginals_along_each_input():
    points = np.array([[-1.0, 1.0], [0.0, 0.5], [1.0, -1.0]])
    first, second = marginal_densities(points, np.array([[0.2, 0.3, 0.5], [1.0, 0.0, 0.0]]))
    assert (first[0, [0, DENSITY_BINS // 2, -1]]).tolist() == [0.2, 0.3, 0.5]
    assert (second[0, [-1, DENSITY_BINS * 3 // 4, 0]]).tolist() == [0.2, 0.3, 0.5]
    assert first[1, 0] == second[1, -1] == 1.0


def density_within(low, high, share):
    """So much of the records evenly between two places, the others anywhere."""
    inside = (low < MIDDLES) & (high > MIDDLES)
    return share * inside / inside.sum() + (1 - share) / DENSITY_BINS


def test_a_small_part_of_the_range_that_surely_holds_most_records_is_found():
    densities = np.stack([density_within(0.2, 0.4, share) for share in (0.8, 0.9, 0.99)])
    low, high = dense_interval(densities)
    assert low <= 0.2
    assert high >= 0.4
    assert high - low < 0.7


@pytest.mark.parametrize(
    "densities",
    [
        np.full((3, DENSITY_BINS), 1 / DENSITY_BINS),
        [density_within(-0.7, 0.7, 1.0)] * 3,  # no small part
        [density_within(0.2, 0.4, 0.9), density_within(-0.4, -0.2, 0.9)],  # not surely there
        [density_within(0.2, 0.4, 0.9), np.full(DENSITY_BINS, 1 / DENSITY_BINS)],
        [(density_within(-0.9, -0.8, 1.0) + density_within(0.8, 0.9, 1.0)) / 2]
        * 2,  # two crowds, far apart
    ],
    ids=["even", "wide", "here or there", "perhaps even", "two crowds"],
)
def test_what_is_not_surely_a_small_part_stays_as_it_is(densities):
    assert dense_interval(np.array(densities)) is None
