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
from functools import cached_property
from operator import index
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.privacy.grid import fraction, held, limit, read_only
from reticent.privacy.products import gram, product
from reticent.privacy.statistic import Gram, RowMap, Rows, upper
from reticent.privacy.sums import pieces

__all__ = ["Head", "StagedGram"]

_CACHE = 2**18  # numbers in a piece of rows: about 2 MB


@dataclass(frozen=True)
class Head(RowMap):
    """Abstract: the part of a row that is the same in every stage. A frozen dataclass; equal fields mean the same map."""


@dataclass(frozen=True)
class StagedGram(Gram):
    """Abstract: Σ f fᵀ of rows f = (head, tail), each part held to its own bound."""

    head: Head

    _settled = (
        Gram._settled
        | {"columns", "norm2", "rows", "head_limit2", "tail_limit2"}
        | {"head_integers", "tail_integers", "tail_sum", "joined"}
    )

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

    @cached_property
    def head_limit2(self) -> int:
        """What the head's squared length is held to on the grid."""
        return limit(self.head.norm2, 4 ** index(self.bits), f"{type(self).__name__}: norm2 · 4^bits of the head")

    @cached_property
    def tail_limit2(self) -> int:
        """What the tail's squared length is held to on the grid."""
        return limit(self.tail_norm2, 4 ** index(self.bits), f"{type(self).__name__}: norm2 · 4^bits of the tail")

    @cached_property
    def limit2(self) -> int:
        """What the row's squared length cannot exceed."""
        return limit(self.head_limit2 + self.tail_limit2, 1, f"{type(self).__name__}: norm2 · 4^bits")

    @property
    def sensitivity2(self) -> int:
        """2·(limits of head and tail)²: from the very numbers that are enforced."""
        return 2 * (self.head_limit2 + self.tail_limit2) ** 2

    def head_integers(self, records: Rows) -> Rows:
        """Heads on the integer grid, within their limit."""
        shape = (len(records), index(self.head.columns))
        rows = self.head.rows(read_only(records))
        return held(rows, shape, self.bits, self.head_limit2, name=f"{type(self.head).__name__}.rows")

    def tail_integers(self, head: Rows, records: Rows) -> Rows:
        """Tails on the integer grid, within their limit."""
        shape = (len(records), index(self.tail_columns))
        rows = self.tail(read_only(head), read_only(records))
        return held(rows, shape, self.bits, self.tail_limit2, name=f"{type(self).__name__}.tail")

    def rows(self, records: Rows) -> Rows:
        """The whole rows, on the grid."""
        return self.integers(records) * 2.0**-self.bits

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
        q, m = np.empty((len(records), self.columns), order="F"), index(self.head.columns)
        for piece in pieces(0, len(records), self.piece_rows):
            q[piece, :m] = head = self.head_integers(records[piece])
            q[piece, m:] = self.tail_integers(head, records[piece])
        return q

    def tail_sum(self, head: NDArray[np.int32], records: Rows) -> Rows:
        """Σ(h, t)tᵀ over one block whose heads are known: the last columns of its Gram matrix, exact."""
        m = head.shape[1]
        total = np.zeros((self.columns, self.columns - m))
        for piece in pieces(0, len(records), self.piece_rows):
            h = head[piece].astype(np.float64)
            t = self.tail_integers(h, records[piece])
            total[:m] += product(h.T, t, records="inner")
            total[m:] += gram(t)
        return total

    def lasting(self) -> NDArray[np.bool_]:
        """Σ h tᵀ: of the head's own products much is known beforehand, and little is asked of the tail's."""
        row, column = upper(self.columns)
        m = index(self.head.columns)
        return np.asarray((row < m) & (column >= m))

    def joined(self, heads: Any, tails: Any) -> Any:
        """The whole Gram matrix, from Σhhᵀ and from the sum of `tail_sum` over all blocks."""
        return np.hstack([np.vstack([heads, tails[: len(heads)].T]), tails])
