"""Small dense linear algebra, against the same by inverses; and that it cannot fail."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reticent.inference.linalg import (
    cholesky,
    inverse_diagonal,
    inverse_from_cholesky,
    posterior_covariance,
    quadratic_forms,
    robust_cholesky,
    solve_lower,
    solve_upper,
)


def random_square(seed, m):
    return np.random.default_rng(seed).normal(size=(m, m))


@pytest.mark.parametrize("m", [1, 2, 7])
@pytest.mark.parametrize("rank", [0, 1, 7])
def test_a_factor_is_that_of_the_matrix_and_a_share_of_its_mean_variance(m, rank):
    rows = random_square(0, m)[: min(rank, m)]
    matrix = rows.T @ rows + 1e-3 * (rank == 0) * np.eye(m)
    before = matrix.copy()
    lower = robust_cholesky(matrix, 0.01)
    assert (np.triu(lower, 1) == 0).all()
    assert lower @ lower.T == pytest.approx(before + 0.01 * np.trace(before) / m * np.eye(m))
    assert (matrix == before).all(), "what is factored stays as it is"


def test_a_factor_is_that_of_the_symmetric_part():
    A = 5 * np.eye(4) + random_square(1, 4) / 3
    lower = robust_cholesky(A, 0.0)
    assert lower @ lower.T == pytest.approx((A + A.T) / 2)


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.integers(1, 12), st.floats(-8, 8))
def test_a_semi_definite_matrix_always_has_a_factor(seed, m, size):
    """Of rank one, at any scale: arithmetic loses less than what is added."""
    row = np.random.default_rng(seed).normal(size=m) * 10.0**size + 1e-300
    lower = robust_cholesky(np.outer(row, row), 1e-9)
    assert np.isfinite(lower).all()
    assert (np.diag(lower) > 0).all()


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(5,), (5, 1), (5, 3)])
def test_triangular_systems(order, shape):
    lower = np.array(np.tril(random_square(2, 5)) + 3 * np.eye(5), order=order)
    b = np.random.default_rng(3).normal(size=shape)
    assert solve_lower(lower, b) == pytest.approx(np.linalg.inv(lower) @ b)
    assert solve_upper(lower, b) == pytest.approx(np.linalg.inv(lower).T @ b)


@pytest.mark.parametrize("m", [1, 2, 40])
def test_an_inverse_from_its_factor_and_its_diagonal_alone(m):
    A = random_square(6, m)
    matrix = A @ A.T + np.eye(m)
    lower = cholesky(matrix)
    before = lower.copy()
    inverse = np.linalg.inv(matrix)
    assert inverse_from_cholesky(lower) == pytest.approx(np.tril(inverse))
    assert inverse_diagonal(lower) == pytest.approx(np.diag(inverse))
    assert (lower == before).all(), "the factor stays as it is"


def test_quadratic_forms_one_by_one():
    rows = random_square(4, 6)[:, :4]
    matrix = random_square(5, 4)
    assert quadratic_forms(rows, matrix) == pytest.approx([row @ matrix @ row for row in rows])
    assert quadratic_forms(rows[:0], matrix).shape == (0,)


@pytest.mark.parametrize("told", [0.0, 1e-3, 1.0, 1e4])
def test_a_posterior_covariance_adds_precisions(told):
    root = np.tril(random_square(6, 4)) + 2 * np.eye(4)
    rows = random_square(7, 4)
    information = told * rows.T @ rows
    exact = np.linalg.inv(np.linalg.inv(root @ root.T) + information)
    assert posterior_covariance(root, information) == pytest.approx(
        exact, rel=1e-6, abs=1e-10 / max(told, 1)
    )


def test_what_the_prior_excludes_stays_excluded_and_what_nobody_asked_stays_open():
    root = np.diag([2.0, 0.0, 3.0])
    found = posterior_covariance(root, np.diag([1e4, 1.0, 0.0]))
    assert np.diag(found) == pytest.approx([4 / (1 + 4e4), 0.0, 9.0], rel=1e-5)
    assert found - np.diag(np.diag(found)) == pytest.approx(np.zeros((3, 3)))
