"""Means, histograms and correlations of single columns."""

from itertools import combinations
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from reticent.reporting.attack_curve import percent
from reticent.reporting.columns import Column
from reticent.reporting.formatting import decimal_places, format_number, format_with_error
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
from reticent.reporting.presenters.count_tables import format_released_count
from reticent.reporting.released_counts import ReleasedCounts, released_counts

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from reticent.models.descriptive.covariance import PrivateCovariance
    from reticent.models.descriptive.histogram import PrivateHistogram  # noqa: F401 (a parameter of the base)
    from reticent.models.descriptive.mean import PrivateMean

__all__ = [
    "CovariancePresenter",
    "HistogramPresenter",
    "MeanPresenter",
    "column_means",
    "format_mean",
    "noisy_means_note",
]

Values = NDArray[np.float64]

_SCREEN_BINS = 20  # of a bar chart on a terminal; finer histograms are shown in groups of bins
_PAGE_BINS = 22
_MOST_PAIRED = 10  # columns of the report's table of correlations
_MEAN = ("column", "mean ± privacy noise")
_SPREAD = "standard deviation ±"
_BY_COLUMN = (
    "A record that lacks a value is left out of that column; a value outside its range counts as "
    "the nearest edge."
)
_LEAST_DIGITS = 2  # of a correlation
_MOST_DIGITS = 6

if TYPE_CHECKING:
    WithMeans = TypeVar("WithMeans", bound=PrivateMean | PrivateCovariance)
else:
    WithMeans = TypeVar("WithMeans")


def column_means(names: list[str], mean: Values, mean_sd: Values) -> Json:
    """Give the mean of each column and its noise, for machines."""
    columns = zip(names, mean.tolist(), mean_sd.tolist(), strict=True)
    return {"mean": {name: {"value": value, "noise_sd": sd} for name, value, sd in columns}}


def noisy_means_note(
    ranges: tuple[tuple[float, float], ...], mean_sd: Values, medium: Medium, few: str = "records"
) -> list[str]:
    """Say so if the means of all columns say next to nothing."""
    low, high = np.array(ranges).T
    if not (mean_sd > (high - low) / 2).all():
        return []
    return [
        f"the noise in every mean is larger than half its range: {medium.budget} is too "
        f"small for so few {few}, and the results say next to nothing."
    ]


class _MeansPresenter(Presenter[WithMeans], Generic[WithMeans]):
    """What presenters of models with a mean of each column (`mean_`, `mean_sd_`) share."""

    def _mean_rows(self) -> list[list[str]]:
        columns = zip(self.given_columns, self.model.mean_, self.model.mean_sd_, strict=True)
        return [[_mean_name(column), format_mean(column, mean, sd)] for column, mean, sd in columns]

    def _model_notes(self, medium: Medium) -> list[str]:
        return noisy_means_note(self.bounds.x, self.model.mean_sd_, medium, self.few)

    def quality(self) -> Quality:
        low, high = np.array(self.bounds.x).T
        part = percent(float((self.model.mean_sd_ / (high - low)).max()))
        noise = f"The privacy noise of each mean is ± {part} of its column’s range, or less."
        return Quality(self.about_quality, sentences=[noise])

    def _section(self, caption: str, tables: list[Table]) -> Section:
        title = self.title()
        return Section(
            title,
            f"{title}, with 95 % bands of the privacy noise.",
            caption,
            tables,
            remarks=[*self.remarks(PAGE), *self._drawn_columns()],
        )


def _mean_name(column: Column) -> str:
    """What a mean is of: "Age (years)", "died = yes"."""
    if column.is_rate:
        return f"{column.title} = {column.show(1.0)}"
    return column.heading


def format_mean(column: Column, mean: float, sd: float) -> str:
    """Write a mean with its noise: a rate in percent, a date with its noise in days."""
    if column.is_rate:
        return f"{format_with_error(100 * min(max(mean, 0.0), 1.0), 100 * sd)} %"
    if column.is_date:
        low, high = column.ends
        days = format_number(sd, 2)
        return f"{column.show(min(max(mean, low), high))} ± {days} days"
    if column.kind.levels is not None:  # words in order, counted from one
        return f"{format_with_error(mean + 1, sd)} of {len(column.kind.levels)} levels"
    return format_with_error(mean, sd)


class MeanPresenter(_MeansPresenter["PrivateMean"]):
    """Means of columns."""

    clipping = _BY_COLUMN

    def subject(self) -> str:
        """What was released: "Mean of", or "Means of" several columns."""
        if len(self.columns) == 1:
            return "Mean of"
        return "Means of"

    def results(self) -> Json:
        """Mean of each column with its noise."""
        return column_means(self.columns, self.model.mean_, self.model.mean_sd_)

    def _table(self) -> Table:
        return Table(_MEAN, self._mean_rows())

    def summary(self, medium: Medium = SCREEN) -> list[Block]:
        """A table of the means."""
        return [Block([self._table()])]

    def sections(self) -> list[Section]:
        """One section: each mean on the range of its column."""
        caption = "Each mean on the range of its column, with its 95 % band of privacy noise."
        return [self._section(caption, [self._table()])]

    def figure(self, width: float, output: int = 0) -> "Figure":
        """Draw the means on their ranges, ``width`` inches wide."""
        from reticent.reporting.figures.descriptive import draw_means

        return draw_means(self, width)


class HistogramPresenter(Presenter["PrivateHistogram"]):
    """Histograms of columns."""

    clipping = _BY_COLUMN

    def subject(self) -> str:
        """What was released: "Histogram of", or "Histograms of" several columns."""
        if len(self.columns) == 1:
            return "Histogram of"
        return "Histograms of"

    def results(self) -> Json:
        """Edges and counts of each column, and the noise of a count; words by name."""
        model = self.model
        found: Json = {}
        for counted in released_counts(model):
            values: Json = {"edges": counted.edges.tolist(), "counts": counted.counts.tolist()}
            if counted.column.kind.levels is not None:
                values["levels"] = counted.names()
            found[counted.column.name] = values
        return {"noise_sd": model.counts_sd_, "histogram": found}

    def merged(self, most: int) -> list[ReleasedCounts]:
        """Give the counts of each column in at most ``most`` bins; words stay apart."""
        return [counted.merged(most) for counted in released_counts(self.model)]

    def summary(self, medium: Medium = SCREEN) -> list[Block]:
        """A table of counts with bars for each column, of merged bins."""
        blocks = []
        for counted in self.merged(_SCREEN_BINS):
            counts = counted.counts
            noise = counted.sd
            most = max(*counts, 1.0)
            spread = f"{noise:.1g}"
            if noise >= 1:
                spread = f"{noise:,.0f}"
            bars = [max(count, 0) / most for count in counts]
            rows = _bin_rows(counted)
            name = counted.column.heading
            noun = "count"
            if self.counted != "records":
                noun = self.counted
            blocks.append(Block([Table([name, f"{noun} ± {spread}"], rows, bars=bars)]))
        return blocks

    def sections(self) -> list[Section]:
        """One section: the histograms, and their counts in merged bins."""
        tables = [
            Table(
                [counted.column.heading, f"{self.counted} ± {format_number(counted.sd, 2)}"],
                _bin_rows(counted),
            )
            for counted in self.merged(_PAGE_BINS)
        ]
        title = self.title()
        caption = f"Counts ({self.counted}), with 95 % bands of privacy noise."
        return [
            Section(
                title,
                f"{title}, with 95 % bands of the privacy noise.",
                caption,
                tables,
                remarks=[*self.remarks(PAGE), *self._drawn_columns()],
            )
        ]

    def figure(self, width: float, output: int = 0) -> "Figure":
        """Draw the histograms, ``width`` inches wide."""
        from reticent.reporting.figures.descriptive import draw_histograms

        return draw_histograms(self, width)

    def quality(self) -> Quality:
        """The noise of a count beside the average count."""
        bins = float(np.mean([len(counts) for counts in self.model.counts_]))
        usual = f"{self.releases[0].n / bins:,.0f}"
        noise = format_number(self.model.counts_sd_, 2)
        counts = (
            f"Each count has a privacy noise of ± {noise}; a bin holds {usual} {self.few} on "
            "average."
        )
        return Quality(self.about_quality, sentences=[counts])

    def remarks(self, medium: Medium) -> list[str]:
        """What negative counts are, if there are any."""
        if all((np.asarray(counts) >= 0).all() for counts in self.model.counts_):
            return []
        return ["Counts that noise has made negative are shown as 0; the release keeps them."]


def _bin_rows(counted: ReleasedCounts) -> list[list[str]]:
    """Write bins and their counts."""
    return [
        [name, format_released_count(count)]
        for name, count in zip(counted.names(), counted.counts, strict=True)
    ]


class CovariancePresenter(_MeansPresenter["PrivateCovariance"]):
    """Means, standard deviations and correlations of columns."""

    clipping = (
        "A record that lacks a value is left out; a value outside its range counts as the "
        "nearest edge."
    )

    def subject(self) -> str:
        """What was released: "Means and correlations of"."""
        return "Means and correlations of"

    def noise(self) -> tuple[Values, Values]:
        """Noise of the standard deviations (d,) and of the correlations (d, d), to first order.

        NaN where a variance came out as zero. Takes the noise of the covariances as independent;
        they share that of the means, which is a small part of it.
        """
        model = self.model
        variance = np.diag(model.covariance_)
        spread = np.sqrt(np.where(variance > 0, variance, np.nan))
        relative = np.diag(model.covariance_sd_) / spread**2
        correlation = model.correlation_ / 2
        parts = (
            model.covariance_sd_ / np.outer(spread, spread),
            correlation * relative,
            correlation * relative[:, None],
        )
        return relative * spread / 2, np.sqrt(sum(part**2 for part in parts))

    def results(self) -> Json:
        """Means, standard deviations, covariance and correlations, with their noise."""
        model = self.model
        names = self.columns
        spreads = np.sqrt(np.diag(model.covariance_))
        spread_sd, correlation_sd = self.noise()
        np.fill_diagonal(correlation_sd, 0.0)  # of a correlation of 1
        return {
            **column_means(names, model.mean_, model.mean_sd_),
            "standard_deviation": {
                name: {"value": float(value), "noise_sd": _known(sd)}
                for name, value, sd in zip(names, spreads, spread_sd, strict=True)
            },
            "columns": names,
            "covariance": model.covariance_.tolist(),
            "covariance_noise_sd": model.covariance_sd_.tolist(),
            "correlation": model.correlation_.tolist(),
            "correlation_noise_sd": [[_known(sd) for sd in row] for row in correlation_sd],
        }

    def _column_table(self) -> Table:
        spread_sd, _ = self.noise()
        rows = []
        for j, (row, sd) in enumerate(zip(self._mean_rows(), spread_sd, strict=True)):
            spread = "0"
            if not np.isnan(sd):
                spread = _format_spread(self.given_columns[j], self.model.covariance_[j, j], sd)
            rows.append([*row, spread])
        return Table([*_MEAN, _SPREAD], rows)

    def summary(self, medium: Medium = SCREEN) -> list[Block]:
        """Tables of the columns and of the correlations with their noise."""
        names = self.titles
        if len(names) == 1:
            return [Block([self._column_table()])]
        # the table is symmetric: values below the diagonal, their noise above it
        _, correlation_sd = self.noise()
        above = correlation_sd[np.triu_indices(len(names), 1)]
        digits = _LEAST_DIGITS
        if np.isfinite(above).any():
            wanted = decimal_places(float(np.nanmin(above)))
            digits = min(max(wanted, _LEAST_DIGITS), _MOST_DIGITS)
        rows = []
        for i, name in enumerate(names):
            values = [f"{value:z.{digits}f}" for value in self.model.correlation_[i, :i]]
            noise = [_noise_cell(sd, digits) for sd in correlation_sd[i, i + 1 :]]
            rows.append([name, *values, "1", *noise])
        return [Block([self._column_table()]), Block([Table(["correlation", *names], rows)])]

    def sections(self) -> list[Section]:
        """One section: the correlations, and the numbers of columns and pairs."""
        caption = (
            "Correlations: blue for columns that rise together, orange where one "
            "falls as the other rises."
        )
        return [self._section(caption, [self._column_table(), self._pair_table()])]

    def _pair_table(self) -> Table:
        names = self.titles
        _, correlation_sd = self.noise()
        rows = []
        for i, j in combinations(range(min(len(names), _MOST_PAIRED)), 2):
            value = float(self.model.correlation_[i, j])
            sd = float(correlation_sd[i, j])
            cell = f"{value:z.2f}"
            if not np.isnan(sd):
                cell = format_with_error(value, max(sd, 1e-3))
            rows.append([f"{names[i]} and {names[j]}", cell])
        return Table(["columns", "correlation ±"], rows)

    def figure(self, width: float, output: int = 0) -> "Figure":
        """Draw the correlations, ``width`` inches wide."""
        from reticent.reporting.figures.descriptive import draw_correlations

        return draw_correlations(self, width)

    def remarks(self, medium: Medium) -> list[str]:
        """That the noise is known to first order only."""
        return ["The ± of standard deviations and correlations is approximate."]


def _format_spread(column: Column, variance: float, sd: float) -> str:
    """Write a standard deviation: of a rate in percent, of a date in days."""
    if column.is_rate:
        return f"{format_with_error(100 * variance**0.5, 100 * sd)} %"
    shown = format_with_error(variance**0.5, sd)
    if column.is_date:
        return f"{shown} days"
    return shown


def _known(sd: float) -> float | None:
    """Give a standard deviation, or None where it is not known."""
    if np.isnan(sd):
        return None
    return float(sd)


def _noise_cell(sd: float, digits: int) -> str:
    if np.isnan(sd):
        return ""
    return f"± {sd:.{digits}f}"
