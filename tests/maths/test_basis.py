"""The basis: orthonormal, exact wherever a row stands, and rich enough for the kernels it is made for."""

import numpy as np
import pytest
from scipy.special import eval_legendre

from reticent.maths.basis import DEGREE, GRID, Basis, eigenbasis, legendre, public_points, tensor_basis


def rbf(length):
    return lambda a, b: np.exp(-((a[:, None] - b) ** 2) / (2 * length**2))


def test_legendre_polynomials():
    u = np.linspace(-1, 1, 101)
    p = legendre(u)
    for k in range(DEGREE + 1):
        assert p[:, k] == pytest.approx(np.sqrt(2 * k + 1) * eval_legendre(k, u), abs=1e-10)
    # the bound behind the exact product: ‖p‖ ≤ 32 on [−1, 1]
    assert (np.sqrt((p**2).sum(axis=1)) <= DEGREE + 1 + 1e-9).all()


def test_eigenfunctions_rebuild_their_kernel():
    values, q = eigenbasis(rbf(0.25), 24)
    assert q @ q.T == pytest.approx(np.eye(24), abs=1e-12)
    u = np.linspace(-1, 1, 41)
    psi = legendre(u) @ q.T
    assert (psi * values) @ psi.T == pytest.approx(rbf(0.25)(u, u), abs=2e-6)
    assert values.sum() == pytest.approx(1.0, abs=1e-6)
    assert (np.diff(values) <= 1e-15).all()


def test_products_are_orthonormal_and_in_order():
    values, q = eigenbasis(rbf(0.7), 6)
    basis, products = tensor_basis([values, values], [q, q], 12)
    assert (np.diff(products) <= 0).all()
    assert basis.index[0] == (0, 0)
    nodes, weights = np.polynomial.legendre.leggauss(40)
    grid = np.array([(a, b) for a in nodes for b in nodes])
    area = np.array([a * b for a in weights for b in weights]) / 4
    psi = basis.evaluate(grid)
    assert (psi * area[:, None]).T @ psi == pytest.approx(np.eye(12), abs=1e-5)


@pytest.mark.parametrize("d", [1, 3])
def test_a_row_has_the_same_bits_wherever_it_stands(d):
    """A float product of the rows would not: the last bits depend on the place in the block."""
    values, q = eigenbasis(rbf(0.3), 20)
    basis, _ = tensor_basis([values] * d, [q] * d, 60)
    u = np.random.default_rng(0).uniform(-1, 1, size=(1003, d))
    whole = basis.evaluate(u)
    for i in range(0, 1003, 51):
        assert (basis.evaluate(u[i : i + 1]) == whole[i]).all()
        assert (basis.evaluate(u[i : i + 7])[0] == whole[i]).all()


def test_products_of_whole_numbers_stay_below_the_limit():
    _, q = eigenbasis(rbf(0.1), 24)
    basis = Basis((tuple(tuple(int(v) for v in row) for row in np.trunc(q * GRID)),), tuple((i,) for i in range(24)))
    u = np.array([[-1.0], [1.0], [0.999], [0.0]])
    p = np.trunc(np.abs(legendre(u[:, 0]) * GRID))
    mix = np.abs(basis._mix[0])
    assert (mix @ p.T[: mix.shape[1]]).max() < 2**53


def test_public_points_fill_the_box():
    for d in (1, 2, 5):
        points = public_points(d, 512)
        assert points.shape == (512, d)
        assert (np.abs(points) <= 1).all()
        assert np.abs(points.mean(axis=0)).max() < 0.02
        assert (points**2).mean(axis=0) == pytest.approx(1 / 3, abs=0.01)
