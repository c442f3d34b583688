"""What commands share: options that several of them have, and how a help text ends."""

from pathlib import Path
from typing import Annotated

import typer

__all__ = [
    "Classes",
    "Dataset",
    "Delta",
    "Json",
    "LedgerUrl",
    "LevelColumn",
    "ModelFile",
    "Norm",
    "PerPerson",
    "Quiet",
    "Quietly",
    "Records",
    "example",
]

Json = Annotated[bool, typer.Option("--json", help="Print the result for machines.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress, no advice.")]
Quietly = Annotated[bool, typer.Option("--quiet", help="Print nothing but errors: the result is in the file.")]
Records = Annotated[str, typer.Argument(metavar="DATA", help="A CSV or Parquet file, or a folder of them.")]
ModelFile = Annotated[
    Path, typer.Option(metavar="FILE", help="Model file to write; an existing file is never replaced.")
]
Delta = Annotated[
    float | None, typer.Option(metavar="NUMBER", help="Chance that the promise may fail; well below 1/records.")
]
Norm = Annotated[
    float | None,
    typer.Option(metavar="NUMBER", help="Public bound on a record's distance from the middle of the ranges."),
]
LedgerUrl = Annotated[str | None, typer.Option(metavar="LEDGER", help="Ledger to charge, before any record is read.")]
Dataset = Annotated[str | None, typer.Option(metavar="NAME", help="Data set to charge in the ledger.")]
PerPerson = Annotated[int, typer.Option(metavar="K", help="Protect people who have up to K records each.")]
Classes = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN=LABEL,…",
        help="classifier: the column to predict, and all labels that can stand in it, as they stand there. A label that is "
        "missing, or not listed, counts as the first one.",
    ),
]
LevelColumn = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN=LOW:HIGH",
        help="gp: a column with the known standard deviation of each record's output, and its public range, LOW above 0.",
    ),
]


def example(*lines: str) -> str:
    """Give the end of a help text."""
    # the backspace keeps the lines as they are
    return "\b\nExample:\n" + "\n".join(f"  {line}" for line in lines)
