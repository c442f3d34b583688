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
from scipy.stats import norm

from reticent.inference.moment_model.settings import CLIPPED_MOMENTS
from reticent.number_kinds import Numerical

__all__ = [
    "ClipEffect",
    "LevelEvidence",
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
_CORES = np.geomspace(*CLIPPED_MOMENTS.core_grid)
_TAIL_MASSES = np.concatenate([[0.0], np.geomspace(*CLIPPED_MOMENTS.tail_masses)])
_MASS_STEP = math.log(_TAIL_MASSES[2] / _TAIL_MASSES[1])
_NEVER: Numerical[float] = 1e-300  # a weight that no law can make up for
_LEAST_ROOM: Numerical[float] = 1e-9  # half-ranges of y
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

    ``side`` (laws,) is the share of these residuals that the bounds of y put above the function,
    less that below; zero where they may be on either side. What such a rare part moves the mean
    by is ``scale`` (laws,) times what a law says, with variance ``scale_variance``: laws are on a
    coarse grid.
    """

    core: Array
    mass: Array
    length: Array
    weights: Array
    side: Array | float = 0.0
    scale: Array | float = 1.0
    scale_variance: Array | float = 0.0

    def shifts(self, r: Array) -> tuple[Array, Array]:
        """What clips at each r move the mean by, for rare parts on a known side.

        Mean and variance over laws; (thresholds,) arrays.
        """
        shifts = _side_shifts(self.side * self.mass, self.length, r)
        within = (self.weights * self.scale_variance) @ shifts**2
        shifts = shifts * np.reshape(self.scale, (-1, 1))
        mean = self.weights @ shifts
        return mean, self.weights @ (shifts - mean) ** 2 + within

    def variance(self) -> float:
        """Variance of the noise, before any clip: geometric mean of the laws'."""
        variances = (1 - self.mass) * self.core + self.mass * self.length**2
        return float(np.exp(self.weights @ np.log(variances)))

    def excess_variance(self, s2: float, r: Array) -> Array:
        """By how much the noise's variance exceeds s² if its rare part is clipped at each r."""
        rare = self.mass[:, None] * np.minimum(self.length[:, None], r) ** 2
        excess = np.maximum(((1 - self.mass) * self.core)[:, None] + rare - s2, 0.0)
        return np.asarray((self.weights * (self.mass > 0)) @ excess)

    def shortfall(self, r: Array) -> Array:
        """Root mean square of E(|e| − r)₊ of the rare part: most that clips move the mean by.

        As far as it may be on either side.
        """
        mass = self.mass * (1 - np.abs(self.side))
        cut = mass[:, None] * np.maximum(self.length[:, None] - r, 0.0)
        return np.asarray(np.sqrt(self.weights @ cut**2))


def _side_shifts(excess: Array, length: Array, r: Array) -> Array:
    """What clips at each r move the mean by if rare parts are on one side; (..., thresholds).

    ``excess`` (...,): mass of the rare part above, less that below; ``length`` (...,).
    """
    return -excess[..., None] * np.maximum(length[..., None] - r, 0.0)


@dataclass(frozen=True, eq=False)
class LevelEvidence:
    """What levels of stages and the bounds of y say of the side of rare parts.

    Attributes
    ----------
    function, density : (points,) arrays
        The function, in half-ranges of y, and the share of records there.
    information, evidence : (stages, stages) and (stages,) arrays
        A shift of each stage's level has the log-likelihood shift·evidence −
        shiftᵀ·information·shift/2.
    middle, middle_sd : float
        Where most outputs lie, on average over the records, and its standard deviation.
    """

    function: Array
    density: Array
    information: Array
    evidence: Array
    middle: float
    middle_sd: float

    def side(self, lengths: Array) -> Array:
        """Share of residuals of up to each length that are above, less that below; (lengths,).

        Where the range of y has room for only some of them on one side, so many fewer are there.

        >>> one = np.ones(1)
        >>> levels = LevelEvidence(-0.8 * one, one, np.eye(1), one, -0.8, 0.1)
        >>> levels.side(np.array([0.1, 0.6, 1.8])).round(3).tolist()
        [0.0, 0.5, 0.8]
        """
        room = np.maximum(1 + np.outer([-1.0, 1.0], self.function), _LEAST_ROOM)
        above, below = np.minimum(room[:, None] / lengths[:, None], 1.0)
        return np.asarray(((above - below) / (above + below)) @ self.density)

    def scales(self, side: Array, lengths: Array, r: Array) -> tuple[Array, Array, Array]:
        """Factors on the shifts that clips at r (stages,) make by laws with a known side.

        Masses and lengths within a cell of their grids. Mean, variance and log-likelihood of the
        levels; (masses, lengths) arrays.
        """
        masses = _TAIL_MASSES[:, None]
        shifts = _side_shifts(masses * side, lengths[None], r)
        cells = _MASS_STEP**2 + math.log(lengths[1] / lengths[0]) ** 2
        precision = 12 / cells
        information = precision + np.einsum(
            "mls,st,mlt->ml", shifts, self.information, shifts, optimize=True
        )
        scale = (shifts @ self.evidence + precision) / information
        fit = (scale**2 * information - precision - np.log(information / precision)) / 2
        return scale, 1 / information, fit

    def room(self, core: Array, side: Array, lengths: Array) -> tuple[Array, Array]:
        """Log weights of a core with room on both sides, and of one at an end of the range.

        (cores, 1, 1) and (cores, masses, lengths) arrays. The core is symmetric about the middle:
        its standard deviation is at most the distance to the nearer end. With room, the middle was
        anywhere in the range a priori; at an end, the rare part alone lifts the mean from there:
        by anything a priori.
        """
        room = ((1 - abs(self.middle) - np.sqrt(core)) / self.middle_sd)[:, None, None]
        lift = _TAIL_MASSES[:, None] * np.abs(side) * lengths
        many = len(_TAIL_MASSES) - 1
        at_end = np.log(np.maximum(lift / 2 * _MASS_STEP * many, _NEVER)) + norm.logpdf(room)
        return norm.logcdf(room) - math.log(2), at_end - math.log(self.middle_sd)


@dataclass(frozen=True)
class TailPrior:
    """What is believed of a `NoiseTail` beforehand.

    ``doubt``: factor on the odds that there is a rare part; ``log_variance``: mean and standard
    deviation of the logarithm of the noise's variance, if not near s²; ``near_s2``: whether it is
    nevertheless near s² where the rare part may be on either side.
    """

    doubt: float = 1.0
    log_variance: tuple[float, float] | None = None
    near_s2: bool = False


def fit_noise_tails(
    s2: float,
    explained: Array,
    second: Array,
    sd: Array,
    r: Array,
    longest: float,
    priors: Sequence[TailPrior] = (TailPrior(),),
    levels: LevelEvidence | None = None,
) -> list[NoiseTail]:
    """Posterior of the noise's core and rare part, with each prior.

    For each stage (stages,): the variance of a residual that is not noise, the released second
    moment and its noise, and the clip threshold. ``s2``: what looks like the variance if noise is
    normal; ``longest``: largest residual that the bounds of y allow. Laws whose weight is less than
    rounding are left out.
    """
    core = s2 * _CORES
    shortest = min(CLIPPED_MOMENTS.shortest_tail * math.sqrt(s2), longest / 2)
    lengths = np.geomspace(shortest, longest, CLIPPED_MOMENTS.tail_lengths)
    tail = np.minimum(lengths[:, None], r) ** 2
    mass = _TAIL_MASSES[:, None, None]
    normal = clipped_second_moment(explained + core[:, None], r)[:, None, None]
    expected = (1 - mass) * normal + mass * tail
    misfit = second - expected
    misfit *= misfit
    expected *= CLIPPED_MOMENTS.second_moment_error
    expected *= expected
    expected += sd**2
    misfit /= expected
    log_likelihood = misfit.sum(axis=-1) / -2
    # laws whose rare part may be on either side, and laws where bounds tell it; (sides, masses, …)
    fits = log_likelihood[None]
    side = scale = scale_variance = np.zeros((1, 1, 1, 1))
    if levels is not None:
        known = levels.side(lengths)
        scales, variances, level_fits = levels.scales(known, lengths, r)
        with_room, at_end = levels.room(core, known, lengths)
        fits = np.stack([log_likelihood + with_room, log_likelihood + at_end + level_fits])
        side = np.stack([0 * known, known])[:, None, None]
        scale = np.stack([0 * scales, scales])[:, None]
        scale_variance = np.stack([0 * scales, variances])[:, None]
    variances = (1 - mass[..., 0]) * core[:, None, None] + mass[..., 0] * lengths**2
    log_ratios = np.log(variances / s2)
    near_s2 = np.log1p(log_ratios**2)
    laws = np.broadcast_arrays(
        core[:, None, None], mass[..., 0], lengths, side, scale, scale_variance, fits
    )[:-1]
    tails = []
    for prior in priors:
        odds = np.where(_TAIL_MASSES > 0, prior.doubt, 1.0) * _TAIL_ODDS
        log_weights = fits + np.log(odds)[:, None]
        anywhere = near_s2
        if prior.log_variance is not None:
            middle, spread = prior.log_variance
            anywhere = ((log_ratios + (math.log(s2) - middle)) / spread) ** 2 / 2
        log_weights[0] -= near_s2 if prior.near_s2 else anywhere
        log_weights[1:] -= anywhere
        # noise that is all core has the variance s²
        log_weights[:, :-1, _TAIL_MASSES == 0] = -np.inf
        weights = np.exp(log_weights - log_weights.max())
        kept = weights > CLIPPED_MOMENTS.negligible_weight
        cores, masses, sizes, *sides = (values[kept] for values in laws)
        shares = weights[kept] / weights.sum()
        tails.append(NoiseTail(cores, masses, sizes, shares, *sides))
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


def weigh_clip_bias(information: Array, evidence: Array, doubt: float = 1.0) -> tuple[Array, Array]:
    """The same from what releases say of skewness and lopsidedness, in canonical form.

    Their precision (2, 2) and precision times mean (2,), without the prior.
    """
    prior_sd = np.array([CLIPPED_MOMENTS.skew_sd, CLIPPED_MOMENTS.lopsidedness_sd])
    present = np.array([(0, 0), (1, 0), (0, 1), (1, 1)])  # one or both, or neither
    roots = present[:, :, None] * np.diag(prior_sd)
    inner = np.eye(2) + roots @ information @ roots
    covariances = roots @ np.linalg.solve(inner, roots)
    means = covariances @ evidence
    log_odds = present @ _asymmetry_log_odds(doubt)
    log_odds += (means @ evidence - np.log(np.linalg.det(inner))) / 2
    probabilities = np.exp(log_odds - log_odds.max())
    probabilities /= probabilities.sum()
    mean = probabilities @ means
    apart = means - mean
    covariance = np.tensordot(probabilities, covariances, 1) + apart.T @ (
        probabilities[:, None] * apart
    )
    return mean, covariance
