"""Made-up tables of the kinds of columns that bounds have, in memory or in files: to be timed."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from reticent.privacy.bounds import Bounds
from reticent.privacy.columns.base import Kind
from reticent.privacy.sources.base import Source, scan

__all__ = ["SOURCES", "made_up_source", "most_of_arrow"]

SOURCES = ("memory", "parquet", "csv")
_SEED = 20261143
_AS_THEY_ARE = ("number", "cyclic")  # kinds whose codes are the values


def made_up_source(
    bounds: Bounds,
    kind: str,
    rows: int,
    folder: Path,
    *,
    targets: bool,
    people: tuple[str, int] | None,
) -> tuple[Source, float]:
    """So many records as a source of a kind of `SOURCES`, and the bytes that each takes there.

    ``people``: the name of a column of identifiers, and of how many people they are.
    """
    random = np.random.default_rng([_SEED, rows])
    kinds = list(bounds.x_kinds)
    if targets:
        kinds += list(bounds.y_kinds)
    names = [*(bounds.x_names or ()), *(bounds.y_names or ())]
    if not names:
        names = [f"column {place}" for place in range(len(kinds))]
    columns = {name: _cells(one, rows, random) for name, one in zip(names, kinds, strict=False)}
    if people is not None:
        columns[people[0]] = pa.array(random.integers(0, people[1], rows))
    table = pa.table(columns)
    if kind == "memory":
        return _held(table, bounds, named=bounds.x_names is not None), table.nbytes / rows
    path = folder / f"{rows}.{kind}"
    if kind == "parquet":
        pq.write_table(table, path)
    else:
        pyarrow.csv.write_csv(table, path)
    return scan(path), path.stat().st_size / rows


def _cells(kind: Kind, rows: int, random: np.random.Generator) -> Any:
    """Values of a column, evenly over its range or levels."""
    low, high = kind.range
    codes = random.uniform(low, high, rows)
    if kind.cells is not None:
        codes = np.clip(np.round(codes), math.ceil(low), math.floor(high))
    if kind.name in _AS_THEY_ARE:
        return pa.array(codes)
    return pa.array(kind.values(codes))


def _held(table: pa.Table, bounds: Bounds, *, named: bool) -> Source:
    """The table itself, or arrays where columns have no names."""
    if named:
        return scan(table)
    cells = [column.to_numpy() for column in table.columns]
    inputs = len(bounds.x)
    X = np.column_stack(cells[:inputs])
    if len(cells) == inputs:
        return scan(X)
    return scan(X, y=np.column_stack(cells[inputs:]))


def most_of_arrow() -> int:
    """Bytes that arrow held at the most since the process began."""
    return int(pa.default_memory_pool().max_memory())
