"""A thread that reads the ledger's file.

SQLite's locks belong to the process, and closing any file drops them.
"""

import contextlib
import hashlib
import sqlite3
import subprocess
import sys
import threading
import time

import reticent
from tests.attacks.harness import Outcome, attack

_SECONDS = 3.0


def _spend(dataset: str) -> list[str]:
    """Charge for some time, while a thread reads the file; the hashes of what was acknowledged."""
    ended = threading.Event()
    reader = threading.Thread(target=_read_all_the_time, args=[ended])
    reader.start()
    ledger = reticent.Ledger("budget.db")
    acknowledged = []
    until = time.monotonic() + _SECONDS
    while time.monotonic() < until:
        with contextlib.suppress(reticent.LedgerError):
            acknowledged.append(
                ledger.charge(dataset, reticent.Gaussian(noise_multiplier=1e5)).hash
            )
    ended.set()
    reader.join()
    return acknowledged


def _read_all_the_time(ended: threading.Event) -> None:
    while not ended.is_set():
        with open("budget.db", "rb") as file:
            hashlib.sha256(file.read())
        time.sleep(0.0003)


@attack("2b", "Checksums of the ledger's file, taken by a thread of each process that charges")
def checksums() -> Outcome:
    ledger = reticent.Ledger("budget.db")
    for dataset in ("ours", "theirs"):
        ledger.open(dataset, epsilon=1, delta=1e-6)
    command = [sys.executable, "-W", "ignore", "-m", "tests.attacks.ledger_locks"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdin is not None
        other.stdout.readline()  # it has imported everything
        other.stdin.write("go\n")
        other.stdin.flush()
        acknowledged = _spend("ours")
        acknowledged += other.stdout.readline().split()
    lost = len(set(acknowledged) - _recorded())
    figure = f"{lost} of {len(acknowledged)} acknowledged charges are lost"
    try:
        ledger.verify()
    except reticent.LedgerError:
        return Outcome(True, f"{figure}, and the file is destroyed")
    return Outcome(lost > 0, f"{figure}; verify passes")


def _recorded() -> set[str]:
    """Hashes of all charges that can be read at all."""
    try:
        with contextlib.closing(sqlite3.connect("budget.db")) as connection:
            return {sha for (sha,) in connection.execute("SELECT hash FROM reticent_ledger")}
    except sqlite3.Error:
        return set()


def _main() -> None:
    """The other process."""
    print("ready", flush=True)
    sys.stdin.readline()
    print(*_spend("theirs"), flush=True)


if __name__ == "__main__":
    _main()
