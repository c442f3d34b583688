"""Histograms of the columns, and their quantiles, with differential privacy. Proof: histogram.md.

All columns are counted in one release: replacing a record moves two counts by one in each column.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.errors import BadInput
from reticent.inference.linalg import project_onto_simplex
from reticent.models.base import PrivateEstimator
from reticent.models.descriptive.columns import column_name, missing_apart
from reticent.number_kinds import Limit
from reticent.privacy.bounds import Bounds
from reticent.privacy.curator import Oracle
from reticent.privacy.row_maps.column_moments import ColumnCounts
from reticent.validation import check_integer

__all__ = ["PrivateHistogram", "quantile_of_bins"]

_MOST_BINS: Limit[int] = 100_000  # of a column


@dataclass(repr=False, eq=False)
class PrivateHistogram(PrivateEstimator):
    """Histogram of each column, with differential privacy.

    A record that lacks a value is in no bin of that column, and counts in the others.

    Parameters
    ----------
    bins : int
        Number of equal bins of each column, between its bounds. Words have one bin for each level,
        whole numbers and dates one for each value or day, or for as many of them as make ``bins``
        bins at most.
    bounds, epsilon, delta, ledger, dataset, records_per_person, random_state
        As for every private estimator (``PrivateEstimator``). ``delta=0`` gives pure ε-DP by
        Laplace noise.

    Attributes
    ----------
    counts_ : array of shape (n_features, bins), or list of arrays (bins of the column,)
        The noisy counts as they were released: empty bins have noise too, and a count can be
        negative. They end in ½, which makes them unbiased: the noise is whole and rounded down.
        A list if columns differ in their number of bins.
    counts_sd_ : float
        Standard deviation of the privacy noise on each count.
    edges_ : array of shape (n_features, bins + 1), or list of arrays
        In the columns' own units; L levels are the bins between −½, ½, …, L − ½.
    levels_ : list of (list of str, or None)
        The levels of words; None for other columns.
    guarantee_, releases_, n_features_in_, feature_names_in_
        As for every private estimator.

    Privacy
    -------
    Neighbours: one record replaced, number of records public. Released: all counts of all columns,
    once, empty bins included. Must be public: the bounds, the number of bins and of records, all
    parameters. ``score`` reads the records it is given without protection.

    Examples
    --------
    >>> import numpy as np, reticent
    >>> ages = np.random.default_rng(0).uniform(20, 60, size=(10_000, 1))
    >>> bounds = reticent.Bounds(x=[(0, 110)])
    >>> model = reticent.PrivateHistogram(bins=11, bounds=bounds, epsilon=1, delta=1e-6).fit(ages)
    >>> bool(abs(model.quantile(0.5)[0] - 40) < 2)
    True
    """

    bins: int = 10

    def _check(self) -> None:
        check_integer("bins", self.bins, 2, _MOST_BINS)

    def _bounds(self) -> Bounds:
        return missing_apart(super()._bounds(), words=False)

    def learn(self, curator: Oracle) -> None:
        """Release all counts at once."""
        bounds = curator.bounds
        statistic = ColumnCounts(int(self.bins), bounds)
        release = curator.release(statistic)
        ends = np.cumsum(statistic.groups)[:-1]
        self.counts_ = _together(np.split(release.value, ends))
        self.counts_sd_ = float(release.sd[0])
        self.edges_ = _together([np.array(edges) for edges in statistic.edges])
        self.levels_ = [kind.levels and list(kind.levels) for kind in bounds.x_kinds]

    def probabilities(self) -> NDArray[np.float64] | list[NDArray[np.float64]]:
        """The counts as a probability per bin and column, among the records that have a value.

        The nearest point of the simplex, which removes negative counts.
        """
        return _together([_shares(counts) for counts in self.counts_])

    def quantile(self, q: float) -> NDArray[np.float64]:
        """The ``q``-quantile of each column, linear within a bin; NaN for words in no order.

        Of whole numbers and ordered words, the value or the position of the level itself.
        """
        if not 0 <= q <= 1:
            raise BadInput(f"q must be from 0 to 1, not {q!r}.")
        kinds = self.releases_[0].bounds.x_kinds
        if not any(kind.ordered and not kind.periodic for kind in kinds):
            names = ", ".join(column_name(self.releases_[0].bounds, j) for j in range(len(kinds)))
            raise BadInput(f"There is no quantile of {names}: the values have no order.")
        quantiles = []
        for kind, p, edges in zip(kinds, self.probabilities(), self.edges_, strict=True):
            if not kind.ordered or kind.periodic:
                quantiles.append(np.nan)
                continue
            place = quantile_of_bins(p, edges, q)
            if kind.cells is not None:
                low, high = kind.range
                place = float(np.clip(np.floor(place + 0.5), low + 0.5, high - 0.5))
            quantiles.append(place)
        return np.array(quantiles)

    def score_samples(self, X: object) -> NDArray[np.float64]:
        """Log-density of each record, summed over columns, on the bounds' scale.

        A value that a record lacks adds nothing. Not protected.
        """
        unit = self._unit(X)
        statistic = ColumnCounts(int(self.bins), self.releases_[0].bounds)
        cells = statistic.cells(unit)
        density = np.zeros(len(unit))
        for j, p in enumerate(self.probabilities()):
            bins = len(p)
            # a bin that came out empty is not impossible
            floor = self.counts_sd_ / self.releases_[0].n / bins
            smoothed = (p + floor) / (1 + floor * bins)
            index = np.clip(np.nan_to_num(cells[:, j]), 0, bins - 1).astype(np.intp)
            edges = np.asarray(self.edges_[j])
            widths = np.diff(edges) * (2 / (edges[-1] - edges[0]))
            column = np.log(smoothed / widths)[index]
            density += np.where(np.isnan(cells[:, j]), 0.0, column)
        return density


def _together(columns: list[NDArray[np.float64]]) -> Any:
    """One array if the columns are equally long, else the list of them."""
    if len({len(column) for column in columns}) == 1:
        return np.stack(columns)
    return columns


def _shares(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Counts as shares of their sum, which is at least one record."""
    return project_onto_simplex(counts / max(float(counts.sum()), 1.0))


def quantile_of_bins(p: NDArray[np.float64], edges: NDArray[np.float64], q: float) -> float:
    """The q-quantile of a distribution with probabilities p of bins, uniform within each."""
    cumulative = np.concatenate([[0.0], np.cumsum(p)])
    bin_ = min(int(np.searchsorted(cumulative[1:], q)), len(p) - 1)
    within = 0.0
    if p[bin_] > 0:
        within = (q - cumulative[bin_]) / p[bin_]
    return float(edges[bin_] + min(within, 1.0) * (edges[bin_ + 1] - edges[bin_]))
