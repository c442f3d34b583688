"""Shapes of the observation noise, and the moments of clipped residuals under each.

A shape is a law of mean 0 and variance 1, a mixture of normal laws: then every moment of a clipped
residual has a closed form, and what is not known of the function, which is normal, only adds to the
variances.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from reticent.inference.moment_model.settings import JOINT

__all__ = ["NOISE_SHAPES", "NORMAL", "NoiseShape"]

Array = NDArray[np.float64]
_SINH_GRID = np.linspace(-JOINT.noise_grid_end, JOINT.noise_grid_end, JOINT.noise_nodes)


@dataclass(frozen=True)
class NoiseShape:
    """A law of mean 0 and variance 1: a mixture of normal laws."""

    name: str
    probabilities: tuple[float, ...]
    means: tuple[float, ...]
    sds: tuple[float, ...]

    def clipped_mean(
        self, shift: Array, thresholds: Array, variance: float, further: Array
    ) -> tuple[Array, Array]:
        """E clip(shift + noise + N(0, further), ±threshold), and its derivative by the shift.

        The derivative, the gain, is the probability not to be clipped.

        Parameters
        ----------
        shift : (stages, points) array
            δ, the residual's expectation before it is clipped.
        thresholds : (stages,) array
            r.
        variance : float
            Variance of the noise of this shape.
        further : (points,) array
            Variance of what is normal besides.
        """
        r = thresholds[:, None]
        mean = np.zeros_like(shift)
        gain = np.zeros_like(shift)
        for probability, middle, spread in self._components(shift, variance, further):
            low = (-r - middle) / spread
            high = (r - middle) / spread
            below = ndtr(low)
            above = ndtr(-high)
            inside = 1 - below - above
            falling = spread * (_normal_pdf(low) - _normal_pdf(high))
            mean += probability * (middle * inside + falling + r * (above - below))
            gain += probability * inside
        return mean, gain

    def clipped_square(
        self, shift: Array, thresholds: Array, variance: float, further: Array
    ) -> Array:
        """E clip(shift + noise + N(0, further), ±threshold)², of the same numbers."""
        r = thresholds[:, None]
        square = np.zeros_like(shift)
        for probability, middle, spread in self._components(shift, variance, further):
            low = (-r - middle) / spread
            high = (r - middle) / spread
            outside = ndtr(low) + ndtr(-high)
            low_pdf = _normal_pdf(low)
            high_pdf = _normal_pdf(high)
            square += probability * (
                (middle**2 + spread**2) * (1 - outside)
                + spread * ((middle - r) * low_pdf - (middle + r) * high_pdf)
                + r**2 * outside
            )
        return square

    def _components(
        self, shift: Array, variance: float, further: Array
    ) -> Iterator[tuple[float, Array, Array]]:
        """Probability, mean and standard deviation of each normal law, around the shift."""
        scale = math.sqrt(variance)
        for probability, mean, sd in zip(self.probabilities, self.means, self.sds, strict=True):
            yield probability, shift + mean * scale, np.sqrt(sd**2 * variance + further)

    def quadrature(self, variance: float, further: float) -> tuple[Array, Array]:
        """Nodes and weights (nodes,) of the noise plus N(0, further); weights add up to 1.

        Nodes are hyperbolic sines: close together in the middle, and far into the tails.
        """
        scale = math.sqrt(variance)
        nodes = math.sqrt(variance + further) * np.sinh(_SINH_GRID)
        weights = np.zeros(len(nodes))
        for probability, centre, sd in zip(self.probabilities, self.means, self.sds, strict=True):
            spread = math.sqrt(sd**2 * variance + further)
            weights += probability / spread * _normal_pdf((nodes - centre * scale) / spread)
        weights *= np.cosh(_SINH_GRID)
        return nodes, weights / weights.sum()


def _normal_pdf(x: Array) -> Array:
    return np.exp(-x * x / 2) / math.sqrt(2 * math.pi)


def _standardised(
    name: str, probabilities: list[float], means: list[float], sds: list[float]
) -> NoiseShape:
    """The mixture moved and scaled to mean 0 and variance 1."""
    p = np.array(probabilities)
    centred = np.array(means) - p @ np.array(means)
    scale = math.sqrt(p @ (centred**2 + np.array(sds) ** 2))
    return NoiseShape(
        name,
        tuple(probabilities),
        tuple((centred / scale).tolist()),
        tuple((np.array(sds) / scale).tolist()),
    )


def _from_quantiles(
    name: str, quantile: Callable[[Array], Array], cuts: tuple[float, ...]
) -> NoiseShape:
    """A law cut at some probabilities, a normal law of the same mean and variance for each part."""
    probabilities, means, sds = [], [], []
    for low, high in pairwise(cuts):
        part = quantile(low + (high - low) * (np.arange(4096) + 0.5) / 4096)
        probabilities.append(high - low)
        means.append(float(part.mean()))
        sds.append(float(part.std()))
    return _standardised(name, probabilities, means, sds)


def _mirrored(name: str, shape: NoiseShape) -> NoiseShape:
    return NoiseShape(name, shape.probabilities, tuple(-mean for mean in shape.means), shape.sds)


NORMAL = NoiseShape("normal", (1.0,), (0.0,), (1.0,))
_CONTAMINATED = _standardised("contaminated", [0.9, 0.1], [0.0, 0.0], [1.0, 10.0])
_EXPONENTIAL = _from_quantiles("exponential", lambda u: -np.log1p(-u), (0, 0.3, 0.6, 0.85, 0.97, 1))
_TWO_POINT = _standardised("two points", [0.5, 0.5], [-1.0, 1.0], [0.1, 0.1])
NOISE_SHAPES = (
    NORMAL,
    _CONTAMINATED,
    _EXPONENTIAL,
    _mirrored("exponential downwards", _EXPONENTIAL),
    _TWO_POINT,
)
