"""A ledger under everything at once: `python -m tests.ledger_stress` prints what was acknowledged
and what is recorded.

Processes charge; other threads of the same processes read and back up the files; hard links appear;
a process in a mount namespace uses the file and the folder as a container would; processes are
killed at random. Then a charge is killed at every system call (tests/support/faults.py). On SQLite,
then on PostgreSQL. Ends with 1 if an acknowledged charge is not recorded.
"""

import argparse
import contextlib
import os
import random
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psycopg

from reticent.errors import LedgerError
from reticent.privacy.accounting.events import Gaussian
from reticent.privacy.ledger.ledger import Ledger
from tests.support.faults import kill_everywhere
from tests.support.postgres import server

EVENT = Gaussian(noise_multiplier=1e6)
LINKED = "names (hard links)"
PAUSE = 0.003  # seconds, about as long as a charge takes: kills fall anywhere within one


def _refusal(error: LedgerError) -> str:
    """A line of the log: whether the charge was recorded before the second name was found."""
    return "refused late\n" if "stays on the ledger" in str(error) else "refused\n"


def _spend(url: str, log: Path, wanted: int) -> None:
    """Charge until there are ``wanted`` rows.

    Note each acknowledged row and each refusal in ``log``.
    """
    notes = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    ledger = Ledger(url)
    number = 0
    while number < wanted:
        try:
            entry = ledger.charge("people", EVENT)
        except LedgerError as error:
            if LINKED not in str(error):
                raise
            os.write(notes, _refusal(error).encode())
            time.sleep(0.01)
            continue
        number = entry.number
        os.write(notes, f"{number} {entry.hash}\n".encode())


def _read_and_back_up(folder: Path) -> None:
    """What a checksum, a virus scanner or a backup does: open, read, close."""
    for turn in range(10**9):
        for name in ("budget.db", "budget.db-head"):
            with contextlib.suppress(FileNotFoundError), open(folder / name, "rb") as file:
                file.read(1 << 16)
        if turn % 20 == 0:
            shutil.copy(folder / "budget.db", folder.parent / f"backup {os.getpid()}")
        time.sleep(0.03)


def _forked(work: Callable[[], None]) -> int:
    child = os.fork()
    if child:
        return child
    try:
        work()
        os._exit(0)
    except BaseException as error:
        print(f"a process failed: {error!r}", file=sys.stderr, flush=True)
        os._exit(1)


def _worker(url: str, folder: Path, log: Path, wanted: int) -> int:
    def work() -> None:
        if "://" not in url:
            threading.Thread(target=_read_and_back_up, args=[folder], daemon=True).start()
        _spend(url, log, wanted)

    return _forked(work)


def _link_now_and_then(folder: Path, log: Path, ended: Path) -> None:
    """Give the file a second name for a moment, and try to charge through it."""
    other = folder / "other.db"
    while not ended.exists():
        time.sleep(random.uniform(0.2, 0.6))
        os.link(folder / "budget.db", other)
        try:
            entry = Ledger(other).charge("people", EVENT)
            line = f"{entry.number} {entry.hash} through another name\n"
        except LedgerError as error:
            line = _refusal(error)
        time.sleep(0.03)
        os.unlink(other)
        with log.open("a") as file:
            file.write(line)


def _container(folder: Path, log: Path, ended: Path) -> None:
    """In a mount namespace: the file alone is refused, the folder is the same ledger."""
    alone = folder.parent / "file"
    whole = folder.parent / "folder"
    for name in ("budget.db", "budget.db-head"):
        (alone / name).touch()
        subprocess.run(["mount", "--bind", folder / name, alone / name], check=True)
    subprocess.run(["mount", "--bind", folder, whole], check=True)
    while not ended.exists():
        for place in (alone, whole):
            try:
                entry = Ledger(place / "budget.db").charge("people", EVENT)
                line = (
                    f"{entry.number} "
                    f"{entry.hash}{' through a mounted file' if place == alone else ''}\n"
                )
            except LedgerError as error:
                line = _refusal(error)
            with log.open("a") as file:
                file.write(line)
        time.sleep(0.2)


def _start_container(folder: Path, log: Path, ended: Path) -> subprocess.Popen[bytes] | None:
    """None where this machine gives no mount namespace."""
    unshare = ["unshare", "-m"] if os.getuid() == 0 else ["unshare", "-rm"]
    if (
        shutil.which("unshare") is None
        or subprocess.run([*unshare, "true"], capture_output=True).returncode
    ):
        return None
    for name in ("file", "folder"):
        (folder.parent / name).mkdir()
    return subprocess.Popen(
        [*unshare, sys.executable, "-m", "tests.ledger_stress", "--container", folder, log, ended]
    )


def stress(url: str, scratch: Path, *, processes: int, charges: int, kills: int) -> dict[str, int]:
    """Charge ``charges`` times by ``processes``, with ``kills`` of them killed and started anew;
    count.

    ``url``: a PostgreSQL database, or ``scratch / "ledger" / "budget.db"``.
    """
    folder = scratch / "ledger"
    ended = scratch / "ended"
    folder.mkdir(exist_ok=True)
    files = "://" not in url
    ledger = Ledger(url)
    ledger.open("people", 1.0, 1e-6)
    logs = [scratch / f"log {i}" for i in range(processes)]
    began = time.monotonic()
    running = {_worker(url, folder, log, charges + 1): log for log in logs}
    others = []
    container = None
    if files:
        logs += [scratch / "log links", scratch / "log container"]
        others = [_forked(lambda: _link_now_and_then(folder, logs[-2], ended))]
        container = _start_container(folder, logs[-1], ended)
    killed = failed = 0
    while running:
        time.sleep(random.uniform(0.2, 1.8) * PAUSE)
        if killed < kills and _lines(logs) * (kills + 1) >= charges * (killed + 1):
            victim = random.choice(list(running))
            with contextlib.suppress(ProcessLookupError):
                os.kill(victim, signal.SIGKILL)
        while running:
            child, status = os.waitpid(-1, os.WNOHANG)
            if child == 0:
                break
            if child not in running:  # of those that end when all the others have
                failed += 1
                continue
            log = running.pop(child)
            code = os.waitstatus_to_exitcode(status)
            failed += code > 0
            if code == -signal.SIGKILL:
                killed += 1
                running[_worker(url, folder, log, charges + 1)] = log
    ended.touch()
    for child in others:
        failed += os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0
    if container is not None:
        failed += container.wait() != 0
    return _count(ledger, logs, killed, failed, container is not None, time.monotonic() - began)


def _lines(logs: list[Path]) -> int:
    """How many charges were acknowledged or refused so far: kills are spread over them."""
    return sum(log.read_bytes().count(b"\n") for log in logs if log.exists())


def _count(
    ledger: Ledger, logs: list[Path], killed: int, failed: int, mounted: bool, seconds: float
) -> dict[str, int]:
    text = "".join(log.read_text() for log in logs if log.exists())
    lines = [line.split() for line in text.splitlines(keepends=True) if line.endswith("\n")]
    acknowledged = [(int(line[0]), line[1]) for line in lines if line[0] != "refused"]
    late = lines.count(["refused", "late"])
    ledger.verify()
    recorded = {entry.number: entry.hash for entry in ledger.history("people")}
    return {
        "acknowledged": len(acknowledged),
        "recorded": len(recorded),
        "refused": lines.count(["refused"]),
        "refused, but recorded": late,
        "killed": killed,
        "recorded for no reason": max(0, len(recorded) - len(acknowledged) - late - killed),
        "lost": sum(recorded.get(number) != sha for number, sha in acknowledged),
        "acknowledged twice": len(acknowledged) - len({number for number, _ in acknowledged}),
        "through a second name": text.count("through"),
        "failed": failed,
        "in a container, too": mounted,
        "seconds": round(seconds),
    }


def _fresh(address: str) -> str:
    name = f"stress_{secrets.token_hex(4)}"
    with psycopg.connect(f"{address}/postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return f"{address}/{name}"


def _run(databases: list[str], processes: int, charges: int, kills: int, every: int) -> bool:
    good = True
    with contextlib.ExitStack() as stack:
        address = stack.enter_context(server()) if "postgresql" in databases else ""
        for database in databases:
            scratch = Path(
                stack.enter_context(tempfile.TemporaryDirectory(prefix="ledger-stress-"))
            )
            place = str(scratch / "ledger" / "budget.db")
            other = str(scratch / "faults.db")
            if database == "postgresql":
                place = _fresh(address)
                other = _fresh(address)
            found = stress(place, scratch, processes=processes, charges=charges, kills=kills)
            print(f"\n{database}: {processes} processes, charges until there are {charges:,}")
            _print(found)
            faults = kill_everywhere(other, every=every)
            print(
                f"\n{database}: killed before and after every system call of a charge"
                + f" ({every})" * (every > 1)
            )
            _print(faults._asdict())
            wrong = [
                found["lost"],
                found["acknowledged twice"],
                found["through a second name"],
                found["failed"],
            ]
            wrong += [found["recorded for no reason"]]
            good = good and not any([*wrong, faults.lost])
    return good


def _print(found: dict[str, int]) -> None:
    for name, value in found.items():
        shown = ("no", "yes")[value] if isinstance(value, bool) else f"{value:,}"
        print(f"  {name.replace('_', ' '):28} {shown:>12}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--database", choices=["sqlite", "postgresql"], action="append")
    parser.add_argument("--processes", type=int, default=16)
    parser.add_argument("--charges", type=int, default=10_000)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument(
        "--every", type=int, default=1, help="kill at every so-many-th stop of a charge"
    )
    parser.add_argument("--container", nargs=3, type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.container:
        _container(*given.container)
        return
    databases = given.database or ["sqlite", "postgresql"]
    sys.exit(not _run(databases, given.processes, given.charges, given.kills, given.every))


if __name__ == "__main__":
    main()
