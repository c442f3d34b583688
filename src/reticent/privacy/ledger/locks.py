"""Locks on open files, wherever Python runs: no wait, and gone when the process is.

Where Python has ``fcntl``, the lock is ``flock``, which belongs to the open file: a program that
opens, reads and closes the same file in the same process does not drop it. Elsewhere (Windows) it
is an exclusive transaction on an empty SQLite database beside the file, ``…-lock``: SQLite knows
how to lock files on every system.
"""

import contextlib
import errno
from collections.abc import Callable

__all__ = ["try_lock"]


def try_lock(handle: int, path: str, *, write: bool) -> Callable[[], None] | None:
    """Lock the open file ``handle`` at ``path`` without waiting.

    Returns a function that unlocks it, or None if it is locked; OSError if there can be no lock.
    Only readers (not ``write``) who may not make the file ``…-lock`` go on without one. Closing the
    file unlocks it too under ``fcntl``, and only there.
    """
    try:
        import fcntl
    except ImportError:
        return _lock_beside(f"{path}-lock", write=write)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return None

    # Not by closing: a process that was forked meanwhile may have the file open still.
    def unlock() -> None:
        with contextlib.suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_UN)

    return unlock


def _lock_beside(path: str, *, write: bool) -> Callable[[], None] | None:
    import sqlite3

    # The file cannot be made or written: readers change nothing, and need no lock.
    for_readers = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_READONLY)
    with contextlib.ExitStack() as opened:
        try:
            connection = sqlite3.connect(
                path, timeout=0, isolation_level=None, check_same_thread=False
            )
            opened.callback(connection.close)
            connection.execute("BEGIN EXCLUSIVE")
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                return None
            if write or code not in for_readers:
                raise OSError(errno.ENOLCK, f"{path}: {error}") from error
        return opened.pop_all().close
