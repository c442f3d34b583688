"""A thread that reads the ledger's file: SQLite's locks belong to the process, and closing any file drops them."""

import contextlib
import hashlib
import sqlite3
import subprocess
import sys
import threading
import time

import reticent
from tests.attacks.harness import Outcome, attack

_SECONDS = 6.0


def _spend(dataset: str, seconds: float) -> int:
    """Charge for some time; how many charges were acknowledged."""
    ledger = reticent.Ledger("budget.db")
    acknowledged = 0
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            ledger.charge(dataset, reticent.Gaussian(noise_multiplier=1e5))
        except reticent.LedgerError:
            continue
        acknowledged += 1
    return acknowledged


def _read_all_the_time(ended: threading.Event) -> None:
    while not ended.is_set():
        with open("budget.db", "rb") as file:
            hashlib.sha256(file.read())
        time.sleep(0.001)


@attack("2b", "Checksums of the ledger's file, taken by a thread of a process that charges")
def checksums() -> Outcome:
    ledger = reticent.Ledger("budget.db")
    for dataset in ("ours", "theirs"):
        ledger.open(dataset, epsilon=1, delta=1e-6)
    command = [sys.executable, "-W", "ignore", "-m", "tests.attacks.ledger_locks"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as other:
        assert other.stdout is not None
        assert other.stdin is not None
        other.stdout.readline()  # it has imported everything
        other.stdin.write("go\n")
        other.stdin.flush()
        ended = threading.Event()
        reader = threading.Thread(target=_read_all_the_time, args=[ended])
        reader.start()
        acknowledged = _spend("ours", _SECONDS)
        theirs = int(other.stdout.readline())
        ended.set()
        reader.join()
    acknowledged += theirs
    try:
        ledger.verify()
        recorded = sum(len(ledger.history(dataset)) for dataset in ("ours", "theirs"))
        verified = "verify passes"
    except reticent.LedgerError:
        recorded = _rows()
        verified = "verify fails"
    lost = acknowledged - recorded
    return Outcome(lost > 0, f"{lost} of {acknowledged} acknowledged charges are lost; {verified}")


def _rows() -> int:
    """How many charges can be read at all."""
    try:
        with contextlib.closing(sqlite3.connect("budget.db")) as connection:
            return len(connection.execute("SELECT hash FROM reticent_ledger WHERE kind = 'charge'").fetchall())
    except sqlite3.Error:
        return 0


def _main() -> None:
    """The other process."""
    print("ready", flush=True)
    sys.stdin.readline()
    print(_spend("theirs", _SECONDS), flush=True)


if __name__ == "__main__":
    _main()
