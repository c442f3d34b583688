"""Two runs of the grid on the same seed, by two versions of the library: what changed."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from reticent.studies.common.results import ResultTable
from reticent.studies.own.calibration.judging import NEAR, Judged, sure_errors

__all__ = ["by_thirds", "compare", "compare_parts", "paired_ratio"]

Array = NDArray[np.float64]


def compare(before: Sequence[Judged], after: Sequence[Judged]) -> ResultTable:
    """Pair the cells of two runs: ratio of mean losses with its standard error, and faults."""
    old = {one.cell: one for one in before}
    rows = [_row(old[new.cell], new) for new in after if new.cell in old]
    better = sum(row[5] == "better" for row in rows)
    worse = sum(row[5] == "worse" for row in rows)
    title = f"After to before, {len(rows)} cells: {better} clearly better, {worse} clearly worse"
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
        _verdict(old, new),
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


def _verdict(old: Judged, new: Judged) -> str:
    """Whether the loss changed by more than chance among so few repeats."""
    repeats = min(len(old.losses), len(new.losses))
    if repeats < 2:
        return ""
    ratio, error = paired_ratio(old.losses, new.losses, in_nats=new.in_nats)
    chance = sure_errors(repeats) * error
    if ratio > 1 + chance:
        return "worse"
    if ratio < 1 - chance:
        return "better"
    return ""


def by_thirds(one: Judged) -> str:
    """Coverage of outputs in the lower, middle and upper third of the inputs."""
    return " ".join(f"{share:.2f}" for share in one.outputs)


def compare_parts(before: Sequence[Judged], after: Sequence[Judged]) -> ResultTable:
    """For each part of the grid: cells of both runs that fail, and losses in pairs."""
    old = {one.cell: one for one in before}
    rows = []
    for part in dict.fromkeys(one.cell.family for one in after):
        pairs = [
            (old[one.cell], one) for one in after if one.cell.family == part and one.cell in old
        ]
        if pairs:
            rows.append((part, *_part_row(pairs)))
    headings = (
        "part",
        "cells",
        "fail, before",
        "fail, now",
        "lowest 95 % coverage, before",
        "now",
        "loss clearly better",
        "clearly worse",
        "more than 2 % worse",
    )
    return ResultTable("Before and now, the same records and truths", headings, rows, 1)


def _part_row(pairs: Sequence[tuple[Judged, Judged]]) -> tuple[str, ...]:
    verdicts = [_verdict(old, new) for old, new in pairs]
    matters = sum(
        verdict == "worse" and paired_ratio(old.losses, new.losses, in_nats=new.in_nats)[0] > NEAR
        for verdict, (old, new) in zip(verdicts, pairs, strict=True)
    )
    return (
        str(len(pairs)),
        str(sum(bool(old.faults) for old, _ in pairs)),
        str(sum(bool(new.faults) for _, new in pairs)),
        _lowest([old for old, _ in pairs]),
        _lowest([new for _, new in pairs]),
        str(verdicts.count("better")),
        str(verdicts.count("worse")),
        str(matters),
    )


def _lowest(judged: Sequence[Judged]) -> str:
    shares = [one.coverage[0.95] for one in judged if not math.isnan(one.coverage[0.95])]
    if not shares:
        return ""
    return f"{min(shares):.2f}"


def _share(coverage: Mapping[float, float]) -> str:
    if math.isnan(coverage[0.95]):
        return ""
    return f"{coverage[0.95]:.2f}"
