"""Two runs of the grid on the same seed, by two versions of the library: what changed."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from reticent.errors import BadInput
from reticent.studies.common.results import ResultTable
from reticent.studies.own.calibration.cells import Cell

__all__ = ["compare", "read_cells"]

Cells = Mapping[Cell, Mapping[str, Any]]


def read_cells(path: Path) -> dict[Cell, dict[str, Any]]:
    """Read the cells of a records.json, each with the seed of its run."""
    read = json.loads(path.read_text(encoding="utf-8"))
    keys = Cell._fields
    return {
        Cell(*(one[key] for key in keys)): {**one, "seed": read["seed"]} for one in read["cells"]
    }


def compare(before: Cells, after: Cells) -> ResultTable:
    """Pair the cells of two runs: ratio of mean losses with its standard error, and faults.

    Losses that may be negative (in nats) are compared by exp of their mean difference, which is a
    ratio of densities.
    """
    rows = []
    for cell, new in after.items():
        old = before.get(cell)
        if old is None:
            continue
        if old["seed"] != new["seed"]:
            raise BadInput(f"Seeds differ, {old['seed']} and {new['seed']}: nothing to pair.")
        ratio, error = _ratio(old["losses"], new["losses"], in_nats=cell.family == "mixtures")
        rows.append(
            (
                cell.model,
                cell.law,
                f"{cell.n:,}",
                f"{cell.epsilon:g}",
                f"{ratio:.3f} ± {error:.3f}",
                _verdict(ratio, error),
                _band(old),
                _band(new),
                old["faults"],
                new["faults"],
            )
        )
    better = sum(row[5] == "better" for row in rows)
    worse = sum(row[5] == "worse" for row in rows)
    title = f"After to before: {better} cells better, {worse} worse by 2 standard errors"
    headings = ("model", "law", "n", "ε", "loss ratio", "", "95 % before", "after", "faults before")
    return ResultTable(f"{title}, of {len(rows)}", (*headings, "after"), rows, 2)


def _ratio(old: list[float], new: list[float], *, in_nats: bool) -> tuple[float, float]:
    """Ratio of mean losses over the repeats that both have, and its standard error."""
    repeats = min(len(old), len(new))
    first = np.array(old[:repeats])
    second = np.array(new[:repeats])
    if in_nats:
        ratio = float(np.exp(np.mean(second - first)))
        gaps = ratio * (second - first)
    else:
        ratio = float(second.mean() / first.mean())
        gaps = (second - ratio * first) / first.mean()
    if repeats < 2:
        return ratio, math.nan
    return ratio, float(gaps.std(ddof=1)) / math.sqrt(repeats)


def _band(cell: Mapping[str, Any]) -> str:
    if cell["coverage_95"] == "":
        return ""
    return f"{cell['coverage_95']:.2f}"


def _verdict(ratio: float, error: float) -> str:
    if ratio > 1 + 2 * error:
        return "worse"
    if ratio < 1 - 2 * error:
        return "better"
    return ""
