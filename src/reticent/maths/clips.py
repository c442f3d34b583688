"""What clipping at ±r does to a centred residual, and what clipped second moments say about it before the clip."""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf, expit

__all__ = [
    "TRUST",
    "clip_moments",
    "clipped_second",
    "differing",
    "shared_distortion",
    "skewness",
    "unclipped_variance",
    "uneven_excess",
]

Array = NDArray[np.float64]
_VARIANCES = np.geomspace(1e-3, 1e2, 101)  # of a residual, as a multiple of what was expected
_SURPRISE = 0.2  # in the logarithm of a variance: small ones count as noise, large ones as a wrong prior
_UNEVEN = np.linspace(0.0, 0.9, 19)  # standard deviation of the logarithm of the noise's size, from record to record
_USUALLY = 0.2  # its mean a priori
_CORE = np.geomspace(0.4, 1.25, 31)  # the square of the noise's median size, as a multiple of s²
_SIZES, _CHANCES = np.polynomial.hermite_e.hermegauss(11)
_CHANCE = 2.0  # standard deviations by which levels may differ by chance
_SKEWED, _SKEW = -1.0, 2.0  # log-odds that noise is skewed at all, and the standard deviation of its skewness then
_BLOCK = 64  # points whose correlations with all others fit a cache
TRUST = 0.05  # relative error of a second moment: residuals are not quite normal


def clip_moments(z: float) -> tuple[float, float, tuple[float, float, float]]:
    """Of clip(N, ±z), N standard normal: gain, second moment, and the Hermite coefficients 3, 5, 7 of the distortion."""
    pdf = math.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    inside = float(erf(z / math.sqrt(2)))
    second = inside - 2 * z * pdf + z * z * (1 - inside)
    he = (z, z**3 - 3 * z, z**5 - 10 * z**3 + 15 * z)
    odd = tuple(-2 * pdf * h / math.sqrt(math.factorial(k)) for h, k in zip(he, (3, 5, 7), strict=True))
    return inside, second, (odd[0], odd[1], odd[2])


def clipped_second(variance: Array, r: Array | float) -> Array:
    """Second moment of a centred normal of each variance, clipped at ±r."""
    z = r / np.sqrt(variance)
    inside = erf(z / math.sqrt(2))
    pdf = np.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    return np.asarray(variance * (inside - 2 * z * pdf + z * z * (1 - inside)))


def unclipped_variance(expected: float, second: float, sd: float, r: float) -> float:
    """Variance of a residual before the clip at ±r: what was expected, corrected by the released second moment."""
    variances = expected * _VARIANCES
    found = clipped_second(variances, r)
    misfit = (second - found) ** 2 / (sd**2 + (TRUST * found) ** 2)
    return float(variances[np.argmin(misfit + 2 * np.log1p((np.log(_VARIANCES) / _SURPRISE) ** 2))])


def shared_distortion(P: Array, half: Array, s2: float, odd: tuple[float, float, float]) -> tuple[Array, float]:
    """Pᵀ(correlation of the clip's distortion between points)P per pair, and its mean at a point; by blocks for a cache.

    ``P``: features of points, ``half``: these times the covariance of the weights; ``odd``: of `clip_moments`.
    """
    doubt = np.maximum((half * P).sum(axis=1), 0.0)
    scale = 1 / np.sqrt(doubt + s2)
    left, right = half * scale[:, None], np.ascontiguousarray((P * scale[:, None]).T)
    first, third, fifth = (one**2 for one in odd)
    total = np.zeros((P.shape[1], P.shape[1]))
    for i in range(0, len(P), _BLOCK):
        share = left[i : i + _BLOCK] @ right
        square = share * share
        share *= square * (first + square * (third + square * fifth))
        total += P[i : i + _BLOCK].T @ (share @ P)
    one = doubt * scale**2
    return total / len(P) ** 2, float(np.mean(one**3 * (first + one**2 * (third + one**2 * fifth))))


def uneven_excess(s2: float, explained: Array, second: Array, sd: Array, r: Array) -> float:
    """By how much the variance of noise exceeds ``s2``, if its size varies from record to record by a lognormal law.

    For each stage: the variance of a residual that is no noise, the released second moment and its noise, and the clip. The wide
    ones tell how much the size varies, the narrow ones how large it is in the middle.
    """
    expected = np.zeros((len(_UNEVEN), len(_CORE), len(r)))
    for size, chance in zip(_SIZES, _CHANCES / _CHANCES.sum(), strict=True):
        noise = s2 * np.exp(2 * size * _UNEVEN)[:, None] * _CORE
        expected += chance * clipped_second(explained + noise[:, :, None], r)
    misfit = ((second - expected) ** 2 / (sd**2 + (TRUST * expected) ** 2)).sum(axis=2)
    odds = -misfit / 2 - _UNEVEN[:, None] / _USUALLY
    weights = np.exp(odds - odds.max())
    variance = np.exp(2 * _UNEVEN**2)[:, None] * _CORE
    return s2 * (float((weights * variance).sum() / weights.sum()) - 1)


def differing(levels: Array, variances: Array, narrow: NDArray[np.bool_]) -> float:
    """How far, squared, narrow clips see another level than wide ones, beyond what chance explains; 0 if it does."""
    weights = [np.where(group, 1 / variances, 0.0) for group in (narrow, ~narrow)]
    narrowly, widely = (float(levels @ one / one.sum()) for one in weights)
    return max((narrowly - widely) ** 2 - _CHANCE**2 * float(sum(1 / one.sum() for one in weights)), 0.0)


def skewness(levels: Array, variances: Array, leans: Array) -> tuple[float, float]:
    """Mean and variance of the noise's skewness: each clip sees a level that is off by its lean times that.

    Noise may be symmetric, or have any skewness of a normal law; where noise hides which, the doubt is what both leave open.
    """
    weights = 1 / variances
    away = leans - weights @ leans / weights.sum()
    precision = max(float(weights @ away**2), 1e-12)
    found, doubt = float(weights @ (away * levels)) / precision, 1 / precision
    both = doubt + _SKEW**2
    chance = float(expit(_SKEWED + (math.log(doubt / both) + found**2 * (1 / doubt - 1 / both)) / 2))
    mean, left = found * _SKEW**2 / both, doubt * _SKEW**2 / both
    return chance * mean, chance * (left + (1 - chance) * mean**2)
