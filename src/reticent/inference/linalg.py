"""Dense linear algebra of small matrices that cannot fail."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import daxpy
from scipy.linalg.lapack import dpotrf, dpotri, dtrtri, dtrtrs

from reticent.number_kinds import Numerical

__all__ = [
    "JITTER",
    "SMALL_JITTER",
    "as_matrix",
    "cholesky",
    "covariance_root",
    "inverse_diagonal",
    "inverse_from_cholesky",
    "posterior_covariance",
    "project_onto_simplex",
    "quadratic_forms",
    "robust_cholesky",
    "root_times",
    "solve_lower",
    "solve_upper",
    "times_root",
    "weighted_sum",
]

Array = NDArray[np.float64]
# of the mean variance of an observation: far above what arithmetic loses
JITTER: Numerical[float] = 1e-9
SMALL_JITTER: Numerical[float] = 1e-11  # of a posterior precision, whose small eigenvalues matter


def robust_cholesky(matrix: Array, rounding: float) -> Array:
    """Lower Cholesky factor of a positive semi-definite matrix (m, m).

    ``rounding`` times the mean of the diagonal is added to it, more than arithmetic can lose.
    """
    even = matrix + matrix.T
    even /= 2
    even.ravel()[:: len(matrix) + 1] += rounding * np.trace(matrix) / len(matrix)
    return cholesky(even, overwrite=True)


def cholesky(matrix: Array, *, overwrite: bool = False) -> Array:
    """Lower Cholesky factor of a positive definite matrix (m, m), straight from LAPACK.

    NumPy's own function takes three times as long. ``overwrite``: put it in the matrix's place.
    """
    upper, first_failure = dpotrf(matrix.T, lower=0, clean=1, overwrite_a=overwrite)
    if first_failure:
        raise np.linalg.LinAlgError("The matrix is not positive definite.")
    return np.asarray(upper.T)


def inverse_from_cholesky(lower: Array) -> Array:
    """(lower·lowerᵀ)⁻¹ in its lower triangle, zeros above; in a third of the time of solving."""
    upper, _ = dpotri(lower.T, lower=0)
    return np.asarray(upper.T)


def inverse_diagonal(lower: Array) -> Array:
    """Diagonal (m,) of (lower·lowerᵀ)⁻¹, in two thirds of the time of the whole inverse."""
    upper, _ = dtrtri(lower.T, lower=0)
    return np.einsum("ij,ij->i", upper, upper)


def covariance_root(covariance: Array) -> Array:
    """Root r of a covariance r·rᵀ (m, m); of variances (m,), which are of independent weights."""
    if covariance.ndim == 1:
        return np.sqrt(covariance)
    return cholesky(covariance)


def as_matrix(covariance: Array) -> Array:
    """A covariance (m, m), or its root, from either form of `covariance_root`."""
    if covariance.ndim == 1:
        return np.diag(covariance)
    return covariance


def times_root(matrix: Array, root: Array) -> Array:
    """matrix · root, with a root of either form."""
    if root.ndim == 1:
        return matrix * root
    return np.asarray(matrix @ root)


def root_times(root: Array, vector: Array) -> Array:
    """root · vector, with a root of either form."""
    if root.ndim == 1:
        return root * vector
    return np.asarray(root @ vector)


def weighted_sum(terms: Sequence[Array], weights: Sequence[float]) -> Array:
    """Σ weight · term of arrays (m,), in one piece each: nothing is written but the sum."""
    total = np.zeros_like(terms[0])
    for term, weight in zip(terms, weights, strict=True):
        total = daxpy(term, total, a=weight)
    return total


def solve_lower(lower: Array, b: Array) -> Array:
    """lower⁻¹ b, straight from LAPACK.

    SciPy's own function takes more time to check than to solve.
    """
    return np.asarray(dtrtrs(lower.T, b, lower=0, trans=1)[0])


def solve_upper(lower: Array, b: Array) -> Array:
    """lower⁻ᵀ b."""
    return np.asarray(dtrtrs(lower.T, b, lower=0)[0])


def project_onto_simplex(v: Array) -> Array:
    """Nearest point of the probability simplex to v (k,): subtract one number, cut at zero."""
    ordered = np.sort(v)[::-1]
    excess = (np.cumsum(ordered) - 1) / np.arange(1, len(v) + 1)
    last = int(np.flatnonzero(ordered > excess)[-1])
    return np.asarray(np.maximum(v - excess[last], 0.0))


def quadratic_forms(rows: Array, matrix: Array) -> Array:
    """rowᵀ · matrix · row for each row of ``rows`` (n, m); an array (n,)."""
    return ((rows @ matrix) * rows).sum(axis=1)


def posterior_covariance(root: Array, information: Array) -> Array:
    """Posterior covariance (m, m) of weights, from a root of the prior covariance and information.

    ``root``: (m, m), the prior covariance is root·rootᵀ; ``information``: (m, m), the inverse
    covariance of what was observed about the weights.
    """
    inner = robust_cholesky(np.eye(len(root)) + root.T @ information @ root, SMALL_JITTER)
    half = solve_lower(inner, root.T)
    return np.asarray(half.T @ half)
