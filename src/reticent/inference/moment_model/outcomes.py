"""What outputs are: how their variance depends on their mean, and where they lie.

The function is the mean of the outputs, whatever they are. Of numbers (``real``) the noise has one
variance everywhere. Of two values (``binary``) the variance is known given the mean; of counts it
is proportional to the mean (quasi-Poisson), and of positive amounts to its square (the spread is a
constant fraction of the mean). The factor, the dispersion, is learned.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr
from scipy.stats import gamma, norm

from reticent.number_kinds import Numerical

__all__ = ["OUTCOMES", "Outcome"]

Array = NDArray[np.float64]
_FARTHEST: Numerical[float] = 1e6  # standard deviations from a mean to an end of its range
_LEAST_SD: Numerical[float] = 1e-9  # of a mean, in units of what it may be
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

    def possible_moments(self, mean: Array, variance: Array) -> tuple[Array, Array]:
        """Mean and variance (points,) of a normal number that lies where a mean can lie.

        ``mean`` and ``variance`` (points,) are those of the normal number without that condition.
        """
        if self.kind == "real":
            return mean, variance
        low, high = self.limits
        sd = np.maximum(np.sqrt(variance), _LEAST_SD * max(abs(self.low), abs(self.high)))
        a = np.clip((low - mean) / sd, -_FARTHEST, _FARTHEST)
        b = np.clip((high - mean) / sd, -_FARTHEST, _FARTHEST)
        # probabilities of the tail that both ends are in, which may be very small
        upper = a + b > 0
        near = log_ndtr(np.where(upper, -a, b))
        far = log_ndtr(np.where(upper, -b, a))
        log_probability = near + np.log(-np.expm1(np.minimum(far - near, -1e-15)))
        at_low = np.exp(norm.logpdf(a) - log_probability)
        at_high = np.exp(norm.logpdf(b) - log_probability)
        moved = at_low - at_high
        inside = self.bounded(mean + sd * moved)
        shrunk = 1 + a * at_low - b * at_high - moved**2
        return inside, np.asarray(sd**2 * np.clip(shrunk, 0.0, 1.0))

    def unit_variance(self, mean: Array, variance: Array) -> Array:
        """Expected variance (points,) of an output around its mean, but for the dispersion.

        ``mean`` and ``variance`` (points,): what is known of that mean.
        """
        inside, uncertain = self.possible_moments(mean, variance)
        if self.kind == "binary":
            spread = (inside - self.low) * (self.high - inside) - uncertain
            return np.asarray(np.maximum(spread, 0.0))
        if self.kind == "count":
            return inside
        if self.kind == "positive":
            return np.asarray(inside**2 + uncertain)
        return np.ones_like(inside)

    def dispersion(self, variance: float, unit_variances: Array, weights: Array) -> float:
        """Factor by which `unit_variance` (points,) has this mean with these weights (points,).

        Of two values it is 1: their law is known.
        """
        if self.kind == "binary":
            return 1.0
        return variance / max(float(weights @ unit_variances), 1e-300)

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
