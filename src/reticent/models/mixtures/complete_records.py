"""How many records lack no value: only these have entered what was released."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from reticent.models.mixtures.settings import COMPLETE

__all__ = ["CompleteRecords", "of_complete"]

Array = NDArray[np.float64]


def of_complete(
    records: Array, function: Callable[[Array], Array], columns: int | None = None
) -> Array:
    """What a function gives for each record (n, d); NaN for one that lacks a value.

    ``columns``: of what it gives, (n, columns), or None for a number each, (n,).
    """
    known = ~np.isnan(records).any(axis=1)
    shape = (len(records),) if columns is None else (len(records), columns)
    found = np.full(shape, np.nan)
    if known.any():
        found[known] = function(records[known])
    return found


class CompleteRecords:
    """Number of complete records, from the noisy counts of a fit's releases.

    ``public``: the number of all records, which is public. Where noise hides the difference from
    it, all records count as complete.
    """

    def __init__(self, public: int) -> None:
        self.public = public
        self._sum = 0.0  # of counts times precisions
        self._precision = 0.0

    def add(self, count: float, sd: float) -> None:
        """Condition on a noisy count of all complete records."""
        self._sum += float(count) / float(sd) ** 2
        self._precision += 1 / float(sd) ** 2

    @property
    def sd(self) -> float:
        """Standard deviation of the noise in the combined count."""
        return float(self._precision**-0.5)

    @property
    def number(self) -> float:
        """The estimate, from 1 to the number of all records."""
        if not self._precision:
            return float(self.public)
        count = self._sum / self._precision
        if self.public - count <= COMPLETE.visible_sd * self.sd:
            return float(self.public)
        return max(count, self.sd, 1.0)
