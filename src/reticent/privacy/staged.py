"""Gram statistics that are released in stages: rows (head, tail), where the head is the same in many stages.

    StagedGram   Σ f fᵀ,  f = (h(record), t(h, record)),   ‖h‖² ≤ head.norm2,  ‖t‖² ≤ tail_norm2

Head and tail are truncated to the grid and held to limits of their own, so that the head's integers cannot depend on the
tail. Then Σ hhᵀ is the same in every stage, and a curator that has kept it, with the integers h of every record, needs
Σ htᵀ and Σ ttᵀ only: of n·m² multiplications n·m·p are left. The integers that are released are the same, bit for bit.
Proof: statistic.md, 2 to 4.
"""

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from operator import index
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from reticent.privacy.grid import fraction, held, limit
from reticent.privacy.guard import mapped
from reticent.privacy.plan import common, is_kind, planned, positive, whole
from reticent.privacy.products import gram, product
from reticent.privacy.statistic import MOST_BITS, Gram, GramPlan, RowMap, Rows, upper
from reticent.privacy.sums import pieces

__all__ = ["Head", "StagedGram", "StagedPlan"]

_CACHE = 2**18  # numbers in a piece of rows: about 2 MB


@dataclass(frozen=True)
class Head(RowMap):
    """Abstract: the part of a row that is the same in every stage. A frozen dataclass; equal fields mean the same map."""


@final
@dataclass(frozen=True, eq=False)
class StagedPlan(GramPlan):
    """Rows (head, tail): the first ``head_columns`` numbers are held to ``head_limit2``, the others to ``tail_limit2``.

    ``limit2`` is the sum of both limits. ``head`` is asked for heads, the statistic for tails.
    """

    head: Any = None
    head_columns: int = 0
    head_limit2: int = 0
    tail_limit2: int = 0

    @property
    def tail_columns(self) -> int:
        """How many numbers the tail of a row has."""
        return self.columns - self.head_columns

    def head_integers(self, records: Rows) -> Rows:
        """Heads on the integer grid, within their limit; zero where a head fails."""
        shape = len(records), self.head_columns
        name = type.__dict__["__name__"].__get__(type(self.head))
        rows = mapped(f"{name}.rows", lambda some: self.head.rows(some), shape, records)
        return held(rows, self.bits, self.head_limit2)

    def tail_integers(self, head: Rows, records: Rows) -> Rows:
        """Tails on the integer grid, within their limit; zero where a tail fails."""
        shape = len(records), self.tail_columns
        rows = mapped(f"{self.name}.tail", lambda h, some: self.statistic.tail(h, some), shape, head, records)
        return held(rows, self.bits, self.tail_limit2)

    def integers(self, records: Rows) -> Rows:
        """Rows on the integer grid: heads, then tails."""
        head = self.head_integers(records)
        return np.hstack([head, self.tail_integers(head, records)])

    @property
    def piece_rows(self) -> int:
        """Rows of a block that are made together: fewer and longer pieces than elsewhere, for rows are made column by column."""
        return max(64, _CACHE // self.columns)

    def stacked(self, records: Rows) -> Rows:
        """The integer rows of a block, made in pieces; column after column, as heads usually come."""
        m = self.head_columns
        q = np.empty((len(records), self.columns), order="F")
        for piece in pieces(0, len(records), self.piece_rows):
            q[piece, :m] = head = self.head_integers(records[piece])
            q[piece, m:] = self.tail_integers(head, records[piece])
        return q

    def tail_sum(self, head: NDArray[np.int32], records: Rows) -> Rows:
        """Σ(h, t)tᵀ over one block whose heads are known: the last columns of its Gram matrix, exact."""
        m = self.head_columns
        total = np.zeros((self.columns, self.tail_columns))
        for piece in pieces(0, len(records), self.piece_rows):
            h = head[piece].astype(np.float64)
            t = self.tail_integers(h, records[piece])
            total[:m] += product(h.T, t, records="inner")
            total[m:] += gram(t)
        return total

    def lasting(self) -> NDArray[np.bool_]:
        """Σ h tᵀ: of the head's own products much is known beforehand, and little is asked of the tail's."""
        row, column = upper(self.columns)
        m = self.head_columns
        return np.asarray((row < m) & (column >= m))

    def joined(self, heads: Any, tails: Any) -> Any:
        """The whole Gram matrix, from Σhhᵀ and from the sum of `tail_sum` over all blocks."""
        return np.hstack([np.vstack([heads, tails[: len(heads)].T]), tails])


def _staged_plan(statistic: Any) -> StagedPlan:
    who = common(statistic)
    name = who[1]
    head = statistic.head
    bits = whole(f"{name}.bits", statistic.bits, -MOST_BITS, MOST_BITS)
    head_columns = whole(f"{name}: columns of the head", head.columns)
    columns = head_columns + whole(f"{name}.tail_columns", statistic.tail_columns)
    norms = {"head": head.norm2, "tail": statistic.tail_norm2}
    parts = []
    for part, norm2 in norms.items():
        what = f"{name}: norm2 · 4^bits of the {part}"
        parts.append(limit(positive(what, norm2), Fraction(4) ** bits, what))
    limit2 = limit(Fraction(sum(parts)), Fraction(1), f"{name}: norm2 · 4^bits")
    return StagedPlan(*who, columns, bits, limit2, None, False, head, head_columns, *parts)


@is_kind(_staged_plan)
@dataclass(frozen=True)
class StagedGram(Gram):
    """Abstract: Σ f fᵀ of rows f = (head, tail), each part held to its own bound."""

    head: Head

    @property
    @abstractmethod
    def tail_columns(self) -> int:
        """How many numbers the tail of a row has."""

    @property
    @abstractmethod
    def tail_norm2(self) -> int | Fraction:
        """Bound on the tail's squared Euclidean length."""

    @abstractmethod
    def tail(self, head: Rows, records: Rows) -> Rows:
        """Map heads (in grid steps: whole numbers) and scaled records to tails, row by row, bit for bit."""

    @property
    def columns(self) -> int:
        """Length of a row."""
        return index(self.head.columns) + index(self.tail_columns)

    @property
    def norm2(self) -> Fraction:
        """Bound on a row's squared length."""
        return fraction(self.head.norm2) + fraction(self.tail_norm2)

    def rows(self, records: Rows) -> Rows:
        """The whole rows, on the grid."""
        plan = self.plan()
        return plan.integers(records) * 2.0**-plan.bits

    def plan(self) -> StagedPlan:
        """What head and tail are held to."""
        plan = planned(self)
        assert isinstance(plan, StagedPlan)
        return plan

    @property
    def head_limit2(self) -> int:
        """What the head's squared length is held to on the grid."""
        return self.plan().head_limit2

    @property
    def tail_limit2(self) -> int:
        """What the tail's squared length is held to on the grid."""
        return self.plan().tail_limit2
