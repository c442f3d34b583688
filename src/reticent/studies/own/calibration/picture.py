"""The grid as one picture: coverage of 95 % bands as colours, faults as letters."""

import math
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from reticent.studies.own.calibration.judging import FAULTS, Judged

if TYPE_CHECKING:
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure

__all__ = ["draw_grid"]

# inches: a cell; words beside and above a panel; a line below it; the key at the top
_CELL = (0.5, 0.17)
_BESIDE = 2.6
_ABOVE = 0.95
_BELOW = 0.15
_KEY = 1.1
_EDGE = 0.95  # words of the last law lean over
_POWERS = {1e3: "10³", 1e6: "10⁶"}  # how powers of ten are written
_COVERAGE = ((0.0, "#b2182b"), (0.7, "#f4a582"), (0.84, "#ffffff"), (0.96, "#ffffff"))
_MANY = (1.0, "#67a9cf")
_LEAST = 0.5  # coverage of the darkest red; from .92 to .98 cells are white


class _Panel(NamedTuple):
    """The cells of a family: rows are (model, n, ε)."""

    family: str
    cells: list[Judged]

    @property
    def laws(self) -> list[str]:
        return list(dict.fromkeys(one.cell.law for one in self.cells))

    @property
    def rows(self) -> list[tuple[str, int, float]]:
        return list(dict.fromkeys((one.cell.model, *one.cell[3:]) for one in self.cells))

    @property
    def height(self) -> float:
        return len(self.rows) * _CELL[1] + _ABOVE + _BELOW


def draw_grid(path: Path, judged: Sequence[Judged]) -> Path:
    """Draw a panel for each family, in two columns: rows are models, n and ε, columns are laws."""
    from matplotlib import rc_context, style
    from matplotlib.figure import Figure

    columns = _columns(judged)
    widths = [
        _BESIDE + _EDGE + _CELL[0] * max(len(panel.laws) for panel in column) for column in columns
    ]
    height = _KEY + max(sum(panel.height for panel in column) for column in columns)
    with style.context("default"), rc_context({"font.size": 7}):
        figure = Figure(figsize=(max(sum(widths), 7.5), height))
        left = 0.0
        for column, width in zip(columns, widths, strict=True):
            top = height - _KEY
            for panel in column:
                _draw_panel(figure, panel, left + _BESIDE, top - _ABOVE)
                top -= panel.height
            left += width
        _draw_key(figure)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=110)
    return path


def _columns(judged: Sequence[Judged]) -> list[list[_Panel]]:
    """Wide panels on the left, then each where there is more room."""
    families = dict.fromkeys(one.cell.family for one in judged)
    panels = [_Panel(name, [one for one in judged if one.cell.family == name]) for name in families]
    columns: list[list[_Panel]] = [[], []]
    heights = [0.0, 0.0]
    most = max(len(panel.laws) for panel in panels)
    for panel in sorted(panels, key=lambda panel: len(panel.laws) < most):
        place = 0
        if len(panel.laws) < most and heights[1] < heights[0]:
            place = 1
        columns[place].append(panel)
        heights[place] += panel.height
    return [column for column in columns if column]


def _colours() -> "Colormap":
    from matplotlib.colors import LinearSegmentedColormap

    found = LinearSegmentedColormap.from_list("coverage", [*_COVERAGE, _MANY])
    return found.with_extremes(bad="#e4e4e4")


def _draw_panel(figure: "Figure", panel: _Panel, left: float, top: float) -> None:
    """Draw a panel whose cells begin at a place, in inches from the lower left."""
    from matplotlib.patches import Rectangle

    width, height = figure.get_size_inches()
    laws = panel.laws
    rows = panel.rows
    size = len(laws) * _CELL[0], len(rows) * _CELL[1]
    place = (left / width, (top - size[1]) / height, size[0] / width, size[1] / height)
    axes = figure.add_axes(place)
    shares = np.full((len(rows), len(laws)), math.nan)
    tried = np.zeros_like(shares, dtype=bool)
    for one in panel.cells:
        row = rows.index((one.cell.model, *one.cell[3:]))
        column = laws.index(one.cell.law)
        shares[row, column] = one.coverage[0.95]
        tried[row, column] = True
        weight = "bold" if one.faults else "normal"
        axes.text(column, row, one.faults or "·", ha="center", va="center", weight=weight)
    axes.imshow(shares, _colours(), aspect="auto", vmin=_LEAST, vmax=1.0)
    for row, column in zip(*np.nonzero(~tried), strict=True):
        axes.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, color="white"))
    axes.set_xticks(range(len(laws)), laws, rotation=35, ha="left", rotation_mode="anchor")
    axes.xaxis.tick_top()
    axes.set_yticks(range(len(rows)), [f"n = {n:,}   ε = {_power(e)}" for _, n, e in rows])
    axes.set_xticks(np.arange(len(laws) + 1) - 0.5, minor=True)
    axes.set_yticks(np.arange(len(rows) + 1) - 0.5, minor=True)
    axes.grid(which="minor", color="#cfd5dc", linewidth=0.4)
    axes.tick_params(which="both", length=0)
    axes.spines[:].set_visible(False)
    axes.set_title(panel.family, loc="left", x=(0.08 - _BESIDE) / size[0], weight="bold", pad=4)
    begin = 0
    for model, block in groupby(rows, key=lambda row: row[0]):
        many = len(list(block))
        words = model.replace(", ", ",\n")
        x = (left - _BESIDE + 0.08) / width
        y = (top - (begin + many / 2) * _CELL[1]) / height
        figure.text(x, y, words, va="center", linespacing=0.95)
        if begin:
            axes.axhline(begin - 0.5, color="#1b2430", linewidth=0.8)
        begin += many


def _power(epsilon: float) -> str:
    return _POWERS.get(epsilon, f"{epsilon:g}")


def _draw_key(figure: "Figure") -> None:
    """Explain colours and letters, at the top."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    _, height = figure.get_size_inches()
    words = [f"{letter}  {word}" for letter, word in FAULTS.items()]
    half = (len(words) + 1) // 2
    for line, part in enumerate((words[:half], words[half:])):
        text = "     ".join(part)
        figure.text(0.01, 1 - (0.18 + 0.17 * line) / height, text, size=8, va="center")
    axes = figure.add_axes((0.02, 1 - 0.6 / height, 0.3, 0.12 / height))
    figure.colorbar(
        ScalarMappable(Normalize(_LEAST, 1.0), _colours()),
        cax=axes,
        orientation="horizontal",
        ticks=[0.5, 0.6, 0.7, 0.8, 0.92, 1.0],
    )
    text = "share of truths in 95 % bands (grey: no bands are stated; empty: not tried)"
    figure.text(0.33, 1 - 0.55 / height, text, size=8, va="center")
