"""Normal distributions truncated to a box, with the mean and the variance that were asked for.

A normal distribution that is cut off at the edges has another mean and less variance than before.
So in each column the density is exp(θ₁t + θ₂t²) between the edges, with θ such that mean and
variance are those given: the density of most entropy, which is a truncated normal one as long as
θ₂ < 0. Far from the edges it is the normal density itself. Columns are joined by a Gaussian copula
with the correlations of the covariance.
"""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from reticent.inference.mixtures.settings import BOUNDED_NORMAL
from reticent.memo import memo

__all__ = ["bounded_quantile_table", "sample_bounded_normal"]

Array = NDArray[np.float64]


@memo(4096)
def bounded_quantile_table(low: float, high: float) -> tuple[Array, Array]:
    """Edges of cells (m + 1,) and probabilities up to each, of a density on [low, high].

    In standard deviations from the mean: it has mean 0 and variance 1, or as much variance as
    there is room for.
    """
    farthest = BOUNDED_NORMAL.farthest_edge
    low, high = max(low, -farthest), min(high, farthest)
    sd = math.sqrt(min(1.0, BOUNDED_NORMAL.most_variance * -low * high))
    edges = np.linspace(low / sd, high / sd, BOUNDED_NORMAL.cells + 1)
    t = (edges[1:] + edges[:-1]) / 2
    features = np.stack([t, t * t - 1])
    theta = np.array([0.0, -0.5])
    dual, density = _dual(theta, features)
    for _ in range(BOUNDED_NORMAL.newton_steps):
        gradient = features @ density
        hessian = (features * density) @ features.T - np.outer(gradient, gradient)
        step = np.linalg.solve(hessian + 1e-12 * np.eye(2), gradient)
        size = 1.0
        while size > BOUNDED_NORMAL.least_step:
            new_dual, new_density = _dual(theta - size * step, features)
            if new_dual <= dual:
                break
            size /= 2
        else:
            break
        theta = theta - size * step
        dual, density = new_dual, new_density
    return sd * edges, np.concatenate([[0.0], np.cumsum(density)])


def _dual(theta: Array, features: Array) -> tuple[float, Array]:
    """Log of the normalising constant, which θ minimises, and probabilities of the cells."""
    log = theta @ features
    top = float(log.max())
    weights = np.exp(log - top)
    total = float(weights.sum())
    return top + math.log(total), weights / total


def sample_bounded_normal(
    n: int, mean: Array, covariance: Array, low: Array, high: Array, random: np.random.Generator
) -> Array:
    """Points (n, d) in a box, whose columns have the mean (d,) and the variances given.

    ``covariance`` (d, d) is positive definite, ``low`` and ``high`` (d,) are the edges.
    """
    d = len(mean)
    sd = np.sqrt(np.diag(covariance))
    margin = BOUNDED_NORMAL.least_margin * (high - low)
    centre = np.clip(mean, low + margin, high - margin)
    root = np.linalg.cholesky(covariance / np.outer(sd, sd) + 1e-12 * np.eye(d))
    normal = random.standard_normal((n, d)) @ root.T
    for j in range(d):
        below, above = (low[j] - centre[j]) / sd[j], (high[j] - centre[j]) / sd[j]
        if min(-below, above) < BOUNDED_NORMAL.farthest_edge:
            edges, cumulative = bounded_quantile_table(float(below), float(above))
            normal[:, j] = np.interp(ndtr(normal[:, j]), cumulative, edges)
    return np.clip(centre + normal * sd, low, high)
