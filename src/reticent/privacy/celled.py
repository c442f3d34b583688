"""Sums by cell: each record is in one cell, and adds a short row to that cell's sums and to sums that all cells share.

    CellSum   Σ onehot(cell) ⊗ own(record), and Σ shared(record),   ‖(own, shared)‖² ≤ norm2

The same integers and the same sensitivity as a `Sum` of these rows, which are mostly zeros, without writing the zeros down.
A record in no cell adds nothing. Proof: statistic.md, 2 to 4.
"""

from abc import abstractmethod
from operator import index
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.privacy.grid import held
from reticent.privacy.statistic import Rows, Sum

__all__ = ["CellSum"]

_CACHE = 2**17  # numbers in a block of short rows


class CellSum(Sum):
    """Abstract: for every cell the sum of its records' own numbers, and of all records' shared numbers."""

    _settled = Sum._settled | {"columns", "rows", "_places", "_short"}

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
        """The cell of each scaled record, from 0 up; −1, or anything that is no cell, for none. Each of its record alone."""

    @abstractmethod
    def short_rows(self, records: Rows) -> Rows:
        """For each scaled record its own numbers, then the shared ones; a function of that record alone, bit for bit."""

    @property
    def columns(self) -> int:
        """Length of a whole row: for each of a record's own numbers all cells, then what is shared."""
        return index(self.own) * index(self.cells) + index(self.shared)

    def rows(self, records: Rows) -> Rows:
        """The whole rows, on the grid."""
        return self.integers(records) * 2.0**-self.bits

    def integers(self, records: Rows) -> Rows:
        """Whole rows on the integer grid, zeros and all; `block_sum` does without."""
        places = self._places(records)
        short = self._short(records, places)
        own, cells = index(self.own), index(self.cells)
        q = np.zeros((len(records), self.columns))
        for part in range(own):
            inside = np.flatnonzero(places >= 0)
            q[inside, part * cells + places[inside]] = short[inside, part]
        q[:, own * cells :] = short[:, own:]
        return q

    @property
    def block_rows(self) -> int:
        """No entry is longer than √limit2 ≤ 2²⁶: any block that fits in cache is exact."""
        return max(64, _CACHE // (index(self.own) + index(self.shared)))

    def block_sum(self, records: Rows) -> NDArray[Any]:
        """Sums of one block: whole float64 numbers below 2⁵³, so exact in any order."""
        places = self._places(records)
        short = self._short(records, places)
        own, cells = index(self.own), index(self.cells)
        inside = places >= 0
        sums = [np.bincount(places[inside], weights=short[inside, part], minlength=cells) for part in range(own)]
        total: Rows = np.concatenate([*sums, short[:, own:].sum(axis=0)])
        return total

    def _places(self, records: Rows) -> NDArray[np.int64]:
        """Cells as whole numbers from 0 to cells − 1, or −1."""
        cell = np.trunc(np.asarray(self.cell(records), dtype=np.float64).reshape(len(records)))
        known = (cell >= 0) & (cell < index(self.cells))  # not so for NaN
        return np.where(known, cell, -1.0).astype(np.int64)

    def _short(self, records: Rows, places: NDArray[np.int64]) -> Rows:
        """Short rows on the integer grid, within the limits; zero for a record in no cell."""
        shape = (len(records), index(self.own) + index(self.shared))
        name = f"{type(self).__name__}.short_rows"
        q = held(
            self.short_rows(records),
            shape,
            self.bits,
            self.limit2,
            limit1=self.limit1,
            nonnegative=self.nonnegative,
            name=name,
        )
        q[places < 0] = 0.0
        return q
