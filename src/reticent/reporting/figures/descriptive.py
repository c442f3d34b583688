"""Figures of single columns and groups: means, histograms, correlations, tables."""

from typing import TYPE_CHECKING

import numpy as np

from reticent.reporting.figures.palette import LIGHT
from reticent.reporting.figures.style import Figure, draw_cells, on_ranges, sheet, styled
from reticent.reporting.formatting import format_with_error, truncate_name
from reticent.reporting.presenter import MOST_COLUMNS
from reticent.reporting.presenters.effects import BAND

if TYPE_CHECKING:
    from reticent.reporting.presenters.binned import TablePresenter
    from reticent.reporting.presenters.descriptive import (
        CovariancePresenter,
        HistogramPresenter,
        MeanPresenter,
    )

__all__ = ["draw_correlations", "draw_histograms", "draw_means", "draw_table"]

_MOST_BARS = 60
_MOST_DRAWN = 40  # groups of a table; of larger ones the totals by each key are drawn
_ROW = 0.2  # inches, of a group
_MOST_WRITTEN = 10  # columns whose correlations are written as numbers


@styled
def draw_means(presenter: "MeanPresenter", width: float) -> Figure:
    """Draw each mean with its 95 % band of privacy noise, on the range of its column."""
    model = presenter.model
    names = [truncate_name(name) for name in presenter.columns[:MOST_COLUMNS]]
    ends = presenter.bounds.x
    figure, axes = on_ranges(names, ends, width, 0.5, presenter.guarantee)
    for row in range(len(names)):
        low, high = ends[row]
        mean = model.mean_[row]
        sd = model.mean_sd_[row]
        at = (mean - low) / (high - low)
        axes.errorbar(
            at,
            row,
            xerr=BAND * sd / (high - low),
            fmt="o",
            color=LIGHT["accent"],
            ms=4.5,
            lw=1.6,
            capsize=3,
        )
        axes.annotate(
            format_with_error(mean, sd),
            (min(max(at, 0.12), 0.88), row),
            (0, 6),
            textcoords="offset points",
            ha="center",
            color=LIGHT["ink"],
        )
    return figure


@styled
def draw_histograms(presenter: "HistogramPresenter", width: float) -> Figure:
    """Draw each column's counts as released, with whiskers for 95 % of the privacy noise."""
    columns = presenter.merged(_MOST_BARS)[:MOST_COLUMNS]
    figure, panels = sheet(len(columns), min(2, len(columns)), width, 2.4, presenter.guarantee)
    for j, (axes, (name, edges, counts, noise)) in enumerate(zip(panels, columns, strict=True)):
        centres = (edges[1:] + edges[:-1]) / 2
        axes.bar(centres, counts, 0.92 * np.diff(edges), color=LIGHT["model"])
        axes.errorbar(
            centres, counts, BAND * noise, fmt="none", ecolor=LIGHT["accent"], elinewidth=0.9
        )
        axes.axhline(0, color=LIGHT["muted"], lw=0.7)
        axes.set(xlabel=truncate_name(name), ylabel="records")
        if presenter.model.levels_[j] is not None:
            labels = [truncate_name(one, 12) for one in presenter.bin_names(j, edges)]
            axes.set_xticks(centres, labels, rotation=90 if len(labels) > 6 else 0)
    return figure


@styled
def draw_correlations(presenter: "CovariancePresenter", width: float) -> Figure:
    """Draw the correlations as a map, with their numbers where there is room."""
    names = presenter.columns[:MOST_COLUMNS]
    count = len(names)
    size = min(width, 0.75 * count + 1.4)
    figure, (axes,) = sheet(1, 1, size, 0.85 * size, presenter.guarantee)
    correlation = presenter.model.correlation_[:count, :count]
    draw_cells(axes, correlation, written=count <= _MOST_WRITTEN)
    labels = [truncate_name(name, 16) for name in names]
    rotation = 0
    if count > 4:
        rotation = 90
    axes.set_xticks(range(count), labels, rotation=rotation)
    axes.set_yticks(range(count), labels)
    axes.set(aspect="equal")
    return figure


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
