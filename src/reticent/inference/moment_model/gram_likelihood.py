"""Likelihood of the released Gram matrices, given the density of the records' inputs.

The mean B̄ of all released matrices, with N_g expected records at point g (`input_log_density`), is

    B̄ = Σ_g N_g φ_gφ_gᵀ + R + noise,

where R is what the sample adds to its law. In the eigen-directions a of Σ N φφᵀ (Ψ = Φ·directions)
the entries of both are independent, with variances

    ρ_ab = Σ_g N_g ψ_ga² ψ_gb²   of R (sampling),      τ_ab = noise·(1 + [a = b])   of the noise,

so that R̂ = κ∘(B̄ − Σ N φφᵀ), κ = ρ/(ρ + τ), with variances V = κτ. The law need not be a smooth
density: what the noise hides of the difference between B̄ and a uniform law (`denoise_spectrum`)
may be in the records, and counts as further variance of R that R̂ does not follow.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reticent.inference.moment_model.gram_estimation import denoise_spectrum
from reticent.inference.moment_model.input_log_density import InputLogDensity
from reticent.inference.moment_model.settings import JOINT

__all__ = ["GramGeometry", "GramLikelihood", "InputLaw", "damped_step"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class GramGeometry:
    """Eigen-directions of Σ N φφᵀ, and the moments of R in them.

    m features, G points.
    """

    eigenvalues: Array  # (m,), floored
    directions: Array  # (m, m), in columns
    rotated: Array  # Ψ (G, m)
    sampling_variance: Array  # ρ (m, m)
    shrinkage: Array  # κ (m, m)
    variance: Array  # V with what noise hides (m, m)


@dataclass(frozen=True)
class InputLaw:
    """Posterior of the latents z of the log density, from the Gram matrices alone."""

    latents: Array
    covariance: Array
    evidence: float


class GramLikelihood:
    """Likelihood of the mean of the released Gram matrices.

    Parameters
    ----------
    features : (G, m) array
        Features at the points of the density.
    density : InputLogDensity
        Its prior.
    gram : (m, m) array
        B̄.
    noise_variance : float
        Variance of its noise off the diagonal; twice that on it.
    """

    def __init__(
        self, features: Array, density: InputLogDensity, gram: Array, noise_variance: float
    ) -> None:
        self.features = features
        self.density = density
        self.gram = gram
        m = len(gram)
        self._noise = noise_variance * (1 + np.eye(m))
        records, _ = density.expected_records(np.zeros(density.size))
        uniform = (features * records[:, None]).T @ features
        _, hidden, _ = denoise_spectrum(gram - uniform, noise_variance)
        self._hidden = hidden * (1 + np.eye(m))

    def geometry(self, records: Array) -> GramGeometry:
        """Eigen-directions for expected ``records`` (G,)."""
        values, directions = np.linalg.eigh(self._expected(self.features, records))
        rotated = self.features @ directions
        squares = rotated**2
        sampling = self._expected(squares, records)
        shrinkage = sampling / (sampling + self._noise)
        return GramGeometry(
            np.maximum(values, JOINT.min_eigenvalue),
            directions,
            rotated,
            sampling,
            shrinkage,
            shrinkage * self._noise + self._hidden,
        )

    def sample_deviation(self, geometry: GramGeometry, records: Array) -> Array:
        """R̂ (m, m), in the eigen-directions."""
        return geometry.shrinkage * self._difference(geometry, records)

    def residuals(self, geometry: GramGeometry, records: Array) -> Array:
        """Entries of B̄ − Σ N φφᵀ on and above the diagonal, in standard deviations (pairs,)."""
        i, j = self._pairs(geometry)
        sd = np.sqrt((geometry.sampling_variance + self._noise)[i, j])
        return np.asarray(self._difference(geometry, records)[i, j] / sd)

    def jacobian(self, geometry: GramGeometry, slopes: Array) -> Array:
        """Derivative of −`residuals` by the latents (pairs, latents)."""
        i, j = self._pairs(geometry)
        sd = np.sqrt((geometry.sampling_variance + self._noise)[i, j])
        products = (geometry.rotated[:, i] * geometry.rotated[:, j]).T @ slopes
        return np.asarray(products / sd[:, None])

    def fit(self) -> InputLaw:
        """Laplace's approximation of the posterior of z."""
        latents = np.zeros(self.density.size)
        for _ in range(JOINT.density_iterations):
            records, slopes = self.density.expected_records(latents)
            geometry = self.geometry(records)
            residuals = self.residuals(geometry, records)
            jacobian = self.jacobian(geometry, slopes)
            precision = jacobian.T @ jacobian + np.eye(len(latents))
            gradient = jacobian.T @ residuals - latents
            objective = float(residuals @ residuals + latents @ latents)
            step = np.asarray(np.linalg.solve(precision, gradient), dtype=np.float64)

            def tried(moved: Array, geometry: GramGeometry = geometry) -> float:
                left = self.residuals(geometry, self.density.expected_records(moved)[0])
                return float(left @ left + moved @ moved)

            latents = damped_step(latents, step, objective, tried)
            if step @ gradient < JOINT.tolerance:
                break
        i, j = self._pairs(geometry)
        _, logdet = np.linalg.slogdet(precision)
        variances = (geometry.sampling_variance + self._noise)[i, j]
        evidence = -(objective + float(logdet) + float(np.log(variances).sum())) / 2
        covariance = np.asarray(np.linalg.inv(precision), dtype=np.float64)
        return InputLaw(latents, covariance, evidence)

    @staticmethod
    def _expected(features: Array, records: Array) -> Array:
        return np.asarray((features * records[:, None]).T @ features)

    def _difference(self, geometry: GramGeometry, records: Array) -> Array:
        rotated_gram = geometry.directions.T @ self.gram @ geometry.directions
        return np.asarray(rotated_gram - self._expected(geometry.rotated, records))

    @staticmethod
    def _pairs(geometry: GramGeometry) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Pairs of the leading eigen-directions: beyond, more pairs cost time only."""
        m = len(geometry.eigenvalues)
        used = min(m, JOINT.gram_directions)
        i, j = np.triu_indices(used)
        return i + (m - used), j + (m - used)


def damped_step(
    start: Array, step: Array, objective: float, tried: Callable[[Array], float]
) -> Array:
    """Where the step leads, halved until the objective does not rise; the start if it always does.

    ``tried`` gives the objective elsewhere.
    """
    for _ in range(JOINT.halvings + 1):
        moved = start + step
        if tried(moved) <= objective * (1 + JOINT.rounding):
            return moved
        step = step / 2
    return start
