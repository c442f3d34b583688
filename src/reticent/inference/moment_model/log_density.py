"""Density of the records as a latent: what noisy Gram matrices say of it.

The logarithm of the density on G points of the box is a Gaussian process, cut to its leading
modes: log p = Λz − log Σ, z ~ N(0, I). The mean B̄ of the released Gram matrices is, entry by entry
in the eigen-directions a, b of what the density foretells,

    B̄_ab = (n Σ_g p_g φ_gφ_gᵀ + control)_ab + N(0, ρ_ab) + N(0, τ_ab),

ρ_ab = n Σ_g p_g ψ_ga²ψ_gb² for that records are a sample of the density, τ for privacy. What the
sample adds to its law is known with the share ρ/(ρ + τ) of the residual, and a variance of
ρτ/(ρ + τ). The density is smooth and on few points: where the releases contradict it beyond chance,
all ρ are larger by the same factor.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reticent.inference.moment_model.settings import JOINT

__all__ = [
    "DensityModel",
    "GramView",
    "density_modes",
    "halved_step",
    "least_factor",
    "likely_mean_square",
]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class DensityModel:
    """Latent density on points, and its likelihood by the mean of noisy Gram matrices.

    Parameters
    ----------
    features : (G, m) array
        φ at the points.
    modes : (G, modes) array
        Λ (`density_modes`).
    n : float
        Number of records.
    count_sd : float
        Relative standard deviation of its error: one more latent.
    gram : (m, m) array
        Mean of the released Gram matrices.
    gram_noise : float
        Variance of its noise off the diagonal; twice that on it.
    quadrature_error : (m, m) array
        What the mean of φφᵀ over an even density differs from that over the points by.
    """

    features: Array
    modes: Array
    n: float
    count_sd: float
    gram: Array
    gram_noise: float
    quadrature_error: Array

    @property
    def size(self) -> int:
        """Number of latents z: modes, and the logarithm of the number of records."""
        return self.modes.shape[1] + 1

    def density(self, z: Array) -> Array:
        """p (G,): adds up to one, but for the error in the number of records."""
        logs = self.modes @ z[:-1]
        p = np.exp(logs - logs.max())
        return np.asarray(p * (math.exp(self.count_sd * z[-1]) / p.sum()))

    def slope(self, p: Array) -> Array:
        """∂p/∂z (G, size)."""
        mean = (p / p.sum()) @ self.modes
        return np.column_stack([p[:, None] * (self.modes - mean), self.count_sd * p])

    def law(self, p: Array) -> tuple[Array, Array]:
        """Gram matrix (m, m) that a density foretells, and the control variate in it."""
        evenness = p.sum() ** 2 / (len(p) * (p @ p))
        control = self.n * p.sum() * evenness * self.quadrature_error
        return self.n * (self.features.T * p) @ self.features + control, control

    def view(self, z: Array) -> "GramView":
        """Linearise around z."""
        return GramView(self, z)

    def fit(self) -> Array:
        """Latents z by the Gram matrices alone."""
        z = np.zeros(self.size)
        for _ in range(JOINT.density_iterations):
            view = self.view(z)
            curvature, gradient = view.likelihood()
            step = np.linalg.solve(curvature + np.eye(self.size), gradient - z).astype(np.float64)
            step *= view.step_length(z, step)
            z = z + step
            if float(np.sqrt(np.mean(step**2))) < JOINT.tolerance:
                break
        return z


class GramView:
    """What the released Gram matrices say around a density, in its eigen-directions.

    Attributes
    ----------
    density, slope : (G,) and (G, size) arrays
        p, ∂p/∂z.
    law, control : (m, m) arrays
        As `DensityModel.law`.
    directions : (m, m) array
        Q, eigenvectors of the law.
    rotated : (G, m) array
        ψ = φQ.
    share, variance : (m, m) arrays
        Part of the residual, in these directions, that the sample adds to its law, and the
        variance of what noise hides of that.
    """

    def __init__(self, model: DensityModel, z: Array) -> None:
        self._model = model
        self.density = model.density(z)
        self.slope = model.slope(self.density)
        self.law, self.control = model.law(self.density)
        self.directions = np.linalg.eigh((self.law + self.law.T) / 2)[1]
        self.rotated = model.features @ self.directions
        m = len(self.law)
        self._upper = np.triu_indices(m)
        noise = model.gram_noise * (1 + np.eye(m))
        rotated2 = self.rotated * self.rotated
        sampling = model.n * (rotated2.T * self.density) @ rotated2
        self.residual = self.directions.T @ (model.gram - self.law) @ self.directions
        squares = self.residual[self._upper] ** 2
        most = likely_mean_square(len(squares))

        def excess(factor: float) -> bool:
            variances = (noise + factor * sampling)[self._upper]
            return float((squares / variances).mean()) > most

        sampling *= least_factor(excess)
        self._spread = np.sqrt(noise + sampling)[self._upper]
        self.share = sampling / (sampling + noise)
        self.variance = self.share * noise
        self._slopes = self._law_slopes()

    def _law_slopes(self) -> Array:
        """Derivatives (size, m(m+1)/2) of the law by z, in its directions; upper triangles."""
        i, j = self._upper
        slopes = np.empty((len(i), self.slope.shape[1]))
        weighted = self._model.n * self.slope
        functions = np.ascontiguousarray(self.rotated.T)
        for start in range(0, len(i), JOINT.block_rows):
            block = slice(start, start + JOINT.block_rows)
            slopes[block] = (functions[i[block]] * functions[j[block]]) @ weighted
        return np.ascontiguousarray(slopes.T)

    def likelihood(self) -> tuple[Array, Array]:
        """Curvature (size, size) and gradient (size,) of the log likelihood by z."""
        slopes = self._slopes / self._spread
        return slopes @ slopes.T, slopes @ (self.residual[self._upper] / self._spread)

    def step_length(self, z: Array, step: Array) -> float:
        """Length of a step that does not make the posterior of z less likely."""

        def objective(length: float) -> float:
            moved = z + length * step
            return self.misfit(moved) + float(moved @ moved) / 2

        return halved_step(objective)

    def misfit(self, z: Array) -> float:
        """Minus the log likelihood of other latents, with these directions and variances."""
        law, _ = self._model.law(self._model.density(z))
        residual = self.directions.T @ (self._model.gram - law) @ self.directions
        return float(((residual[self._upper] / self._spread) ** 2).sum() / 2)

    def estimate(self, p: Array) -> Array:
        """Gram matrix (m, m) less nΣpφφᵀ, of the records: sample and control variate."""
        law, control = self._model.law(p)
        Q = self.directions
        residual = Q.T @ (self._model.gram - law) @ Q
        return np.asarray(Q @ (self.share * residual) @ Q.T + control)

    def sample_slopes(self, along: Array) -> Array:
        """Derivatives (stages, m, size) by z of what the sample adds, times vectors (stages, m).

        All in the law's directions.
        """
        m = len(self.law)
        full = np.empty((len(self._slopes), m, m))
        i, j = self._upper
        full[:, i, j] = self._slopes
        full[:, j, i] = self._slopes
        full *= self.share
        return np.asarray(-np.tensordot(full, along, (2, 1)).transpose(2, 1, 0))


def density_modes(coordinates: Array) -> Array:
    """Leading modes Λ (G, modes) of the logarithm of a density at points (G, d) of the box.

    ΛΛᵀ is nearly a Matérn kernel (3/2).
    """
    d = coordinates.shape[1]
    squares = np.zeros((len(coordinates), len(coordinates)))
    for column in coordinates.T:
        squares += (column[:, None] - column) ** 2
    distance = np.sqrt(3 * squares / d) / JOINT.density_length
    kernel = JOINT.log_density_sd**2 * (1 + distance) * np.exp(-distance)
    values, vectors = np.linalg.eigh(kernel)
    most = min(JOINT.density_modes, len(values))
    return np.asarray(vectors[:, -most:] * np.sqrt(np.maximum(values[-most:], 0.0)))


def halved_step(objective: Callable[[float], float]) -> float:
    """Length of a step, from 1 on halved until the objective is no larger than at 0."""
    most = objective(0.0)
    most += JOINT.rounding * abs(most)
    length = 1.0
    for _ in range(JOINT.halvings):
        if objective(length) <= most:
            break
        length /= 2
    return length


def likely_mean_square(number: int) -> float:
    """Mean square of so many standard normal numbers that chance allows for."""
    return 1 + JOINT.chance_sd * math.sqrt(2 / number)


def least_factor(excess: Callable[[float], bool]) -> float:
    """Least factor on some variances, 1 or more, with which there is no excess."""
    if not excess(1.0):
        return 1.0
    low = 0.0
    high = JOINT.largest_log_factor
    for _ in range(JOINT.bisections):
        middle = (low + high) / 2
        if excess(math.exp(middle)):
            low = middle
        else:
            high = middle
    return math.exp(high)
