"""Gaussian-process regression that protects inputs and outputs, by staged residual releases.

Proof: regressor.md.

f(x) = φ(x)ᵀw with m public functions φ (`polynomial_basis`) and w ~ N(0, S), S the
kernel's covariance projected on them. Each of K stages releases the Gram matrix of (φ, (R/r)·e),
e = clip(y − φᵀw_k, ±r): residuals of the last fit, clipped at their current scale, so that noise
shrinks with the residuals (`inference.moment_model`). The first release tells how many records are
complete: one that lacks a value adds nothing to any. With no kernel given, it and a second one show
how the inputs are distributed, to spread them evenly over the box. All but the releases is
post-processing: kernel, noise level, prediction.
"""

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm
from sklearn.base import RegressorMixin, clone
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils.validation import check_is_fitted

from reticent.errors import BadInput
from reticent.inference.inputs.complete_records import CompleteRecords
from reticent.inference.inputs.density import (
    density_threshold,
    effective_support,
    extrapolation_weight,
    level_threshold,
    marginal_densities,
)
from reticent.inference.kernels.anova import AnovaPriors
from reticent.inference.kernels.axes import LINE, Axis
from reticent.inference.kernels.projection import (
    KernelPriors,
    feature_scales,
    norm_quantile,
)
from reticent.inference.kernels.settings import PROJECTION
from reticent.inference.linalg import quadratic_forms
from reticent.inference.moment_model.gram_estimation import DAMPING
from reticent.inference.moment_model.outcomes import OUTCOMES, Outcome
from reticent.inference.moment_model.posterior import StagedPosterior
from reticent.inference.moment_model.predictive import OutputPosterior
from reticent.inference.moment_model.relevance import RelevanceModel
from reticent.inference.moment_model.settings import JOINT, POSTERIOR, TWO_VALUES
from reticent.models.base import PrivateEstimator
from reticent.models.gp.input_features import (
    count_complete_records,
    estimate_inputs,
    fill_missing,
    inputs_needing_linear_term,
    make_feature_map,
    mean_of_products,
    warn_of_missing_values,
    zoom_warp,
)
from reticent.models.gp.prior_hypotheses import (
    PreparedPrior,
    axes_of,
    choose_basis_size,
    covariances_of_weights,
    make_prior,
    refine_prior,
    scaling_exponent,
    validated_prior,
)
from reticent.models.gp.settings import BASIS, INPUTS, LIMITS, STAGED_FIT
from reticent.models.gp.staged_fit import Prior, StageState, Warp, ingest_release
from reticent.models.unit_total import unit_total
from reticent.privacy.bounds import Bounds
from reticent.privacy.columns.words import YesNo
from reticent.privacy.curator import Oracle
from reticent.privacy.row_maps.features.basis_features import FeatureMap
from reticent.privacy.row_maps.features.polynomial_basis import Basis
from reticent.privacy.row_maps.residual_gram import ResidualGram, stage, stage_with_sizes
from reticent.privacy.statistics.exact_sum import one_blas_thread
from reticent.validation import as_float, as_generator, check_integer, is_integer

if TYPE_CHECKING:
    from sklearn.utils import Tags

__all__ = ["GPRegressor"]

Array = NDArray[np.float64]


@dataclass(repr=False, eq=False)
class GPRegressor(RegressorMixin, PrivateEstimator):  # type: ignore[misc]
    """Gaussian-process regression with differential privacy for inputs and outputs.

    Parameters
    ----------
    kernel : scikit-learn kernel, optional
        The prior of the function, in the units of the data. A hyperparameter's own bounds are its
        prior; "fixed" means fixed. Default: a constant and effects of single inputs, of pairs and
        of triples: smooth ones of numbers, which are first spread evenly over the box by a private
        count of each, and of ordered words; periodic ones of cycles; one for each word. How large
        and how smooth effects are is learned, with several inputs for each of them. A kernel sees
        codes: of ordered words and of yes and no 0, 1, 2, …; it is refused for more than two words
        in no order.
    noise : float, optional
        Standard deviation of the observation noise. Learned from the releases if not given, and
        how it depends on the inputs too, as far as they tell: for outputs that are all numbers, in
        six stages or more (beside those about the inputs). If given, it is the least, the same
        everywhere: outliers count as more noise.
    outcome : "real", "binary", "count" or "positive", optional
        What outputs are. The function is their mean in any case; this says how their spread
        depends on it, and where it lies. "binary": one of the two ends of the range of y; their
        spread is known, residuals are never clipped, and means are in the range. "count": the
        variance grows with the mean, which is not below 0. "positive": amounts whose standard
        deviation grows with the mean. Default: "binary" for outputs of yes and no, "real" for
        others; of numbers whose outcome is not given the releases may tell that they are binary
        (``outcome_``). ``noise`` and ``noise_column`` are for "real" alone.
    noise_column : str or int, optional
        A column of X (by name, or by position where bounds have no names) that is no input: it
        holds the known standard deviation of each record's observation noise. Its range stands in
        the bounds beside those of the inputs, and must begin above 0: records count by (lower
        bound / level)². A level below counts as the lower bound; one that is not positive as the
        upper one; a record whose level is missing is left out. For one output and two stages or
        more; ``noise`` must be None.
    basis : int, optional
        Number of basis functions; chosen from public numbers if not given.
    stages : int, optional
        Number of releases among which the budget is divided equally; 24 if not given. More stages
        cost time, not budget. With no kernel given, one in twelve counts the inputs; with a kernel
        given, one of twelve or more counts the complete records. With fewer than twelve, the inputs
        are left as they are, and the complete records are estimated from the first release; with a
        noise column, which hides their number there, the first counts them, and the inputs.
    learn_kernel : bool or "average"
        True: weigh kernels within a factor of ten of the one given, and inside its own bounds, by
        the evidence of the releases, which is free post-processing; for one output, go on with
        kernels around the best. "average": take the mean of these kernels. False: the kernel stays
        as it is.
    bounds, epsilon, delta, ledger, dataset, records_per_person, random_state
        As for every private estimator (``PrivateEstimator``). ``delta`` must be positive.

    Attributes
    ----------
    kernel_, noise_
        The kernel with the largest weight, and the standard deviation of the observation noise
        over the records (None with ``noise_column``); one for each output if there are several.
        The default kernel is in units of the box [−1, 1] and of half the range of y.
    noise_range_
        Least and largest standard deviation of the noise among the middle 98 % of the records: it
        may depend on the inputs (`variance_parts`). None with ``noise_column``.
    outcome_
        What outputs are taken for: ``outcome``, or "binary" if the releases tell that numbers are
        all at an end of the range of y; one for each output if there are several.
    prior_std_
        Standard deviation of the function before the fit, on average over the box.
    n_complete_, n_complete_sd_
        Number of records that have all values, as far as releases tell, and the standard deviation
        of its error. Others are left out. Clearly fewer than all: a fit warns.
    guarantee_, releases_, n_features_in_, feature_names_in_
        As for every private estimator; a noise column is not a feature.

    Privacy
    -------
    Neighbours: one record (inputs, outputs, noise level) replaced, number of records public.
    Released: per stage the Gram matrix of features and clipped residuals, in the last but one with
    the sizes of these; moments of the inputs
    with the number of complete records; with no kernel given, counts of the inputs. Must be public:
    the bounds, the number of records, the kernel, all parameters. ``score`` reads the records it is
    given without protection. A record that lacks an input or an output adds nothing. An output
    outside its bounds counts as it is (up to 64 times their width): the clip of the residuals, not
    the bounds, limits what one record can do.

    Examples
    --------
    >>> import numpy as np, reticent
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(0, 10, size=(5000, 1))
    >>> y = np.sin(x[:, 0]) + 0.1 * rng.normal(size=5000)
    >>> bounds = reticent.Bounds(x=[(0, 10)], y=(-2, 2))
    >>> model = reticent.GPRegressor(bounds=bounds, epsilon=1, delta=1e-6).fit(x, y)
    >>> mean, std = model.predict([[2.0]], return_std=True)
    >>> bool(abs(mean[0] - np.sin(2.0)) < 0.2)
    True
    """

    _targets = True
    _pure = False

    kernel: Kernel | None = None
    _: KW_ONLY
    noise: float | None = None
    outcome: str | None = None
    noise_column: str | int | None = None
    basis: int | None = None
    stages: int | None = None
    learn_kernel: bool | str = True

    @property
    def _releases(self) -> int:
        if self.stages is not None:
            return int(self.stages)
        return STAGED_FIT.stages

    @property
    def _input_releases(self) -> int:
        """Number of releases about the inputs alone.

        For a given kernel, whose inputs stay, at most one, which counts the complete records. With
        a noise column at least one: a Gram matrix does not tell few records from small weights.
        Where records have weights of their own, the total weight must be counted.
        """
        releases = self._releases // STAGED_FIT.stages_per_input_release
        if self.noise_column is not None:
            releases = max(releases, 1)
        if not self._one_each:
            releases = max(releases, min(self._releases - 1, 1))
        if self.kernel is None:
            return releases
        return min(releases, 1)

    def _check(self) -> None:
        if self.stages is not None:
            check_integer("stages", self.stages, 1, LIMITS.max_stages)
        if self.basis is not None:
            check_integer("basis", self.basis, 1, LIMITS.max_basis_size)
        if self.noise is not None and not 0 < as_float(self.noise) < LIMITS.largest_noise:
            raise BadInput(
                "noise must be a positive standard deviation, or None to learn "
                f"it, not {self.noise!r}.",
                parameter="noise",
            )
        if self.noise_column is not None:
            self._check_noise_parameters()
        if self.outcome is not None:
            self._check_outcome(self.outcome)
        if self.kernel is not None and not isinstance(self.kernel, Kernel):
            raise BadInput(
                f"kernel must be a scikit-learn kernel such as RBF(2.0), not {self.kernel!r}."
            )
        average = isinstance(self.learn_kernel, str) and self.learn_kernel == "average"
        if not (isinstance(self.learn_kernel, bool) or average):
            raise BadInput(
                f'learn_kernel must be True, False or "average", not {self.learn_kernel!r}.'
            )
        if isinstance(self.bounds, Bounds) and self.bounds.classes is not None:
            raise BadInput(
                "GPRegressor predicts numbers: give the range of y in the bounds, not classes."
            )

    def _check_outcome(self, outcome: str) -> None:
        if not isinstance(outcome, str) or outcome not in OUTCOMES:
            raise BadInput(
                f"outcome must be one of {', '.join(map(repr, OUTCOMES))}, or left out, "
                f"not {outcome!r}.",
                parameter="outcome",
            )
        if outcome != "real" and not (self.noise is None and self.noise_column is None):
            raise BadInput(
                f"Outputs that are {outcome} have a spread that depends on their mean: leave out "
                "the noise.",
                parameter="outcome",
            )
        amounts = outcome in ("count", "positive")
        if amounts and isinstance(self.bounds, Bounds) and min(self.bounds.y)[0] < 0:
            raise BadInput(
                f"Outputs that are {outcome} are not below 0, but the bounds of y are. Give bounds "
                "of y that begin at 0 or above, or leave outcome out.",
                parameter="outcome",
            )

    def _outcomes(self, bounds: Bounds) -> list[Outcome]:
        """What each output is."""
        known = self.noise is not None or self.noise_column is not None
        found = []
        for kind, (low, high) in zip(bounds.y_kinds, bounds.y, strict=True):
            outcome = self.outcome
            if outcome is None:
                two_values = isinstance(kind, YesNo) and not known
                outcome = "binary" if two_values else "real"
            found.append(Outcome(outcome, float(low), float(high)))
        return found

    def _two_value_log_odds(self, outcome: Outcome) -> float:
        """Log odds a priori that numbers of an output are all at an end of its range.

        Who states a noise level speaks of normal noise; who says what outputs are, knows.
        """
        if self.outcome is not None or outcome.kind != "real" or self.noise_column is not None:
            return -math.inf
        if self.noise is not None:
            return TWO_VALUES.log_odds + math.log(POSTERIOR.doubt_of_normal_noise)
        return TWO_VALUES.log_odds

    def _check_noise_parameters(self) -> None:
        if not (isinstance(self.noise_column, str) or is_integer(self.noise_column, -math.inf)):
            raise BadInput(
                "noise_column must be the name or the position of a column of X, not "
                f"{self.noise_column!r}."
            )
        if self.noise is not None:
            raise BadInput(
                "Give noise, one for all records, or noise_column, one for "
                "each record, but not both."
            )
        if self._releases < 2:
            raise BadInput(
                "A noise column needs at least two stages: the first counts the records that have "
                "all values.",
                parameter="stages",
            )
        if isinstance(self.bounds, Bounds) and len(self.bounds.y) > 1:
            raise BadInput(
                "A noise column is for one output: fit each output with its "
                "own, by a model of its own."
            )

    def _bounds(self) -> Bounds:
        bounds = super()._bounds()
        if self.noise_column is None:
            return bounds
        return bounds.with_noise_column(self.noise_column)

    def _known_noise_std(self, bounds: Bounds) -> float | None:
        """Standard deviation of the noise of every (weighted) record, in units of y, if known."""
        if bounds.noise_column is None:
            return self.noise
        return bounds.noise_column.low

    def _validate_before_charge(self, bounds: Bounds) -> PreparedPrior:
        """Go through the public part of a fit, so that a useless kernel is refused uncharged."""

        def usable(prior: Prior, basis: Basis) -> bool:
            scale = feature_scales(
                basis,
                prior.scaling_variance[: basis.size],
                BASIS.trial_scaling_exponent,
                BASIS.trial_norm_quantile,
            )
            feature_map = FeatureMap(basis, tuple(scale.tolist()), 1.0)
            representable = all(
                LIMITS.smallest_variance < variance < 1 / LIMITS.smallest_variance
                for variance in self._scaled_variances(bounds, prior)
            )
            return bool(representable and stage(feature_map, scale[None, :], [1.0]).limit2)

        units = "and amplitudes (and noise) in the units of y"
        return validated_prior(self.kernel, bounds, lambda: self._make_prior(bounds), usable, units)

    def _scaled_variances(self, bounds: Bounds, prior: Prior) -> list[float]:
        """Variances of function and noise of each output, in its squared half-ranges."""
        half_ranges = [high / 2 - low / 2 for low, high in bounds.y]
        variances = [
            float(prior.variances.sum()) * self._prior_unit(half_ranges[0], half_range)
            for half_range in half_ranges
        ]
        noise = self._known_noise_std(bounds)
        if noise is None:
            return variances
        return [*variances, *((noise / half_range) ** 2 for half_range in half_ranges)]

    def _prior_unit(self, first_half_range: float, half_range: float) -> float:
        """Factor that brings prior variances to an output's squared half-ranges.

        The prior of a given kernel is in half-ranges of the first output.
        """
        if self.kernel is None:
            return 1.0
        return (first_half_range / half_range) ** 2

    def learn(self, curator: Oracle) -> None:
        """Release K times, each time what the last fit left over."""
        self._learn_from(curator, self._make_prior(curator.bounds))

    def _learn_prepared(self, curator: Oracle, prepared: object) -> None:
        """The same with the prior that validation has computed; warns if records are missing."""
        assert isinstance(prepared, PreparedPrior)
        self._learn_from(curator, prepared.prior)
        if self._n_is_total_weight:
            warn_of_missing_values(self._complete)

    def _learn_from(self, curator: Oracle, prior: Prior) -> None:
        self._check_noise_column(curator.bounds)
        stages = self._releases - self._input_releases
        densities: list[Array] = []
        complete: CompleteRecords | None = None
        if self.kernel is None:
            densities, complete = estimate_inputs(
                curator, self._input_releases, curator.noise_multiplier, axes_of(curator.bounds)
            )
        elif self._input_releases:
            complete = count_complete_records(curator, self._input_releases)
        self._complete = complete or CompleteRecords.unknown(unit_total(curator))
        state = self._initial_state(curator, prior, stages, densities)
        refinable = self._can_refine(prior, curator.bounds)
        for k in range(stages):
            review = k in STAGED_FIT.review_stages and 2 * k <= self._releases
            if review and self.kernel is not None:
                state = self._zoom_to_records(curator, state, k, stages)
            can_review = review and refinable and k > state.first_stage
            if can_review and state.truncation_ratio() > STAGED_FIT.coarse_ratio:
                refinable = False
                state = self._refine_kernels(curator, state, k, stages)
            effective_records = self._complete.mean / curator.noise_multiplier
            thresholds = self._clip_thresholds(state, k, stages, effective_records)
            means = np.array([posterior.centre for posterior in state.posteriors])
            statistic: ResidualGram
            if k == self._sizes_stage(curator.bounds, stages):
                sizes = self._size_thresholds(state)
                statistic = stage_with_sizes(state.feature_map, means, thresholds, sizes)
            else:
                statistic = stage(state.feature_map, means, thresholds)
            release = curator.release(statistic)
            if complete is None and not k:
                self._complete = state.count_records(release, unit_total(curator))
            ingest_release(release, state)
            if self.kernel is None and k < STAGED_FIT.early_stages:
                for posterior in state.posteriors:
                    posterior.rescale_prior()
        for posterior in state.posteriors:
            posterior.finish()
        self._set_fitted_attributes(curator, state)

    def _sizes_stage(self, bounds: Bounds, stages: int) -> int | None:
        """Stage that also releases the sizes of residuals, if any. A matter of public numbers.

        The last but one: residuals are small then, and the last one looks for rare large ones. None
        with so few stages that it would be an early one, and where it is known how the noise
        depends on the inputs.
        """
        real = all(outcome.kind == "real" for outcome in self._outcomes(bounds))
        known = self._known_noise_std(bounds) is not None
        late = stages - 2
        if known or not real or late <= STAGED_FIT.early_stages:
            return None
        return late

    def _size_thresholds(self, state: StageState) -> list[float]:
        """Where the sizes of each output's residuals end, in half-ranges of y.

        At `first_clip`; and where privacy noise would still be `negligible_noise` of the
        sampling noise, farther out, so that as records or budget come no residual is cut.
        """
        thresholds = []
        for posterior in state.posteriors:
            total_sd = math.sqrt(posterior.posterior_variance() + posterior.tail.variance())
            negligible = posterior.negligible_threshold(1) * total_sd
            wide = min(STAGED_FIT.negligible_noise * negligible, posterior.longest_residual())
            least = STAGED_FIT.first_clip * posterior.residual_sd()
            thresholds.append(max(least, wide))
        return thresholds

    def _check_noise_column(self, bounds: Bounds) -> None:
        if (bounds.noise_column is None) != (self.noise_column is None):
            raise BadInput(
                "These releases were made with another noise_column: rebuild them with the "
                "parameters they had."
            )

    def _can_refine(self, prior: Prior, bounds: Bounds) -> bool:
        """Whether kernels around the best one may be tried, once the releases speak for it."""
        return (
            isinstance(prior, KernelPriors)
            and self.learn_kernel is True
            and prior.theta_bounds is not None
            and len(bounds.y) == 1
        )

    def _initial_state(
        self,
        curator: Oracle,
        prior: Prior,
        stages: int,
        densities: list[Array],
        warp: Warp = (),
        first_stage: int = 0,
    ) -> StageState:
        """Basis, feature map and prior of each output, for so many stages."""
        bounds = curator.bounds
        n = self._complete.mean
        d = len(bounds.x)
        axes: tuple[Axis, ...] = (LINE,) * d
        noise_multiplier = curator.noise_multiplier
        noise_std = self._known_noise_std(bounds)
        half_ranges = np.array([high / 2 - low / 2 for low, high in bounds.y])

        signal_to_noise = 1.0
        if noise_std is not None:
            prior_std = math.sqrt(float(prior.variances.sum()))
            signal_to_noise = prior_std * float(half_ranges[0]) / noise_std
        basis_size = choose_basis_size(
            n * math.sqrt(stages) / noise_multiplier, prior, d, signal_to_noise
        )
        if self.basis:
            basis_size = int(self.basis)
        basis, hypotheses, truncation_variance = prior.choose(min(basis_size, prior.max_size))
        snr_per_function = n * stages / noise_multiplier**2 / basis.size

        feature_scale = self._feature_scale(prior, basis, snr_per_function, d)
        lines: tuple[tuple[int, float, float], ...] = ()
        relevance: RelevanceModel | None = None
        if isinstance(prior, AnovaPriors):
            axes = prior.axes
            if densities:
                basis = prior.sorted_words(basis, densities)
            lines = tuple(
                line
                for line in inputs_needing_linear_term(densities, axes)
                if prior.linear_index(line[0]) < basis.size
            )
            # a linear term is given the prior of the smoothest function of its input
            place = [*range(basis.size), *(prior.linear_index(j) for j, *_ in lines)]
            if lines:
                feature_scale = feature_scale[place]
                hypotheses = hypotheses[:, place]
            relevance = prior.relevance_model(basis.size, [j for j, *_ in lines])
        # the more inputs, the farther the corners of the box: noise is felt even by many records
        rescale = self.kernel is None and (
            d > 2 or (d == 2 and snr_per_function < PROJECTION.negligible_noise_snr)
        )
        feature_map, points = make_feature_map(
            basis, feature_scale, densities, axes, warp, rescale, lines
        )
        phi = feature_map.rows(points)
        even_moment = None
        if d >= INPUTS.quadrature_dimension:
            even_moment = mean_of_products(feature_map, densities)
        constant = prior.constant_index
        # outputs are weighted with their features: so is the noise, and what the basis misses
        mean_square_weight = 1.0
        if constant >= 0:
            mean_square_weight = float(
                np.mean((phi[:, constant] / feature_map.feature_scale[constant]) ** 2)
            )
        feature_map = replace(
            feature_map, weighted=bounds.noise_column is not None, constant=constant
        )
        posteriors = []
        for half_range, outcome in zip(half_ranges, self._outcomes(bounds), strict=True):
            unit = self._prior_unit(half_ranges[0], half_range)
            if noise_std is None:
                noise_variance = max(prior.white_noise_variance * unit, STAGED_FIT.noise_guess**2)
            else:
                noise_variance = (noise_std / half_range) ** 2
            scale = np.array(feature_map.feature_scale)
            posteriors.append(
                StagedPosterior(
                    unit * covariances_of_weights(hypotheses, scale),
                    mean_square_weight * unit * truncation_variance,
                    phi,
                    n,
                    mean_square_weight * noise_variance,
                    learn_noise=noise_std is None,
                    learn_prior=self.learn_kernel is True,
                    min_square_weight=_min_square_weight(bounds),
                    damping=DAMPING if self.kernel is None else 0.0,
                    constant_weights=_constant_weights(feature_map),
                    count_variance=self._complete.relative_variance,
                    clipped=outcome.kind != "binary",
                    even_moment=even_moment,
                    relevance=relevance,
                    two_value_log_odds=self._two_value_log_odds(outcome),
                )
            )
        represented = float(np.mean(quadratic_forms(phi, posteriors[0].initial_prior)))
        truncated = float(posteriors[0].truncation_variance.mean())
        return StageState(
            feature_map=feature_map,
            representative_points=points,
            posteriors=posteriors,
            prior=prior,
            input_densities=densities,
            warp=warp,
            first_stage=first_stage,
            truncation_fraction=truncated / (truncated + represented),
            mean_square_weight=mean_square_weight,
        )

    @staticmethod
    def _feature_scale(prior: Prior, basis: Basis, snr_per_function: float, d: int) -> Array:
        """Factor of each feature, (m,)."""
        scaling_variance = prior.scaling_variance[: basis.size].copy()
        constant = prior.constant_index
        if constant >= 0:
            # Where hardly any effect stands above the noise, spend more of the norm on the level.
            boost = max(STAGED_FIT.drowned_snr * d / snr_per_function, 1.0)
            scaling_variance[constant] = min(
                scaling_variance[constant] * boost, prior.variances[constant]
            )
        return feature_scales(
            basis,
            scaling_variance,
            scaling_exponent(snr_per_function),
            norm_quantile(snr_per_function),
        )

    def _zoom_to_records(
        self, curator: Oracle, state: StageState, k: int, stages: int
    ) -> StageState:
        """Begin again on the part of a given kernel's box where the records are, if it is small."""
        if state.truncation_fraction <= STAGED_FIT.largest_truncation_fraction:
            return state
        densities = state.posteriors[0].densities
        points = state.representative_points
        warp = zoom_warp(state.feature_map, points, densities)
        if not warp:
            return state
        along = [density.mean(axis=0) for density in marginal_densities(points, densities)]
        prior = self._make_prior(curator.bounds, warp)
        zoomed = self._initial_state(curator, prior, stages - k, along, warp, k)
        for new, old in zip(zoomed.posteriors, state.posteriors, strict=True):
            new.inherit_two_values(old)
        return zoomed

    def _refine_kernels(
        self, curator: Oracle, state: StageState, k: int, stages: int
    ) -> StageState:
        """Go on with kernels around the best one, if they ask for another basis."""
        assert isinstance(state.prior, KernelPriors)
        scale = np.array(state.feature_map.feature_scale)
        finer, log_weights = refine_prior(state.prior, state.posteriors[0], scale)
        missed = finer.truncation_variance_under(state.prior, state.feature_map.columns)
        if state.truncation_ratio(missed) <= STAGED_FIT.coarse_ratio_of_refined:
            return state
        first = state.first_stage
        refined = self._initial_state(
            curator, finer, stages - first, state.input_densities, state.warp, first
        )
        return refined.transfer_posterior(state, log_weights, (stages - k) / (k - first))

    def _clip_thresholds(
        self, state: StageState, k: int, stages: int, effective_records: float
    ) -> list[float]:
        """Clip threshold r of each output's residuals in stage k, in half-ranges of y.

        The first stage of a state is clipped at the bounds of y, which are the range of its
        residuals if they are right. Later ones are clipped where the expected error of the
        function is least (`StagedPosterior.clip_errors`), but

        * no narrower than ``clip_schedule``, while the function is not known; with the default
          prior wider by the cube root of n / noise multiplier, over ``many_records``: where few
          records are, along a long tail, the function stays unknown for long;
        * no narrower than where privacy noise is `negligible_noise` of the sampling noise: a
          narrower clip saves nothing. So the clip ends as more records or budget come, whatever the
          law of the outputs within their bounds is. Beyond the largest residual it has nothing to
          gain, nor beyond ``largest_clip`` if bounds are too narrow;
        * in one early stage and in the last, as wide as its second moment still tells the noise:
          rare large residuals must have been seen before clips may cut them.
        """
        thresholds = []
        for posterior in state.posteriors:
            seen = len(posterior.stages)
            sd = posterior.residual_sd()
            longest = posterior.longest_residual()
            if not posterior.noise_per_threshold:
                thresholds.append(max(longest, STAGED_FIT.first_clip * sd))
                continue
            if not posterior.clipped:
                thresholds.append(longest)
                continue
            schedule = STAGED_FIT.clip_schedule
            narrowest = schedule[min(seen, len(schedule) - 1)] * sd
            if self.kernel is None and posterior.learn_noise:
                narrowest *= max(effective_records / STAGED_FIT.many_records, 1.0) ** (1 / 3)
            total_sd = math.sqrt(posterior.posterior_variance() + posterior.tail.variance())
            reach = max(longest, STAGED_FIT.largest_clip * total_sd)
            negligible = posterior.negligible_threshold(stages) * total_sd
            lowest = max(narrowest, min(STAGED_FIT.negligible_noise * negligible, reach))
            last = k == stages - 1 and posterior.learn_noise
            if seen == STAGED_FIT.early_stages or last:
                possible = posterior.possible_tail.variance()
                wide = math.sqrt(possible / posterior.second_sd_per_threshold)
                lowest = max(lowest, min(wide, longest))
            highest = max(lowest, min(2 * lowest, reach), longest)
            candidates = np.geomspace(lowest, highest, STAGED_FIT.clip_candidates)
            best = int(np.argmin(posterior.clip_errors(candidates, stages)))
            thresholds.append(float(candidates[best]))
        return thresholds

    def _set_fitted_attributes(self, curator: Oracle, state: StageState) -> None:
        bounds = curator.bounds
        self._feature_map = state.feature_map
        self.n_complete_ = self._complete.mean
        self.n_complete_sd_ = self._complete.sd
        levels = state.feature_map.basis.levels_of
        densities = state.posteriors[0].densities
        points = state.representative_points
        learned = self.learn_kernel is True and len(state.posteriors[0].hypotheses) > 1
        # a prior that was learned where the records are need not hold elsewhere
        self._record_densities: list[Array] = []
        if learned or state.first_stage:
            self._record_densities = marginal_densities(points, densities, levels)
        noise = curator.noise_multiplier / math.sqrt(self._releases)
        self._density_threshold = density_threshold(len(bounds.x), self.n_complete_, noise)
        self._level_threshold = level_threshold(self.n_complete_, noise)
        support = 1.0
        if learned:
            warped = state.feature_map.warped(points)
            support = effective_support(marginal_densities(warped, densities, levels), levels)
        half_ranges = np.array([high / 2 - low / 2 for low, high in bounds.y])
        self._outputs = [
            self._output_posterior(j, state, outcome, half_range, support)
            for j, (outcome, half_range) in enumerate(
                zip(self._outcomes(bounds), half_ranges, strict=True)
            )
        ]
        self.kernel_: Any = [output.kernel for output in self._outputs]
        self.noise_: Any = np.array([output.noise_std for output in self._outputs])
        self.noise_range_: Any = np.array([output.noise_range for output in self._outputs])
        self.outcome_: Any = [output.outcome.kind for output in self._outputs]
        self.prior_std_: Any = np.array([output.prior_std for output in self._outputs])
        if len(self._outputs) == 1:
            self.kernel_ = self._outputs[0].kernel
            self.noise_ = self._outputs[0].noise_std
            self.noise_range_ = self._outputs[0].noise_range
            self.outcome_ = self._outputs[0].outcome.kind
            self.prior_std_ = self._outputs[0].prior_std

    def _output_posterior(
        self,
        j: int,
        state: StageState,
        outcome: Outcome,
        half_range: float,
        support: float,
    ) -> OutputPosterior:
        """Posterior of output ``j`` for predictions.

        ``support``: fraction of the warped box that the records occupy.
        """
        posterior = state.posteriors[j]
        best = int(np.argmax(posterior.hypothesis_weights))
        phi = state.feature_map.functions(state.representative_points)
        truncation_variance = posterior.estimated_truncation_variance()
        constant = state.feature_map.constant
        mean_square_weight = state.mean_square_weight
        # inputs of few values lie where features are longest, not where points are: the Gram
        # matrix shows how much records count
        if constant >= 0 and posterior.learn_noise:
            square = posterior.feature_mean_square(constant)
            mean_square_weight = square / state.feature_map.feature_scale[constant] ** 2
        residual_variance = posterior.tail.variance()
        noise_variance = max(
            residual_variance - truncation_variance,
            STAGED_FIT.min_noise_fraction * (posterior.s2 - truncation_variance),
            STAGED_FIT.min_noise_variance * posterior.s2,
        )
        noise_std: float | None = math.sqrt(noise_variance / mean_square_weight) * half_range
        if self.noise_column is not None:
            noise_std = None
        elif self.noise is not None:
            noise_std = float(self.noise)
        truncated = float(posterior.hypothesis_weights @ posterior.truncation_variance)
        prior_std = math.sqrt(
            float(np.mean(quadratic_forms(phi, posterior.prior)))
            + truncated / state.mean_square_weight
        )
        noise_scale = None
        if state.sizes and not posterior.has_two_values:
            noise_scale = posterior.noise_scale(
                state.sizes[j], phi, posterior.mean, posterior.error_covariance(support)
            )
            posterior.learn_noise_sizes(noise_scale, phi)
        mean = posterior.mean
        if self._joint_step(state):
            mean, covariance = posterior.averaged_with_joint(state.representative_points)
        else:
            covariance = posterior.error_covariance(support)
            if self.kernel is not None:
                mean = posterior.model_averaged_mean()
        mean, covariance = posterior.averaged_with_two_values(mean, covariance)
        if posterior.has_two_values:
            outcome = replace(outcome, kind="binary")
        nonprivate = posterior.nonprivate_covariance()
        if noise_scale is not None:
            covariance, nonprivate = (
                posterior.with_uneven_noise(one, noise_scale, phi, private=private)
                for one, private in ((covariance, True), (nonprivate, False))
            )
        middle = outcome.low / 2 + outcome.high / 2
        weights = posterior.densities.mean(axis=0)
        weights = weights / weights.sum()
        unit_variances = outcome.unit_variance(
            middle + half_range * (phi @ mean), half_range**2 * quadratic_forms(phi, covariance)
        )
        dispersion = outcome.dispersion((noise_std or 0.0) ** 2, unit_variances, weights)
        if outcome.kind == "binary":
            noise_std = math.sqrt(float(weights @ unit_variances))
        return OutputPosterior(
            middle,
            half_range,
            clone(state.prior.kernels[best]),
            noise_std,
            mean,
            covariance,
            nonprivate,
            truncation_variance / mean_square_weight,
            prior_std * half_range,
            # around a mean that is known from a part of the box, which has moved too
            state.prior_centred_variance(posterior) * (2 - support),
            outcome,
            dispersion,
            noise_scale,
        )

    def _joint_step(self, state: StageState) -> bool:
        """Whether all releases are taken together at the end (`joint_posterior`).

        Where the kernel is given, for one output and records that all count alike: that is where it
        was measured. A matter of public numbers alone.
        """
        given = self.kernel is not None and len(state.posteriors[0].hypotheses) == 1
        alone = len(state.posteriors) == 1 and self.noise_column is None
        return given and alone and state.feature_map.columns <= JOINT.max_size

    def predict(self, X: object, return_std: bool = False, return_cov: bool = False) -> Any:
        """Mean of the function at ``X``, and its posterior standard deviation or covariance.

        In units of y; both hold the model's own uncertainty and the privacy noise. NaN for rows
        that lack an input.
        """
        if return_std and return_cov:
            raise BadInput("Ask for return_std or return_cov, not for both.")
        moments = self._moments(X, variances=return_std)
        if return_std:
            return moments[:, 0], np.sqrt(moments[:, 1] + moments[:, 2])
        if return_cov:
            unit, lacking = fill_missing(self._unit(X))
            phi = self._feature_map.functions(unit)
            weight = self._extrapolation_weight(unit)
            covariance = self._for_each_output(
                lambda output: output.covariance_between(phi, weight)
            )
            covariance[lacking] = np.nan
            covariance[:, lacking] = np.nan
            return moments[:, 0], covariance
        return moments[:, 0]

    def score(self, X: object, y: object, sample_weight: object = None) -> float:
        """R² of the predictions for the outputs ``y``. Not protected.

        Rows that lack an input or an output are left out; NaN if all do.
        """
        from sklearn.metrics import r2_score

        predicted = self.predict(X)
        outputs = self._output_codes(y)
        known = np.isfinite(predicted.reshape(len(predicted), -1)).all(axis=1)
        known &= np.isfinite(outputs).all(axis=1)
        if not known.any():
            return math.nan
        weights = None
        if sample_weight is not None:
            weights = np.asarray(sample_weight)[known]
        return float(r2_score(outputs[known], predicted[known], sample_weight=weights))

    def _output_codes(self, y: object) -> Array:
        """Outputs that a user gives, as numbers (rows, outputs); NaN where they are missing."""
        given = np.asarray(y)
        columns = given.reshape(len(given), -1)
        kinds = self.releases_[0].bounds.y_kinds
        if columns.shape[1] != len(kinds):
            raise BadInput(f"y has {columns.shape[1]} columns, and the bounds of y {len(kinds)}.")
        codes = np.empty(columns.shape)
        for j, kind in enumerate(kinds):
            if columns.dtype.kind in "biuf":
                codes[:, j] = kind.code_numbers(columns[:, j].astype(np.float64))
            else:
                codes[:, j] = [kind.code_value(value) for value in columns[:, j]]
        return codes

    def variance_parts(self, X: object) -> dict[str, Array]:
        """Variance of an output at ``X`` by its causes: ``model``, ``privacy`` and ``noise``.

        In squared units of y: the model's own uncertainty, the privacy noise, and the noise of
        observations, which may depend on the inputs (`noise_range_`): of one shape and
        different scales, and where no records are as on average. A model with a noise column takes
        the noise from that column of ``X``; where ``X`` has none it is not known: NaN.
        """
        moments = self._moments(X, variances=True)
        noise = moments[:, 3]
        if self.releases_[0].bounds.noise_column is not None:
            noise = self._noise_levels(X) ** 2
        return {"model": moments[:, 1], "privacy": moments[:, 2], "noise": noise}

    def predict_band(
        self, X: object, *, level: float = 0.95, outputs: bool = False
    ) -> tuple[Array, Array]:
        """Lower and upper ends of bands at ``X``, in units of y and where a mean of y can lie.

        Each holds the function with a probability of ``level``; with ``outputs``, a single output:
        of yes and no both unless one is rare, of counts and positive amounts by a gamma
        distribution, of others by a normal one.
        """
        if not 0 < as_float(level) < 1:
            raise BadInput(f"level must be between 0 and 1, not {level!r}.", parameter="level")
        parts = self.variance_parts(X)
        moments = self._moments(X, variances=True)
        means = moments[:, 0]
        function = parts["model"] + parts["privacy"]
        shape = means.shape
        columns = (means, function, parts["noise"], moments[:, 4])
        by_output = [values.reshape(len(means), -1).T for values in columns]
        ends = []
        for output, mean, variance, noise, single in zip(self._outputs, *by_output, strict=True):
            outcome = output.outcome
            if outputs:
                ends.append(outcome.output_band(single, variance + noise, level))
            else:
                half = norm.isf((1 - level) / 2) * np.sqrt(variance)
                ends.append((outcome.bounded(mean - half), outcome.bounded(mean + half)))
        lower, upper = (np.stack(side, axis=-1).reshape(shape) for side in zip(*ends, strict=True))
        return lower, upper

    def sample_y(self, X: object, n_samples: int = 1, random_state: object = 0) -> Array:
        """Draw functions from the posterior at ``X``.

        Shape (len(X), n_samples), or (len(X), outputs, n_samples).
        """
        check_integer("n_samples", n_samples)
        unit, lacking = fill_missing(self._unit(X))
        phi = self._feature_map.functions(unit)
        weight = self._extrapolation_weight(unit)
        rng = as_generator(random_state)

        def draw(output: OutputPosterior) -> Array:
            return rng.multivariate_normal(
                output.mean_at(phi),
                output.covariance_between(phi, weight),
                n_samples,
                method="eigh",
            ).T

        drawn = np.swapaxes(self._for_each_output(draw), 1, -1)
        drawn[lacking] = np.nan
        return np.asarray(drawn)

    def _for_each_output(self, answer: Callable[[OutputPosterior], Array]) -> Any:
        """The answer for one output, or the answers for several along a last axis."""
        check_is_fitted(self)
        answers = [answer(output) for output in self._outputs]
        if len(answers) == 1:
            return answers[0]
        return np.stack(answers, axis=-1)

    def _extrapolation_weight(self, unit: Array) -> Array:
        """How much a prediction is extrapolation, in [0, 1]: why bands open where nobody is.

        The posterior variance of a Gaussian process returns to that of its prior by itself. But a
        prior that was learned where the records are need not hold elsewhere, and warped inputs lie
        close together there. So, where the records' density is below a threshold along some input,
        the variance is raised to at least `prior_centred_variance`, that of the prior as it was
        before anything was learned (`OutputPosterior.variance_parts`). 0 everywhere if nothing
        about the prior was learned (kernel fixed, or `learn_kernel` False or "average") and the box
        was not zoomed.

        Bands have another share that is no matter of place: `StagedPosterior.error_covariance`
        divides what a learned prior leaves open by ``support``, the fraction of the box that the
        records occupy.
        """
        inputs = unit[:, : len(self._record_densities)]
        levels = self._feature_map.basis.levels_of[: len(self._record_densities)]
        return extrapolation_weight(
            self._record_densities, inputs, self._density_threshold, levels, self._level_threshold
        )

    def _moments(self, X: object, *, variances: bool) -> Array:
        """Mean of the function and, on request, variances by model, privacy noise and noise.

        And then the mean of an output (`OutputPosterior.output_mean_at`). Shape (len(X), 1 or 5),
        with several outputs (len(X), 1 or 5, outputs).
        """
        unit, lacking = fill_missing(self._unit(X))
        blocks = []
        with one_blas_thread():
            for start in range(0, len(unit), LIMITS.prediction_block):
                block = unit[start : start + LIMITS.prediction_block]
                phi = self._feature_map.functions(block)
                weight = self._extrapolation_weight(block)

                def moments(
                    output: OutputPosterior, phi: Array = phi, weight: Array = weight
                ) -> Array:
                    columns = [output.mean_at(phi)]
                    if variances:
                        parts = output.variance_parts(phi, weight)
                        noise = output.noise_variance_at(phi, weight, parts[0] + parts[1])
                        columns += [*parts, noise]
                        columns.append(output.output_mean_at(phi, parts[0] + parts[1]))
                    return np.stack(columns, axis=1)

                blocks.append(self._for_each_output(moments))
        found = np.concatenate(blocks)
        found[lacking] = np.nan
        return found

    def __sklearn_tags__(self) -> "Tags":
        tags = super().__sklearn_tags__()
        # on a hundred records, privacy leaves little to score
        tags.regressor_tags.poor_score = True
        tags.target_tags.multi_output = isinstance(self.bounds, Bounds) and len(self.bounds.y) > 1
        return tags

    def _make_prior(self, bounds: Bounds, warp: Warp = ()) -> Prior:
        """Hypotheses about the function, in half-ranges of the first output."""
        low, high = bounds.y[0]
        return make_prior(
            self.kernel, bounds, float(high / 2 - low / 2), learn=bool(self.learn_kernel), warp=warp
        )


def _min_square_weight(bounds: Bounds) -> float:
    """Least squared weight of a record by its noise level."""
    if bounds.noise_column is None:
        return 1.0
    return (bounds.noise_column.low / bounds.noise_column.high) ** 2


def _constant_weights(feature_map: FeatureMap) -> Array | None:
    """Weights (m,) of the function that is 1 everywhere; None if the basis lacks it."""
    constant = feature_map.constant
    if constant < 0:
        return None
    return np.eye(feature_map.columns)[constant] / feature_map.feature_scale[constant]
