"""Bands of chances, against draws of logits and against derivatives of log-odds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, logit, softmax

from reticent.inference.classification.probability_bands import (
    bounded_bands,
    independent_logit_variance,
    log_odds,
    mean_above_zero,
    mean_probabilities,
)
from reticent.inference.classification.probability_bands import (
    probability_bands as bands_of_log_odds,
)


def probability_bands(logits, variance, width):
    """Bands for logits with independent errors of one variance in each row."""
    each = np.repeat(variance[:, None], logits.shape[1], axis=1)
    return bands_of_log_odds(log_odds(logits), independent_logit_variance(logits, each), width)


def some_logits(seed, rows=5, classes=4):
    return np.random.default_rng(seed).normal(0, 1.5, (rows, classes))


@pytest.mark.parametrize("classes", [2, 3, 6])
def test_bands_hold_95_per_cent_of_draws(classes):
    random = np.random.default_rng(0)
    logits = random.normal(0, 1.5, (20, classes))
    variance = np.full(20, 0.2)
    low, high = probability_bands(logits, variance, 1.96)
    drawn = softmax(logits + np.sqrt(0.2) * random.standard_normal((4000, 20, classes)), axis=2)
    held = ((low <= drawn) & (drawn <= high)).mean(axis=0)
    assert held.mean() == pytest.approx(0.95, abs=0.01)
    assert held.min() > 0.9


def test_nothing_known_is_everything_possible_and_all_known_is_a_point():
    logits = np.array([[3.0, -1.0, 0.0]])
    low, high = probability_bands(logits, np.array([1e6]), 1.96)
    assert low.max() < 1e-6
    assert high.min() > 1 - 1e-6
    low, high = probability_bands(logits, np.array([0.0]), 1.96)
    assert low == pytest.approx(softmax(logits, axis=1))
    assert high == pytest.approx(low)
    low, high = probability_bands(np.array([[800.0, -800.0]]), np.array([1.0]), 1.96)
    assert np.isfinite([low, high]).all()


def test_two_classes_have_twice_the_variance_of_one_logit():
    logits = some_logits(1, classes=2)
    low, high = probability_bands(logits, np.full(5, 0.3), 2.0)
    away = logits[:, 0] - logits[:, 1]
    assert low[:, 0] == pytest.approx(expit(away - 2 * np.sqrt(0.6)))
    assert high[:, 0] == pytest.approx(expit(away + 2 * np.sqrt(0.6)))
    assert low[:, 1] == pytest.approx(1 - high[:, 0])


@pytest.mark.parametrize("c", [0, 2])
def test_widths_are_those_of_the_derivatives_of_log_odds(c):
    """The gradient by differences, at rows with a variance each."""
    logits = some_logits(2)
    variance = np.linspace(0.1, 2, 5)
    small = 1e-5

    def odds(at):
        return logit(softmax(at, axis=1)[:, c])

    steps = [
        (odds(logits + small * one) - odds(logits - small * one)) / (2 * small) for one in np.eye(4)
    ]
    sd = np.sqrt(variance * np.square(steps).sum(axis=0))
    low, high = (logit(end[:, c]) for end in probability_bands(logits, variance, 1.5))
    assert low == pytest.approx(odds(logits) - 1.5 * sd)
    assert high == pytest.approx(odds(logits) + 1.5 * sd)


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.floats(-100, 100), st.floats(0, 4))
def test_bands_follow_classes_and_not_the_level_of_the_logits(seed, level, reach):
    logits = some_logits(seed)
    variance = np.full(5, 0.4)
    order = np.random.default_rng(seed).permutation(4)
    bands = np.array(probability_bands(logits, variance, reach))
    assert np.array(probability_bands(logits + level, variance, reach)) == pytest.approx(
        bands, abs=1e-9
    )
    assert np.array(probability_bands(logits[:, order], variance, reach)) == pytest.approx(
        bands[:, :, order]
    )
    wider = np.array(probability_bands(logits, variance, reach + 0.5))
    chances = softmax(logits, axis=1)
    assert (wider[0] < bands[0]).all()
    assert (wider[1] > bands[1]).all()
    assert (bands[0] <= chances + 1e-12).all()
    assert (bands[1] >= chances - 1e-12).all()


@pytest.mark.parametrize("variance", [1e-12, 0.5, 4.0])
def test_mean_probabilities_are_those_of_draws(variance):
    odds = log_odds(some_logits(3, classes=2))
    mean, slope = mean_probabilities(odds, np.full_like(odds, variance))
    z = np.random.default_rng(0).standard_normal(200_000)
    drawn = expit(odds[:, :1] + np.sqrt(variance) * z)
    assert mean[:, 0] == pytest.approx(drawn.mean(axis=1), abs=5e-3)
    assert slope[:, 0] == pytest.approx((drawn * (1 - drawn)).mean(axis=1), abs=5e-3)
    assert mean.sum(axis=1) == pytest.approx(np.ones(5))


def test_log_odds_are_those_of_probabilities_and_finite():
    logits = some_logits(4)
    assert log_odds(logits) == pytest.approx(logit(softmax(logits, axis=1)))
    assert np.isfinite(log_odds(np.array([[1000.0, 0.0, -1000.0]]))).all()


def test_a_mean_above_zero_is_that_of_draws_and_tends_to_the_value():
    mean = np.array([-2.0, -0.1, 0.0, 0.3, 5.0])
    drawn = np.random.default_rng(0).standard_normal((400_000, 1)) + mean
    found = mean_above_zero(mean, np.ones(5))
    assert found == pytest.approx(np.maximum(drawn, 0).mean(axis=0), abs=5e-3)
    assert mean_above_zero(mean, np.zeros(5)) == pytest.approx(np.maximum(mean, 0), abs=1e-12)


def test_bounded_bands_are_quantiles_between_zero_and_one():
    """Chances have no band that ends at zero, where a normal law would go on below it."""
    mean = np.array([[0.5, 0.03], [0.98, -0.05]])
    sd = np.array([[0.1, 0.03], [0.05, 0.04]])
    drawn = np.random.default_rng(3).normal(mean, sd, size=(400_000, 2, 2))
    inside = np.where((drawn > 0) & (drawn < 1), drawn, np.nan)
    expected = np.nanquantile(inside, [0.025, 0.975], axis=0)
    assert np.array(bounded_bands(mean, sd, 1.959964)) == pytest.approx(expected, abs=2e-3)
    sure = bounded_bands(mean, np.zeros_like(sd), 2.0)
    assert np.array(sure) == pytest.approx(np.stack([np.clip(mean, 0, 1)] * 2), abs=1e-7)


@given(st.floats(-1e3, 1e3), st.floats(0, 1e3))
def test_bounded_bands_exist_everywhere(mean, sd):
    low, high = bounded_bands(np.array([mean]), np.array([sd]), 2.0)
    assert 0 <= low[0] <= high[0] <= 1
