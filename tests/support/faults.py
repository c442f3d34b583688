"""Kill a charging process at a system call of a charge, whichever.

A small tracer, by ptrace (Linux). A traced child stops before and after every system call.
`killed_at` lets it go on ``stops`` times and kills it there, so that every order in which files are
written, renamed and flushed is cut at every place.
"""

import ctypes
import os
import signal
from collections.abc import Callable
from typing import NamedTuple

from reticent.errors import LedgerError
from reticent.privacy.accounting.events import Gaussian
from reticent.privacy.ledger.ledger import Entry, Ledger

EVENT = Gaussian(noise_multiplier=1e6)

_TRACE_ME = 0
_SYSCALL = 24
_SET_OPTIONS = 0x4200
_OPTIONS = 0x100001  # a system call's stop is told from a signal's; the child dies with its tracer
_SYSCALL_STOP = signal.SIGTRAP | 0x80


class Stopped(NamedTuple):
    """What came of a child.

    Whether it ended by itself, and what it had acknowledged (number and hash of the row).
    """

    ended: bool
    acknowledged: tuple[int, str] | None


def _ptrace(request: int, process: int, data: int = 0) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    libc.ptrace.restype = ctypes.c_long
    if libc.ptrace(request, process, None, data) == -1:
        raise OSError(ctypes.get_errno(), "ptrace")


def killed_at(stops: int, charge: Callable[[], Entry]) -> Stopped:
    """Fork a child that charges and then says so; kill it at its ``stops``-th stop."""
    told, tell = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(told)
            _ptrace(_TRACE_ME, 0)
            os.kill(os.getpid(), signal.SIGSTOP)
            entry = charge()
            os.write(tell, f"{entry.number} {entry.hash}".encode())
            os._exit(0)
        except BaseException:
            os._exit(1)
    os.close(tell)
    os.waitpid(child, 0)
    _ptrace(_SET_OPTIONS, child, _OPTIONS)
    seen = 0
    passed_on = 0
    while True:
        _ptrace(_SYSCALL, child, passed_on)
        _, status = os.waitpid(child, 0)
        if os.WIFEXITED(status) or os.WIFSIGNALED(status):
            break
        passed_on = 0
        if os.WSTOPSIG(status) != _SYSCALL_STOP:
            passed_on = os.WSTOPSIG(status)
            continue
        seen += 1
        if seen == stops:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            break
    with os.fdopen(told, "rb") as file:
        text = file.read().decode().split()
    ended = os.WIFEXITED(status)
    if ended and os.WEXITSTATUS(status):
        raise AssertionError("the charge failed by itself")
    return Stopped(ended, (int(text[0]), text[1]) if text else None)


class Faults(NamedTuple):
    """Over all kills: how many, and in which state the ledger was found."""

    killed: int
    acknowledged: int
    recorded_not_acknowledged: int
    journal_left: int
    head_behind: int
    lost: int


def kill_everywhere(url: str, *, first: int = 1, every: int = 1) -> Faults:
    """Kill a charge at its ``first`` stop, ``every`` further one after that, until one ends by
    itself.

    After each kill: what was acknowledged is recorded, the chain fits and continues the one before,
    no row was acknowledged with two hashes, and the next charge works.
    """
    ledger = Ledger(url)
    ledger.open("people", 1.0, 1e-6)
    known = {entry.number: entry.hash for entry in [ledger.charge("people", EVENT)]}
    killed = acknowledged = extra = journals = behind = lost = 0
    stops = first
    while True:
        rows = len(ledger.history("people"))
        stopped = killed_at(stops, lambda: ledger.charge("people", EVENT))
        if stopped.ended:
            return Faults(killed, acknowledged, extra, journals, behind, lost)
        killed += 1
        journals += os.path.exists(f"{url}-journal")
        head = max(known)
        recorded = {entry.number: entry.hash for entry in ledger.history("people")}
        behind += len(recorded) > rows and _anchored(url) < max(recorded)
        if stopped.acknowledged is not None:
            number, sha = stopped.acknowledged
            assert known.setdefault(number, sha) == sha, "one row was acknowledged with two hashes"
            acknowledged += 1
        extra += len(recorded) - rows - (stopped.acknowledged is not None)
        missing = [number for number, sha in known.items() if recorded.get(number) != sha]
        lost += len(missing)
        ledger.verify(expected_head=known[head])
        following = ledger.charge("people", EVENT)
        if following.number in known:
            raise LedgerError(f"row {following.number} was acknowledged twice")
        known[following.number] = following.hash
        stops += every


def _anchored(url: str) -> int:
    """Number of the row in the last line beside a SQLite ledger; a PostgreSQL ledger has none."""
    if "://" in url:
        return 10**18
    with open(f"{url}-head") as file:
        return int(file.read().splitlines()[-1].split()[0])
