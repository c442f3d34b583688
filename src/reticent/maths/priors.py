"""Kernels as prior covariances of basis coefficients, and the kernel that is used when none is given.

A kernel is evaluated on public points that fill the box and projected on the basis there; what the basis cannot represent is
counted as noise. The basis is made for the mean of all kernels that may be chosen later, so one release serves each of them.
"""

import math
from collections.abc import Callable
from functools import reduce
from itertools import combinations
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Kernel

from reticent.maths.basis import Basis, corners, eigenbasis, public_points, tensor_basis
from reticent.maths.stages import Staged, quadratic

__all__ = ["Priors", "default_kernel", "white_noise"]

Array = NDArray[np.float64]
_POINTS = 512
_CANDIDATES, _ONE_DIMENSION = 1500, 24
_PAIRS_UP_TO = 8  # inputs


class Priors:
    """Kernels as covariances of basis coefficients, by projection on public points; in units of y's half-range."""

    def __init__(self, kernels: list[Kernel], dimension: int, natural: Callable[[Array], Array], y_half: float) -> None:
        self.kernels, self._dimension, self._natural = kernels, dimension, natural
        self.points = public_points(dimension, _POINTS)
        at = natural(self.points)
        self._grams = [kernel(at, at.copy()) / y_half**2 for kernel in kernels]
        self._mean = sum(self._grams) / len(self._grams)
        self.variance = float(np.mean(np.diag(self._mean)))
        self.white = white_noise(kernels[0], at) / y_half**2
        pairs = [eigenbasis(self._slice(j), _ONE_DIMENSION) for j in range(dimension)]
        self._all, _ = tensor_basis([v / v.sum() for v, _ in pairs], [q for _, q in pairs], _CANDIDATES)
        values = self._all.evaluate(self.points)
        variances = ((self._mean @ values) * values).sum(axis=0) / len(values) ** 2
        self._order = np.argsort(-variances, kind="stable")
        self.variances = variances[self._order]
        self.most = min(len(self._order), len(self.points) // 2)
        self.outside = 0.0

    def _slice(self, j: int) -> Any:
        """The prior-mean kernel along one input, the others in the middle."""

        def kernel(a: Array, b: Array) -> Array:
            at = []
            for values in (a, b):
                unit = np.zeros((len(values), self._dimension))
                unit[:, j] = values
                at.append(self._natural(unit))
            return np.asarray(sum(k(at[0], at[1]) for k in self.kernels) / len(self.kernels))

        return kernel

    def choose(self, m: int) -> tuple[Basis, Array, Array]:
        """The m leading functions, energies that make features of length one, and the prior covariance of the weights."""
        chosen = self._order[:m]
        basis = self._all.part(chosen)
        values, edges = basis.evaluate(self.points), basis.evaluate(corners(self._dimension))
        energy = np.sqrt(np.maximum(self.variances[:m], 1e-12 * self.variances[0]))
        lengths, most = ((values * energy) ** 2).sum(axis=1), ((edges * energy) ** 2).sum(axis=1).max()
        # features of length one: nothing below may depend on the units of y
        self._energy = energy / math.sqrt(min(max(lengths.max(), most), 1.5 * np.quantile(lengths, 0.95)))
        self._projection = np.linalg.pinv(values * self._energy)
        self._values = values * self._energy
        S = self._covariance(self._mean)
        self.outside = self._beyond(self._mean, S)
        return basis, self._energy, S

    def _beyond(self, gram: Array, S: Array) -> float:
        """Variance of the function that the basis cannot represent, on average over the box."""
        return float(np.mean(np.maximum(np.diag(gram) - quadratic(self._values, S), 0.0)))

    def _covariance(self, gram: Array) -> Array:
        S = self._projection @ gram @ self._projection.T
        return (S + S.T) / 2 + 1e-6 * np.trace(S) / len(S) * np.eye(len(S))

    def best(self, staged: Staged) -> int:
        """Choose a kernel by the evidence and let the posterior use it."""
        if len(self.kernels) == 1:
            return 0
        priors = [self._covariance(gram) for gram in self._grams]
        best = int(np.argmax([staged.evidence(prior) for prior in priors]))
        before, self.outside = self.outside, self._beyond(self._grams[best], priors[best])
        if not staged.learn_noise:  # else it was learned together with the observation noise
            staged.s2 = max(staged.s2 + self.outside - before, 1e-3 * staged.s2)
        staged.change_prior(priors[best])
        return best


def default_kernel(half: Array, y_half: float) -> Kernel:
    """A broad trend; in one dimension a smooth part of free length, in more the effects of single inputs and of pairs.

    Effects of one or two inputs are kernels that hardly change along the others. Only amplitudes are free in more dimensions: a
    product of smooth functions of all inputs would need far more records than a private fit can use.
    """
    d, amplitude = len(half), (y_half / 2) ** 2

    def sized(value: float) -> Kernel:
        return ConstantKernel(value, (value / 100, value * 100))

    trend = sized(amplitude) * RBF(3 * half, "fixed")
    if d == 1:
        return trend + sized(amplitude / 2) * RBF(0.5 * half, (0.05 * half[0], 5 * half[0]))

    def effect(inputs: tuple[int, ...], length: float) -> Kernel:
        lengths = 1e3 * half
        lengths[list(inputs)] = length * half[list(inputs)]
        return RBF(lengths, "fixed")

    mains = [effect((j,), length) for j in range(d) for length in (0.3, 1.0)]
    kernel = trend + sized(amplitude / len(mains)) * reduce(add, mains)
    pairs = [effect(pair, 0.7) for pair in combinations(range(d), 2)] if d <= _PAIRS_UP_TO else []
    return kernel + sized(amplitude / 3 / len(pairs)) * reduce(add, pairs) if pairs else kernel


def white_noise(kernel: Kernel, X: Array) -> float:
    """Variance of the kernel's white noise, which scikit-learn leaves out between a point and its copy."""
    one = X[:1]
    return float(kernel.diag(one)[0] - kernel(one, one.copy())[0, 0])
