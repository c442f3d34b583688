"""Functions drawn from a model's own prior, known everywhere: the truth of simulated fits."""

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import Kernel, Product, Sum

from reticent.inference.kernels.axes import LINE, Axis, axis_functions
from reticent.memo import memo
from reticent.privacy.row_maps.features.polynomial_basis import legendre

__all__ = ["Effects", "Function", "Truth", "truth"]

Array = NDArray[np.float64]
Random = np.random.Generator

_CHECKS = 256
_LEFT_OUT = (
    1e-6  # of a part's variance: what is left out counts as error of the fit, and must not show
)
_LITTLE = (
    1e-8,
    1e-7,
    1e-5,
)  # the same, of the whole variance, for effects of one, two and three inputs, which take time
_ROWS = 256  # a block of the kernel stays in cache
# so fine that straight lines between neighbours are as good as the shortest curves
# of the default prior
_GRID = 257


class Truth(Protocol):
    """A function that was drawn.

    ``left_out``: the fraction of its variance that is replaced by independent noise.
    """

    left_out: float

    def __call__(self, at: Array, random: Random) -> Array:
        """Values at the rows of ``at``; what was left out is drawn anew."""
        ...


def truth(kernel: Any, points: Array, random: Random, axes: Sequence[Axis] = ()) -> Truth:
    """Draw a function from a Gaussian process.

    ``points``: they fill the places where it is to be known. ``axes``: what lies along each input,
    for the default prior; lines if not given.
    """
    if hasattr(kernel, "order_variances"):
        return Effects(kernel, axes or (LINE,) * points.shape[1], random)
    return Function(kernel, points, random)


class Function:
    """A function drawn from a Gaussian process with any kernel, known everywhere.

    A kernel is a sum of parts. Each part is drawn at so many of the ``points`` that hardly any
    variance is left, or at all of them, and extended from there by conditional means. The rest
    (``left_out``, a share of the variance) is added as independent noise: structure that is finer
    than a thousand points is lost on a basis of some hundred functions anyway.
    """

    def __init__(self, kernel: Kernel, points: Array, random: Random) -> None:
        checks = points[:_CHECKS]
        points = points[_CHECKS:]
        self._parts: list[tuple[Kernel, Array, Array]] = []
        whole = 0.0
        rest = 0.0
        for part in _summands(kernel):
            variance = float(
                np.mean(np.diagonal(part(checks, checks.copy())))
            )  # without white noise, unlike diag
            if variance <= 0:
                continue
            few = 16
            left = math.inf
            while left > _LEFT_OUT * variance and few < len(points):
                few = min(4 * few, len(points))
                at = points[:few]
                lower = np.linalg.cholesky(part(at, at.copy()) + 1e-9 * variance * np.eye(few))
                left = max(
                    variance
                    - float((np.linalg.solve(lower, part(at, checks)) ** 2).sum()) / len(checks),
                    0.0,
                )
            weights: Array = np.asarray(
                np.linalg.solve(lower.T, random.standard_normal(few)), dtype=np.float64
            )
            self._parts.append((part, at, weights))
            whole = whole + variance
            rest = rest + left
        self._rest = math.sqrt(rest)
        if whole:
            self.left_out = rest / whole
        else:
            self.left_out = 0.0

    def __call__(self, at: Array, random: Random) -> Array:
        """Values at the rows of ``at``; the rest that was left out is drawn anew."""
        values = self._rest * random.standard_normal(len(at))
        for start in range(0, len(at), _ROWS):
            rows = slice(start, start + _ROWS)
            for part, points, weights in self._parts:
                values[rows] += part(at[rows], points) @ weights
        return np.asarray(values)


def _summands(kernel: Kernel) -> list[Kernel]:
    """Kernels that add up to this one: few points suffice for each of them."""
    if isinstance(kernel, Sum):
        return _summands(kernel.k1) + _summands(kernel.k2)
    if isinstance(kernel, Product):
        return [first * second for first in _summands(kernel.k1) for second in _summands(kernel.k2)]
    return [kernel]


class Effects:
    """A function drawn from the default prior.

    A constant, and effects of one, two and three inputs, each by itself. An effect is a sum of
    products of eigenfunctions of one input, with independent weights. That is the law that
    `Function` would draw from, in a twentieth of the time. Eigenfunctions that hardly matter are
    left out, as there.
    """

    def __init__(self, kernel: Any, axes: Sequence[Axis], random: Random) -> None:
        d = len(axes)
        self._axes = tuple(axes)
        tables = {axis: _along(axis, kernel) for axis in set(axes)}
        self._roots = [tables[axis][0] for axis in axes]
        self._level = math.sqrt(kernel.constant) * float(random.standard_normal())
        self._effects: list[tuple[tuple[int, ...], Array]] = []
        whole = kernel.constant + kernel.variance
        rest = 0.0
        for order, variance in enumerate(kernel.order_variances(d), 1):
            combined = math.comb(d, order)
            share = variance * combined / whole
            few = {}
            known = {}
            for axis, (_, fraction) in tables.items():
                enough = share * (1 - fraction**order) <= _LITTLE[order - 1]
                few[axis] = 1 + int(np.argmax(enough)) if enough.any() else len(enough)
                known[axis] = float(fraction[few[axis] - 1])
            for inputs in combinations(range(d), order):
                shape = tuple(few[axes[j]] for j in inputs)
                self._effects.append((inputs, math.sqrt(variance) * random.standard_normal(shape)))
                rest += share / combined * (1 - math.prod(known[axes[j]] for j in inputs))
        self._rest = math.sqrt(rest * whole)
        self.left_out = rest

    def __call__(self, at: Array, random: Random) -> Array:
        """Values at the rows of ``at``, in the box [−1, 1]ᵈ.

        The rest that was left out is drawn anew.
        """
        values = self._level + self._rest * random.standard_normal(len(at))
        for start in range(0, len(at), _ROWS):
            rows = slice(start, start + _ROWS)
            count = len(at[rows])
            functions = [
                _at_places(root, axis, at[rows, j])
                for j, (root, axis) in enumerate(zip(self._roots, self._axes, strict=True))
            ]
            for inputs, weights in self._effects:
                few = weights.shape
                effect = functions[inputs[0]][:, : few[0]] @ weights.reshape(few[0], -1)
                for j, size in zip(inputs[1:], few[1:], strict=True):
                    effect = np.einsum(
                        "nab,na->nb", effect.reshape(count, size, -1), functions[j][:, :size]
                    )
                values[rows] += effect[:, 0]
        return np.asarray(values)


def _at_places(root: Array, axis: Axis, at: Array) -> Array:
    """Values (n, K) of the functions along one input, at places (n,) of [−1, 1]."""
    if axis.levels:
        level = np.floor((at + 1) / 2 * axis.levels).astype(np.intp)
        return np.asarray(root[np.clip(level, 0, axis.levels - 1)])
    place = (at + 1) * ((_GRID - 1) / 2)
    low = np.clip(place.astype(np.intp), 0, _GRID - 2)
    part = (place - low)[:, None]
    return np.asarray(root[low] * (1 - part) + root[low + 1] * part)


def _along(axis: Axis, kernel: Any) -> tuple[Array, Array]:
    """Functions along one input, times the roots of their variances, and fractions of the whole.

    On the grid, or at the levels; and how much of the variance the first ones have.
    """
    if axis == LINE:
        return _of_one_input(type(kernel), kernel.linear, kernel.length)
    functions = axis_functions(axis, [kernel])
    variances = functions.decays[0]
    values = functions.mix[1:].T
    if not axis.levels:
        values = legendre(np.linspace(-1, 1, _GRID)) @ values
    return values * np.sqrt(variances), np.minimum(np.cumsum(variances), 1.0)


@memo(4)
def _of_one_input(kind: Any, linear: float, length: float) -> tuple[Array, Array]:
    """Eigenfunctions on the grid, times the roots of their variances.

    And how much of the variance the first ones have.
    """
    grid = np.linspace(-1, 1, _GRID)
    values, vectors = np.linalg.eigh(
        kind(linear=linear, length=length).input_kernel(grid[:, None], grid)
    )
    values = np.maximum(values[::-1], 0.0)
    return vectors[:, ::-1] * np.sqrt(values), np.cumsum(values) / values.sum()
