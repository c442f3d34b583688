"""EM over a file five times as large as the memory that it is given:
`python benchmarks/memory.py [--quick]`.

A process that has done the same with a small file may from then on take no more than a limit above
what it has (RLIMIT_DATA: the system refuses the rest, and the run fails). It makes steps of EM for
a mixture, reading the whole file in each.
"""

import os
import resource
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import reticent
from reticent.inference.mixtures.gaussian_mixture import NormalMixture
from reticent.models.mixtures.complete_records import CompleteRecords
from reticent.models.mixtures.em_steps import em_step
from reticent.models.mixtures.record_view import RecordView
from reticent.models.unit_total import unit_total

COLUMNS = 10
COMPONENTS = 3
STEPS = 2
TIMES = 5


def write(path: Path, mixture: NormalMixture, size: int) -> int:
    """Records of the mixture, until there are so many bytes of them; give their number."""
    rng = np.random.default_rng(0)
    names = [f"x{j}" for j in range(COLUMNS)]
    rows = 0
    schema = pa.schema([(name, pa.float64()) for name in names])
    with pq.ParquetWriter(path, schema, compression="none", use_dictionary=False) as file:
        while rows * COLUMNS * 8 < size:
            X = np.clip(mixture.sample(2**16, rng), -1, 1)
            file.write_table(
                pa.table({name: X[:, j] for j, name in enumerate(names)}, schema=schema)
            )
            rows += len(X)
    return rows


def fit(path: Path, mixture: NormalMixture, steps: int) -> NormalMixture:
    """Steps of EM, each twice over the whole file: for lengths of residuals, and for moments."""
    bounds = reticent.Bounds(x={f"x{j}": (-1, 1) for j in range(COLUMNS)})
    event = reticent.Gaussian(count=2 * steps, noise_multiplier=1.0)
    curator = reticent.Curator(reticent.scan(path), bounds=bounds, event=event)
    view = RecordView(curator, CompleteRecords(unit_total(curator)))
    for _ in range(steps):
        mixture = em_step(view, mixture, 2, covariance_type="full", least_step=0.5)
    return mixture


def in_use() -> int:
    """Bytes of private memory of this process, as RLIMIT_DATA counts them."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith("VmData")).split()[1])


def warm_up() -> None:
    """Multiply in several threads at the same time.

    BLAS takes a buffer for each of them then, and keeps it.
    """
    threads = 2 * (os.cpu_count() or 1)
    together = threading.Barrier(threads)
    square = np.ones((600, 600))

    def work() -> None:
        together.wait()
        for _ in range(10):
            square @ square

    workers = [threading.Thread(target=work) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def main() -> None:
    if "--quick" in sys.argv:
        limit = 3 * 2**24  # two threads hold some 30 MiB of blocks, whatever the file has
    else:
        limit = 2**26
    rng = np.random.default_rng(1)
    mixture = NormalMixture(
        np.full(COMPONENTS, 1 / COMPONENTS),
        rng.normal(0, 0.15, (COMPONENTS, COLUMNS)),
        np.array([np.eye(COLUMNS) * 0.1] * COMPONENTS),
    )
    with tempfile.TemporaryDirectory() as folder:
        small = Path(folder, "small.parquet")
        large = Path(folder, "large.parquet")
        write(small, mixture, 2**22)
        fit(small, mixture, 1)
        warm_up()
        rows = write(large, mixture, TIMES * limit)
        most = in_use() + limit
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))
        start = time.process_time()
        found = fit(large, mixture, STEPS)
        spent = (time.process_time() - start) / STEPS
        size = large.stat().st_size
        refused = False
        try:
            np.ones(size // 8)
        except MemoryError:
            refused = True
    error = float(np.abs(found.means - mixture.means).max())
    print(
        f"{rows:,} records of {COLUMNS} columns, {size / 2**20:.0f} MiB, with {limit / 2**20:.0f} "
        f"MiB: {STEPS} steps, {spent:.1f} s CPU each, means within {error:.4f}; the file as one "
        f"array is {'refused' if refused else 'NOT refused'}"
    )


if __name__ == "__main__":
    main()
