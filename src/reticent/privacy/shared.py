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
from operator import index
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from reticent.errors import BadInput
from reticent.memo import memo
from reticent.privacy.grid import check_numbers, held, read_only
from reticent.privacy.products import product
from reticent.privacy.statistic import SETTLED, Rows, Statistic, upper
from reticent.privacy.sums import pieces

__all__ = ["ROW_BITS", "SECONDS", "SHARE_BITS", "Shared"]

SHARE_BITS, ROW_BITS = 12, 15  # of responsibilities and of rows
_EXACT_ROWS = 2**11  # 2^12 · 4^15 · 2^11 = 2^53: so many rows are added in floats
_LEAST_ROWS, _FEW_ROWS, _MOST_ROWS = 2**6, 2**10, 2**13  # of a block; up to four times 2^11 in int64
_CACHE, _MEMORY = 5 * 2**15, 2**20  # numbers in the rows of all parts: 1.3 MB, and with up to 2^10 rows 8 MB
SECONDS = ("none", "trace", "diagonal", "full")

Pairs = NDArray[np.intp]
Share = tuple[Rows, Callable[[Pairs | None], Rows]]


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

    kind: ClassVar[str] = "shared"
    _settled = SETTLED | {"integers", "sizes", "_checked", "parts", "columns", "second", "together", "weights"}

    @abstractmethod
    def split(self, records: Rows) -> Share:
        """Responsibilities of n scaled records, a row for each, and a function that gives rows u_k of some of them.

        The function is called once, with numbers k·n + i of pairs (part k, record i), ascending, or with None for all pairs: with
        those whose γ_k > 0, and perhaps others. Each number must be a function of its own record alone, bit for bit.
        """

    @property
    def sizes(self) -> tuple[int, int, int]:
        """How many zeroth, first and second moments are released."""
        parts, d, second, together, _ = self._checked()
        each = {"none": 0, "trace": 1, "diagonal": d, "full": d * (d + 1) // 2}[second]
        return parts, parts * d, each * (1 if together else parts)

    @property
    def size(self) -> int:
        """How many numbers are released."""
        return sum(self.sizes)

    @property
    def sensitivity2(self) -> int:
        """max{2(A+B+C), G}, where two records in the same part can be apart by G = max 2B(1−t) + 2C(1−t²) over t in [−1, 1].

        In one part alone a record can be replaced by one with no share in it: A+B+C instead of twice that.
        """
        parts, *_, (a, b, c) = self._checked()
        same = 4 * b if b >= 2 * c else 2 * b + 2 * c - (-b * b // (2 * c))
        different = (2 if parts > 1 else 1) * (a + b + c)
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
        parts, d, *_ = self._checked()
        rows = max(_CACHE // (parts * d), min(_MEMORY // (parts * d), _FEW_ROWS), _LEAST_ROWS)
        return min(rows, _MOST_ROWS)

    def integers(self, records: Rows) -> tuple[Rows, Iterator[tuple[int, Rows, Rows]]]:
        """γ of all parts on the grid, a row for each part; and, for up to 2^11 pairs at a time, the part k, (γ_k u_k)ᵀ and u_k.

        Pairs (part, record) without a share are left out where they are many: zeros add nothing.
        """
        parts, d, *_ = self._checked()
        gamma, rows = self.split(read_only(records))
        g = _held_shares(gamma, (len(records), parts), name := f"{type(self).__name__}.split")
        shares, ends = g.ravel(), np.arange(parts + 1) * len(records)
        some, chosen = (shares > 0).nonzero()[0], None
        if 2 * len(some) <= len(shares):  # else picking rows out takes longer
            chosen, shares, ends = some, shares.take(some), some.searchsorted(ends)
        found = check_numbers(rows(chosen), (len(shares), d), name)

        def hold(pairs: slice) -> tuple[Rows, Rows]:
            u = held(found[pairs], found[pairs].shape, ROW_BITS, 4**ROW_BITS, name=name)
            return u.T * shares[pairs], u

        def each(weighted: Rows | None, u: Rows) -> Iterator[tuple[int, Rows, Rows]]:
            for k, (first, end) in enumerate(pairwise(ends.tolist())):
                for few in pieces(first, end, _EXACT_ROWS):
                    yield k, *(hold(few) if weighted is None else (weighted[:, few], u[few]))

        # all at once if they were picked out: few calls; else in pieces that stay in cache
        return g, each(None, found) if chosen is None else each(*hold(slice(None)))

    def block_sum(self, records: Rows) -> NDArray[Any]:
        """All moments of one block, as whole numbers: floats over 2^11 rows at a time, which is exact, then int64."""
        parts, d, second, together, _ = self._checked()
        sums = 1 if together else parts
        first, seconds = np.zeros((parts, d), np.int64), np.zeros((sums, self.sizes[2] // sums), np.int64)
        g, pairs = self.integers(records)
        for k, weighted, u in pairs:
            first[k] += weighted.sum(axis=1).astype(np.int64)
            if second != "none":
                seconds[0 if together else k] += _second(second, weighted, u).astype(np.int64)
        return np.concatenate([g.sum(axis=1).astype(np.int64), first.ravel(), seconds.ravel()])

    def coordinates(self, total: NDArray[Any]) -> NDArray[Any]:
        """The total with zeroth and first moments in steps of second ones."""
        scaled: NDArray[Any] = total.astype(object)
        zeroth, first, _ = self.sizes
        scaled[:zeroth] *= 4**ROW_BITS
        scaled[zeroth : zeroth + first] *= 2**ROW_BITS
        return scaled

    def shares(self) -> NDArray[np.int64]:
        """A, B and C; outside the diagonal of a matrix 2C."""
        _, d, second, _, weights = self._checked()
        return _shares(self.sizes, d, second, weights)

    def _checked(self) -> tuple[int, int, str, bool, tuple[int, int, int]]:
        """The fields, within what the proof asks for."""
        parts, d, (a, b, c) = index(self.parts), index(self.columns), map(index, self.weights)
        if self.second not in SECONDS:
            raise BadInput(f"second must be one of {', '.join(SECONDS)}, not {self.second!r}.")
        if not (1 <= parts <= 10**6 and 1 <= d <= 10**6 and parts * d * d <= 10**9):
            raise BadInput("A statistic has from 1 to 10^6 parts and columns, and at most 10^9 moments.")
        least = 0 if self.second == "none" else 1
        if not (1 <= a <= 2**20 and 1 <= b <= 2**20 and least <= c <= 2**20 * least):
            raise BadInput(
                "The weights of moments are whole numbers from 1 to 2^20, that of second moments 0 without them."
            )
        return parts, d, self.second, bool(self.together), (a, b, c)


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


def _held_shares(gamma: Any, shape: tuple[int, int], name: str) -> Rows:
    """Responsibilities on the grid, as whole numbers ≥ 0 that add up to at most 2^12 in each row, whatever came.

    What truncation leaves of a record goes to its largest share, so that a record counts as one.
    """
    gamma = np.asarray(gamma)
    if gamma.dtype.kind not in "biuf" or gamma.shape != shape:
        raise BadInput(f"{name} must give one real number for each record and part.")
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
