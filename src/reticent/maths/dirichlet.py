"""Classification by Dirichlet targets (Milios et al. 2018), from noisy Gram matrices of each class (the DP-GP paper, Sec 5).

A record of class c has the targets log α − σ̃²/2 with noise variance σ̃² = log(1/α + 1), where α = 1 + α₀ for class c and α₀ for
the others (the paper's Eq 21 has σ̃² wrong). For each class, all sums that Gaussian regression needs are linear in S_c = Σφφᵀ and
a_c = Σφ over the records of each class. Targets are centred, which is public.
"""

import math

import numpy as np
from numpy.typing import NDArray

from reticent.maths.gram import DAMPING, GramBelief
from reticent.maths.linalg import LEAST_ROUNDING, ROUNDING, factor, own_covariance, solve_lower

__all__ = ["dirichlet_posterior"]

Array = NDArray[np.float64]
_ALPHA = 0.1  # α₀
_ROUNDS = 20


def dirichlet_posterior(
    S: Array, a: Array, S_sd: Array, a_sd: float, prior: Array, points: Array, n: int
) -> tuple[Array, Array, Array]:
    """Mean (m × C) and mean covariance (m × m) of the weights of log-odds, from S_c (C × m × m) and a_c (C × m).

    The last is their mean covariance had the sums been seen without privacy noise.
    """
    classes, m = len(S), len(prior)
    (high, v_high), (low, v_low) = (_target(alpha) for alpha in (1 + _ALPHA, _ALPHA))
    middle = low + (high - low) / classes
    means, covariances, own = [], [], []
    for c in range(classes):
        weights = np.full(classes, 1 / v_low)
        weights[c] = 1 / v_high
        targets = np.full(classes, (low - middle) / v_low)
        targets[c] = (high - middle) / v_high
        share = 1 / classes
        belief = GramBelief(points * math.sqrt(share / v_high + (1 - share) / v_low), n, damping=DAMPING)
        belief.add(np.tensordot(weights, S, 1), S_sd * float(np.linalg.norm(weights)))
        A, noise = targets @ a, (a_sd * float(np.linalg.norm(targets))) ** 2
        w, C = np.zeros(m), prior
        B, V = belief.mean, belief.variance
        root = np.linalg.cholesky(prior)
        for _ in range(_ROUNDS):
            second = C + np.outer(w, w)
            W = B + V * second
            np.fill_diagonal(W, np.diag(B) + V @ np.diag(second) + noise)
            lower = factor(W, ROUNDING)
            H, z = solve_lower(lower, B @ root), solve_lower(lower, A)
            inner = factor(np.eye(m) + H.T @ H, LEAST_ROUNDING)
            half, before = solve_lower(inner, root.T), w
            w, C = half.T @ solve_lower(inner, H.T @ z), half.T @ half
            if np.linalg.norm(w - before) <= 1e-6 * (1 + np.linalg.norm(w)):
                break
        means.append(w)
        covariances.append(C)
        own.append(own_covariance(np.asarray(root, dtype=np.float64), B))
    mean = np.array(means).T
    return mean - mean.mean(axis=1, keepdims=True), np.mean(covariances, axis=0), np.mean(own, axis=0)


def _target(alpha: float) -> tuple[float, float]:
    """Mean and variance of the logarithm of a gamma variable with shape α, matched by a log-normal one."""
    variance = math.log(1 / alpha + 1)
    return math.log(alpha) - variance / 2, variance
