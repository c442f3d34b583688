"""Ledger in a SQLite file, with the file of its heads beside it (anchor.py).

Every operation locks the file of the heads, checks that the database has one name and every row
that was acknowledged, and works in one transaction. A write is durable, anchored and read back
before it returns. Proof: ledger.md, 2 to 4.
"""

import contextlib
import glob
import os
import secrets
import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import quote

from reticent.errors import LedgerError
from reticent.privacy.ledger import anchor, tables
from reticent.privacy.ledger.anchor import EMPTY, Head
from reticent.privacy.ledger.locks import try_lock
from reticent.privacy.ledger.tables import (
    CHAINS,
    COLUMNS,
    FORMAT,
    TABLE,
    Execute,
    check_recorded,
    check_version,
    hash_of,
    heads,
    lock_timeout_advice,
)

__all__ = ["append_only", "create", "has_table", "held_alone", "transaction"]

_APPLICATION_ID = 0x52657469  # "Reti", in the header of the SQLite file
_RESTORE = (
    "Restore both files from one backup, the newest; then compare with what was released (reticent "
    "ledger verify --head with a release's entry), because what was spent after that backup is "
    "missing in it. Without one, release nothing more from its data sets."
)
_STAYS = "What was charged before this was found stays on the ledger."

# The last trigger is there because INSERT OR REPLACE removes rows without asking the second.
_SCHEMA = f"""
BEGIN;
{COLUMNS}
CREATE TRIGGER {TABLE}_no_update BEFORE UPDATE ON {TABLE}
BEGIN SELECT RAISE(ABORT, 'history is append-only'); END;
CREATE TRIGGER {TABLE}_no_delete BEFORE DELETE ON {TABLE}
BEGIN SELECT RAISE(ABORT, 'history is append-only'); END;
CREATE TRIGGER {TABLE}_no_replace BEFORE INSERT ON {TABLE}
WHEN NEW.number <> (SELECT coalesce(max(number), 0) + 1 FROM {TABLE})
    OR (NEW.kind = 'open' AND EXISTS \
(SELECT 1 FROM {TABLE} WHERE kind = 'open' AND dataset = NEW.dataset))
BEGIN SELECT RAISE(ABORT, 'history is append-only'); END;
PRAGMA application_id = {_APPLICATION_ID};
PRAGMA user_version = {FORMAT};
COMMIT;
"""


def create(path: str) -> None:
    """Make an empty ledger if there is none; whatever else is there is left alone."""
    if os.path.lexists(path):
        _drop_name_of_a_crash(path)
        return
    if not os.path.isdir(os.path.dirname(path)):
        raise LedgerError(
            f"The ledger {path} cannot be created: its folder does not exist. Make the folder "
            "first."
        )
    beside = anchor.anchor_of(path)
    try:
        with anchor.locked(beside, tables.LOCK_SECONDS, write=True, mode=0o666) as handle:
            if not os.path.lexists(path):
                _create_file(path, handle)
    except TimeoutError:
        raise _waited(path) from None
    except OSError as error:
        raise LedgerError(
            f"The ledger {path} cannot be created: {error.strerror}. Choose a folder on a local "
            "disk that you may write to, or make the folder writable."
        ) from error


def _create_file(path: str, handle: int) -> None:
    """Make the file whole beside its place, then link it.

    No crash and no second process ever meets half a ledger.
    """
    known = anchor.read_heads(handle)
    if known not in (None, (EMPTY, EMPTY)):
        raise LedgerError(
            f"A ledger was at {path}, and is gone: {anchor.anchor_of(path)} is still there. "
            "Restore both from a backup. For a new ledger choose another path: what was spent from "
            "the old one stays spent."
        )
    new = f"{path}.{secrets.token_hex(4)}.new"
    try:
        if known is None:
            anchor.append_heads(handle, EMPTY, EMPTY)
        with (
            _as_ledger_errors(path),
            contextlib.closing(sqlite3.connect(new, isolation_level=None)) as connection,
        ):
            connection.execute("PRAGMA synchronous = EXTRA")
            connection.executescript(_SCHEMA)
        # Where there is no lock, another process may be first.
        with contextlib.suppress(FileExistsError):
            os.link(new, path)
        anchor.sync_folder(os.path.dirname(path))
    except BaseException:
        if not os.path.lexists(path):
            with contextlib.suppress(OSError):
                os.unlink(anchor.anchor_of(path))
        raise
    finally:
        with contextlib.suppress(OSError):
            os.unlink(new)


def _drop_name_of_a_crash(path: str) -> None:
    """Remove the second name of a ledger whose maker was killed after linking it."""
    with contextlib.suppress(OSError):
        if os.stat(path).st_nlink > 1:
            with anchor.locked(anchor.anchor_of(path), tables.LOCK_SECONDS, write=True):
                for new in glob.glob(f"{glob.escape(path)}.*.new"):
                    if os.path.samefile(new, path):
                        os.unlink(new)


@contextlib.contextmanager
def transaction(named: str, *, write: bool) -> Iterator[Execute]:
    """One transaction on the ledger at this path; durable and read back when it ends."""
    _check_is_file(named)
    # Once: lock, heads and database are of one folder, whatever becomes of links.
    path = os.path.realpath(named)
    with _as_ledger_errors(path), _lock(path, write=write) as handle:
        place = _check_one_name(path)
        with contextlib.closing(_connect(path)) as connection:
            version = _check_format(connection, path)
            connection.execute("PRAGMA synchronous = EXTRA")
            connection.execute("PRAGMA fullfsync = ON")  # macOS: through the disk's own memory
            connection.execute("PRAGMA secure_delete = ON")  # what is blanked leaves the file
            if write:
                connection.execute("BEGIN IMMEDIATE")
            else:
                connection.execute("BEGIN")
            execute = _executing(connection)
            if handle is None:  # a ledger of format 1, which is only read
                yield execute
                return
            known = anchor.read_heads(handle)
            _check_anchor(execute, known, path, version)
            if write and version < FORMAT:
                known = _upgrade(execute, known, path, handle)
            yield execute
            if not write:
                return
            committed = _heads(execute)
            connection.execute("COMMIT")
        if committed != known:
            _append_to_anchor(path, handle, committed)
            with contextlib.closing(_connect(path)) as fresh:
                check_recorded(_executing(fresh), committed, path)
        try:
            if _check_one_name(named) != place:
                raise _replaced(named)
        except LedgerError as error:
            raise LedgerError(f"{error} {_STAYS}") from None


def _executing(connection: sqlite3.Connection) -> Execute:
    def execute(sql: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
        return connection.execute(sql, values).fetchall()

    return execute


def has_table(execute: Execute, name: str) -> bool:
    """Whether there is such a table."""
    return bool(execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", [name]))


def _heads(execute: Execute) -> tuple[Head, Head]:
    return heads(execute, lambda table: has_table(execute, table))


def append_only(execute: Execute, name: str) -> None:
    """Keep honest programs from changing rows of a table."""
    for verb in ("update", "delete"):
        execute(
            f"CREATE TRIGGER IF NOT EXISTS {name}_no_{verb} BEFORE {verb} ON {name} "
            "BEGIN SELECT RAISE(ABORT, 'history is append-only'); END",
            [],
        )


@contextlib.contextmanager
def held_alone(named: str, taken: str) -> Iterator[None]:
    """Hold a lock of its own in this block; LedgerError(``taken``) if another process has it."""
    path = f"{os.path.realpath(named)}.serving"
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        unlock = try_lock(handle, path, write=True)
        if unlock is None:
            raise LedgerError(taken)
        try:
            yield
        finally:
            unlock()
    finally:
        os.close(handle)


def _check_is_file(path: str) -> None:
    # Only by stat: closing a file that SQLite has open elsewhere in this process would drop its
    # locks.
    if not os.path.exists(path):
        raise LedgerError(
            f"There is no ledger at {path}: check the path. Nothing makes a ledger but `reticent "
            "ledger open`, and Ledger(path).open(dataset, epsilon, delta), so that a mistyped path "
            "cannot become a fresh budget."
        )
    if not os.path.isfile(path):
        raise _not_a_ledger(path, "not a file")
    if os.path.getsize(path) == 0:
        raise _not_a_ledger(path, "an empty file")


def _not_a_ledger(path: str, why: str) -> LedgerError:
    return LedgerError(
        f"{path} is not a reticent ledger ({why}). Check the path. If a ledger was here, restore "
        "it from a backup; for a new one choose a path that does not exist yet."
    )


def _connect(path: str) -> sqlite3.Connection:
    uri = f"file:{quote(os.fsencode(os.path.realpath(path)))}?mode=rw"  # rw, not rwc: never creates
    return sqlite3.connect(uri, uri=True, timeout=tables.LOCK_SECONDS, isolation_level=None)


def _check_format(connection: sqlite3.Connection, path: str) -> int:
    if connection.execute("PRAGMA application_id").fetchone()[0] != _APPLICATION_ID:
        raise _not_a_ledger(path, "a SQLite database of another program")
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    check_version(version, path)
    return version


@contextlib.contextmanager
def _lock(path: str, *, write: bool) -> Iterator[int | None]:
    """Hold the ledger's lock.

    Give the open file beside it, or None for a ledger of format 1 that is only read.
    """
    beside = anchor.anchor_of(path)
    with contextlib.ExitStack() as stack:
        try:
            mode = None
            if not os.path.exists(beside):
                _check_one_name(path)  # before SQLite looks at a journal that a crash has left
                with contextlib.closing(_connect(path)) as connection:
                    version = _check_format(connection, path)
                if version > 1:
                    raise _without_anchor(path, beside)
                mode = os.stat(path).st_mode
            if mode is not None and not write:
                yield None
                return
            handle = stack.enter_context(
                anchor.locked(beside, tables.LOCK_SECONDS, write=write, mode=mode)
            )
        except TimeoutError:
            raise _waited(path) from None
        except OSError as error:
            raise _not_locked(path, beside, error) from error
        yield handle


def _without_anchor(path: str, beside: str) -> LedgerError:
    return _unusable(
        path,
        f"{beside} is missing, which says up to which row it is whole. The two files belong "
        f"together: copy, move and share the folder. {_RESTORE}",
    )


def _not_locked(path: str, beside: str, error: OSError) -> LedgerError:
    return _unusable(
        path,
        f"{beside} cannot be opened and locked ({error.strerror}). Make both files and their "
        "folder writable for this user, on a local disk.",
    )


def _waited(path: str) -> LedgerError:
    return _unusable(path, f"{lock_timeout_advice()}.")


def _check_one_name(path: str) -> tuple[int, int]:
    """Refuse a file that can be reached by two names.

    After a crash each would have a journal of its own. Gives the file's device and number.
    """
    real = os.path.realpath(path)
    try:
        found = os.stat(real)
    except OSError:
        raise _replaced(path) from None
    if found.st_nlink > 1:
        raise _many_names(path, real, found.st_nlink)
    if anchor.mounted(real):
        raise _file_mounted(path)
    return found.st_dev, found.st_ino


def _many_names(path: str, real: str, names: int) -> LedgerError:
    return _unusable(
        path,
        f"the file has {names} names (hard links). After a crash a charge made through one of "
        f"them could be lost through the other. Find them with `find / -samefile {real}`, keep the "
        "one that has a -journal file beside it, if one has, remove the others, and share the "
        "folder instead.",
    )


def _file_mounted(path: str) -> LedgerError:
    return _unusable(
        path,
        "the file itself is mounted here, as into a container. Then it has two names, and after a "
        "crash a charge made through one could be lost through the other. Mount the folder that "
        "it is in, not the file.",
    )


def _replaced(path: str) -> LedgerError:
    return LedgerError(
        f"The file {path} was moved or replaced while it was charged: nothing "
        "may be read. Find out which program did it; `reticent ledger history` "
        "shows what is recorded now. Then try again."
    )


def _check_anchor(
    execute: Execute, known: tuple[Head, Head] | None, path: str, version: int
) -> None:
    """Refuse a database that lacks a row which was acknowledged."""
    beside = anchor.anchor_of(path)
    if known is None:
        if version == 1:
            return
        raise _damaged_anchor(path, beside)
    for table, head in zip(CHAINS, known, strict=True):
        if not head.number:
            continue
        if not has_table(execute, table) or hash_of(execute, table, head.number) != head.hash:
            raise _lost_row(path, beside, table, head.number)


def _damaged_anchor(path: str, beside: str) -> LedgerError:
    return _unusable(
        path,
        f"{beside} is empty or damaged, which says up to which row it is whole. {_RESTORE}",
    )


def _lost_row(path: str, beside: str, table: str, number: int) -> LedgerError:
    return _unusable(
        path,
        f"row {number} of {table}, which was acknowledged according to {beside}, is not in it. "
        "It was replaced by an older copy or another ledger, altered, or the disk has lost what "
        f"it had written. {_RESTORE}",
    )


def _upgrade(
    execute: Execute, known: tuple[Head, Head] | None, path: str, handle: int
) -> tuple[Head, Head]:
    """Make a ledger of format 1 one of this format, in the transaction under way.

    Give what is anchored now.
    """
    current = _heads(execute)
    if current != known:
        _append_to_anchor(path, handle, current)
    anchor.sync_folder(os.path.dirname(os.path.realpath(path)))  # the file beside it may be new
    execute(f"PRAGMA user_version = {FORMAT}", [])
    return current


def _append_to_anchor(path: str, handle: int, current: tuple[Head, Head]) -> None:
    try:
        anchor.append_heads(handle, *current)
    except OSError as error:
        raise LedgerError(
            f"{anchor.anchor_of(path)} cannot be written ({error.strerror}), and nothing may be "
            "read. Free some space or check the disk, then try again; `reticent ledger history` "
            "shows what was charged."
        ) from error


@contextlib.contextmanager
def _as_ledger_errors(path: str) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise _ledger_error(path, error) from error


def _ledger_error(path: str, error: sqlite3.Error) -> LedgerError:
    """What SQLite refused, and what to do about it."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_NOTADB:
        return _not_a_ledger(path, "not a SQLite file")
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        advice = lock_timeout_advice()
    elif code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
        advice = "you may not open or write it. Make the file and its folder writable for this user"
    elif code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
        advice = "the disk is full or failing. Free some space or check the disk, then try again"
    else:
        advice = f"SQLite says: {error}. If the file is damaged, restore it from a backup"
    return _unusable(path, f"{advice}.")


def _unusable(path: str, why: str) -> LedgerError:
    return LedgerError(f"The ledger {path} cannot be used, and nothing may be read: {why}")
