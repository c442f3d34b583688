"""Clusters, factors and principal components as people see them: tables, words, and the numbers that new records get."""

from dataclasses import replace
from math import isqrt
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from reticent.apps.columns import mean_notes, mean_numbers
from reticent.apps.figures import column_names, counted, measured, printable
from reticent.apps.shown import Model
from reticent.apps.terminal import compact, table

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = [
    "CLUSTERS",
    "COMPONENTS",
    "FACTORS",
    "cluster_notes",
    "image_side",
    "loadings",
    "placed",
    "placed_names",
    "placed_words",
]

Values = NDArray[np.float64]
_LEAST_IMAGE, _MOST_IMAGE = 25, 400  # pixels
_SHOWN = 12  # rows or columns of a table on a terminal
_NAMED = 4  # columns that are named when a factor is told
_STRONG = 0.3  # correlation of a factor with a column, to be named


def _cluster_numbers(model: Any) -> dict[str, Any]:
    names = column_names(model)
    clusters = zip(model.cluster_centers_.tolist(), model.cluster_sizes_, model.cluster_sizes_sd_, strict=True)
    return {
        "clusters": [
            {"center": dict(zip(names, centre, strict=True)), "records": float(size), "noise_sd": float(sd)}
            for centre, size, sd in clusters
        ]
    }


def _cluster_rows(model: Any) -> tuple[list[str], list[list[str]]]:
    names = column_names(model)
    rows = []
    for k, (centre, size, sd) in enumerate(
        zip(model.cluster_centers_, model.cluster_sizes_, model.cluster_sizes_sd_, strict=True)
    ):
        rows.append([str(k), measured(float(size), max(float(sd), 1.0)), *(f"{value:.4g}" for value in centre)])
    return ["cluster", "records ± privacy noise", *names], rows


def _cluster_table(model: Any) -> "RenderableType":
    head, rows = _cluster_rows(model)
    return table(*head[: 2 + _SHOWN], rows=[row[: 2 + _SHOWN] for row in rows])


def cluster_notes(model: Any) -> list[str]:
    """Clusters that the noise may have made up."""
    small = [str(k) for k, size in enumerate(model.cluster_sizes_) if size < 3 * model.cluster_sizes_sd_[k]]
    if not small:
        return []
    which = f"cluster {small[0]} has" if len(small) == 1 else f"clusters {', '.join(small)} have"
    return [
        f"{which} no more records than the noise could make up: take fewer clusters (--n-clusters), or a larger budget."
    ]


def _cluster_title(model: Any) -> str:
    return f"{len(model.cluster_centers_)} clusters of" if len(model.cluster_centers_) > 1 else "One cluster of"


def _cluster_page(model: Any) -> dict[str, Any]:
    head, rows = _cluster_rows(model)
    caption = "Where the centre of each cluster lies in each column’s range."
    if model.n_features_in_ == 2:
        shown = any(one.statistic["name"] == "GridCounts" for one in model.releases_)
        ground = "; the ground shows the noisy counts that were released" if shown else ""
        caption = f"The clusters on a map: numbers are the centres, lines the borders between them{ground}."
    words = [f"distances count on the scale of the ranges: {len(rows)} centres, the one with most records is 0"]
    return {"caption": caption, "tables": [{"head": head, "rows": rows}], "words": words}


def _cluster_quality(model: Any) -> dict[str, Any]:
    share = compact(float(np.max(model.cluster_sizes_sd_)) / model.releases_[0].n, 2)
    return {"lines": [f"The privacy noise in the number of records of a cluster is ± {share} of all, or less."]}


def image_side(model: Any) -> int:
    """How many pixels wide the factors are, if the columns can be the pixels of an image; else 0."""
    side, ranges = isqrt(model.n_features_in_), model.releases_[0].bounds.x
    fits = side * side == len(ranges) and _LEAST_IMAGE <= len(ranges) <= _MOST_IMAGE and len(set(ranges)) == 1
    return side if fits else 0


def loadings(model: Any) -> Values:
    """How each factor or component goes along with each column: correlations, a row for each."""
    if hasattr(model, "noise_variance_"):
        return np.asarray(model.components_ / np.sqrt(np.diag(model.get_covariance())))
    along = model.components_ * np.sqrt(model.explained_variance_)[:, None]
    return np.asarray(np.clip(along / model.column_std_, -1.0, 1.0))


def _factor_numbers(model: Any) -> dict[str, Any]:
    numbers = {
        **mean_numbers(model),
        "columns": column_names(model),
        "components": model.components_.tolist(),
        "loadings": loadings(model).tolist(),
    }
    if hasattr(model, "noise_variance_"):
        return {**numbers, "noise_variance": model.noise_variance_.tolist()}
    return {
        **numbers,
        "explained_variance": model.explained_variance_.tolist(),
        "explained_variance_ratio": model.explained_variance_ratio_.tolist(),
    }


def _short_names(model: Any) -> list[str]:
    kind = "factor" if hasattr(model, "noise_variance_") else "component"
    return [f"{kind} {k + 1}" for k in range(len(model.components_))]


def _loading_rows(model: Any) -> tuple[list[str], list[list[str]]]:
    found = loadings(model)
    rows = []
    for j, name in enumerate(column_names(model)):
        correlations = [f"{value:z.2f}".replace("-", "−") for value in found[:, j]]
        rows.append([name, measured(float(model.mean_[j]), float(model.mean_sd_[j])), *correlations])
    return ["column", "mean ± privacy noise", *_short_names(model)], rows


def _factor_tables(model: Any) -> "RenderableType":
    head, rows = _loading_rows(model)
    more = [[f"and {len(rows) - 2 * _SHOWN} more"]] if len(rows) > 2 * _SHOWN else []
    return table(*head[: 2 + _SHOWN], rows=[row[: 2 + _SHOWN] for row in rows[: 2 * _SHOWN]] + more)


def _factor_words(model: Any) -> list[str]:
    names, said = column_names(model), []
    shares = getattr(model, "explained_variance_ratio_", None)
    for k, (title, row) in enumerate(zip(_short_names(model), loadings(model), strict=True)):
        strongest = [j for j in np.argsort(-np.abs(row))[:_NAMED] if abs(row[j]) >= _STRONG]
        share = "" if shares is None else f" ({shares[k]:.0%} of the variance)"
        if strongest:
            along = ", ".join(f"{'more' if row[j] > 0 else 'less'} {names[j]}" for j in strongest)
            said.append(f"{title}{share}: {along}")
    return said[:_SHOWN]


def _factor_title(model: Any) -> str:
    kind = "factor" if hasattr(model, "noise_variance_") else "principal component"
    return f"{counted(len(model.components_), kind)} of"


def _factor_page(model: Any) -> dict[str, Any]:
    head, rows = _loading_rows(model)
    caption = "How each factor goes along with each column: blue for more, orange for less, the darker the closer."
    page = {"caption": caption, "tables": [{"head": head, "rows": rows}], "words": _factor_words(model)}
    if image_side(model):  # all of them are drawn
        page |= {"caption": f"{caption} Columns are drawn as the pixels of an image, row by row.", "remarks": []}
    return page


def _factor_quality(model: Any) -> dict[str, Any]:
    gram = model.releases_[-1]
    size = compact(float(gram.matrix_sd()[0, 0]) / gram.n / 2**0.5, 2)
    return {
        "lines": [f"The privacy noise in a correlation of two columns is about ± {size}, before small ones are shrunk."]
    }


def placed_names(model: Any) -> list[str]:
    """Names of what a new record is given."""
    if hasattr(model, "cluster_centers_"):
        return ["cluster", "cluster_distance"]
    return [name.replace(" ", "_") for name in _short_names(model)]


def placed(model: Any, block: Values) -> list[list[str]]:
    """The nearest cluster of each record and its distance; or its factors; as they are written."""
    found = model.transform(block)
    if hasattr(model, "cluster_centers_"):
        return [[str(int(row.argmin())), f"{row.min():.4g}"] for row in found]
    return [[f"{value:.4g}" for value in row] for row in found]


def placed_words(model: Any) -> str:
    """Say what `placed` gives."""
    if hasattr(model, "cluster_centers_"):
        return (
            "cluster: the number of the nearest centre; cluster_distance: how far it is, in half-ranges of the columns."
        )
    first = printable(placed_names(model)[0])
    unit = "standard deviations" if hasattr(model, "noise_variance_") else "the columns' own units"
    return f"{first} and so on: what the model expects of the record, in {unit}."


CLUSTERS = Model(
    "KMeans",
    _cluster_numbers,
    _cluster_table,
    _cluster_page,
    _cluster_quality,
    notes=cluster_notes,
    title=_cluster_title,
    places=True,
)
FACTORS = Model(
    "FactorAnalysis",
    _factor_numbers,
    _factor_tables,
    _factor_page,
    _factor_quality,
    notes=mean_notes,
    title=_factor_title,
    places=True,
)
COMPONENTS = replace(FACTORS, estimator="PCA")
