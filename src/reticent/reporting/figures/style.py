"""What all drawings share.

One style, panels, how a figure is shown in a notebook and written as SVG. The only file that
imports matplotlib. Pyplot and the user's styles are left alone.
"""

import warnings
from collections.abc import Callable, Sequence
from functools import wraps
from io import BytesIO, StringIO
from typing import Any, ParamSpec

import numpy as np
from matplotlib import rc_context, style
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.patches import Patch
from matplotlib.ticker import (
    FixedLocator,
    FuncFormatter,
    LogLocator,
    MaxNLocator,
    NullLocator,
    PercentFormatter,
    ScalarFormatter,
)
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from reticent.errors import BadInput
from reticent.privacy.accounting.guarantee import Guarantee
from reticent.reporting.columns import Column
from reticent.reporting.figures.palette import LIGHT, STEPS
from reticent.reporting.formatting import truncate_name

__all__ = [
    "DASHED",
    "WIDE",
    "Axes",
    "Figure",
    "FixedLocator",
    "FuncFormatter",
    "LogLocator",
    "MaxNLocator",
    "NullLocator",
    "Patch",
    "PercentFormatter",
    "ScalarFormatter",
    "Shown",
    "bare",
    "check_fitted",
    "crossed",
    "draw_cells",
    "legend_above",
    "on_ranges",
    "quiet",
    "raw_svg",
    "shaded",
    "sheet",
    "styled",
]

Drawing = ParamSpec("Drawing")

WIDE = 7.2  # inches
DASHED = (0, (4, 3))
_STYLE: Any = {
    "font.size": 8.5,
    "axes.titlesize": 8.5,
    "axes.titlelocation": "left",
    "axes.edgecolor": LIGHT["rule"],
    "axes.labelcolor": LIGHT["ink"],
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "text.color": LIGHT["ink"],
    "text.parse_math": False,  # a column may be called $x
}


class Shown(Figure):
    """A figure that a notebook shows, whether or not pyplot was imported there."""

    in_one_go = False

    def draw(self, renderer: Any) -> None:
        """Draw.

        To be written, a figure is drawn twice, and the first time, for the layout, nothing need be
        drawn.
        """
        layout = self.get_layout_engine()  # the second time, one that does nothing
        if (
            self.in_one_go
            and self.canvas.is_saving()
            and isinstance(layout, ConstrainedLayoutEngine)
        ):
            layout.execute(self)
        else:
            super().draw(renderer)

    def _repr_png_(self) -> bytes:
        out = BytesIO()
        self.savefig(out, format="png", dpi=110)
        return out.getvalue()


def styled(draw: Callable[Drawing, Figure]) -> Callable[Drawing, Figure]:
    """Draw in one style whatever the user's own is, and leave that as it was."""

    @wraps(draw)
    def drawing(*args: Drawing.args, **kwargs: Drawing.kwargs) -> Figure:
        with style.context("default"), rc_context(_STYLE):
            return draw(*args, **kwargs)

    return drawing


def raw_svg(figure: Figure) -> str:
    """Write a figure as an SVG document: text as text, nothing that changes from run to run."""
    out = StringIO()
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    as_text: Any = {"svg.fonttype": "none", "svg.hashsalt": "reticent"}
    with style.context("default"), rc_context(_STYLE | as_text), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # the page has fonts of its own
        if isinstance(figure, Shown):
            figure.in_one_go = True
        figure.savefig(out, format="svg", transparent=True, metadata=nothing)
    return out.getvalue()


def sheet(
    count: int,
    across: int,
    width: float,
    height: float,
    guarantee: Guarantee,
    *,
    sharey: bool = False,
) -> tuple[Figure, list[Axes]]:
    """Give an empty figure with ``count`` panels of this height, at most ``across`` in a row.

    Fewer where it is narrow.
    """
    across = min(across, max(int(width / 2.2), 1))
    rows = -(-count // across)
    figure = Shown((width, height * rows + (0.4 if count > 1 else 0)), layout="constrained")
    if (
        sharey and across > 1
    ):  # with no labels between them, the last number of one axis would touch the first of the next
        figure.get_layout_engine().set(wspace=0.06)  # type: ignore[union-attr, call-arg]
    found = figure.subplots(rows, across, squeeze=False, sharey=sharey).ravel().tolist()
    for unused in found[count:]:
        unused.remove()
    for axes in found[:count]:
        quiet(axes)
    if not guarantee.private:
        figure.supxlabel(
            "Not private: the noise came from a seed", color=LIGHT["broken"], weight="bold", size=9
        )
    return figure, found[:count]


def on_ranges(
    columns: Sequence[Column], width: float, height: float, guarantee: Guarantee
) -> tuple[Figure, Axes]:
    """Give a figure with a row of this height for each column, from 0 to 1 over its range."""
    names = [truncate_name(column.heading) for column in columns]
    figure, (axes,) = sheet(1, 1, width, height * len(names) + 0.3, guarantee)
    for row, column in enumerate(columns):
        axes.hlines(row, 0, 1, color=LIGHT["rule"], lw=2)
        for end, value, align in zip((0, 1), column.shown_ends, ("left", "right"), strict=True):
            at = (end, row)
            below = (0, -13)
            shown = truncate_name(value, 16)
            axes.annotate(
                shown, at, below, textcoords="offset points", ha=align, color=LIGHT["muted"]
            )
    axes.set_yticks(range(len(names)), names)
    axes.set(xlim=(-0.04, 1.04), ylim=(len(names) - 0.4, -0.6), xticks=[])
    bare(axes)
    return figure, axes


def shaded(
    figure: Figure,
    axes: Axes,
    where: Any,
    values: Any,
    levels: Any,
    colours: list[str],
    **scale: Any,
) -> None:
    """Draw values as a map in steps of colour, and what the colours mean beside it."""
    filled = axes.contourf(*where, values, levels, colors=colours)
    filled.set(edgecolor="face", linewidth=0.4)  # no seams
    bar = figure.colorbar(filled, ax=axes, **scale)
    bar.outline.set_visible(False)
    quiet(bar.ax)


def crossed(axes: Axes, at: Any, thick: float = 0.9, dashes: Any = DASHED) -> None:
    """Mark on a map where slices go through it: seen on light and on dark ground."""
    for ink, lw, ls in (("paper", 1.6, "solid"), ("ink", thick, dashes)):
        axes.axvline(at[0], color=LIGHT[ink], lw=lw, ls=ls)
        axes.axhline(at[1], color=LIGHT[ink], lw=lw, ls=ls)


def draw_cells(axes: Axes, values: NDArray[np.float64], *, written: bool = False) -> None:
    """Draw signed numbers from −1 to 1 as a table of coloured cells.

    ``written``: with the numbers in them.
    """
    most = STEPS // 2
    for i, row in enumerate(values):
        steps = np.rint(np.minimum(np.abs(row), 1.0) * most).astype(int)
        colours = [
            LIGHT[f"{'below' if value < 0 else 'above'}-{step}"]
            for value, step in zip(row, steps, strict=True)
        ]
        axes.barh([i] * len(row), 0.98, 0.98, left=np.arange(len(row)) - 0.49, color=colours)
        for j, value in enumerate(row if written else ()):
            ink = LIGHT["paper" if steps[j] > most / 2 else "ink"]
            axes.text(j, i, f"{value:z.2f}".replace("-", "−"), ha="center", va="center", color=ink)
    axes.set(xlim=(-0.5, len(values[0]) - 0.5), ylim=(len(values) - 0.5, -0.5))
    bare(axes)


def legend_above(
    figure: Figure, handles: Sequence[Any], labels: Sequence[str], columns: int, handlelength: float
) -> None:
    """Put a legend above the panels, in as many columns as the figure is wide, and no more."""
    for count in range(min(len(labels), columns), 0, -1):
        legend = figure.legend(
            handles, labels, loc="outside upper left", ncols=count, handlelength=handlelength
        )
        if count == 1 or legend.get_window_extent().width <= figure.bbox.width:
            return
        legend.remove()


def quiet(axes: Axes) -> None:
    """Draw ticks so that they do not catch the eye."""
    axes.tick_params(
        color=LIGHT["rule"], labelcolor=LIGHT["muted"], labelsize=_STYLE["font.size"], length=3
    )


def bare(axes: Axes) -> None:
    """Take the frame away."""
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0, labelcolor=LIGHT["ink"])


def check_fitted(model: object) -> None:
    """Refuse what is no fitted model."""
    if not hasattr(model, "fit"):
        raise BadInput(f"plot draws fitted models of reticent, not a {type(model).__name__}.")
    check_is_fitted(model)
