"""What belongs to one process alone.

An identity that no fork shares, and the number of processors it may use. Whoever holds exact sums
or random bits remembers the `identity` of the process that made it, and refuses to work in another
one: a fork would add other noise to the same sums, or the same noise to other sums. The number of a
process does not tell a fork apart (in a new PID namespace both may be number 1), so there is a
random token besides, which the operating system wipes in a fork: on Linux it lives in a page of
memory that a child gets empty (`MADV_WIPEONFORK`, raw system calls included); elsewhere Python
changes it after a fork. A machine that is copied while it runs (a snapshot of its memory that is
started twice) is beyond both.
"""

import mmap
import os
import secrets

from reticent.errors import ReleaseRefused

__all__ = ["Identity", "available_cpus", "check_process", "identity"]

Identity = tuple[int, bytes]  # number of the process, and its token

_LENGTH = 16  # bytes of the token
_WIPE_ON_FORK = 18  # MADV_WIPEONFORK of Linux 4.14 and later; Python has no name for it


def _page() -> mmap.mmap | bytearray:
    """A place for the token that a fork gets empty, where the operating system has such a thing."""
    try:
        private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        page = mmap.mmap(-1, mmap.PAGESIZE, flags=private)
        page.madvise(_WIPE_ON_FORK)
    except (AttributeError, OSError, ValueError):
        return bytearray(_LENGTH)
    return page


_token = _page()


def _renew() -> None:
    _token[:_LENGTH] = secrets.token_bytes(_LENGTH)


def identity() -> Identity:
    """The process that this code runs in.

    Never equal in two processes, forks and clones of one included.
    """
    if not any(
        _token[:_LENGTH]
    ):  # at the beginning, and in a child that was made behind Python's back
        _renew()
    return os.getpid(), bytes(_token[:_LENGTH])


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)


def check_process(paid_in: Identity) -> None:
    """Refuse to work in another process than the one that paid."""
    if identity() != paid_in:
        raise ReleaseRefused(
            "This was paid for in another process: a fork cannot use what its parent paid, and "
            "would draw noise for the same sums again. Pay and release in one process."
        )


def available_cpus() -> int:
    """How many processors this process may use; at least 1.

    Linux tells which ones; elsewhere it is all that the machine has.
    """
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
