"""Records on a cluster: a dask data frame, summed where its partitions are.

Each partition is one task that returns the partition's own total. The results are kept by partition
and added here, once each. A task that is run again, because its worker died, replaces its result:
none is added twice.

A dask frame is a program of its owner that makes the records. From there on a partition is read
like any frame, whatever dtypes it turned out to have (the columns were checked by those that the
frame promises). Proof: reading.md.
"""

from collections.abc import Iterator, Sequence
from typing import Any, final

import numpy as np
from dask.base import compute
from dask.delayed import delayed
from numpy.typing import NDArray

from reticent.errors import BadInput
from reticent.privacy.people.person_counts import PersonCounts
from reticent.privacy.sources.base import BlockSum, DtypeKind, Field
from reticent.privacy.sources.clusters.partitions import (
    ClusterSource,
    PartitionTotal,
    add_partition,
    computed,
)
from reticent.privacy.sources.in_memory import MemorySource

__all__ = ["DaskSource"]


@final
class DaskSource(ClusterSource):
    """A dask data frame.

    Computed by the active `distributed` client, else by dask's own scheduler.
    """

    engine = "dask"

    def __init__(self, frame: Any) -> None:
        super().__init__()
        if (
            not hasattr(frame, "npartitions")
            or getattr(frame, "ndim", 0) != 2
            or not hasattr(frame, "dtypes")
        ):
            raise BadInput(
                f"A dask {type(frame).__name__} cannot be read. Give a dask data frame with named "
                "columns."
            )
        self._frame = frame
        self._schema = MemorySource(frame._meta)  # an empty frame with the same columns
        self.names = self._schema.names
        self.width = self._schema.width

    def kind(self, position: int) -> tuple[DtypeKind, str]:
        """Return what the frame's metadata say of a column."""
        return self._schema.kind(position)

    def count(self) -> int:
        """Count the records on the cluster."""
        return sum(self._compute([delayed(len)(part) for part in self._frame.to_delayed()]))

    def _bring_blocks(self, fields: Sequence[Field]) -> Iterator[NDArray[np.float64]]:
        parts, here = self._project(fields)
        for part in parts:
            yield from MemorySource(self._compute([part])[0]).blocks(here)

    def _add_partitions(
        self, fields: Sequence[Field], block_sum: BlockSum, rows: int
    ) -> PartitionTotal:
        parts, here = self._project(fields)
        task = delayed(_partition_total, pure=False)
        # a node of its own: sent once to each worker
        work = delayed((here, block_sum, rows), pure=False, traverse=False)
        total = PartitionTotal()
        for result in self._compute([task(part, work) for part in parts]):
            total.merge(result)
        return total

    def count_people(self, fields: Sequence[Field], key: int) -> PersonCounts:
        """Count the records of each person where the partitions lie, then over all of them."""
        parts, here = self._project(fields)
        task = delayed(_partition_people, pure=False)
        work = delayed((here, key), pure=False, traverse=False)
        people = PersonCounts(key)
        for result in self._compute([task(part, work) for part in parts]):
            people.merge(result)
        return people

    def _project(self, fields: Sequence[Field]) -> tuple[list[Any], tuple[Field, ...]]:
        """Return the partitions with the wanted columns alone, and the fields by their place."""
        wanted = sorted({self.position(field.key) for field in fields})
        narrow = self._frame[[self._frame.columns[i] for i in wanted]]
        here = tuple(Field(wanted.index(self.position(field.key)), field.kind) for field in fields)
        return list(narrow.to_delayed()), here

    def _compute(self, tasks: Sequence[Any]) -> list[Any]:
        return computed(self.engine, lambda: list(compute(*tasks)))  # type: ignore[no-untyped-call]


def _partition_people(part: Any, work: tuple[Sequence[Field], int]) -> PersonCounts:
    fields, key = work
    return MemorySource(part).count_people(fields, key)


def _partition_total(part: Any, work: tuple[Sequence[Field], BlockSum, int]) -> PartitionTotal:
    fields, block_sum, rows = work
    return add_partition(MemorySource(part).blocks(fields), block_sum, rows=rows)
