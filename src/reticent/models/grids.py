"""Counts on a grid over the whole box, and on a finer one where records are: a synopsis of few columns. Proof: grids.md.

GridCounts   how many records fall into each cell of a grid
LeafSums     for the same cells, each cut into public numbers of leaves: how many records are in a leaf, and where in it
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from reticent.errors import BadInput
from reticent.privacy.celled import CellSum
from reticent.privacy.statistic import Counts

__all__ = ["GridCounts", "LeafSums", "bins_for"]

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


@dataclass(frozen=True)
class LeafSums(CellSum):
    """Σ (1, v/2) for each leaf: v in [0, 1]ᵈ is the place of a record in its leaf; a cell has splitᵈ leaves."""

    dimension: int
    bins: int
    splits: tuple[int, ...]  # of each cell of the grid, along each column

    def __post_init__(self) -> None:
        # or records in cells that the table lacks would fail, and that would tell of them
        if len(self.splits) != self.bins**self.dimension or min(self.splits) < 1:
            raise BadInput(
                f"There must be a number of splits, at least 1, for each of {self.bins**self.dimension} cells."
            )

    @property
    def nonnegative(self) -> bool:
        """Counts and places are."""
        return True

    @cached_property
    def _starts(self) -> NDArray[np.int64]:
        return np.concatenate([[0], np.cumsum(np.array(self.splits, dtype=np.int64) ** self.dimension)])

    @property
    def cells(self) -> int:
        """Number of leaves."""
        return int(self._starts[-1])

    @property
    def own(self) -> int:
        """A count, and a place."""
        return 1 + self.dimension

    @property
    def shared(self) -> int:
        """Nothing."""
        return 0

    @property
    def norm2(self) -> Fraction:
        """1 + d/4."""
        return 1 + Fraction(self.dimension, 4)

    def _found(self, records: Array) -> tuple[Array, list[Array]]:
        """Leaf and place of each record: +, −, ×, floor, clip and a look-up of whole numbers, elementwise."""
        at = [(records[:, j] + 1.0) * (self.bins / 2) for j in range(self.dimension)]
        bins = [np.clip(np.floor(np.where(np.isnan(t), 0.0, t)), 0.0, self.bins - 1.0) for t in at]
        cell = np.zeros(len(records))
        for one in bins:
            cell = cell * self.bins + one
        cells = cell.astype(np.int64)
        split = np.array(self.splits, dtype=np.float64)[cells]
        leaf, places = np.zeros(len(records)), []
        for t, one in zip(at, bins, strict=True):
            inside = np.clip(t - one, 0.0, 1.0) * split
            step = np.minimum(np.floor(inside), split - 1.0)
            leaf = leaf * split + step
            places.append(np.clip(inside - step, 0.0, 1.0))
        return self._starts[cells] + leaf, places

    def cell(self, records: Array) -> Array:
        """The leaf of each record."""
        return self._found(records)[0]

    def short_rows(self, records: Array) -> Array:
        """1, and half the place in the leaf."""
        return np.stack([np.ones(len(records)), *(v / 2 for v in self._found(records)[1])], axis=1)

    def leaves(self) -> tuple[NDArray[np.int64], Array, Array]:
        """The cell of each leaf, its lowest corner in scaled coordinates, and its width."""
        split = np.array(self.splits, dtype=np.int64)
        cell = np.repeat(np.arange(len(split)), split**self.dimension)
        number, width = np.arange(self.cells) - self._starts[cell], 2 / (self.bins * split[cell])
        corner, rest = np.empty((self.cells, self.dimension)), cell.copy()
        for j in reversed(range(self.dimension)):
            corner[:, j] = (rest % self.bins) * (2 / self.bins) - 1 + (number % split[cell]) * width
            rest, number = rest // self.bins, number // split[cell]
        return cell, corner, width


def bins_for(n: int, sd: float, dimension: int, per_noise: float = _PER_NOISE) -> int:
    """Bins of each column, from the number of records and the noise of a count: finer where noise allows it."""
    cells = min(max(per_noise * n / sd, 1.0), _MOST_CELLS)
    return max(math.floor(cells ** (1 / dimension) + 1e-9), 2)
