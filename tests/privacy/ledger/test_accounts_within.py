"""Accounts within an account: one cap over all that is spent on the same people."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from reticent import BudgetExceeded, Gaussian, Ledger, LedgerError, calibrate
from reticent.privacy.accounting.events import Pure
from reticent.privacy.accounting.gaussian import gaussian_epsilon, largest_mu


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "budget.db")


def release(epsilon, delta):
    return Gaussian(noise_multiplier=calibrate(epsilon, delta))


def test_a_part_is_set_aside_from_the_whole(ledger):
    ledger.open("register", epsilon=3, delta=1e-5, person="id")
    part = ledger.open("extract", epsilon=1, delta=4e-6, person="id", within="register")
    assert part.within == "register"
    assert ledger.spent("register") == pytest.approx(1)
    assert ledger.remaining("register") == pytest.approx(2)
    ledger.charge("extract", release(1, 4e-6), person="id")
    assert ledger.spent("register") == pytest.approx(1)
    ledger.charge("register", release(2, 5e-6), person="id")
    with pytest.raises(BudgetExceeded):
        ledger.charge("register", release(1, 1e-6), person="id")
    assert ledger.verify()


def test_a_part_cannot_take_what_was_spent(ledger):
    ledger.open("register", epsilon=2, delta=0)
    ledger.charge("register", Pure(epsilon=1.5))
    with pytest.raises(BudgetExceeded, match="Open the part with less"):
        ledger.open("extract", epsilon=1, delta=0, within="register")
    before = ledger.remaining("register")
    ledger.open("extract", epsilon=0.4, delta=0, within="register")
    assert ledger.remaining("register") <= before - 0.3


def gaussian_delta(epsilon, mu):
    """δ at ε, any number, of a Gaussian release."""
    beyond = np.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
    return norm.cdf(mu / 2 - epsilon / mu) - beyond


def coin_delta(epsilon, pure):
    """δ at ε, any number, of the worst mechanism with this pure ε."""
    inside = (np.exp(pure) - np.exp(epsilon)) / (1 + np.exp(pure))
    return np.where(epsilon > -pure, np.maximum(inside, 0), 1 - np.exp(epsilon))


def test_a_first_result_cannot_decide_how_the_rest_is_divided(ledger):
    """Half of μ² is spent; then the rest as Gaussian noise, or a pure part, whichever tells more.

    Either alone keeps the cap; the choice in view of the first result has more than twice its δ.
    """
    epsilon, delta = 1.0, 1e-6
    ledger.open("whole", epsilon=epsilon, delta=delta)
    mu = largest_mu(epsilon, delta) / math.sqrt(2)
    ledger.charge("whole", Gaussian(noise_multiplier=1 / mu))
    z = np.linspace(-12, 12, 100_001)
    density = norm.pdf(z) * (z[1] - z[0])
    left = epsilon - (mu * z + mu**2 / 2)  # beside the privacy loss of the first result
    courses = [gaussian_delta(left, mu)]
    for share in (0.01, 0.1, 0.3, 0.7):
        part = epsilon - gaussian_epsilon(mu, delta * (1 - share))
        courses.append(delta * share + (1 - delta * share) * coin_delta(left, part * (1 - 1e-9)))
        with pytest.raises(BudgetExceeded, match="before the first charge"):
            ledger.open("part", part * (1 - 1e-9), delta * share, within="whole")
    assert all(density @ course <= delta * 1.001 for course in courses)
    assert density @ np.max(courses, axis=0) > 2 * delta
    ledger.charge("whole", Gaussian(noise_multiplier=1 / mu * (1 + 1e-9)))


def test_a_search_and_a_fit_share_one_cap(ledger):
    ledger.open("people", epsilon=2, delta=2e-6)
    ledger.open("search", epsilon=1, delta=1e-6, within="people")
    ledger.open("fits", epsilon=1, delta=1e-6, within="people")
    with pytest.raises(BudgetExceeded):
        ledger.charge("people", release(0.01, 1e-7))
    with pytest.raises(BudgetExceeded):
        ledger.open("more", epsilon=0.001, delta=0, within="people")


def test_parts_are_of_the_same_people_and_stay_what_they_are(ledger):
    ledger.open("register", epsilon=2, delta=1e-5, person="id")
    with pytest.raises(LedgerError, match="do not add up"):
        ledger.open("rows", epsilon=1, delta=1e-6, within="register")
    with pytest.raises(LedgerError, match="no account"):
        ledger.open("rows", epsilon=1, delta=1e-6, within="nowhere")
    ledger.open("extract", epsilon=1, delta=1e-6, person="id", within="register")
    ledger.open("extract", epsilon=1, delta=1e-6, person="id", within="register")
    with pytest.raises(LedgerError, match="already open"):
        ledger.open("extract", epsilon=1, delta=1e-6, person="id")


def test_a_part_may_have_parts(ledger):
    ledger.open("a", epsilon=3, delta=3e-6)
    ledger.open("b", epsilon=2, delta=2e-6, within="a")
    ledger.open("c", epsilon=2, delta=2e-6, within="b")
    assert ledger.remaining("b") == 0
    with pytest.raises(BudgetExceeded):
        ledger.charge("b", release(0.1, 1e-7))
    ledger.charge("c", release(2, 2e-6))
