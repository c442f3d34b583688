"""Labels in Parquet files: how long one of them is must not decide whether the file can be read."""

import dataclasses
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import reticent
from tests.attacks.harness import Outcome, attack

RECORDS = 2**16  # read at once by version 0.1.0
LETTERS = 2**15 - 1  # of all labels but one: together just below 2 GiB


@dataclasses.dataclass(frozen=True)
class _Labels(reticent.Sum):
    columns = 1
    norm2 = 1

    def rows(self, records):
        return records[:, 1:2]


def _table(last: str) -> pa.Table:
    codes = pa.array([0] * (RECORDS - 1) + [1], pa.int32())
    column = pa.DictionaryArray.from_arrays(codes, pa.array(["a" * LETTERS, last]))
    return pa.table({"x": np.zeros(RECORDS), "label": column})


def _released(path: Path) -> bool:
    bounds = reticent.Bounds(x={"x": (-1, 1)}, classes={"label": ["no", "yes"]})
    event = reticent.Gaussian(noise_multiplier=100.0)
    curator = reticent.Curator(reticent.scan(path), bounds=bounds, targets=True, event=event)
    try:
        curator.release(_Labels())
    except reticent.ReleaseRefused:  # after the charge
        return False
    return True


@attack("1c", "The length of one label in a dictionary column decides whether a fit fails")
def dictionary_label() -> Outcome:
    words = []
    with TemporaryDirectory() as folder:
        path = Path(folder) / "t.parquet"
        for letters in (10, 2**17):
            pq.write_table(_table("a" * letters), path, compression="zstd")
            came = "released" if _released(path) else "refused after the charge"
            words.append(came)
    figure = f"last label of 10 letters: {words[0]}; of 131072 letters: {words[1]}"
    return Outcome(words[0] != words[1], figure)
