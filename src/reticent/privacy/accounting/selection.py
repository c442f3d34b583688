"""Private selection: what the best of a random number of runs costs.

See Papernot and Steinke 2021, Liu and Talwar 2019. One run Q draws a candidate, fits it on one part
of the records and scores it on the other; a replaced record touches one part, so Q is a Gaussian
mechanism with μ = 1/multiplier. A is the best of K runs, K from a distribution that is fixed
beforehand. With φ(x) = E xᴷ, w(u) = φ′(1−u) and G(u) = Φ(Φ⁻¹(u) + μ), the best that a test of false
alarm rate u can do against Q,

    δ_A(ε) ≤ ∫ sup_u (w(u)·p(y) − e^ε·w(G(u))·p′(y))₊ dy,    p = N(μ, 1), p′ = N(0, 1)
    R_A(λ) ≤ λμ²/2 + sup_u (λ·log w(u) − (λ−1)·log w(G(u))) / (λ−1)

with the Rényi divergence R_A(λ) of order λ. The suprema are taken over cells of u from above, the
integral by chords of a convex function: both are upper bounds whatever the cells. At 100 expected
runs (logarithmic) they ask for 20 % less noise than Papernot and Steinke's theorem. Proof:
selection.md.
"""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri

from reticent.errors import BadInput
from reticent.memo import memo
from reticent.privacy.accounting.events import Selection
from reticent.validation import as_float

__all__ = [
    "ORDERS",
    "best_order",
    "calibrate_selection",
    "expected_runs",
    "liu_talwar_split",
    "log_weight",
    "renyi_to_epsilon",
    "selection_delta",
    "selection_epsilon",
    "selection_renyi",
    "stop_for",
]

Array = NDArray[np.float64]

_CELLS = 2**13
_KNOTS = 384
_GRID = 2.0**-40
_SAFE = 1e-9  # relative; the roundings of a sum of positive terms stay far below
ORDERS = 1 + np.exp(np.linspace(math.log(0.02), math.log(1e5), 400))


def log_weight(event: Selection, u: Array) -> Array:
    """Return log w(u) = log φ′(1−u), shape of ``u``.

    How much likelier than one run the best of K is to be an output that a fraction u of the runs
    beats.
    """
    stop = event.stop
    if event.most:
        # 1 − q, without a difference
        left = np.minimum(stop + (1 - stop) * u, 1 - 1e-15)
        most = event.most
        log_tail = (most - 1) * np.log1p(-left)
        # γΣ_{k<T} k q^(k−1)
        geometric = -stop * np.expm1(log_tail + np.log1p((most - 1) * left)) / left**2
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
    if event.shape:
        return 1 / stop
    return (1 / stop - 1) / -math.log(stop)


def stop_for(runs: float, shape: int = 1) -> float:
    """The ``stop`` with which as many ``runs`` are expected, to the next multiple of 2⁻⁴⁰."""
    if not 1 <= as_float(runs) <= 10_000:
        raise BadInput(
            f"expected_runs must be a number from 1 to 10,000, not {runs!r}.",
            parameter="expected_runs",
        )
    if shape == 0 and runs > 1000:
        raise BadInput(
            "At most 1,000 runs can be expected of a logarithmic number: more "
            "take too long to draw exactly."
        )
    if runs == 1:
        return 1.0
    if shape:
        exact = 1 / float(runs)
    else:
        exact = math.exp(
            brentq(lambda log: math.log(-math.expm1(log) / math.exp(log) / -log / runs), -14, -1e-9)
        )
    return math.ceil(exact / _GRID) * _GRID


@memo(256)
def _cells(event: Selection) -> tuple[Array, Array]:
    """For cells that cover all u: log w at their lower end, log w(G) at their upper end.

    So no u is worse than its cell.
    """
    x = np.linspace(0.0, 1.0, _CELLS + 1)
    ratio = (1 - event.stop) / event.stop
    # even steps of log(1 + ratio·u), where w varies; and of Φ⁻¹(u), where G does
    if ratio > 0:
        u = np.expm1(x * math.log1p(ratio)) / ratio
    else:
        u = x
    u = np.unique(np.clip(np.concatenate([u, ndtr(np.linspace(-14, 14, _CELLS // 4))]), 0.0, 1.0))
    worse = ndtr(ndtri(u) + 1 / event.noise_multiplier)
    return log_weight(event, u[:-1]), log_weight(event, worse[1:])


@memo(256)
def _chords(event: Selection) -> tuple[Array, Array, Array]:
    """Knots log t_j, and a_j + b_j·t ≥ H(t) = sup_u (t·w(u) − w(G(u)))₊ between them.

    H is convex and H(0) = 0.
    """
    here, there = _cells(event)
    w = np.exp(here)
    against = np.exp(there)
    least = -float((here - there).max())  # below, H is zero
    knots = np.linspace(least, least + max(4 * -least, 1.0), _KNOTS)
    t = np.exp(knots)
    height = np.array([max(float((one * w - against).max()), 0.0) for one in t])
    slope = np.concatenate(
        [[height[0] / t[0]], np.diff(height) / np.diff(t), [expected_runs(event)]]
    )
    start = np.concatenate(
        [[0.0], height[:-1] - slope[1:-1] * t[:-1], [height[-1] - slope[-1] * t[-1]]]
    )
    return knots, start, slope


def selection_delta(event: Selection, eps: float) -> float:
    """An upper bound on δ at ``eps`` ≥ 0 of one search."""
    mu = 1 / event.noise_multiplier
    knots, start, slope = _chords(event)
    # Where the likelihood ratio passes a knot.
    y = np.concatenate([[-np.inf], (knots + eps) / mu + mu / 2, [np.inf]])
    # Differences of upper tails keep their digits.
    p, other = (-np.diff(ndtr(-(y - shift))) for shift in (mu, 0.0))
    terms = math.exp(eps) * start * other + slope * p
    sizes = math.exp(eps) * np.abs(start) * other + slope * p  # a chord's two parts cancel
    return float(np.maximum(terms, 0.0).sum() * (1 + _SAFE) + 1e-12 * sizes.sum())


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
def calibrate_selection(
    eps: float, delta: float, *, shape: int = 1, stop: float = 1.0, most: int = 0
) -> float:
    """Least noise multiplier of one run with which the search as a whole is (ε, δ)-DP.

    Rounded up.
    """

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
    return order / event.noise_multiplier**2 / 2 + float(
        (order * here - (order - 1) * there).max()
    ) / (order - 1)


def renyi_to_epsilon(divergence: float, order: float, delta: float) -> float:
    """Return ε at ``delta`` from a Rényi divergence of one order; rounded up.

    Canonne, Kamath and Steinke 2020; Asoodeh et al. 2021.
    """
    log = math.log(delta) + math.log(order)
    return max((divergence + math.log1p(-1 / order) - log / (order - 1)) * (1 + 1e-12) + 1e-12, 0.0)


@memo(1024)
def best_order(event: Selection, delta: float) -> float:
    """The order at which one search is cheapest.

    What an account that begins with it is counted by.
    """
    totals = [renyi_to_epsilon(selection_renyi(event, order), order, delta) for order in ORDERS]
    return float(ORDERS[int(np.argmin(totals))])


def liu_talwar_split(eps: float, delta: float, stop: float) -> tuple[float, float, int]:
    """What Algorithm 2 of Honkela et al. allows each run, (ε, δ), and the most runs.

    Their Eqs (20), (34), (35).

    t(1 − log t) = δ has one root below 1; the printed algorithm does not say which one to take.
    """
    log_t = float(brentq(lambda log: math.exp(log) * (1 - log) - delta, -700, 0))
    each = stop**2 * math.exp(2 * log_t) / 2
    left = eps / 3 - math.sqrt(2 * each)
    if left <= 0:
        raise BadInput(
            f"epsilon = {eps:g} is too small for Liu and Talwar's scheme: use papernot-steinke."
        )
    return left, each, int(-log_t / stop)
