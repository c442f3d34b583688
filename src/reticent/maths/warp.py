"""Private distribution functions: maps that spread the inputs evenly over the box, from noisy counts."""

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["spread_out"]

Array = NDArray[np.float64]
_NOISE = 0.25  # in the distribution function, at most
_SHARE = 0.8  # of the distribution function; the rest leaves the inputs as they are


def spread_out(counts: Array, sd: float, n: int) -> tuple[float, ...]:
    """Values at equidistant knots of a map of [−1, 1] to itself that spreads out where ``counts`` (noise ``sd``) are large.

    Bins are joined until the noise in the distribution function is small; where it never is, nothing is moved. Noisy shares are
    shrunk to the uniform law as far as noise explains them and brought back to the simplex. Their square root is a compromise:
    places with few records keep some room.
    """
    while len(counts) > 4 and sd * math.sqrt(len(counts)) > _NOISE * n:
        counts, sd = counts.reshape(-1, 2).sum(axis=1), sd * math.sqrt(2)
    bins = len(counts)
    if sd * math.sqrt(bins) > _NOISE * n:
        return (-1.0, 1.0)
    away = counts / n - 1 / bins
    noise = (sd / n) ** 2
    signal = max(float(np.mean(away**2)) - noise * (1 + math.sqrt(2 / bins)), 0.0)
    share = _simplex(1 / bins + away * (signal / (signal + noise)))
    room = np.sqrt(share)
    even = np.linspace(-1, 1, bins + 1)
    knots = _SHARE * (2 * np.concatenate([[0.0], np.cumsum(room / room.sum())]) - 1) + (1 - _SHARE) * even
    knots[0], knots[-1] = -1.0, 1.0
    return tuple(np.clip(knots, -1.0, 1.0).tolist())


def _simplex(v: Array) -> Array:
    """The nearest point with non-negative entries that add up to one."""
    ordered = np.sort(v)[::-1]
    excess = (np.cumsum(ordered) - 1) / np.arange(1, len(v) + 1)
    last = int(np.nonzero(ordered > excess)[0][-1])
    return np.asarray(np.maximum(v - excess[last], 0.0))
