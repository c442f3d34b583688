"""Private histograms of the columns, and the quantiles they imply. Proof: histogram.md.

All columns are counted in one release: replacing a record moves two counts by one in each column.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.errors import BadInput
from reticent.models.base import PrivateEstimator
from reticent.privacy.bounds import Bounds
from reticent.privacy.curator import Oracle
from reticent.privacy.given import check_whole
from reticent.privacy.statistic import Counts

__all__ = ["PrivateHistogram"]

_MOST_BINS = 100_000


@dataclass(frozen=True)
class ColumnCounts(Counts):
    """For each column, how many records fall into each of its equal bins."""

    bins: int
    bounds: Bounds

    groups = property(lambda self: (self.bins,) * len(self.bounds.x))

    @cached_property
    def edges(self) -> NDArray[np.float64]:
        """Edges of the bins, a row per column, scaled exactly as the records are: a value on an edge stays on it."""
        low, high = np.array(self.bounds.x).T
        return self.bounds.scaled(np.linspace(low, high, self.bins + 1)).T

    def cells(self, records: NDArray[np.float64]) -> NDArray[np.float64]:
        """The bin of each value, [edge, next edge); the last one is closed."""
        found = [np.searchsorted(edges, u, side="right") - 1.0 for edges, u in zip(self.edges, records.T, strict=True)]
        return np.column_stack(found)


@dataclass(repr=False, eq=False)
class PrivateHistogram(PrivateEstimator):
    """Histogram of each column, with differential privacy.

    Parameters
    ----------
    bins : int
        Number of equal bins of each column, between its bounds.
    bounds, epsilon, delta, ledger, dataset, records_per_person, random_state
        As for every private estimator (``PrivateEstimator``). ``delta=0`` gives pure ε-DP by Laplace noise.

    Attributes
    ----------
    counts_ : array of shape (n_features, bins)
        The noisy counts as they were released: empty bins have noise too, and a count can be negative. They end in ½, which
        makes them unbiased: the noise is whole and rounded down.
    counts_sd_ : float
        Standard deviation of the privacy noise on each count.
    edges_ : array of shape (n_features, bins + 1)
    guarantee_, releases_, n_features_in_, feature_names_in_
        As for every private estimator.

    Privacy
    -------
    Neighbours: one record replaced, number of records public. Released: all counts of all columns, once, empty bins
    included. Must be public: the bounds, the number of bins and of records, all parameters. ``score`` reads the records it
    is given without protection.

    Examples
    --------
    >>> import numpy as np, reticent
    >>> ages = np.random.default_rng(0).uniform(20, 60, size=(10_000, 1))
    >>> model = reticent.PrivateHistogram(bins=11, bounds=reticent.Bounds(x=[(0, 110)]), epsilon=1, delta=1e-6).fit(ages)
    >>> bool(abs(model.quantile(0.5)[0] - 40) < 2)
    True
    """

    bins: int = 10

    def _check(self) -> None:
        check_whole("bins", self.bins, 2, _MOST_BINS)

    def learn(self, curator: Oracle) -> None:
        """Release all counts at once."""
        bounds = curator.bounds
        release = curator.release(ColumnCounts(int(self.bins), bounds))
        self.counts_ = release.value.reshape(len(bounds.x), int(self.bins))
        self.counts_sd_ = float(release.sd[0])
        low, high = np.array(bounds.x).T
        self.edges_ = np.linspace(low, high, int(self.bins) + 1, axis=1)

    def probabilities(self) -> NDArray[np.float64]:
        """The counts as a probability per bin and column: the nearest point of the simplex, which removes negative counts."""
        return np.array([_simplex(counts / self.releases_[0].n) for counts in self.counts_])

    def quantile(self, q: float) -> NDArray[np.float64]:
        """The ``q``-quantile of each column, linear within a bin."""
        if not 0 <= q <= 1:
            raise BadInput(f"q must be from 0 to 1, not {q!r}.")
        found = []
        for p, edges in zip(self.probabilities(), self.edges_, strict=True):
            reached = np.concatenate([[0.0], np.cumsum(p)])
            bin_ = min(int(np.searchsorted(reached[1:], q)), len(p) - 1)
            within = (q - reached[bin_]) / p[bin_] if p[bin_] > 0 else 0.0
            found.append(edges[bin_] + min(within, 1.0) * (edges[bin_ + 1] - edges[bin_]))
        return np.array(found)

    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """Log-density of each record, summed over columns, on the bounds' scale. Not protected."""
        unit = self._unit(X)
        p = self.probabilities()
        floor = self.counts_sd_ / self.releases_[0].n / p.shape[1]  # a bin that came out empty is not impossible
        p = (p + floor) / (1 + floor * p.shape[1])
        cells = ColumnCounts(p.shape[1], self.releases_[0].bounds).cells(unit)
        index = np.clip(cells, 0, p.shape[1] - 1).astype(np.intp)
        density: NDArray[np.float64] = np.log(np.take_along_axis(p.T, index, axis=0) * (p.shape[1] / 2)).sum(axis=1)
        return density


def _simplex(v: NDArray[np.float64]) -> NDArray[np.float64]:
    """Nearest point of the probability simplex: subtract one number from all, cut at zero."""
    ordered = np.sort(v)[::-1]
    excess = (np.cumsum(ordered) - 1) / np.arange(1, len(v) + 1)
    return np.maximum(v - excess[np.flatnonzero(ordered > excess)[-1]], 0.0)
