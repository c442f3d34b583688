"""Readings of one fit: each sees the records that the one before saw, or is refused.

A query, a lazy frame or a stream is run again for each reading. In between somebody may have
changed what it reads, or it may be random.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from reticent.errors import ReleaseRefused
from reticent.privacy.sources.base import Field

__all__ = ["Readings", "checksum"]

_FACTOR = np.uint64(0x9E37_79B9_7F4A_7C15)  # 2⁶⁴ over the golden ratio, an odd number
_HALF = np.uint64(32)


class Readings:
    """Checksums of what was read, by its columns; they are compared, and never leave."""

    def __init__(self) -> None:
        self._seen: dict[tuple[Field, ...], int] = {}

    def watch(
        self, fields: Sequence[Field], blocks: Iterator[NDArray[np.float64]]
    ) -> Iterator[NDArray[np.float64]]:
        """Yield the blocks, and refuse at their end what was not the same the last time."""
        total = 0
        for block in blocks:
            total += checksum(block)
            yield block
        self.compare(fields, total)

    def compare(self, fields: Sequence[Field], total: int) -> None:
        """Refuse a reading whose checksums, added up, are not those of the last one."""
        total %= 2**64
        if self._seen.setdefault(tuple(fields), total) != total:
            raise ReleaseRefused(
                "The records changed while they were read: a second reading gave others. Read a "
                "copy that nobody writes to, and no random rows."
            )


def checksum(block: NDArray[np.float64]) -> int:
    """Sum of a number for each record, a function of its bits: the same in any order of them."""
    mixed = np.zeros(len(block), np.uint64)
    for column in np.ascontiguousarray(block.T).view(np.uint64):
        mixed = (mixed ^ column) * _FACTOR
        mixed ^= mixed >> _HALF
    return int((mixed * _FACTOR).sum(dtype=np.uint64))
