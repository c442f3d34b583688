"""Functions from a prior: they have the kernel's covariance, and say what is left out."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern, WhiteKernel

import reticent
from reticent.inference.kernels.anova import Anova
from reticent.planning.prior_draws import Effects, Function, truth
from reticent.planning.simulated_fits import Planner
from reticent.planning.synthetic_records import evenly


def rng(seed=0):
    return np.random.default_rng(seed)


@pytest.mark.parametrize(
    ("kernel", "d"),
    [
        (ConstantKernel(4.0) * (RBF(0.5) + Matern(1.0, nu=1.5)) + WhiteKernel(0.3), 1),
        (RBF([0.5, 2.0]) + ConstantKernel(0.5) * DotProduct(1.0), 2),
        (Matern(0.5, nu=0.5), 1),
        (Anova(0.4, (0.5, 0.3, 0.2), 0.3, 0.2), 1),
        (Anova(0.4, (0.5, 0.3, 0.2), 0.3, 0.2), 3),
    ],
)
def test_functions_have_the_covariance_of_the_kernel(kernel, d):
    points = evenly(reticent.Bounds(x=[(-1, 1)] * d), 256 + 64, rng(1))
    at = rng(2).uniform(-1, 1, (5, d))
    draws = 400
    random = rng(3)
    drawn = np.array([truth(kernel, points, random)(at, random) for _ in range(draws)])
    exact = kernel(at, at.copy())  # without the white noise, which is no part of the function
    assert np.abs(np.cov(drawn.T) - exact).max() < 5 * exact.max() / (draws / 2) ** 0.5
    assert np.abs(drawn.mean(axis=0)).max() < 4 * np.sqrt(exact.max() / draws)


@pytest.mark.parametrize(("d", "most"), [(1, 3e-5), (2, 3e-5), (4, 3e-5)])
def test_little_variance_is_left_out_of_the_default_prior(d, most):
    model = reticent.GPRegressor(bounds=reticent.Bounds(x=[(0, 9)] * d, y=(0, 1)), delta=1e-6)
    planner = Planner(model, 3, 0, lambda fits: None)
    assert max(drawn.function.left_out for drawn in planner._drawn) < most


def test_what_is_left_out_is_said_and_keeps_the_variance():
    points = evenly(reticent.Bounds(x=[(-1, 1)] * 6), 400, rng())
    function = Function(RBF(0.2), points, rng(1))
    assert function.left_out > 0.5
    assert np.std(function(rng(2).uniform(-1, 1, (4000, 6)), rng(3))) == pytest.approx(1, abs=0.1)


def test_effects_are_smooth_between_the_places_of_their_table():
    function = Effects(Anova(0.4, (0.5, 0.3, 0.2), 0.1, 0.12), 2, rng())
    function._rest = 0.0
    line = np.column_stack([np.linspace(-1, 1, 2001), np.full(2001, 0.3)])
    values = function(line, rng())
    assert np.abs(np.diff(values, 2)).max() < 0.01 * values.std()
    edges = function(np.array([[-1.0, -1.0], [1.0, 1.0]]), rng())
    assert np.isfinite(edges).all()
