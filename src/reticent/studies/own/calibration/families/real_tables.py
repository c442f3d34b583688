"""Cells of regressions on the inputs and outputs of real tables, with default priors."""

from typing import Any

import numpy as np

from reticent.models.gp.binned_regressor import BinnedGPRegressor
from reticent.models.gp.label_regressor import LabelGPRegressor
from reticent.models.gp.regressor import GPRegressor
from reticent.privacy.bounds import Bounds
from reticent.studies.own.calibration.cells import FREE, Cell, Family, Trial, grid, ranks
from reticent.studies.own.calibration.families.regression import root_mean_square
from reticent.studies.own.calibration.laws import HALF
from reticent.studies.own.calibration.real_laws import REAL_LAWS
from reticent.studies.own.calibration.references import regression_mean

__all__ = ["FAMILY"]

_RECORDS = "GPRegressor, default"
_LABELS = "LabelGPRegressor, default"
_BINS = "BinnedGPRegressor, default"
_CLASSES = {_RECORDS: GPRegressor, _LABELS: LabelGPRegressor, _BINS: BinnedGPRegressor}
_PLACES = 32
_RANKED = [4, 16, 27]  # of the places, for ranks
_DRAWS = 200


def _trial(cell: Cell, rng: np.random.Generator) -> Trial:
    law = REAL_LAWS[cell.law]
    records, noise = rng.spawn(2)
    x, y = law.draw(cell.n, records)
    at = law.places(_PLACES)
    truth = law.mean(at)
    model: Any = _CLASSES[cell.model](
        bounds=Bounds(x=[law.x_bounds], y=law.y_bounds),
        epsilon=cell.epsilon,
        delta=0.1 / cell.n,
        random_state=noise,
    )
    model.fit(x[:, None], y)
    estimate, sd = model.predict(at[:, None], return_std=True)
    draws = model.sample_y(at[_RANKED, None], _DRAWS, random_state=noise)
    reference = float("nan")
    if cell.epsilon == FREE:
        low, high = law.x_bounds
        scale = 2 * HALF / (high - low)  # the lengths of the model without privacy are for ± HALF
        middle = sum(law.y_bounds) / 2
        exact = middle + regression_mean(
            x * scale,
            y - middle,
            at * scale,
            constant=law.y_bounds[1] - middle,
            spread=law.spread,
            noise=law.spread,
            length=None,
            learn_noise=True,
        )
        reference = root_mean_square(exact - truth)
    return Trial(
        root_mean_square(estimate - truth),
        reference,
        truth,
        estimate,
        sd,
        ranks(draws, truth[_RANKED]),
    )


FAMILY = Family(
    "real tables",
    (
        *grid(
            "real tables",
            (_RECORDS,),
            REAL_LAWS,
            ((500, 1.0), (5_000, 0.1), (5_000, 1.0), (5_000, 10.0), (5_000, FREE), (50_000, 1.0)),
        ),
        *grid("real tables", (_LABELS,), REAL_LAWS, ((500, 1.0), (500, 10.0), (500, FREE))),
        *grid("real tables", (_BINS,), REAL_LAWS, ((5_000, 1.0), (5_000, 10.0), (5_000, FREE))),
    ),
    grid("real tables", (_RECORDS,), ("pressure by age",), ((500, 1.0), (500, FREE))),
    _trial,
    "RMSE of E[y | x], in the units of y",
)
