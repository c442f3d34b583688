"""Prior of the density of the records' inputs: a Gaussian process is its logarithm.

On public points g of the box, p_g ∝ exp((Λz)_g) with z ~ N(0, I): Λ has the leading eigenvectors of
a Matérn-3/2 covariance between the points, times the roots of their eigenvalues. The number of
records, if it is not public, is a further latent: log n is normal around its released value.
"""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from reticent.inference.moment_model.settings import JOINT

__all__ = ["InputLogDensity"]

Array = NDArray[np.float64]


class InputLogDensity:
    """Expected number of records at each of G points, as a function of latents z ~ N(0, I).

    Parameters
    ----------
    points : (G, d) array
        Inputs in [−1, 1], after their maps.
    length : float
        Length scale of log p in one dimension, in half-widths of the box; with d inputs it is √d
        times as long, as distances are.
    n : float
        Number of records.
    count_variance : float
        Squared relative error of ``n``.

    Attributes
    ----------
    size : int
        Number of latents: one for each mode of log p, the last one for the number of records.
    """

    def __init__(self, points: Array, length: float, n: float, count_variance: float) -> None:
        self._modes = _log_density_modes(points, length)
        self._n = n
        self._count_sd = math.sqrt(count_variance)
        self.size = self._modes.shape[1] + 1

    def expected_records(self, latents: Array) -> tuple[Array, Array]:
        """Expected number of records at each point (G,), and its Jacobian (G, size)."""
        logs = self._modes @ latents[:-1]
        probabilities = np.exp(logs - logs.max())
        probabilities /= probabilities.sum()
        records = self._n * math.exp(self._count_sd * latents[-1]) * probabilities
        slopes = records[:, None] * (self._modes - probabilities @ self._modes)
        return records, np.column_stack([slopes, self._count_sd * records])


def _log_density_modes(points: Array, length: float) -> Array:
    """Λ (G, modes), each mode's mean subtracted: a constant does not change the density."""
    dimension = points.shape[1]
    distance = np.sqrt(np.square(points[:, None] - points).sum(axis=2))
    scaled = distance * (math.sqrt(3) / (length * math.sqrt(dimension)))
    covariance = JOINT.log_density_sd**2 * (1 + scaled) * np.exp(-scaled)
    last = len(points) - 1
    first = max(last - JOINT.modes + 1, 0)
    values, vectors = eigh(covariance, subset_by_index=(first, last))
    modes = vectors * np.sqrt(np.maximum(values, 0.0))
    return np.asarray(modes - modes.mean(axis=0))
