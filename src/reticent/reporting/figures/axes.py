"""Axes of inputs: numbers, dates, cycles over one period, and blocks with names below them."""

from collections.abc import Sequence
from datetime import date
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.reporting.columns import Column
from reticent.reporting.figures.style import (
    DASHED,
    Axes,
    FixedLocator,
    FuncFormatter,
    MaxNLocator,
    ScalarFormatter,
)
from reticent.reporting.formatting import truncate_name

__all__ = ["LINES", "block_width", "label_blocks", "label_input", "label_map", "set_date_ticks"]

LINES: Any = ("solid", DASHED, (0, (1, 1.5)), (0, (6, 2, 1, 2)))  # dashes of curves
_BLOCK = 0.15  # of the distance of two of two blocks: half the width that each is drawn with
_WIDE_BLOCK = 0.3  # of more
_LETTERS = 13  # of all names below an axis, for each inch of its width
_LONG_NAME = 14
_MOST_DATES = 5
_MONTHS = (1, 2, 3, 6, 12, 24, 60, 120, 240, 600, 1200)  # between two ticks
_DAYS = (1, 2, 5, 10)
_SHORT_SPAN = 60  # days: ticks stand at days, not at months
_EPOCH = date(1970, 1, 1)


def block_width(places: NDArray[np.float64]) -> float:
    """Half the width of each block."""
    if len(places) == 2:
        return _BLOCK * float(places[1] - places[0])
    return _WIDE_BLOCK


def label_input(axes: Axes, column: Column | None, heading: str) -> None:
    """Name an input below its axis, and choose ticks that suit its kind."""
    axes.set_xlabel(truncate_name(heading))
    axes.xaxis.set_major_locator(MaxNLocator(5))
    if column is not None:
        _set_ticks(axes.xaxis, column)


def label_map(axes: Axes, columns: Sequence[Column]) -> None:
    """Name the two inputs of a map."""
    first, second = columns
    axes.set(xlabel=truncate_name(first.heading), ylabel=truncate_name(second.heading))
    _set_ticks(axes.xaxis, first)
    _set_ticks(axes.yaxis, second)


def _set_ticks(axis: Any, column: Column) -> None:
    if column.is_date:
        set_date_ticks(axis, *column.ends)
    elif column.kind.periodic:
        low, high = column.ends
        axis.set_major_locator(FixedLocator(np.linspace(low, high, 5).tolist()))
    elif column.kind.cells is not None:
        axis.set_major_locator(MaxNLocator(5, integer=True))
    elif isinstance(axis.get_major_formatter(), ScalarFormatter):
        axis.get_major_formatter().set_useOffset(False)  # 45.0, not 0.0 + 45


def set_date_ticks(axis: Any, low: float, high: float) -> None:
    """Ticks at the first days of months or years, or at days of a short span.

    ``low``, ``high``: days since 1970-01-01.
    """
    first = date.fromordinal(_EPOCH.toordinal() + int(np.ceil(low)))
    last = date.fromordinal(_EPOCH.toordinal() + int(np.floor(high)))
    if high - low <= _SHORT_SPAN:
        step = next((d for d in _DAYS if (high - low) / d <= _MOST_DATES), 15)
        days = list(range(first.toordinal(), last.toordinal() + 1, step))
        ticks = [date.fromordinal(day) for day in days]
        written = "%d %b"
    else:
        months = (high - low) / 30.4
        step = next((m for m in _MONTHS if months / m <= _MOST_DATES), 2400)
        begin = first.year * 12 + first.month - 1 + (first.day > 1)
        begin = -(-begin // step) * step
        end = last.year * 12 + last.month - 1
        ticks = [date(month // 12, month % 12 + 1, 1) for month in range(begin, end + 1, step)]
        written = "%Y" if step % 12 == 0 else "%b %Y"
    places = [day.toordinal() - _EPOCH.toordinal() for day in ticks]
    names = {place: day.strftime(written) for place, day in zip(places, ticks, strict=True)}
    axis.set_major_locator(FixedLocator(places))
    axis.set_major_formatter(FuncFormatter(lambda place, _: names.get(round(place), "")))


def label_blocks(axes: Axes, places: NDArray[np.float64], names: Sequence[str]) -> None:
    """Write the name of each block below it; upright where there is no room beside each other."""
    short = [truncate_name(name, _LONG_NAME) for name in names]
    figure = axes.get_figure()
    assert figure is not None
    spec = axes.get_subplotspec()
    columns = 1
    if spec is not None:
        columns = spec.get_gridspec().ncols
    width = figure.get_figwidth() / columns - 0.5  # type: ignore[union-attr]
    longest = max(map(len, short)) + 1
    rotation = 0
    if longest * len(short) > _LETTERS * max(width, 0.5):
        rotation = 90
    axes.set_xticks(places.tolist(), short, rotation=rotation)
