"""One output of a fitted regression, and what it says of a function at features: means, variances by cause, covariances."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.maths.linalg import quadratic

__all__ = ["Fitted"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Fitted:
    """What is known about one output, in units of half its range; ``noise`` and ``before`` are in its own."""

    middle: float
    half: float
    kernel: Any
    noise: float | None  # None where each record has a level of its own
    mean: Array
    covariance: Array
    own: Array  # covariance without the privacy noise
    outside: float  # variance of what the basis cannot represent
    before: float  # standard deviation of the function before the fit, over the box
    moves: float  # variance of the function around its own mean, before the fit
    # In ``parts`` and ``joint``, ``remote`` says how far points are from the records: 0 among them, 1 where they tell nothing.

    def at(self, phi: Array) -> Array:
        """Mean of the function."""
        return np.asarray(self.middle + self.half * (phi @ self.mean))

    def parts(self, phi: Array, remote: Array) -> tuple[Array, Array]:
        """Variances of the function: the model's own doubt, and the privacy noise."""
        whole, own = (np.maximum(quadratic(phi, one), 0.0) for one in (self.covariance, self.own))
        half2 = self.half**2
        model, privacy = half2 * (np.minimum(own, whole) + self.outside), half2 * np.maximum(whole - own, 0.0)
        return model + remote * np.maximum(half2 * self.moves - model - privacy, 0.0), privacy

    def joint(self, phi: Array, remote: Array) -> Array:
        """Covariance of the function between points; what the basis cannot represent is taken as independent."""
        own = sum(self.parts(phi, remote)) / self.half**2 - quadratic(phi, self.covariance)
        return np.asarray(self.half**2 * (phi @ self.covariance @ phi.T + np.diag(np.maximum(own, 0.0))))
