"""By group: regressions on a private histogram, with their bins as released, and tables by keys."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from reticent.models.descriptive.table_layout import MARGIN
from reticent.reporting.columns import Column, input_columns
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
from reticent.reporting.presenters.regression import BaseRegressionPresenter

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from reticent.models.descriptive.table import PrivateTable  # noqa: F401 (a parameter of the base)
    from reticent.models.gp.binned_regressor import BinnedGPRegressor  # noqa: F401 (a parameter of the base)

    pass

__all__ = ["BinnedPresenter", "ReleasedBins", "TablePresenter"]

Values = NDArray[np.float64]
_MOST_ROWS = 24  # of a table of bins
_LEAST_SIGNAL = (
    2.0  # standard deviations that a count must exceed zero by, for its mean to be drawn
)


@dataclass(frozen=True)
class ReleasedBins:
    """The bins of one input as they were released, (bins + 1,) edges and (bins,) values.

    ``height`` in units of the curve, ``sd`` of its privacy noise. NaN for means of bins whose count
    does not stand out from its noise.
    """

    edges: Values
    height: Values
    sd: Values


class BinnedPresenter(BaseRegressionPresenter["BinnedGPRegressor"]):
    """Regression on bins, or a density of records."""

    caption = (
        f"{BaseRegressionPresenter.caption} With one input, the bins are drawn as they were "
        "released, with 95 % of their privacy noise."
    )

    def _counts_records(self) -> bool:
        return bool(self.model.kind == "count")

    def _has_one_axis(self) -> bool:
        """Whether the bins are those of one input, in a row."""
        one = self.model.n_features_in_ == 1 and self.model._params["regions"] is None
        return one and self.given_columns[0].categories is None

    def released_bins(self) -> ReleasedBins | None:
        """Give the bins of a model with one input and no regions; None for others."""
        if not self._has_one_axis():
            return None
        model = self.model
        edges = model.edges_[0]
        if self._counts_records():
            width = np.diff(edges)
            counts = np.maximum(model.counts_, 0.0)
            return ReleasedBins(edges, counts / width, model.counts_sd_ / width)
        ((low, high),) = self.bounds.y
        middle = low / 2 + high / 2
        least = np.maximum(_LEAST_SIGNAL * model.counts_sd_, 0.5)
        counts = np.where(model.counts_ > least, model.counts_, np.nan)
        mean = model.sums_ / counts
        sd = np.hypot(model.sums_sd_, mean * model.counts_sd_) / counts
        return ReleasedBins(edges, middle + mean, sd)

    def results(self) -> Json:
        """The effects, and the released bins with their edges, counts and sums."""
        model = self.model
        axes = zip(self.columns, model.edges_, strict=True)
        bins: Json = {
            "edges": {name: edges.tolist() for name, edges in axes},
            "counts": model.counts_.tolist(),
            "counts_noise_sd": model.counts_sd_.tolist(),
            "fitted": model.bins_.tolist(),
            "fitted_std": model.bins_sd_.tolist(),
        }
        if model.kind == "mean":
            bins |= {
                "sums_from_the_middle": model.sums_.tolist(),
                "sums_noise_sd": model.sums_sd_.tolist(),
            }
        return {"kind": model.kind, "bins": bins, **super().results()}

    def summary(self, medium: Medium = SCREEN) -> list[Block]:
        """The effects, after the released bins if there are few along one input."""
        blocks = super().summary(medium)
        if self._has_one_axis() and len(self.model.bins_) <= _MOST_ROWS:
            blocks.insert(0, Block([self._bin_table()]))
        return blocks

    def _bin_table(self) -> Table:
        model = self.model
        edges = model.edges_[0]
        column = self.given_columns[0]
        fitted = "mean"
        if self._counts_records():
            fitted = self.counted
        rows = []
        for i, (count, sd) in enumerate(zip(model.counts_, model.counts_sd_, strict=True)):
            released = f"{count:,.0f}"
            if sd > 0:
                released = format_with_error(max(count, 0.0), sd)
            interval = f"{column.show(edges[i])} – {column.show(edges[i + 1])}"
            rows.append([interval, released, format_with_error(model.bins_[i], model.bins_sd_[i])])
        return Table([column.heading, "released count ± noise", f"fitted {fitted} ±"], rows)

    def remarks(self, medium: Medium) -> list[str]:
        """How density and bins are to be read."""
        model = self.model
        remarks = []
        if self._counts_records():
            remarks.append(
                f"The density is in {self.counted} per unit of the inputs; the widest band "
                "is that of their number in one unit."
            )
        if model.protect == "labels":
            remarks.append(
                "Inputs are NOT protected: how many are in each bin is part of this release."
            )
        if (model.counts_ % 1 == 0.5).any():
            remarks.append(
                "Counts end in .5 because noise is rounded down, by a half on "
                "average, which is added back."
            )
        if (model.counts_ < 0).any():
            remarks.append(
                "Counts that noise has made negative are shown as 0; the release keeps them."
            )
        return [*remarks, *super().remarks(medium)]


# ---- tables by group

_SCREEN_ROWS = 40
_PAGE_ROWS = 400
_NOISE = "_sd"
_ONLY_NOISE = "± is the noise added for privacy; it does not cover that these records are a sample."


class TablePresenter(Presenter["PrivateTable"]):
    """Counts, means, rates, totals and quantiles by group."""

    clipping = (
        "A record that lacks a key is in no cell; one that lacks a value counts in its cell, but "
        "not in what is told of that value; a value outside its range counts as the nearest edge."
    )

    def _column(self, name: str) -> Column | None:
        """The column of this name; None for one that has none."""
        found = {column.name: column for column in input_columns(self.model)}
        return found.get(printable(name))

    @property
    def keys(self) -> list[str]:
        """What the keys are called, for people: by their labels."""
        columns = [(name, self._column(name)) for name in self.model.keys_]
        return [column.title if column else printable(name) for name, column in columns]

    @property
    def key_headings(self) -> list[str]:
        """The same with their units, as in tables."""
        columns = [(name, self._column(name)) for name in self.model.keys_]
        return [column.heading if column else printable(name) for name, column in columns]

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
        what = join_names([self._words(name) for name in self.told])
        if not self.keys:
            return f"Table of {what}"
        return f"Table of {what} by {join_names(self.keys)}"

    def heading(self, name: str) -> str:
        """What a number is, with its unit: "mean of Length of stay (days)"."""
        column = self._column(name.rpartition("_")[0])
        if column is None or not column.unit:
            return self._words(name)
        return f"{self._words(name)} ({column.unit})"

    def _words(self, name: str) -> str:
        """What a number is, in words: "mean of Length of stay"."""
        if name == "count":
            return self.counted
        column, _, what = name.rpartition("_")
        if what.startswith("q"):
            words = {"q25": "lower quartile", "q50": "median", "q75": "upper quartile"}
            what = words.get(what, f"{what[1:]} % quantile")
        known = self._column(column)
        return f"{what} of {known.title if known else printable(column)}"

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
                *(self._with_error(name, row[name], row[f"{name}{_NOISE}"]) for name in self.told),
            ]
            for row in rows
        ]

    def _with_error(self, name: str, value: Any, sd: float) -> str:
        """A number with its noise; a date or a word as it is, with the noise in days or places."""
        if not isinstance(value, str):
            return format_with_error(float(value), max(sd, 1e-9))
        shown = f"{printable(value)} ± {format_number(sd, 2)}"
        column = self._column(name.rpartition("_")[0])
        if column is not None and column.is_date:
            return f"{shown} days"
        return shown

    def _table(self, rows: list[dict[str, Any]]) -> Table:
        head = [*self.key_headings, *(f"{self.heading(name)} ±" for name in self.told)]
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
        remarks = [_ONLY_NOISE, *self.remarks(PAGE)]
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
            "and counts of totals are sums of those of cells; means and rates of totals are of the "
            "released sums. The numbers as they were released are in cells_."
        ]
        if self.model.smooth:
            said.append(
                "Cells that the noise hides borrow from the others (smooth): means and rates by "
                "effects of each key and of the cell, counts by what independent keys would give."
            )
        elif any(name.endswith(("_mean", "_rate")) for name in self.told):
            said.append(
                "A mean or rate with a wide ± is of a cell with few records, or none: it is mostly "
                "noise, cut off at the ends of the range, and no finding."
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
        return " · ".join(str(row[key]) for key in self.model.keys_) or f"all {self.few}"

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
            f"The size of a cell ({self.counted}) has a privacy noise of ± "
            f"{format_number(model.cells_.counts_sd, 2)}; of {format_count(cells, 'cell')} each "
            f"has {usual} {self.few} on average, at most."
        ]
        return Quality(self.about_quality, sentences=sentences)
