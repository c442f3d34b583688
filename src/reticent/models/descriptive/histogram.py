"""Histograms of the columns, and their quantiles, with differential privacy. Proof: histogram.md.

All columns are counted in one release: replacing a record moves two counts by one in each column.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reticent.errors import BadInput
from reticent.inference.linalg import project_onto_simplex
from reticent.models.base import PrivateEstimator
from reticent.privacy.curator import Oracle
from reticent.privacy.row_maps.column_moments import ColumnCounts
from reticent.validation import check_integer

__all__ = ["PrivateHistogram"]

_MOST_BINS = 100_000


@dataclass(repr=False, eq=False)
class PrivateHistogram(PrivateEstimator):
    """Histogram of each column, with differential privacy.

    Parameters
    ----------
    bins : int
        Number of equal bins of each column, between its bounds.
    bounds, epsilon, delta, ledger, dataset, records_per_person, random_state
        As for every private estimator (``PrivateEstimator``). ``delta=0`` gives pure ε-DP by
        Laplace noise.

    Attributes
    ----------
    counts_ : array of shape (n_features, bins)
        The noisy counts as they were released: empty bins have noise too, and a count can be
        negative. They end in ½, which makes them unbiased: the noise is whole and rounded down.
    counts_sd_ : float
        Standard deviation of the privacy noise on each count.
    edges_ : array of shape (n_features, bins + 1)
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

    def learn(self, curator: Oracle) -> None:
        """Release all counts at once."""
        bounds = curator.bounds
        release = curator.release(ColumnCounts(int(self.bins), bounds))
        self.counts_ = release.value.reshape(len(bounds.x), int(self.bins))
        self.counts_sd_ = float(release.sd[0])
        low, high = np.array(bounds.x).T
        self.edges_ = np.linspace(low, high, int(self.bins) + 1, axis=1)

    def probabilities(self) -> NDArray[np.float64]:
        """The counts as a probability per bin and column.

        The nearest point of the simplex, which removes negative counts.
        """
        return np.array(
            [project_onto_simplex(counts / self.releases_[0].n) for counts in self.counts_]
        )

    def quantile(self, q: float) -> NDArray[np.float64]:
        """The ``q``-quantile of each column, linear within a bin."""
        if not 0 <= q <= 1:
            raise BadInput(f"q must be from 0 to 1, not {q!r}.")
        quantiles = []
        for p, edges in zip(self.probabilities(), self.edges_, strict=True):
            cumulative = np.concatenate([[0.0], np.cumsum(p)])
            bin_ = min(int(np.searchsorted(cumulative[1:], q)), len(p) - 1)
            within = 0.0
            if p[bin_] > 0:
                within = (q - cumulative[bin_]) / p[bin_]
            quantiles.append(edges[bin_] + min(within, 1.0) * (edges[bin_ + 1] - edges[bin_]))
        return np.array(quantiles)

    def score_samples(self, X: object) -> NDArray[np.float64]:
        """Log-density of each record, summed over columns, on the bounds' scale. Not protected."""
        unit = self._unit(X)
        p = self.probabilities()
        # a bin that came out empty is not impossible
        floor = self.counts_sd_ / self.releases_[0].n / p.shape[1]
        p = (p + floor) / (1 + floor * p.shape[1])
        cells = ColumnCounts(p.shape[1], self.releases_[0].bounds).cells(unit)
        index = np.clip(cells, 0, p.shape[1] - 1).astype(np.intp)
        density: NDArray[np.float64] = np.log(
            np.take_along_axis(p.T, index, axis=0) * (p.shape[1] / 2)
        ).sum(axis=1)
        return density
