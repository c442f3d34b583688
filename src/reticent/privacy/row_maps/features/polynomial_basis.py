"""A public basis of functions on the box [−1, 1]ᵈ that serves every kernel.

In one dimension: eigenfunctions of a reference kernel under the uniform law, ψ_i = Σ_k Q_ik p_k,
with p_k = √(2k+1)·P_k the orthonormal Legendre polynomials. In d dimensions: products
ψ_{i₁}(u₁)⋯ψ_{i_d}(u_d), orthonormal again. A kernel enters only as the prior covariance of the
coefficients, by projection on public points; so one release serves every kernel and hyperparameter.
Of an input with L levels, which are the middles of L equal bins of [−1, 1], functions are tables of
L values.

Polynomials and integers make the row map exact: p_k comes from a recurrence of IEEE operations,
elementwise; Q is made of integers; their product is a matrix product of whole numbers below 2⁵³,
which has the same bits wherever a row stands. A table is looked up by level.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Basis", "legendre", "level_of"]

Array = NDArray[np.float64]
DEGREE = 31  # of the polynomials; a lengthscale of a tenth of the half-box is resolved to 1e-3
HIGHEST_DEGREE = 127  # where shorter ones are asked for
GRID = 2.0**22  # of p_k and Q: ‖p‖ ≤ 128 and ‖Q_i‖ ≤ 2 keep their products within 2^52


def legendre(u: Array, degree: int = DEGREE, scale: float = 1.0) -> Array:
    """scale·p_0 … scale·p_degree at each u, as columns: elementwise operations only."""
    p = np.empty((degree + 1, len(u)))  # one polynomial after the other: long vectors are fast
    p[0], term = scale, np.empty(len(u))
    for k in range(degree):  # (k+1)·p_{k+1}/√(2k+3) = √(2k+1)·u·p_k − k·p_{k−1}/√(2k−1)
        np.multiply(p[k], u, out=p[k + 1])
        p[k + 1] *= math.sqrt((2 * k + 3) * (2 * k + 1)) / (k + 1)
        if k:
            np.multiply(p[k - 1], math.sqrt((2 * k + 3) / (2 * k - 1)) * k / (k + 1), out=term)
            p[k + 1] -= term
    return p.T


def level_of(u: Array, levels: int) -> NDArray[np.intp]:
    """Which of so many equal bins of [−1, 1] each u lies in: elementwise operations only."""
    bins = np.clip(np.floor((u + 1.0) * (levels / 2)), 0, levels - 1)
    return np.asarray(bins.astype(np.intp))


@dataclass(frozen=True)
class Basis:
    """m product functions.

    ``mix`` holds Q·2²² of each dimension, ``index`` which one-dimensional functions are multiplied.
    ``levels``: the number of levels of each dimension, 0 where it has none; () if none has. There
    ``mix`` holds the functions' values at the levels, times 2²².
    """

    mix: tuple[tuple[tuple[int, ...], ...], ...]
    index: tuple[tuple[int, ...], ...]
    levels: tuple[int, ...] = ()

    @property
    def dimension(self) -> int:
        """Number of inputs."""
        return len(self.mix)

    @property
    def size(self) -> int:
        """Number of functions."""
        return len(self.index)

    @cached_property
    def levels_of(self) -> tuple[int, ...]:
        """Number of levels of each dimension, 0 where it has none."""
        return self.levels or (0,) * self.dimension

    @cached_property
    def _mix(self) -> dict[int, Array]:
        """Q·2²² of each dimension without levels, up to the highest degree that is used at all."""
        whole = {
            j: np.array(mix, dtype=np.float64)
            for j, mix in enumerate(self.mix)
            if not self.levels_of[j]
        }
        degrees = 1 + max(
            (int(np.nonzero(mix)[1].max(initial=0)) for mix in whole.values()), default=0
        )
        return {j: np.ascontiguousarray(mix[:, :degrees]) for j, mix in whole.items()}

    @cached_property
    def _tables(self) -> dict[int, Array]:
        """Values (functions, levels) of each dimension with levels."""
        return {
            j: np.array(self.mix[j], dtype=np.float64) * (1 / GRID)
            for j, levels in enumerate(self.levels_of)
            if levels
        }

    @cached_property
    def _products(self) -> list[tuple[int, int, int, int]]:
        """Products to form one after the other.

        Each: of which earlier one, dimension, function there, which result or −1.

        Products that begin with the same factors share them; a factor that is exactly one is left
        out.
        """
        one = [
            [
                all(v == GRID for v in row) if levels else row[0] == GRID and not any(row[1:])
                for row in mix
            ]
            for mix, levels in zip(self.mix, self.levels_of, strict=True)
        ]
        known: dict[tuple[tuple[int, int], ...], int] = {}
        products: list[tuple[int, int, int, int]] = []
        for result, index in enumerate(self.index):
            factors = tuple((j, i) for j, i in enumerate(index) if not one[j][i]) or (
                (0, index[0]),
            )
            for end in range(1, len(factors) + 1):
                if end == len(factors) or factors[:end] not in known:
                    before = known.get(factors[: end - 1], -1)
                    known[factors[:end]] = len(products)
                    products.append(
                        (before, *factors[end - 1], result if end == len(factors) else -1)
                    )
        return products

    def part(self, chosen: NDArray[np.int64]) -> "Basis":
        """Only the chosen products, with only the one-dimensional functions that they use."""
        index = np.array(self.index)[chosen]
        used = [sorted(set(column.tolist())) for column in index.T]
        mix = tuple(tuple(self.mix[j][i] for i in one) for j, one in enumerate(used))
        places = [
            [one.index(i) for i in column.tolist()]
            for one, column in zip(used, index.T, strict=True)
        ]
        return Basis(mix, tuple(zip(*places, strict=True)), self.levels)

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> "Basis":
        """Rebuild a basis from plain lists."""
        mix = tuple(tuple(tuple(row) for row in one) for one in fields["mix"])
        index = tuple(tuple(row) for row in fields["index"])
        return cls(mix, index, tuple(fields.get("levels", ())))

    def evaluate(self, u: Array, multiply: Callable[[Array, Array], Array] = np.matmul) -> Array:
        """All functions at each row of ``u``; each row a function of that row alone, bit for bit.

        ``multiply``: a matrix product that is exact for whole numbers below 2⁵³.
        """
        n = len(u)
        psi: dict[int, Array] = {}
        if self._mix:
            lines = list(self._mix)
            degree = self._mix[lines[0]].shape[1] - 1
            p = legendre(np.ascontiguousarray(u.T[lines]).ravel(), degree, GRID).T
            np.trunc(p, out=p)
            for nth, j in enumerate(lines):
                # whole numbers below 2^53
                psi[j] = multiply(self._mix[j], p[:, nth * n : (nth + 1) * n])
                psi[j] *= 1 / GRID**2
        for j, table in self._tables.items():
            psi[j] = table[:, level_of(u[:, j], table.shape[1])]
        values = np.empty((self.size, n))
        made = list[Array]()
        for before, j, i, result in self._products:
            if result >= 0:
                place = values[result]
            else:
                place = np.empty(n)
            if before < 0:
                place[:] = psi[j][i]
            else:
                np.multiply(made[before], psi[j][i], out=place)
            made.append(place)
        return values.T
