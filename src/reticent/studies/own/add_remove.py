"""GPRegressor against its peers in their own terms: one record added or removed.

DP-SGD and DP-EBM protect against one record more or less. So does GPRegressor here, with
``neighbours="add-remove"``: the number of records is protected too, and released with a small share
of the budget. Same records, bounds, ε and δ for all.
"""

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from reticent.models.descriptive.mean import PrivateMean
from reticent.models.gp.regressor import GPRegressor
from reticent.privacy.bounds import Bounds
from reticent.privacy.people.unit import ADD_REMOVE
from reticent.studies.common.results import Findings, Progress
from reticent.studies.peers.baselines import dpsgd
from reticent.studies.peers.comparison import (
    Cell,
    Comparison,
    Method,
    Prediction,
    digest,
    one_by_one,
)
from reticent.studies.peers.mixed import ebm_baseline as ebm
from reticent.studies.peers.regression import compare
from reticent.studies.peers.regression_methods import CODE, EASIER, METHODS, NUMBERS
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


def _peer(cell: Cell, epsilon: float, which: str) -> Prediction:
    """Predictions inside the bounds of the output, which are public."""
    if which == "DP-SGD":
        found = dpsgd.predict(
            cell.X, cell.y, cell.X_new, cell.bounds, epsilon, cell.delta, cell.seed, False
        )
    else:
        found = ebm.predict(replace(cell, bounds=_named(cell.bounds)), epsilon)
    return Prediction(np.clip(found, *cell.bounds.y[0]))


def _named(bounds: Bounds) -> Bounds:
    """The same ranges, with names for the columns of numbers."""
    return Bounds(x={f"x{j}": ends for j, ends in enumerate(bounds.x)}, y={"y": bounds.y[0]})


_METHODS = (
    Method(NUMBERS.ours, one_by_one(_gp), digest(_gp, *CODE), style=("reticent", "-", "o")),
    Method(
        EASIER,
        one_by_one(partial(_peer, which="DP-SGD")),
        digest(_peer, dpsgd),
        style=("paper", "-", "s"),
    ),
    Method(
        "DP-EBM",
        one_by_one(partial(_peer, which="DP-EBM")),
        digest(_peer, ebm),
        style=("dots", "-", "^"),
    ),
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
