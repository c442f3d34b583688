"""What a stage of a mixture looks at: some or all coordinates of the (encoded) records."""

import math
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reticent.models.mixtures.complete_records import CompleteRecords
from reticent.privacy.curator import Oracle
from reticent.privacy.release import Release
from reticent.privacy.row_maps.features.column_encoding import encoded_widths
from reticent.privacy.row_maps.mixture_moments import Metric, metric
from reticent.privacy.statistics.base import Statistic

__all__ = ["RecordView", "count_sd"]

Array = NDArray[np.float64]


def count_sd(release: Release) -> float:
    """Standard deviation of the error of a noisy count.

    Noise is cut to whole records: however large the budget is, a count is half a record off.
    """
    return math.hypot(float(release.sd[0]), 0.5)


@dataclass(frozen=True)
class RecordView:
    """Coordinates of records, as a stage sees them.

    ``encoding``: of mixed columns, empty if all are numbers. ``kept``: places of the encoded
    coordinates that are looked at; None is all of them. ``complete`` learns with each release how
    many records lack no value.
    """

    curator: Oracle
    complete: CompleteRecords = field(compare=False)
    encoding: tuple[int, ...] = ()
    kept: tuple[int, ...] | None = None

    @property
    def width(self) -> int:
        """How many coordinates a record is encoded in."""
        if self.encoding:
            return sum(encoded_widths(self.encoding))
        return len(self.curator.bounds.x)

    @property
    def dimension(self) -> int:
        """How many coordinates are looked at."""
        if self.kept is None:
            return self.width
        return len(self.kept)

    @property
    def radius2(self) -> int:
        """Squared length that these coordinates cannot exceed."""
        if self.encoding:
            return self.dimension
        return self.curator.bounds.radius2

    def of(self, kept: tuple[int, ...]) -> "RecordView":
        """The same records, of which some coordinates are looked at."""
        return replace(self, kept=kept)

    def metric(self, maps: ArrayLike, centres: ArrayLike) -> Metric:
        """Metric of the coordinates that are looked at: maps (d, p) or (K, d, p)."""
        A = np.asarray(maps, dtype=np.float64)
        if self.kept is not None:
            whole = np.zeros((*A.shape[:-2], self.width, A.shape[-1]))
            whole[..., list(self.kept), :] = A
            A = whole
        return metric(A, centres, self.encoding)

    def release(self, statistic: Statistic, shares: int) -> Release:
        """Ask for a statistic, with so many budget shares."""
        return self.curator.release(statistic, shares_spent=shares)
