"""CSV files with a header line, streamed in bounded memory.

A record is a line that is not blank (csv_lines.py). Plain lines are cut into fields by arrow, odd
ones by themselves. Proof: reading.md, 5.
"""

import math
from collections.abc import Iterator, Sequence
from typing import final

import numpy as np
import pyarrow as pa
import pyarrow.csv
from numpy.typing import NDArray

from reticent.privacy.columns.base import Kind
from reticent.privacy.sources.base import DtypeKind, Field
from reticent.privacy.sources.codes import TextColumns, code_text
from reticent.privacy.sources.csv_dialect import Dialect
from reticent.privacy.sources.csv_lines import count_lines, cut, read_header, sort_out, split
from reticent.privacy.sources.files import File, FileSource, open_text, readable

__all__ = ["CsvSource"]

_BLOCK_BYTES = 2**22


@final
class CsvSource(FileSource):
    """CSV files with a header line; a record is a line that is not blank."""

    def __init__(
        self,
        paths: Sequence[File],
        *,
        dialect: Dialect = Dialect(),  # noqa: B008 - frozen
        block_bytes: int = _BLOCK_BYTES,
    ) -> None:
        self.dialect = dialect
        self._delimiter = dialect.separator
        self._block_bytes = block_bytes
        super().__init__(paths)
        if not any(self._beyond_header(path) for path in paths):
            self.known_n = 0

    def count(self) -> int:
        """Count the lines that are not blank."""
        return sum(
            count_lines(block, self._delimiter) for path in self.paths for block in self._read(path)
        )

    def blocks(self, fields: Sequence[Field]) -> Iterator[NDArray[np.float64]]:
        """Yield the records in the order of their lines."""
        columns = [self.position(field.key) for field in fields]
        kinds = [field.kind for field in fields]
        for path in self.paths:
            for block in self._read(path):
                plain, odd = sort_out(block, self._delimiter)
                rows = np.empty((0, len(columns)))
                if plain:
                    rows = self._plain_rows(plain, columns, kinds)
                if odd:
                    rows = self._with_odd_rows(rows, odd, columns, kinds)
                if len(rows):
                    yield rows

    def _with_odd_rows(
        self,
        plain_rows: NDArray[np.float64],
        odd: dict[int, bytes],
        columns: Sequence[int],
        kinds: Sequence[Kind | None],
    ) -> NDArray[np.float64]:
        """Return the records of plain and odd lines, in the order of all lines."""
        is_odd = np.zeros(len(plain_rows) + len(odd), dtype=bool)
        is_odd[list(odd)] = True
        rows = np.empty((len(is_odd), len(columns)))
        rows[is_odd] = self._odd_rows(list(odd.values()), columns, kinds)
        rows[~is_odd] = plain_rows
        return rows

    def _look(self, path: File) -> list[tuple[str, DtypeKind, str]]:
        with readable(path), open_text(path) as file:
            return [(name, "any", "text") for name in read_header(file, path, self.dialect)]

    def _beyond_header(self, path: File) -> bool:
        """Whether the file is longer than its header.

        That much can be told without reading a record.
        """
        with readable(path), open_text(path) as file:
            read_header(file, path, self.dialect)
            return bool(file.read(1))

    def _read(self, path: File) -> Iterator[bytes]:
        self._check_unchanged(path)
        with readable(path), open_text(path) as file:
            read_header(file, path, self.dialect)
            yield from cut(file, self._block_bytes)

    def _plain_rows(
        self, plain: bytes, columns: Sequence[int], kinds: Sequence[Kind | None]
    ) -> NDArray[np.float64]:
        whole: slice | NDArray[np.bool_] = slice(None)
        try:
            parsed = self._parse(plain, columns)
            rows = np.empty((parsed.num_rows, len(columns)))
        except pa.ArrowInvalid:  # some lines have too many fields, or too few
            lines = plain.splitlines(keepends=True)
            whole = np.array([line.count(self._delimiter) == self.width - 1 for line in lines])
            fitting = [line for line, fits in zip(lines, whole, strict=True) if fits]
            parsed = self._parse(b"".join(fitting), columns)
            rows = np.empty((len(lines), len(columns)))
            rows[~whole] = [_missing(kind) for kind in kinds]
        texts = TextColumns(lambda name: parsed.column(name).combine_chunks(), self.dialect)
        for place, (column, kind) in enumerate(zip(columns, kinds, strict=True)):
            rows[whole, place] = texts.codes(str(column), kind)
        return rows

    def _parse(self, plain: bytes, columns: Sequence[int]) -> pa.Table:
        """Cut plain lines into fields, without giving any of them a meaning."""
        names = [str(i) for i in range(self.width)]
        csv = pa.csv
        return csv.read_csv(
            # After a line feed: arrow skips a byte-order mark at the start, even in a later block.
            pa.BufferReader(b"\n" + plain),
            read_options=csv.ReadOptions(
                column_names=names, use_threads=False, block_size=len(plain) + 2
            ),
            parse_options=csv.ParseOptions(
                delimiter=self._delimiter.decode(), quote_char=False, escape_char=False
            ),
            convert_options=csv.ConvertOptions(
                include_columns=[names[i] for i in sorted(set(columns))],
                column_types=dict.fromkeys(names, pa.string()),
                check_utf8=False,
                null_values=[],
            ),
        )

    def _odd_rows(
        self, lines: Sequence[bytes], columns: Sequence[int], kinds: Sequence[Kind | None]
    ) -> NDArray[np.float64]:
        rows = np.empty((len(lines), len(columns)))
        rows[:] = [_missing(kind) for kind in kinds]
        for row, line in zip(rows, lines, strict=True):
            cells = split(line, self._delimiter)
            if cells is not None and len(cells) == self.width:
                for place, (column, kind) in enumerate(zip(columns, kinds, strict=True)):
                    row[place] = code_text(cells[column], kind, self.dialect)
        return rows


def _missing(kind: Kind | None) -> float:
    """Code of a cell that a broken line does not have."""
    if kind is None:
        return math.nan
    return kind.missing_code
