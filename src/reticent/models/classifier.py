"""Gaussian-process classification that protects inputs and labels. Proof: classifier.md.

softmax     (default) stages release noisy gradients of a multinomial likelihood, each taken at the last fit (maths.softmax)
labels      the same for the regression of one-hot labels, which is linear
dirichlet   one release of a Gram matrix for each class, from which the targets of Milios et al. (2018) follow (maths.dirichlet)
"""

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils.validation import check_is_fitted

from reticent.errors import BadInput
from reticent.maths.bands import chance_bands
from reticent.maths.basis import Basis
from reticent.maths.dirichlet import dirichlet_posterior
from reticent.maths.linalg import quadratic
from reticent.maths.priors import energies, usual_length
from reticent.maths.softmax import StagedClasses
from reticent.models.base import PrivateEstimator
from reticent.models.classes import GramByClass, class_stage, softmax
from reticent.models.hypotheses import LEAST, MOST, hypotheses_of, rehearsed
from reticent.models.inputs import features, input_laws
from reticent.models.residuals import Features
from reticent.privacy.bounds import Bounds
from reticent.privacy.curator import Oracle
from reticent.privacy.given import check_choice, check_whole
from reticent.privacy.sums import one_blas_thread

__all__ = ["GPClassifier"]

Array = NDArray[np.float64]
METHODS = ("softmax", "labels", "dirichlet")
_STAGES, _INPUTS = 24, 12  # stages by default; one in so many is about the inputs alone
_LOGITS = 64.0  # variance of logits, as a multiple of the prior's, which is made for numbers between −1 and 1
_WIDEST = 500
_EXPONENT = 0.4
_CLIP, _NARROW = 1.2, 0.6  # reach of a stage: so many times the root mean square of what is left, at least so much
_SIDE = 0.5  # s of the release by class
_COLUMNS = 1500  # of the release by class, classes × (functions + 1): its square is what is released
_AT_ONCE = 4096
_BAND = 1.959963984540054  # standard deviations, for 95 %


@dataclass(repr=False, eq=False)
class GPClassifier(ClassifierMixin, PrivateEstimator):  # type: ignore[misc]
    """Gaussian-process classification with differential privacy for inputs and labels.

    Parameters
    ----------
    kernel : scikit-learn kernel, optional
        Prior covariance of each class's log-odds. Default: a constant and smooth effects of one, two and three inputs, after
        the inputs have been spread out evenly by what two of the releases tell.
    method : "softmax", "labels" or "dirichlet"
        How labels enter. "softmax" is best nearly always; "dirichlet" is the DP-GP paper's, corrected, with a single release.
    basis, stages : int, optional
        Number of basis functions and of releases; chosen from n, ε and δ by default.
    learn_kernel : bool
        Whether hypotheses about the kernel are weighed by the evidence, which costs nothing.
    bounds, epsilon, delta, ledger, dataset, records_per_person, random_state
        As for every private estimator (``PrivateEstimator``); the bounds list all classes: ``Bounds(x=..., classes=[...])``.

    Attributes
    ----------
    classes_ : array
        The classes of the bounds, in their order. A class without records is as likely as privacy noise leaves it.
    guarantee_, releases_, n_features_in_, feature_names_in_

    Privacy
    -------
    Neighbours: one record, inputs and label, replaced. Released: sums with Gaussian noise, as many as ``stages``; everything
    else is computed from them. Must be public: the bounds with the list of classes, the number of records, all parameters. A
    label that is not in the list counts as the first class.

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
        return _STAGES if self.method != "dirichlet" else 1

    @property
    def _about_inputs(self) -> int:
        """Releases about the inputs alone: none for a given kernel, which speaks of them as they are, or if there is but one."""
        return self._releases // _INPUTS if self.kernel is None and self.method != "dirichlet" else 0

    def _check(self) -> None:
        check_choice("method", self.method, METHODS)
        for name, value, most in (("stages", self.stages, 64), ("basis", self.basis, _WIDEST)):
            if value is not None:
                check_whole(name, value, 1, most)
        if self.method == "dirichlet" and self.stages not in (None, 1):
            raise BadInput('method="dirichlet" has a single release: leave stages out.')
        if self.kernel is not None and not isinstance(self.kernel, Kernel):
            raise BadInput(f"kernel must be a scikit-learn kernel such as RBF(2.0), not {self.kernel!r}.")
        if not isinstance(self.learn_kernel, bool):
            raise BadInput(f"learn_kernel must be True or False, not {self.learn_kernel!r}.")
        if isinstance(self.bounds, Bounds) and self.bounds.classes is None:
            raise BadInput("GPClassifier needs the list of classes: Bounds(x=..., classes=['no', 'yes']).")

    def _rehearse(self, bounds: Bounds) -> None:
        """Go through the public part of a fit, so that what cannot be used is found before anything is charged."""
        classes = len(bounds.classes or ())
        if self.method == "dirichlet" and classes * (int(self.basis or LEAST) + 1) > _COLUMNS:
            raise BadInput(
                f'method="dirichlet" releases a Gram matrix for each of {classes} classes, too many functions: take at '
                f"most {max(_COLUMNS // classes - 1, 0)}, or another method."
            )

        def usable(priors: Any, basis: Basis) -> bool:
            return bool(np.isfinite(energies(basis, priors.emphasis[: basis.size], _EXPONENT, 1.0)).all())

        self._rehearsed = rehearsed(self.kernel, bounds, lambda: self._priors(bounds), usable, "for log-odds")

    def learn(self, curator: Oracle) -> None:
        """Release as often as was paid for, each time what the last fit left over."""
        bounds, n = curator.bounds, curator.n
        classes = len(bounds.classes or ())
        priors = self.__dict__.pop("_rehearsed", None) or self._priors(bounds)
        noise = self._event().noise_multiplier * self.records_per_person  # type: ignore[attr-defined]
        stages = self._releases - self._about_inputs
        basis, hypotheses, _ = priors.choose(self._size(n * math.sqrt(stages) / noise, priors, bounds))
        told = n * stages / noise**2 / basis.size  # (signal of n records)² against privacy noise, per function
        energy = energies(basis, priors.emphasis[: basis.size], _EXPONENT, usual_length(told))
        self._head, like = features(basis, energy, input_laws(curator, self._about_inputs, noise))
        points = self._head.rows(like)
        scale = _LOGITS if self.kernel is None and self.method != "labels" else 1.0
        covariances = [scale * S / np.outer(energy, energy) for S in hypotheses]
        if self.method == "dirichlet":
            self._learn_by_class(curator, covariances, points, classes)
        else:
            self._learn_in_stages(curator, covariances, points, classes, stages)
        self.classes_ = np.array(bounds.classes)

    def _learn_in_stages(
        self, curator: Oracle, covariances: list[Array], points: Array, classes: int, stages: int
    ) -> None:
        link = "softmax" if self.method == "softmax" else "linear"
        n, learn = curator.n, self.learn_kernel
        belief = StagedClasses(covariances, points, n, classes, softmax=link == "softmax", learn=learn)
        for k in range(stages):
            reach = _CLIP * math.sqrt(belief.second) if k else math.sqrt(1 - 1 / classes)  # at first all are so long
            reach = min(max(reach, _NARROW), math.sqrt(2))
            release = curator.release(class_stage(self._head, belief.mean, reach, link))
            asked = release.statistic  # what was really asked counts: machines differ in the last bits of sums
            self._head = Features.from_dict(asked["head"])
            G, sd, m = release.matrix(), release.matrix_sd(), self._head.columns
            back = asked["reach"] / math.sqrt(self._head.radius2)
            W = np.array(asked["weights"]).T * 2.0 ** -asked["shift"]
            q, q_sd = (np.trace(G[m:, m:]), math.sqrt(classes) * sd[m, m])
            belief.add(
                G[:m, m:] * back, sd[0, m] * back, G[:m, :m], sd[:m, :m], q * back**2, q_sd * back**2, W, asked["reach"]
            )
        self._mean, self._covariance, self._own = belief.mean, belief.covariance, belief.without_privacy()
        self._sharpness, self._usual = belief.sharpness(), self._doubt(points)

    def _learn_by_class(self, curator: Oracle, covariances: list[Array], points: Array, classes: int) -> None:
        release = curator.release(GramByClass(self._head, classes, _SIDE))
        asked = release.statistic
        self._head = Features.from_dict(asked["head"])
        G, sd, m = release.matrix(), release.matrix_sd(), self._head.columns
        blocks = [slice(c * (m + 1), (c + 1) * (m + 1)) for c in range(classes)]
        grams = np.array([G[block, block] for block in blocks])
        S, a = grams[:, :m, :m], grams[:, :m, m] / asked["side"]
        prior = np.mean(covariances, axis=0)
        self._mean, self._covariance, self._own = dirichlet_posterior(
            S, a, sd[:m, :m], float(sd[0, m]) / asked["side"], prior, points, curator.n
        )
        self._sharpness, self._usual = 1.0, 0.0

    def predict(self, X: Any) -> Any:
        """The likeliest class of each row."""
        check_is_fitted(self)
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def predict_proba(self, X: Any) -> Array:
        """Chances of the classes; where noise or a lack of records leaves doubt, nearer to even (but for method "labels")."""
        return self._by_blocks(X, self._chances)

    def predict_proba_band(self, X: Any, *, privacy: bool = True) -> tuple[Array, Array]:
        """Lowest and highest chance of each class: 95 % bands for what its share is among many records that are like a row.

        They hold the model's doubt and the privacy noise; with ``privacy=False``, what the doubt would be without that noise.
        Each is for one class and one row by itself. Approximate: normal errors of log-odds (of chances, for method "labels").
        """
        covariance = self._covariance if privacy else self._own
        bands = self._by_blocks(X, lambda phi: np.stack(self._band(phi, covariance), axis=1))
        return bands[:, 0], bands[:, 1]

    def _by_blocks(self, X: Any, answer: Callable[[Array], Array]) -> Array:
        check_is_fitted(self)
        unit = self._unit(X)
        with one_blas_thread():
            starts = range(0, len(unit), _AT_ONCE)
            return np.concatenate([answer(self._head.rows(unit[start : start + _AT_ONCE])) for start in starts])

    def _chances(self, phi: Array) -> Array:
        values, C = phi @ self._mean, len(self.classes_)
        if self.method == "labels":
            floor = 0.1 / C
            chances = np.maximum(values + 1 / C, floor)
            return np.asarray(chances / chances.sum(axis=1, keepdims=True))
        # the mean of a logistic function of a normal variable, by that of a probit: two classes differ by twice the variance;
        # the sharpness has seen what is usual where records are
        moderate = np.sqrt((1 + math.pi / 4 * self._usual) / (1 + math.pi / 4 * quadratic(phi, self._covariance)))
        return softmax(self._sharpness * moderate[:, None] * values)

    def _band(self, phi: Array, covariance: Array) -> tuple[Array, Array]:
        chances, variance = self._chances(phi), np.maximum(quadratic(phi, covariance), 0.0)
        if self.method == "labels":
            reach = _BAND * np.sqrt(variance)[:, None]
            return np.maximum(chances - reach, 0.0), np.minimum(chances + reach, 1.0)
        scale = self._sharpness * math.sqrt(1 + math.pi / 4 * self._usual)  # of logits, before they are moderated
        # a factor above one makes up for what the prior drew to zero, doubt included
        low, high = chance_bands(scale * (phi @ self._mean), max(scale, 1.0) ** 2 * variance, _BAND)
        return np.minimum(low, chances), np.maximum(high, chances)  # the chance told is a mean, and the law is skewed

    def _doubt(self, phi: Array) -> float:
        """Mean variance of a class's logit at these features."""
        return float(np.mean(quadratic(phi, self._covariance)))

    def predict_log_proba(self, X: Any) -> Array:
        """Logarithms of the chances."""
        return np.log(self.predict_proba(X))

    def _size(self, share: float, priors: Any, bounds: Bounds) -> int:
        """How many basis functions the budget can carry."""
        most = min(MOST, priors.most)
        if self.method == "dirichlet":
            most = min(most, _COLUMNS // len(bounds.classes or ()) - 1)
        if self.basis is not None:
            return min(int(self.basis), priors.most)
        relative = priors.variances / priors.variances.sum()
        worth = int((relative * share >= priors.stands_out).sum())
        return min(max(worth, LEAST + len(bounds.x)), most)

    def _priors(self, bounds: Bounds) -> Any:
        return hypotheses_of(self.kernel, bounds, 1.0, learn=self.learn_kernel)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # on a hundred records, privacy leaves little to score
        return tags
