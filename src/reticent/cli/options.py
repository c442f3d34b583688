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
    "ABOUT_DATA",
    "ASKED",
    "DATABASE",
    "DESCRIBED",
    "DIALECT",
    "UNIT",
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
    str,
    typer.Argument(
        metavar="DATA",
        help="A CSV, Parquet or Excel file, a folder or a pattern ('2024-*.parquet') of them, or "
        "the address of a database (postgresql://user@host/clinic, sqlite:///clinic.db, "
        "duckdb:///clinic.db) with --table or --query. Also .csv.gz and .csv.zst, s3://, gs:// and "
        "hdfs:// addresses, and - for standard input.",
    ),
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
# how a file is to be read, besides its columns
ABOUT_DATA = {
    "codebook": option(
        Path,
        "FILE",
        "A codebook (see reticent codebook): it says what is public about each column, so that --x "
        "and --y choose columns by name, and may be left out where it says their use.",
    ),
    "missing": option(
        list[str],
        "CODE,…",
        "Codes that mean missing, in all columns: 999,NA; or in one: age=999,998.",
        default=[],
    ),
    "keep_missing": option(
        list[str],
        "COLUMN",
        "An input whose missing values count: as a level of their own for words, as one more "
        "yes/no input for numbers.",
        default=[],
    ),
    "separator": option(
        str, "SIGN", "Of a CSV file: , ; | or tab. If left out, the header line tells it."
    ),
    "decimal": option(
        str, "SIGN", "Of a CSV file: . or , (both are read if columns are separated by ;)."
    ),
    "encoding": option(
        str, "NAME", "Of a CSV file: utf-8, latin-1, … If left out, told cell by cell."
    ),
    "table": option(str, "NAME", "Of a database: the table to read, patients or schema.patients."),
    "query": option(
        str,
        "SQL",
        "Of a database, in place of a table: each row of its result is a record. If it joins or "
        "groups rows, give --person, for one row below may change many.",
    ),
    "sheet": option(str, "NAME", "Of a workbook (.xlsx): the sheet to read, if it has several."),
}
DIALECT = {name: ABOUT_DATA[name] for name in ("separator", "decimal", "encoding")}
DATABASE = {name: ABOUT_DATA[name] for name in ("table", "query", "sheet")}
# who is protected, and how much a record counts
UNIT = {
    "person": option(
        str,
        "COLUMN",
        "Protect people with all of their records, however many: the column that says whose a "
        "record is. Costs no more noise than one record; each person counts once.",
    ),
    "contribution": option(
        int,
        "K",
        "With --person, up to K records' weight for each person: answers about records rather than "
        "people, with up to K times the noise.",
        default=1,
    ),
    "neighbours": option(
        str,
        "HOW",
        "replace (the number of people or records is public) or add-remove (it is protected, too, "
        "and released with noise).",
        default="replace",
    ),
    "weight": option(
        str,
        "COLUMN=0:BOUND",
        "A column of record weights, of a survey for example, and a public bound: a larger weight "
        "counts as the bound.",
    ),
    "records_per_person": option(
        int,
        "K",
        "Where no column says whose a record is: protect people who have up to K records each. "
        "Believed, with K times the noise.",
        default=1,
    ),
}
# of every fit: columns, the promise, and who pays, for whom; with what they are if left out
ASKED = {
    "x": option(
        list[str],
        "COLUMN=…",
        "An input and what is public about it; one for each. A number age=0:110 "
        "(children=0:12:whole, hour=0:24:cyclic), words sex=F,M, ordered words stage='I<II<III', "
        "yes or no smoker=yes/no, a date visit=2019-01-01:2024-12-31. A number outside counts as "
        "the nearest edge; what is something else is missing, and a record that lacks a value is "
        "left out.",
        default=[],
    ),
    "y": option(
        list[str],
        "COLUMN=LOW:HIGH",
        "gp, gp-labels, gp-binned: a column to predict, and its public range; or yes/no, for a "
        "rate. For gp, an output outside counts as it is; its residuals are clipped.",
        default=[],
    ),
    "classes": option(
        list[str],
        "COLUMN=LABEL,…",
        "classifier: the column to predict, and all labels that can stand in it, as they stand "
        "there. A record whose label is missing, or not listed, is left out.",
        default=[],
    ),
    **ABOUT_DATA,
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
    **UNIT,
    **{
        name: option(str, "TEXT", text, f"--{name.replace('_', '-')}")
        for name, text in (
            ("title", "Public text for the report: what it is called."),
            ("controller", "… who is responsible for the records."),
            ("purpose", "… what the release is for."),
            ("source", "… where the records come from."),
            ("period", "… of which time the records are."),
            ("contact", "… whom to ask."),
            ("confirmed_by", "… who confirmed what the guarantee assumes."),
            ("note", "… anything else."),
        )
    },
}


# what is said of the columns of a file, and of how it is written
DESCRIBED = {name: ASKED[name] for name in ("x", "y", "classes", *ABOUT_DATA)}


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
