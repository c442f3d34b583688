"""The two databases a ledger can live in: a SQLite file, or a PostgreSQL server.

`transaction` opens a fresh connection and closes it again. Nothing is kept between operations, so there is
nothing that a fork, a pickle or a clone could share or lose. A write transaction takes the one write lock of
the ledger before it reads anything, and when it returns it is durable and has been read back: SQLite's rollback
journal with ``synchronous=EXTRA`` and the heads beside it (anchor.py), PostgreSQL with ``synchronous_commit=on``.
Every failure of a database leaves here as a `LedgerError` that says what to do. Proof: ledger.md.
"""

import contextlib
import glob
import os
import re
import secrets
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from urllib.parse import quote

from reticent.errors import BadInput, LedgerError
from reticent.privacy import anchor
from reticent.privacy.anchor import EMPTY, Head
from reticent.privacy.locks import try_lock

__all__ = [
    "CURVES",
    "TABLE",
    "append_only",
    "check_url",
    "create",
    "has_table",
    "held_alone",
    "shown",
    "transaction",
]

Execute = Callable[[str, Sequence[object]], list[tuple[Any, ...]]]

TABLE = "reticent_ledger"
CURVES = "reticent_curves"  # obfuscated curves, made when the first one is remembered
FORMAT = 2  # of the table, of the hash chain in it and of the file beside it; 1: no such file
LOCK_SECONDS = 30.0  # how long to wait for another process to finish its charge

_APPLICATION_ID = 0x52657469  # "Reti", in the header of the SQLite file
_ADVISORY_LOCK = 0x5265_7469_6365_6E74  # "Reticent"; a table lock would need more rights than INSERT
_SERVING_LOCK = _ADVISORY_LOCK + 1
_WAITED = "another process held its lock for {:g} seconds. Wait for it to end, then try again"
_RESTORE = (
    "Restore both files from one backup, the newest; then compare with what was released (reticent ledger verify --head "
    "with a release's entry), because what was spent after that backup is missing in it"
    ". Without one, release nothing more from its data sets."
)
_STAYS = "What was charged before this was found stays on the ledger."
_COMMENT = "reticent ledger, format "
_CHAINS = (TABLE, CURVES)

_COLUMNS = f"""
CREATE TABLE {TABLE} (
    number BIGINT NOT NULL PRIMARY KEY, kind TEXT NOT NULL CHECK (kind IN ('open', 'charge')),
    dataset TEXT NOT NULL, body TEXT NOT NULL,
    who TEXT NOT NULL, at TEXT NOT NULL, what TEXT NOT NULL, hash TEXT NOT NULL);
CREATE INDEX {TABLE}_by_dataset ON {TABLE} (dataset, number);
CREATE UNIQUE INDEX {TABLE}_one_cap ON {TABLE} (dataset) WHERE kind = 'open';
"""

# The last trigger is there because INSERT OR REPLACE removes rows without asking the second.
_SQLITE_SCHEMA = f"""
BEGIN;
{_COLUMNS}
CREATE TRIGGER {TABLE}_no_update BEFORE UPDATE ON {TABLE}
BEGIN SELECT RAISE(ABORT, 'history is append-only'); END;
CREATE TRIGGER {TABLE}_no_delete BEFORE DELETE ON {TABLE}
BEGIN SELECT RAISE(ABORT, 'history is append-only'); END;
CREATE TRIGGER {TABLE}_no_replace BEFORE INSERT ON {TABLE}
WHEN NEW.number <> (SELECT coalesce(max(number), 0) + 1 FROM {TABLE})
    OR (NEW.kind = 'open' AND EXISTS (SELECT 1 FROM {TABLE} WHERE kind = 'open' AND dataset = NEW.dataset))
BEGIN SELECT RAISE(ABORT, 'history is append-only'); END;
PRAGMA application_id = {_APPLICATION_ID};
PRAGMA user_version = {FORMAT};
COMMIT;
"""

_POSTGRES_SCHEMA = f"""
{_COLUMNS}
CREATE FUNCTION {TABLE}_refuse() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'history is append-only'; END $$;
CREATE TRIGGER {TABLE}_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON {TABLE}
    FOR EACH STATEMENT EXECUTE FUNCTION {TABLE}_refuse();
COMMENT ON TABLE {TABLE} IS '{_COMMENT}{FORMAT}';
"""

_HOST = r"(?:\[[0-9a-fA-F:.]+\]|[^@?#:/,\[\]]*)(?::\d*)?"
_POSTGRES_URL = re.compile(
    rf"(postgres(?:ql)?://)(?:([^:@/?#]*)(?::[^:@/?#]*)?@)?({_HOST}(?:,{_HOST})*(?:/[^@?#/]*)?)(?:\?[^@#]*)?"
)


def check_url(url: object) -> str:
    """Return a ledger's URL as text, or say which forms there are. Touches nothing."""
    text = os.fspath(url) if isinstance(url, os.PathLike) else url
    if isinstance(text, str) and text and "\0" not in text:
        if _is_postgres(text) or text.startswith("sqlite:///") or "://" not in text:
            if not _is_postgres(text) and _path(text) in ("", ":memory:"):
                raise BadInput("A ledger has to outlive the process: give the path of a file, such as 'budget.db'.")
            return text
        raise BadInput(
            f"A ledger cannot live at a {text.partition('://')[0]!r} address. Give the path of a file such "
            "as 'budget.db', 'sqlite:///budget.db' or 'postgresql://user@host/database'."
        )
    raise BadInput("A ledger's URL is the path of a file such as 'budget.db', or 'postgresql://user@host/database'.")


def shown(url: str) -> str:
    """Give the URL as it may be printed: without a password, even if the password was written wrongly."""
    if not _is_postgres(url):
        return os.path.abspath(_path(url))
    match = _POSTGRES_URL.fullmatch(url)
    if match is None:
        return "postgresql://…"
    scheme, user, rest = match.groups()
    return f"{scheme}{user}@{rest}" if user else f"{scheme}{rest}"


def create(url: str) -> None:
    """Make an empty ledger if there is none; whatever else is there is left alone."""
    if _is_postgres(url):
        with _postgres_connection(url, write=True) as (execute, _):
            if execute("SELECT to_regclass(?) IS NULL", [TABLE])[0][0]:
                execute(_POSTGRES_SCHEMA, [])
        return
    path = shown(url)
    if os.path.lexists(path):
        _drop_name_of_a_crash(path)
        return
    if not os.path.isdir(os.path.dirname(path)):
        raise LedgerError(f"The ledger {path} cannot be created: its folder does not exist. Make the folder first.")
    try:
        with anchor.locked(anchor.anchor_of(path), LOCK_SECONDS, write=True, mode=0o666) as handle:
            if not os.path.lexists(path):
                _create_file(path, handle)
    except TimeoutError:
        raise _waited(path) from None
    except OSError as error:
        raise LedgerError(
            f"The ledger {path} cannot be created: {error.strerror}. Choose a folder on a local disk that "
            "you may write to, or make the folder writable."
        ) from error


def _create_file(path: str, handle: int) -> None:
    """Make the file whole beside its place, then link it: no crash and no second process ever meets half a ledger."""
    known = anchor.read_heads(handle)
    if known not in (None, (EMPTY, EMPTY)):
        raise LedgerError(
            f"A ledger was at {path}, and is gone: {anchor.anchor_of(path)} is still there. Restore both from a backup. For a "
            "new ledger choose another path: what was spent from the old one stays spent."
        )
    new = f"{path}.{secrets.token_hex(4)}.new"
    try:
        if known is None:
            anchor.append_heads(handle, EMPTY, EMPTY)
        with (
            _sqlite_errors(path),
            contextlib.closing(sqlite3.connect(new, isolation_level=None)) as connection,
        ):
            connection.execute("PRAGMA synchronous = EXTRA")
            connection.executescript(_SQLITE_SCHEMA)
        with contextlib.suppress(FileExistsError):  # where there is no lock, another process may be first
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
            with anchor.locked(anchor.anchor_of(path), LOCK_SECONDS, write=True):
                for new in glob.glob(f"{glob.escape(path)}.*.new"):
                    if os.path.samefile(new, path):
                        os.unlink(new)


@contextlib.contextmanager
def transaction(url: str, *, write: bool = False) -> Iterator[Execute]:
    """One transaction on an existing ledger: all of it is kept if the block ends, none if it raises.

    When a write returns, the last row of every chain has been read back from the database.
    """
    if _is_postgres(url):
        with _postgres_connection(url, write=write) as (execute, commit):
            _check_postgres_format(execute, url)
            before = _heads(url, execute) if write else None
            yield execute
            if write:
                after = _heads(url, execute)
                commit()
                if after != before:
                    _check_recorded(execute, after, shown(url))
        return
    named = shown(url)
    _check_is_file(named)
    path = os.path.realpath(named)  # once: lock, heads and database are of one folder, whatever becomes of links
    with _sqlite_errors(path), _lock(path, write=write) as handle:
        place = _check_one_name(path)
        with contextlib.closing(_connect(path)) as connection:
            version = _check_sqlite_format(connection, path)
            connection.execute("PRAGMA synchronous = EXTRA")
            connection.execute("PRAGMA fullfsync = ON")  # macOS: through the disk's own memory
            connection.execute("PRAGMA secure_delete = ON")  # what is blanked leaves the file
            connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")

            def execute(sql: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
                return connection.execute(sql, values).fetchall()

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
            heads = _heads(url, execute)
            connection.execute("COMMIT")
        if heads != known:
            _anchor(path, handle, heads)
            with contextlib.closing(_connect(path)) as fresh:
                _check_recorded(lambda sql, values: fresh.execute(sql, values).fetchall(), heads, path)
        try:
            if _check_one_name(named) != place:
                raise _replaced(named)
        except LedgerError as error:
            raise LedgerError(f"{error} {_STAYS}") from None


def has_table(url: str, execute: Execute, name: str) -> bool:
    """Whether there is such a table."""
    if _is_postgres(url):
        return bool(execute("SELECT to_regclass(?) IS NOT NULL", [name])[0][0])
    return bool(execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", [name]))


def _heads(url: str, execute: Execute) -> tuple[Head, Head]:
    """The last row of the ledger and of the curves."""
    rows, curves = (_head(execute, table) if _readable(url, execute, table) else EMPTY for table in _CHAINS)
    return rows, curves


def _head(execute: Execute, table: str) -> Head:
    last = execute(f"SELECT number, hash FROM {table} ORDER BY number DESC LIMIT 1", [])
    return Head(*last[0]) if last else EMPTY


def _readable(url: str, execute: Execute, table: str) -> bool:
    """Whether there is such a table, and this user may read it."""
    if not has_table(url, execute, table):
        return False
    return not _is_postgres(url) or bool(execute("SELECT has_table_privilege(?, 'SELECT')", [table])[0][0])


def _hash_of(execute: Execute, table: str, number: int) -> str | None:
    found = execute(f"SELECT hash FROM {table} WHERE number = ?", [number])
    return str(found[0][0]) if found else None


def _check_recorded(execute: Execute, heads: tuple[Head, Head], where: str) -> None:
    """Read back what was committed: only then is it acknowledged."""
    for table, head in zip(_CHAINS, heads, strict=True):
        if head.number and _hash_of(execute, table, head.number) != head.hash:
            raise LedgerError(
                f"The ledger {where} does not have row {head.number} of {table}, which was committed a moment ago: nothing "
                "may be read. Another program rolls it back or replaces it. Find out which, then try again; `reticent "
                "ledger history` shows what is recorded."
            )


def append_only(url: str, execute: Execute, name: str) -> None:
    """Keep honest programs from changing rows of a table."""
    if not _is_postgres(url):
        for verb in ("update", "delete"):
            execute(
                f"CREATE TRIGGER IF NOT EXISTS {name}_no_{verb} BEFORE {verb} ON {name} "
                "BEGIN SELECT RAISE(ABORT, 'history is append-only'); END",
                [],
            )
    elif not execute("SELECT 1 FROM pg_trigger WHERE tgname = ?", [f"{name}_append_only"]):
        execute(
            f"CREATE TRIGGER {name}_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON {name} "
            f"FOR EACH STATEMENT EXECUTE FUNCTION {TABLE}_refuse()",
            [],
        )


@contextlib.contextmanager
def held_alone(url: str) -> Iterator[None]:
    """Be the only one in this block, among all processes that use the database; it lasts as long as the process does."""
    taken = f"Another server works on {shown(url)}: stop it first, or use it."
    if _is_postgres(url):
        with _postgres_connection(url, write=False) as (execute, _):
            if not execute("SELECT pg_try_advisory_xact_lock(?)", [_SERVING_LOCK])[0][0]:
                raise LedgerError(taken)
            yield
        return
    path = f"{os.path.realpath(shown(url))}.serving"
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


def _is_postgres(url: str) -> bool:
    return url.startswith(("postgresql://", "postgres://"))


def _path(url: str) -> str:
    return url.removeprefix("sqlite:///")


def _check_version(version: int, where: str) -> None:
    if version > FORMAT:
        raise LedgerError(
            f"The ledger {where} has format {version}, and this version of reticent knows formats up to "
            f"{FORMAT}. Upgrade reticent: pip install --upgrade reticent."
        )


# --- SQLite ---


def _check_is_file(path: str) -> None:
    # only by stat: closing a file that SQLite has open elsewhere in this process would drop its locks
    if not os.path.exists(path):
        raise LedgerError(
            f"There is no ledger at {path}: check the path. Nothing makes a ledger but `reticent ledger open`, and "
            "Ledger(path).open(dataset, epsilon, delta), so that a mistyped path cannot become a fresh budget."
        )
    if not os.path.isfile(path) or os.path.getsize(path) == 0:
        raise _not_a_ledger(path, "an empty file" if os.path.isfile(path) else "not a file")


def _not_a_ledger(path: str, why: str) -> LedgerError:
    return LedgerError(
        f"{path} is not a reticent ledger ({why}). Check the path. If a ledger was here, restore it from a "
        "backup; for a new one choose a path that does not exist yet."
    )


def _connect(path: str) -> sqlite3.Connection:
    uri = f"file:{quote(os.fsencode(os.path.realpath(path)))}?mode=rw"  # rw, not rwc: never creates
    return sqlite3.connect(uri, uri=True, timeout=LOCK_SECONDS, isolation_level=None)


def _check_sqlite_format(connection: sqlite3.Connection, path: str) -> int:
    if connection.execute("PRAGMA application_id").fetchone()[0] != _APPLICATION_ID:
        raise _not_a_ledger(path, "a SQLite database of another program")
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    _check_version(version, path)
    return version


@contextlib.contextmanager
def _lock(path: str, *, write: bool) -> Iterator[int | None]:
    """Hold the ledger's lock; give the open file beside it, or None for a ledger of format 1 that is only read."""
    beside = anchor.anchor_of(path)
    with contextlib.ExitStack() as stack:
        try:
            mode = None
            if not os.path.exists(beside):
                _check_one_name(path)  # before SQLite looks at a journal that a crash has left
                with contextlib.closing(_connect(path)) as connection:
                    version = _check_sqlite_format(connection, path)
                if version > 1:
                    raise LedgerError(
                        f"The ledger {path} cannot be used, and nothing may be read: {beside} is missing, which "
                        "says up to which row it is whole. The two files belong together: copy, move and share "
                        f"the folder. {_RESTORE}"
                    )
                mode = os.stat(path).st_mode
            if mode is not None and not write:
                yield None
                return
            handle = stack.enter_context(anchor.locked(beside, LOCK_SECONDS, write=write, mode=mode))
        except TimeoutError:
            raise _waited(path) from None
        except OSError as error:
            raise LedgerError(
                f"The ledger {path} cannot be used, and nothing may be read: {beside} cannot be opened and locked "
                f"({error.strerror}). Make both files and their folder writable for this user, on a local disk."
            ) from error
        yield handle


def _waited(path: str) -> LedgerError:
    return LedgerError(f"The ledger {path} cannot be used, and nothing may be read: {_WAITED.format(LOCK_SECONDS)}.")


def _check_one_name(path: str) -> tuple[int, int]:
    """Refuse a file that can be reached by two names: after a crash each would have a journal of its own.

    Gives the file's device and number.
    """
    real = os.path.realpath(path)
    try:
        found = os.stat(real)
    except OSError:
        raise _replaced(path) from None
    if found.st_nlink > 1:
        raise LedgerError(
            f"The ledger {path} cannot be used, and nothing may be read: the file has {found.st_nlink} names (hard links). "
            "After a crash a charge made through one of them could be lost through the other. Find them with `find / "
            f"-samefile {real}`, keep the one that has a -journal file beside it, if one has, remove the others, and "
            "share the folder instead."
        )
    if anchor.mounted(real):
        raise LedgerError(
            f"The ledger {path} cannot be used, and nothing may be read: the file itself is mounted here, as into a "
            "container. Then it has two names, and after a crash a charge made through one could be lost through the "
            "other. Mount the folder that it is in, not the file."
        )
    return found.st_dev, found.st_ino


def _replaced(path: str) -> LedgerError:
    return LedgerError(
        f"The file {path} was moved or replaced while it was charged: nothing may be read. Find out which program did it; "
        "`reticent ledger history` shows what is recorded now. Then try again."
    )


def _check_anchor(execute: Execute, known: tuple[Head, Head] | None, path: str, version: int) -> None:
    """Refuse a database that lacks a row which was acknowledged."""
    beside = anchor.anchor_of(path)
    if known is None:
        if version == 1:
            return
        raise LedgerError(
            f"The ledger {path} cannot be used, and nothing may be read: {beside} is empty or damaged, which says up "
            f"to which row it is whole. {_RESTORE}"
        )
    for table, head in zip(_CHAINS, known, strict=True):
        if not head.number:
            continue
        if not has_table("", execute, table) or _hash_of(execute, table, head.number) != head.hash:
            raise LedgerError(
                f"The ledger {path} cannot be used, and nothing may be read: row {head.number} of {table}, which was "
                f"acknowledged according to {beside}, is not in it. It was replaced by an older copy or another "
                f"ledger, altered, or the disk has lost what it had written. {_RESTORE}"
            )


def _upgrade(execute: Execute, known: tuple[Head, Head] | None, path: str, handle: int) -> tuple[Head, Head]:
    """Make a ledger of format 1 one of this format, in the transaction under way; give what is anchored now."""
    heads = _heads("", execute)
    if heads != known:
        _anchor(path, handle, heads)
    anchor.sync_folder(os.path.dirname(os.path.realpath(path)))  # the file beside it may be new
    execute(f"PRAGMA user_version = {FORMAT}", [])
    return heads


def _anchor(path: str, handle: int, heads: tuple[Head, Head]) -> None:
    try:
        anchor.append_heads(handle, *heads)
    except OSError as error:
        raise LedgerError(
            f"{anchor.anchor_of(path)} cannot be written ({error.strerror}), and nothing may be read. Free some space or check "
            "the disk, then try again; `reticent ledger history` shows what was charged."
        ) from error


@contextlib.contextmanager
def _sqlite_errors(path: str) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code == sqlite3.SQLITE_NOTADB:
            raise _not_a_ledger(path, "not a SQLite file") from error
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            advice = _WAITED.format(LOCK_SECONDS)
        elif code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
            advice = "you may not open or write it. Make the file and its folder writable for this user"
        elif code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
            advice = "the disk is full or failing. Free some space or check the disk, then try again"
        else:
            advice = f"SQLite says: {error}. If the file is damaged, restore it from a backup"
        raise LedgerError(f"The ledger {path} cannot be used, and nothing may be read: {advice}.") from error


# --- PostgreSQL ---


def _check_postgres_format(execute: Execute, url: str) -> None:
    [(absent, comment)] = execute(
        "SELECT to_regclass(?) IS NULL, obj_description(to_regclass(?), 'pg_class')", [TABLE, TABLE]
    )
    if absent:
        raise LedgerError(
            f"There is no ledger in {shown(url)}: check the database. Nothing makes a ledger but "
            "`reticent ledger open`, and Ledger(url).open(dataset, epsilon, delta)."
        )
    version = (comment or "").removeprefix(_COMMENT)
    if not version.isdecimal():
        raise LedgerError(
            f"The table {TABLE} in {shown(url)} is not a reticent ledger. Check the database, or use an empty one."
        )
    _check_version(int(version), shown(url))


@contextlib.contextmanager
def _postgres_connection(url: str, *, write: bool) -> Iterator[tuple[Execute, Callable[[], None]]]:
    """Give what executes a statement in one transaction, and what commits it before the block ends."""
    try:
        import psycopg
    except ImportError as error:
        raise LedgerError(
            'A ledger on PostgreSQL needs psycopg, which is not installed: pip install "reticent[postgres]".'
        ) from error
    try:
        password = str(psycopg.conninfo.conninfo_to_dict(url).get("password") or "")
        connection = psycopg.connect(url, connect_timeout=max(2, int(LOCK_SECONDS)), client_encoding="utf8")
    except psycopg.Error as error:
        # libpq quotes what it could not use, which may be a piece of a password that was not percent-encoded
        sure = _POSTGRES_URL.fullmatch(url) and isinstance(error, psycopg.OperationalError)
        said = f": {_one_line(error, password)}" if sure else ""
        raise LedgerError(
            f"Cannot connect to the ledger {shown(url)}{said}. Check that the server runs and that host, "
            "port, database, user and password are right (special characters in a URL are percent-encoded)."
        ) from None
    try:
        with connection:
            # so that what is read after the lock is what the one before has committed
            connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED

            def execute(sql: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
                cursor = connection.execute(sql.replace("?", "%s").encode(), values or None)
                return cursor.fetchall() if cursor.description else []

            milliseconds = str(int(LOCK_SECONDS * 1000))
            execute("SELECT set_config('lock_timeout', ?, true)", [milliseconds])
            execute("SET LOCAL synchronous_commit TO on", [])
            if write:
                execute("SELECT pg_advisory_xact_lock(?)", [_ADVISORY_LOCK])
            yield execute, connection.commit
    except psycopg.Error as error:
        if isinstance(error, psycopg.errors.LockNotAvailable):
            advice = _WAITED.format(LOCK_SECONDS)
        elif isinstance(error, (psycopg.errors.InsufficientPrivilege, psycopg.errors.ReadOnlySqlTransaction)):
            advice = f"this user may not write it. Grant SELECT and INSERT on {TABLE}, on the primary server"
        else:
            advice = f"{_one_line(error, password)}. `reticent ledger history` shows what was charged"
        raise LedgerError(f"The ledger {shown(url)} cannot be used, and nothing may be read: {advice}.") from error


def _one_line(error: Exception, password: str) -> str:
    text = " ".join(str(error).split())
    return text.replace(password, "***") if password else text
