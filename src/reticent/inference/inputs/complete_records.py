"""How many records are complete: all that a sum over records is about.

A record that lacks a value adds nothing to any sum, and how many do is not public. A noisy count
tells. A priori all n records are complete with probability one half; else their number is anything
from 0 to n. Where n is itself a noisy number, "all" is anything near n; where records have weights
of their own, the total weight of complete ones is anything from 0 to n.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr

from reticent.number_kinds import Limit, Numerical, Prior

__all__ = ["CompleteRecords", "CompleteRecordsSettings", "UnitTotal", "complete_records"]


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

    all_complete: Prior[float] = 0.5
    clear_sd: Limit[float] = 3.0
    notable_share: Limit[float] = 0.95


_SETTINGS = CompleteRecordsSettings()
_REACH: Numerical[float] = 9.0  # standard deviations of the noise around a count that matter
_GRID = (np.arange(2000) + 0.5) / 2000


@dataclass(frozen=True)
class UnitTotal:
    """What is known of the total weight of all records before any are added up.

    Attributes
    ----------
    n : int
        Number of units: of records, or of people who weigh at most one each.
    n_sd : float
        Standard deviation of the noise in n; 0 where the number is public.
    one_each : bool
        Whether each unit weighs one, so that n is the total weight. Else the total is anything up
        to n, and what it falls short by says nothing about missing values.
    """

    n: int
    n_sd: float = 0.0
    one_each: bool = True

    @property
    def most(self) -> float:
        """What the total weight cannot exceed: n, or nothing where n is a noisy number."""
        if self.n_sd:
            return math.inf
        return float(self.n)

    def combined(self, count: float, sd: float) -> tuple[float, float]:
        """Total weight and its standard deviation, if all records are in a noisy ``count``.

        By precisions; n itself where it is public.
        """
        if not self.n_sd:
            return float(self.n), 0.0
        precisions = np.array([self.n_sd, sd]) ** -2.0
        total = float(precisions @ [self.n, count]) / float(precisions.sum())
        return total, float(precisions.sum() ** -0.5)


@dataclass(frozen=True)
class CompleteRecords:
    """Posterior mean and standard deviation of the number of complete records, of a ``total``."""

    mean: float
    sd: float
    total: UnitTotal

    @classmethod
    def unknown(cls, total: UnitTotal) -> "CompleteRecords":
        """All of them: a guess before a release tells."""
        return cls(float(total.n), total.n_sd, total)

    @property
    def relative_variance(self) -> float:
        """Squared relative error of the number."""
        return (self.sd / self.mean) ** 2

    @property
    def fewer_than_all(self) -> bool:
        """Whether clearly fewer than all records are complete.

        Where units do not weigh one each, nothing tells.
        """
        return self.total.one_each and self._clearly_below_n

    @property
    def perhaps_none(self) -> bool:
        """Whether clearly fewer than all are complete, and not clearly any."""
        return self._clearly_below_n and self.mean < _SETTINGS.clear_sd * self.sd

    @property
    def _clearly_below_n(self) -> bool:
        error = math.hypot(self.sd, self.total.n_sd)
        return self.mean + _SETTINGS.clear_sd * error < self.total.n

    @property
    def warning(self) -> str | None:
        """A sentence where clearly fewer than all records are complete."""
        share = self.mean / self.total.n
        if not self.fewer_than_all or share >= _SETTINGS.notable_share:
            return None
        return (
            f"About {100 * share:.0f} % of the records have all values; the others were left out. "
            "Was everything read? Check the columns' kinds, ranges, levels and missing codes."
        )


def complete_records(count: float, sd: float, total: UnitTotal) -> CompleteRecords:
    """Posterior of the number of complete records from a noisy count of it.

    ``sd``: standard deviation of the count's noise. The mean is at least 1, and at most n where
    that is public.
    """
    n = float(total.n)
    ends = [count - _REACH * sd, count + _REACH * sd]
    low, high = np.clip(ends, 0.0, n + _REACH * total.n_sd)
    places = low + (high - low) * _GRID
    logs = -(((places - count) / sd) ** 2) / 2
    if total.n_sd:
        # probability that there are so many
        logs += log_ndtr((n - places) / total.n_sd)
    spike_mean, spike_sd = total.combined(count, sd)
    difference_sd = math.hypot(sd, total.n_sd)
    spike = -(((n - count) / difference_sd) ** 2) / 2 + math.log(sd / difference_sd)
    largest = max(float(logs.max()), spike)
    masses = np.exp(logs - largest)
    all_complete = _SETTINGS.all_complete if total.one_each else 0.0
    slab = (1 - all_complete) * float(masses.mean()) * float(high - low) / n
    spike_mass = all_complete * math.exp(max(spike - largest, -700.0))
    probability = 0.0
    if spike_mass:
        probability = spike_mass / (spike_mass + slab)
    if masses.any():
        masses = (1 - probability) * masses / masses.sum()
    mean = float(masses @ places) + probability * spike_mean
    variance = float(masses @ (places - mean) ** 2)
    variance += probability * ((spike_mean - mean) ** 2 + spike_sd**2)
    return CompleteRecords(min(max(mean, 1.0), total.most), math.sqrt(variance), total)
