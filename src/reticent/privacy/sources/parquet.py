"""Parquet files, streamed in bounded memory.

Proof: reading.md, 6.
"""

import os
import time
from collections.abc import Hashable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import ArrayLike, NDArray

from reticent.errors import BadInput
from reticent.privacy.sources.arrow.columns import arrow_kind, batch_codes
from reticent.privacy.sources.base import DtypeKind, Field, check_features
from reticent.privacy.sources.files import File, FileSource, RemoteFile, open_file, readable

__all__ = ["SETTLED", "ParquetSource", "write_parquet"]

_BLOCK_ROWS = 2**16
_TEXT_BLOCK_ROWS = 2**12  # where there are texts, each of which may be long
_BLOCK_BYTES = 2**24  # short texts are joined to blocks of that size
SETTLED = 2 * 10**9  # nanoseconds: no file system's clock is coarser
_ARROW_KEY = b"ARROW:schema"  # where a Parquet file keeps arrow's dtypes


@final
class ParquetSource(FileSource):
    """Parquet files, read a batch of a few columns at a time."""

    def __init__(self, paths: Sequence[File]) -> None:
        super().__init__(paths)
        self.known_n = sum(self._rows(path) for path in paths)
        check_features(self.width, self.known_n)

    def count(self) -> int:
        """Return the number of records from the files' metadata."""
        return self.known_n or 0

    def blocks(self, fields: Sequence[Field]) -> Iterator[NDArray[np.float64]]:
        """Yield the records file by file."""
        wanted = [self._kinds[self.position(field.key)][0] for field in fields]
        size = _BLOCK_ROWS
        if any(self.kind(self.position(field.key))[0] != "number" for field in fields):
            size = _TEXT_BLOCK_ROWS
        for path in self.paths:
            self._check_unchanged(path)
            with readable(path), _open_parquet(path, _plain_metadata(path)) as file:
                read = file.iter_batches(size, columns=sorted(set(wanted)), use_threads=False)
                batches = _joined(read)
                while (batch := next(batches, None)) is not None:
                    yield batch_codes(batch, wanted, fields)

    def version(self) -> Hashable | None:
        """Return what a file system says of files when they are written, and of those in place.

        None of files that were written a moment ago: its clock could still say the same of what
        somebody writes to them next.
        """
        found: list[tuple[int, ...]] = []
        for path in self.paths:
            if not isinstance(path, Path):
                return None
            with readable(path):
                file = path.stat()
            if time.time_ns() - max(file.st_mtime_ns, file.st_ctime_ns) < SETTLED:
                return None
            found.append(
                (file.st_dev, file.st_ino, file.st_size, file.st_mtime_ns, file.st_ctime_ns)
            )
        return tuple(found)

    def _rows(self, path: File) -> int:
        with readable(path), _open_parquet(path) as file:
            return int(file.metadata.num_rows)

    def _look(self, path: File) -> list[tuple[str, DtypeKind, str]]:
        with readable(path), _open_parquet(path) as file:
            schema = file.schema_arrow
        if len(set(schema.names)) < len(schema.names):
            raise BadInput(
                f"The column names of {path} are not unique. Give each column a name of its own."
            )
        if _ARROW_KEY.decode() in schema.names:
            raise BadInput(
                f"A column of {path} is named {_ARROW_KEY.decode()}, as arrow's own notes are. "
                "Rename it."
            )
        return [(field.name, arrow_kind(field.type), str(field.type)) for field in schema]


def _open_parquet(path: File, metadata: pq.FileMetaData | None = None) -> pq.ParquetFile:
    # A buffered stream reads page by page; otherwise a large row group would be held in memory as a
    # whole.
    place: Any = path
    if isinstance(path, RemoteFile):
        place = open_file(path)
    return pq.ParquetFile(
        place, metadata=metadata, pre_buffer=False, buffer_size=2**20, memory_map=False
    )


def _plain_metadata(path: File) -> pq.FileMetaData:
    """Return the metadata of a Parquet file without arrow's dtypes: text columns are plain text.

    A dictionary is built with 32-bit offsets, over a whole row group: the length of one label could
    be one too many. Plain text arrives in as many pieces as it takes. (The key is overwritten by
    one of the same length, which means nothing to arrow; whether a column can be used at all was
    decided with the dtypes.)
    """
    with open_file(path) as file:
        file.seek(-8, os.SEEK_END)
        end = file.read(8)  # the length of the metadata, and "PAR1"
        length = int.from_bytes(end[:4], "little")
        file.seek(-8 - length, os.SEEK_END)
        notes = file.read(length)
    return pq.read_metadata(
        pa.BufferReader(end[4:] + notes.replace(_ARROW_KEY, _ARROW_KEY.lower()) + end)
    )


def _joined(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Batches one behind the other, a few short ones at a time: there is a cost for each."""
    waiting: list[pa.RecordBatch] = []
    rows = 0
    size = 0
    for batch in batches:
        rows += batch.num_rows
        size += batch.nbytes
        if rows > _BLOCK_ROWS or size > _BLOCK_BYTES:
            yield from _as_one(waiting)
            waiting = []
            rows = batch.num_rows
            size = batch.nbytes
        waiting.append(batch)
    yield from _as_one(waiting)


def _as_one(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """One batch; none of none."""
    if not batches:
        return []
    return list(pa.Table.from_batches(batches).combine_chunks().to_batches())


def write_parquet(file: Path | BinaryIO, columns: dict[str, ArrayLike]) -> None:
    """Write columns of numbers that need no protection to a Parquet file."""
    pq.write_table(pa.table(columns), file)
