"""Clusters of weighted points: how a synopsis (cells with noisy counts, or many noisy centres) becomes K centres, for free."""

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import uniform_filter

__all__ = ["nearest", "reach", "supported", "weighted_kmeans"]

Array = NDArray[np.float64]
_RESTARTS, _ITERATIONS = 30, 30
_EXCESS = 0.002  # of the mean squared distance, that the noise of one step may add
_LEAST, _MOST = 1.2, 8.0  # root mean squares: how far residuals may reach


def squares(points: Array, centres: Array) -> Array:
    """Squared distances of all points from all centres."""
    cross = points @ centres.T
    found = np.sum(points * points, axis=1)[:, None] - 2 * cross + np.sum(centres * centres, axis=1)
    return np.asarray(np.maximum(found, 0.0))


def nearest(points: Array, centres: Array) -> tuple[NDArray[np.intp], Array]:
    """The nearest centre of each point, and its squared distance."""
    found = squares(points, centres)
    which = found.argmin(axis=1)
    return which, found[np.arange(len(points)), which]


def supported(counts: Array, bins: int, dimension: int, sd: float) -> Array:
    """Noisy counts where they, or their neighbourhood, stand out from the noise of that many cells; zero elsewhere.

    What is left out would be mostly noise, and noise far away from all records would draw centres to it.
    """
    sure = max(np.sqrt(2 * np.log(len(counts))) - 0.2, 2.0)
    grid = counts.reshape((bins,) * dimension)
    window = 3.0**dimension
    around = uniform_filter(grid, 3, mode="constant") * window
    stands_out = (around > sure * sd * np.sqrt(window)) | (grid > sure * sd)
    return np.where(stands_out.ravel(), np.maximum(counts, 0.0), 0.0)


def reach(n: int, sd: float, k: int, columns: int) -> float:
    """How far residuals may reach, in root mean squares: as far as the noise that this brings allows."""
    return float(np.clip(_EXCESS**0.5 * n / (sd * k * columns**0.5), _LEAST, _MOST))


def weighted_kmeans(points: Array, weights: Array, k: int, random: np.random.Generator) -> Array:
    """K centres with a small weighted sum of squared distances: k-means++ and Lloyd's steps, the best of several starts."""
    kept = weights > 0
    points, weights = (points[kept], weights[kept]) if kept.sum() >= k else (points, np.maximum(weights, 0.0) + 1e-9)
    found, least = points[:k], np.inf
    for _ in range(_RESTARTS):
        centres = _start(points, weights, k, random)
        for _ in range(_ITERATIONS):
            which, _ = nearest(points, centres)
            total = np.bincount(which, weights, k)
            sums = np.stack([np.bincount(which, weights * column, k) for column in points.T], axis=1)
            moved = np.where(total[:, None] > 0, sums / np.where(total > 0, total, 1.0)[:, None], centres)
            if np.array_equal(moved, centres):
                break
            centres = moved
        cost = float(weights @ nearest(points, centres)[1])
        if cost < least:
            found, least = centres, cost
    return found


def _start(points: Array, weights: Array, k: int, random: np.random.Generator) -> Array:
    """Points drawn one after the other, each with chances by weight and squared distance from those before."""
    chosen: list[int] = []
    square = np.ones(len(points))
    for _ in range(k):
        chance = np.cumsum(weights * square)
        if chance[-1] <= 0:  # as many points as there are are centres already
            chance = np.cumsum(weights)
        one = min(int(np.searchsorted(chance, random.random() * chance[-1], side="right")), len(points) - 1)
        chosen.append(one)
        away = np.sum((points - points[one]) ** 2, axis=1)
        square = away if len(chosen) == 1 else np.minimum(square, away)
    return points[chosen]
