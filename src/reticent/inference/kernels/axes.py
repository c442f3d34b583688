"""Axes: what lies along one input, and its functions: a line, a circle, or levels.

    line      [−1, 1], with smooth functions: Legendre polynomials
    circle    [−1, 1] with its ends joined: cosines and sines, as Legendre series
    ordered   L levels in an order, with smooth functions: tables of L values
    words     L levels in no order, each with an effect of its own: contrasts, tables of L values

Level l of L lies in the middle of the l-th of L equal bins of [−1, 1]. Functions are orthonormal
under the uniform density, on the levels where there are some, and orthogonal to the constant. The
prior covariance κ of an effect has an average variance of one.

Words are exchangeable: all contrasts have the same variance, whichever contrasts are chosen. Of
very many words the most frequent ones have an effect of their own, all others share one.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from reticent.inference.kernels.settings import ANOVA
from reticent.privacy.row_maps.features.polynomial_basis import legendre

__all__ = ["LINE", "Axis", "AxisFunctions", "axis_functions", "word_contrasts"]

Array = NDArray[np.float64]
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(ANOVA.quadrature_nodes)


class EffectKernel(Protocol):
    """What a hypothesis says of the effect of one input (`anova.Anova`)."""

    linear: float

    def input_kernel(self, a: Array, b: Array) -> Array:
        """κ of a line, at places of [−1, 1]."""

    def length_weights(self) -> Array:
        """Weights of `ANOVA.lengthscales`, which add up to one."""


@dataclass(frozen=True)
class Axis:
    """What lies along one input.

    Parameters
    ----------
    shape : "line", "circle", "ordered" or "words"
    levels : int
        Number of levels, of ordered levels and of words; else 0.
    """

    shape: str = "line"
    levels: int = 0

    @property
    def groups(self) -> int:
        """Number of words, or groups of them, that have an effect of their own."""
        return min(self.levels, ANOVA.max_words)

    @property
    def shared_fraction(self) -> float:
        """Fraction of the levels that share an effect with others."""
        if self.shape != "words" or self.groups == self.levels:
            return 0.0
        return 1 - (self.groups - 1) / self.levels


LINE = Axis()


@dataclass(frozen=True)
class AxisFunctions:
    """Functions along one input, those of the largest variance first.

    Attributes
    ----------
    mix : (1 + K, columns) array
        Coefficients of Legendre polynomials, or values at the levels, of the constant and of the K
        functions.
    decays : (H, K) array
        Variance of each function under each hypothesis, as a fraction of the effect's.
    """

    mix: Array
    decays: Array


def axis_functions(axis: Axis, kernels: Sequence[EffectKernel]) -> AxisFunctions:
    """The functions along an axis, and their variances under each hypothesis."""
    if axis.shape == "words":
        each = 1 / (axis.groups - 1)
        contrasts = word_contrasts(axis.levels, range(axis.levels))
        return AxisFunctions(contrasts, np.full((len(kernels), axis.groups - 1), each))
    if axis.shape == "ordered":
        return _ordered_functions(axis.levels, kernels)
    if axis.shape == "circle":
        return _circle_functions(kernels)
    return _line_functions(kernels)


def word_contrasts(levels: int, frequent_first: Sequence[int]) -> Array:
    """Values (groups, levels) of the constant and of the contrasts of words.

    Contrast k sets the k-th word of ``frequent_first``, an order of all levels, against all later
    ones; the words behind the last that has an effect of its own count as one.
    """
    groups = Axis("words", levels).groups
    group = np.empty(levels, dtype=np.intp)
    group[list(frequent_first)] = np.minimum(np.arange(levels), groups - 1)
    contrasts = np.ones((groups, groups))
    for k in range(groups - 1):
        later = groups - 1 - k
        size = math.sqrt(groups / (later * (later + 1)))
        contrasts[k + 1, :k] = 0.0
        contrasts[k + 1, k] = later * size
        contrasts[k + 1, k + 1 :] = -size
    return contrasts[:, group]


def _with_signs(q: Array) -> Array:
    """Rows with a sign that does not depend on LAPACK: the largest entry is positive."""
    q *= np.sign(q[np.arange(len(q)), np.abs(q).argmax(axis=1)])[:, None]
    return q


def _line_functions(kernels: Sequence[EffectKernel]) -> AxisFunctions:
    p = legendre(_NODES) * (_WEIGHTS / 2)[:, None]
    spectra = [p.T @ kernel.input_kernel(_NODES[:, None], _NODES) @ p for kernel in kernels]
    mean = np.mean(spectra, axis=0)
    mean[0, :] = mean[:, 0] = 0.0  # the constant has a function of its own
    values, vectors = np.linalg.eigh(mean)
    q = _with_signs(vectors[:, np.argsort(-values)[: ANOVA.functions_per_input]].T)
    decays = np.maximum(
        [np.einsum("ki,ij,kj->k", q, spectrum, q) for spectrum in spectra], ANOVA.min_variance
    )
    return AxisFunctions(np.vstack([np.eye(1, q.shape[1]), q]), decays)


def _ordered_functions(levels: int, kernels: Sequence[EffectKernel]) -> AxisFunctions:
    """Eigenvectors of the line's kernel at the levels, without its mean over them."""
    places = (2 * np.arange(levels) + 1 - levels) / levels
    centring = np.eye(levels) - 1 / levels
    spectra = []
    for kernel in kernels:
        centred = centring @ kernel.input_kernel(places[:, None], places) @ centring
        spectra.append(centred / np.trace(centred))
    values, vectors = np.linalg.eigh(np.mean(spectra, axis=0))
    count = min(levels - 1, ANOVA.functions_per_input)
    v = _with_signs(vectors[:, np.argsort(-values)[:count]].T)
    decays = np.maximum(
        [np.einsum("ki,ij,kj->k", v, spectrum, v) for spectrum in spectra], ANOVA.min_variance
    )
    return AxisFunctions(np.vstack([np.ones((1, levels)), math.sqrt(levels) * v]), decays)


def _circle_functions(kernels: Sequence[EffectKernel]) -> AxisFunctions:
    """√2·cos and √2·sin of kπu, with the variances of an RBF kernel wound around the circle.

    What is linear of an effect along a line is here its first harmonic.
    """
    p = legendre(_NODES) * (_WEIGHTS / 2)[:, None]
    harmonics = np.arange(1, ANOVA.harmonics + 1)
    waves = [
        math.sqrt(2) * wave(k * math.pi * _NODES) for k in harmonics for wave in (np.cos, np.sin)
    ]
    q = np.array([p.T @ wave for wave in waves])
    every = np.arange(1, 2 * ANOVA.quadrature_nodes + 1)
    spectrum = np.exp(-((math.pi * np.outer(ANOVA.lengthscales, every)) ** 2) / 2)
    spectrum = spectrum[:, : ANOVA.harmonics] / spectrum.sum(axis=1, keepdims=True)
    decays = []
    for kernel in kernels:
        each = (1 - kernel.linear) * (kernel.length_weights() @ spectrum)
        each[0] += kernel.linear
        decays.append(np.repeat(each / 2, 2))
    return AxisFunctions(
        np.vstack([np.eye(1, q.shape[1]), q]), np.maximum(decays, ANOVA.min_variance)
    )
