"""Laws of the noise in labels: against simulated labels, and what bounds alone say."""

import numpy as np
import pytest

from reticent.inference.labels.noise_laws import (
    LevelEvidence,
    NoiseLaws,
    SecondMoments,
    noise_laws,
    open_side,
)
from reticent.inference.moment_model.clipping import NoiseTail

NEVER = 1e3
R = np.array([NEVER, 0.5, 0.2])
GAIN = np.ones(3)


def law(core, mass, length, side):
    return NoiseLaws(
        NoiseTail(*(np.array([v]) for v in (core, mass, length, 1.0))), np.array([side])
    )


def evidence(levels, sd, level_sd=0.01):
    """Levels of independent stages, each known to ``sd``, the first of them of the function."""
    precision = np.diag(1 / np.asarray(sd) ** 2)
    flat = (
        precision - precision.sum(axis=1, keepdims=True) * precision.sum(axis=0) / precision.sum()
    )
    pull = precision.sum(axis=0) / precision.sum()
    return LevelEvidence(flat, flat @ levels, float(pull @ levels), level_sd, pull)


def test_clips_move_the_mean_of_rare_labels_as_foretold():
    rng = np.random.default_rng(0)
    mass, length = 0.04, 1.5
    labels = -0.98 + np.where(rng.random(10**6) < mass, length, 0.0)
    residuals = labels - labels.mean()
    moved = [np.clip(residuals, -r, r).mean() for r in R]
    # the rare part is as far above the mean as above the core, but for its own mass
    assert law(1e-6, mass, length, 1.0).shifts(R, GAIN)[0] == pytest.approx(moved, abs=0.004)
    assert law(1e-6, mass, length, -1.0).shifts(R, GAIN)[0] == pytest.approx(
        [-one for one in moved], abs=0.004
    )


def test_sides_are_those_that_bounds_leave_room_on():
    lengths = np.array([0.05, 0.6, 1.2, 1.9])
    means = np.array([-0.9, -0.5, 0.0, 0.5])
    counts = np.array([1.0, 2.0, 3.0, 4.0])
    found = np.zeros(len(lengths))
    for i, one in enumerate(lengths):
        for f, count in zip(means, counts, strict=True):
            up, down = 1 - f >= one, 1 + f >= one
            if up != down or not up:
                found[i] += count * np.sign(-f)
    assert open_side(lengths, means, counts) == pytest.approx(found / counts.sum())


def test_in_the_middle_of_the_range_levels_say_nothing():
    laws = noise_laws(0.01, 1.0, np.zeros(4), np.ones(4))
    assert not laws.side.any()
    squares = SecondMoments(
        np.array([0.01] * 3), np.full(3, 0.1), 0.0, np.zeros(3), np.zeros(3), 0.0
    )
    far, near = (
        laws.fits(R, GAIN, squares, evidence(np.array([level, 0.0, 0.0]), [0.02] * 3))[0]
        for level in (0.2, 0.0)
    )
    assert np.ptp(far - near) == pytest.approx(0.0, abs=0.3)  # but for where the level itself is


@pytest.mark.parametrize("rate", [0.02, 0.1])
def test_levels_of_wide_and_narrow_clips_tell_rare_ones(rate):
    """Labels of two values: what all stages say together, with second moments that say little."""
    shift = law(1e-6, rate, 2.0, 1.0).shifts(R, GAIN)[0]
    level = 2 * rate - 1
    laws = noise_laws(1e-3, 1.99, np.full(4, level), np.ones(4))
    squares = SecondMoments(
        np.zeros(3), np.array([9.0, 0.3, 0.05]), level, np.zeros(3), np.zeros(3), 0.0
    )
    told = laws.reweighed(
        laws.fits(R, GAIN, squares, evidence(level + shift, [0.03, 0.02, 0.02]))[0]
    )
    mean, covariance = told.shift_moments(R, GAIN)
    assert mean[2] == pytest.approx(shift[2], abs=2.5 * covariance[2, 2] ** 0.5)
    assert covariance[2, 2] ** 0.5 < 0.04
    blind = laws.reweighed(
        laws.fits(R, GAIN, squares, evidence(level + shift, [0.5, 0.3, 0.3], 0.3))[0]
    )
    assert blind.shift_moments(R, GAIN)[1][2, 2] > 2 * covariance[2, 2]


def test_a_core_does_not_reach_beyond_the_range():
    laws = noise_laws(0.04, 1.95, np.full(4, -0.95), np.ones(4))
    squares = SecondMoments(np.full(3, 0.03), np.full(3, 9.0), -0.95, np.zeros(3), np.zeros(3), 0.0)
    found = laws.reweighed(
        laws.fits(R, GAIN, squares, evidence(np.full(3, -0.95), [0.01] * 3, 0.005))[0]
    )
    # noise of a standard deviation of .2 is not symmetric where there is room for .05
    plain = found.tail.weights[found.tail.mass == 0].sum()
    before = laws.tail.weights[laws.tail.mass == 0].sum()
    assert plain < 1e-6 < before


def test_what_rare_parts_add_to_the_variance_that_is_told():
    both = law(0.01, 0.1, 1.0, 1.0)
    assert both.one_sided_excess(0.05) == pytest.approx(0.9 * 0.01 + 0.1 - 0.05)
    assert both.one_sided_excess(0.2) == 0.0
    assert law(0.01, 0.1, 1.0, 0.0).one_sided_excess(0.05) == 0.0
    assert both.two_sided.mass == 0.0
