"""Counts, means, rates and quantiles by group, with differential privacy. Proof: table.md.

One release holds all cells of the table and all that is told of them. Margins are sums of the
cells.
"""

from collections.abc import Callable
from dataclasses import dataclass
from dataclasses import replace as replaced
from itertools import product
from math import prod, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.errors import BadInput
from reticent.inference.linalg import project_onto_simplex
from reticent.inference.tables.cell_estimates import (
    CellDesign,
    cell_means,
    margin_sets,
    nonnegative_counts,
    overall_mean,
    summed,
)
from reticent.inference.tables.group_shrinkage import (
    MOST_CELLS,
    MOST_LEVELS,
    shrink_counts,
    shrink_means,
)
from reticent.models.base import PrivateEstimator
from reticent.models.descriptive.columns import missing_apart
from reticent.models.descriptive.histogram import quantile_of_bins
from reticent.models.descriptive.table_layout import (
    MARGIN,
    TableLayout,
    Wanted,
    layout_of,
    wanted,
)
from reticent.models.unit_total import unit_total
from reticent.number_kinds import Limit
from reticent.privacy.accounting.events import Laplace
from reticent.privacy.bounds import Bounds
from reticent.privacy.columns.dates import Date
from reticent.privacy.curator import Oracle
from reticent.privacy.row_maps.column_moments import stretch
from reticent.validation import check_integer

__all__ = ["PrivateTable", "TableCells"]

Array = NDArray[np.float64]
_MOST_BINS: Limit[int] = 1000  # of a value, for its quantiles


@dataclass(frozen=True, eq=False)
class TableCells:
    """The cells as they were released: unbiased, and not forced into any range.

    Arrays have an axis for each key. Estimates of one column are in its own units.

    Attributes
    ----------
    counts : array
        Noisy number of records.
    counts_sd : float
    present : dict of column → array
        Noisy number of records that have a value.
    present_sd : float
    sums : dict of column → array
        Noisy sum of the values.
    sums_sd : dict of column → float
        Noise of the sums.
    bins : dict of column → array
        Noisy counts in the bins of a value, along a last axis.
    bin_edges : dict of column → array
    """

    counts: Array
    counts_sd: float
    present: dict[str, Array]
    present_sd: float
    sums: dict[str, Array]
    sums_sd: dict[str, float]
    bins: dict[str, Array]
    bin_edges: dict[str, Array]


@dataclass(repr=False, eq=False)
class PrivateTable(PrivateEstimator):
    """Counts, means, rates, totals and quantiles by group, with differential privacy.

    Parameters
    ----------
    by : list of columns
        The keys, by name (or place, for arrays): words, yes and no, or whole numbers, whose values
        are the groups; or a pair (column, edges) for numbers and dates, such as
        ``("age", [0, 18, 65, 110])`` for the groups [0, 18), [18, 65) and [65, 110]. A record that
        lacks a key is in no cell. None: the whole table is one cell.
    count : bool
        Whether to tell the number of records of each cell.
    mean, total : list of columns
        Whose mean, or sum, to tell, over the records that have a value.
    rate : list of columns
        Columns of yes and no, whose share of yes to tell.
    quantile : list of columns, or dict of column → quantiles
        Whose quantiles to tell; the quartiles, if only the column is given.
    bins : int
        Into how many bins values are counted for their quantiles.
    smooth : bool
        Whether cells that the noise hides borrow from the others. Means and rates: an analysis of
        variance with Gaussian effects of each key's levels and of the cell, whose variances are
        learned with the noise of the release accounted for. Counts: drawn towards what independent
        keys would give. The margins stay as they are.
    bounds, epsilon, delta, ledger, dataset, records_per_person, random_state
        As for every private estimator (``PrivateEstimator``). ``delta=0`` gives pure ε-DP by
        Laplace noise.

    Attributes
    ----------
    table_ : list of dict
        One for each cell, empty ones included: the keys, then ``count``, ``stay_mean``,
        ``died_rate``, ``stay_total``, ``stay_q50``, …, each with the standard deviation of its
        privacy noise, ``count_sd``, …. Counts are not negative, and means, rates and quantiles lie
        in their range. ``pandas.DataFrame(model.table_)`` is a table.
    margins_ : list of dict
        The same for sums over keys, with "all" in place of those keys; the last one is the grand
        total. Counts of margins are sums of the counts of cells.
    cells_ : TableCells
        The numbers as they were released.
    guarantee_, releases_, n_features_in_, feature_names_in_
        As for every private estimator.

    Privacy
    -------
    Neighbours: one record replaced, number of records public. Released: of every cell the noisy
    sums, once. Must be public: the keys and their levels or edges, the bounds, the number of
    records, all parameters. Errors are those of the privacy noise: they say how far the numbers may
    be from those of the records themselves, and do not cover that these are a sample.

    Examples
    --------
    >>> import numpy as np, pandas as pd, reticent
    >>> rng = np.random.default_rng(0)
    >>> sex = rng.choice(["F", "M"], 5000)
    >>> frame = pd.DataFrame({"sex": sex, "stay": rng.uniform(0, 20, 5000)})
    >>> bounds = reticent.Bounds(x={"sex": ["F", "M"], "stay": (0, 60)})
    >>> table = reticent.PrivateTable(
    ...     by=["sex"], mean=["stay"], bounds=bounds, epsilon=1, delta=1e-6).fit(frame)
    >>> [row["sex"] for row in table.table_]
    ['F', 'M']
    >>> bool(abs(table.table_[0]["stay_mean"] - 10) < 1)
    True
    """

    by: Any = None
    count: bool = True
    mean: Any = None
    rate: Any = None
    total: Any = None
    quantile: Any = None
    bins: int = 20
    smooth: bool = False

    def _wanted(self) -> Wanted:
        return wanted(self.by, self.mean, self.rate, self.total, self.quantile)

    def _check(self) -> None:
        check_integer("bins", self.bins, 2, _MOST_BINS)
        for name in ("count", "smooth"):
            if not isinstance(getattr(self, name), (bool, np.bool_)):
                raise BadInput(
                    f"{name} must be True or False, not {getattr(self, name)!r}.", parameter=name
                )
        asked = self._wanted()
        if not self.count and not asked.averaged and not asked.quantile:
            raise BadInput(
                "Nothing is to be told of the cells: ask for count, mean, rate, total or quantile.",
                parameter="count",
            )

    def _bounds(self) -> Bounds:
        """Of the columns that are used, if all are named; outputs are columns like others."""
        bounds = super()._bounds()
        asked = self._wanted()
        if bounds.x_names is not None:
            known = dict(zip(bounds.x_names, bounds.x_kinds, strict=True))
            known |= dict(zip(bounds.y_names or (), bounds.y_kinds, strict=False))
            used = [column for column in asked.columns if column in known]
            if used and len(used) == len(asked.columns):
                keys = [column for column, _ in asked.keys]
                kinds = tuple(
                    known[str(column)]
                    if column in keys
                    else replaced(known[str(column)], keep_missing=False)
                    for column in used
                )
                names = tuple(map(str, used))
                bounds = bounds.inputs_alone().with_columns(kinds, names, None)
        return missing_apart(bounds, words=False)

    def _validate_before_charge(self, bounds: Bounds) -> object:
        layout = self._layout(bounds)
        if self.smooth:
            cells = prod(layout.shape)
            if cells > MOST_CELLS or sum(layout.shape) > MOST_LEVELS:
                raise BadInput(
                    f"smooth is for at most {MOST_CELLS:,} cells and {MOST_LEVELS} levels of all "
                    f"keys, not {cells:,} and {sum(layout.shape)}: leave it out.",
                    parameter="smooth",
                )
        return None

    def _layout(self, bounds: Bounds) -> TableLayout:
        return layout_of(self._wanted(), bounds, int(self.bins))

    def learn(self, curator: Oracle) -> None:
        """Release the sums of all cells at once; estimate cells and margins from them."""
        layout = self._layout(curator.bounds)
        statistic = layout.statistic(laplace=isinstance(curator.event, Laplace))
        release = curator.release(statistic)
        numbers = release.value[: statistic.own * statistic.cells]
        spreads = release.value[len(numbers) :] * sqrt(2)
        estimates = _Estimates(
            layout,
            numbers.reshape(statistic.own, -1),
            spreads,
            float(release.sd[-1]) * sqrt(2),
            float(release.sd[0]),
            unit_total(curator).most,
        )
        self.cells_ = estimates.cells()
        self.keys_ = {key.name: list(key.labels) for key in layout.keys}
        columns = estimates.columns(count=bool(self.count), smooth=bool(self.smooth))
        self.table_, self.margins_ = _rows(layout, columns)


class _Estimates:
    """Least-squares estimates of the cells of one release."""

    def __init__(
        self,
        layout: TableLayout,
        numbers: Array,
        spreads: Array,
        spreads_sd: float,
        sd: float,
        most: float,
    ) -> None:
        self.layout = layout
        self.keys = len(layout.keys)
        bins = tuple(len(edges) - 1 for edges in layout.bin_edges)
        self.design = CellDesign(layout.count_weight, len(layout.averaged), bins)
        theta, self.covariance = self.design.estimate(numbers)
        self.theta = theta.reshape(-1, *layout.shape)
        self.variance = sd**2
        self.spreads = spreads  # Σ(1 − v²) of each averaged value; nothing with Laplace noise
        self.spreads_sd = spreads_sd
        self.most = most  # what the total weight cannot exceed

    def counts_sd(self) -> float:
        """Noise of the number of records of one cell."""
        return float(np.sqrt(self.covariance[0, 0] * self.variance))

    def units(self, place: int) -> tuple[float, float]:
        """Middle and half-width of a column: its values are middle + half·m, m ∈ [−1, 1]."""
        kind = self.layout.bounds.x_kinds[place]
        low, high = kind.range
        return (low + high) / 2, (high - low) / 2 / stretch(kind)

    def block(self, value: int) -> tuple[Array, Array, Array]:
        """S and P of an averaged value, and their covariance (2, 2) by that of one number."""
        at = self.design.present(value)
        order = np.array([at + 1, at])
        return self.theta[at + 1], self.theta[at], self.covariance[np.ix_(order, order)]

    def cells(self) -> TableCells:
        """All that was released, in the columns' own units."""
        layout = self.layout
        present = {}
        sums = {}
        sums_sd = {}
        present_sd = self.counts_sd()
        for value, place in enumerate(layout.averaged):
            name = layout.name(place)
            middle, half = self.units(place)
            total, number, covariance = self.block(value)
            present[name] = number
            present_sd = float(np.sqrt(covariance[1, 1] * self.variance))
            sums[name] = middle * number + half * total
            weights = np.array([half, middle])
            sums_sd[name] = float(np.sqrt(weights @ covariance @ weights * self.variance))
        bins = {}
        edges = {}
        for value, (place, _) in enumerate(layout.quantile):
            counts = self.theta[self.design.binned(value)]
            bins[layout.name(place)] = np.moveaxis(counts, 0, -1)
            edges[layout.name(place)] = np.array(layout.bin_edges[value])
        return TableCells(
            self.theta[0], self.counts_sd(), present, present_sd, sums, sums_sd, bins, edges
        )

    def columns(self, *, count: bool, smooth: bool) -> list["_Column"]:
        """The numbers of cells and margins, one column of the table after the other."""
        found = []
        if count:
            found.append(self._counts(smooth=smooth))
        layout = self.layout
        for value, place in enumerate(layout.averaged):
            if place in layout.mean or place in layout.rate:
                found += self._means(value, place, smooth=smooth)
            if place in layout.total:
                found.append(self._totals(value, place))
        for value, (place, levels) in enumerate(layout.quantile):
            found += [self._quantiles(value, place, q) for q in levels]
        return found

    def _counts(self, *, smooth: bool) -> "_Column":
        sd = self.counts_sd()
        released = self.theta[0]
        # there are not more than that in all
        released = released - max(float(released.sum()) - self.most, 0.0) / released.size
        counts = nonnegative_counts(released)
        spread = np.full(self.layout.shape, sd)
        if smooth:
            counts, spread = shrink_counts(released, sd**2)

        if counts.sum() > self.most:  # which negative cells, put to zero, have lifted it to
            shares = project_onto_simplex(counts.ravel() / self.most)
            counts = self.most * shares.reshape(counts.shape)

        def margin(kept: tuple[int, ...]) -> tuple[Array, Array]:
            value = summed(counts, kept, self.keys)
            return value, np.full(value.shape, sd * np.sqrt(counts.size / value.size))

        return _Column("count", counts, spread, margin, float)

    def _means(self, value: int, place: int, *, smooth: bool) -> list["_Column"]:
        middle, half = self.units(place)
        total, present, covariance = self.block(value)
        overall = overall_mean(total, present, covariance, self.variance)

        def margin(kept: tuple[int, ...]) -> tuple[Array, Array]:
            sums = summed(total, kept, self.keys)
            numbers = summed(present, kept, self.keys)
            variance = self.variance * total.size / sums.size
            mean, sd = cell_means(sums, numbers, covariance, variance, overall)
            return middle + half * mean, half * sd

        cells, spread = margin(tuple(range(self.keys)))
        if smooth:
            records = nonnegative_counts(present)
            within = self._within(value, overall)
            mean, sd = shrink_means(
                total, present, records, covariance, self.variance, within, overall
            )
            cells = middle + half * mean
            spread = half * sd
        name = self.layout.name(place)
        kind = self.layout.bounds.x_kinds[place]
        show: Callable[[float], Any] = kind.show if isinstance(kind, Date) else float
        found = []
        if place in self.layout.mean:
            found.append(_Column(f"{name}_mean", cells, spread, margin, show))
        if place in self.layout.rate:
            found.append(_Column(f"{name}_rate", cells, spread, margin, float))
        return found

    def _within(self, value: int, overall: float) -> tuple[float, float]:
        """Variance of an averaged value about the overall mean, and its standard error.

        With Laplace noise the largest possible.
        """
        most = 1 - overall**2
        if not len(self.spreads):
            return most, 0.0
        number = max(float(self.block(value)[1].sum()), 1.0)
        found = most - float(self.spreads[value]) / number
        return float(np.clip(found, 0.0, most)), self.spreads_sd / number

    def _totals(self, value: int, place: int) -> "_Column":
        name = self.layout.name(place)
        raw = self.cells()
        low, _ = self.layout.bounds.x_kinds[place].output_range

        cells = raw.sums[name]
        if low >= 0:
            cells = nonnegative_counts(cells)

        def margin(kept: tuple[int, ...]) -> tuple[Array, Array]:
            sums = summed(cells, kept, self.keys)
            sd = raw.sums_sd[name] * np.sqrt(raw.counts.size / sums.size)
            return sums, np.full(sums.shape, sd)

        return _Column(f"{name}_total", *margin(tuple(range(self.keys))), margin, float)

    def _quantiles(self, value: int, place: int, q: float) -> "_Column":
        kind = self.layout.bounds.x_kinds[place]
        edges = np.array(self.layout.bin_edges[value])
        some = self.design.binned(value)
        counts = self.theta[some]
        covariance = self.covariance[some, some]

        def margin(kept: tuple[int, ...]) -> tuple[Array, Array]:
            sums = summed(counts, kept, self.keys)
            flat = sums.reshape(len(sums), -1)
            cells = counts[0].size / flat.shape[1]
            found = [
                _quantile(column, edges, q, covariance * (self.variance * cells))
                for column in flat.T
            ]
            values, sds = np.array(found).T
            return values.reshape(sums.shape[1:]), sds.reshape(sums.shape[1:])

        def show(code: float) -> Any:
            if kind.cells is not None:
                code = float(np.clip(np.floor(code + 0.5), edges[0] + 0.5, edges[-1] - 0.5))
            return kind.values(np.array([code]))[0]

        name = f"{self.layout.name(place)}_q{100 * q:g}"
        return _Column(name, *margin(tuple(range(self.keys))), margin, show)


def _quantile(counts: Array, edges: Array, q: float, covariance: Array) -> tuple[float, float]:
    """The q-quantile of noisy counts in bins, and its standard deviation.

    Half the distance between the quantiles one standard deviation of F(quantile) to either side.
    """
    total = max(float(counts.sum()), 1.0)
    p = project_onto_simplex(counts / total)
    value = quantile_of_bins(p, edges, q)
    below = (edges[1:] <= value) - q
    noise = float(np.sqrt(below @ covariance @ below)) / total
    low = quantile_of_bins(p, edges, max(q - noise, 0.0))
    high = quantile_of_bins(p, edges, min(q + noise, 1.0))
    width = float(edges[1] - edges[0]) / 12**0.5
    return value, max((high - low) / 2, width / 2)


@dataclass(frozen=True)
class _Column:
    """One number of each cell, its noise, the same of margins, and how it is written."""

    name: str
    cells: Array
    sd: Array  # of the privacy noise in the cells
    margin: Callable[[tuple[int, ...]], tuple[Array, Array]]
    show: Callable[[float], Any]


def _rows(
    layout: TableLayout, columns: list[_Column]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The table and its margins, a dict for each row."""
    everything = tuple(range(len(layout.keys)))
    cells = _rows_of(layout, everything, [(one, one.cells, one.sd) for one in columns])
    margins = []
    for kept in margin_sets(len(layout.keys)):
        margins += _rows_of(layout, kept, [(one, *one.margin(kept)) for one in columns])
    return cells, margins


def _rows_of(
    layout: TableLayout, kept: tuple[int, ...], columns: list[tuple[_Column, Array, Array]]
) -> list[dict[str, Any]]:
    groups = [
        layout.keys[key].labels if key in kept else (MARGIN,) for key in range(len(layout.keys))
    ]
    flat = [(one, values.ravel(), sds.ravel()) for one, values, sds in columns]
    rows = []
    for i, labels in enumerate(product(*groups)):
        row: dict[str, Any] = {
            key.name: label for key, label in zip(layout.keys, labels, strict=True)
        }
        for one, values, sds in flat:
            row[one.name] = one.show(float(values[i]))
            row[f"{one.name}_sd"] = float(sds[i])
        rows.append(row)
    return rows
