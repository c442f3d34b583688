"""Staged residual releases: the statistic that Gaussian-process models release again and again. Proof: residuals.md.

A stage releases the Gram matrix of (φ(x), t): public features φ, those of a basis, and for each of p outputs the
residual of the last fit, clipped at its current scale r and brought to the length R of the features:

    t_j = (R/√p)/r_j · clip(y_j − φᵀw_j, ±r_j)

Records whose noise levels are known are weighted, φ and y alike, by low/level ≤ 1 (`privacy.levels`). So are, on request, records
whose features would be too long: shortened features alone would bend functions, and a straight line would be none any more.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from reticent.errors import BadInput
from reticent.maths.basis import GRID, Basis
from reticent.privacy.products import product
from reticent.privacy.staged import Head, StagedGram
from reticent.privacy.statistic import Counts, Sum

__all__ = ["Features", "InputCounts", "InputMoments", "ResidualGram", "WeightedGram", "in_steps", "stage"]

Array = NDArray[np.float64]


def _exactly(mix: Array, powers: Array) -> Array:
    return product(mix, powers, records="right")


@dataclass(frozen=True)
class Features(Head):
    """φ(u) = energy · basis(warp(u)), no longer than R; ``weighted``: times the record's weight, which follows its inputs.

    ``warp`` holds for each input the values, at equidistant places from −1 to 1, of a piecewise linear map of [−1, 1] to itself;
    () leaves the inputs as they are. ``constant``: the number of a function that is one everywhere. If it is given, what shortens
    a record's features is a weight of the record, which its outputs have too; it is read off that function. ``lines`` are further
    functions, slope·(u_j − middle) of inputs before their maps, each as (j, middle, slope).
    """

    basis: Basis
    energy: tuple[float, ...]
    radius2: float
    warp: tuple[tuple[float, ...], ...] = ()
    weighted: bool = False
    constant: int = -1
    lines: tuple[tuple[int, float, float], ...] = ()

    def __post_init__(self) -> None:
        if any(sum(v * v for v in row) > 4 * GRID**2 for mix in self.basis.mix for row in mix):
            raise BadInput("The functions of a basis are too long for an exact product: they must have length one.")

    @property
    def columns(self) -> int:
        """One for each basis function, and for each line."""
        return self.basis.size + len(self.lines)

    @property
    def norm2(self) -> Fraction:
        """R²."""
        return Fraction(self.radius2)

    @cached_property
    def _energy(self) -> Array:
        return np.array(self.energy)

    def rows(self, records: Array) -> Array:
        """φ of each record, times its weight if it has one. Outputs are not looked at."""
        phi = self.features(records)
        if self.weighted:
            phi *= self.weight(records)
        return phi

    def weight(self, records: Array) -> Array:
        """The weight of each record, as a column."""
        return records[:, self.basis.dimension : self.basis.dimension + 1]

    def functions(self, records: Array) -> Array:
        """What w are coefficients of: φ, or with a ``constant`` what it is before it is shortened."""
        return self.long(records) if self.constant >= 0 else self.features(records)

    def long(self, records: Array) -> Array:
        """φ before it is shortened."""
        phi = self.basis.evaluate(self.warped(records[:, : self.basis.dimension]), _exactly)
        if self.lines:
            phi = np.column_stack([phi, *((records[:, j] - middle) * slope for j, middle, slope in self.lines)])
        phi *= self._energy
        return phi

    def features(self, records: Array) -> Array:
        """φ at each row's inputs; column by column, so that a row does not depend on others."""
        phi = self.long(records)
        square = np.zeros(len(phi))
        for column in phi.T:
            square += column * column
        phi *= np.sqrt(self.radius2 / np.maximum(square, self.radius2))[:, None]
        return phi

    def warped(self, u: Array) -> Array:
        """The inputs after their monotone maps: a table look-up and a straight line between two knots."""
        if not self.warp:
            return u
        out = np.empty(u.shape)
        for j, knots in enumerate(self.warp):
            bins, table = len(knots) - 1, np.array(knots)
            place = (u[:, j] + 1.0) * (bins / 2)
            left = np.clip(np.floor(place), 0, bins - 1)
            low = left.astype(np.intp)
            value = table[low] + (table[low + 1] - table[low]) * (place - left)
            np.clip(value, -1.0, 1.0, out=out[:, j])
        return out

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> "Features":
        """Rebuild features from a release's plain lists."""
        warp = tuple(tuple(knots) for knots in fields["warp"])
        basis, energy = Basis.from_dict(fields["basis"]), tuple(fields["energy"])
        lines = tuple((j, middle, slope) for j, middle, slope in fields.get("lines", ()))
        return cls(basis, energy, fields["radius2"], warp, fields["weighted"], fields.get("constant", -1), lines)


@dataclass(frozen=True)
class InputMoments(Sum):
    """Σ u and Σ (u² − 1) of each input u in [−1, 1]; the 1 makes the rows shorter."""

    inputs: int

    @property
    def columns(self) -> int:
        """Two for each input."""
        return 2 * self.inputs

    @property
    def norm2(self) -> int:
        """u² + (1 − u²)² is at most 1."""
        return self.inputs

    def rows(self, records: Array) -> Array:
        """All inputs, then their squares less one; outputs are not looked at."""
        u = records[:, : self.inputs]
        return np.hstack([u, u * u - 1.0])


@dataclass(frozen=True)
class InputCounts(Counts):
    """For each input, how many records fall into each of equally wide bins of [−1, 1]."""

    inputs: int
    bins: int

    @property
    def groups(self) -> tuple[int, ...]:
        """One group of bins per input."""
        return (self.bins,) * self.inputs

    def cells(self, records: Array) -> Array:
        """The bin of each input; outputs are not looked at."""
        return np.floor((records[:, : self.inputs] + 1.0) * (self.bins / 2))


@dataclass(frozen=True)
class WeightedGram(StagedGram):
    """Abstract: Σ f fᵀ of f = (φ, t), with t from products φᵀw that are exact, one for each output or class."""

    weights: tuple[tuple[int, ...], ...]  # w of each, in steps of 2^-shift
    shift: int

    def __post_init__(self) -> None:
        if any(self.head_limit2 * sum(v * v for v in w) > 4**52 for w in self.weights):
            raise BadInput("The weights of a stage are too long for an exact product: choose a smaller shift.")

    @property
    def tail_columns(self) -> int:
        """One for each output or class."""
        return len(self.weights)

    @property
    def tail_norm2(self) -> Fraction:
        """R², as for the features; for all outputs together."""
        return Fraction(self.head.norm2)

    @cached_property
    def _weights(self) -> Array:
        return np.array(self.weights, dtype=np.float64).T


@dataclass(frozen=True)
class ResidualGram(WeightedGram):
    """Σ f fᵀ of f = (φ, t): one column of t for each of the p outputs, which are the last columns of a record."""

    head: Features
    output_reach: ClassVar[float] = 64.0  # residuals are clipped, so bounds of y that are too narrow need not hurt
    reach: tuple[float, ...]  # r of each output

    def tail(self, head: Array, records: Array) -> Array:
        """Scaled residuals; the prediction is an exact product of whole numbers."""
        t = product(head, self._weights, records="left")
        t *= 2.0 ** -(self.bits + self.shift)
        np.subtract(self._weighed(records[:, -t.shape[1] :], head, records), t, out=t)
        radius = math.sqrt(self.tail_norm2 / t.shape[1])
        for j, r in enumerate(self.reach):
            t[:, j] = np.clip(t[:, j], -r, r) * (radius / r)
        return t

    def _weighed(self, outputs: Array, head: Array, records: Array) -> Array:
        """Outputs with the weights of their records, which the constant's column of the head tells if there is one."""
        features = self.head
        if features.constant >= 0:
            one = 2.0**self.bits * features.energy[features.constant]  # the constant, of a record that counts whole
            return outputs * (head[:, features.constant, None] / one)
        return outputs * features.weight(records) if features.weighted else outputs


def stage(head: Features, W: Array, r: Sequence[float]) -> ResidualGram:
    """The statistic of one stage, weights in steps as fine as an exact product allows: ‖φ‖·‖w_j‖ < 2⁵² on the grid."""
    reach = tuple(float(v) for v in r)
    bits = ResidualGram(head, ((0,) * head.columns,) * len(W), 0, reach).bits
    return ResidualGram(head, *in_steps(W, head, bits), reach)


def in_steps(W: Array, head: Features, bits: int) -> tuple[tuple[tuple[int, ...], ...], int]:
    """Weights, a row for each output or class, as whole numbers of steps of 2^-shift; and the shift."""
    length = max(math.sqrt(head.radius2) * float(np.linalg.norm(W, axis=1).max()), 2.0**-40)
    shift = min(40, 51 - bits - math.ceil(math.log2(length)))
    return tuple(tuple(int(v) for v in w) for w in np.trunc(W * 2.0**shift)), shift
