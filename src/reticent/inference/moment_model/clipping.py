"""Moments of clipped residuals: what a clip at ±r does to them, and what they say about before.

This module takes r as given. Clip thresholds are chosen in `reticent.models`:

* regression: `models.gp.regressor.GPRegressor._clip_thresholds`, where
  `posterior.StagedPosterior.clip_errors` is least;
* classification: `classification.softmax_posterior.SoftmaxPosterior.best_clip_threshold`;
* label-only regression: `models.gp.label_regressor.LabelGPRegressor._statistic`, by
  `LabelSettings.clip_schedule`;
* bandits: `models.bandits.ucb_policy`, by `PolicySettings.first_clip` and ``clip``.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf

from reticent.inference.moment_model.settings import CLIPPED_MOMENTS

__all__ = [
    "clip_moments",
    "clipped_second_moment",
    "correlated_distortion",
    "unclipped_variance",
]

Array = NDArray[np.float64]
_VARIANCE_GRID = np.geomspace(*CLIPPED_MOMENTS.variance_grid)
_UNCLIPPED = 40.0  # standard deviations that a normal number never reaches


def clip_moments(z: Any) -> tuple[Any, Any, tuple[Any, Any, Any]]:
    """Of clip(N, ±z), N standard normal; z a number or an array.

    Gain, second moment, and the Hermite coefficients 3, 5, 7 of the distortion.
    """
    z = np.minimum(z, _UNCLIPPED)
    pdf = np.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    inside = erf(z / math.sqrt(2))
    second = inside - 2 * z * pdf + z * z * (1 - inside)
    third, fifth, seventh = (
        -2 * pdf * hermite / math.sqrt(math.factorial(k))
        for hermite, k in (
            (z, 3),
            (z**3 - 3 * z, 5),
            (z**5 - 10 * z**3 + 15 * z, 7),
        )
    )
    return inside, second, (third, fifth, seventh)


def clipped_second_moment(variance: Array, r: Array | float) -> Array:
    """Second moment of a centred normal of each variance, clipped at ±r."""
    z = r / np.sqrt(variance)
    inside = erf(z / math.sqrt(2))
    pdf = np.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    return np.asarray(variance * (inside - 2 * z * pdf + z * z * (1 - inside)))


def unclipped_variance(expected: float, second: float, sd: float, r: float) -> float:
    """Variance of a residual before the clip at ±r.

    What was expected, corrected by the released second moment.
    """
    variances = expected * _VARIANCE_GRID
    clipped = clipped_second_moment(variances, r)
    misfit = (second - clipped) ** 2 / (
        sd**2 + (CLIPPED_MOMENTS.second_moment_error * clipped) ** 2
    )
    return float(
        variances[
            np.argmin(
                misfit + 2 * np.log1p((np.log(_VARIANCE_GRID) / CLIPPED_MOMENTS.surprise) ** 2)
            )
        ]
    )


def correlated_distortion(
    P: Array, half: Array, s2: float, odd: tuple[float, float, float]
) -> tuple[Array, float]:
    """Pᵀ(correlation of the clip's distortion between points)P per pair, and its mean at a point.

    By blocks for a cache.

    ``P``: features of points, ``half``: these times the covariance of the weights; ``odd``: of
    `clip_moments`.
    """
    posterior_variance = np.maximum((half * P).sum(axis=1), 0.0)
    scale = 1 / np.sqrt(posterior_variance + s2)
    scaled_left = half * scale[:, None]
    scaled_right = np.ascontiguousarray((P * scale[:, None]).T)
    first, third, fifth = (coefficient**2 for coefficient in odd)
    total = np.zeros((P.shape[1], P.shape[1]))
    for i in range(0, len(P), CLIPPED_MOMENTS.block_rows):
        correlation = scaled_left[i : i + CLIPPED_MOMENTS.block_rows] @ scaled_right
        square = correlation * correlation
        correlation *= square * (first + square * (third + square * fifth))
        total += P[i : i + CLIPPED_MOMENTS.block_rows].T @ (correlation @ P)
    explained_fraction = posterior_variance * scale**2
    return total / len(P) ** 2, float(
        np.mean(
            explained_fraction**3
            * (first + explained_fraction**2 * (third + explained_fraction**2 * fifth))
        )
    )
