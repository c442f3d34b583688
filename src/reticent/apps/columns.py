"""Means, histograms and correlations of single columns, for people, for machines and for the report. From releases only."""

from collections.abc import Callable
from itertools import combinations
from math import floor
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from reticent.apps.attacker import percent
from reticent.apps.figures import column_names, digits_beside, figure, measured
from reticent.apps.shown import Model
from reticent.apps.slices import grouped
from reticent.apps.terminal import table

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["COVARIANCE", "HISTOGRAM", "MEAN", "mean_notes", "mean_numbers"]

Values = NDArray[np.float64]

_ROWS = 20  # of a bar chart; finer histograms are shown in groups of bins
_BAR = 36
_MEAN, _SPREAD = ("column", "mean ± privacy noise"), "standard deviation ±"
_REPORTED, _MOST_PAIRED = 22, 10  # rows and columns of a report's tables


def mean_numbers(model: Any) -> dict[str, Any]:
    """The means and their noise, for machines."""
    columns = zip(column_names(model), model.mean_.tolist(), model.mean_sd_.tolist(), strict=True)
    return {"mean": {name: {"value": value, "noise_sd": sd} for name, value, sd in columns}}


def _mean_rows(model: Any) -> list[list[str]]:
    columns = zip(column_names(model), model.mean_, model.mean_sd_, strict=True)
    return [[name, measured(mean, sd)] for name, mean, sd in columns]


def _mean_page(model: Any) -> dict[str, Any]:
    caption = "Each mean on the range of its column, with its 95 % band of privacy noise."
    return {"caption": caption, "tables": [{"head": [*_MEAN], "rows": _mean_rows(model)}]}


def mean_notes(model: Any) -> list[str]:
    """Say so if the means say next to nothing."""
    low, high = np.array(model.releases_[0].bounds.x).T
    if not (model.mean_sd_ > (high - low) / 2).all():
        return []
    return [
        "the noise in every mean is larger than half its range: the budget (--epsilon) is too small for so few records, and "
        "the results say next to nothing."
    ]


def _mean_quality(model: Any) -> dict[str, Any]:
    low, high = np.array(model.releases_[0].bounds.x).T
    share = percent(float((model.mean_sd_ / (high - low)).max()))
    return {"lines": [f"The privacy noise of each mean is ± {share} of its column’s range, or less."]}


def _histogram_numbers(model: Any) -> dict[str, Any]:
    columns = zip(column_names(model), model.edges_.tolist(), model.counts_.tolist(), strict=True)
    return {
        "noise_sd": model.counts_sd_,
        "histogram": {name: {"edges": edges, "counts": counts} for name, edges, counts in columns},
    }


def _histogram_chart(model: Any) -> "RenderableType":
    from rich.console import Group
    from rich.text import Text

    charts: list[RenderableType] = []
    for name, edges, counts in zip(column_names(model), model.edges_, model.counts_, strict=True):
        at, sums, noise = grouped(edges, counts, model.counts_sd_, _ROWS)
        most = max(*sums, 1.0)
        rows = table(name, f"count ± {noise:,.0f}" if noise >= 1 else f"count ± {noise:.1g}", "", left=1)
        rows.columns[2].justify = "left"
        for i, total in enumerate(sums):
            label = f"{at[i]:g} – {at[i + 1]:g}"
            # a released count is a whole number plus 1/2, which would always be rounded to an even one
            rows.add_row(label, f"{floor(total):,}", Text("█" * round(max(total, 0) / most * _BAR), style="cyan"))
        charts += [rows, Text("")]
    return Group(*charts[:-1])


def _histogram_remarks(model: Any) -> list[str]:
    if (model.counts_ >= 0).all():
        return []
    return ["Negative counts are noise around zero, shown as they were released."]


def _histogram_page(model: Any) -> dict[str, Any]:
    tables = []
    for name, edges, counts in zip(column_names(model), model.edges_, model.counts_, strict=True):
        at, sums, noise = grouped(edges, counts, model.counts_sd_, _REPORTED)
        rows = [[f"{at[i]:g} – {at[i + 1]:g}", f"{floor(total):,}"] for i, total in enumerate(sums)]
        tables.append({"head": [name, f"records ± {figure(noise, 2)}"], "rows": rows})
    caption = "Counts as they were released, with 95 % bands of privacy noise; a count can come out below zero."
    return {"caption": caption, "tables": tables}


def _histogram_quality(model: Any) -> dict[str, Any]:
    usual, noise = f"{model.releases_[0].n / model.counts_.shape[1]:,.0f}", figure(model.counts_sd_, 2)
    return {"lines": [f"Each count has a privacy noise of ± {noise}; a bin holds {usual} records on average."]}


def _spread_noise(model: Any) -> tuple[Values, Values]:
    """Noise of the standard deviations and of the correlations, to first order; NaN where a variance came out as zero.

    Takes the noise of the covariances as independent; they share that of the means, which is a small part of it.
    """
    variance = np.diag(model.covariance_)
    spread = np.sqrt(np.where(variance > 0, variance, np.nan))
    own = np.diag(model.covariance_sd_) / spread**2
    correlation = model.correlation_ / 2
    parts = model.covariance_sd_ / np.outer(spread, spread), correlation * own, correlation * own[:, None]
    return own * spread / 2, np.sqrt(sum(part**2 for part in parts))


def _covariance_numbers(model: Any) -> dict[str, Any]:
    names, spreads = column_names(model), np.sqrt(np.diag(model.covariance_))
    spread_sd, correlation_sd = _spread_noise(model)
    np.fill_diagonal(correlation_sd, 0.0)  # of a correlation of 1
    return {
        **mean_numbers(model),
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


def _known(sd: float) -> float | None:
    return None if np.isnan(sd) else float(sd)


def _covariance_tables(model: Any) -> "RenderableType":
    from rich.console import Group
    from rich.text import Text

    names = column_names(model)
    spread_sd, correlation_sd = _spread_noise(model)
    found = ["0" if np.isnan(sd) else measured(model.covariance_[j, j] ** 0.5, sd) for j, sd in enumerate(spread_sd)]
    spreads = table(
        *_MEAN, _SPREAD, rows=[[*row, spread] for row, spread in zip(_mean_rows(model), found, strict=True)]
    )
    if len(names) == 1:
        return spreads

    # the table is symmetric: values below the diagonal, their noise above it
    above = correlation_sd[np.triu_indices(len(names), 1)]
    digits = min(max(digits_beside(float(np.nanmin(above))), 2), 6) if np.isfinite(above).any() else 2
    correlations = table("correlation", *names)
    for i, name in enumerate(names):
        values = [f"{value:z.{digits}f}" for value in model.correlation_[i, :i]]
        noise = ["" if np.isnan(sd) else f"± {sd:.{digits}f}" for sd in correlation_sd[i, i + 1 :]]
        correlations.add_row(name, *values, "1", *noise)
    return Group(spreads, Text(""), correlations)


def _correlation_page(model: Any) -> dict[str, Any]:
    page, numbers = _mean_page(model), _covariance_numbers(model)
    (means,) = page["tables"]
    means["head"].append(_SPREAD)
    for row, one in zip(means["rows"], numbers["standard_deviation"].values(), strict=True):
        row.append(measured(one["value"], one["noise_sd"]) if one["noise_sd"] else "0")
    caption = "Correlations: blue for columns that rise together, orange where one falls as the other rises."
    return {"caption": caption, "tables": [means, _correlation_table(numbers)]}


def _correlation_table(numbers: dict[str, Any]) -> dict[str, Any]:
    names, noise = numbers["columns"], numbers["correlation_noise_sd"]
    rows = []
    for i, j in combinations(range(min(len(names), _MOST_PAIRED)), 2):
        value, sd = numbers["correlation"][i][j], noise[i][j]
        rows.append([f"{names[i]} and {names[j]}", f"{value:z.2f}" if sd is None else measured(value, max(sd, 1e-3))])
    return {"head": ["columns", "correlation ±"], "rows": rows}


def _columns(one: str, several: str) -> Callable[[Any], str]:
    return lambda model: f"{one if model.n_features_in_ == 1 else several} of"


MEAN = Model(
    "PrivateMean",
    mean_numbers,
    lambda model: table(*_MEAN, rows=_mean_rows(model)),
    _mean_page,
    _mean_quality,
    notes=mean_notes,
    title=_columns("Mean", "Means"),
)
HISTOGRAM = Model(
    "PrivateHistogram",
    _histogram_numbers,
    _histogram_chart,
    _histogram_page,
    _histogram_quality,
    _histogram_remarks,
    title=_columns("Histogram", "Histograms"),
)
COVARIANCE = Model(
    "PrivateCovariance",
    _covariance_numbers,
    _covariance_tables,
    _correlation_page,
    _mean_quality,
    remarks=lambda model: ["The ± of standard deviations and correlations is approximate."],
    notes=mean_notes,
    title=_columns("Means and correlations", "Means and correlations"),
)
