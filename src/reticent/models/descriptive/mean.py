"""Mean with differential privacy: the smallest model, and the pattern for others. Proof: mean.md.

Each record is scaled to the box [−1, 1]ᵈ (or, with ``Bounds(norm=…)``, to the unit ball); the sum
is released once and divided by the number of records, which is public.
"""

import numpy as np
from numpy.typing import NDArray

from reticent.models.base import PrivateEstimator
from reticent.privacy.curator import Oracle
from reticent.privacy.row_maps.column_moments import MeanSum

__all__ = ["PrivateMean"]


class PrivateMean(PrivateEstimator):
    """Mean of each column, with differential privacy.

    Parameters
    ----------
    bounds, epsilon, delta, ledger, dataset, records_per_person, random_state
        As for every private estimator (``PrivateEstimator``). ``delta=0`` gives pure ε-DP by
        Laplace noise.

    Attributes
    ----------
    mean_ : array of shape (n_features,)
        The noisy means. Unbiased for records inside their bounds, and therefore not forced into
        them.
    mean_sd_ : array of shape (n_features,)
        Standard deviation of the privacy noise in ``mean_``.
    guarantee_, releases_, n_features_in_, feature_names_in_
        As for every private estimator.

    Privacy
    -------
    Neighbours: one record replaced, number of records public. Released: the sum of the scaled
    records, once. Must be public: the bounds, the number of records, all parameters. ``score``
    reads the records it is given without protection.

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

    def learn(self, curator: Oracle) -> None:
        """Release the sum; divide by n and return to the columns' own units."""
        bounds = curator.bounds
        release = curator.release(MeanSum(len(bounds.x), bounds.radius2))
        self.mean_ = bounds.unscale(release.value / curator.n)
        self.mean_sd_ = bounds.unscale(release.sd / curator.n) - bounds.unscale(
            np.zeros(len(bounds.x))
        )

    def score_samples(self, X: object) -> NDArray[np.float64]:
        """Minus the squared distance of each record from the mean, on the bounds' scale.

        Not protected.
        """
        unit = self._unit(X)
        centre = self.releases_[0].value / self.releases_[0].n
        return -np.sum((unit - centre) ** 2, axis=1)

    def score_limits(self) -> tuple[float, float]:
        """Least and largest value that ``score_samples`` can have for a mean inside the bounds."""
        return -4.0 * self.releases_[0].bounds.radius2, 0.0
