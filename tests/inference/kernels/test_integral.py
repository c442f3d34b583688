"""Integral kernels against quadrature, and their derivatives against differences."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy.integrate import dblquad
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    Matern,
    RationalQuadratic,
)

from reticent.inference.kernels.integral import Boxes, box_pairs, kernel_mixture
from reticent.inference.kernels.integral import box_covariance as among

NODES, WEIGHTS = np.polynomial.legendre.leggauss(14)
KERNELS = {
    "rbf": RBF(0.8),
    "product of two": RBF(0.8) * RBF(1.7),
    "constant times, plus": ConstantKernel(2.0) * RBF(0.6) + ConstantKernel(0.3),
    "rational": RationalQuadratic(0.9, 1.5),
    "fixed": ConstantKernel(2.0, "fixed") * RBF(0.6, "fixed"),
    "infinitely smooth": Matern(0.9, nu=np.inf),
}


def boxes(d: int, count: int = 3) -> Boxes:
    rng = np.random.default_rng(d)
    low = rng.uniform(0, 1, (count, d))
    return Boxes(low, low + rng.uniform(0.1, 0.6, (count, d)))


def box_covariance(m, a: Boxes, b: Boxes, **how):
    return among(m, box_pairs(a, b), **how)


def by_quadrature(kernel, a: Boxes, b: Boxes) -> np.ndarray:
    """Averages over pairs of boxes by Gauss and Legendre's rule; points are boxes of one node."""

    def nodes(some: Boxes, i: int):
        if some.are_points:
            return some.low[i : i + 1], np.ones(1)
        axes = [
            (lo + hi) / 2 + (hi - lo) / 2 * NODES
            for lo, hi in zip(some.low[i], some.high[i], strict=True)
        ]
        return np.array(list(product(*axes))), np.prod(
            list(product(WEIGHTS / 2, repeat=len(axes))), axis=1
        )

    def one(i: int, j: int) -> float:
        x, v = nodes(a, i)
        y, w = nodes(b, j)
        return float(v @ kernel(x, y) @ w)

    return np.array([[one(i, j) for j in range(len(b))] for i in range(len(a))])


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
@pytest.mark.parametrize("d", [1, 2])
def test_averages_are_those_of_a_quadrature(kernel, d):
    a = boxes(d)
    points = Boxes.points(np.random.default_rng(9).uniform(0, 1, (2, d)))
    m = kernel_mixture(kernel, d)
    for one, two in ((a, a), (a, points), (points, a), (points, points)):
        assert box_covariance(m, one, two)[0] == pytest.approx(
            by_quadrature(kernel, one, two), abs=1e-10
        )


def test_three_dimensions_with_a_length_each():
    kernel = ConstantKernel(1.4) * RBF([0.7, 1.3, 0.9])
    a = boxes(3, 1)
    point = Boxes.points(np.full((1, 3), 0.4))
    m = kernel_mixture(kernel, 3)
    assert box_covariance(m, a, a)[0] == pytest.approx(by_quadrature(kernel, a, a), abs=1e-10)
    assert box_covariance(m, a, point)[0] == pytest.approx(
        by_quadrature(kernel, a, point), abs=1e-10
    )


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5, 0.8, 7.0])
def test_matern_kernels_are_mixtures(nu):
    kernel = Matern([0.7, 1.1], nu=nu)
    X = np.vstack([np.zeros(2), np.random.default_rng(0).uniform(0, 3, (6, 2))])
    points = Boxes.points(X)
    assert box_covariance(kernel_mixture(kernel, 2), points, points)[0] == pytest.approx(
        kernel(X), abs=1e-10
    )


def test_few_gaussians_are_nearly_a_matern_kernel():
    kernel = Matern(0.7, nu=2.5)
    X = np.linspace(0, 3, 40)[:, None]
    points = Boxes.points(X)
    few = kernel_mixture(kernel, 1, coarse=True)
    assert len(few.log_weights) < 10
    assert box_covariance(few, points, points)[0] == pytest.approx(kernel(X), abs=1e-3)


def test_terms_of_one_input_add_up_as_those_of_several():
    """One input takes a way of its own; another one of no extent must not matter."""
    kernel = ConstantKernel(0.3) + ConstantKernel(2.0) * Matern(0.7, nu=1.5)
    low = np.array([[0.0], [0.2], [0.9]])
    high = np.array([[0.2], [0.9], [1.0]])
    one = Boxes(low, high)
    two = Boxes(np.hstack([low, 0 * low]), np.hstack([high, 0 * high + 1]))
    flat = kernel_mixture(kernel, 1)
    wide = replace(
        flat,
        inverse=np.hstack([flat.inverse, 0 * flat.inverse]),
        d_inverse=np.concatenate([flat.d_inverse, 0 * flat.d_inverse], axis=1),
    )
    expected = box_covariance(wide, two, two, gradient=True)
    found = box_covariance(flat, one, one, gradient=True)
    for mine, other in zip(found, expected, strict=True):
        assert mine == pytest.approx(other, abs=1e-12)


@pytest.mark.parametrize("nu", [0.5, 1.5])
def test_averages_of_matern_kernels(nu):
    """The kink at r = 0 is on the diagonal: two triangles, each of them smooth."""
    kernel = Matern(0.7, nu=nu)
    box = Boxes(np.array([[0.2]]), np.array([[1.1]]))
    half = dblquad(
        lambda v, u: kernel([[u]], [[v]])[0, 0], 0.2, 1.1, 0.2, lambda u: u, epsabs=1e-12
    )[0]
    assert box_covariance(kernel_mixture(kernel, 1), box, box)[0][0, 0] == pytest.approx(
        2 * half / 0.81, abs=1e-10
    )


@pytest.mark.parametrize(
    "kernel",
    [
        ConstantKernel(2.0) * RBF([0.6, 0.9]) + ConstantKernel(0.3),
        RationalQuadratic(0.9, 1.5) * RBF(0.8),
        Matern([0.6, 0.9], nu=1.5) + ConstantKernel(0.3, "fixed"),
        ConstantKernel(2.0, "fixed") * RBF(0.7),
    ],
    ids=str,
)
def test_derivatives_are_those_of_differences(kernel):
    a = boxes(2)
    points = Boxes.points(np.random.default_rng(9).uniform(0, 1, (2, 2)))
    for one, two in ((a, a), (a, points), (points, points)):
        slopes = box_covariance(kernel_mixture(kernel, 2), one, two, gradient=True)[1]
        assert slopes.shape[2] == len(kernel.theta)
        for k in range(len(kernel.theta)):
            step = np.eye(len(kernel.theta))[k] * 1e-4
            # a five-point rule: its error is of the order of step⁴
            at = {
                s: box_covariance(
                    kernel_mixture(kernel.clone_with_theta(kernel.theta + s * step), 2), one, two
                )[0]
                for s in (-2, -1, 1, 2)
            }
            numeric = (at[-2] - 8 * at[-1] + 8 * at[1] - at[2]) / 12e-4
            assert slopes[:, :, k] == pytest.approx(numeric, abs=1e-9)


def test_the_papers_equation():
    """Eq 1, whose kernel is exp(−r²/ℓ²), with one factor α: integrals, not averages."""
    from scipy.special import erf

    ell = 0.9
    alpha = 1.7
    s = 0.1
    t = 0.8
    u = 0.5
    v = 1.6
    g = lambda z: z * np.sqrt(np.pi) * erf(z) + np.exp(-(z**2))  # noqa: E731
    printed = (
        alpha
        * ell**2
        / 2
        * (g((t - u) / ell) + g((v - s) / ell) - g((t - v) / ell) - g((s - u) / ell))
    )
    m = kernel_mixture(ConstantKernel(alpha) * RBF(ell / np.sqrt(2)), 1)
    ours = box_covariance(
        m, Boxes(np.array([[s]]), np.array([[t]])), Boxes(np.array([[u]]), np.array([[v]]))
    )[0][0, 0]
    assert ours * (t - s) * (v - u) == pytest.approx(printed, rel=1e-13)


def test_narrow_boxes_lose_few_digits():
    edges = np.linspace(0, 1, 401)[:, None]
    a = Boxes(edges[:-1], edges[1:])
    K = box_covariance(kernel_mixture(RBF(0.3), 1), a, a)[0]
    middle = (edges[:-1] + edges[1:]) / 2
    assert np.abs(K - RBF(0.3)(middle)).max() < 1e-5  # (width/length)²/12 at most
    assert np.linalg.eigvalsh(K)[0] > -1e-13 * len(K) ** 2


def test_kernels_without_an_integral_are_refused():
    for kernel in (DotProduct(), RBF([1.0, 2.0, 3.0]), RBF(1.0) ** 2):
        with pytest.raises(ValueError):  # noqa: PT011
            kernel_mixture(kernel, 2)
