"""Sums that a record shares out among parts: what every step of expectation–maximisation releases.

    Shared   for each part k:  Σ γ_k,  Σ γ_k u_k  and, where wanted, Σ γ_k u_k u_kᵀ (or its diagonal, or its trace)

A record has responsibilities γ ≥ 0 of the K parts, which add up to at most one, and for each part a row u_k of length at
most one. A subclass gives both for a block of records; they are enforced here on the integers. All moments are released
together, with squared weights ``weights`` = (A, B, C) for zeroth, first and second moments: a larger weight buys less noise
on these at the expense of the others. The sensitivity does not depend on the number of parts. Proof: statistic.md, 2 to 4.
"""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from operator import index
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from reticent.errors import BadInput
from reticent.privacy.grid import held
from reticent.privacy.statistic import Rows, Statistic, pieces

__all__ = ["ROW_BITS", "SECONDS", "SHARE_BITS", "Shared", "upper"]

SHARE_BITS, ROW_BITS = 12, 15  # of responsibilities and of rows
_EXACT_ROWS, _MOST_ROWS = (
    2**11,
    2**13,
)  # 2^12 · 4^15 · 2^11 = 2^53: so many rows are added in floats; four times that in int64
_BLOCK, _CACHE = (
    2**18,
    2**20,
)  # numbers in rows of all parts, of a block of more than 2^11 rows and of a piece: 2 and 8 MB
SECONDS = ("none", "trace", "diagonal", "full")

Share = tuple[Rows, Callable[[int, NDArray[np.intp]], Rows]]


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
    _settled: ClassVar[frozenset[str]] = frozenset(
        {"kind", "size", "sensitivity2", "sensitivity1", "step", "block_rows", "block_sum", "coordinates", "shares"}
        | {"describe", "integers", "sizes", "_checked", "_settled"}
        | {"parts", "columns", "second", "together", "weights"}
    )

    @abstractmethod
    def split(self, records: Rows) -> Share:
        """Responsibilities of scaled records, a row for each, and a function that gives u_k of some of them.

        The function is called with a part k and the places of all records whose γ_k is not zero, and perhaps of others. Each
        number must be a function of its own record alone, bit for bit.
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
        """Rows per block, 2^11 to 2^13: Σ|products| ≤ rows · 2^12 · 4^15 ≤ 2^55. Where rows are short, few calls for many."""
        parts, d, *_ = self._checked()
        return min(max(_BLOCK // (parts * d) // _EXACT_ROWS, 1) * _EXACT_ROWS, _MOST_ROWS)

    def integers(self, records: Rows) -> tuple[Rows, dict[int, tuple[Rows, Rows]]]:
        """γ of all parts on the grid, one record in a row; for each part with a share in any, γ_k and u_k of those records."""
        parts, d, *_ = self._checked()
        records = records.view()
        records.flags.writeable = False
        gamma, rows = self.split(records)
        gamma, found = _held_shares(gamma, (len(records), parts), name := f"{type(self).__name__}.split"), {}
        everyone = np.arange(len(records))
        for k, own in enumerate(gamma.T):
            chosen = np.flatnonzero(own > 0)
            if 2 * len(chosen) > len(records):
                chosen = everyone  # zeros add nothing, and picking rows out takes longer
            if len(chosen):
                u = held(rows(k, chosen), (len(chosen), d), ROW_BITS, 4**ROW_BITS, name=name)
                found[k] = own if chosen is everyone else own[chosen], u
        return gamma, found

    def block_sum(self, records: Rows) -> NDArray[Any]:
        """All moments of one block, as whole numbers: floats over 2^11 rows at a time, which is exact, then int64."""
        parts, d, second, together, _ = self._checked()
        zeroth, first = np.zeros(parts, dtype=np.int64), np.zeros((parts, d), dtype=np.int64)
        sums = 1 if together else parts
        seconds = np.zeros((sums, self.sizes[2] // sums), dtype=np.int64)
        rows: dict[int, list[tuple[Rows, Rows]]] = {}
        for piece in pieces(len(records), max(64, _CACHE // (parts * d))):
            gamma, found = self.integers(records[piece])
            zeroth += gamma.sum(axis=0).astype(np.int64)
            for k, one in found.items():
                rows.setdefault(k, []).append(one)
        for k, some in rows.items():
            shares, all_rows = some[0] if len(some) == 1 else map(np.concatenate, zip(*some, strict=True))
            for few in pieces(len(shares), _EXACT_ROWS):
                share, u = shares[few], all_rows[few]
                first[k] += (share @ u).astype(np.int64)
                if second != "none":
                    seconds[0 if together else k] += _second(second, share, u).astype(np.int64)
        return np.concatenate([zeroth, first.ravel(), seconds.ravel()])

    def coordinates(self, total: NDArray[Any]) -> NDArray[Any]:
        """The total with zeroth and first moments in steps of second ones."""
        scaled: NDArray[Any] = total.astype(object)
        zeroth, first, _ = self.sizes
        scaled[:zeroth] *= 4**ROW_BITS
        scaled[zeroth : zeroth + first] *= 2**ROW_BITS
        return scaled

    def shares(self) -> NDArray[np.int64]:
        """A, B and C; outside the diagonal of a matrix 2C."""
        _, d, second, _, (a, b, c) = self._checked()
        zeroth, first, seconds = self.sizes
        each = np.full(seconds, c)
        if second == "full":
            row, column = upper(d)
            each = np.tile(np.where(row == column, c, 2 * c), seconds // len(row))
        return np.concatenate([np.full(zeroth, a), np.full(first, b), each])

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


def _second(kind: str, share: Rows, u: Rows) -> Rows:
    """Σ γuuᵀ of at most 2^11 rows, or its diagonal, or its trace."""
    weighted = u * share[:, None]
    if kind == "full":
        return np.asarray((weighted.T @ u)[upper(u.shape[1])])
    return np.asarray(np.einsum("ij,ij->j" if kind == "diagonal" else "ij,ij->", weighted, u))


@lru_cache(maxsize=16)
def upper(d: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Places of the upper triangle of a matrix, row by row."""
    row, column = np.triu_indices(d)
    return row, column


def _held_shares(gamma: Any, shape: tuple[int, int], name: str) -> Rows:
    """Responsibilities on the grid, as whole numbers ≥ 0 that add up to at most 2^12 in each row, whatever came.

    What truncation leaves of a record goes to its largest share, so that a record counts as one.
    """
    gamma = np.asarray(gamma)
    if gamma.dtype.kind not in "biuf" or gamma.shape != shape:
        raise BadInput(f"{name} must give one real number for each record and part.")
    one = 2.0**SHARE_BITS
    g: Rows = np.multiply(gamma.T, one, dtype=np.float64)  # the shares of one part lie side by side
    np.trunc(np.clip(g, 0.0, one, out=g), out=g)
    total = g.sum(axis=0)  # exact in every order
    over = ~(total <= one)
    if over.any():
        g[:, over], total[over] = 0.0, 0.0  # does not happen to responsibilities: too many shares, or not numbers
    most, left = g.max(axis=0), np.where(total > 0, one - total, 0.0)
    for part in g:  # the first of the largest takes it; a search by argmax would be slower
        more = np.where(part == most, left, 0.0)
        part += more
        left -= more
    return g.T
