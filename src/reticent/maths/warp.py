"""Private distribution functions: maps that spread the inputs evenly over the box, from noisy moments and counts."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr, ndtr

__all__ = [
    "BINS",
    "WIDELY",
    "bins_that_tell",
    "counted_law",
    "crowded",
    "inhabited",
    "input_law",
    "laws_along",
    "outskirts",
    "places",
    "remoteness",
    "shared",
    "sparsely",
    "spread_out",
    "unwarped",
    "zoomed",
]

Array = NDArray[np.float64]
BINS = 128  # of each input
_COARSE = 32  # bins of a law on points, which are few
_FEWEST = 8  # bins that are worth a release
_NOISE = 0.25  # in the distribution function, at most
_SHARE = 0.8  # of the distribution function; the rest leaves the inputs as they are
_ANYWHERE = 0.1  # share of a law from moments that is uniform
_OFF_CENTRE = 0.5  # spread of means of inputs a priori, in half-widths of the box
_APART = 0.2  # spread of means, and of mean squares, between inputs of one table
_NARROWEST = 0.01
# half-widths of the box within which a record tells about a function, whatever its prior; and the share of evenly spread
# records below which a function is less known than it seems. A basis of several inputs, and single counts, tell less.
_FINELY, WIDELY = (0.08, 0.5), (0.25, 0.3)
_TELL = 6.0  # records near a place, in units of the privacy noise, that tell about a function of one input for sure
# a part of an input's range is worth zooming in on if it is small and surely holds more records than its share of the range
_SMALL, _SURELY, _AROUND, _ROOM = 0.5, 0.35, 0.15, 0.93


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


def bins_that_tell(sd: float, n: int) -> int:
    """How many bins, halved until counts with so much noise tell a distribution function; 0 if even few of them do not."""
    bins = BINS
    while bins >= _FEWEST and sd * math.sqrt(bins) > _NOISE * n:
        bins //= 2
    return bins if bins >= _FEWEST else 0


def counted_law(law: Array, counts: Array, sd: float, n: int) -> Array:
    """The law, corrected by noisy counts: deviations shrunk as far as noise explains them, brought back to the simplex."""
    fine = len(law) // len(counts)
    away, noise = counts / n - law.reshape(-1, fine).sum(axis=1), (sd / n) ** 2
    signal = max(float(np.mean(away**2)) - noise * (1 + math.sqrt(2 / len(away))), 0.0)
    return _simplex(law + np.repeat(away, fine) / fine * (signal / (signal + noise)))


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


def laws_along(points: Array, laws: Array) -> list[Array]:
    """Laws on points, a row each, as shares in the bins of each input, a row for each law."""
    bins = np.minimum(((points + 1) * (BINS / 2)).astype(np.intp), BINS - 1)
    return [np.stack([np.bincount(one, law, BINS) for law in laws]) for one in bins.T]


def inhabited(laws: Sequence[Array]) -> float:
    """Share of the box in which the records are, by laws of each input (rows of shares in bins): the usual input's."""
    means = np.stack([np.atleast_2d(law).mean(axis=0).reshape(-1, BINS // _COARSE).sum(axis=1) for law in laws])
    return float(np.exp(entr(means).sum(axis=1).mean())) / _COARSE


def sparsely(inputs: int, n: int, noise: float) -> tuple[float, float]:
    """How near a record must be to tell about a function, and the share of evenly spread ones below which it is less known.

    Of one input, a hundred records tell about a place, however many there are elsewhere, if ``noise``, that of all releases
    together, does not hide them.
    """
    if inputs > 1:
        return WIDELY
    near, few = _FINELY
    return near, min(few, _TELL * noise / (n * near * math.sqrt(math.pi) / 2))


def remoteness(laws: Sequence[Array], u: Array, sparse: tuple[float, float] = WIDELY) -> Array:
    """How far each row of ``u`` is from the records, from 0 (among them) to 1: there they say nothing about a function.

    Where nearly nobody is, inputs are pressed together, and a function looks smoother than it may be; and a prior that was
    learned elsewhere need not hold. What counts is how many records are near in the box as it was given, compared with evenly
    spread ones. The input where they are fewest decides, and of several laws that an input may have (rows) the one with the
    fewest. ``sparse``: of `sparsely`.
    """
    near, few = sparse
    most, edges = np.zeros(len(u)), np.linspace(-1, 1, BINS + 1)
    middles = (edges[1:] + edges[:-1]) / 2
    weights = np.exp(-(((edges[:, None] - middles) / near) ** 2))
    for law, column in zip(laws, u.T, strict=True):
        ratio = BINS * (np.atleast_2d(law) @ weights.T).min(axis=0) / weights.sum(axis=1)
        np.maximum(most, np.interp(column, edges, np.clip(1 - ratio / few, 0.0, 1.0)), out=most)
    return most


def crowded(laws: Array) -> tuple[float, float] | None:
    """The part of [−1, 1] where records surely are, if it is small and holds most of them; laws: rows of shares in bins."""
    edges = np.linspace(-1, 1, BINS + 1)
    here = np.nonzero(remoteness([laws], edges[:, None], _FINELY) < 0.5)[0]
    if not len(here):
        return None
    margin = 2 + int(_AROUND * (here[-1] - here[0]))
    low, high = max(here[0] - margin, 0), min(here[-1] + margin, BINS)
    share, surely = (high - low) / BINS, float(laws[:, low:high].sum(axis=1).min())
    return (float(edges[low]), float(edges[high])) if share <= _SMALL and surely >= share + _SURELY else None


def zoomed(knots: Array, low: float, high: float) -> tuple[float, ...]:
    """A map by its knots, followed by one that gives most of the room to the part between ``low`` and ``high``."""
    left = 2 * (1 - _ROOM) * (1 + low) / (2 - (high - low))
    places = [-1.0, left - 1.0, left - 1.0 + 2 * _ROOM, 1.0]
    return tuple(np.clip(np.interp(knots, [-1.0, low, high, 1.0], places), -1.0, 1.0).tolist())


def outskirts(warp: Sequence[Sequence[float]]) -> float:
    """Share of the box after the maps that is left to places which they press together."""
    steps = [np.diff(knots) * len(knots) / 2 for knots in warp]
    return 1 - math.prod(1 - float(step[step < 0.99].sum()) / len(step) for step in steps)


def unwarped(warp: Sequence[Sequence[float]], u: Array) -> Array:
    """Where inputs were before their maps, a column for each."""
    return np.stack([np.interp(v, k, np.linspace(-1, 1, len(k))) for v, k in zip(u.T, warp, strict=True)], axis=1)


def _simplex(v: Array) -> Array:
    """The nearest point with non-negative entries that add up to one."""
    ordered = np.sort(v)[::-1]
    excess = (np.cumsum(ordered) - 1) / np.arange(1, len(v) + 1)
    last = int(np.nonzero(ordered > excess)[0][-1])
    return np.asarray(np.maximum(v - excess[last], 0.0))
