"""Row maps of single columns: counts, means, scales, correlations.

Means, histograms and covariances ask for one of `ColumnMeans`, `MeanSum`, `ColumnCounts` and
`MomentGram`, once; their proofs stand beside these models. Factors, components and clusters begin
with stages. Proof of these: column_moments.md.

    1    Σ(u, u² − 1) over scaled records u: mean and variance of each column, as well as the noise
         allows
    2 …  Σ(t, t² − q) of t = clip((u − centre)/r, ±1): columns that hardly vary are seen in ever
         finer steps, since the clip threshold r follows what the stages before have left possible
         (`factor_model.ColumnEstimates`)
    last Σ zzᵀ of z = (u − mean)/scale, records longer than a radius shortened to it: the
         correlations

A vector of d variances costs far less noise than a matrix of d² products; and the matrix of
standardised columns has the least noise where it matters, relative to the columns' own scales.
"""

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from math import isqrt

import numpy as np
from numpy.typing import NDArray

from reticent.privacy.bounds import Bounds
from reticent.privacy.columns.base import Kind
from reticent.privacy.columns.dates import Date
from reticent.privacy.row_maps.features.column_encoding import encode
from reticent.privacy.statistics.counts import Counts
from reticent.privacy.statistics.enforced import saved_as
from reticent.privacy.statistics.gram import Gram
from reticent.privacy.statistics.sum import ColumnSum, Sum

__all__ = [
    "ColumnCounts",
    "ColumnMeans",
    "ColumnMoments",
    "MeanSum",
    "MomentGram",
    "ScaledGram",
    "bin_edges",
    "stretch",
]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class ColumnMoments(Sum):
    """Σ t and Σ (t² − offset) of each column, t = clip((u − centre)/r, ±1).

    All together no longer than √length2; and along with them the number of complete records.
    """

    centre: tuple[float, ...]
    clip_thresholds: tuple[float, ...] = field(metadata=saved_as("reach"))  # r
    offset: tuple[float, ...]
    length2: float
    encoding: tuple[int, ...] = ()  # of mixed columns (`column_encoding`)

    counts_records = True
    columns = property(lambda self: 2 * len(self.centre))
    norm2 = property(lambda self: Fraction(self.length2))  # what rows are shortened to

    @cached_property
    def _fields(self) -> tuple[Array, Array, Array]:
        return np.array(self.centre), 1 / np.array(self.clip_thresholds), np.array(self.offset)

    def rows(self, records: Array) -> Array:
        """All t, then their squares less the offsets: −, ×, clip, elementwise."""
        centre, scale, offset = self._fields
        t = np.clip((encode(records, self.encoding) - centre) * scale, -1.0, 1.0)
        return np.hstack([t, t * t - offset])


@dataclass(frozen=True)
class ScaledGram(Gram):
    """Σ zzᵀ of z = (u − centre)·weight, each clipped to ±r, all together to the norm √radius2."""

    centre: tuple[float, ...]
    weight: tuple[float, ...]
    radius2: float
    encoding: tuple[int, ...] = ()
    clip_threshold: float = 4.0  # r, in standard deviations

    columns = property(lambda self: len(self.centre))
    norm2 = property(lambda self: Fraction(self.radius2))  # what rows are shortened to

    @cached_property
    def _fields(self) -> tuple[Array, Array]:
        return np.array(self.centre), np.array(self.weight)

    def rows(self, records: Array) -> Array:
        """Standardised records: −, ×, clip, elementwise."""
        centre, weight = self._fields
        z = (encode(records, self.encoding) - centre) * weight
        return np.clip(z, -self.clip_threshold, self.clip_threshold)


def stretch(kind: Kind) -> float:
    """What scaled codes are multiplied by so that the first and last value become −1 and 1.

    Codes of C values one apart are scaled to ±(C − 1)/C at most (`Bounds.scale`).

    >>> from reticent import YesNo
    >>> stretch(YesNo())
    2.0
    """
    if kind.cells is None or kind.cells < 2:
        return 1.0
    return kind.cells / (kind.cells - 1)


@dataclass(frozen=True)
class ColumnMeans(ColumnSum):
    """For each column the sum of its scaled values, and how many records have one."""

    stretches: tuple[float, ...]  # of the scaled codes of each column (`stretch`)
    pure: bool  # whether the counts shall be free under Laplace noise

    columns = property(lambda self: len(self.stretches))
    laplace = property(lambda self: self.pure)

    def values(self, records: Array) -> Array:
        """The scaled record, each column stretched to [−1, 1]."""
        return records * np.array(self.stretches)


@dataclass(frozen=True)
class MeanSum(Sum):
    """Σ u over scaled records u; where ``counted``, the number of complete records as well."""

    dimension: int
    radius2: int  # of the scaled records: the dimension in a box, 1 in a ball
    counted: bool = False

    columns = property(lambda self: self.dimension)
    norm2 = property(lambda self: self.radius2)  # ‖u‖² is at most d in the box, 1 in the ball
    # ‖u‖₁ ≤ √d·‖u‖ (Cauchy–Schwarz), rounded up
    norm1 = property(lambda self: isqrt(self.dimension * self.radius2 - 1) + 1)
    counts_records = property(lambda self: self.counted)

    def rows(self, records: NDArray[np.float64]) -> NDArray[np.float64]:
        """The scaled record itself."""
        return records


@dataclass(frozen=True)
class MomentGram(Gram):
    """Σ (1, u)(1, u)ᵀ over scaled records u."""

    dimension: int
    radius2: int

    columns = property(lambda self: 1 + self.dimension)  # the constant, and one per column
    norm2 = property(lambda self: 1 + self.radius2)  # ‖u‖² is at most radius2

    def rows(self, records: NDArray[np.float64]) -> NDArray[np.float64]:
        """(1, u)."""
        rows = np.empty((len(records), self.columns))
        rows[:, 0] = 1.0
        rows[:, 1:] = records
        return rows


def bin_edges(kind: Kind, bins: int) -> tuple[float, ...]:
    """Edges of the bins of one column, in its codes.

    A bin for every level of words; for whole numbers and days, a bin for every value or, if these
    are more than ``bins``, for as many of them as make at most ``bins``; otherwise ``bins`` equal
    ones.

    >>> from reticent import YesNo
    >>> bin_edges(YesNo(), 10)
    (-0.5, 0.5, 1.5)
    """
    low, high = kind.range
    values = kind.cells
    if isinstance(kind, Date) and low.is_integer() and high.is_integer():
        values = int(high - low)
    if values is None:
        return tuple(np.linspace(low, high, bins + 1).tolist())
    together = 1
    if kind.levels is None:
        together = math.ceil(values / bins)
    edges = [low + together * i for i in range(math.ceil(values / together))]
    return (*edges, high)


@dataclass(frozen=True)
class ColumnCounts(Counts):
    """For each column, how many records fall into each of its bins (`bin_edges`).

    A record that lacks a value is in no bin of that column.
    """

    bins: int
    bounds: Bounds

    complete_records = False

    groups = property(lambda self: tuple(len(edges) - 1 for edges in self.edges))

    @cached_property
    def edges(self) -> tuple[tuple[float, ...], ...]:
        """Edges of the bins of each column, in its codes."""
        return tuple(bin_edges(kind, self.bins) for kind in self.bounds.x_kinds)

    @cached_property
    def _scaled_edges(self) -> list[Array]:
        """The same, scaled exactly as the records are: a value on an edge stays on it."""
        table = np.full((max(map(len, self.edges)), len(self.edges)), np.nan)
        for j, edges in enumerate(self.edges):
            table[: len(edges), j] = edges
        scaled = self.bounds.scale_unclipped(table).T
        return [row[: len(edges)] for row, edges in zip(scaled, self.edges, strict=True)]

    def cells(self, records: NDArray[np.float64]) -> NDArray[np.float64]:
        """The bin of each value, [edge, next edge); the last one is closed."""
        found = [
            np.where(np.isnan(u), np.nan, np.searchsorted(edges, u, side="right") - 1.0)
            for edges, u in zip(self._scaled_edges, records.T, strict=True)
        ]
        return np.column_stack(found)
