"""Sums that a record shares out among parts: what every step of expectation–maximisation releases.

    Shared   for each part k:  Σ γ_k,  Σ γ_k u_k  and, where wanted, Σ γ_k u_k u_kᵀ (or its diagonal, or its trace)

A record has responsibilities γ ≥ 0 of the K parts, which add up to at most one, and for each part a row u_k of length at
most one. A subclass gives both for a block of records; they are enforced here on the integers. All moments are released
together, with squared weights ``weights`` = (A, B, C) for zeroth, first and second moments: a larger weight buys less noise
on these at the expense of the others. The sensitivity does not depend on the number of parts. Proof: statistic.md, 2 to 4.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from reticent.errors import BadInput
from reticent.memo import memo
from reticent.privacy.grid import held
from reticent.privacy.guard import attempted, check_numbers, read_only
from reticent.privacy.plan import Plan, common, is_kind, planned, whole
from reticent.privacy.products import product
from reticent.privacy.statistic import Rows, Statistic, upper
from reticent.privacy.sums import pieces

__all__ = ["ROW_BITS", "SECONDS", "SHARE_BITS", "Shared", "SharedPlan"]

SHARE_BITS, ROW_BITS = 12, 15  # of responsibilities and of rows
_EXACT_ROWS = 2**11  # 2^12 · 4^15 · 2^11 = 2^53: so many rows are added in floats
_LEAST_ROWS, _FEW_ROWS, _MOST_ROWS = 2**6, 2**10, 2**13  # of a block; up to four times 2^11 in int64
_CACHE, _MEMORY = 5 * 2**15, 2**20  # numbers in the rows of all parts: 1.3 MB, and with up to 2^10 rows 8 MB
SECONDS = ("none", "trace", "diagonal", "full")

Pairs = NDArray[np.intp]
Share = tuple[Rows, Callable[[Pairs | None], Rows]]


@dataclass(frozen=True)
class _Pairs:
    """What a block of records comes to, before anything is held: shares of all parts, and rows of some pairs."""

    shares: Rows  # γ on the grid, parts × records
    rows: NDArray[Any]  # u of the pairs, as the map gave them
    chosen: Pairs | None  # which pairs (None: all), numbered k·n + i

    def each(self) -> Iterator[tuple[int, Rows, Rows]]:
        """For up to 2^11 pairs at a time the part k, (γ_k u_k)ᵀ and u_k, on the grid."""
        parts, n = self.shares.shape
        weights = self.shares.ravel()
        ends = np.arange(parts + 1) * n
        if self.chosen is not None:
            weights = weights.take(self.chosen)
            ends = self.chosen.searchsorted(ends)

        def hold(pairs: slice) -> tuple[Rows, Rows]:
            u = held(self.rows[pairs], ROW_BITS, 4**ROW_BITS)
            return u.T * weights[pairs], u

        # all at once if they were picked out: few calls; else in pieces that stay in cache
        weighted, u = (None, self.rows) if self.chosen is None else hold(slice(None))
        for k, (first, end) in enumerate(pairwise(ends.tolist())):
            for few in pieces(first, end, _EXACT_ROWS):
                yield k, *(hold(few) if weighted is None else (weighted[:, few], u[few]))


@final
@dataclass(frozen=True, eq=False)
class SharedPlan(Plan):
    """Moments of rows of ``columns`` numbers, shared out among ``parts``."""

    parts: int
    columns: int
    second: str
    together: bool
    weights: tuple[int, int, int]

    kind: ClassVar[str] = "shared"

    @property
    def sizes(self) -> tuple[int, int, int]:
        """How many zeroth, first and second moments are released."""
        d = self.columns
        each = {"none": 0, "trace": 1, "diagonal": d, "full": d * (d + 1) // 2}[self.second]
        return self.parts, self.parts * d, each * (1 if self.together else self.parts)

    @property
    def size(self) -> int:
        """How many numbers are released."""
        return sum(self.sizes)

    @property
    def sensitivity2(self) -> int:
        """max{2(A+B+C), G}, where two records in the same part can be apart by G = max 2B(1−t) + 2C(1−t²) over t in [−1, 1].

        In one part alone a record can be replaced by one with no share in it: A+B+C instead of twice that.
        """
        a, b, c = self.weights
        same = 4 * b if b >= 2 * c else 2 * b + 2 * c - (-b * b // (2 * c))
        different = (2 if self.parts > 1 else 1) * (a + b + c)
        return max(different, same) * 4**SHARE_BITS * 16**ROW_BITS

    @property
    def sensitivity1(self) -> int | None:
        """No L1 bound is enforced."""
        return None

    @property
    def step(self) -> float:
        """The grid step of second moments; the others are brought to it."""
        return 2.0 ** -(SHARE_BITS + 2 * ROW_BITS)

    @property
    def block_rows(self) -> int:
        """Rows per block, at most 2^13: Σ|products| ≤ rows · 2^12 · 4^15 ≤ 2^55. In cache, unless moments are many."""
        numbers = self.parts * self.columns
        rows = max(_CACHE // numbers, min(_MEMORY // numbers, _FEW_ROWS), _LEAST_ROWS)
        return min(rows, _MOST_ROWS)

    def pairs(self, records: Rows) -> _Pairs | None:
        """Shares and rows of a block of records; None if the map fails for it, both with numbers of pairs and without.

        Pairs (part, record) without a share are left out where they are many: zeros add nothing. That is decided by all
        records of the block, so whether a record has shares must not hang on it: what fails one way is asked the other way.
        """

        def ask(the_other_way: bool) -> _Pairs:
            gamma, rows = self.statistic.split(read_only(records))
            g = _held_shares(check_numbers(gamma, (len(records), self.parts)))
            some = (g.ravel() > 0).nonzero()[0]
            few = 2 * len(some) <= g.size  # else picking rows out takes longer
            if few == the_other_way:
                return _Pairs(g, check_numbers(rows(None), (g.size, self.columns)), None)
            asked = read_only(some.copy())  # not what the shares are taken by
            return _Pairs(g, check_numbers(rows(asked), (len(some), self.columns)), some)

        name = f"{self.name}.split"
        found = attempted(name, lambda: ask(False))
        if found is None:
            found = attempted(name, lambda: ask(True))
        return found

    def block_sum(self, records: Rows) -> NDArray[Any]:
        """All moments of one block, as whole numbers; those of each record by itself, if the map fails for the block.

        A record for which it fails alone has no share in any part.
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
        sums = 1 if self.together else self.parts
        first = np.zeros((self.parts, self.columns), np.int64)
        seconds = np.zeros((sums, self.sizes[2] // sums), np.int64)
        for k, weighted, u in pairs.each():
            first[k] += weighted.sum(axis=1).astype(np.int64)
            if self.second != "none":
                seconds[0 if self.together else k] += _second(self.second, weighted, u).astype(np.int64)
        return np.concatenate([pairs.shares.sum(axis=1).astype(np.int64), first.ravel(), seconds.ravel()])

    def coordinates(self, total: NDArray[Any]) -> NDArray[Any]:
        """The total with zeroth and first moments in steps of second ones."""
        scaled: NDArray[Any] = total.astype(object)
        zeroth, first, _ = self.sizes
        scaled[:zeroth] *= 4**ROW_BITS
        scaled[zeroth : zeroth + first] *= 2**ROW_BITS
        return scaled

    def shares(self) -> NDArray[np.int64]:
        """A, B and C; outside the diagonal of a matrix 2C."""
        return _shares(self.sizes, self.columns, self.second, self.weights)


def _shared_plan(statistic: Any) -> SharedPlan:
    who = common(statistic)
    second = str(statistic.second)
    if second not in SECONDS:
        raise BadInput(f"second must be one of {', '.join(SECONDS)}, not {second!r}.")
    parts = whole(f"{who[1]}.parts", statistic.parts, 1, 10**6)
    columns = whole(f"{who[1]}.columns", statistic.columns, 1, 10**6)
    if parts * columns * columns > 10**9:
        raise BadInput("A statistic has from 1 to 10^6 parts and columns, and at most 10^9 moments.")
    a, b, c = statistic.weights
    least = 0 if second == "none" else 1
    what = "The weights of moments (those of second moments are 0 without them)"
    weights = whole(what, a, 1, 2**20), whole(what, b, 1, 2**20), whole(what, c, least, 2**20 * least)
    return SharedPlan(*who, parts, columns, second, bool(statistic.together), weights)


@is_kind(_shared_plan)
@dataclass(frozen=True)
class Shared(Statistic):
    """Abstract: moments of rows, shared out among parts.

    ``second`` says which second moments are released; ``together``: for all parts in one sum instead of one for each.
    """

    parts: int
    columns: int
    second: str
    together: bool
    weights: tuple[int, int, int]

    @abstractmethod
    def split(self, records: Rows) -> Share:
        """Responsibilities of n scaled records, a row for each, and a function that gives rows u_k of some of them.

        The function is called once, with numbers k·n + i of pairs (part k, record i), ascending, read-only, or with None for all
        pairs: with those whose γ_k > 0, and perhaps others. Each number must be a function of its own record alone, bit for bit.
        If either fails, the records are given one by one; one that fails alone has no share in any part.
        """

    @property
    def sizes(self) -> tuple[int, int, int]:
        """How many zeroth, first and second moments are released."""
        plan = planned(self)
        assert isinstance(plan, SharedPlan)
        return plan.sizes


@memo(4)
def _shares(sizes: tuple[int, int, int], d: int, second: str, weights: tuple[int, int, int]) -> NDArray[np.int64]:
    """How often the square of each number counts: the same for every look of a stage."""
    each = np.full(sizes[2], weights[2])
    if second == "full":
        row, column = upper(d)
        each = np.tile(np.where(row == column, 1, 2) * weights[2], sizes[2] // len(row))
    shares = np.concatenate([np.full(sizes[0], weights[0]), np.full(sizes[1], weights[1]), each])
    shares.flags.writeable = False
    return shares


def _second(kind: str, weighted: Rows, u: Rows) -> Rows:
    """Σ γuuᵀ of at most 2^11 rows, or its diagonal, or its trace; ``weighted``: γu, a column for each row."""
    if kind == "full":
        return product(weighted, u, records="inner")[upper(u.shape[1])]
    return np.asarray(np.einsum("ji,ij->j" if kind == "diagonal" else "ji,ij->", weighted, u))


def _held_shares(gamma: NDArray[Any]) -> Rows:
    """Responsibilities on the grid, as whole numbers ≥ 0 that add up to at most 2^12 in each row, whatever came.

    What truncation leaves of a record goes to its largest share, so that a record counts as one.
    """
    one = 2.0**SHARE_BITS
    g: Rows = np.multiply(gamma.T, one, dtype=np.float64, order="C")  # the shares of one part lie side by side
    np.trunc(np.clip(g, 0.0, one, out=g), out=g)
    total = g.sum(axis=0)  # exact in every order
    over = ~(total <= one)
    if over.any():
        g[:, over], total[over] = 0.0, 0.0  # does not happen to responsibilities: too many shares, or not numbers
    short = ((total < one) & (total > 0)).nonzero()[0]
    if len(short):
        g[g.take(short, axis=1).argmax(axis=0), short] += one - total.take(short)  # the first of the largest
    return g
