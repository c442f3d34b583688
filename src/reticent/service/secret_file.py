"""Secret file of the service, in SQLite.

Its owner alone may read it, and it is that from its first byte on. It holds what the ledger must
not: people's candidates and rewards until they are released, exact sums, noise.
"""

import contextlib
import os
import sqlite3
import stat
from collections.abc import Iterator
from urllib.parse import quote

from reticent.errors import LedgerError
from reticent.privacy.ledger.tables import Execute

__all__ = ["create", "transaction"]

_APPLICATION_ID = 0x52657453  # "RetS", in the header of the file
_LOCK_SECONDS = 30.0
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
# Elsewhere there are no such rights, and a folder's own rights have to do
_POSIX = os.name == "posix"


def create(path: str) -> None:
    """Make the file if there is none; nobody else may read it before anything is in it."""
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        raise _refused(path, "its folder does not exist. Make the folder first")
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        pass
    except OSError as error:
        raise _refused(
            path, f"{error.strerror}. Choose a folder that you may write to, with --store"
        ) from error
    _check(path)
    if os.path.getsize(path) == 0:
        with _connected(path) as connection:
            connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")


@contextlib.contextmanager
def transaction(path: str, *, write: bool = False) -> Iterator[Execute]:
    """One transaction: all of it is on disk when the block has ended, nothing if it raises."""
    _check(path)
    with _connected(path) as connection:
        if connection.execute("PRAGMA application_id").fetchone()[0] != _APPLICATION_ID:
            raise _refused(
                path, "it is a file of another program. Choose another path, with --store"
            )
        connection.execute("PRAGMA secure_delete = ON")  # what is blanked leaves the file
        if write:
            connection.execute("BEGIN IMMEDIATE")
        else:
            connection.execute("BEGIN")
        yield lambda sql, values: connection.execute(sql, values).fetchall()
        connection.execute("COMMIT")


@contextlib.contextmanager
def _connected(path: str) -> Iterator[sqlite3.Connection]:
    uri = f"file:{quote(os.fsencode(path))}?mode=rw"  # rw, not rwc: never creates
    try:
        with contextlib.closing(
            sqlite3.connect(uri, uri=True, timeout=_LOCK_SECONDS, isolation_level=None)
        ) as connection:
            connection.execute("PRAGMA synchronous = EXTRA")
            connection.execute("PRAGMA fullfsync = ON")  # macOS: through the disk's own memory
            yield connection
    except sqlite3.Error as error:
        raise _refused(
            path, f"SQLite says: {error}. Check the disk and who may write the file"
        ) from error


def _check(path: str) -> None:
    """Refuse a file that others may read, replace, or reach by another name."""
    try:
        found = os.lstat(path)
        folder = os.stat(os.path.dirname(path))
    except OSError as error:
        raise _refused(path, f"{error.strerror}. Check the path") from error
    if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
        raise _refused(
            path, "it is a link, has two names, or is not a file. Choose another path, with --store"
        )
    if not _POSIX:
        return
    if found.st_mode & _OTHERS or found.st_uid != os.geteuid():
        raise _refused(path, f"others may read it, or own it. If nobody has, run: chmod 600 {path}")
    if folder.st_mode & stat.S_IWOTH and not folder.st_mode & stat.S_ISVTX:
        raise _refused(
            path, "everybody may replace files in its folder. Choose another folder, with --store"
        )


def _refused(path: str, why: str) -> LedgerError:
    return LedgerError(f"The service's own file {path} cannot be used: {why}.")
