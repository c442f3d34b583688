"""Accounting of private selection.

Reference figures, other people's code, worst cases by quadrature, and accounts.
"""

import math

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import ndtr

from reticent import (
    BadInput,
    BudgetExceeded,
    Gaussian,
    Laplace,
    Ledger,
    Pure,
    Selection,
    calibrate,
    epsilon,
)
from reticent.privacy.accounting import selection
from reticent.privacy.accounting.composition import account_epsilon, remaining_epsilon
from reticent.privacy.accounting.selection import (
    best_order,
    calibrate_selection,
    expected_runs,
    liu_talwar_split,
    log_weight,
    renyi_to_epsilon,
    selection_delta,
    selection_epsilon,
    selection_renyi,
    stop_for,
)
from reticent.privacy.random_bits import Bits
from reticent.privacy.selection.random_draws import number_of_runs, split, uniform

DELTA = 1e-5
EVENTS = {
    "geometric": Selection(noise_multiplier=6.0, stop=stop_for(36)),
    "few runs": Selection(noise_multiplier=2.0, stop=stop_for(3)),
    "logarithmic": Selection(noise_multiplier=4.0, stop=stop_for(100, 0), shape=0),
    "capped": Selection(noise_multiplier=3.0, stop=stop_for(20), most=30),
    "little noise": Selection(noise_multiplier=0.5, stop=stop_for(10)),
    "capped far": Selection(noise_multiplier=4.0, stop=stop_for(1000), most=900),
    "one run": Selection(noise_multiplier=2.0, stop=1.0),
}
each = pytest.mark.parametrize("event", EVENTS.values(), ids=EVENTS)


def papernot_steinke(event, delta):
    """ε by Papernot and Steinke's Theorem 2, which `selection_epsilon` improves on."""
    mu = 1 / event.noise_multiplier
    second = max(math.sqrt(2 * -math.log(event.stop)) / mu, 1.0)  # the best second order
    other = (1 + event.shape) * ((second - 1) * mu * mu / 2 - math.log(event.stop) / second)
    runs = math.log(expected_runs(event))
    orders = 1 + np.exp(np.linspace(-4, 9, 20_000))
    divergence = orders * mu * mu / 2 + other + runs / (orders - 1)
    log = math.log(delta) + np.log(orders)
    return float(np.min(divergence + np.log1p(-1 / orders) - log / (orders - 1)))


@pytest.mark.parametrize(
    ("eps", "logarithmic", "liu_talwar"),
    [(1, 8.37, 23.4), (3, 2.86, 7.96), (10, 0.879, 2.47), (30, 0.299, 0.873)],
)
def test_reference_multipliers_at_100_expected_runs(eps, logarithmic, liu_talwar):
    stop = stop_for(100, 0)

    def excess(z):
        return papernot_steinke(Selection(noise_multiplier=z, shape=0, stop=stop), DELTA) - eps

    theirs = brentq(excess, 0.05, 50)
    assert theirs == pytest.approx(logarithmic, rel=2e-3)
    assert calibrate(*liu_talwar_split(eps, DELTA, 0.01)[:2]) == pytest.approx(liu_talwar, rel=2e-3)
    ours = calibrate_selection(eps, DELTA, shape=0, stop=stop)
    assert ours < 0.95 * theirs


@pytest.mark.parametrize(("shape", "runs"), [(0, 100.0), (1, 36.0)])
def test_papernot_and_steinke_as_in_dp_accounting(shape, runs):
    import dp_accounting
    from dp_accounting.rdp import RdpAccountant

    event = Selection(noise_multiplier=5.0, shape=shape, stop=stop_for(runs, shape))
    theirs = RdpAccountant(orders=1 + np.exp(np.linspace(-2, 7, 300)))
    one = dp_accounting.GaussianDpEvent(event.noise_multiplier)
    theirs.compose(
        dp_accounting.dp_event.RepeatAndSelectDpEvent(one, mean=expected_runs(event), shape=shape)
    )
    assert papernot_steinke(event, DELTA) == pytest.approx(theirs.get_epsilon(DELTA), rel=1e-3)
    assert selection_epsilon(event, DELTA) < 0.9 * theirs.get_epsilon(DELTA)


def orders(event, y):
    """Orders of preference on outputs y of one run: higher is better.

    The last ones were found by searching for bad ones.
    """
    mu = 1 / event.noise_multiplier
    yield from (y, -y, np.abs(y - mu / 2), -np.abs(y - mu / 2), np.sin(3 * y), np.zeros_like(y))
    for point in (0.0, 0.7, -1.0):
        for slope in (0.5, 1.0, 2.0):
            yield np.where(y < point, slope * (point - y), y - point)


def generating(event, x):
    """φ(x) = E xᴷ."""
    stay = 1 - event.stop
    if event.stop == 1:
        return x
    if event.shape == 0:
        return np.log1p(-stay * x) / math.log(event.stop)
    q = stay * x
    if event.most:
        last = event.most - 1
        return event.stop * x * (1 - q**last) / (1 - q) + x * q**last
    return event.stop * x / (1 - q)


def best_law(event, mean, score, y):
    """The law of the best run's output when runs are N(mean, 1) on a fine grid.

    Ties are decided by chance.
    """
    edges = np.concatenate([[-np.inf], (y[1:] + y[:-1]) / 2, [np.inf]]) - mean
    p = np.where(
        edges[1:] > 0, -np.diff(ndtr(-edges)), np.diff(ndtr(edges))
    )  # upper tails keep their digits
    order = np.argsort(score, kind="stable")
    group = np.cumsum(np.concatenate([[True], np.diff(score[order]) > 1e-12])) - 1
    mass = np.bincount(group, p[order])
    worse = np.concatenate([[0.0], np.cumsum(mass)]).clip(0, 1)
    level = np.diff(generating(event, worse))  # P(the best is in this level)
    # where differences lose digits
    level = np.where(mass < 1e-9, np.exp(log_weight(event, 1 - worse[1:])) * mass, level)
    law = np.empty(len(y))
    law[order] = level[group] * p[order] / mass[group]
    return law


@each
def test_no_order_of_outputs_is_worse_than_the_bounds(event):
    """The exact divergences of the best of K, for many ways to prefer one output to another, in
    both directions.
    """
    y = np.linspace(-9, 11, 4001)
    mu = 1 / event.noise_multiplier
    epsilons = np.linspace(0, 12 * mu + 1, 15)
    claimed = np.array([selection_delta(event, eps) for eps in epsilons])
    nearest = 0.0
    for score in orders(event, y):
        here = best_law(event, mu, score, y)
        there = best_law(event, 0.0, score, y)
        for a, b in ((here, there), (there, here)):
            assert a.sum() == pytest.approx(1, abs=1e-4)
            true = np.array([np.maximum(a - math.exp(eps) * b, 0).sum() for eps in epsilons])
            assert (true <= claimed * (1 + 1e-9) + 1e-11).all()
            nearest = max(nearest, float((true[5:] / claimed[5:]).max()))
            known = (a > 1e-14) & (b > 1e-14)  # φ is computed in floats
            for order in (1.5, 3.0, 6.0):
                powers = order * np.log(a[known]) + (1 - order) * np.log(b[known])
                renyi = float(np.logaddexp.reduce(powers)) / (order - 1)
                assert renyi <= selection_renyi(event, order) * (1 + 1e-3) + 1e-6
    assert nearest > 0.02, (
        "a bound that is never nearly reached would be a waste, or a test without force"
    )


def test_a_single_run_is_a_gaussian_release():
    event = EVENTS["one run"]
    assert selection_epsilon(event, DELTA) == pytest.approx(
        epsilon(Gaussian(noise_multiplier=2.0), DELTA), rel=1e-7
    )
    assert selection_epsilon(event, DELTA) >= epsilon(Gaussian(noise_multiplier=2.0), DELTA) - 1e-12
    assert calibrate_selection(1.0, DELTA) == pytest.approx(calibrate(1.0, DELTA), rel=1e-7)
    capped = Selection(noise_multiplier=2.0, stop=0.25, most=1)
    assert selection_epsilon(capped, DELTA) == pytest.approx(
        selection_epsilon(event, DELTA), rel=1e-3
    )


@each
def test_finer_cells_only_lower_the_bounds(event, monkeypatch):
    coarse = selection_delta(event, 1.0), selection_renyi(event, 5.0)
    monkeypatch.setattr(selection, "_CELLS", 4 * selection._CELLS)
    monkeypatch.setattr(selection, "_KNOTS", 2 * selection._KNOTS)
    for cached in (selection._cells, selection._chords):
        cached.forget()
    fine = selection_delta(event, 1.0), selection_renyi(event, 5.0)
    for cached in (selection._cells, selection._chords):
        cached.forget()
    for a, b in zip(coarse, fine, strict=True):
        assert b <= a * (1 + 1e-9)
        assert b > 0.97 * a, "and hardly"


@each
def test_weights_are_derivatives_of_the_generating_function(event):
    """φ′ by summing the pmf; expected runs are φ′(1)."""
    k = np.arange(1, 40_000)
    log_stop = math.log1p(-event.stop) if event.stop < 1 else -math.inf
    if event.stop == 1:
        pmf = (k == 1) * 1.0
    elif event.shape:
        pmf = event.stop * np.exp((k - 1) * log_stop)
        if event.most:
            pmf[event.most - 1] = np.exp((event.most - 1) * log_stop)
            pmf[event.most :] = 0
    else:
        pmf = np.exp(k * log_stop) / k / -math.log(event.stop)
    assert pmf.sum() == pytest.approx(1, abs=1e-9)
    assert (pmf * k).sum() == pytest.approx(expected_runs(event), rel=1e-9)
    for u in (0.0, 1e-3, 0.1, 0.5, 0.99):
        slope = (pmf * k * np.power(1 - u, k - 1)).sum()
        assert math.exp(log_weight(event, np.array([u]))[0]) == pytest.approx(slope, rel=1e-8)


@pytest.mark.parametrize("name", ["few runs", "logarithmic", "capped", "one run"])
def test_the_number_of_runs_has_the_stated_law(name):
    event = EVENTS[name]
    bits = Bits(b"runs")
    drawn = np.array([number_of_runs(event, bits) for _ in range(1500)])
    k = np.arange(1, 6)
    if event.stop == 1:
        assert (drawn == 1).all()
        return
    log_stop = math.log1p(-event.stop)
    pmf = (
        event.stop * np.exp((k - 1) * log_stop)
        if event.shape
        else np.exp(k * log_stop) / k / -math.log(event.stop)
    )
    expected = np.append(pmf, 1 - pmf.sum()) * len(drawn)
    found = np.append([(drawn == one).sum() for one in k], (drawn > 5).sum())
    assert (
        (found - expected) ** 2 / expected
    ).sum() < 28  # χ² with 5 degrees of freedom: one in 25,000
    assert abs(drawn.mean() - expected_runs(event)) < 5 * drawn.std() / math.sqrt(len(drawn))
    if event.most:
        assert drawn.max() == event.most


def test_chances_are_exact_and_split_as_asked():
    bits = Bits(b"chances")
    assert {uniform(3, bits) for _ in range(100)} == {0, 1, 2}
    assert uniform(1, bits) == 0
    apart = split(1001, 400, bits)
    assert apart.sum() == 400
    assert 100 < np.flatnonzero(apart).mean() < 900

    class Words:
        """Random bits that are all ones but for one word.

        Just not below γ·2⁶⁴, and then just below.
        """

        def __init__(self, word):
            self.word = word

        def words(self, count):
            out = np.full(count, 2**64 - 1, dtype=np.uint64)
            out[min(3, count - 1)] = self.word
            return out

    event = Selection(noise_multiplier=1.0, stop=2.0**-20)
    assert number_of_runs(event, Words(2**44 - 1)) == 4
    assert (np.array(Words(2**44).words(8)) >= np.uint64(2**44)).all()


@each
def test_calibration_is_safe_and_close(event):
    for eps in (0.1, 1.0, 8.0):
        own = {"shape": event.shape, "stop": event.stop, "most": event.most}
        z = calibrate_selection(eps, 1e-6, **own)
        assert eps * (1 - 1e-9) - 1e-9 <= epsilon(Selection(noise_multiplier=z, **own), 1e-6) <= eps


def test_events_are_checked_and_stored():
    from reticent.privacy.accounting.events import event_from_json

    event = EVENTS["capped"]
    assert event_from_json(event.to_json()) == event
    assert "search" in str(event)
    for wrong in (
        {"stop": 0.0},
        {"stop": 1 / 3},
        {"stop": 2.0},
        {"shape": 2},
        {"shape": True},
        {"most": -1},
        {"shape": 0, "most": 3},
        {"noise_multiplier": 0},
    ):
        with pytest.raises(BadInput):
            Selection(**{"noise_multiplier": 1.0, "stop": 0.5, **wrong})
    for runs in (0.5, math.nan, True, "4", 1e9):
        with pytest.raises(BadInput, match=r"^expected_runs must be"):
            stop_for(runs)
    with pytest.raises(BadInput, match="logarithmic"):
        stop_for(1001, 0)
    with pytest.raises(BadInput, match="too small"):
        liu_talwar_split(1e-9, 1e-5, 0.01)


def test_lists_that_were_fixed_beforehand():
    event = EVENTS["geometric"]
    alone = epsilon(event, DELTA)
    assert epsilon([event], 0) == math.inf
    twice = epsilon([event, event], DELTA)
    counted = epsilon(Selection(2, 6.0, 1, event.stop), DELTA)
    assert alone < twice == pytest.approx(counted, rel=1e-9)
    assert twice < 2 * alone
    for other in (
        Gaussian(noise_multiplier=20.0),
        Pure(epsilon=0.05),
        Laplace(noise_multiplier=20.0),
    ):
        both = epsilon([event, other], DELTA)
        assert alone < both < alone + 1.7 * epsilon(other, DELTA)
        assert both == pytest.approx(epsilon([other, event], DELTA), rel=1e-12)


def test_an_account_that_begins_with_a_search_is_a_renyi_filter():
    event = EVENTS["geometric"]
    other = Gaussian(noise_multiplier=8.0)
    order = best_order(event, DELTA)
    rate = order / other.noise_multiplier**2 / 2
    by_hand = renyi_to_epsilon(selection_renyi(event, order) + 3 * rate, order, DELTA)
    assert account_epsilon([event, other, other, other], DELTA) == pytest.approx(by_hand, rel=1e-9)
    assert account_epsilon([event, Gaussian(3, 8.0)], DELTA) == pytest.approx(by_hand, rel=1e-9)
    assert account_epsilon([event], DELTA) == epsilon(event, DELTA)
    assert account_epsilon([event], DELTA) < account_epsilon(
        [event, Gaussian(noise_multiplier=1e6)], DELTA
    )
    assert account_epsilon([event, other], DELTA) >= epsilon([event, other], DELTA)
    assert account_epsilon([event, event], DELTA) > account_epsilon([event, other], DELTA)


def test_a_search_cannot_join_an_account_of_other_events(tmp_path):
    """The exact filter of a Gaussian account needs a dominating Gaussian, and a search has none
    that is worth it.
    """
    event = EVENTS["geometric"]
    assert account_epsilon([Gaussian(noise_multiplier=50.0), event], DELTA) == math.inf
    book = Ledger(tmp_path / "budget.db")
    book.open("people", 3.0, DELTA)
    book.charge("people", Gaussian(noise_multiplier=50.0))
    with pytest.raises(BudgetExceeded, match="before anything else"):
        book.charge("people", event)
    assert len(book.history("people")) == 1
    book.open("searched", 1.5, DELTA)
    book.charge("searched", event)
    book.charge("searched", Gaussian(noise_multiplier=50.0))
    left = book.remaining("searched")
    assert 0 < left < 0.6
    book.charge("searched", Gaussian(noise_multiplier=calibrate(left, DELTA)))
    assert book.spent("searched") <= 1.5
    assert book.verify()
    with pytest.raises(BudgetExceeded):
        book.charge("searched", event)


def test_what_remains_beside_a_search_fits():
    event = EVENTS["geometric"]
    for cap in (1.3, 2.0, 8.0):
        left = remaining_epsilon([event], cap, DELTA)
        after = account_epsilon([event, Gaussian(noise_multiplier=calibrate(left, DELTA))], DELTA)
        assert cap - 1e-3 < after <= cap
    assert remaining_epsilon([event], 0.5, DELTA) == 0
    assert remaining_epsilon([event], 3.0, 0) == 0


def test_a_search_that_tells_nothing_and_one_that_tells_all():
    assert selection.selection_epsilon(Selection(noise_multiplier=1e9, stop=1.0), 0.1) == 0.0
    assert selection.selection_epsilon(Selection(noise_multiplier=1e-3, stop=0.5), 1e-6) == math.inf
