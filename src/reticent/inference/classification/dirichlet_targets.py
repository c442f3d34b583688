"""Dirichlet targets: classification as regression, from noisy Gram matrices of each class.

Milios et al. 2018; the DP-GP paper, Sec 5. A record of class c has the targets log α − σ̃²/2 with
noise variance σ̃² = log(1/α + 1), where α = 1 + α₀ for class c and α₀ for the others (the paper's
Eq 21 has σ̃² wrong). For each class, all sums that Gaussian regression needs are linear in S_c =
Σφφᵀ and a_c = Σφ over the records of each class. Targets are centred, which is public.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reticent.inference.linalg import (
    JITTER,
    SMALL_JITTER,
    posterior_covariance,
    robust_cholesky,
    solve_lower,
)
from reticent.inference.moment_model.gram_estimation import DAMPING, GramEstimator
from reticent.number_kinds import Numerical, Prior

__all__ = ["DirichletSettings", "dirichlet_posterior"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class DirichletSettings:
    """Tuned numbers of `dirichlet_posterior`.

    Parameters
    ----------
    alpha : float
        α₀, the pseudo-count of every class.
    max_iterations : int
        Steps of the fixed point between the posterior and the covariance of the observation.
    tolerance : float
        Relative change of the weights at which it stops.
    """

    alpha: Prior[float] = 0.1
    max_iterations: Numerical[int] = 20
    tolerance: Numerical[float] = 1e-6


_SETTINGS = DirichletSettings()


def dirichlet_posterior(
    S: Array, a: Array, S_sd: Array, a_sd: float, prior: Array, points: Array, n: float
) -> tuple[Array, Array, Array]:
    """Posterior of the weights of the log-odds of C classes.

    Parameters
    ----------
    S, S_sd : (C, m, m) and (m, m) arrays
        Released Σφφᵀ of each class, and the standard deviations of the noise.
    a, a_sd : (C, m) array and float
        Released Σφ of each class, and the standard deviation of the noise.
    prior : (m, m) array
        Prior covariance of the weights of a class.
    points : (points, m) array
        Features at points that are distributed as the records may be.
    n : float
        Number of records.

    Returns
    -------
    Mean (m, C), covariances (C, m, m), and the same without privacy noise.
    """
    classes = len(S)
    m = len(prior)
    (high, v_high), (low, v_low) = (
        dirichlet_target(alpha) for alpha in (1 + _SETTINGS.alpha, _SETTINGS.alpha)
    )
    middle = low + (high - low) / classes
    means = []
    covariances = []
    nonprivate = []
    for c in range(classes):
        weights = np.full(classes, 1 / v_low)
        weights[c] = 1 / v_high
        targets = np.full(classes, (low - middle) / v_low)
        targets[c] = (high - middle) / v_high
        frequency = 1 / classes
        gram = GramEstimator(
            points * math.sqrt(frequency / v_high + (1 - frequency) / v_low), n, damping=DAMPING
        )
        gram.add(np.tensordot(weights, S, 1), S_sd * float(np.linalg.norm(weights)))
        gram.update()
        A = targets @ a
        noise = (a_sd * float(np.linalg.norm(targets))) ** 2
        w = np.zeros(m)
        C = prior
        B = gram.damped_estimate
        V = gram.entry_variance
        root = np.asarray(np.linalg.cholesky(prior), dtype=np.float64)
        for _ in range(_SETTINGS.max_iterations):
            second = C + np.outer(w, w)
            W = B + V * second
            np.fill_diagonal(W, np.diag(B) + V @ np.diag(second) + noise)
            lower = robust_cholesky(W, JITTER)
            H = solve_lower(lower, B @ root)
            z = solve_lower(lower, A)
            inner = robust_cholesky(np.eye(m) + H.T @ H, SMALL_JITTER)
            half = solve_lower(inner, root.T)
            previous = w
            w = half.T @ solve_lower(inner, H.T @ z)
            C = half.T @ half
            if np.linalg.norm(w - previous) <= _SETTINGS.tolerance * (1 + np.linalg.norm(w)):
                break
        means.append(w)
        covariances.append(C)
        nonprivate.append(posterior_covariance(root, B))
    mean = np.array(means).T
    return (
        mean - mean.mean(axis=1, keepdims=True),
        np.array(covariances),
        np.array(nonprivate),
    )


def dirichlet_target(alpha: float) -> tuple[float, float]:
    """Mean and variance of log x for a lognormal x matched to a gamma variable with shape α."""
    variance = math.log(1 / alpha + 1)
    return math.log(alpha) - variance / 2, variance
