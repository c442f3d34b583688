"""Our models against their peers on real data, as two of the studies.

All of the work is in `peers`.
"""

import csv
from pathlib import Path

from reticent.studies.common.results import Findings, Progress, ResultTable
from reticent.studies.peers.comparison import Comparison, Measure
from reticent.studies.peers.regression_methods import NUMBERS
from reticent.studies.peers.runner import RunPlan, study
from reticent.studies.peers.runner import run as run_quickly

__all__ = ["compare", "run"]

_MOST = 10  # splits of small data; of large data fewer


def run(out: Path, *, repeats: int, quick: bool, seed: int, progress: Progress) -> Findings:
    """GPRegressor against its peers."""
    return compare(NUMBERS, out, repeats=repeats, quick=quick, seed=seed, progress=progress)


def compare(
    of: Comparison, out: Path, *, repeats: int, quick: bool, seed: int, progress: Progress
) -> Findings:
    """Run a comparison and read its results back.

    Results in the folder are kept, and only what is missing is computed.
    """
    if quick:
        run_quickly(of, out, True, progress)
    else:
        if repeats >= _MOST:
            splits = None
        else:
            splits = repeats
        tasks = tuple(of.tasks.values())
        methods = tuple(of.methods.values())
        study(out, RunPlan(of, tasks, methods, splits=splits, first_seed=seed), progress)
    with open(out / "results.csv", newline="", encoding="utf-8") as file:
        records = list(csv.DictReader(file))
    return Findings(
        f"{of.ours} and its peers on real data",
        [dict(row) for row in records],
        [_table(of, measure, records) for measure in of.measures],
        files=[out / name for name in ("results.csv", "table.md", "picture.png")],
    )


def _table(of: Comparison, measure: Measure, records: list[dict[str, str]]) -> ResultTable:
    records = [row for row in records if row["measure"] == measure.name]
    methods = [name for name in of.methods if any(row["method"] == name for row in records)]
    rows = []
    for task, epsilon in dict.fromkeys((row["task"], row["epsilon"]) for row in records):
        found = {
            row["method"]: row
            for row in records
            if (row["task"], row["epsilon"]) == (task, epsilon)
        }
        words = [
            f"{float(found[m]['mean']):.4g}{_mark(found[m])}" if m in found else "–"
            for m in methods
        ]
        rows.append((task, epsilon, *words))
    title = f"{measure.title} on held-out records; * is best or within 2 standard errors"
    return ResultTable(title, ("task", "ε", *methods), rows)


def _mark(row: dict[str, str]) -> str:
    if row["as_good_as_best"] == "True":
        return "*"
    return ""
