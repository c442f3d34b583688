"""Hypotheses weighed by their evidence, against integrals over the whole box on a fine grid."""

from itertools import product

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from reticent.inference.moment_model.hyperparameters import (
    curvature_covariance,
    sample_around_mode,
    weigh_hypotheses,
    weigh_models,
)

EVERY = 10**6  # no limit to the number of points
LEFT_OUT = 1.001e-3


def normal(mean, precision):
    mean = np.asarray(mean, dtype=float)
    precision = np.asarray(precision, dtype=float)

    def evidence(theta):
        away = theta - mean
        return -0.5 * float(away @ precision @ away), -precision @ away

    return evidence


def heaps(*places):
    """Several normal heaps of the same height and a width of their own."""

    def value(theta):
        return float(
            np.logaddexp.reduce(
                [-0.5 * np.sum(((theta - at) / width) ** 2) for at, width in places]
            )
        )

    return lambda theta: (value(theta), approx_fprime(theta, value, 1e-6))


def integrated(evidence, low, high, cells=161):
    """Posterior mean and covariance by sums over the middles of cells."""
    sides = [
        lo + (hi - lo) * (np.arange(cells) + 0.5) / cells for lo, hi in zip(low, high, strict=True)
    ]
    at = np.array(list(product(*sides)))
    values = np.array([evidence(theta)[0] for theta in at])
    weights = np.exp(values - values.max())
    weights /= weights.sum()
    mean = weights @ at
    return mean, (at - mean).T @ ((at - mean) * weights[:, None])


CASES = {
    "a heap inside": (normal([0.5], [[9.0]]), [-2], [3]),
    "a narrow heap": (normal([0.123], [[1e4]]), [-2], [3]),
    "a heap outside": (normal([4.0], [[1.0]]), [-2], [3]),
    "nothing known": (normal([0.0], [[0.0]]), [-2], [3]),
    "two heaps": (heaps((-1.0, 0.15), (1.5, 0.3)), [-2], [3]),
    "a ridge": (normal([0.2, -0.3], [[30.0, 27.0], [27.0, 30.0]]), [-2, -2], [2, 2]),
    "one told and one not": (normal([0.5, 0.0], [[25.0, 0.0], [0.0, 0.0]]), [-1, 3], [2, 8]),
}


@pytest.mark.parametrize(("evidence", "low", "high"), CASES.values(), ids=CASES)
def test_weighted_points_have_the_moments_of_the_posterior(evidence, low, high):
    low = np.array(low, dtype=float)
    high = np.array(high, dtype=float)
    _, points, weights = weigh_hypotheses(evidence, low, high, 256, EVERY)
    mean, covariance = integrated(evidence, low, high, 801 if len(low) == 1 else 81)
    sd = np.sqrt(np.diag(covariance))
    found = weights @ points
    spread = (points - found).T @ ((points - found) * weights[:, None])
    assert np.abs(found - mean).max() < 0.12 * sd.max()
    assert spread == pytest.approx(covariance, rel=0.12, abs=0.1 * np.outer(sd, sd).max())
    assert ((points >= low) & (points <= high)).all()
    assert weights.sum() == pytest.approx(1)
    assert (np.diff(weights) <= 0).all()


@pytest.mark.parametrize("places", [((-1.4, 0.1), (1.6, 0.3)), ((-1.4, 0.3), (1.6, 0.1))])
def test_heaps_weigh_as_much_as_they_are_wide(places):
    """The highest point is in one of them, and proposals stand around it.

    The other one must not weigh less for that.
    """
    low = np.array([-2.0])
    high = np.array([3.0])
    _, points, weights = weigh_hypotheses(heaps(*places), low, high, 256, EVERY)
    first = weights[points[:, 0] < 0].sum()
    assert first == pytest.approx(places[0][1] / (places[0][1] + places[1][1]), abs=0.05)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_a_heap_too_narrow_for_even_points_is_found_by_the_normal_ones(d):
    """A millionth of the box and less: 24 points around the highest one have its moments, turned as
    it is.
    """
    turn = np.linalg.qr(np.random.default_rng(d).normal(size=(d, d)))[0]
    precision = turn @ np.diag([1e4, 4e4, 1e5][:d]) @ turn.T
    centre = np.array([0.31, -0.77, 0.4])[:d]
    _, points, weights = weigh_hypotheses(
        normal(centre, precision), np.full(d, -2.0), np.full(d, 2.0), 64, EVERY
    )
    exact = np.linalg.inv(precision)
    found = weights @ points
    white = np.linalg.cholesky(precision).T
    assert np.abs(white @ (found - centre)).max() < 0.1
    spread = (points - found).T @ ((points - found) * weights[:, None])
    assert white @ spread @ white.T == pytest.approx(white @ exact @ white.T, abs=0.2)
    assert len(points) > 40


@pytest.mark.parametrize("shift", [-100.0, 0.0, 100.0])
@pytest.mark.parametrize("first", [0.27, 0.73])
def test_of_two_heaps_the_higher_one_is_the_best(shift, first):
    """One start climbs to each; whether evidence is positive or negative says nothing."""

    def evidence(theta):
        parts = [
            5 - ((theta[0] - first) / 0.1) ** 2 / 2,
            4 - ((theta[0] - 1 + first) / 0.1) ** 2 / 2,
        ]
        total = np.logaddexp(*parts)
        slopes = [-(theta[0] - at) / 0.01 for at in (first, 1 - first)]
        return float(total) + shift, np.array([np.exp(parts - total) @ slopes])

    best, _, _ = weigh_hypotheses(evidence, np.zeros(1), np.ones(1), 4, 9)
    assert best == pytest.approx([first], abs=1e-3)


def test_nothing_of_weight_is_left_out():
    """Flat evidence: all even points are there, and the normal ones that fall into the box."""
    _, points, weights = weigh_hypotheses(
        normal([0.0], [[0.0]]), np.array([0.0]), np.array([16.0]), 7, EVERY
    )
    assert set(range(2, 16, 2)) <= set(points[:, 0].round(9))
    assert len(points) > 10
    assert weights.min() > 0.02


def slope(precision, at):
    return lambda theta: (0.0, precision @ (theta - at))


def test_proposals_are_as_wide_as_the_curvature_says_and_no_wider_than_the_box():
    low = np.array([-2.0, -1.0])
    high = np.array([2.0, 5.0])
    precision = np.array([[90.0, 30.0], [30.0, 60.0]])
    best = np.array([0.5, 1.0])
    exact = 1.3**2 * np.linalg.inv(precision)
    assert curvature_covariance(slope(precision, best), best, low, high) == pytest.approx(exact)
    even = 1.3**2 * np.diag([16 / 12, 36 / 12])
    for flat in (0.0, -50.0):
        assert curvature_covariance(
            slope(flat * precision, best), best, low, high
        ) == pytest.approx(even)


@pytest.mark.parametrize("at", [1.0, 0.97, 0.5, 0.0])
def test_curvature_is_looked_for_inside_the_box(at):
    asked = []

    def climb(theta):
        asked.append(theta[0])
        return 0.0, 40.0 * theta - 12.0  # a slope at the edge is no curvature

    assert curvature_covariance(climb, np.array([at]), np.zeros(1), np.ones(1)) == pytest.approx(
        np.array([[1.69 / 40]])
    )
    assert 0 <= min(asked) <= max(asked) <= 1


def test_the_highest_point_is_climbed_to():
    evidence = normal([0.2, -0.3], [[30.0, 27.0], [27.0, 30.0]])
    best, points, weights = weigh_hypotheses(evidence, np.full(2, -2.0), np.full(2, 2.0), 16, 5)
    assert best == pytest.approx([0.2, -0.3], abs=1e-4)
    assert len(points) == len(weights) == 5
    edge, _, _ = weigh_hypotheses(normal([9.0], [[1.0]]), np.array([-1.0]), np.array([2.0]), 8, 5)
    assert edge == pytest.approx([2.0])


def test_what_is_left_out_weighs_next_to_nothing():
    evidence = normal([0.0], [[1e4]])
    low = np.array([-1.0])
    high = np.array([1.0])
    _, points, weights = weigh_hypotheses(evidence, low, high, 64, EVERY)
    assert len(points) < 128, "nearly all of the even points say nothing"
    assert np.abs(points).max() < 0.05
    assert weights.min() > LEFT_OUT / len(points) / 10


@pytest.mark.parametrize("most", [1, 3])
def test_no_more_points_than_asked_for(most):
    _, points, weights = weigh_hypotheses(
        normal([0.0], [[1.0]]), np.array([-3.0]), np.array([3.0]), 32, most
    )
    assert len(points) == most
    assert weights.sum() == pytest.approx(1)


def test_parameters_that_are_fixed_stay_where_they_are():
    """The evidence is asked at whole points, and its slope along what is fixed does not count."""
    asked = []

    def evidence(theta):
        asked.append(theta.copy())
        value, slope = normal([0.5, 9.0, -0.5], np.diag([4.0, 1.0, 9.0]))(theta)
        return value, slope + np.array([0, 1e3, 0])

    best, points, weights = weigh_hypotheses(
        evidence, np.array([-2.0, 7.0, -2.0]), np.array([2.0, 7.0, 2.0]), 64, EVERY
    )
    assert (np.array(asked)[:, 1] == 7).all()
    assert (points[:, 1] == 7).all()
    assert best == pytest.approx([0.5, 7.0, -0.5], abs=1e-4)
    alone = weigh_hypotheses(
        normal([0.5, -0.5], np.diag([4.0, 9.0])), np.full(2, -2.0), np.full(2, 2.0), 64, EVERY
    )
    assert points[:, [0, 2]] == pytest.approx(alone[1], abs=1e-6)
    assert weights == pytest.approx(alone[2], abs=1e-6)


@pytest.mark.parametrize("low", [[], [1.0], [1.0, 2.0]])
def test_without_freedom_there_is_one_hypothesis(low):
    def never(theta):
        raise AssertionError

    low = np.array(low)
    best, points, weights = weigh_hypotheses(never, low, low, 8, 8)
    assert (best == low).all()
    assert (points == [low]).all()
    assert weights.tolist() == [1.0]


@pytest.mark.parametrize("shift", [0.0, -1e6, 1e6])
def test_the_level_of_the_evidence_does_not_matter(shift):
    plain = normal([0.5], [[4.0]])
    low = np.array([-2.0])
    high = np.array([2.0])
    one, other = (
        weigh_hypotheses(
            lambda theta, by=by: (plain(theta)[0] + by, plain(theta)[1]), low, high, 32, 9
        )
        for by in (0, shift)
    )
    assert other[1] == pytest.approx(one[1], abs=1e-3)
    assert other[2] == pytest.approx(one[2], abs=1e-3)


@pytest.mark.parametrize("case", ["a heap inside", "a ridge", "one told and one not"])
def test_a_population_stands_for_the_posterior(case):
    evidence, low, high = CASES[case]
    low = np.array(low, dtype=float)
    high = np.array(high, dtype=float)
    points, log_weights = sample_around_mode(evidence, (low + high) / 2, low, high, 512)
    weights = np.exp([evidence(theta)[0] for theta in points] + log_weights)
    mean, covariance = integrated(evidence, low, high, 801 if len(low) == 1 else 81)
    found = weights @ points / weights.sum()
    away = points - found
    assert found == pytest.approx(mean, abs=0.15 * np.sqrt(np.diag(covariance)).max())
    assert np.diag(away.T @ (away * weights[:, None])) / weights.sum() == pytest.approx(
        np.diag(covariance), rel=0.3
    )
    assert ((points >= low) & (points <= high)).all()


def test_a_population_is_on_a_grid_and_leaves_what_is_fixed():
    evidence = normal([0.5, 7.0], np.eye(2))
    low = np.array([-2.0, 1.234567])
    high = np.array([3.0, 1.234567])
    points, _ = sample_around_mode(evidence, np.array([0.0, 1.234567]), low, high, 16)
    assert points[:, 0] * 100 == pytest.approx(np.round(points[:, 0] * 100))
    assert (points[:, 1] == 1.234567).all()
    moved, _ = sample_around_mode(lambda theta: evidence(theta + 1e-9), np.zeros(2), low, high, 16)
    assert (moved == points).all()


def test_what_points_stand_for_is_bounded_however_narrow_the_evidence_is():
    evidence = normal([0.0, 0.0], np.linalg.inv([[1e-8, 0.999e-8], [0.999e-8, 1e-8]]))
    low = np.full(2, -1.0)
    high = np.full(2, 1.0)
    _, log_weights = sample_around_mode(evidence, np.array([0.1, -0.1]), low, high, 24)
    assert np.ptp(log_weights) < 20


def test_a_population_of_nothing_free_is_one_point():
    low = np.array([0.3])
    points, log_weights = sample_around_mode(lambda theta: (0.0, np.zeros(1)), low, low, low, 24)
    assert (points == [low]).all()
    assert (log_weights == 0).all()


def test_models_are_weighed_by_their_mean_evidence():
    """The lower one is four times as wide: twice as likely in all if half as high."""
    low, high = np.full(1, -4.0), np.full(1, 4.0)
    narrow, wide = normal([-1.0], [[64.0]]), normal([1.0], [[4.0]])

    def lower(theta):
        value, slope = wide(theta)
        return value - np.log(2), slope

    modes, numbers, points, weights = weigh_models([narrow, lower], low, high, 256, EVERY)
    assert np.ravel(modes) == pytest.approx([-1, 1], abs=1e-3)
    assert weights.sum() == pytest.approx(1)
    assert weights[numbers == 1].sum() == pytest.approx(2 / 3, abs=0.02)
    assert weights @ points == pytest.approx([1 / 3], abs=0.05)
    _, numbers, _, _ = weigh_models(
        [narrow, lambda theta: (narrow(theta)[0] - 50, narrow(theta)[1])], low, high, 64, EVERY
    )
    assert (numbers == 0).all()
    fixed = weigh_models([narrow, lower], np.full(1, -1.0), np.full(1, -1.0), 64, EVERY)
    assert fixed[3][0] == pytest.approx(1, abs=0.001)
