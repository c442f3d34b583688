"""DP-EM for mixtures as Park et al. (2017) describe it, for comparison only.

Scenario GGG of Secs 4 and 5. Every step perturbs weights, means and covariances each by itself, Eqs
(12) to (18): 2K + 1 Gaussian mechanisms in each of J steps, all with the same multiplier. Noise in
means and covariances is scaled by the *noisy* counts, which has not the stated guarantee (a record
decides by how much); it is kept as printed.
"""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from reticent.inference.mixtures.gaussian_mixture import NormalMixture, clamp_eigenvalues

__all__ = ["COMPOSITIONS", "literal_mixture", "multiplier"]

Array = NDArray[np.float64]
COMPOSITIONS = ("linear", "advanced", "zCDP", "moments accountant")
_MOST_MOMENTS = 100  # the moments accountant looks at whole orders only
_NEAR_ZERO = 1e-3  # what eigenvalues are projected to


def multiplier(
    composition: str, epsilon: float, delta: float, uses: int, each_delta: float
) -> float:
    """Noise multiplier of ``uses`` Gaussian mechanisms that are (ε, δ)-DP together, by Sec 5.

    >>> [round(multiplier(name, 1.0, 1e-4, 70, 1e-8)) for name in COMPOSITIONS]
    [427, 231, 37, 37]
    """
    plain = math.sqrt(2 * math.log(1.25 / each_delta))
    if composition == "linear":
        return plain * uses / epsilon
    if composition == "advanced":
        slack = delta - uses * each_delta
        width = math.sqrt(2 * uses * math.log(1 / slack))
        each = brentq(lambda e: uses * e * math.expm1(e) + width * e - epsilon, 0.0, epsilon)
        return plain / float(each)
    if composition == "zCDP":
        log = math.log(1 / delta)
        rho = (math.sqrt(log + epsilon) - math.sqrt(log)) ** 2
        return math.sqrt(uses / (2 * rho))
    orders = np.arange(1, _MOST_MOMENTS + 1)
    room = orders * epsilon - math.log(1 / delta)
    squares = np.where(
        room > 0, uses * (orders**2 + orders) / (2 * np.where(room > 0, room, 1.0)), np.inf
    )
    return float(np.sqrt(squares.min()))


def literal_mixture(
    X: Array, parts: int, steps: int, noise: float, rng: np.random.Generator
) -> NormalMixture:
    """J steps of EM with noise, from random means; records lie in the unit ball."""
    n, d = X.shape
    start = np.linalg.cholesky(np.eye(d) * 0.25 / d)
    mixture = NormalMixture(
        np.full(parts, 1 / parts),
        rng.normal(0, 0.5 / math.sqrt(d), (parts, d)),
        np.array([start] * parts),
    )
    for _ in range(steps):
        gamma = mixture.responsibilities(X)
        exact = gamma.sum(axis=0)
        weights = np.clip(exact / n + rng.normal(0, 2 / n * noise, parts), 1e-3, 1.0)
        weights /= weights.sum()
        sizes = n * weights
        means = []
        roots = []
        for k in range(parts):
            mean = gamma[:, k] @ X / max(exact[k], 1e-9) + rng.normal(0, 2 / sizes[k] * noise, d)
            away = X - mean
            triangle = np.triu(rng.normal(0, 2 / sizes[k] * noise, (d, d)))
            symmetric = triangle + np.triu(triangle, 1).T
            covariance = away.T @ (away * gamma[:, k : k + 1]) / max(exact[k], 1e-9) + symmetric
            length = max(float(np.linalg.norm(mean)), 1.0)
            means.append(mean / length)
            roots.append(np.linalg.cholesky(clamp_eigenvalues(covariance, _NEAR_ZERO)))
        mixture = NormalMixture(weights, np.array(means), np.array(roots))
    return mixture
