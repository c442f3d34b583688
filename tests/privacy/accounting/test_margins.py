"""Margins, limits and pieces of the accounting, number by number.

What the proof (accounting.md) states is what is computed.
"""

import math

import mpmath as mp
import numpy as np
import pytest

from reticent.privacy.accounting import composition, gaussian
from reticent.privacy.accounting.composition import account_epsilon, epsilon, remaining_epsilon
from reticent.privacy.accounting.events import Gaussian, Laplace, Pure, Selection
from reticent.privacy.accounting.selection import (
    best_order,
    renyi_to_epsilon,
    selection_epsilon,
    selection_renyi,
)

SEARCH = Selection(noise_multiplier=20.0, stop=0.25)


@pytest.mark.parametrize(("eps", "mu"), [(0.5, 1.0), (0.0, 6.0), (4.0, 0.5), (1000.0, 40.0)])
def test_the_bound_on_delta_is_raised_by_what_the_proof_states(eps, mu, monkeypatch):
    monkeypatch.setattr(gaussian, "log_delta", lambda eps, mu: 0.0)
    x = abs(eps / mu - mu / 2)
    assert gaussian.log_delta_bound(eps, mu) == pytest.approx(
        1e-12 + 4e-15 * (x + 1) * (x + mu), rel=1e-12, abs=0
    )


def test_the_slope_of_mills_ratio():
    t = np.array([-1.0, -0.5, 0.0, 0.3, 1.0, 2.0, 7.0, 30.0, 50.0, 50.1, 60.0, 100.0, 1e3, 1e6])
    with mp.workdps(60):
        mills = [
            mp.sqrt(mp.pi / 2) * mp.exp(mp.mpf(s) ** 2 / 2) * mp.erfc(mp.mpf(s) / mp.sqrt(2))
            for s in t.tolist()
        ]
        exact = [float(1 - mp.mpf(s) * one) for s, one in zip(t.tolist(), mills, strict=True)]
    found = gaussian._minus_mills_slope(t)
    assert found == pytest.approx(exact, rel=1e-12, abs=0)
    assert found[t > 50] == pytest.approx(np.array(exact)[t > 50], rel=1e-14, abs=0)


@pytest.mark.parametrize("eps", [1e-9, 1e-3, 0.5, 0.999999, 1.0, 1.000001, 3.0, 20.0, 30.0])
@pytest.mark.parametrize("count", [1, 7])
@pytest.mark.parametrize("mu", [0.0, 0.7])
def test_gaussians_that_dominate(eps, count, mu):
    """Φ(μ/2) = 1/(1 + e^−ε), raised by 10⁻⁹."""
    with mp.workdps(60):
        one = 2 * mp.sqrt(2) * mp.erfinv(mp.tanh(mp.mpf(eps) / 2))
        exact = mp.sqrt(mp.mpf(mu) ** 2 + count * one**2)
        found = composition._dominating_mu(mu, [("pure", eps, count)])
        assert exact * (1 + mp.mpf("0.99e-9")) < found < exact * (1 + mp.mpf("1.01e-9"))
    assert composition._dominating_mu(mu, [("pure", math.nextafter(30.0, 31), count)]) == math.inf


@pytest.mark.parametrize("order", [1.5, 2.0, 17.0])
@pytest.mark.parametrize("eps", [1e-3, 0.5, 4.0, 60.0])
def test_the_renyi_divergence_of_a_coin(eps, order):
    with mp.workdps(60):
        p = 1 / (1 + mp.exp(-mp.mpf(eps)))
        q = 1 - p
        exact = mp.log(p**order * q ** (1 - order) + q**order * p ** (1 - order)) / (order - 1)
        assert exact <= eps
    assert composition._coin_renyi(eps, order) == pytest.approx(float(exact), rel=1e-9, abs=1e-13)


@pytest.mark.parametrize("order", [1.5, 2.0, 17.0])
def test_renyi_divergences_add_up(order):
    events = [
        SEARCH,
        Gaussian(noise_multiplier=3.0, count=2),
        Pure(epsilon=0.3, count=5),
        Laplace(noise_multiplier=4.0),
    ]
    coin = composition._coin_renyi
    total = (
        selection_renyi(SEARCH, order) + 2 * order / 18 + 5 * coin(0.3, order) + coin(0.25, order)
    )
    found = composition._renyi_epsilon(events, order, 1e-6)
    assert found == pytest.approx(renyi_to_epsilon(total * (1 + 1e-12), order, 1e-6), rel=1e-14)


def test_a_list_with_a_search_is_counted_by_its_best_order_and_an_account_by_the_searchs_own():
    events = [SEARCH, Gaussian(noise_multiplier=10.0)]
    each = [composition._renyi_epsilon(events, order, 1e-6) for order in composition.ORDERS]
    assert epsilon(events, 1e-6) == min(each)
    own = composition._renyi_epsilon(events, best_order(SEARCH, 1e-6), 1e-6)
    assert account_epsilon(events, 1e-6) == own >= min(each)
    assert account_epsilon(events[::-1], 1e-6) == math.inf
    assert epsilon(events, 0.0) == account_epsilon(events, 0.0) == epsilon(SEARCH, 0.0) == math.inf
    twice = Selection(count=2, noise_multiplier=20.0, stop=0.25)
    assert account_epsilon([twice], 1e-6) == pytest.approx(account_epsilon([SEARCH, SEARCH], 1e-6))
    assert (
        account_epsilon([SEARCH], 1e-6) == epsilon(SEARCH, 1e-6) == selection_epsilon(SEARCH, 1e-6)
    )
    assert epsilon(SEARCH, 1e-6) < account_epsilon([twice], 1e-6)


def test_what_remains_beside_a_search_is_all_that_fits():
    events = [SEARCH, Gaussian(noise_multiplier=30.0)]
    cap = 2.0
    delta = 1e-6
    left = remaining_epsilon(events, cap, delta)
    order = best_order(SEARCH, delta)
    room = cap - composition._renyi_epsilon(events, order, delta)
    assert left < gaussian.gaussian_epsilon(math.sqrt(2 * room / order), delta)
    mu = math.sqrt(2 * (room * (1 - 1e-9) - 1e-9) / order)  # lowered three times
    assert left == pytest.approx(
        gaussian.gaussian_epsilon(mu, delta) * (1 - 1e-9), rel=1e-13, abs=0
    )
    assert (
        account_epsilon(
            [*events, Gaussian(noise_multiplier=composition.calibrate(left, delta))], delta
        )
        <= cap
    )
    assert remaining_epsilon(events, cap - room + 0.5, delta) > 0.01
    assert remaining_epsilon(events, cap, 0.0) == 0.0
    assert remaining_epsilon(events, 0.1, delta) == 0.0


# --- privacy-loss distributions


class Fake:
    """Stands in for a privacy-loss distribution.

    Composing adds, and ``ask`` says what is told of it.
    """

    def __init__(self, size, ask=None):
        self.size = size
        self.ask = ask

    def compose(self, other):
        return Fake(self.size + other.size)

    def get_epsilon_for_delta(self, delta):
        return self.ask("epsilon", delta)

    def get_delta_for_epsilon(self, eps):
        return self.ask("delta", eps)


@pytest.mark.parametrize("count", [1, 2, 3, 12, 21, 64])
def test_uses_are_composed_as_often_as_they_are_made(count):
    assert composition._repeated(Fake(1), count, None).size == count
    assert composition._repeated(Fake(1), count, Fake(1000)).size == count + 1000


@pytest.mark.parametrize("eps", [0.35, 0.3, 0.04, 2.0])
def test_losses_of_a_coin_touch_the_truth_at_all_points_of_the_grid(eps):
    step = 0.1 if eps > 0.1 else 0.01
    coin = composition._coin(eps, step)
    right = 1 / (1 + math.exp(-eps))
    inner = math.floor(eps / step)
    for cell in range(-inner - 3, inner + 4):
        t = cell * step
        exact = max(right - math.exp(t) * (1 - right), 1 - math.exp(t), 0.0)
        assert coin.get_delta_for_epsilon(t) == pytest.approx(exact, abs=1e-14)


@pytest.mark.parametrize(("mu", "eps", "count"), [(0.0, 0.5, 1), (3.0, 0.5, 64), (0.0, 1e-9, 1)])
def test_the_grid_of_losses_and_what_is_taken_off_delta(mu, eps, count, monkeypatch):
    """2¹⁸ cells over 20 standard deviations, 2·10⁻¹⁴ for each use, and the ε found is looked at
    again.
    """
    step = max(20 * math.hypot(mu, math.sqrt(count) * eps) / 2**18, 1e-9)
    delta = 1e-6
    doubt = 2e-14 * (count + 1)
    asked = []
    steps = []

    def ask(what, value):
        asked.append((what, value))
        if what == "epsilon":
            return 1.0
        return delta - doubt + (1e-15 if len(asked) < 5 else 0.0)

    monkeypatch.setattr(composition, "_coin", lambda eps, step: steps.append(step))
    monkeypatch.setattr(
        composition, "_repeated", lambda one, count, total: steps.append(count) or Fake(1, ask)
    )
    found = composition._pld_epsilon(mu, [("pure", eps, count)], delta)
    assert steps == [pytest.approx(step, rel=1e-12, abs=0), count, *([1] if mu else [])]
    assert asked[0] == ("epsilon", pytest.approx(delta - doubt, rel=1e-12, abs=0))
    assert [what for what, _ in asked[1:]] == ["delta"] * 4
    each = [value for _, value in asked[1:]]
    assert each[0] == pytest.approx(1 + 1e-10, rel=1e-14)
    assert np.diff(each) == pytest.approx([step / 100] * 3, rel=1e-3, abs=0)
    assert found == each[-1]


@pytest.mark.parametrize("count", [1, 4])
def test_the_grid_is_of_no_use_where_its_error_would_take_half_of_delta(count):
    uses = [("pure", 0.5, count)]
    doubt = 2e-14 * (count + 1)
    assert composition._pld_epsilon(0.0, uses, 2 * doubt) == math.inf
    assert composition._pld_epsilon(0.0, uses, 2.01 * doubt) < 0.5 * count * (1 + 1e-4)


def test_laplace_noise_and_gaussian_noise_stand_on_the_grid_as_themselves():
    """One use of either, alone: what its own formula says."""
    laplace = composition._pld_epsilon(0.0, [("laplace", 0.5, 1)], 1e-3)
    assert laplace == pytest.approx(0.5 + 2 * math.log1p(-1e-3), rel=1e-4)
    both = composition._pld_epsilon(0.5, [("pure", 1e-9, 1)], 1e-3)
    assert both == pytest.approx(gaussian.gaussian_epsilon(0.5, 1e-3), rel=1e-4)


def test_which_of_the_three_bounds_is_taken(monkeypatch):
    """The least; beyond ε or μ = 30 the sum alone, and so for a single use."""
    grid = [0.01]
    monkeypatch.setattr(composition, "_pld_epsilon", lambda mu, uses, delta: grid[0])
    two = Pure(epsilon=0.25, count=2)
    assert epsilon(two, 1e-6) == 0.01
    grid[0] = math.inf
    assert epsilon(two, 1e-6) == pytest.approx(0.5, rel=1e-15)
    assert epsilon(two, 1e-6) >= 0.5
    many = Pure(epsilon=0.01, count=900)
    assert epsilon(many, 1e-6) == gaussian.gaussian_epsilon(
        composition._dominating_mu(0.0, [("pure", 0.01, 900)]), 1e-6
    )
    grid[0] = 0.01
    one = Gaussian(noise_multiplier=1.0)
    wide = Gaussian(noise_multiplier=1 / 30.5)
    assert epsilon(Pure(epsilon=0.25), 1e-6) == pytest.approx(0.25, rel=1e-15)
    assert (
        epsilon([one, Pure(epsilon=0.25)], 1e-6) == epsilon([one, Pure(epsilon=30.0)], 1e-6) == 0.01
    )
    for events in ([one, Pure(epsilon=30.5)], [wide, Pure(epsilon=0.25)]):
        alone = epsilon(events[0], 1e-6)
        assert epsilon(events, 1e-6) == pytest.approx(alone + events[1].epsilon, rel=1e-14)


def test_accounts_without_gaussian_events_take_the_lesser_of_two_bounds():
    few = [Pure(epsilon=0.1)] * 3
    many = [Pure(epsilon=0.01, count=900)]
    assert account_epsilon(few, 1e-6) == epsilon(few, 0.0) == pytest.approx(0.3, rel=1e-14)
    mu = composition._dominating_mu(0.0, [("pure", 0.01, 900)])
    assert account_epsilon(many, 1e-6) == gaussian.gaussian_epsilon(mu, 1e-6) < 9
    mixed = [*few, Gaussian(noise_multiplier=1e6)]
    dominated = composition._dominating_mu(1e-6, [("pure", 0.1, 3)])
    assert account_epsilon(mixed, 1e-6) == pytest.approx(
        gaussian.gaussian_epsilon(dominated, 1e-6), rel=1e-12
    )
