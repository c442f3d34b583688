"""Exponential mechanism: one of some public candidates, the likelier the better its score.

Proof: exponential_mechanism.md.

A score is a public quadratic form of exact sums T by cell (`CellSum` with one number for each
record, or `Counts`),

    score_k = l_k·T − TᵀG_kT + c_k,

so the log-likelihood of binned data, and how far one record can move it follows from G_k, l_k, n
and the enforced limits of a row: exactly, in any position of all other records. All is done in
whole numbers but the sensitivity, which is rounded up.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from reticent.errors import BadInput
from reticent.privacy.selection.random_draws import uniform
from reticent.privacy.statistics.cell_sum import EnforcedCellSum
from reticent.privacy.statistics.counts import EnforcedCounts
from reticent.privacy.statistics.enforced import Enforced

if TYPE_CHECKING:
    from reticent.privacy.random_bits import Bits

__all__ = [
    "CHOSEN",
    "Scores",
    "check_scores",
    "described",
    "epsilon_of",
    "exponents",
    "pick",
    "sensitivity",
]

Array = NDArray[np.float64]
CHOSEN = "chosen"
_BITS = 40  # of the largest entry of a quadratic form
_STEPS = 2**20  # of the exponents, for each unit
# Rounding stays far below these fractions of a result, and of the largest number on the way to it.
_SAFE = 1e-9
_LOST = 2.0**-40


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores of K candidates as quadratic forms of the sums by cell: public numbers.

    ``matrices`` holds G, shape ``(K, cells, cells)``; ``linear`` l, shape ``(K, cells)``;
    ``constants`` c, shape ``(K,)``.
    """

    matrices: Array
    linear: Array
    constants: Array

    def whole(self, step: float) -> "tuple[list[_Form], Fraction]":
        """The same for sums in grid steps, in whole numbers; and how much one of their units is."""
        if not all(
            np.isfinite(part).all() for part in (self.matrices, self.linear, self.constants)
        ):
            raise BadInput("Scores must be made of finite numbers.")
        bits = -math.frexp(step)[1] + 1
        up = _BITS - math.frexp(float(np.abs(self.matrices).max()) or 1.0)[1]
        symmetric = (self.matrices + np.swapaxes(self.matrices, 1, 2)) / 2
        forms = [
            _Form(
                *(
                    np.rint(np.ldexp(part, by))
                    for part, by in zip(one, (up, up + bits, up + 2 * bits), strict=True)
                )
            )
            for one in zip(symmetric, self.linear, self.constants, strict=True)
        ]
        return forms, Fraction(2) ** -up * Fraction(step) ** 2


@dataclass(frozen=True, eq=False)
class _Form:
    """Whole numbers, as floats."""

    matrix: Array
    linear: Array
    constant: Any

    def __call__(self, total: NDArray[Any]) -> int:
        """The score, exactly."""
        G, linear = (
            np.array([int(v) for v in part.ravel()], dtype=object)
            for part in (self.matrix, self.linear)
        )
        return int(linear @ total - total @ (G.reshape(self.matrix.shape) @ total)) + int(
            self.constant
        )


def described(of: dict[str, Any], scores: Scores) -> dict[str, Any]:
    """What is public about a choice by the sums that ``of`` describes, in plain JSON values."""
    return {
        "name": "Choice by score",
        "kind": CHOSEN,
        "size": 1,
        "candidates": len(scores.constants),
        "of": of,
    }


def epsilon_of(mu: float) -> float:
    """The largest ε whose exponential mechanism a Gaussian one with this μ dominates.

    Φ(μ/2) = 1/(1 + e^(−ε/2)).
    """
    if mu < 1:
        exact = 4 * math.atanh(math.erf(mu / math.sqrt(8)))
    else:
        exact = 2 * float(log_ndtr(mu / 2) - log_ndtr(-mu / 2))
    return (1 - _SAFE) * exact


def sensitivity(
    enforced: Enforced, matrix: Array, linear: Array, n: int, counts: NDArray[Any] | None = None
) -> int:
    """How far one record can move the score of a candidate, whatever the others are.

    In whole numbers, rounded up.

    ``counts``: how many records are in each cell, where that is public and only their numbers are
    protected.
    """
    low, high = map(float, _range(enforced))
    between = not isinstance(enforced, EnforcedCounts)  # a count is 0 or 1
    if counts is None:  # all others are in one cell, at one end
        others = np.stack([-2 * matrix * end * (n - 1) for end in (low, high)])
        most, least = _ends(linear + others, np.diag(matrix), low, high, between=between)
        moved = most.max(axis=-1) - least.min(axis=-1)
    else:  # every other record is at the end that matters most for this cell
        held = np.stack([matrix * end for end in (low, high)])
        number = np.where(np.eye(len(matrix), dtype=bool), np.maximum(counts - 1, 0), counts)
        sums = np.stack(
            [(side * number).sum(axis=1) for side in (held.min(axis=0), held.max(axis=0))]
        )
        most, least = _ends(linear - 2 * sums, np.diag(matrix), low, high, between=between)
        moved = np.where(counts > 0, most - least, 0.0)
    largest = float(np.abs(linear).max() + 2 * np.abs(matrix).max() * high * n) * high
    return (
        math.ceil(Fraction(float(moved.max())) * (1 + Fraction(_SAFE)) + Fraction(largest * _LOST))
        + 1
    )


def _ends(
    slope: Array, curve: Array, low: float, high: float, *, between: bool
) -> tuple[Array, Array]:
    """Greatest and least value of slope·u − curve·u² for low ≤ u ≤ high, or at the two ends."""
    with np.errstate(divide="ignore", invalid="ignore"):
        turn = np.nan_to_num(slope / (2 * curve), nan=low, posinf=low, neginf=low)
    if not between:
        turn = np.full_like(turn, low)
    values = np.stack([slope * u - curve * u * u for u in (low, high, np.clip(turn, low, high))])
    return values.max(axis=0), values.min(axis=0)


def _range(enforced: Enforced) -> tuple[int, int]:
    """What a record can add to its cell, in grid steps: 0 among others, for it may be in none."""
    if isinstance(enforced, EnforcedCounts):
        return 0, 1
    assert isinstance(enforced, EnforcedCellSum)
    most = math.isqrt(enforced.limit2)
    if enforced.limit1 is not None:
        most = min(most, enforced.limit1)
    return -most, most


def check_scores(enforced: Enforced, scores: Scores, counts: NDArray[Any] | None) -> None:
    """Refuse what this proof does not cover."""
    celled = isinstance(enforced, EnforcedCellSum) and (enforced.own, enforced.shared) == (1, 0)
    if not (celled or (isinstance(enforced, EnforcedCounts) and len(enforced.groups) == 1)):
        raise BadInput(
            "A choice by score is about counts, or about sums by cell with one "
            "number for each record."
        )
    cells = enforced.size
    k = len(scores.constants)
    if not k or (scores.matrices.shape, scores.linear.shape) != ((k, cells, cells), (k, cells)):
        raise BadInput("Scores need a matrix, a row and a number for each candidate.")
    if counts is not None and counts.shape != (cells,):
        raise BadInput("There must be one count for each cell.")


def exponents(
    enforced: Enforced,
    scores: Scores,
    total: NDArray[Any],
    *,
    n: int,
    people: int,
    counts: NDArray[Any] | None,
    epsilon: float,
) -> tuple[list[int], float]:
    """The logarithm of each candidate's probability, but for a constant, in steps of 2⁻²⁰.

    And 2Δ/ε, in the units of the scores.
    """
    forms, unit = scores.whole(enforced.step)
    if counts is not None:  # enforced: a wrong count costs accuracy, never privacy
        number = np.array([max(int(v), 0) for v in counts], dtype=object)
        low, high = _range(enforced)
        total = np.minimum(np.maximum(total, number * low), number * high)
        counts = number.astype(np.float64)
    moved = people * max(sensitivity(enforced, one.matrix, one.linear, n, counts) for one in forms)
    rate = (
        max(Fraction(epsilon) * _STEPS / 2 - 1, Fraction(0)) / moved
    )  # floors move by one more at most
    return [math.floor(rate * one(total)) for one in forms], float(
        2 * moved * unit / Fraction(epsilon)
    )


def pick(values: list[int], bits: "Bits") -> int:
    """Draw k with a probability ∝ e^(values_k / 2²⁰), exactly.

    Propose evenly, accept by the distance from the best.
    """
    best = max(values)
    while True:
        k = uniform(len(values), bits)
        if _happens(best - values[k], bits):
            return k


def _happens(steps: int, bits: "Bits") -> bool:
    """A coin with a probability of e^(−steps/2²⁰) (Canonne, Kamath and Steinke 2020)."""
    whole, rest = divmod(steps, _STEPS)
    return all(_coin(_STEPS, bits) for _ in range(whole)) and _coin(rest, bits)


def _coin(part: int, bits: "Bits") -> bool:
    """A coin with a probability of e^(−x), x = part/2²⁰ ≤ 1.

    A run of successes with chances x/1, x/2, … ends at an odd k.
    """
    k = 1
    while uniform(_STEPS * k, bits) < part:
        k += 1
    return k % 2 == 1
