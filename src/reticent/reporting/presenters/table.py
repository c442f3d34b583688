"""Tables by group."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from reticent.models.descriptive.table_layout import MARGIN
from reticent.reporting.formatting import (
    format_count,
    format_number,
    format_with_error,
    join_names,
    printable,
)
from reticent.reporting.presenter import (
    PAGE,
    SCREEN,
    Block,
    Json,
    Medium,
    Presenter,
    Quality,
    Section,
    Table,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from reticent.models.descriptive.table import PrivateTable  # noqa: F401 (a parameter of the base)

__all__ = ["TablePresenter"]

Values = NDArray[np.float64]

_SCREEN_ROWS = 40
_PAGE_ROWS = 400
_NOISE = "_sd"


class TablePresenter(Presenter["PrivateTable"]):
    """Counts, means, rates, totals and quantiles by group."""

    clipping = (
        "A record that lacks a key is in no cell, one that lacks a value counts in the cell but "
        "not in what is told of that value. A value outside its range counts as the nearest edge."
    )

    @property
    def keys(self) -> list[str]:
        """Names of the keys, for people."""
        return [printable(name) for name in self.model.keys_]

    @property
    def told(self) -> list[str]:
        """What is told of each cell, by its name in the table."""
        row = self.model.table_[0]
        return [name for name in row if name not in self.model.keys_ and f"{name}{_NOISE}" in row]

    def subject(self) -> str:
        """What was released: "Table of"."""
        return "Table of"

    def title(self) -> str:
        """What was released: "Table of count and mean of stay by sex and ward"."""
        what = join_names([self.heading(name) for name in self.told])
        if not self.keys:
            return f"Table of {what}"
        return f"Table of {what} by {join_names(self.keys)}"

    def heading(self, name: str) -> str:
        """What a number is, in words: "mean of stay"."""
        if name == "count":
            return "records"
        column, _, what = name.rpartition("_")
        if what.startswith("q"):
            words = {"q25": "lower quartile", "q50": "median", "q75": "upper quartile"}
            what = words.get(what, f"{what[1:]} % quantile")
        return f"{what} of {printable(column)}"

    def results(self) -> Json:
        """All cells and margins, each number with its noise."""
        return {
            "keys": self.model.keys_,
            "cells": self.model.table_,
            "margins": self.model.margins_,
        }

    def _rows(self, rows: list[dict[str, Any]]) -> list[list[str]]:
        return [
            [
                *(printable(str(row[key])) for key in self.model.keys_),
                *(_with_error(row[name], row[f"{name}{_NOISE}"]) for name in self.told),
            ]
            for row in rows
        ]

    def _table(self, rows: list[dict[str, Any]]) -> Table:
        head = [*self.keys, *(f"{self.heading(name)} ±" for name in self.told)]
        return Table(head, self._rows(rows), text_columns=len(self.keys))

    def _short_margins(self) -> list[dict[str, Any]]:
        """Margins by one key, and the grand total."""
        keys = list(self.model.keys_)
        return [row for row in self.model.margins_ if sum(row[key] != MARGIN for key in keys) <= 1]

    def summary(self, medium: Medium = SCREEN) -> list[Block]:
        """The cells, and the margins by each key."""
        cells = self.model.table_
        sentences = []
        if len(cells) > _SCREEN_ROWS:
            more = f"{len(cells) - _SCREEN_ROWS:,} more cells"
            sentences.append(f"… and {more}: {medium.all_numbers or 'model.table_'}.")
        blocks = [Block([self._table(cells[:_SCREEN_ROWS])], sentences)]
        margins = self._short_margins()
        if margins:
            blocks.append(Block([self._table(margins[-_SCREEN_ROWS:])], heading="Totals"))
        return blocks

    def sections(self) -> list[Section]:
        """One section: the groups as dots with error bars, cells and margins as tables."""
        title = self.title()
        tables = [self._table(self.model.table_[:_PAGE_ROWS])]
        margins = self._short_margins()
        if margins:
            tables.append(self._table(margins[-_PAGE_ROWS:]))
        remarks = self.remarks(PAGE)
        if len(self.model.table_) > _PAGE_ROWS:
            cells = format_count(len(self.model.table_), "cell")
            remarks = [*remarks, f"Of {cells}, the first {_PAGE_ROWS} are shown."]
        return [
            Section(
                title,
                f"{title}, with 95 % bands of the privacy noise.",
                "Each cell with its 95 % band of privacy noise.",
                tables,
                remarks=remarks,
            )
        ]

    def remarks(self, medium: Medium) -> list[str]:
        """How the numbers are to be read."""
        said = [
            "All groups are shown, whether anybody is in them or not. Counts are not negative, "
            "and counts of totals are sums of those of cells; the numbers as they were released "
            "are in cells_."
        ]
        if self.model.smooth:
            said.append(
                "Cells that the noise hides borrow from the others (smooth): means and rates by "
                "effects of each key and of the cell, counts by what independent keys would give."
            )
        elif any(name.endswith(("_mean", "_rate")) for name in self.told):
            said.append(
                "A mean or rate with a wide ± is of a cell with few records, or none: where the "
                "noise leaves everything open, it is the middle of what is possible."
            )
        return said

    def figure(self, width: float, output: int = 0) -> "Figure":
        """Draw the cells, ``width`` inches wide."""
        from reticent.reporting.figures.descriptive import draw_table

        return draw_table(self, width)

    def drawn(self, most: int) -> list[dict[str, Any]]:
        """The cells, or of a larger table the totals by each key, as far as there is room."""
        rows: list[dict[str, Any]] = self.model.table_
        if len(rows) > most:
            rows = self._short_margins()
        return rows[-most:]

    def group(self, row: dict[str, Any]) -> str:
        """The name of a group: "F · ward A"."""
        return " · ".join(str(row[key]) for key in self.model.keys_) or "all records"

    def values(self, rows: list[dict[str, Any]], name: str) -> tuple[Values, Values] | None:
        """A number of all rows and its noise; None for dates and words, which are not drawn."""
        values = [row[name] for row in rows]
        if any(isinstance(value, str) for value in values):
            return None
        return np.array(values, dtype=float), np.array([row[f"{name}{_NOISE}"] for row in rows])

    def ends(self, name: str) -> tuple[float | None, float | None]:
        """Where bands end because nothing lies beyond: counts at 0, means where values do."""
        if name == "count":
            return 0.0, None
        names = self.bounds.x_names or [f"column {j}" for j in range(len(self.bounds.x))]
        column, _, what = name.rpartition("_")
        if what == "total" or column not in names:
            return None, None
        return self.bounds.x_kinds[names.index(column)].output_range

    def quality(self) -> Quality:
        """The noise of a count beside the average count."""
        model = self.model
        cells = len(model.table_)
        usual = f"{self.releases[0].n / cells:,.0f}"
        sentences = [
            f"The number of records of a cell has a privacy noise of ± "
            f"{format_number(model.cells_.counts_sd, 2)}; of {format_count(cells, 'cell')} each "
            f"has {usual} records on average, at most."
        ]
        return Quality(self.about_quality, sentences=sentences)


def _with_error(value: Any, sd: float) -> str:
    """A number with its noise; a date or a word as it is, with the noise in days or places."""
    if isinstance(value, str):
        return f"{printable(value)} ± {format_number(sd, 2)}"
    return format_with_error(float(value), max(sd, 1e-9))
