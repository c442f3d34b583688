"""Ledger in a PostgreSQL database.

A write takes an advisory lock before it reads anything, commits with ``synchronous_commit = on``,
and is read back in a transaction of its own. psycopg is imported only when a ledger is on a server.
Proof: ledger.md, 5 and 6.
"""

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from reticent.errors import LedgerError
from reticent.privacy.ledger import tables
from reticent.privacy.ledger.anchor import Head
from reticent.privacy.ledger.tables import (
    COLUMNS,
    FORMAT,
    TABLE,
    Execute,
    check_recorded,
    check_version,
    heads,
    lock_timeout_advice,
)

if TYPE_CHECKING:
    import psycopg

__all__ = ["append_only", "create", "has_table", "held_alone", "printable_url", "transaction"]

_ADVISORY_LOCK = 0x5265_7469_6365_6E74  # "Reticent"; a table lock needs more rights than INSERT
_SERVING_LOCK = _ADVISORY_LOCK + 1
_COMMENT = "reticent ledger, format "

_SCHEMA = f"""
{COLUMNS}
CREATE FUNCTION {TABLE}_refuse() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'history is append-only'; END $$;
CREATE TRIGGER {TABLE}_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON {TABLE}
    FOR EACH STATEMENT EXECUTE FUNCTION {TABLE}_refuse();
COMMENT ON TABLE {TABLE} IS '{_COMMENT}{FORMAT}';
"""

_HOST = r"(?:\[[0-9a-fA-F:.]+\]|[^@?#:/,\[\]]*)(?::\d*)?"
_URL = re.compile(
    r"(postgres(?:ql)?://)(?:([^:@/?#]*)(?::[^:@/?#]*)?@)?"
    rf"({_HOST}(?:,{_HOST})*(?:/[^@?#/]*)?)(?:\?[^@#]*)?"
)


def printable_url(url: str) -> str:
    """Return the URL without a password, even if the password was written wrongly."""
    match = _URL.fullmatch(url)
    if match is None:
        return "postgresql://…"
    scheme, user, rest = match.groups()
    if user:
        return f"{scheme}{user}@{rest}"
    return f"{scheme}{rest}"


def create(url: str) -> None:
    """Make an empty ledger if there is none."""
    with _connection(url, write=True) as (execute, _):
        if not has_table(execute, TABLE):
            execute(_SCHEMA, [])


@contextlib.contextmanager
def transaction(url: str, *, write: bool) -> Iterator[Execute]:
    """One transaction on the ledger of this server; durable and read back when it ends."""
    with _connection(url, write=write) as (execute, commit):
        _check_format(execute, url)
        if not write:
            yield execute
            return
        before = _heads(execute)
        yield execute
        after = _heads(execute)
        commit()
        if after != before:
            check_recorded(execute, after, printable_url(url))


def has_table(execute: Execute, name: str) -> bool:
    """Whether there is such a table."""
    return bool(execute("SELECT to_regclass(?) IS NOT NULL", [name])[0][0])


def _heads(execute: Execute) -> tuple[Head, Head]:
    return heads(execute, lambda table: _readable(execute, table))


def _readable(execute: Execute, table: str) -> bool:
    """Whether there is such a table, and this user may read it."""
    if not has_table(execute, table):
        return False
    return bool(execute("SELECT has_table_privilege(?, 'SELECT')", [table])[0][0])


def append_only(execute: Execute, name: str) -> None:
    """Keep honest programs from changing rows of a table."""
    if not execute("SELECT 1 FROM pg_trigger WHERE tgname = ?", [f"{name}_append_only"]):
        execute(
            f"CREATE TRIGGER {name}_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON {name} "
            f"FOR EACH STATEMENT EXECUTE FUNCTION {TABLE}_refuse()",
            [],
        )


@contextlib.contextmanager
def held_alone(url: str, taken: str) -> Iterator[None]:
    """Hold a lock of its own in this block; LedgerError(``taken``) if another process has it."""
    with _connection(url, write=False) as (execute, _):
        if not execute("SELECT pg_try_advisory_xact_lock(?)", [_SERVING_LOCK])[0][0]:
            raise LedgerError(taken)
        yield


def _check_format(execute: Execute, url: str) -> None:
    [(absent, comment)] = execute(
        "SELECT to_regclass(?) IS NULL, obj_description(to_regclass(?), 'pg_class')", [TABLE, TABLE]
    )
    if absent:
        raise LedgerError(
            f"There is no ledger in {printable_url(url)}: check the database. Nothing makes "
            "a ledger but `reticent ledger open`, and Ledger(url).open(dataset, epsilon, delta)."
        )
    version = (comment or "").removeprefix(_COMMENT)
    if not version.isdecimal():
        raise LedgerError(
            f"The table {TABLE} in {printable_url(url)} is not a reticent ledger. Check the "
            "database, or use an empty one."
        )
    check_version(int(version), printable_url(url))


@contextlib.contextmanager
def _connection(url: str, *, write: bool) -> Iterator[tuple[Execute, Callable[[], None]]]:
    """Yield what executes a statement in one transaction, and what commits it before the end."""
    try:
        import psycopg
    except ImportError as error:
        raise LedgerError(
            "A ledger on PostgreSQL needs psycopg, which is not installed: pip install "
            '"reticent[postgres]".'
        ) from error
    try:
        password = str(psycopg.conninfo.conninfo_to_dict(url).get("password") or "")
        seconds = max(2, int(tables.LOCK_SECONDS))
        connection = psycopg.connect(url, connect_timeout=seconds, client_encoding="utf8")
    except psycopg.Error as error:
        # libpq quotes what it could not use, which may be a piece of a password that was not
        # percent-encoded.
        reason = ""
        if _URL.fullmatch(url) and isinstance(error, psycopg.OperationalError):
            reason = f": {_one_line(error, password)}"
        raise LedgerError(
            f"Cannot connect to the ledger {printable_url(url)}{reason}. Check that the server "
            "runs and that host, port, database, user and password are right (special characters "
            "in a URL are percent-encoded)."
        ) from None
    try:
        with connection:
            # So that what is read after the lock is what the one before has committed.
            connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
            execute = _executing(connection)
            milliseconds = str(int(tables.LOCK_SECONDS * 1000))
            execute("SELECT set_config('lock_timeout', ?, true)", [milliseconds])
            execute("SET LOCAL synchronous_commit TO on", [])
            if write:
                execute("SELECT pg_advisory_xact_lock(?)", [_ADVISORY_LOCK])
            yield execute, connection.commit
    except psycopg.Error as error:
        if isinstance(error, psycopg.errors.LockNotAvailable):
            advice = lock_timeout_advice()
        elif isinstance(
            error, (psycopg.errors.InsufficientPrivilege, psycopg.errors.ReadOnlySqlTransaction)
        ):
            advice = (
                f"this user may not write it. Grant SELECT and INSERT on {TABLE}, on the primary "
                "server"
            )
        else:
            reason = _one_line(error, password)
            advice = f"{reason}. `reticent ledger history` shows what was charged"
        raise LedgerError(
            f"The ledger {printable_url(url)} cannot be used, and nothing may be read: {advice}."
        ) from error


def _executing(connection: "psycopg.Connection[tuple[Any, ...]]") -> Execute:
    def execute(sql: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
        cursor = connection.execute(sql.replace("?", "%s").encode(), values or None)
        if cursor.description:
            return cursor.fetchall()
        return []

    return execute


def _one_line(error: Exception, password: str) -> str:
    text = " ".join(str(error).split())
    if password:
        return text.replace(password, "***")
    return text
