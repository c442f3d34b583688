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
    posterior_covariance,
    robust_cholesky,
    solve_lower,
    solve_upper,
)
from reticent.inference.moment_model.clipping import (
    clip_moments,
    clipped_second_moment,
    correlated_distortion,
    estimate_skewness,
    heteroscedastic_excess,
    squared_shift_of_sums,
    unclipped_variance,
)
from reticent.inference.moment_model.gram_estimation import GramEstimator
from reticent.inference.moment_model.joint_posterior import JointProblem, StagedReleases
from reticent.inference.moment_model.settings import CLIPPED_MOMENTS, POSTERIOR

__all__ = ["StagedPosterior"]

Array = NDArray[np.float64]
_NOISE_GRID = np.geomspace(*POSTERIOR.noise_grid)
_EXCESS_NOISE_GRID = np.geomspace(*POSTERIOR.excess_noise_grid)
_NOISE_FRACTION_LOGITS = np.linspace(*POSTERIOR.noise_fraction_logits)


@dataclass(frozen=True)
class Stage:
    """What one stage released, and what its clip did to it."""

    cross: Array  # A
    cross_sd: float
    observed: Array  # A/g
    centre: Array  # w_k
    noise: float  # variance of the noise in A/g
    distortion: Array  # covariance of the clip's distortion, by g²
    second: float  # q/n
    second_sd: float
    clip_threshold: float  # r
    skew_bias: float  # bias of A/g along the function 1, in units of B̂, per third cumulant
    narrow_clip: bool  # whether r is narrower than is safe for skewed noise


@dataclass(frozen=True)
class _Fit:
    """The posterior of w under one hypothesis, and its evidence."""

    mean: Array
    root: Array  # covariance = rootᵀ·root
    evidence: float


@dataclass
class StagedPosterior:
    """Posterior of the weights w of one output, stage by stage.

    All variances are in squared half-ranges of y. m is the number of features, H of hypotheses.

    Parameters
    ----------
    hypotheses : (H, m, m) array
        Prior covariance of w under each hypothesis about the kernel.
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

    Attributes
    ----------
    mean, covariance : (m,) and (m, m) arrays
        Posterior of w, on which the next stage goes.
    hypothesis_weights : (H,) array
        Posterior weights of the hypotheses; the weights w are in ``mean``.
    s2 : float
        Variance of a residual around φᵀw: noise and truncation.
    narrow_clip : bool
        Whether the next clip is narrower than is safe for skewed noise.
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
    narrow_clip: bool = field(
        init=False, default=False
    )  # whether the next clip is narrower than is safe for skewed noise
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
    mean: Array = field(init=False)
    covariance: Array = field(init=False)

    def __post_init__(self) -> None:
        m = len(self.hypotheses[0])
        self.hypotheses = np.asarray(self.hypotheses)
        self._roots: Array = np.asarray(np.linalg.cholesky(self.hypotheses), dtype=np.float64)
        diagonals = self._roots.diagonal(axis1=1, axis2=2)
        if np.count_nonzero(self._roots) == np.count_nonzero(diagonals):  # as in the default prior
            self._roots = diagonals.copy()  # products with them take less time
        self._gram = GramEstimator(
            self.points,
            self.n,
            damping=self.damping,
            min_square_weight=self.min_square_weight,
            count_variance=self.count_variance,
        )
        # of each hypothesis
        if self.initial_noise_variance is None:
            self._noise: Array | float = self.noise_variance
        else:
            self._noise = self.initial_noise_variance
        self._s2 = self._noise + self._gram.mean_square_weight * self.truncation_variance
        self._average_hypotheses(np.full(len(self._roots), 1 / len(self._roots)))
        self._H, self._z = self.prior_observation or (np.zeros((0, m)), np.zeros(0))
        self.mean = np.zeros(m)
        self.covariance = self.prior.copy()
        if self.prior_observation:
            self.covariance = posterior_covariance(self._root, self._H.T @ self._H)
            self.mean = self.covariance @ (self._H.T @ self._z)
        self.stages: list[Stage] = []
        fitted_constant = np.linalg.lstsq(self.points, np.ones(len(self.points)), rcond=None)[0]
        self._weights_of_one: Array = np.asarray(
            fitted_constant if self.constant_weights is None else self.constant_weights,
            dtype=np.float64,
        )
        self._prior_scale, self._initial_residual_sd = 1.0, self.residual_sd()

    def _average_hypotheses(self, weights: Array) -> None:
        """Take the mean of the hypotheses with these weights."""
        self.hypothesis_weights = weights
        self.prior: Array = np.asarray(np.tensordot(weights, self.hypotheses, 1), dtype=np.float64)
        self._root: Array = np.asarray(np.linalg.cholesky(self.prior), dtype=np.float64)
        self.s2 = float(weights @ self._s2)

    @property
    def initial_prior(self) -> Array:
        """Prior covariance (m, m) of w before anything was released."""
        return np.asarray(np.mean(self.hypotheses, axis=0))

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
        self._solve()
        self._weigh()
        self._solve()

    def residual_sd(self) -> float:
        """Standard deviation of a residual, in half-ranges of y."""
        return math.sqrt(self.posterior_variance() + self.s2)

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
        if self.min_square_weight < 1:
            self._s2 = self._noise + self._gram.mean_square_weight * self.truncation_variance
            self.s2 = float(self.hypothesis_weights @ self._s2)
        variance = unclipped_variance(
            self.posterior_variance() + self.s2, q / self.n, q_sd / self.n, r
        )
        inside, second, odd = clip_moments(r / math.sqrt(variance))
        gain = max(inside, POSTERIOR.min_gain)
        P = self.points[::2]  # evenly spread too, and enough for a mean
        common, at_a_point = correlated_distortion(
            P, self._gram.mean_square_weight * (P @ self.covariance), self.s2, odd
        )
        independent = max((second - gain**2 - at_a_point) * variance, 0.0)
        shared = self.n**2 * variance * common
        distortion = self._gram.mean_square_weight * (
            shared + self.n * independent * self._gram.feature_moment
        )
        noise = (A_sd / gain) ** 2
        second_moment = q / self.n, q_sd / self.n, r
        skew_bias = odd[0] / (
            math.sqrt(6) * gain * variance
        )  # Gram and Charlier's: of noise that is nearly normal
        self.stages.append(
            Stage(
                A,
                A_sd,
                A / gain,
                centre,
                noise,
                distortion / gain**2,
                *second_moment,
                skew_bias,
                self.narrow_clip,
            )
        )
        self._solve()
        previous_s2 = self.s2
        self._weigh()
        if len(self._roots) > 1 or self.s2 != previous_s2:
            self._solve()

    def _solve(self) -> None:
        B = self._gram.damped_estimate
        V = self._gram.entry_variance
        m = len(self.mean)
        centres = np.array([stage.centre for stage in self.stages])
        observed = np.array([stage.observed for stage in self.stages])
        noises = np.array([stage.noise for stage in self.stages])
        distortions = np.array([stage.distortion for stage in self.stages])
        stage_variances = (
            noises + np.trace(distortions, axis1=1, axis2=2) / m + self.skew_inflation()
        )
        third_cumulant, third_cumulant_variance = self._third_cumulant()
        along = B @ self._weights_of_one
        skew_biases = np.array([stage.skew_bias for stage in self.stages])
        for _ in range(POSTERIOR.max_iterations):
            # stages that started far from w suffer from the error in B: they count less
            gram_errors = ((self.mean - centres) ** 2 + np.diag(self.covariance)) @ V.mean(axis=0)
            omega = 1 / (stage_variances + gram_errors)
            omega /= omega.sum()
            centre = omega @ centres
            self._observed = (
                omega @ observed + B @ centre - third_cumulant * (omega @ skew_biases) * along
            )
            difference = self.mean - centre
            second = self.covariance + np.outer(difference, difference)
            self._gram_error = V * second
            np.fill_diagonal(self._gram_error, V @ np.diag(second))
            noise = np.tensordot(omega**2, distortions, 1) + third_cumulant_variance * (
                omega @ skew_biases
            ) ** 2 * np.outer(along, along)
            noise.ravel()[:: m + 1] += omega**2 @ noises
            expected = max(float(np.trace(self._gram_error)), 1e-300)
            if self.damping:
                part = min(POSTERIOR.max_gram_error * float(np.trace(noise)) / expected, 1.0)
            else:
                part = 1.0
            self._W = self.s2 * B + part * self._gram_error + noise
            fit = self._fit(self._root, self._W)
            previous_mean = self.mean
            self.mean = fit.mean
            self.covariance = fit.root.T @ fit.root
            if np.linalg.norm(self.mean - previous_mean) <= POSTERIOR.tolerance * (
                1 + np.linalg.norm(self.mean)
            ):
                break

    def _fit(self, root: Array, W: Array) -> _Fit:
        """Posterior of w ~ N(0, root·rootᵀ) from observed = B̂w + N(0, W).

        In coordinates in which the prior is the identity.
        """
        lower = robust_cholesky(W, JITTER)
        H = np.vstack([solve_lower(lower, self._gram.damped_estimate @ root), self._H @ root])
        z = np.concatenate([solve_lower(lower, self._observed), self._z])
        inner = robust_cholesky(np.eye(len(W)) + H.T @ H, SMALL_JITTER)
        half = solve_lower(inner, root.T)
        whitened = solve_lower(inner, H.T @ z)
        logdet = np.log(np.diag(lower)).sum() + np.log(np.diag(inner)).sum()
        return _Fit(half.T @ whitened, half, float(-logdet - (z @ z - whitened @ whitened) / 2))

    def _fits(self) -> tuple[Array, Array, Array]:
        """Of `_fit` under each hypothesis, with its own noise.

        The means, tr(B·covariance), and the evidence. One basis T makes all of them easy: TᵀT = W
        and TᵀλT = B, so that a hypothesis' noise changes a diagonal only.
        """
        lower = robust_cholesky(self._W, JITTER)
        B = self._gram.estimate
        whitened = solve_lower(lower, solve_lower(lower, B).T)
        values, vectors = np.linalg.eigh((whitened + whitened.T) / 2)
        values = np.clip(values, 0.0, 1 / self.s2)  # W has s²B̂ in it
        T = (np.sqrt(values) * (lower @ vectors)).T
        z = vectors.T @ solve_lower(lower, self._observed)
        design = vectors.T @ solve_lower(lower, self._gram.damped_estimate)
        spread = np.sqrt(np.maximum(1 + (self._s2[:, None] - self.s2) * values, SMALL_JITTER))
        design = np.vstack([design, self._H])
        z = np.concatenate([z, self._z])
        spread = np.hstack([spread, np.ones((len(spread), len(self._z)))])
        z = z / spread
        means = np.empty((len(z), len(T)))
        variances = np.empty(len(z))
        evidence = -np.log(spread).sum(axis=1)
        block_size = max(POSTERIOR.block_entries // len(T) ** 2, 1)
        for first in range(0, len(z), block_size):
            block = slice(first, first + block_size)
            whitened_designs = self._times(design, block) / spread[block, :, None]
            projected_roots = self._times(T, block)
            inner = whitened_designs.transpose(0, 2, 1) @ whitened_designs
            size = 1 + inner.trace(axis1=1, axis2=2) / len(T)
            inner.reshape(len(inner), -1)[:, :: len(T) + 1] += 1 + SMALL_JITTER * size[:, None]
            for h, factor in enumerate(np.linalg.cholesky(inner), first):
                whitened_mean = solve_lower(factor, z[h] @ whitened_designs[h - first])
                means[h], variances[h] = (
                    solve_upper(factor, whitened_mean),
                    np.square(solve_lower(factor, projected_roots[h - first].T)).sum(),
                )
                evidence[h] -= (
                    np.log(np.diag(factor)).sum()
                    + (z[h] @ z[h] - whitened_mean @ whitened_mean) / 2
                )
        if self._roots.ndim == 2:
            means = means * self._roots
        else:
            means = (self._roots @ means[:, :, None])[:, :, 0]
        return means, variances, evidence

    def _times(self, matrix: Array, block: slice) -> Array:
        """The matrix times the roots of some hypotheses."""
        roots = self._roots[block]
        if roots.ndim == 2:
            return matrix * roots[:, None]
        return matrix @ roots

    def _present_fit(self) -> tuple[Array, Array, Array]:
        """What `_fits` gives for a single hypothesis."""
        return (
            self.mean[None],
            np.array([max((self.covariance * self._gram.estimate).sum(), 0.0)]),
            np.zeros(1),
        )

    def _weigh(self) -> None:
        """Give each hypothesis its noise and its weight by the evidence."""
        B = self._gram.estimate
        n = self.n
        second, sd, clip_thresholds = np.array(
            [(stage.second, stage.second_sd, stage.clip_threshold) for stage in self.stages]
        ).T
        if len(self._roots) > 1:
            means, variances, evidence = self._fits()
        else:
            means, variances, evidence = self._present_fit()
        difference = means[:, None] - np.array([stage.centre for stage in self.stages])
        explained = (
            variances[:, None] + np.maximum(((difference @ B) * difference).sum(axis=2), 0.0)
        ) / n
        noise = self.noise_variance * (_NOISE_GRID if self.learn_noise else _EXCESS_NOISE_GRID)
        s2 = noise + self._gram.mean_square_weight * self.truncation_variance[:, None]
        expected = clipped_second_moment(explained[:, None] + s2[:, :, None], clip_thresholds)
        misfit = (second - expected) ** 2 / (
            sd**2 + (CLIPPED_MOMENTS.second_moment_error * expected) ** 2
        )
        fits = (
            -(misfit.sum(axis=2) + (np.log(s2 / self.noise_variance) / POSTERIOR.log_noise_sd) ** 2)
            / 2
        )
        if not self.learn_noise:
            fits[:, 1:] -= POSTERIOR.excess_noise_penalty
        best = fits.argmax(axis=1)[:, None]
        self._noise = noise[best[:, 0]]
        self._s2 = np.take_along_axis(s2, best, axis=1)[:, 0]
        self._means = means
        scores = self.log_prior_weights + evidence + np.take_along_axis(fits, best, axis=1)[:, 0]
        if self.learn_prior:
            weights = np.exp(scores - scores.max())
        else:
            weights = self.hypothesis_weights
        self._average_hypotheses(weights / weights.sum())

    def skew_inflation(self) -> Array:
        """Variance added to each stage (stages,) for skewed noise.

        Narrow clips of skewed noise leave another mean than wide ones, which came first. Where
        their sums of outputs differ by more than sampling explains, the narrow ones are taken to
        err.
        """
        narrow = np.array([stage.narrow_clip for stage in self.stages])
        return np.asarray(
            narrow
            * (
                squared_shift_of_sums(*self._output_sums(), narrow)
                / (self._weights_of_one @ self._weights_of_one)
                if narrow.any()
                else 0.0
            )
        )

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
            [stage.noise * (u @ u) + u @ stage.distortion @ u for stage in self.stages]
        )

    def _third_cumulant(self) -> tuple[float, float]:
        """Third cumulant of noise that is learned, and its posterior variance."""
        if not self.learn_noise:
            return 0.0, 0.0
        third = self.s2**1.5
        along = float(self._weights_of_one @ self._gram.damped_estimate @ self._weights_of_one)
        mean, variance = estimate_skewness(
            *self._output_sums(),
            third * along * np.array([stage.skew_bias for stage in self.stages]),
        )
        return third * mean, third**2 * variance

    def model_averaged_mean(self) -> Array:
        """Mean of w (m,) over the hypotheses, each fitted by itself, to predict with.

        Stages go by ``mean``, under the mean of the priors: careful where there are no records, but
        unlikely short lengthscales let noise through.
        """
        if self.learn_prior and len(self._roots) > 1:
            return self.hypothesis_weights @ self._means
        return self.mean

    def feature_mean_square(self, j: int) -> float:
        """Mean square of one feature among the records, as B̂ has it.

        From half the least to the most at a point.
        """
        square = np.square(self.points[:, j])
        return float(np.clip(self._gram.estimate[j, j] / self.n, square.min() / 2, square.max()))

    def excess_noise_variance(self) -> float:
        """By how much the noise's variance exceeds s², as seen by clips of different widths.

        Noise need not be normal. Narrow clips see the middle of skewed or uneven noise only; the
        first stages, and the last one, must be clipped wide (`GPRegressor._clip_thresholds`).
        """
        difference = np.array([stage.centre for stage in self.stages]) - self.mean
        explained = (
            self.posterior_variance()
            + np.maximum(((difference @ self._gram.estimate) * difference).sum(axis=1), 0.0)
            / self.n
        )
        second, sd, clip_thresholds = np.array(
            [(stage.second, stage.second_sd, stage.clip_threshold) for stage in self.stages]
        ).T
        return heteroscedastic_excess(self.s2, explained, second, sd, clip_thresholds)

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

        It is that of the same linear estimate where B̂ is not damped, the error in B̂ is as large
        as it was found to be (its variance is made for the best estimate, and falls short), and
        hypotheses are weighed by half of the evidence only. If they were learned from records in a
        fraction ``support`` of the box, the part the prior leaves open is divided by that fraction:
        it is more than the prior says (shorter lengthscales than the hypotheses have, in a box that
        is too wide).
        """
        lower = robust_cholesky(self._W, JITTER)
        gain = solve_lower(lower, np.eye(len(lower))).T @ solve_lower(
            lower, self._gram.damped_estimate @ self.covariance
        )
        half = (np.log(np.maximum(self.hypothesis_weights, 1e-300)) + self.log_prior_weights) / 2
        weights = np.exp(half - half.max())
        prior_gain = self._H @ self.covariance
        root = np.linalg.cholesky(np.tensordot(weights / weights.sum(), self.hypotheses, 1))
        unexplained = (
            root - gain.T @ (self._gram.damped_estimate @ root) - prior_gain.T @ (self._H @ root)
        )
        propagated = (
            gain.T @ (self._W + POSTERIOR.gram_error_inflation * self._gram_error) @ gain
            + prior_gain.T @ prior_gain
        )
        return np.asarray(unexplained @ unexplained.T / support + propagated)

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

    def joint_problem(self, inputs: Array) -> JointProblem:
        """All that was released, for `joint_posterior`.

        ``inputs``: (points, d), where the features ``points`` were taken, in [−1, 1].
        """
        stages = self.stages
        released, released_variance = self._gram.released()
        noise = float(self.hypothesis_weights @ np.broadcast_to(self._noise, len(self._roots)))
        return JointProblem(
            releases=StagedReleases(
                cross=np.array([stage.cross for stage in stages]),
                cross_sd=np.array([stage.cross_sd for stage in stages]),
                centres=np.array([stage.centre for stage in stages]),
                clip_thresholds=np.array([stage.clip_threshold for stage in stages]),
                squares=self.n * np.array([stage.second for stage in stages]),
                square_sd=self.n * np.array([stage.second_sd for stage in stages]),
                gram=released,
                gram_noise=released_variance,
            ),
            features=self.points,
            inputs=inputs,
            n=self.n,
            count_variance=self.count_variance,
            prior_root=self._root,
            noise_variance=self.noise_variance if self.learn_noise else noise,
            truncation_variance=float(self.hypothesis_weights @ self.truncation_variance),
            learn_noise=self.learn_noise,
            mean=self.mean,
            covariance=self.covariance,
        )

    def nonprivate_covariance(self) -> Array:
        """Posterior covariance (m, m) of w without privacy noise in the sums: the model's own."""
        return posterior_covariance(self._root, self._gram.damped_estimate / self.s2)
