"""A Parquet file of 1 GB is summed in less than 350 MB, in many row groups and in one.

Memory does not grow with the file.
"""

import json
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

COLUMNS = 8
ROWS = 2**24  # × 8 columns × 8 bytes = 1 GiB

CHILD = """
import json, re, sys
from pathlib import Path
import numpy as np
from reticent.privacy.sources.base import Field, scan

def gram(block):
    q = np.trunc(block * 2.0**19)
    return q.T @ q

source = scan(sys.argv[1])
total = source.total([Field(name) for name in source.names], gram, rows=8192, threads=2)
print(json.dumps({
    "rows": total.rows,
    "gram": total.integers().tolist(),
    # unlike ru_maxrss, this does not go on from what the parent held when it forked
    "peak": int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) * 1024,
}))
"""


def write(path, chunk, groups):
    """Random doubles do not compress; the same ones in every row group keep the test quick."""
    schema = pa.schema([(f"c{i}", pa.float64()) for i in range(COLUMNS)])
    table = pa.table([chunk[:, i] for i in range(COLUMNS)], schema=schema)
    with pq.ParquetWriter(path, schema, compression="none", use_dictionary=False) as writer:
        for _ in range(groups):
            writer.write_table(table, row_group_size=len(chunk))


@pytest.mark.parametrize(
    ("rows", "groups"), [(ROWS, 32), (2**22, 1)], ids=["1 GB", "one large row group"]
)
def test_memory_is_bounded(tmp_path, rows, groups):
    chunk = np.random.default_rng(1).random((rows // groups, COLUMNS))
    path = tmp_path / "big.parquet"
    try:
        write(path, chunk, groups)
        assert path.stat().st_size >= rows * COLUMNS * 8
        run = subprocess.run(
            [sys.executable, "-c", CHILD, path], capture_output=True, text=True, check=True
        )
    finally:
        path.unlink(missing_ok=True)
    answer = json.loads(run.stdout)
    q = np.trunc(chunk * 2.0**19).astype(np.int64)
    assert answer["rows"] == rows
    assert answer["gram"] == (groups * (q.T @ q)).tolist()
    # one row group of 256 MB must not be held as a whole either
    assert answer["peak"] < (350e6 if groups > 1 else 250e6)
