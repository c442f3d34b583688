"""Regressions on a private histogram: as any regression, and their bins as they were released."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from reticent.reporting.formatting import format_with_error
from reticent.reporting.presenter import (
    SCREEN,
    Block,
    Json,
    Medium,
    Table,
)
from reticent.reporting.presenters.regression import BaseRegressionPresenter

if TYPE_CHECKING:
    from reticent.models.gp.binned_regressor import BinnedGPRegressor  # noqa: F401 (a parameter of the base)

    pass

__all__ = ["BinnedPresenter", "ReleasedBins"]

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
            fitted = "records"
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
                "The density is in records per unit of the inputs; the widest band "
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
