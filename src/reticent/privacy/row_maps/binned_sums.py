"""Counts and sums by bin or region of a grid over the inputs.

A record that lacks a value is in no region. Where records are protected, such records are counted
by themselves, as if they had a region of their own; where labels are, missing labels are counted in
their region. Neither costs anything: binned_regressor.md.
"""

from dataclasses import dataclass
from functools import cached_property
from math import prod, sqrt
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from reticent.privacy.bounds import Bounds
from reticent.privacy.release import Release
from reticent.privacy.statistics.cell_sum import CellSum
from reticent.privacy.statistics.counts import Counts

__all__ = [
    "BinCounts",
    "BinSums",
    "BinTotals",
    "DecodedBinCounts",
    "DecodedBinSums",
    "Grid",
    "LabelSums",
]

Array = NDArray[np.float64]
_HALF = sqrt(0.5)


@dataclass(frozen=True)
class Grid:
    """A grid by its edges, in the inputs' own units, and the region of each of its cells.

    −1 is for no region; () makes each cell its own.
    """

    edges: tuple[tuple[float, ...], ...]
    regions: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of intervals of each input."""
        return tuple(len(edges) - 1 for edges in self.edges)

    @cached_property
    def region_numbers(self) -> NDArray[np.int64]:
        """The region of each cell, -1 where a cell is in none; without regions, the cell itself."""
        if self.regions:
            return np.array(self.regions)
        return np.arange(prod(self.shape))

    @cached_property
    def size(self) -> int:
        """Number of regions."""
        return int(self.region_numbers.max()) + 1

    @property
    def whole(self) -> bool:
        """Whether every cell is in some region, so that all records are."""
        return bool((self.region_numbers >= 0).all())

    def of(self, records: Array, bounds: Bounds) -> Array:
        """The region of each scaled record, −1 for none; by comparisons only.

        Cells are [edge, next edge), the last one closed. A record that lacks an input is in none.
        """
        flat = np.zeros(len(records), dtype=np.int64)
        for j, (edges, u) in enumerate(zip(self._scaled(bounds), records.T, strict=False)):
            place = np.searchsorted(edges, u, side="right") - 1
            flat = flat * self.shape[j] + np.minimum(np.maximum(place, 0), self.shape[j] - 1)
        lacking = np.isnan(records[:, : len(self.edges)]).any(axis=1)
        return np.where(lacking, -1.0, self.region_numbers[flat])

    def _scaled(self, bounds: Bounds) -> list[Array]:
        """Edges, scaled exactly as records are: a value on an edge stays on it."""
        table = np.full((max(map(len, self.edges)), len(bounds.x) + len(bounds.y)), np.nan)
        for j, edges in enumerate(self.edges):
            table[: len(edges), j] = edges
        return [
            column[: len(edges)]
            for column, edges in zip(bounds.scale_unclipped(table).T, self.edges, strict=False)
        ]


@dataclass(frozen=True)
class BinCounts(Counts):
    """How many records are in each region, lack an input, and are in no region."""

    grid: Grid
    bounds: Bounds

    complete_records: ClassVar[bool] = False  # those that lack an input have a cell of their own
    # one group: the regions, incomplete records, and no region if that is possible
    groups = property(lambda self: (self.grid.size + 1 + (not self.grid.whole),))

    def cells(self, records: Array) -> Array:
        """The region; after the last one, incomplete, and then none."""
        found = self.grid.of(records, self.bounds)
        size = float(self.grid.size)
        lacking = np.isnan(records[:, : len(self.grid.edges)]).any(axis=1)
        return np.where(lacking, size, np.where(found < 0, size + 1, found))[:, None]

    @classmethod
    def decode(cls, release: Release) -> "DecodedBinCounts":
        """Counts of the regions and of incomplete records, without that of no region."""
        b = _region_count(release)
        return DecodedBinCounts(
            counts=release.value[:b],
            counts_sd=release.sd[:b],
            incomplete=(float(release.value[b]), float(release.sd[b])),
        )


@dataclass(frozen=True, eq=False)
class DecodedBinCounts:
    """Noisy number of records in each of b regions.

    Attributes
    ----------
    counts, counts_sd : arrays (b,)
        Counts, and the standard deviations of their noise.
    incomplete : tuple of two floats, optional
        How many records lack a value, and the standard deviation of that number's noise; None where
        this is told region by region.
    """

    counts: Array
    counts_sd: Array
    incomplete: tuple[float, float] | None


@dataclass(frozen=True, eq=False)
class DecodedBinSums(DecodedBinCounts):
    """Noisy counts, and sums of scaled outputs u in [−1, 1], of b regions.

    Attributes
    ----------
    counts, counts_sd : arrays (b,)
        Number of complete records. Where inputs are public: the public number less the noisy one of
        missing labels.
    incomplete : tuple of two floats, optional
        As for counts.
    records : array (b,), optional
        Where inputs are public: the public number of records, with labels or without.
    sums, sums_sd : arrays (b,)
        Σu, in half-ranges of y.
    spread : tuple of two floats, optional
        Σ(1 − u²) over the records of all regions, and the standard deviation of its noise; None if
        it was not released.
    """

    sums: Array
    sums_sd: Array
    spread: tuple[float, float] | None
    records: Array | None = None


def _region_count(release: Release) -> int:
    """Number of regions of a released grid."""
    grid = release.statistic["grid"]
    return Grid(tuple(map(tuple, grid["edges"])), tuple(grid["regions"])).size


def _decoded_spread(release: Release, unit: float) -> tuple[float, float] | None:
    """Σ(1 − u²), ``unit`` times the last number of a release, and the sd of its noise."""
    if not release.statistic["spread"]:
        return None
    return unit * release.value[-1], unit * release.sd[-1]


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
    # absolute values that a record adds to its region add up to 1 at most; no bound where the
    # spread is released too
    norm1 = property(lambda self: None if self.spread else 1)


@dataclass(frozen=True)
class BinSums(_RegionSums):
    """For each region Σ(1+u)/2 and Σ(1−u)/2; with ``spread`` also Σ(1−u²)/√2.

    (1+u²)/2 + (1−u²)²/2 = 1 − u²(1−u²)/2 ≤ 1. Incomplete records are a region of their own, the
    last one, to which each adds (1, 0).
    """

    complete_records: ClassVar[bool] = False
    own = 2
    nonnegative = True
    cells = property(lambda self: self.grid.size + 1)  # the regions, and incomplete records

    def cell(self, records: Array) -> Array:
        """The region; the last one for incomplete records."""
        found = self.grid.of(records, self.bounds)
        return np.where(self._lacking(records), float(self.grid.size), found)

    def _lacking(self, records: Array) -> NDArray[np.bool_]:
        return np.asarray(np.isnan(records).any(axis=1))

    def short_rows(self, records: Array) -> Array:
        """The two halves of a record, and what is left of its length."""
        u = records[:, len(self.bounds.x)]
        rows = np.column_stack(
            [(1.0 + u) * 0.5, (1.0 - u) * 0.5, *([(1.0 - u * u) * _HALF] if self.spread else [])]
        )
        one = np.zeros(rows.shape[1])
        one[0] = 1.0
        return np.where(self._lacking(records)[:, None], one, rows)

    @classmethod
    def decode(cls, release: Release) -> DecodedBinSums:
        """Sum and difference of the half-counts."""
        b = _region_count(release)
        upper = release.value[:b]
        lower = release.value[b + 1 : 2 * b + 1]
        sd = sqrt(2) * release.sd[:b]
        return DecodedBinSums(
            counts=upper + lower,
            counts_sd=sd,
            incomplete=(float(release.value[b]), float(release.sd[b])),
            sums=upper - lower,
            sums_sd=sd,
            spread=_decoded_spread(release, sqrt(2)),
        )


@dataclass(frozen=True)
class LabelSums(_RegionSums):
    """For each region Σu and the number of missing labels, with ``spread`` also Σ(1−u²).

    Inputs are public, and so is how many records a region has.

    u² + (1−u²)² = 1 − u²(1−u²) ≤ 1; a record without a label adds (0, 1).
    """

    counts: tuple[int, ...]

    complete_records: ClassVar[bool] = False
    own = 2

    def short_rows(self, records: Array) -> Array:
        """The output, or that it is missing, and what is left of the row's length."""
        u = records[:, len(self.bounds.x)]
        missing = np.isnan(u)
        u = np.where(missing, 0.0, u)
        left = np.where(missing, 0.0, 1.0 - u * u)
        return np.column_stack([u, missing.astype(np.float64), *([left] if self.spread else [])])

    @classmethod
    def decode(cls, release: Release) -> DecodedBinSums:
        """Sums of the regions, and their numbers of labels."""
        records = np.array(release.statistic["counts"], dtype=np.float64)
        b = len(records)
        return DecodedBinSums(
            counts=records - release.value[b : 2 * b],
            counts_sd=release.sd[b : 2 * b],
            incomplete=None,
            sums=release.value[:b],
            sums_sd=release.sd[:b],
            spread=_decoded_spread(release, 1.0),
            records=records,
        )


@dataclass(frozen=True)
class BinTotals(_ByRegion):
    """For each region Σu: what kernels are scored by, never released."""

    own = 1
    shared = 0

    def short_rows(self, records: Array) -> Array:
        """The output."""
        return records[:, len(self.bounds.x)][:, None]
