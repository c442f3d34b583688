"""What each model's results look like, for people and for machines. One entry per model in ``MODELS``.

Everything shown here is computed from releases; nothing reads a record.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import floor
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from reticent.apps.binned import binned_numbers, binned_remarks, binned_tables
from reticent.apps.chances import class_notes, class_numbers, class_remarks, class_tables
from reticent.apps.effects import (
    label_remarks,
    regression_notes,
    regression_numbers,
    regression_remarks,
    regression_tables,
)
from reticent.apps.figures import column_names, digits_beside, measured
from reticent.apps.parts import mixture_notes, mixture_numbers, mixture_remarks, mixture_tables
from reticent.apps.structure import cluster_notes, cluster_numbers, cluster_table, factor_numbers, factor_tables
from reticent.apps.terminal import table
from reticent.errors import BadInput

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["MODELS", "Model", "model_of"]

Values = NDArray[np.float64]

_ROWS = 20  # of a bar chart; finer histograms are shown in groups of bins
_BAR = 36


@dataclass(frozen=True)
class Model:
    """One word of ``reticent fit``: the class behind it, and its results."""

    estimator: str
    numbers: Callable[[Any], dict[str, Any]]
    show: Callable[[Any], "RenderableType"]
    remarks: Callable[[Any], list[str]] = lambda model: []
    notes: Callable[[Any], list[str]] = lambda model: []  # on results that say next to nothing
    covers: str = "The ± covers the privacy noise only, not this."
    outputs: bool = False  # whether it predicts a column from others
    labels: bool = False  # and whether that holds labels


def model_of(estimator: Any) -> Model:
    """Find the entry of a fitted estimator."""
    while hasattr(estimator, "model"):  # of which it may be one output, or which a search has found
        estimator = estimator.model
    for model in MODELS.values():
        if model.estimator == type(estimator).__name__:
            return model
    name = type(estimator).__name__
    raise BadInput(f"Reports and the command line have no {name} yet: use it from Python, reticent.load(…).predict(…).")


def _mean_numbers(model: Any) -> dict[str, Any]:
    columns = zip(column_names(model), model.mean_.tolist(), model.mean_sd_.tolist(), strict=True)
    return {"mean": {name: {"value": value, "noise_sd": sd} for name, value, sd in columns}}


def _mean_table(model: Any) -> "RenderableType":
    rows = table("column", "mean ± privacy noise")
    for name, value, sd in zip(column_names(model), model.mean_, model.mean_sd_, strict=True):
        rows.add_row(name, measured(value, sd))
    return rows


def _mean_notes(model: Any) -> list[str]:
    low, high = np.array(model.releases_[0].bounds.x).T
    if not (model.mean_sd_ > (high - low) / 2).all():
        return []
    return [
        "the noise in every mean is larger than half its range: the budget (--epsilon) is too small for so few records, and "
        "the results say next to nothing."
    ]


def _histogram_numbers(model: Any) -> dict[str, Any]:
    columns = zip(column_names(model), model.edges_.tolist(), model.counts_.tolist(), strict=True)
    return {
        "noise_sd": model.counts_sd_,
        "histogram": {name: {"edges": edges, "counts": counts} for name, edges, counts in columns},
    }


def _histogram_chart(model: Any) -> "RenderableType":
    from rich.console import Group
    from rich.text import Text

    group = -(-model.counts_.shape[1] // _ROWS)
    noise = model.counts_sd_ * group**0.5
    charts: list[RenderableType] = []
    for name, edges, counts in zip(column_names(model), model.edges_, model.counts_, strict=True):
        starts = range(0, len(counts), group)
        sums = [float(counts[i : i + group].sum()) for i in starts]
        most = max(max(sums), 1.0)
        rows = table(name, f"count ± {noise:,.0f}" if noise >= 1 else f"count ± {noise:.1g}", "", left=1)
        rows.columns[2].justify = "left"
        for i, total in zip(starts, sums, strict=True):
            label = f"{edges[i]:g} – {edges[min(i + group, len(counts))]:g}"
            # a released count is a whole number plus 1/2, which would always be rounded to an even one
            rows.add_row(label, f"{floor(total):,}", Text("█" * round(max(total, 0) / most * _BAR), style="cyan"))
        charts += [rows, Text("")]
    return Group(*charts[:-1])


def _histogram_remarks(model: Any) -> list[str]:
    if (model.counts_ >= 0).all():
        return []
    return ["Negative counts are noise around zero, shown as they were released."]


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


def _covariance_remarks(model: Any) -> list[str]:
    return ["The ± of standard deviations and correlations is approximate."]


def _covariance_numbers(model: Any) -> dict[str, Any]:
    names, spreads = column_names(model), np.sqrt(np.diag(model.covariance_))
    spread_sd, correlation_sd = _spread_noise(model)
    np.fill_diagonal(correlation_sd, 0.0)  # of a correlation of 1
    return {
        **_mean_numbers(model),
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
    spreads = table("column", "mean ± privacy noise", "standard deviation ±")
    for j, name in enumerate(names):
        spread = "0" if np.isnan(spread_sd[j]) else measured(model.covariance_[j, j] ** 0.5, spread_sd[j])
        spreads.add_row(name, measured(model.mean_[j], model.mean_sd_[j]), spread)
    if len(names) == 1:
        return spreads

    # the table is symmetric: values below the diagonal, their noise above it
    above = correlation_sd[np.triu_indices(len(names), 1)]
    digits = min(max(digits_beside(float(np.nanmin(above))), 2), 6) if np.isfinite(above).any() else 2
    correlations = table("correlation", *names)
    for i, name in enumerate(names):
        values = [f"{value:.{digits}f}" for value in model.correlation_[i, :i]]
        noise = ["" if np.isnan(sd) else f"± {sd:.{digits}f}" for sd in correlation_sd[i, i + 1 :]]
        correlations.add_row(name, *values, "1", *noise)
    return Group(spreads, Text(""), correlations)


_FUNCTION = (
    "The ± is one standard deviation of the function: the model's own doubt and the privacy noise, but not this."
)
MODELS = {
    "mean": Model("PrivateMean", _mean_numbers, _mean_table, notes=_mean_notes),
    "mixture": Model(
        "GaussianMixture",
        mixture_numbers,
        mixture_tables,
        mixture_remarks,
        mixture_notes,
        covers="The ± is how far records of a part spread; privacy noise and this are not in it.",
    ),
    "histogram": Model("PrivateHistogram", _histogram_numbers, _histogram_chart, _histogram_remarks),
    "covariance": Model("PrivateCovariance", _covariance_numbers, _covariance_tables, _covariance_remarks, _mean_notes),
    "gp": Model(
        "GPRegressor",
        regression_numbers,
        regression_tables,
        regression_remarks,
        regression_notes,
        covers=_FUNCTION,
        outputs=True,
    ),
    "gp-binned": Model(
        "BinnedGPRegressor",
        binned_numbers,
        binned_tables,
        binned_remarks,
        regression_notes,
        covers=_FUNCTION,
        outputs=True,
    ),
    "gp-labels": Model(
        "LabelGPRegressor",
        regression_numbers,
        regression_tables,
        label_remarks,
        regression_notes,
        covers=_FUNCTION,
        outputs=True,
    ),
    "classifier": Model(
        "GPClassifier",
        class_numbers,
        class_tables,
        class_remarks,
        class_notes,
        covers="The bands hold the model's own doubt and the privacy noise, but not this.",
        outputs=True,
        labels=True,
    ),
    "kmeans": Model("KMeans", cluster_numbers, cluster_table, notes=cluster_notes),
    "factors": Model("FactorAnalysis", factor_numbers, factor_tables, notes=_mean_notes),
    "components": Model("PCA", factor_numbers, factor_tables, notes=_mean_notes),
}
