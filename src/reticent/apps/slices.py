"""What a regression says along its inputs, as numbers to draw and to print: the mean, and the parts of its doubt.

Computed from a fitted model, so from releases only.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.apps.figures import column_names

__all__ = [
    "BAND",
    "MOST_COLUMNS",
    "MOST_LINES",
    "PARTS",
    "Grid",
    "Line",
    "average_sd",
    "grid",
    "grouped",
    "lines",
    "ranges",
]

Values = NDArray[np.float64]

BAND = 1.959963984540054  # standard deviations, for a band that holds 95 %
PARTS = ("model", "privacy", "noise")
_POINTS, _GRID, _BOX = 101, 41, 512
MOST_LINES, MOST_COLUMNS = 24, 40  # that are drawn, of a regression and of other models


@dataclass(frozen=True)
class Line:
    """A line through the middle of the box along one input. ``sds``: with each part of the doubt added to those before."""

    name: str
    at: Values
    mean: Values
    sds: dict[str, Values]


@dataclass(frozen=True)
class Grid:
    """A grid over the box of two inputs; the values have a row for each ``y``."""

    names: tuple[str, str]
    x: Values
    y: Values
    mean: Values
    sds: dict[str, Values]


def ranges(model: Any) -> Values:
    """Give the lowest, middle and highest value of each input, as rows; a norm may keep inputs from the edges of the box."""
    bounds = model.releases_[0].bounds
    low, high = np.array(bounds.x).T
    middle, half = low / 2 + high / 2, high / 2 - low / 2
    if bounds.norm is not None:
        half = np.minimum(half, bounds.norm)
    return np.array([middle - half, middle, middle + half])


def lines(model: Any) -> list[Line]:
    """Give the line along each input, the others in their middle; with very many inputs, those that move the output most."""
    low, middle, high = ranges(model)
    found = []
    for j, name in enumerate(column_names(model)):
        at = np.linspace(low[j], high[j], _POINTS)
        points = np.tile(middle, (_POINTS, 1))
        points[:, j] = at
        found.append(Line(name, at, *_predicted(model, points)))
    largest = sorted(range(len(found)), key=lambda j: -np.ptp(found[j].mean))[:MOST_LINES]
    return [found[j] for j in sorted(largest)]


def grid(model: Any) -> Grid:
    """Give the model of two inputs on a grid."""
    low, _, high = ranges(model)
    x, y = (np.linspace(low[j], high[j], _GRID) for j in range(2))
    mean, sds = _predicted(model, np.array([(a, b) for b in y for a in x]))
    first, second = column_names(model)
    square = {part: sd.reshape(_GRID, _GRID) for part, sd in sds.items()}
    return Grid((first, second), x, y, mean.reshape(_GRID, _GRID), square)


def average_sd(model: Any) -> dict[str, float]:
    """Give the standard deviation by its causes, as root mean squares over the box: each part, the function, an output."""
    from scipy.stats import qmc

    low, _, high = ranges(model)
    points = low + (high - low) * qmc.Halton(len(low), scramble=False).random(_BOX)
    variance = {part: float(np.mean(values)) for part, values in model.variance_parts(points).items()}
    function = variance["model"] + variance["privacy"]
    whole = {"function": function, "output": function + variance["noise"]}
    return {name: value**0.5 for name, value in {**variance, **whole}.items()}


def grouped(edges: Values, counts: Values, sd: float, most: int) -> tuple[Values, Values, float]:
    """Put neighbouring bins of a histogram together until there are at most ``most``: edges, sums, and their noise."""
    size = -(-len(counts) // most)
    starts = np.arange(0, len(counts), size)
    return np.append(edges[starts], edges[-1]), np.add.reduceat(counts, starts), sd * size**0.5


def _predicted(model: Any, points: Values) -> tuple[Values, dict[str, Values]]:
    parts = model.variance_parts(points)
    together = np.cumsum([parts[part] for part in PARTS], axis=0)
    return model.predict(points), dict(zip(PARTS, np.sqrt(together), strict=True))
