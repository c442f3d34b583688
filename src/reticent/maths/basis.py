"""A public basis of functions on the box [−1, 1]ᵈ that serves every kernel.

In one dimension: eigenfunctions of a reference kernel under the uniform law, ψ_i = Σ_k Q_ik p_k, with p_k = √(2k+1)·P_k the
orthonormal Legendre polynomials. In d dimensions: products ψ_{i₁}(u₁)⋯ψ_{i_d}(u_d), orthonormal again. A kernel enters only as
the prior covariance of the coefficients, by projection on public points; so one release serves every kernel and hyperparameter.

Polynomials and integers make the row map exact: p_k comes from a recurrence of IEEE operations, elementwise; Q is made of
integers; their product is a matrix product of whole numbers below 2⁵³, which has the same bits wherever a row stands.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Basis", "corners", "eigenbasis", "legendre", "public_points", "tensor_basis"]

Array = NDArray[np.float64]
DEGREE = 31  # of the polynomials; a lengthscale of a tenth of the half-box is resolved to 1e-3
GRID = 2.0**22  # of p_k and Q: ‖p‖ ≤ 32 and ‖Q_i‖ ≤ 1 keep their products below 2^49


def legendre(u: Array, degree: int = DEGREE) -> Array:
    """p_0 … p_degree at each u, as columns: elementwise operations only."""
    p = np.empty((len(u), degree + 1))
    before, now = np.zeros(len(u)), np.ones(len(u))
    for k in range(degree + 1):
        np.multiply(now, math.sqrt(2 * k + 1), out=p[:, k])
        before, now = now, ((2 * k + 1) * u * now - k * before) / (k + 1)
    return p


def eigenbasis(kernel: Callable[[Array, Array], Array], size: int) -> tuple[Array, Array]:
    """Eigenvalues and coefficients Q of a one-dimensional kernel on [−1, 1], largest first; rows of Q are functions."""
    nodes, weights = np.polynomial.legendre.leggauss(2 * DEGREE + 2)
    p = legendre(nodes) * (weights / 2)[:, None]
    values, vectors = np.linalg.eigh(p.T @ kernel(nodes, nodes) @ p)
    largest = np.argsort(values)[::-1][:size]
    q = vectors[:, largest].T
    q *= np.where(q[np.arange(len(q)), np.abs(q).argmax(axis=1)] < 0, -1.0, 1.0)[
        :, None
    ]  # a sign that does not depend on LAPACK
    return np.maximum(values[largest], 0.0), q


@dataclass(frozen=True)
class Basis:
    """m product functions: ``mix`` holds Q·2²² of each dimension, ``index`` which one-dimensional functions are multiplied."""

    mix: tuple[tuple[tuple[int, ...], ...], ...]
    index: tuple[tuple[int, ...], ...]

    @property
    def dimension(self) -> int:
        """Number of inputs."""
        return len(self.mix)

    @property
    def size(self) -> int:
        """Number of functions."""
        return len(self.index)

    @cached_property
    def _mix(self) -> list[Array]:
        return [np.array(mix, dtype=np.float64).T for mix in self.mix]

    def part(self, chosen: NDArray[np.int64]) -> "Basis":
        """Only the chosen products, with only the one-dimensional functions that they use."""
        index = np.array(self.index)[chosen]
        used = [sorted(set(column.tolist())) for column in index.T]
        mix = tuple(tuple(self.mix[j][i] for i in one) for j, one in enumerate(used))
        places = [[one.index(i) for i in column.tolist()] for one, column in zip(used, index.T, strict=True)]
        return Basis(mix, tuple(zip(*places, strict=True)))

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> "Basis":
        """Rebuild a basis from plain lists."""
        mix = tuple(tuple(tuple(row) for row in one) for one in fields["mix"])
        return cls(mix, tuple(tuple(row) for row in fields["index"]))

    def evaluate(self, u: Array) -> Array:
        """All functions at each row of ``u``; each row a function of that row alone, bit for bit."""
        place = np.array(self.index)
        values = np.ones((len(u), self.size))
        for j, mix in enumerate(self._mix):
            p = np.trunc(legendre(np.ascontiguousarray(u[:, j])) * GRID)
            psi = p @ mix  # whole numbers below 2^53
            psi *= 1 / GRID**2
            values *= psi[:, place[:, j]]
        return values


def public_points(dimension: int, count: int) -> Array:
    """Points that fill the box evenly: equidistant in one dimension, a Sobol sequence in more."""
    if dimension == 1:
        return ((np.arange(count) + 0.5) / count * 2 - 1)[:, None]
    from scipy.stats import qmc

    sobol = qmc.Sobol(dimension, scramble=False)
    return np.asarray(sobol.random_base2(math.ceil(math.log2(count))) * 2 - 1 + 1e-6)


def corners(dimension: int) -> Array:
    """The corners of the box, or some of them where there are many."""
    signs = np.array([[1 if i >> j & 1 else -1 for j in range(dimension)] for i in range(2 ** min(dimension, 6))])
    return signs.astype(np.float64)


def tensor_basis(values: list[Array], coefficients: list[Array], candidates: int) -> tuple[Basis, Array]:
    """The product functions with the largest products of eigenvalues, and these products."""
    best, index = np.array([1.0]), np.zeros((1, 0), dtype=np.int64)
    for lam in values:
        product = (best[:, None] * lam[None, :]).ravel()
        keep = np.argsort(-product, kind="stable")[:candidates]
        index = np.column_stack([index[keep // len(lam)], keep % len(lam)])
        best = product[keep]
    mixes = tuple(tuple(tuple(int(v) for v in row) for row in np.trunc(q * GRID)) for q in coefficients)
    return Basis(mixes, tuple(tuple(int(i) for i in row) for row in index)), best
