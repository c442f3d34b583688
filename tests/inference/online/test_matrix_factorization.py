"""Factorisations of running sums: A = B·C, and how much noise they need."""

import time
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reticent.inference.online import matrix_factorization as f


def toeplitz(c):
    n = len(c)
    return np.array([[c[i - j] if i >= j else 0.0 for j in range(n)] for i in range(n)])


def running(n):
    return np.tril(np.ones((n, n)))


def test_the_square_root_is_one():
    C = toeplitz(f.root_coefficients(60))
    assert pytest.approx(running(60), abs=1e-12) == C @ C


@pytest.mark.parametrize("n", [2, 7, 64])
def test_rows_of_b_are_what_the_noise_says(n):
    for c in (
        f.root_coefficients(n),
        f.buffer_coefficients(np.array([0.5, 0.9]), np.array([0.3, 0.1]), n),
    ):
        B = running(n) @ np.linalg.inv(toeplitz(c))
        assert toeplitz(f.series_inverse(c)) == pytest.approx(np.linalg.inv(toeplitz(c)), abs=1e-12)
        assert f.row_variances(c) == pytest.approx((B**2).sum(axis=1))
        columns = (toeplitz(c) ** 2).sum(axis=0)
        assert f.largest_variance(c) == pytest.approx((B**2).sum(axis=1).max() * columns.max())


def tree(n):
    return max(f.tree_variances(n)) * n.bit_length()


@pytest.mark.parametrize(("n", "root", "buffers"), [(1024, 0.098, 0.098), (10_000, 0.088, 0.089)])
def test_variance_relative_to_the_tree(n, root, buffers):
    assert f.largest_variance(f.root_coefficients(n)) / tree(n) <= root
    f.optimised_buffers.forget()
    start = time.process_time()
    decays, weights = f.optimised_buffers(n)
    assert time.process_time() - start < 5
    assert len(decays) == 4
    assert (
        f.largest_variance(f.buffer_coefficients(np.array(decays), np.array(weights), n)) / tree(n)
        <= buffers
    )


def test_the_tree_has_a_node_for_every_binary_one():
    assert f.tree_variances(8).tolist() == [1, 1, 2, 1, 2, 2, 3, 1]


@settings(max_examples=40)
@given(st.lists(st.floats(-0.9, 0.9), min_size=0, max_size=40))
def test_an_inverse_series_undoes_its_series(rest):
    c = np.array([1.5, *rest]) / np.arange(1, len(rest) + 2) ** 2
    b = f.series_inverse(c)
    assert len(b) == len(c)
    assert np.convolve(c, b)[: len(c)] == pytest.approx(np.eye(1, len(c))[0], abs=1e-6)


@settings(max_examples=40)
@given(st.integers(1, 40), st.integers(1, 40), st.integers(0, 10**6))
def test_products_of_series_are_convolutions(m, k, seed):
    rng = np.random.default_rng(seed)
    a = rng.normal(size=m)
    b = rng.normal(size=k)
    n = min(m, k)
    assert f._series_product(a, b, n) == pytest.approx(np.convolve(a, b)[:n], abs=1e-9)


@pytest.mark.parametrize("n", [1, 2, 9])
def test_coefficients_of_the_root_are_central_binomials(n):
    exact = [comb(2 * k, k) / 4**k for k in range(n)]
    assert f.root_coefficients(n) == pytest.approx(exact)
    assert f.largest_variance(f.root_coefficients(1)) == pytest.approx(1)


def test_buffers_remember_with_their_decays():
    decays = np.array([0.5, 0.9, 0.0])
    weights = np.array([0.3, 0.1, 0.2])
    exact = [1.0, 0.6, *(0.3 * 0.5**k + 0.1 * 0.9**k for k in (1, 2, 3))]
    assert f.buffer_coefficients(decays, weights, 5) == pytest.approx(exact)


@pytest.mark.parametrize("n", [1, 13, 64])
def test_the_tree_sums_whole_branches(n):
    """Every running sum is split into the largest dyadic intervals that it holds."""

    def nodes(t):
        count = 0
        start = 0
        while start < t:
            size = 1 << (t - start).bit_length() - 1
            assert start % size == 0, "a branch of the tree"
            start = start + size
            count = count + 1
        return count

    assert f.tree_variances(n).tolist() == [nodes(t) for t in range(1, n + 1)]


@pytest.mark.parametrize("n", [8, 100])
def test_buffers_are_better_than_independent_noise_and_near_the_root(n):
    decays, weights = (np.array(part) for part in f.optimised_buffers(n, 2))
    assert ((decays > 0) & (decays < 1)).all()
    assert (weights > 0).all()
    found = f.largest_variance(f.buffer_coefficients(decays, weights, n))
    assert found < 0.6 * n, "noise of its own for every step adds up to n"
    assert found < 1.05 * f.largest_variance(f.root_coefficients(n))
    for change in (0.9, 1.1):  # no small change of the weights helps
        assert f.largest_variance(f.buffer_coefficients(decays, weights * change, n)) > found
