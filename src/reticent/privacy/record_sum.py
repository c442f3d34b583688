"""Sums over records: from the blocks of a source to one exact vector of integers.

    for block in source.blocks(fields):
        total.add(enforced.block_sum(bounds.scale(block)))

`RecordSum.total` does this, with `Source.total` (a cluster adds up elsewhere) and `add_up` (which
cuts blocks into pieces and shares them among threads) between the two lines. Where records have
weights (weights.py), each piece has records of one weight, and its sum is multiplied by it. The
curator runs it under the guard (guard.py); `FeatureCache` wraps it, and can be left out.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.errors import BadInput, ReleaseRefused
from reticent.privacy.bounds import Bounds
from reticent.privacy.columns.identifiers import Identifier
from reticent.privacy.guard import record_failures
from reticent.privacy.people.person_counts import PersonCounts
from reticent.privacy.people.weights import (
    EqualSum,
    NumberedRecords,
    RecordWeights,
    UnweightedSum,
    WeightedSum,
    total_checksum,
    weighted_chunk,
)
from reticent.privacy.sources.base import Field, Source, joined_blocks
from reticent.privacy.statistics.base import BLOCK_NUMBERS
from reticent.privacy.statistics.enforced import Enforced
from reticent.privacy.statistics.exact_sum import add_up

__all__ = ["BlockSum", "RecordSum", "public_records", "try_out"]


@dataclass(frozen=True)
class BlockSum:
    """From a block of raw records to its integer sum; travels to other threads and machines."""

    enforced: Enforced
    bounds: Bounds

    def __call__(self, raw: NDArray[np.float64], weight: int = 1) -> NDArray[Any]:
        """Sum over one block of records of one weight; it is multiplied by it elsewhere."""
        limit = self.enforced.output_limit
        return self.enforced.raw_block_sum(raw, lambda some: self.bounds.scale(some, limit))


def public_records(bounds: Bounds) -> NDArray[np.float64]:
    """Three raw records that are nobody's.

    The lower ends of all ranges, their middles, and their upper ends; of words and whole numbers
    the first, a middle and the last.
    """
    columns = [
        _public_codes(*ends, kind.cells)
        for ends, kind in zip(bounds.x, bounds.x_kinds, strict=True)
    ]
    if bounds.noise_column is not None:
        columns.append(_public_codes(bounds.noise_column.low, bounds.noise_column.high, None))
    columns += [_public_codes(low, high, None) for low, high in bounds.y]
    if bounds.classes is not None:
        columns.append((0.0, 0.0, len(bounds.classes) - 1.0))
    return np.array(columns, dtype=np.float64).T.copy()


def _public_codes(low: float, high: float, cells: int | None) -> tuple[float, float, float]:
    if cells is None:
        return low, low / 2 + high / 2, high
    first = low + 0.5
    return first, first + cells // 2, high - 0.5


def try_out(enforced: Enforced, bounds: Bounds) -> None:
    """Ask for rows of public records, and refuse a map that fails for them.

    On records it would do so in silence.
    """
    block_sum = BlockSum(enforced, bounds)
    records = public_records(bounds)
    if not enforced.complete_records:
        records = np.vstack([records, np.full(records.shape[1], np.nan)])
    with record_failures() as failures:
        block_sum(records)
        block_sum(records[:1])
    if failures:
        raise BadInput(
            f"{failures[0]}. It was asked for rows of the middle and the ends "
            "of the bounds, scaled, which are no records (and of NaN, where it does not ask for "
            "complete_records): ask it yourself for those of np.zeros((2, columns)) to see why."
        )


@dataclass(frozen=True, eq=False)
class RecordSum:
    """Exact sums over the records of a source, in its bounds.

    ``fields`` are the columns of a record, inputs first; ``threads`` Python threads add up. With
    ``weights``, the columns that decide them (``weight_fields``) are read along, and sums are in
    steps of 2⁻²⁴ of the statistic's own.
    """

    source: Source
    fields: tuple[Field, ...]
    bounds: Bounds
    threads: int
    weights: RecordWeights | None = None
    weight_fields: tuple[Field, ...] = ()

    def total(self, enforced: Enforced) -> tuple[int, NDArray[Any]]:
        """Number of records that were read, and the sum, in Python's integers."""
        at_once = max(64, BLOCK_NUMBERS // len(self.fields))
        return self.add_up(
            BlockSum(enforced, self.bounds),
            rows=min(enforced.block_rows, at_once),
            shape=enforced.sum_shape,
        )

    def add_up(
        self, block_sum: EqualSum, *, rows: int, shape: tuple[int, ...]
    ) -> tuple[int, NDArray[Any]]:
        """Number of records, and the sum of ``block_sum`` over them all.

        In pieces of at most ``rows`` records of one weight, whose sums have this ``shape``.
        """
        if self.weights is None:
            total = self.source.total(
                self.fields, UnweightedSum(block_sum), rows=rows, threads=self.threads
            )
            if not total.rows:
                return 0, np.zeros(shape, dtype=object)
            return total.rows, total.integers()
        weighted = WeightedSum(block_sum, self.weights, shape, rows)
        people = self.weights.people
        if people is not None and people.by_row is not None:
            total = add_up(
                self._numbered_records(people, rows),
                weighted.of_numbered,
                rows=self._chunk(rows, len(self.fields)),
                threads=self.threads,
            )
            return total.rows, weighted.integers(total)
        fields = self.fields + self.weight_fields
        chunk = self._chunk(rows, len(fields))
        total = self.source.total(fields, weighted, rows=chunk, threads=self.threads)
        if people is not None and total_checksum(total.integers()) != people.checksum:
            raise _changed()
        return total.rows, weighted.integers(total)

    def _chunk(self, rows: int, columns: int) -> int:
        """How many records are sorted by weight together; there is a share for every thread."""
        chunk = weighted_chunk(rows, columns)
        if self.source.known_n is None:
            return chunk
        return min(chunk, max(rows, -(-self.source.known_n // self.threads)))

    def _numbered_records(self, people: PersonCounts, rows: int) -> Iterator[NumberedRecords]:
        """Records with the number of their person, as the first reading found it.

        Identifiers are not read: the source says that nothing has changed.
        """
        assert people.by_row is not None
        others = tuple(one for one in self.weight_fields if not isinstance(one.kind, Identifier))
        fields = self.fields + others
        self._check_version(people)
        first = 0
        for block in joined_blocks(self.source.blocks(fields), self._chunk(rows, len(self.fields))):
            numbers = people.by_row[first : first + len(block)]
            first += len(block)
            if len(numbers) < len(block):
                raise _changed()
            yield NumberedRecords(block, numbers)
        self._check_version(people)

    def _check_version(self, people: PersonCounts) -> None:
        if self.source.version() != people.version:
            raise _changed()


def _changed() -> ReleaseRefused:
    return ReleaseRefused("The records changed while they were read.")
