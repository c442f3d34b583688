"""Means and covariances, with differential privacy, from one Gram matrix. Proof: covariance.md.

The Gram matrix of (1, u), for scaled records u, holds Σ1, Σu and Σuuᵀ over the records that lack no
value; one release gives all.
"""

import numpy as np
from numpy.typing import NDArray

from reticent.models.base import PrivateEstimator
from reticent.models.descriptive.columns import has_mean, missing_apart, refuse_columns
from reticent.models.unit_total import unit_total
from reticent.privacy.bounds import Bounds
from reticent.privacy.curator import Oracle
from reticent.privacy.row_maps.column_moments import MomentGram

__all__ = ["PrivateCovariance"]


class PrivateCovariance(PrivateEstimator):
    """Means and covariances of all columns, with differential privacy.

    They are of the complete records: one that lacks a value is left out.

    Parameters
    ----------
    bounds, epsilon, delta, ledger, dataset, records_per_person, random_state
        As for every private estimator (``PrivateEstimator``). ``delta`` must be positive.

    Attributes
    ----------
    mean_ : array of shape (n_features,)
    covariance_ : array of shape (n_features, n_features)
        The nearest positive semi-definite matrix to what was released.
    correlation_ : array of shape (n_features, n_features)
    mean_sd_, covariance_sd_ : arrays
        Standard deviations of the privacy noise in the means, and (to first order) in the
        covariances.
    count_, count_sd_ : float
        Noisy number of complete records, from 1 to n, and the standard deviation of its noise.
    guarantee_, releases_, n_features_in_, feature_names_in_
        As for every private estimator.

    Privacy
    -------
    Neighbours: one record replaced, number of records public. Released: the Gram matrix of (1,
    scaled record), once. Must be public: the bounds, the number of records, all parameters.
    ``score`` reads the records it is given without protection.

    Examples
    --------
    >>> import numpy as np, reticent
    >>> X = np.random.default_rng(0).multivariate_normal([0, 0], [[1, 0.8], [0.8, 1]], size=50_000)
    >>> bounds = reticent.Bounds(x=(-5, 5))
    >>> model = reticent.PrivateCovariance(bounds=bounds, epsilon=1, delta=1e-6).fit(X)
    >>> bool(abs(model.correlation_[0, 1] - 0.8) < 0.05)
    True
    """

    _pure = False

    def _bounds(self) -> Bounds:
        return missing_apart(super()._bounds(), words=True)

    def _validate_before_charge(self, bounds: Bounds) -> object:
        refuse_columns(bounds, "covariance", has_mean)
        return None

    def learn(self, curator: Oracle) -> None:
        """Release the Gram matrix once; the rest is arithmetic on it."""
        bounds = curator.bounds
        release = curator.release(MomentGram(len(bounds.x), bounds.radius2))
        sums = release.matrix()
        self.count_ = float(np.clip(sums[0, 0], 1.0, unit_total(curator).most))
        self.count_sd_ = float(release.matrix_sd()[0, 0])
        moments = sums / self.count_
        sd = release.matrix_sd() / self.count_
        mean = moments[0, 1:]
        half_ranges = bounds.unscale(np.ones(len(mean))) - bounds.unscale(np.zeros(len(mean)))
        units = np.outer(half_ranges, half_ranges)
        self.mean_ = bounds.unscale(mean)
        self.mean_sd_ = np.hypot(sd[0, 1:], mean * sd[0, 0]) * half_ranges
        self.covariance_ = _nearest_covariance(moments[1:, 1:] - np.outer(mean, mean)) * units
        std = np.sqrt(np.diag(self.covariance_))
        std = np.where(std > 0, std, 1.0)
        self.correlation_ = np.clip(self.covariance_ / np.outer(std, std), -1.0, 1.0)
        product = np.outer(mean, sd[0, 1:])
        # On the diagonal both means have the same noise
        of_means = product**2 + product.T**2 + 2 * np.diag(np.diag(product) ** 2)
        # d(M/c − s sᵀ/c²)/dc = −(M/c − 2 m mᵀ)/c
        of_count = (moments[1:, 1:] - 2 * np.outer(mean, mean)) * sd[0, 0]
        self.covariance_sd_ = np.sqrt(sd[1:, 1:] ** 2 + of_means + of_count**2) * units

    def score_samples(self, X: object) -> NDArray[np.float64]:
        """Log-density of each record under the fitted normal distribution, on the bounds' scale.

        Not protected.
        """
        unit = self._unit(X)
        bounds = self.releases_[0].bounds
        scale = bounds.unscale(np.ones(len(bounds.x))) - bounds.unscale(np.zeros(len(bounds.x)))
        mean = (self.mean_ - bounds.unscale(np.zeros(len(bounds.x)))) / scale
        values, vectors = np.linalg.eigh(self.covariance_ / np.outer(scale, scale))
        # eigenvalues below this are noise
        floor = float((self.covariance_sd_ / np.outer(scale, scale)).max())
        values = np.maximum(values, floor)
        distance = ((unit - mean) @ vectors) ** 2 @ (1 / values)
        return -(distance + np.log(2 * np.pi * values).sum()) / 2


def _nearest_covariance(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Nearest positive semi-definite matrix in the Frobenius norm.

    Negative eigenvalues become zero.
    """
    values, vectors = np.linalg.eigh(matrix)
    nearest: NDArray[np.float64] = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return (nearest + nearest.T) / 2
