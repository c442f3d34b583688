"""Fourier features Φ of stationary kernels on [0, 1]ᵈ, with ‖Φ‖ = 1 and a bound on their error.

Φ(x)ᵀΦ(y) ≈ k(x − y).

By Bochner's theorem k(r) = E cos(ωᵀr) for a symmetric law of ω; a quadrature of it with nodes ω_i
and weights p_i, Σp = 1, gives features √p_i·cos(ω_iᵀx) and √p_i·sin(ω_iᵀx). Nodes ω and −ω give the
same ones, so n nodes in each dimension are nᵈ features. In several dimensions k is the product of
kernels of single inputs, and so are nodes and weights.

    squared exponential   ω ~ N(0, 1/ℓ²): Gauss and Hermite's nodes t, ω = √2·t/ℓ. The remainder of
                          their formula for cos(ωr), |r| ≤ 1, is at most n!/(2n)!·ℓ^(−2n), which is
                          below Theorem 2 of the GP bandit paper.
    Matérn, smoothness ν ω·ℓ ~ Student's t with 2ν degrees of freedom, whose tails are too heavy for
    Gauss: equidistant
                          ω = jh, |j| ≤ J. By Poisson's formula h·ΣS(jh)cos(jhr) = Σ_n k(r + 2πn/h),
                          so the error is what other periods add and what lies beyond Jh; and as
                          much again where weights are scaled to Σp = 1.
"""

import math
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from sklearn.gaussian_process.kernels import Matern

__all__ = [
    "FourierFeatures",
    "matern_features",
    "squared_exponential_bound",
    "squared_exponential_features",
]

Array = NDArray[np.float64]
_PERIODS = np.geomspace(2.2, 60.0, 80)  # of the other periods of a Matérn kernel's approximation


@dataclass(frozen=True)
class FourierFeatures:
    """Nodes (rows) and their weights; ``bound``.

    The largest possible error of Φ(x)ᵀΦ(y), x and y in [0, 1]ᵈ.
    """

    nodes: Array
    weights: Array
    bound: float

    def __call__(self, X: Array) -> Array:
        """Φ at rows of X; no longer than one."""
        phase = X @ self.nodes.T
        both = np.hstack([np.cos(phase), np.sin(phase)]) * np.tile(np.sqrt(self.weights), 2)
        turning = np.concatenate(
            [np.full(len(self.nodes), True), np.any(self.nodes != 0, axis=1)]
        )  # sin 0 = 0
        return np.asarray(both[:, turning] * (1 - 2.0**-50))


def squared_exponential_features(dimension: int, length: float, nodes: int) -> FourierFeatures:
    """Features of exp(−‖r‖²/2ℓ²), ``nodes`` in each dimension."""
    t, w = np.polynomial.hermite.hermgauss(nodes)
    return _tensor(
        dimension,
        t * (math.sqrt(2) / length),
        w,
        squared_exponential_bound(dimension, length, nodes),
    )


def squared_exponential_bound(dimension: int, length: float, nodes: int) -> float:
    """The bound d·2^(d−1)·√(π/2)·n^(−n)·(e/4ℓ²)^n of Theorem 2."""
    logarithm = nodes * (1 - math.log(4 * nodes * length**2))
    return (
        dimension * 2 ** (dimension - 1) * math.sqrt(math.pi / 2) * math.exp(min(logarithm, 700.0))
    )


def matern_features(
    dimension: int, length: float, nodes: int, smoothness: float = 2.5
) -> FourierFeatures:
    """Features of a product of Matérn kernels, with the best spacing of the nodes.

    ``nodes``: in each dimension; an odd number.
    """
    j = nodes // 2
    law = stats.t(2 * smoothness)
    kernel = Matern(length, nu=smoothness)
    best = (math.inf, 1.0)
    for period in _PERIODS:
        others = kernel(period * np.arange(1, 21)[:, None] - 1.0, [[0.0]])
        beyond = float(law.sf(2 * math.pi / period * j * length))
        best = min(best, (2 * (2 * float(others.sum()) + 2 * beyond), float(period)))
    omega = np.arange(-j, j + 1.0) * (2 * math.pi / best[1])
    return _tensor(
        dimension, omega, np.asarray(law.pdf(omega * length), dtype=np.float64), dimension * best[0]
    )


def _tensor(dimension: int, omega: Array, weights: Array, bound: float) -> FourierFeatures:
    """All products of one-dimensional nodes, of ω and −ω only one.

    Factors are at most one, so their errors add up.
    """
    middle = len(omega) // 2
    w = weights / weights.sum()
    order = np.array(list(product(range(len(omega)), repeat=dimension))) - middle
    if len(omega) % 2:
        mirrored = -order
    else:
        mirrored = -1 - order
    first = [tuple(a) >= tuple(b) for a, b in zip(order.tolist(), mirrored.tolist(), strict=True)]
    index = order[first] + middle
    alone = (order == mirrored).all(axis=1)[first]
    # only the origin has no mirror image
    nodes = omega[index]
    together = w[index].prod(axis=1) / (1 + alone)
    nodes[np.abs(nodes) < 1e-9] = 0.0
    return FourierFeatures(nodes, together / together.sum(), bound)
