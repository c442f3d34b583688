"""Clipping of residuals at ±r: what it does to moments, and what clipped moments say before it."""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf, expit

from reticent.inference.moment_model.settings import CLIP

__all__ = [
    "clip_moments",
    "clipped_second_moment",
    "correlated_distortion",
    "estimate_skewness",
    "heteroscedastic_excess",
    "squared_level_shift",
    "unclipped_variance",
]

Array = NDArray[np.float64]
_VARIANCE_GRID = np.geomspace(*CLIP.variance_grid)
_UNEVENNESS = np.linspace(*CLIP.unevenness_grid)
_MEDIANS = np.geomspace(*CLIP.median_grid)
_NODES, _NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(CLIP.quadrature_nodes)


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
    found = clipped_second_moment(variances, r)
    misfit = (second - found) ** 2 / (sd**2 + (CLIP.second_moment_error * found) ** 2)
    return float(
        variances[np.argmin(misfit + 2 * np.log1p((np.log(_VARIANCE_GRID) / CLIP.surprise) ** 2))]
    )


def correlated_distortion(
    P: Array, half: Array, s2: float, odd: tuple[float, float, float]
) -> tuple[Array, float]:
    """Pᵀ(correlation of the clip's distortion between points)P per pair, and its mean at a point.

    By blocks for a cache.

    ``P``: features of points, ``half``: these times the covariance of the weights; ``odd``: of
    `clip_moments`.
    """
    doubt = np.maximum((half * P).sum(axis=1), 0.0)
    scale = 1 / np.sqrt(doubt + s2)
    left = half * scale[:, None]
    right = np.ascontiguousarray((P * scale[:, None]).T)
    first, third, fifth = (one**2 for one in odd)
    total = np.zeros((P.shape[1], P.shape[1]))
    for i in range(0, len(P), CLIP.block_rows):
        share = left[i : i + CLIP.block_rows] @ right
        square = share * share
        share *= square * (first + square * (third + square * fifth))
        total += P[i : i + CLIP.block_rows].T @ (share @ P)
    one = doubt * scale**2
    return total / len(P) ** 2, float(np.mean(one**3 * (first + one**2 * (third + one**2 * fifth))))


def heteroscedastic_excess(
    s2: float, explained: Array, second: Array, sd: Array, r: Array
) -> float:
    """Excess of the noise's variance over ``s2``, if its scale varies between records lognormally.

    For each stage (stages,): the variance of a residual that is not noise, the released second
    moment and its noise, and the clip threshold. Wide clips show how much the scale varies, narrow
    ones its median.
    """
    expected = np.zeros((len(_UNEVENNESS), len(_MEDIANS), len(r)))
    for size, chance in zip(_NODES, _NODE_WEIGHTS / _NODE_WEIGHTS.sum(), strict=True):
        noise = s2 * np.exp(2 * size * _UNEVENNESS)[:, None] * _MEDIANS
        expected += chance * clipped_second_moment(explained + noise[:, :, None], r)
    misfit = ((second - expected) ** 2 / (sd**2 + (CLIP.second_moment_error * expected) ** 2)).sum(
        axis=2
    )
    odds = -misfit / 2 - _UNEVENNESS[:, None] / CLIP.mean_unevenness
    weights = np.exp(odds - odds.max())
    variance = np.exp(2 * _UNEVENNESS**2)[:, None] * _MEDIANS
    return s2 * (float((weights * variance).sum() / weights.sum()) - 1)


def squared_level_shift(levels: Array, variances: Array, narrow: NDArray[np.bool_]) -> float:
    """Squared difference of levels seen by narrow and wide clips, beyond sampling; else 0."""
    weights = [np.where(group, 1 / variances, 0.0) for group in (narrow, ~narrow)]
    narrowly, widely = (float(levels @ one / one.sum()) for one in weights)
    return max(
        (narrowly - widely) ** 2
        - CLIP.significant_shift**2 * float(sum(1 / one.sum() for one in weights)),
        0.0,
    )


def estimate_skewness(levels: Array, variances: Array, leans: Array) -> tuple[float, float]:
    """Mean and variance of the noise's skewness.

    Each clip sees a level that is off by its lean times that. Noise may be symmetric, or have any
    skewness of a normal law; where noise hides which, the doubt is what both leave open.
    """
    weights = 1 / variances
    away = leans - weights @ leans / weights.sum()
    precision = max(float(weights @ away**2), 1e-12)
    found = float(weights @ (away * levels)) / precision
    doubt = 1 / precision
    both = doubt + CLIP.skew_sd**2
    chance = float(
        expit(CLIP.skew_log_odds + (math.log(doubt / both) + found**2 * (1 / doubt - 1 / both)) / 2)
    )
    mean = found * CLIP.skew_sd**2 / both
    left = doubt * CLIP.skew_sd**2 / both
    return chance * mean, chance * (left + (1 - chance) * mean**2)
