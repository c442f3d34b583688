"""Estimates of the cells of a table, and of its margins, from noisy sums.

All cells have the same design: y = Aθ + noise of one variance, where θ holds the number of records,
for each averaged value the number P of records that have it and their sum S, and for each binned
value the counts of its bins. Least squares is then one small matrix for all cells, and sums over
cells are the least-squares estimates of the margins: these agree with the cells exactly.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from reticent.number_kinds import Derived, Numerical, Tuned

__all__ = [
    "CellDesign",
    "cell_means",
    "margin_sets",
    "nonnegative_counts",
    "overall_mean",
    "sd_over_range",
    "summed",
]

Array = NDArray[np.float64]
MARGIN_WEIGHT: Tuned[float] = 10.0  # how much closer counts keep to the margins than to the cells
BAND: Derived[float] = 1.96  # standard deviations of half a band of 95 %
# standard deviations of its noise from which a number of records stands out
VISIBLE: Tuned[float] = 4.0
_STEPS: Numerical[int] = 300  # of the projection to counts that are not negative


@dataclass(frozen=True)
class CellDesign:
    """What the released numbers of a cell say of it.

    ``count_weight``: of the number for the count itself, 0 if there is none. ``averaged``: how many
    values are averaged. ``bins``: how many bins each binned value has.
    """

    count_weight: float
    averaged: int
    bins: tuple[int, ...]

    @property
    def parameters(self) -> int:
        """Length of θ: the count, then P and S of each averaged value, then counts in bins."""
        return 1 + 2 * self.averaged + sum(self.bins)

    def present(self, value: int) -> int:
        """Place in θ of the number of records that have an averaged value."""
        return 1 + 2 * value

    def binned(self, value: int) -> slice:
        """Places in θ of the counts in a binned value's bins."""
        first = 1 + 2 * self.averaged + sum(self.bins[:value])
        return slice(first, first + self.bins[value])

    def matrix(self) -> Array:
        """A: each released number in terms of θ."""
        rows = []
        unit = np.eye(self.parameters)
        if self.count_weight > 0:
            rows.append(self.count_weight * unit[0])
        for value in range(self.averaged):
            present = unit[self.present(value)]
            total = unit[self.present(value) + 1]
            rows += [(present + total) / 2, (present - total) / 2, unit[0] - present]
        for value in range(len(self.bins)):
            counts = unit[self.binned(value)]
            rows += [*counts, unit[0] - counts.sum(axis=0)]
        return np.array(rows)

    def estimate(self, numbers: Array) -> tuple[Array, Array]:
        """θ of each cell, shape (parameters, cells), and its covariance by that of one number.

        ``numbers`` has shape (released numbers, cells).
        """
        a = self.matrix()
        covariance: Array = np.asarray(np.linalg.inv(a.T @ a), dtype=np.float64)
        return covariance @ (a.T @ numbers), covariance


# ---- margins


def margin_sets(keys: int) -> Iterator[tuple[int, ...]]:
    """Which keys are kept in each margin: all but none, down to the grand total."""
    for size in range(keys - 1, -1, -1):
        yield from combinations(range(keys), size)


def summed(cells: Array, kept: tuple[int, ...], keys: int) -> Array:
    """Sum over the keys that are not kept; ``cells`` has the keys as its last axes."""
    first = cells.ndim - keys
    away = tuple(first + axis for axis in range(keys) if axis not in kept)
    return cells.sum(axis=away)


def nonnegative_counts(
    target: Array, margins: Array | None = None, weight: float = MARGIN_WEIGHT
) -> Array:
    """Counts c ≥ 0 of all cells that are as close as possible to what was released.

    Distances of the cells from ``target``, and of all margins from those of ``margins`` (if left
    out, of ``target``), each by its number of cells and ``weight`` times; so that putting negative
    cells to zero does not add up in the margins. Each margin is a projection of the cells, so the
    problem is as well conditioned as the number of margins, and gradients solve it.
    """
    if margins is None:
        margins = target
        if (target >= 0).all():
            return target
    keys = target.ndim
    sets = list(margin_sets(keys))
    c = np.maximum(target, 0.0)
    ahead = c
    momentum = 1.0
    rate = 1.0 / (1.0 + weight * len(sets))
    for _ in range(_STEPS):
        gradient = ahead - target
        for kept in sets:
            gradient = gradient + weight * _spread(ahead - margins, kept)
        before = c
        c = np.maximum(ahead - rate * gradient, 0.0)
        following = (1 + (1 + 4 * momentum**2) ** 0.5) / 2
        ahead = c + (momentum - 1) / following * (c - before)
        momentum = following
    return c


def _spread(cells: Array, kept: tuple[int, ...]) -> Array:
    """The mean over the keys that are not kept, in all cells."""
    away = tuple(axis for axis in range(cells.ndim) if axis not in kept)
    return np.broadcast_to(cells.mean(axis=away, keepdims=True), cells.shape)


# ---- ratios


def overall_mean(total: Array, present: Array, covariance: Array, variance: float) -> float:
    """The mean m = S/P of all cells together, in [−1, 1]: towards 0 if noise hides P."""
    noise = np.sqrt(covariance[1, 1] * variance * total.size)
    return float(np.clip(total.sum() / max(float(present.sum()), VISIBLE * noise), -1.0, 1.0))


def cell_means(
    total: Array, present: Array, covariance: Array, variance: float, overall: float
) -> tuple[Array, Array]:
    """m = S/P of cells, in [−1, 1], and the standard deviation of its error, given noisy S and P.

    Noise is Gaussian, with ``covariance`` (2, 2) of (S, P) times ``variance``. A cell is taken to
    have at least so many records as stand out from the noise; those that it lacks of that have the
    mean of all cells, ``overall``, and may have any. So the error is noise, and at most the
    distance of ``overall`` from the farther end of the range for the share of records that lack: a
    band of 95 % holds the mean wherever it lies, and needs no more than to hold the whole range.
    """
    least = VISIBLE * np.sqrt(covariance[1, 1] * variance)
    number = np.maximum(present, least)
    lacking = 1 - present / number
    mean = np.clip((total + overall * (number - present)) / number, -1.0, 1.0)
    # variance of S − mP: for the mean that is shown, and for the worst where there is none to show
    shown = covariance[0, 0] - 2 * mean * covariance[0, 1] + mean**2 * covariance[1, 1]
    worst = covariance[0, 0] + 2 * abs(covariance[0, 1]) + covariance[1, 1]
    square = shown + np.minimum(lacking, 1.0) * (worst - shown)
    noise = np.sqrt(square * variance) / number
    spread = noise + lacking * sd_over_range(np.array(overall))
    return mean, np.minimum(spread, sd_over_range(mean))


def sd_over_range(mean: Array) -> Array:
    """Standard deviation whose 95 % band about ``mean`` reaches over the range [−1, 1]."""
    return (1 + np.abs(mean)) / BAND
