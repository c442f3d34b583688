"""What outputs are: how their variance depends on their mean, and where they lie.

The function is the mean of the outputs, whatever they are. Of numbers (``real``) the noise has one
variance everywhere. Of two values (``binary``) the variance is known given the mean; of counts it
is proportional to the mean (quasi-Poisson), and of positive amounts to its square (the spread is a
constant fraction of the mean). The factor, the dispersion, is learned.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import gamma, norm

__all__ = ["OUTCOMES", "Outcome"]

Array = NDArray[np.float64]
OUTCOMES = ("real", "binary", "count", "positive")


@dataclass(frozen=True)
class Outcome:
    """Law of the outputs around their mean.

    Parameters
    ----------
    kind : str
        One of `OUTCOMES`.
    low, high : float
        Range of the outputs, in their own units.
    """

    kind: str
    low: float
    high: float

    @property
    def limits(self) -> tuple[float, float]:
        """Where a mean can lie."""
        if self.kind == "binary":
            return self.low, self.high
        if self.kind in ("count", "positive"):
            return 0.0, np.inf
        return -np.inf, np.inf

    def bounded(self, mean: Array) -> Array:
        """Means, moved to where a mean can lie."""
        return np.asarray(np.clip(mean, *self.limits))

    def unit_variance(self, mean: Array) -> Array:
        """Variance of an output given its mean, but for the dispersion; both (points,)."""
        inside = self.bounded(mean)
        if self.kind == "binary":
            return np.asarray((inside - self.low) * (self.high - inside))
        if self.kind == "count":
            return inside
        if self.kind == "positive":
            return np.asarray(inside**2)
        return np.ones_like(inside)

    def dispersion(self, variance: float, means: Array, weights: Array) -> float:
        """Factor by which `unit_variance` has this mean over points with these weights.

        Of two values it is 1: their law is known.
        """
        if self.kind == "binary":
            return 1.0
        return variance / max(float(weights @ self.unit_variance(means)), 1e-300)

    def output_band(self, mean: Array, variance: Array, level: float) -> tuple[Array, Array]:
        """Ends (points,) of an interval that holds an output with a probability of ``level``.

        ``mean`` and ``variance`` (points,) are those of an output. Numbers are normal, counts and
        amounts have a gamma distribution; one of two values is in a band if it is not rarer than
        half of what the band leaves out.
        """
        tail = (1 - level) / 2
        inside = self.bounded(mean)
        if self.kind == "binary":
            chance = (inside - self.low) / (self.high - self.low)
            return np.where(1 - chance < tail, self.high, self.low), np.where(
                chance < tail, self.low, self.high
            )
        if self.kind == "real":
            half = norm.isf(tail) * np.sqrt(variance)
            return inside - half, inside + half
        sd = np.sqrt(np.maximum(variance, 1e-300))
        # a mean at zero, whose law is at zero too, and one that is known for certain
        shape = np.clip(inside / sd, 1e-100, 1e140) ** 2
        scale = np.maximum(inside, 1e-300) / shape
        lower = np.asarray(gamma.ppf(tail, shape, scale=scale))
        upper = np.asarray(gamma.isf(tail, shape, scale=scale))
        if self.kind == "count":
            return np.floor(lower), np.ceil(upper)
        return lower, upper
