"""Released counts of the columns: how many records fall into each bin, or have each word."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from reticent.privacy.row_maps.input_marginals import InputCounts
from reticent.reporting.columns import Column, input_columns

if TYPE_CHECKING:
    from reticent.models.base import PrivateEstimator

__all__ = ["ReleasedCounts", "merge_bins", "released_counts"]

Values = NDArray[np.float64]


@dataclass(frozen=True)
class ReleasedCounts:
    """Noisy counts of one column in bins, (bins + 1,) edges in its codes and (bins,) counts.

    ``sd``: of the privacy noise of each count. ``by_value``: the bins are the column's categories.
    """

    column: Column
    edges: Values
    counts: Values
    sd: float
    by_value: bool = False

    def names(self) -> list[str]:
        """Write the bins: "F", or "10 – 20"."""
        column = self.column
        middles = (self.edges[1:] + self.edges[:-1]) / 2
        if self.by_value or (column.kind.levels is not None and _one_each(column, self.edges)):
            return [column.show(code) for code in middles]
        if column.kind.cells is not None:  # whole numbers, several together
            pairs = zip(np.ceil(self.edges[:-1]), np.ceil(self.edges[1:]) - 1, strict=True)
            return [
                column.show(first)
                if first == last
                else f"{column.show(first)} – {column.show(last)}"
                for first, last in pairs
            ]
        if column.is_date and (self.edges % 1 == 0).all():  # the first and the last day
            days = zip(self.edges[:-1], self.edges[1:] - 1, strict=True)
            return [
                column.show(first)
                if first == last
                else f"{column.show(first)} – {column.show(last)}"
                for first, last in days
            ]
        ends = [column.show(edge) for edge in self.edges]
        return [f"{ends[i]} – {ends[i + 1]}" for i in range(len(self.counts))]

    def merged(self, most: int) -> "ReleasedCounts":
        """Put neighbouring bins together until there are at most ``most``; words stay apart."""
        if self.by_value:
            return self
        edges, counts, sd = merge_bins(self.edges, self.counts, self.sd, most)
        return replace(self, edges=edges, counts=counts, sd=sd)

    @property
    def total(self) -> float:
        """Number of records that have a value, by these counts; at least one."""
        return max(float(self.counts.sum()), 1.0)


def merge_bins(edges: Values, counts: Values, sd: float, most: int) -> tuple[Values, Values, float]:
    """Put neighbouring bins of a histogram together until there are at most ``most``.

    Gives their edges, their sums, and the standard deviation of the noise of a sum.
    """
    size = -(-len(counts) // most)
    starts = np.arange(0, len(counts), size)
    return np.append(edges[starts], edges[-1]), np.add.reduceat(counts, starts), sd * size**0.5


def _one_each(column: Column, edges: Values) -> bool:
    return len(edges) - 1 == column.kind.cells


def released_counts(model: "PrivateEstimator") -> list[ReleasedCounts]:
    """Give what was counted of each column, for models that release it; else nothing."""
    if hasattr(model, "edges_") and hasattr(model, "counts_sd_") and not hasattr(model, "bins_"):
        return _histograms(model)
    return _input_counts(model)


def _histograms(model: "PrivateEstimator") -> list[ReleasedCounts]:
    found = []
    for column, edges, counts in zip(
        input_columns(model), model.edges_, model.counts_, strict=True
    ):
        one = ReleasedCounts(column, np.asarray(edges), np.asarray(counts), model.counts_sd_)
        found.append(_by_value(one))
    return found


def _input_counts(model: "PrivateEstimator") -> list[ReleasedCounts]:
    """What a regression or classification has counted of its inputs; the mean of several times."""
    counted = [release for release in model.releases_ if release.is_of(InputCounts)]
    if not counted:
        return []
    columns = input_columns(model)
    value = np.mean([one.value for one in counted], axis=0)
    sd = float(counted[0].sd[0]) / len(counted) ** 0.5
    bins = counted[0].statistic.get("bins", len(value) // len(columns))
    sizes = np.broadcast_to(bins, len(columns))
    found = []
    for column, counts in zip(columns, np.split(value, np.cumsum(sizes)[:-1]), strict=True):
        edges = np.linspace(*column.kind.range, len(counts) + 1)
        found.append(_by_value(ReleasedCounts(column, edges, counts, sd)))
    return found


def _by_value(found: ReleasedCounts) -> ReleasedCounts:
    """Counts of the categories, where each has a bin of its own."""
    column = found.column
    codes = column.categories
    if codes is None:
        return found
    place = np.searchsorted(found.edges, codes, side="right") - 1
    if len(np.unique(place)) < len(codes):
        return found
    edges = np.append(codes - 0.5, codes[-1] + 0.5)
    return ReleasedCounts(column, edges, found.counts[place], found.sd, by_value=True)
