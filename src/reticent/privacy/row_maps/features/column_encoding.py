"""Records of mixed columns as rows of numbers: indicators of levels, and cycles as circles.

Proof: column_moments.md.

A column is encoded by a public whole number: 0, a number, stays as it is; 2, one of two levels,
is 0 or 1; L > 2, one of L levels, is L indicators, 0 or √½, and −L all of these but the first;
−1, a cycle, is half its cosine and half its sine. So two different levels, and opposite points of
a cycle, are one apart: half the range of a number.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["CYCLE", "INDICATOR", "NUMBER", "encode", "encoded_widths", "level_of"]

Array = NDArray[np.float64]
NUMBER = 0
CYCLE = -1
INDICATOR = 0.7071067811865476  # √½, written out: the same on every machine
# sin(πu/2) = u·(a₀ + a₁u² + …) for |u| ≤ 1, Taylor's series: an error of at most 7e-10
_SINE = (
    1.5707963267948966,
    -0.6459640975062462,
    0.07969262624616703,
    -0.004681754135318687,
    0.00016044118478735975,
    -3.598843235212085e-06,
    5.692172921967925e-08,
)


def encoded_widths(encoding: Sequence[int]) -> list[int]:
    """How many numbers each column becomes."""
    return [_width(code) for code in encoding]


def _width(code: int) -> int:
    if code in (NUMBER, 2):
        return 1
    if code == CYCLE:
        return 2
    if code < 0:
        return -code - 1
    return code


def level_of(u: Array, levels: int) -> Array:
    """Level of a scaled value: L equal bins of [−1, 1] hold one level each."""
    return np.clip(np.floor((u + 1.0) * (levels / 2)), 0.0, levels - 1.0)


def encode(records: Array, encoding: Sequence[int]) -> Array:
    """Scaled records (n, d) as rows of numbers within ±1: +, ×, floor, clip, comparisons.

    Elementwise, column after column; an empty encoding leaves them as they are.
    """
    if not encoding:
        return records
    columns: list[Array] = []
    for u, code in zip(records.T, encoding, strict=False):
        if code == NUMBER:
            columns.append(u)
        elif code == CYCLE:
            columns.extend(_circle(u))
        elif code == 2:
            columns.append(level_of(u, 2))
        else:
            level = level_of(u, abs(code))
            first = int(code < 0)
            columns.extend(
                np.where(level == one, INDICATOR, 0.0) for one in range(first, abs(code))
            )
    return np.stack(columns, axis=1)


def _circle(u: Array) -> tuple[Array, Array]:
    """Half of the cosine and sine of π(u + 1), which is 0 at the lower end, by polynomials."""
    away = np.abs(u)
    cosine = _sine(2.0 * away - 1.0)
    sine = _sine(1.0 - np.abs(1.0 - 2.0 * away)) * np.where(u < 0, 1.0, -1.0)
    return 0.5 * cosine, 0.5 * sine


def _sine(u: Array) -> Array:
    """sin(πu/2) for u within ±1, held within ±1."""
    square = u * u
    total = np.full(u.shape, _SINE[-1])
    for term in _SINE[-2::-1]:
        total = total * square + term
    return np.clip(total * u, -1.0, 1.0)
