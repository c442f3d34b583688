"""Sums by cell: each record adds a short row to its cell's sums, and one to sums of all cells.

    CellSum   Σ onehot(cell) ⊗ own(record), and Σ shared(record),   ‖(own, shared)‖² ≤ norm2

The same integers and the same sensitivity as a `Sum` of these rows, which are mostly zeros, without
writing the zeros down. A record in no cell adds nothing. Proof: statistics.md, 2 to 4.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from reticent.privacy.guard import map_rows_safely
from reticent.privacy.statistics.base import Rows
from reticent.privacy.statistics.enforced import common, enforce, is_kind, whole
from reticent.privacy.statistics.integer_grid import quantize_and_clip
from reticent.privacy.statistics.sum import EnforcedSum, Sum, sum_limits

__all__ = ["CellSum", "EnforcedCellSum"]

_CACHE = 2**17  # numbers in a block of short rows


@final
@dataclass(frozen=True, eq=False)
class EnforcedCellSum(EnforcedSum):
    """For each of a record's ``own`` numbers all ``cells``, then the ``shared`` numbers.

    ``columns`` in all.
    """

    cells: int = 0
    own: int = 0
    shared: int = 0

    saved_as: ClassVar[str] = "CellSumPlan"

    @property
    def block_rows(self) -> int:
        """No entry is longer than √limit2 ≤ 2²⁶: any block that fits in cache is exact."""
        return max(64, _CACHE // (self.own + self.shared))

    def integers(self, records: Rows) -> Rows:
        """Whole rows on the integer grid, zeros and all; `block_sum` does without."""
        places = self._places(records)
        short = self._short(records, places)
        q = np.zeros((len(records), self.columns))
        inside = np.flatnonzero(places >= 0)
        for part in range(self.own):
            q[inside, part * self.cells + places[inside]] = short[inside, part]
        q[:, self.own * self.cells :] = short[:, self.own :]
        return q

    def block_sum(self, records: Rows) -> NDArray[Any]:
        """Sums of one block: whole float64 numbers below 2⁵³, so exact in any order."""
        places = self._places(records)
        short = self._short(records, places)
        inside = places >= 0
        where = places[inside]
        sums = [
            np.bincount(where, weights=short[inside, part], minlength=self.cells)
            for part in range(self.own)
        ]
        total: Rows = np.concatenate([*sums, short[:, self.own :].sum(axis=0)])
        return total

    def _places(self, records: Rows) -> NDArray[np.int64]:
        """Cells as whole numbers from 0 to cells − 1, or −1: also for a record whose cell fails."""

        def cell(some: Rows) -> NDArray[Any]:
            return np.reshape(self.statistic.cell(some), len(some))

        found = map_rows_safely(f"{self.name}.cell", cell, (len(records),), records)
        place = np.trunc(found.astype(np.float64))
        known = (place >= 0) & (place < self.cells)  # not so for NaN
        return np.where(known, place, -1.0).astype(np.int64)

    def _short(self, records: Rows, places: NDArray[np.int64]) -> Rows:
        """Short rows on the integer grid, within the limits; zero for a record in no cell."""
        shape = len(records), self.own + self.shared
        rows = map_rows_safely(
            f"{self.name}.short_rows", lambda some: self.statistic.short_rows(some), shape, records
        )
        q = quantize_and_clip(
            rows, self.bits, self.limit2, limit1=self.limit1, nonnegative=self.nonnegative
        )
        q[places < 0] = 0.0
        return q


def _enforced_cell_sum(statistic: "CellSum") -> EnforcedCellSum:
    who = common(statistic)
    name = who[1]
    cells = whole(f"{name}.cells", statistic.cells)
    own = whole(f"{name}.own", statistic.own, 0)
    shared = whole(f"{name}.shared", statistic.shared, 0)
    columns = whole(f"{name}: own · cells + shared", own * cells + shared)
    bits, limit2, limit1, nonnegative = sum_limits(statistic, name)
    return EnforcedCellSum(*who, columns, bits, limit2, limit1, nonnegative, cells, own, shared)


@is_kind(_enforced_cell_sum)
class CellSum(Sum):
    """Abstract: for every cell the sum of its records' own numbers, and sums over all records."""

    @property
    @abstractmethod
    def cells(self) -> int:
        """Number of cells."""

    @property
    @abstractmethod
    def own(self) -> int:
        """How many numbers a record adds to its cell."""

    @property
    @abstractmethod
    def shared(self) -> int:
        """How many numbers a record adds to what all cells share."""

    @abstractmethod
    def cell(self, records: Rows) -> Rows:
        """The cell of each scaled record, from 0 up; −1, or anything that is no cell, for none.

        Each of its record alone.
        """

    @abstractmethod
    def short_rows(self, records: Rows) -> Rows:
        """For each scaled record its own numbers, then the shared ones.

        A function of that record alone, bit for bit.
        """

    @property
    def columns(self) -> int:
        """Length of a whole row.

        For each of a record's own numbers all cells, then what is shared.
        """
        return enforce(self).size

    def rows(self, records: Rows) -> Rows:
        """The whole rows, on the grid."""
        return self.integers(records) * self.step
