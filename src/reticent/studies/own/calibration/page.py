"""The results of the grid in a page of the documentation, between two marks."""

import math
import re
from collections.abc import Sequence
from pathlib import Path

from reticent.errors import BadInput
from reticent.studies.common.results import Claim, ResultTable
from reticent.studies.own.calibration.comparison import compare_parts
from reticent.studies.own.calibration.judging import FAULTS, Judged
from reticent.studies.own.calibration.picture import draw_grid

__all__ = ["write_page"]

_MARKS = re.compile("(<!-- results -->\n).*?(\n<!-- end of results -->)", re.DOTALL)


def write_page(
    page: Path,
    judged: Sequence[Judged],
    claims: Sequence[Claim],
    notes: Sequence[str],
    before: Sequence[Judged] = (),
) -> None:
    """Replace what stands between the marks, and draw the picture beside the page.

    ``before``: the same cells by an older version, which are then told beside these.
    """
    text = page.read_text(encoding="utf-8")
    if not _MARKS.search(text):
        raise BadInput(f"{page} has no lines <!-- results --> and <!-- end of results -->.")
    picture = draw_grid(page.with_suffix(".png"), judged)
    parts = [
        f"{notes[0]}\n",
        *([compare_parts(before, judged).markdown()] if before else []),
        _summary(judged).markdown(),
        f"![The grid: one row for each model, n and ε, one column for each law]({picture.name})\n",
        _claim_table(claims).markdown(),
    ]
    block = "\n".join(parts)
    filled = _MARKS.sub(lambda found: f"{found[1]}\n{block}{found[2]}", text)
    page.write_text(filled, encoding="utf-8")


def _summary(judged: Sequence[Judged]) -> ResultTable:
    """Count faults of each model; and its worst cell."""
    rows = []
    for model in dict.fromkeys(one.cell.model for one in judged):
        cells = [one for one in judged if one.cell.model == model]
        counts = [sum(letter in one.faults for one in cells) for letter in FAULTS]
        failing = sum(bool(one.faults) for one in cells)
        rows.append((model, _worst(cells), f"{failing} of {len(cells)}", *map(_count, counts)))
    headings = ("model", "lowest coverage of 95 % bands", "cells that fail", *FAULTS)
    title = "Faults by model: " + ", ".join(f"{key} {words}" for key, words in FAULTS.items())
    return ResultTable(title, headings, rows, 2)


def _worst(cells: Sequence[Judged]) -> str:
    banded = [one for one in cells if math.isfinite(one.coverage[0.95])]
    if not banded:
        return "no bands"
    worst = min(banded, key=lambda one: one.coverage[0.95])
    return (
        f"{worst.coverage[0.95]:.2f}: {worst.cell.law}, n = {worst.cell.n:,}, "
        f"ε = {worst.cell.epsilon:g}"
    )


def _count(number: int) -> str:
    if number:
        return str(number)
    return ""


def _claim_table(claims: Sequence[Claim]) -> ResultTable:
    kept = {True: "yes", False: "**no**"}
    rows = [(one.claim, one.found, kept[one.kept]) for one in claims]
    return ResultTable("What must hold", ("claim", "found", "kept"), rows, 3)
