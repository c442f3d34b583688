"""Rows on the integer grid, held to their limits: what every bound of a statistic rests on.

Proof: statistics.md, 2.

A row is truncated toward zero to multiples of 2⁻ᵇ, which cannot lengthen it. One that is still too
long, or not a number, is shortened on the integers. A row's result depends on that row alone, bit
for bit.
"""

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.errors import BadInput
from reticent.privacy.statistics.exact_sum import EXACT

__all__ = ["fraction", "limit", "log2_ceiling", "quantize_and_clip"]

Rows = NDArray[np.float64]


def quantize_and_clip(
    rows: NDArray[Any],
    bits: int,
    limit2: int,
    *,
    limit1: int | None = None,
    nonnegative: bool = False,
) -> Rows:
    """Rows of real numbers on the grid of 2⁻ᵇ, as whole float64 numbers.

    Σq² ≤ limit2 (and Σ|q| ≤ limit1, q ≥ 0) for each.
    """
    q: Rows = np.multiply(
        rows, 2.0**bits, dtype=np.float64
    )  # float32 rows would be added up in float32
    np.trunc(q, out=q)
    if nonnegative:
        np.maximum(q, 0.0, out=q)
    outside = ~_inside(q, limit2, limit1)  # also where a number is NaN or infinite
    if outside.any():
        q[outside] = _shortened(q[outside], limit2, limit1)
    return q


def _inside(q: Rows, limit2: int, limit1: int | None) -> NDArray[np.bool_]:
    # Exact: the sums are of whole numbers, and one that exceeds the limit cannot
    # round to below it (statistics.md, 2).
    inside: NDArray[np.bool_] = np.einsum("ij,ij->i", q, q) <= limit2
    if limit1 is not None:
        inside &= np.abs(q).sum(axis=1) <= limit1
    return inside


def _shortened(q: Rows, limit2: int, limit1: int | None) -> Rows:
    """Bring rows inside the limits.

    Column by column, so that a row's result does not depend on its neighbours.
    """
    longest = float(math.isqrt(limit2))
    q = np.clip(np.where(np.isnan(q), 0.0, q), -longest, longest)
    square = np.zeros(len(q))
    length = np.zeros(len(q))
    for column in q.T:
        square += column * column
        length += np.abs(column)
    factor = np.sqrt(limit2 / np.maximum(square, limit2))
    if limit1 is not None:
        factor = np.minimum(factor, limit1 / np.maximum(length, limit1))
    q = np.trunc(q * (factor * (1 - 2.0**-40))[:, None])
    q[~_inside(q, limit2, limit1)] = 0.0  # cannot happen, and is not left to that
    return q


def limit(bound: Fraction, unit: Fraction, what: str) -> int:
    """``bound`` in grid units, rounded down: what the integers are held to."""
    steps = math.floor(bound * unit)
    if not 1 <= steps <= EXACT // 2:
        if steps > 0:
            order = math.log2(steps)
        else:
            order = -math.inf
        raise BadInput(
            f"{what} must lie between 1 and 2^52, and is about 2^{order:.3g}: "
            "choose fewer bits or a smaller norm."
        )
    return steps


def fraction(value: int | float | np.integer[Any] | Fraction) -> Fraction:
    """The number as a fraction of Python integers: NumPy's would wrap around."""
    if isinstance(value, np.integer):
        return Fraction(int(value))
    if isinstance(value, Fraction):
        return value
    return Fraction(value)


def log2_ceiling(value: int | Fraction) -> int:
    """Least b with value ≤ 2ᵇ."""
    whole = math.ceil(fraction(value))
    if whole < 1:
        raise BadInput(f"norm2 must be a positive number, not {value!r}.")
    return (whole - 1).bit_length()
