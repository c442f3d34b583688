"""The belief from noisy maps of labels, against the textbook Gaussian process.

The design, against its definition.
"""

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from reticent.inference.labels.design import DesignProblem, design_release, mean_coefficients
from reticent.inference.labels.posterior import (
    AveragedKernel,
    InducingFeatures,
    LabelPosterior,
    average_kernels,
    inducing_inputs,
)

S2 = 0.05


def covariance(kernel, half=1.0):
    return AveragedKernel([kernel], np.ones(1), lambda u: u, half)


K = covariance(ConstantKernel(0.7) * RBF(0.4))


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(-1, 1, size=(25, 1)), axis=0)
    return x, np.sin(4 * x[:, 0]) * 0.5 + np.sqrt(S2) * rng.normal(size=25)


def belief(x, counts=None, kernels=(K,), s2=S2, **how):
    counts = np.ones(len(x)) if counts is None else counts
    how = {"learn_noise": False, "learn_kernel": False, **how}
    return LabelPosterior(
        list(kernels),
        np.full(len(kernels), s2),
        x,
        counts,
        inducing_inputs(kernels[0], x, 99, 1e-10),
        **how,
    )


def test_all_labels_without_noise_are_the_textbook_posterior(data):
    x, y = data
    told = belief(x)
    told.add(np.eye(25), y, 1e-6, np.zeros(25), 1.0, None)
    exact = GaussianProcessRegressor(K.kernels[0], alpha=S2, optimizer=None).fit(x, y)
    grid = np.linspace(-1, 1, 9)[:, None]
    mean, model, privacy = told.posterior().moments(grid)
    expected, sd = exact.predict(grid, return_std=True)
    np.testing.assert_allclose(mean, expected, atol=2e-4)
    np.testing.assert_allclose(np.sqrt(model + privacy), sd, atol=2e-4)
    assert (privacy < 1e-4).all()


def test_noisy_sums_are_conditioned_on_as_the_formula_says(data):
    x, y = data
    rng = np.random.default_rng(1)
    A = rng.normal(size=(25, 4)) / 5
    sd = 0.3
    told = belief(x)
    told.add(A, A.T @ y, sd, np.zeros(25), 1.0, None)
    gram = K(x, x) + S2 * np.eye(25)
    grid = np.linspace(-1, 1, 9)[:, None]
    cross = K(grid, x) @ A
    inverse = np.linalg.inv(A.T @ gram @ A + sd**2 * np.eye(4))
    mean, model, privacy = told.posterior().moments(grid)
    np.testing.assert_allclose(mean, cross @ inverse @ (A.T @ y), atol=1e-4)
    np.testing.assert_allclose(
        model + privacy, 0.7 - ((cross @ inverse) * cross).sum(axis=1), atol=1e-4
    )
    together = told.posterior().joint(grid)
    np.testing.assert_allclose(together[0], mean, atol=1e-12)
    np.testing.assert_allclose(np.diag(together[1]), model + privacy, atol=1e-9)


def test_records_at_one_input_count_as_often_as_they_are(data):
    x, y = data
    A = np.random.default_rng(1).normal(size=(25, 4)) / 5
    sd = 0.3
    twice = belief(x, np.full(25, 2.0))
    once = belief(x, s2=S2 / 2)
    twice.add(A, 2 * A.T @ y, sd, np.zeros(25), 1.0, None)
    once.add(2 * A, 2 * A.T @ y, sd, np.zeros(25), 1.0, None)
    grid = np.linspace(-1, 1, 5)[:, None]
    np.testing.assert_allclose(
        twice.posterior().moments(grid), once.posterior().moments(grid), atol=1e-6
    )


def test_residual_releases_about_a_centre_say_the_same(data):
    x, y = data
    A = np.random.default_rng(1).normal(size=(25, 4)) / 5
    centre = np.cos(x[:, 0])
    plain = belief(x)
    centred = belief(x)
    plain.add(A, A.T @ y, 0.3, np.zeros(25), 1.0, None)
    centred.add(A, A.T @ (y - centre), 0.3, centre, 2.0, None)  # as far as the bounds allow
    np.testing.assert_allclose(plain.centre, centred.centre, atol=1e-9)


def test_evidence_finds_length_scale_and_second_moments_find_the_noise():
    rng = np.random.default_rng(3)
    x = np.sort(rng.uniform(-1, 1, size=(150, 1)), axis=0)
    f = np.sin(9 * x[:, 0]) * 0.6
    y = f + 0.1 * rng.normal(size=150)
    kernels = [covariance(ConstantKernel(0.3) * RBF(length)) for length in (0.2, 3.0)]
    told = belief(x, kernels=kernels, s2=0.04, learn_noise=True, learn_kernel=True)
    A = np.eye(150)[:, ::5]
    told.add(A, A.T @ y, 0.02, np.zeros(150), 1.0, (float(np.sum(2 * y**2 - 1)), 3.0))
    assert told.weights[0] > 0.99
    centre = told.centre
    squares = float(np.sum(2 * (y - centre) ** 2 - 1)), 0.3
    told.add(A, A.T @ (y - centre), 0.02, centre, 1.0, squares)
    assert 0.05 < np.sqrt(told.s2) < 0.2
    assert len(told.posterior().parts) == 1


def test_carriers_leave_little_and_a_few_are_a_choice():
    x = np.linspace(-1, 1, 200)[:, None]
    at = inducing_inputs(K, x, 99, 1e-8)
    assert 8 < len(at) < 30
    _, rest = InducingFeatures.from_kernel(K, at)(x)
    assert rest.max() < 1e-5
    assert len(inducing_inputs(K, x, 3)) == 3
    assert len(inducing_inputs(K, np.zeros((1, 1)), 10)) == 1


def test_white_noise_is_no_part_of_the_function():
    noisy = covariance(ConstantKernel(0.7) * RBF(0.4) + WhiteKernel(0.5), half=2.0)
    x = np.linspace(-1, 1, 4)[:, None]
    np.testing.assert_allclose(noisy(x, x), K(x, x) / 4)
    np.testing.assert_allclose(noisy.diag(x), K.diag(x) / 4)
    np.testing.assert_allclose(
        average_kernels([K, covariance(RBF(0.4))])(x, x), K(x, x) * (1.7 / 0.7) / 2
    )


def problem(noise, n=40):
    x = np.linspace(-1, 1, n)[:, None]
    psi, rest = InducingFeatures.from_kernel(K, inducing_inputs(K, x, 99))(x)
    return DesignProblem(psi, np.ones(n), S2 + rest, psi @ psi.T, noise), x


def test_coefficients_are_the_gaussian_process_mean():
    one, x = problem(1.0)
    weights = np.linalg.inv(K(x, x) + S2 * np.eye(40))
    np.testing.assert_allclose(
        one.psi.T @ mean_coefficients(one.psi, one.counts, one.nu), K(x, x) @ weights, atol=1e-4
    )


def test_the_functional_mechanism_has_the_exact_sensitivity_of_the_paper():
    """The lengths of the coefficients are √(c_jᵀKc_j), the norm in the space of the kernel."""
    one, x = problem(1.0)
    inverse = np.linalg.inv(K(x, x) + S2 * np.eye(40))
    norms = np.sqrt(np.diag(inverse @ K(x, x) @ inverse))
    h = mean_coefficients(one.psi, one.counts, one.nu)
    np.testing.assert_allclose(np.linalg.norm(h, axis=0), norms, rtol=1e-3)


@pytest.mark.parametrize("criterion", [None, "trace", "logdet"])
def test_columns_are_never_longer_than_one_and_a_cloak_helps(criterion):
    one, _ = problem(0.5)
    columns, cloak = design_release(one, criterion)
    assert 1 - 1e-6 < np.square(columns).sum(axis=1).max() <= 1
    expected = one.expected_error(columns)
    white = one.expected_error(design_release(one, None)[0])
    assert expected < np.trace(one.target)
    if criterion == "trace":
        assert expected < 0.98 * white
        assert cloak.gap <= 1e-3


def test_more_privacy_noise_asks_for_a_smoother_map():
    little, much = (design_release(problem(noise)[0], "trace")[0] for noise in (1e-6, 100.0))
    assert len(much.T) < len(little.T)
