"""Means and credible bands of class probabilities, from the posterior of their log-odds.

The log-odds of class c against all others are

    o_c = η_c − log Σ_{k≠c} exp η_k

for the logits η of a softmax, and P(class c) = 1/(1 + exp(−o_c)). Given a normal posterior of o_c,
the mean of that probability is an integral (Gauss–Hermite), and a band of log-odds is one of
probabilities.

Logits with independent errors of variances v_c give, to first order, Var(o_c) = v_c + Σ r_k² v_k,
where r is the softmax of the others: the gradient of o_c is 1 and −r_k.
"""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logsumexp, ndtr
from scipy.stats import truncnorm

from reticent.number_kinds import Numerical

__all__ = [
    "bounded_bands",
    "independent_logit_variance",
    "log_odds",
    "mean_above_zero",
    "mean_probabilities",
    "probability_bands",
]

Array = NDArray[np.float64]
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(7)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
# below this, one minus a probability is not a number above zero
_ROUNDING: Numerical[float] = 1e-16
# a normal law between 0 and 1 is computed with at least this standard deviation, and with a mean at
# most so many of them outside
_LEAST_SD: Numerical[float] = 1e-9
_FARTHEST: Numerical[float] = 30.0


def log_odds(logits: Array) -> Array:
    """Log-odds of each class against all others, (points, C), from logits (points, C)."""
    logs = np.minimum(logits - logsumexp(logits, axis=1, keepdims=True), -_ROUNDING)
    return np.asarray(logs - np.log(-np.expm1(logs)))


def independent_logit_variance(logits: Array, variance: Array) -> Array:
    """Variances of the log-odds, (points, C), from those of independent logits, (points, C)."""
    total = np.empty_like(logits)
    for c in range(logits.shape[1]):
        others = np.delete(logits, c, axis=1)
        share = np.exp(others - logsumexp(others, axis=1)[:, None])
        total[:, c] = variance[:, c] + (share**2 * np.delete(variance, c, axis=1)).sum(axis=1)
    return total


def mean_probabilities(odds: Array, variance: Array) -> tuple[Array, Array]:
    """Posterior means of P(class c) and of its slope in the log-odds, each (points, C).

    For normal log-odds with means ``odds`` and ``variance``, each (points, C). Probabilities add up
    to one over the classes.
    """
    sd = np.sqrt(variance)
    mean = np.zeros_like(odds)
    slope = np.zeros_like(odds)
    for node, weight in zip(_NODES, _WEIGHTS, strict=True):
        probability = expit(odds + node * sd)
        mean += weight * probability
        slope += weight * probability * (1 - probability)
    return mean / mean.sum(axis=1, keepdims=True), slope


def mean_above_zero(mean: Array, sd: Array) -> Array:
    """Mean of max(z, 0) for normal z, elementwise: positive, and near ``mean`` where z is known."""
    sd = np.maximum(sd, _ROUNDING)
    ratio = mean / sd
    density = np.exp(-(ratio**2) / 2) / math.sqrt(2 * math.pi)
    return np.maximum(mean * ndtr(ratio) + sd * density, _ROUNDING)


def bounded_bands(mean: Array, sd: Array, width: float) -> tuple[Array, Array]:
    """Lowest and highest probabilities, elementwise, where these are normal but for 0 ≤ p ≤ 1.

    ``width``: half-width of the band in standard deviations of a normal law.
    """
    sd = np.maximum(sd, _LEAST_SD)
    mean = np.clip(mean, -_FARTHEST * sd, 1 + _FARTHEST * sd)
    law = truncnorm(-mean / sd, (1 - mean) / sd, loc=mean, scale=sd)
    low, high = (np.clip(law.ppf(ndtr(end)), 0.0, 1.0) for end in (-width, width))
    return low, high


def probability_bands(odds: Array, variance: Array, width: float) -> tuple[Array, Array]:
    """Lowest and highest probabilities, two arrays (points, C).

    ``odds`` and ``variance``: posterior means and variances of the log-odds, (points, C);
    ``width``: half-width of the band in their standard deviations.
    """
    sd = width * np.sqrt(variance)
    return expit(odds - sd), expit(odds + sd)
