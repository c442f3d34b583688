"""Partitions of records on a cluster: what a worker adds up, and what becomes of its sums.

Each partition has one result. An engine that runs a partition again, because a worker died or was
slow, takes one of its results: none is added twice. A frame is run anew for each reading of a fit,
so sums carry a checksum of the records that were read, which is compared with that of the reading
before. Proof: reading.md, 7.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from typing import Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from reticent.errors import ReleaseRefused
from reticent.privacy.sources.arrow.rereading import Readings, checksum
from reticent.privacy.sources.base import BlockSum, Field, Source, joined_blocks
from reticent.privacy.statistics.exact_products import check_blas
from reticent.privacy.statistics.exact_sum import Total, add_up

__all__ = ["ClusterSource", "PartitionTotal", "add_partition", "computed"]

Result = TypeVar("Result")


class PartitionTotal(Total):
    """Sum over the records of some partitions, and a checksum of these records."""

    checksum = 0

    def merge(self, other: Total) -> None:
        """Add the sum of other partitions to this one."""
        super().merge(other)
        if isinstance(other, PartitionTotal):
            self.checksum += other.checksum


def add_partition(
    blocks: Iterator[NDArray[np.float64]], block_sum: BlockSum, *, rows: int
) -> PartitionTotal:
    """Add ``block_sum`` over one partition, on a worker, whose own BLAS is checked; one thread."""
    check_blas()
    found = PartitionTotal()

    def watched() -> Iterator[NDArray[np.float64]]:
        for block in blocks:
            found.checksum += checksum(block)
            yield block

    found.merge(add_up(joined_blocks(watched(), rows), block_sum, rows=rows, threads=1))
    return found


class ClusterSource(Source):
    """Abstract: a frame on a cluster. ``engine`` is its name in messages."""

    local = False
    ordered = False
    prunes = True
    engine: str

    def __init__(self) -> None:
        self._readings = Readings()

    def snapshot(self) -> Self:
        """Return the source for one fit, all readings of which are compared."""
        changed = copy(self)
        changed._readings = Readings()
        return changed

    def total(
        self, fields: Sequence[Field], block_sum: BlockSum, *, rows: int, threads: int
    ) -> Total:
        """Add ``block_sum`` over each partition where it lies, then over all partitions."""
        total = self._add_partitions(fields, block_sum, rows)
        self._readings.compare(fields, total.checksum)
        return total

    def blocks(self, fields: Sequence[Field]) -> Iterator[NDArray[np.float64]]:
        """Yield the records here, partition by partition. `total` does not bring them here."""
        return self._readings.watch(fields, self._bring_blocks(fields))

    @abstractmethod
    def _add_partitions(
        self, fields: Sequence[Field], block_sum: BlockSum, rows: int
    ) -> PartitionTotal:
        """Add up all partitions, each by `add_partition`."""

    @abstractmethod
    def _bring_blocks(self, fields: Sequence[Field]) -> Iterator[NDArray[np.float64]]:
        """Yield the records of all partitions."""


def computed(engine: str, compute: Callable[[], Result]) -> Result:
    """Return what an engine computes, or refuse the frame, without the words of the engine.

    Neither the text nor the type of an error leaves: both may tell of a record.
    """
    try:
        return compute()
    except Exception:
        pass  # refused outside of the handler, so that the error does not travel along
    raise ReleaseRefused(
        f"The {engine} frame could not be computed. Compute it by itself to see why. If it can be, "
        "see that each worker has Python, reticent and NumPy in the versions of this machine, and "
        "enough memory."
    )
