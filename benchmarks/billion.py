"""10⁹ records on one machine, in constant memory: `python benchmarks/billion.py [--quick]
[--rows N] [--folder DIR] [--picture FILE.png]`.

Writes one Parquet file of two columns of made-up float32 numbers, a piece at a time, and reads it
with processes of their own, one after the other: an exact private mean, a Gaussian process of two
stages, DuckDB's `sum`, and scikit-learn's `partial_fit` on the batches of the file. Told of each:
CPU seconds, records a second of CPU and reading, and the memory of the process, looked at all the
while; and whether the answers are right.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

SEED = 2026114300
AT_ONCE = 2**20  # records in a row group
RANGE = 2**16  # inputs are whole multiples of 1/RANGE
NOISE = 0.1
FUNCTIONS = 10
STAGES = 2
LOOK = 0.5  # s between two looks at a process's memory
FILES_BYTES = 8  # of a record


def function(x: np.ndarray) -> np.ndarray:
    return 0.5 * np.sin(6.0 * x)


def write(path: Path, rows: int) -> None:
    """The records, at most one piece of which is in memory; another 16 pieces, again and again."""
    pieces = []
    for number in range(16):
        rng = np.random.default_rng([SEED, number])
        x = rng.integers(0, RANGE + 1, AT_ONCE) / RANGE
        y = function(x) + NOISE * rng.standard_normal(AT_ONCE)
        pieces.append(pa.table({"x": x.astype(np.float32), "y": y.astype(np.float32)}))
    with pq.ParquetWriter(
        path, pieces[0].schema, compression="none", use_dictionary=False, write_statistics=False
    ) as file:
        for number in range(-(-rows // AT_ONCE)):
            left = rows - number * AT_ONCE
            file.write_table(pieces[number % 16].slice(0, min(left, AT_ONCE)))


def mean(path: Path) -> dict[str, Any]:
    import reticent

    bounds = reticent.Bounds(x={"x": (0, 1), "y": (-1, 1)})
    model = reticent.PrivateMean(bounds=bounds, epsilon=1, delta=1e-12, random_state=0)
    return started(lambda: model.fit(reticent.scan(path)).mean_.tolist())


def gp(path: Path) -> dict[str, Any]:
    from sklearn.gaussian_process.kernels import RBF

    import reticent

    bounds = reticent.Bounds(x={"x": (0, 1)}, y={"y": (-1, 1)})
    model = reticent.GPRegressor(
        RBF(0.3, "fixed"),
        basis=FUNCTIONS,
        stages=STAGES,
        noise=NOISE,
        learn_kernel=False,
        bounds=bounds,
        epsilon=1,
        delta=1e-12,
        random_state=0,
    )

    def fit() -> float:
        at = np.linspace(0.05, 0.95, 50)
        predicted = model.fit(reticent.scan(path)).predict(at[:, None])
        return float(np.abs(predicted - function(at)).max())

    return started(fit)


def duckdb(path: Path) -> dict[str, Any]:
    import duckdb as db

    connection = db.connect()
    connection.execute("SET threads = 1")
    query = f"SELECT sum(x) / count(*), sum(y) / count(*) FROM read_parquet('{path}')"
    return started(lambda: list(connection.execute(query).fetchone()))


def sgd(path: Path) -> dict[str, Any]:
    from sklearn.linear_model import SGDRegressor

    model = SGDRegressor()

    def fit() -> float:
        with pq.ParquetFile(path, pre_buffer=False) as file:  # else it is held as a whole
            for batch in file.iter_batches(2**16, use_threads=False):
                x, y = (column.to_numpy() for column in batch.columns)
                model.partial_fit(x[:, None], y)
        return float(model.coef_[0])

    return started(fit)


TASKS = {
    "PrivateMean, two columns": (mean, 1),
    f"GPRegressor, m = {FUNCTIONS}, {STAGES} stages": (gp, STAGES),
    "DuckDB, two sums": (duckdb, 1),
    "SGDRegressor.partial_fit": (sgd, 1),
}


def started(work: Any) -> dict[str, Any]:
    """What the work gives, and its CPU seconds, without what is loaded before."""
    cpu = time.process_time()
    start = time.perf_counter()
    found = work()
    return {
        "cpu": time.process_time() - cpu,
        "wall": time.perf_counter() - start,
        "found": found,
    }


def watched(name: str, path: Path) -> dict[str, Any]:
    """Run a task in a process of its own, and look at its memory all the while."""
    process = subprocess.Popen(
        [sys.executable, __file__, "--task", name, str(path)], stdout=subprocess.PIPE, text=True
    )
    start = time.perf_counter()
    seen = []
    while process.poll() is None:
        held = _held(process.pid)
        if held:
            seen.append((time.perf_counter() - start, held))
        time.sleep(LOOK)
    said = process.communicate()[0]
    if process.returncode:
        raise SystemExit(process.returncode)
    return json.loads(said) | {"seen": seen}


def _held(pid: int) -> float:
    """MiB that a process holds, files that it reads apart; 0 where it has just ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) / 1024


def picture(found: dict[str, dict[str, Any]], rows: int, path: Path) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 2.6), layout="constrained")
    for name, one in found.items():
        times, held = np.array(one["seen"]).T
        axes.plot(times / 60, held, label=name, lw=1.3)
    axes.set(
        xlabel="minutes", ylabel="memory, MiB", yscale="log", title=f"{rows:,} records, one file"
    )
    axes.legend(fontsize=7, frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=90)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="3 million: shows that it runs")
    parser.add_argument("--rows", type=float, default=1e9)
    parser.add_argument("--folder", type=Path, help="where the file is written, 8 bytes a record")
    parser.add_argument("--picture", type=Path)
    parser.add_argument("--task", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.task:
        warnings.simplefilter("ignore", UserWarning)
        print(json.dumps(TASKS[given.task[0]][0](Path(given.task[1]))))
        return 0
    rows = int(given.rows)
    if given.quick:
        rows = 3_000_000
    with tempfile.TemporaryDirectory(dir=given.folder) as scratch:
        if shutil.disk_usage(scratch).free < 2 * FILES_BYTES * rows:
            parser.error("There is not enough room: give fewer --rows, or another --folder.")
        path = Path(scratch, "records.parquet")
        cpu = time.process_time()
        write(path, rows)
        size = path.stat().st_size
        print(
            f"{rows:,} records, {size / 1e9:.2f} GB, written in {time.process_time() - cpu:.0f} s "
            f"of CPU; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n",
            flush=True,
        )
        head = "CPU, s | wall, s | million records/s of CPU, a reading | MiB at first, most | load"
        print(f"| | {head} | answer |\n| :-- | --: | --: | --: | --: | --: | :-- |", flush=True)
        found = {}
        for name, (_, readings) in TASKS.items():
            one = found[name] = watched(name, path)
            held = [mib for _, mib in one["seen"]]
            early = max(held[: max(4, len(held) // 10)])
            print(
                f"| {name} | {one['cpu']:.1f} | {one['wall']:.0f} | "
                f"{rows * readings / one['cpu'] / 1e6:.2f} | {early:.0f}, {max(held):.0f} | "
                f"{os.getloadavg()[0]:.1f} | {one['found']} |",
                flush=True,
            )
    if given.picture:
        picture(found, rows, given.picture)
    sums = np.array(found["DuckDB, two sums"]["found"])
    means = np.array(found["PrivateMean, two columns"]["found"])
    off = found[f"GPRegressor, m = {FUNCTIONS}, {STAGES} stages"]["found"]
    print(f"\nMeans differ by {np.abs(means - sums).max():.1e}, the function by {off:.1e} at most.")
    return int(np.abs(means - sums).max() > 30 / rows + 1e-4 or off > 0.05)


if __name__ == "__main__":
    sys.exit(main())
