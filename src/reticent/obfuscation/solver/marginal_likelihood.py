"""Marginal likelihood: hyperparameters and a constant mean (Step 1 of Tuo & Bhattacharya).

The search stays within the kernel's own bounds, and where the prior's variance is within a factor
``max_variance_ratio`` of the values' mean square about their median: a jump or a straight line
would otherwise be explained by a variance without end.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize
from sklearn.gaussian_process.kernels import Kernel

from reticent.obfuscation.solver.settings import SOLVER

__all__ = ["train"]

Array = NDArray[np.float64]


def train(
    kernel: Kernel, x: Array, y: Array, errors: float | Array, mean: float | None
) -> tuple[Kernel, float]:
    """Kernel and mean that maximise the marginal likelihood of a curve (n, d), (n,).

    Only free hyperparameters are changed; a ``mean`` that is not None is kept.

    ``errors``: the variance of the measurement errors, one for each record, or their covariance
    matrix.
    """
    count = min(len(x), SOLVER.training_records)
    some = np.unique(np.linspace(0, len(x) - 1, count).round().astype(int))
    x = x[some]
    y = y[some]
    v = np.asarray(errors, dtype=np.float64)
    if v.ndim == 2:
        v = v[np.ix_(some, some)]
    else:
        v = np.diag(np.broadcast_to(v, len(x)) if v.ndim == 0 else v[some])

    middle = mean
    if middle is None:
        middle = np.median(y)
    spread = float(((y - middle) ** 2).mean())
    if kernel.theta.size and not spread > 0:
        raise ValueError(
            f"all values to learn from are {middle:g}, which tells nothing "
            "about a kernel: give the kernel itself"
        )

    def loss(theta: Array) -> tuple[float, Array]:
        k, gradients = kernel.clone_with_theta(theta)(x, eval_gradient=True)
        try:
            weights, level, logdet, inverse = _posterior(k + v, y, mean)
        except np.linalg.LinAlgError:
            return 1e25, np.zeros_like(theta)
        outer = np.outer(weights, weights) - inverse
        fit = float((y - level) @ weights + logdet) / 2
        slope = -np.einsum("ij,ijk->k", outer, gradients) / 2
        prior = float(np.trace(k)) / len(k)
        away = np.log(prior / spread)
        beyond = np.sign(away) * max(abs(away) - np.log(SOLVER.max_variance_ratio), 0.0)
        towards = np.einsum("iik->k", gradients) / np.trace(k)
        steepness = SOLVER.variance_penalty * len(k)
        penalty = steepness * beyond**2
        return fit + penalty, slope + 2 * steepness * beyond * towards

    found = kernel
    if kernel.theta.size:
        rng = np.random.default_rng(0)
        low, high = kernel.bounds.T
        starts = [
            kernel.theta,
            *(rng.uniform(low, high) for _ in range(SOLVER.training_starts - 1)),
        ]
        fits = [
            minimize(loss, start, jac=True, method="L-BFGS-B", bounds=kernel.bounds)
            for start in starts
        ]
        found = kernel.clone_with_theta(min(fits, key=lambda fit: fit.fun).x)
    if mean is not None:
        return found, float(mean)
    return found, float(_posterior(found(x) + v, y, None)[1])


def _posterior(m: Array, y: Array, mean: float | None) -> tuple[Array, float, float, Array]:
    """M⁻¹(y − mean), the mean, log det M and M⁻¹."""
    n = len(y)
    factored = cho_factor(m + SOLVER.training_jitter * np.trace(m) / n * np.eye(n), lower=True)
    inverse = cho_solve(factored, np.eye(n))
    ones = inverse.sum(axis=0)
    level = mean
    if level is None:
        level = float(ones @ y / ones.sum())
    return inverse @ (y - level), level, 2 * float(np.log(np.diag(factored[0])).sum()), inverse
