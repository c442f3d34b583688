"""Cells of `GPRegressor`: everything given, noise learned, and the default."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from reticent.models.gp.regressor import GPRegressor
from reticent.models.gp.settings import LIMITS
from reticent.privacy.bounds import Bounds
from reticent.studies.own.calibration.cells import FREE, Cell, Family, Trial, grid, ranks
from reticent.studies.own.calibration.laws import (
    HALF,
    INPUTS,
    LENGTH,
    OUTPUTS,
    Outputs,
    places,
    smooth_function,
)
from reticent.studies.own.calibration.references import regression_mean

__all__ = [
    "FAMILY",
    "LAWS",
    "ZERO_OR_ONE",
    "given_kernel",
    "outputs_covered",
    "regression_trial",
    "root_mean_square",
]

Array = NDArray[np.float64]
GIVEN = "GPRegressor, kernel and noise given"
LEARNED = "GPRegressor, kernel given"
DEFAULT = "GPRegressor, default"
BINARY = "GPRegressor, binary"
# name of the law: outputs, inputs; one of the two is plain
LAWS = {name: (name, "even") for name in OUTPUTS} | {
    f"{name} inputs": ("normal", name) for name in INPUTS if name != "even"
}
ZERO_OR_ONE = ("0/1, .3", "0/1, .05", "0/1, .02")
_GIVEN_POINTS = ((5_000, 0.1), (5_000, 1.0), (5_000, FREE))
_LEARNED_POINTS = ((5_000, 1.0), (5_000, FREE))
_POINTS = ((500, 1.0), (5_000, 0.1), (5_000, 1.0), (5_000, 10.0), (5_000, FREE), (50_000, 1.0))
_UNEVEN_POINTS = ((500, 10.0), (500, FREE), (50_000, 0.1), (50_000, FREE))
_PLACES = 32
_RANKED = (4, 16, 27)  # places far from each other, for ranks
_DRAWS = 200
_FRESH = 3_000  # outputs, for their intervals


def given_kernel(outputs: Outputs, length: float = LENGTH) -> Any:
    """The kernel that the functions of this law come from, around the middle of the range of y."""
    kernel = ConstantKernel(outputs.spread**2, "fixed") * RBF(length, "fixed")
    level = outputs.centre - outputs.middle
    if level == 0:
        return kernel
    return kernel + ConstantKernel(level**2, "fixed")


def root_mean_square(values: Array) -> float:
    """Root of the mean square."""
    return float(np.sqrt(np.mean(values**2)))


def regression_trial(
    make: Any,
    cell: Cell,
    rng: np.random.Generator,
    *,
    length: float | None,
    learn_noise: bool,
    judge_outputs: bool = False,
) -> Trial:
    """Draw records by the law of the cell, fit the model, and look at its quantiles of inputs.

    ``make`` gives the unfitted model from the law of the outputs, bounds, ε, δ and a generator;
    ``length`` and ``learn_noise`` say what the model without privacy knows. ``judge_outputs``:
    whether intervals of fresh outputs are looked at too.
    """
    outputs = OUTPUTS[LAWS[cell.law][0]]
    inputs = INPUTS[LAWS[cell.law][1]]
    truths, records, noise, later = rng.spawn(4)
    function = smooth_function(truths)
    x = inputs.draw(cell.n, records)
    y = outputs.draw(function(x), x, records)
    at = places(inputs, _PLACES)
    truth = outputs.mean(function(at))
    bounds = Bounds(x=[(-inputs.half, inputs.half)], y=outputs.bounds)
    model = make(outputs, bounds, cell.epsilon, 0.1 / cell.n, noise).fit(x[:, None], y)
    estimate, sd = model.predict(at[:, None], return_std=True)
    few = list(_RANKED)
    draws = model.sample_y(at[few, None], _DRAWS, random_state=noise)
    reference = float("nan")
    if cell.epsilon == FREE:
        level = HALF * outputs.noise
        if length:
            level = max(abs(outputs.centre - outputs.middle), 1e-9)
        exact = outputs.middle + regression_mean(
            x,
            y - outputs.middle,
            at,
            constant=level,
            spread=outputs.spread,
            noise=outputs.noise,
            length=length,
            learn_noise=learn_noise,
        )
        reference = root_mean_square(exact - truth)
    covered = np.empty(0)
    if judge_outputs:
        x_new = inputs.draw(_FRESH, later)
        y_new = outputs.draw(function(x_new), x_new, later)
        covered = outputs_covered(model, x_new, y_new)
    return Trial(
        root_mean_square(estimate - truth),
        reference,
        truth,
        estimate,
        sd,
        ranks(draws, truth[few]),
        outputs=covered,
    )


def outputs_covered(model: Any, x: Array, y: Array) -> Array:
    """Share of fresh outputs in 95 % intervals, in the lower, middle and upper third of inputs."""
    mean = model.predict(x[:, None])
    variance = sum(model.variance_parts(x[:, None]).values())
    inside = np.abs(y - mean) <= LIMITS.band_sd * np.sqrt(variance)
    thirds = np.array_split(np.argsort(x, kind="stable"), 3)
    return np.array([inside[third].mean() for third in thirds])


def _trial(cell: Cell, rng: np.random.Generator) -> Trial:
    def make(outputs: Outputs, bounds: Bounds, epsilon: float, delta: float, noise: Any) -> Any:
        model = GPRegressor(
            given_kernel(outputs) if cell.model in (GIVEN, LEARNED) else None,
            noise=outputs.noise if cell.model == GIVEN else None,
            learn_kernel=cell.model in (DEFAULT, BINARY),
            bounds=bounds,
            epsilon=epsilon,
            delta=delta,
            random_state=noise,
        )
        if cell.model == BINARY:
            model.set_params(outcome="binary")
        return model

    length = LENGTH if cell.model in (GIVEN, LEARNED) else None
    return regression_trial(
        make,
        cell,
        rng,
        length=length,
        learn_noise=cell.model != GIVEN,
        # intervals by a normal law say nothing of 0/1, and a stated noise is the user's
        judge_outputs=cell.model in (LEARNED, DEFAULT) and cell.law not in ZERO_OR_ONE,
    )


FAMILY = Family(
    "regression",
    (
        *grid("regression", (GIVEN,), LAWS, _GIVEN_POINTS),
        *grid("regression", (LEARNED,), OUTPUTS, _LEARNED_POINTS),
        *grid("regression", (DEFAULT,), LAWS, _POINTS),
        *grid("regression", (DEFAULT,), ("heteroscedastic",), _UNEVEN_POINTS),
        *grid("regression", (BINARY,), ZERO_OR_ONE, ((500, 1.0), (5_000, 0.1), (5_000, 1.0))),
    ),
    grid("regression", (GIVEN, DEFAULT), ("normal", "0/1, .05"), ((500, 1.0), (500, FREE))),
    _trial,
    "RMSE of E[y | x]",
)
