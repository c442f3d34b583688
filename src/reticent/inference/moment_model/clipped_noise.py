"""Noise as a normal core and rare parts of fixed size, and what clips leave of it.

A residual is δ + ε: what is not explained yet, and noise. Its mean after a clip at ±r, the gain
(how that mean changes with δ), and the covariance of one record's noise over several clips are
known in closed form, or nearly.

A clip at ±r cuts more where the noise is larger: of costs that grow with age, clips take more from
the mean of the old. How noise differs is known from the sizes of residuals (`noise_scale`): with
s(x) its standard deviation by its root mean square. Two causes, the skewness of the noise's core
and the lopsidedness of its rare part, move the mean of a stage in one of three ways:

    the same everywhere        as if the noise were
    by size                    one shape: at x all residuals are s(x) times as large, as far as
                               the bounds of y allow
    by frequency               rare residuals are as large everywhere; at x there are s(x) times
                               as many

Amounts are nearly of the second kind, rare yes among no of the third. Beforehand all three are as
likely, and stages with different clips say which it is: they see different levels, and functions
that differ along s(x). As clips widen, all three shifts vanish.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from reticent.inference.linalg import JITTER, robust_cholesky, solve_lower, solve_upper
from reticent.inference.moment_model.clipping import NoiseTail, clip_effect, weigh_clip_bias
from reticent.inference.moment_model.settings import CLIPPED_MOMENTS, JOINT

__all__ = [
    "ClippedNoise",
    "NoiseSizes",
    "estimate_uneven_clip_bias",
    "uneven_clip_biases",
]

Array = NDArray[np.float64]
_NODES = np.linspace(-JOINT.quadrature_sd, JOINT.quadrature_sd, JOINT.quadrature_nodes)
_NODE_WEIGHTS = np.exp(-(_NODES**2) / 2) / np.exp(-(_NODES**2) / 2).sum()


@dataclass(frozen=True, eq=False)
class ClippedNoise:
    """Symmetric noise with mean zero: normal, but for a few records of given residuals.

    Parameters
    ----------
    core : float
        Variance of the normal core, in squared half-ranges of y.
    rare : (parts,) array
        Fractions of the records in each rare part, half of them on either side.
    lengths : (parts,) array
        Sizes of their residuals, in half-ranges of y.
    """

    core: float
    rare: Array
    lengths: Array

    @classmethod
    def normal(cls, variance: float) -> "ClippedNoise":
        """Noise that is normal."""
        return cls(variance, np.zeros(0), np.zeros(0))

    @classmethod
    def averaged(cls, tail: NoiseTail) -> "ClippedNoise":
        """The mean of several laws, by their posterior weights."""
        normal = tail.weights * (1 - tail.mass)
        lengths = np.unique(tail.length[tail.mass > 0])
        rare = np.array([(tail.weights * tail.mass) @ (tail.length == one) for one in lengths])
        return cls(float(normal @ tail.core / normal.sum()), rare, lengths)

    def clipped_mean(self, delta: Array, variance: Array, thresholds: Array) -> tuple[Array, Array]:
        """Mean of clip(δ + noise, ±r), and its derivative by δ; two arrays (stages, points).

        Parameters
        ----------
        delta : (stages, points) array
            What residuals are expected to be.
        variance : (points,) array
            Variance of what is not known of that.
        thresholds : (stages,) array
            r of each stage.
        """
        r = thresholds[:, None]
        mean, gain = _clipped_normal(delta, np.sqrt(self.core + variance), r)
        normal = 1 - self.rare.sum()
        mean *= normal
        gain *= normal
        sd = np.sqrt(variance + JOINT.smallest_variance * self.core)
        for mass, length in zip(self.rare, self.lengths, strict=True):
            for side in (-length, length):
                part, slope = _clipped_normal(delta + side, sd, r)
                mean += mass / 2 * part
                gain += mass / 2 * slope
        return mean, gain

    def covariance(self, delta: Array, thresholds: Array, density: Array) -> Array:
        """Covariance (stages, stages) of one record's noise, clipped in each stage.

        ``delta`` (stages, points): what residuals are expected to be; ``density`` (points,): how
        many records are at each point.
        """
        nodes = np.concatenate([_NODES * math.sqrt(self.core), self.lengths, -self.lengths])
        weights = np.concatenate(
            [_NODE_WEIGHTS * (1 - self.rare.sum()), self.rare / 2, self.rare / 2]
        )
        residuals = delta[:, :, None] + nodes
        limits = thresholds[:, None, None]
        np.clip(residuals, -limits, limits, out=residuals)
        residuals -= (residuals @ weights)[:, :, None]
        residuals *= np.sqrt((density / density.sum())[:, None] * weights)
        flat = residuals.reshape(len(delta), -1)
        return np.asarray(flat @ flat.T)


def _clipped_normal(mean: Array, sd: Array, r: Array) -> tuple[Array, Array]:
    """Mean of clip(N(mean, sd²), ±r), and its derivative by the mean."""
    low = (-r - mean) / sd
    high = (r - mean) / sd
    below = ndtr(low)
    above = ndtr(-high)
    inside = 1 - below - above
    edges = np.exp(-(high**2) / 2) - np.exp(-(low**2) / 2)
    clipped = r * (above - below) + mean * inside - sd * edges / math.sqrt(2 * math.pi)
    return clipped, inside


@dataclass(frozen=True, eq=False)
class NoiseSizes:
    """Standard deviation of the noise at points that stand for the records.

    Parameters
    ----------
    relative : (G,) array
        By its root mean square over the records.
    density : (G,) array
        Share of the records at each point.
    """

    relative: Array
    density: Array

    @classmethod
    def of(cls, sizes: Array, density: Array) -> "NoiseSizes":
        """The same of sizes in any unit."""
        return cls(sizes / math.sqrt(float(density @ sizes**2)), density)

    @property
    def slices(self) -> tuple[Array, Array]:
        """Sizes (slices,) of equal shares of the records, ordered by size, and these shares."""
        number = CLIPPED_MOMENTS.size_slices
        order = np.argsort(self.relative, kind="stable")
        share = self.density[order]
        place = np.minimum((np.cumsum(share) - share / 2) * number, number - 1).astype(np.intp)
        shares = np.bincount(place, share, number)
        squares = np.bincount(place, share * self.relative[order] ** 2, number)
        some = shares > 0
        sizes = np.sqrt(squares[some] / shares[some])
        return sizes.astype(np.float64), shares[some].astype(np.float64)

    def map_of_weights(self, features: Array) -> Array:
        """Map (m, G) of a function's values at the points, times those of 1, to its weights.

        By least squares among the records; ``features`` (G, m): φ at the points.
        """
        weighted = features * self.density[:, None]
        lower = robust_cholesky(features.T @ weighted, JITTER)
        return solve_upper(lower, solve_lower(lower, weighted.T))


def uneven_clip_biases(
    tails: tuple[NoiseTail, NoiseTail],
    noise: float,
    sizes: NoiseSizes,
    thresholds: Array,
    variances: Array,
    longest: float,
) -> Array:
    """Shift of the mean at the points by clips at the thresholds, over their gain, (G, clips, 3).

    Per unit of the causes that differ between places: skewness and lopsidedness by size, and
    lopsidedness by frequency.

    Parameters
    ----------
    tails : pair of NoiseTail
        The noise where all is the same everywhere, and where its size differs that at size 1.
    noise : float
        Variance of a residual that is noise, on average.
    sizes : NoiseSizes
        Of the noise.
    thresholds : (clips,) array
        r, in half-ranges of y.
    variances : (clips,) array
        Of a residual before each clip, on average.
    longest : float
        Largest residual that the bounds of y allow, in half-ranges of y.
    """
    same, by_size = tails
    s = sizes.relative[:, None]
    clip = clip_effect(np.maximum(variances - noise, 0.0) + noise * s**2, thresholds)
    skew = (math.sqrt(noise) * s) ** 3 * clip.skew_bias
    longer = _shortfall(by_size, s, thresholds, longest) / clip.gain
    frequency = s / float(sizes.density @ sizes.relative)
    more = frequency * same.shortfall(thresholds) / clip_effect(variances, thresholds).gain
    return np.stack([skew, -longer, -more], axis=2)


def _shortfall(tail: NoiseTail, size: Array, r: Array, longest: float) -> Array:
    """`NoiseTail.shortfall` of noise of each size (G, 1), none of it beyond the longest: (G, r)."""
    lengths, which = np.unique(tail.length, return_inverse=True)
    squares = np.bincount(which, tail.weights * tail.mass**2)
    cut2 = np.zeros((len(size), len(r)))
    for length, square in zip(lengths, squares, strict=True):
        cut2 += square * np.maximum(np.minimum(size * length, longest) - r, 0.0) ** 2
    return np.sqrt(cut2)


def estimate_uneven_clip_bias(
    sums: Array, covariances: Array, biases: Array, doubt: float
) -> tuple[Array, Array]:
    """Mean (5,) and covariance (5, 5) of the causes, from what stages see along some functions.

    Each stage sees sums of outputs times these functions (stages, functions), with ``covariances``
    (stages, functions, functions), that are off by its ``biases`` (stages, 5, functions) times the
    causes.
    """
    size = np.trace(covariances.sum(axis=0))
    weights = np.linalg.inv(covariances + JITTER * size * np.eye(sums.shape[1]))
    total = weights.sum(axis=0)
    middle = np.linalg.solve(total, np.einsum("kab,kcb->ac", weights, biases)).T
    centred = biases - middle
    weighted = np.einsum("kab,kcb->kca", weights, centred)
    information = np.einsum("kca,kda->cd", weighted, centred)
    evidence = np.einsum("kca,ka->c", weighted, sums)
    everywhere, by_size, by_frequency = (0, 1), (2, 3), (0, 4)  # skewness and lopsidedness
    return weigh_clip_bias(information, evidence, doubt, (everywhere, by_size, by_frequency))
