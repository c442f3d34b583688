"""Counts and sums by bin or region of a grid over the inputs, and by groups of public keys.

A record that lacks a value is in no region. Where records are protected, such records are counted
by themselves, as if they had a region of their own; where labels are, missing labels are counted in
their region. Neither costs anything: binned_regressor.md.

`GroupSums` is what a table by public keys is made of.
The keys of a record name one cell of a table. To it the record adds, for each value that is
averaged, v ∈ [−1, 1] after scaling, the three numbers

    (1 + v)/2, (1 − v)/2, 0        if it has the value
    0, 0, 1                        if it lacks it

and for each value whose quantiles are wanted a one in the bin of the value, or in a last bin if it
lacks it. None is negative, the squares of each part add up to at most 1 and its numbers to 1, and
how many records a cell has is the sum of any part. Where no part says it well (no value is
averaged), the record adds a number of its own for it. With ``spread``, what is left of the length
of a part, (1 − v²)/√2, is added up over all cells: it tells how much values vary. Proof:
models/descriptive/table.md.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import prod, sqrt
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from reticent.privacy.bounds import Bounds
from reticent.privacy.release import Release
from reticent.privacy.row_maps.column_moments import stretch
from reticent.privacy.statistics.cell_sum import CellSum
from reticent.privacy.statistics.counts import Counts

__all__ = [
    "BinCounts",
    "BinSums",
    "BinTotals",
    "DecodedBinCounts",
    "DecodedBinSums",
    "Grid",
    "GroupSums",
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

    counts: tuple[float, ...]  # whole numbers, unless records have weights

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


# ---- tables by public keys


@dataclass(frozen=True)
class GroupSums(CellSum):
    """For each cell of a table by keys: counts, sums of halves, and counts in bins of values.

    Columns are given by their place among the inputs of ``bounds``; edges are in codes.
    """

    bounds: Bounds
    keys: tuple[int, ...]
    key_edges: tuple[tuple[float, ...], ...]
    averaged: tuple[int, ...]
    binned: tuple[int, ...]
    bin_edges: tuple[tuple[float, ...], ...]
    count_weight: float  # of the number that a record adds for itself; 0 for none
    spread: bool  # not for Laplace noise: absolute values would add up to more

    complete_records = False
    nonnegative = True

    shared = property(lambda self: len(self.averaged) * self.spread)
    cells = property(lambda self: prod(self.shape))
    own = property(
        lambda self: (
            int(self.count_weight > 0) + 3 * len(self.averaged) + sum(map(len, self.bin_edges))
        )
    )
    norm2 = property(lambda self: self._parts + Fraction(self.count_weight) ** 2)
    norm1 = property(
        lambda self: None if self.spread else self._parts + Fraction(self.count_weight)
    )

    @property
    def shape(self) -> tuple[int, ...]:
        """How many groups each key makes."""
        return tuple(len(edges) - 1 for edges in self.key_edges)

    @property
    def _parts(self) -> int:
        return len(self.averaged) + len(self.binned)

    def cell(self, records: Array) -> Array:
        """The cell, the last key running fastest; −1 for a record that lacks a key."""
        flat = np.zeros(len(records))
        lacks = np.zeros(len(records), dtype=bool)
        for place, edges in zip(self.keys, self._scaled_key_edges, strict=True):
            u = records[:, place]
            lacks |= np.isnan(u)
            flat = flat * (len(edges) - 1) + _bins(u, edges)
        return np.where(lacks, -1.0, flat)

    def short_rows(self, records: Array) -> Array:
        """What a record adds to its cell: the parts one after the other; then the spreads."""
        parts = []
        spreads = []
        if self.count_weight > 0:
            parts.append(np.full((len(records), 1), self.count_weight))
        for place in self.averaged:
            u = records[:, place] * stretch(self.bounds.x_kinds[place])
            lacks = np.isnan(u)
            v = np.clip(np.where(lacks, 0.0, u), -1.0, 1.0)
            halves = np.column_stack([(1.0 + v) * 0.5, (1.0 - v) * 0.5])
            parts.append(np.where(lacks[:, None], 0.0, halves))
            parts.append(lacks[:, None].astype(np.float64))
            if self.spread:
                spreads.append(np.where(lacks, 0.0, (1.0 - v * v) * _HALF)[:, None])
        for place, edges in zip(self.binned, self._scaled_bin_edges, strict=True):
            u = records[:, place]
            bins = np.where(np.isnan(u), len(edges) - 1.0, _bins(u, edges))
            parts.append((bins[:, None] == np.arange(len(edges))).astype(np.float64))
        return np.hstack([*parts, *spreads])

    @cached_property
    def _scaled_key_edges(self) -> list[Array]:
        return self._scaled(self.keys, self.key_edges)

    @cached_property
    def _scaled_bin_edges(self) -> list[Array]:
        return self._scaled(self.binned, self.bin_edges)

    def _scaled(self, places: tuple[int, ...], edges: tuple[tuple[float, ...], ...]) -> list[Array]:
        """Edges scaled exactly as records are: a value on an edge stays on it."""
        scaled = []
        for place, own in zip(places, edges, strict=True):
            table = np.zeros((len(own), len(self.bounds.x) + len(self.bounds.y)))
            table[:, place] = own
            scaled.append(self.bounds.scale_unclipped(table)[:, place])
        return scaled


def _bins(u: Array, edges: Array) -> Array:
    """The bin [edge, next edge) of each value, the last one closed; any for NaN."""
    place = np.searchsorted(edges, u, side="right") - 1.0
    return np.minimum(np.maximum(place, 0.0), len(edges) - 2.0)
