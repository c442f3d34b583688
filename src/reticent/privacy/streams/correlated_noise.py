"""Correlated noise: how the noise of a stream's steps hangs together, and what that costs.

Proof: stream.md.

A factorisation of the running sums A = B·C has coefficients c_0 = 1, c_1, c_2, … (C is lower
triangular, C_ts = c_{t−s}). The noise of a step is u_t = ⌊N_t⌋ − Σ_{s<t} c_{t−s}·u_s, so that C·u
is white, and the running sum carries u_1 + … + u_t. A geometric correlation is c_i = ρⁱ, and
releases each step's own sum. A record moves C·x by at most its own sensitivity times the length of
C's first column, which is computed here, in integers, from the coefficients in use.

All noise is in grid steps: arrays of Python's unbounded integers (``dtype=object``), one for each
released coordinate, shape ``(size,)``.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from math import isqrt, sqrt
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from reticent.errors import BadInput
from reticent.privacy.statistics.enforced import Enforced

__all__ = [
    "COEFFICIENT_BITS",
    "BinaryTree",
    "BufferedToeplitz",
    "Correlation",
    "GeometricCorrelation",
    "IndependentNoise",
    "Integers",
    "Toeplitz",
    "copied",
]

COEFFICIENT_BITS = 30  # coefficients are integer multiples of 2^-30
_ONE = 1 << COEFFICIENT_BITS

Integers = NDArray[np.object_]


class Correlation(ABC):
    """Abstract: correlation of the noise of a stream's steps.

    ``next`` turns fresh noise into the noise of a step's release. ``memory`` is what it keeps from
    one step to the next: a list of noise vectors, empty before the first step.
    """

    running = True  # whether running sums are released, or each step's own sum
    limited = True  # whether the noise is made for a number of steps
    coefficients_in: ClassVar[tuple[str, ...]] = ()  # attributes that it is made of, in order
    stored_name: ClassVar[str]  # in states of streams: never to be changed

    @property
    def name(self) -> str:
        """What the remembered noise can be used for; another correlation has no use for it."""
        return self.stored_name

    def describe(self) -> dict[str, object]:
        """Return its kind and all its coefficients in plain JSON values, as states hash them."""
        return {"name": self.stored_name, **vars(self)}

    def correlated_mask(self, enforced: Enforced) -> NDArray[np.bool_]:
        """Which coordinates have correlated noise, shape ``(size,)``.

        The others' noise is drawn anew in every step.
        """
        return np.ones(enforced.size, dtype=bool)

    def description(self, memory: list[Integers]) -> dict[str, float]:
        """What a release says about the noise of the coming step."""
        return {}

    def relative_std(self, memory: list[Integers]) -> float:
        """Standard deviation of a release's noise, as a multiple of that of the fresh noise.

        Releases of running sums name the latter: 1.
        """
        return 1.0

    @abstractmethod
    def sensitivity_inflation(self, steps: int, size: int, sensitivity2: int) -> Fraction:
        """Factor on the squared sensitivity, at least.

        For ``size`` coordinates of squared sensitivity ``sensitivity2``, in squared grid steps.
        """

    def uncorrelated_sensitivity_inflation(
        self, steps: int, size: int, sensitivity2: int
    ) -> Fraction:
        """Return the same factor for coordinates without correlation beside ones that have it."""
        return Fraction(1)

    @abstractmethod
    def next(self, step: int, fresh: Integers, memory: list[Integers]) -> Integers:
        """Return the noise of step 1, 2, …; changes ``memory``."""


class IndependentNoise(Correlation):
    """Each step's own sum, with noise of its own."""

    running = False
    limited = False
    stored_name = "_Batches"

    def sensitivity_inflation(self, steps: int, size: int, sensitivity2: int) -> Fraction:
        """One: a record is in one step."""
        return Fraction(1)

    def next(self, step: int, fresh: Integers, memory: list[Integers]) -> Integers:
        """Return the fresh noise; there is no memory."""
        return fresh


class BinaryTree(Correlation):
    """Running sums by a binary tree.

    The sum up to t is made of at most one node per level, and each node has its own noise.
    """

    stored_name = "_Tree"

    def sensitivity_inflation(self, steps: int, size: int, sensitivity2: int) -> Fraction:
        """Levels of the tree: a record is in one node of each that is used."""
        return Fraction(steps.bit_length())

    def next(self, step: int, fresh: Integers, memory: list[Integers]) -> Integers:
        """Return the noise of the nodes that make up the sum; ``memory``: that of each node."""
        level = (step & -step).bit_length() - 1
        memory[:level] = [fresh * 0] * level  # nodes that the new one stands for
        memory[level : level + 1] = [fresh]
        total = memory[0]
        for node in memory[1:]:
            total = total + node
        return total


class Toeplitz(Correlation):
    """Any coefficients c_0 = 1, c_1, …, one for each step, in units of 2⁻³⁰.

    Remembers the noise of every step.
    """

    stored_name = "Toeplitz"
    coefficients_in = ("coefficients",)

    def __init__(self, coefficients: Sequence[int]) -> None:
        self.coefficients = tuple(int(c) for c in coefficients)
        if not self.coefficients or self.coefficients[0] != _ONE:
            raise BadInput("The coefficients of a factorisation begin with 1: give 2**30 first.")

    def sensitivity_inflation(self, steps: int, size: int, sensitivity2: int) -> Fraction:
        """The squared length of the first column."""
        if steps > len(self.coefficients):
            raise BadInput(
                f"There are {len(self.coefficients)} coefficients for {steps} steps: give one for "
                "each."
            )
        column2 = sum(c * c for c in self.coefficients[:steps])
        return _inflation(column2, steps, size, 1, sensitivity2)

    def next(self, step: int, fresh: Integers, memory: list[Integers]) -> Integers:
        """Return u_1 + … + u_t; remembers that sum and every u."""
        past = memory[1:]  # memory[0] is their sum
        back = self.coefficients[len(past) : 0 : -1]
        shared = sum((c * u for c, u in zip(back, past, strict=True)), start=fresh * 0)
        own = fresh - (shared >> COEFFICIENT_BITS)
        if memory:
            total = own + memory[0]
        else:
            total = own
        memory[:] = [total, *past, own]
        return total


class GeometricCorrelation(Correlation):
    """Each step's own sum, less ρ times the noise of the last step.

    u_t = ⌊N_t⌋ − ⌊ρ·⌊N_{t−1}⌋⌋, which is the factorisation c_i = ρⁱ; 0 ≤ ρ < 1 in units of 2⁻³⁰.
    Sums over several steps have less noise than with independent steps. Only coordinates that are
    worth adding up over steps take part (`Enforced.accumulates`).
    """

    running = False
    stored_name = "Echo"
    coefficients_in = ("back",)

    def __init__(self, back: int) -> None:
        self.back = int(back)
        if not 0 <= self.back < _ONE:
            raise BadInput("A geometric correlation takes back from 0 to less than 2**30 of 2**30.")

    @property
    def name(self) -> str:
        """With ρ: noise of one coefficient is of no use to another."""
        return f"{self.stored_name} {self.back}"

    def correlated_mask(self, enforced: Enforced) -> NDArray[np.bool_]:
        """Those that accumulate over steps."""
        return enforced.accumulates()

    def description(self, memory: list[Integers]) -> dict[str, float]:
        """How much of the last noise is taken back."""
        if memory:
            return {"echo": self.back / _ONE}
        return {"echo": 0.0}

    def relative_std(self, memory: list[Integers]) -> float:
        """√(1 + ρ²) in all steps but the first."""
        if memory:
            return sqrt(1 + (self.back / _ONE) ** 2)
        return 1.0

    def sensitivity_inflation(self, steps: int, size: int, sensitivity2: int) -> Fraction:
        """1/(1 − ρ²), the squared length of a column that never ends, rounded up."""
        column2 = -(-(_ONE**4) // (_ONE**2 - self.back**2))
        return _inflation(column2, steps, size, self._rounding, sensitivity2)

    def uncorrelated_sensitivity_inflation(
        self, steps: int, size: int, sensitivity2: int
    ) -> Fraction:
        """1, and what rounding moves correlated coordinates by.

        It comes on top of what a record moves all coordinates by.
        """
        return _inflation(_ONE**2, steps, size, self._rounding, sensitivity2)

    @property
    def _rounding(self) -> int:
        """Rounding of a coordinate, in grid steps: below 1/(1 − ρ)."""
        return _ONE // (_ONE - self.back) + 1

    def next(self, step: int, fresh: Integers, memory: list[Integers]) -> Integers:
        """Return u_t; remembers the fresh noise."""
        if memory:
            own = fresh - (self.back * memory[0] >> COEFFICIENT_BITS)
        else:
            own = fresh
        memory[:] = [fresh]
        return own


class BufferedToeplitz(Correlation):
    """c_i = Σ_j ω_j θ_j^(i−1): a few buffers remember all noise.

    Decays θ and weights ω in units of 2⁻³⁰; 0 ≤ θ < 1, ω ≥ 0.
    """

    stored_name = "Buffers"
    coefficients_in = ("decays", "weights")

    def __init__(self, decays: Sequence[int], weights: Sequence[int]) -> None:
        self.decays = tuple(map(int, decays))
        self.weights = tuple(map(int, weights))
        if (
            len(self.decays) != len(self.weights)
            or not all(0 <= d < _ONE for d in self.decays)
            or min(self.weights) < 0
        ):
            raise BadInput(
                "A factorisation by buffers has a decay in [0, 1) and a weight of at least 0 for "
                "each buffer."
            )

    def sensitivity_inflation(self, steps: int, size: int, sensitivity2: int) -> Fraction:
        """The squared length of the first column, rounded up."""
        powers = [_ONE] * len(self.decays)
        column2 = _ONE * _ONE
        for _ in range(steps - 1):
            weighted = sum(w * p for w, p in zip(self.weights, powers, strict=True))
            c = -(-weighted >> COEFFICIENT_BITS)  # rounded up
            column2 += c * c
            powers = [
                -(-d * p >> COEFFICIENT_BITS) for d, p in zip(self.decays, powers, strict=True)
            ]
        # Every step, ⌊·⌋ loses at most one in each buffer, and what was lost decays with it.
        lost = sum(
            w * min(steps, _ONE // (_ONE - d) + 1)
            for w, d in zip(self.weights, self.decays, strict=True)
        )
        return _inflation(column2, steps, size, (lost >> COEFFICIENT_BITS) + 2, sensitivity2)

    def next(self, step: int, fresh: Integers, memory: list[Integers]) -> Integers:
        """Return u_1 + … + u_t; remembers that sum and Σ_s θ^(t−s)·u_s."""
        if not memory:
            memory[:] = [fresh * 0] * (1 + len(self.decays))
        total, *buffers = memory
        shared = sum((w * b for w, b in zip(self.weights, buffers, strict=True)), start=fresh * 0)
        own = fresh - (shared >> COEFFICIENT_BITS)
        decayed = [d * b >> COEFFICIENT_BITS for d, b in zip(self.decays, buffers, strict=True)]
        memory[:] = [total + own, *(buffer + own for buffer in decayed)]
        return memory[0]


def _inflation(column2: int, steps: int, size: int, rounding: int, sensitivity2: int) -> Fraction:
    """(‖column‖·Δ + 2·rounding·√(steps·size))² / Δ², rounded up.

    ``rounding`` is that of one coordinate in one step. All in grid steps, ``column2`` in units of
    2⁻⁶⁰.
    """
    length = isqrt(column2 * sensitivity2) + 1  # ‖column‖·Δ·2^30
    rounded = 2 * rounding * (isqrt(steps * size) + 1) << COEFFICIENT_BITS
    return Fraction((length + rounded) ** 2, sensitivity2 << 2 * COEFFICIENT_BITS)


_PROVED: tuple[type[Correlation], ...] = (
    IndependentNoise,
    BinaryTree,
    Toeplitz,
    GeometricCorrelation,
    BufferedToeplitz,
)


def copied(correlation: Correlation) -> Correlation:
    """Make a correlation of the same kind and coefficients anew.

    Nobody else holds it, and its methods are those that are proved.
    """
    for kind in _PROVED:
        if type(correlation) is kind:
            return kind(*(getattr(correlation, name) for name in kind.coefficients_in))
    known = ", ".join(kind.__name__ for kind in _PROVED)
    raise BadInput(
        f"correlation must be one of {known}: only these are proved.", parameter="correlation"
    )
