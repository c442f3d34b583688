"""Tables and queries of a DuckDB file, by DuckDB's own Arrow interface.

Proof: reading.md, 7.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from reticent.errors import BadInput
from reticent.privacy.sources.arrow.columns import batch_codes
from reticent.privacy.sources.arrow.streams import BATCH_ROWS, pieces
from reticent.privacy.sources.base import DtypeKind, Field
from reticent.privacy.sources.databases.base import Columns, Session, file_path, quote_name

if TYPE_CHECKING:
    import duckdb

__all__ = ["connect"]

_NUMBERS = frozenset(
    {
        *("TINYINT", "SMALLINT", "INTEGER", "BIGINT"),
        *("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"),
        *("FLOAT", "DOUBLE", "BOOLEAN"),
    }
)
_AS_TEXT: dict[str, DtypeKind] = {  # what Arrow has no type for, or one that is too short
    "HUGEINT": "number",
    "UHUGEINT": "number",
    "UUID": "text",
}
_PUBLIC_ERRORS = ("CatalogException", "BinderException", "ParserException", "PermissionException")


def connect(address: str) -> Session:
    """Open the file, which is never written to."""
    path = Path(file_path(address))
    try:
        import duckdb
    except ImportError:
        raise BadInput(
            'A DuckDB file needs duckdb, which is not installed: pip install "reticent[duckdb]".'
        ) from None
    if not path.is_file():
        raise BadInput(f"There is no file {path}. Check the path.")
    connection = None
    with suppress(duckdb.Error):
        connection = duckdb.connect(str(path), read_only=True)
    if connection is None:
        raise BadInput(
            f"{path} cannot be opened: a program has it open to write, or it is no DuckDB file of "
            "this version. Close the program, or read a copy; from a connection of your own, give "
            "a relation: scan(connection.table('patients'))."
        )
    return _DuckDb(connection)


@final
class _DuckDb(Session):
    prunes = True  # `read_csv(…, ignore_errors = true)`

    def __init__(self, connection: "duckdb.DuckDBPyConnection") -> None:
        self._connection: Any = connection
        connection.execute("SET arrow_large_buffer_size = true")  # 64-bit offsets of texts
        connection.execute("SET enable_progress_bar = false")  # it would be printed
        connection.execute("BEGIN TRANSACTION READ ONLY")

    def describe(self, records: str) -> Columns:
        """Bind the query, without running it."""
        found = self._connection.execute(f"DESCRIBE SELECT * FROM {records}").fetchall()
        return [(name, _kind(dtype), dtype) for name, dtype, *_ in found]

    def count(self, records: str) -> int:
        """Count the rows."""
        [(number,)] = self._connection.execute(f"SELECT count(*) FROM {records}").fetchall()
        return int(number)

    def blocks(
        self, records: str, columns: Columns, fields: Sequence[Field]
    ) -> Iterator[NDArray[np.float64]]:
        """Stream batches."""
        wanted = {name: _expression(name, dtype) for name, _, dtype in columns}
        asked = self._connection.sql(f"SELECT {', '.join(wanted.values()) or '1'} FROM {records}")
        if hasattr(asked, "to_arrow_reader"):
            reader = asked.to_arrow_reader(BATCH_ROWS)
        else:  # before 1.4
            reader = asked.fetch_arrow_reader(BATCH_ROWS)
        names = [name for name, _, _ in columns]
        with closing(reader):
            for batch in reader:
                for piece in pieces(batch):
                    yield batch_codes(piece, names, fields)

    def refusal(self, error: Exception) -> str:
        """What DuckDB says of names and syntax."""
        if type(error).__name__ in _PUBLIC_ERRORS:
            first = str(error).partition("\n")[0].removesuffix(".")
            return f"{first}. Check the table, or the query."
        return "the table or the query cannot be used. Run it by itself to see why."

    @property
    def lost(self) -> bool:
        """A file is not."""
        return False

    def close(self) -> None:
        """Close the file; nothing was written."""
        self._connection.close()


def _kind(dtype: str) -> DtypeKind:
    if dtype in _AS_TEXT:
        return _AS_TEXT[dtype]
    if dtype in _NUMBERS or dtype.startswith("DECIMAL("):
        return "number"
    if dtype == "VARCHAR":
        return "text"
    if dtype.startswith("ENUM("):
        return "category"
    if dtype == "DATE" or dtype.startswith("TIMESTAMP"):
        return "moment"
    return "other"


def _expression(name: str, dtype: str) -> str:
    quoted = quote_name(name)
    if dtype in _AS_TEXT:
        return f"CAST({quoted} AS VARCHAR) AS {quoted}"
    return quoted
