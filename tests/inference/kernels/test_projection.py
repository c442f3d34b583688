"""Kernels as covariances of coefficients: against quadrature, in any units; features' lengths.

Ranges of hyperparameters.
"""

import math

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    ExpSineSquared,
    Kernel,
    Matern,
    WhiteKernel,
)

from reticent.inference.kernels.eigenbasis import corners, quasi_random_points
from reticent.inference.kernels.projection import (
    KernelPriors,
    feature_scales,
    kernels_around,
    norm_quantile,
    positive_definite_part,
    theta_range,
    white_noise_variance,
)
from reticent.inference.kernels.settings import PROJECTION
from reticent.privacy.row_maps.features.polynomial_basis import GRID, legendre


def same(u):
    return u


def priors(*kernels, d=1, natural=same, y_half=1.0, **how):
    return KernelPriors(list(kernels), d, natural, y_half, **how)


class Upside(Kernel):
    """A linear kernel less another one.

    Of the functions in its span, some have a negative variance.
    """

    def __init__(self, less=None):
        self.less = less or RBF(0.5)

    def __call__(self, X, Y=None, eval_gradient=False):
        return DotProduct(0.0)(X, Y) - 0.2 * self.less(X, Y)

    def diag(self, X):
        return np.diag(self(X))

    def is_stationary(self):
        return False


def test_on_a_line_covariances_are_those_of_the_integrals():
    """∫∫ψ_i(u)k(u, v)ψ_j(v) under the even law, by Gauss and Legendre's rule."""
    kernel = ConstantKernel(2.0) * RBF(0.6)
    basis, (S,), (outside,) = priors(kernel).choose(10)
    nodes, weights = np.polynomial.legendre.leggauss(64)
    psi = basis.evaluate(nodes[:, None]) * (weights / 2)[:, None]
    exact = psi.T @ kernel(nodes[:, None]) @ psi
    assert pytest.approx(exact, abs=3e-3) == S
    assert outside < 1e-4


@pytest.mark.parametrize(
    ("kernel", "d", "m"), [(RBF(0.7), 1, 14), (2 * RBF(1.5) + ConstantKernel(0.5), 2, 50)]
)
def test_with_enough_functions_the_kernel_is_rebuilt(kernel, d, m):
    basis, (S,), (outside,) = priors(kernel, d=d).choose(m)
    X = np.random.default_rng(0).uniform(-1, 1, (20, d))
    phi = basis.evaluate(X)
    assert phi @ S @ phi.T == pytest.approx(kernel(X), abs=0.01)
    assert outside < 1e-3


@pytest.mark.parametrize("ignored", [0.0, 0.1, 0.999])
def test_what_functions_leave_out_is_counted_where_records_are(ignored):
    """The mean of what is missed, without the share of places where most is."""
    kernel = Matern(0.3, nu=1.5)
    one = priors(kernel, ignored_fraction=ignored)
    basis, (S,), (outside,) = one.choose(8)
    phi = basis.evaluate(one._points)
    missed = np.sort(1 - ((phi @ S) * phi).sum(axis=1))
    count = max(math.ceil((1 - ignored) * len(missed)), 1)
    assert outside == pytest.approx(np.maximum(missed, 0)[:count].mean(), rel=1e-6)
    assert outside > 1e-4
    assert (np.diff([priors(kernel).choose(m)[2][0] for m in (2, 4, 8, 16)]) < 0).all()


def test_units_of_inputs_and_outputs_do_not_matter():
    plain = priors(RBF([0.5, 0.9]), d=2)
    other = priors(
        ConstantKernel(9.0) * RBF([5.0, 0.09]),
        d=2,
        natural=lambda u: u * [10.0, 0.1] + [7, 3],
        y_half=3.0,
    )
    one, S, left = plain.choose(20)
    two, T, rest = other.choose(20)
    assert one.index == two.index
    assert pytest.approx(T[0], abs=1e-6) == S[0]
    assert left == pytest.approx(rest, abs=1e-8)
    assert plain.variances == pytest.approx(other.variances, abs=1e-9)


def test_white_noise_is_told_apart_from_the_function():
    plain = priors(RBF(0.5), y_half=2.0)
    noisy = priors(RBF(0.5) + WhiteKernel(0.3), y_half=2.0)
    assert noisy.white_noise_variance == pytest.approx(0.3 / 4)
    assert plain.white_noise_variance == 0
    assert priors(RBF(0.5), WhiteKernel(1.0)).white_noise_variance == 0, "that of the first kernel"
    assert noisy.choose(8)[1][0] == pytest.approx(plain.choose(8)[1][0])
    assert white_noise_variance(RBF(0.5) + WhiteKernel(0.3), np.zeros((3, 2))) == pytest.approx(0.3)


def test_one_basis_serves_all_kernels():
    kernels = [RBF(0.4), 3 * RBF(1.5)]
    both = priors(*kernels)
    basis, found, outside = both.choose(16)
    X = np.linspace(-0.95, 0.95, 20)[:, None]
    phi = basis.evaluate(X)
    for S, kernel, left in zip(found, kernels, outside, strict=True):
        assert phi @ S @ phi.T == pytest.approx(kernel(X), abs=0.02)
        assert left < 0.01
    assert both.variances[:6] == pytest.approx(np.diag(found[0] + found[1])[:6] / 2, rel=0.2)


@pytest.mark.parametrize("d", [1, 2])
def test_functions_come_in_the_order_of_their_variance(d):
    one = priors(Matern(0.6, nu=2.5), d=d)
    assert (np.diff(one.variances) <= 0).all()
    assert one.variances[-1] >= 0
    assert one.variances.sum() == pytest.approx(1, abs=0.05)
    assert one.max_size == {1: 32, 2: 256}[d]
    assert set(np.abs(one.choose(5)[0].index).ravel()) <= set(range(6))
    _, (S,), _ = one.choose(30)
    assert np.diag(S)[:10] == pytest.approx(one.variances[:10], rel=0.25, abs=2e-3)


def test_products_of_functions_that_no_kernel_multiplies_have_no_variance():
    """A linear kernel: u₁ and u₂ vary, but u₁·u₂ does not, whatever the kernel is along each of
    them.
    """
    one = priors(DotProduct(1.0), d=2)
    basis, (S,), _ = one.choose(4)
    degrees = [sum(index) for index in basis.index]
    assert sorted(degrees[:3]) == [0, 1, 1]
    assert one.variances[:3] == pytest.approx([1.0, 1 / 3, 1 / 3], rel=0.08)
    assert one.variances[3] < 0.01
    assert np.sort(np.diag(S))[-3:] == pytest.approx([1 / 3, 1 / 3, 1.0], abs=0.01)


@pytest.mark.parametrize("kernel", [DotProduct(0.0), ExpSineSquared(1.0, 2.0), ConstantKernel(1.0)])
def test_kernels_of_few_functions_have_a_definite_covariance_of_many(kernel):
    """Rank one and two: what is added keeps factors away from zero and weighs nothing."""
    _, (S,), _ = priors(kernel).choose(24)
    values = np.linalg.eigvalsh(S)
    assert values[0] > 0
    assert values[0] == pytest.approx(1e-7 * np.trace(S) / 24, rel=0.1)
    np.linalg.cholesky(S)


def test_negative_variances_are_found_and_left_out():
    assert priors(Upside()).indefinite()
    assert priors(Upside(ConstantKernel(1.0))).indefinite(), "the constant alone"
    assert priors(Upside(), RBF(0.5)).indefinite()
    assert not priors(RBF(0.5), Upside()).indefinite(), "the first kernel is the one that was given"
    assert not priors(ConstantKernel(1e9) * RBF(1.0)).indefinite(), (
        "rounding is no negative variance"
    )
    assert not priors(RBF(0.5)).indefinite()
    assert not priors(DotProduct(0.0)).indefinite()
    assert np.linalg.eigvalsh(priors(Upside()).choose(10)[1][0])[0] > 0
    S = np.diag([3.0, -2.0, 1.0])
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    assert turn.T @ positive_definite_part(turn @ S @ turn.T, 0.5) @ turn == pytest.approx(
        np.diag([3.5, 0.5, 1.5])
    )
    assert positive_definite_part(np.diag([3.0, 1.0]), 0.5) == pytest.approx(np.diag([3.5, 1.5]))


@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("exponent", [0.25, 0.5])
def test_features_have_the_length_that_is_asked_for(d, exponent):
    prior = priors(RBF(0.5), d=d)
    basis = prior.choose(30)[0]
    variances = prior.variances[:30]

    def lengths(quantile, at):
        return (
            (basis.evaluate(at) * feature_scales(basis, variances, exponent, quantile)) ** 2
        ).sum(axis=1)

    inside = quasi_random_points(d, 512)
    for quantile in (0.5, 0.95):
        assert np.mean(lengths(quantile, inside) <= 1) == pytest.approx(quantile, abs=0.003)
    everywhere = np.concatenate([lengths(1.0, inside), lengths(1.0, corners(d))])
    assert everywhere.max() == pytest.approx(1)
    found = feature_scales(basis, variances, exponent, 0.95)
    assert found[5] / found[0] == pytest.approx((variances[5] / variances[0]) ** exponent)


def test_functions_without_variance_still_have_an_energy():
    basis = priors(RBF(0.5)).choose(3)[0]
    found = feature_scales(basis, np.array([4.0, 4e-4, 0.0]), 0.5, 1.0)
    assert found[1:] / found[0] == pytest.approx([1e-2, 1e-9**0.5])


@pytest.mark.parametrize(
    ("told", "quantile"),
    [
        (0.0, 0.5),
        (0.99, 0.5),
        (1.0, 0.95),
        (PROJECTION.negligible_noise_snr - 1, 0.95),
        (PROJECTION.negligible_noise_snr, 1.0),
        (1e9, 1.0),
    ],
)
def test_features_are_shortened_where_noise_is_loud(told, quantile):
    assert norm_quantile(told) == quantile


HALF = np.array([2.0, 5.0])


@pytest.mark.parametrize(
    ("kernel", "low", "high"),
    [
        (RBF(3.0), [0.3], [30.0]),
        (ConstantKernel(2.0) * RBF(3.0), [0.2, 0.3], [20.0, 30.0]),
        (
            RBF([1.0, 20.0]),
            [0.2, 2.0],
            [10.0, 50.0],
        ),  # a tenth of the narrowest, ten times the widest half
        (RBF(3.0, (2.0, 4.0)), [2.0], [4.0]),
        (RBF(0.1), [0.1], [1.0]),  # what is given is always possible
        (RBF(90.0), [9.0], [90.0]),
        (WhiteKernel(3.0) + RBF(2.0, "fixed"), [0.3], [30.0]),
        (ConstantKernel(1e-3, (1e-5, 1e5)), [1e-4], [1e-2]),
    ],
    ids=str,
)
def test_hyperparameters_stay_within_reach(kernel, low, high):
    found = np.exp(theta_range(kernel, HALF))
    assert found == pytest.approx(np.array([low, high]))


def test_kernels_around_one():
    kernel = ConstantKernel(2.0) * RBF(3.0)
    found = kernels_around(kernel, HALF, 40)
    assert found[0] is kernel
    assert len(found) == 41
    low, high = theta_range(kernel, HALF)
    places = (np.array([one.theta for one in found[1:]]) - low) / (high - low)
    assert ((places > 0) & (places < 1)).all()
    for column in places.T:
        assert np.histogram(column, 4, (0, 1))[0].min() >= 8
    assert kernels_around(kernel, HALF, 40) == found, "public: the same each time"
    fixed = RBF(3.0, "fixed")
    assert kernels_around(fixed, HALF, 40) == [fixed]


@pytest.mark.parametrize("alike", [False, True])
def test_the_best_functions_of_several_inputs_are_chosen(alike):
    """Of a family of kernels with a length for each input.

    Variances by quadrature along each input.
    """
    d = 4
    family = kernels_around(RBF(1.6 if alike else [1.6] * d, (0.5, 5.0)), np.ones(d), 48)
    chosen = priors(*family, d=d)
    nodes, weights = np.polynomial.legendre.leggauss(64)
    p = legendre(nodes) * (weights / 2)[:, None]
    index = np.array(chosen._all.index)[chosen._order]
    true = np.zeros(len(index))
    for kernel in family:
        one = np.ones(len(index))
        for j, length in enumerate(np.broadcast_to(kernel.length_scale, d)):
            q = np.array(chosen._all.mix[j]) / GRID
            spectrum = q @ p.T @ RBF(length)(nodes[:, None]) @ p @ q.T
            one *= np.diag(spectrum)[index[:, j]]
        true += one / len(family)
    assert chosen.variances[:150] == pytest.approx(true[:150], rel=0.1, abs=2e-4)
    for m in (20, 60, 120):
        assert 1 - true[:m].sum() < 1.02 * (1 - np.sort(true)[::-1][:m].sum())


def test_inputs_that_are_alike_have_their_functions_in_a_fixed_order():
    """Rounding does not order them.

    Inputs that are other numbers on another scale are as those on the same.
    """
    plain = priors(RBF([1.0] * 3), d=3)
    other = priors(RBF([3.0, 0.7, 1.1]), d=3, natural=lambda u: u * [3.0, 0.7, 1.1])
    assert plain.choose(60)[0].index == other.choose(60)[0].index


def test_what_functions_of_other_kernels_miss():
    short = priors(RBF(0.12))
    long = priors(RBF(2.0))
    assert (
        long.truncation_variance_under(short, 8)
        < 0.02
        < 0.2
        < short.truncation_variance_under(long, 8)
    )
    assert short.truncation_variance_under(short, 8) == pytest.approx(
        short.choose(8)[2][0], rel=0.3
    )


def test_refined_kernels_keep_the_energies_of_those_before():
    broad = priors(RBF(0.3), RBF(3.0), y_half=2.0)
    fine = broad.with_kernels([RBF(3.0)])
    assert fine.theta_bounds is None
    assert fine.variances[0] == pytest.approx(priors(RBF(3.0), y_half=2.0).variances[0])
    assert fine.scaling_variance[4] > 100 * fine.variances[4]
    assert fine.scaling_variance.sum() == pytest.approx(broad.variances.sum(), rel=0.1)
    assert broad.kernel_matrix(np.log([0.3])) == pytest.approx(broad._grams[0])
