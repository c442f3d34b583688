"""Figures of single columns and groups: means, histograms, correlations, tables."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from reticent.reporting.figures.axes import label_blocks, label_input
from reticent.reporting.figures.palette import LIGHT
from reticent.reporting.figures.style import (
    Axes,
    Figure,
    FuncFormatter,
    MaxNLocator,
    draw_cells,
    on_ranges,
    sheet,
    styled,
)
from reticent.reporting.formatting import truncate_name
from reticent.reporting.presenter import MOST_COLUMNS
from reticent.reporting.presenters.descriptive import format_mean
from reticent.reporting.presenters.effects import BAND
from reticent.reporting.released_counts import ReleasedCounts

if TYPE_CHECKING:
    from reticent.reporting.presenters.binned import TablePresenter
    from reticent.reporting.presenters.descriptive import (
        CovariancePresenter,
        HistogramPresenter,
        MeanPresenter,
    )

__all__ = ["draw_correlations", "draw_histograms", "draw_means", "draw_table"]

_MOST_BARS = 60
_MOST_UPRIGHT = 10  # bars of words, beside each other
_MOST_LYING = 16  # bars of words, below each other
_MOST_DRAWN = 40  # groups of a table; of larger ones the totals by each key are drawn
_ROW = 0.2  # inches, of a group
_LONG_NUMBER = 10_000  # numbers of five digits touch each other at the usual number of ticks
_LONG_TICKS = 3  # between ticks of such numbers
_MOST_WRITTEN = 10  # columns whose correlations are written as numbers


@styled
def draw_means(presenter: "MeanPresenter", width: float) -> Figure:
    """Draw each mean with its 95 % band of privacy noise, on the range of its column."""
    model = presenter.model
    columns = presenter.given_columns[:MOST_COLUMNS]
    figure, axes = on_ranges(columns, width, 0.5, presenter.guarantee)
    for row, column in enumerate(columns):
        low, high = column.ends
        mean = model.mean_[row]
        sd = model.mean_sd_[row]
        at = (min(max(mean, column.limits[0]), column.limits[1]) - low) / (high - low)
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
            format_mean(column, mean, sd),
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
    for axes, counted in zip(panels, columns, strict=True):
        if counted.by_value and len(counted.counts) > _MOST_UPRIGHT:
            _draw_lying_bars(axes, counted, presenter.counted)
            continue
        edges = counted.edges
        centres = (edges[1:] + edges[:-1]) / 2
        width_of_bars = 0.92 * np.diff(edges)
        if counted.by_value:
            width_of_bars = np.full(len(centres), 0.7)
        counts, reach = _shown_counts(counted)
        axes.bar(centres, counts, width_of_bars, color=LIGHT["model"])
        axes.errorbar(centres, counts, reach, fmt="none", ecolor=LIGHT["accent"], elinewidth=0.9)
        axes.axhline(0, color=LIGHT["muted"], lw=0.7)
        label_input(axes, counted.column, counted.column.heading)
        if counted.by_value:
            label_blocks(axes, centres, counted.names())
        axes.set(ylabel=presenter.counted, ylim=(0, None))
    return figure


def _shown_counts(counted: ReleasedCounts) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Counts that are not negative, and their 95 % bands of noise, (2, bins) from them."""
    counts = np.maximum(counted.counts, 0.0)
    low = np.maximum(counted.counts - BAND * counted.sd, 0.0)
    high = np.maximum(counted.counts + BAND * counted.sd, 0.0)
    return counts, np.array([counts - low, high - counts])


def _draw_lying_bars(axes: Axes, counted: ReleasedCounts, noun: str) -> None:
    """Many words: bars that lie, those with most records, with the names beside them.

    ``noun``: what is counted.
    """
    order = np.argsort(-counted.counts, kind="stable")[:_MOST_LYING]
    order = np.sort(order)
    counts, reach = _shown_counts(counted)
    rows = np.arange(len(order))
    names = counted.names()
    axes.barh(rows, counts[order], 0.75, color=LIGHT["model"])
    axes.errorbar(
        counts[order],
        rows,
        xerr=reach[:, order],
        fmt="none",
        ecolor=LIGHT["accent"],
        elinewidth=0.9,
    )
    axes.set_yticks(rows, [truncate_name(names[i], 16) for i in order])
    title = counted.column.heading
    if len(order) < len(counts):
        title = f"{title}: {len(order)} of {len(counts)} values"
    axes.set(title=truncate_name(title, 40), xlabel=noun, ylim=(len(order) - 0.4, -0.6))
    axes.set_xlim(0, None)


@styled
def draw_correlations(presenter: "CovariancePresenter", width: float) -> Figure:
    """Draw the correlations as a map, with their numbers where there is room."""
    names = presenter.titles[:MOST_COLUMNS]
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
        _fit_long_numbers(axes)
        axes.set_yticks(places, labels)
        axes.set(xlabel=truncate_name(presenter.heading(name)), ylim=(len(rows) - 0.4, -0.6))
        axes.grid(axis="y", color=LIGHT["rule"], lw=0.5)
        axes.set_axisbelow(True)
    return figure


def _fit_long_numbers(axes: Axes) -> None:
    """Fewer ticks, with signs between thousands, where numbers would run into each other."""
    if max(map(abs, axes.get_xlim())) < _LONG_NUMBER:
        return
    axes.xaxis.set_major_locator(MaxNLocator(_LONG_TICKS))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
