"""Clipped residuals.

Their moments, and what these say about noise whose size varies from record to record.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reticent.inference.moment_model.clipping import (
    LevelEvidence,
    clip_effect,
    clip_moments,
    clipped_second_moment,
    estimate_clip_bias,
    fit_noise_tails,
    prior_bias_variances,
    second_moment_misfit,
    unclipped_variance,
)
from reticent.inference.moment_model.settings import CLIPPED_MOMENTS


@pytest.mark.parametrize("z", [0.1, 0.5, 1.0, 2.0, 4.0])
def test_moments_of_a_clipped_normal(z):
    n = np.random.default_rng(0).normal(size=2_000_000)
    clipped = np.clip(n, -z, z)
    gain, second, odd = clip_moments(z)
    assert gain == pytest.approx((clipped * n).mean(), abs=4e-3)
    assert second == pytest.approx((clipped**2).mean(), abs=4e-3)
    he3 = (n**3 - 3 * n) / np.sqrt(6)
    assert odd[0] == pytest.approx((clipped * he3).mean(), abs=6e-3)
    assert sum(a * a for a in odd) <= second - gain**2 + 1e-12


def test_effect_of_a_clip_is_that_of_the_clipped_numbers():
    """What is divided by the gain has the old mean per unit of a shift, and more variance."""
    sd = 0.3
    r = np.array([0.2, 0.6])
    numbers = sd * np.random.default_rng(0).normal(size=1_000_000)
    clip = clip_effect(sd**2, r)
    for k in range(2):
        clipped = np.clip(numbers, -r[k], r[k]) / clip.gain[k]
        shifted = np.clip(numbers + 0.01, -r[k], r[k]) / clip.gain[k]
        assert (shifted - clipped).mean() == pytest.approx(0.01, rel=0.02)
        assert clipped.var() == pytest.approx(sd**2 + clip.added_variance[k], rel=0.01)
    assert clip_effect(1.0, np.inf).added_variance == 0
    assert clip_effect(1.0, 0.01).gain == CLIPPED_MOMENTS.min_gain
    assert clip.skew_bias[0] < clip.skew_bias[1] < 0  # noise skewed upwards loses its upper tail


def test_misfit_counts_the_number_of_records_too():
    expected = np.array([1.0, 2.0])
    plain = second_moment_misfit(1.5, 0.1, expected)
    error = CLIPPED_MOMENTS.second_moment_error
    assert plain == pytest.approx(0.25 / (0.01 + (error * expected) ** 2))
    few = second_moment_misfit(1.5, 0.1, expected, 2 / 50)
    assert few == pytest.approx(0.25 / (0.01 + (error**2 + 2 / 50) * expected**2))
    guess = 0.1  # a surprising second moment of few records is believed less
    many_say, few_say = (unclipped_variance(guess, 0.3, 0.01, 5.0, 2 / n) for n in (1e6, 10))
    assert guess < few_say < many_say == pytest.approx(0.3, rel=0.1)


@given(st.floats(0.01, 10), st.floats(0.3, 30))
def test_second_moment_of_clipped_normals(sd, z):
    """The array version agrees with the scalar one, and grows with the variance."""
    second = clipped_second_moment(np.array([sd**2, 2 * sd**2]), z * sd)
    assert second[0] == pytest.approx(sd**2 * clip_moments(z)[1])
    assert second[1] > second[0]


@pytest.mark.parametrize("uneven", [0.0, 0.5])
def test_uneven_noise_is_told_by_clips_of_different_widths(uneven):
    rng = np.random.default_rng(0)
    noise = rng.normal(size=400_000) * np.exp(uneven * rng.normal(size=400_000))
    r = np.array([0.5, 0.7, 1.0, 2.0, 4.0])
    second = np.array([np.mean(np.clip(noise, -one, one) ** 2) for one in r])
    (tail,) = fit_noise_tails(0.8, np.zeros(5), second, np.full(5, 1e-3), r, 10.0)
    assert tail.variance() == pytest.approx(np.mean(noise**2), rel=0.25)


@pytest.mark.parametrize("chance", [0.02, 0.1])
def test_a_rare_part_that_one_wide_clip_has_seen_is_not_forgotten(chance):
    """Nineteen narrow stages see next to nothing of it, and one wide stage all."""
    size = 2.0
    r = np.array([2.0, *[0.1] * 19])
    core = 0.02
    second = core**2 + chance * np.minimum(size, r) ** 2
    (tail,) = fit_noise_tails(0.01, np.zeros(20), second, 1e-3 * r**2, r, size)
    assert tail.variance() == pytest.approx(chance * size**2, rel=0.25)
    cut = chance * (size - 0.1)
    assert 0.8 * cut < tail.shortfall(np.array([0.1]))[0] < 1.6 * cut
    assert tail.shortfall(np.array([size]))[0] == 0
    (unseen,) = fit_noise_tails(0.01, np.zeros(19), second[1:], 1e-3 * r[1:] ** 2, r[1:], size)
    assert unseen.variance() < tail.variance()


@pytest.mark.parametrize("z", [0.5, 0.7, 1.0, 2.0])
def test_what_a_clip_leaves_of_skewed_noise(z):
    """A gamma law of small skewness γ.

    The clipped mean, by the gain, is γ·odd₃/(√6·gain), as stages take it to be.
    """
    shape = 400.0
    noise = (np.random.default_rng(1).gamma(shape, size=4_000_000) - shape) / np.sqrt(shape)
    gain, _, odd = clip_moments(z)
    lean = 2 / np.sqrt(shape) * odd[0] / (np.sqrt(6) * gain)
    assert np.clip(noise, -z, z).mean() / gain == pytest.approx(lean, abs=2e-3)


def test_skewness_and_lopsidedness_are_told_by_levels_that_differ():
    rng = np.random.default_rng(0)
    leans = np.column_stack([[-0.01, -0.04, -0.1, -0.14, -0.14], [0.0, -0.1, -0.1, -0.3, -0.4]])
    for skewness, lopsidedness in ((-2.0, 0.0), (0.0, 0.9), (1.5, -0.5)):
        levels = 7.0 + leans @ [skewness, lopsidedness] + 1e-3 * rng.normal(size=5)
        mean, covariance = estimate_clip_bias(levels, np.full(5, 1e-6), leans)
        assert mean == pytest.approx([skewness, lopsidedness], abs=0.15)
        assert covariance.diagonal().max() < 0.05
    # all noise: nothing is told
    mean, covariance = estimate_clip_bias(7.0 + leans @ [1.5, 0.5], np.full(5, 1e6), leans)
    assert mean == pytest.approx([0.0, 0.0], abs=1e-6)
    assert covariance.diagonal() == pytest.approx(prior_bias_variances(), rel=1e-3)
    # one stage tells nothing
    mean, _ = estimate_clip_bias(np.array([3.0]), np.array([1.0]), leans[:1])
    assert mean == pytest.approx([0.0, 0.0])


def one_sided(levels, sd, middle):
    """Evidence of levels of two stages, the first of which is the wide one."""
    information = np.array([[1.0, -1.0], [-1.0, 1.0]]) / (2 * sd**2)
    one = np.ones(1)
    return LevelEvidence(middle * one, one, information, information @ levels, middle, 1e-3)


@pytest.mark.parametrize(("middle", "rest"), [(-1.0, True), (1.0, True), (0.0, False)])
def test_bounds_tell_the_side_of_a_rare_part_whose_core_rests_against_them(middle, rest):
    """Clips then move the mean by all of it; with room on both sides by none that is known."""
    r = np.array([2.0, 0.1, 0.5])
    mass = 0.05
    second = 1e-6 + mass * r**2
    evidence = LevelEvidence(
        middle * np.ones(1), np.ones(1), np.zeros((3, 3)), np.zeros(3), middle, 1e-3
    )
    (tail,) = fit_noise_tails(1e-4, np.zeros(3), second, 1e-3 * r**2, r, 2.0, levels=evidence)
    mean, variance = tail.shifts(r)
    cut = middle * mass * (2.0 - r)
    assert mean == pytest.approx(cut, rel=0.2, abs=1e-6)
    assert (variance[1] > 0) == rest
    two_sided = tail.shortfall(r)[1]
    assert (two_sided < 0.1 * mass) == rest


def test_levels_tell_how_much_of_a_rare_part_on_a_known_side_there_is():
    """Between the steps of the grid of its masses."""
    r = np.array([2.0, 0.1])
    second = np.array([0.2, 0.0005])
    found = []
    for lift in (0.08, 0.1, 0.12):
        levels = one_sided(np.array([0.0, -lift]), 1e-3, -1.0)
        (tail,) = fit_noise_tails(1e-4, np.zeros(2), second, 0.2 * r**2, r, 2.0, levels=levels)
        found.append(tail.shifts(r)[0][1])
    assert found == pytest.approx([-0.08, -0.1, -0.12], rel=0.05)
