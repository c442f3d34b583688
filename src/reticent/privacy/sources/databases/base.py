"""A table or a query of a database as a source: one fit, one connection, one snapshot.

The connection that a fit reads from is opened before the charge and holds one read-only
transaction until the fit ends, so that all readings see the same rows. What a database says while
records are read never leaves: it may quote one. Proof: reading.md, 7.
"""

import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from copy import copy
from importlib import import_module
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from reticent.errors import BadInput, ReticentError
from reticent.privacy.ledger.postgres import printable_url
from reticent.privacy.sources.arrow.rereading import Readings
from reticent.privacy.sources.base import DtypeKind, Field, Source, check_features

__all__ = [
    "SCHEMES",
    "DatabaseSource",
    "Session",
    "file_path",
    "is_address",
    "quote_name",
    "scan_database",
    "shown_address",
]

Columns: TypeAlias = list[tuple[str, DtypeKind, str]]  # name, kind and dtype of each

_ENGINES = {
    "sqlite": "sqlite",
    "duckdb": "duckdb",
    "postgresql": "postgres",
    "postgres": "postgres",
}

SCHEMES = ("postgresql", "sqlite", "duckdb")


class Session(ABC):
    """Abstract: a connection in a read-only transaction. ``records`` is what stands behind FROM.

    ``connect(address)`` of an engine's module makes one. ``prunes``: see `Source`.
    """

    prunes = False

    @abstractmethod
    def describe(self, records: str) -> Columns:
        """Return the columns; no record is read. Raises what `refusal` words."""

    @abstractmethod
    def count(self, records: str) -> int:
        """Count the records."""

    @abstractmethod
    def blocks(
        self, records: str, columns: Columns, fields: Sequence[Field]
    ) -> Iterator[NDArray[np.float64]]:
        """Yield the codes of all records; ``columns`` are those of the fields."""

    @abstractmethod
    def refusal(self, error: Exception) -> str:
        """Return words for an error of `describe`, which names public things only."""

    @property
    @abstractmethod
    def lost(self) -> bool:
        """Whether the connection is gone."""

    @abstractmethod
    def close(self) -> None:
        """End the transaction and the connection."""


def is_address(data: object) -> bool:
    """Whether it is the address of a database."""
    return isinstance(data, str) and _scheme(data) in _ENGINES


def _scheme(address: str) -> str:
    scheme, mark, _ = address.partition("://")
    if mark:
        return scheme.lower()
    return ""


def shown_address(address: str) -> str:
    """Return the address as it may be printed: without a password, even one written wrongly."""
    if _ENGINES[_scheme(address)] == "postgres":
        return printable_url(address)
    return file_path(address)


def file_path(address: str) -> str:
    """Return the path of a database that is a file."""
    scheme, _, path = address.partition("://")
    if not path.startswith("/") or path == "/":
        raise BadInput(
            f"The address of a file of this kind is {scheme}:///clinic.db, with three strokes."
        )
    return path[1:]


def _engine(address: str) -> str:
    return f"reticent.privacy.sources.databases.{_ENGINES[_scheme(address)]}"


def scan_database(address: str, *, table: str | None = None, query: str | None = None) -> Source:
    """Return the source for a table or a query of a database; connects, and reads no record."""
    if (table is None) == (query is None):
        raise BadInput(
            f"Say which records of {shown_address(address)} to read: table='patients', or "
            "a SELECT as query=…; one of the two.",
            parameter="table",
        )
    connect: Callable[[str], Session] = import_module(_engine(address)).connect
    return DatabaseSource(
        lambda: connect(address), shown_address(address), _records(table=table, query=query)
    )


def _records(*, table: str | None, query: str | None) -> str:
    """What stands behind FROM."""
    text = query if table is None else table
    if not isinstance(text, str) or not text.strip() or "\0" in text:
        raise BadInput("The table or the query is empty, or no text.", parameter="table")
    if table is not None:
        return ".".join(quote_name(part) for part in table.split("."))
    return (
        f"({text.strip().rstrip(';')}\n) AS records"  # a line of its own: it may end in a comment
    )


def quote_name(name: str) -> str:
    """Return a name as SQL has it."""
    return '"' + name.replace('"', '""') + '"'


@final
class DatabaseSource(Source):
    """A table or a query of a database."""

    ordered = False

    def __init__(self, connect: Callable[[], Session], shown: str, records: str) -> None:
        self._connect = connect  # knows the address, and with it maybe a password
        self._shown = shown
        self._records = records
        self._session: Session | None = None
        self._readings = Readings()
        with closing(connect()) as session:
            self._columns = self._described(session)
            self.prunes = session.prunes
        names = tuple(name for name, _, _ in self._columns)
        if len(set(names)) < len(names):
            raise BadInput(
                f"The column names of the query of {shown} are not unique. Give each a name of its "
                "own: SELECT a.id AS id, …"
            )
        self.names = names
        self.width = len(names)
        check_features(self.width, "?")

    def __repr__(self) -> str:
        return f"<DatabaseSource: {self._shown}>"

    def snapshot(self) -> "DatabaseSource":
        """Return the source with a connection, all readings of which see the same rows."""
        changed = copy(self)
        changed._readings = Readings()
        changed._session = session = self._connect()
        weakref.finalize(changed, session.close).atexit = False
        try:
            if self._described(session) != self._columns:
                raise BadInput(
                    f"The columns in {self._shown} have changed since it was scanned. Scan it "
                    "again."
                )
        except BaseException:
            session.close()
            raise
        return changed

    def close(self) -> None:
        """End the transaction and the connection of a snapshot."""
        if self._session is not None:
            self._session.close()

    def kind(self, position: int) -> tuple[DtypeKind, str]:
        """Return what the database says of a column."""
        return self._columns[position][1:]

    def count(self) -> int:
        """Count the records."""
        with self._reading() as session:
            return session.count(self._records)

    def blocks(self, fields: Sequence[Field]) -> Iterator[NDArray[np.float64]]:
        """Yield the records as they come."""
        return self._readings.watch(fields, self._blocks(fields))

    def _blocks(self, fields: Sequence[Field]) -> Iterator[NDArray[np.float64]]:
        columns = [self._columns[self.position(field.key)] for field in fields]
        with self._reading() as session:
            yield from session.blocks(self._records, columns, fields)

    @contextmanager
    def _reading(self) -> Iterator[Session]:
        """The snapshot's session, or one for this reading alone.

        An error leaves without its own words and type, which may tell of a record.
        """
        session = self._session
        if session is None:
            session = self._connect()
        failure = ""
        try:
            yield session
        except ReticentError:
            raise
        except Exception:
            failure = (
                f"The records of {self._shown} could not be read to the end: the table or the "
                "query failed on the way. Run it by itself to see why (what the database says may "
                "tell of a record, and is not shown here)."
            )
            if session.lost:
                failure = (
                    f"The connection to {self._shown} was lost while records were read. Try again "
                    "when it is up."
                )
        finally:
            if self._session is None:
                session.close()
        if failure:
            raise BadInput(failure)

    def _described(self, session: Session) -> Columns:
        failure = ""
        try:
            return session.describe(self._records)
        except ReticentError:
            raise
        except Exception as error:
            failure = session.refusal(error)
        raise BadInput(f"{self._shown}: {failure}")
