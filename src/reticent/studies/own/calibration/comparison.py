"""Two runs of the grid on the same seed, by two versions of the library: what changed."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from reticent.studies.common.results import ResultTable
from reticent.studies.own.calibration.judging import Judged

__all__ = ["by_thirds", "compare", "paired_ratio"]

Array = NDArray[np.float64]


def compare(before: Sequence[Judged], after: Sequence[Judged]) -> ResultTable:
    """Pair the cells of two runs: ratio of mean losses with its standard error, and faults."""
    old = {one.cell: one for one in before}
    rows = [_row(old[new.cell], new) for new in after if new.cell in old]
    better = sum(row[5] == "better" for row in rows)
    worse = sum(row[5] == "worse" for row in rows)
    title = (
        f"After to before, {len(rows)} cells: {better} better, {worse} worse by 2 standard errors"
    )
    headings = (
        "model",
        "law",
        "n",
        "ε",
        "loss ratio",
        "",
        "95 % before",
        "95 % after",
        "outputs before",
        "outputs after",
        "faults before",
        "faults after",
    )
    return ResultTable(title, headings, rows, 2)


def _row(old: Judged, new: Judged) -> tuple[str, ...]:
    cell = new.cell
    ratio, error = paired_ratio(old.losses, new.losses, in_nats=new.in_nats)
    return (
        cell.model,
        cell.law,
        f"{cell.n:,}",
        f"{cell.epsilon:g}",
        f"{ratio:.3f} ± {error:.3f}",
        _verdict(ratio, error),
        _share(old.coverage),
        _share(new.coverage),
        by_thirds(old),
        by_thirds(new),
        old.faults,
        new.faults,
    )


def paired_ratio(old: Array, new: Array, *, in_nats: bool) -> tuple[float, float]:
    """Ratio of mean losses over the repeats that both have, and its standard error.

    In nats: exp of the mean difference, which is a ratio of densities.
    """
    repeats = min(len(old), len(new))
    first = old[:repeats]
    second = new[:repeats]
    if in_nats:
        ratio = float(np.exp(np.mean(second - first)))
        gaps = ratio * (second - first)
    else:
        ratio = float(second.mean() / first.mean())
        gaps = (second - ratio * first) / first.mean()
    if repeats < 2:
        return ratio, math.nan
    return ratio, float(gaps.std(ddof=1)) / math.sqrt(repeats)


def _verdict(ratio: float, error: float) -> str:
    if ratio > 1 + 2 * error:
        return "worse"
    if ratio < 1 - 2 * error:
        return "better"
    return ""


def by_thirds(one: Judged) -> str:
    """Coverage of outputs in the lower, middle and upper third of the inputs."""
    return " ".join(f"{share:.2f}" for share in one.outputs)


def _share(coverage: Mapping[float, float]) -> str:
    if math.isnan(coverage[0.95]):
        return ""
    return f"{coverage[0.95]:.2f}"
