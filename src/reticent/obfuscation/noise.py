"""Noise of a released curve: W = ⌊y + Fg + √floor·g′⌋ on a grid, g and g′ normal.

Inferential privacy, **not differential privacy**. The noise is drawn exactly, from the operating
system's randomness: g and g′ to 2⁻⁹⁶, as integers, and all sums are of integers. So W is y plus
*real-valued Gaussian* noise of the stated covariance, rounded down: post-processing of it, which
can only leave more uncertainty. (But for a probability below 2⁻⁶⁰ that the bits beyond the 96th
would change a digit.) Proof: obfuscation/obfuscator.md.
"""

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.errors import BadInput
from reticent.privacy.noise import floor_noise, scale_at_least
from reticent.privacy.random_bits import Bits

__all__ = ["grid_step", "obfuscated"]

_BITS = 96  # of a standard normal number behind the point
_DIGITS = 60  # of the factor's entries, relative to the largest: more than float64 has for that one


def grid_step(floor: float) -> float:
    """The grid of released values.

    The largest power of two not above the standard deviation of the floor.
    """
    return 2.0 ** math.floor(math.log2(floor) / 2)


def obfuscated(
    y: NDArray[np.float64], factor: NDArray[np.float64], floor: float, *, seed: bytes | None = None
) -> NDArray[np.float64]:
    """y (n,) with exact Gaussian noise of covariance factor·factorᵀ + floor·I, on a grid.

    ``factor`` has shape (n, r). Sums are rounded down; the middle of the grid cell is returned.
    Every call draws anew: whoever releases must not call it twice for the same data.
    """
    if y.ndim != 1 or factor.ndim != 2 or len(factor) != len(y) or not floor > 0:
        raise BadInput("A curve of n values needs a factor with n rows and a floor above zero.")
    if not (np.isfinite(y).all() and np.isfinite(factor).all() and np.isfinite(floor)):
        raise BadInput("Noise can be added to finite numbers only.")
    largest = float(np.abs(factor).max(initial=0.0)) or 1.0
    # entries of the factor are integers times 2^−exponent
    exponent = _DIGITS - math.frexp(largest)[1]
    unit = Fraction(2) ** (exponent + _BITS)  # all sums are in steps of 1/unit
    bits = Bits(seed)
    white = floor_noise("gaussian", scale_at_least(Fraction(4) ** _BITS), factor.shape[1], bits)
    own = floor_noise("gaussian", scale_at_least(Fraction(floor) * unit**2), len(y), bits)
    white = white.astype(object)  # sums are in Python's integers
    own = own.astype(object)
    step = grid_step(floor)
    cell = unit * Fraction(step)
    if cell.denominator != 1:
        raise BadInput("The floor is too small beside the noise.")
    whole = _scaled_integers(factor, exponent)
    sums = own + (whole @ white if factor.shape[1] else 0)
    cells = [
        (math.floor(Fraction(float(value)) * unit) + int(noise)) // int(cell)
        for value, noise in zip(y, sums, strict=True)
    ]
    return np.array([(float(cell_number) + 0.5) * step for cell_number in cells])


def _scaled_integers(values: NDArray[np.float64], exponent: int) -> NDArray[Any]:
    """⌊v·2^exponent⌉ as Python integers."""
    mantissa, power = np.frexp(values)
    whole = (mantissa * 2.0**53).astype(np.int64).astype(object)
    shift = power + exponent - 53
    left = np.maximum(shift, 0).astype(object)
    right = np.minimum(-np.minimum(shift, 0), 200).astype(object)
    return np.asarray((whole << left) >> right)
