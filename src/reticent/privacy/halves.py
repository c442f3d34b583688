"""Two disjoint parts of the records, by row number: one to fit candidates, one to judge them. Proof: selection.md, 1.

Both parts come from one reading and are held in memory, in the order of the rows, so that a record's place in its part, and in
every block of it, is a function of its row number.
"""

from collections.abc import Iterator, Sequence
from typing import NoReturn, final

import numpy as np
from numpy.typing import NDArray

from reticent.errors import ReleaseRefused
from reticent.privacy.sources import Field, Kind, Source

__all__ = ["MEMORY", "Part", "parts"]

MEMORY = 2**30  # bytes of the columns that the candidates use
_ROWS = 4096


@final
class Part(Source):
    """Some records of a source, chosen columns of them, in memory."""

    def __init__(self, source: Source, fields: Sequence[Field], rows: NDArray[np.float64]) -> None:
        self._schema = [source.kind(position) for position in range(source.width)]
        self._columns = {field: column for column, field in enumerate(fields)}
        self._rows = rows
        self.names, self.width, self.targets = source.names, source.width, source.targets
        self.known_n = len(rows)

    def count(self) -> int:
        """Give the number of records."""
        return len(self._rows)

    def kind(self, position: int) -> tuple[Kind, str]:
        """Give what the schema of the whole says."""
        return self._schema[position]

    def blocks(self, fields: Sequence[Field]) -> Iterator[NDArray[np.float64]]:
        """Give the records in the order of their rows, always in the same blocks."""
        columns = [self._columns[field] for field in fields]
        for start in range(0, len(self._rows), _ROWS):
            yield np.ascontiguousarray(self._rows[start : start + _ROWS, columns])

    def __reduce__(self) -> NoReturn:
        raise TypeError("A part holds records: it is never copied, pickled or sent.")


def parts(source: Source, fields: Sequence[Field], apart: NDArray[np.bool_]) -> tuple[Part, Part]:
    """Read the records once: those whose place is False in ``apart``, and those whose place is True."""
    table, filled = np.empty((len(apart), len(fields))), 0
    for block in source.blocks(fields):
        if filled + len(block) > len(table):
            break
        table[filled : filled + len(block)] = block
        filled += len(block)
    else:
        if filled == len(table):
            return Part(source, fields, table[~apart]), Part(source, fields, table[apart])
    raise ReleaseRefused("The number of records changed while they were read.")
