"""Warps: monotone maps of each input that spread the records evenly over [−1, 1].

A warp is given by its values at equidistant knots; between them it is linear.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reticent.number_kinds import Numerical, Tuned

__all__ = ["WarpSettings", "compressed_fraction", "equalizing_warp", "magnify_interval", "unwarp"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class WarpSettings:
    """Tuned numbers of the warps.

    Parameters
    ----------
    equalized_fraction : float
        Weight of the map by the density; the rest leaves the inputs as they are.
    magnified_fraction : float
        Fraction of the range that a magnified interval gets.
    compressed_slope : float
        Slope of a warp below which inputs count as compressed: less than one by more than rounding.
    """

    equalized_fraction: Tuned[float] = 0.8
    magnified_fraction: Tuned[float] = 0.93
    compressed_slope: Numerical[float] = 0.99


_SETTINGS = WarpSettings()


def equalizing_warp(density: Array) -> tuple[float, ...]:
    """Knots of a map of [−1, 1] to itself that spreads out where the density (bins,) is high.

    It goes by the square root of the density, so that sparse parts keep some room.
    """
    room = np.sqrt(density)
    identity = np.linspace(-1, 1, len(density) + 1)
    equalized = _SETTINGS.equalized_fraction
    knots = (
        equalized * (2 * np.concatenate([[0.0], np.cumsum(room / room.sum())]) - 1)
        + (1 - equalized) * identity
    )
    knots[0] = -1.0
    knots[-1] = 1.0
    return tuple(np.clip(knots, -1.0, 1.0).tolist())


def magnify_interval(knots: Array, low: float, high: float) -> tuple[float, ...]:
    """Knots of a warp followed by one that gives most of the range to the interval low to high."""
    room = _SETTINGS.magnified_fraction
    low_room = 2 * (1 - room) * (1 + low) / (2 - (high - low))
    values = [-1.0, low_room - 1.0, low_room - 1.0 + 2 * room, 1.0]
    return tuple(np.clip(np.interp(knots, [-1.0, low, high, 1.0], values), -1.0, 1.0).tolist())


def compressed_fraction(warp: Sequence[Sequence[float]]) -> float:
    """Fraction of the box, after the warps, that is left to inputs which they compress."""
    slopes = [np.diff(knots) * len(knots) / 2 for knots in warp]
    least = _SETTINGS.compressed_slope
    return 1 - math.prod(1 - float(slope[slope < least].sum()) / len(slope) for slope in slopes)


def unwarp(warp: Sequence[Sequence[float]], u: Array) -> Array:
    """Inputs before their warps: the inverse maps of the columns of ``u`` (points, d)."""
    return np.stack(
        [np.interp(v, k, np.linspace(-1, 1, len(k))) for v, k in zip(u.T, warp, strict=True)],
        axis=1,
    )
