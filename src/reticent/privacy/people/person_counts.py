"""Person counts: how many records each person has, from the first of two readings.

People have numbers 1, 2, … in the order in which they were first met; 0 is nobody's. Identifiers
are found by a table with open addressing. Where a source can say that its records are still the
same, and in the same order, the number of each record's person is remembered, and identifiers are
not read again. Proof: weights.md, 6.
"""

from collections.abc import Hashable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["COUNTED_AT_ONCE", "MOST_REMEMBERED", "Identifiers", "PersonCounts", "checksum"]

COUNTED_AT_ONCE = 2**18  # records: 4 MiB of identifiers
MOST_REMEMBERED = 2**26  # records whose people are remembered by row: 256 MiB
_FEWEST_SLOTS_BITS = 4
_NOBODY = np.uint64(2**64 - 2)  # in the place of a second, which is below 2⁵³
_FIRST_OF_NOBODY = -(2.0**33)  # that of an identifier is −2³¹ or more
_MIX = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))

Rows = NDArray[np.float64]
Integers = NDArray[np.int64]
Words = NDArray[np.uint64]


class Identifiers(NamedTuple):
    """Identifiers as they are looked up: keyed words of 64 bits, and the second of each pair.

    The two together tell all pairs apart. The second is ``_NOBODY`` for nobody's.
    """

    words: Words
    seconds: Words


class PersonCounts:
    """Number of records of each person.

    ``people`` is how many people there are; ``records`` all records, those of nobody too;
    ``checksum`` of all identifiers, the same for any order. ``by_row`` has the number of each
    record's person, in the order of the first reading, if it is remembered: then ``version`` is
    that of the source (`Source.version`). ``key`` is secret.

    A person has the slot that the highest bits of their word say, or the next one that was free; at
    most half of all slots are taken.
    """

    def __init__(self, key: int) -> None:
        self._first, self._second = _mix(np.array([key, key ^ 1], np.uint64)) | np.uint64(1)
        self.records = 0
        self.checksum = 0
        self.people = 0
        self.by_row: NDArray[np.int32] | None = None
        self.version: Hashable = None
        self._clear(_FEWEST_SLOTS_BITS)

    def _clear(self, bits: int) -> None:
        """Begin with 2^bits free slots, and room for half as many people."""
        self._shift = np.uint64(64 - bits)
        self._slots: Integers = np.zeros(2**bits, np.int64)  # numbers of people, 0 where free
        self._ids: Words = np.zeros((2 ** (bits - 1) + 1, 2), np.uint64)  # word and second
        self._counts: Integers = np.zeros(2 ** (bits - 1) + 1, np.int64)

    @property
    def counts(self) -> Integers:
        """Records of each person, by number: shape ``(people + 1,)``; none of number 0."""
        return self._counts[: self.people + 1]

    def identifiers(self, block: Rows) -> Identifiers:
        """Identifiers of a block of pairs, shape ``(rows, 2)``; a pair with a NaN is nobody's."""
        first = block[:, 0]
        second = block[:, 1]
        nobody = np.isnan(first + second)
        some_are_nobodys = nobody.any()
        if some_are_nobodys:
            first = np.where(nobody, _FIRST_OF_NOBODY, first)
            second = np.where(nobody, 0.0, second)
        words = first.astype(np.int64).view(np.uint64) * self._first
        seconds = second.astype(np.int64).view(np.uint64)
        words += seconds * self._second
        if some_are_nobodys:
            seconds[nobody] = _NOBODY
        return Identifiers(_mix(words), seconds)

    def add(self, block: Rows) -> Integers:
        """Count one block of pairs, shape ``(rows, 2)``; give the number of each one's person."""
        ids = self.identifiers(block)
        self.records += len(block)
        self.checksum = (self.checksum + checksum(ids)) % 2**64
        somebody = ids.seconds != _NOBODY
        if somebody.all():
            numbers = self._put(ids)
            np.add.at(self._counts, numbers, 1)
            return numbers
        numbers = np.zeros(len(block), np.int64)
        numbers[somebody] = self._put(_some(ids, np.flatnonzero(somebody)))
        np.add.at(self._counts, numbers[somebody], 1)
        return numbers

    def merge(self, other: "PersonCounts") -> None:
        """Add what was counted elsewhere, with the same key."""
        self.add_table(other.table())

    def table(self) -> Integers:
        """Word, second and number of records of each person, and of nobody in the last row.

        Words and seconds are those of `identifiers`, as signed numbers; shape ``(people + 1, 3)``.
        """
        ids = self._everybody()
        nobody = self.identifiers(np.full((1, 2), np.nan))
        words = np.append(ids.words, nobody.words).view(np.int64)
        seconds = np.append(ids.seconds, nobody.seconds).view(np.int64)
        counts = self.counts[1:]
        return np.column_stack([words, seconds, np.append(counts, self.records - counts.sum())])

    def add_table(self, table: Integers) -> None:
        """Add rows of tables that were made with the same key; a person may have several."""
        words, seconds, counts = np.ascontiguousarray(table.T)
        ids = Identifiers(words.view(np.uint64), seconds.view(np.uint64))
        self.records += int(counts.sum())
        together = (ids.words * counts.view(np.uint64)).sum(dtype=np.uint64)
        self.checksum = (self.checksum + int(together)) % 2**64
        somebody = np.flatnonzero(ids.seconds != _NOBODY)
        numbers = self._put(_some(ids, somebody))
        np.add.at(self._counts, numbers, counts[somebody])

    def numbers(self, ids: Identifiers) -> Integers:
        """Number of each of these people; 0 for nobody, and for strangers."""
        return self._search(ids)[1]

    def mask(self, block: Rows, chosen: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Whether the person of each record is among the chosen ones; False for nobody's.

        ``block`` are pairs, shape ``(rows, 2)``; ``chosen`` has one entry a person.
        """
        by_number = np.concatenate([np.zeros(1, dtype=bool), chosen])
        return by_number[self.numbers(self.identifiers(block))]

    # ---- the table

    def _everybody(self) -> Identifiers:
        """All people, in the order of their numbers."""
        words, seconds = self._ids[1 : self.people + 1].T
        return Identifiers(words, seconds)

    def _put(self, ids: Identifiers) -> Integers:
        """Number of each of these people; who is new gets the next one, and a slot."""
        slots, numbers = self._search(ids)
        new = np.flatnonzero(numbers == 0)
        needed = 2 * (self.people + len(new))
        if needed > len(self._slots):
            self._grow(needed.bit_length())
            slots[new], _ = self._search(_some(ids, new))
        while len(new):
            asking = _some(ids, new)
            numbers[new] = self._take_free(slots[new], asking)
            new = new[self._others(numbers[new], asking)]
            slots[new], numbers[new] = self._search(_some(ids, new))
            new = new[numbers[new] == 0]
        return numbers

    def _search(self, ids: Identifiers) -> tuple[NDArray[np.intp], Integers]:
        """Slot where the search for each of these people ends, and who has it.

        That is their own number, or 0 where the slot is free: for somebody who is not there.
        """
        slots = (ids.words >> self._shift).astype(np.intp)
        numbers = self._slots[slots]
        left = np.flatnonzero(self._others(numbers, ids))
        while len(left):
            slots[left] = self._next(slots[left])
            numbers[left] = self._slots[slots[left]]
            left = left[self._others(numbers[left], _some(ids, left))]
        return slots, numbers

    def _next(self, slots: NDArray[np.intp]) -> NDArray[np.intp]:
        return (slots + 1) & (len(self._slots) - 1)

    def _others(self, numbers: Integers, ids: Identifiers) -> NDArray[np.bool_]:
        """Whether numbers are somebody else's; 0 is not."""
        words, seconds = self._ids.take(numbers, axis=0).T
        return ((words != ids.words) | (seconds != ids.seconds)) & (numbers != 0)

    def _take_free(self, slots: NDArray[np.intp], ids: Identifiers) -> Integers:
        """Give each of these free slots to one of those who ask for it; tell who has got each."""
        asking = np.arange(len(slots))
        self._slots[slots] = asking  # whichever is written last, it is one of them
        chosen = np.flatnonzero(self._slots[slots] == asking)
        numbers = np.arange(len(chosen)) + self.people + 1
        self._ids[numbers, 0] = ids.words[chosen]
        self._ids[numbers, 1] = ids.seconds[chosen]
        self._slots[slots[chosen]] = numbers
        self.people += len(chosen)
        return self._slots[slots]

    def _grow(self, bits: int) -> None:
        """Take 2^bits slots, and put everybody into them anew, with the number that they have."""
        ids = self._ids[: self.people + 1]
        counts = self.counts
        self._clear(bits)
        self._ids[: len(ids)] = ids
        self._counts[: len(ids)] = counts
        numbers = np.arange(1, len(ids))
        slots = (ids[1:, 0] >> self._shift).astype(np.intp)
        while len(numbers):
            free = np.flatnonzero(self._slots[slots] == 0)
            self._slots[slots[free]] = numbers[free]  # one of those who ask for it gets it
            left = np.flatnonzero(self._slots[slots] != numbers)
            numbers = numbers[left]
            slots = self._next(slots[left])


def _some(ids: Identifiers, which: NDArray[np.intp]) -> Identifiers:
    return Identifiers(ids.words[which], ids.seconds[which])


def checksum(ids: Identifiers) -> int:
    """Sum of the identifiers' keyed words, modulo 2⁶⁴."""
    return int(ids.words.sum(dtype=np.uint64))


def _mix(words: Words) -> Words:
    """Mix the bits of each word, one to one (the finaliser of SplitMix64)."""
    mixed = words + _MIX[0]
    mixed ^= mixed >> np.uint64(30)
    mixed *= _MIX[1]
    mixed ^= mixed >> np.uint64(27)
    mixed *= _MIX[2]
    mixed ^= mixed >> np.uint64(31)
    return np.asarray(mixed)
