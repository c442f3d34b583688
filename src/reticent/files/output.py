"""Files that the command line writes: new ones only, and whole or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from itertools import count
from pathlib import Path
from typing import BinaryIO, TextIO

from reticent.errors import BadFile
from reticent.files.atomic import new_file

__all__ = ["check_new", "new_binary", "new_text", "page_of"]


def check_new(out: Path, why: str) -> None:
    """Find out before any work whether a file can be written.

    One that exists is never replaced, and ``why`` says why.
    """
    if os.path.lexists(out):
        raise BadFile(f"{out} exists already. {why}: choose another name for --out.")
    if not out.parent.is_dir():
        raise BadFile(f"{out} cannot be written: there is no folder {out.parent}. Make it first.")
    if not os.access(out.parent, os.W_OK):
        raise BadFile(
            f"{out} cannot be written: the folder {out.parent} is read-only "
            "for you. Choose another for --out."
        )


def page_of(model: Path) -> Path:
    """Name the report of a model file after it.

    Of m.reticent it is m.html, or m-2.html, … if that exists.
    """
    stem = model.name.removesuffix(".reticent")
    names = (
        model.with_name(f"{stem}{'' if number == 1 else f'-{number}'}.html") for number in count(1)
    )
    return next(page for page in names if not page.exists())


@contextmanager
def new_text(out: Path, *, overwrite: bool = False) -> Iterator[TextIO]:
    """Open a text file that appears under its name when all of it is written.

    If that fails it does not appear at all.
    """
    with new_binary(out, overwrite=overwrite) as file:
        text = TextIOWrapper(file, encoding="utf-8", newline="")
        try:
            yield text
        finally:
            text.detach()


@contextmanager
def new_binary(out: Path, *, overwrite: bool = False) -> Iterator[BinaryIO]:
    """Open a binary file in the same way."""
    try:
        with new_file(out, overwrite=overwrite) as file:
            yield file
    except FileExistsError:
        raise BadFile(
            f"{out} appeared meanwhile, and is not replaced: choose another name for --out."
        ) from None
