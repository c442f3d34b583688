"""Files that the command line writes: new ones only, and whole or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TextIO

from reticent.apps.terminal import BadFile

__all__ = ["check_new", "new_file", "new_text", "page_of"]


def check_new(out: Path, why: str) -> None:
    """Find out before any work whether a file can be written; one that exists is never replaced, and ``why`` says why."""
    if out.exists():
        raise BadFile(f"{out} exists already. {why}: choose another name for --out.")
    if not out.parent.is_dir():
        raise BadFile(f"{out} cannot be written: there is no folder {out.parent}. Make it first.")
    if not os.access(out.parent, os.W_OK):
        raise BadFile(
            f"{out} cannot be written: the folder {out.parent} is read-only for you. Choose another for --out."
        )


def page_of(model: Path) -> Path:
    """Name the report of a model file after it: m.html, or if that exists m-2.html, … for m.reticent."""
    stem = model.name.removesuffix(".reticent")
    names = (model.with_name(f"{stem}{'' if number == 1 else f'-{number}'}.html") for number in count(1))
    return next(page for page in names if not page.exists())


@contextmanager
def new_text(out: Path) -> Iterator[TextIO]:
    """Open a text file that appears under its name when all of it is written, and not at all if that fails."""
    with new_file(out) as scratch, open(scratch, "w", newline="", encoding="utf-8") as file:
        yield file


@contextmanager
def new_file(out: Path) -> Iterator[Path]:
    """Give the name of a scratch file that takes its final name when all of it is written, and vanishes if that fails."""
    scratch = out.with_name(out.name + ".part")
    try:
        yield scratch
        os.replace(scratch, out)
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise
