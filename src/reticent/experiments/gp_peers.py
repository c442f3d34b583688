"""GPRegressor against its peers on real data, as one of the studies; all of the work is in `peers`."""

import csv
from pathlib import Path

from reticent.experiments.findings import Findings, Progress, Table
from reticent.experiments.peers.data import TASKS
from reticent.experiments.peers.methods import METHODS
from reticent.experiments.peers.study import Plan, study
from reticent.experiments.peers.study import run as run_quickly

__all__ = ["run"]

_MOST = 10  # splits of small data; of large data fewer


def run(out: Path, *, repeats: int, quick: bool, seed: int, progress: Progress) -> Findings:
    """Run the comparison and read its results back. Results in the folder are kept, and only what is missing is computed."""
    if quick:
        run_quickly(out, True, progress)
    else:
        splits = None if repeats >= _MOST else repeats
        study(out, Plan(tuple(TASKS.values()), splits=splits, first_seed=seed), progress)
    with open(out / "results.csv", newline="", encoding="utf-8") as file:
        records = list(csv.DictReader(file))
    methods = [name for name in METHODS if any(row["method"] == name for row in records)]
    cells = {(row["task"], row["epsilon"]): "" for row in records}
    rows = []
    for task, epsilon in cells:
        found = {row["method"]: row for row in records if (row["task"], row["epsilon"]) == (task, epsilon)}
        words = [f"{float(found[m]['rmse']):.4g}{_mark(found[m])}" if m in found else "–" for m in methods]
        rows.append((task, epsilon, *words))
    return Findings(
        "GPRegressor and its peers on real data",
        [dict(row) for row in records],
        [
            Table(
                "Root mean square error on held-out records; * is best or within 2 standard errors",
                ("task", "ε", *methods),
                rows,
            )
        ],
        files=[out / name for name in ("results.csv", "table.md", "picture.png")],
    )


def _mark(row: dict[str, str]) -> str:
    return "*" if row["as_good_as_best"] == "True" else ""
