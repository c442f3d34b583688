"""Anchor of a SQLite ledger: the file ``budget.db-head`` beside it, with a lock and heads.

*Lock.* Every operation on the ledger, reading too, first locks this file (locks.py). A program that
opens, reads and closes the database (a checksum, a backup) in the same process drops SQLite's own
locks on the database, and not this one.

*Anchor.* One line for each commit, appended and written through to the disk before the commit is
acknowledged: number and hash of the last row of the ledger, then of the remembered curves. A
database that does not have these rows has lost something that was acknowledged. Nothing is ever cut
off or overwritten: a line that a crash has torn stays, and the next one begins on a new line.
"""

import contextlib
import errno
import os
import re
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

from reticent.privacy.ledger.locks import try_lock
from reticent.privacy.process import identity

__all__ = [
    "EMPTY",
    "Head",
    "anchor_of",
    "append_heads",
    "locked",
    "mounted",
    "read_heads",
    "sync_folder",
]


class Head(NamedTuple):
    """The last row of a chain: its number, and its hash in 64 hexadecimal digits."""

    number: int
    hash: str


EMPTY = Head(0, "0" * 64)

_LINE = re.compile(rb"^(\d{1,18}) ([0-9a-f]{64}) (\d{1,18}) ([0-9a-f]{64})\n", re.MULTILINE)
_TAIL = 1 << 12  # bytes; a line has less than 200
_SHORTEST = 0.0005  # seconds between two attempts to take a lock, at first
_LONGEST = 0.005  # and in the end


def anchor_of(path: str) -> str:
    """Return the path of the file of heads beside the database at ``path``.

    Without symbolic links, as SQLite names its journal.
    """
    return os.path.realpath(path) + "-head"


@contextlib.contextmanager
def locked(anchor: str, seconds: float, *, write: bool, mode: int | None = None) -> Iterator[int]:
    """Hold the lock in this block, and yield the open file.

    TimeoutError if another process held it for ``seconds``. With ``mode`` the file is made, with
    these permissions, if there is none.
    """
    deadline = time.monotonic() + seconds
    pause = _SHORTEST
    process = identity()
    handle = -1
    unlock: Callable[[], None] | None = None
    try:
        while unlock is None:
            if handle < 0:
                handle = _opened(anchor, write=write, mode=mode)
            unlock = try_lock(handle, anchor, write=write)
            if unlock is not None:
                # Replaced while we waited? Then the lock is that of another file.
                if not _still_there(handle, anchor):
                    unlock()
                    unlock = None
                    os.close(handle)
                    handle = -1
            elif time.monotonic() > deadline:
                raise TimeoutError
            else:
                time.sleep(pause)
                pause = min(2 * pause, _LONGEST)
        yield handle
    finally:
        if handle >= 0:
            # A fork in the block must not unlock its parent's.
            if unlock is not None and identity() == process:
                unlock()
            os.close(handle)


def _opened(anchor: str, *, write: bool, mode: int | None) -> int:
    flags = os.O_RDWR | os.O_APPEND | getattr(os, "O_BINARY", 0)
    try:
        if mode is None:
            return os.open(anchor, flags)
        return os.open(anchor, flags | os.O_CREAT, mode & 0o666)
    except OSError as error:
        if write or error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise
        return os.open(anchor, os.O_RDONLY)  # who may only read the ledger


def _still_there(handle: int, anchor: str) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), os.stat(anchor))
    except FileNotFoundError:
        return False


def read_heads(handle: int) -> tuple[Head, Head] | None:
    """Return the heads of the last whole line, the ledger's and the curves'; None without one."""
    size = os.fstat(handle).st_size
    start = max(size - _TAIL, 0)
    os.lseek(handle, start, os.SEEK_SET)
    lines = _LINE.findall(os.read(handle, _TAIL))
    if not lines:
        return None
    number, sha, curves, curves_sha = lines[-1]
    return Head(int(number), sha.decode()), Head(int(curves), curves_sha.decode())


def append_heads(handle: int, rows: Head, curves: Head) -> None:
    """Append a line, and return when it is on the disk."""
    line = f"{rows.number} {rows.hash} {curves.number} {curves.hash}\n".encode()
    size = os.fstat(handle).st_size
    if size:
        os.lseek(handle, size - 1, os.SEEK_SET)
        if os.read(handle, 1) != b"\n":
            line = b"\n" + line
    written = os.write(handle, line)
    os.fsync(handle)
    if written != len(line):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def sync_folder(path: str) -> None:
    """Write the names in a folder through to the disk, where a folder can be opened."""
    if os.name == "nt":
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def mounted(path: str) -> bool:
    """Whether this one file (without symbolic links) is a mount point: a second name of it."""
    escaped = os.fsencode(path)
    for letter in (b"\\", b" ", b"\t", b"\n"):
        escaped = escaped.replace(letter, b"\\%03o" % ord(letter))
    try:
        with open("/proc/self/mountinfo", "rb") as file:
            return any(line.split(b" ", 5)[4] == escaped for line in file)
    except OSError:  # not Linux: then at least what is mounted from another disk
        return os.stat(path).st_dev != os.stat(os.path.dirname(path)).st_dev
