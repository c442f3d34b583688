"""Accounts within an account: one cap over all that is spent on the same people."""

import pytest

from reticent import BudgetExceeded, Gaussian, Ledger, LedgerError, calibrate


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
    ledger.open("register", epsilon=2, delta=1e-5)
    ledger.charge("register", release(1.5, 5e-6))
    with pytest.raises(BudgetExceeded, match="Open the part with less"):
        ledger.open("extract", epsilon=1, delta=1e-6, within="register")
    with pytest.raises(BudgetExceeded):
        ledger.open("extract", epsilon=0.1, delta=1e-5, within="register")
    before = ledger.remaining("register")
    ledger.open("extract", epsilon=0.4, delta=1e-6, within="register")
    assert ledger.remaining("register") <= before - 0.3


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
