"""Streams of Arrow batches: lazy frames, relations, expressions, data sets, and what exports one.

They are streamed, never collected, and run again for each reading of a fit. What makes the records
is a program of their owner, as a dask frame is. From there on a batch is read like one of a Parquet
file, whatever types it turned out to have (the columns were checked by those that were promised).
Proof: reading.md, 7.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from copy import copy
from typing import Any, TypeAlias, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reticent.errors import BadInput
from reticent.privacy.sources.arrow.columns import arrow_kind, batch_codes
from reticent.privacy.sources.arrow.rereading import Readings
from reticent.privacy.sources.base import DtypeKind, Field, Source, check_features
from reticent.privacy.sources.in_memory import LazyFrame, lazy_columns, lazy_frame

__all__ = ["StreamSource", "pieces", "stream_of"]

BATCH_ROWS = 2**16
Columns: TypeAlias = list[tuple[str, DtypeKind, str]]  # name, kind and dtype of each

_READ_ONCE = ("RecordBatchReader", "ArrayStream", "ArrayReader", "Cursor", "PyCapsule")


class Stream(ABC):
    """Abstract: what gives batches, as often as it is asked."""

    columns: Columns

    @abstractmethod
    def batches(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield batches that have these columns, and maybe others."""


def stream_of(data: Any) -> Stream | None:
    """Return the stream of what is not held in memory, or None if it is, or has none.

    By what it is: its methods and the name of its class. One that can be read only once is refused.
    """
    lazy = lazy_frame(data)
    if lazy is not None:
        return _Lazy(lazy)
    if hasattr(data, "scanner") and hasattr(data, "schema"):
        return _DataSet(data)
    if type(data).__name__ in _READ_ONCE or hasattr(data, "fetch_record_batch"):
        raise _read_once(data)
    if hasattr(data, _STREAM):
        return _Capsule(data)
    return None


def _read_once(data: object) -> BadInput:
    return BadInput(
        f"A {type(data).__name__} can be read once, and a fit reads the records several times. "
        "Give what it came from (a relation, a data set, the address of the database), what it "
        "holds (reader.read_all()) if that fits in memory, or write it to a Parquet file."
    )


@final
class StreamSource(Source):
    """Records that come as Arrow batches."""

    ordered = False
    prunes = True

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._columns = stream.columns
        self._names = tuple(name for name, _, _ in self._columns)
        self.names = self._names
        self.width = len(self.names)
        check_features(self.width, "?")
        if len(set(self.names)) < self.width:
            raise BadInput("The column names are not unique. Give each column a name of its own.")
        self._readings = Readings()

    def snapshot(self) -> "StreamSource":
        """Return the source for one fit, all readings of which are compared."""
        changed = copy(self)
        changed._readings = Readings()
        return changed

    def kind(self, position: int) -> tuple[DtypeKind, str]:
        """Return what was promised of a column."""
        return self._columns[position][1:]

    def count(self) -> int:
        """Count the records."""
        return sum(batch.num_rows for batch in self._batches(self._names[:1]))

    def blocks(self, fields: Sequence[Field]) -> Iterator[NDArray[np.float64]]:
        """Yield the records as they come."""
        return self._readings.watch(fields, self._blocks(fields))

    def _blocks(self, fields: Sequence[Field]) -> Iterator[NDArray[np.float64]]:
        wanted = [self._names[self.position(field.key)] for field in fields]
        for batch in self._batches(sorted(set(wanted)) or self._names[:1]):
            for piece in pieces(batch):
                yield batch_codes(piece, wanted, fields)

    def _batches(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        with _running():
            yield from self._stream.batches(names)


def pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Cut a long batch."""
    for start in range(0, batch.num_rows, BATCH_ROWS):
        yield batch.slice(start, BATCH_ROWS)


@contextmanager
def _running() -> Iterator[None]:
    """Refuse what cannot be run, without its own words and type: both may tell of a record."""
    failed = False
    try:
        yield
    except Exception:
        failed = True
    if failed:
        raise BadInput(
            "What makes the records could not be run to its end. Run it by itself to see why."
        )


@final
class _Lazy(Stream):
    """Lazy frame that narwhals knows: of polars, DuckDB, Ibis and others."""

    def __init__(self, frame: LazyFrame) -> None:
        self._frame = frame
        with _running():
            self.columns = lazy_columns(frame)
        native = frame.to_native()
        if not any(hasattr(native, name) for name in (*_READERS, "collect_batches", _STREAM)):
            raise BadInput(
                f"A lazy frame of type {type(native).__module__}.{type(native).__name__} cannot be "
                "streamed. Write it to a Parquet file and scan that (a polars LazyFrame can be "
                "streamed from polars 1.34 on)."
            )

    def batches(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Run the frame for these columns alone."""
        native = self._frame.select(list(names)).to_native()
        if hasattr(native, "collect_batches"):
            for part in native.collect_batches(chunk_size=BATCH_ROWS):
                yield from part.to_arrow().to_batches()
            return
        for name, keyword in _READERS.items():
            if hasattr(native, name):
                reader = getattr(native, name)(**{keyword: BATCH_ROWS})
                break
        else:
            reader = pa.RecordBatchReader.from_stream(native)
        with closing(reader):
            yield from reader


_STREAM = "__arrow_c_stream__"  # its batches may be long, and it may have run all of it before
# methods that give a reader of batches, and the parameter with their length
_READERS = {
    "to_pyarrow_batches": "chunk_size",  # Ibis
    "to_arrow_reader": "batch_size",  # DuckDB
    "fetch_arrow_reader": "batch_size",  # DuckDB before 1.4
}


@final
class _DataSet(Stream):
    """Data set of pyarrow: files in folders, with partitions."""

    def __init__(self, data: Any) -> None:
        self._data = data
        self.columns = _schema_columns(data.schema)

    def batches(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read the files."""
        reader = self._data.scanner(columns=list(names), batch_size=BATCH_ROWS).to_reader()
        with closing(reader):
            yield from reader


@final
class _Capsule(Stream):
    """Anything that exports Arrow's stream."""

    def __init__(self, data: Any) -> None:
        self._data = data
        with _running(), closing(pa.RecordBatchReader.from_stream(data)) as reader:
            self.columns = _schema_columns(reader.schema)
        with suppress(Exception), closing(pa.RecordBatchReader.from_stream(data)):
            return
        raise _read_once(data)

    def batches(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Export the stream again."""
        with closing(pa.RecordBatchReader.from_stream(self._data)) as reader:
            yield from reader


def _schema_columns(schema: pa.Schema) -> Columns:
    return [(field.name, arrow_kind(field.type), str(field.type)) for field in schema]
