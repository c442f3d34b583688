"""The paper's hyperparameter learning.

Its division of the budget, its mean, and that it finds what is easy to find.
"""

import math

import numpy as np
import pytest

from reticent.privacy.accounting.composition import calibrate
from reticent.studies.honkela2021.algorithm2_as_printed import (
    SelectionBudget,
    coinpress_mean,
    select,
    selection_budget,
)
from reticent.studies.honkela2021.data import SETUPS, noisy_sinc


def test_the_budget_is_divided_as_the_theorem_says():
    """Noise multipliers 23.4, 7.96, 2.47 and .873 at ε = 1, 3, 10 and 30 in an independent
    implementation.
    """
    for total, multiplier in ((1, 23.4), (3, 7.96), (10, 2.47), (30, 0.873)):
        share = selection_budget(total, 1e-5)
        assert calibrate(share.epsilon, share.delta) == pytest.approx(multiplier, rel=2e-3)
        spent = math.sqrt(2 * share.delta)
        delta_2 = spent / 0.01
        assert 3 * share.epsilon + 3 * spent == pytest.approx(total)
        assert spent * share.tries + delta_2 == pytest.approx(1e-5, rel=1e-3)  # T is a whole number


def test_rho_is_a_valid_budget():
    """ρ-zCDP is (ρ + 2√(ρ log 1/δ), δ)-DP."""
    share = SelectionBudget(1.0, 1e-6, 10)
    assert share.rho + 2 * math.sqrt(share.rho * math.log(1e6)) == pytest.approx(1.0)


def test_the_private_mean_is_near_and_its_noise_is_what_is_paid_for():
    values = np.random.default_rng(0).normal(3.0, 1.0, 1000)
    found = [
        coinpress_mean(values, -80.0, 100.0, 0.5, np.random.default_rng(seed))
        for seed in range(200)
    ]
    assert np.mean(found) == pytest.approx(values.mean(), abs=0.01)
    # after the steps the radius is small: sensitivity 2·√(2 log(2n/β))/n or a little more
    least = 2 * math.sqrt(2 * math.log(2e5)) / 1000 / math.sqrt(2 * 0.75 * 0.5)
    assert 0.9 * least < np.std(found) < 1.3 * least


@pytest.mark.parametrize(("epsilon", "right"), [(300.0, 4), (0.01, 0)])
def test_it_finds_the_truth_with_a_large_budget_only(epsilon, right):
    found = []
    for seed in range(5):
        rng = np.random.default_rng([1, seed])
        x, y = noisy_sinc(2048, 0.1, rng)
        inducing = np.array(SETUPS[0].inducing)
        one = select(
            x,
            y,
            (1 / 3, 1.0, 3.0),
            (0.1 / 3, 0.1, 0.3),
            inducing,
            1.3,
            selection_budget(epsilon, 1e-5),
            rng,
        )
        found.append((one.length, one.sigma) == (1.0, 0.1))
    assert sum(found) >= right
    assert right or sum(found) < 4
