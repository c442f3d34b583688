"""Factor analysis and principal components with differential privacy.

One covariance, learned in stages, and all else for free. Proof: factor_analysis.md.

The covariance (`standardized_covariance`) takes the whole budget. EM for the factors, eigenvectors
for the components, densities, scores and samples are post-processing: any number of iterations
costs nothing.
"""

from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from reticent.errors import BadInput
from reticent.inference.mixtures.bounded_normal import sample_bounded_normal
from reticent.inference.mixtures.factor_model import (
    ROTATIONS,
    factor_analysis,
    factor_log_density,
    factor_scores,
    rotate_loadings,
)
from reticent.inference.mixtures.gaussian_mixture import clamp_eigenvalues
from reticent.models.base import PrivateEstimator
from reticent.models.mixtures.complete_records import CompleteRecords, of_complete
from reticent.models.mixtures.mixed_columns import (
    as_table,
    check_encoded_width,
    distance_encoding,
    encode_complete,
    encoded_bounds,
    encoded_names,
    encoded_units,
    rounding_variances,
)
from reticent.models.mixtures.settings import COVARIANCE
from reticent.models.mixtures.standardized_covariance import CovarianceEstimate, fit_covariance
from reticent.models.unit_total import unit_total
from reticent.privacy.bounds import Bounds
from reticent.privacy.curator import Oracle
from reticent.privacy.row_maps.features.column_encoding import encoded_widths
from reticent.validation import as_generator, check_choice, check_integer

__all__ = ["PCA", "FactorAnalysis"]

Array = NDArray[np.float64]


@dataclass(repr=False, eq=False)
class _Factors(ClassNamePrefixFeaturesOutMixin, TransformerMixin, PrivateEstimator):  # type: ignore[misc]
    """Abstract: a model of ``n_components`` directions in a private covariance matrix."""

    _pure = False
    _releases = COVARIANCE.shares
    _hidden_variances = COVARIANCE.hidden_for_density
    _n_features_out = property(lambda self: len(self.components_))

    n_components: int = 2

    def _check(self) -> None:
        check_integer("n_components", self.n_components)

    def _validate_before_charge(self, bounds: Bounds) -> None:
        encoding = distance_encoding(bounds)
        check_encoded_width(encoding)
        columns = sum(encoded_widths(encoding)) if encoding else len(bounds.x)
        if self.n_components > columns:
            raise BadInput(
                f"n_components={self.n_components} is more than there are columns: X has "
                f"n_features = {columns}. Give at most that."
            )

    def learn(self, curator: Oracle) -> None:
        """Release the stages of the covariance; the rest is arithmetic on it."""
        self._validate_before_charge(curator.bounds)
        noise = curator.noise_multiplier
        bounds = curator.bounds
        self._encoding = distance_encoding(bounds)
        complete = CompleteRecords(unit_total(curator))
        moments = fit_covariance(
            curator,
            noise,
            complete=complete,
            encoding=self._encoding,
            hidden_variances=self._hidden_variances,
        )
        self.n_complete_ = complete.number
        self.n_complete_sd_ = complete.sd
        # where scaled coordinates begin, and one of their units, in the columns' own
        self._offset, self._half_ranges = encoded_units(bounds, self._encoding)
        self.encoded_names_ = encoded_names(bounds, self._encoding)
        self.encoded_bounds_ = encoded_bounds(bounds, self._encoding)
        self.mean_ = self._offset + moments.mean * self._half_ranges
        self.mean_sd_ = moments.mean_sd * self._half_ranges
        self._learn_directions(moments, moments.scale * self._half_ranges)

    @abstractmethod
    def _learn_directions(self, moments: CovarianceEstimate, scale: Array) -> None:
        """Compute the model from correlations (d, d), and scales (d,) in the columns' own units."""

    def _centred(self, X: object) -> Array:
        """Records as differences from the mean, in their own units."""
        check_is_fitted(self)
        coordinates = encode_complete(self._unit(X), self._encoding)
        return np.asarray(self._offset + coordinates * self._half_ranges - self.mean_)


@dataclass(repr=False, eq=False)
class FactorAnalysis(_Factors):
    """Factor analysis, with differential privacy.

    x = mean + factors · components + noise, independent in each column.

    Parameters
    ----------
    n_components : int
        Number of factors.
    rotation : None, "varimax" or "quartimax"
        Rotation of the standardised loadings, which makes each factor load few columns, or each
        column few factors. It costs nothing. None: the first factor explains most.
    bounds, epsilon, delta, ledger, dataset, records_per_person, random_state
        As for every private estimator (``PrivateEstimator``). ``delta`` must be positive.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        What one standard deviation of each factor adds to a record; the factor that explains most
        comes first.
    noise_variance_ : array of shape (n_features,)
        What the factors leave of each column's variance.
    mean_, mean_sd_ : arrays of shape (n_features,)
        Means, and the standard deviation of the privacy noise in them.
    encoded_names_ : list of str
        Names of the features. A column of words is an indicator, 0 or 1, of each of its levels (of
        two levels, of the second): "sex=M"; a cycle is its cosine and its sine.
    n_complete_, n_complete_sd_ : float
        Number of records that lack no value, by the releases, and the noise in it.
    guarantee_, releases_, n_features_in_, feature_names_in_
        As for every private estimator.

    Privacy
    -------
    Neighbours: one record replaced, number of records public. Released: noisy means and mean
    squares of all columns, up to four times in ever finer steps, and the Gram matrix of the
    standardised records, once; or, where noise would hide what single columns vary by, the mean of
    the records and their mean squared distance from it, up to three times, and the Gram matrix of
    the records on one scale. Must be public: the bounds, the number of records, all parameters.
    ``score``, ``score_samples`` and ``transform`` read the records they are given without
    protection.

    Examples
    --------
    >>> import numpy as np, reticent
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(20_000, 1)) * [1.0, 0.8, -0.6] + 0.3 * rng.normal(size=(20_000, 3))
    >>> bounds = reticent.Bounds(x=(-5, 5))
    >>> model = reticent.FactorAnalysis(1, bounds=bounds, epsilon=1, delta=1e-6).fit(X)
    >>> bool(np.abs(np.abs(model.components_[0]) - [1.0, 0.8, 0.6]).max() < 0.1)
    True
    """

    _: KW_ONLY
    rotation: str | None = None

    def _check(self) -> None:
        super()._check()
        if self.rotation is not None:
            check_choice("rotation", self.rotation, ROTATIONS)

    def _learn_directions(self, moments: CovarianceEstimate, scale: Array) -> None:
        W, psi = factor_analysis(moments.correlation, int(self.n_components), moments.least)
        # EM leaves a rotation open: take the one in which the factors explain as much as they can,
        # one after the other
        rotation = np.linalg.eigh((W / psi[:, None]).T @ W)[1]
        W = W @ rotation[:, ::-1]
        if self.rotation is not None:
            W = rotate_loadings(W, str(self.rotation))
        W *= np.where(np.sum(W, axis=0) < 0, -1.0, 1.0)  # mostly positive is easier to read
        self.components_ = (W * scale[:, None]).T
        self.noise_variance_ = psi * scale**2

    def transform(self, X: object) -> Array:
        """Expected values of the factors for each record; NaN where a value is missing.

        Not protected.
        """

        def scores(centred: Array) -> Array:
            return factor_scores(centred, self.components_.T, self.noise_variance_)

        return of_complete(self._centred(X), scores, len(self.components_))

    def get_covariance(self) -> Array:
        """The model's covariance matrix, in the columns' own units."""
        check_is_fitted(self)
        return self.components_.T @ self.components_ + np.diag(self.noise_variance_)

    def score_samples(self, X: object) -> Array:
        """Log-density of each record, moved into the bounds, in the columns' own units.

        NaN where a value is missing. Not protected.
        """

        def density(centred: Array) -> Array:
            return factor_log_density(centred, self.components_.T, self.noise_variance_)

        return of_complete(self._centred(X), density)

    def sample(self, n: int = 1, random_state: object = None) -> Any:
        """Draw ``n`` made-up records, inside the bounds, with the model's means and variances.

        Nothing is charged: it uses the releases only. An array if all columns are plain numbers;
        else a dict of columns by name, with whole numbers and ISO dates. Factors give words and
        cycles no distribution: for these, draw from a `GaussianMixture`.
        """
        check_is_fitted(self)
        check_integer("n", n)
        if self._encoding:
            raise BadInput(
                "Factors of words or cycles draw no records: fit a GaussianMixture to draw from."
            )
        bounds = self.releases_[0].bounds
        random = as_generator(random_state)
        low, high = np.array(bounds.x).T
        covariance = self.get_covariance()
        rounding = rounding_variances(bounds)  # what rounding to whole numbers will add
        if rounding.any():
            variances = np.diag(covariance).copy()
            np.fill_diagonal(covariance, np.maximum(variances - rounding, variances / 2))
            covariance = clamp_eigenvalues(covariance, float(variances.min()) * 1e-6)
        codes = sample_bounded_normal(int(n), self.mean_, covariance, low, high, random)
        return as_table(bounds, codes)


class PCA(_Factors):
    """Principal components, with differential privacy.

    Parameters
    ----------
    n_components, bounds, epsilon, delta, ledger, dataset, records_per_person, random_state
        As for ``FactorAnalysis``.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        Orthonormal directions, in the columns' own units, the one with most variance first.
    explained_variance_, explained_variance_ratio_ : arrays of shape (n_components,)
        Variance of the records along each, and its fraction of the whole.
    column_std_ : array of shape (n_features,)
        Standard deviation of each column, by the releases.
    mean_, mean_sd_, guarantee_, releases_, n_features_in_, feature_names_in_
        As for ``FactorAnalysis``.

    Privacy
    -------
    Neighbours: one record replaced, number of records public. Released: as for ``FactorAnalysis``,
    on one scale already where noise is less. Must be public: the bounds, the number of records, all
    parameters. ``transform`` and ``score`` read the records they are given without protection.

    Examples
    --------
    >>> import numpy as np, reticent
    >>> X = np.random.default_rng(0).normal(size=(20_000, 1)) * [3.0, 4.0]
    >>> model = reticent.PCA(1, bounds=reticent.Bounds(x=(-20, 20)), epsilon=1, delta=1e-6).fit(X)
    >>> bool(np.abs(model.components_[0] - [0.6, 0.8]).max() < 0.05)
    True
    """

    _hidden_variances = COVARIANCE.hidden_for_directions

    def _learn_directions(self, moments: CovarianceEstimate, scale: Array) -> None:
        values, vectors = np.linalg.eigh(moments.correlation * np.outer(scale, scale))
        k = int(self.n_components)
        components = vectors[:, : -k - 1 : -1].T
        self.components_ = components * np.where(components.sum(axis=1) < 0, -1.0, 1.0)[:, None]
        self.explained_variance_ = values[: -k - 1 : -1].copy()
        self.explained_variance_ratio_ = self.explained_variance_ / values.sum()
        self.column_std_ = scale

    def transform(self, X: object) -> Array:
        """Coordinates of each record along the components; NaN where a value is missing.

        Not protected.
        """

        def coordinates(centred: Array) -> Array:
            return np.asarray(centred @ self.components_.T)

        return of_complete(self._centred(X), coordinates, len(self.components_))

    def inverse_transform(self, X: object) -> Array:
        """Records that have these coordinates."""
        check_is_fitted(self)
        scores = np.asarray(X, dtype=np.float64)
        if scores.ndim != 2 or scores.shape[1] != len(self.components_):
            raise BadInput(
                f"X must have one column for each of the {len(self.components_)} components."
            )
        return np.asarray(scores @ self.components_ + self.mean_)

    def score_samples(self, X: object) -> Array:
        """Minus the squared distance of each record from its projection, on the bounds' scale.

        NaN where a value is missing. Not protected.
        """

        def score(centred: Array) -> Array:
            residuals = centred - centred @ self.components_.T @ self.components_
            return np.asarray(-np.sum((residuals / self._half_ranges) ** 2, axis=1))

        return of_complete(self._centred(X), score)
