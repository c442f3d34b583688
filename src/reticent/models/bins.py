"""Bins: a grid over the box, regions made of its cells, and what is released of the records in them. Proof: binned_gp.md.

A record in region b with its output scaled to u in [−1, 1] is divided between two half-counts of its region, (1+u)/2 and
(1−u)/2: their sums' sum is the region's count, their difference its sum of outputs. Both halves are at least zero and add up to
one, so a replaced record moves all half-counts together by √2 (L2) or 2 (L1): as far as a count alone. What is left of the row's
length goes to Σ(1−u²)/√2, which tells how much outputs spread, free of charge.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf, prod, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.errors import BadInput
from reticent.maths.binned import Regions
from reticent.maths.integral import Boxes
from reticent.privacy.bounds import Bounds
from reticent.privacy.celled import CellSum
from reticent.privacy.given import check_whole, whole
from reticent.privacy.statistic import Counts

__all__ = [
    "MOST_REGIONS",
    "BinCounts",
    "BinSums",
    "BinTotals",
    "Grid",
    "LabelSums",
    "given_regions",
    "label_sums",
    "make_grid",
]

Array = NDArray[np.float64]
MOST_REGIONS = 4096  # a Gaussian process takes their cube of time
_MOST_CELLS = 2**20
_HALF = sqrt(0.5)


@dataclass(frozen=True)
class Grid:
    """A grid by its edges, in the inputs' own units, and the region of each of its cells; −1 for none, () for its own."""

    edges: tuple[tuple[float, ...], ...]
    regions: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of intervals of each input."""
        return tuple(len(edges) - 1 for edges in self.edges)

    @cached_property
    def _numbers(self) -> NDArray[np.int64]:
        return np.array(self.regions) if self.regions else np.arange(prod(self.shape))

    @cached_property
    def size(self) -> int:
        """Number of regions."""
        return int(self._numbers.max()) + 1

    @property
    def whole(self) -> bool:
        """Whether every cell is in some region, so that all records are."""
        return bool((self._numbers >= 0).all())

    def of(self, records: Array, bounds: Bounds) -> Array:
        """The region of each scaled record, [edge, next edge) with the last one closed; −1 for none. Comparisons only."""
        flat = np.zeros(len(records), dtype=np.int64)
        for j, (edges, u) in enumerate(zip(self._scaled(bounds), records.T, strict=False)):
            place = np.searchsorted(edges, u, side="right") - 1
            flat = flat * self.shape[j] + np.minimum(np.maximum(place, 0), self.shape[j] - 1)
        return self._numbers[flat].astype(np.float64)

    def _scaled(self, bounds: Bounds) -> list[Array]:
        """Edges, scaled exactly as records are: a value on an edge stays on it."""
        table = np.full((max(map(len, self.edges)), len(bounds.x) + len(bounds.y)), np.nan)
        for j, edges in enumerate(self.edges):
            table[: len(edges), j] = edges
        return [column[: len(edges)] for column, edges in zip(bounds.scaled(table).T, self.edges, strict=False)]

    def boxes(self) -> tuple[Boxes, NDArray[np.int64]]:
        """Boxes that the regions consist of, and the region of each: neighbours along the last input are joined."""
        lows = np.stack(np.meshgrid(*(edges[:-1] for edges in self.edges), indexing="ij"), axis=-1).reshape(
            -1, len(self.edges)
        )
        highs = np.stack(np.meshgrid(*(edges[1:] for edges in self.edges), indexing="ij"), axis=-1).reshape(lows.shape)
        numbers = self._numbers.reshape(-1, self.shape[-1])
        starts = np.ones(numbers.shape, dtype=bool)
        starts[:, 1:] = numbers[:, 1:] != numbers[:, :-1]
        ends = np.roll(starts, -1, axis=1)
        ends[:, -1] = True
        found = self._numbers[starts.ravel()]
        kept = found >= 0
        return Boxes(lows[starts.ravel()][kept], highs[ends.ravel()][kept]), found[kept]


def make_grid(bins: Any, regions: Any, bounds: Bounds) -> Grid:
    """Read ``bins`` and ``regions``, or say what is wrong with them."""
    d = len(bounds.x)
    bins = bins.tolist() if isinstance(bins, np.ndarray) else bins
    if isinstance(bins, (str, bytes)) or not isinstance(bins, Sequence):
        bins = [bins] * d
    elif d == 1 and len(bins) > 1:
        bins = [bins]
    if len(bins) != d:
        raise BadInput(
            f"bins must be a whole number, or one number (or list of edges) for each of {d} inputs, not {bins!r}."
        )
    edges = tuple(_edges(one, *ranges) for one, ranges in zip(bins, bounds.x, strict=True))
    cells = prod(len(one) - 1 for one in edges)
    if cells > _MOST_CELLS:
        raise BadInput(f"So many bins make a grid of {cells:,} cells; {_MOST_CELLS:,} is the most. Take fewer.")
    grid = Grid(edges, _regions(regions, tuple(len(one) - 1 for one in edges)))
    if grid.size > MOST_REGIONS:
        raise BadInput(
            f"There would be {grid.size:,} bins; {MOST_REGIONS:,} is the most, since a Gaussian process takes the cube of time. "
            "Take fewer bins, or join cells by regions."
        )
    return grid


def _edges(bins: Any, low: float, high: float) -> tuple[float, ...]:
    if whole(bins, -inf):
        check_whole("bins", bins, 1, _MOST_CELLS)
        return tuple(np.linspace(low, high, int(bins) + 1).tolist())
    try:
        edges = np.array([float(edge) for edge in bins])
    except (OverflowError, TypeError, ValueError):
        raise BadInput(f"bins must be whole numbers or lists of edges, not {bins!r}.") from None
    if len(edges) < 2 or not (np.diff(edges) > 0).all() or edges[0] != low or edges[-1] != high:
        raise BadInput(f"Edges of bins must rise from one bound to the other, here from {low:g} to {high:g}.")
    return tuple(edges.tolist())


def _regions(regions: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    if regions is None:
        return ()
    table = np.asarray(regions)
    if table.shape != shape or table.dtype.kind not in "iub":
        raise BadInput(
            f"regions must be an array of whole numbers, shaped like the grid, {shape}: the region of each cell, −1 for none."
        )
    if table.dtype.kind == "b":  # a mask: cells of their own where it is true
        table = np.where(table, np.cumsum(table).reshape(shape) - 1, -1)
    numbers = np.unique(table[table >= 0])
    if not len(numbers) or (numbers != np.arange(len(numbers))).any():
        raise BadInput(
            "Regions are numbered 0, 1, 2, … without gaps, and there is at least one; −1 is for cells in none."
        )
    return tuple(int(v) for v in table.ravel())


@dataclass(frozen=True)
class BinCounts(Counts):
    """How many records are in each region, and in none."""

    grid: Grid
    bounds: Bounds

    # one group: the regions, and no region if that is possible
    groups = property(lambda self: (self.grid.size + (not self.grid.whole),))

    def cells(self, records: Array) -> Array:
        """The region; after the last one, none."""
        found = self.grid.of(records, self.bounds)
        return np.where(found < 0, float(self.grid.size), found)[:, None]


@dataclass(frozen=True)
class _ByRegion(CellSum):
    """Abstract: sums over the records of each region."""

    grid: Grid
    bounds: Bounds

    norm2 = 1
    cells = property(lambda self: self.grid.size)  # the regions

    def cell(self, records: Array) -> Array:
        """The region."""
        return self.grid.of(records, self.bounds)


@dataclass(frozen=True)
class _RegionSums(_ByRegion):
    """Abstract: the same; with ``spread`` also one sum over all records in regions."""

    spread: bool

    shared = property(lambda self: int(self.spread))  # the sum that tells the spread of outputs
    # absolute values that a record adds to its region add up to 1 at most; no bound where the spread is released too
    norm1 = property(lambda self: None if self.spread else 1)


@dataclass(frozen=True)
class BinSums(_RegionSums):
    """For each region Σ(1+u)/2 and Σ(1−u)/2; with ``spread`` also Σ(1−u²)/√2. (1+u²)/2 + (1−u²)²/2 = 1 − u²(1−u²)/2 ≤ 1."""

    own = 2
    nonnegative = True

    def short_rows(self, records: Array) -> Array:
        """The two halves of a record, and what is left of its length."""
        u = records[:, len(self.bounds.x)]
        return np.column_stack([(1.0 + u) * 0.5, (1.0 - u) * 0.5, *([(1.0 - u * u) * _HALF] if self.spread else [])])


@dataclass(frozen=True)
class LabelSums(_RegionSums):
    """For each region Σu, with ``spread`` also Σ(1−u²); inputs are public, and so is how many records a region has.

    u² + (1−u²)² = 1 − u²(1−u²) ≤ 1.
    """

    counts: tuple[int, ...]

    own = 1

    def short_rows(self, records: Array) -> Array:
        """The output, and what is left of the row's length."""
        u = records[:, len(self.bounds.x)]
        return np.column_stack([u, *([1.0 - u * u] if self.spread else [])])


@dataclass(frozen=True)
class BinTotals(_ByRegion):
    """For each region Σu: what kernels are scored by, never released."""

    own = 1
    shared = 0

    def short_rows(self, records: Array) -> Array:
        """The output."""
        return records[:, len(self.bounds.x)][:, None]


def given_regions(regions: Any, dimension: int) -> Regions:
    """Read regions as lists of boxes as lists of (low, high)."""
    try:
        boxes = [np.array(region, dtype=np.float64).reshape(-1, dimension, 2) for region in regions]
        stacked = np.concatenate(boxes)
        fine = bool(len(stacked) and np.isfinite(stacked).all() and (stacked[:, :, 0] < stacked[:, :, 1]).all())
    except (TypeError, ValueError):
        fine = False
    if not fine or not all(map(len, boxes)):
        raise BadInput(
            "Give regions as a list, each a list of boxes, each a list of (low, high) with low < high for every input: "
            "[[[(0, 18)]]] is one region of one box of one input."
        )
    of = np.repeat(np.arange(len(boxes)), [len(one) for one in boxes])
    return Regions(Boxes(stacked[:, :, 0].copy(), stacked[:, :, 1].copy()), of, len(boxes))


def label_sums(grid: Grid, bounds: Bounds, spread: bool, inputs: Array) -> LabelSums:
    """The statistic for public inputs: how many of them are in which region is part of it."""
    found = grid.of(inputs, bounds)
    counts = np.bincount(found[found >= 0].astype(np.int64), minlength=grid.size)
    return LabelSums(grid, bounds, spread, tuple(int(count) for count in counts))
