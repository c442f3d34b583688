"""The basis: orthonormal, exact wherever a row stands, and rich enough for the kernels it is made
for.
"""

import numpy as np
import pytest
from scipy.special import eval_legendre

from reticent.errors import BadInput
from reticent.inference.kernels.eigenbasis import (
    corners,
    eigenbasis,
    quasi_random_points,
    tensor_basis,
)
from reticent.privacy.row_maps.features.basis_features import FeatureMap
from reticent.privacy.row_maps.features.polynomial_basis import (
    GRID,
    HIGHEST_DEGREE,
    Basis,
    legendre,
)


def rbf(length):
    return lambda a, b: np.exp(-((a[:, None] - b) ** 2) / (2 * length**2))


def test_legendre_polynomials():
    u = np.linspace(-1, 1, 101)
    p = legendre(u, HIGHEST_DEGREE)
    for k in range(HIGHEST_DEGREE + 1):
        assert p[:, k] == pytest.approx(np.sqrt(2 * k + 1) * eval_legendre(k, u), abs=1e-10)
    # the bound behind the exact product: ‖p‖ ≤ 128 on [−1, 1]
    assert (np.sqrt((p**2).sum(axis=1)) <= HIGHEST_DEGREE + 1 + 1e-9).all()


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
    basis = Basis(
        (tuple(tuple(int(v) for v in row) for row in np.trunc(q * GRID)),),
        tuple((i,) for i in range(24)),
    )
    u = np.array([[-1.0], [1.0], [0.999], [0.0]])
    p = np.trunc(np.abs(legendre(u[:, 0]) * GRID))
    mix = np.abs(basis._mix[0])
    assert (mix @ p.T[: mix.shape[1]]).max() < 2**53


def test_public_points_fill_the_box():
    for d in (1, 2, 5):
        points = quasi_random_points(d, 512)
        assert points.shape == (512, d)
        assert (np.abs(points) <= 1).all()
        assert np.abs(points.mean(axis=0)).max() < 0.02
        assert (points**2).mean(axis=0) == pytest.approx(1 / 3, abs=0.01)


def test_the_largest_products_are_taken():
    """Against all products of three short lists, in order."""
    rng = np.random.default_rng(1)
    values = [np.sort(rng.uniform(0, 1, size))[::-1] for size in (4, 3, 5)]
    coefficients = [np.eye(len(one), 6) for one in values]
    every = {
        index: np.prod([v[i] for v, i in zip(values, index, strict=True)])
        for index in np.ndindex(4, 3, 5)
    }
    basis, products = tensor_basis(values, coefficients, 60)
    assert dict(zip(basis.index, products, strict=True)) == pytest.approx(every)
    few, largest = tensor_basis(values, coefficients, 12)
    assert largest == pytest.approx(sorted(every.values(), reverse=True)[:12])
    assert (few.dimension, few.size) == (3, 12)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_functions_are_products_of_sums_of_polynomials(d):
    """Whatever is shared between products.

    Each function by its definition, to the grid of its integers.
    """
    rng = np.random.default_rng(d)
    q = np.linalg.qr(rng.normal(size=(8, 8)))[0][:5]
    q[0] = np.eye(1, 8)[0]  # a constant, which products leave out
    basis, _ = tensor_basis([0.6 ** np.arange(5)] * d, [q] * d, 40)
    u = rng.uniform(-1, 1, size=(30, d))
    one = [legendre(u[:, j], 7) @ q.T for j in range(d)]
    exact = np.array(
        [np.prod([one[j][:, i] for j, i in enumerate(index)], axis=0) for index in basis.index]
    ).T
    assert basis.evaluate(u) == pytest.approx(exact, abs=1e-4)
    assert (basis.evaluate(u)[:, basis.index.index((0,) * d)] == 1).all(), "exactly one"


def test_a_part_of_a_basis_and_a_basis_from_plain_lists_are_the_same_functions():
    values, q = eigenbasis(rbf(0.4), 10)
    basis, _ = tensor_basis([values, values], [q, q], 40)
    u = np.random.default_rng(2).uniform(-1, 1, size=(20, 2))
    chosen = np.array([3, 17, 0, 39])
    part = basis.part(chosen)
    assert (part.evaluate(u) == basis.evaluate(u)[:, chosen]).all()
    assert max(len(one) for one in part.mix) <= 4, "with only the functions that it needs"
    again = Basis.from_dict(
        {
            "mix": [[list(row) for row in one] for one in basis.mix],
            "index": [*map(list, basis.index)],
        }
    )
    assert again == basis
    assert (again.evaluate(u) == basis.evaluate(u)).all()


@pytest.mark.parametrize(("d", "count"), [(1, 2), (3, 8), (6, 64), (9, 64)])
def test_corners_are_corners(d, count):
    found = corners(d)
    assert found.shape == (count, d)
    assert (np.abs(found) == 1).all()
    assert len(np.unique(found, axis=0)) == count


@pytest.mark.parametrize(("d", "off"), [(2, 0.01), (3, 0.015), (5, 0.015), (7, 0.015)])
def test_public_points_are_even_along_pairs_of_inputs(d, off):
    """A quarter in each quarter of the box.

    (In four dimensions 3 % of the points are missing in one.)
    """
    points = quasi_random_points(d, 1024)
    assert np.abs((points > 0).mean(axis=0) - 0.5).max() < off
    for i in range(d):
        for j in range(i):
            assert np.mean((points[:, i] > 0) & (points[:, j] > 0)) == pytest.approx(0.25, abs=off)


@pytest.mark.parametrize("degree", [HIGHEST_DEGREE, HIGHEST_DEGREE + 1])
def test_degrees_beyond_those_of_the_proof_are_refused(degree):
    """Of degree 1,000 a function of length one takes values of 1,000: no product would be exact.

    A server's message to a local bandit may ask for any basis.
    """
    row = (int(GRID),) + (0,) * degree
    basis = Basis(((row,),), ((0,),))
    if degree > HIGHEST_DEGREE:
        with pytest.raises(BadInput, match="degrees up to 127"):
            FeatureMap(basis, (1.0,), 1.0)
    else:
        assert FeatureMap(basis, (1.0,), 1.0).columns == 1
