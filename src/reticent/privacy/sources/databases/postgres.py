"""Tables and queries of a PostgreSQL server, by COPY in text format.

One line of COPY is one record, whatever is in it: line ends, tabs and backslashes in a cell are
written with a backslash. Cells arrive as texts and are read like those of a CSV file. Proof:
reading.md, 7.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
from numpy.typing import NDArray

from reticent.errors import BadInput
from reticent.privacy.columns.base import Kind
from reticent.privacy.columns.identifiers import Identifier
from reticent.privacy.ledger.postgres import printable_url
from reticent.privacy.sources.base import DtypeKind, Field
from reticent.privacy.sources.cell_values import Column
from reticent.privacy.sources.codes import code_array, code_texts, reads_numbers
from reticent.privacy.sources.databases.base import Columns, Session, quote_name

if TYPE_CHECKING:
    import psycopg

__all__ = ["connect"]

_BLOCK_BYTES = 2**22
_CONNECT_SECONDS = 10
_SETTINGS = (
    "SET LOCAL datestyle = 'ISO, YMD'",
    "SET LOCAL timezone = 'UTC'",
    "SET LOCAL extra_float_digits = 3",  # all digits
)
_KINDS: dict[str, DtypeKind] = {
    **dict.fromkeys(("int2", "int4", "int8", "float4", "float8", "numeric", "bool"), "number"),
    **dict.fromkeys(("text", "varchar", "bpchar", "name", "citext", "uuid"), "text"),
    **dict.fromkeys(("date", "timestamp", "timestamptz"), "moment"),
}
_FRACTIONS: dict[str, Callable[[str], object]] = {
    "float4": float,
    "float8": float,
    "numeric": Decimal,
}
_ESCAPED = re.compile(rb"\\(.)", re.DOTALL)
_ESCAPES = {b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}


def connect(address: str) -> Session:
    """Connect, and begin a read-only transaction, all of which sees one moment."""
    try:
        import psycopg
    except ImportError:
        raise BadInput(
            'A PostgreSQL server needs psycopg, which is not installed: pip install "reticent'
            '[postgres]".'
        ) from None
    connection = None
    try:
        options = psycopg.conninfo.conninfo_to_dict(address)
        options.setdefault("connect_timeout", _CONNECT_SECONDS)
        options["client_encoding"] = "utf8"
        connection = psycopg.connect(**options, autocommit=True)  # type: ignore[arg-type]
        connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        for setting in _SETTINGS:
            connection.execute(setting)
    except psycopg.Error:  # libpq may quote a piece of a password that was not percent-encoded
        if connection is not None:
            connection.close()
        connection = None
    if connection is None:
        raise BadInput(
            f"Cannot connect to {printable_url(address)}. Check that the server runs and that "
            "host, port, database, user and password are right (a password is best kept in "
            "~/.pgpass or PGPASSWORD; in an address its special characters are percent-encoded)."
        )
    return _Postgres(connection)


@final
class _Postgres(Session):
    def __init__(self, connection: "psycopg.Connection[tuple[Any, ...]]") -> None:
        self._connection = connection

    def describe(self, records: str) -> Columns:
        """Ask for no rows, which checks rights and reads none."""
        asked = self._connection.execute(f"SELECT * FROM {records} LIMIT 0".encode())
        found = [(column.name, column.type_code) for column in asked.description or ()]
        types = self._connection.execute(
            "SELECT oid::int8, typname::text, typtype = 'e' FROM pg_catalog.pg_type "
            "WHERE oid = ANY (%s::oid[])",
            [[code for _, code in found]],
        ).fetchall()
        known = {code: (name, is_enum) for code, name, is_enum in types}
        return [(name, *_kind(*known.get(code, ("unknown", False)))) for name, code in found]

    def count(self, records: str) -> int:
        """Count the rows."""
        [(number,)] = self._connection.execute(
            f"SELECT count(*) FROM {records}".encode()
        ).fetchall()
        return int(number)

    def blocks(
        self, records: str, columns: Columns, fields: Sequence[Field]
    ) -> Iterator[NDArray[np.float64]]:
        """Copy lines, some at a time."""
        kinds = [field.kind for field in fields]
        wanted = [
            _expression(name, dtype, kind)
            for (name, _, dtype), kind in zip(columns, kinds, strict=True)
        ]
        # a column before all others: no line is blank, and none begins with a byte-order mark
        statement = f"COPY (SELECT {', '.join(['0', *wanted])} FROM {records}) TO STDOUT"
        for lines in self._lines(statement):
            table = _parse(lines, 1 + len(fields))
            block = np.empty((table.num_rows, len(fields)))
            for place, ((_, _, dtype), kind) in enumerate(zip(columns, kinds, strict=True)):
                cells = _unescaped(table.column(place + 1).combine_chunks())
                block[:, place] = _codes(cells, dtype, kind)
            yield block

    def _lines(self, statement: str) -> Iterator[bytes]:
        """Whole lines, of about `_BLOCK_BYTES` together."""
        waiting: list[bytes] = []
        size = 0
        with self._connection.cursor().copy(statement.encode()) as copied:
            for line in copied:
                waiting.append(bytes(line))
                size += len(line)
                if size >= _BLOCK_BYTES:
                    yield b"".join(waiting)
                    waiting = []
                    size = 0
        if waiting:
            yield b"".join(waiting)

    def refusal(self, error: Exception) -> str:
        """What PostgreSQL says of names, rights and syntax (class 42 of its errors)."""
        state = getattr(error, "sqlstate", None) or ""
        message = getattr(getattr(error, "diag", None), "message_primary", None)
        if state == "42501":
            return f"{message}. Ask its owner for the right to read it: GRANT SELECT ON … TO …"
        if state.startswith("42"):
            return f"{message}. Check the table (schema.table), or the query."
        if self.lost:
            return "the connection was lost. Try again when it is up."
        return "the table or the query cannot be used. Run it by itself to see why."

    @property
    def lost(self) -> bool:
        """Whether the connection is closed or broken."""
        return bool(self._connection.closed)

    def close(self) -> None:
        """Close the connection, which ends the transaction."""
        self._connection.close()


def _kind(dtype: str, is_enum: bool) -> tuple[DtypeKind, str]:
    if is_enum:
        return "category", dtype
    return _KINDS.get(dtype, "other"), dtype


def _expression(name: str, dtype: str, kind: Kind | None) -> str:
    """A column as its text, which no cell keeps from being made."""
    quoted = quote_name(name)
    if dtype == "bool" and (reads_numbers(kind) or isinstance(kind, Identifier)):
        return f"{quoted}::int4"
    if dtype == "float4":
        return f"{quoted}::float8"  # the same number, with all its digits
    if dtype in ("date", "timestamp", "timestamptz"):
        return quoted
    return f"{quoted}::text"


def _codes(cells: pa.Array, dtype: str, kind: Kind | None) -> Column:
    """Codes of a column; numbers with a fraction identify somebody by their value, not its text."""
    number = _FRACTIONS.get(dtype)
    if number is None or not isinstance(kind, Identifier):
        return code_texts(cells, kind)
    values = [None if text is None else number(text) for text in cells.to_pylist()]
    return code_array(np.fromiter(values, dtype=object, count=len(values)), kind)


def _parse(lines: bytes, width: int) -> pa.Table:
    """Cut lines at tabs, without giving any cell a meaning."""
    names = [str(i) for i in range(width)]
    csv = pa.csv
    return csv.read_csv(
        pa.BufferReader(lines),
        read_options=csv.ReadOptions(
            column_names=names, use_threads=False, block_size=len(lines) + 2
        ),
        parse_options=csv.ParseOptions(delimiter="\t", quote_char=False, escape_char=False),
        convert_options=csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.large_string()), check_utf8=False, null_values=[]
        ),
    )


def _unescaped(cells: pa.Array) -> pa.Array:
    r"""Cells as they are in the database; \N is none."""
    cells = pc.if_else(pc.equal(cells, r"\N"), None, cells)
    escaped = pc.match_substring(cells, "\\")
    if not pc.any(escaped).as_py():
        return cells
    texts = [
        None if cell is None else _ESCAPED.sub(_letter, cell)
        for cell in cells.cast(pa.large_binary()).to_pylist()
    ]
    return pa.array(texts, pa.large_binary()).cast(pa.large_string(), safe=False)


def _letter(match: re.Match[bytes]) -> bytes:
    return _ESCAPES.get(match[1], match[1])
