"""What a regression says along its inputs, as numbers to draw and to print: the mean, and the parts of its doubt.

Computed from a fitted model, so from releases only. Lines along one input go through the *anchor*, where the others stay: the
median of each input, where releases tell how inputs are spread, since there are people; else the middle of the box. Of an
input that is 0 or 1, as counts tell, these two places are shown: between them is nobody, and the curve says nothing.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.apps.figures import column_names
from reticent.models.inputs import remote_along
from reticent.models.label_sum import told

__all__ = [
    "BAND",
    "GRID",
    "MOST_COLUMNS",
    "MOST_LINES",
    "PARTS",
    "POINTS",
    "Grid",
    "Line",
    "along",
    "average_sd",
    "grid",
    "grouped",
    "inhabited",
    "lines",
    "medians",
    "mesh",
    "ranges",
    "spread_alike",
    "spread_over",
    "two_valued",
]

Values = NDArray[np.float64]

BAND = 1.959963984540054  # standard deviations, for a band that holds 95 %
PARTS = ("model", "privacy", "noise")
POINTS, GRID = 101, 41
_BOX = 512
_BINS = 64
_INSET = 0.2
_MANY = 0.3  # of the records in one of many bins: they are all at one place
_NOISE = 0.25  # in a distribution function, as a share of the records: with more of it a median says nothing
_FEW, _UNSURE = 0.14, 0.2  # how remote the ends are between which nearly all records are; noise that hides the ends
# shares at both ends, at each of them, of an input with two values; most noise of one
_BOTH, _EACH, _BLUR = 0.85, 0.05, 0.02
MOST_LINES, MOST_COLUMNS = 24, 40  # that are drawn, of a regression and of other models


@dataclass(frozen=True)
class Line:
    """A line through the anchor along one input. ``sds``: with each part of the doubt added to those before.

    Without "noise" where it is not known, since each record has a level of its own. ``ends``: hardly anybody is beyond.
    """

    name: str
    at: Values
    mean: Values
    sds: dict[str, Values]
    ends: tuple[float, float]

    @property
    def guessed(self) -> NDArray[np.bool_]:
        """Which points are where hardly anybody is."""
        return (self.at < self.ends[0]) | (self.at > self.ends[1])

    @property
    def inset(self) -> float:
        """Room beyond its ends, as a share of the axis: two values stand away from the frame, a curve goes up to it."""
        return _INSET if len(self.at) == 2 else 0.0


@dataclass(frozen=True)
class Grid:
    """A grid over the box of two inputs; the values have a row for each ``y``. ``ends``: hardly anybody is beyond."""

    names: tuple[str, str]
    x: Values
    y: Values
    mean: Values
    sds: dict[str, Values]
    ends: tuple[tuple[float, float], ...] = ()


def ranges(model: Any) -> Values:
    """Give the lowest value of each input, its anchor, and the highest, as rows; a norm may keep inputs from the box's edges."""
    bounds = model.releases_[0].bounds
    low, high = np.array(bounds.x).T
    middle, half = low / 2 + high / 2, high / 2 - low / 2
    if bounds.norm is not None:
        half = np.minimum(half, bounds.norm)
    elif (known := medians(model)) is not None:
        return np.array([low, known, high])
    return np.array([middle - half, middle, middle + half])


def medians(model: Any) -> Values | None:
    """Give the median of each input, where releases tell how the inputs are spread; in round numbers."""
    bounds, (shares, noise) = model.releases_[0].bounds, _counted(model)
    if noise > _NOISE or bounds.norm is not None:  # away from the middle, lines would leave the ball
        return None
    return np.array([_median(one, *ends) for one, ends in zip(shares, bounds.x, strict=True)])


def inhabited(model: Any) -> list[tuple[float, float]]:
    """Give for each input the ends beyond which hardly anybody is, where releases tell them; else its range."""
    bounds, (shares, noise) = model.releases_[0].bounds, _counted(model)
    if noise > _UNSURE:
        return [(float(low), float(high)) for low, high in bounds.x]
    where = getattr(model, "_where", [])  # by which the model itself opens its band
    sparse = (model._sparse,) if where else ()
    remote = [remote_along(one, POINTS, *sparse) for one in where or shares]
    found = []
    for one, (low, high) in zip(remote, bounds.x, strict=True):
        there = np.nonzero(one < _FEW)[0]
        first, last = (there[0], there[-1]) if len(there) else (0, POINTS - 1)
        found.append(
            (float(low + (high - low) * first / (POINTS - 1)), float(low + (high - low) * last / (POINTS - 1)))
        )
    return found


def two_valued(model: Any) -> list[bool]:
    """Say of each input whether nearly all records are at the two ends of its range (0 or 1), as far as releases tell."""
    bounds, (shares, noise) = model.releases_[0].bounds, _counted(model)
    if not shares.size or bounds.norm is not None:
        return [False] * len(bounds.x)
    blur = noise / shares.shape[1] ** 0.5
    ends = shares[:, [0, -1]]
    return ((ends.sum(axis=1) > _BOTH) & (ends.min(axis=1) > max(_EACH, 3 * blur)) & (blur < _BLUR)).tolist()


def _counted(model: Any) -> tuple[Values, float]:
    """How inputs are spread, as far as releases say: shares of the records in equal bins, a row each, and the noise of a sum.

    Counts of the inputs; the inputs themselves, where they are public; the bins of a regression on bins.
    """
    counted = [one for one in model.releases_ if one.statistic.get("name") == "InputCounts"]
    first = model.releases_[0]
    if counted:
        shares = np.mean([one.value for one in counted], axis=0).reshape(len(first.bounds.x), -1) / first.n
        return shares, float(counted[0].sd[0]) * (shares.shape[1] / len(counted)) ** 0.5 / first.n
    if first.statistic.get("name") == "LabelSum":
        public = told(first)
        return np.array([_evenly(one, one, public.counts / first.n) for one in public.inputs.T]), 0.0
    if hasattr(model, "bins_") and model.kind == "mean" and model._params["regions"] is None:
        counts = model.counts_.reshape([len(edges) - 1 for edges in model.edges_])
        found = []
        for j, (edges, (low, high)) in enumerate(zip(model.edges_, first.bounds.x, strict=True)):
            unit = (edges - low) / (high - low) * 2 - 1
            along = counts.sum(axis=tuple(i for i in range(counts.ndim) if i != j))
            found.append(_evenly(unit[:-1], unit[1:], along / first.n))
        return np.array(found), float(np.sqrt(np.square(model.counts_sd_).sum())) / first.n
    return np.empty((0, 0)), np.inf


def _evenly(low: Values, high: Values, shares: Values) -> Values:
    """Shares between places in [−1, 1], each spread evenly from ``low`` to ``high``, as shares of equal bins."""
    edges = np.linspace(-1, 1, _BINS + 1)
    width = np.maximum(high - low, 1e-9)
    below = np.clip((edges[:, None] - low) / width, 0.0, 1.0)
    below[-1] = 1.0
    return np.asarray(np.diff(below @ shares))


def _below(shares: Values) -> Values:
    """Share of the records below each edge of the bins: sums of noisy shares, made to rise."""
    below = np.concatenate([[0.0], np.cumsum(shares)])
    return np.asarray((np.maximum.accumulate(below) + np.minimum.accumulate(below[::-1])[::-1]) / 2)


def _median(shares: Values, low: float, high: float) -> float:
    """Where half of the records are below, by noisy shares in equal bins; an edge where very many records are (0 or 1)."""
    at = np.interp(0.5, _below(shares), np.linspace(low, high, len(shares) + 1))
    last = len(shares) - 1
    bin_ = min(int((at - low) / (high - low) * len(shares)), last)
    if bin_ in (0, last) and shares[bin_] > _MANY:
        return high if bin_ else low
    step = 10.0 ** np.floor(np.log10((high - low) / 50))
    return float(np.clip(round(at / step) * step, low, high))


def along(model: Any, points: int) -> list[tuple[str, Values]]:
    """Give for each input its name, and points on the line through the anchor along it; its ends, where it has two values."""
    low, anchor, high = ranges(model)
    found = []
    for j, (name, ends_alone) in enumerate(zip(column_names(model), two_valued(model), strict=True)):
        count = 2 if ends_alone else points
        line = np.tile(anchor, (count, 1))
        line[:, j] = np.linspace(low[j], high[j], count)
        found.append((name, line))
    return found


def lines(model: Any) -> list[Line]:
    """Give the line along each input; with very many inputs, those that move the output most."""
    ends = inhabited(model)
    found = [
        Line(name, at := points[:, j], *_predicted(model, points), ends[j] if len(at) > 2 else (at[0], at[-1]))
        for j, (name, points) in enumerate(along(model, POINTS))
    ]
    largest = sorted(range(len(found)), key=lambda j: -np.ptp(found[j].mean))[:MOST_LINES]
    return [found[j] for j in sorted(largest)]


def mesh(model: Any, side: int) -> tuple[Values, Values, Values]:
    """Give the places along two inputs, and all points of their grid, row by row."""
    low, _, high = ranges(model)
    x, y = (np.linspace(low[j], high[j], side) for j in range(2))
    return x, y, np.array([(a, b) for b in y for a in x])


def spread_over(model: Any) -> Values:
    """Give points that are spread evenly over the box."""
    low, _, high = ranges(model)
    return np.asarray(low + (high - low) * _halton(len(low)))


def spread_alike(model: Any) -> Values | None:
    """Give points that are spread like the records, each input by itself, where releases tell how that is.

    Noisy counts put too many beyond the ends where hardly anybody is: these are left out, as curves are dashed there.
    """
    bounds, (shares, noise) = model.releases_[0].bounds, _counted(model)
    if noise > _UNSURE or bounds.norm is not None:
        return None
    found = []
    points, there = _halton(len(bounds.x)).T, inhabited(model)
    for even, one, (low, high), beyond in zip(points, shares, bounds.x, there, strict=True):
        below, at = _below(one), np.linspace(low, high, one.size + 1)
        first, last = np.interp(beyond, at, below)
        found.append(np.interp(first + even * (last - first), below, at))
    return np.stack(found, axis=1)


def _halton(dimension: int) -> Values:
    from scipy.stats import qmc

    return np.asarray(qmc.Halton(dimension, scramble=False).random(_BOX))


def grid(model: Any) -> Grid:
    """Give the model of two inputs on a grid."""
    x, y, points = mesh(model, GRID)
    mean, sds = _predicted(model, points)
    first, second = column_names(model)
    square = {part: sd.reshape(GRID, GRID) for part, sd in sds.items()}
    return Grid((first, second), x, y, mean.reshape(GRID, GRID), square, tuple(inhabited(model)))


def average_sd(model: Any, points: Values, share: float = 1.0) -> dict[str, float]:
    """Give the standard deviation by its causes, as root mean squares over points: each part, the function, an output.

    ``share``: of the points, those where the function is known best.
    """
    parts = model.variance_parts(points)
    doubt = parts["model"] + parts["privacy"]
    known = doubt <= np.quantile(doubt, share)
    variance = {part: float(np.mean(values[known])) for part, values in parts.items()}
    function = variance["model"] + variance["privacy"]
    whole = {"function": function, "output": function + variance["noise"]}
    return {name: value**0.5 for name, value in {**variance, **whole}.items() if not np.isnan(value)}


def grouped(edges: Values, counts: Values, sd: float, most: int) -> tuple[Values, Values, float]:
    """Put neighbouring bins of a histogram together until there are at most ``most``: edges, sums, and their noise."""
    size = -(-len(counts) // most)
    starts = np.arange(0, len(counts), size)
    return np.append(edges[starts], edges[-1]), np.add.reduceat(counts, starts), sd * size**0.5


def _predicted(model: Any, points: Values) -> tuple[Values, dict[str, Values]]:
    parts = model.variance_parts(points)
    known = [part for part in PARTS if not np.isnan(parts[part]).any()]
    together = np.cumsum([parts[part] for part in known], axis=0)
    return model.predict(points), dict(zip(known, np.sqrt(together), strict=True))
