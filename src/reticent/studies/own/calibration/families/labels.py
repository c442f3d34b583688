"""Cells of `LabelGPRegressor`."""

from typing import Any

import numpy as np

from reticent.models.gp.label_regressor import LabelGPRegressor
from reticent.privacy.bounds import Bounds
from reticent.studies.own.calibration.cells import FREE, Cell, Family, Trial, grid
from reticent.studies.own.calibration.families.regression import (
    LAWS,
    ZERO_OR_ONE,
    given_kernel,
    regression_trial,
)
from reticent.studies.own.calibration.laws import LENGTH, Outputs

__all__ = ["FAMILY"]

_LEARNED = "LabelGPRegressor, kernel given"
_DEFAULT = "LabelGPRegressor, default"
_BINARY = "LabelGPRegressor, binary"
_POINTS = ((2_000, 0.1), (2_000, 1.0), (2_000, 10.0), (2_000, FREE))
_DEFAULT_LAWS = (
    "normal",
    "lognormal",
    "0/1, .3",
    "0/1, .05",
    "heteroscedastic",
    "clustered inputs",
)


def _trial(cell: Cell, rng: np.random.Generator) -> Trial:
    def make(outputs: Outputs, bounds: Bounds, epsilon: float, delta: float, noise: Any) -> Any:
        model = LabelGPRegressor(
            given_kernel(outputs) if cell.model == _LEARNED else None,
            learn_kernel=cell.model != _LEARNED,
            bounds=bounds,
            epsilon=epsilon,
            delta=delta,
            random_state=noise,
        )
        if cell.model == _BINARY:
            model.set_params(outcome="binary")
        return model

    length = LENGTH if cell.model == _LEARNED else None
    return regression_trial(make, cell, rng, length=length, learn_noise=True)


FAMILY = Family(
    "labels",
    (
        *grid("labels", (_LEARNED,), LAWS, _POINTS),
        *grid("labels", (_DEFAULT,), _DEFAULT_LAWS, ((500, 1.0), (500, FREE))),
        *grid("labels", (_BINARY,), ZERO_OR_ONE, ((500, 1.0), (2_000, 1.0), (500, FREE))),
    ),
    grid("labels", (_LEARNED,), ("normal", "0/1, .3"), ((500, 1.0), (500, FREE))),
    _trial,
    "RMSE of E[y | x]",
)
