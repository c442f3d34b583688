"""Mean with differential privacy: the smallest model, and the pattern for others. Proof: mean.md.

Each record is scaled to the box [−1, 1]ᵈ (or, with ``Bounds(norm=…)``, to the unit ball); the sum
of each column is released once, with the number of records that have a value in it, and divided by
that number.
"""

import numpy as np
from numpy.typing import NDArray

from reticent.models.base import PrivateEstimator
from reticent.models.descriptive.columns import has_mean, missing_apart, refuse_columns
from reticent.models.unit_total import unit_total
from reticent.privacy.accounting.events import Laplace
from reticent.privacy.bounds import Bounds
from reticent.privacy.curator import Oracle, Release
from reticent.privacy.row_maps.column_moments import ColumnMeans, MeanSum, stretch
from reticent.privacy.statistics.enforced import enforce
from reticent.privacy.statistics.sum import EnforcedSum

__all__ = ["PrivateMean"]


class PrivateMean(PrivateEstimator):
    """Mean of each column, with differential privacy.

    A record that lacks a value counts in the other columns (with ``Bounds(norm=…)``, in none). The
    mean of a column of yes and no is the rate of yes, that of dates is in days since 1970-01-01.
    Words have no mean: `PrivateHistogram` counts them.

    Parameters
    ----------
    bounds, epsilon, delta, ledger, dataset, records_per_person, random_state
        As for every private estimator (``PrivateEstimator``). ``delta=0`` gives pure ε-DP by
        Laplace noise.

    Attributes
    ----------
    mean_ : array of shape (n_features,)
        The noisy means of the records that have a value: noisy sums by noisy counts, not forced
        into the bounds.
    mean_sd_ : array of shape (n_features,)
        Standard deviation of the privacy noise in ``mean_``, to first order.
    counts_ : array of shape (n_features,)
        Noisy number of records that have a value in the column, from 1 to n.
    counts_sd_ : float
        Standard deviation of the privacy noise in ``counts_``.
    guarantee_, releases_, n_features_in_, feature_names_in_
        As for every private estimator.

    Privacy
    -------
    Neighbours: one record replaced, number of records public. Released: the sums of the scaled
    columns and how many records have a value in each, once. Must be public: the bounds, the number
    of records, all parameters. ``score`` reads the records it is given without protection.

    Examples
    --------
    >>> import numpy as np, reticent
    >>> ages = np.random.default_rng(0).uniform(20, 60, size=(10_000, 1))
    >>> bounds = reticent.Bounds(x=[(0, 110)])
    >>> model = reticent.PrivateMean(bounds=bounds, epsilon=1, delta=1e-6).fit(ages)
    >>> bool(abs(model.mean_[0] - ages.mean()) < 0.5)
    True
    >>> round(model.guarantee_.epsilon, 6), model.guarantee_.private
    (1.0, True)
    """

    def _bounds(self) -> Bounds:
        return missing_apart(super()._bounds(), words=True)

    def _validate_before_charge(self, bounds: Bounds) -> object:
        refuse_columns(bounds, "mean", has_mean)
        return None

    def learn(self, curator: Oracle) -> None:
        """Release sums and counts; divide, and return to the columns' own units."""
        bounds = curator.bounds
        stretches = np.array([stretch(kind) for kind in bounds.x_kinds])
        sums, counts, sums_sd, counts_sd = _sums_and_counts(curator, bounds, stretches)
        self.counts_ = np.clip(counts, 1.0, unit_total(curator).most)
        self.counts_sd_ = counts_sd
        mean = sums / self.counts_
        sd = np.sqrt(sums_sd**2 + (mean * counts_sd) ** 2) / self.counts_
        self._centre = mean / stretches
        self.mean_ = bounds.unscale(self._centre)
        self.mean_sd_ = bounds.unscale(sd / stretches) - bounds.unscale(np.zeros(len(bounds.x)))

    def score_samples(self, X: object) -> NDArray[np.float64]:
        """Minus the squared distance of each record from the mean, on the bounds' scale.

        A value that a record lacks adds nothing. Not protected.
        """
        return -np.nansum((self._unit(X) - self._centre) ** 2, axis=1)

    def score_limits(self) -> tuple[float, float]:
        """Least and largest value that ``score_samples`` can have for a mean inside the bounds."""
        return -4.0 * self.releases_[0].bounds.radius2, 0.0


def _sums_and_counts(
    curator: Oracle, bounds: Bounds, stretches: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], float]:
    """Noisy sums (d,) and counts (d,) of the columns, and the noise of both."""
    d = len(bounds.x)
    if bounds.norm is None:
        columns = ColumnMeans(tuple(stretches.tolist()), isinstance(curator.event, Laplace))
        release = curator.release(columns)
        weight = columns.count_weight
        return release.value[:d], release.value[d:] / weight, *_noise(release, d, weight)
    ball = MeanSum(d, bounds.radius2, counted=True)
    release = curator.release(ball)
    enforced = enforce(ball)
    assert isinstance(enforced, EnforcedSum)
    weight = enforced.count_weight * enforced.step
    counts = np.full(d, release.value[-1] / weight)
    return release.value[:d], counts, *_noise(release, d, weight)


def _noise(release: Release, d: int, weight: float) -> tuple[NDArray[np.float64], float]:
    """Standard deviations of the sums, and of a count."""
    return release.sd[:d], float(release.sd[-1] / weight)
