"""Kernels of single columns: what they are, and what their averages over bins are."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from reticent.inference.kernels.axes import LINE, Axis
from reticent.inference.kernels.columns import Levels, OnColumns, Periodic, mixed_kernel
from reticent.inference.kernels.integral import Boxes, box_covariance, box_pairs, kernel_mixture

WORDS = Axis("words", 3)
X = np.array([[0.5, 0.0], [2.0, 1.0], [2.0, 2.0], [7.0, 1.0 + 1e-12]])


def mixed(axes=(LINE, WORDS), periods=None):
    half = np.array([5.0, 1.5])
    bounds = np.column_stack([half / 10, half * 10])
    size = ConstantKernel(0.5, (0.05, 5.0))
    return mixed_kernel(axes, half / 2, bounds, size, size, periods)


def test_words_are_exchangeable():
    K = Levels(1, 0.3)(X)
    assert K[1].tolist() == [0.3, 1.0, 0.3, 1.0]
    assert np.linalg.eigvalsh(K).min() > -1e-12


def test_a_cycle_joins_its_ends():
    hours = np.array([[0.0], [23.5], [12.0]])
    K = Periodic(2.0, 24.0)(hours)
    assert K[0, 1] == pytest.approx(np.exp(-0.5 * (0.5 / 2) ** 2), rel=1e-3)
    assert K[0, 2] < K[0, 1]
    assert mixed((LINE, Axis("circle")), periods=(10.0, 3.0))(X).shape == (4, 4)


def test_hyperparameters_are_those_of_the_parts():
    kernel = mixed()
    names = [one.name.split("__")[-1] for one in kernel.hyperparameters if not one.fixed]
    assert sorted(names) == ["constant_value"] * 3 + ["correlation", "length_scale"]
    other = clone(kernel).clone_with_theta(kernel.theta + 0.1)
    assert other.theta == pytest.approx(kernel.theta + 0.1)
    assert np.array_equal(OnColumns(RBF(2.0), (0,))(X), RBF(2.0)(X[:, :1]))
    assert kernel.diag(X) == pytest.approx(np.diag(kernel(X)))


def test_numbers_alone_have_the_kernel_they_had():
    kernel = mixed((LINE, LINE))
    assert repr(kernel) == repr(
        ConstantKernel(0.5, (0.05, 5.0)) + ConstantKernel(0.5) * RBF([2.5, 0.75])
    )


def test_bins_of_words_are_averages_over_their_words():
    """Against averages of the kernel over fine points, for boxes of one word and of two."""
    kernel = mixed()
    mixture = kernel_mixture(kernel, 2)
    boxes = Boxes(
        np.array([[0.0, -0.5], [4.0, 0.5], [1.0, 0.5]]), np.array([[2.0, 0.5], [5, 1.5], [3, 2.5]])
    )
    fine = []
    for low, high in zip(boxes.low, boxes.high, strict=True):
        along = low[0] + (np.arange(60) + 0.5) / 60 * (high[0] - low[0])
        words = np.arange(np.ceil(low[1]), high[1])
        fine.append(np.array([(a, w) for a in along for w in words]))
    exact = [[kernel(a, b).mean() for b in fine] for a in fine]
    assert box_covariance(mixture, box_pairs(boxes, boxes))[0] == pytest.approx(
        np.array(exact), rel=1e-3
    )
    points = Boxes.points(np.ascontiguousarray(X))
    at = [[kernel(a, x[None]).mean() for x in X] for a in fine]
    found = box_covariance(mixture, box_pairs(boxes, points, separately=True))[0]
    assert found == pytest.approx(np.array(at), rel=1e-3)


def test_derivatives_of_averages():
    kernel = mixed()
    boxes = Boxes(np.array([[0.0, -0.5], [4.0, 0.5]]), np.array([[2.0, 0.5], [5.0, 2.5]]))
    pairs = box_pairs(boxes, boxes)
    _, slopes = box_covariance(kernel_mixture(kernel, 2), pairs, gradient=True)
    for k in range(len(kernel.theta)):
        step = 1e-6 * np.eye(len(kernel.theta))[k]
        up, down = (
            box_covariance(kernel_mixture(kernel, 2, kernel.theta + sign * step), pairs)[0]
            for sign in (1, -1)
        )
        assert slopes[:, :, k] == pytest.approx((up - down) / 2e-6, abs=1e-6)
