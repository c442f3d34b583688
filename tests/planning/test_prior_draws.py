"""Functions from a prior: they have the kernel's covariance, and say what is left out."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern, WhiteKernel

import reticent
from reticent.inference.kernels.anova import Anova
from reticent.inference.kernels.axes import LINE, Axis
from reticent.planning.prior_draws import Effects, Function, truth
from reticent.planning.simulated_fits import Planner
from reticent.planning.synthetic_records import coded, evenly


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
    function = Effects(Anova(0.4, (0.5, 0.3, 0.2), 0.1, 0.12), (LINE, LINE), rng())
    function._rest = 0.0
    line = np.column_stack([np.linspace(-1, 1, 2001), np.full(2001, 0.3)])
    values = function(line, rng())
    assert np.abs(np.diff(values, 2)).max() < 0.01 * values.std()
    edges = function(np.array([[-1.0, -1.0], [1.0, 1.0]]), rng())
    assert np.isfinite(edges).all()


@pytest.mark.parametrize("axis", [Axis("words", 3), Axis("ordered", 3)], ids=lambda a: a.shape)
def test_effects_of_levels_have_the_covariance_of_the_prior(axis):
    kernel = Anova(variance=0.5, shares=(1.0, 0.0, 0.0), constant=0.1)
    places = np.array([[-2 / 3], [0.0], [2 / 3]])
    random = rng(5)
    drawn = np.array([Effects(kernel, (axis,), random)(places, random) for _ in range(4000)])
    found = np.cov(drawn.T)
    assert np.trace(found) / 3 == pytest.approx(0.6, rel=0.08)  # constant and effect
    if axis.shape == "words":
        wanted = 0.1 + 0.5 * (np.eye(3) - 1 / 3) * 3 / 2
        assert found == pytest.approx(wanted, abs=0.05)
    else:
        assert found[0, 1] > found[0, 2] + 0.1  # neighbours are alike


def test_a_circle_closes():
    random = rng(3)
    function = Effects(Anova(), (Axis("circle"), LINE), random)
    ends = function(np.array([[-1.0, 0.3], [1.0, 0.3]]), random)
    assert ends[0] == pytest.approx(ends[1], abs=0.02)


def test_made_up_inputs_lie_on_levels_and_are_read_as_such():
    bounds = reticent.Bounds(
        x=[["F", "M"], reticent.Whole(0, 4), (0, 1), reticent.Date("2020-01-01", "2020-12-31")],
        y=(0, 1),
    )
    codes = bounds.unscale(evenly(bounds, 400, rng()))
    assert set(np.round(codes[:, 0], 9)) == {0.0, 1.0}
    assert set(np.round(codes[:, 1], 9)) == {0.0, 1.0, 2.0, 3.0, 4.0}
    assert abs(np.mean(codes[:, 0]) - 0.5) < 0.01
    assert len(set(codes[:, 2])) == 400
    _, fields, source = coded(bounds, codes, np.zeros(400))
    assert not np.isnan(np.vstack(list(source.blocks(fields)))).any()


def test_a_plan_of_words_and_of_missing_values_that_are_kept():
    bounds = reticent.Bounds(
        x={"sex": ["F", "M", "D"], "age": reticent.Number(0, 110, keep_missing=True)},
        y={"w": (0, 10)},
    )
    model = reticent.GPRegressor(bounds=bounds, basis=6, stages=1)
    (row,) = reticent.plan(model, 400, [10], draws=1).rows
    assert 0 < row.rmse < row.prior_sd
