"""What private selection claims, against fifty digits.

Every rounding is to the safe side, and by no more than it says.
"""

import math
from itertools import pairwise, product

import mpmath
import numpy as np
import pytest
from scipy.special import ndtr

from reticent import BadInput, Selection
from reticent.privacy.accounting.selection import (
    _SAFE,
    ORDERS,
    _chords,
    best_order,
    expected_runs,
    log_weight,
    renyi_to_epsilon,
    selection_delta,
    selection_epsilon,
    selection_renyi,
    stop_for,
)

EVENTS = [
    Selection(noise_multiplier=6.0, stop=stop_for(36)),
    Selection(noise_multiplier=1.5, stop=stop_for(30, 0), shape=0),
    Selection(noise_multiplier=3.0, stop=stop_for(20), most=30),
]


def decimal(value):
    return mpmath.mpf(float(value))


@pytest.mark.parametrize("event", EVENTS, ids=["geometric", "logarithmic", "capped"])
@pytest.mark.parametrize("eps", [0.0, 0.5, 3.0])
def test_the_integral_over_chords_has_its_margins(event, eps):
    """Σ of a_j e^ε P′_j + b_j P_j over the pieces between knots, where positive; 1e-9 of it and
    1e-12 of what cancels besides.
    """
    knots, start, slope = _chords(event)
    with mpmath.workdps(50):
        mu = 1 / decimal(event.noise_multiplier)
        ends = [
            -mpmath.inf,
            *((decimal(k) + decimal(eps)) / mu + mu / 2 for k in knots),
            mpmath.inf,
        ]
        other, p = (
            [mpmath.ncdf(shift - a) - mpmath.ncdf(shift - b) for a, b in pairwise(ends)]
            for shift in (0, mu)
        )
        lines = list(zip(start, slope, other, p, strict=True))
        terms = [decimal(a) * mpmath.exp(eps) * q + decimal(b) * r for a, b, q, r in lines]
        doubt = sum(abs(decimal(a)) * mpmath.exp(eps) * q + decimal(b) * r for a, b, q, r in lines)
        least = sum(max(one, 0) for one in terms) * (1 + mpmath.mpf(_SAFE))
        beyond = (mpmath.mpf(selection_delta(event, eps)) - least) / doubt
        assert 0.8e-12 < beyond < 1.2e-12


def test_a_divergence_is_turned_into_epsilon_and_rounded_up():
    """Canonne, Kamath and Steinke 2020, Proposition 12; at least 0."""
    with mpmath.workdps(50):
        for divergence, order, delta in product(
            (1e-3, 0.1, 3.0, 80.0), (1.02, 2.0, 30.0, 1e4), (0.3, 1e-3, 1e-12)
        ):
            log = mpmath.log(decimal(delta)) + mpmath.log(decimal(order))
            exact = (
                decimal(divergence)
                + mpmath.log(1 - 1 / decimal(order))
                - log / (decimal(order) - 1)
            )
            claimed = renyi_to_epsilon(divergence, order, delta)
            assert (
                max(exact, 0)
                <= claimed
                <= max(exact * (1 + mpmath.mpf("2e-12")) + mpmath.mpf("2e-12"), 0)
            )


@pytest.mark.parametrize("event", EVENTS, ids=["geometric", "logarithmic", "capped"])
@pytest.mark.parametrize("order", [1.1, 2.0, 12.0, 300.0])
def test_the_divergence_is_the_supremum_over_all_ranks(event, order):
    """R(λ) of the first page, at 200,000 ranks u: never above the claim, and within 1 % of it."""
    z = np.linspace(-14, 14, 200_001)
    mu = 1 / event.noise_multiplier
    here = log_weight(event, ndtr(z))
    there = log_weight(event, ndtr(z + mu))
    found = order * mu**2 / 2 + (order * here - (order - 1) * there).max() / (order - 1)
    assert found <= selection_renyi(event, order) * (1 + 1e-12)
    assert found == pytest.approx(selection_renyi(event, order), rel=0.01)


@pytest.mark.parametrize("event", EVENTS, ids=["geometric", "logarithmic", "capped"])
def test_the_order_of_an_account_is_the_cheapest(event):
    totals = [renyi_to_epsilon(selection_renyi(event, order), order, 1e-6) for order in ORDERS]
    assert best_order(event, 1e-6) == ORDERS[int(np.argmin(totals))]
    assert 1.1 < best_order(event, 1e-6) < 1e4


@pytest.mark.parametrize("event", EVENTS, ids=["geometric", "logarithmic", "capped"])
def test_epsilon_is_the_least_whose_delta_is_within_the_claim(event):
    """At forty δ: within the claim to the last bit of its logarithm, and no longer with 1e-9 less
    ε.
    """
    for delta in np.geomspace(0.2, 1e-12, 40):
        eps = selection_epsilon(event, float(delta))
        assert math.log(selection_delta(event, eps)) <= math.log(delta)
        assert selection_delta(event, eps * (1 - 1e-9)) > delta


@pytest.mark.parametrize(
    "more", [{}, {"shape": 0}, {"most": 4}], ids=["geometric", "logarithmic", "capped"]
)
def test_epsilon_is_zero_from_where_delta_pays_for_all(more):
    """δ(0) is what a search costs at ε = 0.

    A little more δ needs no ε, a little less needs some.
    """
    event = Selection(noise_multiplier=30.0, stop=0.375, **more)
    alone = selection_delta(event, 0.0)
    assert selection_epsilon(event, alone * 1.01) == 0
    for less in (0.99, 0.5):
        eps = selection_epsilon(event, alone * less)
        assert eps > 0
        assert selection_delta(event, eps) <= alone * less * (1 + 1e-14)


def test_as_many_runs_are_expected_as_were_asked_for_and_no_more():
    """To the next multiple of 2⁻⁴⁰ above, up to the limits, which belong to it."""
    for shape, most in ((1, 10_000), (0, 1000)):
        for runs in (1, 1.5, 2, 77.7, most):
            stop = stop_for(runs, shape)
            assert (stop * 2**40).is_integer()
            expected = expected_runs(Selection(noise_multiplier=1.0, shape=shape, stop=stop))
            assert runs * (1 - 1e-7) < expected <= runs * (1 + 1e-12)
        with pytest.raises(BadInput):
            stop_for(most + 1, shape)
    with pytest.raises(BadInput):
        stop_for(0.99)
    assert stop_for(1) == stop_for(1, 0) == 1.0


@pytest.mark.parametrize(
    ("stop", "most", "runs"),
    [(1.0, 0, 1.0), (1.0, 5, 1.0), (0.25, 1, 1.0), (0.25, 2, 1.75), (0.25, 3, 2.3125)],
)
def test_runs_that_are_cut_off(stop, most, runs):
    """E min(K, most), by hand."""
    assert expected_runs(Selection(noise_multiplier=1.0, stop=stop, most=most)) == pytest.approx(
        runs, rel=1e-12
    )


@pytest.mark.parametrize("event", EVENTS, ids=["geometric", "logarithmic", "capped"])
def test_chords_meet_at_the_knots_and_never_lie_below_what_they_bound(event):
    """H(t) = sup_u (t·w(u) − w(G(u)))₊ at 20,000 ranks.

    The slopes rise, from none at the first knot to E K.
    """
    knots, start, slope = _chords(event)
    t = np.exp(knots)
    left = start[:-1] + slope[:-1] * t
    right = start[1:] + slope[1:] * t
    np.testing.assert_allclose(left, right, rtol=1e-9, atol=1e-9)
    assert slope[-1] == expected_runs(event)
    assert slope[0] == pytest.approx(0, abs=1e-9)
    assert (np.diff(slope) > -1e-9).all()
    z = np.linspace(-12, 12, 20_001)
    w, against = (
        np.exp(log_weight(event, ndtr(z + shift))) for shift in (0.0, 1 / event.noise_multiplier)
    )
    for one in np.exp(np.linspace(knots[0] - 1, knots[-1] + 3, 100)):
        height = max(float((one * w - against).max()), 0.0)
        chord = float((start + slope * one)[np.searchsorted(t, one)])
        assert height <= chord * (1 + 1e-9) + 1e-9
        assert chord <= 1.05 * height + 0.01
