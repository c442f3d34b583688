"""Moments of clipped residuals: what a clip at ±r does to them, and what they say about before.

This module takes r as given. Clip thresholds are chosen in `reticent.models`:

* regression: `models.gp.regressor.GPRegressor._clip_thresholds`, where
  `posterior.StagedPosterior.clip_errors` is least;
* classification: `classification.softmax_posterior.SoftmaxPosterior.best_clip_threshold`;
* label-only regression: `models.gp.label_regressor.LabelGPRegressor._clip_threshold`, where
  `labels.posterior.LabelPosterior.clip_errors` is least;
* bandits: `models.bandits.ucb_policy`, by `PolicySettings.first_clip` and ``clip``.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf

from reticent.inference.moment_model.settings import CLIPPED_MOMENTS
from reticent.number_kinds import Numerical

__all__ = [
    "ONE_SIZE",
    "ClipEffect",
    "NoiseTail",
    "TailPrior",
    "clip_effect",
    "clip_moments",
    "clipped_second_moment",
    "correlated_distortion",
    "estimate_clip_bias",
    "fit_noise_tails",
    "prior_bias_variances",
    "second_moment_misfit",
    "unclipped_variance",
    "untold_level_error",
    "weigh_clip_bias",
]

Array = NDArray[np.float64]
_VARIANCE_GRID = np.geomspace(*CLIPPED_MOMENTS.variance_grid)
_UNCLIPPED: Numerical[float] = 40.0  # standard deviations that a normal number never reaches
ONE_SIZE = (np.ones(1), np.ones(1))
_CORES = np.geomspace(*CLIPPED_MOMENTS.core_grid)
_TAIL_MASSES = np.concatenate([[0.0], np.geomspace(*CLIPPED_MOMENTS.tail_masses)])
_TAIL_ODDS = np.where(
    _TAIL_MASSES > 0,
    math.exp(CLIPPED_MOMENTS.tail_log_odds) / (len(_TAIL_MASSES) - 1),
    1.0,
)


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


@dataclass(frozen=True)
class ClipEffect:
    """What a clip does to residuals that are normal before it; numbers or arrays, one per clip.

    Attributes
    ----------
    variance : float or array
        Of a residual before the clip.
    gain : float or array
        What a sum of clipped residuals is divided by, so that it has the mean of the others.
    second : float or array
        Second moment of a clipped residual, in ``variance``.
    odd : tuple
        Hermite coefficients 3, 5, 7 of the distortion.
    """

    variance: Any
    gain: Any
    second: Any
    odd: tuple[Any, Any, Any]

    @property
    def added_variance(self) -> Any:
        """What the clip adds to the variance of a residual over the gain."""
        return np.maximum(self.second / self.gain**2 - 1, 0.0) * self.variance

    @property
    def skew_bias(self) -> Any:
        """Mean of a residual over the gain, per third moment of noise that is nearly normal.

        Gram and Charlier's.
        """
        return self.odd[0] / (math.sqrt(6) * self.gain * self.variance)


def clip_effect(variance: Any, r: Any) -> ClipEffect:
    """Effect of clips at ±r on residuals of such variances."""
    inside, second, odd = clip_moments(r / np.sqrt(variance))
    return ClipEffect(variance, np.maximum(inside, CLIPPED_MOMENTS.min_gain), second, odd)


def untold_level_error(bias2: Array, seen2: Array, information: Array) -> Array:
    """Squared error of the level that is left of the bias of clips, (clips,).

    Releases that are clipped elsewhere tell some of it, as far as their own bias is another.

    Parameters
    ----------
    bias2 : (clips,) array
        Squared bias of each clip.
    seen2 : (stages,) array
        The same of the stages so far.
    information : (stages,) array
        Of each stage about the level: one over the variance of what it says.
    """
    bias2 = np.maximum(bias2, 1e-300)
    apart = np.maximum(1 - np.sqrt(seen2 / bias2[:, None]), 0.0)
    return np.asarray(1 / (1 / bias2 + apart**2 @ information))


def clipped_second_moment(variance: Array, r: Array | float) -> Array:
    """Second moment of a centred normal of each variance, clipped at ±r."""
    z = r / np.sqrt(variance)
    inside = erf(z / math.sqrt(2))
    pdf = np.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    return np.asarray(variance * (inside - 2 * z * pdf + z * z * (1 - inside)))


def second_moment_misfit(second: Any, sd: Any, expected: Any, sampling: float = 0.0) -> Any:
    """Squared error of released second moments, by its variance: twice a negative log-likelihood.

    Residuals are not quite normal, so that what is expected is off by a part of itself;
    ``sampling`` is the relative variance that their number leaves it.
    """
    model_error = CLIPPED_MOMENTS.second_moment_error * expected
    return (second - expected) ** 2 / (sd**2 + model_error**2 + sampling * expected**2)


def unclipped_variance(
    expected: float, second: float, sd: float, r: float, sampling: float = 0.0
) -> float:
    """Variance of a residual before the clip at ±r.

    What was expected, corrected by the released second moment; ``sampling`` as in
    `second_moment_misfit`.
    """
    variances = expected * _VARIANCE_GRID
    misfit = second_moment_misfit(second, sd, clipped_second_moment(variances, r), sampling)
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
    distorted = np.empty_like(P)
    for i in range(0, len(P), CLIPPED_MOMENTS.block_rows):
        correlation = scaled_left[i : i + CLIPPED_MOMENTS.block_rows] @ scaled_right
        square = correlation * correlation
        correlation *= square * (first + square * (third + square * fifth))
        distorted[i : i + CLIPPED_MOMENTS.block_rows] = correlation @ P
    explained_fraction = posterior_variance * scale**2
    return P.T @ distorted / len(P) ** 2, float(
        np.mean(
            explained_fraction**3
            * (first + explained_fraction**2 * (third + explained_fraction**2 * fifth))
        )
    )


@dataclass(frozen=True, eq=False)
class NoiseTail:
    """Noise as a normal core with a rare, larger part, as clipped second moments tell it.

    Several laws (laws,) with their posterior weights. In each, noise is normal with variance
    ``core``, but for a fraction ``mass`` of the records, whose residuals have the size ``length``.

    All in half-ranges of y.
    """

    core: Array
    mass: Array
    length: Array
    weights: Array

    def variance(self) -> float:
        """Variance of the noise, before any clip: geometric mean of the laws'."""
        return float(np.exp(self.weights @ np.log(self._variances())))

    def mean_variance(self) -> float:
        """The same, arithmetic: a normal density's expected logarithm is largest with it."""
        return float(self.weights @ self._variances())

    def _variances(self) -> Array:
        return np.asarray((1 - self.mass) * self.core + self.mass * self.length**2)

    def excess_variance(self, s2: float, r: Array) -> Array:
        """By how much the noise's variance exceeds s² if its rare part is clipped at each r."""
        rare = self.mass[:, None] * np.minimum(self.length[:, None], r) ** 2
        excess = np.maximum(((1 - self.mass) * self.core)[:, None] + rare - s2, 0.0)
        return np.asarray((self.weights * (self.mass > 0)) @ excess)

    def shortfall(self, r: Array) -> Array:
        """Root mean square of E(|e| − r)₊ of the rare part: most that clips move the mean by."""
        cut = self.mass[:, None] * np.maximum(self.length[:, None] - r, 0.0)
        return np.asarray(np.sqrt(self.weights @ cut**2))


@dataclass(frozen=True)
class TailPrior:
    """What is believed of a `NoiseTail` beforehand.

    ``doubt``: factor on the odds that there is a rare part; ``log_variance``: mean and standard
    deviation of the logarithm of the noise's variance, if not near s².
    """

    doubt: float = 1.0
    log_variance: tuple[float, float] | None = None


def fit_noise_tails(
    s2: float,
    explained: Array,
    second: Array,
    sd: Array,
    r: Array,
    longest: float,
    priors: Sequence[TailPrior] = (TailPrior(),),
    sizes: tuple[Array, Array] = ONE_SIZE,
) -> list[NoiseTail]:
    """Posterior of the noise's core and rare part, with each prior.

    For each stage (stages,): the variance of a residual that is not noise, the released second
    moment and its noise, and the clip threshold. ``s2``: what looks like the variance if noise is
    normal; ``longest``: largest residual that the bounds of y allow. ``sizes``: how large the noise
    is by its root mean square, and in what share of the records: the tail is that at size 1. Laws
    whose weight is less than rounding are left out.
    """
    core = s2 * _CORES
    shortest = min(CLIPPED_MOMENTS.shortest_tail * math.sqrt(s2), longest / 2)
    lengths = np.geomspace(shortest, longest, CLIPPED_MOMENTS.tail_lengths)
    normal = np.zeros((len(core), len(r)))
    tail = np.zeros((len(lengths), len(r)))
    for size, share in zip(*sizes, strict=True):
        normal += share * clipped_second_moment(explained + size**2 * core[:, None], r)
        tail += share * np.minimum(np.minimum(size * lengths, longest)[:, None], r) ** 2
    mass = _TAIL_MASSES[:, None, None]
    expected = (1 - mass) * normal[:, None, None] + mass * tail
    misfit = second - expected
    misfit *= misfit
    expected *= CLIPPED_MOMENTS.second_moment_error
    expected *= expected
    expected += sd**2
    misfit /= expected
    log_likelihood = misfit.sum(axis=-1) / -2
    variances = (1 - mass[..., 0]) * core[:, None, None] + mass[..., 0] * lengths**2
    log_ratios = np.log(variances / s2)
    cores, masses, longs = np.broadcast_arrays(core[:, None, None], mass[..., 0], lengths)
    tails = []
    for prior in priors:
        odds = np.where(_TAIL_MASSES > 0, prior.doubt, 1.0) * _TAIL_ODDS
        log_weights = log_likelihood + np.log(odds)[:, None]
        if prior.log_variance is None:
            log_weights -= np.log1p(log_ratios**2)
        else:
            middle, spread = prior.log_variance
            log_weights -= ((log_ratios + (math.log(s2) - middle)) / spread) ** 2 / 2
        log_weights[:-1, _TAIL_MASSES == 0] = -np.inf  # noise that is all core has the variance s²
        weights = np.exp(log_weights - log_weights.max())
        kept = weights > CLIPPED_MOMENTS.negligible_weight
        shares = weights[kept] / weights.sum()
        tails.append(NoiseTail(cores[kept], masses[kept], longs[kept], shares))
    return tails


def prior_bias_variances(doubt: float = 1.0) -> tuple[float, float]:
    """Variances of the skewness of the noise's core, and of its rare part's lopsidedness.

    ``doubt``: factor on the prior odds that the core is skewed.
    """
    core, rare = (odds / (1 + odds) for odds in np.exp(_asymmetry_log_odds(doubt)))
    return core * CLIPPED_MOMENTS.skew_sd**2, rare * CLIPPED_MOMENTS.lopsidedness_sd**2


def _asymmetry_log_odds(doubt: float) -> Array:
    """Log odds (2,) a priori that the core is skewed, and that the rare part is lopsided."""
    return CLIPPED_MOMENTS.skew_log_odds + np.array([math.log(doubt), 0.0])


def estimate_clip_bias(
    sums: Array, variances: Array, biases: Array, doubt: float = 1.0
) -> tuple[Array, Array]:
    """Skewness of the noise's core and lopsidedness of its rare part: mean (2,), covariance (2, 2).

    Each clip sees a sum of outputs (stages,) that is off by its ``biases`` (stages, 2) times
    these. A priori each is zero, or normal; the covariance includes not knowing which. A
    lopsidedness of 1 is a rare part that is all above the function. ``doubt``: factor on the prior
    odds that the core is skewed.
    """
    weights = 1 / variances
    centred = biases - weights @ biases / weights.sum()
    information = centred.T @ (weights[:, None] * centred)
    evidence = centred.T @ (weights * sums)
    return weigh_clip_bias(information, evidence, doubt)


def weigh_clip_bias(
    information: Array,
    evidence: Array,
    doubt: float = 1.0,
    alternatives: Sequence[tuple[int, int]] = ((0, 1),),
) -> tuple[Array, Array]:
    """The same from what releases say of the causes, in canonical form.

    Their precision (causes, causes) and precision times mean (causes,), without the prior. Each
    alternative says which of the causes is the skewness and which the lopsidedness, in place of
    those of other alternatives; all are as likely beforehand.
    """
    log_odds = [0.0]
    roots = [np.zeros(len(evidence))]
    skewed, lopsided = _asymmetry_log_odds(doubt).tolist()
    for skewness, lopsidedness in alternatives:
        for core, rare in ((1, 0), (0, 1), (1, 1)):  # one or both
            root = np.zeros(len(evidence))
            root[skewness] = core * CLIPPED_MOMENTS.skew_sd
            root[lopsidedness] = rare * CLIPPED_MOMENTS.lopsidedness_sd
            roots.append(root)
            log_odds.append(core * skewed + rare * lopsided - math.log(len(alternatives)))
    diagonal = np.array(roots)[:, :, None] * np.eye(len(evidence))
    inner = np.eye(len(evidence)) + diagonal @ information @ diagonal
    covariances = diagonal @ np.linalg.solve(inner, diagonal)
    means = covariances @ evidence
    scores = np.array(log_odds) + (means @ evidence - np.log(np.linalg.det(inner))) / 2
    probabilities = np.exp(scores - scores.max())
    probabilities /= probabilities.sum()
    mean = probabilities @ means
    apart = means - mean
    covariance = np.tensordot(probabilities, covariances, 1) + apart.T @ (
        probabilities[:, None] * apart
    )
    return mean, covariance
