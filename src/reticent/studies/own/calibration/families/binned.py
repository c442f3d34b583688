"""Cells of `BinnedGPRegressor`: means of bins."""

from typing import Any

import numpy as np

from reticent.models.gp.binned_regressor import BinnedGPRegressor
from reticent.privacy.bounds import Bounds
from reticent.studies.own.calibration.cells import FREE, Cell, Family, Trial, grid
from reticent.studies.own.calibration.families.regression import (
    LAWS,
    given_kernel,
    regression_trial,
)
from reticent.studies.own.calibration.laws import LENGTH, Outputs

__all__ = ["FAMILY"]

_GIVEN = "BinnedGPRegressor, kernel given"
_DEFAULT = "BinnedGPRegressor, default"
_POINTS = ((5_000, 0.1), (5_000, 1.0), (5_000, FREE))


def _trial(cell: Cell, rng: np.random.Generator) -> Trial:
    def make(outputs: Outputs, bounds: Bounds, epsilon: float, delta: float, noise: Any) -> Any:
        return BinnedGPRegressor(
            None if cell.model == _DEFAULT else given_kernel(outputs),
            learn_kernel=cell.model == _DEFAULT,
            bounds=bounds,
            epsilon=epsilon,
            delta=delta,
            random_state=noise,
        )

    length = None if cell.model == _DEFAULT else LENGTH
    return regression_trial(make, cell, rng, length=length, learn_noise=True)


FAMILY = Family(
    "binned",
    (
        *grid("binned", (_GIVEN,), LAWS, ((5_000, 1.0), (5_000, FREE))),
        *grid("binned", (_DEFAULT,), LAWS, _POINTS),
    ),
    grid("binned", (_GIVEN,), ("normal", "0/1, .3"), ((500, 1.0), (500, FREE))),
    _trial,
    "RMSE of E[y | x]",
)
