"""Counts on a grid over the whole box, and on a finer one where records are.

A synopsis of few columns. Proof: grid_counts.md.

GridCounts   how many records fall into each cell of a grid
LeafSums     for the same cells, each cut into a public number of leaves, or several joined to one:
             how many records are in a leaf, and where in it
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from reticent.errors import BadInput
from reticent.privacy.release import Release
from reticent.privacy.statistics.cell_sum import CellSum
from reticent.privacy.statistics.counts import Counts

__all__ = ["DecodedGridCounts", "DecodedLeafSums", "GridCounts", "LeafSums", "bins_for"]

Array = NDArray[np.float64]
# cells for each n/sd records: an average cell has twice its noise, but most records
# are in few cells
_PER_NOISE = 0.5
_MOST_CELLS = 4096


@dataclass(frozen=True)
class GridCounts(Counts):
    """Number of records in each cell of a grid, with equal bins in each column."""

    dimension: int
    bins: int

    groups = property(lambda self: (self.bins**self.dimension,))

    def cells(self, records: Array) -> Array:
        """Number of each record's cell, last column fastest: +, ×, floor, clip, elementwise."""
        cell = np.zeros(len(records))
        for j in range(self.dimension):
            bin_ = np.floor((records[:, j] + 1.0) * (self.bins / 2))
            cell = cell * self.bins + np.clip(bin_, 0.0, self.bins - 1.0)
        return cell[:, None]

    def centres(self) -> Array:
        """The middle of each cell, in scaled coordinates."""
        middle = (np.arange(self.bins) + 0.5) * (2 / self.bins) - 1
        return np.stack(np.meshgrid(*[middle] * self.dimension, indexing="ij"), axis=-1).reshape(
            -1, self.dimension
        )

    @classmethod
    def decode(cls, release: Release) -> "DecodedGridCounts":
        """Counts in the shape of the grid."""
        asked = release.statistic
        shape = (asked["bins"],) * asked["dimension"]
        return DecodedGridCounts(asked["bins"], release.value.reshape(shape), float(release.sd[0]))


@dataclass(frozen=True, eq=False)
class DecodedGridCounts:
    """Noisy number of records in each cell of a grid of d columns.

    Attributes
    ----------
    bins : int
        Bins of each column.
    counts : array (bins, …, bins)
        One axis for each column.
    sd : float
        Standard deviation of the noise of each count.
    """

    bins: int
    counts: Array
    sd: float


@dataclass(frozen=True)
class LeafSums(CellSum):
    """Σ (1, v/2) for each leaf: v in [0, 1]ᵈ is a record's place in its leaf.

    A cell has splitᵈ leaves, a block of cells one.
    """

    dimension: int
    bins: int
    splits: tuple[int, ...]  # of each cell of the grid, along each column
    blocks: tuple[
        int, ...
    ] = ()  # of each cell: the block that it is joined to, or −1; () if nothing is joined

    def __post_init__(self) -> None:
        # or records in cells that a table lacks would fail, and that would tell of them
        cells = self.bins**self.dimension
        numbers = set(self.blocks) - {-1}
        if len(self.splits) != cells or min(self.splits) < 1:
            raise BadInput(
                f"There must be a number of splits, at least 1, for each of {cells} cells."
            )
        if len(self.blocks) not in (0, cells) or numbers != set(range(len(numbers))):
            raise BadInput(
                "There must be a block, numbered from 0 without gaps, or -1, "
                f"for each of {cells} cells."
            )
        if any(
            split > 1 and block >= 0 for split, block in zip(self.splits, self.blocks, strict=False)
        ):
            raise BadInput("A cell is cut into leaves or joined to a block, not both.")

    @cached_property
    def _tables(
        self,
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Of each cell: number of leaves, first leaf, lowest bins and width of its square."""
        block = np.array(self.blocks or (-1,) * len(self.splits), dtype=np.int64)
        own = np.where(block < 0, np.array(self.splits, dtype=np.int64) ** self.dimension, 0)
        start = np.where(block < 0, np.cumsum(own) - own, own.sum() + block)
        low = np.stack(np.unravel_index(np.arange(len(own)), (self.bins,) * self.dimension), axis=1)
        least = np.full((block.max() + 1, self.dimension), self.bins, dtype=np.int64)
        most = np.zeros_like(least)
        joined = block >= 0
        np.minimum.at(least, block[joined], low[joined])
        np.maximum.at(most, block[joined], low[joined] + 1)
        span = np.ones(len(own), dtype=np.int64)
        low[joined], span[joined] = (
            least[block[joined]],
            (most - least).max(axis=1, initial=1)[block[joined]],
        )
        return own, start, low, span

    cells = property(
        lambda self: int(self._tables[0].sum()) + max(self.blocks, default=-1) + 1
    )  # number of leaves
    own = property(lambda self: 1 + self.dimension)  # a count, and a place
    shared = 0
    norm2 = property(lambda self: 1 + Fraction(self.dimension, 4))
    nonnegative = True

    def _found(self, records: Array) -> tuple[Array, list[Array]]:
        """Leaf and place of each record: +, −, ×, ÷, floor, clip, look-ups, elementwise."""
        at = [(records[:, j] + 1.0) * (self.bins / 2) for j in range(self.dimension)]
        bins = [np.clip(np.floor(np.where(np.isnan(t), 0.0, t)), 0.0, self.bins - 1.0) for t in at]
        cell = np.zeros(len(records))
        for one in bins:
            cell = cell * self.bins + one
        cells = cell.astype(np.int64)
        _, start, low, span = self._tables
        split = np.array(self.splits, dtype=np.float64)[cells]
        wide = span.astype(np.float64)[cells]
        leaf = np.zeros(len(records))
        places = []
        for t, lowest in zip(at, low.T.astype(np.float64), strict=True):
            inside = np.clip((t - lowest[cells]) / wide, 0.0, 1.0) * split
            step = np.minimum(np.floor(inside), split - 1.0)
            leaf = leaf * split + step
            places.append(np.clip(inside - step, 0.0, 1.0))
        return start[cells] + leaf, places

    def cell(self, records: Array) -> Array:
        """The leaf of each record."""
        return self._found(records)[0]

    def short_rows(self, records: Array) -> Array:
        """1, and half the place in the leaf."""
        return np.stack([np.ones(len(records)), *(v / 2 for v in self._found(records)[1])], axis=1)

    def leaves(self) -> tuple[NDArray[np.int64], Array, Array]:
        """Cell of each leaf (a block's first), its lowest corner, and its width; blocks last."""
        own, start, low, span = self._tables
        cell = np.repeat(np.arange(len(own)), own)
        heads = np.unique(start[own == 0], return_index=True)[1]
        cell = np.concatenate([cell, np.flatnonzero(own == 0)[heads]])
        split = np.array(self.splits, dtype=np.int64)[cell]
        number = np.arange(self.cells) - start[cell]
        width = np.asarray(2 * span[cell] / (self.bins * split), dtype=np.float64)
        corner = np.asarray(low[cell] * (2 / self.bins) - 1, dtype=np.float64)
        for j in reversed(range(self.dimension)):
            corner[:, j] += (number % split) * width
            number = number // split
        return cell, corner, width

    @classmethod
    def decode(cls, release: Release) -> "DecodedLeafSums":
        """Counts and sums of places, leaf by leaf."""
        asked = release.statistic
        leaf_map = cls(
            asked["dimension"], asked["bins"], tuple(asked["splits"]), tuple(asked["blocks"])
        )
        counts, places = np.split(release.value, [leaf_map.cells])
        sd = float(release.sd[0])
        return DecodedLeafSums(
            leaf_map=leaf_map,
            counts=counts,
            places=2 * places.reshape(leaf_map.dimension, -1).T,
            counts_sd=sd,
            places_sd=2 * sd,
        )


@dataclass(frozen=True, eq=False)
class DecodedLeafSums:
    """Noisy number of records in each of L leaves, and where in the leaf they lie.

    Attributes
    ----------
    leaf_map : LeafSums
        Which leaf a record is in, and where the leaves are.
    counts : array (L,)
        Number of records.
    places : array (L, d)
        Σv of places v in [0, 1]ᵈ within the leaf.
    counts_sd, places_sd : float
        Standard deviations of the noise of each entry.
    """

    leaf_map: LeafSums
    counts: Array
    places: Array
    counts_sd: float
    places_sd: float


def bins_for(n: int, sd: float, dimension: int, per_noise: float = _PER_NOISE) -> int:
    """Bins of each column, from the number of records and the noise of a count.

    Finer where noise allows it.
    """
    cells = min(max(per_noise * n / sd, 1.0), _MOST_CELLS)
    return max(math.floor(cells ** (1 / dimension) + 1e-9), 2)
