"""Noise as a normal core and rare parts of fixed size, and what clips leave of it.

A residual is δ + ε: what is not explained yet, and noise. Its mean after a clip at ±r, the gain
(how that mean changes with δ), and the covariance of one record's noise over several clips are
known in closed form, or nearly.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from reticent.inference.moment_model.clipping import NoiseTail
from reticent.inference.moment_model.settings import JOINT

__all__ = ["ClippedNoise"]

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
