"""Parts of a mixture for people and for machines, and what they imply for each column. Computed from releases only."""

from typing import TYPE_CHECKING, Any

import numpy as np

from reticent.apps.figures import column_names, digits_beside, measured
from reticent.apps.terminal import table

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = [
    "column_rows",
    "mixture_notes",
    "mixture_numbers",
    "mixture_remarks",
    "mixture_tables",
    "part_rows",
    "weights_noise",
]

_SHOWN = 8  # columns of a table on a terminal


def mixture_numbers(model: Any) -> dict[str, Any]:
    """All that was found, as plain values."""
    return {
        "columns": column_names(model),
        "components": model.n_components_,
        "weights": model.weights_.tolist(),
        "means": model.means_.tolist(),
        "covariances": model.covariances_.tolist(),
        "weights_noise_sd": weights_noise(model),
    }


def weights_noise(model: Any) -> float:
    """Standard deviation of the privacy noise of each weight, by the last release of counts; 0 for one part."""
    told = [one for one in model.releases_ if one.statistic["name"] == "ResidualMoments"]
    return float(told[-2].sd[0]) / told[-2].n if model.n_components_ > 1 and len(told) > 1 else 0.0


def part_rows(model: Any, most: int | None = None) -> tuple[list[str], list[list[str]]]:
    """Headings and rows: each part's share, and its mean ± standard deviation in each column."""
    names = column_names(model)[:most]
    rows = []
    for k in np.argsort(-model.weights_):
        spread = np.sqrt(np.diag(model.covariances_[k]))
        cells = [measured(m, s) for m, s in zip(model.means_[k], spread, strict=True)]
        rows.append([f"{100 * model.weights_[k]:.1f} %", *cells[: len(names)]])
    return ["share", *names], rows


def column_rows(model: Any) -> list[list[str]]:
    """For each column mean and standard deviation, by the mixture and by one normal law for all, released apart from it."""
    mean = model.weights_ @ model.means_
    away = model.means_ - mean
    second = np.diagonal(model.covariances_, axis1=1, axis2=2) + away**2
    spread, pooled = np.sqrt(model.weights_ @ second), np.sqrt(np.diag(model.pooled_covariance_))
    numbers = zip(column_names(model), mean, model.pooled_mean_, spread, pooled, strict=True)
    return [[name, *(f"{value:,.{digits_beside(values[-1] / 10)}f}" for value in values)] for name, *values in numbers]


def mixture_tables(model: Any) -> "RenderableType":
    """Parts, with the first columns, and what they imply."""
    head, rows = part_rows(model, _SHOWN)
    shown = table(*head)
    for row in rows:
        shown.add_row(*row)
    return shown


def mixture_remarks(model: Any) -> list[str]:
    """How to read the table, and what was left out."""
    said = ["Each part: its share of the records, and in each column its mean ± the standard deviation of its records."]
    if model.n_components_ < model._params["n_components"]:
        said.append(
            f"{model._params['n_components']} components were asked for; the noise at this budget carries {model.n_components_}, "
            "or one normal law fitted the records better."
        )
    if model.n_features_in_ > _SHOWN:
        said.append(f"The first {_SHOWN} of {model.n_features_in_} columns are shown: all are in --json.")
    return said


def mixture_notes(model: Any) -> list[str]:
    """Results that say next to nothing."""
    spread = np.sqrt(np.diagonal(model.covariances_, axis1=1, axis2=2).max(axis=0))
    low, high = np.array(model.releases_[0].bounds.x).T
    if not (spread > (high - low) / 2).all():
        return []
    return ["the parts are as wide as the ranges: the budget (--epsilon) is too small for so few records."]
