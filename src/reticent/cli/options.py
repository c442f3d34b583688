"""What commands share.

Options that several of them have, groups of them, and how a help text ends.
"""

import functools
import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

__all__ = [
    "ASKED",
    "Json",
    "LedgerUrl",
    "LevelColumn",
    "ModelFile",
    "Quiet",
    "Quietly",
    "Records",
    "example",
    "flag",
    "option",
    "with_options",
]


def option(kind: Any, metavar: str, text: str, *names: str, default: Any = None) -> tuple[Any, Any]:
    """An option of a group: its type and words, and what it is if left out."""
    return Annotated[
        kind | None if default is None else kind, typer.Option(*names, metavar=metavar, help=text)
    ], default


def flag(name: str, text: str) -> tuple[Any, Any]:
    """An option that is there or not."""
    return Annotated[bool, typer.Option(name, help=text)], False


Json = Annotated[bool, typer.Option("--json", help="Print the result for machines.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress, no advice.")]
Quietly = Annotated[
    bool, typer.Option("--quiet", help="Print nothing but errors: the result is in the file.")
]
Records = Annotated[
    str, typer.Argument(metavar="DATA", help="A CSV or Parquet file, or a folder of them.")
]
ModelFile = Annotated[
    Path,
    typer.Option(metavar="FILE", help="Model file to write; an existing file is never replaced."),
]
LedgerUrl = Annotated[
    str | None, typer.Option(metavar="LEDGER", help="Ledger to charge, before any record is read.")
]
LevelColumn = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN=LOW:HIGH",
        help="gp: a column with the known standard deviation of each record's output, and its "
        "public range, LOW above 0.",
    ),
]
# of every fit: columns, the promise, and who pays, for whom; with what they are if left out
ASKED = {
    "x": option(
        list[str],
        "COLUMN=LOW:HIGH",
        "A column and its public range; one for each. A missing value of it counts as the middle, "
        "one outside as the nearest edge; the ± of results does not cover this.",
        default=[],
    ),
    "y": option(
        list[str],
        "COLUMN=LOW:HIGH",
        "gp, gp-labels, gp-binned: a column to predict, and its public range. For gp, an output "
        "outside counts as it is; its residuals are clipped.",
        default=[],
    ),
    "classes": option(
        list[str],
        "COLUMN=LABEL,…",
        "classifier: the column to predict, and all labels that can stand in it, as they stand "
        "there. A label that is missing, or not listed, counts as the first one.",
        default=[],
    ),
    "epsilon": option(float, "NUMBER", "Strength of the promise: smaller protects more."),
    "delta": option(float, "NUMBER", "Chance that the promise may fail; well below 1/records."),
    "norm": option(
        float, "NUMBER", "Public bound on a record's distance from the middle of the ranges."
    ),
    "ledger": (LedgerUrl, None),
    "dataset": option(str, "NAME", "Data set to charge in the ledger."),
    "sign": option(
        Path,
        "KEY",
        "Private key to sign the model file with (Ed25519, PEM): openssl "
        "genpkey -algorithm ed25519.",
    ),
    "records_per_person": option(
        int, "K", "Protect people who have up to K records each.", default=1
    ),
}


def with_options(
    **groups: Mapping[str, tuple[Any, Any]],
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of each group in place of its parameter of that name.

    The parameter gets their values as a dictionary.
    """

    def taught(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def called(**given: Any) -> None:
            values = {
                group: {name: given.pop(name) for name in names} for group, names in groups.items()
            }
            command(**given, **values)

        parameters = []
        for one in inspect.signature(command).parameters.values():
            spread = [(name, *option) for name, option in groups.get(one.name, {}).items()]
            parameters += [
                one.replace(name=name, annotation=kind, default=default)
                for name, kind, default in spread
            ]
            if spread:
                parameters += []
            else:
                parameters += [one]
        called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        return called

    return taught


def example(*lines: str) -> str:
    """Give the end of a help text."""
    # the backspace keeps the lines as they are
    return "\b\nExample:\n" + "\n".join(f"  {line}" for line in lines)
