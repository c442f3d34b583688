"""GPRegressor against its peers in their own terms: one record added or removed.

DP-SGD, BoostedAdaSSP and DP-EBM protect against one record more or less. So does GPRegressor here,
with ``neighbours="add-remove"``: the number of records is protected too, and released with a small
share of the budget. Same records, bounds, ε and δ for all.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np

from reticent.models.descriptive.mean import PrivateMean
from reticent.models.gp.regressor import GPRegressor
from reticent.privacy.bounds import Bounds
from reticent.privacy.people.unit import ADD_REMOVE
from reticent.studies.common.results import Findings, Progress
from reticent.studies.peers.comparison import (
    Cell,
    Comparison,
    Method,
    Prediction,
    digest,
    one_by_one,
)
from reticent.studies.peers.regression import compare
from reticent.studies.peers.regression_methods import (
    CODE,
    EASIER,
    EASIER_BOOSTED,
    EBM,
    METHODS,
    NUMBERS,
)
from reticent.studies.peers.regression_tasks import TASKS

__all__ = ["ADDED_OR_REMOVED", "run"]

_TABLES = ("diabetes", "schools", "wage", "births", "food")
_RELATION = (
    "All protect against one record added or removed: the number of records is protected too. As "
    "packaged, DP-EBM keeps less (residuals are not clipped); the verdict counts it all the same."
)


def _gp(cell: Cell, epsilon: float) -> Prediction:
    model = GPRegressor(
        bounds=cell.bounds,
        epsilon=epsilon,
        delta=cell.delta,
        neighbours=ADD_REMOVE,
        random_state=cell.seed,
    )
    model.fit(cell.X, cell.y)
    parts = model.variance_parts(cell.X_new)
    return Prediction(model.predict(cell.X_new), 1.96 * np.sqrt(sum(parts.values())))


def _mean(cell: Cell, epsilon: float) -> Prediction:
    model = PrivateMean(
        bounds=Bounds(x=[cell.bounds.y[0]]),
        epsilon=epsilon,
        delta=cell.delta,
        neighbours=ADD_REMOVE,
        random_state=cell.seed,
    )
    model.fit(cell.y[:, None])
    return Prediction(np.full(len(cell.X_new), model.mean_[0]))


_METHODS = (
    Method(NUMBERS.ours, one_by_one(_gp), digest(_gp, *CODE), style=("reticent", "-", "o")),
    replace(METHODS[EASIER], counts=True, style=("paper", "-", "s")),
    replace(METHODS[EASIER_BOOSTED], counts=True, style=("dots", "--", "v")),
    replace(METHODS[EBM], counts=True, style=("dots", "-", "^")),
    Method(NUMBERS.plain, one_by_one(_mean), digest(_mean), style=("naive", "-", "")),
    METHODS["boosting, not private"],
)
ADDED_OR_REMOVED = Comparison(
    NUMBERS.ours,
    None,
    NUMBERS.plain,
    {name: TASKS[name] for name in _TABLES},
    {method.name: method for method in _METHODS},
    NUMBERS.judge,
    NUMBERS.measures,
    NUMBERS.aside,
    (NUMBERS.legend[0], _RELATION),
    quick="diabetes",
    splits=(5, 3, 3),
)


def run(out: Path, *, repeats: int, quick: bool, seed: int, progress: Progress) -> Findings:
    """Compare on some of the tables of the comparison under replacement."""
    return compare(
        ADDED_OR_REMOVED, out, repeats=repeats, quick=quick, seed=seed, progress=progress
    )
