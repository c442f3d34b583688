"""Clusters of weighted points: how a synopsis (cells with noisy counts, or many noisy centres) becomes K centres, for free."""

import math
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import uniform_filter

__all__ = ["Leaves", "heaps", "nearest", "reach", "splits", "squares", "supported", "weighted_kmeans"]

Array = NDArray[np.float64]
_RESTARTS, _ITERATIONS = 20, 30
_EXCESS = 0.0005  # of the mean squared distance, that the noise of one step may add
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


def supported(counts: Array, bins: int, dimension: int, sd: float) -> tuple[Array, Array]:
    """Points with weights: cells whose noisy counts, or neighbourhoods, stand out from the noise of that many cells.

    What does not stand out is mostly noise, and noise far away from all records would draw centres to it. But many such cells
    together may hold what matters: they are joined to ever larger blocks, and each block that stands out becomes a point.
    """
    sure = max(np.sqrt(2 * np.log(len(counts))) - 0.2, 2.0)
    grid, window = counts.reshape((bins,) * dimension), 3.0**dimension
    around = uniform_filter(grid, 3, mode="constant") * window
    kept = (around > sure * sd * np.sqrt(window)) | (grid > sure * sd)
    middle = (np.arange(bins) + 0.5) * (2 / bins) - 1
    places = np.stack(np.meshgrid(*[middle] * dimension, indexing="ij"), axis=-1)
    points, weights = [places[kept]], [np.maximum(grid[kept], 0.0)]
    side = 2
    while side < bins:
        cells = np.floor(np.indices(grid.shape) / side).astype(np.intp)
        block = np.ravel_multi_index(tuple(cells), (bins,) * dimension)[~kept]
        size = np.bincount(block, minlength=len(counts))
        total = np.bincount(block, grid[~kept], len(counts))
        found = total > sure * sd * np.sqrt(np.maximum(size, 1))
        where = [np.bincount(block, column, len(counts)) for column in places[~kept].T]
        points.append(np.stack([column[found] / size[found] for column in where], axis=1))
        weights.append(total[found])
        inside = np.zeros(grid.shape, dtype=bool)
        inside[~kept] = found[block]
        kept, side = kept | inside, 2 * side
    return np.concatenate(points), np.concatenate(weights)


_FINE, _MOST_SPLIT, _MOST_LEAVES = 6.0, 32, 4096.0  # a leaf's expected records over the noise of its count; limits


def splits(counts: Array, sd: float, dimension: int) -> tuple[int, ...]:
    """Into how many leaves, a power of two along each column, cells with these noisy counts are cut; ``sd``: noise of a leaf."""
    fine = max(_FINE, float(np.maximum(counts, 0.0).sum()) / (_MOST_LEAVES * sd))
    along = np.maximum(counts / (fine * sd), 1.0) ** (1 / dimension)
    return tuple((2 ** np.minimum(np.floor(np.log2(along)), np.log2(_MOST_SPLIT)).astype(int)).tolist())


@dataclass(frozen=True)
class Leaves:
    """Noisy counts of cells, and of their leaves with the sums of places in them."""

    coarse: Array  # counts of cells
    coarse_sd: float
    cell: NDArray[np.int64]  # of each leaf
    corner: Array
    width: Array
    counts: Array  # of leaves
    places: Array  # Σv of each leaf, v in [0, 1]ᵈ
    counts_sd: float
    places_sd: float

    def points(self) -> tuple[Array, Array]:
        """Points with weights: leaves that stand out from the noise, of each cell what is left, if that stands out, and heaps."""
        cells, own = len(self.coarse), np.bincount(self.cell, minlength=len(self.coarse))
        both = 1 / self.coarse_sd**2, 1 / (own * self.counts_sd**2)
        sd = 1 / np.sqrt(both[0] + both[1])
        total = (self.coarse * both[0] + np.bincount(self.cell, self.counts, cells) * both[1]) * sd**2
        sure = max(float(np.sqrt(2 * np.log(cells))), 2.0)
        single = own[self.cell] == 1
        weight = np.where(single, total[self.cell], self.counts)
        kept = ~single & (total > sure * sd)[self.cell] & (self.counts > sure * self.counts_sd)
        many = np.maximum(weight, self.counts_sd)
        noise2 = (self.places_sd / many) ** 2
        trust = _PLACE2 / (_PLACE2 + noise2)  # places are believed as far as their noise allows
        place = 0.5 + np.clip(self.places / many[:, None] - 0.5, -0.5, 0.5) * trust[:, None]
        where = self.corner + place * self.width[:, None]
        middle = self.corner + self.width[:, None] / 2
        dim = ~(kept | single)
        left = total - np.bincount(self.cell[kept], weight[kept], cells)
        others = np.bincount(self.cell[dim], minlength=cells)
        sd_left = np.minimum(np.sqrt(others) * self.counts_sd, np.sqrt(sd**2 + (own - others) * self.counts_sd**2))
        found = (others > 0) & (total > sure * sd) & (left > sure * sd_left)
        mean = [np.bincount(self.cell[dim], column, cells) for column in middle[dim].T]
        rest = np.stack(mean, axis=1)[found] / np.maximum(others[found], 1)[:, None]
        light, at = own == 1, np.zeros((cells, self.corner.shape[1]))
        at[self.cell[single]] = where[single]
        far, far_weight = heaps(total, at, light, float(sd[light].max(initial=0.0)))
        return np.concatenate([where[kept], rest, far]), np.concatenate([weight[kept], left[found], far_weight])


_WINDOWS, _SEEN = (1, 2, 3), 2.6  # cells along each column; standard deviations
_ODDS, _SIZES = 0.05, 7.0  # of a heap in a window before it is looked at; logarithm of the range that its size may have


def heaps(counts: Array, places: Array, light: NDArray[np.bool_], sd: float) -> tuple[Array, Array]:
    """Points with weights: the light cells of a grid in windows that stand out, the clearest window first.

    A heap of records may lie across several cells, none of which stands out. Far away, noise that is taken for a heap costs a
    centre, and so does a heap that is not seen: a window counts as many records as are expected in it, its sum times the
    chance that there is a heap. At z standard deviations, sizes even on a logarithmic scale: odds·√(2π)/(z·log range)·exp(z²/2).
    """
    d = places.shape[1]
    bins = round(len(counts) ** (1 / d))
    grid, free = (np.where(light, counts, 0.0).reshape((bins,) * d), light.reshape((bins,) * d).copy())
    at, candidates = places.reshape((bins,) * d + (d,)), list[tuple[float, int, tuple[int, ...]]]()
    for side in (side for side in _WINDOWS if side <= bins):
        total, cells = _windows(grid, side), _windows(free.astype(np.float64), side)
        clear = total / np.maximum(sd * np.sqrt(cells), 1e-300)
        corners = np.argwhere((clear > _SEEN) & (cells > 0))
        candidates += [(-float(clear[tuple(corner)]), side, tuple(corner.tolist())) for corner in corners]
    points, weights = [np.zeros((0, d))], [np.zeros(0)]
    for _, side, corner in sorted(candidates):
        box = tuple(slice(start, start + side) for start in corner)
        own = free[box]
        total_here = float(grid[box][own].sum())
        z = total_here / (sd * math.sqrt(own.sum())) if own.any() else 0.0
        if z > _SEEN:
            odds = _ODDS * math.sqrt(2 * math.pi) / (z * _SIZES) * math.exp(min(z * z / 2, 300.0))
            share = np.maximum(grid[box][own], 0.0)
            points.append(at[box][own])
            weights.append(share / share.sum() * total_here * odds / (1 + odds))
            free[box] = False
    return np.concatenate(points), np.concatenate(weights)


def _windows(grid: Array, side: int) -> Array:
    """Sums over all windows of a grid."""
    found = np.zeros([size - side + 1 for size in grid.shape])
    for offset in product(range(side), repeat=grid.ndim):
        found += grid[tuple(slice(o, o + n) for o, n in zip(offset, found.shape, strict=True))]
    return found


_PLACE2 = 1 / 12  # variance of a place that may be anywhere in its leaf


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
    """Points drawn one after the other, by weight and squared distance from those before; of a few, the one that helps most."""
    tries = 2 + int(np.log(k))
    chosen = np.zeros(k, dtype=np.intp)
    square = np.full(len(points), np.inf)
    for i in range(k):
        chance = np.cumsum(weights * square if i else weights)
        if chance[-1] <= 0:  # all points are centres already
            chance = np.cumsum(weights)
        drawn = np.searchsorted(chance, random.random(tries if i else 1) * chance[-1], side="right")
        drawn = np.minimum(drawn, len(points) - 1)
        left = np.minimum(square, squares(points, points[drawn]).T)
        best = int((left @ weights).argmin())
        chosen[i], square = drawn[best], left[best]
    return points[chosen]
