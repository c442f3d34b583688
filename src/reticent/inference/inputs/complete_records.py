"""How many records are complete: all that a sum over records is about.

A record that lacks a value adds nothing to any sum, and how many do is not public. A noisy count
tells. A priori all n records are complete with probability one half; else their number is anything
from 0 to n.
"""

import math
from dataclasses import dataclass

from scipy.special import ndtr

__all__ = ["CompleteRecords", "CompleteRecordsSettings", "complete_records"]


@dataclass(frozen=True)
class CompleteRecordsSettings:
    """Numbers of the estimate.

    Parameters
    ----------
    all_complete : float
        Probability a priori that no record lacks a value.
    clear_sd : float
        Standard deviations by which the number must be below n for a warning.
    notable_share : float
        Share of complete records below which a warning is worth while.
    """

    all_complete: float = 0.5
    clear_sd: float = 3.0
    notable_share: float = 0.95


_SETTINGS = CompleteRecordsSettings()


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
    def warning(self) -> str | None:
        """A sentence where clearly fewer than all records are complete."""
        share = self.mean / self.n
        clear = self.mean + _SETTINGS.clear_sd * self.sd < self.n
        if not clear or share >= _SETTINGS.notable_share:
            return None
        return (
            f"About {100 * share:.0f} % of the records have all values; the others were left out. "
            "Was everything read? Check the columns' kinds, ranges, levels and missing codes."
        )


def complete_records(count: float, sd: float, n: int) -> CompleteRecords:
    """Posterior of the number of complete records from a noisy count of it.

    ``sd``: standard deviation of the count's noise. The mean is in [1, n].
    """
    # of a normal density, truncated to [0, n]
    low = -count / sd
    high = (n - count) / sd
    if low > 0:  # below nothing: the tails are exact on this side only
        inside = float(ndtr(-low) - ndtr(-high))
    else:
        inside = float(ndtr(high) - ndtr(low))
    inside = max(inside, 1e-300)
    low_density, high_density = (
        math.exp(-min(z * z / 2, 700.0)) / math.sqrt(2 * math.pi) for z in (low, high)
    )
    shift = (low_density - high_density) / inside
    slab_mean = min(max(count + sd * shift, 0.0), float(n))
    spread = 1 + (low * low_density - high * high_density) / inside - shift**2
    slab_variance = sd**2 * min(max(spread, 0.0), 1.0)
    spike = _SETTINGS.all_complete * high_density / sd
    slab = (1 - _SETTINGS.all_complete) * inside / n
    probability = spike / (spike + slab)
    if count >= n:  # in both tails densities vanish; the whole number is nearest
        probability = max(probability, _SETTINGS.all_complete)
    mean = probability * n + (1 - probability) * slab_mean
    variance = (1 - probability) * (slab_variance + probability * (n - slab_mean) ** 2)
    return CompleteRecords(max(mean, 1.0), math.sqrt(max(variance, 0.0)), n)
