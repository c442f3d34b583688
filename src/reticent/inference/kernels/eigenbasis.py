"""Eigenfunctions of a kernel in a polynomial basis, on public quasi-random points."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from reticent.privacy.row_maps.features.polynomial_basis import DEGREE, GRID, Basis, legendre

__all__ = ["corners", "eigenbasis", "quasi_random_points", "tensor_basis"]

Array = NDArray[np.float64]


def eigenbasis(
    kernel: Callable[[Array, Array], Array], size: int, degree: int = DEGREE
) -> tuple[Array, Array]:
    """Eigenvalues and coefficients Q of a one-dimensional kernel on [−1, 1], largest first.

    Rows of Q are functions: ``size`` polynomials up to ``degree``.
    """
    nodes, weights = np.polynomial.legendre.leggauss(2 * degree + 2)
    p = legendre(nodes, degree) * (weights / 2)[:, None]
    values, vectors = np.linalg.eigh(p.T @ kernel(nodes, nodes) @ p)
    largest = np.argsort(values)[::-1][:size]
    q = vectors[:, largest].T
    q *= np.where(q[np.arange(len(q)), np.abs(q).argmax(axis=1)] < 0, -1.0, 1.0)[
        :, None
    ]  # a sign that does not depend on LAPACK
    return np.maximum(values[largest], 0.0), q


def quasi_random_points(dimension: int, count: int) -> Array:
    """Points that fill the box evenly.

    Equidistant in one dimension, multiples of irrational steps in more.
    """
    if dimension == 1:
        return ((np.arange(count) + 0.5) / count * 2 - 1)[:, None]
    ratio = 2.0
    for _ in range(
        60
    ):  # the root of x^(d+1) = x + 1, whose powers are as far from rational as can be
        ratio = (1 + ratio) ** (1 / (dimension + 1))
    steps = ratio ** -np.arange(1.0, dimension + 1)
    return np.asarray((0.5 + np.arange(1, count + 1)[:, None] * steps) % 1.0 * 2 - 1)


def corners(dimension: int) -> Array:
    """The corners of the box, or some of them where there are many."""
    signs = np.array(
        [[1 if i >> j & 1 else -1 for j in range(dimension)] for i in range(2 ** min(dimension, 6))]
    )
    return signs.astype(np.float64)


def tensor_basis(
    values: list[Array], coefficients: list[Array], candidates: int
) -> tuple[Basis, Array]:
    """The product functions with the largest products of eigenvalues, and these products."""
    best = np.array([1.0])
    index = np.zeros((1, 0), dtype=np.int64)
    for lam in values:
        product = (best[:, None] * lam[None, :]).ravel()
        keep = np.argsort(-product, kind="stable")[:candidates]
        index = np.column_stack([index[keep // len(lam)], keep % len(lam)])
        best = product[keep]
    mixes = tuple(
        tuple(tuple(int(v) for v in row) for row in np.trunc(q * GRID)) for q in coefficients
    )
    return Basis(mixes, tuple(tuple(int(i) for i in row) for row in index)), best
