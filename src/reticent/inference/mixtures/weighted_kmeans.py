"""k-means of weighted points.

How cells with noisy counts, or many noisy centres, become K centres: post-processing, at no cost.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import uniform_filter

from reticent.inference.mixtures.settings import WEIGHTED_KMEANS

__all__ = [
    "nearest_centres",
    "residual_radius",
    "significant_points",
    "squared_distances",
    "weighted_kmeans",
]

Array = NDArray[np.float64]


def squared_distances(points: Array, centres: Array) -> Array:
    """Squared distances of all points from all centres."""
    cross = points @ centres.T
    squared = (
        np.sum(points * points, axis=1)[:, None] - 2 * cross + np.sum(centres * centres, axis=1)
    )
    return np.asarray(np.maximum(squared, 0.0))


def nearest_centres(points: Array, centres: Array) -> tuple[NDArray[np.intp], Array]:
    """The nearest centre of each point, and its squared distance."""
    squared = squared_distances(points, centres)
    nearest = squared.argmin(axis=1)
    return nearest, squared[np.arange(len(points)), nearest]


def significant_points(counts: Array, bins: int, dimension: int, sd: float) -> tuple[Array, Array]:
    """Points with weights.

    Cells whose noisy counts, or neighbourhoods, stand out from the noise of that many cells. What
    does not stand out is mostly noise, and noise far away from all records would draw centres to
    it. But many such cells together may hold what matters: they are joined to ever larger blocks,
    and each block that stands out becomes a point.
    """
    threshold = max(
        np.sqrt(2 * np.log(len(counts))) - WEIGHTED_KMEANS.significance_offset,
        WEIGHTED_KMEANS.min_significance,
    )
    grid = counts.reshape((bins,) * dimension)
    window = 3.0**dimension
    around = uniform_filter(grid, 3, mode="constant") * window
    kept = (around > threshold * sd * np.sqrt(window)) | (grid > threshold * sd)
    middle = (np.arange(bins) + 0.5) * (2 / bins) - 1
    places = np.stack(np.meshgrid(*[middle] * dimension, indexing="ij"), axis=-1)
    points = [places[kept]]
    weights = [np.maximum(grid[kept], 0.0)]
    side = 2
    while side < bins:
        cells = np.floor(np.indices(grid.shape) / side).astype(np.intp)
        block = np.ravel_multi_index(tuple(cells), (bins,) * dimension)[~kept]
        size = np.bincount(block, minlength=len(counts))
        total = np.bincount(block, grid[~kept], len(counts))
        significant = total > threshold * sd * np.sqrt(np.maximum(size, 1))
        sums = [np.bincount(block, column, len(counts)) for column in places[~kept].T]
        points.append(
            np.stack([column[significant] / size[significant] for column in sums], axis=1)
        )
        weights.append(total[significant])
        inside = np.zeros(grid.shape, dtype=bool)
        inside[~kept] = significant[block]
        kept = kept | inside
        side = 2 * side
    return np.concatenate(points), np.concatenate(weights)


def residual_radius(n: float, sd: float, k: int, columns: int) -> float:
    """Clip threshold of residuals, in root mean squares: as wide as its noise allows."""
    radius = WEIGHTED_KMEANS.excess_cost**0.5 * n / (sd * k * columns**0.5)
    return float(max(radius, WEIGHTED_KMEANS.min_radius))


def weighted_kmeans(points: Array, weights: Array, k: int, random: np.random.Generator) -> Array:
    """K centres with a small weighted sum of squared distances.

    k-means++ and Lloyd's steps, the best of several starts.
    """
    kept = weights > 0
    if kept.sum() >= k:
        points = points[kept]
        weights = weights[kept]
    else:
        weights = np.maximum(weights, 0.0) + 1e-9
    restarts = WEIGHTED_KMEANS.restarts
    if len(points) * k <= WEIGHTED_KMEANS.few_distances:
        restarts = WEIGHTED_KMEANS.few_distances_restarts
    starts = []
    for _ in range(restarts):
        centres = kmeans_plus_plus(points, weights, k, random)
        starts.append(lloyd(points, weights, centres, WEIGHTED_KMEANS.first_steps))
    starts.sort(key=lambda start: start[1])
    ends = [
        lloyd(points, weights, centres, WEIGHTED_KMEANS.lloyd_steps)
        for centres, _ in starts[: WEIGHTED_KMEANS.continued]
    ]
    return min(ends, key=lambda end: end[1])[0]


def lloyd(points: Array, weights: Array, centres: Array, steps: int) -> tuple[Array, float]:
    """Centres after so many of Lloyd's steps, or until nothing moves, and their cost."""
    k = len(centres)
    for _ in range(steps):
        nearest, _ = nearest_centres(points, centres)
        total = np.bincount(nearest, weights, k)
        sums = np.stack([np.bincount(nearest, weights * column, k) for column in points.T], axis=1)
        moved = np.where(
            total[:, None] > 0, sums / np.where(total > 0, total, 1.0)[:, None], centres
        )
        if np.array_equal(moved, centres):
            break
        centres = moved
    return centres, float(weights @ nearest_centres(points, centres)[1])


def kmeans_plus_plus(points: Array, weights: Array, k: int, random: np.random.Generator) -> Array:
    """Points drawn one after the other, by weight and squared distance from those before.

    Of a few, the one that helps most.
    """
    tries = 2 + int(np.log(k))
    chosen = np.zeros(k, dtype=np.intp)
    square = np.full(len(points), np.inf)
    for i in range(k):
        cumulative = np.cumsum(weights * square if i else weights)
        if cumulative[-1] <= 0:  # all points are centres already
            cumulative = np.cumsum(weights)
        drawn = np.searchsorted(
            cumulative, random.random(tries if i else 1) * cumulative[-1], side="right"
        )
        drawn = np.minimum(drawn, len(points) - 1)
        remaining = np.minimum(square, squared_distances(points, points[drawn]).T)
        best = int((remaining @ weights).argmin())
        chosen[i], square = drawn[best], remaining[best]
    return points[chosen]
