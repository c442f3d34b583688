"""Parts of a mixture for people and for machines, and what they imply for each column. Computed from releases only."""

from typing import TYPE_CHECKING, Any

import numpy as np

from reticent.apps.attacker import percent
from reticent.apps.figures import column_names, counted, digits_beside, measured
from reticent.apps.shown import Model
from reticent.apps.terminal import table

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["MIXTURE"]

_SHOWN = 8  # columns of a table on a terminal


def _numbers(model: Any) -> dict[str, Any]:
    return {
        "columns": column_names(model),
        "components": model.n_components_,
        "weights": model.weights_.tolist(),
        "means": model.means_.tolist(),
        "covariances": model.covariances_.tolist(),
        "weights_noise_sd": _weights_noise(model),
    }


def _weights_noise(model: Any) -> float:
    """Standard deviation of the privacy noise of each weight, by the last release of counts; 0 for one part."""
    told = [one for one in model.releases_ if one.statistic["name"] == "ResidualMoments"]
    return float(told[-2].sd[0]) / told[-2].n if model.n_components_ > 1 and len(told) > 1 else 0.0


def _parts(model: Any, most: int | None = None) -> dict[str, Any]:
    """A table: each part's share, and its mean ± standard deviation in each column."""
    names, rows = column_names(model)[:most], []
    for k in np.argsort(-model.weights_):
        spread = np.sqrt(np.diag(model.covariances_[k]))
        cells = [measured(m, s) for m, s in zip(model.means_[k], spread, strict=True)]
        rows.append([f"{100 * model.weights_[k]:.1f} %", *cells[: len(names)]])
    return {"head": ["share", *names], "rows": rows}


def _shown(model: Any) -> "RenderableType":
    few = _parts(model, _SHOWN)
    return table(*few["head"], rows=few["rows"])


def _column_rows(model: Any) -> list[list[str]]:
    """For each column mean and standard deviation, by the mixture and by one normal law for all, released apart from it."""
    mean = model.weights_ @ model.means_
    away = model.means_ - mean
    second = np.diagonal(model.covariances_, axis1=1, axis2=2) + away**2
    spread, pooled = np.sqrt(model.weights_ @ second), np.sqrt(np.diag(model.pooled_covariance_))
    numbers = zip(column_names(model), mean, model.pooled_mean_, spread, pooled, strict=True)
    return [[name, *(f"{value:z,.{digits_beside(values[-1] / 10)}f}" for value in values)] for name, *values in numbers]


def _remarks(model: Any) -> list[str]:
    said = ["Each part: its share of the records, and in each column its mean ± the standard deviation of its records."]
    if model.n_components_ < model._params["n_components"]:
        said.append(
            f"{model._params['n_components']} components were asked for; the noise at this budget carries {model.n_components_}, "
            "or one normal law fitted the records better."
        )
    if model.n_features_in_ > _SHOWN:
        said.append(f"The first {_SHOWN} of {model.n_features_in_} columns are shown: all are in --json.")
    return said


def _notes(model: Any) -> list[str]:
    spread = np.sqrt(np.diagonal(model.covariances_, axis1=1, axis2=2).max(axis=0))
    low, high = np.array(model.releases_[0].bounds.x).T
    if not (spread > (high - low) / 2).all():
        return []
    return ["the parts are as wide as the ranges: the budget (--epsilon) is too small for so few records."]


def _page(model: Any) -> dict[str, Any]:
    caption = (
        "Each part as an ellipse that holds 86 % of it, drawn thicker where it has more records; its mean is a dot."
    )
    return {"caption": caption, "tables": [_parts(model)]}


def _quality(model: Any) -> dict[str, Any]:
    """How far off the parts can be: what they imply for each column, beside what was released of it otherwise."""
    head = ["column", "mean, mixture", "mean, all", "standard deviation, mixture", "standard deviation, all"]
    several = model.n_components_ > 1
    told = [f"Each share has a privacy noise of ± {percent(_weights_noise(model))}."] if several else []
    compared = (
        "Released twice: what the mixture implies for each column, and one normal law for all, from the first stage."
    )
    return {"tables": [{"head": head, "rows": _column_rows(model)}], "lines": [*told, compared]}


MIXTURE = Model(
    "GaussianMixture",
    _numbers,
    _shown,
    _page,
    _quality,
    _remarks,
    _notes,
    lambda model: f"Mixture of {counted(model.n_components_, 'normal law')} for",
    covers="The ± is how far records of a part spread; privacy noise and this are not in it.",
)
