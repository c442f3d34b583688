"""Random split of the records into training and validation records, by row number.

Proof: selection.md, 1.

Both subsets come from one reading and stay in memory, in the order of the rows, so that a record's
place in its subset, and in every block of it, is a function of its row number. People are split by
their identifiers, with all of their records. Where records are too many for memory, and their
number is not public, a subset is read again each time (`SubsetReadAgain`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NoReturn, final

import numpy as np
from numpy.typing import NDArray

from reticent.errors import ReleaseRefused
from reticent.privacy.people.person_counts import PersonCounts
from reticent.privacy.sources.base import DtypeKind, Field, Source

__all__ = ["MEMORY", "RecordSplit", "RecordSubset", "SubsetReadAgain", "split_records"]

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


@dataclass(frozen=True, eq=False)
class RecordSplit:
    """Which records are validation records.

    ``validation`` is True for validation records, shape ``(n,)``, or with ``people`` for people, in
    the order of their numbers (`PersonCounts`): all records of one person are on one side, found by
    the columns ``person``. Nobody's records are among the training records, with weight zero.
    """

    validation: NDArray[np.bool_]
    people: PersonCounts | None = None
    person: tuple[Field, ...] = ()

    @property
    def records(self) -> int:
        """How many records there are on both sides."""
        if self.people is not None:
            return self.people.records
        return len(self.validation)

    def mask(self, identifiers: NDArray[np.float64], first: int, rows: int) -> NDArray[np.bool_]:
        """Which of some rows, counted from ``first``, are validation records."""
        if self.people is not None:
            return self.people.mask(identifiers, self.validation)
        if first + rows > len(self.validation):
            raise _another_number()
        return self.validation[first : first + rows]


def split_records(
    source: Source, fields: Sequence[Field], split: RecordSplit
) -> tuple[RecordSubset, RecordSubset]:
    """Read the records once, and split them into training and validation records."""
    table = np.empty((split.records, len(fields)))
    filled = 0
    for block in source.blocks(fields):
        if filled + len(block) > len(table):
            raise _another_number()
        table[filled : filled + len(block)] = block
        filled += len(block)
    if filled != len(table):
        raise _another_number()
    columns = [list(fields).index(half) for half in split.person]
    mask = split.mask(table[:, columns], 0, len(table))
    return (
        RecordSubset(source, fields, table[~mask]),
        RecordSubset(source, fields, table[mask]),
    )


@final
class SubsetReadAgain(Source):
    """The training or the validation records of a source, read again each time.

    Parameters
    ----------
    source
        What the records are of.
    split
        Which side each is on.
    validation
        Which side this one is.

    """

    def __init__(self, source: Source, split: RecordSplit, validation: bool) -> None:
        self._source = source
        self._split = split
        self._validation = validation
        self.names = source.names
        self.width = source.width
        self.targets = source.targets
        self.beside = source.beside
        self.apart = source.apart

    def count(self) -> int:
        """Return the number of records; people's are read for it."""
        if self._split.people is None:
            return int((self._split.validation == self._validation).sum())
        return sum(len(block) for block in self.blocks(()))

    def kind(self, position: int) -> tuple[DtypeKind, str]:
        """Return what the schema of the source says."""
        return self._source.kind(position)

    def blocks(self, fields: Sequence[Field]) -> Iterator[NDArray[np.float64]]:
        """Yield the records of this side in the order of their rows."""
        first = 0
        person = self._split.person
        for block in self._source.blocks((*person, *fields)):
            mask = self._split.mask(block[:, : len(person)], first, len(block))
            first += len(block)
            yield np.ascontiguousarray(block[mask == self._validation, len(person) :])
        if self._split.people is None and first != len(self._split.validation):
            raise _another_number()

    def __reduce__(self) -> NoReturn:
        raise TypeError("A subset holds records: it is never copied, pickled or sent.")


def _another_number() -> ReleaseRefused:
    return ReleaseRefused("The number of records changed while they were read.")
