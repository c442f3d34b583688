"""Cells of `GPRegressor` with two inputs: everything given, and the default."""

import numpy as np

from reticent.models.gp.regressor import GPRegressor
from reticent.privacy.bounds import Bounds
from reticent.studies.own.calibration.cells import FREE, Cell, Family, Trial, grid, ranks
from reticent.studies.own.calibration.families.regression import given_kernel, root_mean_square
from reticent.studies.own.calibration.laws import HALF, OUTPUTS, smooth_surface
from reticent.studies.own.calibration.references import dense_regression_mean

__all__ = ["FAMILY"]

_GIVEN = "GPRegressor, two inputs, kernel and noise given"
_DEFAULT = "GPRegressor, two inputs, default"
_LAWS = ("normal", "lognormal", "0/1, .05")
_POINTS = ((2_000, 1.0), (2_000, 10.0), (2_000, FREE), (20_000, 1.0))
_INPUTS = 2
_LENGTH = 2.0  # of the functions, in a box of width 6
_PLACES = 32
_RANKED = [0, 1, 2]  # of the places, for ranks
_DRAWS = 200


def _trial(cell: Cell, rng: np.random.Generator) -> Trial:
    outputs = OUTPUTS[cell.law]
    truths, records, noise = rng.spawn(3)
    function = smooth_surface(truths, _INPUTS, _LENGTH)
    at = np.random.default_rng(0).uniform(-HALF, HALF, size=(_PLACES, _INPUTS))
    truth = outputs.mean(function(at))
    X = records.uniform(-HALF, HALF, size=(cell.n, _INPUTS))
    y = outputs.draw(function(X), X[:, 0], records)
    kernel = None
    if cell.model == _GIVEN:
        kernel = given_kernel(outputs, _LENGTH)
    model = GPRegressor(
        kernel,
        noise=outputs.noise if cell.model == _GIVEN else None,
        learn_kernel=cell.model == _DEFAULT,
        bounds=Bounds(x=[(-HALF, HALF)] * _INPUTS, y=outputs.bounds),
        epsilon=cell.epsilon,
        delta=0.1 / cell.n,
        random_state=noise,
    ).fit(X, y)
    estimate, sd = model.predict(at, return_std=True)
    draws = model.sample_y(at[_RANKED], _DRAWS, random_state=noise)
    reference = float("nan")
    if cell.epsilon == FREE and cell.model == _GIVEN:
        around = y - outputs.middle
        exact = dense_regression_mean(X, around, at, kernel=kernel, noise=outputs.noise)
        reference = root_mean_square(outputs.middle + exact - truth)
    return Trial(
        root_mean_square(estimate - truth),
        reference,
        truth,
        estimate,
        sd,
        ranks(draws, truth[_RANKED]),
    )


FAMILY = Family(
    "two inputs",
    grid("two inputs", (_GIVEN, _DEFAULT), _LAWS, _POINTS),
    grid("two inputs", (_GIVEN,), ("normal",), ((500, FREE),)),
    _trial,
    "RMSE of E[y | x]",
)
