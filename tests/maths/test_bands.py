"""Bands of chances, against draws of logits."""

import numpy as np
import pytest
from scipy.special import softmax

from reticent.maths.bands import chance_bands


@pytest.mark.parametrize("classes", [2, 3, 6])
def test_bands_hold_95_per_cent_of_draws(classes):
    random = np.random.default_rng(0)
    logits, variance = random.normal(0, 1.5, (20, classes)), np.full(20, 0.2)
    low, high = chance_bands(logits, variance, 1.96)
    drawn = softmax(logits + np.sqrt(0.2) * random.standard_normal((4000, 20, classes)), axis=2)
    held = ((low <= drawn) & (drawn <= high)).mean(axis=0)
    assert held.mean() == pytest.approx(0.95, abs=0.01)
    assert held.min() > 0.9


def test_nothing_known_is_everything_possible_and_all_known_is_a_point():
    logits = np.array([[3.0, -1.0, 0.0]])
    low, high = chance_bands(logits, np.array([1e6]), 1.96)
    assert low.max() < 1e-6
    assert high.min() > 1 - 1e-6
    low, high = chance_bands(logits, np.array([0.0]), 1.96)
    assert low == pytest.approx(softmax(logits, axis=1))
    assert high == pytest.approx(low)
    low, high = chance_bands(np.array([[800.0, -800.0]]), np.array([1.0]), 1.96)
    assert np.isfinite([low, high]).all()
