"""A fit that protects people, from Parquet files and on a cluster: `python benchmarks/people.py
[--quick] [--rows N] [--folder DIR]`.

Writes Parquet files of N made-up records of N/10 people, unsorted and a piece at a time, with an
identifier as a whole number and as a text. A mean, a Gaussian process of two stages and one with
all defaults are fitted without `person` and with either identifier, each in a process of its own:
seconds of CPU (of all readings of the files) and the most memory beside what the process had
before. Then a tenth of the files is fitted on a local Dask cluster of two worker processes, which
must give the same integers; they are compared for the first two.
"""

import argparse
import json
import logging
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import reticent
from reticent.privacy.curator import Curator

IN_FILE = 250_000
AT_ONCE = 2**16
SEED = 1
PER_PERSON = 10
MODELS = ("mean", "gp", "gp-default")  # the first GP has two stages, the second all defaults
COLUMNS = {"without person": None, "integer ids": "number", "text ids": "name"}
ASKED = 1.5  # times the time without person


def write(folder: Path, rows: int, in_file: int) -> None:
    """Files of made-up records, of which at most one piece is in memory."""
    people = max(rows // PER_PERSON, 1)
    schema = pa.schema(
        [
            ("x0", pa.float64()),
            ("x1", pa.float64()),
            ("y", pa.float64()),
            ("number", pa.int64()),
            ("name", pa.string()),
        ]
    )
    for number in range(rows // in_file):
        rng = np.random.default_rng([SEED, number])
        with pq.ParquetWriter(folder / f"{number:05}.parquet", schema) as file:
            for start in range(0, in_file, AT_ONCE):
                size = min(AT_ONCE, in_file - start)
                X = rng.random((size, 2))
                y = X[:, 0] * (1 - X[:, 1]) + rng.normal(0, 0.3, size)
                ids = rng.integers(0, people, size)
                names = [f"patient-{one:08}" for one in ids.tolist()]
                file.write_table(pa.table([*X.T, y, ids * 7919, names], schema=schema))


def model(name: str, person: str | None) -> Any:
    """An unfitted model; with one seed, so that releases can be compared."""
    how: dict[str, Any] = {
        "bounds": reticent.Bounds(x={"x0": (0, 1), "x1": (0, 1)}),
        "epsilon": 1,
        "delta": 1e-12,
        "random_state": SEED,
        "person": person,
    }
    if name == "mean":
        return reticent.PrivateMean(**how)
    how["bounds"] = reticent.Bounds(x={"x0": (0, 1), "x1": (0, 1)}, y={"y": (-2, 2)})
    if name == "gp-default":
        return reticent.GPRegressor(**how)
    return reticent.GPRegressor(basis=20, stages=2, **how)


def fitted(name: str, person: str | None, data: Any) -> dict[str, Any]:
    """Fit, and give the exact integers that releases were made from.

    They are caught before the noise is added: only here, where the records are made up.
    """
    exact = Curator._exact
    caught: list[list[str]] = []

    def catch(self: Curator, statistic: Any, number: int) -> Any:
        found = exact(self, statistic, number)
        caught.append([str(int(one)) for one in found])
        return found

    Curator._exact = catch  # type: ignore[method-assign]
    try:
        estimator = model(name, person).fit(reticent.scan(data))
    finally:
        Curator._exact = exact  # type: ignore[method-assign]
    return {"units": estimator.releases_[0].n, "integers": caught}


def memory(name: str) -> int:
    """A line of /proc/self/status, in bytes."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return 1024 * int(next(line for line in lines if line.startswith(name)).split()[1])


def measure(folder: Path, name: str, person: str | None) -> dict[str, Any]:
    """One fit in this process, and what it took."""
    few = pa.table(
        {column: np.linspace(0, 1, 500) for column in ("x0", "x1", "y")}
        | {"number": np.arange(500), "name": list(map(str, range(500)))}
    )
    fitted(name, person, few)  # what is loaded and compiled once
    before = memory("VmRSS")
    wall = time.perf_counter()
    cpu = time.process_time()
    found = fitted(name, person, folder)
    return found | {
        "cpu": time.process_time() - cpu,
        "wall": time.perf_counter() - wall,
        "memory": memory("VmHWM") - before,
    }


def in_a_process(folder: Path, name: str, person: str | None) -> dict[str, Any]:
    words = [sys.executable, __file__, "--measure", str(folder), name, person or "-"]
    found: dict[str, Any] = json.loads(
        subprocess.run(words, check=True, capture_output=True, encoding="utf-8").stdout
    )
    return found


def compare(folder: Path, rows: int, rounds: int) -> bool:
    """Print times and memory of all fits; give whether people cost no more than asked."""
    print(f"{rows:,} records of {rows // PER_PERSON:,} people, {rounds} rounds, least CPU of them")
    kept = True
    for name in MODELS:
        base = 0.0
        for title, person in COLUMNS.items():
            runs = [in_a_process(folder, name, person) for _ in range(rounds)]
            cpu = min(one["cpu"] for one in runs)
            wall = min(one["wall"] for one in runs)
            most = max(one["memory"] for one in runs) / 2**20
            if person is None:
                base = cpu
            print(
                f"  {name:10} {title:15} {cpu:8.1f} s of CPU ({cpu / base:.2f} ×), "
                f"{wall:7.1f} s, {most:6.0f} MB, {runs[0]['units']:,} units",
                flush=True,
            )
            kept = kept and cpu <= ASKED * base
    return kept


def same_integers(folder: Path) -> bool:
    """Whether one process and two workers give the same integers, for both kinds of identifiers."""
    import dask.dataframe as dd
    from distributed import Client, LocalCluster

    same = True
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(**options, silence_logs=logging.CRITICAL) as cluster, Client(cluster):
        for name in MODELS[:2]:
            found = []
            for person in ("number", "name"):
                found.append(fitted(name, person, folder))
                frame = dd.read_parquet(sorted(map(str, folder.iterdir())))
                found.append(fitted(name, person, frame))
            same = same and all(one == found[0] for one in found)
    return same


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[1])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rows", type=int, default=10**7)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="where the files are written; they are deleted")
    parser.add_argument("--measure", nargs=3, metavar=("FOLDER", "MODEL", "PERSON"))
    given = parser.parse_args()
    if given.measure:
        folder, name, person = given.measure
        print(json.dumps(measure(Path(folder), name, None if person == "-" else person)))
        return
    rows = given.rows
    in_file = IN_FILE
    if given.quick:
        rows = 20_000
        in_file = 5_000
    in_file = min(in_file, rows)
    with tempfile.TemporaryDirectory(dir=given.folder) as temporary:
        folder = Path(temporary)
        whole = folder / "all"
        part = folder / "part"
        whole.mkdir()
        part.mkdir()
        write(whole, rows, in_file)
        kept = compare(whole, rows, given.rounds)
        print(f"within {ASKED} × of the time without person: {'yes' if kept else 'no'}")
        for path in sorted(whole.iterdir())[: max(2, rows // in_file // 10)]:
            path.rename(part / path.name)
        print(f"the same integers on a cluster: {'yes' if same_integers(part) else 'NO'}")


if __name__ == "__main__":
    main()
