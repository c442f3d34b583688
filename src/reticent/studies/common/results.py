"""What a study finds.

Numbers for machines, tables for people, claims that were kept or not, and pictures; all in one
folder.
"""

import csv
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np

__all__ = [
    "Claim",
    "Findings",
    "Progress",
    "ResultTable",
    "Value",
    "mean_error",
    "plus_minus",
    "times",
]

Progress = Callable[[int, int, str], None]  # done, of how many, what is being done
Value = str | int | float | bool


@dataclass(frozen=True)
class ResultTable:
    """A table for people; its first ``left`` columns are words."""

    title: str
    headings: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    left: int = 1

    def markdown(self) -> str:
        """Lay out as Markdown."""
        rule = [":--" if i < self.left else "--:" for i in range(len(self.headings))]
        lines = [self.headings, rule, *self.rows]
        return (
            f"**{self.title}**\n\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"
        )


@dataclass(frozen=True)
class Claim:
    """Something that must hold, what was found, and whether it holds."""

    claim: str
    found: str
    kept: bool


@dataclass
class Findings:
    """All that a study found.

    ``records`` are rows of numbers with the same keys: one for each setting and method.
    """

    title: str
    records: list[dict[str, Value]]
    tables: list[ResultTable]
    claims: list[Claim] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)

    def write(self, out: Path) -> Self:
        """Write results.csv and table.md; pictures are there already."""
        out.mkdir(parents=True, exist_ok=True)
        results = out / "results.csv"
        table = out / "table.md"
        with open(results, "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(self.records[0]))
            writer.writeheader()
            writer.writerows(self.records)
        parts = [f"# {self.title}\n", *(one.markdown() for one in self.tables)]
        if self.claims:
            lines = [
                f"- {'kept' if one.kept else '**not kept**'}: {one.claim}: {one.found}"
                for one in self.claims
            ]
            parts.append("\n".join(lines))
        parts += [f"\n{note}" for note in self.notes]
        table.write_text("\n".join(parts) + "\n", encoding="utf-8")
        self.files = [results, table, *self.files]
        return self

    def for_machines(self) -> dict[str, Any]:
        """Give everything but the tables as plain values."""
        claims = [{"claim": one.claim, "found": one.found, "kept": one.kept} for one in self.claims]
        return {
            "records": self.records,
            "claims": claims,
            "notes": self.notes,
            "files": [str(f) for f in self.files],
        }


def mean_error(values: Iterable[float]) -> tuple[float, float]:
    """Mean, and its standard error (zero for a single value)."""
    found = np.array(list(values), dtype=np.float64)
    if len(found) > 1:
        error = float(found.std(ddof=1)) / math.sqrt(len(found))
    else:
        error = 0.0
    return float(found.mean()), error


def plus_minus(values: Sequence[float], digits: int = 3) -> str:
    """Write mean ± standard error, short enough for five of them in a row."""
    words = [f"{one:.{digits}f}".removeprefix("0") for one in mean_error(values)]
    if len(values) > 1:
        return "±".join(words)
    return words[0]


def times(repeats: int) -> str:
    """Say how often each setting was tried."""
    if repeats == 1:
        return "1 repeat"
    return f"{repeats} repeats"
