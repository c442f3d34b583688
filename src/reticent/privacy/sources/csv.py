"""CSV files with a header line, streamed in bounded memory.

A record is a line that is not blank (csv_lines.py). Plain lines are cut into fields by arrow, odd
ones by themselves. Proof: reading.md, 5.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
from numpy.typing import NDArray

from reticent.privacy.sources.base import Field, Kind
from reticent.privacy.sources.cell_values import (
    Column,
    LabelTable,
    text_label,
    text_number,
)
from reticent.privacy.sources.csv_lines import count_lines, cut, read_header, sort_out, split
from reticent.privacy.sources.files import FileSource, readable

__all__ = ["CsvSource"]

_BLOCK_BYTES = 2**22
# Numbers that every version of arrow reads as Python does: never out of range, no spaces, no plus
# sign.
_PLAIN_NUMBER = r"^-?[0-9]{1,20}(\.[0-9]{0,40})?([eE][+-]?[0-9]{1,2})?$"


@final
class CsvSource(FileSource):
    """CSV files with a header line; a record is a line that is not blank."""

    def __init__(
        self, paths: Sequence[Path], *, delimiter: bytes = b",", block_bytes: int = _BLOCK_BYTES
    ) -> None:
        self._delimiter = delimiter
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
        tables = [field.label_table() for field in fields]
        for path in self.paths:
            for block in self._read(path):
                plain, odd = sort_out(block, self._delimiter)
                rows = np.empty((0, len(columns)))
                if plain:
                    rows = self._plain_rows(plain, columns, tables)
                if odd:
                    rows = self._with_odd_rows(rows, odd, columns, tables)
                if len(rows):
                    yield rows

    def _with_odd_rows(
        self,
        plain_rows: NDArray[np.float64],
        odd: dict[int, bytes],
        columns: Sequence[int],
        tables: Sequence[LabelTable | None],
    ) -> NDArray[np.float64]:
        """Return the records of plain and odd lines, in the order of all lines."""
        is_odd = np.zeros(len(plain_rows) + len(odd), dtype=bool)
        is_odd[list(odd)] = True
        rows = np.empty((len(is_odd), len(columns)))
        rows[is_odd] = self._odd_rows(list(odd.values()), columns, tables)
        rows[~is_odd] = plain_rows
        return rows

    def _look(self, path: Path) -> list[tuple[str, Kind, str]]:
        with readable(path), path.open("rb") as file:
            return [(name, "any", "text") for name in read_header(file, path, self._delimiter)]

    def _beyond_header(self, path: Path) -> bool:
        """Whether the file is longer than its header.

        That much can be told without reading a record.
        """
        with readable(path), path.open("rb") as file:
            read_header(file, path, self._delimiter)
            return file.tell() < path.stat().st_size

    def _read(self, path: Path) -> Iterator[bytes]:
        self._check_unchanged(path)
        with readable(path), path.open("rb") as file:
            read_header(file, path, self._delimiter)
            yield from cut(file, self._block_bytes)

    def _plain_rows(
        self, plain: bytes, columns: Sequence[int], tables: Sequence[LabelTable | None]
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
            rows[~whole] = [_missing(table) for table in tables]
        for place, (column, table) in enumerate(zip(columns, tables, strict=True)):
            cells = parsed.column(str(column)).combine_chunks()
            if table is None:
                rows[whole, place] = _text_numbers(cells)
            else:
                rows[whole, place] = _text_labels(cells, table)
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
        self, lines: Sequence[bytes], columns: Sequence[int], tables: Sequence[LabelTable | None]
    ) -> NDArray[np.float64]:
        rows = np.empty((len(lines), len(columns)))
        rows[:] = [_missing(table) for table in tables]
        for row, line in zip(rows, lines, strict=True):
            cells = split(line, self._delimiter)
            if cells is not None and len(cells) == self.width:
                for place, (column, table) in enumerate(zip(columns, tables, strict=True)):
                    text = cells[column]
                    if table is None:
                        row[place] = text_number(text)
                    else:
                        row[place] = text_label(text, table)
        return rows


def _missing(table: LabelTable | None) -> float:
    if table is None:
        return np.nan
    return 0.0


def _text_numbers(cells: pa.Array) -> Column:
    """Return `text_number` of each cell: most in bulk, which is the same, others one by one."""
    plain = pc.match_substring_regex(cells, _PLAIN_NUMBER)
    result: Column = (
        pc.if_else(plain, cells, None).cast(pa.float64()).to_numpy(zero_copy_only=False)
    )
    others = ~plain.to_numpy(zero_copy_only=False)
    if others.any():
        result = result.copy()
        result[others] = _each(cells.filter(pa.array(others)), text_number)
    return result


def _text_labels(cells: pa.Array, table: LabelTable) -> Column:
    return _each(cells, lambda text: text_label(text, table))


def _each(cells: pa.Array, function: Callable[[bytes], float]) -> Column:
    """Return ``function`` of the bytes of each cell, computed once per different cell."""
    encoded = cells.cast(pa.large_binary()).dictionary_encode()
    values = np.array([function(text) for text in encoded.dictionary.to_pylist()])
    result: Column = values[encoded.indices.to_numpy(zero_copy_only=False)]
    return result
