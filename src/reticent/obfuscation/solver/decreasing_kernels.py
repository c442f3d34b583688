"""Kernels that fall with distance.

For these, and no others, a promise on a region is known to hold between checked points. A kernel
falls with distance, as far as δ, if K(s, s′) = φ(|s₁ − s′₁|, …, |s_d − s′_d|) is a covariance with
a φ ≥ 0 that grows in none of its arguments, each from 0 to its δᵢ. Then the variance of f(s) −
f(s′), 2(φ(0) − φ(|s − s′|)), is largest at the corners of the box of half widths δ around s, and
the same at all of them.

The kernels below do, by their formulas. Sums, products and whole powers of kernels that fall with
distance do, because sums and products of non-negative functions that do not grow are such
functions, and those of covariances are covariances. Classes are compared by identity: a subclass
may compute something else under the same name.
"""

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    Exponentiation,
    ExpSineSquared,
    Kernel,
    Matern,
    Product,
    RationalQuadratic,
    Sum,
    WhiteKernel,
)

from reticent.obfuscation.solver.covariance import between

__all__ = ["check_falls_with_distance", "largest_difference"]

Array = NDArray[np.float64]
_SMOOTHNESS = (0.5, 1.5, 2.5, np.inf)  # others are not computed accurately near distance 0
_POSITIVE = np.finfo(np.float64).tiny
# more than one step of a kernel's formula loses, relative to φ(0)
_STEP = 32 * np.finfo(np.float64).eps
_LIST = (
    "RBF, Matern with nu 0.5, 1.5, 2.5 or inf, RationalQuadratic, ExpSineSquared of one input, "
    "ConstantKernel, WhiteKernel, and sums, products and whole powers of these"
)


def check_falls_with_distance(kernel: Kernel, columns: int, farthest: float = 0.0) -> float:
    """Refuse a kernel that is not known to fall with distance.

    Give the number of steps in its formula.

    ``columns``: the number of inputs. ``farthest``: the largest distance that matters, in the
    inputs' unit, for periods. ValueError says what to do instead. Steps are counted so that each
    loses less than ``_STEP`` by rounding.
    """
    kind = type(kernel)
    if kind is Sum or kind is Product:
        first = check_falls_with_distance(kernel.k1, columns, farthest)
        return 1 + first + check_falls_with_distance(kernel.k2, columns, farthest)
    if kind is Exponentiation and _whole_power(kernel.exponent):
        return float(kernel.exponent) * (
            1 + check_falls_with_distance(kernel.kernel, columns, farthest)
        )
    if (
        kind is ConstantKernel
        and np.ndim(kernel.constant_value) == 0
        and _all_at_least(kernel.constant_value, 0.0)
    ):
        return 1.0
    if kind is WhiteKernel:  # no part of the function: zero between any two of its values
        return 1.0
    if kind is RBF and _all_at_least(kernel.length_scale, _POSITIVE):
        return 1.0
    if (
        kind is Matern
        and kernel.nu in _SMOOTHNESS
        and _all_at_least(kernel.length_scale, _POSITIVE)
    ):
        return 1.0
    if kind is RationalQuadratic and _all_at_least([kernel.alpha, kernel.length_scale], _POSITIVE):
        return 1.0 + float(kernel.alpha)  # (1 + t)^−α multiplies what 1 + t loses by α
    if kind is ExpSineSquared and columns == 1:
        _check_period(kernel, farthest)
        return 1.0
    raise ValueError(
        f"regions need a kernel that is known to fall with distance, and {kind.__name__} as it is "
        "given is not: a region is checked at about 10,000 points, and must hold between them too. "
        f"Take {_LIST}; or give the sensitive values as points, for example sensitive=[0.4, 0.41, "
        "0.42], and the promise is for these points"
    )


def largest_difference(kernel: Kernel, far: Array) -> Array:
    """Largest prior standard deviation of f(s) − f(s′) for |s − s′| ≤ ``far`` in each input.

    ``far``: (g, d), in units of the inputs. One number for each row.
    """
    steps = check_falls_with_distance(
        kernel, far.shape[1], float(np.linalg.norm(far, axis=1).max())
    )
    origin = np.zeros((1, far.shape[1]))
    variance = between(kernel, origin, origin)[0, 0]
    difference = 2 * (variance - between(kernel, origin, far)[0])
    return np.asarray(np.sqrt(np.maximum(difference, 0.0) + _STEP * steps * variance))


def _check_period(kernel: ExpSineSquared, farthest: float) -> None:
    """|sin(πr/p)| grows up to r = p/2: a cell must be far from holding a period."""
    if not _all_at_least([kernel.length_scale, kernel.periodicity], _POSITIVE):
        raise ValueError(
            "the period and the length scale of ExpSineSquared must be positive numbers"
        )
    if float(kernel.periodicity) < 4 * farthest:
        raise ValueError(
            f"the kernel's period {kernel.periodicity:g} is too short for these regions, whose "
            f"cells are {2 * farthest:g} wide: split the regions, or give points"
        )


def _whole_power(exponent: float) -> bool:
    return bool(
        np.ndim(exponent) == 0
        and exponent >= 1
        and exponent == np.floor(exponent)
        and np.isfinite(exponent)
    )


def _all_at_least(values: object, least: float) -> bool:
    numbers = np.asarray(values, dtype=np.float64)
    return bool(np.isfinite(numbers).all() and (numbers >= least).all())
