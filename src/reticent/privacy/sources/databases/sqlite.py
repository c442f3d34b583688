"""Tables and queries of an SQLite file, by Python's own driver.

A cell of SQLite has a type of its own, whatever its column is declared as, so cells are read one by
one, as those of a list are: no type is found by looking at other records. Proof: reading.md, 7.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import final
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from reticent.errors import BadInput
from reticent.privacy.sources.base import Field
from reticent.privacy.sources.codes import code_array
from reticent.privacy.sources.databases.base import Columns, Session, file_path

__all__ = ["connect"]

_BLOCK_ROWS = 2**12
_LOCK_SECONDS = 0.5  # until a program that writes is done
_VIEW = "temp.reticent_records"


def connect(address: str) -> Session:
    """Open the file, which is never written to."""
    path = Path(file_path(address))
    if not path.is_file():
        raise BadInput(f"There is no file {path}. Check the path.")
    try:
        connection = sqlite3.connect(
            f"file:{quote(str(path.absolute()))}?mode=ro",
            uri=True,
            timeout=_LOCK_SECONDS,
            isolation_level=None,
            check_same_thread=False,
        )
    except sqlite3.Error:
        raise BadInput(f"{path} may not be read: permission denied. Ask its owner.") from None
    connection.text_factory = bytes  # text that cannot be decoded is no error
    return _Sqlite(connection)


@final
class _Sqlite(Session):
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def describe(self, records: str) -> Columns:
        """A view is compiled, and not run."""
        if not self._connection.in_transaction:
            self._connection.execute("BEGIN")
            self._connection.execute("SELECT 1 FROM sqlite_master LIMIT 0").fetchall()  # a lock
        self._connection.execute(f"CREATE TEMP VIEW reticent_records AS SELECT * FROM {records}")
        try:
            found = self._connection.execute("PRAGMA temp.table_info(reticent_records)").fetchall()
        finally:
            self._connection.execute(f"DROP VIEW {_VIEW}")
        return [
            (_text(name), "any", f"SQLite {_text(declared) or 'without type'}")
            for _, name, declared, *_ in found
        ]

    def count(self, records: str) -> int:
        """Count the rows."""
        [(number,)] = self._connection.execute(f"SELECT count(*) FROM {records}").fetchall()
        return int(number)

    def blocks(
        self, records: str, columns: Columns, fields: Sequence[Field]
    ) -> Iterator[NDArray[np.float64]]:
        """Fetch some rows at a time."""
        names = ", ".join(_name(name) for name, _, _ in columns) or "1"
        cursor = self._connection.execute(f"SELECT {names} FROM {records}")
        while rows := cursor.fetchmany(_BLOCK_ROWS):
            block = np.empty((len(rows), len(fields)))
            cells_by_column = list(zip(*rows, strict=True))
            for place, field in enumerate(fields):
                cells = np.fromiter(cells_by_column[place], dtype=object, count=len(rows))
                block[:, place] = code_array(cells, field.kind)
            yield block

    def refusal(self, error: Exception) -> str:
        """What SQLite says of a statement that it could not compile, or of the file."""
        text = str(error)
        if "locked" in text or "busy" in text:
            return "a program is writing to it. Wait until it is done, or read a copy."
        if isinstance(error, sqlite3.OperationalError):
            return f"{text}. Check the table, or the query."
        return "it is no SQLite file, or a damaged one."

    @property
    def lost(self) -> bool:
        """A file is not."""
        return False

    def close(self) -> None:
        """Close the file; nothing was written."""
        self._connection.close()


def _name(name: str) -> str:
    """A column's name; in double quotes one that there is not would be taken for a text."""
    return "`" + name.replace("`", "``") + "`"


def _text(name: bytes | str) -> str:
    if isinstance(name, bytes):
        return name.decode("utf-8", "replace")
    return name
