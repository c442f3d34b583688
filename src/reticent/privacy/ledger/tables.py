"""Tables of a ledger: their layout, format and hash chains, in either database.

A ledger is one table of rows, and a second one when a first curve is remembered. Each is a chain:
a row holds the hash of the row before it. The last row of a chain is its head.
"""

from collections.abc import Callable, Sequence
from typing import Any

from reticent.errors import LedgerError
from reticent.privacy.ledger.anchor import EMPTY, Head

__all__ = [
    "CHAINS",
    "COLUMNS",
    "CURVES",
    "FORMAT",
    "LOCK_SECONDS",
    "TABLE",
    "Execute",
    "check_recorded",
    "check_version",
    "hash_of",
    "heads",
    "lock_timeout_advice",
]

# Executes one statement with its values, and returns all rows of the answer.
Execute = Callable[[str, Sequence[object]], list[tuple[Any, ...]]]

TABLE = "reticent_ledger"
CURVES = "reticent_curves"  # obfuscated curves, made when the first one is remembered
CHAINS = (TABLE, CURVES)
FORMAT = 2  # of the table, of the hash chain in it and of the file beside it; 1: no such file
LOCK_SECONDS = 30.0  # how long to wait for another process to finish its charge

COLUMNS = f"""
CREATE TABLE {TABLE} (
    number BIGINT NOT NULL PRIMARY KEY, kind TEXT NOT NULL CHECK (kind IN ('open', 'charge')),
    dataset TEXT NOT NULL, body TEXT NOT NULL,
    who TEXT NOT NULL, at TEXT NOT NULL, what TEXT NOT NULL, hash TEXT NOT NULL);
CREATE INDEX {TABLE}_by_dataset ON {TABLE} (dataset, number);
CREATE UNIQUE INDEX {TABLE}_one_cap ON {TABLE} (dataset) WHERE kind = 'open';
"""


def heads(execute: Execute, readable: Callable[[str], bool]) -> tuple[Head, Head]:
    """Return the last row of the ledger and of the curves.

    ``readable`` says whether there is a table of that name, and this user may read it.
    """
    rows, curves = (_head(execute, table, readable) for table in CHAINS)
    return rows, curves


def _head(execute: Execute, table: str, readable: Callable[[str], bool]) -> Head:
    if not readable(table):
        return EMPTY
    last = execute(f"SELECT number, hash FROM {table} ORDER BY number DESC LIMIT 1", [])
    if last:
        return Head(*last[0])
    return EMPTY


def hash_of(execute: Execute, table: str, number: int) -> str | None:
    """Return the hash of a row, or None if there is no such row."""
    found = execute(f"SELECT hash FROM {table} WHERE number = ?", [number])
    if found:
        return str(found[0][0])
    return None


def check_recorded(execute: Execute, committed: tuple[Head, Head], ledger: str) -> None:
    """Read back what was committed: only then is it acknowledged."""
    for table, head in zip(CHAINS, committed, strict=True):
        if head.number and hash_of(execute, table, head.number) != head.hash:
            raise LedgerError(
                f"The ledger {ledger} does not have row {head.number} of {table}, which was "
                "committed a moment ago: nothing may be read. Another program rolls it back or "
                "replaces it. Find out which, then try again; `reticent ledger history` shows what "
                "is recorded."
            )


def check_version(version: int, ledger: str) -> None:
    """Refuse a format that is newer than this code."""
    if version > FORMAT:
        raise LedgerError(
            f"The ledger {ledger} has format {version}, and this version of reticent knows formats "
            f"up to {FORMAT}. Upgrade reticent: pip install --upgrade reticent."
        )


def lock_timeout_advice() -> str:
    """What to do where a lock was not free in time."""
    return (
        f"another process held its lock for {LOCK_SECONDS:g} seconds. Wait for it to end, then try "
        "again"
    )
