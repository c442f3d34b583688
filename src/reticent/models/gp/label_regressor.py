"""Gaussian-process regression where inputs are public and labels alone are protected.

Proof: label_regressor.md.

The labels enter through Σ a_j v_j only, with one public column a_j for each input
(`inference.labels.design` makes them, `LabelSum` adds them up). Every release after the first is
about what the last fit left over, clipped at its current scale, so that noise shrinks with the
residuals.
All else, kernel, noise level, prediction, is post-processing (`inference.labels.posterior`).
"""

import math
import warnings
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.gaussian_process.kernels import ConstantKernel, Kernel

from reticent.errors import BadInput
from reticent.inference.kernels.columns import mixed_kernel
from reticent.inference.kernels.eigenbasis import quasi_random_points
from reticent.inference.kernels.projection import kernels_around, white_noise_variance
from reticent.inference.labels.cloaking import CRITERIA
from reticent.inference.labels.design import DesignProblem, design_release
from reticent.inference.labels.posterior import (
    AveragedKernel,
    InducingFeatures,
    LabelPosterior,
    average_kernels,
    inducing_inputs,
)
from reticent.inference.linalg import SMALL_JITTER, robust_cholesky
from reticent.models.base import PrivateEstimator
from reticent.models.gp.input_features import fill_missing
from reticent.models.gp.prior_hypotheses import axes_of, check_kernel_columns
from reticent.models.gp.regression_score import RegressionScore
from reticent.models.gp.settings import LABELS, LIMITS, PRIOR, STAGED_FIT
from reticent.privacy.bounds import Bounds
from reticent.privacy.columns.words import YesNo
from reticent.privacy.curator import Oracle
from reticent.privacy.row_maps.label_sum import LabelSum, label_sum
from reticent.privacy.sources.base import Source
from reticent.privacy.sources.codes import code_array
from reticent.privacy.statistics.exact_sum import one_blas_thread
from reticent.validation import as_float, as_generator, check_choice, check_integer, is_integer

if TYPE_CHECKING:
    from sklearn.utils import Tags

__all__ = ["LabelGPRegressor"]

Array = NDArray[np.float64]
_OUTCOMES = ("real", "binary")
_MECHANISMS = ("cloak", "functional", "inducing")
_APPROXIMATIONS = ("fitc", "titsias")


@dataclass(repr=False, eq=False)
class LabelGPRegressor(RegressionScore, PrivateEstimator):
    """Gaussian-process regression with differential privacy for the labels.

    Inputs are NOT protected. Where inputs are public anyway (ages, places, times), this needs far
    less noise than ``GPRegressor``.

    Parameters
    ----------
    kernel : scikit-learn kernel, optional
        The prior of the function, in the units of the data. A hyperparameter's own bounds are its
        prior; "fixed" means fixed. Default: a constant and a smooth function, with length scales
        around a quarter of each input's range; periodic along cycles, and with an effect for each
        word. A kernel that is given sees codes, and is refused for more than two words in no order;
        beside it, the level of the function may be anywhere in the range of y.
    mechanism : {"cloak", "functional", "inducing"}
        Which linear map of the labels is released. "cloak": the mean at the points of interest,
        with noise shaped so that it disturbs them least. "functional": the mean as a function, with
        noise that is white in its own norm. "inducing": the mean of an approximation by a few
        inducing inputs, with a cloak.
    at : array of shape (points, inputs), optional
        The points of interest, for "cloak" and "inducing". Default: the inputs of the records.
    criterion : {"trace", "logdet"}
        What a cloak makes small: the mean squared error at the points of interest, or the volume of
        the noise.
    inducing : int or array of shape (points, inputs), optional
        For "inducing": how many inducing inputs, chosen from the inputs (10 if not given), or which
        ones.
    approximation : {"fitc", "titsias"}
        For "inducing": whether what inducing inputs leave out counts as noise (FITC) or not
        (Titsias, DTC).
    noise : float, optional
        Standard deviation of the observation noise. Learned from the releases if not given.
    outcome : "real" or "binary", optional
        What labels are. "binary": one of the two ends of the range of y, which are never clipped:
        rare ones count in full however few they are. Default: "binary" for labels of yes and no
        without ``noise``, "real" for others. ``noise`` is for "real" alone.
    stages : int, optional
        Number of releases among which the budget is divided equally; 8 if not given. Each is about
        what the last fit left over.
    learn_kernel : bool
        Weigh kernels within a factor of ten of the one given, and inside its own bounds, by the
        evidence of the releases, which is free post-processing. False: the kernel stays as it is.
    bounds, epsilon, delta, ledger, dataset, records_per_person, random_state
        As for every private estimator (``PrivateEstimator``). ``delta`` must be positive. An
        account in a ledger must be opened with ``relation="label"``.

    Attributes
    ----------
    kernel_, noise_
        The kernel with the largest weight, and the standard deviation of the observation noise.
    prior_std_
        Standard deviation of the function before the fit, on average over the records.
    n_complete_, n_complete_sd_
        Number of records that have all inputs and a label, as far as the releases tell, and the
        standard deviation of its error.
    designs_
        How the released maps were made; for a cloak, how far from the optimum it is at most.
    guarantee_, releases_, n_features_in_, feature_names_in_
        As for every private estimator.

    Privacy
    -------
    Neighbours: the label of one record replaced, or missing; all inputs and the number of records
    are public. Released: per stage one noisy sum of clipped residual labels times public columns,
    one of the columns of missing labels, and **the inputs themselves**, which are part of the
    release and of model files. Must be public: the inputs, the bounds, all parameters. ``score``
    reads the labels it is given without protection. A record that lacks an input is left out; one
    that lacks its label counts as such, and whether it does is protected.

    Examples
    --------
    >>> import numpy as np, reticent
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(0, 10, size=(300, 1))
    >>> y = np.sin(x[:, 0]) + 0.1 * rng.normal(size=300)
    >>> bounds = reticent.Bounds(x=[(0, 10)], y=(-2, 2))
    >>> model = reticent.LabelGPRegressor(bounds=bounds, epsilon=1, delta=1e-6).fit(x, y)
    >>> mean, std = model.predict([[2.0]], return_std=True)
    >>> bool(abs(mean[0] - np.sin(2.0)) < 4 * std[0])
    True
    """

    _targets = True
    _relation = "label"
    _pure = False
    _releases = property(lambda self: LABELS.stages if self.stages is None else int(self.stages))

    kernel: Kernel | None = None
    _: KW_ONLY
    mechanism: str = "cloak"
    at: Any = None
    criterion: str = "trace"
    inducing: Any = None
    approximation: str = "fitc"
    noise: float | None = None
    stages: int | None = None
    learn_kernel: bool = True
    outcome: str | None = None

    def _check(self) -> None:
        for name, known in (
            ("mechanism", _MECHANISMS),
            ("criterion", CRITERIA),
            ("approximation", _APPROXIMATIONS),
        ):
            check_choice(name, getattr(self, name), known)
        if self.outcome is not None:
            check_choice("outcome", self.outcome, _OUTCOMES)
        if self.outcome == "binary" and self.noise is not None:
            raise BadInput(
                "Labels that are binary have a spread that depends on their mean: leave out the "
                "noise.",
                parameter="outcome",
            )
        if self.stages is not None:
            check_integer("stages", self.stages, 1, LIMITS.max_stages)
        if self.inducing is not None and self.mechanism != "inducing":
            raise BadInput(
                'inducing is for mechanism="inducing": leave it out, or choose that mechanism.'
            )
        if self.at is not None and self.mechanism == "functional":
            raise BadInput(
                'at is for a cloak: mechanism="functional" releases the '
                "function as a whole, so leave it out."
            )
        if self.noise is not None and not 0 < as_float(self.noise) < LIMITS.largest_noise:
            raise BadInput(
                "noise must be a positive standard deviation, or None to learn "
                f"it, not {self.noise!r}.",
                parameter="noise",
            )
        if self.kernel is not None and not isinstance(self.kernel, Kernel):
            raise BadInput(
                f"kernel must be a scikit-learn kernel such as RBF(2.0), not {self.kernel!r}."
            )
        if not isinstance(self.learn_kernel, bool):
            raise BadInput(
                "learn_kernel must be True or False, not "
                f"{self.learn_kernel!r}: it is free either way."
            )
        if isinstance(self.bounds, Bounds) and (
            self.bounds.classes is not None or len(self.bounds.y) > 1
        ):
            raise BadInput(
                "LabelGPRegressor predicts one number: give the range of one y "
                "in the bounds, not classes."
            )

    def _prepare(self, data: Source, bounds: Bounds) -> tuple[object, dict[str, Any]]:
        prepared, options = super()._prepare(data, bounds)
        # few records cannot have too many different inputs
        if data.known_n is None or data.known_n > LABELS.max_inputs:
            options["look"] = _distinct_inputs
        return prepared, options

    def _validate_before_charge(self, bounds: Bounds) -> None:
        """Find points and kernels that cannot be used before anything is charged."""
        check_kernel_columns(self.kernel, bounds)
        for name in ("at", "inducing"):
            if getattr(self, name) is not None and not is_integer(
                getattr(self, name), 1, LABELS.max_inputs
            ):
                _scaled_points(name, getattr(self, name), bounds)
        fits = False
        try:
            with (
                np.errstate(over="raise", invalid="raise", divide="raise"),
                warnings.catch_warnings(),
            ):
                warnings.simplefilter("error")
                kernels, s2 = self._priors(bounds)
                points = quasi_random_points(len(bounds.x), 5)
                grams = [k(points, points) for k in kernels]
                representable = all(
                    LIMITS.smallest_variance < v < 1 / LIMITS.smallest_variance
                    for v in [*s2, *(float(k.diag(points).min()) for k in kernels)]
                )
                fits = representable and all(
                    np.linalg.eigvalsh(gram)[0] > -1e-9 * np.trace(gram) for gram in grams
                )
        except (ArithmeticError, ValueError, TypeError, Warning):
            fits = False
        if not fits:
            raise BadInput(
                f"The kernel {self.kernel} cannot be used for {len(bounds.x)} inputs and these "
                "ranges: give a positive definite scikit-learn kernel with one length scale, or "
                "one per input, and amplitudes (and noise) in the units of y."
            )

    def _priors(self, bounds: Bounds) -> tuple[list[AveragedKernel], Array]:
        """Kernel hypotheses and their noise variances (or first guesses), in half-ranges of y."""
        low, high = bounds.y[0]
        half = high / 2 - low / 2
        widths = np.array([high / 2 - low / 2 for low, high in bounds.x])
        if self.kernel is None:
            kernel = _default_kernel(bounds, widths, half)
        else:
            kernel = clone(self.kernel) + ConstantKernel(PRIOR.level_variance * half**2, "fixed")
        if self.learn_kernel:
            kernels = kernels_around(kernel, widths, LABELS.hypotheses)
        else:
            kernels = [kernel]
        middle = bounds.unscale(np.zeros((1, len(widths))))
        white = np.array([white_noise_variance(k, middle) / half**2 for k in kernels])
        if self.noise is None:
            s2 = np.maximum(white, LABELS.noise_guess**2)
        else:
            s2 = white + (self.noise / half) ** 2
        return [AveragedKernel([k], np.ones(1), bounds.unscale, half) for k in kernels], s2

    def learn(self, curator: Oracle) -> None:
        """Release K times, each time what the last fit left over."""
        bounds = curator.bounds
        posterior = None
        initial: list[
            LabelPosterior
        ] = []  # before any release: what the first question was made with
        self.designs_: list[str] = []
        for k in range(self._releases):

            def plan(
                unit: Array,
                weights: Array | None = None,
                k: int = k,
                posterior: LabelPosterior | None = posterior,
            ) -> LabelSum:
                if posterior is None:
                    distinct = _distinct_inputs(unit, weights)
                    initial.append(self._initial_posterior(*distinct, bounds))
                return self._statistic(posterior or initial[0], bounds, k, curator.noise_multiplier)

            release = curator.release_given_inputs(plan)
            decoded = LabelSum.decode(release)
            if (
                posterior is None
            ):  # the same inputs are the same belief, which takes a while to make
                same = initial and np.array_equal(initial[0].inputs, decoded.inputs)
                if same:
                    posterior = initial[0]
                else:
                    posterior = self._initial_posterior(decoded.inputs, decoded.counts, bounds)
            posterior.add(
                decoded.columns,
                decoded.value,
                decoded.sd,
                decoded.centre,
                decoded.clip_threshold,
                decoded.squares,
                (decoded.missing, decoded.missing_sd),
            )
            self.designs_.append(decoded.design)
            self._listen(1)
        assert posterior is not None
        low, high = bounds.y[0]
        self._middle = low / 2 + high / 2
        self._half = high / 2 - low / 2
        self._posterior = posterior.posterior()
        self.kernel_ = self._posterior.parts[0].features.k.kernels[0]
        if self.noise is None:
            self.noise_ = math.sqrt(posterior.noise_variance) * self._half
        else:
            self.noise_ = float(self.noise)
        self.prior_std_ = posterior.prior_std * self._half
        self.n_complete_, self.n_complete_sd_ = posterior.labels

    def _initial_posterior(self, inputs: Array, counts: Array, bounds: Bounds) -> LabelPosterior:
        kernels, s2 = self._priors(bounds)
        candidates = inputs[:: -(-len(inputs) // LABELS.inducing_candidates)]
        at = inducing_inputs(average_kernels(kernels), candidates, LABELS.max_inducing_inputs)
        return LabelPosterior(
            kernels,
            s2,
            inputs,
            counts,
            at,
            learn_noise=self.noise is None,
            learn_kernel=self.learn_kernel,
        )

    def _statistic(
        self, posterior: LabelPosterior, bounds: Bounds, k: int, noise_multiplier: float
    ) -> LabelSum:
        """The next release's statistic, from public numbers and earlier releases.

        The first one is clipped at the bounds of y, later ones by `_clip_threshold`; those of
        binary labels all at the bounds, about the middle, where the largest residual is smallest.
        """
        if self.noise is None:
            squares = LABELS.square_fraction
        else:
            squares = 0.0
        clip_threshold = 1.0
        centre = np.zeros(len(posterior.inputs))
        if k and not self._is_binary(bounds):
            clip_threshold = self._clip_threshold(posterior, k)
            centre = posterior.centre
        features = self._inducing_features(posterior, bounds)
        psi, left_out = features(posterior.inputs)
        heteroscedastic = self.mechanism != "inducing" or self.approximation == "fitc"
        nu = posterior.noise_variance + posterior.counts * (left_out if heteroscedastic else 0.0)
        # what is known already need not be released again
        root = robust_cholesky(posterior.weight_covariance(psi, left_out), SMALL_JITTER)
        target = (psi * posterior.counts) @ psi.T
        if self.at is not None:
            points = features(_scaled_points("at", self.at, bounds))[0]
            target = points @ points.T + LABELS.input_trace * target
        target = root.T @ target @ root
        problem = DesignProblem(
            root.T @ psi,
            posterior.counts,
            nu,
            target,
            (2 * noise_multiplier * clip_threshold) ** 2 / (1 - squares),
        )
        columns, cloak = design_release(
            problem, None if self.mechanism == "functional" else self.criterion
        )
        if cloak is None:
            design = self.mechanism
        else:
            design = f"{self.mechanism}, {self.criterion}, within {cloak.gap:.1e}"
        return label_sum(
            posterior.inputs,
            posterior.records,
            columns,
            design=design,
            centre=centre,
            clip_threshold=clip_threshold,
            squares=squares,
        )

    def _is_binary(self, bounds: Bounds) -> bool:
        if self.outcome is None:
            return isinstance(bounds.y_kinds[0], YesNo) and self.noise is None
        return self.outcome == "binary"

    def _clip_threshold(self, posterior: LabelPosterior, k: int) -> float:
        """Clip threshold of stage k > 0, in half-ranges of y: the rule of `GPRegressor`.

        Where the expected error of the function is least (`LabelPosterior.clip_errors`), but no
        narrower than ``clip_schedule``; than where privacy noise is `negligible_noise` of the
        sampling noise; and, in one early stage, than where a second moment still tells the noise.
        Not in the last: one of eight stages is more than one of 24.
        """
        stages = self._releases
        schedule = LABELS.clip_schedule
        longest = posterior.longest_residual()
        lowest = schedule[min(k, len(schedule)) - 1] * posterior.residual_sd()
        negligible = STAGED_FIT.negligible_noise * posterior.negligible_threshold(stages)
        lowest = max(lowest, negligible * posterior.total_sd())
        if self.noise is None and k == STAGED_FIT.early_stages:
            lowest = max(lowest, posterior.informative_threshold())
        if lowest >= longest:
            return longest
        candidates = np.geomspace(lowest, longest, STAGED_FIT.clip_candidates)
        return float(candidates[np.argmin(posterior.clip_errors(candidates, stages))])

    def _inducing_features(self, posterior: LabelPosterior, bounds: Bounds) -> InducingFeatures:
        """The features that the mean is written in."""
        mean = posterior.mean_kernel()
        if self.mechanism != "inducing":
            return posterior.inducing_features(mean)
        if self.inducing is None or is_integer(self.inducing, 1, LABELS.max_inputs):
            return InducingFeatures.from_kernel(
                mean,
                inducing_inputs(
                    mean, posterior.inputs, int(self.inducing or LABELS.default_inducing)
                ),
            )
        return InducingFeatures.from_kernel(mean, _scaled_points("inducing", self.inducing, bounds))

    def predict(self, X: object, return_std: bool = False, return_cov: bool = False) -> Any:
        """Mean of the function at ``X`` within the bounds of y, and its std or covariance.

        They include the model's own variance and the privacy noise. Inputs outside bounds count as
        the edge; a row that lacks one has NaN.
        """
        if return_std and return_cov:
            raise BadInput("Ask for return_std or return_cov, not for both.")
        if return_cov:
            mean, covariance, lacking = self._joint(X)
            mean[lacking] = np.nan
            covariance[lacking] = np.nan
            covariance[:, lacking] = np.nan
            return self._bounded(mean), self._half**2 * covariance
        mean, model, privacy = self._moments(X)
        if return_std:
            return (mean, np.sqrt(model + privacy))
        return mean

    def variance_parts(self, X: object) -> dict[str, Array]:
        """Variance of an output at ``X`` by its causes: ``model``, ``privacy`` and ``noise``."""
        _, model, privacy = self._moments(X)
        return {"model": model, "privacy": privacy, "noise": np.full(len(model), self.noise_**2)}

    def sample_y(self, X: object, n_samples: int = 1, random_state: object = 0) -> Array:
        """Draw functions from the posterior at ``X``: shape (len(X), n_samples)."""
        check_integer("n_samples", n_samples)
        mean, covariance, lacking = self._joint(X)
        draws = as_generator(random_state).multivariate_normal(
            mean, covariance, n_samples, method="eigh"
        )
        draws[:, lacking] = np.nan
        return np.asarray(self._middle + self._half * draws.T)

    def _joint(self, X: object) -> tuple[Array, Array, NDArray[np.bool_]]:
        """Mean and covariance, in half-ranges, and which rows lack an input."""
        unit, lacking = fill_missing(self._unit(X))
        with one_blas_thread():
            return *self._posterior.joint(unit), lacking

    def _bounded(self, mean: Array) -> Array:
        return np.clip(
            self._middle + self._half * mean, self._middle - self._half, self._middle + self._half
        )

    def _moments(self, X: object) -> tuple[Array, Array, Array]:
        """Mean, and both parts of the function's variance.

        Block by block, so that memory stays bounded.
        """
        unit, lacking = fill_missing(self._unit(X))
        with one_blas_thread():
            blocks = [
                self._posterior.moments(unit[i : i + LIMITS.prediction_block])
                for i in range(0, len(unit), LIMITS.prediction_block)
            ]
        moments = np.concatenate(blocks, axis=1)
        moments[:, lacking] = np.nan
        mean, model, privacy = moments
        return self._bounded(mean), self._half**2 * model, self._half**2 * privacy

    def __sklearn_tags__(self) -> "Tags":
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = (
            True  # on a hundred records, privacy leaves little to score
        )
        return tags


def _default_kernel(bounds: Bounds, widths: Array, half: float) -> Kernel:
    """A constant and a function of about the size of y's range.

    Smooth along numbers and ordered levels, periodic along cycles, with effects of its own for each
    word.
    """

    def about(value: Array | float) -> Array:
        factor = LABELS.prior_factor
        return np.stack([np.asarray(value) / factor, np.asarray(value) * factor], axis=-1)

    size = LABELS.prior_variance * half**2
    limits = tuple(about(size))
    lengths = widths / 2
    return mixed_kernel(
        axes_of(bounds),
        lengths,
        about(lengths),
        ConstantKernel(size, limits),
        ConstantKernel(size, limits),
        periods=(2 * widths).tolist(),
    )


def _distinct_inputs(unit: Array, weights: Array | None = None) -> tuple[Array, Array]:
    """The different inputs, in order, and how many records stand at each, or how much they weigh.

    A record that lacks an input, or has no weight, is left out. Where all do, the middle of the box
    stands for them, with next to no record.
    """
    counted = ~np.isnan(unit).any(axis=1)
    if weights is not None:
        counted &= weights > 0
    complete = unit[counted] + 0.0  # −0 is 0
    if not len(complete):
        return np.zeros((1, unit.shape[1])), np.full(1, LABELS.no_records)
    inputs, places, counts = np.unique(complete, axis=0, return_inverse=True, return_counts=True)
    if weights is not None:
        counts = np.bincount(places.ravel(), weights[counted])
    if len(inputs) > LABELS.max_inputs:
        raise BadInput(
            f"There are {len(inputs):,} different inputs, and a label-only model takes up to "
            f"{LABELS.max_inputs:,}: round the inputs, which are public, or use GPRegressor."
        )
    return inputs, counts.astype(np.float64)


def _scaled_points(name: str, points: Any, bounds: Bounds) -> Array:
    """Points given by the user, scaled as inputs are."""
    d = len(bounds.x)
    try:
        given = np.asarray(points)
        if given.dtype.kind not in "biuf":
            given = np.asarray(points, dtype=object)
        if given.ndim == 1 and d == 1:
            given = given.reshape(-1, 1)
        fits = given.ndim == 2 and given.shape[1] == d and 1 <= len(given) <= LABELS.max_points
        array = np.array([[np.nan]])
        if fits:
            columns = [code_array(given[:, j], kind) for j, kind in enumerate(bounds.x_kinds)]
            array = np.column_stack(columns)
    except (OverflowError, TypeError, ValueError):
        fits = False
    if not fits or not np.isfinite(array).all():
        raise BadInput(
            f"{name} must be an array of 1 to {LABELS.max_points:,} points with {d} finite "
            f"number{'s' if d > 1 else ''} each, in the units of the inputs (words as they are "
            "listed in the bounds)."
        )
    return bounds.inputs_alone().scale(array) + 0.0
