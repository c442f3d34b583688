"""What commands share: options that several of them have, and how a help text ends."""

from typing import Annotated

import typer

__all__ = ["Classes", "Json", "LevelColumn", "Quiet", "example"]

Json = Annotated[bool, typer.Option("--json", help="Print the result for machines.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress, no advice.")]
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
