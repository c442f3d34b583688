"""Records on a cluster: a Spark data frame, summed where its partitions are.

Partitions come as Arrow batches (`mapInArrow`), and are read like those of a Parquet file. Each has
one sum, which goes to one of a few tasks that add sums up, and from there to the driver: how much
arrives there does not depend on the number of partitions. A task that is run again, because an
executor was lost or slow, gives one result to Spark; a partition that came twice would be refused.

A Spark frame is a program of its owner that makes the records, anew for each reading.
Proof: reading.md, 7. Nothing here imports Spark but what runs on its workers.
"""

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reticent.errors import BadInput, ReleaseRefused
from reticent.privacy.people.person_counts import PersonCounts
from reticent.privacy.sources.arrow.columns import batch_codes
from reticent.privacy.sources.arrow.streams import pieces
from reticent.privacy.sources.base import BlockSum, DtypeKind, Field, check_features
from reticent.privacy.sources.clusters.partitions import (
    ClusterSource,
    PartitionTotal,
    add_partition,
    computed,
)

__all__ = ["SparkSource"]

Batches: TypeAlias = Iterable[pa.RecordBatch]
# What runs on workers: from the batches of a partition to those of its results.
Mapped: TypeAlias = Callable[[Batches], Iterator[pa.RecordBatch]]

_MERGERS = 16  # tasks that add up the sums of partitions
_TABLE_ROWS = 2**16  # of people, in a batch
_TYPES: dict[str, DtypeKind] = {
    **dict.fromkeys(("byte", "short", "integer", "long"), "number"),
    **dict.fromkeys(("float", "double", "decimal", "boolean"), "number"),
    **dict.fromkeys(("string", "char", "varchar"), "text"),
    **dict.fromkeys(("date", "timestamp", "timestamp_ntz"), "moment"),
}


@final
class SparkSource(ClusterSource):
    """A Spark data frame, computed by its own session."""

    engine = "Spark"

    def __init__(self, frame: Any) -> None:
        super().__init__()
        # of the type: a column of Spark has whatever attribute one asks for
        if hasattr(type(frame), "to_spark"):
            raise BadInput(
                "A frame of pandas on Spark orders its rows by an index. Give frame.to_spark()."
            )
        if not hasattr(type(frame), "mapInArrow"):
            raise BadInput(
                f"A {type(frame).__name__} of Spark cannot be read. Give a Spark data frame."
            )
        if frame.isStreaming:
            raise BadInput(
                "A streaming frame has no end, and a fit reads the records several times. Write "
                "it to a table, and give a frame of that."
            )
        fields = tuple(frame.schema.fields)
        self.names = tuple(field.name for field in fields)
        self.width = len(fields)
        check_features(self.width, "?")
        if len(set(self.names)) < self.width:
            raise BadInput("The column names are not unique. Give each column a name of its own.")
        self._types = [field.dataType for field in fields]
        # by position: names may differ in case alone, which Spark takes for one name, or have dots
        self._frame = frame.toDF(*(f"c{i}" for i in range(self.width)))

    def kind(self, position: int) -> tuple[DtypeKind, str]:
        """Return what the frame's schema says of a column."""
        kind = self._types[position]
        return _TYPES.get(kind.typeName(), "other"), kind.simpleString()

    def count(self) -> int:
        """Count the records on the cluster."""
        return int(computed(self.engine, self._frame.count))

    def count_people(self, fields: Sequence[Field], key: int) -> PersonCounts:
        """Count the records of each person where the partitions lie, then over all of them.

        Spark groups what the partitions have counted; each person comes here once.
        """
        frame, columns = self._project(fields)
        counting = _counting(columns, fields, key)
        counted = frame.mapInArrow(counting, "word long, second long, records long")
        table = counted.groupBy("word", "second").sum("records")
        packed = table.toDF("word", "second", "records").mapInArrow(_pack, "rows binary")
        people = PersonCounts(key)
        for (rows,) in self._rows(packed):
            people.add_table(np.frombuffer(rows, np.int64).reshape(-1, 3))
        return people

    def _add_partitions(
        self, fields: Sequence[Field], block_sum: BlockSum, rows: int
    ) -> PartitionTotal:
        frame, columns = self._project(fields)
        summing = _summing(columns, fields, block_sum, rows)
        sums = frame.mapInArrow(summing, "partition int, total binary")
        merged = sums.repartition(_MERGERS, "partition").mapInArrow(_merge, "total binary")
        total = PartitionTotal()
        for (packed,) in computed(self.engine, merged.collect):
            total.merge(pickle.loads(packed))
        return total

    def _bring_blocks(self, fields: Sequence[Field]) -> Iterator[NDArray[np.float64]]:
        frame, columns = self._project(fields)
        packed = frame.mapInArrow(_coding(columns, fields), "records long, block binary")
        for records, block in self._rows(packed):
            yield np.frombuffer(block).reshape(records, len(fields))

    def _rows(self, frame: Any) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a frame here, a partition at a time."""
        rows = computed(self.engine, frame.toLocalIterator)
        while (row := computed(self.engine, lambda: next(rows, None))) is not None:
            yield row

    def _project(self, fields: Sequence[Field]) -> tuple[Any, tuple[str, ...]]:
        """Return the frame with the wanted columns alone, and the column of each field."""
        columns = tuple(f"c{self.position(field.key)}" for field in fields)
        return self._frame.select(*(sorted(set(columns)) or ["c0"])), columns


# ---- on the workers. Functions within functions travel by value, with what they were made for.


def _blocks(
    batches: Batches, columns: Sequence[str], fields: Sequence[Field]
) -> Iterator[NDArray[np.float64]]:
    for batch in batches:
        for piece in pieces(batch):
            yield batch_codes(piece, columns, fields)


def _summing(
    columns: Sequence[str], fields: Sequence[Field], block_sum: BlockSum, rows: int
) -> Mapped:
    """Give the sum over a partition, and which one it is."""

    def add_up(batches: Batches) -> Iterator[pa.RecordBatch]:
        from pyspark.taskcontext import TaskContext

        context = TaskContext.get()
        assert context is not None
        total = add_partition(_blocks(batches, columns, fields), block_sum, rows=rows)
        partition = pa.array([context.partitionId()], pa.int32())
        yield _batch(partition=partition, total=pa.array([pickle.dumps(total)]))

    return add_up


def _merge(batches: Batches) -> Iterator[pa.RecordBatch]:
    """Add up the sums of partitions. All that a partition gave is in one of these tasks."""
    merged = PartitionTotal()
    seen: set[int] = set()
    for batch in batches:
        for partition, packed in zip(*(column.to_pylist() for column in batch), strict=True):
            if partition in seen:
                raise ReleaseRefused("Spark delivered a partition twice.")
            seen.add(partition)
            merged.merge(pickle.loads(packed))
    yield _batch(total=pa.array([pickle.dumps(merged)]))


def _counting(columns: Sequence[str], fields: Sequence[Field], key: int) -> Mapped:
    """Give the identifiers of a partition, as they are looked up, and how many records each has."""

    def count(batches: Batches) -> Iterator[pa.RecordBatch]:
        people = PersonCounts(key)
        for block in _blocks(batches, columns, fields):
            people.add(block)
        table = people.table()
        for start in range(0, len(table), _TABLE_ROWS):
            words, seconds, records = table[start : start + _TABLE_ROWS].T
            yield _batch(word=pa.array(words), second=pa.array(seconds), records=pa.array(records))

    return count


def _pack(batches: Batches) -> Iterator[pa.RecordBatch]:
    """Give a batch of whole numbers as one cell."""
    for batch in batches:
        rows = np.column_stack([column.to_numpy(zero_copy_only=False) for column in batch])
        yield _batch(rows=pa.array([rows.astype(np.int64).tobytes()]))


def _coding(columns: Sequence[str], fields: Sequence[Field]) -> Mapped:
    """Give the codes of a batch as one cell."""

    def code(batches: Batches) -> Iterator[pa.RecordBatch]:
        for block in _blocks(batches, columns, fields):
            yield _batch(records=pa.array([len(block)]), block=pa.array([block.tobytes()]))

    return code


def _batch(**columns: pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
