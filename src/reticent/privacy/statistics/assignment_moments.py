"""Sums that a record shares out among parts: what every step of expectation–maximisation releases.

    AssignmentMoments   for each part k: Σ γ_k, Σ γ_k u_k and, where wanted, Σ γ_k u_k u_kᵀ
                        (or its diagonal, or its trace)

A record has responsibilities γ ≥ 0 of the K parts, which add up to at most one, and for each part a
row u_k of length at most one. A subclass gives both for a block of records; they are enforced here
on the integers. All moments are released together, with squared weights ``weights`` = (A, B, C) for
zeroth, first and second moments: a larger weight buys less noise on these at the expense of the
others. The sensitivity does not depend on the number of parts. Proof: statistics.md, 2 to 4.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from reticent.errors import BadInput
from reticent.memo import memo
from reticent.privacy.guard import call_safely, check_rows, read_only
from reticent.privacy.statistics.base import Rows, Statistic
from reticent.privacy.statistics.enforced import (
    Enforced,
    Sensitivity,
    common,
    enforce,
    is_kind,
    saved_as,
    whole,
)
from reticent.privacy.statistics.exact_products import product
from reticent.privacy.statistics.exact_sum import pieces
from reticent.privacy.statistics.gram import upper_triangle
from reticent.privacy.statistics.integer_grid import quantize_and_clip

__all__ = [
    "RESPONSIBILITY_BITS",
    "ROW_BITS",
    "SECOND_MOMENTS",
    "AssignmentMoments",
    "EnforcedAssignmentMoments",
]

# of responsibilities and of rows
RESPONSIBILITY_BITS = 12
ROW_BITS = 15
_EXACT_ROWS = 2**11  # 2^12 · 4^15 · 2^11 = 2^53: so many rows are added in floats
# of a block; up to four times 2^11 in int64
_LEAST_ROWS = 2**6
_FEW_ROWS = 2**10
_MOST_ROWS = 2**13
# numbers in the rows of all parts: 1.3 MB, and with up to 2^10 rows 8 MB
_CACHE = 5 * 2**15
_MEMORY = 2**20
SECOND_MOMENTS = ("none", "trace", "diagonal", "full")

Pairs = NDArray[np.intp]
Share = tuple[Rows, Callable[[Pairs | None], Rows]]


@dataclass(frozen=True)
class _Pairs:
    """What a block of records comes to, before anything is held.

    Shares of all parts, and rows of some pairs.
    """

    responsibilities: Rows  # γ on the grid, parts × records
    rows: NDArray[Any]  # u of the pairs, as the map gave them
    chosen: Pairs | None  # which pairs (None: all), numbered k·n + i

    def each(self) -> Iterator[tuple[int, Rows, Rows]]:
        """For up to 2^11 pairs at a time the part k, (γ_k u_k)ᵀ and u_k, on the grid."""
        parts, n = self.responsibilities.shape
        weights = self.responsibilities.ravel()
        ends = np.arange(parts + 1) * n
        if self.chosen is not None:
            weights = weights.take(self.chosen)
            ends = self.chosen.searchsorted(ends)

        def hold(pairs: slice) -> tuple[Rows, Rows]:
            u = quantize_and_clip(self.rows[pairs], ROW_BITS, 4**ROW_BITS)
            return u.T * weights[pairs], u

        # all at once if they were picked out: few calls; else in pieces that stay in cache
        weighted, u = (None, self.rows) if self.chosen is None else hold(slice(None))
        for k, (first, end) in enumerate(pairwise(ends.tolist())):
            for few in pieces(first, end, _EXACT_ROWS):
                yield k, *(hold(few) if weighted is None else (weighted[:, few], u[few]))


@final
@dataclass(frozen=True, eq=False)
class EnforcedAssignmentMoments(Enforced):
    """Moments of rows of ``columns`` numbers, shared out among ``parts``."""

    parts: int
    columns: int
    second_moment: str
    pooled_covariance: bool
    weights: tuple[int, int, int]

    kind: ClassVar[str] = "shared"
    saved_as: ClassVar[str] = "SharedPlan"

    @property
    def sizes(self) -> tuple[int, int, int]:
        """How many zeroth, first and second moments are released."""
        d = self.columns
        each = {"none": 0, "trace": 1, "diagonal": d, "full": d * (d + 1) // 2}[self.second_moment]
        return self.parts, self.parts * d, each * (1 if self.pooled_covariance else self.parts)

    @property
    def size(self) -> int:
        """How many numbers are released."""
        return sum(self.sizes)

    @property
    def sensitivity2(self) -> int:
        """max{2(A+B+C), G}, with G = max 2B(1−t) + 2C(1−t²) over t in [−1, 1].

        G bounds the squared distance that two records in the same part can be apart. In one part
        alone a record can be replaced by one with no responsibility: A+B+C instead of twice that.
        """
        a, b, c = self.weights
        if b >= 2 * c:
            same = 4 * b
        else:
            same = 2 * b + 2 * c - (-b * b // (2 * c))
        different = (2 if self.parts > 1 else 1) * (a + b + c)
        return max(different, same) * 4**RESPONSIBILITY_BITS * 16**ROW_BITS

    @property
    def sensitivity1(self) -> int | None:
        """No L1 bound is enforced."""
        return None

    def contribution(self) -> Sensitivity:
        """A + B + C: parts have places of their own, and Σγ² ≤ (Σγ)² ≤ 1."""
        length = sum(self.weights) * 4**RESPONSIBILITY_BITS * 16**ROW_BITS
        return Sensitivity(length, None, self.coordinate_multiplicity())

    @property
    def step(self) -> float:
        """The grid step of second moments; the others are brought to it."""
        return 2.0 ** -(RESPONSIBILITY_BITS + 2 * ROW_BITS)

    @property
    def block_rows(self) -> int:
        """Rows per block, at most 2^13: Σ|products| ≤ rows · 2^12 · 4^15 ≤ 2^55.

        In cache, unless moments are many.
        """
        numbers = self.parts * self.columns
        rows = max(_CACHE // numbers, min(_MEMORY // numbers, _FEW_ROWS), _LEAST_ROWS)
        return min(rows, _MOST_ROWS)

    def pairs(self, records: Rows) -> _Pairs | None:
        """Shares and rows of a block of records.

        None if the map fails for it, both with numbers of pairs and without. Pairs (part, record)
        without a share are left out where they are many: zeros add nothing. That is decided by all
        records of the block, so whether a record has shares must not hang on it: what fails one way
        is asked the other way.
        """
        filled, lacking = self.fill(records)

        def ask(the_other_way: bool) -> _Pairs:
            gamma, rows = self.statistic.responsibilities(read_only(filled))
            g = _quantize_responsibilities(check_rows(gamma, (len(records), self.parts)))
            if lacking is not None:
                g[:, lacking] = 0.0
            some = (g.ravel() > 0).nonzero()[0]
            few = 2 * len(some) <= g.size  # else picking rows out takes longer
            if few == the_other_way:
                return _Pairs(g, check_rows(rows(None), (g.size, self.columns)), None)
            asked = read_only(some.copy())  # not what the shares are taken by
            return _Pairs(g, check_rows(rows(asked), (len(some), self.columns)), some)

        name = f"{self.name}.responsibilities"
        found = call_safely(name, lambda: ask(False))
        if found is None:
            found = call_safely(name, lambda: ask(True))
        return found

    def block_sum(self, records: Rows) -> NDArray[Any]:
        """All moments of one block, as whole numbers.

        Those of each record by itself, if the map fails for the block. A record for which it fails
        alone has no share in any part.
        """
        pairs = self.pairs(records)
        if pairs is not None:
            return self._moments(pairs)
        total = np.zeros(self.size, np.int64)
        for i in range(len(records)):
            one = self.pairs(records[i : i + 1])
            if one is not None:
                total += self._moments(one)
        return total

    def _moments(self, pairs: _Pairs) -> NDArray[np.int64]:
        """Floats over 2^11 rows at a time, which is exact, then int64."""
        if self.pooled_covariance:
            sums = 1
        else:
            sums = self.parts
        first = np.zeros((self.parts, self.columns), np.int64)
        seconds = np.zeros((sums, self.sizes[2] // sums), np.int64)
        for k, weighted, u in pairs.each():
            first[k] += weighted.sum(axis=1).astype(np.int64)
            if self.second_moment != "none":
                seconds[0 if self.pooled_covariance else k] += _second(
                    self.second_moment, weighted, u
                ).astype(np.int64)
        return np.concatenate(
            [pairs.responsibilities.sum(axis=1).astype(np.int64), first.ravel(), seconds.ravel()]
        )

    def coordinates(self, total: NDArray[Any]) -> NDArray[Any]:
        """The total with zeroth and first moments in steps of second ones."""
        scaled: NDArray[Any] = total.astype(object)
        zeroth, first, _ = self.sizes
        scaled[:zeroth] *= 4**ROW_BITS
        scaled[zeroth : zeroth + first] *= 2**ROW_BITS
        return scaled

    def coordinate_multiplicity(self) -> NDArray[np.int64]:
        """A, B and C; outside the diagonal of a matrix 2C."""
        return _multiplicity(self.sizes, self.columns, self.second_moment, self.weights)


def _enforced_assignment_moments(statistic: "AssignmentMoments") -> EnforcedAssignmentMoments:
    who = common(statistic)
    second = str(statistic.second_moment)
    if second not in SECOND_MOMENTS:
        raise BadInput(f"second_moment must be one of {', '.join(SECOND_MOMENTS)}, not {second!r}.")
    parts = whole(f"{who[1]}.parts", statistic.parts, 1, 10**6)
    columns = whole(f"{who[1]}.columns", statistic.columns, 1, 10**6)
    if parts * columns * columns > 10**9:
        raise BadInput(
            "A statistic has from 1 to 10^6 parts and columns, and at most 10^9 moments."
        )
    a, b, c = statistic.weights
    if second == "none":
        least = 0
    else:
        least = 1
    what = "The weights of moments (those of second moments are 0 without them)"
    weights = (
        whole(what, a, 1, 2**20),
        whole(what, b, 1, 2**20),
        whole(what, c, least, 2**20 * least),
    )
    return EnforcedAssignmentMoments(
        *who, parts, columns, second, bool(statistic.pooled_covariance), weights
    )


@is_kind(_enforced_assignment_moments)
@dataclass(frozen=True)
class AssignmentMoments(Statistic):
    """Abstract: moments of rows, shared out among parts.

    ``second_moment`` says which second moments are released; ``pooled_covariance``: for all parts
    in one sum instead of one for each.
    """

    parts: int
    columns: int
    second_moment: str = field(metadata=saved_as("second"))
    pooled_covariance: bool = field(metadata=saved_as("together"))
    weights: tuple[int, int, int]

    @abstractmethod
    def responsibilities(self, records: Rows) -> Share:
        """Responsibilities of n scaled records, a row for each, and a function that gives rows u_k.

        The function is called once, with numbers k·n + i of pairs (part k, record i), ascending,
        read-only, or with None for all pairs: with those whose γ_k > 0, and perhaps others. Each
        number must be a function of its own record alone, bit for bit. If either fails, the records
        are given one by one; one that fails alone has no share in any part.
        """

    @property
    def sizes(self) -> tuple[int, int, int]:
        """How many zeroth, first and second moments are released."""
        enforced = enforce(self)
        assert isinstance(enforced, EnforcedAssignmentMoments)
        return enforced.sizes


@memo(4)
def _multiplicity(
    sizes: tuple[int, int, int], d: int, second: str, weights: tuple[int, int, int]
) -> NDArray[np.int64]:
    """How often the square of each number counts: the same for every look of a stage."""
    each = np.full(sizes[2], weights[2])
    if second == "full":
        row, column = upper_triangle(d)
        each = np.tile(np.where(row == column, 1, 2) * weights[2], sizes[2] // len(row))
    multiplicity = np.concatenate(
        [np.full(sizes[0], weights[0]), np.full(sizes[1], weights[1]), each]
    )
    multiplicity.flags.writeable = False
    return multiplicity


def _second(kind: str, weighted: Rows, u: Rows) -> Rows:
    """Σ γuuᵀ of at most 2^11 rows, or its diagonal, or its trace.

    ``weighted``: γu, a column for each row.
    """
    if kind == "full":
        return product(weighted, u, records="inner")[upper_triangle(u.shape[1])]
    return np.asarray(np.einsum("ji,ij->j" if kind == "diagonal" else "ji,ij->", weighted, u))


def _quantize_responsibilities(gamma: NDArray[Any]) -> Rows:
    """Responsibilities on the grid: whole numbers ≥ 0 that add up to at most 2^12 in each row.

    This holds whatever ``gamma`` is. What truncation leaves of a record goes to its largest
    responsibility, so that a record counts as one.
    """
    one = 2.0**RESPONSIBILITY_BITS
    # The responsibilities of one part lie side by side.
    g: Rows = np.multiply(gamma.T, one, dtype=np.float64, order="C")
    np.trunc(np.clip(g, 0.0, one, out=g), out=g)
    total = g.sum(axis=0)  # exact in every order
    over = ~(total <= one)
    if over.any():
        # does not happen to responsibilities: too many shares, or not numbers
        g[:, over] = 0.0
        total[over] = 0.0
    short = ((total < one) & (total > 0)).nonzero()[0]
    if len(short):
        g[g.take(short, axis=1).argmax(axis=0), short] += one - total.take(
            short
        )  # the first of the largest
    return g
