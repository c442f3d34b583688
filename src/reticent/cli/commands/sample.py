"""``reticent sample``: what can be said to it."""

from pathlib import Path
from typing import Annotated

import typer

from reticent.cli.files.model_files import check_model_file
from reticent.cli.options import Json, Quietly
from reticent.cli.terminal import print_json, progress

__all__ = ["sample_command"]


def sample_command(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="A model file that reticent fit mixture or factors wrote."
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            metavar="FILE", help="CSV or Parquet file to write; an existing file is never replaced."
        ),
    ],
    n: Annotated[
        int, typer.Option("-n", "--n", metavar="NUMBER", help="How many records to draw.")
    ] = 1000,
    seed: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER",
            help="Makes the draw repeatable; it protects nothing and harms nothing.",
        ),
    ] = None,
    json: Json = False,
    quiet: Quietly = False,
) -> None:
    """Draw synthetic records from a released model.

    They have the original column names, and lie within the ranges of these.

    Samples charge nothing: they are made from the model's releases only. They are as private as the
    model is, and as true to the records as it is: relations between columns that it does not know
    are not in them.
    """
    check_model_file(file)
    from reticent.cli.views.synthetic import print_sample, write_sample

    with progress(f"Drawing from {file.name}", quiet=quiet):
        about = write_sample(file, n, out, seed)
    if json:
        print_json(about)
    elif not quiet:
        print_sample(about)
