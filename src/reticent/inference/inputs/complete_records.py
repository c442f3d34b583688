"""How many records are complete: all that a sum over records is about.

A record that lacks a value adds nothing to any sum, and how many do is not public. A noisy count
tells. A priori all n records are complete with probability one half; else their number is anything
from 0 to n.
"""

import math
from dataclasses import dataclass

import numpy as np

__all__ = ["CompleteRecords", "CompleteRecordsSettings", "complete_records"]


@dataclass(frozen=True)
class CompleteRecordsSettings:
    """Numbers of the estimate.

    Parameters
    ----------
    all_complete : float
        Probability a priori that no record lacks a value.
    clear_sd : float
        Standard deviations by which the number must be below n for a warning, and above zero for
        the releases to be about anybody.
    notable_share : float
        Share of complete records below which a warning is worth while.
    """

    all_complete: float = 0.5
    clear_sd: float = 3.0
    notable_share: float = 0.95


_SETTINGS = CompleteRecordsSettings()
_REACH = 9.0  # standard deviations of the noise around a count that matter
_GRID = (np.arange(2000) + 0.5) / 2000


@dataclass(frozen=True)
class CompleteRecords:
    """Posterior mean and standard deviation of the number of complete records, of ``n``."""

    mean: float
    sd: float
    n: int

    @property
    def relative_variance(self) -> float:
        """Squared relative error of the number."""
        return (self.sd / self.mean) ** 2

    @property
    def fewer_than_all(self) -> bool:
        """Whether clearly fewer than all records are complete."""
        return self.mean + _SETTINGS.clear_sd * self.sd < self.n

    @property
    def perhaps_none(self) -> bool:
        """Whether clearly fewer than all are complete, and not clearly any."""
        return self.fewer_than_all and self.mean < _SETTINGS.clear_sd * self.sd

    @property
    def warning(self) -> str | None:
        """A sentence where clearly fewer than all records are complete."""
        share = self.mean / self.n
        if not self.fewer_than_all or share >= _SETTINGS.notable_share:
            return None
        return (
            f"About {100 * share:.0f} % of the records have all values; the others were left out. "
            "Was everything read? Check the columns' kinds, ranges, levels and missing codes."
        )


def complete_records(count: float, sd: float, n: int) -> CompleteRecords:
    """Posterior of the number of complete records from a noisy count of it.

    ``sd``: standard deviation of the count's noise. The mean is in [1, n].
    """
    low, high = np.clip([count - _REACH * sd, count + _REACH * sd], 0.0, float(n))
    places = low + (high - low) * _GRID
    logs = -(((places - count) / sd) ** 2) / 2
    spike = -(((n - count) / sd) ** 2) / 2
    largest = max(float(logs.max()), spike)
    masses = np.exp(logs - largest)
    slab = (1 - _SETTINGS.all_complete) * float(masses.mean()) * float(high - low) / n
    spike_mass = _SETTINGS.all_complete * math.exp(max(spike - largest, -700.0))
    probability = spike_mass / (spike_mass + slab)
    masses = (1 - probability) * masses / masses.sum()
    mean = float(masses @ places) + probability * n
    variance = float(masses @ (places - mean) ** 2) + probability * (n - mean) ** 2
    return CompleteRecords(min(max(mean, 1.0), float(n)), math.sqrt(variance), n)
