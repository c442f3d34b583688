"""Synthetic mixed tables: `GaussianMixture(…).sample` beside MST of dpmm.

A third of the records is put aside. Each method learns from the others and makes as many records as
it was given. Judged against the records put aside:

    one-way   half the L1 distance of the shares in the cells of a column, mean over columns
    two-way   the same for the cells of two columns, mean over all pairs
    model     boosting without privacy, trained on the synthetic records: RMSE or log loss of the
              table's output

Cells are levels, and tenths (by the records put aside) of numbers and dates. The training records
themselves tell how much of a distance is sampling.
"""

import json
import math
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow
from numpy.typing import NDArray

from reticent.models.mixtures.gaussian_mixture import GaussianMixture
from reticent.privacy.bounds import Bounds
from reticent.privacy.columns.base import Kind
from reticent.privacy.columns.numbers import Number
from reticent.privacy.columns.words import Words
from reticent.studies.common.python_environments import Unavailable
from reticent.studies.common.results import Findings, Progress, ResultTable, mean_error
from reticent.studies.peers.classification_methods import CLASSES
from reticent.studies.peers.comparison import Prediction, digest
from reticent.studies.peers.mixed import dpmm_baseline as dpmm
from reticent.studies.peers.mixed.methods import DELTA
from reticent.studies.peers.mixed.tasks import (
    MIXED_CLASS_TASKS,
    MIXED_NUMBER_TASKS,
    MixedTask,
    as_columns,
)
from reticent.studies.peers.regression_methods import CODE, NUMBERS

__all__ = ["MEASURES", "SyntheticResult", "distances", "run", "whole_table"]

Array = NDArray[np.float64]
MEASURES = ("one-way", "two-way", "model")
OURS = "mixture of 5"
_MST = "MST, one added or removed"
_RECORDS = "the records, not private"
_EPSILONS = (1.0, 10.0)
_TENTHS = 10
_TABLES = ("titanic", "wage", "survey", "credit")


@dataclass(frozen=True)
class SyntheticResult:
    """One method on one split of one table at one ε (infinite without privacy)."""

    table: str
    n: int
    seed: int
    method: str
    digest: str
    epsilon: float
    scores: dict[str, float]  # by measure
    seconds: float

    @property
    def key(self) -> tuple[object, ...]:
        """What makes a stored result the same as one to be computed."""
        return self.table, self.seed, self.method, self.digest, self.epsilon


@dataclass(frozen=True)
class _Split:
    """Codes (n, d) of the records to learn from, and what is public."""

    bounds: Bounds
    records: Array
    seed: int


_Synthesizer = Callable[[_Split, float], Array]


def _mixture(split: _Split, epsilon: float, components: int) -> Array:
    model = GaussianMixture(
        components, bounds=split.bounds, epsilon=epsilon, delta=DELTA, random_state=split.seed
    )
    model.fit(pyarrow.table(as_columns(split.bounds, split.records)))
    made = model.sample(len(split.records), random_state=split.seed)
    names = split.bounds.x_names or ()
    return np.column_stack(
        [
            kind.code_values(made[name])
            for name, kind in zip(names, split.bounds.x_kinds, strict=True)
        ]
    )


def _methods(quick: bool) -> dict[str, tuple[_Synthesizer, str]]:
    """Each method's synthetic records, and a digest of its code."""
    ours = digest(_mixture, *CODE)
    return {
        OURS: (lambda split, e: _mixture(split, e, 5), ours),
        "mixture of 20": (lambda split, e: _mixture(split, e, 20), ours),
        _MST: (
            lambda split, e: dpmm.synthetic_codes(
                split.bounds, split.records, e, DELTA, split.seed, make=not quick
            ),
            digest(dpmm),
        ),
        _RECORDS: (lambda split, _: split.records, ""),
    }


def whole_table(task: MixedTask) -> tuple[Bounds, Array]:
    """Bounds of all columns, the output last, and their codes (n, d)."""
    kind: Kind
    if task.range is None:
        kind = Words(task.classes)
    else:
        kind = Number(*task.range)
    X, y = task.load()
    return Bounds(x={**dict(task.kinds), task.output: kind}), np.column_stack([X, y])


def distances(bounds: Bounds, made: Array, kept: Array) -> dict[str, float]:
    """Mean distance of one-way and of two-way margins."""
    made_cells, kept_cells = [], []
    for j, kind in enumerate(bounds.x_kinds):
        if kind.levels is None:
            edges = np.unique(np.quantile(kept[:, j], np.linspace(0, 1, _TENTHS + 1)[1:-1]))
            made_cells.append(np.searchsorted(edges, made[:, j], side="right"))
            kept_cells.append(np.searchsorted(edges, kept[:, j], side="right"))
        else:
            made_cells.append(made[:, j].astype(np.int64))
            kept_cells.append(kept[:, j].astype(np.int64))
    d = len(bounds.x_kinds)
    one = [_distance(made_cells[i], kept_cells[i]) for i in range(d)]
    two = [
        _distance(made_cells[i] * 1000 + made_cells[j], kept_cells[i] * 1000 + kept_cells[j])
        for i, j in combinations(range(d), 2)
    ]
    return {"one-way": float(np.mean(one)), "two-way": float(np.mean(two))}


def _distance(one: NDArray[np.int64], other: NDArray[np.int64]) -> float:
    """Half the L1 distance of the shares of the cells."""
    size = int(max(one.max(), other.max())) + 1
    shares = [np.bincount(cells, minlength=size) / len(cells) for cells in (one, other)]
    return float(np.abs(shares[0] - shares[1]).sum() / 2)


def _model_score(bounds: Bounds, classes: bool, made: Array, kept: Array, seed: int) -> float:
    """Error on the records put aside of boosting that was trained on synthetic ones."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    words = [kind.levels is not None and not kind.ordered for kind in bounds.x_kinds[:-1]]
    options = {
        "learning_rate": 0.05,
        "early_stopping": True,
        "random_state": seed % 2**32,
        "categorical_features": words,
    }
    X, y = made[:, :-1], made[:, -1]
    if not classes:
        regressor = HistGradientBoostingRegressor(**options).fit(X, y)
        found = Prediction(regressor.predict(kept[:, :-1]))
        return NUMBERS.judge(found, kept[:, -1])["rmse"]
    chances = np.zeros((len(kept), len(bounds.x_kinds[-1].levels or ())))
    shares = np.bincount(y.astype(np.int64), minlength=chances.shape[1])
    if shares.min() < 2:  # too few of a class to train on
        chances[:] = shares / shares.sum()
    else:
        classifier = HistGradientBoostingClassifier(**options).fit(X, y)
        chances[:, classifier.classes_.astype(np.int64)] = classifier.predict_proba(kept[:, :-1])
    return CLASSES.judge(Prediction(chances), kept[:, -1])["loss"]


def run(out: Path, *, repeats: int, quick: bool, seed: int, progress: Progress) -> Findings:
    """Make synthetic tables and judge them; results are kept in the folder as they come."""
    tasks = {**MIXED_NUMBER_TASKS, **MIXED_CLASS_TASKS}
    names: tuple[str, ...] = _TABLES
    epsilons: tuple[float, ...] = _EPSILONS
    if quick:
        names = ("patients",)
        epsilons = (1.0,)
    out.mkdir(parents=True, exist_ok=True)
    path = out / "results.jsonl"
    known = {result.key: result for result in _stored(path)}
    methods = _methods(quick)
    missing: dict[str, str] = {}
    results: list[SyntheticResult] = []
    for number, name in enumerate(names):
        bounds, codes = whole_table(tasks[name])
        for split in range(repeats):
            for method, (make, code) in methods.items():
                done = (number * repeats + split) / (len(names) * repeats)
                progress(round(100 * done), 100, f"{name}, split {split + 1}, {method}")
                for epsilon in epsilons if method != _RECORDS else (math.inf,):
                    empty = SyntheticResult(
                        name, len(codes), seed + split, method, code, epsilon, {}, 0.0
                    )
                    if method in missing:
                        continue
                    if empty.key not in known:
                        try:
                            found = _judged(empty, tasks[name], bounds, codes, make)
                        except Unavailable as reason:
                            missing[method] = str(reason)
                            continue
                        known[found.key] = found
                        with path.open("a", encoding="utf-8") as file:
                            file.write(json.dumps(asdict(found)) + "\n")
                    results.append(known[empty.key])
    return Findings(
        "Synthetic mixed tables",
        [
            {
                "table": one.table,
                "records": one.n,
                "seed": one.seed,
                "method": one.method,
                "epsilon": one.epsilon,
                **one.scores,
                "seconds": round(one.seconds, 2),
            }
            for one in results
        ],
        [_table(results, list(methods), measure) for measure in MEASURES],
        notes=[f"No column for {method}: {reason}." for method, reason in missing.items()],
    ).write(out)


def _stored(path: Path) -> list[SyntheticResult]:
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").splitlines()
    return [SyntheticResult(**json.loads(line)) for line in lines]


def _judged(
    empty: SyntheticResult, task: MixedTask, bounds: Bounds, codes: Array, make: _Synthesizer
) -> SyntheticResult:
    """Fill a cell."""
    order = np.random.default_rng(empty.seed).permutation(len(codes))
    kept, records = np.split(codes[order], [len(codes) // 3])
    start = sum(os.times()[:4])  # of this process and its children
    made = make(_Split(bounds, records, empty.seed), empty.epsilon)
    seconds = sum(os.times()[:4]) - start
    scores = distances(bounds, made, kept)
    scores["model"] = _model_score(bounds, task.range is None, made, kept, empty.seed)
    return SyntheticResult(
        empty.table,
        empty.n,
        empty.seed,
        empty.method,
        empty.digest,
        empty.epsilon,
        scores,
        seconds,
    )


def _table(results: list[SyntheticResult], methods: list[str], measure: str) -> ResultTable:
    """Means and standard errors, and the paired difference of ours to MST."""
    rows = []
    shown = [name for name in methods if any(one.method == name for one in results)]
    cells = dict.fromkeys((r.table, r.epsilon) for r in results if r.epsilon < math.inf)
    for table, epsilon in cells:
        values = {
            name: {
                r.seed: r.scores[measure]
                for r in results
                if r.table == table and r.method == name and r.epsilon in (epsilon, math.inf)
            }
            for name in shown
        }
        row = [table, f"{epsilon:g}"]
        row += [_plus_minus(list(values[name].values())) for name in shown]
        theirs = values.get(_MST, {})
        apart = [values[OURS][seed] - theirs[seed] for seed in theirs if seed in values[OURS]]
        row.append(_plus_minus(apart))
        rows.append(tuple(row))
    title = {
        "one-way": "Distance of one-way margins",
        "two-way": "Distance of two-way margins",
        "model": "Error of a model trained on synthetic records (RMSE, log loss)",
    }[measure]
    return ResultTable(title, ("table", "ε", *shown, f"{OURS} − MST"), rows)


def _plus_minus(values: list[float]) -> str:
    if not values:
        return "–"
    mean, error = mean_error(values)
    return f"{mean:.3g} ± {error:.1g}"
