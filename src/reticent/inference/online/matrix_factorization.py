"""Factorisations A = B·C of running sums, for noise that steps share.

B·(C·x + noise) = A·x + B·noise. A record moves C·x by at most its own sensitivity times the longest
column of C; the running sum up to t carries noise of variance ‖row t of B‖². Their product is what
counts: with a longest column of length one, the largest variance of a running sum.

    tree          one node a level for every running sum: log₂ n + 1 levels, each with noise of its
                  own
    square root   C = B = A^{1/2}: c_k = (2k over k)/4^k, near the best for every n (Fichtenberger,
                  Henzinger, Upadhyay)
    buffers       c_k = Σ_j ω_j θ_j^(k−1): nearly as good, and a few buffers remember all the noise
                  (McMahan et al., "BLT")
"""

import math

import numpy as np
from numpy.typing import NDArray

from reticent.memo import memo

__all__ = [
    "buffer_coefficients",
    "largest_variance",
    "optimised_buffers",
    "root_coefficients",
    "row_variances",
    "tree_variances",
]

Array = NDArray[np.float64]


def root_coefficients(n: int) -> Array:
    """c_0 … c_{n−1} of the square root of the running sums: c_k = c_{k−1}·(2k−1)/(2k)."""
    k = np.arange(1, n)
    return np.concatenate([[1.0], np.cumprod((2 * k - 1) / (2 * k))])


def buffer_coefficients(decays: Array, weights: Array, n: int) -> Array:
    """c_0 = 1 and c_k = Σ_j ω_j θ_j^(k−1)."""
    powers = decays[None, :] ** np.arange(n - 1)[:, None]
    return np.concatenate([[1.0], powers @ weights])


def series_inverse(c: Array) -> Array:
    """Coefficients of C⁻¹, by doubling: b ← b·(2 − c·b) holds twice as many of them each time."""
    b = np.array([1 / c[0]])
    known = 1
    while known < len(c):
        known = min(2 * known, len(c))
        cb = -_series_product(c[:known], b, known)
        cb[0] += 2
        b = _series_product(b, cb, known)
    return b


def row_variances(c: Array) -> Array:
    """Variance of each running sum, in units of the variance of C·x's noise.

    Squared rows of B = A·C⁻¹, Toeplitz again.
    """
    return np.cumsum(np.cumsum(series_inverse(c)) ** 2)


def largest_variance(c: Array) -> float:
    """Largest variance of a running sum where no record moves C·x by more than one."""
    return float(row_variances(c)[-1] * (c @ c))


def tree_variances(n: int) -> Array:
    """Variance of each running sum by the binary tree, in units of one node's.

    As many nodes as t has ones in binary.
    """
    return np.array([float(t.bit_count()) for t in range(1, n + 1)])


@memo(16)
def optimised_buffers(n: int, buffers: int = 4) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Decays and weights of ``buffers`` buffers with the least largest variance over n steps."""
    from scipy.optimize import minimize

    places = np.geomspace(1.0, n, buffers)  # how long buffers remember

    def parts(at: Array) -> tuple[Array, Array]:
        return np.asarray(1 / (1 + np.exp(-at[:buffers]))), np.exp(at[buffers:])

    def loss(at: Array) -> float:
        decays, weights = parts(at)
        with np.errstate(all="ignore"):
            variance = largest_variance(buffer_coefficients(decays, weights, n))
        if 0 < variance < math.inf:
            return math.log(variance)
        return 1e3

    target = root_coefficients(n)
    start = np.concatenate([np.log(places * 1.5), np.log(0.25 / np.sqrt(places) * target[1])])
    for _ in range(3):
        start = minimize(loss, start, method="L-BFGS-B", options={"maxiter": 60}).x
    decays, weights = parts(start)
    return tuple(decays.tolist()), tuple(weights.tolist())


def _series_product(a: Array, b: Array, n: int) -> Array:
    """First n coefficients of the product of two power series."""
    size = 1 << (len(a) + len(b) - 2).bit_length()
    return np.asarray(np.fft.irfft(np.fft.rfft(a, size) * np.fft.rfft(b, size), size)[:n])
