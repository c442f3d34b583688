"""Runner of the comparison: every method on every split of every task at every ε.

Results are stored, so that only methods whose code has changed run again.

A split puts a random third of the records aside for testing. While our defaults were made, only the
tasks that are not held out and seeds from 0 were used; the report takes all tasks and seeds never
used before.
"""

import hashlib
import json
import math
import os
from collections.abc import Container, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from reticent.studies import REPORT_SEED
from reticent.studies.common.python_environments import Unavailable
from reticent.studies.common.results import Progress
from reticent.studies.peers import tables
from reticent.studies.peers.comparison import Cell, Comparison, Method, Task

__all__ = ["EPSILONS", "Result", "RunPlan", "run", "study"]

Array = NDArray[np.float64]
EPSILONS = (0.3, 1.0, 3.0, 10.0)


@dataclass(frozen=True)
class RunPlan:
    """Which cells to fill."""

    of: Comparison
    tasks: tuple[Task, ...]
    methods: tuple[Method, ...]
    epsilons: tuple[float, ...] = EPSILONS
    splits: int | None = None  # by the number of records if not given
    first_seed: int = 0
    fresh: bool = False

    def seeds(self, n: int) -> range:
        """More splits of small data than of large."""
        splits = self.splits or self.of.splits[(n >= 20_000) + (n >= 100_000)]
        return range(self.first_seed, self.first_seed + splits)


@dataclass(frozen=True)
class Result:
    """One filled cell: one method on one split at one ε (infinite where there is no privacy)."""

    task: str
    n: int
    d: int
    seed: int
    method: str
    digest: str
    epsilon: float
    scores: dict[str, float]  # by measure
    seconds: float

    @property
    def key(self) -> tuple[object, ...]:
        """What makes a stored result the same as one to be computed."""
        return self.task, self.seed, self.method, self.digest, self.epsilon


def run(of: Comparison, out: Path, quick: bool = False, progress: Progress | None = None) -> None:
    """Run the study as reported; ``quick``: two splits of one small task, with quick methods."""
    if quick:
        methods = tuple(
            method
            for name, method in of.methods.items()
            if not name.startswith(("diffprivlib", "boosting"))
        )
        study(
            out,
            RunPlan(of, (of.tasks[of.quick],), methods, (1.0, 10.0), splits=2, fresh=True),
            progress,
        )
    else:
        study(
            out,
            RunPlan(
                of, tuple(of.tasks.values()), tuple(of.methods.values()), first_seed=REPORT_SEED
            ),
            progress,
        )


def study(out: Path, plan: RunPlan, progress: Progress | None = None) -> list[Result]:
    """Fill the plan's cells, and write tables and a picture of them to ``out``.

    Returns all results that these show.
    """
    out.mkdir(parents=True, exist_ok=True)
    kept = out / "results.jsonl"
    known = {result.key: result for result in _stored_results(kept)}
    if plan.fresh:
        chosen = {method.name for method in plan.methods}
        known = {key: result for key, result in known.items() if result.method not in chosen}
    shown: list[Result] = []
    missing: dict[str, str] = {}  # methods that are not to be had here, and why
    for number, task in enumerate(plan.tasks):
        X, y = task.load()
        wanted = [(seed, method) for seed in plan.seeds(len(y)) for method in plan.methods]
        for done, (seed, method) in enumerate(wanted):
            if progress:
                what = f"{task.name}, split {seed - plan.first_seed + 1}, {method.name}"
                progress(round(100 * (number + done / len(wanted))), 100 * len(plan.tasks), what)
            if method.name in missing:
                continue
            try:
                found = _missing_results(plan, task, X, y, seed, method, known)
            except Unavailable as reason:
                missing[method.name] = str(reason)
                continue
            known |= {result.key: result for result in found}
            with kept.open("a", encoding="utf-8") as file:
                file.writelines(json.dumps(asdict(result)) + "\n" for result in found)
        shown += _shown(task, plan, len(y), known.values())
    tables.write_tables(
        out,
        plan.of,
        shown,
        [f"No column for {name}: {reason}." for name, reason in missing.items()],
    )
    return shown


def _missing_results(
    plan: RunPlan,
    task: Task,
    X: Array,
    y: Array,
    seed: int,
    method: Method,
    known: Container[object],
) -> list[Result]:
    """Compute what is not known yet."""
    label = (task.name, len(y), X.shape[1], seed, method.name, _result_key(method, task))
    asked = plan.epsilons if method.private else (math.inf,)
    missing = [epsilon for epsilon in asked if Result(*label, epsilon, {}, 0.0).key not in known]
    if not missing:
        return []
    test, train = np.split(np.random.default_rng(seed).permutation(len(y)), [len(y) // 3])
    delta = plan.of.delta
    if delta is None:
        delta = 1e-6 if len(y) > 100_000 else 1e-5
    cell = Cell(X[train], y[train], X[test], task.bounds, delta, seed)
    start = sum(os.times()[:4])  # of this process and its children
    found = method.predictions(cell, missing)
    seconds = (sum(os.times()[:4]) - start) / len(missing)
    return [
        Result(*label, epsilon, plan.of.judge(told, y[test]), seconds)
        for epsilon, told in found.items()
    ]


def _result_key(method: Method, task: Task) -> str:
    """A result is kept as long as the method's code and the task are the same."""
    return hashlib.sha256(f"{method.digest} {task}".encode()).hexdigest()[:16]


def _shown(task: Task, plan: RunPlan, n: int, known: Iterable[Result]) -> list[Result]:
    """Results of this plan's task, seeds and ε by all methods as their code is now."""
    seeds = plan.seeds(n)
    epsilons = {*plan.epsilons, math.inf}
    current = {_result_key(method, task) for method in plan.of.methods.values()}
    return [r for r in known if r.digest in current and r.seed in seeds and r.epsilon in epsilons]


def _stored_results(path: Path) -> list[Result]:
    if path.exists():
        lines = path.read_text(encoding="utf-8").splitlines()
    else:
        lines = []
    return [Result(**json.loads(line)) for line in lines]
