"""Accounting: from events to (ε, δ), and from (ε, δ) to a noise multiplier. Both round to the safe side.

Gaussian events compose exactly: J of them with multipliers z_j act as one with μ² = Σ 1/z_j², for which

    δ(ε) = Φ(−x) − e^ε Φ(−x−μ) = pdf(x) (M(x) − M(x+μ)),    x = ε/μ − μ/2,    M(t) = (1−Φ(t))/pdf(t)  (Mills' ratio),

where the second form, in logarithms, loses no digits however small δ is. μ² is summed in integers, so that neither
the order of the charges nor the way they were grouped changes the total by a single bit.

With other events among them there are three upper bounds, and the least is taken: the sum of the parts; the Gaussian
mechanisms that dominate them, composed exactly; privacy-loss distributions by `dp_accounting`, imported only when needed.
Proof of every step: accounting.md.

The best of several runs (`Selection`) is counted by itself in selection.py, and among other events by Rényi divergences.
"""

import math
from collections import Counter
from collections.abc import Iterable
from decimal import ROUND_CEILING, Context
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import erfcx, erfinv, ndtr, ndtri

from reticent.errors import BadInput
from reticent.memo import memo
from reticent.privacy.events import Event, Gaussian, Laplace, Pure, Selection, is_event
from reticent.privacy.given import check_whole, number
from reticent.privacy.selection import ORDERS, best_order, renyi_to_epsilon, selection_epsilon, selection_renyi

__all__ = [
    "account_epsilon",
    "calibrate",
    "check_epsilon_delta",
    "epsilon",
    "gaussian_mu",
    "log_delta",
    "remaining_epsilon",
    "rounded_up",
]

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)
_FIXED = 512  # μ² is an integer multiple of 2^-512
_CELLS = 2**18  # of the grid of privacy losses
_FFT_ERROR = 2e-14  # in δ, for each use that is composed by FFT
_HUGE = 30.0  # a use with a larger ε, or μ, gains nothing over the sum

_Use = tuple[str, float, int]  # a mechanism that is not Gaussian: kind, ε of one use, number of uses


def check_epsilon_delta(eps: object, delta: object, *, pure: bool = False) -> tuple[float, float]:
    """Return (ε, δ) as floats, or say what is wrong with them. ``pure`` allows δ = 0."""
    if not 0 < number(eps) < math.inf:
        raise BadInput(
            f"epsilon must be a positive number, not {eps!r}. It is the strength of the promise: 1 is a common choice, "
            "smaller protects more. There is no default, because it is yours to decide."
        )
    least_ok = "0 <= delta" if pure else "0 < delta"
    if not (0 < number(delta) < 1 or (pure and number(delta) == 0)):
        raise BadInput(
            f"delta must be a number with {least_ok} < 1, not {delta!r}. It is the chance that the promise may fail: take it "
            "well below 1/(number of records), for example 1e-6."
        )
    return number(eps), number(delta)


def _minus_mills_slope(t: np.ndarray) -> np.ndarray:
    """−M′(t) = 1 − t·M(t), for t ≥ −1; its asymptotic series where the difference would cancel."""
    direct = 1 - t * math.sqrt(math.pi / 2) * erfcx(t / math.sqrt(2))
    v = 1 / np.maximum(t, 1) ** 2
    series = v * (1 - v * (3 - v * (15 - v * (105 - v * (945 - v * 10395)))))
    slope: np.ndarray = np.where(t > 50, series, direct)
    return slope


def log_delta(eps: float, mu: float) -> float:
    """log δ(ε) of a Gaussian mechanism with μ = sensitivity / standard deviation."""
    x = eps / mu - mu / 2
    if mu <= 1:  # M(x) − M(x+μ) would cancel: integrate its slope, which is smooth and positive
        t = x + mu * (_NODES + 1) / 2
        difference = mu / 2 * float(_WEIGHTS @ _minus_mills_slope(t))
    elif x >= 0:
        difference = math.sqrt(math.pi / 2) * float(erfcx(x / math.sqrt(2)) - erfcx((x + mu) / math.sqrt(2)))
    else:  # δ is not small here, and no digits are lost
        return math.log(float(ndtr(-x)) - math.exp(-x * x / 2) / 2 * float(erfcx((x + mu) / math.sqrt(2))))
    return -x * x / 2 - math.log(2 * math.pi) / 2 + math.log(difference)


def _log_delta_above(eps: float, mu: float) -> float:
    """An upper bound on log δ(ε): the value plus more than its rounding error (checked against mpmath in the tests)."""
    x = eps / mu - mu / 2
    return log_delta(eps, mu) + 1e-12 + 4e-15 * (abs(x) + 1) * (abs(x) + mu)


def gaussian_mu(events: Iterable[Event]) -> float:
    """μ of the Gaussian events among ``events``, composed; rounded up. Zero if there are none."""
    total = 0
    for event in events:
        if isinstance(event, Gaussian):
            p, q = event.noise_multiplier.as_integer_ratio()
            total += event.count * -(-((q * q) << _FIXED) // (p * p))
    if not total:
        return 0.0
    root = math.isqrt(total) + 1
    return math.nextafter(root / (1 << _FIXED // 2), math.inf)


@memo(4096)
def _gaussian_epsilon(mu: float, delta: float) -> float:
    target = math.log(delta)
    if mu == math.inf:
        return math.inf
    if _log_delta_above(0.0, mu) <= target:
        return 0.0
    high = mu * mu / 2 + mu * math.sqrt(2 * -target) + mu  # δ(ε) ≤ Φ(−x) ≤ exp(−x²/2)
    eps = brentq(lambda e: _log_delta_above(e, mu) - target, 0.0, high, xtol=1e-300, rtol=8.9e-16, maxiter=1000)
    step = 1e-15
    while _log_delta_above(eps, mu) > target:  # the root may lie a few units on the wrong side
        eps *= 1 + step
        step *= 2
    return float(eps)


def _other_uses(events: Iterable[Event]) -> list[_Use]:
    """All uses that are not Gaussian; equal ones together and in one order, so that grouping and order do not matter."""
    uses: Counter[tuple[str, float]] = Counter()
    for event in events:
        if not is_event(event):
            raise BadInput(f"There is no accounting for events of type {type(event).__name__}.")
        if isinstance(event, Pure):
            uses[event.kind, event.epsilon] += event.count
        elif isinstance(event, Laplace):
            uses[event.kind, math.nextafter(1 / event.noise_multiplier, math.inf)] += event.count
    return sorted((kind, eps, count) for (kind, eps), count in uses.items())


def _dominating_mu(mu: float, uses: Iterable[_Use]) -> float:
    """μ of Gaussian mechanisms that reveal at least as much as all uses together; rounded up.

    A coin that is right with probability p = 1/(1+e^−ε) is the worst that a pure-ε mechanism can be, and it is what is
    left of a Gaussian mechanism with Φ(μ/2) = p when only the side of the midpoint is told.
    """
    squares = [mu * mu]
    for _, eps, count in uses:
        if eps > _HUGE:
            return math.inf
        half = math.sqrt(2) * erfinv(math.tanh(eps / 2)) if eps < 1 else -ndtri(1 / (1 + math.exp(eps)))
        squares.append(count * (2 * float(half)) ** 2)
    return math.sqrt(math.fsum(squares)) * (1 + 1e-9)


def _pld_epsilon(mu: float, uses: list[_Use], delta: float) -> float:
    """Compose by privacy-loss distributions on a grid, every step to the pessimistic side; inf if that is no use."""
    doubt = _FFT_ERROR * (sum(count for _, _, count in uses) + 1)
    if delta <= 2 * doubt:
        return math.inf
    from dp_accounting.pld import privacy_loss_distribution as pld

    spread = math.sqrt(math.fsum([mu * mu, *(count * eps * eps for _, eps, count in uses)]))
    step = max(20 * spread / _CELLS, 1e-9)  # all but 1e-15 lies within ±8.2 spreads; below 1e-9 the masses lose digits
    total = None
    for kind, eps, count in uses:
        laplace = kind == Laplace.kind
        one = pld.from_laplace_mechanism(1 / eps, value_discretization_interval=step) if laplace else _coin(eps, step)
        total = _repeated(one, count, total)
    if mu:
        total = _repeated(pld.from_gaussian_mechanism(1 / mu, value_discretization_interval=step), 1, total)
    assert total is not None
    found = float(total.get_epsilon_for_delta(delta - doubt)) * (1 + 1e-10)
    while total.get_delta_for_epsilon(found) > delta - doubt:  # its losses are added up in floats
        found += step / 100
    return found


def _coin(eps: float, step: float) -> Any:
    """Privacy losses of the worst pure-ε mechanism, put on the grid by connecting the dots of δ(·)."""
    from dp_accounting.pld import pld_pmf
    from dp_accounting.pld import privacy_loss_distribution as pld

    inner = math.floor(eps / step)
    cells = sorted({-inner - 1, -inner, inner, inner + 1})
    deltas = [-math.expm1(min(t - eps, 0.0)) / (1 + math.exp(-eps)) for t in (cell * step for cell in cells)]
    deltas[0] = -math.expm1(cells[0] * step)  # beyond −ε
    return pld.PrivacyLossDistribution(pld_pmf.create_pmf_pessimistic_connect_dots(step, cells, deltas))


def _repeated(one: Any, count: int, total: Any) -> Any:
    """Compose ``total`` with ``count`` times ``one``, by doubling: the arrays stay as short as the tails allow."""
    while count:
        if count & 1:
            total = one if total is None else total.compose(one)
        count >>= 1
        if count:
            one = one.compose(one)
    return total


def epsilon(events: Event | Iterable[Event], delta: float) -> float:
    """ε at ``delta`` of all ``events`` together; never below the truth.

    Exact to 1e-12 for Gaussian events, a close upper bound with other kinds among them.

    >>> from reticent.privacy.events import Gaussian
    >>> round(epsilon(Gaussian(noise_multiplier=3.7306316348159), 1e-5), 9)
    1.0
    """
    events = [events] if isinstance(events, Event) else list(events)
    delta = check_epsilon_delta(1, delta, pure=True)[1]
    mu, uses = gaussian_mu(events), _other_uses(events)
    if any(isinstance(event, Selection) for event in events):
        single = _alone(events, delta)
        return min(_renyi_epsilon(events, order, delta) for order in ORDERS) if single is None else single
    pure = math.fsum(count * eps for _, eps, count in uses)
    if uses:
        pure = math.nextafter(pure * (1 + 4e-16), math.inf)
    if delta == 0:
        return math.inf if mu else pure
    summed = pure + (_gaussian_epsilon(mu, delta) if mu else 0.0)
    alone = sum(count for _, _, count in uses) == 1 and not mu
    if not uses or alone or max(mu, *(eps for _, eps, _ in uses)) > _HUGE:
        return summed
    return min(summed, _gaussian_epsilon(_dominating_mu(mu, uses), delta), _pld_epsilon(mu, uses, delta))


def _alone(events: list[Event], delta: float) -> float | None:
    """ε of a single search, or infinity for δ = 0; None for several events."""
    if delta == 0:
        return math.inf
    (first, *more) = events
    return selection_epsilon(first, delta) if isinstance(first, Selection) and first.count == 1 and not more else None


def _renyi_epsilon(events: Iterable[Event], order: float, delta: float) -> float:
    """ε from the sum of the events' Rényi divergences of one order."""
    total = []
    for event in events:
        if isinstance(event, Selection):
            one = selection_renyi(event, order)
        elif isinstance(event, Gaussian):
            one = order / event.noise_multiplier**2 / 2
        else:
            one = _coin_renyi(event.epsilon if isinstance(event, Pure) else 1 / event.noise_multiplier, order)  # type: ignore[attr-defined]
        total.append(event.count * one)
    return renyi_to_epsilon(math.fsum(total) * (1 + 1e-12), order, delta)


def _coin_renyi(eps: float, order: float) -> float:
    """Rényi divergence of the worst pure-ε mechanism, which is at most ε."""
    right = -math.log1p(math.exp(-eps))
    terms = order * right + (1 - order) * (right - eps), order * (right - eps) + (1 - order) * right
    return min(float(np.logaddexp(*terms)) / (order - 1), eps)


def calibrate(epsilon: float, delta: float, *, releases: int = 1) -> float:
    """Least noise multiplier with which ``releases`` Gaussian releases together are (ε, δ)-DP; rounded up.

    Multiply it by the L2 sensitivity to get the standard deviation of the noise. For δ = 0 the multiplier is that of
    Laplace noise, to be multiplied by the L1 sensitivity.

    >>> round(calibrate(1.0, 1e-5), 10)
    3.7306316348
    """
    eps, delta = check_epsilon_delta(epsilon, delta, pure=True)
    check_whole("releases", releases)
    releases = int(releases)
    kind = Gaussian if delta else Laplace
    multiplier = math.sqrt(releases) / _largest_mu(eps, delta) if delta else releases / eps
    step = 1e-16
    while _total(kind, multiplier, releases, delta) > eps:
        multiplier *= 1 + step
        step *= 2
    return multiplier


def _total(kind: type[Gaussian] | type[Laplace], multiplier: float, releases: int, delta: float) -> float:
    return epsilon(kind(count=releases, noise_multiplier=multiplier), delta)


def _largest_mu(eps: float, delta: float) -> float:
    target = math.log(delta)
    low = high = math.sqrt(2) * math.sqrt(eps)  # x = 0
    while _log_delta_above(eps, high) <= target:
        high *= 2
    while _log_delta_above(eps, low) > target:
        low /= 2
    return float(brentq(lambda mu: _log_delta_above(eps, mu) - target, low, high, xtol=1e-300, rtol=8.9e-16))


def account_epsilon(events: Iterable[Event], delta: float) -> float:
    """ε at ``delta`` of an account whose events may each be chosen in view of all earlier results: a privacy filter.

    The same as `epsilon` for Gaussian events. Other kinds are counted by Gaussians that reveal at least as much, or, where
    there are no Gaussian events, by their sum if that is less: `epsilon` is smaller, but holds only for a list of events that was
    fixed beforehand (accounting.md, 3). The order of the events matters where a search is among them: an account that begins
    with one is counted by Rényi divergences of the order that suits it; to others a search cannot be charged (selection.md, 5).
    """
    events = list(events)
    mu, uses = gaussian_mu(events), _other_uses(events)
    if any(isinstance(event, Selection) for event in events):
        first = events[0]
        if not isinstance(first, Selection):
            return math.inf
        single = _alone(events, delta)
        return _renyi_epsilon(events, best_order(first, delta), delta) if single is None else single
    if delta == 0 or not uses:
        return epsilon(events, delta)
    dominated = _gaussian_epsilon(_dominating_mu(mu, uses), delta)
    return dominated if mu else min(dominated, epsilon(events, 0.0))


def remaining_epsilon(events: Iterable[Event], epsilon_cap: float, delta: float) -> float:
    """Largest ε that one more release, calibrated to (ε, δ), may spend on top of ``events``; rounded down.

    The release is Gaussian, or Laplace for δ = 0. Zero if nothing is left.

    >>> from reticent.privacy.events import Gaussian
    >>> round(remaining_epsilon([Gaussian(noise_multiplier=calibrate(1, 1e-6))], 2, 1e-6), 3)
    1.673
    """
    events = list(events)
    cap, delta = check_epsilon_delta(min(epsilon_cap, 1e9), delta, pure=True)  # beyond, nothing is protected
    if not events:
        return cap
    kind = Gaussian if delta else Laplace

    def fits(eps: float) -> bool:
        try:
            event = kind(noise_multiplier=calibrate(eps, delta))
        except BadInput:  # less than the least that an event can state
            return False
        return account_epsilon([*events, event], delta) <= cap

    if isinstance(events[0], Selection):
        return _remaining_beside(events, events[0], cap, delta)
    if delta:  # in units of μ², which add up
        uses = _other_uses(events)
        mu = _dominating_mu(gaussian_mu(events), uses) if uses else gaussian_mu(events)
        whole, used = _largest_mu(cap, delta) ** 2, mu * mu
    else:
        whole, used = cap, epsilon(events, 0.0)
    room = whole - used
    if room <= 0:
        return 0.0
    best = min(_gaussian_epsilon(math.sqrt(room), delta), cap) if delta else room
    best *= 1 - 1e-11  # so that a little less fits as well, whichever way its own calibration rounds
    step = 1e-16 * whole / room  # the rounding error of the difference
    while best > 0 and not fits(best):
        best = best * (1 - step) if step < 1 else 0.0
        step *= 2
    return best


def _remaining_beside(events: list[Event], search: Selection, cap: float, delta: float) -> float:
    """The same for an account that begins with a search; rounded down."""
    if delta == 0:
        return 0.0
    order = best_order(search, delta)
    room = (cap - _renyi_epsilon(events, order, delta)) * (1 - 1e-9) - 1e-9
    return _gaussian_epsilon(math.sqrt(2 * room / order), delta) * (1 - 1e-9) if room > 0 else 0.0


def rounded_up(value: float, digits: int) -> float:
    """The least number of so many digits that is not below ``value``: what is printed of a promise is never better than it.

    >>> rounded_up(1.0000004, 6), rounded_up(0.1, 6), rounded_up(9.99e-6, 2)
    (1.00001, 0.1, 1e-05)
    """
    if not math.isfinite(value):
        return value
    return float(Context(prec=digits, rounding=ROUND_CEILING).create_decimal(repr(float(value))))
