"""What a regression on a private histogram says: as any regression, and its bins as they were released."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from reticent.apps.effects import regression_numbers, regression_remarks, regression_tables
from reticent.apps.figures import column_names, measured
from reticent.apps.terminal import table

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["Bars", "bars", "binned_numbers", "binned_remarks", "binned_tables"]

Values = NDArray[np.float64]
_ROWS = 24  # of a table of bins
_FAINT = 2.0  # standard deviations that a count must have above zero, for its mean to be drawn


@dataclass(frozen=True)
class Bars:
    """The bins of one input as they were released: heights, in units of the curve, and standard deviations of their noise.

    NaN for means of bins whose count does not stand out from its noise.
    """

    edges: Values
    height: Values
    sd: Values


def bars(model: Any) -> Bars | None:
    """The bins of a model with one input and no regions; None for others."""
    if not hasattr(model, "bins_") or model.n_features_in_ != 1 or model._params["regions"] is not None:
        return None
    edges = model.edges_[0]
    if model.kind == "count":
        width = np.diff(edges)
        return Bars(edges, model.counts_ / width, model.counts_sd_ / width)
    ((low, high),) = model.releases_[0].bounds.y
    middle = low / 2 + high / 2
    counts = np.where(model.counts_ > np.maximum(_FAINT * model.counts_sd_, 0.5), model.counts_, np.nan)
    mean = model.sums_ / counts
    return Bars(edges, middle + mean, np.hypot(model.sums_sd_, mean * model.counts_sd_) / counts)


def binned_numbers(model: Any) -> dict[str, Any]:
    """Give the bins, the effects, the kernel and the noise as plain values."""
    bins: dict[str, Any] = {
        "edges": {name: edges.tolist() for name, edges in zip(column_names(model), model.edges_, strict=True)},
        "counts": model.counts_.tolist(),
        "counts_noise_sd": model.counts_sd_.tolist(),
        "fitted": model.bins_.tolist(),
        "fitted_std": model.bins_sd_.tolist(),
    }
    if model.kind == "mean":
        bins |= {"sums_from_the_middle": model.sums_.tolist(), "sums_noise_sd": model.sums_sd_.tolist()}
    return {"kind": model.kind, "bins": bins, **regression_numbers(model)}


def binned_tables(model: Any) -> "RenderableType":
    """Lay out the bins of one input, or the effects of several."""
    from rich.console import Group
    from rich.text import Text

    parts: list[RenderableType] = [regression_tables(model)]
    if bars(model) is not None and len(model.bins_) <= _ROWS:
        what = "records" if model.kind == "count" else "mean"
        rows = table(column_names(model)[0], "released count ± noise", f"fitted {what} ±", left=1)
        edges = model.edges_[0]
        for i, (count, sd) in enumerate(zip(model.counts_, model.counts_sd_, strict=True)):
            exact = f"{count:,.0f}" if sd == 0 else measured(count, sd)
            rows.add_row(f"{edges[i]:g} – {edges[i + 1]:g}", exact, measured(model.bins_[i], model.bins_sd_[i]))
        parts = [rows, Text(""), *parts]
    return Group(*parts)


def binned_remarks(model: Any) -> list[str]:
    """Say how the tables are to be read."""
    said = []
    if model.kind == "count":
        said = [
            "The density is in records per unit of the inputs; the widest band is that of their number in one unit."
        ]
    if model.protect == "labels":
        said.append("Inputs are NOT protected: how many are in each bin is part of this release.")
    if (model.counts_ % 1 == 0.5).any():
        said.append("Counts end in .5 because noise is rounded down, by a half on average, which is added back.")
    if (model.counts_ < 0).any():
        said.append("Negative counts are noise around zero, shown as they were released.")
    return [*said, *regression_remarks(model)]
