"""The two databases a ledger can live in: a SQLite file, or a PostgreSQL server.

`transaction` opens a fresh connection and closes it again. Nothing is kept between operations, so there is
nothing that a fork, a pickle or a clone could share or lose. A write transaction takes the one write lock of
the ledger before it reads anything, and is durable when it returns: SQLite's rollback journal with
``synchronous=EXTRA``, PostgreSQL with ``synchronous_commit=on``. Every failure of a database leaves here as a
`LedgerError` that says what to do.
"""

import contextlib
import os
import re
import secrets
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from urllib.parse import quote

from reticent.errors import BadInput, LedgerError

__all__ = [
    "CURVES",
    "TABLE",
    "append_only",
    "check_url",
    "create",
    "has_table",
    "held_alone",
    "keep_to_owner",
    "shown",
    "transaction",
]

Execute = Callable[[str, Sequence[object]], list[tuple[Any, ...]]]

TABLE = "reticent_ledger"
CURVES = "reticent_curves"  # obfuscated curves, made when the first one is remembered
FORMAT = 1  # of the table and of the hash chain in it; raised when either changes
LOCK_SECONDS = 30.0  # how long to wait for another process to finish its charge

_APPLICATION_ID = 0x52657469  # "Reti", in the header of the SQLite file
_ADVISORY_LOCK = 0x5265_7469_6365_6E74  # "Reticent"; a table lock would need more rights than INSERT
_SERVING_LOCK = _ADVISORY_LOCK + 1
_WAITED = "another process held its lock for {:g} seconds. Wait for it to end, then try again"
_COMMENT = "reticent ledger, format "

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
        with _postgres_connection(url, write=True) as execute:
            if execute("SELECT to_regclass(?) IS NULL", [TABLE])[0][0]:
                execute(_POSTGRES_SCHEMA, [])
        return
    path = shown(url)
    if os.path.lexists(path):
        return
    if not os.path.isdir(os.path.dirname(path)):
        raise LedgerError(f"The ledger {path} cannot be created: its folder does not exist. Make the folder first.")
    # Made whole beside its place, then linked to it: no crash and no second process ever meets half a ledger.
    new = f"{path}.{secrets.token_hex(4)}.new"
    try:
        with (
            _sqlite_errors(path),
            contextlib.closing(sqlite3.connect(new, isolation_level=None)) as connection,
        ):
            connection.execute("PRAGMA synchronous = EXTRA")
            connection.executescript(_SQLITE_SCHEMA)
        with contextlib.suppress(FileExistsError):
            os.link(new, path)
        folder = os.open(os.path.dirname(path), os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise LedgerError(
            f"The ledger {path} cannot be created: {error.strerror}. Choose a folder on a local disk that "
            "you may write to."
        ) from error
    finally:
        with contextlib.suppress(OSError):
            os.unlink(new)


@contextlib.contextmanager
def transaction(url: str, *, write: bool = False) -> Iterator[Execute]:
    """One transaction on an existing ledger: all of it is kept if the block ends, none if it raises."""
    if _is_postgres(url):
        with _postgres_connection(url, write=write) as execute:
            _check_postgres_format(execute, url)
            yield execute
        return
    path = shown(url)
    _check_is_file(path)
    uri = f"file:{quote(os.fsencode(path))}?mode=rw"  # rw, not rwc: never creates
    with (
        _sqlite_errors(path),
        contextlib.closing(sqlite3.connect(uri, uri=True, timeout=LOCK_SECONDS, isolation_level=None)) as connection,
    ):
        _check_sqlite_format(connection, path)
        connection.execute("PRAGMA synchronous = EXTRA")
        connection.execute("PRAGMA secure_delete = ON")  # what is blanked leaves the file
        connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
        yield lambda sql, values: connection.execute(sql, values).fetchall()
        connection.execute("COMMIT")


def has_table(url: str, execute: Execute, name: str) -> bool:
    """Whether there is such a table."""
    if _is_postgres(url):
        return bool(execute("SELECT to_regclass(?) IS NOT NULL", [name])[0][0])
    return bool(execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", [name]))


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
        with _postgres_connection(url, write=False) as execute:
            if not execute("SELECT pg_try_advisory_xact_lock(?)", [_SERVING_LOCK])[0][0]:
                raise LedgerError(taken)
            yield
        return
    import fcntl

    handle = os.open(f"{os.path.realpath(shown(url))}.serving", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise LedgerError(taken) from None
        yield
    finally:
        os.close(handle)


def keep_to_owner(url: str) -> None:
    """Let nobody but its owner read the file, where there is one: it is about to hold more than a history."""
    path = shown(url)
    if not _is_postgres(url) and os.path.isfile(path):
        os.chmod(path, 0o600)


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


def _check_sqlite_format(connection: sqlite3.Connection, path: str) -> None:
    if connection.execute("PRAGMA application_id").fetchone()[0] != _APPLICATION_ID:
        raise _not_a_ledger(path, "a SQLite database of another program")
    _check_version(connection.execute("PRAGMA user_version").fetchone()[0], path)


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
def _postgres_connection(url: str, *, write: bool) -> Iterator[Execute]:
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
            yield execute
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
