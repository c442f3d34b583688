"""Posterior of a linear model's weights, from staged releases of noisy Gram matrices.

The model is y = φ(x)ᵀw + noise of variance s², w ~ N(0, S). Stage k releases, with Gaussian noise
of known scale,

    A_k = Σ φ e_k,   B_k = Σ φφᵀ, q_k = Σ e_k², e_k = clip(y − φᵀw_k, ±r_k), w_k: the weights known
                     before the stage.

Clipping a residual with standard deviation s at r = z·s keeps, of its linear part, the gain g =
P(|N| < z) (Bussgang), and adds a distortion that is uncorrelated with it. All stages see the same
residual noise, so with weights ω_k (Σω = 1) they merge into one observation of w, linear and
Gaussian given the noise in B:

    Σ ω_k A_k/g_k + B̂ w̄  =  B̂ w + noise,   w̄ = Σ ω_k w_k
    Cov = s²B̂ + V∘E[(w−w̄)(w−w̄)ᵀ]-terms + Σ ω_k² (σ_k²I + D_k)/g_k²

B̂ is a public guess, corrected by the mean of all released B: the eigenvalues of their difference
are shrunk by the rule for additive noise of known distribution. What error remains, of variance V
an entry, multiplies only w − w̄, which is small after the first stages. Its expectation depends on
the answer, so it is iterated. Later stages correct the error that B̂ introduced earlier. With
damped steps its contribution to the covariance is therefore capped at a part of the noise in A;
otherwise it would dominate exactly where w is poorly determined. The precision S⁻¹ + B̂Cov⁻¹B̂ is
positive for every draw of the noise: nothing has to be regularised.

Records may be weighted: then φ and y are their products with weights of at most one
(`gram_estimation`), and what the basis cannot represent counts by their mean square.

S and s² need not be known. Each of several hypotheses about S gets the s² that fits the released q
best, and a weight by the evidence of all that was released; the next stage uses their mean. A given
noise variance is a lower bound: a poor fit or outliers raise q, and if the model could not
attribute that to noise, the clip would stay too narrow to recover.
"""

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from reticent.inference.linalg import (
    JITTER,
    SMALL_JITTER,
    as_matrix,
    cholesky,
    covariance_root,
    inverse_from_cholesky,
    posterior_covariance,
    robust_cholesky,
    root_times,
    solve_lower,
    solve_upper,
    times_root,
    weighted_sum,
)
from reticent.inference.moment_model.clipped_noise import (
    ClippedNoise,
    NoiseSizes,
    estimate_uneven_clip_bias,
    uneven_clip_biases,
)
from reticent.inference.moment_model.clipping import (
    ONE_SIZE,
    NoiseTail,
    TailPrior,
    clip_effect,
    clipped_second_moment,
    correlated_distortion,
    estimate_clip_bias,
    fit_noise_tails,
    prior_bias_variances,
    second_moment_misfit,
    unclipped_variance,
    untold_level_error,
)
from reticent.inference.moment_model.gram_estimation import GramEstimator
from reticent.inference.moment_model.joint_posterior import (
    ClipBias,
    JointPosterior,
    StageMoments,
    joint_posterior,
)
from reticent.inference.moment_model.noise_scale import (
    NoiseScale,
    ReleasedSizes,
    fit_noise_scale,
)
from reticent.inference.moment_model.relevance import (
    RelevanceModel,
    learned_relevance,
    mixed_factor,
)
from reticent.inference.moment_model.settings import NOISE_SCALE, POSTERIOR, TWO_VALUES
from reticent.inference.two_values.posterior import TwoValuedPosterior
from reticent.number_kinds import Numerical
from reticent.privacy.row_maps.residual_gram import SizeMoments

__all__ = ["StagedPosterior"]

Array = NDArray[np.float64]
_NOISE_GRID = np.geomspace(*POSTERIOR.noise_grid)
_EXCESS_NOISE_GRID = np.geomspace(*POSTERIOR.excess_noise_grid)
_NEVER_REACHED: Numerical[float] = 1e9  # half-ranges of y
_NOISE_FRACTION_LOGITS = np.linspace(*POSTERIOR.noise_fraction_logits)


@dataclass(frozen=True)
class _Stage:
    observed: Array  # A/g
    centre: Array  # w_k
    noise: float  # variance of the noise in A/g
    distortion: float  # mean variance of the clip's distortion, by g²
    distortion_of_one: float  # its variance along the function 1
    second: float  # q/n
    second_sd: float
    clip_threshold: float  # r
    variance: float  # of a residual before the clip
    gain: float  # g
    skew_bias: float  # bias of A/g along the function 1, in units of B̂, per third cumulant


@dataclass
class StagedPosterior:
    """Posterior of the weights w of one output, stage by stage.

    All variances are in squared half-ranges of y. m is the number of features, H of hypotheses.

    Parameters
    ----------
    hypotheses : (H, m, m) or (H, m) array
        Prior covariance of w under each hypothesis about the kernel; of independent weights their
        variances.
    truncation_variance : (H,) array
        Variance that the basis does not represent, under each.
    points : (points, m) array
        Features at points that are distributed as the records may be.
    n : float
        Number of records that the sums are over.
    noise_variance : float
        s², the variance of the observation noise: a first guess if ``learn_noise``, else a lower
        bound.
    learn_noise, learn_prior : bool
        Whether s² is learned; whether hypotheses are weighed by their evidence.
    min_square_weight : float
        Square of the smallest weight a record can have; 1 if records are not weighted. Below 1
        the noise must be known.
    damping : float
        Of `GramEstimator`.
    prior_observation : ((k, m) array, (k,) array), optional
        (H, z): an observation z = H·w + N(0, I) made beforehand.
    log_prior_weights : (H,) array or float
        Logarithms of the hypotheses' prior weights.
    constant_weights : (m,) array, optional
        Weights of the function that is one everywhere; by least squares if not given.
    initial_noise_variance : float, optional
        s² before the first stage; ``noise_variance`` if not given.
    count_variance : float
        Squared relative error of ``n``.
    clipped : bool
        Whether clips cut residuals at all; False where thresholds are never below the largest.
    even_moment : (m, m) array, optional
        Of `GramEstimator`.
    relevance : RelevanceModel, optional
        How prior variances of independent weights may differ from the hypotheses'.
    two_value_log_odds : float
        Log odds a priori that all outputs are at an end of the range of y.

    Attributes
    ----------
    mean, covariance : (m,) and (m, m) arrays
        Posterior of w, on which the next stage goes.
    hypothesis_weights : (H,) array
        Posterior weights of the hypotheses; the weights w are in ``mean``.
    s2 : float
        Variance of a residual around φᵀw: noise and truncation.
    tail : NoiseTail
        Noise as a normal core with a rare, larger part, as the released second moments show it:
        by this clips are chosen.
    possible_tail : NoiseTail
        The same by what the range of y lets expect, which the releases may not show: for bands.
    two_values : TwoValuedPosterior or None
        What is known if all outputs are at an end of the range of y; None where that is excluded.
    """

    hypotheses: Array
    truncation_variance: Array
    points: Array
    n: float
    noise_variance: float
    learn_noise: bool = False
    learn_prior: bool = True
    min_square_weight: float = 1.0
    damping: float = 0.0  # of B̂ (`GramEstimator`)
    prior_observation: tuple[Array, Array] | None = (
        None  # (H, z): what is known of w beforehand, z = H·w + N(0, I)
    )
    log_prior_weights: Array | float = 0.0  # logarithms of the hypotheses' prior weights
    constant_weights: Array | None = (
        None  # weights of a function that is one everywhere; by least squares if not given
    )
    initial_noise_variance: float | None = (
        None  # what looked like noise before the first stage; the guess if nothing did
    )
    count_variance: float = 0.0  # squared relative error of n
    clipped: bool = True  # whether clips cut residuals at all
    even_moment: Array | None = None  # E[φφᵀ] over many more points
    relevance: RelevanceModel | None = None  # how variances may differ from the hypotheses'
    two_value_log_odds: float = -math.inf  # that all outputs are at an end of the range of y
    mean: Array = field(init=False)
    covariance: Array = field(init=False)

    def __post_init__(self) -> None:
        self.hypotheses = np.asarray(self.hypotheses)
        m = self.hypotheses.shape[-1]
        self._roots: Array = np.array([covariance_root(prior) for prior in self.hypotheses])
        # factors on the prior variances by relevance
        self._relevance_factor: Array = np.ones(m)
        self._likely = np.arange(len(self._roots))
        self._stages_at_review = 0
        self._stages_when_all_compared = 0
        self._gram = GramEstimator(
            self.points,
            self.n,
            damping=self.damping,
            min_square_weight=self.min_square_weight,
            count_variance=self.count_variance,
            even_moment=self.even_moment,
        )
        # of each hypothesis
        initial_noise = self.noise_variance
        if self.initial_noise_variance is not None:
            initial_noise = self.initial_noise_variance
        self._noise = np.full(len(self._roots), initial_noise)
        self._s2 = self._noise + self._gram.mean_square_weight * self.truncation_variance
        self._average_hypotheses(np.full(len(self._roots), 1 / len(self._roots)))
        self._H, self._z = self.prior_observation or (np.zeros((0, m)), np.zeros(0))
        self.mean = np.zeros(m)
        self._means = np.zeros((len(self._roots), m))
        self.covariance = self.prior.copy()
        if self.prior_observation:
            self.covariance = posterior_covariance(as_matrix(self._root), self._H.T @ self._H)
            self.mean = self.covariance @ (self._H.T @ self._z)
        self.stages: list[_Stage] = []
        self._distortions: list[Array] = []  # covariance (m·m,) of the clip's in each stage, by g²
        self._point_moment: Array = self.points.T @ self.points / len(self.points)
        fitted_constant = np.linalg.lstsq(self.points, np.ones(len(self.points)), rcond=None)[0]
        self._weights_of_one: Array = np.asarray(
            fitted_constant if self.constant_weights is None else self.constant_weights,
            dtype=np.float64,
        )
        self.two_values = self._begin_two_values(self.two_value_log_odds, None)
        # shifts by clips that differ from place to place, as weights (stages, causes, m), and a map
        # (m, m) of a function's weights to those of it times the noise's size; once that is known
        self._uneven_shifts: Array | None = None
        self._noise_size: Array = np.eye(m)
        self._explained: Array = np.zeros(0)
        # factor on the odds that noise is not normal
        self._doubt = 1.0 if self.learn_noise else POSTERIOR.doubt_of_normal_noise
        self._prior_scale, self._initial_residual_sd = 1.0, self.residual_sd()
        self._fit_tails()
        # standard deviations of the noise in A and q/n, by r and r²
        self.noise_per_threshold = 0.0
        self.second_sd_per_threshold = 0.0

    def _average_hypotheses(self, weights: Array) -> None:
        """Take the mean of the hypotheses with these weights."""
        self.hypothesis_weights = weights
        mean = np.tensordot(weights, self.hypotheses, 1)
        if mean.ndim == 1:
            mean = mean * self._relevance_factor
        self.prior: Array = as_matrix(mean)
        self._root: Array = covariance_root(mean)
        self.s2 = float(weights @ self._s2)

    @property
    def initial_prior(self) -> Array:
        """Prior covariance (m, m) of w before anything was released."""
        return as_matrix(np.mean(self.hypotheses, axis=0))

    @property
    def densities(self) -> Array:
        """Densities on the points that agree with the releases, a row each."""
        return self._gram.densities

    def set_count(self, n: float, count_variance: float) -> None:
        """Learn the number of records, and its squared relative error, before the first stage."""
        self.n = n
        self.count_variance = count_variance
        self._gram.set_count(n, count_variance)

    def rescale_prior(self) -> None:
        """Scale the prior up if residuals are larger than outputs should be.

        The range of y is wrong then.
        """
        previous = self._prior_scale
        self._prior_scale = max(self.residual_sd() / self._initial_residual_sd, 1.0)
        ratio = (self._prior_scale / previous) ** 2
        if ratio == 1:
            return
        self.hypotheses = ratio * self.hypotheses
        self._roots = math.sqrt(ratio) * self._roots
        self.truncation_variance = ratio * self.truncation_variance
        self._average_hypotheses(self.hypothesis_weights)
        self._stages_when_all_compared = 0
        self._solve()
        self._weigh()
        self._solve()

    def residual_sd(self) -> float:
        """Standard deviation of a residual, in half-ranges of y.

        Larger if outputs may have two values, by the probability of that; never smaller, as the
        bounds of y may be too narrow.
        """
        variance = self.posterior_variance() + self.s2
        if self.two_values is not None and self.stages:
            share = self.two_values.probability
            variance += share * max(self.two_values.residual_variance - variance, 0.0)
        return math.sqrt(variance)

    def posterior_variance(self) -> float:
        """Posterior variance of φᵀw, averaged over the records."""
        return max(float((self.covariance * self._gram.estimate).sum()) / self.n, 0.0)

    def add(
        self,
        A: Array,
        A_sd: float,
        B: Array,
        B_sd: Array,
        q: float,
        q_sd: float,
        r: float,
        centre: Array,
    ) -> None:
        """Condition on one stage, whose residuals e were clipped at ±r around φᵀ``centre``.

        Parameters
        ----------
        A : (m,) array
            Released Σφe, in half-ranges of y.
        A_sd : float
            Standard deviation of its noise.
        B, B_sd : (m, m) arrays
            Released Σφφᵀ and the standard deviations of its noise.
        q, q_sd : float
            Released Σe² and the standard deviation of its noise, in squared half-ranges of y.
        r : float
            Clip threshold, in half-ranges of y.
        centre : (m,) array
            The weights w_k that residuals were taken of.
        """
        self._gram.add(B, B_sd)
        if self.two_values is not None:
            self.two_values.add(A, A_sd, centre, r, (q / self.n, q_sd / self.n))
        review = len(self.stages) + 1 >= POSTERIOR.review_growth * self._stages_at_review
        if review:
            self._update_gram()
        variance = self.posterior_variance() + self.s2
        clip = clip_effect(variance, math.inf)
        if self.clipped:
            variance = unclipped_variance(variance, q / self.n, q_sd / self.n, r)
            clip = clip_effect(variance, r)
        gain = clip.gain
        P = self.points[::2]  # evenly spread too, and enough for a mean
        common, at_a_point = correlated_distortion(
            P, self._gram.mean_square_weight * (P @ self.covariance), self.s2, clip.odd
        )
        independent = max((clip.second - gain**2 - at_a_point) * variance, 0.0)
        shared = self.n**2 * variance * common
        distortion = (self._gram.mean_square_weight / gain**2) * (
            shared + self.n * independent * self._gram.feature_moment
        )
        self._distortions.append(distortion.ravel())
        noise = (A_sd / gain) ** 2
        second_moment = q / self.n, q_sd / self.n, r
        self.stages.append(
            _Stage(
                A / gain,
                centre,
                noise,
                float(np.trace(distortion)) / len(distortion),
                float(self._weights_of_one @ distortion @ self._weights_of_one),
                *second_moment,
                variance,
                gain,
                clip.skew_bias,
            )
        )
        if not self.noise_per_threshold:  # the same in all stages, but for one that tells sizes too
            self.noise_per_threshold = A_sd / r
            self.second_sd_per_threshold = q_sd / self.n / r**2
        self._fit_tails()
        self._solve()
        if review:
            self._review()
        self._weigh_two_values(review=review)

    def _weigh_two_values(self, *, review: bool) -> None:
        """The function if all outputs are at an end of the range of y; in a review, whether."""
        alternative = self.two_values
        if alternative is None:
            return
        log_weights = np.broadcast_to(self.log_prior_weights, len(self._roots))
        log_weights = log_weights - np.log(np.exp(log_weights).sum())
        alternative.update(self._gram, self._roots, log_weights, review=review)
        if review:
            longest = self.longest_residual()
            otherwise = self.mean, self.covariance
            alternative.weigh(self._gram, otherwise, longest, self.count_variance)
        if not alternative.probability >= TWO_VALUES.negligible:
            self.two_values = None

    @property
    def has_two_values(self) -> bool:
        """Whether all outputs are, with high probability, at an end of the range of y."""
        if self.two_values is None or not self.stages:
            return False
        return self.two_values.probability > TWO_VALUES.recognised

    def inherit_two_values(
        self, old: "StagedPosterior", observation: tuple[Array, Array] | None = None
    ) -> None:
        """Go on with what another posterior knows of whether outputs have two values.

        ``observation``: what it knows of the weights if they have.
        """
        if old.two_values is None:
            self.two_values = None
        elif self.two_values is not None:
            self.two_values = self._begin_two_values(old.two_values.log_odds, observation)

    def _begin_two_values(
        self, log_odds: float, observation: tuple[Array, Array] | None
    ) -> TwoValuedPosterior | None:
        weighted = self.constant_weights is not None
        missed = float(np.mean((self.points @ self._weights_of_one - 1) ** 2))
        if log_odds == -math.inf or (missed > TWO_VALUES.largest_miss and not weighted):
            return None
        return TwoValuedPosterior(
            self.points,
            self._weights_of_one,
            log_odds,
            weighted=weighted,
            damped=self.damping > 0,
            prior_observation=observation or (np.zeros((0, len(self.mean))), np.zeros(0)),
            relevance=self.relevance if self.learn_prior else None,
        )

    @property
    def centre(self) -> Array:
        """Weights (m,) that the next stage's residuals are taken from."""
        if self.two_values is not None and self.has_two_values:
            return self.two_values.mean
        return self.mean

    def averaged_with_two_values(self, mean: Array, covariance: Array) -> tuple[Array, Array]:
        """Mean and covariance of w, to report, from those if outputs have not just two values.

        The mean is one of the two; the covariance knows of both.
        """
        if self.two_values is None:
            return mean, covariance
        share = self.two_values.probability
        apart = self.two_values.mean - mean
        mixed = (1 - share) * covariance + share * self.two_values.covariance
        if self.has_two_values:
            return self.two_values.mean, mixed + (1 - share) * np.outer(apart, apart)
        return mean, mixed + share * np.outer(apart, apart)

    def finish(self) -> None:
        """Review everything once more after the last stage."""
        if self._stages_at_review < len(self.stages):
            self._update_gram()
            self._solve()
            self._review()
            self._weigh_two_values(review=True)

    def _learn_relevance(self, model: RelevanceModel) -> None:
        """Let the releases say which inputs matter more, and which less, than others."""
        B = self._gram.damped_estimate
        lower = robust_cholesky(self._W, JITTER)
        design = solve_lower(lower, B)
        pull = design.T @ solve_lower(lower, self._observed)
        variances = np.tensordot(self.hypothesis_weights, self.hypotheses, 1)
        parameters, log_odds = learned_relevance(model, variances, design.T @ design, pull)
        self._relevance_factor = mixed_factor(model, parameters, log_odds)
        self._average_hypotheses(self.hypothesis_weights)

    def _update_gram(self) -> None:
        """Estimate B from all that was released of it."""
        self._gram.update()
        if self.min_square_weight < 1:
            self._s2 = self._noise + self._gram.mean_square_weight * self.truncation_variance
            self.s2 = float(self.hypothesis_weights @ self._s2)

    def _review(self) -> None:
        """Weigh noise and hypotheses anew, and go on with them."""
        self._stages_at_review = len(self.stages)
        previous_s2 = self.s2
        self._weigh()
        self._fit_tails()
        if len(self._roots) > 1 or self.s2 != previous_s2:
            self._solve()
        if self.relevance is not None and self.learn_prior:
            self._learn_relevance(self.relevance)
            self._solve()

    def _solve(self) -> None:
        B = self._gram.damped_estimate
        V = self._gram.entry_variance
        m = len(self.mean)
        centres = np.array([stage.centre for stage in self.stages])
        observed = np.array([stage.observed for stage in self.stages])
        noises = np.array([stage.noise for stage in self.stages])
        distortions = np.array([stage.distortion for stage in self.stages])
        design = np.asfortranarray(times_root(B, self._root))
        weights_of_shifts = self._clip_shifts()
        shifts = weights_of_shifts @ B
        bias_mean, bias_covariance = self._clip_bias(self.tail, self._doubt)
        bias_moments = bias_covariance + np.outer(bias_mean, bias_mean)
        moved2 = np.einsum("kcm,cd,kdm->k", shifts, bias_moments, shifts, optimize=True)
        stage_variances = noises + distortions + moved2 / m
        tail_sds = np.sqrt(self._tail_variances())
        # clips may move the mean more at some places than at others, as the function differs
        places = design
        if self._uneven_shifts is not None:
            places = B @ times_root(self._noise_size, self._root)
        local = places @ places.T
        local *= POSTERIOR.local_bias**2 / np.vdot(self._point_moment, self.prior)
        # noise may hide the function 1 altogether; then what clips move of it says nothing
        one = self._weights_of_one
        least_square = max(JITTER * float(np.trace(B)) * float(one @ one), 1e-300)
        square_of_one = max(float(one @ B @ one), least_square)
        for _ in range(POSTERIOR.max_iterations):
            # stages that started far from w suffer from the error in B: they count less
            gram_errors = ((self.mean - centres) ** 2 + np.diag(self.covariance)) @ V.mean(axis=0)
            omega = 1 / (stage_variances + gram_errors)
            omega /= omega.sum()
            centre = omega @ centres
            shift = np.tensordot(omega, shifts, 1)
            self._observed = omega @ observed + B @ centre - bias_mean @ shift
            difference = self.mean - centre
            second = self.covariance + np.outer(difference, difference)
            gram_error = V * second
            np.fill_diagonal(gram_error, V @ np.diag(second))
            moved = bias_moments @ np.tensordot(omega, weights_of_shifts, 1)
            mean_square = float((moved * shift).sum() / square_of_one)
            noise = weighted_sum(
                [*self._distortions, local.ravel(), B.ravel()],
                [*omega**2, mean_square, (omega @ tail_sds) ** 2],
            ).reshape(m, m)
            noise += shift.T @ bias_covariance @ shift
            noise.ravel()[:: m + 1] += omega**2 @ noises
            expected = max(float(np.trace(gram_error)), 1e-300)
            if self.damping:
                part = min(POSTERIOR.max_gram_error * float(np.trace(noise)) / expected, 1.0)
            else:
                part = 1.0
            self._W = self.s2 * B + part * gram_error + noise
            previous_mean = self.mean
            self.mean, self.covariance = self._fit(design)
            change = np.linalg.norm(self.mean - previous_mean)
            if change <= POSTERIOR.tolerance * math.sqrt(np.trace(self.covariance)):
                break
        # a rare part that releases do not show, but leave room for, all on one side
        unseen = self._clip_biases(self.possible_tail) - self._clip_biases(self.tail)
        self._unseen_bias = (omega @ unseen[:, 1]) ** 2

    def _shift_covariance(self, mean_square: float) -> Array:
        """Covariance (m, m) of the error of ``mean`` by a shift of all that stages see.

        ``mean_square``: of the shift, in squared half-ranges of y; it is as large as the noise is,
        and differs between places besides, as functions of the prior do.
        """
        explained = np.eye(len(self.mean)) - self._unexplained()
        explained -= (self.covariance @ self._H.T) @ self._H
        explained = explained @ self._noise_size
        everywhere = explained @ self._weights_of_one
        places = times_root(explained, self._root)
        local = POSTERIOR.local_bias**2 / float(np.vdot(self._point_moment, self.prior))
        shifted = np.outer(everywhere, everywhere) + local * (places @ places.T)
        return np.asarray(mean_square * shifted)

    def _unexplained(self) -> Array:
        """Part (m, m) of w, as a linear map of it, that is left to the prior: covariance · S⁻¹."""
        if self._root.ndim > 1:
            half = solve_lower(self._root, self.covariance)
            return solve_upper(self._root, half).T
        return self.covariance / self._root**2

    def _fit(self, design: Array) -> tuple[Array, Array]:
        """Posterior mean (m,) and covariance (m, m) of w ~ N(0, prior), observed = B̂w + N(0, W).

        In coordinates in which the prior is the identity. ``design``: B̂ times the prior's root.
        """
        lower = robust_cholesky(self._W, JITTER)
        H = solve_lower(lower, design)
        z = solve_lower(lower, self._observed)
        if len(self._z):
            H = np.vstack([H, times_root(self._H, self._root)])
            z = np.concatenate([z, self._z])
        precision = H.T @ H
        precision.ravel()[:: len(lower) + 1] += 1.0
        inner = robust_cholesky(precision, SMALL_JITTER)
        if self._root.ndim > 1:
            half = solve_lower(inner, self._root.T)
            return half.T @ solve_lower(inner, H.T @ z), half.T @ half
        whitened = solve_upper(inner, solve_lower(inner, H.T @ z))
        triangle = inverse_from_cholesky(inner)
        triangle *= self._root
        triangle *= self._root[:, None]
        covariance = triangle + triangle.T
        np.fill_diagonal(covariance, np.diag(triangle))
        return self._root * whitened, covariance

    def _fits(self, which: NDArray[np.intp]) -> tuple[Array, Array, Array]:
        """Of `_fit` under some hypotheses, each with its own noise.

        The means, tr(B·covariance), and the evidence. One basis makes all of them easy, in which
        W is the identity and B is diagonal: a hypothesis' noise changes a diagonal only.
        """
        lower = robust_cholesky(self._W, JITTER)
        B = self._gram.estimate
        whitened = solve_lower(lower, solve_lower(lower, B).T)
        values, vectors = np.linalg.eigh((whitened + whitened.T) / 2)
        values = np.clip(values, 0.0, 1 / self.s2)  # W has s²B̂ in it
        z = vectors.T @ solve_lower(lower, self._observed)
        design = vectors.T @ solve_lower(lower, self._gram.damped_estimate)
        roots = self._roots[which]
        excess_noise = self._s2[which, None] - self.s2
        spread = np.sqrt(np.maximum(1 + excess_noise * values, SMALL_JITTER))
        design = np.vstack([design, self._H])
        z = np.concatenate([z, self._z])
        spread = np.hstack([spread, np.ones((len(spread), len(self._z)))])
        z = z / spread
        m = len(B)
        # of symmetric matrices the lower triangles tell the trace of a product
        triangle = np.tril(2 * B, -1)
        np.fill_diagonal(triangle, np.diag(B))
        T = np.zeros((0, m))
        if roots.ndim > 2:
            T = (np.sqrt(values) * (lower @ vectors)).T
        means = np.empty((len(z), m))
        variances = np.empty(len(z))
        evidence = -np.log(spread).sum(axis=1)
        block_size = max(POSTERIOR.block_entries // m**2, 1)
        for first in range(0, len(z), block_size):
            block = slice(first, first + block_size)
            whitened_designs = np.array([times_root(design, root) for root in roots[block]])
            whitened_designs /= spread[block, :, None]
            inner = whitened_designs.transpose(0, 2, 1) @ whitened_designs
            size = 1 + inner.trace(axis1=1, axis2=2) / m
            inner.reshape(len(inner), -1)[:, :: m + 1] += 1 + SMALL_JITTER * size[:, None]
            for h, matrix in enumerate(inner, first):
                factor = cholesky(matrix, overwrite=True)
                whitened_mean = solve_lower(factor, z[h] @ whitened_designs[h - first])
                means[h] = root_times(roots[h], solve_upper(factor, whitened_mean))
                if roots.ndim > 2:
                    variances[h] = np.square(solve_lower(factor, (T @ roots[h]).T)).sum()
                else:
                    inverse = inverse_from_cholesky(factor)
                    inverse *= triangle
                    variances[h] = max(roots[h] @ inverse @ roots[h], 0.0)
                evidence[h] -= (
                    np.log(np.diag(factor)).sum()
                    + (z[h] @ z[h] - whitened_mean @ whitened_mean) / 2
                )
        return means, variances, evidence

    def _present_fit(self) -> tuple[Array, Array, Array]:
        """What `_fits` gives where a single hypothesis is left."""
        return (
            self.mean[None],
            np.array([max((self.covariance * self._gram.estimate).sum(), 0.0)]),
            np.zeros(1),
        )

    def _weigh(self) -> None:
        """Give each hypothesis its noise and its weight by the evidence.

        One that was found very unlikely is left out, with a weight of zero, until the number of
        stages has multiplied.
        """
        B = self._gram.estimate
        n = self.n
        second, sd, clip_thresholds = np.array(
            [(stage.second, stage.second_sd, stage.clip_threshold) for stage in self.stages]
        ).T
        factor = POSTERIOR.stages_until_all_compared
        if len(self.stages) >= factor * self._stages_when_all_compared:
            self._likely = np.arange(len(self._roots))
            self._stages_when_all_compared = len(self.stages)
        compared = self._likely
        if len(compared) > 1:
            means, variances, evidence = self._fits(compared)
        else:
            means, variances, evidence = self._present_fit()
        difference = means[:, None] - np.array([stage.centre for stage in self.stages])
        explained = (
            variances[:, None] + np.maximum(((difference @ B) * difference).sum(axis=2), 0.0)
        ) / n
        noise = self.noise_variance * (_NOISE_GRID if self.learn_noise else _EXCESS_NOISE_GRID)
        s2 = noise + self._gram.mean_square_weight * self.truncation_variance[compared, None]
        expected = explained[:, None] + s2[:, :, None]
        if self.clipped:
            expected = clipped_second_moment(expected, clip_thresholds)
        misfit = second_moment_misfit(second, sd, expected)
        fits = (
            -(misfit.sum(axis=2) + (np.log(s2 / self.noise_variance) / POSTERIOR.log_noise_sd) ** 2)
            / 2
        )
        if not self.learn_noise:
            fits[:, 1:] -= POSTERIOR.excess_noise_penalty
        best = fits.argmax(axis=1)[:, None]
        self._noise[compared] = noise[best[:, 0]]
        self._s2[compared] = np.take_along_axis(s2, best, axis=1)[:, 0]
        self._means[compared] = means
        weights = self.hypothesis_weights
        if self.learn_prior:
            scores = np.full(len(self._roots), -math.inf)
            scores[compared] = evidence + np.take_along_axis(fits, best, axis=1)[:, 0]
            scores += self.log_prior_weights
            weights = np.exp(scores - scores.max())
            self._likely = np.flatnonzero(weights >= POSTERIOR.unlikely)
        self._average_hypotheses(weights / weights.sum())

    def _output_sums(self) -> tuple[Array, Array]:
        """Sum of outputs that each stage sees, and its variance but for shared noise; (stages,)."""
        u = self._weights_of_one
        centres = np.array([stage.centre for stage in self.stages])
        sums = (
            np.array([stage.observed for stage in self.stages])
            + centres @ self._gram.damped_estimate
        ) @ u
        gram_errors = ((self.mean - centres) ** 2 + np.diag(self.covariance)) @ (
            self._gram.entry_variance @ u**2
        )
        return sums, gram_errors + np.array(
            [stage.noise * (u @ u) + stage.distortion_of_one for stage in self.stages]
        )

    def _clip_biases(self, tail: NoiseTail) -> Array:
        """Bias of A/g along the function 1, in units of B̂, of each stage (stages, 2).

        Per unit of the skewness of the noise's core, and of the lopsidedness of its rare part.
        """
        r, gain, skew_bias = np.array(
            [(stage.clip_threshold, stage.gain, stage.skew_bias) for stage in self.stages]
        ).T
        return np.column_stack([self.s2**1.5 * skew_bias, -tail.shortfall(r) / gain])

    def _clip_bias(self, tail: NoiseTail, doubt: float) -> tuple[Array, Array]:
        """Skewness and lopsidedness of the noise: mean (causes,), covariance (causes, causes)."""
        if self._uneven_shifts is not None:
            return self._uneven_clip_bias(doubt)
        along = float(self._weights_of_one @ self._gram.damped_estimate @ self._weights_of_one)
        return estimate_clip_bias(*self._output_sums(), along * self._clip_biases(tail), doubt)

    def _clip_shifts(self) -> Array:
        """Functions by which clips move the mean in each stage, per unit of each cause.

        As weights (stages, causes, m): two causes that are the same everywhere, and once it is
        known where noise is large those of `uneven_clip_biases` besides.
        """
        even = self._clip_biases(self.tail)[:, :, None] * self._weights_of_one
        if self._uneven_shifts is None:
            return even
        return np.concatenate([even, self._uneven_shifts], axis=1)

    def _uneven_clip_bias(self, doubt: float) -> tuple[Array, Array]:
        """Mean and covariance of the causes, from sums of outputs along 1 and the noise's size."""
        B = self._gram.damped_estimate
        one = self._weights_of_one
        along = np.column_stack([one, self._noise_size @ one - one])
        centres = np.array([stage.centre for stage in self.stages])
        sums = (np.array([stage.observed for stage in self.stages]) + centres @ B) @ along
        gram_errors = (self.mean - centres) ** 2 + np.diag(self.covariance)
        gram_errors = gram_errors @ self._gram.entry_variance
        covariances = []
        for stage, gram_error, distortion in zip(
            self.stages, gram_errors, self._distortions, strict=True
        ):
            errors = distortion.reshape(B.shape) + np.diag(stage.noise + gram_error)
            covariances.append(along.T @ errors @ along)
        biases = self._clip_shifts() @ (B @ along)
        return estimate_uneven_clip_bias(sums, np.array(covariances), biases, doubt)

    def learn_noise_sizes(self, scale: NoiseScale, functions: Array) -> None:
        """Take out what clips moved the mean by, knowing where noise is large.

        Parameters
        ----------
        scale : NoiseScale
            Of the noise.
        functions : (points, m) array
            Functions at the points: features of records that count whole.
        """
        if not self.clipped:
            return
        density = self.densities.mean(axis=0)
        sizes = NoiseSizes.of(np.exp(scale.log_ratio(functions) / 2), density / density.sum())
        tail = self._fitted_tails(sizes.slices)[0]
        thresholds = np.array([stage.clip_threshold for stage in self.stages])
        variances = np.array([stage.variance for stage in self.stages])
        shifts = uneven_clip_biases(
            (self.tail, tail), self.s2, sizes, thresholds, variances, self.longest_residual()
        )
        onto = sizes.map_of_weights(self.points) * (self.points @ self._weights_of_one)
        self._uneven_shifts = np.einsum("mg,gkc->kcm", onto, shifts, optimize=True)
        self._noise_size = onto @ (sizes.relative[:, None] * functions)
        self._solve()

    def _tail_variances(self) -> Array:
        """What the rare part of the noise adds to the variance of A/g, in units of B̂; (stages,)."""
        r, gain = np.array([(stage.clip_threshold, stage.gain) for stage in self.stages]).T
        return np.asarray(self.tail.excess_variance(self.s2, r) / gain**2)

    def _fit_tails(self) -> None:
        """Noise as a normal core with a rare part, from the second moments of all stages.

        As releases show it, and as it may be.
        """
        if not self.clipped:
            self.tail = NoiseTail(np.array([self.s2]), np.zeros(1), np.ones(1), np.ones(1))
            self.possible_tail = self.tail
            return
        self._explained = np.zeros(0)
        if self.stages:
            difference = np.array([stage.centre for stage in self.stages]) - self.mean
            self._explained = (
                self.posterior_variance()
                + np.maximum(((difference @ self._gram.estimate) * difference).sum(axis=1), 0.0)
                / self.n
            )
        tails = self._fitted_tails()
        self.tail = tails[0]
        self.possible_tail = tails[-1]

    def _fitted_tails(self, sizes: tuple[Array, Array] = ONE_SIZE) -> list[NoiseTail]:
        """Noise as a normal core with a rare part, as releases show it and as it may be.

        ``sizes`` of the noise, and shares of the records that have them: the tails are at size 1.
        """
        priors = [TailPrior(self._doubt)]
        if self.learn_noise:
            log_variance = math.log(self.noise_variance), POSTERIOR.log_noise_sd
            priors.append(TailPrior(log_variance=log_variance))
        second, sd, clip_thresholds = np.zeros((3, 0))
        if self.stages:
            second, sd, clip_thresholds = np.array(
                [(stage.second, stage.second_sd, stage.clip_threshold) for stage in self.stages]
            ).T
        return fit_noise_tails(
            self.s2,
            self._explained,
            second,
            sd,
            clip_thresholds,
            self.longest_residual(),
            priors,
            sizes,
        )

    def longest_residual(self) -> float:
        """Largest residual of outputs within their bounds, in half-ranges of y."""
        return 1 + float(np.abs(self.points @ self.mean).max())

    def negligible_threshold(self, stages: int) -> float:
        """Clip threshold, in standard deviations of a residual, at which noises are equal.

        Those of privacy and of sampling in A, over so many stages.
        """
        sampling_variance = float(np.trace(self._gram.estimate)) / len(self.mean)
        return math.sqrt(sampling_variance * stages) / self.noise_per_threshold

    def clip_errors(self, thresholds: Array, stages: int) -> Array:
        """Mean squared error of the function if so many stages were clipped at each threshold.

        Thresholds and roots of the errors (thresholds,) in half-ranges of y. Sampling noise,
        privacy noise and what a clip may move the mean by, as far as releases tell how lopsided
        the noise is.
        """
        variance = self.posterior_variance() + self.s2
        B = np.maximum(np.diag(self._gram.estimate), 1e-300)
        S = np.diag(self.prior)
        clip = clip_effect(variance, thresholds)
        gain = clip.gain
        biases = np.column_stack(
            [
                self.s2**1.5 * clip.skew_bias,
                -self.tail.shortfall(thresholds) / gain,
            ]
        )
        moments = np.array(prior_bias_variances(POSTERIOR.doubt_of_normal_noise))
        if self.stages:
            mean, covariance = self._clip_bias(self.tail, POSTERIOR.doubt_of_normal_noise)
            moments = mean**2 + covariance.diagonal()
        bias2 = biases**2 @ moments
        sampling = self.s2 + clip.added_variance
        sampling += self.tail.excess_variance(self.s2, thresholds) / gain**2
        privacy = (self.noise_per_threshold * thresholds / gain) ** 2 / stages
        W = np.outer(sampling, B) + privacy[:, None]
        function = (B / (1 / S + B**2 / W)).sum(axis=1) / self.n
        local2 = POSTERIOR.local_bias**2 * bias2
        return np.asarray(function + local2 + self._level_error(bias2, moments))

    def _level_error(self, bias2: Array, moments: Array) -> Array:
        """Squared error of the level, of stages whose clip moves it by a squared ``bias2``.

        As far as the stages so far, which are clipped elsewhere, do not tell that. ``moments``
        (2,): squares of skewness and lopsidedness.
        """
        if not self.stages:
            return bias2
        along = float(self._weights_of_one @ self._gram.damped_estimate @ self._weights_of_one)
        _, variances = self._output_sums()
        seen2 = self._clip_biases(self.tail) ** 2 @ moments
        return untold_level_error(bias2, seen2, along**2 / variances)

    def model_averaged_mean(self) -> Array:
        """Mean of w (m,) over the hypotheses, each fitted by itself, to predict with.

        Stages go by ``mean``, under the mean of the priors: careful where there are no records, but
        unlikely short lengthscales let noise through.
        """
        if not self.learn_prior or len(self._roots) == 1:
            return self.mean
        if self._uneven_shifts is not None:  # since the hypotheses were weighed
            self._means[self._likely] = self._fits(self._likely)[0]
        return self.hypothesis_weights @ self._means

    def feature_mean_square(self, j: int) -> float:
        """Mean square of one feature among the records, as B̂ has it.

        From half the least to the most at a point.
        """
        square = np.square(self.points[:, j])
        return float(np.clip(self._gram.estimate[j, j] / self.n, square.min() / 2, square.max()))

    def estimated_truncation_variance(self) -> float:
        """Truncation variance, re-estimated from the residuals.

        Without repeated inputs it looks like noise: any fraction of s² may be of the function. The
        logarithms of both parts are normal a priori, that of the function's around
        ``truncation_variance``, which is also its lower bound.
        """
        if not self.learn_noise:
            return float(self.hypothesis_weights @ self.truncation_variance)
        noise_fraction = 1 / (1 + np.exp(_NOISE_FRACTION_LOGITS))
        expected_truncation = np.maximum(
            self.truncation_variance, POSTERIOR.min_truncation * self._s2
        )[:, None]
        log_truncation_ratio = (
            np.log((1 - noise_fraction) * self._s2[:, None] / expected_truncation)
            / POSTERIOR.log_truncation_sd
        )
        log_noise_ratio = (
            np.log(noise_fraction * self._s2[:, None] / self.noise_variance)
            / POSTERIOR.log_noise_sd
        )
        probabilities = np.exp(
            -(log_truncation_ratio**2 + log_noise_ratio**2) / 2
            + (log_truncation_ratio**2 + log_noise_ratio**2).min(axis=1, keepdims=True) / 2
        )
        truncation_fraction = (probabilities @ (1 - noise_fraction)) / probabilities.sum(axis=1)
        return float(
            self.hypothesis_weights
            @ np.maximum(truncation_fraction * self._s2, self.truncation_variance)
        )

    def error_covariance(self, support: float = 1.0) -> Array:
        """Covariance (m, m) of the error of ``mean``, wider than ``covariance``, to report.

        It is the posterior covariance, in which the error in B̂ is capped where steps are damped
        (`max_gram_error`); and clips may have cut a rare part of the noise that no release shows.
        If hypotheses were learned from records in a fraction ``support`` of the box, the part the
        prior leaves open is divided by that fraction: it is more than the prior says (shorter
        lengthscales than the hypotheses have, in a box that is too wide).
        """
        unexplained = times_root(self._unexplained(), self._root)
        more = (1 / support - 1) * (unexplained @ unexplained.T)
        return self.covariance + more + self._shift_covariance(self._unseen_bias)

    def averaged_with_joint(self, coordinates: Array) -> tuple[Array, Array]:
        """Mean (m,) and covariance (m, m) of w, to report where the kernel is given.

        The mean of two posteriors: `joint` if the noise is normal, and that of the stages if it has
        a rare part, whose clips take differently from place to place; each with the probability of
        that by the releases.

        Parameters
        ----------
        coordinates : (points, d) array
            Inputs of the points.
        """
        joint = self.joint(coordinates)
        rare = float(self.tail.weights @ (self.tail.mass > 0))
        apart = self.mean - joint.mean
        return joint.mean + rare * apart, (
            (1 - rare) * joint.covariance
            + rare * self.error_covariance()
            + rare * (1 - rare) * np.outer(apart, apart)
        )

    def joint(self, coordinates: Array) -> JointPosterior:
        """Posterior of the weights and of the records' density together, given all releases.

        For one hypothesis and records that are not weighted. What is known of the noise is known
        from the stages.

        Parameters
        ----------
        coordinates : (points, d) array
            Inputs of the points.
        """
        gains = np.array([stage.gain for stage in self.stages])
        thresholds = np.array([stage.clip_threshold for stage in self.stages])
        if not self.clipped:
            thresholds[:] = _NEVER_REACHED
        moments = StageMoments(
            np.array([stage.observed for stage in self.stages]) * gains[:, None],
            np.sqrt([stage.noise for stage in self.stages]) * gains,
            thresholds,
            np.array([stage.centre for stage in self.stages]),
        )
        unseen = self._clip_biases(self.possible_tail) - self._clip_biases(self.tail)
        bias_mean, bias_covariance = self._clip_bias(self.tail, self._doubt)
        bias = ClipBias(
            self._clip_shifts(),
            bias_mean,
            bias_covariance,
            unseen[:, 1],
            self._weights_of_one,
            self._noise_size,
            POSTERIOR.local_bias,
        )
        return joint_posterior(
            moments,
            self._gram.density_model(coordinates),
            as_matrix(self._root),
            ClippedNoise.averaged(self.tail),
            bias,
            (self.mean, self.covariance),
        )

    def noise_scale(
        self, sizes: SizeMoments, functions: Array, mean: Array, covariance: Array
    ) -> NoiseScale:
        """The scale of the noise as a function of the inputs.

        Parameters
        ----------
        sizes : SizeMoments
            What was released of the sizes of residuals.
        functions : (points, m) array
            Functions at the points: features of records that count whole.
        mean, covariance : (m,) and (m, m) arrays
            What is known of w after the last stage.
        """
        k = min(NOISE_SCALE.functions, len(mean))
        return fit_noise_scale(
            ReleasedSizes(
                sizes.cross[:k],
                sizes.cross_sd**2,
                sizes.threshold,
                self._gram.estimate[:k],
                self._gram.entry_variance[:k],
                self.n,
                self.densities.mean(axis=0) / self.densities.mean(axis=0).sum(),
                self.points,
                functions[:, :k],
                self._weights_of_one,
                functions @ covariance @ functions.T,
                functions @ (mean - sizes.weights),
            ),
            self.tail.variance(),
            self.initial_prior[:k, :k],
        )

    def with_uneven_noise(
        self, covariance: Array, scale: NoiseScale, functions: Array, *, private: bool
    ) -> Array:
        """Covariance (m, m) of the error of the mean where the noise has different scales.

        The mean stays as it is, an estimate that counts all records alike (White, 1980): with gain
        G, G·(what the scales change of the sampling noise)·Gᵀ comes to its covariance.

        Parameters
        ----------
        covariance : (m, m) array
            That of w with noise of one scale.
        scale : NoiseScale
            Of the noise.
        functions : (points, m) array
            Functions at the points: features of records that count whole.
        private : bool
            Whether the covariance knows the privacy noise; otherwise all of W is sampling noise.
        """
        density = self.densities.mean(axis=0)
        density = density / density.sum()
        noise_variance = max(self.s2 - self.estimated_truncation_variance(), 0.0)
        excess = np.expm1(scale.log_ratio(functions)) * density * self.n * noise_variance
        if private:
            lower = robust_cholesky(self._W, JITTER)
            pulled = solve_lower(lower, self._gram.damped_estimate)
            pulled = solve_upper(lower, pulled)
        else:
            pulled = np.eye(len(covariance)) / self.s2
        root = robust_cholesky(covariance, JITTER)
        moved = self.points @ pulled @ root  # (points, m)
        values, vectors = np.linalg.eigh(moved.T @ (excess[:, None] * moved))
        factors = 1 + np.maximum(values, -1.0)  # no more goes than was there
        half = root @ (vectors * np.sqrt(factors))
        return np.asarray(half @ half.T)

    def evidence(self, prior: Array) -> tuple[float, Array]:
        """Log evidence of another prior covariance (m, m) of w, and its gradient (m, m).

        With the present noise.
        """
        B = self._gram.damped_estimate
        lower = robust_cholesky(B @ prior @ B + self._W, JITTER)
        half = solve_lower(lower, B)
        z = solve_lower(lower, self._observed)
        pull = half.T @ z
        return float(-np.log(np.diag(lower)).sum() - z @ z / 2), (
            np.outer(pull, pull) - half.T @ half
        ) / 2

    def transferred_observation(
        self, onto: Array, beyond: Array, stages_to_come: float
    ) -> tuple[Array, Array]:
        """The releases as an observation (H, z) of other weights v: w = onto·v + N(0, beyond).

        ``stages_to_come``: their number over that of the stages so far, k. They see the same
        records' noise C again, but not the noise N of privacy: together all determine
        1/(C + N/(1 + k)), and those to come alone 1/(C + N/k). The difference is passed on.
        """
        B = self._gram.damped_estimate
        sampling = self.s2 * B
        fresh = self._W - sampling + B @ beyond @ B
        half = solve_lower(robust_cholesky(fresh, JITTER), sampling)
        lower = robust_cholesky(
            fresh
            + (2 * stages_to_come + 1) * sampling
            + stages_to_come * (stages_to_come + 1) * half.T @ half,
            JITTER,
        )
        return solve_lower(lower, B @ onto), solve_lower(lower, self._observed)

    def nonprivate_covariance(self) -> Array:
        """Posterior covariance (m, m) of w without privacy noise in the sums: the model's own."""
        root = as_matrix(self._root)
        return posterior_covariance(root, self._gram.damped_estimate / self.s2)
