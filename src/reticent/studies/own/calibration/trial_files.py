"""Files of trials: so that runs can be judged again, joined, and compared with other versions."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from reticent.errors import BadInput
from reticent.studies.own.calibration.cells import Cell, Trial

__all__ = ["read_trials", "write_trials"]

_DIGITS = 4  # of errors in standard errors, and of ranks


def write_trials(path: Path, trials: Mapping[Cell, Sequence[Trial]], *, seed: int) -> Path:
    """Write losses, errors in stated standard errors, and ranks of every trial."""
    cells = [
        {
            **cell._asdict(),
            "losses": [one.loss for one in found],
            "references": [_or_none(one.reference) for one in found],
            "z": [_rounded(one.z) for one in found],
            "ranks": [_rounded(one.ranks) for one in found],
            "outputs": [_rounded(one.outputs) for one in found],
        }
        for cell, found in trials.items()
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"seed": seed, "cells": cells}, ensure_ascii=False))
    return path


def read_trials(paths: Sequence[Path]) -> tuple[dict[Cell, list[Trial]], int]:
    """Read and join files of the same seed; and the seed.

    Trials of a cell that is in several files follow each other: they must be other repeats.
    """
    trials: dict[Cell, list[Trial]] = {}
    seeds = set()
    for path in paths:
        read = json.loads(path.read_text(encoding="utf-8"))
        seeds.add(int(read["seed"]))
        for one in read["cells"]:
            cell = Cell(*(one[key] for key in Cell._fields))
            columns = [one[key] for key in ("losses", "references", "z", "ranks")]
            columns.append(one.get("outputs", [[]] * len(columns[0])))
            found = [_trial(*row) for row in zip(*columns, strict=True)]
            trials.setdefault(cell, []).extend(found)
    if len(seeds) != 1:
        raise BadInput(f"The files have different seeds: {sorted(seeds)}.")
    return trials, seeds.pop()


def _trial(
    loss: float,
    reference: float | None,
    z: list[float | None],
    ranks: list[float],
    outputs: list[float],
) -> Trial:
    """A trial in units of stated standard errors, which are zero where they say nothing."""
    errors = np.array(z, dtype=np.float64)
    return Trial(
        loss,
        float("nan") if reference is None else reference,
        np.zeros(len(z)),
        np.nan_to_num(errors),
        np.where(np.isnan(errors), 0.0, 1.0),
        np.array(ranks, dtype=np.float64),
        outputs=np.array(outputs, dtype=np.float64),
    )


def _or_none(value: float) -> float | None:
    if np.isnan(value):
        return None
    return value


def _rounded(values: NDArray[np.float64]) -> list[float | None]:
    return [_or_none(float(value)) for value in np.round(values, _DIGITS)]
