"""GPClassifier on data sets that come with scikit-learn.

Accuracy and calibration against ε, for its three methods. Bounds are what one would state without
the data: pixels from 0 to 16; features of cells from 0 to a round number above what is usual. A
third of the records is put aside for testing, other ones in every repeat. δ = 1e-5.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reticent.models.gp.classifier import METHODS, GPClassifier
from reticent.privacy.bounds import Bounds
from reticent.studies.common.results import (
    Claim,
    Findings,
    Progress,
    ResultTable,
    Value,
    mean_error,
    plus_minus,
    times,
)

__all__ = ["CELLS", "calibration_error", "run"]

Array = NDArray[np.float64]
EPSILONS = (1.0, 3.0, 10.0)
_DELTA = 1e-5
CELLS: tuple[float, ...] = (
    30,
    45,
    200,
    2600,
    0.2,
    0.4,
    0.5,
    0.25,
    0.35,
    0.1,
)  # means of ten features
CELLS += (3, 5, 25, 600, 0.04, 0.15, 0.4, 0.06, 0.08, 0.03)  # their standard errors
CELLS += (40, 50, 260, 4500, 0.25, 1.1, 1.3, 0.3, 0.7, 0.21)  # their worst values


@dataclass(frozen=True)
class _Task:
    """One data set of scikit-learn, the bounds of its inputs, and what must be reached."""

    name: str
    loader: str
    highs: tuple[float, ...]
    classes: int
    asked: tuple[float | None, ...]  # least accuracy at each ε

    def load(self) -> tuple[Array, NDArray[np.int64]]:
        from sklearn import datasets

        X, y = getattr(datasets, self.loader)(return_X_y=True)
        return X, y

    @property
    def bounds(self) -> Bounds:
        return Bounds(x=[(0, high) for high in self.highs], classes=list(range(self.classes)))


TASKS = (
    _Task("digits", "load_digits", (16.0,) * 64, 10, (0.376, 0.595, 0.731)),
    _Task("breast cancer", "load_breast_cancer", CELLS, 2, (0.93, None, None)),
)


class Trial(NamedTuple):
    """What one fit measured."""

    accuracy: float
    gap: float  # expected calibration error
    loss: float  # mean −log chance of the true class


Trials = dict[tuple[str, str, float], list[Trial]]  # by task, method, ε


def calibration_error(chances: Array, truth: NDArray[np.int64], bins: int = 10) -> float:
    """Mean distance between how sure and how right the likeliest class is, over bins of sureness.

    >>> calibration_error(np.array([[0.75, 0.25]] * 4), np.array([0, 0, 0, 1]))
    0.0
    """
    sure = chances.max(axis=1)
    right = chances.argmax(axis=1) == truth
    bin_of = np.minimum((sure * bins).astype(int), bins - 1)
    return float(
        sum(
            abs(right[bin_of == b].mean() - sure[bin_of == b].mean()) * (bin_of == b).mean()
            for b in np.unique(bin_of)
        )
    )


def run(out: Path, *, repeats: int, quick: bool, seed: int, progress: Progress) -> Findings:
    """Compute and tabulate."""
    tasks, epsilons = (TASKS[1:], EPSILONS[:1]) if quick else (TASKS, EPSILONS)
    cells = [
        (task, method, e, r)
        for task in tasks
        for method in METHODS
        for e in epsilons
        for r in range(repeats)
    ]
    trials: Trials = {}
    for done, (task, method, epsilon, repeat) in enumerate(cells):
        progress(done, len(cells), f"{task.name}, {method}, ε={epsilon:g}")
        trials.setdefault((task.name, method, epsilon), []).append(
            _trial(task, method, epsilon, seed + repeat)
        )
    findings = Findings(
        "Private classification: accuracy and calibration",
        [_record(key, values) for key, values in trials.items()],
        [
            _table("Accuracy", "accuracy", trials, tasks, epsilons),
            _table("Expected calibration error", "gap", trials, tasks, epsilons),
            _table("Mean −log chance of the true class", "loss", trials, tasks, epsilons),
        ],
        [] if quick else judge(trials),
        [
            f"δ = {_DELTA:g}, {times(repeats)}, splits and noise from seed {seed}. Dirichlet: 24 "
            "functions for digits."
        ],
    )
    findings.write(out)
    return findings


def _trial(task: _Task, method: str, epsilon: float, seed: int) -> Trial:
    from sklearn.model_selection import train_test_split

    X, y = task.load()
    known, new, y_known, y_new = train_test_split(
        X, y, test_size=1 / 3, random_state=seed, stratify=y
    )
    # a Gram matrix for each class is long
    if method == "dirichlet" and task.classes > 2:
        size = 24
    else:
        size = None
    promise = {"epsilon": epsilon, "delta": _DELTA}
    model = GPClassifier(
        method=method, basis=size, bounds=task.bounds, random_state=seed
    ).set_params(**promise)
    chances = model.fit(known, y_known).predict_proba(new)
    true = chances[np.arange(len(y_new)), y_new]
    accuracy = float(np.mean(chances.argmax(axis=1) == y_new))
    return Trial(accuracy, calibration_error(chances, y_new), float(-np.mean(np.log(true))))


def _record(key: tuple[str, str, float], values: Sequence[Trial]) -> dict[str, Value]:
    record: dict[str, Value] = dict(zip(("task", "method", "epsilon"), key, strict=True))
    for name in Trial._fields:
        record[name], record[f"{name}_error"] = mean_error(getattr(value, name) for value in values)
    return record


def _table(
    title: str, what: str, trials: Trials, tasks: Sequence[_Task], epsilons: Sequence[float]
) -> ResultTable:
    rows = [
        (
            task.name,
            method,
            *(
                plus_minus([getattr(one, what) for one in trials[task.name, method, epsilon]])
                for epsilon in epsilons
            ),
        )
        for task in tasks
        for method in METHODS
    ]
    return ResultTable(
        title, ("data", "method", *(f"ε={epsilon:g}" for epsilon in epsilons)), rows, left=2
    )


def judge(trials: Trials) -> list[Claim]:
    """Claims, each kept or not by these results."""
    claims = []
    for task in TASKS:
        for epsilon, least in zip(EPSILONS, task.asked, strict=True):
            if least is not None:
                found, error = mean_error(
                    one.accuracy for one in trials[task.name, "softmax", epsilon]
                )
                words = f"{task.name}, ε={epsilon:g}: accuracy at least {least}"
                claims.append(Claim(words, f"{found:.3f} ± {error:.3f}", found >= least))
    gap, error = mean_error(one.gap for one in trials["breast cancer", "softmax", 1.0])
    claims.append(
        Claim(
            "breast cancer, ε=1: calibration error at most 0.05",
            f"{gap:.3f} ± {error:.3f}",
            gap <= 0.05,
        )
    )
    return claims
