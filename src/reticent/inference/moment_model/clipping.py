"""Moments of clipped residuals: what a clip at ±r does to them, and what they say about before.

This module takes r as given. Clip thresholds are chosen in `reticent.models`:

* regression: `models.gp.regressor.GPRegressor._clip_thresholds`. `StagedFitSettings.clip_schedule`
  has a base value for each stage: z = max(inflation × schedule[stage], floor), at least
  ``final_clip`` in the last stage if noise is learned, at most ``gaussian_clip`` with a given
  kernel and no skewness; the first stage is limited by the bounds. r = z × residual_sd;
* classification: `classification.softmax_posterior.SoftmaxPosterior.best_clip_threshold`;
* label-only regression: `models.gp.label_regressor.LabelGPRegressor._statistic`, by
  `LabelSettings.clip_schedule`;
* bandits: `models.bandits.ucb_policy`, by `PolicySettings.first_clip` and ``clip``.
"""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf, expit

from reticent.inference.moment_model.settings import CLIPPED_MOMENTS

__all__ = [
    "clip_moments",
    "clipped_second_moment",
    "correlated_distortion",
    "estimate_skewness",
    "heteroscedastic_excess",
    "squared_shift_of_sums",
    "unclipped_variance",
]

Array = NDArray[np.float64]
_VARIANCE_GRID = np.geomspace(*CLIPPED_MOMENTS.variance_grid)
_UNEVENNESS = np.linspace(*CLIPPED_MOMENTS.unevenness_grid)
_MEDIANS = np.geomspace(*CLIPPED_MOMENTS.median_grid)
_NODES, _NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(CLIPPED_MOMENTS.quadrature_nodes)


def clip_moments(z: float) -> tuple[float, float, tuple[float, float, float]]:
    """Of clip(N, ±z), N standard normal.

    Gain, second moment, and the Hermite coefficients 3, 5, 7 of the distortion.
    """
    pdf = math.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    inside = float(erf(z / math.sqrt(2)))
    second = inside - 2 * z * pdf + z * z * (1 - inside)
    he = (z, z**3 - 3 * z, z**5 - 10 * z**3 + 15 * z)
    odd = tuple(
        -2 * pdf * h / math.sqrt(math.factorial(k)) for h, k in zip(he, (3, 5, 7), strict=True)
    )
    return inside, second, (odd[0], odd[1], odd[2])


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


def heteroscedastic_excess(
    s2: float, explained: Array, second: Array, sd: Array, r: Array
) -> float:
    """Excess of the noise's variance over ``s2``, if its scale varies between records lognormally.

    For each stage (stages,): the variance of a residual that is not noise, the released second
    moment and its noise, and the clip threshold. Wide clips show how much the scale varies, narrow
    ones its median.
    """
    expected = np.zeros((len(_UNEVENNESS), len(_MEDIANS), len(r)))
    for size, probability in zip(_NODES, _NODE_WEIGHTS / _NODE_WEIGHTS.sum(), strict=True):
        noise = s2 * np.exp(2 * size * _UNEVENNESS)[:, None] * _MEDIANS
        expected += probability * clipped_second_moment(explained + noise[:, :, None], r)
    misfit = (
        (second - expected) ** 2 / (sd**2 + (CLIPPED_MOMENTS.second_moment_error * expected) ** 2)
    ).sum(axis=2)
    log_weights = -misfit / 2 - _UNEVENNESS[:, None] / CLIPPED_MOMENTS.mean_unevenness
    weights = np.exp(log_weights - log_weights.max())
    variance = np.exp(2 * _UNEVENNESS**2)[:, None] * _MEDIANS
    return s2 * (float((weights * variance).sum() / weights.sum()) - 1)


def squared_shift_of_sums(sums: Array, variances: Array, narrow: NDArray[np.bool_]) -> float:
    """Squared difference of the sums of outputs that narrow and wide clips see.

    Less what sampling explains; at least 0.
    """
    weights = [np.where(group, 1 / variances, 0.0) for group in (narrow, ~narrow)]
    narrowly, widely = (float(sums @ precision / precision.sum()) for precision in weights)
    return max(
        (narrowly - widely) ** 2
        - CLIPPED_MOMENTS.significant_shift**2
        * float(sum(1 / precision.sum() for precision in weights)),
        0.0,
    )


def estimate_skewness(sums: Array, variances: Array, skew_biases: Array) -> tuple[float, float]:
    """Mean and variance of the noise's skewness.

    Each clip sees a sum of outputs that is off by its ``skew_biases`` times the skewness. A priori
    the noise is symmetric, or its skewness is normal; the variance includes not knowing which.
    """
    weights = 1 / variances
    centred = skew_biases - weights @ skew_biases / weights.sum()
    precision = max(float(weights @ centred**2), 1e-12)
    estimate = float(weights @ (centred * sums)) / precision
    sampling_variance = 1 / precision
    total_variance = sampling_variance + CLIPPED_MOMENTS.skew_sd**2
    probability = float(
        expit(
            CLIPPED_MOMENTS.skew_log_odds
            + (
                math.log(sampling_variance / total_variance)
                + estimate**2 * (1 / sampling_variance - 1 / total_variance)
            )
            / 2
        )
    )
    mean = estimate * CLIPPED_MOMENTS.skew_sd**2 / total_variance
    posterior_variance = sampling_variance * CLIPPED_MOMENTS.skew_sd**2 / total_variance
    return probability * mean, probability * (posterior_variance + (1 - probability) * mean**2)
