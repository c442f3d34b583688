"""Random split of the records into training and validation records, by row number.

Proof: selection.md, 1.

Both subsets come from one reading and stay in memory, in the order of the rows, so that a record's
place in its subset, and in every block of it, is a function of its row number.
"""

from collections.abc import Iterator, Sequence
from typing import NoReturn, final

import numpy as np
from numpy.typing import NDArray

from reticent.errors import ReleaseRefused
from reticent.privacy.sources.base import DtypeKind, Field, Source
from reticent.privacy.weights import PersonCounts

__all__ = ["MEMORY", "RecordSubset", "split_records"]

MEMORY = 2**30  # bytes of the columns that the candidates use
_BLOCK_ROWS = 4096


@final
class RecordSubset(Source):
    """Some records of a source, chosen columns of them, in memory.

    Parameters
    ----------
    source
        What the records are of: its schema.
    fields
        The columns that were read.
    rows
        The records, shape ``(n, len(fields))``.

    """

    def __init__(self, source: Source, fields: Sequence[Field], rows: NDArray[np.float64]) -> None:
        self._schema = [source.kind(position) for position in range(source.width)]
        self._columns = {field: column for column, field in enumerate(fields)}
        self._rows = rows
        self.names = source.names
        self.width = source.width
        self.targets = source.targets
        self.beside = source.beside
        self.apart = source.apart
        self.known_n = len(rows)

    def count(self) -> int:
        """Return the number of records."""
        return len(self._rows)

    def kind(self, position: int) -> tuple[DtypeKind, str]:
        """Return what the schema of the source says."""
        return self._schema[position]

    def blocks(self, fields: Sequence[Field]) -> Iterator[NDArray[np.float64]]:
        """Yield the records in the order of their rows, always in the same blocks."""
        columns = [self._columns[field] for field in fields]
        for start in range(0, len(self._rows), _BLOCK_ROWS):
            yield np.ascontiguousarray(self._rows[start : start + _BLOCK_ROWS, columns])

    def __reduce__(self) -> NoReturn:
        raise TypeError("A subset holds records: it is never copied, pickled or sent.")


def split_records(
    source: Source,
    fields: Sequence[Field],
    validation: NDArray[np.bool_],
    people: PersonCounts | None = None,
    person: Sequence[Field] = (),
) -> tuple[RecordSubset, RecordSubset]:
    """Read the records once, and split them into training and validation records.

    ``validation`` is True for validation records, shape ``(n,)``, or with ``people`` for people, in
    the order of their identifiers (columns ``person`` of ``fields``): all records of one person
    are on one side. Nobody's records are among the training records, with weight zero.
    """
    records = len(validation)
    if people is not None:
        records = people.records
    table = np.empty((records, len(fields)))
    filled = 0
    for block in source.blocks(fields):
        if filled + len(block) > len(table):
            break
        table[filled : filled + len(block)] = block
        filled += len(block)
    else:
        if filled == len(table):
            mask = validation
            if people is not None:
                columns = [list(fields).index(half) for half in person]
                mask = people.mask(table[:, columns], validation)
            return (
                RecordSubset(source, fields, table[~mask]),
                RecordSubset(source, fields, table[mask]),
            )
    raise ReleaseRefused("The number of records changed while they were read.")
