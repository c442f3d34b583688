"""Exact noise on the integers: ⌊σN⌋ for N ~ N(0,1), and ⌊λL⌋ for L ~ Laplace(1).

For an integer z, z + ⌊σN⌋ = ⌊z + σN⌋: adding this noise to an integer is post-processing of the
real-valued mechanism, so the real-valued mechanism's accounting holds for the program as it stands,
with no rounding term.

One sampler serves both families. Let E(k, f) be f(2k+f)/2 (Gaussian) or f (Laplace). With
σ = w/2ᵉ, w ≥ 2⁴⁰:

    k  with P(k) ∝ exp(−E(0, k)),   j uniform on 0 … w−1, f uniform on [j, j+1)/w, v uniform on [0,
                                    1)
    accept if v < exp(−E(k, f)); then k + f is distributed as |N| (as |L|), and ⌊w(k+f)⌋ = kw + j
    a fair sign turns it into −(kw+j)−1;   shifting right by e bits divides by 2ᵉ and rounds down
    (e < 0, very large scales: −e more bits of f are drawn and put behind)

The uniforms u (for k), f and v are real numbers of which only some bits are drawn. Where these bits
decide, with a margin far above every floating-point error, the decision is made in float64; where
they don't (about one attempt in 2²⁷) more bits of the same numbers are drawn and the decision is
made in decimal arithmetic of rising precision. Proof: noise.md. Not constant-time: how long a draw
takes depends on the draw.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import (
    ROUND_HALF_EVEN,
    Context,
    Decimal,
    DivisionByZero,
    InvalidOperation,
    Overflow,
    getcontext,
    localcontext,
)
from fractions import Fraction
from functools import cached_property
from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.errors import BadInput, ReleaseRefused
from reticent.memo import memo
from reticent.privacy.random_bits import Bits

__all__ = [
    "FAMILIES",
    "Scale",
    "add_exactly",
    "check_exp",
    "draw_noise",
    "floor_noise",
    "in_units",
    "scale_at_least",
]

FAMILIES = ("gaussian", "laplace")
_U = 32  # bits of u and of v that the fast path looks at
_MARGIN = (
    2.0**-30
)  # times (k+1): cell of v (2^-32), cell of f ((k+1) 2^-40), float64 and exp (2^-31)
_BATCH = 2**16
_PIECE = 2**13  # attempts that are decided together: their numbers stay in a cache
_TOP = 12  # bits of u that mostly tell k
_LOWEST = -8  # no exponent of the fast path is lower
_EXP_ERROR = 2.0**-40  # more than any library's exp is off by, and far less than the margin allows
_precise: list[
    bool
] = []  # whether np.exp was found to be so; no counter that would tell how often it was asked


@dataclass(frozen=True)
class Scale:
    """The noise scale w/2ᵉ, in units of the integer grid; e may be negative."""

    w: int
    e: int

    def __post_init__(self) -> None:
        if not 2**40 <= self.w <= 2**58:
            raise BadInput("A noise scale w/2^e has w from 2^40 to 2^58: use scale_at_least.")

    @cached_property
    def exact(self) -> Fraction:
        """The scale as a fraction."""
        return Fraction(self.w) / Fraction(2) ** self.e


# Which coordinates, as a mask of shape (size,), have noise of which scale, in grid steps.
Scales = Iterable[tuple[NDArray[np.bool_], Scale]]


@memo(64)
def scale_at_least(square: Fraction) -> Scale:
    """Least scale w/2ᵉ with (w/2ᵉ)² ≥ ``square`` > 0.

    Integers only: no rounding to the unsafe side.

    e is 0 for scales from 2⁴⁰ to 2⁵⁸, so that w is the scale; below, w ≥ 2⁴⁰ makes it precise;
    above, w ≤ 2⁵⁸ fits int64.
    """
    square = Fraction(square)
    if square <= 0:
        raise BadInput("There is no noise without a sensitivity and a multiplier above zero.")
    bits = (
        square.numerator.bit_length() - square.denominator.bit_length()
    ) // 2  # of the scale, to within one
    e = 0
    if bits < 41:
        e = 42 - bits
        while square * 4 ** (e - 1) >= 4**40 and e > 0:
            e -= 1
    elif bits > 56:
        e = 57 - bits  # square < 4^(bits + 1), so w ≤ 2⁵⁸
    ceiling = -((-square * Fraction(4) ** e) // 1)
    return Scale(isqrt(ceiling - 1) + 1, e)


def draw_noise(
    family: str, scales: Scales, size: int, step: float, bits: Bits
) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """Draw noise for ``size`` coordinates; one without a scale is refused.

    Returns ⌊noise⌋ in grid steps, as `floor_noise` does, and the scale of each in the units of the
    release; both of shape ``(size,)``. ``family`` is "gaussian" or "laplace", ``step`` a grid step.
    """
    noise: NDArray[Any] = np.zeros(size, dtype=np.int64)
    drawn = np.zeros(size, dtype=bool)
    scale = np.zeros(size)
    for mask, fresh in scales:
        found = floor_noise(family, fresh, int(mask.sum()), bits)
        if found.dtype == object:
            noise = noise.astype(object)
        noise[mask] = found
        drawn[mask] = True
        scale[mask] = float(fresh.exact) * step
    if not drawn.all() or not (scale > 0).all():
        raise ReleaseRefused(
            "A number of this statistic has no noise scale. Nothing is released; the charge stays."
        )
    return noise, scale


def add_exactly(exact: NDArray[np.object_], noise: NDArray[Any]) -> NDArray[Any]:
    """Sums and their noise: in int64 where all are below 2⁶², else in Python's integers."""
    try:
        narrow = exact.astype(np.int64)
    except OverflowError:
        return exact + noise
    parts = narrow, noise
    if noise.dtype == np.int64 and all(_is_narrow(part) for part in parts):
        return narrow + noise
    return exact + noise


def _is_narrow(numbers: NDArray[np.int64]) -> bool:
    """Whether all lie within ±2⁶²: two such numbers add up in int64."""
    return not numbers.size or bool(numbers.min() > -(2**62) and numbers.max() < 2**62)


def in_units(noisy: NDArray[Any], step: float) -> NDArray[np.float64]:
    """Noisy sums, from grid steps to the units of the release.

    ⌊·⌋ has mean −1/2. From here on everything is post-processing, this line included.
    """
    return np.asarray((noisy.astype(np.float64) + 0.5) * step)


def floor_noise(family: str, scale: Scale, size: int, bits: Bits) -> NDArray[Any]:
    """Draw ``size`` independent integers ⌊scale · N⌋ ("gaussian") or ⌊scale · L⌋ ("laplace").

    An array of int64; of Python's integers if some do not fit.
    """
    check_exp()
    if family not in FAMILIES:
        raise BadInput(f"The noise family must be one of {', '.join(FAMILIES)}, not {family!r}.")
    missing = size
    parts: list[NDArray[Any]] = [np.zeros(0, dtype=np.int64)]
    while missing:
        accepted = _attempts(family, scale, min(_BATCH, 2 * missing + 16), bits)[:missing]
        parts.append(accepted)
        missing -= len(accepted)
    return np.concatenate(parts)


def check_exp() -> None:
    """Refuse to draw noise with an np.exp that is not what the margin allows for.

    Once per process, on public numbers. In arrays of several lengths and beginnings, since
    libraries take several numbers at a time, and the rest one by one.
    """
    if _precise:
        return
    x = np.linspace(_LOWEST, 0.0, 257)
    with localcontext(_digits(30)):
        exact = np.array([float(Decimal(float(one)).exp()) for one in x])
    for first in range(4):
        for length in (1, 2, 3, 5, 8, 13, len(x) - first):
            for start in range(first, len(x) - length + 1, length):
                part = slice(start, start + length)
                if not (np.abs(np.exp(x[part]) - exact[part]) <= _EXP_ERROR).all():
                    raise ReleaseRefused(
                        "This machine's np.exp is not precise enough to draw noise with. Install "
                        "NumPy from a standard wheel and try again."
                    )
    _precise.append(True)


def _exponent(family: str, k: Any, f: Any) -> Any:
    """E(k, f), the same for floats, arrays and decimals.

    E(0, k) is the exponent of k's own weight.
    """
    if family == "gaussian":
        return f * (2 * k + f) / 2
    return f


def _attempts(family: str, scale: Scale, count: int, bits: Bits) -> NDArray[Any]:
    """Make ``count`` independent attempts.

    Return the accepted ones, in order: int64, or Python's integers if some do not fit.
    """
    first = bits.words(count)
    j = first & np.uint64((1 << (scale.w - 1).bit_length()) - 1)
    inside = j < scale.w
    if not inside.all():
        first = first[inside]
        j = j[inside]
    sign = -(first >> np.uint64(63)).astype(np.int64)  # 0, or −1 for a negative number
    second = bits.words(len(j))
    more = max(-scale.e, 0)  # bits of f beyond j, where a step of j is more than a step of the grid
    tail: NDArray[Any] = np.zeros(0, dtype=object)
    if more:
        tail = _integers(bits, len(j), more)

    values = j.astype(np.int64)
    accepted = np.empty(len(j), dtype=bool)
    settled = {}
    work = np.empty((4, min(_PIECE, len(j))))
    for start in range(0, len(j), _PIECE):
        piece = slice(start, start + _PIECE)
        k, undecided = _decide_most(
            family, scale.w, values[piece], second[piece], accepted[piece], work
        )
        for i in start + undecided:
            cell = int(j[i])
            if more:  # ~(y·2ᵐ + t) = ~y·2ᵐ + (2ᵐ − 1 − t)
                flip = ((1 << more) - 1) & int(sign[i])
                cell = (cell << more) + (int(tail[i]) ^ flip)
            u, v = divmod(int(second[i]), 2**_U)
            magnitude = _decide(family, scale.w << more, u, cell, v, bits)
            accepted[i] = magnitude is not None
            if magnitude is not None:
                settled[i] = (magnitude ^ int(sign[i])) >> max(scale.e, 0)
        k *= scale.w
        values[piece] += k  # k ≤ 22 here: below 23 · 2^58 < 2^63
    values ^= sign  # ~y = −y−1 where it is −1
    values >>= min(max(scale.e, 0), 63)
    chosen = np.flatnonzero(accepted)
    out: NDArray[Any] = values[chosen]
    if more:
        out = (out.astype(object) << more) + tail[chosen]
    for i, value in settled.items():
        if not -(2**63) <= value < 2**63:
            out = out.astype(object)
        out[np.searchsorted(chosen, i)] = value
    return out


def _decide_most(
    family: str,
    w: int,
    j: NDArray[np.int64],
    words: NDArray[np.uint64],
    accepted: NDArray[np.bool_],
    work: NDArray[np.float64],
) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
    """The k of each attempt, and which attempts are not certain; fills in which are accepted.

    By the first 32 bits of u and of v, the two halves of its word, and by the cell j of f. All in
    four rows of numbers that are used again: fresh memory takes longer than what is done in it.
    """
    top, values = _levels(family)
    f, distance, third, fourth = work[:, : len(j)]
    place = third.view(np.uint64)
    k = fourth.view(np.int64)
    np.right_shift(words, np.uint64(64 - _TOP), out=place)
    top.take(place.view(np.int64), out=k, mode="wrap")
    unclear = np.flatnonzero(k < 0)
    on_threshold = unclear
    if len(unclear):
        thresholds = _thresholds(family)
        u = words[unclear] >> np.uint64(_U)
        k[unclear] = np.searchsorted(thresholds, u)  # thresholds[k-1] < u ≤ thresholds[k],
        on_threshold = unclear[thresholds[k[unclear]] == u]  # and equality is undecided
    np.add(j, 0.5, out=f)
    f /= w
    if family == "gaussian":  # −E(k, f), as in `_exponent`
        values.take(k, out=distance, mode="wrap")
        distance *= 2
        distance += f
        distance *= f
        distance /= -2
    else:
        np.negative(f, out=distance)
    np.exp(distance, out=distance)
    v = third
    np.bitwise_and(words, np.uint64(2**_U - 1), out=place)
    np.add(place, 0.5, out=v)
    v /= 2**_U
    distance -= v
    np.greater(distance, 0, out=accepted)
    np.abs(distance, out=distance)
    near = np.flatnonzero(distance <= _MARGIN * len(values))
    near = near[distance[near] <= _MARGIN * (k[near] + 1)]
    undecided = near
    if len(on_threshold):
        undecided = np.union1d(near, on_threshold)
    return k, undecided


@memo(len(FAMILIES))
def _levels(family: str) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The k that the first 12 bits of u tell, −1 where a threshold is among the rest; and all k."""
    thresholds = _thresholds(family)
    cells = np.arange(2**_TOP, dtype=np.uint64) << np.uint64(_U - _TOP)
    top = np.searchsorted(thresholds, cells)
    top[thresholds >> np.uint64(_U - _TOP)] = -1
    values = np.arange(len(thresholds), dtype=np.float64)
    for shared in (top, values):
        shared.flags.writeable = False
    return top, values


def _integers(bits: Bits, count: int, size: int) -> NDArray[Any]:
    """``count`` uniform integers of ``size`` bits."""
    out = np.zeros(count, dtype=object)
    for start in range(0, size, 64):
        take = min(64, size - start)
        out = (out << take) + (bits.words(count) >> np.uint64(64 - take)).astype(object)
    return out


@memo(len(FAMILIES))
def _thresholds(family: str) -> NDArray[np.uint64]:
    """⌊2³² P(≤ k)⌋ for k = 0, 1, … up to the first that is 2³² − 1.

    Any other u lies strictly between two of them.
    """
    with localcontext(_digits(60)):
        weights = _weights(family)
        whole = sum(weights)
        below = Decimal(0)
        found = [-1]
        for weight in weights:
            if found[-1] == 2**_U - 1:
                break
            below += weight
            point = below / whole * 2**_U
            found.append(int(point))
            assert Decimal("1e-30") < point - int(point) < 1 - Decimal("1e-30"), (
                "a threshold that is not certain"
            )
    thresholds = np.array(found[1:], dtype=np.uint64)
    thresholds.flags.writeable = False  # it is shared by all releases
    return thresholds


def _digits(precision: int) -> Context:
    # every field given: what is left out would come from a default that anyone may have changed
    traps = [InvalidOperation, DivisionByZero, Overflow]
    return Context(
        precision,
        ROUND_HALF_EVEN,
        Emin=-999999,
        Emax=999999,
        capitals=1,
        clamp=0,
        flags=[],
        traps=traps,
    )


def _weights(family: str) -> list[Decimal]:
    """exp(−E(0, k)) for k = 0, 1, … until all that is left out is below the last digit."""
    least = Decimal(10) ** -(getcontext().prec + 5)
    weights = [Decimal(1)]
    while weights[-1] > least:
        weights.append((-_exponent(family, 0, Decimal(len(weights)))).exp())
    return weights


def _decide(family: str, w: int, u: int, j: int, v: int, bits: Bits) -> int | None:
    """Settle one attempt exactly: kw + j if it is accepted, None if it is rejected.

    u and v are known to lie in [u, u+1)/2ⁿ and [v, v+1)/2ⁿ, and f in [g, g+1)/(w·2ⁿ⁻³²); n grows by
    64 bits a round.
    """
    n = _U
    g = j
    while True:
        with localcontext(_digits(n // 3 + 30)):  # n bits are 0.302 n digits
            error = Decimal(10) ** -(n // 3 + 20)  # above 10^10 roundings, below 2^-n
            k = _level(family, Decimal(u) / 2**n, Decimal(u + 1) / 2**n, error)
            if k is not None:
                most, least = (
                    (-_exponent(family, k, Decimal(end) / (w << (n - _U)))).exp()
                    for end in (g, g + 1)
                )
                if Decimal(v + 1) / 2**n < least - error:
                    return k * w + j
                if Decimal(v) / 2**n > most + error:
                    return None
        u = (u << 64) + bits.more()
        v = (v << 64) + bits.more()
        g = (g << 64) + bits.more()
        n += 64


def _level(family: str, low: Decimal, high: Decimal, error: Decimal) -> int | None:
    """The k whose piece [P(< k), P(≤ k)) holds all of [low, high); None if that is not certain."""
    weights = _weights(family)
    whole = sum(weights)
    below = Decimal(0)
    for k, weight in enumerate(weights):
        below += weight
        if high < below / whole - error:
            return k
        if low < below / whole + error:
            return None
    return None
