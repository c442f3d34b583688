"""Counts on a grid over the whole box: the synopsis from which models of few columns are computed. Proof: grids.md."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reticent.privacy.statistic import Counts

__all__ = ["GridCounts", "bins_for"]

Array = NDArray[np.float64]
_PER_NOISE = 0.5  # cells for each n/sd records: an average cell has twice its noise, but most records are in few cells
_MOST_CELLS = 4096


@dataclass(frozen=True)
class GridCounts(Counts):
    """How many records fall into each cell of a grid with ``bins`` equal bins in each of ``dimension`` columns."""

    dimension: int
    bins: int

    @property
    def groups(self) -> tuple[int, ...]:
        """One group of all cells."""
        return (self.bins**self.dimension,)

    def cells(self, records: Array) -> Array:
        """The number of each record's cell, the last column's bin counting fastest: +, ×, floor, clip, elementwise."""
        cell = np.zeros(len(records))
        for j in range(self.dimension):
            bin_ = np.floor((records[:, j] + 1.0) * (self.bins / 2))
            cell = cell * self.bins + np.clip(bin_, 0.0, self.bins - 1.0)
        return cell[:, None]

    def centres(self) -> Array:
        """The middle of each cell, in scaled coordinates."""
        middle = (np.arange(self.bins) + 0.5) * (2 / self.bins) - 1
        return np.stack(np.meshgrid(*[middle] * self.dimension, indexing="ij"), axis=-1).reshape(-1, self.dimension)


def bins_for(n: int, sd: float, dimension: int) -> int:
    """Bins of each column, from the number of records and the noise of a count: finer where noise allows it."""
    cells = min(max(_PER_NOISE * n / sd, 1.0), _MOST_CELLS)
    return max(math.floor(cells ** (1 / dimension) + 1e-9), 2)
