"""Which way calibration rounds.

What a root finder leaves, and what floats cannot tell, goes to the safe side.
"""

import math

import mpmath as mp
import pytest

from reticent.privacy.accounting import composition, gaussian
from reticent.privacy.accounting.composition import (
    calibrate,
    epsilon,
    remaining_epsilon,
)
from reticent.privacy.accounting.events import Gaussian, Laplace, Pure, Selection
from reticent.privacy.accounting.gaussian import log_delta
from reticent.validation import check_epsilon_delta

NEAR = 1e-9
CASES = [(0.01, 1e-9), (0.7, 1e-6), (3.0, 0.2), (25.0, 1e-30)]


@pytest.mark.parametrize(
    ("eps", "mu"),
    [(1e-4, 1e-3), (0.3, 0.5), (0.5, 1.0), (2.0, 1.0), (0.2, 1.5), (9.0, 1.5), (3.0, 8.0)],
)
def test_delta_of_a_gaussian_release(eps, mu):
    """Small and large μ, x below and above 0; against mpmath."""
    with mp.workdps(60):
        x = mp.mpf(eps) / mu - mp.mpf(mu) / 2
        exact = mp.log(mp.ncdf(-x) - mp.exp(eps) * mp.ncdf(-x - mu))
    assert log_delta(eps, mu) == pytest.approx(float(exact), abs=1e-12)


@pytest.mark.parametrize(("mu", "delta"), CASES)
def test_a_root_that_is_too_low_is_left_behind(mu, delta, monkeypatch):
    exact = gaussian.gaussian_epsilon(mu, delta)
    honest = gaussian.brentq
    monkeypatch.setattr(gaussian, "brentq", lambda *args, **how: honest(*args, **how) * (1 - NEAR))
    found = gaussian.gaussian_epsilon.__wrapped__(mu, delta)
    assert exact * (1 - 1e-14) <= found <= exact * (1 + 2 * NEAR)
    assert gaussian.log_delta_bound(found, mu) <= math.log(delta)


def test_releases_that_tell_nothing_and_all():
    assert gaussian.gaussian_epsilon(math.inf, 1e-6) == math.inf
    for delta in (1e-6, 0.3):
        with mp.workdps(40):  # δ(0) = 2Φ(μ/2) − 1
            least = float(2 * mp.sqrt(2) * mp.erfinv(mp.mpf(delta)))
        assert gaussian.gaussian_epsilon(least * (1 - 1e-9), delta) == 0.0
        assert 0 < gaussian.gaussian_epsilon(least * (1 + 1e-9), delta) < 1e-6


@pytest.mark.parametrize("releases", [1, 12])
@pytest.mark.parametrize(("eps", "delta"), [(0.01, 1e-9), (1.0, 1e-6), (8.0, 0.2)])
def test_a_multiplier_that_is_too_small_is_left_behind(eps, delta, releases, monkeypatch):
    exact = calibrate(eps, delta, releases=releases)
    honest = gaussian.largest_mu
    monkeypatch.setattr(composition, "largest_mu", lambda *args: honest(*args) * (1 + NEAR))
    found = calibrate(eps, delta, releases=releases)
    assert exact * (1 - 1e-14) <= found <= exact * (1 + 2 * NEAR)
    assert epsilon(Gaussian(count=releases, noise_multiplier=found), delta) <= eps


@pytest.mark.parametrize(
    ("eps", "delta"), [(1e-6, 1e-9), (1.0, 1e-6), (1.0, 0.9), (50.0, 1e-30), (1e4, 0.5)]
)
def test_the_largest_mu_is_where_delta_is_met(eps, delta):
    mu = gaussian.largest_mu(eps, delta)
    assert gaussian.log_delta_bound(eps, mu) == pytest.approx(math.log(delta), rel=1e-9, abs=1e-9)


EVENTS = [Gaussian(noise_multiplier=9.0), Gaussian(noise_multiplier=20.0, count=2)]
MIXED = [*EVENTS, Pure(epsilon=0.05)]


@pytest.mark.parametrize("events", [EVENTS, MIXED])
def test_what_remains_is_counted_in_squares_and_lowered_a_little(events):
    cap = 1.5
    delta = 1e-6
    used = composition._dominating_mu(gaussian.gaussian_mu(EVENTS), [("pure", 0.05, 1)])
    if events is EVENTS:
        used = gaussian.gaussian_mu(EVENTS)
    mu = math.sqrt(gaussian.largest_mu(cap, delta) ** 2 - used**2)
    best = gaussian.gaussian_epsilon(mu, delta)
    exact = 1e-13 if events is EVENTS else 1e-8  # dominating Gaussians are raised by 10⁻⁹
    assert remaining_epsilon(events, cap, delta) == pytest.approx(best * (1 - 1e-11), rel=exact)


def test_what_remains_of_a_pure_account_is_the_difference():
    assert remaining_epsilon([Pure(epsilon=0.25)], 1.0, 0.0) == pytest.approx(
        0.75 * (1 - 1e-11), rel=1e-14
    )
    assert remaining_epsilon([Laplace(noise_multiplier=4.0)], 1.0, 0.0) == pytest.approx(
        0.75 * (1 - 1e-11), rel=1e-14
    )
    assert remaining_epsilon([Pure(epsilon=1.0)], 1.0, 0.0) == 0.0
    assert remaining_epsilon([Pure(epsilon=0.5)], math.nextafter(0.5, 1), 0.0) < 1e-15


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("refused", [0, 3])
def test_what_does_not_fit_is_lowered_until_it_does(refused, delta, monkeypatch):
    events = EVENTS if delta else [Pure(epsilon=0.9)]
    cap = 1.0
    asked = []
    best = remaining_epsilon(events, cap, delta)
    whole = gaussian.largest_mu(cap, delta) ** 2 if delta else cap
    step = 1e-16 * whole / (whole - gaussian.gaussian_mu(EVENTS) ** 2 if delta else cap - 0.9)

    def total(events, delta):
        asked.append(events[-1])
        return math.nextafter(cap, 2) if len(asked) <= refused else cap

    monkeypatch.setattr(composition, "account_epsilon", total)
    for lowered in range(refused):
        best *= 1 - step * 2**lowered
    assert remaining_epsilon(events, cap, delta) == best
    assert len(asked) == refused + 1
    assert asked[-1] == (Gaussian if delta else Laplace)(noise_multiplier=calibrate(best, delta))
    monkeypatch.setattr(composition, "account_epsilon", lambda events, delta: math.inf)
    assert remaining_epsilon(events, cap, delta) == 0.0


def test_the_ends_of_epsilon_and_delta():
    assert remaining_epsilon([], 1e300, 1e-6) == remaining_epsilon([], 1e300, 0.0) == 1e9
    assert check_epsilon_delta(5e-324, 5e-324) == (5e-324, 5e-324)
    assert check_epsilon_delta(1e308, math.nextafter(1, 0)) == (1e308, math.nextafter(1, 0))
    assert check_epsilon_delta(2, 0, pure=True) == (2.0, 0.0)


def test_equal_uses_are_counted_together_and_rounded_up():
    events = [
        Pure(epsilon=0.3),
        Laplace(count=2, noise_multiplier=3.0),
        Pure(count=4, epsilon=0.3),
        Gaussian(noise_multiplier=1.0),
    ]
    third = math.nextafter(1 / 3.0, 1)
    assert composition._other_uses(events) == [("laplace", third, 2), ("pure", 0.3, 5)]
    with mp.workdps(40):
        exact = 2 * mp.mpf(third) + 5 * mp.mpf(0.3)
        assert exact <= epsilon(events[:3], 0.0) <= exact * (1 + mp.mpf("1e-15"))


def test_where_nothing_at_all_remains(monkeypatch):
    """Room of exactly zero, in an account of pure events and beside a search."""
    assert remaining_epsilon([Pure(epsilon=0.5)], epsilon(Pure(epsilon=0.5), 0.0), 0.0) == 0.0
    search = Selection(noise_multiplier=20.0)
    spent = 1e-9 / (1 - 1e-9)
    assert spent * (1 - 1e-9) - 1e-9 == 0
    monkeypatch.setattr(composition, "_renyi_epsilon", lambda *args: -spent)
    assert composition._remaining_beside([search], search, 0.0, 1e-6) == 0.0
