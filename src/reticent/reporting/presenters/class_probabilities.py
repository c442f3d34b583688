"""Class probabilities along inputs and over the box, with their 95 % bands.

Computed from a fitted classifier, so from releases only; lines along one input go where those of a
regression do (`input_distribution`).
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from reticent.reporting.columns import column_names
from reticent.reporting.formatting import printable
from reticent.reporting.presenter import Json
from reticent.reporting.presenters.effects import GRID, MOST_LINES, POINTS
from reticent.reporting.presenters.input_distribution import (
    anchored_lines,
    box_points,
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
    "probability_grid",
    "probability_lines",
    "probability_readings",
    "reference_class",
]

Values = NDArray[np.float64]
_MOST_READ = 3  # classes that are told under the pointer


@dataclass(frozen=True)
class ClassProbabilities:
    """Probabilities along a line, (points, classes), or on a grid of two inputs, (y, x, classes).

    ``names`` and ``at``: of each input, its name and values. ``bands``: lowest and highest
    probability, by the model's own uncertainty ("model") and with the privacy noise ("privacy").
    """

    names: tuple[str, ...]
    at: tuple[Values, ...]
    probabilities: Values
    bands: dict[str, tuple[Values, Values]]

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
    ``fractions``: of the box, where each class is the likeliest.
    """

    likeliest: float
    widths: dict[str, float]
    fractions: list[float]


def class_names(model: "GPClassifier") -> list[str]:
    """Give the classes as they are printed."""
    return [printable(str(label)) for label in model.classes_]


def reference_class(model: "GPClassifier") -> int | None:
    """Give the class whose probability says it all: the second of two; None if there are more."""
    if len(model.classes_) == 2:
        return 1
    return None


def _probabilities(
    model: "GPClassifier", names: tuple[str, ...], at: tuple[Values, ...], points: Values
) -> ClassProbabilities:
    shape = (*(len(values) for values in reversed(at)), len(model.classes_))
    bands = {}
    for part in ("model", "privacy"):
        low, high = model.predict_proba_band(points, privacy=part == "privacy")
        bands[part] = (low.reshape(shape), high.reshape(shape))
    return ClassProbabilities(names, at, model.predict_proba(points).reshape(shape), bands)


def probability_lines(model: "GPClassifier", points: int = POINTS) -> list[ClassProbabilities]:
    """Give the line along each input; with very many inputs, those that matter most."""
    found = [
        _probabilities(model, (name,), (line[:, j],), line)
        for j, (name, line) in enumerate(anchored_lines(model, points))
    ]
    largest = sorted(range(len(found)), key=lambda j: -found[j].largest_change())[:MOST_LINES]
    return [found[j] for j in sorted(largest)]


def probability_grid(model: "GPClassifier") -> ClassProbabilities:
    """Give the probabilities on a grid over the box of two inputs."""
    x, y, points = grid_points(model, GRID)
    first, second = column_names(model)
    return _probabilities(model, (first, second), (x, y), points)


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
        float(found.of_likeliest(found.probabilities).mean()), widths, fractions
    )


def probability_readings(panel: ClassProbabilities) -> Json:
    """Give what a reader is told at each point under the pointer.

    The likeliest classes, their probabilities, and the band of the first.
    """
    flat = panel.probabilities.reshape(-1, panel.probabilities.shape[-1])
    top = np.argsort(-flat, axis=1, kind="stable")[:, :_MOST_READ]
    low, high = (panel.of_likeliest(end).ravel() for end in panel.bands["privacy"])
    values = {"chances": np.take_along_axis(flat, top, axis=1).T, "low": low, "high": high}
    return {
        "names": panel.names,
        "at": [[float(f"{value:.4g}") for value in axis] for axis in panel.at],
        "likeliest": top.T.tolist(),
        **{name: np.round(rows, 3).tolist() for name, rows in values.items()},
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
