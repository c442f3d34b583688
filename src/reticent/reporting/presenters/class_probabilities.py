"""Class probabilities along inputs and over the box, with their 95 % bands.

Computed from a fitted classifier, so from releases only; lines along one input go where those of a
regression do (`input_distribution`).
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from reticent.reporting.columns import Column, as_given, input_columns
from reticent.reporting.formatting import format_short, printable
from reticent.reporting.presenter import Json
from reticent.reporting.presenters.effects import (
    GRID,
    MOST_LEVELS,
    MOST_LINES,
    POINTS,
    block_inset,
    level_points,
)
from reticent.reporting.presenters.input_distribution import (
    AnchoredLine,
    anchored_lines,
    box_points,
    frequent_levels,
    grid_points,
)

if TYPE_CHECKING:
    from reticent.models.gp.classifier import GPClassifier

__all__ = [
    "AverageProbabilities",
    "ClassProbabilities",
    "average_probabilities",
    "class_names",
    "format_band",
    "format_probability",
    "probability_curve_readings",
    "probability_curves",
    "probability_grid",
    "probability_lines",
    "probability_readings",
    "reference_class",
]

Values = NDArray[np.float64]
_MOST_READ = 8  # classes that are told under the pointer


@dataclass(frozen=True)
class ClassProbabilities:
    """Probabilities along a line, (points, classes), or on a grid of two inputs, (y, x, classes).

    ``names`` and ``at``: of each input, its name and codes. ``bands``: lowest and highest
    probability, by the model's own uncertainty ("model") and with the privacy noise ("privacy").
    ``separate``: each value is shown by itself, as words are. ``level``: of another input, where
    there is a line for each.
    """

    names: tuple[str, ...]
    at: tuple[Values, ...]
    probabilities: Values
    bands: dict[str, tuple[Values, Values]]
    columns: tuple[Column, ...] = ()
    separate: bool = False
    level: str = ""

    @property
    def titles(self) -> tuple[str, ...]:
        """What the inputs are called in sentences."""
        if not self.columns:
            return self.names
        return tuple(column.title for column in self.columns)

    @property
    def heading(self) -> str:
        """What the first input is called on an axis, with its unit."""
        if not self.columns:
            return self.names[0]
        return self.columns[0].heading

    def show(self, code: float, axis: int = 0) -> str:
        """A value of an input, with its unit."""
        if not self.columns:
            return format_short(code)
        return self.columns[axis].show_with_unit(code)

    @property
    def places(self) -> Values:
        """Where points stand on the axis: blocks of categories are one apart."""
        if self.separate and self.columns and self.columns[0].categories is not None:
            return np.arange(len(self.at[0]), dtype=np.float64)
        return self.at[0]

    @property
    def inset(self) -> float:
        """Room beyond the ends, as a fraction of the axis."""
        return block_inset(len(self.at[0])) if self.separate else 0.0

    @property
    def likeliest(self) -> NDArray[np.intp]:
        """The likeliest class, by its index."""
        return np.asarray(self.probabilities.argmax(axis=-1))

    def of_likeliest(self, values: Values) -> Values:
        """Take what belongs to the likeliest class."""
        return np.take_along_axis(values, self.likeliest[..., None], axis=-1)[..., 0]

    @property
    def width(self) -> Values:
        """How wide the band of the likeliest class is."""
        low, high = self.bands["privacy"]
        return self.of_likeliest(high - low)

    def largest_change(self) -> float:
        """By how much the probability of one class changes at most."""
        return float(np.ptp(self.probabilities, axis=0).max())


@dataclass(frozen=True)
class AverageProbabilities:
    """Averages over the box.

    ``likeliest``: the probability of the likeliest class. ``widths``: of its band, by cause.
    ``fractions``: of the box, where each class is the likeliest. ``means``: of each class's
    probability.
    """

    likeliest: float
    widths: dict[str, float]
    fractions: list[float]
    means: list[float]


def class_names(model: "GPClassifier") -> list[str]:
    """Give the classes as they are printed."""
    return [printable(str(label)) for label in model.classes_]


def reference_class(model: "GPClassifier") -> int | None:
    """Give the class whose probability says it all: the second of two; None if there are more."""
    if len(model.classes_) == 2:
        return 1
    return None


def _probabilities(
    model: "GPClassifier",
    names: tuple[str, ...],
    at: tuple[Values, ...],
    points: Values,
    columns: tuple[Column, ...] = (),
    *,
    separate: bool = False,
    level: str = "",
) -> ClassProbabilities:
    records = as_given(model.releases_[0].bounds, points)
    shape = (*(len(values) for values in reversed(at)), len(model.classes_))
    bands = {}
    for part in ("model", "privacy"):
        low, high = model.predict_proba_band(records, privacy=part == "privacy")
        bands[part] = (_within(low).reshape(shape), _within(high).reshape(shape))
    probabilities = _within(model.predict_proba(records)).reshape(shape)
    return ClassProbabilities(names, at, probabilities, bands, columns, separate, level)


def _within(probabilities: Values) -> Values:
    """Probabilities from 0 to 1, whatever rounding has done to them."""
    return np.clip(probabilities, 0.0, 1.0)


def probability_lines(model: "GPClassifier", points: int = POINTS) -> list[ClassProbabilities]:
    """Give the line along each input; with very many inputs, those that matter most."""
    found = [
        _line_probabilities(model, _drawn_levels(model, line))
        for line in anchored_lines(model, points)
    ]
    largest = sorted(range(len(found)), key=lambda j: -found[j].largest_change())[:MOST_LINES]
    return [found[j] for j in sorted(largest)]


def _drawn_levels(model: "GPClassifier", line: AnchoredLine) -> AnchoredLine:
    """The line; of very many words, with the most frequent ones."""
    if line.column.categories is None:
        return line
    drawn = frequent_levels(model, line.index, MOST_LEVELS)
    return replace(line, points=line.points[np.isin(line.at, drawn)])


def _line_probabilities(
    model: "GPClassifier", line: AnchoredLine, level: str = ""
) -> ClassProbabilities:
    return _probabilities(
        model,
        (line.column.name,),
        (line.at,),
        line.points,
        (line.column,),
        separate=line.separate,
        level=level,
    )


def probability_curves(model: "GPClassifier") -> list[ClassProbabilities]:
    """Give of a number and a word the line along the number for each level; [] for others.

    For two classes: with more, a line for each of them is enough for one drawing.
    """
    if reference_class(model) is None:
        return []
    lines = level_points(model)
    if lines is None:
        return []
    return [_line_probabilities(model, line, level) for level, line in lines]


def probability_grid(model: "GPClassifier") -> ClassProbabilities:
    """Give the probabilities on a grid over the box of two inputs."""
    x, y, points = grid_points(model, GRID)
    first, second = input_columns(model)
    return _probabilities(model, (first.name, second.name), (x, y), points, (first, second))


def average_probabilities(model: "GPClassifier") -> AverageProbabilities:
    """Give averages over the box: how sure it is, how wide bands are, where each class is it."""
    points = box_points(model)
    found = _probabilities(model, ("",), (np.arange(len(points), dtype=np.float64),), points)
    widths = {
        part: float(found.of_likeliest(high - low).mean())
        for part, (low, high) in found.bands.items()
    }
    fractions = [float((found.likeliest == c).mean()) for c in range(len(model.classes_))]
    return AverageProbabilities(
        float(found.of_likeliest(found.probabilities).mean()),
        widths,
        fractions,
        found.probabilities.mean(axis=0).tolist(),
    )


def probability_readings(panel: ClassProbabilities) -> Json:
    """Give what a reader is told at each point under the pointer.

    The classes, the likeliest first, their probabilities, and the band of the first.
    """
    flat = panel.probabilities.reshape(-1, panel.probabilities.shape[-1])
    top = np.argsort(-flat, axis=1, kind="stable")[:, :_MOST_READ]
    low, high = (panel.of_likeliest(end).ravel() for end in panel.bands["privacy"])
    values = {"chances": np.take_along_axis(flat, top, axis=1).T, "low": low, "high": high}
    return {
        "names": panel.titles,
        "inset": panel.inset,
        "at": [[float(f"{value:.4g}") for value in axis] for axis in panel.at],
        "said": [
            [panel.show(value, axis) for value in values] for axis, values in enumerate(panel.at)
        ],
        "likeliest": top.T.tolist(),
        **{name: np.round(rows, 3).tolist() for name, rows in values.items()},
    }


def probability_curve_readings(curves: list[ClassProbabilities], reference: int) -> Json:
    """Give what a reader is told of several curves: each level's probability and band."""
    first = probability_readings(curves[0])
    return {
        **{key: first[key] for key in ("names", "inset", "at", "said")},
        "chances_of": reference,
        "curves": [
            {
                "level": curve.level,
                "chance": np.round(curve.probabilities[:, reference], 3).tolist(),
                "low": np.round(curve.bands["privacy"][0][:, reference], 3).tolist(),
                "high": np.round(curve.bands["privacy"][1][:, reference], 3).tolist(),
            }
            for curve in curves
        ],
    }


def format_probability(value: float) -> str:
    """Write a probability for people: as a percentage, with digits where it is near none or all.

    >>> format_probability(0.2345), format_probability(0.0012)
    ('23 %', '0.1 %')
    >>> format_probability(0.99999), format_probability(1e-9)
    ('> 99.9 %', '< 0.1 %')
    """
    if value < 0.001:
        return "< 0.1 %"
    if value > 0.999:
        return "> 99.9 %"
    digits = 0
    if min(value, 1 - value) < 0.02:
        digits = 1
    return f"{100 * value:.{digits}f} %"


def format_band(low: float, high: float) -> str:
    """Write a band of probabilities for people: 40 to 60 %.

    >>> format_band(0.4, 0.6), format_band(0.0, 0.6)
    ('40 to 60 %', '< 0.1 % to 60 %')
    """
    first = format_probability(low)
    last = format_probability(high)
    if "<" in first or ">" in last:
        return f"{first} to {last}"
    return f"{first.removesuffix(' %')} to {last}"
