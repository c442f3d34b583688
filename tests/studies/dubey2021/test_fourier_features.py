"""Fourier features: their errors stay below the bounds, and no features are longer than one."""

import math

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, Matern

from reticent.studies.dubey2021.fourier_features import (
    FourierFeatures,
    matern_features,
    squared_exponential_bound,
    squared_exponential_features,
)

RNG = np.random.default_rng(0)


def error(features, kernel, d):
    X = np.vstack([np.zeros((1, d)), np.ones((1, d)), RNG.random((150, d))])
    return np.abs(features(X) @ features(X).T - kernel(X)).max()


@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("length", [0.1, 0.3, 1.0])
@pytest.mark.parametrize("nodes", [6, 15, 25])
def test_errors_are_within_their_bounds(d, length, nodes):
    def product(X):
        return np.prod([Matern(length, nu=2.5)(X[:, [j]]) for j in range(d)], axis=0)

    gauss = squared_exponential_features(d, length, nodes)
    equal = matern_features(d, length, nodes | 1)
    assert error(gauss, RBF(length), d) <= gauss.bound + 1e-13
    assert error(equal, product, d) <= equal.bound
    assert gauss(np.zeros((1, d))).shape[1] == nodes**d


def test_bounds_are_worth_something():
    """With enough nodes a bound is small; and a set of other nodes breaks it."""
    one = squared_exponential_features(1, 0.5, 12)
    assert one.bound < 1e-6
    assert matern_features(1, 0.5, 65).bound < 1e-4
    assert error(FourierFeatures(one.nodes * 1.01, one.weights, one.bound), RBF(0.5), 1) > one.bound


@pytest.mark.parametrize("make", [squared_exponential_features, matern_features])
def test_no_features_are_longer_than_one(make):
    lengths = (make(2, 0.3, 5)(RNG.random((100_000, 2))) ** 2).sum(axis=1)
    assert lengths.max() <= 1
    assert lengths.min() > 1 - 1e-12


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("nodes", [1, 4, 5])
@pytest.mark.parametrize("make", [squared_exponential_features, matern_features])
def test_features_are_the_whole_tensor_rule(make, d, nodes):
    """Σ w·cos(ωᵀr) over all products of one-dimensional nodes: ω and −ω are one pair of features,
    and none is lost.
    """
    nodes = nodes | 1 if make is matern_features else nodes
    line = make(1, 0.4, nodes)
    omega = np.concatenate([line.nodes[:, 0], -line.nodes[:, 0]])
    weights = np.tile(line.weights / 2, 2)
    X = RNG.random((4, d))
    exact = np.ones((4, 4))
    for j in range(d):
        apart = X[:, None, j] - X[None, :, j]
        exact = exact * (weights * np.cos(apart[:, :, None] * omega)).sum(axis=2)
    assert make(d, 0.4, nodes)(X) @ make(d, 0.4, nodes)(X).T == pytest.approx(exact, abs=1e-12)
    assert make(d, 0.4, nodes)(X).shape[1] == nodes**d
    assert make(d, 0.4, nodes).weights.sum() == pytest.approx(1)


@pytest.mark.parametrize("nodes", [3, 6, 12])
def test_gauss_rules_are_exact_for_low_powers_of_the_frequency(nodes):
    """n nodes have the moments of N(0, 1/ℓ²) up to order 2n − 1: (2k − 1)!!/ℓ^2k."""
    found = squared_exponential_features(1, 0.5, nodes)
    for k in range(nodes):
        exact = np.prod(np.arange(1.0, 2 * k, 2)) / 0.5 ** (2 * k)
        assert found.weights @ found.nodes[:, 0] ** (2 * k) == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("d", [1, 2])
def test_bounds_fall_with_nodes_and_rise_with_dimensions(d):
    for make in (squared_exponential_features, matern_features):
        bounds = [make(d, 0.5, nodes).bound for nodes in (5, 9, 15)]
        assert bounds == sorted(bounds, reverse=True)
        assert make(d + 1, 0.5, 9).bound > make(d, 0.5, 9).bound
        assert make(d, 0.25, 9).bound > make(d, 0.5, 9).bound


def test_the_bound_of_theorem_2():
    for d, length, nodes in ((1, 0.5, 8), (2, 0.3, 10), (3, 1.0, 4)):
        factor = d * 2 ** (d - 1) * math.sqrt(math.pi / 2)
        exact = factor * nodes**-nodes * (math.e / (4 * length**2)) ** nodes
        assert squared_exponential_bound(d, length, nodes) == pytest.approx(exact)
    assert math.isfinite(squared_exponential_bound(1, 1e-3, 200)), (
        "no overflow where it says nothing"
    )


@pytest.mark.parametrize("nu", [0.5, 1.5])
def test_rough_kernels_keep_their_bound(nu):
    found = matern_features(1, 0.5, 61, smoothness=nu)
    assert error(found, Matern(0.5, nu=nu), 1) <= found.bound
    assert found.bound > matern_features(1, 0.5, 61, smoothness=nu + 1).bound


def test_a_feature_that_is_always_zero_is_left_out():
    odd = squared_exponential_features(2, 0.5, 3)
    X = RNG.random((50, 2))
    assert (np.abs(odd(X)).max(axis=0) > 1e-6).all()
    assert np.linalg.matrix_rank(odd(X)) == 9
