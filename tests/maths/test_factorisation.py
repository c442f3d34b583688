"""Factorisations of running sums: A = B·C, and how much noise they need."""

import time

import numpy as np
import pytest

from reticent.maths import factorisation as f


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
    for c in (f.root_coefficients(n), f.buffer_coefficients(np.array([0.5, 0.9]), np.array([0.3, 0.1]), n)):
        B = running(n) @ np.linalg.inv(toeplitz(c))
        assert toeplitz(f.inverse(c)) == pytest.approx(np.linalg.inv(toeplitz(c)), abs=1e-12)
        assert f.row_variances(c) == pytest.approx((B**2).sum(axis=1))
        columns = (toeplitz(c) ** 2).sum(axis=0)
        assert f.largest_variance(c) == pytest.approx((B**2).sum(axis=1).max() * columns.max())


def tree(n):
    return max(f.tree_variances(n)) * n.bit_length()


@pytest.mark.parametrize(("n", "root", "buffers"), [(1024, 0.098, 0.098), (10_000, 0.088, 0.089)])
def test_variance_relative_to_the_tree(n, root, buffers):
    assert f.largest_variance(f.root_coefficients(n)) / tree(n) <= root
    f.optimised_buffers.cache_clear()
    start = time.process_time()
    decays, weights = f.optimised_buffers(n)
    assert time.process_time() - start < 5
    assert len(decays) == 4
    assert f.largest_variance(f.buffer_coefficients(np.array(decays), np.array(weights), n)) / tree(n) <= buffers


def test_the_tree_has_a_node_for_every_binary_one():
    assert f.tree_variances(8).tolist() == [1, 1, 2, 1, 2, 2, 3, 1]
