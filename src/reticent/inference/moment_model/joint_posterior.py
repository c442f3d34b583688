"""One posterior of the weights and of the records' density, given the releases of all stages.

The last step of a fit whose kernel is given. Stage k released, with noise of known scale σ_k,
A_k = Σ φ clip(y − φᵀw_k, ±r_k), and B̄ is the mean of the released Σφφᵀ. Latent are the weights
w = Lω, ω ~ N(0, I), LLᵀ the prior covariance, and the density p of the records on G points
(`log_density`). With δ_gk = φ_gᵀ(w − w_k),

    A_k = n Σ_g p_g φ_g m_k(δ_gk) + γ_k R̂ (w − w_k) + b_k + noise,

m_k(δ) is the mean of a clipped residual (`clipped_noise`), averaged over what is not known of δ,
γ_k = Σ p_g m_k'(δ_gk) its gain, R̂ what the sample adds to the Gram matrix of the density, and b_k
what clips of lopsided noise move the level by. For an eigen-direction a of the Gram matrix, with
eigenvalue β_a, the noise has one covariance over all stages,

    Σ_a = β_a C + diag(σ_k²) + e_k²(…) + γγᵀ∘{Σ_b V_ab [Δ_b Δ_bᵀ + Cov_bb] + X_aa + local_aa}

    C       covariance of the same record's noise in two clips: it is in all stages, and averages
            away in none of them
    e_k     1 − γ_k: the law of the noise is not known, so that a gain is as uncertain as a clip
            takes; times the variance of β_a Δ_ka. Where releases contradict the law of the noise
            beyond chance, all e_k are larger by the same factor
    V       what noise hides of R̂; Δ_bk = (w − w_k)_b: stages that began far away see more of it
    X       errors of density and weights together
    local   clips may move the mean more at one place than at another, as the function differs

Newton steps for all latents together; variances are taken anew before each. Then what is not known
of the level's shift, and of rare parts that releases do not show, is propagated to the weights. No
stage is dropped, nothing is damped, and the covariance is that of the error.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reticent.inference.moment_model.clipped_noise import ClippedNoise
from reticent.inference.moment_model.log_density import (
    DensityModel,
    halved_step,
    least_factor,
    likely_mean_square,
)
from reticent.inference.moment_model.settings import JOINT

__all__ = ["ClipBias", "JointPosterior", "StageMoments", "joint_posterior"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class StageMoments:
    """Releases Σφe of all stages, e clipped residuals; in half-ranges of y.

    Parameters
    ----------
    cross : (K, m) array
        Σφe of each stage.
    noise_sd : (K,) array
        Standard deviation of its noise.
    thresholds : (K,) array
        Clip threshold r.
    centres : (K, m) array
        Weights that residuals were taken of.
    """

    cross: Array
    noise_sd: Array
    thresholds: Array
    centres: Array


@dataclass(frozen=True, eq=False)
class ClipBias:
    """What clips of noise that is not symmetric move the mean by.

    Parameters
    ----------
    shifts : (K, causes, m) array
        Function by which each cause moves each stage, per unit of it: its weights.
    mean, covariance : (causes,) and (causes, causes) arrays
        What is known of the causes.
    unseen : (K,) array
        Root mean square of a further shift, all stages alike, that no release shows.
    constant : (m,) array
        Weights of the function that is one everywhere.
    noise_size : (m, m) array
        Map of a function's weights to those of it times the noise's standard deviation, by its
        root mean square: shifts differ between places as that does.
    local_sd : float
        Part of a shift by which it may differ between places.
    """

    shifts: Array
    mean: Array
    covariance: Array
    unseen: Array
    constant: Array
    noise_size: Array
    local_sd: float


@dataclass(frozen=True, eq=False)
class JointPosterior:
    """Posterior mean (m,) and covariance (m, m) of the weights; density of the records (G,)."""

    mean: Array
    covariance: Array
    density: Array


def joint_posterior(
    stages: StageMoments,
    density: DensityModel,
    prior_root: Array,
    noise: ClippedNoise,
    bias: ClipBias,
    start: tuple[Array, Array],
) -> JointPosterior:
    """Posterior of weights and density, given all releases.

    Parameters
    ----------
    stages : StageMoments
        Releases.
    density : DensityModel
        Density of the records, with the released Gram matrices.
    prior_root : (m, m) array
        L.
    noise : ClippedNoise
        Law of a residual around φᵀw.
    bias : ClipBias
        What clips of lopsided noise do.
    start : pair of arrays
        Mean (m,) and covariance (m, m) to begin with.
    """
    weights = np.linalg.solve(prior_root, start[0]).astype(np.float64)
    latents = _Latents(weights, density.fit())
    covariance = start[1]
    density_covariance = np.zeros((density.size, density.size))
    problem = _Problem(stages, density, prior_root, noise, bias)
    for _ in range(JOINT.iterations):
        linear = _Linearisation(problem, latents, covariance, density_covariance)
        step, everything = linear.step()
        length = linear.step_length(step)
        latents = latents.moved(step, length)
        m = len(prior_root)
        covariance = prior_root @ everything[:m, :m] @ prior_root.T
        density_covariance = everything[m:, m:]
        change = step[:m] ** 2 / np.maximum(np.diag(everything)[:m], JOINT.jitter)
        if length * math.sqrt(float(change.mean())) < JOINT.tolerance:
            break
    response = linear.response(everything)
    covariance = covariance + response @ response.T
    return JointPosterior(
        prior_root @ latents.weights,
        (covariance + covariance.T) / 2,
        density.density(latents.density),
    )


@dataclass(frozen=True, eq=False)
class _Latents:
    weights: Array  # ω (m,)
    density: Array  # z

    def moved(self, step: Array, length: float) -> "_Latents":
        m = len(self.weights)
        return _Latents(self.weights + length * step[:m], self.density + length * step[m:])

    @property
    def length2(self) -> float:
        return float(self.weights @ self.weights + self.density @ self.density)


@dataclass(frozen=True, eq=False)
class _Problem:
    stages: StageMoments
    density: DensityModel
    prior_root: Array
    noise: ClippedNoise
    bias: ClipBias


class _Linearisation:
    """Releases as a linear observation of all latents, whitened, around some of their values."""

    def __init__(
        self, problem: _Problem, at: _Latents, covariance: Array, density_covariance: Array
    ) -> None:
        self._problem = problem
        self._at = at
        self._features = problem.density.features
        self._n = problem.density.n
        self._view = problem.density.view(at.density)
        self._unknown = np.maximum(
            ((self._features @ covariance) * self._features).sum(axis=1), 0.0
        )
        p = self._view.density
        weights = problem.prior_root @ at.weights
        self._means, self._gains = self._clipped(weights)
        self._gain = self._gains @ p / p.sum()
        self._sample = self._view.estimate(p)
        self._shifts = problem.bias.shifts @ self._view.law
        self._local = self._local_root()
        self._whitening = self._whitening_matrices(weights, covariance, density_covariance)
        self._jacobian = self._whitened(self._slopes(weights))
        self._residual = self._residuals(at)

    def _clipped(self, weights: Array) -> tuple[Array, Array]:
        """m_k(δ) and its derivative at all points, two arrays (K, G)."""
        stages = self._problem.stages
        delta = (weights - stages.centres) @ self._features.T
        return self._problem.noise.clipped_mean(delta, self._unknown, stages.thresholds)

    def _local_root(self) -> Array:
        """Root (m, m) of the covariance of a shift that differs between places, in Σφ·shift.

        As functions of the prior do around their mean over the records; for a shift of 1.
        """
        p = self._view.density
        bias = self._problem.bias
        mean = self._features.T @ p / p.sum()
        root = self._problem.prior_root
        centred = root - np.outer(bias.constant, mean @ root)
        variance = float((centred * (self._view.law @ centred)).sum()) / (self._n * p.sum())
        return (
            self._view.law
            @ (bias.noise_size @ centred)
            * (bias.local_sd / math.sqrt(max(variance, 1e-300)))
        )

    def _whitening_matrices(
        self, weights: Array, covariance: Array, density_covariance: Array
    ) -> Array:
        """Inverse Cholesky factors (m, K, K) of the covariances over stages, by direction."""
        view = self._view
        stages = self._problem.stages
        bias = self._problem.bias
        Q = view.directions
        away = (weights - stages.centres) @ Q
        rotated = np.diag(Q.T @ covariance @ Q)
        beta = np.diag(Q.T @ (view.law - view.control + self._sample) @ Q)
        beta = np.maximum(beta, JOINT.least_records)[:, None, None]
        shared = np.einsum("ab,kb,lb->akl", view.variance, away, away, optimize=True)
        shared += (view.variance @ rotated + self._mixed(covariance, density_covariance))[
            :, None, None
        ]
        moments = bias.covariance + np.outer(bias.mean, bias.mean)
        local = np.square(Q.T @ self._local).sum(axis=1)
        one = bias.constant @ view.law @ bias.constant
        products = np.einsum("kcm,cd,ldm->kl", self._shifts, moments, bias.shifts, optimize=True)
        if one != 0.0:  # noise may hide the function 1 altogether
            shared += local[:, None, None] * products / one
        p = view.density
        delta = (weights - stages.centres) @ self._features.T
        same_records = self._problem.noise.covariance(delta, stages.thresholds, p)
        total = beta * same_records + np.outer(self._gain, self._gain) * shared
        gain_error = ((1 - self._gain) * beta[:, :, 0]) ** 2 * (away.T**2 + rotated[:, None])
        stage = np.arange(len(stages.thresholds))
        total[:, stage, stage] += stages.noise_sd**2
        total[:, stage, stage] *= 1 + JOINT.jitter
        residuals = ((stages.cross - self._expected(self._at)) @ Q).T[:, :, None]
        most = likely_mean_square(residuals.size)

        def whitening(factor: float) -> Array:
            covariances = total.copy()
            covariances[:, stage, stage] += factor * gain_error
            return np.linalg.inv(np.linalg.cholesky(covariances))

        def excess(factor: float) -> bool:
            return float(np.square(whitening(factor) @ residuals).mean()) > most

        return whitening(least_factor(excess))

    def _mixed(self, covariance: Array, density_covariance: Array) -> Array:
        """X_aa (m,): errors of the density times errors of the function."""
        view = self._view
        errors = (view.slope @ density_covariance) @ view.slope.T
        errors *= (self._features @ covariance) @ self._features.T
        return np.asarray(self._n**2 * ((errors @ view.rotated) * view.rotated).sum(axis=0))

    def _slopes(self, weights: Array) -> Array:
        """Derivatives (K, m, latents) of what stages release, in the directions."""
        view = self._view
        stages = self._problem.stages
        Q = view.directions
        m = len(Q)
        functions = self._features @ self._problem.prior_root
        sample = Q.T @ self._sample @ self._problem.prior_root
        slopes = np.empty((len(stages.thresholds), m, m + view.slope.shape[1]))
        for k, (means, gains) in enumerate(zip(self._means, self._gains, strict=True)):
            records = self._n * view.density * gains
            slopes[k, :, :m] = (view.rotated.T * records) @ functions + self._gain[k] * sample
            slopes[k, :, m:] = (view.rotated.T * (self._n * means)) @ view.slope
        away = (weights - stages.centres) @ Q
        slopes[:, :, m:] += self._gain[:, None, None] * view.sample_slopes(away)
        return slopes

    def _whitened(self, rotated: Array) -> Array:
        """Rows (m·K, columns) of what is (K, m, columns) in the directions."""
        columns = rotated.shape[2]
        return np.matmul(self._whitening, rotated.transpose(1, 0, 2)).reshape(-1, columns)

    def _residuals(self, at: _Latents) -> Array:
        """Whitened releases less what they are expected to be, (m·K,)."""
        away = (self._problem.stages.cross - self._expected(at)) @ self._view.directions
        return self._whitened(away[:, :, None])[:, 0]

    def _expected(self, at: _Latents) -> Array:
        """Expected releases (K, m)."""
        stages = self._problem.stages
        bias = self._problem.bias
        weights = self._problem.prior_root @ at.weights
        p = self._problem.density.density(at.density)
        means, _ = self._clipped(weights)
        expected = self._n * (means * p) @ self._features
        expected += self._gain[:, None] * (bias.mean @ self._shifts)
        expected += self._gain[:, None] * ((weights - stages.centres) @ self._view.estimate(p))
        return np.asarray(expected)

    def step(self) -> tuple[Array, Array]:
        """A Newton step (latents,), and the posterior covariance (latents, latents)."""
        m = len(self._at.weights)
        curvature, gradient = self._view.likelihood()
        precision = self._jacobian.T @ self._jacobian
        precision[m:, m:] += curvature
        precision.ravel()[:: len(precision) + 1] += 1.0
        scale = 1 / np.sqrt(np.diag(precision))
        precision *= np.outer(scale, scale)
        precision.ravel()[:: len(precision) + 1] += JOINT.jitter
        covariance = np.linalg.inv(precision) * np.outer(scale, scale)
        slope = self._jacobian.T @ self._residual
        slope[:m] -= self._at.weights
        slope[m:] += gradient - self._at.density
        return covariance @ slope, (covariance + covariance.T) / 2

    def step_length(self, step: Array) -> float:
        """Length of the step that does not make the latents less likely, variances as they are."""

        def objective(length: float) -> float:
            moved = self._at.moved(step, length)
            misfit = float(np.square(self._residuals(moved)).sum()) + moved.length2
            return misfit / 2 + self._view.misfit(moved.density)

        return halved_step(objective)

    def response(self, covariance: Array) -> Array:
        """Errors of the weights (m, causes) by shifts of the mean that releases do not tell.

        ``covariance``: of all latents.
        """
        bias = self._problem.bias
        Q = self._view.directions
        known = np.einsum("kcm,cd,ma->kad", self._shifts, _root(bias.covariance), Q, optimize=True)
        level = Q.T @ (self._view.law @ (bias.noise_size @ bias.constant))
        shifts = [known]
        fields = np.column_stack([level, Q.T @ self._local])
        shifts.append(bias.unseen[:, None, None] * fields)
        rows = self._whitened(self._gain[:, None, None] * np.concatenate(shifts, axis=2))
        m = len(self._at.weights)
        return self._problem.prior_root @ (covariance[:m] @ (self._jacobian.T @ rows))


def _root(covariance: Array) -> Array:
    """Root of a positive semi-definite matrix."""
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))
