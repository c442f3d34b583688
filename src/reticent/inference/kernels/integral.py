"""Integral kernels: covariances between averages of a Gaussian process over boxes, in closed form.

A stationary kernel is written as a mixture of Gaussians in every dimension,

    k(x, x′) = Σ_t c_t Π_j exp(−p_tj (x_j − x′_j)²/2),

one term for an RBF kernel, none of its lengths for a constant (p = 0), and a quadrature of a scale
mixture for Matérn, k(r) = E exp(−r²/(2ℓ²w)) with w ~ Gamma(ν, ν), and rational quadratic kernels,
k(r) = E exp(−w r²/(2ℓ²)) with w ~ Gamma(α, α): the trapezoidal rule in log w converges
exponentially. Averages over boxes are then products over dimensions of

    average over [s,t]×[s′,t′] = (H(t−s′) − H(s−s′) − H(t−t′) + H(s−t′)) / ((t−s)(t′−s′)),
    average over [s,t] at x    = (E(t−x) − E(s−x)) / (t−s),
    with E = H′ and H″(z) = exp(−pz²/2),

E(z) = √(π/2p)·erf(z√(p/2)), H(z) = z·E(z) + (exp(−pz²/2) − 1)/p. (Eq 1 of the DP-GP paper, with one
factor α, and with a constant taken from H so that narrow boxes lose no digits.) Derivatives are by
log p: ∂H = −zE/2 − (exp(−pz²/2) − 1)/p.

Along words nothing is integrated: p = ∞ stands for "the same word", and boxes hold whole words,
each of width one. Of a box with L words, a word has the share 1/L.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, erf, gammaln
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    Kernel,
    Matern,
    Product,
    RationalQuadratic,
    Sum,
)

from reticent.inference.kernels.columns import Levels, OnColumns
from reticent.inference.kernels.settings import INTEGRAL
from reticent.memo import memo

__all__ = ["BoxPairs", "Boxes", "KernelMixture", "box_covariance", "box_pairs", "kernel_mixture"]

Array = NDArray[np.float64]
Index = NDArray[np.intp]


@dataclass(frozen=True)
class Boxes:
    """Boxes [low, high), a row each; or points, where both are the same."""

    low: Array
    high: Array

    @classmethod
    def points(cls, X: Array) -> "Boxes":
        """Points as boxes without a volume."""
        return cls(X, X)

    @property
    def are_points(self) -> bool:
        """Whether these are points."""
        return self.low is self.high

    @property
    def volumes(self) -> Array:
        """Their volumes."""
        return np.prod(self.high - self.low, axis=1)

    def __len__(self) -> int:
        return len(self.low)


@dataclass(frozen=True)
class KernelMixture:
    """A kernel as a mixture of Gaussians.

    Logarithms of the weights, inverse squared lengths, and what θ does to either.
    """

    log_weights: Array  # (terms,)
    inverse: Array  # (terms, dimensions): p, 0 for a constant, ∞ for the same word
    d_weights: Array  # (terms, parameters): ∂ log weight
    d_inverse: Array  # (terms, dimensions, parameters): ∂ log p

    @property
    def variance(self) -> float:
        """k(x, x)."""
        return float(np.exp(self.log_weights).sum())


def kernel_mixture(
    kernel: Kernel, dimension: int, theta: Array | None = None, *, coarse: bool = False
) -> KernelMixture:
    """Write a kernel, or that kernel with other parameters θ, as a mixture.

    ValueError for kernels that are none, or with lengths for another number of dimensions.
    ``coarse``: with few Gaussians, for a prior that nobody gave: a kernel still, of nearly the
    same shape.
    """
    values = iter(kernel.theta if theta is None else theta)
    return _mixture(kernel, dimension, values, coarse)


def _mixture(kernel: Kernel, dimension: int, theta: Iterator[float], coarse: bool) -> KernelMixture:
    """The same, taking from θ what it needs.

    First k1, then k2, and by name, as scikit-learn has them.
    """
    if isinstance(kernel, (Sum, Product)):
        a = _mixture(kernel.k1, dimension, theta, coarse)
        return (_sum_mixture if isinstance(kernel, Sum) else _product_mixture)(
            a, _mixture(kernel.k2, dimension, theta, coarse)
        )
    if type(kernel) is ConstantKernel:
        value, free = _take_hyperparameter(kernel, "constant_value", theta)
        return KernelMixture(
            np.log(value),
            np.zeros((1, dimension)),
            np.ones((1, free)),
            np.zeros((1, dimension, free)),
        )
    if type(kernel) is Levels:
        return _levels_mixture(kernel, dimension, theta)
    if type(kernel) is OnColumns:
        inner = _mixture(kernel.kernel, len(kernel.columns), theta, coarse)
        return _on_columns(inner, kernel, dimension)
    if type(kernel) not in (RBF, Matern, RationalQuadratic):
        raise ValueError(f"{type(kernel).__name__} has no integral in closed form here.")
    log_w = np.zeros(1)
    log_c = np.zeros(1)
    by_shape = np.zeros((1, 0))
    if isinstance(kernel, RationalQuadratic):
        shape, free = _take_hyperparameter(kernel, "alpha", theta)
        log_w, log_c, slope = _gamma(float(shape[0]), coarse)
        by_shape = np.tile(slope[:, None], free)
    elif isinstance(kernel, Matern) and math.isfinite(kernel.nu):
        log_w, log_c, _ = _gamma(float(kernel.nu), coarse)
        log_w, by_shape = -log_w, np.zeros((len(log_w), 0))
    lengths, free = _take_hyperparameter(kernel, "length_scale", theta)
    inverse = np.exp(log_w)[:, None] * np.broadcast_to(lengths, (dimension,)) ** -2.0
    if free not in (0, 1, dimension):
        raise ValueError(f"{free} length scales do not fit {dimension} inputs.")
    by_length = -2.0 * (np.eye(dimension) if free > 1 else np.ones((dimension, free)))
    nothing = np.zeros((dimension, by_shape.shape[1]))
    d_inverse = np.tile(np.hstack([nothing, by_length]), (len(log_w), 1, 1))
    return KernelMixture(
        log_c, inverse, np.hstack([by_shape, np.zeros((len(log_w), free))]), d_inverse
    )


def _levels_mixture(kernel: Levels, dimension: int, theta: Iterator[float]) -> KernelMixture:
    """All words alike with the weight of their correlation, and each by itself with the rest."""
    value, free = _take_hyperparameter(kernel, "correlation", theta)
    alike = float(value[0])
    inverse = np.zeros((2, dimension))
    inverse[1, kernel.column] = math.inf
    d_weights = np.tile([[1.0], [-alike / (1 - alike)]], (1, free))
    nothing = np.zeros((2, dimension, free))
    if alike == 0:
        return KernelMixture(np.zeros(1), inverse[1:], d_weights[1:], nothing[1:])
    return KernelMixture(np.log([alike, 1 - alike]), inverse, d_weights, nothing)


def _on_columns(m: KernelMixture, kernel: OnColumns, dimension: int) -> KernelMixture:
    """A mixture along some of the inputs, constant along the others."""
    columns = list(kernel.columns)
    inverse = np.zeros((len(m.inverse), dimension))
    inverse[:, columns] = m.inverse
    d_inverse = np.zeros((len(m.inverse), dimension, m.d_inverse.shape[2]))
    d_inverse[:, columns] = m.d_inverse
    return KernelMixture(m.log_weights, inverse, m.d_weights, d_inverse)


def _take_hyperparameter(kernel: Kernel, name: str, theta: Iterator[float]) -> tuple[Array, int]:
    """A hyperparameter's value, from θ if it is free; and how many numbers of θ it has."""
    hyperparameter = getattr(kernel, f"hyperparameter_{name}")
    if hyperparameter.fixed:
        return np.atleast_1d(np.asarray(getattr(kernel, name), dtype=np.float64)), 0
    return np.exp(
        [next(theta) for _ in range(hyperparameter.n_elements)]
    ), hyperparameter.n_elements


def _sum_mixture(a: KernelMixture, b: KernelMixture) -> KernelMixture:
    terms, free = a.d_weights.shape
    d_weights = np.zeros((terms + len(b.log_weights), free + b.d_weights.shape[1]))
    d_inverse = np.zeros((len(d_weights), a.inverse.shape[1], d_weights.shape[1]))
    d_weights[:terms, :free], d_weights[terms:, free:] = a.d_weights, b.d_weights
    d_inverse[:terms, :, :free], d_inverse[terms:, :, free:] = a.d_inverse, b.d_inverse
    log_weights = np.concatenate([a.log_weights, b.log_weights])
    return KernelMixture(log_weights, np.vstack([a.inverse, b.inverse]), d_weights, d_inverse)


def _product_mixture(a: KernelMixture, b: KernelMixture) -> KernelMixture:
    i, j = (index.ravel() for index in np.indices((len(a.log_weights), len(b.log_weights))))
    if len(i) > INTEGRAL.max_terms:
        raise ValueError("The product has too many terms.")
    inverse = a.inverse[i] + b.inverse[j]
    smooth = (inverse > 0) & np.isfinite(inverse)
    fraction = np.divide(a.inverse[i], inverse, out=np.zeros_like(inverse), where=smooth)[
        :, :, None
    ]
    d_inverse = np.concatenate([fraction * a.d_inverse[i], (1 - fraction) * b.d_inverse[j]], axis=2)
    return KernelMixture(
        a.log_weights[i] + b.log_weights[j],
        inverse,
        np.hstack([a.d_weights[i], b.d_weights[j]]),
        d_inverse,
    )


@memo(64)
def _gamma(shape: float, coarse: bool) -> tuple[Array, Array, Array]:
    """Nodes log w, log weights c of E over w ~ Gamma(shape, rate shape), and ∂ c / ∂ log shape."""
    step = min(INTEGRAL.mixture_step, INTEGRAL.shape_step / math.sqrt(shape))
    error = INTEGRAL.mixture_error
    if coarse:
        step *= INTEGRAL.coarse_factor
        error = INTEGRAL.coarse_error
    low = (math.log(error) + gammaln(shape + 1) - shape * math.log(shape)) / shape
    high = math.log1p(-math.log(error) / shape + 8 / math.sqrt(shape))
    x = np.arange(math.floor(low / step), math.ceil(high / step) + 1) * step
    if len(x) > INTEGRAL.max_terms:
        raise ValueError("The kernel is too rough.")
    log_c = shape * math.log(shape) - gammaln(shape) + shape * (x - np.exp(x)) + math.log(step)
    by_shape = shape * (math.log(shape) + 1 - float(digamma(shape)) + x - np.exp(x))
    if coarse:
        heavy = log_c > math.log(error)
        return x[heavy], log_c[heavy], by_shape[heavy]
    return x, log_c, by_shape


@dataclass(frozen=True)
class BoxPairs:
    """Pairs of boxes or points, by their differences in each dimension.

    Made once, for all kernels.
    """

    size: tuple[int, int]
    dimensions: "list[_Differences]"


@dataclass(frozen=True)
class _Differences:
    """Of one input: a signed sum of antiderivatives at differences, over a width.

    And which pair has which row and column.
    """

    # how many antiderivatives are taken: 2 between boxes, 1 from boxes to points, 0 between points
    order: int
    tables: list[tuple[int, Array, Index]]  # sign; different differences; where each of them stands
    farthest2: list[Array]  # largest squared difference: of all pairs, (1,), or of each column
    width: Array
    rows: Index
    columns: Index
    separately: bool  # whether columns are worked out without regard to each other
    same_word: Array  # chance that a word of one and a word of the other are the same


def box_pairs(a: Boxes, b: Boxes, *, separately: bool = False) -> BoxPairs:
    """All pairs of ``a`` and ``b``.

    ``separately``: no number of one of ``b`` depends on another one's, not in its last digit: they
    may be records that a search scores.
    """
    pairs = [_differences(a, b, j, separately) for j in range(a.low.shape[1])]
    return BoxPairs((len(a), len(b)), pairs)


def _differences(a: Boxes, b: Boxes, j: int, separately: bool) -> _Differences:
    one, rows = _different_intervals(a, j)
    if separately:
        two = np.column_stack([b.low[:, j], b.high[:, j]])
        columns = np.arange(len(b))
    else:
        two, columns = _different_intervals(b, j)
    s = one[:, :1]
    t = one[:, 1:]
    u = two[:, 0]
    v = two[:, 1]
    width: Array
    if a.are_points:
        if not b.are_points:
            tables = [(1, v - s), (-1, u - s)]
            width = v - u
        else:
            tables = [(1, s - u)]
            width = np.ones(1)
    elif b.are_points:
        tables = [(1, t - u), (-1, s - u)]
        width = t - s
    else:
        tables = [(1, t - u), (-1, s - u), (-1, t - v), (1, s - v)]
        width = (t - s) * (v - u)
    found = []
    farthest2 = []
    for sign, table in tables:
        if separately:
            found.append((sign, table.ravel(), np.arange(table.size).reshape(table.shape)))
            farthest2.append(np.square(table).max(axis=0))
        else:
            z, where = np.unique(table, return_inverse=True)  # in a grid, few are different
            found.append((sign, z, where.reshape(table.shape)))
            farthest2.append(np.maximum(z[:1] ** 2, z[-1:] ** 2))
    order = 2 - a.are_points - b.are_points
    same_word = _same_word(s, t, u, v)
    rows, columns = rows.ravel(), columns.ravel()
    return _Differences(order, found, farthest2, width, rows, columns, separately, same_word)


def _same_word(s: Array, t: Array, u: Array, v: Array) -> Array:
    """Overlap of [s, t] and [u, v], over both their widths; points are words of width one."""
    s, t, u, v = (
        np.where(s == t, np.rint(s) - 0.5, s),
        np.where(s == t, np.rint(t) + 0.5, t),
        np.where(u == v, np.rint(u) - 0.5, u),
        np.where(u == v, np.rint(v) + 0.5, v),
    )
    overlap = np.maximum(np.minimum(t, v) - np.maximum(s, u), 0.0)
    return np.asarray(overlap / ((t - s) * (v - u)))


def _different_intervals(boxes: Boxes, j: int) -> tuple[Array, Index]:
    """The different intervals along input j, (intervals, 2), and the one of each box."""
    intervals = np.column_stack([boxes.low[:, j], boxes.high[:, j]])
    return np.unique(intervals, axis=0, return_inverse=True)


def box_covariance(
    m: KernelMixture, among: BoxPairs, *, gradient: bool = False
) -> tuple[Array, Array]:
    """Covariances between averages over boxes, or values at points, and their derivatives by θ.

    Arrays (a, b) and (a, b, parameters); the second is empty without ``gradient``.
    """
    if gradient:
        parameters = m.d_weights.shape[1]
    else:
        parameters = 0
    if len(among.dimensions) == 1 and np.isfinite(m.inverse).all():
        (along,) = among.dimensions
        if not along.separately:
            return _along_one_input(m, along, parameters)
    tables = [
        _factors(m.inverse[:, j], differences, gradient)
        for j, differences in enumerate(among.dimensions)
    ]
    total = np.zeros(among.size)
    slopes = np.zeros((*among.size, parameters))
    for t, weight in enumerate(np.exp(m.log_weights)):
        parts = [values[t] for values, _ in tables]
        whole = weight * reduce(np.multiply, parts)
        total += whole
        for k in range(parameters):
            if m.d_weights[t, k]:
                slopes[:, :, k] += m.d_weights[t, k] * whole
            for j, by_p in enumerate(m.d_inverse[t, :, k]):
                if by_p:
                    slopes[:, :, k] += (weight * by_p) * reduce(
                        np.multiply, parts[:j] + parts[j + 1 :], tables[j][1][t]
                    )
    return total, slopes


def _along_one_input(m: KernelMixture, along: _Differences, parameters: int) -> tuple[Array, Array]:
    """The same for one input of numbers: terms add up before they are spread over all pairs."""
    weights = np.exp(m.log_weights)
    total: Array | float = 0.0
    for (sign, z, where), (farthest2,) in zip(along.tables, along.farthest2, strict=True):
        sums = np.zeros((1 + parameters, len(z)))
        for t, weight in enumerate(weights):
            p = float(m.inverse[t, 0])
            if p * farthest2 > INTEGRAL.constant_exponent:
                value, by_p = _antiderivative(z, p, along.order)
            else:
                value = z**along.order / max(along.order, 1)
                by_p = np.zeros(len(z))
            sums[0] += weight * value
            for k in range(parameters):
                sums[1 + k] += weight * (m.d_weights[t, k] * value + m.d_inverse[t, 0, k] * by_p)
        total = total + sign * sums[:, where]
    tables = np.array([_expand_to_boxes(table, along) for table in np.asarray(total)])
    return tables[0], np.moveaxis(tables[1:], 0, -1)


def _factors(p: Array, along: _Differences, gradient: bool) -> tuple[list[Array], list[Array]]:
    """For each term the averages along one input, and their derivatives by log p."""
    values = []
    derivatives = []
    for inverse in p:
        if math.isinf(inverse):
            values.append(along.same_word[along.rows][:, along.columns])
            derivatives.append(np.zeros(1))
            continue
        value = np.zeros(1)
        derivative = np.zeros(1)
        for (sign, z, where), farthest2 in zip(along.tables, along.farthest2, strict=True):
            varies = inverse * farthest2 > INTEGRAL.constant_exponent
            part = np.zeros(1)
            if not varies.all():  # a constant
                part = (sign * (z**along.order / max(along.order, 1)))[where]
            if varies.any():
                first, second = _antiderivative(z, float(inverse), along.order)
                part = np.where(varies, (sign * first)[where], part)
                if gradient:
                    derivative = derivative + np.where(varies, (sign * second)[where], 0.0)
            value = value + part
        values.append(_expand_to_boxes(value, along))
        derivatives.append(
            _expand_to_boxes(derivative, along) if gradient and derivative.ndim > 1 else derivative
        )
    return values, derivatives


def _expand_to_boxes(table: Array, along: _Differences) -> Array:
    """From different intervals to all boxes."""
    return np.asarray((table / along.width)[along.rows][:, along.columns])


def _antiderivative(z: Array, p: float, order: int) -> tuple[Array, Array]:
    """The order-fold antiderivative of exp(−pz²/2) and its derivative by log p."""
    bell = np.exp(-p * z * z / 2)
    if order == 0:
        return bell, -p * z * z / 2 * bell
    E = math.sqrt(math.pi / (2 * p)) * erf(z * math.sqrt(p / 2))
    if order == 1:
        return E, (z * bell - E) / 2
    remainder = np.expm1(-p * z * z / 2) / p
    return z * E + remainder, -(z * E / 2 + remainder)
