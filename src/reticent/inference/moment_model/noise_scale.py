"""Noise whose scale depends on the inputs, learned from the sizes of residuals.

Noise has one shape everywhere and the variance σ²(x) = c·exp(g(x)). What a stage releases of the
sizes of its residuals (`residual_gram.ResidualSizeGram`) is

    Σ φ(x)·u,   u = 2·min(|e|, s)/s − 1,   e = noise + what is not known of the function

and the expectation of u at x is known in closed form if both are normal. g has the function's own
prior but for its amplitude, which is zero (noise of one scale) or one of a few: each gets a mode by
Gauss–Newton steps, and the weight that the evidence gives it (Laplace). With few records or much
privacy noise, no amplitude fits better than zero, and the noise stays what it was.

Of noise that is not symmetric sizes move with the function's error, first of all: where most of it
is below its mean, and the function is put too low, residuals look small. How fast is not known, but
never faster than the error itself; as much is in the covariance.

Sizes rather than squares (Davidian and Carroll, 1987): a clipped square says nothing about places
whose noise is a tenth of that elsewhere.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from reticent.inference.linalg import (
    JITTER,
    SMALL_JITTER,
    as_matrix,
    covariance_root,
    robust_cholesky,
    solve_lower,
    solve_upper,
)
from reticent.inference.moment_model.settings import NOISE_SCALE

__all__ = ["NoiseScale", "ReleasedSizes", "clipped_size", "fit_noise_scale"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ReleasedSizes:
    """What was released of the sizes of residuals, and what it depends on.

    k functions, of which g is made, out of m features; G points that stand for the records.

    Attributes
    ----------
    cross : (k,) array
        Released Σφu of the first k features.
    cross_variance : float
        Variance of the noise of each.
    threshold : float
        s, in half-ranges of y.
    gram : (k, m) array
        Σφφᵀ, as far as it is known.
    gram_variance : (k, m) array
        Variance of its entries' errors.
    n : float
        Number of records.
    density : (G,) array
        Share of the records at each point.
    features : (G, m) array
        φ at the points: functions times the weight of a record there.
    functions : (G, k) array
        The first k functions.
    constant : (m,) array
        Weights of the function that is one everywhere.
    unknown : (G, G) array
        Covariance of what is not known of the function.
    apart : (G,) array
        Function by what is known now, less what residuals were taken from; in half-ranges of y.
    """

    cross: Array
    cross_variance: float
    threshold: float
    gram: Array
    gram_variance: Array
    n: float
    density: Array
    features: Array
    functions: Array
    constant: Array
    unknown: Array
    apart: Array

    @property
    def explained(self) -> Array:
        """Mean square (G,) of residuals but for noise, in squared half-ranges of y."""
        return np.diag(self.unknown) + self.apart**2

    @property
    def explained_covariance(self) -> Array:
        """Covariance (G, G) of these squares: the function's error is the same in all records."""
        return 2 * self.unknown * (self.unknown + 2 * np.outer(self.apart, self.apart))


@dataclass(frozen=True, eq=False)
class NoiseScale:
    """The logarithm of the noise's variance as a function of the inputs.

    Attributes
    ----------
    weights : (k,) array
        Of the first k functions: g.
    limits : pair of floats
        Least and largest g among nearly all records (`tail_records`); it is nowhere beyond.
    level : float
        Logarithm of the mean of exp(g) over the records.
    varying : float
        Probability that the noise has different scales.
    """

    weights: Array
    limits: tuple[float, float]
    level: float
    varying: float

    @property
    def range(self) -> tuple[float, float]:
        """Least and largest standard deviation of the noise, by the root of its mean variance."""
        low, high = self.limits
        return math.exp((low - self.level) / 2), math.exp((high - self.level) / 2)

    def log_ratio(self, functions: Array) -> Array:
        """Logarithm of the noise's variance (points,), relative to its mean over the records."""
        g = functions[:, : len(self.weights)] @ self.weights
        return np.asarray(np.clip(g, *self.limits) - self.level)


def clipped_size(variance: Array, s: float) -> tuple[Array, Array, Array]:
    """Of min(|e|, s)/s, e normal: mean, variance, and the mean's derivative by log variance."""
    sd = np.sqrt(variance)
    z = s / sd
    edge = np.exp(-(z**2) / 2)
    beyond = 2 * ndtr(-z)
    slope = math.sqrt(2 / math.pi) * (1 - edge) / z
    mean = slope + beyond
    square = (1 - beyond - 2 * z * edge / math.sqrt(2 * math.pi)) / z**2 + beyond
    return mean, np.maximum(square - mean**2, 0.0), slope / 2


def fit_noise_scale(sizes: ReleasedSizes, variance: float, prior: Array) -> NoiseScale:
    """Posterior mean of g.

    Parameters
    ----------
    sizes : ReleasedSizes
        What was released, and what it depends on.
    variance : float
        Variance of the noise on average, in squared half-ranges of y: where g begins.
    prior : (k, k) array
        Prior covariance of g's weights, but for a factor.
    """
    functions = sizes.functions
    one = sizes.constant[: functions.shape[1]]
    centred = functions - sizes.density @ functions
    prior_root = as_matrix(covariance_root(prior))
    spread = float(sizes.density @ np.square(centred @ prior_root).sum(axis=1))
    size = float(sizes.density @ np.square(functions @ prior_root).sum(axis=1))
    if spread <= SMALL_JITTER * size:  # no function but the constant
        return NoiseScale(np.zeros(functions.shape[1]), (0.0, 0.0), 0.0, 0.0)
    level = NOISE_SCALE.log_level_sd * one[:, None]
    amplitudes = np.array([0.0, *np.geomspace(*NOISE_SCALE.amplitudes)])
    log_odds = np.full(len(amplitudes), -math.log(len(amplitudes) - 1))
    log_odds[0] = 0.0
    fits = []
    for amplitude in amplitudes:
        root = level
        if amplitude > 0:
            root = np.hstack([level, amplitude / math.sqrt(spread) * prior_root])
        fits.append(_mode(sizes, variance, root))
    modes = np.array([mode for mode, _ in fits])
    scores = np.array([evidence for _, evidence in fits]) + log_odds
    shares = np.exp(scores - scores.max())
    shares /= shares.sum()
    weights = shares @ modes
    g = functions @ weights
    limits = _central_range(g, sizes.density)
    kept = np.clip(g, *limits)
    mean_ratio = float(sizes.density @ np.exp(kept - limits[1]))
    mean_level = math.log(mean_ratio) + limits[1]
    return NoiseScale(weights, limits, mean_level, float(1 - shares[0]))


def _central_range(values: Array, density: Array) -> tuple[float, float]:
    """Between which all but a few of the records' values are, at either end."""
    order = np.argsort(values, kind="stable")
    below = np.cumsum(density[order])
    ends = np.searchsorted(below, [NOISE_SCALE.tail_records, 1 - NOISE_SCALE.tail_records])
    low, high = values[order[np.minimum(ends, len(values) - 1)]].tolist()
    return low, high


def _mode(sizes: ReleasedSizes, variance: float, root: Array) -> tuple[Array, float]:
    """Weights of g at their posterior mode, and the evidence by Laplace's approximation.

    ``root`` (k, latents): of the prior covariance of the weights.
    """
    k = sizes.functions.shape[1]
    features = sizes.features[:, :k]
    weighted = sizes.features * sizes.density[:, None]
    lower = robust_cholesky(sizes.features.T @ weighted, JITTER)
    onto = solve_lower(lower, weighted.T)  # a function's values at the points, to its coefficients
    summed = solve_lower(lower, sizes.gram.T).T @ onto  # the same, to its sums times features
    record_weights = sizes.features @ sizes.constant
    along = sizes.functions @ root
    tilted = summed * (2 * record_weights / sizes.threshold)  # by the function's error, at most
    tilted_covariance = tilted @ sizes.unknown @ tilted.T
    explained = sizes.explained
    explained_covariance = sizes.explained_covariance

    def noise_at(latent: Array) -> Array:
        return variance * np.exp(np.clip(along @ latent, *NOISE_SCALE.log_range))

    def gap(noise: Array) -> Array:
        """Released moments less expected ones."""
        mean, _, _ = clipped_size(noise + explained, sizes.threshold)
        return sizes.cross - summed @ (record_weights * (2 * mean - 1))

    def linearised(noise: Array) -> tuple[Array, Array]:
        """How latents move the moments, and a root of the moments' covariance."""
        total = noise + explained
        mean, scatter, slope = clipped_size(total, sizes.threshold)
        moved = summed * (2 * record_weights * slope / total)
        coefficients = solve_upper(lower, onto @ (record_weights * (2 * mean - 1)))
        # a record's row is its weight times functions, and its size once more its weight
        sampling = 4 * sizes.n * sizes.density * scatter * record_weights**2
        covariance = features.T @ (sampling[:, None] * features)
        covariance += moved @ explained_covariance @ moved.T
        covariance += tilted_covariance
        covariance += np.diag(sizes.cross_variance + sizes.gram_variance @ coefficients**2)
        return (moved * noise) @ along, robust_cholesky(covariance, JITTER)

    latent = np.zeros(root.shape[1])
    noise = noise_at(latent)
    for _ in range(NOISE_SCALE.iterations):
        jacobian, chol = linearised(noise)
        J = solve_lower(chol, jacobian)
        z = solve_lower(chol, gap(noise))
        objective = z @ z + latent @ latent
        inner = robust_cholesky(np.eye(len(latent)) + J.T @ J, SMALL_JITTER)
        step = solve_upper(inner, solve_lower(inner, J.T @ z - latent))
        for _ in range(NOISE_SCALE.halvings):
            moved = latent + step
            noise = noise_at(moved)
            z = solve_lower(chol, gap(noise))
            if z @ z + moved @ moved <= objective:
                break
            step /= 2
        else:  # no step helps: the mode is here, up to what so short steps can tell
            step = np.zeros_like(step)
            moved = latent
            noise = noise_at(latent)
        latent = moved
        if math.sqrt(np.mean(step**2)) <= NOISE_SCALE.tolerance:
            break
    jacobian, chol = linearised(noise)
    J = solve_lower(chol, jacobian)
    z = solve_lower(chol, gap(noise))
    inner = robust_cholesky(np.eye(len(latent)) + J.T @ J, SMALL_JITTER)
    evidence = -(z @ z + latent @ latent) / 2
    evidence -= np.log(np.diag(chol)).sum() + np.log(np.diag(inner)).sum()
    return root @ latent, float(evidence)
