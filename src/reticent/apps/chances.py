"""What a classifier says along its inputs, as numbers to draw and to print: chances of the classes, and their 95 % bands.

Computed from a fitted model, so from releases only; lines along one input go where those of a regression do (`slices`).
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from reticent.apps.effects import anchor_words
from reticent.apps.figures import column_names, printable
from reticent.apps.outputs import output_name
from reticent.apps.slices import GRID, MOST_LINES, POINTS, along, mesh, spread_over
from reticent.apps.terminal import compact, table

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = [
    "Chances",
    "average_chances",
    "band",
    "chance",
    "chance_grid",
    "chance_lines",
    "class_names",
    "class_notes",
    "class_numbers",
    "class_remarks",
    "class_tables",
    "told_class",
]

Values = NDArray[np.float64]

_FEW = 7
_UNKNOWN = 0.8  # width of a band that says nothing
_ALL = 0.98  # chance of the first class everywhere that is suspicious


@dataclass(frozen=True)
class Chances:
    """Chances along a line, or on a grid, of one or two inputs: ``names`` and places of each; a last axis for the classes.

    ``bands``: lowest and highest, by the model's own doubt ("model") and with the privacy noise ("privacy").
    """

    names: tuple[str, ...]
    at: tuple[Values, ...]
    chances: Values
    bands: dict[str, tuple[Values, Values]]

    @property
    def likeliest(self) -> NDArray[np.intp]:
        """The likeliest class, by its number."""
        return np.asarray(self.chances.argmax(axis=-1))

    def of_likeliest(self, values: Values) -> Values:
        """Take what is said of the likeliest class."""
        return np.take_along_axis(values, self.likeliest[..., None], axis=-1)[..., 0]

    @property
    def width(self) -> Values:
        """How wide the band of the likeliest class is."""
        low, high = self.bands["privacy"]
        return self.of_likeliest(high - low)


def class_names(model: Any) -> list[str]:
    """The classes as they are shown."""
    return [printable(str(label)) for label in model.classes_]


def told_class(model: Any) -> int | None:
    """The class whose chance says it all: the second of two; None if there are more."""
    return 1 if len(model.classes_) == 2 else None


def _said(model: Any, names: tuple[str, ...], at: tuple[Values, ...], points: Values) -> Chances:
    shape = (*(len(one) for one in reversed(at)), len(model.classes_))
    bands = {
        part: tuple(end.reshape(shape) for end in model.predict_proba_band(points, privacy=part == "privacy"))
        for part in ("model", "privacy")
    }
    return Chances(names, at, model.predict_proba(points).reshape(shape), bands)


def chance_lines(model: Any, points: int = POINTS) -> list[Chances]:
    """Along each input; with very many inputs, those that move the chances most."""
    found = [_said(model, (name,), (line[:, j],), line) for j, (name, line) in enumerate(along(model, points))]
    largest = sorted(range(len(found)), key=lambda j: -_moved(found[j]))[:MOST_LINES]
    return [found[j] for j in sorted(largest)]


def _moved(line: Chances) -> float:
    return float(np.ptp(line.chances, axis=0).max())


def chance_grid(model: Any) -> Chances:
    """On a grid over the box of two inputs."""
    x, y, points = mesh(model, GRID)
    first, second = column_names(model)
    return _said(model, (first, second), (x, y), points)


def average_chances(model: Any) -> dict[str, Any]:
    """Averages over the box: how sure it is of the likeliest class, how wide the bands are, how often each class is it."""
    points = spread_over(model)
    found = _said(model, ("",), (np.arange(len(points), dtype=np.float64),), points)
    widths = {part: float(found.of_likeliest(high - low).mean()) for part, (low, high) in found.bands.items()}
    shares = [float((found.likeliest == c).mean()) for c in range(len(model.classes_))]
    return {"sure": float(found.of_likeliest(found.chances).mean()), "widths": widths, "likeliest": shares}


def class_numbers(model: Any) -> dict[str, Any]:
    """Give the chances along each input as plain values."""
    labels, effects = class_names(model), {}
    for line in chance_lines(model, _FEW):
        low, high = line.bands["privacy"]
        columns = {"chances": line.chances, "low": low, "high": high}
        effects[line.names[0]] = {
            "at": line.at[0].tolist(),
            "likeliest": [labels[c] for c in line.likeliest],
            **{name: dict(zip(labels, values.T.tolist(), strict=True)) for name, values in columns.items()},
        }
    return {
        "output": output_name(model),
        "classes": model.classes_.tolist(),
        "method": model.method,
        "effects": effects,
    }


def class_tables(model: Any) -> "RenderableType":
    """Lay out the chances along each input side by side: of the second of two classes, or of the likeliest."""
    from rich.columns import Columns

    labels, told, tables = class_names(model), told_class(model), []
    for line in chance_lines(model, _FEW):
        what = ["likeliest", "chance"] if told is None else [f"chance of {labels[told]}"]
        rows = table(line.names[0], *what, "95 % band", left=0)
        low, high = (_told(line, end, told) for end in line.bands["privacy"])
        for i, one in enumerate(_told(line, line.chances, told)):
            name = [labels[line.likeliest[i]]] if told is None else []
            rows.add_row(compact(line.at[0][i]), *name, chance(one), band(low[i], high[i]))
        tables.append(rows)
    return Columns(tables, padding=(0, 4))


def _told(line: Chances, values: Values, told: int | None) -> Values:
    return line.of_likeliest(values) if told is None else values[..., told]


def chance(value: float) -> str:
    """Write a chance for people: as a percentage, with digits where it is near none or all.

    >>> chance(0.2345), chance(0.0012), chance(0.99999), chance(1e-9)
    ('23 %', '0.1 %', '> 99.9 %', '< 0.1 %')
    """
    if value < 0.001 or value > 0.999:
        return "< 0.1 %" if value < 0.5 else "> 99.9 %"
    return f"{100 * value:.{1 if min(value, 1 - value) < 0.02 else 0}f} %"


def band(low: float, high: float) -> str:
    """Write a band of chances for people."""
    first, last = chance(low), chance(high)
    return f"{first} to {last}" if "<" in first or ">" in last else f"{first.removesuffix(' %')} to {last}"


def class_remarks(model: Any) -> list[str]:
    """Say how the tables are to be read."""
    first = class_names(model)[0]
    return [
        f"A label that is missing, or not among the classes, counts as the first class, {first}.",
        *anchor_words(model),
    ]


def class_notes(model: Any) -> list[str]:
    """Say so if the chances are hardly known, or look as if the classes were misspelt."""
    lines = chance_lines(model, _FEW)
    notes, first = [], class_names(model)[0]
    if np.median(np.concatenate([line.width for line in lines])) >= _UNKNOWN:
        notes.append("the chances are hardly known: the budget (--epsilon) is too small for so few records.")
    elif min(float(line.chances[..., 0].min()) for line in lines) > _ALL:
        notes.append(
            f"nearly every record counted as {first}. Labels that are not among the classes do: compare the spelling and "
            "capitals of the classes with the file."
        )
    return notes
