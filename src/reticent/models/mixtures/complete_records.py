"""How many records lack no value: only these have entered what was released."""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from reticent.inference.inputs.complete_records import UnitTotal
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
    """Number of complete records, or their total weight, from the noisy counts of a fit's releases.

    ``total``: what is known of all records. Where noise hides the difference from their number,
    all records count as complete; where records have weights of their own, counts alone tell.
    """

    def __init__(self, total: UnitTotal) -> None:
        self._total = total
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
        """The estimate, from 1 to the number of all records where that is public."""
        total = self._total
        if not self._precision:
            return float(total.n)
        count = self._sum / self._precision
        difference_sd = math.hypot(self.sd, total.n_sd)
        if total.one_each and total.n - count <= COMPLETE.visible_sd * difference_sd:
            return max(total.combined(count, self.sd)[0], 1.0)
        return min(max(count, self.sd, 1.0), total.most)
