"""Means, scales and correlations of the columns, in stages.

What factors, components and clusters begin with. Proof: column_moments.md.

    1    Σ(u, u² − 1) over scaled records u: mean and variance of each column, as well as the noise
         allows
    2 … Σ(t, t² − q) of t = clip((u − centre)/r, ±1): columns that hardly vary are seen in ever
    finer steps, since the clip threshold r
         follows what the stages before have left possible (`factor_model.ColumnEstimates`)
    last Σ zzᵀ of z = (u − mean)/scale, records longer than a radius shortened to it: the
    correlations

A vector of d variances costs far less noise than a matrix of d² products; and the matrix of
standardised columns has the least noise where it matters, relative to the columns' own scales.
"""

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from math import isqrt

import numpy as np
from numpy.typing import NDArray

from reticent.privacy.bounds import Bounds
from reticent.privacy.row_maps.column_encoding import encode
from reticent.privacy.statistics.counts import Counts
from reticent.privacy.statistics.enforced import saved_as
from reticent.privacy.statistics.gram import Gram
from reticent.privacy.statistics.sum import Sum

__all__ = ["FARTHEST", "ColumnCounts", "ColumnMoments", "MeanSum", "MomentGram", "ScaledGram"]

Array = NDArray[np.float64]
# standard deviations: a rare value far away in a column that hardly varies shall not
# hide the others
FARTHEST = 4.0


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
    """Σ zzᵀ of z = (u − centre)·weight, each within ±4 and all together no longer than √radius2."""

    centre: tuple[float, ...]
    weight: tuple[float, ...]
    radius2: float
    encoding: tuple[int, ...] = ()

    columns = property(lambda self: len(self.centre))
    norm2 = property(lambda self: Fraction(self.radius2))  # what rows are shortened to

    @cached_property
    def _fields(self) -> tuple[Array, Array]:
        return np.array(self.centre), np.array(self.weight)

    def rows(self, records: Array) -> Array:
        """Standardised records: −, ×, clip, elementwise."""
        centre, weight = self._fields
        return np.clip((encode(records, self.encoding) - centre) * weight, -FARTHEST, FARTHEST)


@dataclass(frozen=True)
class MeanSum(Sum):
    """Σ u over scaled records u."""

    dimension: int
    radius2: int  # of the scaled records: the dimension in a box, 1 in a ball

    columns = property(lambda self: self.dimension)
    norm2 = property(lambda self: self.radius2)  # ‖u‖² is at most d in the box, 1 in the ball
    # ‖u‖₁ ≤ √d·‖u‖ (Cauchy–Schwarz), rounded up
    norm1 = property(lambda self: isqrt(self.dimension * self.radius2 - 1) + 1)

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


@dataclass(frozen=True)
class ColumnCounts(Counts):
    """For each column, how many records fall into each of its equal bins."""

    bins: int
    bounds: Bounds

    groups = property(lambda self: (self.bins,) * len(self.bounds.x))

    @cached_property
    def edges(self) -> NDArray[np.float64]:
        """Edges of the bins, a row per column, scaled exactly as the records are.

        A value on an edge stays on it.
        """
        low, high = np.array(self.bounds.x).T
        return self.bounds.scale_unclipped(np.linspace(low, high, self.bins + 1)).T

    def cells(self, records: NDArray[np.float64]) -> NDArray[np.float64]:
        """The bin of each value, [edge, next edge); the last one is closed."""
        found = [
            np.searchsorted(edges, u, side="right") - 1.0
            for edges, u in zip(self.edges, records.T, strict=True)
        ]
        return np.column_stack(found)
