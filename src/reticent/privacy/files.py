"""Records in files: CSV and Parquet, one file or a folder of them, streamed in bounded memory. Proof: reading.md."""

import os
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from reticent.errors import BadInput
from reticent.privacy.cells import Column, label_table, labels, numbers, text_label, text_number
from reticent.privacy.lines import count_lines, cut, read_header, sort_out, split
from reticent.privacy.sources import Field, Kind, Source, check_features

__all__ = ["CsvSource", "ParquetSource", "scan_path", "write_parquet"]

_CSV = {".csv": b",", ".tsv": b"\t"}
_PARQUET = (".parquet", ".pq")
_CSV_BYTES = 2**22
_PARQUET_ROWS = 2**16
_PARQUET_TEXT_ROWS = 2**12  # where there are labels, each of which may be long
_ARROW_KEY = b"ARROW:schema"  # where a Parquet file keeps arrow's dtypes
# numbers that every version of arrow reads as Python does: never out of range, no spaces, no plus sign
_PLAIN_NUMBER = r"^-?[0-9]{1,20}(\.[0-9]{0,40})?([eE][+-]?[0-9]{1,2})?$"

_Table: TypeAlias = dict[object, int] | None


def scan_path(path: str | os.PathLike[str]) -> Source:
    """Give the source for a file, or for a folder of files of one kind."""
    path = Path(path)
    known = (*_CSV, *_PARQUET)
    with _readable(path):
        if not path.is_dir():
            paths = [path]
            path.stat()
        else:
            inside = (p for p in path.iterdir() if not p.name.startswith(".") and p.suffix.lower() in known)
            paths = sorted(p for p in inside if p.is_file())
            if not paths:
                raise BadInput(f"There is no CSV or Parquet file in the folder {path}.")
    suffixes = {p.suffix.lower() for p in paths}
    if suffixes <= set(_PARQUET):
        return ParquetSource(paths)
    if len(suffixes) == 1 and suffixes <= set(_CSV):
        return CsvSource(paths, delimiter=_CSV[suffixes.pop()])
    if path.is_dir():
        raise BadInput(f"The folder {path} mixes files of several kinds. Keep {', '.join(known)} files apart.")
    raise BadInput(f"{path} is not named like a file that can be read. Known endings: {', '.join(known)}.")


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Tell of a file that is missing or damaged, without the words of a library, which may quote a record."""
    try:
        yield
    except FileNotFoundError:
        raise BadInput(f"There is no file {path}.") from None
    except PermissionError:
        raise BadInput(f"{path} may not be read: permission denied.") from None
    except (OSError, pa.ArrowException):
        raise BadInput(f"{path} cannot be read: it is truncated, damaged, or of another format.") from None


class _Files(Source):
    """Abstract: files with the same columns; ``_kinds`` are the name, kind and dtype of each."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self.paths = tuple(paths)
        columns = [self._look(path) for path in paths]
        self._kinds = columns[0]
        for path, found in zip(paths, columns, strict=True):
            if [one[:2] for one in found] != [one[:2] for one in self._kinds]:
                raise BadInput(
                    f"{path} does not have the columns of {paths[0]}. All files of a folder need the same "
                    "columns, in the same order, numbers where the others have numbers."
                )
        self.names = tuple(name for name, _, _ in self._kinds)
        self.width = len(self.names)

    def kind(self, position: int) -> tuple[Kind, str]:
        """Give what the schema of the first file says; the others agree."""
        return self._kinds[position][1:]

    def _check_unchanged(self, path: Path) -> None:
        """Refuse a file whose columns are others than when it was scanned: that is about the file, not a record."""
        if [one[:2] for one in self._look(path)] != [one[:2] for one in self._kinds]:
            raise BadInput(f"The columns of {path} have changed since it was scanned. Scan it again.")

    @abstractmethod
    def _look(self, path: Path) -> list[tuple[str, Kind, str]]:
        """Give name, kind and dtype of each column."""


@final
class ParquetSource(_Files):
    """Parquet files, read a batch of a few columns at a time."""

    def __init__(self, paths: Sequence[Path]) -> None:
        super().__init__(paths)
        self.known_n = sum(self._rows(path) for path in paths)
        check_features(self.width, self.known_n)

    def count(self) -> int:
        """Give the number of records from the files' metadata."""
        return self.known_n or 0

    def blocks(self, fields: Sequence[Field]) -> Iterator[NDArray[np.float64]]:
        """Give the records file by file."""
        wanted = [self._kinds[self.position(field.key)][0] for field in fields]
        tables = [None if field.classes is None else label_table(field.classes) for field in fields]
        size = _PARQUET_ROWS if tables.count(None) == len(tables) else _PARQUET_TEXT_ROWS
        for path in self.paths:
            self._check_unchanged(path)
            with _readable(path), _open_parquet(path, _plain_metadata(path)) as file:
                batches = file.iter_batches(size, columns=sorted(set(wanted)), use_threads=False)
                while (batch := next(batches, None)) is not None:
                    block = np.empty((batch.num_rows, len(fields)))
                    for place, (name, table) in enumerate(zip(wanted, tables, strict=True)):
                        block[:, place] = _arrow_column(batch.column(name), table)
                    yield block

    def _rows(self, path: Path) -> int:
        with _readable(path), _open_parquet(path) as file:
            return int(file.metadata.num_rows)

    def _look(self, path: Path) -> list[tuple[str, Kind, str]]:
        with _readable(path), _open_parquet(path) as file:
            schema = file.schema_arrow
        if len(set(schema.names)) < len(schema.names):
            raise BadInput(f"The column names of {path} are not unique. Give each column a name of its own.")
        if _ARROW_KEY.decode() in schema.names:
            raise BadInput(f"A column of {path} is named {_ARROW_KEY.decode()}, as arrow's own notes are. Rename it.")
        return [(field.name, _arrow_kind(field.type), str(field.type)) for field in schema]


def _open_parquet(path: Path, metadata: Any = None) -> Any:
    # a buffered stream reads page by page; otherwise a large row group would be held in memory as a whole
    return pq.ParquetFile(path, metadata=metadata, pre_buffer=False, buffer_size=2**20, memory_map=False)


def _plain_metadata(path: Path) -> Any:
    """Give the metadata of a Parquet file without arrow's dtypes, so that every text column is read as plain text.

    A dictionary is built with 32-bit offsets, over a whole row group: the length of one label could be one too many.
    Plain text arrives in as many pieces as it takes. (The key is overwritten by one of the same length, which means
    nothing to arrow; whether a column can be used at all was decided with the dtypes.)
    """
    with path.open("rb") as file:
        file.seek(-8, os.SEEK_END)
        end = file.read(8)  # the length of the metadata, and "PAR1"
        length = int.from_bytes(end[:4], "little")
        file.seek(-8 - length, os.SEEK_END)
        notes = file.read(length)
    return pq.read_metadata(pa.BufferReader(end[4:] + notes.replace(_ARROW_KEY, _ARROW_KEY.lower()) + end))


def _is_text(kind: Any) -> bool:
    return any(is_kind(kind) for is_kind in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view))


def _arrow_kind(kind: Any) -> Kind:
    t = pa.types
    if t.is_integer(kind) or t.is_floating(kind) or t.is_decimal(kind) or t.is_boolean(kind):
        return "number"
    if t.is_dictionary(kind):
        return "category"
    return "text" if _is_text(kind) else "other"


def _arrow_column(cells: Any, table: _Table) -> Column:
    if table is None:
        return numbers(cells.to_numpy(zero_copy_only=False))
    if _is_text(cells.type):
        return _text_positions(cells, table)
    return labels(cells.to_pylist(), table)


def _text_positions(cells: Any, table: dict[object, int]) -> Column:
    """Give the position of the class that each text equals, byte by byte, else 0; also for text that is not UTF-8."""
    known = [label for label in table if isinstance(label, bytes)]
    found = pc.index_in(cells.cast(pa.large_binary()), value_set=pa.array(known, pa.large_binary()))
    positions = np.array([float(table[label]) for label in known] + [0.0])
    result: Column = positions[found.fill_null(len(known)).to_numpy(zero_copy_only=False)]
    return result


def _each(cells: Any, function: Callable[[bytes], float]) -> Column:
    """Give ``function`` of the bytes of each cell of a CSV block, computed once per different cell."""
    encoded = cells.cast(pa.large_binary()).dictionary_encode()
    values = np.array([function(text) for text in encoded.dictionary.to_pylist()])
    result: Column = values[encoded.indices.to_numpy(zero_copy_only=False)]
    return result


@final
class CsvSource(_Files):
    """CSV files with a header line; a record is a line that is not blank."""

    def __init__(self, paths: Sequence[Path], *, delimiter: bytes = b",", block_bytes: int = _CSV_BYTES) -> None:
        self._delimiter, self._block_bytes = delimiter, block_bytes
        super().__init__(paths)
        if not any(self._beyond_header(path) for path in paths):
            self.known_n = 0

    def count(self) -> int:
        """Count the lines that are not blank."""
        return sum(count_lines(block, self._delimiter) for path in self.paths for block in self._read(path))

    def blocks(self, fields: Sequence[Field]) -> Iterator[NDArray[np.float64]]:
        """Give the records in the order of their lines."""
        columns = [self.position(field.key) for field in fields]
        tables = [None if field.classes is None else label_table(field.classes) for field in fields]
        for path in self.paths:
            for block in self._read(path):
                plain, odd = sort_out(block, self._delimiter)
                rows = self._plain_rows(plain, columns, tables) if plain else np.empty((0, len(columns)))
                if odd:
                    others, place = rows, np.zeros(len(rows) + len(odd), dtype=bool)
                    place[list(odd)] = True
                    rows = np.empty((len(place), len(columns)))
                    rows[place], rows[~place] = self._odd_rows(list(odd.values()), columns, tables), others
                if len(rows):
                    yield rows

    def _look(self, path: Path) -> list[tuple[str, Kind, str]]:
        with _readable(path), path.open("rb") as file:
            return [(name, "any", "text") for name in read_header(file, path, self._delimiter)]

    def _beyond_header(self, path: Path) -> bool:
        """Whether the file is longer than its header: that much can be told without reading a record."""
        with _readable(path), path.open("rb") as file:
            read_header(file, path, self._delimiter)
            return file.tell() < path.stat().st_size

    def _read(self, path: Path) -> Iterator[bytes]:
        self._check_unchanged(path)
        with _readable(path), path.open("rb") as file:
            read_header(file, path, self._delimiter)
            yield from cut(file, self._block_bytes)

    def _plain_rows(self, plain: bytes, columns: Sequence[int], tables: Sequence[_Table]) -> NDArray[np.float64]:
        whole: Any = slice(None)
        try:
            parsed = self._parse(plain, columns)
            rows = np.empty((parsed.num_rows, len(columns)))
        except pa.ArrowInvalid:  # some lines have too many fields, or too few
            lines = plain.splitlines(keepends=True)
            whole = np.array([line.count(self._delimiter) == self.width - 1 for line in lines])
            parsed = self._parse(b"".join(line for line, fits in zip(lines, whole, strict=True) if fits), columns)
            rows = np.empty((len(lines), len(columns)))
            rows[~whole] = [_missing(table) for table in tables]
        for place, (column, table) in enumerate(zip(columns, tables, strict=True)):
            cells = parsed.column(str(column)).combine_chunks()
            rows[whole, place] = _text_numbers(cells) if table is None else _text_labels(cells, table)
        return rows

    def _parse(self, plain: bytes, columns: Sequence[int]) -> Any:
        """Cut plain lines into fields, without giving any of them a meaning."""
        names = [str(i) for i in range(self.width)]
        csv = pa.csv
        return csv.read_csv(
            pa.BufferReader(b"\n" + plain),  # arrow would skip a byte-order mark at the start, even in a later block
            read_options=csv.ReadOptions(column_names=names, use_threads=False, block_size=len(plain) + 2),
            parse_options=csv.ParseOptions(delimiter=self._delimiter.decode(), quote_char=False, escape_char=False),
            convert_options=csv.ConvertOptions(
                include_columns=[names[i] for i in sorted(set(columns))],
                column_types=dict.fromkeys(names, pa.string()),
                check_utf8=False,
                null_values=[],
            ),
        )

    def _odd_rows(
        self, lines: Sequence[bytes], columns: Sequence[int], tables: Sequence[_Table]
    ) -> NDArray[np.float64]:
        rows = np.empty((len(lines), len(columns)))
        rows[:] = [_missing(table) for table in tables]
        for row, line in zip(rows, lines, strict=True):
            cells = split(line, self._delimiter)
            if cells is not None and len(cells) == self.width:
                for place, (column, table) in enumerate(zip(columns, tables, strict=True)):
                    text = cells[column]
                    row[place] = text_number(text) if table is None else text_label(text, table)
        return rows


def _missing(table: _Table) -> float:
    return np.nan if table is None else 0.0


def _text_numbers(cells: Any) -> Column:
    """Give `text_number` of each cell: most in bulk, which reads them alike, the others one by one."""
    plain = pc.match_substring_regex(cells, _PLAIN_NUMBER)
    result: Column = pc.if_else(plain, cells, None).cast(pa.float64()).to_numpy(zero_copy_only=False)
    others = ~plain.to_numpy(zero_copy_only=False)
    if others.any():
        result = result.copy()
        result[others] = _each(cells.filter(pa.array(others)), text_number)
    return result


def _text_labels(cells: Any, table: dict[object, int]) -> Column:
    return _each(cells, lambda text: text_label(text, table))


def write_parquet(file: Path | BinaryIO, columns: dict[str, Any]) -> None:
    """Write columns of numbers that need no protection to a Parquet file."""
    pq.write_table(pa.table(columns), file)
