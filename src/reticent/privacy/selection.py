"""Private selection: what the best of a random number of runs costs (Papernot and Steinke 2021, Liu and Talwar 2019).

One run Q draws a candidate, fits it on one part of the records and scores it on the other; a replaced record touches one part, so
Q is a Gaussian mechanism with μ = 1/multiplier. A is the best of K runs, K from a law that is fixed beforehand. With
φ(x) = E xᴷ, w(u) = φ′(1−u) and G(u) = Φ(Φ⁻¹(u) + μ), the best that a test of false alarm rate u can do against Q:

    δ_A(ε) ≤ ∫ sup_u (w(u)·p(y) − e^ε·w(G(u))·p′(y))₊ dy,    p = N(μ, 1), p′ = N(0, 1)
    R_A(λ) ≤ λμ²/2 + sup_u (λ·log w(u) − (λ−1)·log w(G(u))) / (λ−1)                                  (Rényi, order λ)

The suprema are taken over cells of u from above, the integral by chords of a convex function: both are upper bounds whatever
the cells. At 100 expected runs (logarithmic) they ask for 20 % less noise than Papernot and Steinke's theorem.
Proof: selection.md.
"""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri

from reticent.errors import BadInput
from reticent.memo import memo
from reticent.privacy.events import Selection
from reticent.privacy.given import number

__all__ = [
    "ORDERS",
    "best_order",
    "calibrate_selection",
    "expected_runs",
    "liu_talwar_split",
    "log_weight",
    "papernot_steinke",
    "renyi_to_epsilon",
    "selection_delta",
    "selection_epsilon",
    "selection_renyi",
    "stop_for",
]

Array = NDArray[np.float64]

_CELLS, _KNOTS = 2**13, 384
_GRID = 2.0**-40
_SAFE = 1e-9  # relative; the roundings of a sum of positive terms stay far below
ORDERS = 1 + np.exp(np.linspace(math.log(0.02), math.log(1e5), 400))


def log_weight(event: Selection, u: Array) -> Array:
    """log φ′(1−u): how much likelier than one run the best of K is to be what only a share u of the runs beats."""
    stop = event.stop
    if event.most:
        left, most = np.minimum(stop + (1 - stop) * u, 1 - 1e-15), event.most  # 1 − q, without a difference
        log_tail = (most - 1) * np.log1p(-left)
        geometric = -stop * np.expm1(log_tail + np.log1p((most - 1) * left)) / left**2  # γΣ_{k<T} k q^(k−1)
        return np.log(geometric + most * np.exp(log_tail))
    fall = np.log1p((1 - stop) / stop * u)
    return math.log(expected_runs(event)) - (1 + event.shape) * fall


def expected_runs(event: Selection) -> float:
    """E K."""
    stop = event.stop
    if stop == 1 or event.most == 1:
        return 1.0
    if event.most:
        return -math.expm1(event.most * math.log1p(-stop)) / stop
    return 1 / stop if event.shape else (1 / stop - 1) / -math.log(stop)


def stop_for(runs: float, shape: int = 1) -> float:
    """The ``stop`` with which as many ``runs`` are expected, to the next multiple of 2⁻⁴⁰."""
    if not 1 <= number(runs) <= 10_000:
        raise BadInput(f"The expected number of runs must be a number from 1 to 10,000, not {runs!r}.")
    if shape == 0 and runs > 1000:
        raise BadInput(
            "At most 1,000 runs can be expected of a logarithmic number: more take too long to draw exactly."
        )
    if runs == 1:
        return 1.0
    if shape:
        exact = 1 / float(runs)
    else:
        exact = math.exp(brentq(lambda log: math.log(-math.expm1(log) / math.exp(log) / -log / runs), -14, -1e-9))
    return math.ceil(exact / _GRID) * _GRID


@memo(256)
def _cells(event: Selection) -> tuple[Array, Array]:
    """For cells that cover all u: log w at their lower end, log w(G) at their upper end; so no u is worse than its cell."""
    x = np.linspace(0.0, 1.0, _CELLS + 1)
    ratio = (1 - event.stop) / event.stop
    # even steps of log(1 + ratio·u), where w varies; and of Φ⁻¹(u), where G does
    u = np.expm1(x * math.log1p(ratio)) / ratio if ratio > 0 else x
    u = np.unique(np.clip(np.concatenate([u, ndtr(np.linspace(-14, 14, _CELLS // 4))]), 0.0, 1.0))
    worse = ndtr(ndtri(u) + 1 / event.noise_multiplier)
    return log_weight(event, u[:-1]), log_weight(event, worse[1:])


@memo(256)
def _chords(event: Selection) -> tuple[Array, Array, Array]:
    """Knots log t_j, and a_j + b_j·t ≥ H(t) = sup_u (t·w(u) − w(G(u)))₊ between them; H is convex and H(0) = 0."""
    here, there = _cells(event)
    w, against = np.exp(here), np.exp(there)
    least = -float((here - there).max())  # below, H is zero
    knots = np.linspace(least, least + max(4 * -least, 1.0), _KNOTS)
    t = np.exp(knots)
    height = np.array([max(float((one * w - against).max()), 0.0) for one in t])
    slope = np.concatenate([[height[0] / t[0]], np.diff(height) / np.diff(t), [expected_runs(event)]])
    start = np.concatenate([[0.0], height[:-1] - slope[1:-1] * t[:-1], [height[-1] - slope[-1] * t[-1]]])
    return knots, start, slope


def selection_delta(event: Selection, eps: float) -> float:
    """An upper bound on δ at ``eps`` ≥ 0 of one search."""
    mu = 1 / event.noise_multiplier
    knots, start, slope = _chords(event)
    y = np.concatenate([[-np.inf], (knots + eps) / mu + mu / 2, [np.inf]])  # where the likelihood ratio passes a knot
    p, other = (-np.diff(ndtr(-(y - shift))) for shift in (mu, 0.0))  # differences of upper tails keep their digits
    terms = math.exp(eps) * start * other + slope * p
    doubt = math.exp(eps) * np.abs(start) * other + slope * p  # a chord's two parts cancel
    return float(np.maximum(terms, 0.0).sum() * (1 + _SAFE) + 1e-12 * doubt.sum())


@memo(4096)
def selection_epsilon(event: Selection, delta: float) -> float:
    """An upper bound on ε at ``delta`` > 0 of one search (``event.count`` is not looked at)."""
    target = math.log(delta)

    def excess(eps: float) -> float:
        return math.log(max(selection_delta(event, eps), 1e-320)) - target

    if excess(0.0) <= 0:
        return 0.0
    high = 1.0
    while excess(high) > 0:
        high *= 2
        if high > 600:
            return math.inf
    eps = float(brentq(excess, 0.0, high, xtol=1e-14, rtol=8.9e-16))
    step = 1e-15
    while excess(eps) > 0:
        eps *= 1 + step
        step *= 2
    return eps


@memo(1024)
def calibrate_selection(eps: float, delta: float, *, shape: int = 1, stop: float = 1.0, most: int = 0) -> float:
    """Least noise multiplier of one run with which the search as a whole is (ε, δ)-DP; rounded up."""

    def total(log: float) -> float:
        return selection_epsilon(Selection(1, math.exp(log), shape, stop, most), delta)

    low = high = 0.0
    while total(high) > eps:
        high += 1
    while total(low) <= eps:
        low -= 1
    multiplier = math.exp(brentq(lambda log: total(log) - eps, low, high, xtol=1e-13, rtol=1e-13))
    step = 1e-15
    while selection_epsilon(Selection(1, multiplier, shape, stop, most), delta) > eps:
        multiplier *= 1 + step
        step *= 2
    return multiplier


def selection_renyi(event: Selection, order: float) -> float:
    """An upper bound on the Rényi divergence of ``order`` > 1 of one search."""
    here, there = _cells(event)
    return order / event.noise_multiplier**2 / 2 + float((order * here - (order - 1) * there).max()) / (order - 1)


def renyi_to_epsilon(divergence: float, order: float, delta: float) -> float:
    """ε at ``delta`` from a Rényi divergence (Canonne, Kamath and Steinke 2020; Asoodeh et al. 2021); rounded up."""
    log = math.log(delta) + math.log(order)
    return max((divergence + math.log1p(-1 / order) - log / (order - 1)) * (1 + 1e-12) + 1e-12, 0.0)


@memo(1024)
def best_order(event: Selection, delta: float) -> float:
    """The order at which one search is cheapest: what an account that begins with it is counted by."""
    totals = [renyi_to_epsilon(selection_renyi(event, order), order, delta) for order in ORDERS]
    return float(ORDERS[int(np.argmin(totals))])


def papernot_steinke(event: Selection, delta: float) -> float:
    """ε by Papernot and Steinke's Theorem 2, which `selection_epsilon` improves on; to compare with."""
    mu, stop, power = 1 / event.noise_multiplier, event.stop, 1 + event.shape
    second = max(math.sqrt(2 * -math.log(stop)) / mu, 1.0)  # the best second order
    other = power * ((second - 1) * mu * mu / 2 - math.log(stop) / second)
    runs = math.log(expected_runs(event))
    orders = 1 + np.exp(np.linspace(-4, 9, 20_000))
    divergence = orders * mu * mu / 2 + other + runs / (orders - 1)
    log = math.log(delta) + np.log(orders)
    return float(np.min(divergence + np.log1p(-1 / orders) - log / (orders - 1)))


def liu_talwar_split(eps: float, delta: float, stop: float) -> tuple[float, float, int]:
    """What Algorithm 2 of Honkela et al. allows each run, (ε, δ), and the most runs: their Eqs (20), (34), (35).

    t(1 − log t) = δ has one root below 1; the printed algorithm does not say which one to take.
    """
    log_t = float(brentq(lambda log: math.exp(log) * (1 - log) - delta, -700, 0))
    each = stop**2 * math.exp(2 * log_t) / 2
    left = eps / 3 - math.sqrt(2 * each)
    if left <= 0:
        raise BadInput(f"epsilon = {eps:g} is too small for Liu and Talwar's scheme: use papernot-steinke.")
    return left, each, int(-log_t / stop)
