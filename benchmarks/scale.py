"""A fit of 10⁸ records in bounded memory, and on a cluster: `python benchmarks/scale.py [--quick] [--rows N] [--folder DIR]`.

Writes Parquet files of made-up records, a piece at a time, and fits one staged Gaussian process at N/100, N/10 and N records:
in one process that may take no more than a limit, and on a local Dask cluster of two worker processes. Both must give the same
integers and, with one seed, the same releases. A model of the cost (seconds of CPU and bytes for a record, by basis functions m,
inputs d and stages K) is fitted on the smallest size alone, says beforehand what the others take, and what 10⁹ and 10¹⁰ would.
"""

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scipy.optimize import nnls
from sklearn.gaussian_process.kernels import RBF

import reticent
from reticent.privacy import kept
from reticent.privacy.curator import Curator

INPUTS, IN_FILE, AT_ONCE, SEED = 4, 250_000, 2**16, 1
SPARE = 2**28  # bytes that a fit may take beside the rows that it keeps
HOLES = 2  # rows that are kept in many pieces reserve more than their bytes (RLIMIT_DATA counts what is reserved)


@dataclass(frozen=True)
class Case:
    """A staged fit: its basis functions, inputs and stages."""

    m: int
    d: int
    stages: int

    def bounds(self) -> reticent.Bounds:
        return reticent.Bounds(x={f"x{j}": (0, 1) for j in range(self.d)}, y={"y": (-2, 2)})

    def fit(self, data: Any) -> reticent.GPRegressor:
        how: dict[str, Any] = {"noise": 0.3, "learn_kernel": False, "epsilon": 1, "delta": 1e-12, "random_state": SEED}
        return reticent.GPRegressor(
            RBF(0.5, "fixed"), basis=self.m, stages=self.stages, bounds=self.bounds(), **how
        ).fit(reticent.scan(data))

    def keeps(self, n: float) -> bool:
        """Whether later stages find their rows in memory."""
        return n * (4 * self.m + 8 * (self.d + 1)) <= kept.MEMORY

    def terms(self, n: float, *, local: bool) -> np.ndarray:
        """What the time is made of: once, by stage, and for a record in each pass, whole or with rows that were kept."""
        whole = 1 if local and self.keeps(n) else self.stages
        later = self.stages - whole
        once = [1, self.stages]
        return np.array([*once, *(n * whole * np.array([1, self.d, self.m, self.m**2])), n * later, n * later * self.m])

    def bytes(self, n: float) -> float:
        """Bytes of numbers that are read, in all passes."""
        return n * 8 * (self.d + 1) * (1 if self.keeps(n) else self.stages)


USUAL = Case(20, 2, 2)
LEARNT = [Case(m, d, 1) for m, d in [(10, 1), (10, 4), (20, 2), (50, 2), (50, 4), (100, 4)]]
LEARNT += [Case(10, 1, 4), Case(20, 2, 4), Case(50, 2, 4), Case(100, 4, 2)]


def write(folder: Path, rows: int, in_file: int) -> None:
    """Files of made-up records, the same for every number of rows; at most one piece of them is in memory."""
    names = [*(f"x{j}" for j in range(INPUTS)), "y"]
    schema = pa.schema([(name, pa.float64()) for name in names])
    for number in range(rows // in_file):
        rng = np.random.default_rng([SEED, number])
        with pq.ParquetWriter(
            folder / f"{number:05}.parquet", schema, compression="none", use_dictionary=False, write_statistics=False
        ) as file:
            for start in range(0, in_file, AT_ONCE):
                X = rng.random((min(AT_ONCE, in_file - start), INPUTS))
                y = X[:, 0] * (1 - X[:, 1]) + (X[:, 2] - 0.5) * X[:, 3] + rng.normal(0, 0.3, len(X))
                file.write_table(pa.table([*X.T, y], schema=schema))


def first_files(folder: Path, count: int) -> Path:
    """A folder with the first of all files."""
    part = folder.parent / f"first-{count}"
    if not part.exists():
        part.mkdir()
        for path in sorted(folder.iterdir())[:count]:
            os.link(path, part / path.name)
    return part


def told(case: Case, data: Any) -> dict[str, Any]:
    """Fit, and give what must agree: the releases, bit for bit, and the exact integers that they were made from.

    The integers are caught before the noise is added: only here, where the records are made up.
    """
    exact, caught = Curator._exact, []

    def catch(self: Curator, statistic: Any, number: int) -> Any:
        caught.append(exact(self, statistic, number))
        return caught[-1]

    Curator._exact = catch  # type: ignore[method-assign]
    try:
        model = case.fit(data)
    finally:
        Curator._exact = exact  # type: ignore[method-assign]
    integers = [[int(one) for one in sums] for sums in caught]
    return {"releases": [[x.hex() for x in one.value.tolist()] for one in model.releases_], "integers": integers}


def memory(name: str) -> int:
    """A line of /proc/self/status, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith(name)).split()[1])


def alone(folder: Path, case: Case) -> dict[str, Any]:
    """A fit in this process, which may take no more than the rows it keeps and a little: the system refuses the rest."""
    case.fit(_few(case))  # what is loaded and compiled once
    most = memory("VmData") + SPARE + int(HOLES * kept.MEMORY if case.stages > 1 else 0)
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    before, read, wall, cpu = memory("VmRSS"), _read(), time.perf_counter(), time.process_time()
    found = told(case, folder)
    spent = {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall, "read": _read() - read}
    return spent | {"memory": memory("VmHWM") - before} | found


def _few(case: Case) -> Any:
    rng = np.random.default_rng(0)
    return pa.table({**{f"x{j}": rng.random(2000) for j in range(case.d)}, "y": rng.random(2000)})


def _read() -> int:
    """Bytes that this process has asked for."""
    return int(Path("/proc/self/io").read_text().split("rchar: ")[1].split()[0])


def together(client: Any, folder: Path, case: Case) -> dict[str, Any]:
    """The same fit with the records on a cluster: CPU time of all processes."""
    import dask.dataframe as dd

    frame = dd.read_parquet(sorted(str(path) for path in folder.iterdir()))
    wall, cpu = time.perf_counter(), time.process_time() + sum(client.run(time.process_time).values())
    found = told(case, frame)
    cpu = time.process_time() + sum(client.run(time.process_time).values()) - cpu
    spent = {"cpu": cpu, "wall": time.perf_counter() - wall, "memory": max(client.run(_peak).values())}
    return spent | found


def tasks(n: int, in_file: int) -> int:
    """Of a cluster: each file is counted, and read once in each stage."""
    return n // in_file * (1 + USUAL.stages)


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def learn(folders: list[tuple[int, Path]], cases: list[Case]) -> np.ndarray:
    """Seconds for each term, none of them negative, from fits of the smallest files: errors count relative to the time."""
    rows, seconds = [], []
    cases[0].fit(folders[0][1])  # what happens once in a process
    for case in cases:
        for n, folder in folders:
            seconds.append(min(_seconds(case, folder) for _ in range(2)))
            rows.append(case.terms(n, local=True))
    found, _ = nnls(np.array(rows) / np.array(seconds)[:, None], np.ones(len(rows)))
    return np.asarray(found)


def _seconds(case: Case, folder: Path) -> float:
    cpu = time.process_time()
    case.fit(folder)
    return time.process_time() - cpu


def in_a_process(folder: Path, case: Case) -> dict[str, Any]:
    words = [sys.executable, __file__, "--alone", str(folder), "--case", f"{case.m},{case.d},{case.stages}"]
    return json.loads(subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout)


def table(folder: Path, sizes: list[int], in_file: int, cases: list[Case]) -> bool:
    """Learn the cost, then fit each size in both ways; give whether all of them agreed."""
    import dask
    from dask.distributed import Client, LocalCluster

    few = [(n, first_files(folder, n // in_file)) for n in (sizes[0] // 4, sizes[0])]
    cost = learn(few, cases)
    named = zip(cost[2:6], ["", " d", " m", " m²"], strict=True)
    whole, later = " + ".join(f"{1e9 * seconds:.2f}{of}" for seconds, of in named), cost[6:]
    print(
        f"ns of CPU for a record: {whole} in a pass; {1e9 * later[0]:.2f} + {1e9 * later[1]:.2f} m once rows are kept."
    )
    print(f"s once: {cost[0]:.2f} + {cost[1]:.3f} K. Bytes for a record in a pass: 8 (d + 1).\n")
    print(f"m = {USUAL.m}, d = {USUAL.d}, K = {USUAL.stages}; load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores")
    agreed = True
    # without dask's MALLOC_TRIM_THRESHOLD_, under which every larger array is new memory, and sums take three times as long
    around = {"distributed.nanny.pre-spawn-environ": {"OMP_NUM_THREADS": 1, "OPENBLAS_NUM_THREADS": 1}}
    with (
        dask.config.set(around),
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50) as cluster,
        Client(cluster) as client,
    ):
        n, part = few[1]
        task = [together(client, part, USUAL)["cpu"] for _ in range(2)][1]  # first, workers import what they need
        task = max(task - float(cost @ USUAL.terms(n, local=False)), 0.0) / tasks(n, in_file)
        print(f"s of CPU for a task of the cluster, beside its records: {task:.3f}\n")
        print(
            "| records | | CPU, s | foretold, s | wall, s | records/s a core and pass | memory, MiB | read, MiB | same |"
        )
        print("| --: | :-- | --: | --: | --: | --: | --: | --: | :-- |")
        for n in sizes:
            part, tries = first_files(folder, n // in_file), range(3 if n == 10**6 else 1)
            one, two = (
                min((fit(part, USUAL) for _ in tries), key=lambda spent: spent["cpu"])
                for fit in (in_a_process, partial(together, client))
            )
            same = one["releases"] == two["releases"] and one["integers"] == two["integers"]
            agreed &= same
            for how, spent in [("one process", one), ("two workers", two)]:
                said = float(cost @ USUAL.terms(n, local=spent is one)) + (spent is two) * task * tasks(n, in_file)
                passes = 1 if spent is one and USUAL.keeps(n) else USUAL.stages
                speed = (
                    f"{n * passes / spent['cpu']:,.0f}"
                    if passes == USUAL.stages
                    else f"{n / spent['cpu']:,.0f} (rows kept)"
                )
                read = f"{spent['read'] / 2**20:,.0f}" if "read" in spent else ""
                print(
                    f"| {n:,} | {how} | {spent['cpu']:.1f} | {said:.1f} | {spent['wall']:.1f} | {speed} | "
                    f"{spent['memory'] / 2**20:,.0f} | {read} | {'yes' if same else 'NO'} |",
                    flush=True,
                )
    print("\n| foretold for | 10⁹ records, CPU | read | 10¹⁰ records, CPU | read |\n| :-- | --: | --: | --: | --: |")
    for case in [USUAL, Case(50, 4, 2), Case(50, 4, 24), Case(100, 4, 24)]:
        cells = [
            f"{cost @ case.terms(n, local=True) / 3600:.2f} h | {case.bytes(n) / 1e12:.2f} TB" for n in (1e9, 1e10)
        ]
        print(f"| m = {case.m}, d = {case.d}, K = {case.stages} | {' | '.join(cells)} |")
    return agreed


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="200,000 records: shows that it runs, not how fast")
    parser.add_argument("--rows", type=int, default=10**7, help="records of the largest data set")
    parser.add_argument("--folder", type=Path, help="where the records are written, 40 bytes each; a temporary folder")
    parser.add_argument("--alone", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--case", help=argparse.SUPPRESS)
    given = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    if given.alone is not None:
        print(json.dumps(alone(given.alone, Case(*map(int, given.case.split(","))))))
        return 0
    rows = 200_000 if given.quick else given.rows
    in_file = min(IN_FILE, rows // 40)
    rows -= rows % (40 * in_file)
    sizes = [rows // 10, rows] if rows < 10**7 else [rows // 100, rows // 10, rows]
    with tempfile.TemporaryDirectory(dir=given.folder) as scratch:
        folder, need = Path(scratch, "all"), rows * 8 * (INPUTS + 1)
        free = shutil.disk_usage(scratch).free
        if free < 2 * need:
            parser.error(f"{need / 1e9:.1f} GB are written, and only {free / 1e9:.1f} GB are free: give fewer --rows.")
        folder.mkdir()
        start = time.process_time()
        write(folder, rows, in_file)
        print(f"{rows:,} records written, {need / 1e9:.2f} GB, {time.process_time() - start:.1f} s CPU")
        return int(not table(folder, sizes, in_file, LEARNT[2:8:2] + LEARNT[-3:] if given.quick else LEARNT))


if __name__ == "__main__":
    sys.exit(main())
