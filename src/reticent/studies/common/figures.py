"""The pictures of studies: panels of lines with error bars, and panels of functions with bands.

Drawn without pyplot.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["COLOURS", "Band", "Line", "Panel", "draw"]

Array = NDArray[np.float64]

COLOURS = {  # told apart by everybody, and in grey
    "reticent": "#0b4f8a",
    "paper": "#c8611b",
    "naive": "#8b95a3",
    "truth": "#1b2430",
    "dots": "#2c8a57",
}
_STYLE: dict[Any, Any] = {
    "font.size": 8.5,
    "axes.titlesize": 9,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "axes.edgecolor": "#aab2bd",
}
# inches of a panel
_WIDTH = 2.6
_HEIGHT = 2.2
_FEW = 60  # a logarithmic axis over less than this ratio needs more than powers of ten


@dataclass(frozen=True)
class Line:
    """Values along x, with two standard errors if given; without x, a level."""

    label: str
    y: Sequence[float]
    x: Sequence[float] | None = None
    error: Sequence[float] | None = None
    colour: str = "reticent"
    style: str = "-"
    marker: str = ""


@dataclass(frozen=True)
class Band:
    """A region around a mean."""

    label: str
    x: Array
    low: Array
    high: Array
    colour: str = "reticent"


@dataclass(frozen=True)
class Panel:
    """One pair of axes."""

    title: str
    parts: Sequence[Line | Band]
    options: dict[str, Any] = field(default_factory=dict)  # of the axes: labels, scales, limits


def draw(path: Path, panels: Sequence[Sequence[Panel]]) -> Path:
    """Draw rows of panels with one legend, and write them to a PNG file."""
    from matplotlib import rc_context, style
    from matplotlib.figure import Figure

    with style.context("default"), rc_context(_STYLE):
        rows = len(panels)
        columns = max(len(row) for row in panels)
        figure = Figure(
            figsize=(_WIDTH * columns + 0.4, _HEIGHT * rows + 0.5), layout="constrained"
        )
        for i, row in enumerate(panels):
            for j, panel in enumerate(row):
                _panel(figure, (rows, columns, i * columns + j + 1), panel)
        labelled = {
            label: handle
            for axes in figure.axes
            for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
        }
        figure.legend(
            list(labelled.values()), list(labelled), loc="outside lower center", ncols=2 * columns
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=130)
    return path


def _panel(figure: "Figure", place: tuple[int, int, int], panel: Panel) -> None:
    from matplotlib.ticker import LogLocator, NullLocator

    axes = figure.add_subplot(*place)
    for part in panel.parts:
        colour = COLOURS[part.colour]
        if isinstance(part, Band):
            axes.fill_between(
                part.x, part.low, part.high, color=colour, alpha=0.22, linewidth=0, label=part.label
            )
        elif part.x is None:
            axes.axhline(
                part.y[0], color=colour, linestyle=part.style, linewidth=1, label=part.label
            )
        else:
            axes.errorbar(
                part.x,
                part.y,
                None if part.error is None else 2 * np.asarray(part.error),
                color=colour,
                linestyle=part.style,
                marker=part.marker,
                markersize=3.5,
                linewidth=1.2,
                label=part.label,
            )
    axes.set_title(panel.title)
    axes.set(**panel.options)
    if place[2] % place[1] != 1 % place[1]:  # the first of its row says it
        axes.set_ylabel("")
    for axis in (axes.xaxis, axes.yaxis):
        if axis.get_scale() == "log":
            low, high = axis.get_view_interval()
            axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < _FEW * low else (1,)))
            axis.set_major_formatter("{x:g}")  # 0.1 instead of a power of ten
            axis.set_minor_locator(
                NullLocator()
            )  # half of the time of drawing, and nobody reads them
