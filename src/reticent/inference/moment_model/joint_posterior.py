"""Joint posterior of weights, input density and noise, from all releases of a staged regression.

The model is that of `posterior`: y = φ(x)ᵀw + noise, and stage k of K released, with Gaussian noise
of known scale σ_k, the sum A_k = Σ φ clip(y − φᵀw_k, ±r_k), besides Gram matrices. Here all of them
are explained at once.

Latents. w = Lω, ω ~ N(0, I), with LLᵀ the prior covariance; z ~ N(0, I), the logarithm of the
inputs' density, by which N_g records are expected at point g (`input_log_density`); the variance s²
of the noise, if it is learned, and its shape (`noise_shapes`).

Likelihood. With δ_gk = φ_gᵀ(w − w_k) and m_k(δ) = E clip(δ + noise + N(0, d_g), ±r_k), where
d_g = φ_gᵀ Cov(w) φ_g: linearised over what is not known, not at a point,

    E A_k = Σ_g N_g φ_g m_k(δ_gk) + γ_k R̂ (w − w_k),     γ_k = Σ_g N_g m_k'(δ_gk) / Σ_g N_g;

R̂ is what the sample adds to its law (`gram_likelihood`). In each eigen-direction a of Σ N φφᵀ the K
sums have one K × K covariance over the stages, because all of them see the same records:

    Σ_a = Σ_g N_g ψ_ga² C_g + diag(σ_k²) + γγᵀ ∘ { Σ_b V_ab [Δ_b Δ_bᵀ + Cov(w)_bb] + X_a }
      C_g  covariance, over the noise, of a record's clipped residuals in all stages, plus
           what m_k(δ) differs from γ_k δ by, which the sample of inputs varies too
      V    variance of what is not known of R;  Δ_b = the direction's part of w − w_k
      X_a  error in N times error in w, which is of second order and keeps gaps open

ΔΔᵀ is what makes later stages correct the error in B of earlier ones: generalised least squares
over the stages extrapolates A to the centre w.

Newton's steps. With Σ_a, Cov(w) and N at the present values, whiten, and take a Gauss–Newton step
on (ω, z), halved while the objective rises; Cov(w) and Cov(z) are blocks of the inverse Hessian:
the density is integrated out. The noise's variance is the maximum of the normal likelihood of all
released Σe², which have a K × K covariance too, times the prior of log s². Evidence is Laplace's.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from reticent.inference.linalg import (
    JITTER,
    quadratic_forms,
    robust_cholesky,
    solve_lower,
)
from reticent.inference.moment_model.gram_likelihood import (
    GramGeometry,
    GramLikelihood,
    InputLaw,
    damped_step,
)
from reticent.inference.moment_model.input_log_density import InputLogDensity
from reticent.inference.moment_model.noise_shapes import (
    NOISE_SHAPES,
    NORMAL,
    NoiseShape,
)
from reticent.inference.moment_model.settings import JOINT

__all__ = ["JointPosterior", "JointProblem", "StagedReleases", "joint_posterior"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class StagedReleases:
    """What K stages released about one output, in half-ranges of y; m features.

    Attributes
    ----------
    cross : (K, m) array
        A_k = Σ φ e_k of clipped residuals e_k.
    cross_sd : (K,) array
        Standard deviation of its noise.
    centres : (K, m) array
        w_k, which residuals were taken of.
    clip_thresholds : (K,) array
        r_k.
    squares, square_sd : (K,) arrays
        Σ e_k², and the standard deviation of its noise.
    gram : (m, m) array
        Mean of the released Σφφᵀ.
    gram_noise : float
        Variance of its noise off the diagonal; twice that on it.
    """

    cross: Array
    cross_sd: Array
    centres: Array
    clip_thresholds: Array
    squares: Array
    square_sd: Array
    gram: Array
    gram_noise: float


@dataclass(frozen=True)
class JointPosterior:
    """Posterior of the weights w (m,), and of the noise, by all hypotheses together."""

    mean: Array
    covariance: Array
    noise_variance: float


@dataclass(frozen=True)
class JointProblem:
    """All that is given: releases, prior, and what is known of the noise.

    Parameters
    ----------
    releases : StagedReleases
    features : (G, m) array
        Features at points that fill the box.
    inputs : (G, d) array
        These points, in [−1, 1].
    n, count_variance : float
        Number of records, and its squared relative error.
    prior_root : (m, m) array
        L.
    noise_variance : float
        s², or its median a priori if ``learn_noise``.
    truncation_variance : float
        Variance of what the basis does not represent: like noise.
    mean, covariance : (m,) and (m, m) arrays
        Where to start from.
    """

    releases: StagedReleases
    features: Array
    inputs: Array
    n: float
    count_variance: float
    prior_root: Array
    noise_variance: float
    truncation_variance: float
    learn_noise: bool
    mean: Array
    covariance: Array


def joint_posterior(problem: JointProblem) -> JointPosterior:
    """Posterior of w over hypotheses about the inputs' law and the noise's shape."""
    likelihoods = []
    laws = []
    for length in JOINT.log_density_lengths:
        density = InputLogDensity(problem.inputs, length, problem.n, problem.count_variance)
        likelihood = GramLikelihood(
            problem.features, density, problem.releases.gram, problem.releases.gram_noise
        )
        likelihoods.append(likelihood)
        laws.append(likelihood.fit())
    rough = JOINT.rough_law_probability
    law_weights = _normalised(np.array([law.evidence for law in laws]) + np.log([1 - rough, rough]))
    leading = int(law_weights.argmax())
    fits = [_Fit(problem, likelihoods[leading], laws[leading], NORMAL)]
    if problem.learn_noise:
        for shape in NOISE_SHAPES[1:]:  # from where the first ended: a few steps are enough
            fits.append(_Fit(problem, likelihoods[leading], fits[0].law, shape, fits[0]))
    shape_weights = _normalised(np.array([fit.evidence for fit in fits]))
    best = fits[int(shape_weights.argmax())]
    weights = list(law_weights[leading] * shape_weights)
    for k, weight in enumerate(law_weights):
        if k != leading and weight >= JOINT.dropped_weight:
            fits.append(_Fit(problem, likelihoods[k], laws[k], best.shape, best))
            weights.append(weight)
    return _mixture(fits, np.array(weights) / sum(weights))


def _normalised(log_weights: Array) -> Array:
    weights = np.exp(log_weights - log_weights.max())
    return np.asarray(weights / weights.sum())


def _mixture(fits: "list[_Fit]", weights: Array) -> JointPosterior:
    means = np.array([fit.mean for fit in fits])
    mean = weights @ means
    apart = means - mean
    covariances = np.array([fit.covariance for fit in fits])
    covariance = np.tensordot(weights, covariances, 1) + (apart.T * weights) @ apart
    noise = float(weights @ np.array([fit.noise_variance for fit in fits]))
    return JointPosterior(mean, covariance, noise)


@dataclass(frozen=True)
class _Expectation:
    """E A_k at some weights and density, in the eigen-directions, and its parts."""

    cross: Array  # (K, m)
    clipped: Array  # m (K, G)
    slopes: Array  # m' (K, G)
    gains: Array  # γ (K,)
    deviation: Array  # R̂ (m, m)
    shift: Array  # δ (K, G)
    parts: Array  # Δ (K, m)


class _Fit:
    """Posterior under one prior of the log density and one shape of the noise."""

    def __init__(
        self,
        problem: JointProblem,
        likelihood: GramLikelihood,
        law: InputLaw,
        shape: NoiseShape,
        start: "_Fit | None" = None,
    ) -> None:
        self._problem = problem
        self._releases = problem.releases
        self._likelihood = likelihood
        self.shape = shape
        self.mean = problem.mean
        self.covariance = problem.covariance
        self.noise_variance = problem.noise_variance
        if start is not None:
            self.mean = start.mean
            self.covariance = start.covariance
            self.noise_variance = start.noise_variance
        self._latents = law.latents
        self._latent_covariance = law.covariance
        self._noise_evidence = 0.0
        self._whitened: Array = np.asarray(np.linalg.solve(problem.prior_root, self.mean))
        for iteration in range(JOINT.iterations):
            if problem.learn_noise and iteration % 2 == 0:
                self._fit_noise(everywhere=not iteration)
            if self._newton_step() < JOINT.tolerance and iteration > 1:
                break
        self.law = InputLaw(self._latents, self._latent_covariance, law.evidence)

    def _unknown_variance(self) -> Array:
        """Variance of φᵀw at the points (G,), and of what the basis does not represent."""
        features = self._problem.features
        variance = np.maximum(quadratic_forms(features, self.covariance), 0.0)
        return np.asarray(variance + self._problem.truncation_variance)

    def _expectation(
        self, weights: Array, records: Array, geometry: GramGeometry, unknown: Array
    ) -> _Expectation:
        apart = weights - self._releases.centres
        shift = apart @ self._problem.features.T
        clipped, slopes = self.shape.clipped_mean(
            shift, self._releases.clip_thresholds, self.noise_variance, unknown
        )
        gains = slopes @ records / records.sum()
        deviation = self._likelihood.sample_deviation(geometry, records)
        parts = apart @ geometry.directions
        cross = (clipped * records) @ geometry.rotated
        cross += gains[:, None] * (parts @ deviation)
        return _Expectation(cross, clipped, slopes, gains, deviation, shift, parts)

    def _newton_step(self) -> float:
        """One damped step; gives the decrease of the objective that it promised."""
        root = self._problem.prior_root
        m = len(root)
        density = self._likelihood.density
        records, slopes = density.expected_records(self._latents)
        geometry = self._likelihood.geometry(records)
        unknown = self._unknown_variance()
        expected = self._expectation(self.mean, records, geometry, unknown)
        covariances = self._stage_covariances(records, slopes, geometry, expected)
        scales = np.trace(covariances, axis1=1, axis2=2) / covariances.shape[1]
        lower = np.linalg.cholesky(
            covariances + JITTER * scales[:, None, None] * np.eye(covariances.shape[1])
        )
        observed = self._releases.cross @ geometry.directions
        stacked = np.concatenate(
            [
                self._weight_jacobian(records, geometry, expected) @ root,
                self._latent_jacobian(slopes, geometry, expected),
                (observed - expected.cross).T[:, :, None],
            ],
            axis=2,
        )
        whitened = np.linalg.solve(lower, stacked).reshape(-1, stacked.shape[2])
        jacobian = whitened[:, :-1]
        residuals = whitened[:, -1]
        gram_residuals = self._likelihood.residuals(geometry, records)
        gram_jacobian = self._likelihood.jacobian(geometry, slopes)
        start = np.concatenate([self._whitened, self._latents])
        precision = jacobian.T @ jacobian + np.eye(len(start))
        precision[m:, m:] += gram_jacobian.T @ gram_jacobian
        gradient = jacobian.T @ residuals - start
        gradient[m:] += gram_jacobian.T @ gram_residuals
        objective = float(residuals @ residuals + gram_residuals @ gram_residuals + start @ start)

        def tried(moved: Array) -> float:
            there, _ = density.expected_records(moved[m:])
            cross = self._expectation(root @ moved[:m], there, geometry, unknown).cross
            left = np.linalg.solve(lower, (observed - cross).T[:, :, None]).ravel()
            gram_left = self._likelihood.residuals(geometry, there)
            return float(left @ left + gram_left @ gram_left + moved @ moved)

        step = np.linalg.solve(precision, gradient)
        moved = damped_step(start, step, objective, tried)
        self._whitened = moved[:m]
        self._latents = moved[m:]
        inverse = np.asarray(np.linalg.inv(precision), dtype=np.float64)
        self.mean = root @ self._whitened
        self.covariance = root @ inverse[:m, :m] @ root.T
        self._latent_covariance = inverse[m:, m:]
        _, logdet = np.linalg.slogdet(precision)
        stage_logdet = np.log(np.diagonal(lower, axis1=1, axis2=2)).sum()
        self.evidence = self._noise_evidence - float(objective / 2 + stage_logdet + logdet / 2)
        return float(step @ gradient)

    def _stage_covariances(
        self, records: Array, slopes: Array, geometry: GramGeometry, expected: _Expectation
    ) -> Array:
        """Σ_a of every eigen-direction, (m, K, K)."""
        parts = expected.parts
        rotated = geometry.rotated
        K = len(parts)
        products = (parts[:, None] * parts).reshape(K * K, -1)
        variances = quadratic_forms(geometry.directions.T, self.covariance)
        error = (geometry.variance @ products.T).reshape(-1, K, K)
        error += (geometry.variance @ variances)[:, None, None]
        # what B̄ shows of an error in the density, R̂ corrects
        uncorrected = ((1 - geometry.shrinkage) ** 2 @ variances) / variances.sum()
        features = self._problem.features
        both = slopes @ self._latent_covariance @ slopes.T
        both *= features @ self.covariance @ features.T
        second_order = uncorrected * quadratic_forms(rotated.T, both)
        error += np.maximum(second_order, 0.0)[:, None, None]
        error *= np.outer(expected.gains, expected.gains)
        half = slice(None, None, 2)  # evenly spread too, and enough for a mean
        share = records[half, None] * rotated[half] ** 2 + np.finfo(float).tiny
        share *= geometry.eigenvalues / share.sum(axis=0)
        sampling = self._sampling_covariances(expected, half).reshape(len(share), K * K)
        error += (share.T @ sampling).reshape(-1, K, K)
        return np.asarray(error + np.diag(self._releases.cross_sd**2))

    def _sampling_covariances(self, expected: _Expectation, points: slice) -> Array:
        """C_g: covariance over the stages of a record's clipped residuals, (points, K, K)."""
        nodes, weights = self.shape.quadrature(
            self.noise_variance, self._problem.truncation_variance
        )
        r = self._releases.clip_thresholds[:, None]
        shift = expected.shift[:, points]
        clipped = np.clip(shift.T[:, :, None] + nodes, -r, r)
        clipped -= (clipped @ weights)[:, :, None]
        clipped *= np.sqrt(weights)
        bent = (expected.clipped[:, points] - expected.gains[:, None] * shift).T
        return np.asarray(
            clipped @ clipped.transpose(0, 2, 1) + bent[:, :, None] * bent[:, None, :]
        )

    def _weight_jacobian(
        self, records: Array, geometry: GramGeometry, expected: _Expectation
    ) -> Array:
        """Derivative of E A_k by w, (m, K, m)."""
        features = self._problem.features
        weighted = expected.slopes * records
        law = np.stack([(geometry.rotated * one[:, None]).T @ features for one in weighted], axis=1)
        sample = expected.deviation @ geometry.directions.T
        return np.asarray(law + expected.gains[:, None] * sample[:, None])

    def _latent_jacobian(
        self, slopes: Array, geometry: GramGeometry, expected: _Expectation
    ) -> Array:
        """Derivative of E A_k by z, (m, K, latents): where R̂ follows B̄, it undoes a change."""
        found = []
        for mean, gain, part in zip(expected.clipped, expected.gains, expected.parts, strict=True):
            undone = gain * ((geometry.rotated * part) @ geometry.shrinkage.T)
            found.append((geometry.rotated * (mean[:, None] - undone)).T @ slopes)
        return np.stack(found, axis=1)

    def _fit_noise(self, *, everywhere: bool) -> None:
        """Set s² to the maximum of its posterior, given weights and density; or near the last."""
        records, _ = self._likelihood.density.expected_records(self._latents)
        n = float(records.sum())
        some = _systematic_sample(records)
        unknown = self._unknown_variance()[some]
        shift = (self.mean - self._releases.centres) @ self._problem.features[some].T
        r = self._releases.clip_thresholds
        median = math.log(self._problem.noise_variance)
        truncation = self._problem.truncation_variance

        def misfit(log_variance: float) -> float:
            variance = math.exp(log_variance)
            expected = n * self.shape.clipped_square(shift, r, variance, unknown).mean(axis=1)
            nodes, weights = self.shape.quadrature(variance, truncation)
            squares = np.clip(nodes, -r[:, None], r[:, None]) ** 2
            squares -= (squares @ weights)[:, None]
            covariance = n * (squares * weights) @ squares.T
            covariance += np.diag(self._releases.square_sd**2)
            covariance += np.outer(expected, expected) * JOINT.second_moment_error**2
            lower = robust_cholesky(covariance, JITTER)
            residuals = solve_lower(lower, self._releases.squares - expected)
            surprise = (log_variance - median) / JOINT.log_noise_sd
            return float((residuals @ residuals + surprise**2) / 2 + np.log(np.diag(lower)).sum())

        middle = median if everywhere else math.log(self.noise_variance)
        width = 4 * JOINT.log_noise_sd if everywhere else JOINT.log_noise_step
        found = minimize_scalar(misfit, bounds=(middle - width, middle + width), method="bounded")
        self.noise_variance = math.exp(found.x)
        self._noise_evidence = -float(found.fun)


def _systematic_sample(weights: Array) -> NDArray[np.intp]:
    """Indices of points that represent all of them by their weights, some more than once."""
    steps = (np.arange(JOINT.noise_points) + 0.5) / JOINT.noise_points
    cumulative = np.cumsum(weights)
    found = np.searchsorted(cumulative, steps * cumulative[-1])
    return np.asarray(np.minimum(found, len(weights) - 1))
