"""The comparison of numbers.

The methods, each as a function of the same training records, test inputs, bounds, ε and δ.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import reticent
from reticent.models.descriptive.mean import PrivateMean
from reticent.models.gp.regressor import GPRegressor
from reticent.privacy.bounds import Bounds
from reticent.studies.peers.baselines import boosted_adassp, dpsgd
from reticent.studies.peers.baselines import diffprivlib as diffpriv
from reticent.studies.peers.comparison import (
    Cell,
    Comparison,
    Measure,
    Method,
    Prediction,
    digest,
    one_by_one,
)
from reticent.studies.peers.mixed import ebm_baseline as ebm
from reticent.studies.peers.regression_tasks import TASKS

__all__ = [
    "CODE",
    "EASIER",
    "EASIER_BOOSTED",
    "EBM",
    "METHODS",
    "NUMBERS",
    "OURS",
    "PEER",
    "RELATIONS",
]

Array = NDArray[np.float64]
OURS = "GPRegressor"
PEER = "DP-SGD, one record replaced"
EASIER = "DP-SGD, one added or removed"
BOOSTED = "BoostedAdaSSP, one record replaced"
EASIER_BOOSTED = "BoostedAdaSSP, one added or removed"
EBM = "DP-EBM"
RELATIONS = (
    "All protect against one record being replaced, with some exceptions. DP-SGD and BoostedAdaSSP "
    "are shown a second time with one record added or removed, which takes half of the noise, and "
    "DP-EBM has no other column: these are not like-for-like peers, so the verdict leaves them "
    "out. diffprivlib protects against one added or "
    "removed too, but without a δ; it has no other column, and the verdict counts it."
)
_LEGEND = (
    "Root mean square error on a third of the records, mean over random splits ± standard error. "
    "**Bold**: the best private method, and those whose paired difference to it is within 2 "
    "standard errors. Band: share of test outputs inside GPRegressor's 95 % bands; s: its seconds "
    "of CPU for one fit."
)


def _gp(cell: Cell, epsilon: float) -> Prediction:
    model = GPRegressor(
        bounds=cell.bounds, epsilon=epsilon, delta=cell.delta, random_state=cell.seed
    )
    model.fit(cell.X, cell.y)
    parts = model.variance_parts(cell.X_new)
    return Prediction(model.predict(cell.X_new), 1.96 * np.sqrt(sum(parts.values())))


def _dpsgd(cell: Cell, epsilon: float, replaced: bool) -> Prediction:
    found = dpsgd.predict(
        cell.X, cell.y, cell.X_new, cell.bounds, epsilon, cell.delta, cell.seed, replaced
    )
    return _inside(cell, found)


def _diffprivlib(cell: Cell, epsilons: Sequence[float]) -> dict[float, Prediction]:
    found = diffpriv.predictions("LinearRegression", cell, epsilons)
    return {epsilon: _inside(cell, mean) for epsilon, mean in found.items()}


def _boosted(cell: Cell, epsilon: float, replaced: bool) -> Prediction:
    return Prediction(boosted_adassp.predict(cell, epsilon, replaced))


def _ebm(cell: Cell, epsilon: float) -> Prediction:
    """DP-EBM, with names for the columns of numbers."""
    ranges = {f"x{j}": ends for j, ends in enumerate(cell.bounds.x)}
    named = Bounds(x=ranges, y={"y": cell.bounds.y[0]})
    return _inside(cell, ebm.predict(replace(cell, bounds=named), epsilon))


def _inside(cell: Cell, mean: Array) -> Prediction:
    """Clip predictions to the output's bounds, which are public: a peer's user would do so."""
    return Prediction(np.clip(mean, *cell.bounds.y[0]))


def _mean(cell: Cell, epsilon: float) -> Prediction:
    bounds = Bounds(x=[cell.bounds.y[0]])
    model = PrivateMean(
        bounds=bounds, epsilon=epsilon, delta=cell.delta, random_state=cell.seed
    ).fit(cell.y[:, None])
    return Prediction(np.full(len(cell.X_new), model.mean_[0]))


def _linear(cell: Cell, _: float) -> Prediction:
    from sklearn.linear_model import LinearRegression

    return Prediction(LinearRegression().fit(cell.X, cell.y).predict(cell.X_new))


def _boosting(cell: Cell, _: float) -> Prediction:
    from sklearn.ensemble import HistGradientBoostingRegressor

    model = HistGradientBoostingRegressor(
        learning_rate=0.05, early_stopping=True, random_state=cell.seed
    )
    return Prediction(model.fit(cell.X, cell.y).predict(cell.X_new))


def _judge(prediction: Prediction, y: Array) -> dict[str, float]:
    error = np.abs(prediction.mean - y)
    found = {"rmse": math.sqrt(float(np.mean(error**2)))}
    if prediction.band is None:
        return found
    return {**found, "coverage": float(np.mean(error <= prediction.band))}


_HOME = Path(reticent.__file__).parent
CODE = (_HOME / "models", _HOME / "inference", _HOME / "privacy")  # on which our own results depend
METHODS = {
    method.name: method
    for method in (
        Method(OURS, one_by_one(_gp), digest(_gp, *CODE), style=("reticent", "-", "o")),
        Method(
            PEER,
            one_by_one(partial(_dpsgd, replaced=True)),
            digest(_dpsgd, _inside, dpsgd),
            style=("paper", "-", "s"),
        ),
        Method(
            EASIER,
            one_by_one(partial(_dpsgd, replaced=False)),
            digest(_dpsgd, _inside, dpsgd),
            counts=False,
            style=("paper", ":", ""),
        ),
        Method(
            BOOSTED,
            one_by_one(partial(_boosted, replaced=True)),
            digest(_boosted, boosted_adassp),
            style=("dots", "--", "v"),
        ),
        Method(
            EASIER_BOOSTED,
            one_by_one(partial(_boosted, replaced=False)),
            digest(_boosted, boosted_adassp),
            counts=False,
            style=("dots", ":", ""),
        ),
        Method(EBM, one_by_one(_ebm), digest(_ebm, _inside, ebm), counts=False),
        Method("diffprivlib", _diffprivlib, digest(_inside, diffpriv), style=("dots", "-", "^")),
        Method("mean", one_by_one(_mean), digest(_mean), style=("naive", "-", "")),
        Method("linear, not private", one_by_one(_linear), digest(_linear), private=False),
        Method(
            "boosting, not private",
            one_by_one(_boosting),
            digest(_boosting),
            private=False,
            style=("truth", "--", ""),
        ),
    )
}
NUMBERS = Comparison(
    OURS,
    EASIER,
    "mean",
    TASKS,
    METHODS,
    _judge,
    (Measure("rmse", "RMSE"),),
    Measure("coverage", "band"),
    (_LEGEND, RELATIONS),
    quick="diabetes",
    splits=(10, 5, 3),
)
