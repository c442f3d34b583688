"""Composition: from events to (ε, δ), and from (ε, δ) to a noise multiplier.

Everything rounds to the safe side. Gaussian events compose exactly (gaussian.py). With other events
among them there are three upper bounds, and the least is taken: the sum of the parts; the Gaussian
mechanisms that dominate them, composed exactly; privacy-loss distributions by `dp_accounting`,
imported only when needed. The best of several runs (`Selection`) is counted by itself in
selection.py, and among other events by Rényi divergences. Proof of every step: accounting.md.

`epsilon` holds for a list of events that was fixed beforehand, `account_epsilon` also for an
account whose events are chosen in view of earlier results.
"""

import math
from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy.special import erfinv, ndtri

from reticent.errors import BadInput
from reticent.privacy.accounting.events import Event, Gaussian, Laplace, Pure, Selection, is_event
from reticent.privacy.accounting.gaussian import gaussian_epsilon, gaussian_mu, largest_mu
from reticent.privacy.accounting.selection import (
    ORDERS,
    best_order,
    renyi_to_epsilon,
    selection_epsilon,
    selection_renyi,
)
from reticent.validation import check_epsilon_delta, check_integer

__all__ = ["account_epsilon", "calibrate", "epsilon", "remaining_epsilon"]

_CELLS = 2**18  # of the grid of privacy losses


_FFT_ERROR = 2e-14  # in δ, for each use that is composed by FFT


_HUGE = 30.0  # a use with a larger ε, or μ, gains nothing over the sum


# A mechanism that is not Gaussian: kind, ε of one use, number of uses.
_Use = tuple[str, float, int]


def _other_uses(events: Iterable[Event]) -> list[_Use]:
    """All uses that are not Gaussian.

    Equal ones together and in one order, so that grouping and order do not matter.
    """
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

    A coin that is right with probability p = 1/(1+e^−ε) is the worst that a pure-ε mechanism can
    be, and it is what is left of a Gaussian mechanism with Φ(μ/2) = p when only the side of the
    midpoint is told.
    """
    squares = [mu * mu]
    for _, eps, count in uses:
        if eps > _HUGE:
            return math.inf
        if eps < 1:
            half = math.sqrt(2) * erfinv(math.tanh(eps / 2))
        else:
            half = -ndtri(1 / (1 + math.exp(eps)))
        squares.append(count * (2 * float(half)) ** 2)
    return math.sqrt(math.fsum(squares)) * (1 + 1e-9)


def _pld_epsilon(mu: float, uses: list[_Use], delta: float) -> float:
    """Compose by privacy-loss distributions on a grid, every step to the pessimistic side.

    Inf if that is no use.
    """
    rounding = _FFT_ERROR * (sum(count for _, _, count in uses) + 1)
    if delta <= 2 * rounding:
        return math.inf
    from dp_accounting.pld import privacy_loss_distribution as pld

    spread = math.sqrt(math.fsum([mu * mu, *(count * eps * eps for _, eps, count in uses)]))
    # All but 1e-15 lies within ±8.2 spreads; below 1e-9 the masses lose digits.
    step = max(20 * spread / _CELLS, 1e-9)
    total = None
    for kind, eps, count in uses:
        if kind == Laplace.kind:
            one = pld.from_laplace_mechanism(1 / eps, value_discretization_interval=step)
        else:
            one = _coin(eps, step)
        total = _repeated(one, count, total)
    if mu:
        total = _repeated(
            pld.from_gaussian_mechanism(1 / mu, value_discretization_interval=step), 1, total
        )
    assert total is not None
    found = float(total.get_epsilon_for_delta(delta - rounding)) * (1 + 1e-10)
    while (
        total.get_delta_for_epsilon(found) > delta - rounding
    ):  # its losses are added up in floats
        found += step / 100
    return found


def _coin(eps: float, step: float) -> Any:
    """Privacy losses of the worst pure-ε mechanism, on a grid of ``step``.

    Put there by connecting the dots of δ(·).
    """
    from dp_accounting.pld import pld_pmf
    from dp_accounting.pld import privacy_loss_distribution as pld

    inner = math.floor(eps / step)
    cells = sorted({-inner - 1, -inner, inner, inner + 1})
    deltas = [
        -math.expm1(min(t - eps, 0.0)) / (1 + math.exp(-eps))
        for t in (cell * step for cell in cells)
    ]
    deltas[0] = -math.expm1(cells[0] * step)  # beyond −ε
    return pld.PrivacyLossDistribution(
        pld_pmf.create_pmf_pessimistic_connect_dots(step, cells, deltas)
    )


def _repeated(one: Any, count: int, total: Any) -> Any:
    """Compose ``total`` with ``count`` times ``one``, by doubling.

    The arrays stay as short as the tails allow.
    """
    while count:
        if count & 1:
            if total is None:
                total = one
            else:
                total = total.compose(one)
        count >>= 1
        if count:
            one = one.compose(one)
    return total


def epsilon(events: Event | Iterable[Event], delta: float) -> float:
    """ε at ``delta`` of all ``events`` together; never below the truth.

    Exact to 1e-12 for Gaussian events, a close upper bound with other kinds among them.

    >>> from reticent.privacy.accounting.events import Gaussian
    >>> round(epsilon(Gaussian(noise_multiplier=3.7306316348159), 1e-5), 9)
    1.0
    """
    if isinstance(events, Event):
        events = [events]
    else:
        events = list(events)
    delta = check_epsilon_delta(1, delta, pure=True)[1]
    mu = gaussian_mu(events)
    uses = _other_uses(events)
    if any(isinstance(event, Selection) for event in events):
        single = _alone(events, delta)
        if single is None:
            return min(_renyi_epsilon(events, order, delta) for order in ORDERS)
        return single
    pure = math.fsum(count * eps for _, eps, count in uses)
    if uses:
        pure = math.nextafter(pure * (1 + 4e-16), math.inf)
    if delta == 0:
        if mu:
            return math.inf
        return pure
    summed = pure
    if mu:
        summed += gaussian_epsilon(mu, delta)
    alone = sum(count for _, _, count in uses) == 1 and not mu
    if not uses or alone or max(mu, *(eps for _, eps, _ in uses)) > _HUGE:
        return summed
    return min(
        summed, gaussian_epsilon(_dominating_mu(mu, uses), delta), _pld_epsilon(mu, uses, delta)
    )


def _alone(events: list[Event], delta: float) -> float | None:
    """ε of a single search, or infinity for δ = 0; None for several events."""
    if delta == 0:
        return math.inf
    (first, *more) = events
    if isinstance(first, Selection) and first.count == 1 and not more:
        return selection_epsilon(first, delta)
    return None


def _renyi_epsilon(events: Iterable[Event], order: float, delta: float) -> float:
    """ε from the sum of the events' Rényi divergences of one order."""
    total = []
    for event in events:
        if isinstance(event, Selection):
            one = selection_renyi(event, order)
        elif isinstance(event, Gaussian):
            one = order / event.noise_multiplier**2 / 2
        elif isinstance(event, Pure):
            one = _coin_renyi(event.epsilon, order)
        else:
            one = _coin_renyi(1 / event.noise_multiplier, order)  # type: ignore[attr-defined]
        total.append(event.count * one)
    return renyi_to_epsilon(math.fsum(total) * (1 + 1e-12), order, delta)


def _coin_renyi(eps: float, order: float) -> float:
    """Rényi divergence of the worst pure-ε mechanism, which is at most ε."""
    right = -math.log1p(math.exp(-eps))
    terms = order * right + (1 - order) * (right - eps), order * (right - eps) + (1 - order) * right
    return min(float(np.logaddexp(*terms)) / (order - 1), eps)


def calibrate(epsilon: float, delta: float, *, releases: int = 1) -> float:
    """Least noise multiplier with which ``releases`` Gaussian releases together are (ε, δ)-DP.

    Rounded up. Multiply it by the L2 sensitivity to get the standard deviation of the noise. For
    δ = 0 the multiplier is that of Laplace noise, to be multiplied by the L1 sensitivity.

    >>> round(calibrate(1.0, 1e-5), 10)
    3.7306316348
    """
    eps, delta = check_epsilon_delta(epsilon, delta, pure=True)
    check_integer("releases", releases)
    releases = int(releases)
    kind = Gaussian if delta else Laplace
    if delta:
        multiplier = math.sqrt(releases) / largest_mu(eps, delta)
    else:
        multiplier = releases / eps
    step = 1e-16
    while _total(kind, multiplier, releases, delta) > eps:
        multiplier *= 1 + step
        step *= 2
    return multiplier


def _total(
    kind: type[Gaussian] | type[Laplace], multiplier: float, releases: int, delta: float
) -> float:
    return epsilon(kind(count=releases, noise_multiplier=multiplier), delta)


def account_epsilon(events: Iterable[Event], delta: float) -> float:
    """ε at ``delta`` of an account whose events may each be chosen in view of all earlier results.

    A privacy filter. The same as `epsilon` for Gaussian events. Other kinds are counted by
    Gaussians that reveal at least as much, or, where there are no Gaussian events, by their sum if
    that is less: `epsilon` is smaller, but holds only for a list of events that was fixed
    beforehand (accounting.md, 3). The order of the events matters where a search is among them: an
    account that begins with one is counted by Rényi divergences of the order that suits it; to
    others a search cannot be charged (selection.md, 5).
    """
    events = list(events)
    mu = gaussian_mu(events)
    uses = _other_uses(events)
    if any(isinstance(event, Selection) for event in events):
        first = events[0]
        if not isinstance(first, Selection):
            return math.inf
        single = _alone(events, delta)
        if single is None:
            return _renyi_epsilon(events, best_order(first, delta), delta)
        return single
    if delta == 0 or not uses:
        return epsilon(events, delta)
    dominated = gaussian_epsilon(_dominating_mu(mu, uses), delta)
    if mu:
        return dominated
    return min(dominated, epsilon(events, 0.0))


def remaining_epsilon(events: Iterable[Event], epsilon_cap: float, delta: float) -> float:
    """Largest ε that one more release, calibrated to (ε, δ), may spend on top of ``events``.

    Rounded down. The release is Gaussian, or Laplace for δ = 0. Zero if nothing is left.

    >>> from reticent.privacy.accounting.events import Gaussian
    >>> round(remaining_epsilon([Gaussian(noise_multiplier=calibrate(1, 1e-6))], 2, 1e-6), 3)
    1.673
    """
    events = list(events)
    # Beyond an ε of 1e9 nothing is protected.
    cap, delta = check_epsilon_delta(min(epsilon_cap, 1e9), delta, pure=True)
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
        if uses:
            mu = _dominating_mu(gaussian_mu(events), uses)
        else:
            mu = gaussian_mu(events)
        whole = largest_mu(cap, delta) ** 2
        used = mu * mu
    else:
        whole = cap
        used = epsilon(events, 0.0)
    room = whole - used
    if room <= 0:
        return 0.0
    if delta:
        best = min(gaussian_epsilon(math.sqrt(room), delta), cap)
    else:
        best = room
    # So that a little less fits as well, whichever way its own calibration rounds.
    best *= 1 - 1e-11
    step = 1e-16 * whole / room  # the rounding error of the difference
    while best > 0 and not fits(best):
        if step < 1:
            best = best * (1 - step)
        else:
            best = 0.0
        step *= 2
    return best


def _remaining_beside(events: list[Event], search: Selection, cap: float, delta: float) -> float:
    """The same for an account that begins with a search; rounded down."""
    if delta == 0:
        return 0.0
    order = best_order(search, delta)
    room = (cap - _renyi_epsilon(events, order, delta)) * (1 - 1e-9) - 1e-9
    if room > 0:
        return gaussian_epsilon(math.sqrt(2 * room / order), delta) * (1 - 1e-9)
    return 0.0
