"""Means, scales and correlations of the columns, in stages: what factors, components and clusters begin with. Proof: moments.md.

    1    Σ(u, u² − 1) over scaled records u: mean and variance of each column, as well as the noise allows
    2 …  Σ(t, t² − q) of t = clip((u − centre)/reach, ±1): columns that hardly vary are seen in ever finer steps, since the reach
         follows what the stages before have left possible (`maths.factors.Columns`)
    last Σ zzᵀ of z = (u − mean)/scale, records longer than a radius shortened to it: the correlations

A vector of d variances costs far less noise than a matrix of d² products; and the matrix of standardised columns has the
least noise where it matters, relative to the columns' own scales.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from reticent.maths.factors import Columns, Correlations
from reticent.privacy.curator import Oracle
from reticent.privacy.statistic import Gram, Sum

__all__ = ["STAGES", "ColumnMoments", "ScaledGram", "covariance"]

Array = NDArray[np.float64]
STAGES = 8  # releases, of equal shares: half of them for the columns, half for the correlations
_COLUMNS = 4
_MUCH_NOISE = 0.4  # in the first mean squares, of columns within ±1: finer steps would find nothing
_FAR = 4.0  # standard deviations: a rare value far away in a column that hardly varies shall not hide the others
_LITTLE_NOISE, _MOST_ROOM = 0.05, 6.0  # below this much noise, records are shortened less, down to hardly any


@dataclass(frozen=True)
class ColumnMoments(Sum):
    """Σ t and Σ (t² − offset) of each column, t = clip((u − centre)/reach, ±1); all together no longer than √length2."""

    centre: tuple[float, ...]
    reach: tuple[float, ...]
    offset: tuple[float, ...]
    length2: float

    columns = property(lambda self: 2 * len(self.centre))
    norm2 = property(lambda self: Fraction(self.length2))  # what rows are shortened to

    @cached_property
    def _fields(self) -> tuple[Array, Array, Array]:
        return np.array(self.centre), 1 / np.array(self.reach), np.array(self.offset)

    def rows(self, records: Array) -> Array:
        """All t, then their squares less the offsets: −, ×, clip, elementwise."""
        centre, scale, offset = self._fields
        t = np.clip((records - centre) * scale, -1.0, 1.0)
        return np.hstack([t, t * t - offset])


@dataclass(frozen=True)
class ScaledGram(Gram):
    """Σ zzᵀ of z = (u − centre)·weight, each within ±4 and all together no longer than √radius2."""

    centre: tuple[float, ...]
    weight: tuple[float, ...]
    radius2: float

    columns = property(lambda self: len(self.centre))
    norm2 = property(lambda self: Fraction(self.radius2))  # what rows are shortened to

    @cached_property
    def _fields(self) -> tuple[Array, Array]:
        return np.array(self.centre), np.array(self.weight)

    def rows(self, records: Array) -> Array:
        """Standardised records: −, ×, clip, elementwise."""
        centre, weight = self._fields
        return np.clip((records - centre) * weight, -_FAR, _FAR)


def covariance(curator: Oracle, noise: float, releases: int = STAGES) -> Correlations:
    """Learn means, scales and correlations of the scaled records; ``noise``: the multiplier of a single release.

    How many stages there are follows from public numbers: ``releases``, of which half go into the columns.
    """
    bounds, n = curator.bounds, curator.n
    d, inside = len(bounds.x), bounds.norm is not None
    each = releases // 2
    first = _first(d, ball=inside)
    stages = 1 if noise * float(np.sqrt(first.sensitivity2)) * first.step > _MUCH_NOISE * n else each
    columns, asked = Columns(d), first
    length2, radius2 = d * (0.2 + 0.7 / d**0.5), d * (0.6 + 1 / d**0.5)  # a little more than normal columns have
    room = min(max(_LITTLE_NOISE * n / (noise * radius2 * d**0.5), 1.0), _MOST_ROOM)
    for stage in range(stages):
        if stage:
            reach, offset = columns.ask()
            asked = ColumnMoments(_plain(columns.mean), _plain(reach), _plain(offset), min(room * length2, 2.0 * d))
        release = curator.release(asked, times=each - stages + 1 if stage == 0 else 1)
        looked = np.array(asked.centre), np.array(asked.reach), np.array(asked.offset)
        columns.tell(*looked, moments=release.value / n, sd=float(release.sd[0]) / n)
    scale = columns.scale()
    release = curator.release(
        ScaledGram(_plain(columns.mean), _plain(1 / scale), room * radius2), times=releases - each
    )
    return Correlations(columns, scale, release.matrix() / n, float(release.matrix_sd()[0, 0]) / n)


def _first(d: int, *, ball: bool) -> ColumnMoments:
    """Of the whole box, where u² + (1 − u²)² ≤ 1 in each column; of the ball, where ‖u‖² and Σu⁴ are at most one."""
    return ColumnMoments((0.0,) * d, (1.0,) * d, (0.0 if ball else 1.0,) * d, 2.0 if ball else float(d))


def _plain(values: Array) -> tuple[float, ...]:
    return tuple(values.tolist())
