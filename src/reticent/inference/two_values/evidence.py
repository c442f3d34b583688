"""Whether outputs are all at an end of the range of y, by the moments of clipped residuals.

Outputs are in [−1, 1], half-ranges of y. If all of them are −1 or 1, the residual of a record of
weight ω around c (ω times a function at its input) is one of two numbers, and so is what a clip at
±r leaves of it: h = clip(ω − c) or l = clip(−ω − c). A clipped residual is then a linear function
of the output whatever the clip is, and its moments are known given the mean f of ω·y:

    E clip(e) = (h + l)/2 + (h − l)/(2ω) · f,    E clip(e)² = (h² + l²)/2 + (h² − l²)/(2ω) · f

So releases of all clips are linear observations of the function, and foretell each other's second
moments without a free parameter. Around c = 0 the mean square is that of the weights, the largest
that outputs in their range have. What else outputs may be:

* noise with a normal core of any size and a rare part of one length, on either side or on both;
* amounts: most outputs at one end, and a part of them off it by one length, or exponentially.

The evidence of each kind is that of the means and mean squares of the residuals of all stages.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, ndtr

from reticent.inference.moment_model.settings import CLIPPED_MOMENTS, TWO_VALUES

__all__ = [
    "ClippedMoments",
    "TwoValuedResiduals",
    "amounts_log_evidence",
    "noise_log_evidence",
    "two_valued_log_evidence",
]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TwoValuedResiduals:
    """Clipped residuals of outputs at either end of the range, in each stage and at each place.

    Parameters
    ----------
    centres : (stages, places) array
        What residuals are taken from, times the weights, in half-ranges of y.
    thresholds : (stages,) array
        Clip thresholds, in half-ranges of y.
    weights : (places,) array
        Weight ω of a record at each place.
    """

    centres: Array
    thresholds: Array
    weights: Array

    @cached_property
    def high(self) -> Array:
        """Residual of an output at the upper end, clipped; (stages, places)."""
        r = self.thresholds[:, None]
        return np.asarray(np.clip(self.weights - self.centres, -r, r))

    @cached_property
    def low(self) -> Array:
        """The same at the lower end."""
        r = self.thresholds[:, None]
        return np.asarray(np.clip(-self.weights - self.centres, -r, r))

    @cached_property
    def gain(self) -> Array:
        """Derivative of the mean by the function; (stages, places)."""
        return np.asarray((self.high - self.low) / (2 * self.weights))

    @cached_property
    def offset(self) -> Array:
        """Mean where the function is zero; (stages, places)."""
        return np.asarray((self.high + self.low) / 2)

    @cached_property
    def square_slope(self) -> Array:
        """Derivative of the mean square by the function; (stages, places)."""
        return np.asarray((self.high**2 - self.low**2) / (2 * self.weights))

    @cached_property
    def square_offset(self) -> Array:
        """Mean square where the function is zero; (stages, places)."""
        return np.asarray((self.high**2 + self.low**2) / 2)

    @cached_property
    def whole(self) -> Array:
        """Whether the clip cuts neither; (stages, places)."""
        return np.asarray(self.thresholds[:, None] >= self.weights + np.abs(self.centres))


@dataclass(frozen=True, eq=False)
class ClippedMoments:
    """Released means and mean squares of clipped residuals, and their noise; all (stages,).

    In half-ranges of y, and in their squares. ``thresholds`` are those of the clips.
    """

    mean: Array
    mean_sd: Array
    square: Array
    square_sd: Array
    thresholds: Array

    def log_likelihoods(self, mean: Array, square: Array) -> Array:
        """Of models (models,) that foretell such moments (models, stages).

        They foretell them up to a small error, or, with even odds, are wrong models altogether.
        """
        scores = []
        for error in (CLIPPED_MOMENTS.second_moment_error, TWO_VALUES.wrong_model_error):
            mean_variance, square_variance = self.variances(square, error)
            fit = (self.mean - mean) ** 2 / mean_variance
            fit += (self.square - square) ** 2 / square_variance
            fit += np.log(mean_variance) + np.log(square_variance) + 2 * math.log(2 * math.pi)
            scores.append(-fit.sum(axis=1) / 2)
        return np.asarray(np.logaddexp(*scores) - math.log(2))

    def variances(self, square: Array, error: float) -> tuple[Array, Array]:
        """Variances of means and mean squares, foretold with a relative error.

        ``square``: mean squares that are expected.
        """
        return self.mean_sd**2 + error**2 * square, self.square_sd**2 + (error * square) ** 2


def two_valued_log_evidence(apart: Array, along: Array, covariance: Array) -> float:
    """Logarithm of the density of released moments if outputs are at the ends of the range.

    The level of the function may be anything in the range.

    Parameters
    ----------
    apart : (moments,) array
        What was released less what is expected.
    along : (moments,) array
        How expected moments change with the level.
    covariance : (moments, moments) array
        Of the noise and of the error of what is expected.
    """
    scale = np.sqrt(np.diag(covariance))
    values, vectors = np.linalg.eigh(covariance / np.outer(scale, scale))
    roots = np.sqrt(np.maximum(values, TWO_VALUES.rounding))
    z = (vectors.T @ (apart / scale)) / roots
    slope = (vectors.T @ (along / scale)) / roots
    information = max(float(slope @ slope), TWO_VALUES.rounding)
    misfit = z @ z - (slope @ z) ** 2 / information
    log_root = np.log(roots).sum() + np.log(scale).sum()
    density = -misfit / 2 - log_root - len(apart) * math.log(2 * math.pi) / 2
    return float(density + _log_width(np.array(information)))


def _log_width(information: Array) -> Array:
    """Logarithm of the part of the range of levels that such information leaves open.

    All of it at most: without that, releases that tell nothing would speak for two values.
    """
    return np.asarray(np.minimum(np.log(2 * math.pi / information) / 2 - math.log(2), 0.0))


def noise_log_evidence(
    moments: ClippedMoments, apart: Array, spread: Array, longest: float
) -> float:
    """The same if the noise is a normal core with a rare part, on either side or on both.

    Parameters
    ----------
    moments : ClippedMoments
        What was released.
    apart, spread : (stages,) arrays
        Mean over the records of the function less a stage's centre, and variance around that.
    longest : float
        Largest residual that the bounds of y allow.
    """
    mixtures = _NoiseMixtures.possible(longest)
    level = np.zeros(len(mixtures.core))
    step = TWO_VALUES.level_step
    for _ in range(TWO_VALUES.newton_steps):
        mean, square = mixtures.moments(apart + level[:, None], spread, moments.thresholds)
        mean_there, square_there = mixtures.moments(
            apart + (level + step)[:, None], spread, moments.thresholds
        )
        mean_variance, square_variance = moments.variances(
            square, CLIPPED_MOMENTS.second_moment_error
        )
        slope = (mean_there - mean) / step
        square_slope = (square_there - square) / step
        information = (slope**2 / mean_variance + square_slope**2 / square_variance).sum(axis=1)
        information = np.maximum(information, 1.0)
        pull = slope * (moments.mean - mean) / mean_variance
        pull += square_slope * (moments.square - square) / square_variance
        longest_step = TWO_VALUES.longest_step
        level += np.clip(pull.sum(axis=1) / information, -longest_step, longest_step)
    mean, square = mixtures.moments(apart + level[:, None], spread, moments.thresholds)
    scores = moments.log_likelihoods(mean, square) + mixtures.log_weights + _log_width(information)
    return float(logsumexp(scores))


@dataclass(frozen=True, eq=False)
class _NoiseMixtures:
    """Kinds of noise, with a normal core of variance ``core`` (mixtures, 1), and their weights.

    Noise is normal but for a fraction ``mass`` (mixtures, 1) of the records, which are ``length``
    off; half of them above and half below where ``side`` is zero.
    """

    core: Array
    mass: Array
    length: Array
    side: Array
    log_weights: Array

    @classmethod
    def possible(cls, longest: float) -> "_NoiseMixtures":
        """All mixtures whose rare part is no longer than that."""
        cores = np.geomspace(*TWO_VALUES.cores)
        parts = np.meshgrid(
            cores,
            np.geomspace(*TWO_VALUES.rare_masses),
            np.linspace(0, 1, TWO_VALUES.rare_lengths),
            [-1.0, 0.0, 1.0],
        )
        nothing = np.zeros((3, len(cores)))
        core, mass, share, side = np.hstack(
            [np.vstack([cores, nothing]), [part.ravel() for part in parts]]
        )
        shortest = np.minimum(CLIPPED_MOMENTS.shortest_tail * np.sqrt(core), longest / 2)
        length = shortest ** (1 - share) * longest**share
        odds = math.exp(CLIPPED_MOMENTS.tail_log_odds) * len(cores) / (len(core) - len(cores))
        weights = np.where(mass > 0, odds, 1.0)
        return cls(
            core[:, None],
            mass[:, None],
            length[:, None],
            side[:, None],
            np.log(weights / weights.sum()),
        )

    def moments(self, apart: Array, spread: Array, r: Array) -> tuple[Array, Array]:
        """Mean and mean square of clipped residuals (mixtures, stages).

        ``apart`` (mixtures, stages): mean of the core less a stage's centre; ``spread``, ``r``
        (stages,): variance of that over the records, and the clips.
        """
        mean, square = _clipped_normal_moments(apart, self.core + spread, r)
        above = np.clip(apart + self.length, -r, r)
        below = np.clip(apart - self.length, -r, r)
        up = self.mass * (1 + self.side) / 2
        down = self.mass * (1 - self.side) / 2
        mean = (1 - self.mass) * mean + up * above + down * below
        square = (1 - self.mass) * square + up * above**2 + down * below**2
        return mean, square


def _clipped_normal_moments(mean: Array, variance: Array, r: Array) -> tuple[Array, Array]:
    """Mean and mean square of a normal number that is clipped at ±r; arrays that broadcast."""
    sd = np.sqrt(variance)
    low = (-r - mean) / sd
    high = (r - mean) / sd
    below = ndtr(low)
    above = ndtr(-high)
    inside = 1 - below - above
    low_density = np.exp(-(low**2) / 2) / math.sqrt(2 * math.pi)
    high_density = np.exp(-(high**2) / 2) / math.sqrt(2 * math.pi)
    clipped = mean * inside - sd * (high_density - low_density) + r * (above - below)
    square = (mean**2 + variance) * inside + r**2 * (above + below)
    square -= sd * ((r + mean) * high_density + (r - mean) * low_density)
    return clipped, np.maximum(square, 0.0)


def amounts_log_evidence(moments: ClippedMoments, apart: Array, weight: float) -> float:
    """The same if most outputs are at one end of the range, and the others off it.

    Parameters
    ----------
    moments : ClippedMoments
        What was released.
    apart : (2, nodes, stages) array
        How far inside the lower and the upper end is of a stage's centre, at places that stand for
        as many records each; negative where the centre is in the range.
    weight : float
        Of a record, on average.
    """
    parts = np.meshgrid(
        np.geomspace(*TWO_VALUES.amount_masses), weight * np.geomspace(*TWO_VALUES.amount_sizes)
    )
    mass, size = (part.ravel()[:, None] for part in parts)
    r = moments.thresholds
    scores = []
    for side, nodes in zip((1, -1), apart, strict=True):
        exponential = np.zeros((2, len(mass), len(r)))
        same = np.zeros((2, len(mass), len(r)))
        for start in nodes:
            at_end = np.clip(start, -r, r)
            off = np.clip(start + size, -r, r)
            same += np.stack([_mixed(at_end, off, mass), _mixed(at_end**2, off**2, mass)])
            off, off_square = _clipped_exponential_moments(start, size, r)
            exponential += np.stack(
                [_mixed(at_end, off, mass), _mixed(at_end**2, off_square, mass)]
            )
        for mean, square in (same / len(nodes), exponential / len(nodes)):
            scores.append(moments.log_likelihoods(side * mean, square))
    return float(logsumexp(scores)) - math.log(len(scores) * len(mass))


def _mixed(at_end: Array, off: Array, mass: Array) -> Array:
    return (1 - mass) * at_end + mass * off


def _clipped_exponential_moments(start: Array, size: Array, r: Array) -> tuple[Array, Array]:
    """Mean and mean square of start + X, clipped at ±r, X exponential with mean ``size``."""
    first = np.clip(start, -r, r)
    reached = np.exp(-np.maximum(-r - start, 0.0) / size)  # share beyond the lower clip
    room = r - first
    cut = np.exp(-room / size)
    mean = first + reached * size * (1 - cut)
    more = first * size * (1 - cut) + size**2 * (1 - cut) - size * room * cut
    return mean, np.maximum(first**2 + 2 * reached * more, 0.0)
