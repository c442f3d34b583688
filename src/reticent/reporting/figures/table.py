"""Figures of tables by group: dots with error bars."""

from typing import TYPE_CHECKING

import numpy as np

from reticent.reporting.figures.palette import LIGHT
from reticent.reporting.figures.style import Figure, sheet, styled
from reticent.reporting.formatting import truncate_name
from reticent.reporting.presenters.effects import BAND

if TYPE_CHECKING:
    from reticent.reporting.presenters.table import TablePresenter

__all__ = ["draw_table"]

_MOST_DRAWN = 40  # groups; of larger tables the totals by each key are drawn
_ROW = 0.2  # inches


@styled
def draw_table(presenter: "TablePresenter", width: float) -> Figure:
    """Draw a panel for each number: its value in every group with a 95 % band of privacy noise."""
    rows = presenter.drawn(_MOST_DRAWN)
    labels = [truncate_name(presenter.group(row)) for row in rows]
    panels = [(name, found) for name in presenter.told if (found := presenter.values(rows, name))]
    height = _ROW * len(rows) + 0.75
    count = max(len(panels), 1)
    across = min(2, count)
    figure, axes_of = sheet(count, across, width, height, presenter.guarantee)
    places = np.arange(len(rows))
    for axes, (name, (values, noise)) in zip(axes_of, panels, strict=False):
        axes.errorbar(
            values,
            places,
            xerr=BAND * noise,
            fmt="o",
            color=LIGHT["accent"],
            ecolor=LIGHT["model"],
            ms=4,
            lw=1.4,
            capsize=2,
        )
        low, high = presenter.ends(name)
        if low is not None:
            axes.set_xlim(left=max(axes.get_xlim()[0], low))
        if high is not None:
            axes.set_xlim(right=min(axes.get_xlim()[1], high))
        axes.set_yticks(places, labels)
        axes.set(xlabel=truncate_name(presenter.heading(name)), ylim=(len(rows) - 0.4, -0.6))
        axes.grid(axis="y", color=LIGHT["rule"], lw=0.5)
        axes.set_axisbelow(True)
    return figure
