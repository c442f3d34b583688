"""Small dense linear algebra that cannot fail."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dtrtrs

__all__ = ["LEAST_ROUNDING", "ROUNDING", "factor", "own_covariance", "quadratic", "solve_lower", "solve_upper"]

Array = NDArray[np.float64]
ROUNDING = 1e-9  # of the mean variance of an observation: far above what arithmetic loses
LEAST_ROUNDING = 1e-11  # of a posterior precision, whose small eigenvalues matter


def factor(matrix: Array, rounding: float) -> Array:
    """Cholesky factor of a positive semi-definite matrix: what is added to its diagonal is more than arithmetic can lose."""
    even = (matrix + matrix.T) / 2
    even.ravel()[:: len(matrix) + 1] += rounding * np.trace(matrix) / len(matrix)
    return np.asarray(np.linalg.cholesky(even))


def solve_lower(lower: Any, b: Any) -> Array:
    """lower⁻¹ b, straight from LAPACK: SciPy's own function takes more time to check than to solve."""
    return np.asarray(dtrtrs(lower.T, b, lower=0, trans=1)[0])


def solve_upper(lower: Any, b: Any) -> Array:
    """lower⁻ᵀ b."""
    return np.asarray(dtrtrs(lower.T, b, lower=0)[0])


def quadratic(rows: Array, matrix: Array) -> Array:
    """rowᵀ · matrix · row for each row."""
    return ((rows @ matrix) * rows).sum(axis=1)


def own_covariance(root: Array, information: Array) -> Array:
    """Posterior covariance of weights with prior root·rootᵀ, about which there is this information (an inverse covariance)."""
    inner = factor(np.eye(len(root)) + root.T @ information @ root, LEAST_ROUNDING)
    half = solve_lower(inner, root.T)
    return np.asarray(half.T @ half)
