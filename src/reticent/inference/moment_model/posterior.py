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
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from reticent.inference.linalg import (
    JITTER,
    SMALL_JITTER,
    as_matrix,
    cholesky,
    covariance_root,
    posterior_covariance,
    quadratic_forms,
    robust_cholesky,
    root_times,
    solve_lower,
    solve_upper,
    times_root,
)
from reticent.inference.moment_model.clipping import (
    clip_moments,
    clipped_second_moment,
    correlated_distortion,
    unclipped_variance,
)
from reticent.inference.moment_model.gram_estimation import GramEstimator
from reticent.inference.moment_model.noise_law import (
    NoiseLaw,
    ResidualSizes,
    fit_noise_law,
)
from reticent.inference.moment_model.settings import CLIPPED_MOMENTS, POSTERIOR

__all__ = ["StagedPosterior"]

Array = NDArray[np.float64]
_NOISE_GRID = np.geomspace(*POSTERIOR.noise_grid)
_EXCESS_NOISE_GRID = np.geomspace(*POSTERIOR.excess_noise_grid)
_NOISE_FRACTION_LOGITS = np.linspace(*POSTERIOR.noise_fraction_logits)


@dataclass(frozen=True)
class _Stage:
    observed: Array  # A/g
    centre: Array  # w_k
    noise: float  # variance of the noise in A/g
    distortion: Array  # covariance of the clip's distortion, by g²
    second: float  # q/n
    second_sd: float
    clip_threshold: float  # r
    gain: float  # g


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

    Attributes
    ----------
    mean, covariance : (m,) and (m, m) arrays
        Posterior of w, on which the next stage goes.
    hypothesis_weights : (H,) array
        Posterior weights of the hypotheses; the weights w are in ``mean``.
    s2 : float
        Variance of a residual around φᵀw: noise and truncation.
    residual_sizes : ResidualSizes or None
        Counted residuals, once they are (`count_residuals`).
    law : NoiseLaw
        How the noise differs from a normal law, as they show it and the levels of the stages: by
        this clips are chosen and levels corrected.
    possible_law : NoiseLaw
        The same by what the range of y lets expect, which the releases may not show: for bands.
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
    mean: Array = field(init=False)
    covariance: Array = field(init=False)

    def __post_init__(self) -> None:
        self.hypotheses = np.asarray(self.hypotheses)
        m = self.hypotheses.shape[-1]
        self._roots: Array = np.array([covariance_root(prior) for prior in self.hypotheses])
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
        fitted_constant = np.linalg.lstsq(self.points, np.ones(len(self.points)), rcond=None)[0]
        self._weights_of_one: Array = np.asarray(
            fitted_constant if self.constant_weights is None else self.constant_weights,
            dtype=np.float64,
        )
        self._prior_scale, self._initial_residual_sd = 1.0, self.residual_sd()
        self.residual_sizes: ResidualSizes | None = None
        self._counted_centre: Array | None = None
        self.law = self.possible_law = NoiseLaw.normal()
        # standard deviation of the noise in A, by r
        self.noise_per_threshold = 0.0

    def _average_hypotheses(self, weights: Array) -> None:
        """Take the mean of the hypotheses with these weights."""
        self.hypothesis_weights = weights
        mean = np.tensordot(weights, self.hypotheses, 1)
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
        review = len(self.stages) + 1 >= POSTERIOR.review_growth * self._stages_at_review
        if review:
            self._update_gram()
        variance = self.posterior_variance() + self.s2
        inside, second, odd = clip_moments(math.inf)
        if self.clipped:
            variance = unclipped_variance(variance, q / self.n, q_sd / self.n, r)
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
        self.stages.append(
            _Stage(A / gain, centre, noise, distortion / gain**2, *second_moment, gain)
        )
        self.noise_per_threshold = A_sd / r
        self._fit_law()
        self._solve()
        if review:
            self._review()

    def finish(self) -> None:
        """Review everything once more after the last stage."""
        if self._stages_at_review < len(self.stages):
            self._update_gram()
            self._solve()
            self._review()

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
        self._fit_law()
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
        along = B @ self._weights_of_one
        biases = self._clip_biases()
        bias_mean, bias_covariance = self.law.moments()
        bias_moments = bias_covariance + np.outer(bias_mean, bias_mean)
        stage_variances = (
            noises
            + np.trace(distortions, axis1=1, axis2=2) / m
            + ((biases @ bias_moments) * biases).sum(axis=1) * (along @ along) / m
        )
        tail_sds = np.sqrt(self._tail_variances())
        # clips may move the mean more at some places than at others, as the function differs
        unit_prior = self.prior / np.mean(quadratic_forms(self.points, self.prior))
        local = POSTERIOR.local_bias**2 * (B @ unit_prior @ B)
        for _ in range(POSTERIOR.max_iterations):
            # stages that started far from w suffer from the error in B: they count less
            gram_errors = ((self.mean - centres) ** 2 + np.diag(self.covariance)) @ V.mean(axis=0)
            omega = 1 / (stage_variances + gram_errors)
            omega /= omega.sum()
            centre = omega @ centres
            bias = omega @ biases
            self._observed = omega @ observed + B @ centre - (bias @ bias_mean) * along
            difference = self.mean - centre
            second = self.covariance + np.outer(difference, difference)
            self._gram_error = V * second
            np.fill_diagonal(self._gram_error, V @ np.diag(second))
            noise = np.tensordot(omega**2, distortions, 1)
            noise += (bias @ bias_covariance @ bias) * np.outer(along, along)
            noise += (bias @ bias_moments @ bias) * local
            noise += (omega @ tail_sds) ** 2 * B
            noise.ravel()[:: m + 1] += omega**2 @ noises
            expected = max(float(np.trace(self._gram_error)), 1e-300)
            if self.damping:
                part = min(POSTERIOR.max_gram_error * float(np.trace(noise)) / expected, 1.0)
            else:
                part = 1.0
            self._W = self.s2 * B + part * self._gram_error + noise
            previous_mean = self.mean
            self.mean, self.covariance = self._fit()
            change = np.linalg.norm(self.mean - previous_mean)
            if change <= POSTERIOR.tolerance * math.sqrt(np.trace(self.covariance)):
                break
        # what clips may have moved the level by, though releases do not show it
        possible_mean, possible_covariance = self.possible_law.moments()
        apart = bias @ (possible_mean - bias_mean)
        unseen = apart**2 + bias @ (possible_covariance - bias_covariance) @ bias
        self._unseen_bias = max(float(unseen), 0.0) * (np.outer(along, along) + local)

    def _fit(self) -> tuple[Array, Array]:
        """Posterior mean (m,) and covariance (m, m) of w ~ N(0, prior), observed = B̂w + N(0, W).

        In coordinates in which the prior is the identity.
        """
        lower = robust_cholesky(self._W, JITTER)
        design = times_root(self._gram.damped_estimate, self._root)
        H = np.vstack([solve_lower(lower, design), times_root(self._H, self._root)])
        z = np.concatenate([solve_lower(lower, self._observed), self._z])
        inner = robust_cholesky(np.eye(len(lower)) + H.T @ H, SMALL_JITTER)
        half = solve_lower(inner, as_matrix(self._root).T)
        return half.T @ solve_lower(inner, H.T @ z), half.T @ half

    def _fits(self, which: NDArray[np.intp]) -> tuple[Array, Array, Array]:
        """Of `_fit` under some hypotheses, each with its own noise.

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
        roots = self._roots[which]
        excess_noise = self._s2[which, None] - self.s2
        spread = np.sqrt(np.maximum(1 + excess_noise * values, SMALL_JITTER))
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
            whitened_designs = np.array([times_root(design, root) for root in roots[block]])
            whitened_designs /= spread[block, :, None]
            inner = whitened_designs.transpose(0, 2, 1) @ whitened_designs
            size = 1 + inner.trace(axis1=1, axis2=2) / len(T)
            inner.reshape(len(inner), -1)[:, :: len(T) + 1] += 1 + SMALL_JITTER * size[:, None]
            for h, matrix in enumerate(inner, first):
                factor = cholesky(matrix)
                whitened_mean = solve_lower(factor, z[h] @ whitened_designs[h - first])
                means[h] = root_times(roots[h], solve_upper(factor, whitened_mean))
                projected_root = times_root(T, roots[h])
                variances[h] = np.square(solve_lower(factor, projected_root.T)).sum()
                evidence[h] -= (
                    np.log(np.diag(factor)).sum()
                    + (z[h] @ z[h] - whitened_mean @ whitened_mean) / 2
                )
        return means, variances, evidence

    def _present_fit(self) -> tuple[Array, Array, Array]:
        """What `_fits` gives for a single hypothesis."""
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
        if len(self._roots) > 1:
            means, variances, evidence = self._fits(compared)
        else:
            means, variances, evidence = self._present_fit()
        difference = means[:, None] - np.array([stage.centre for stage in self.stages])
        explained = (
            variances[:, None] + np.maximum(((difference @ B) * difference).sum(axis=2), 0.0)
        ) / n
        noise = self.noise_variance * (_NOISE_GRID if self.learn_noise else _EXCESS_NOISE_GRID)
        truncated = self._gram.mean_square_weight * self.truncation_variance[compared]
        s2 = noise + truncated[:, None]
        expected = explained[:, None] + s2[:, :, None]
        if self.clipped:
            expected = clipped_second_moment(expected, clip_thresholds)
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
        self._noise[compared] = noise[best[:, 0]]
        if self.learn_noise:
            self._noise[compared] *= (noise[1] / noise[0]) ** _peak_offset(fits, best)
        self._s2[compared] = self._noise[compared] + truncated
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
            [stage.noise * (u @ u) + u @ stage.distortion @ u for stage in self.stages]
        )

    def _clip_biases(self) -> Array:
        """By how much clips have moved the level, per mass of the noise's law; (stages, bins)."""
        r, gain = np.array([(stage.clip_threshold, stage.gain) for stage in self.stages]).T
        return self.law.bias_rows(r, gain)

    def _tail_variances(self) -> Array:
        """What noise that is not normal adds to the variance of A/g, in units of B̂; (stages,)."""
        r, gain = np.array([(stage.clip_threshold, stage.gain) for stage in self.stages]).T
        return np.asarray(np.maximum(self.law.excess_variance(r), 0.0) / gain**2)

    def count_residuals(self, counts: Array, sd: float, edges: Array, centre: Array) -> None:
        """Learn how many records have residuals y − φᵀ``centre`` in bins between the edges.

        ``counts`` (bins,), with noise of standard deviation ``sd``; ``edges`` (bins − 1,) in
        half-ranges of y.
        """
        self.residual_sizes = ResidualSizes(counts, sd, edges, self.posterior_variance())
        self._counted_centre = centre
        self._fit_law()
        self._solve()

    def noise_residual_variance(self) -> float:
        """Variance of a residual around the function, before any clip: s², and what it misses."""
        everything = np.array([math.inf])
        return max(self.s2 + float(self.law.excess_variance(everything)[0]), 0.0)

    def _fit_law(self) -> None:
        """Law of the noise, from the counted residuals and from the levels that stages see."""
        if self.residual_sizes is None or not self.clipped:
            return
        residuals = self.residual_sizes
        if self._counted_centre is not None:
            explained = self._explained(self._counted_centre[None])[0]
            residuals = replace(residuals, explained=float(explained))
        told = residuals, self.s2, self.n
        prior = math.log(self.noise_variance), POSTERIOR.log_noise_sd
        self.law = fit_noise_law(*told, POSTERIOR.doubt_of_normal_noise)
        self.possible_law = fit_noise_law(*told, 1.0, prior, may_be_symmetric=False)
        if self.stages:
            levels = *self._levels(), self._clip_biases()
            self.law = self.law.given_levels(*levels)
            self.possible_law = self.possible_law.given_levels(*levels)

    def _levels(self) -> tuple[Array, Array]:
        """Mean output that each stage sees, and its variance but for shared noise; (stages,)."""
        along = self._weights_of_one @ self._gram.damped_estimate @ self._weights_of_one
        sums, variances = self._output_sums()
        return sums / along, variances / along**2

    def _level_variance(self) -> float:
        """Variance of the level of the function that is not of sampling, as stages tell it."""
        if not self.stages:
            return math.inf
        _, variances = self._levels()
        return float(1 / (1 / variances).sum())

    def _explained(self, centres: Array) -> Array:
        """Variance of the function around each centre (k, m), over the records; (k,)."""
        difference = centres - self.mean
        apart = ((difference @ self._gram.estimate) * difference).sum(axis=1) / self.n
        return np.asarray(self.posterior_variance() + np.maximum(apart, 0.0))

    def longest_residual(self) -> float:
        """Largest residual of outputs within their bounds, in half-ranges of y."""
        return 1 + float(np.abs(self.points @ self.mean).max())

    def clip_errors(self, thresholds: Array, stages: int) -> Array:
        """Mean squared error of the function if so many stages were clipped at each threshold.

        Thresholds and roots of the errors (thresholds,) in half-ranges of y. Sampling noise,
        privacy noise and what the counted residuals leave open of what a clip moves the mean by.
        """
        variance = self.posterior_variance() + self.s2
        B = np.maximum(np.diag(self._gram.estimate), 1e-300)
        S = np.diag(self.prior)
        gain, second, _ = clip_moments(thresholds / math.sqrt(variance))
        sampling = self.s2 + variance * (second / gain**2 - 1)
        sampling += np.maximum(self.law.excess_variance(thresholds), 0.0) / gain**2
        privacy = (self.noise_per_threshold * thresholds / gain) ** 2 / stages
        W = np.outer(sampling, B) + privacy[:, None]
        function = (B / (1 / S + B**2 / W)).sum(axis=1) / self.n
        rows = self.law.bias_rows(thresholds, gain)
        bias, bias_variance = self.law.bias_moments(rows, thresholds)
        local = POSTERIOR.local_bias**2 * (bias**2 + bias_variance)
        level = 1 / (1 / np.maximum(bias_variance, 1e-300) + 1 / self._level_variance())
        return np.asarray(function + local + level)

    def prior_error(self) -> float:
        """What `clip_errors` would be without any release."""
        return float(np.diag(self._gram.estimate) @ np.diag(self.prior)) / self.n

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
        as it was found to be (its variance is made for the best estimate, and falls short),
        hypotheses are weighed by half of the evidence only, and clips may have moved the level by
        more than releases show. If hypotheses were learned from records in a fraction ``support``
        of the box, the part the prior leaves open is divided by that fraction: it is more than the
        prior says (shorter lengthscales than the hypotheses have, in a box that is too wide).
        """
        lower = robust_cholesky(self._W, JITTER)
        gain = solve_lower(lower, np.eye(len(lower))).T @ solve_lower(
            lower, self._gram.damped_estimate @ self.covariance
        )
        half = (np.log(np.maximum(self.hypothesis_weights, 1e-300)) + self.log_prior_weights) / 2
        weights = np.exp(half - half.max())
        prior_gain = self._H @ self.covariance
        tempered = np.tensordot(weights / weights.sum(), self.hypotheses, 1)
        root = as_matrix(covariance_root(tempered))
        unexplained = (
            root - gain.T @ (self._gram.damped_estimate @ root) - prior_gain.T @ (self._H @ root)
        )
        propagated = (
            gain.T
            @ (self._W + POSTERIOR.gram_error_inflation * self._gram_error + self._unseen_bias)
            @ gain
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

    def nonprivate_covariance(self) -> Array:
        """Posterior covariance (m, m) of w without privacy noise in the sums: the model's own."""
        root = as_matrix(self._root)
        return posterior_covariance(root, self._gram.damped_estimate / self.s2)


def _peak_offset(fits: Array, best: NDArray[np.intp]) -> Array:
    """Where the parabola through three values of each row of ``fits`` (H, values) has its peak.

    ``best`` (H, 1): the largest. In steps from it, (H,); 0 at an end.
    """
    last = fits.shape[1] - 1
    inner = np.clip(best, 1, last - 1)
    left, middle, right = (np.take_along_axis(fits, inner + k, axis=1)[:, 0] for k in (-1, 0, 1))
    curvature = np.minimum(left - 2 * middle + right, -1e-300)
    offset = np.clip((right - left) / (-2 * curvature), -0.5, 0.5)
    return np.where((best[:, 0] > 0) & (best[:, 0] < last), offset, 0.0)
