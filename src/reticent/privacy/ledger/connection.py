"""Connections to the database of a ledger: a SQLite file, or a PostgreSQL server.

`transaction` opens a fresh connection and closes it again. Nothing is kept between operations, so
there is nothing that a fork, a pickle or a clone could share or lose. A write transaction takes the
one write lock of the ledger before it reads anything, and when it returns it is durable and has
been read back: SQLite's rollback journal with ``synchronous=EXTRA`` and the heads beside it
(sqlite.py, anchor.py), PostgreSQL with ``synchronous_commit=on`` (postgres.py). Every failure of a
database leaves here as a `LedgerError` that says what to do. Proof: ledger.md.
"""

import os
from contextlib import AbstractContextManager

from reticent.errors import BadInput
from reticent.privacy.ledger import postgres, sqlite
from reticent.privacy.ledger.tables import Execute

__all__ = [
    "append_only",
    "check_url",
    "create",
    "has_table",
    "held_alone",
    "printable_url",
    "transaction",
]


def check_url(url: object) -> str:
    """Return a ledger's URL as text, or say which forms there are. Touches nothing."""
    if isinstance(url, os.PathLike):
        text = os.fspath(url)
    else:
        text = url
    if not isinstance(text, str) or not text or "\0" in text:
        raise BadInput(
            "A ledger's URL is the path of a file such as 'budget.db', or "
            "'postgresql://user@host/database'.",
        )
    if _is_postgres(text):
        return text
    if "://" in text and not text.startswith("sqlite:///"):
        raise BadInput(
            f"A ledger cannot live at a {text.partition('://')[0]!r} address. Give the path of a "
            "file such as 'budget.db', 'sqlite:///budget.db' or 'postgresql://user@host/database'."
        )
    if text.removeprefix("sqlite:///") in ("", ":memory:"):
        raise BadInput(
            "A ledger has to outlive the process: give the path of a file, such as 'budget.db'."
        )
    return text


def printable_url(url: str) -> str:
    """Return the URL as it may be printed: without a password, even one written wrongly."""
    if _is_postgres(url):
        return postgres.printable_url(url)
    return _path(url)


def create(url: str) -> None:
    """Make an empty ledger if there is none; whatever else is there is left alone."""
    if _is_postgres(url):
        postgres.create(url)
    else:
        sqlite.create(_path(url))


def transaction(url: str, *, write: bool = False) -> AbstractContextManager[Execute]:
    """One transaction on an existing ledger.

    All of it is kept if the block ends, none if it raises. When a write returns, the last row of
    every chain has been read back from the database.
    """
    if _is_postgres(url):
        return postgres.transaction(url, write=write)
    return sqlite.transaction(_path(url), write=write)


def has_table(url: str, execute: Execute, name: str) -> bool:
    """Whether there is such a table."""
    if _is_postgres(url):
        return postgres.has_table(execute, name)
    return sqlite.has_table(execute, name)


def append_only(url: str, execute: Execute, name: str) -> None:
    """Keep honest programs from changing rows of a table."""
    if _is_postgres(url):
        postgres.append_only(execute, name)
    else:
        sqlite.append_only(execute, name)


def held_alone(url: str) -> AbstractContextManager[None]:
    """Be the only one in this block, among all processes that use the database.

    It lasts as long as the process does.
    """
    taken = f"Another server works on {printable_url(url)}: stop it first, or use it."
    if _is_postgres(url):
        return postgres.held_alone(url, taken)
    return sqlite.held_alone(_path(url), taken)


def _is_postgres(url: str) -> bool:
    return url.startswith(("postgresql://", "postgres://"))


def _path(url: str) -> str:
    return os.path.abspath(url.removeprefix("sqlite:///"))
