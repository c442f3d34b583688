"""Counts: for each of several groups of cells, how many records fall into each cell.

Proof: statistics.md, 2 to 4.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from reticent.errors import BadInput
from reticent.privacy.guard import map_rows_safely
from reticent.privacy.statistics.base import BLOCK_NUMBERS, Rows, Statistic
from reticent.privacy.statistics.enforced import (
    Enforced,
    Sensitivity,
    common,
    is_kind,
    whole,
)

__all__ = ["Counts", "EnforcedCounts"]


@final
@dataclass(frozen=True, eq=False)
class EnforcedCounts(Enforced):
    """For each of several groups of cells, how many records fall into each cell."""

    groups: tuple[int, ...]

    kind: ClassVar[str] = "counts"
    saved_as: ClassVar[str] = "CountsPlan"

    @property
    def size(self) -> int:
        """How many counts are released."""
        return sum(self.groups)

    @property
    def sensitivity2(self) -> int:
        """In each group one count falls by one and one rises, at most: 2 per group."""
        return 2 * len(self.groups)

    @property
    def sensitivity1(self) -> int | None:
        """The same: 2 per group."""
        return 2 * len(self.groups)

    def contribution(self) -> Sensitivity:
        """In each group one count rises by one, at most."""
        groups = len(self.groups)
        return Sensitivity(groups, groups, self.coordinate_multiplicity())

    @property
    def step(self) -> float:
        """Counts are whole."""
        return 1.0

    @property
    def block_rows(self) -> int:
        """Counts of a block are exact for any number of rows."""
        return max(64, BLOCK_NUMBERS // len(self.groups))

    def block_sum(self, records: Rows) -> NDArray[Any]:
        """Counts of one block."""
        shape = len(records), len(self.groups)
        filled, lacking = self.fill(records)
        found = map_rows_safely(
            f"{self.name}.cells", lambda some: self.statistic.cells(some), shape, filled
        )
        cells = np.trunc(found.astype(np.float64))
        known = ~np.isnan(cells)
        if lacking is not None:
            known[lacking] = False
        cells = np.where(cells > 0, np.minimum(cells, np.array(self.groups) - 1.0), 0.0)
        first = np.concatenate([[0], np.cumsum(self.groups)[:-1]])
        return np.bincount((cells.astype(np.int64) + first)[known], minlength=self.size)


def _enforced_counts(statistic: "Counts") -> EnforcedCounts:
    who = common(statistic)
    groups = tuple(
        whole(f"{who[1]}.groups: each number of cells", size) for size in statistic.groups
    )
    if not groups or sum(groups) > 2**40:
        raise BadInput(f"{who[1]}.groups must be a list of whole numbers of at least 1.")
    return EnforcedCounts(*who, groups)


@is_kind(_enforced_counts)
class Counts(Statistic):
    """Abstract: for each of several groups of cells, how many records fall into each cell."""

    @property
    @abstractmethod
    def groups(self) -> tuple[int, ...]:
        """Number of cells in each group; a record is counted at most once in every group."""

    @abstractmethod
    def cells(self, records: Rows) -> Rows:
        """For each record and group the cell, a number from 0 up.

        NaN is no cell; anything else is moved to the nearest one. If cells cannot be told, the
        records are given one by one; one that fails alone is not counted.
        """
