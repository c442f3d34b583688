"""Forks: a child process must not add other noise to sums that its parent paid for once."""

import ctypes
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import reticent
from reticent.privacy.streams.stream import Stream
from tests.attacks.harness import Outcome, attack

_NEW_USER = 0x10000000  # CLONE_NEWUSER of unshare(2)
_NEW_PID = 0x20000000  # CLONE_NEWPID


@dataclass(frozen=True)
class First(reticent.Sum):
    """The first column."""

    columns = 1
    norm2 = 1

    def rows(self, records):
        return records[:, :1]


@dataclass(frozen=True)
class Forking(reticent.Sum):
    """The same, and a fork while the records are added up."""

    columns = 1
    norm2 = 1

    def rows(self, records):
        if os.fork():
            os.wait()
        return records[:, :1]


def paid_once() -> reticent.Curator:
    return reticent.Curator(
        reticent.scan(np.full((10, 1), 0.5)),
        bounds=reticent.Bounds(x=(-1, 1)),
        event=reticent.Gaussian(noise_multiplier=1.0),
    )


def say(curator: reticent.Curator | Stream, statistic: reticent.Sum) -> None:
    """Write what is released to standard output, whichever process this is."""
    try:
        found = float(curator.release(statistic).value[0])
    except reticent.ReleaseRefused as refusal:
        found = str(refusal)
    os.write(1, (json.dumps(found) + "\n").encode())


def as_number_one(work: Callable[[], None]) -> None:
    """Run ``work`` in a process that is number 1, and whose next child is number 1 too; then end.

    In PID namespaces of their own, as in containers; where those are not allowed, processes are
    told so.
    """
    libc = ctypes.PyDLL(None, use_errno=True)
    if libc.unshare(_NEW_USER | _NEW_PID) != 0:
        os.getpid = lambda: 1
    child = os.fork()
    if child == 0:
        if libc.unshare(_NEW_PID) != 0:
            os.getpid = lambda: 1
        work()
        os._exit(0)
    os.waitpid(child, 0)


def same_number() -> None:
    curator = paid_once()
    child = os.fork()
    say(curator, First())
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)


def raw_fork() -> None:
    """Past everything that Python runs at a fork."""
    curator = paid_once()
    child = ctypes.PyDLL(None).fork()
    say(curator, First())
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)


def forked_stream() -> None:
    stream = Stream(
        bounds=reticent.Bounds(x=[(-1, 1)]), event=reticent.Gaussian(noise_multiplier=1.0)
    )
    stream.add(First(), np.full((10, 1), 0.5))
    child = os.fork()
    say(stream, First())
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)


def in_the_sum() -> None:
    say(paid_once(), Forking())


def _outcome(program: str) -> Outcome:
    code = f"from tests.attacks import forks\n{program}"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    said = [json.loads(line) for line in done.stdout.splitlines()]
    released = [one for one in said if isinstance(one, float)]
    refusals = [one for one in said if isinstance(one, str)]
    figure = f"paid for 1 release, got {len(released)}"
    if refusals:
        figure += f"; {refusals[0]}"
    return Outcome(len(set(released)) > 1, figure, refused=len(released) == 1 and bool(refusals))


@attack(
    "7", "A child with its parent's process number (containers) releases what the parent paid for"
)
def pid_namespace() -> Outcome:
    return _outcome("forks.as_number_one(forks.same_number)")


@attack("7", "A raw fork, past what Python runs at a fork, releases what its parent paid for")
def behind_python() -> Outcome:
    return _outcome("forks.as_number_one(forks.raw_fork)")


@attack("7", "A statistic that forks while records are added up is released twice")
def fork_in_a_statistic() -> Outcome:
    return _outcome("forks.in_the_sum()")


@attack("7", "A stream that a fork continues releases its sums twice")
def stream_continued() -> Outcome:
    return _outcome("forks.as_number_one(forks.forked_stream)")
