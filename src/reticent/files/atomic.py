"""New files: whole under their name or not at all, and in no file's place unless asked for.

All is written to a scratch file of a fresh random name in the same folder, which nothing can have
prepared (a link, a file of somebody else), and which no other writer uses. When it is on disk it is
given the final name, by an operation that fails if the name was taken meanwhile.
"""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from reticent.privacy.ledger.anchor import sync_folder

__all__ = ["new_file"]

_NEW = (
    os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
)
_MODE = 0o666  # less what the umask takes away


@contextmanager
def new_file(path: Path, *, overwrite: bool = False) -> Iterator[BinaryIO]:
    """Open a binary file that takes its name when the block ends, and vanishes if that fails.

    Raises FileExistsError if the name is taken by then, unless ``overwrite``, and OSError if the
    file cannot be written.
    """
    scratch = path.with_name(f".{secrets.token_hex(8)}.part")
    try:
        descriptor = os.open(scratch, _NEW, _MODE)
    except OSError as error:
        raise type(error)(error.errno, error.strerror, str(path)) from None
    try:
        with open(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if overwrite:
            os.replace(scratch, path)
        else:
            _name(scratch, path)
    finally:
        with suppress(OSError):
            os.unlink(scratch)
    with suppress(OSError):  # where folders can be synchronised
        sync_folder(str(path.parent))


def _name(scratch: Path, path: Path) -> None:
    """Give the scratch file its name, if that is free."""
    if os.name == "nt":
        os.rename(scratch, path)  # which replaces nothing there
        return
    try:
        os.link(scratch, path)
        return
    except FileExistsError:
        raise
    except (NotImplementedError, OSError):  # a file system without hard links
        pass
    os.close(os.open(path, _NEW, _MODE))  # takes the name; what it takes is empty, and is replaced
    try:
        os.replace(scratch, path)
    except BaseException:
        os.unlink(path)
        raise
