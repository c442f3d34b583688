"""The default prior.

Its definition by quadrature and by brute force, and its basis, in which it is diagonal.
"""

import math
from itertools import combinations, product

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm
from sklearn.base import clone

from reticent.inference.kernels import anova
from reticent.inference.kernels.anova import Anova, AnovaPriors, likely_effects
from reticent.inference.kernels.eigenbasis import quasi_random_points

KERNELS = [
    Anova(),
    Anova(0.5, (0.2, 0.5, 0.3), 0.0, 0.12),
    Anova(1.0, (1.0, 1.0, 1.0), 0.9, 1.6, constant=0.0),
]


def kappa(kernel, a, b):
    return float(kernel.input_kernel(np.array(a, dtype=float), np.array(b, dtype=float)))


def inside(d, count=7, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, (count, d))


def even_grid(d, nodes=12):
    """Nodes and weights of the even law over the box."""
    t, w = np.polynomial.legendre.leggauss(nodes)
    return np.array(list(product(t, repeat=d))), np.prod(list(product(w / 2, repeat=d)), axis=1)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_effects_of_one_input_are_centred_and_vary_by_one(kernel):
    for b in (-1.0, -0.3, 0.9):
        assert quad(lambda a, b=b: kappa(kernel, a, b) / 2, -1, 1, limit=200)[0] == pytest.approx(
            0, abs=1e-7
        )
    assert quad(lambda a: kappa(kernel, a, a) / 2, -1, 1, limit=200)[0] == pytest.approx(
        1, abs=1e-7
    )


@pytest.mark.parametrize("length", [0.1, 0.8])
def test_the_smooth_part_is_a_kernel_without_its_mean(length):
    """With one lengthscale alone.

    The RBF kernel of f − ∫f, by quadrature, over its average variance.
    """
    nodes, w = np.polynomial.legendre.leggauss(200)
    a = np.array([-0.9, 0.1, 0.7])
    b = np.array([0.3, -0.2, 0.95])

    def rbf(s, t):
        return np.exp(-((s - t) ** 2) / (2 * length**2))

    whole = (w / 2) @ rbf(nodes[:, None], nodes) @ (w / 2)
    means = [(w / 2) @ rbf(nodes[:, None], t) for t in (a, b)]
    expected = (rbf(a, b) - means[0] - means[1] + whole) / (1 - whole)
    assert anova._centred(a, b, length) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("length", [0.1, 0.4, 1.6])
def test_lengthscales_are_spread_around_the_one_that_is_named(length):
    """A log-normal law on five lengths, each the double of the one before."""
    lengths = 0.1 * 2.0 ** np.arange(5)
    at = np.array([-0.4, 0.3])
    law = norm(math.log(length), 0.7).pdf(np.log(lengths))
    expected = sum(
        p * anova._centred(*at, one) for p, one in zip(law / law.sum(), lengths, strict=True)
    )
    assert kappa(Anova(linear=0.0, length=length), *at) == pytest.approx(expected)
    assert kappa(Anova(linear=1.0, length=length), *at) == pytest.approx(-0.36)


@pytest.mark.parametrize("d", [1, 2, 3, 5])
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_covariances_are_sums_over_single_inputs_pairs_and_triples(kernel, d):
    X = inside(d)
    Y = inside(d, 4, 1)
    whole = sum(kernel.shares[: min(d, 3)])
    expected = np.full((7, 4), kernel.constant)
    for order in range(1, min(d, 3) + 1):
        scale = kernel.variance * kernel.shares[order - 1] / whole / math.comb(d, order)
        for inputs in combinations(range(d), order):
            expected += scale * np.prod(
                [kernel.input_kernel(X[:, j, None], Y[None, :, j]) for j in inputs], axis=0
            )
    assert kernel(X, Y) == pytest.approx(expected)
    assert kernel.diag(X) == pytest.approx(np.diag(kernel(X)))
    assert np.linalg.eigvalsh(kernel(X))[0] > -1e-9


@pytest.mark.parametrize("d", [1, 2, 3])
def test_the_average_variance_is_the_constant_and_the_variance(d):
    kernel = Anova(variance=0.3, length=1.6, linear=0.4)
    grid, weights = even_grid(d)
    assert weights @ kernel.diag(grid) == pytest.approx(0.25 + 0.3, rel=1e-5)
    assert weights @ kernel(grid, np.zeros((1, d))) == pytest.approx(0.25, abs=1e-5), (
        "effects are centred"
    )


def test_it_is_a_kernel_of_scikit_learn():
    kernel = Anova(variance=0.123456, length=0.7)
    K, gradient = kernel(inside(2), eval_gradient=True)
    assert gradient.shape == (7, 7, 0)
    assert pytest.approx(kernel(inside(2))) == K
    assert len(kernel.theta) == 0
    assert not kernel.is_stationary()
    assert repr(kernel) == "Anova(variance=0.123, shares=(0.65, 0.2, 0.15), linear=0.3, length=0.7)"
    assert clone(kernel)(inside(2)) == pytest.approx(K)
    assert kernel(inside(2)[0]).shape == kernel.diag(inside(2)[0])[:, None].shape == (1, 1)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_the_basis_is_orthonormal_and_rebuilds_the_kernel(d):
    """One smooth kernel.

    What functions leave out is what is said, and the rest is the covariance at any two points.
    """
    kernel = Anova(variance=0.4, length=1.6, linear=0.2)
    prior = AnovaPriors(d, 0, [kernel])
    basis, (S,), (outside,) = prior.choose(min(prior.max_size, 400))
    grid, weights = even_grid(d, 26 if d < 3 else 14)
    some = prior.choose(30 if d > 1 else 12)[0].evaluate(grid)
    assert (some * weights[:, None]).T @ some == pytest.approx(np.eye(some.shape[1]), abs=1e-5)
    phi = basis.evaluate(inside(d))
    X = inside(d)
    assert phi * S @ phi.T == pytest.approx(kernel(X), abs=2e-3 if d < 3 else 0.02)
    assert S.sum() + outside == pytest.approx(kernel.constant + kernel.variance)
    assert 0 <= outside < 1e-3 * d**2


@pytest.mark.parametrize("d", [1, 2, 4])
def test_each_hypothesis_has_its_own_variances_in_one_basis(d):
    kernels = [
        Anova(variance=0.1, length=0.4),
        Anova(variance=0.8, shares=(0.2, 0.5, 0.3), linear=0.8, length=1.6),
    ]
    prior = AnovaPriors(d, 0, kernels)
    m = min(prior.max_size, 300)
    basis, table, outside = prior.choose(m)
    mean = table.mean(axis=0)
    assert prior.variances[:m] == pytest.approx(mean)
    assert (np.diff(mean) <= 0).all(), "the functions that matter most come first"
    assert table.sum(axis=1) + outside == pytest.approx([0.35, 1.05])
    X = quasi_random_points(d, 200)
    phi = basis.evaluate(X)
    for S, kernel, left in zip(table, kernels, outside, strict=True):
        assert np.mean((phi * S * phi).sum(axis=1)) == pytest.approx(
            kernel.diag(X).mean() - left, rel=0.05
        )
    fewer = prior.choose(m // 2)
    assert (fewer[2] >= outside).all(), "fewer functions leave more out"
    assert fewer[0].index == basis.index[: m // 2]


def test_functions_are_counted_by_input_and_number():
    prior = AnovaPriors(3, 0)
    m = 60
    basis, (S,), _ = prior.choose(m)
    index = np.array(basis.index)
    alike = prior.degree_groups(m)
    single = (index > 0).sum(axis=1) == 1
    assert (alike == np.where(single, index.sum(axis=1), -1)).all()
    constant = (index == 0).all(axis=1)
    assert constant.sum() == 1
    assert S[constant].item() == pytest.approx(0.25)
    for number in set(alike[single]):
        variances = S[alike == number]
        assert variances == pytest.approx(np.full(len(variances), variances[0])), (
            "the inputs are alike before the fit"
        )
    assert len({tuple(row) for row in index}) == m


def test_no_function_is_impossible():
    """Straight lines alone.

    All other functions keep a variance that is next to nothing, and no noise is the prior's.
    """
    prior = AnovaPriors(2, 0, [Anova(linear=1.0)])
    _, (S,), outside = prior.choose(prior.max_size)
    assert 0 < S.min() < 1e-8
    assert outside == pytest.approx([0], abs=1e-6)
    assert outside[0] >= 0
    assert prior.white_noise_variance == 0


def test_the_constant_is_no_louder_than_the_loudest_effect():
    prior = AnovaPriors(2, 0, [Anova(variance=0.05)])
    assert prior.variances[0] == pytest.approx(0.25)
    assert prior.scaling_variance[0] == pytest.approx(prior.variances[1])
    assert (prior.scaling_variance[1:] == prior.variances[1:]).all()
    loud = AnovaPriors(1, 0, [Anova(variance=100.0)])
    assert (loud.scaling_variance == loud.variances).all()


def test_hypotheses_fill_their_ranges():
    kernels = AnovaPriors(1, 63).kernels
    assert len(kernels) == 64
    assert repr(kernels[0]) == repr(Anova())
    for name, low, high in (("variance", 0.003, 1.0), ("length", 0.12, 1.6)):
        at = np.log([getattr(one, name) for one in kernels[1:]])
        share = (at - np.log(low)) / np.log(high / low)
        assert (share >= 0).all()
        assert np.histogram(share, 4, (0, 1))[0].min() >= 13, "evenly, on a logarithmic scale"
    linear = np.array([one.linear for one in kernels[1:]])
    shares = np.array([one.shares for one in kernels[1:]])
    assert np.histogram(linear, 3, (0.05, 0.95))[0].min() >= 19
    assert (shares[:, 0] == 1).all()
    assert shares[:, 1:].min(axis=0) == pytest.approx([0.003, 0.001], rel=0.3)
    assert shares[:, 1:].max(axis=0) == pytest.approx([1.0, 0.3], rel=0.25)
    assert AnovaPriors(1, 0, [Anova(0.2)]).kernels[0].variance == 0.2
    at = np.array([[one.variance, *one.shares[1:], one.linear, one.length] for one in kernels[1:]])
    at[:, [0, 1, 2, 4]] = np.log(at[:, [0, 1, 2, 4]])
    assert np.abs(np.corrcoef(at.T) - np.eye(5)).max() < 0.35, "each parameter varies on its own"
    assert [repr(one) for one in AnovaPriors(1, 63).kernels] == [repr(one) for one in kernels], (
        "public: the same each time"
    )


@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_effects_are_the_largest_products_of_all(d):
    decay = np.array([0.5, 0.21, 0.11])
    every = [(1.0, ())]
    for order in range(1, min(d, 3) + 1):
        for inputs in combinations(range(d), order):
            for numbers in product((1, 2, 3), repeat=order):
                scale = 4.0**-order / math.comb(d, order)
                value = scale * math.prod(decay[k - 1] for k in numbers)
                every.append((value, tuple(zip(inputs, numbers, strict=True))))
    largest = sorted(every, key=lambda one: -one[0])
    found = likely_effects([decay] * d, most=25)
    sizes = {effect: value for value, effect in every}
    assert len(set(found)) == len(found) == min(25, len(every))
    assert [sizes[one] for one in found] == pytest.approx([value for value, _ in largest[:25]])


@pytest.mark.parametrize(("d", "order"), [(13, 3), (14, 2), (25, 2), (26, 1), (400, 0)])
def test_among_many_inputs_combinations_are_too_small_to_be_found(d, order):
    found = likely_effects([np.array([0.5, 0.2])] * d, most=10**6)
    assert max(len(effect) for effect in found) == order
