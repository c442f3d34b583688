"""What a fit takes, foretold and measured: `python benchmarks/cost.py [--quick]`.

Fits of different models, sizes and sources, in a process of their own; CPU seconds against those
that `fit_cost` (`reticent plan --rows`) tells beforehand from a second or so of made-up records.
On a shared machine a second of CPU does more or less work from minute to minute, so each fit and
the measurement before it are repeated by turns, and the median of their ratios counts.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from sklearn.gaussian_process.kernels import RBF

import reticent
from reticent.planning.cost import fit_cost

SEED = 2026114301
AT_ONCE = 250_000
TURNS = 3
PEOPLE = 10  # records of a person
PRIVACY: dict[str, Any] = {"epsilon": 1, "delta": 1e-12, "random_state": 0}


def bounds(d: int) -> reticent.Bounds:
    return reticent.Bounds(x={f"x{j}": (0, 1) for j in range(d)}, y={"y": (-2, 2)})


def staged(m: int, d: int, stages: int, **more: Any) -> reticent.GPRegressor:
    given = {"noise": 0.3, "learn_kernel": False, "bounds": bounds(d), **PRIVACY, **more}
    return reticent.GPRegressor(RBF(0.5, "fixed"), basis=m, stages=stages, **given)


def mean(d: int) -> reticent.PrivateMean:
    columns = reticent.Bounds(x={f"x{j}": (0, 1) for j in range(d)})
    return reticent.PrivateMean(bounds=columns, **PRIVACY)


CASES = {
    "mean of 2 columns": (mean(2), 10_000_000, "parquet"),
    "mean of 4 columns, CSV": (mean(4), 1_000_000, "csv"),
    "GP m = 10, d = 1, 1 stage": (staged(10, 1, 1), 4_000_000, "parquet"),
    "GP m = 20, d = 2, 2 stages": (staged(20, 2, 2), 1_000_000, "parquet"),
    "GP m = 20, d = 2, 2 stages, not kept": (staged(20, 2, 2), 11_000_000, "parquet"),
    "GP m = 50, d = 4, 4 stages": (staged(50, 4, 4), 1_000_000, "parquet"),
    "GP m = 100, d = 4, 2 stages, memory": (staged(100, 4, 2), 1_000_000, "memory"),
    "GP, all defaults but m = 50, d = 2": (
        reticent.GPRegressor(basis=50, bounds=bounds(2), **PRIVACY),
        1_000_000,
        "parquet",
    ),
    "GP m = 20, d = 2, 2 stages, people": (
        staged(20, 2, 2, person="person"),
        1_000_000,
        "parquet",
    ),
}


def table(rows: int, number: int, people: int) -> pa.Table:
    rng = np.random.default_rng([SEED, number])
    X = rng.random((rows, 4))
    y = X[:, 0] * (1 - X[:, 1]) + rng.normal(0, 0.3, rows)
    columns = {f"x{j}": X[:, j] for j in range(4)} | {"y": y}
    return pa.table(columns | {"person": rng.integers(0, people, rows)})


def write(folder: Path, rows: int, kind: str) -> Path:
    """Files of made-up records; a folder for each size and kind."""
    path = folder / f"{rows}-{kind}"
    if path.exists():
        return path
    path.mkdir()
    for number in range(-(-rows // AT_ONCE)):
        part = table(min(AT_ONCE, rows - number * AT_ONCE), number, rows // PEOPLE)
        if kind == "csv":
            pyarrow.csv.write_csv(part, path / f"{number:05}.csv")
        else:
            pq.write_table(part, path / f"{number:05}.parquet")
    return path


def measured(name: str, folder: Path, divide: int) -> tuple[float, float]:
    """CPU seconds of the fit of a case, and those that are foretold."""
    model, rows, kind = CASES[name]
    rows //= divide
    per_person = PEOPLE if model.person is not None else 1
    path = write(folder, rows, kind)
    told = fit_cost(model, rows, kind, records_per_person=per_person)
    data = reticent.scan(path)
    if kind == "memory":
        data = reticent.scan(pq.read_table(path))
    start = time.process_time()
    model.fit(data)
    spent = time.process_time() - start
    again = fit_cost(model, rows, kind, records_per_person=per_person)
    return spent, (told.seconds + again.seconds) / 2


def main() -> int:
    warnings.simplefilter("ignore", UserWarning)
    if "--case" in sys.argv:
        name, folder, divide = sys.argv[2:]
        print(json.dumps(measured(name, Path(folder), int(divide))))
        return 0
    quick = "--quick" in sys.argv
    divide = 20 if quick else 1
    turns = 1 if quick else TURNS
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; medians of {turns} turns\n")
    print("| fit | records | CPU, s | foretold, s | off | of each turn |")
    print("| :-- | --: | --: | --: | --: | :-- |", flush=True)
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in CASES}
    with tempfile.TemporaryDirectory() as scratch:
        for _ in range(turns):
            for name, seen in found.items():
                words = [sys.executable, __file__, "--case", name, scratch, str(divide)]
                said = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout
                seen.append(tuple(json.loads(said)))
    ratios = []
    for name, seen in found.items():
        spent, told = (median(one) for one in zip(*seen, strict=True))
        each = [foretold / real - 1 for real, foretold in seen]
        ratios.append(median(each))
        turns_words = ", ".join(f"{one:+.0%}" for one in each)
        print(
            f"| {name} | {CASES[name][1] // divide:,} | {spent:.2f} | {told:.2f} | "
            f"{ratios[-1]:+.0%} | {turns_words} |"
        )
    near = sum(abs(one) <= 0.1 for one in ratios)
    print(f"\n{near} of {len(ratios)} are foretold within 10 %. load {os.getloadavg()[0]:.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
