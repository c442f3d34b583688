"""Synthetic tables by dpmm's MST, which measures margins and fits a graphical model to them.

dpmm pins NumPy 1.26 and Python below 3.12, so it has an environment of its own
(`python_environments`). Numbers are cut into at most 16 cells by its private tree, its default; a
tenth of ε pays for that, and the rest for the model: as packaged the tree's ε comes on top. It gets
the public ranges and the list of all words. Its neighbours differ by one record added or removed.
Columns that do not vary and fillers of missing values would be stored as they are: no table here
has missing values. Its estimates take 500 steps of mirror descent, and 200 for the columns one by
one, in place of 5,000 and 2,500, which take minutes a table.
"""

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.privacy.bounds import Bounds
from reticent.privacy.columns.base import Kind
from reticent.studies.common.python_environments import Unavailable, answered, environment

__all__ = ["PINNED", "synthetic_codes"]

Array = NDArray[np.float64]
PINNED = ("dpmm==0.1.9",)
_CELLS = 16  # of a column of numbers
_TREE = 0.1  # share of ε for finding the cells
_STEPS = 500
_STEPS_OF_COLUMNS = 200
_MOST_LEVELS = 12  # whole numbers with so many values are levels, as in our own mixture
_SCRIPT = """
import sys, warnings
warnings.simplefilter("ignore")
import numpy as np
import pandas as pd
from dpmm.models import mst
from dpmm.pipelines import MSTPipeline
given = np.load(sys.argv[2])
codes, levels, low, high = (given[name] for name in ("codes", "levels", "low", "high"))
cells, seed, n = int(given["cells"]), int(given["seed"]), len(codes)
Inference = mst.FactoredInference
mst.FactoredInference = lambda domain, iters: Inference(domain, iters=min(iters, int(sys.argv[1])))
columns, domain = {}, {}
for j, many in enumerate(levels):
    name = f"c{j:02d}"
    if many:
        columns[name] = pd.Series(codes[:, j].astype(int).astype(str), dtype="object")
        domain[name] = {"categories": [str(level) for level in range(many)]}
    else:
        columns[name] = np.clip(codes[:, j], low[j], high[j])
        domain[name] = {"lower": float(low[j]), "upper": float(high[j])}
frame = pd.DataFrame(columns)
pipeline = MSTPipeline(
    epsilon=float(given["epsilon"]), delta=float(given["delta"]), n_jobs=1,
    proc_epsilon=float(given["tree"]), n_bins=cells, gen_kwargs={"n_iters": int(given["steps"])},
)
pipeline.fit(frame, domain, random_state=seed)
made = pipeline.generate(n_records=n, random_state=seed)[list(columns)]
np.savez(sys.argv[3], found=made.astype(float).to_numpy())
"""


def synthetic_codes(
    bounds: Bounds,
    codes: Array,
    epsilon: float,
    delta: float,
    seed: int,
    make: bool = True,
) -> Array:
    """As many synthetic records (n, d) as there are records, as codes of their kinds.

    ``make``: install dpmm if it is not there.
    """
    if sys.version_info >= (3, 12):
        raise Unavailable("dpmm needs Python 3.11")
    python = environment(PINNED, make=make)
    low, high = np.array(bounds.x).T
    first = np.array([_first_code(kind) for kind in bounds.x_kinds])
    given: dict[str, Any] = {
        "codes": codes - first,
        "levels": [_levels(kind) for kind in bounds.x_kinds],
        "low": low - first,
        "high": high - first,
        "cells": _CELLS,
        "steps": _STEPS,
        "epsilon": (1 - _TREE) * epsilon,
        "tree": _TREE * epsilon,
        "delta": delta,
        "seed": seed % 2**32,
    }
    return answered(python, "dpmm", _SCRIPT, str(_STEPS_OF_COLUMNS), given) + first


def _levels(kind: Kind) -> int:
    """How many values a column has; 0 for one that is cut into cells."""
    if kind.cells is None or (kind.levels is None and kind.cells > _MOST_LEVELS):
        return 0
    return kind.cells


def _first_code(kind: Kind) -> float:
    """Code of the first level; 0 for numbers."""
    if _levels(kind) and kind.levels is None:
        return kind.output_range[0]
    return 0.0
