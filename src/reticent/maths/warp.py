"""Private distribution functions: maps that spread the inputs evenly over the box, from noisy moments and counts."""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

__all__ = ["BINS", "counted_law", "counts_tell", "input_law", "places", "shared", "spread_out"]

Array = NDArray[np.float64]
BINS = 128  # of each input
_NOISE = 0.25  # in the distribution function, at most
_SHARE = 0.8  # of the distribution function; the rest leaves the inputs as they are
_ANYWHERE = 0.1  # share of a law from moments that is uniform
_OFF_CENTRE = 0.5  # spread of means of inputs a priori, in half-widths of the box
_APART = 0.2  # spread of means, and of mean squares, between inputs of one table
_NARROWEST = 0.01


def shared(values: Array, sd: float) -> tuple[Array, float]:
    """Noisy numbers of the inputs, a column each, drawn to their row's mean as the noise asks; and what noise that leaves.

    Inputs of one table are alike (most lie low in wide ranges, say), and the mean over many inputs is less noisy than each.
    """
    keep = _APART**2 / (_APART**2 + sd**2)
    mean = values.mean(axis=1, keepdims=True)
    return mean + keep * (values - mean), sd * math.sqrt(keep**2 + (1 - keep**2) / values.shape[1])


def input_law(mean: float, square: float, moment_sd: float) -> Array:
    """Shares of the records in the bins of [−1, 1], from a noisy mean and mean square: normal, and a tenth anywhere.

    A mean that is all noise is drawn to the middle, and a spread is never less than its noise.
    """
    centre = min(max(mean, -1.0), 1.0) * _OFF_CENTRE**2 / (_OFF_CENTRE**2 + moment_sd**2)
    spread = math.sqrt(min(max(square - mean**2, moment_sd, _NARROWEST**2), 1.0))
    normal = np.diff(ndtr((np.linspace(-1, 1, BINS + 1) - centre) / spread))
    return np.asarray((1 - _ANYWHERE) * normal / normal.sum() + _ANYWHERE / BINS)


def counts_tell(sd: float, n: int) -> bool:
    """Whether counts with so much noise say anything about a distribution function (joining bins would not help)."""
    return sd * math.sqrt(BINS) <= _NOISE * n


def counted_law(law: Array, counts: Array, sd: float, n: int) -> Array:
    """The law, corrected by noisy counts: deviations shrunk as far as noise explains them, brought back to the simplex."""
    away, noise = counts / n - law, (sd / n) ** 2
    signal = max(float(np.mean(away**2)) - noise * (1 + math.sqrt(2 / len(law))), 0.0)
    return _simplex(law + away * (signal / (signal + noise)))


def spread_out(law: Array) -> tuple[float, ...]:
    """Values at equidistant knots of a map of [−1, 1] to itself that spreads out where there are many records.

    The square root of the shares is a compromise: places with few records keep some room.
    """
    room = np.sqrt(law)
    even = np.linspace(-1, 1, len(law) + 1)
    knots = _SHARE * (2 * np.concatenate([[0.0], np.cumsum(room / room.sum())]) - 1) + (1 - _SHARE) * even
    knots[0], knots[-1] = -1.0, 1.0
    return tuple(np.clip(knots, -1.0, 1.0).tolist())


def places(law: Array, even: Array) -> Array:
    """Points that are distributed like the law, from evenly distributed ones; a fiftieth stays where it was."""
    share = 0.98 * law / law.sum() + 0.02 / len(law)
    cumulated = np.concatenate([[0.0], np.cumsum(share)])
    return np.asarray(np.interp((even + 1) / 2, cumulated / cumulated[-1], np.linspace(-1, 1, len(law) + 1)))


def _simplex(v: Array) -> Array:
    """The nearest point with non-negative entries that add up to one."""
    ordered = np.sort(v)[::-1]
    excess = (np.cumsum(ordered) - 1) / np.arange(1, len(v) + 1)
    last = int(np.nonzero(ordered > excess)[0][-1])
    return np.asarray(np.maximum(v - excess[last], 0.0))
