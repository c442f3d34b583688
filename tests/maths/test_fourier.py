"""Fourier features: their errors stay below the bounds, and no features are longer than one."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, Matern

from reticent.maths.fourier import FourierFeatures, matern_features, squared_exponential_features

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

    gauss, equal = squared_exponential_features(d, length, nodes), matern_features(d, length, nodes | 1)
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
