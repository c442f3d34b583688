"""Gaussian-process classification that protects inputs and labels. Proof: classifier.md.

softmax     (default) stages release noisy gradients of a multinomial likelihood, each taken at the
            last fit (`inference.classification.softmax_posterior`)
labels      the same for the regression of one-hot labels, which is linear
dirichlet   one release of a Gram matrix for each class, from which the targets of Milios et al.
            (2018) follow (`inference.classification.dirichlet_targets`)
"""

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils.validation import check_is_fitted

from reticent.errors import BadInput
from reticent.inference.classification.dirichlet_targets import dirichlet_posterior
from reticent.inference.classification.probability_bands import (
    bounded_bands,
    independent_logit_variance,
    log_odds,
    mean_above_zero,
    mean_probabilities,
    probability_bands,
)
from reticent.inference.classification.softmax_posterior import SoftmaxPosterior
from reticent.inference.inputs.complete_records import CompleteRecords, complete_records
from reticent.inference.kernels.anova import AnovaPriors
from reticent.inference.kernels.axes import LINE, Axis
from reticent.inference.kernels.projection import feature_scales, norm_quantile
from reticent.inference.linalg import as_matrix, quadratic_forms
from reticent.models.base import PrivateEstimator
from reticent.models.gp.input_features import (
    count_complete_records,
    count_from_gram,
    estimate_inputs,
    fill_missing,
    make_feature_map,
    warn_of_missing_values,
)
from reticent.models.gp.prior_hypotheses import (
    PreparedPrior,
    axes_of,
    covariances_of_weights,
    make_prior,
    validated_prior,
)
from reticent.models.gp.settings import BASIS, CLASSES, LIMITS
from reticent.models.gp.staged_fit import Prior
from reticent.models.unit_total import unit_total
from reticent.privacy.bounds import Bounds
from reticent.privacy.columns.words import Labels
from reticent.privacy.curator import Oracle
from reticent.privacy.row_maps.class_gram import ClassGram, GramByClass, class_stage
from reticent.privacy.row_maps.features.polynomial_basis import Basis
from reticent.privacy.statistics.exact_sum import one_blas_thread
from reticent.validation import check_choice, check_integer

if TYPE_CHECKING:
    from sklearn.utils import Tags

__all__ = ["GPClassifier"]

Array = NDArray[np.float64]
METHODS = ("softmax", "labels", "dirichlet")


@dataclass(repr=False, eq=False)
class GPClassifier(ClassifierMixin, PrivateEstimator):  # type: ignore[misc]
    """Gaussian-process classification with differential privacy for inputs and labels.

    Parameters
    ----------
    kernel : scikit-learn kernel, optional
        Prior covariance of each class's log-odds. Default: a constant and effects of one, two and
        three inputs: smooth ones of numbers, after these have been spread out evenly by what two of
        the releases tell, and of ordered words; periodic ones of cycles; one for each word. A
        kernel sees codes: of ordered words and of yes and no 0, 1, 2, …; it is refused for more
        than two words in no order.
    method : "softmax", "labels" or "dirichlet"
        How labels enter. "softmax" is best nearly always; "dirichlet" is the DP-GP paper's,
        corrected, with a single release.
    basis, stages : int, optional
        Number of basis functions and of releases; chosen from n, ε and δ by default.
    learn_kernel : bool
        Whether hypotheses about the kernel are weighed by the evidence, which costs nothing.
    bounds, epsilon, delta, ledger, dataset, records_per_person, random_state
        As for every private estimator (``PrivateEstimator``); the bounds list all classes:
        ``Bounds(x=..., classes=[...])``.

    Attributes
    ----------
    classes_ : array
        The classes of the bounds, in their order. A class without records is as likely as privacy
        noise leaves it.
    n_complete_, n_complete_sd_
        Number of records that have a known label and all inputs, as far as releases tell, and the
        standard deviation of its error. Others are left out. Clearly fewer than all: a fit warns.
    guarantee_, releases_, n_features_in_, feature_names_in_

    Privacy
    -------
    Neighbours: one record, inputs and label, replaced. Released: sums with Gaussian noise, as many
    as ``stages``; everything else is computed from them. Must be public: the bounds with the list
    of classes, the number of records, all parameters. A label that is not in the list is missing.

    Examples
    --------
    >>> import numpy as np, reticent
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(5000, 2))
    >>> ill = np.where(X[:, 0] + 0.3 * rng.normal(size=5000) > 0, "yes", "no")
    >>> bounds = reticent.Bounds(x=[(-1, 1), (-1, 1)], classes=["no", "yes"])
    >>> model = reticent.GPClassifier(bounds=bounds, epsilon=1, delta=1e-6).fit(X, ill)
    >>> model.predict([[-0.9, 0], [0.9, 0]]).tolist()
    ['no', 'yes']
    """

    _targets = True
    _pure = False

    kernel: Kernel | None = None
    _: KW_ONLY
    method: str = "softmax"
    basis: int | None = None
    stages: int | None = None
    learn_kernel: bool = True

    @property
    def _releases(self) -> int:
        if self.stages is not None:
            return int(self.stages)
        if self.method != "dirichlet":
            return CLASSES.stages
        return 1

    @property
    def _input_releases(self) -> int:
        """Releases about the inputs alone.

        At most one for a given kernel, which speaks of them as they are: it counts the complete
        records. None if there are few.
        """
        if self.method == "dirichlet":
            return 0
        releases = self._releases // CLASSES.stages_per_input_release
        if not self._one_each:
            releases = max(releases, min(self._releases - 1, 1))
        if self.kernel is None:
            return releases
        return min(releases, 1)

    def _check(self) -> None:
        check_choice("method", self.method, METHODS)
        for name, value, most in (
            ("stages", self.stages, LIMITS.max_stages),
            ("basis", self.basis, CLASSES.max_basis_size),
        ):
            if value is not None:
                check_integer(name, value, 1, most)
        if self.method == "dirichlet" and self.stages not in (None, 1):
            raise BadInput('method="dirichlet" has a single release: leave stages out.')
        if self.kernel is not None and not isinstance(self.kernel, Kernel):
            raise BadInput(
                f"kernel must be a scikit-learn kernel such as RBF(2.0), not {self.kernel!r}."
            )
        if not isinstance(self.learn_kernel, bool):
            raise BadInput(f"learn_kernel must be True or False, not {self.learn_kernel!r}.")
        if isinstance(self.bounds, Bounds) and self.bounds.classes is None:
            raise BadInput(
                "GPClassifier needs the list of classes: Bounds(x=..., classes=['no', 'yes'])."
            )

    def _validate_before_charge(self, bounds: Bounds) -> PreparedPrior:
        """Go through the public part of a fit, so that a useless kernel is refused uncharged."""
        classes = len(bounds.classes or ())
        columns = classes * (int(self.basis or BASIS.min_size) + 1)
        if self.method == "dirichlet" and columns > CLASSES.max_class_columns:
            raise BadInput(
                f'method="dirichlet" releases a Gram matrix for each of {classes} classes, too '
                "many functions: take at most "
                f"{max(CLASSES.max_class_columns // classes - 1, 0)}, or another method."
            )

        def usable(prior: Prior, basis: Basis) -> bool:
            scaling_variance = prior.scaling_variance[: basis.size]
            scale = feature_scales(basis, scaling_variance, CLASSES.scaling_exponent, 1.0)
            return bool(np.isfinite(scale).all())

        return validated_prior(
            self.kernel, bounds, lambda: self._make_prior(bounds), usable, "for log-odds"
        )

    def learn(self, curator: Oracle) -> None:
        """Release as often as was paid for, each time what the last fit left over."""
        self._learn_from(curator, self._make_prior(curator.bounds))

    def _learn_prepared(self, curator: Oracle, prepared: object) -> None:
        """The same with the prior that validation has computed; warns if records are missing."""
        assert isinstance(prepared, PreparedPrior)
        self._learn_from(curator, prepared.prior)
        if self._n_is_total_weight:
            warn_of_missing_values(self._complete)

    def _learn_from(self, curator: Oracle, prior: Prior) -> None:
        bounds = curator.bounds
        densities: list[Array] = []
        complete: CompleteRecords | None = None
        if self.kernel is None:
            densities, complete = estimate_inputs(
                curator, self._input_releases, curator.noise_multiplier, axes_of(bounds)
            )
        elif self._input_releases:
            complete = count_complete_records(curator, self._input_releases)
        self._counted = complete is not None
        self._complete = complete or CompleteRecords.unknown(unit_total(curator))
        n = self._complete.mean
        classes = len(bounds.classes or ())
        noise_multiplier = curator.noise_multiplier
        stages = self._releases - self._input_releases
        size = self._basis_size(n * math.sqrt(stages) / noise_multiplier, prior, bounds)
        basis, hypotheses, _ = prior.choose(size)
        snr_per_function = n * stages / noise_multiplier**2 / basis.size
        feature_scale = feature_scales(
            basis,
            prior.scaling_variance[: basis.size],
            CLASSES.scaling_exponent,
            norm_quantile(snr_per_function),
        )
        axes: tuple[Axis, ...] = (LINE,) * len(bounds.x)
        if isinstance(prior, AnovaPriors):
            axes = prior.axes
            if densities:
                basis = prior.sorted_words(basis, densities)
        self._feature_map, representative_points = make_feature_map(
            basis, feature_scale, densities, axes
        )
        phi = self._feature_map.rows(representative_points)
        logit_variance = 1.0
        if self.kernel is None and self.method != "labels":
            logit_variance = CLASSES.logit_variance
        covariances = [
            logit_variance * as_matrix(S) for S in covariances_of_weights(hypotheses, feature_scale)
        ]
        if self.method == "dirichlet":
            self._learn_by_class(curator, covariances, phi, classes)
        else:
            self._learn_in_stages(curator, covariances, phi, classes, stages)
        if self._complete.perhaps_none:
            self._forget(np.mean(covariances, axis=0))
        self.classes_ = np.array(bounds.classes)
        self.n_complete_ = self._complete.mean
        self.n_complete_sd_ = self._complete.sd

    def _learn_in_stages(
        self, curator: Oracle, covariances: list[Array], phi: Array, classes: int, stages: int
    ) -> None:
        """Release gradients in stages; ``phi``: features of representative points."""
        link = "linear"
        if self.method == "softmax":
            link = "softmax"
        posterior = SoftmaxPosterior(
            covariances,
            phi,
            self._complete.mean,
            classes,
            softmax=link == "softmax",
            learn_prior=self.learn_kernel,
            count_variance=self._complete.relative_variance,
        )
        for k in range(stages):
            clip_threshold = posterior.best_clip_threshold(stages)
            release = curator.release(
                class_stage(self._feature_map, posterior.mean, clip_threshold, link)
            )
            decoded = ClassGram.decode(release)
            self._feature_map = decoded.feature_map
            if not k and not self._counted:
                self._complete = count_from_gram(
                    decoded.gram, decoded.gram_sd, phi, unit_total(curator)
                )
                posterior.set_count(self._complete.mean, self._complete.relative_variance)
            posterior.add(
                decoded.cross,
                decoded.cross_sd,
                decoded.gram,
                decoded.gram_sd,
                decoded.weights,
                decoded.clip_threshold,
            )
        posterior.finish()
        self._mean = posterior.mean
        self._covariances = posterior.covariances
        self._nonprivate_covariances = posterior.nonprivate_covariances()
        self._calibration_factor = posterior.calibration_factor()

    def _learn_by_class(
        self, curator: Oracle, covariances: list[Array], phi: Array, classes: int
    ) -> None:
        """Release a Gram matrix for each class; ``phi``: features of representative points."""
        release = curator.release(GramByClass(self._feature_map, classes, CLASSES.constant_feature))
        decoded = GramByClass.decode(release)
        self._feature_map = decoded.feature_map
        counted = float(decoded.counts.sum())
        noise = decoded.counts_sd * math.sqrt(classes)
        self._complete = complete_records(counted, noise, unit_total(curator))
        prior = np.mean(covariances, axis=0)
        self._mean, self._covariances, self._nonprivate_covariances = dirichlet_posterior(
            decoded.grams,
            decoded.sums,
            decoded.gram_sd,
            decoded.sums_sd,
            prior,
            phi,
            self._complete.mean,
        )
        self._calibration_factor = 1.0

    def _forget(self, prior: Array) -> None:
        """Take the prior, (m, m), for the posterior: the releases cannot be told from noise.

        A posterior given the estimated number of complete records would take noise for records.
        """
        self._mean = np.zeros_like(self._mean)
        self._covariances = np.repeat(prior[None], self._mean.shape[1], axis=0)
        self._nonprivate_covariances = self._covariances
        self._calibration_factor = 1.0

    def predict(self, X: object) -> Any:
        """The likeliest class of each row.

        NaN for rows that lack an input: in an array of floats where classes are numbers, else of
        objects.
        """
        check_is_fitted(self)
        probabilities = self.predict_proba(X)
        lacking = np.isnan(probabilities[:, 0])
        likeliest = self.classes_[np.where(lacking[:, None], 0.0, probabilities).argmax(axis=1)]
        if lacking.any():
            numeric = likeliest.dtype.kind in "iuf"
            likeliest = likeliest.astype(np.float64 if numeric else object)
            likeliest[lacking] = np.nan
        return likeliest

    def score(self, X: object, y: object, sample_weight: object = None) -> float:
        """Accuracy of the predictions for the labels ``y``. Not protected.

        Rows that lack an input, and labels that are not among the classes, are left out; NaN if all
        do.
        """
        probabilities = self.predict_proba(X)
        bounds = self.releases_[0].bounds
        labels = bounds.class_kind or Labels(bounds.classes or ())
        truth = np.array([labels.code_value(label) for label in np.asarray(y).ravel().tolist()])
        known = ~np.isnan(probabilities[:, 0]) & ~np.isnan(truth)
        if not known.any():
            return math.nan
        hits = probabilities[known].argmax(axis=1) == truth[known]
        weights = None
        if sample_weight is not None:
            weights = np.asarray(sample_weight)[known]
        return float(np.average(hits, weights=weights))

    def predict_proba(self, X: object) -> Array:
        """Probabilities of the classes, (len(X), C); NaN for rows that lack an input.

        Nearer to even where privacy noise or a lack of records leaves uncertainty (but for method
        "labels").
        """
        return self._by_blocks(X, self._probabilities)

    def predict_proba_band(self, X: object, *, privacy: bool = True) -> tuple[Array, Array]:
        """Lower and upper ends of 95 % bands of each class's probability, each (len(X), C).

        For the frequency of the class among many records that are like a row. They hold the model's
        uncertainty and the privacy noise; with ``privacy=False``, the uncertainty without that
        noise. Each is for one class and one row by itself. Approximate: normal errors of log-odds
        (of probabilities between 0 and 1, for method "labels").
        """
        covariances = self._covariances
        if not privacy:
            covariances = self._nonprivate_covariances
        bands = self._by_blocks(X, lambda phi: np.stack(self._band(phi, covariances), axis=1))
        return bands[:, 0], bands[:, 1]

    def _by_blocks(self, X: object, answer: Callable[[Array], Array]) -> Array:
        check_is_fitted(self)
        unit, lacking = fill_missing(self._unit(X))
        with one_blas_thread():
            starts = range(0, len(unit), LIMITS.prediction_block)
            blocks = [unit[start : start + LIMITS.prediction_block] for start in starts]
            answers = np.concatenate([answer(self._feature_map.rows(block)) for block in blocks])
        answers[lacking] = np.nan
        return answers

    def _probabilities(self, phi: Array) -> Array:
        values = phi @ self._mean
        if self.method == "labels":
            sd = np.sqrt(_variances(phi, self._covariances))
            positive = mean_above_zero(values + 1 / len(self.classes_), sd)
            return np.asarray(positive / positive.sum(axis=1, keepdims=True))
        variance = self._log_odds_variance(phi, values, self._covariances)
        return mean_probabilities(self._calibration_factor * log_odds(values), variance)[0]

    def _band(self, phi: Array, covariances: Array) -> tuple[Array, Array]:
        values = phi @ self._mean
        probabilities = self._probabilities(phi)
        if self.method == "labels":
            sd = np.sqrt(_variances(phi, covariances))
            low, high = bounded_bands(values + 1 / len(self.classes_), sd, LIMITS.band_sd)
            return np.minimum(low, probabilities), np.maximum(high, probabilities)
        variance = self._log_odds_variance(phi, values, covariances)
        # a factor above one makes up for what the prior drew to zero, uncertainty included
        low, high = probability_bands(
            self._calibration_factor * log_odds(values),
            max(self._calibration_factor, 1.0) ** 2 * variance,
            LIMITS.band_sd,
        )
        # the predicted probability is a mean, and its distribution is skewed
        return np.minimum(low, probabilities), np.maximum(high, probabilities)

    def _log_odds_variance(self, phi: Array, values: Array, covariances: Array) -> Array:
        """Variances of each class's log-odds against the others, (len(phi), C)."""
        variances = _variances(phi, covariances)
        if self.method == "dirichlet":
            return independent_logit_variance(values, variances)
        C = len(self.classes_)
        return (C / (C - 1)) ** 2 * variances

    def predict_log_proba(self, X: object) -> Array:
        """Logarithms of the probabilities, (len(X), C)."""
        return np.log(self.predict_proba(X))

    def _basis_size(self, signal: float, priors: Prior, bounds: Bounds) -> int:
        """Number of basis functions; ``signal`` = n·√stages over the noise multiplier."""
        most = min(CLASSES.max_size, priors.max_size)
        if self.method == "dirichlet":
            most = min(most, CLASSES.max_class_columns // len(bounds.classes or ()) - 1)
        if self.basis is not None:
            return min(int(self.basis), priors.max_size)
        relative = priors.variances / priors.variances.sum()
        worth = int((relative * signal >= priors.min_relative_signal).sum())
        return min(max(worth, BASIS.min_size + len(bounds.x)), most)

    def _make_prior(self, bounds: Bounds) -> Prior:
        return make_prior(self.kernel, bounds, 1.0, learn=self.learn_kernel)

    def __sklearn_tags__(self) -> "Tags":
        tags = super().__sklearn_tags__()
        # on a hundred records, privacy leaves little to score
        tags.classifier_tags.poor_score = True
        return tags


def _variances(phi: Array, covariances: Array) -> Array:
    """Variances of φᵀw for weights of each covariance, (len(phi), C)."""
    forms = [quadratic_forms(phi, covariance) for covariance in covariances]
    return np.maximum(np.stack(forms, axis=1), 0.0)
