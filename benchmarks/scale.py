"""A fit of 10⁸ records in bounded memory, and on a cluster: `python benchmarks/scale.py [--quick]
[--rows N] [--folder DIR]`.

Writes Parquet files of made-up records, a piece at a time, and fits one staged Gaussian process at
N/100, N/10 and N records: in one process that may take no more than a limit, and on a local Dask
cluster of two worker processes. Both must give the same integers and, with one seed, the same
releases. A model of the cost (seconds of CPU and bytes for a record, by basis functions m, inputs d
and stages K) is learnt from other settings on the smallest size alone, and says what all sizes
take, and what 10⁹ and 10¹⁰ would. A second of CPU does more or less work as others use caches and
memory, so a process of its own makes the same small fit again and again: each time is taken by the
pace of these meanwhile (`Pace`).
"""

import argparse
import ctypes
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
from reticent.privacy.curator import Curator
from reticent.privacy.statistics import feature_cache as kept

INPUTS = 4
IN_FILE = 250_000
AT_ONCE = 2**16
SEED = 1
SPARE = 2**28  # bytes that a fit may take beside the rows that it keeps
# rows that are kept in many pieces reserve more than their bytes (RLIMIT_DATA counts
# what is reserved)
HOLES = 2


@dataclass(frozen=True)
class Case:
    """A staged fit: its basis functions, inputs and stages."""

    m: int
    d: int
    stages: int

    def bounds(self) -> reticent.Bounds:
        return reticent.Bounds(x={f"x{j}": (0, 1) for j in range(self.d)}, y={"y": (-2, 2)})

    def fit(self, data: Any) -> reticent.GPRegressor:
        how: dict[str, Any] = {
            "noise": 0.3,
            "learn_kernel": False,
            "epsilon": 1,
            "delta": 1e-12,
            "random_state": SEED,
        }
        return reticent.GPRegressor(
            RBF(0.5, "fixed"), basis=self.m, stages=self.stages, bounds=self.bounds(), **how
        ).fit(reticent.scan(data))

    @property
    def row(self) -> int:
        """Bytes of a row that is kept."""
        return 4 * self.m + 8 * (self.d + 1)

    def keeps(self, n: float) -> bool:
        """Whether later stages find their rows in memory."""
        return n * self.row <= kept.CACHE_BYTES

    def terms(self, n: float, *, local: bool) -> np.ndarray:
        """What the time is made of.

        Once, by stage, for a record in each whole pass, for a byte that is kept, for kept rows.
        """
        if local and self.keeps(n):
            whole = 1
        else:
            whole = self.stages
        later = self.stages - whole
        # the system fills new pages with zeros: as dear as all else in a pass
        if later:
            pages = n * self.row
        else:
            pages = 0.0
        passes = n * whole * np.array([1, self.d, self.m, self.m**2])
        return np.array([1, self.stages, *passes, pages, n * later, n * later * self.m])

    def on_cluster(self, n: float, in_file: int) -> np.ndarray:
        """What a cluster takes beside that.

        Once, by stage, for a file that is counted, and for a record in each pass.
        """
        return np.array([1, self.stages, n / in_file, n * self.stages])

    def bytes(self, n: float) -> float:
        """Bytes of numbers that are read, in all passes."""
        return n * 8 * (self.d + 1) * (1 if self.keeps(n) else self.stages)


USUAL = Case(20, 2, 2)
LEARNT = [Case(m, d, 1) for m, d in [(10, 1), (10, 4), (20, 2), (50, 2), (50, 4), (100, 4)]]
LEARNT += [
    Case(10, 1, 4),
    Case(20, 2, 4),
    Case(50, 2, 4),
    Case(10, 4, 2),
    Case(50, 2, 2),
    Case(100, 4, 2),
]
LEARNT_ON_CLUSTER = [Case(10, 1, 1), Case(20, 2, 1), Case(10, 2, 2), Case(20, 2, 4)]
# the fit that keeps the pace; s between two of them, and around what they time
PACE = Case(20, 2, 1)
PAUSE = 2.0
AROUND = 12.0


def write(folder: Path, rows: int, in_file: int) -> None:
    """Files of made-up records, the same for every number of rows.

    At most one piece of them is in memory.
    """
    names = [*(f"x{j}" for j in range(INPUTS)), "y"]
    schema = pa.schema([(name, pa.float64()) for name in names])
    for number in range(rows // in_file):
        rng = np.random.default_rng([SEED, number])
        with pq.ParquetWriter(
            folder / f"{number:05}.parquet",
            schema,
            compression="none",
            use_dictionary=False,
            write_statistics=False,
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
    """Fit, and give what must agree.

    The releases, bit for bit, and the exact integers that they were made from. The integers are
    caught before the noise is added: only here, where the records are made up.
    """
    exact = Curator._exact
    caught = []

    def catch(self: Curator, statistic: Any, number: int) -> Any:
        caught.append(exact(self, statistic, number))
        return caught[-1]

    Curator._exact = catch  # type: ignore[method-assign]
    try:
        model = case.fit(data)
    finally:
        Curator._exact = exact  # type: ignore[method-assign]
    integers = [[int(one) for one in sums] for sums in caught]
    return {
        "releases": [[x.hex() for x in one.value.tolist()] for one in model.releases_],
        "integers": integers,
    }


def memory(name: str) -> int:
    """A line of /proc/self/status, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith(name)).split()[1])


def alone(folder: Path, case: Case) -> dict[str, Any]:
    """A fit in this process, which may take no more than the rows it keeps and a little.

    The system refuses the rest.
    """
    case.fit(_few(case))  # what is loaded and compiled once
    most = memory("VmData") + SPARE + int(HOLES * kept.CACHE_BYTES if case.stages > 1 else 0)
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    before = memory("VmRSS")
    read = _read()
    wall = time.perf_counter()
    cpu = time.process_time()
    found = told(case, folder)
    spent = {
        "cpu": time.process_time() - cpu,
        "wall": time.perf_counter() - wall,
        "read": _read() - read,
    }
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
    wall = time.perf_counter()
    cpu = time.process_time() + sum(client.run(time.process_time).values())
    found = told(case, frame)
    cpu = time.process_time() + sum(client.run(time.process_time).values()) - cpu
    spent = {
        "cpu": cpu,
        "wall": time.perf_counter() - wall,
        "memory": max(client.run(_peak).values()),
    }
    return spent | found


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


class Pace:
    """Seconds of CPU that one small fit takes, over and over, in a process of its own."""

    def __init__(self, folder: Path, out: Path) -> None:
        self._out = out
        words = [sys.executable, __file__, "--pace", str(folder)]
        with out.open("w") as file:
            self._process = subprocess.Popen(words, stdout=file)

    def now(self) -> float:
        """A time on its clock, once it has begun."""
        while not self._seen() and self._process.poll() is None:
            time.sleep(0.1)
        return time.monotonic()

    def since(self, start: float) -> float:
        """The mean from a little before ``start`` until now; of the last one, if there was none."""
        found = [seconds for end, seconds in self._seen() if end > start - AROUND] or [
            self._seen()[-1][1]
        ]
        return float(np.mean(found))

    def _seen(self) -> list[tuple[float, float]]:
        lines = self._out.read_text().split("\n")[:-1]
        return [(float(end), float(seconds)) for end, seconds in (line.split() for line in lines)]

    def __enter__(self) -> "Pace":
        return self

    def __exit__(self, *_: Any) -> None:
        self._process.kill()
        self._process.wait()


def keep_pace(folder: Path) -> None:
    PACE.fit(_few(PACE))
    while True:
        seconds = _seconds(PACE, folder)
        print(time.monotonic(), seconds, flush=True)
        time.sleep(PAUSE)


def learn(few: list[tuple[int, Path]], cases: list[Case], pace: Pace, rounds: int) -> np.ndarray:
    """What each term takes, by the pace.

    None of them negative, from fits of few files, each setting in turn, the median.
    """
    cases[0].fit(few[0][1])  # what happens once in a process
    found: dict[tuple[Case, int], list[float]] = {}
    for _ in range(rounds):
        for case in cases:
            for n, folder in few:
                start = pace.now()
                found.setdefault((case, n), []).append(_seconds(case, folder) / pace.since(start))
    return _solved(
        [case.terms(n, local=True) for case, n in found], [np.median(one) for one in found.values()]
    )


def _solved(
    terms: list[np.ndarray], spent: list[Any], known: np.ndarray | float = 0.0
) -> np.ndarray:
    """No coefficient is negative; errors count relative to all that was spent."""
    all_ = np.array(spent)
    return np.asarray(nnls(np.array(terms) / all_[:, None], (all_ - known) / all_)[0])


def _seconds(case: Case, folder: Path) -> float:
    """Seconds of CPU, with no memory left over from the last fit: new pages cost time."""
    ctypes.CDLL(None).malloc_trim(0)
    cpu = time.process_time()
    case.fit(folder)
    return time.process_time() - cpu


def learn_on_cluster(
    client: Any,
    few: list[tuple[int, Path]],
    in_file: int,
    cost: np.ndarray,
    pace: Pace,
    rounds: int,
) -> np.ndarray:
    """What the cluster's own terms take, beside what the records do in one process."""
    together(client, few[0][1], LEARNT_ON_CLUSTER[0])  # workers import what they need
    found: dict[tuple[Case, int], list[float]] = {}
    for _ in range(rounds):
        for case in LEARNT_ON_CLUSTER:
            for n, folder in few:
                start = pace.now()
                found.setdefault((case, n), []).append(
                    together(client, folder, case)["cpu"] / pace.since(start)
                )
    known = np.array([cost @ case.terms(n, local=False) for case, n in found])
    spent = [np.median(one) for one in found.values()]
    return _solved([case.on_cluster(n, in_file) for case, n in found], spent, known)


def in_a_process(folder: Path, case: Case) -> dict[str, Any]:
    words = [
        sys.executable,
        __file__,
        "--alone",
        str(folder),
        "--case",
        f"{case.m},{case.d},{case.stages}",
    ]
    return json.loads(subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout)


def timed(pace: Pace, fit: Any, part: Path) -> dict[str, Any]:
    start = pace.now()
    found = fit(part, USUAL)
    return found | {"pace": pace.since(start)}


def _print_model(cost: np.ndarray, extra: np.ndarray) -> None:
    named = zip(1e9 * cost[2:6], ["", " d", " m", " m²"], strict=True)
    whole = " + ".join(f"{ns:.2f}{of}" for ns, of in named)
    print(
        f"ns of CPU for a record: {whole} in a pass; {1e9 * cost[6]:.2f} for a "
        "byte of a row that is kept;"
    )
    found = f"{1e9 * cost[7]:.2f} + {1e9 * cost[8]:.2f} m in a stage that finds its rows"
    print(f"{found}. s once: {cost[0]:.2f} + {cost[1]:.3f} K.")
    by_file = f"{extra[2]:.3f} s a file, {1e9 * extra[3]:.0f} ns a record and pass"
    print(f"On the cluster besides: {extra[0]:.2f} + {extra[1]:.3f} K s, {by_file}.")
    print("Bytes for a record in a pass: 8 (d + 1).\n")


def table(
    folder: Path, sizes: list[int], in_file: int, cases: list[Case], rounds: int, pace: Pace
) -> bool:
    """Learn the cost, then fit each size in both ways; give whether all of them agreed."""
    import dask
    from dask.distributed import Client, LocalCluster

    few = [(files * in_file, first_files(folder, files)) for files in (1, 4)]
    cost = learn(few, cases, pace, rounds)
    agreed = True
    # without dask's MALLOC_TRIM_THRESHOLD_, under which every larger array is new memory, and sums
    # take three times as long
    around = {
        "distributed.nanny.pre-spawn-environ": {"OMP_NUM_THREADS": 1, "OPENBLAS_NUM_THREADS": 1}
    }
    with (
        dask.config.set(around),
        LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50
        ) as cluster,
        Client(cluster) as client,
    ):
        extra = learn_on_cluster(client, few, in_file, cost, pace, rounds)
        unit = pace.since(0.0)
        _print_model(cost * unit, extra * unit)
        print(
            f"m = {USUAL.m}, d = {USUAL.d}, K = {USUAL.stages}; load {os.getloadavg()[0]:.1f}, "
            f"{os.cpu_count()} cores"
        )
        print(
            f"pace: {unit:.3f} s of CPU for {few[1][0]:,} records, m = "
            f"{PACE.m}, d = {PACE.d}, K = {PACE.stages}\n"
        )
        head = (
            "records | | CPU, s | foretold, s | pace | wall, s | records/s a core and pass | "
            "memory, MiB | read, MiB | same"
        )
        print(f"| {head} |\n| --: | :-- |{' --: |' * 7} :-- |")
        for n in sizes:
            part = first_files(folder, n // in_file)
            tries = range(3 if n == 10**6 else 1)
            one, two = (
                sorted(
                    (timed(pace, fit, part) for _ in tries),
                    key=lambda spent: spent["cpu"] / spent["pace"],
                )[len(tries) // 2]
                for fit in (in_a_process, partial(together, client))
            )
            same = one["releases"] == two["releases"] and one["integers"] == two["integers"]
            agreed &= same
            for how, spent in [("one process", one), ("two workers", two)]:
                said = cost @ USUAL.terms(n, local=spent is one)
                said = spent["pace"] * (
                    said + (extra @ USUAL.on_cluster(n, in_file) if spent is two else 0.0)
                )
                kept_ = spent is one and USUAL.keeps(n)
                speed = (
                    f"{n * (1 if kept_ else USUAL.stages) / spent['cpu']:,.0f}"
                    + " (rows kept)" * kept_
                )
                if "read" in spent:
                    read = f"{spent['read'] / 2**20:,.0f}"
                else:
                    read = ""
                print(
                    f"| {n:,} | {how} | {spent['cpu']:.2f} | {said:.2f} | "
                    f"{spent['pace'] / unit:.2f} | {spent['wall']:.1f} | {speed} | "
                    f"{spent['memory'] / 2**20:,.0f} | {read} | {'yes' if same else 'NO'} |",
                    flush=True,
                )
    print(
        "\n| foretold for | 10⁹ records, CPU | read | 10¹⁰ records, CPU | read "
        "|\n| :-- | --: | --: | --: | --: |"
    )
    for case in [USUAL, Case(50, 4, 2), Case(50, 4, 24), Case(100, 4, 24)]:
        cells = [
            f"{unit * (cost @ case.terms(n, local=True)) / 3600:.2f} h | "
            f"{case.bytes(n) / 1e12:.2f} TB"
            for n in (1e9, 1e10)
        ]
        print(f"| m = {case.m}, d = {case.d}, K = {case.stages} | {' | '.join(cells)} |")
    return agreed


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "--quick", action="store_true", help="200,000 records: shows that it runs, not how fast"
    )
    parser.add_argument("--rows", type=int, default=10**7, help="records of the largest data set")
    parser.add_argument(
        "--folder",
        type=Path,
        help="where the records are written, 40 bytes each; a temporary folder",
    )
    parser.add_argument("--alone", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--case", help=argparse.SUPPRESS)
    parser.add_argument("--pace", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    if given.alone is not None:
        print(json.dumps(alone(given.alone, Case(*map(int, given.case.split(","))))))
        return 0
    if given.pace is not None:
        keep_pace(given.pace)
    if given.quick:
        rows = 200_000
    else:
        rows = given.rows
    in_file = min(IN_FILE, rows // 40)
    rows -= rows % (40 * in_file)
    if rows < 10**8:
        sizes = [rows // 10, rows]
    else:
        sizes = [rows // 100, rows // 10, rows]
    with tempfile.TemporaryDirectory(dir=given.folder) as scratch:
        folder = Path(scratch, "all")
        need = rows * 8 * (INPUTS + 1)
        free = shutil.disk_usage(scratch).free
        if free < 2 * need:
            parser.error(
                f"{need / 1e9:.1f} GB are written, and only {free / 1e9:.1f} "
                "GB are free: give fewer --rows."
            )
        folder.mkdir()
        start = time.process_time()
        write(folder, rows, in_file)
        print(
            f"{rows:,} records written, {need / 1e9:.2f} GB, "
            f"{time.process_time() - start:.1f} s CPU"
        )
        if given.quick:
            cases = LEARNT[2:8:2] + LEARNT[-3:]
            rounds = 1
        else:
            cases = LEARNT
            rounds = 3
        with Pace(first_files(folder, 4), Path(scratch, "pace")) as pace:
            return int(not table(folder, sizes, in_file, cases, rounds, pace))


if __name__ == "__main__":
    sys.exit(main())
