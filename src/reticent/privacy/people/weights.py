"""Weights of records: how much each counts, as whole numbers of steps of 2⁻²⁴.

A record's weight is a function of the records of its own person: of how many there are (k_i), and
of the weight that the record itself states, if there is a column of weights,

    w = ⌊2²⁴·min(v/bound, 1)⌋ ÷ max(k_i, contribution)      in whole numbers, rounded down,

so the weights of one person add up to at most 2²⁴, which stands for one. What is released is
Σ w·t(record) instead of Σ t(record), on a grid that is 2²⁴ times finer: whatever t is, a person
adds a point of the convex hull of what single records add, and the diameter of a convex hull is
that of the set. So every statistic has the sensitivity under the replacement of a person that it
has under the replacement of a record. Proof: weights.md.

Sums are exact. Records of equal weight are added up as they always are (exact_sum.py); the sum is
multiplied by the weight in two 64-bit limbs. Where nearly every record has a weight of its own,
weights are taken apart into digits of six bits (five of them: a weight of one is 2²⁴), and records
of equal digits are added up.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reticent.privacy.statistics.exact_sum import Total, pieces

__all__ = [
    "ONE",
    "WEIGHT_BITS",
    "PersonCounts",
    "RecordWeights",
    "UnweightedSum",
    "WeightedSum",
    "add_limbs",
    "joined",
    "total_checksum",
    "weighted_chunk",
]

WEIGHT_BITS = 24
ONE = 2**WEIGHT_BITS  # a weight of one
_LIMB = 35  # bits of the low limb
_CHUNK = 2**10  # blocks that are sorted by weight together, at most
_CHUNK_NUMBERS = 2**20  # and numbers: 8 MiB
_DIGIT = 6  # bits
_MIXED_BITS = 14  # of a weight, that tell few weights apart
_SMALL_GROUP = 16  # rows: with fewer of equal weight on average, weights are taken apart
_FEWEST_SLOTS_BITS = 4
_FREE = np.uint64(2**64 - 1)  # in the place of a second, which is below 2⁵³
_NOBODY = np.uint64(2**64 - 2)
_FIRST_OF_NOBODY = -(2.0**33)  # that of an identifier is −2³¹ or more
_MIX = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))

Rows = NDArray[np.float64]
Integers = NDArray[np.int64]
Words = NDArray[np.uint64]


# ---- how many records each person has


class Identifiers(NamedTuple):
    """Identifiers as they are looked up: keyed words of 64 bits, and the second of each pair.

    The two together tell all pairs apart. The second is ``_NOBODY`` for nobody's.
    """

    words: Words
    seconds: Words


class PersonCounts:
    """Number of records of each person: the first of two readings.

    A table with open addressing: a person has the slot that the highest bits of their word say, or
    the next one that was free; at most half of all slots are taken. ``counts`` are the records of
    the person of each slot, 0 for a free one; ``people`` how many people there are; ``records`` all
    records, those of nobody too; ``checksum`` of all identifiers, the same for any order. ``key``
    is secret.
    """

    def __init__(self, key: int) -> None:
        self._first, self._second = _mix(np.array([key, key ^ 1], np.uint64)) | np.uint64(1)
        self.records = 0
        self.checksum = 0
        self._clear(_FEWEST_SLOTS_BITS)

    def _clear(self, bits: int) -> None:
        """Begin with 2^bits free slots."""
        self._shift = np.uint64(64 - bits)
        self._ids: Words = np.full((2**bits, 2), _FREE)  # word and second
        self.counts: Integers = np.zeros(2**bits, np.int64)
        self.people = 0

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

    def add(self, block: Rows) -> None:
        """Count one block of pairs, shape ``(rows, 2)``."""
        ids = self.identifiers(block)
        self.records += len(block)
        self.checksum = (self.checksum + checksum(ids)) % 2**64
        somebody = ids.seconds != _NOBODY
        if not somebody.all():
            ids = _some(ids, np.flatnonzero(somebody))
        self._put(ids, np.ones(len(ids.words), np.int64))

    def merge(self, other: "PersonCounts") -> None:
        """Add what was counted elsewhere, with the same key."""
        self.records += other.records
        self.checksum = (self.checksum + other.checksum) % 2**64
        self._put(*other._all())

    def _all(self) -> tuple[Identifiers, Integers]:
        """All people, and the records of each."""
        taken = np.flatnonzero(self.counts)
        words, seconds = self._ids[taken].T
        return Identifiers(words, seconds), self.counts[taken]

    def _put(self, ids: Identifiers, counts: Integers) -> None:
        """Add to the records of people; who is new gets a slot."""
        needed = 2 * (self.people + len(counts))
        if needed > len(self.counts):
            before = self._all()
            self._clear(needed.bit_length())
            self._put(*before)
        while len(counts):
            slots = self._slots(ids)
            new = np.flatnonzero(self.counts[slots] == 0)
            lost = new[~self._take_free(slots[new], _some(ids, new))]
            np.add.at(self.counts, np.delete(slots, lost), np.delete(counts, lost))
            ids = _some(ids, lost)
            counts = counts[lost]

    def _take_free(self, slots: NDArray[np.intp], ids: Identifiers) -> NDArray[np.bool_]:
        """Give each of these free slots to one of those who ask for it; tell who has got theirs."""
        asking = np.arange(len(slots))
        self.counts[slots] = asking  # whichever is written last, it is one of them
        chosen = self.counts[slots]
        self.counts[slots] = 0
        self.people += int((chosen == asking).sum())
        self._ids[slots, 0] = ids.words[chosen]
        self._ids[slots, 1] = ids.seconds[chosen]
        return ~self._others(slots, ids)

    def _slots(self, ids: Identifiers) -> NDArray[np.intp]:
        """Slot of each of these people; a free one for somebody who is not there."""
        slots = (ids.words >> self._shift).astype(np.intp)
        left = np.flatnonzero(self._others(slots, ids))
        while len(left):
            slots[left] = (slots[left] + 1) & (len(self.counts) - 1)
            left = left[self._others(slots[left], _some(ids, left))]
        return slots

    def _others(self, slots: NDArray[np.intp], ids: Identifiers) -> NDArray[np.bool_]:
        """Whether slots are taken by somebody else."""
        words, seconds = self._ids.take(slots, axis=0).T
        return ((words != ids.words) | (seconds != ids.seconds)) & (seconds != _FREE)

    def of(self, ids: Identifiers) -> Integers:
        """Number of records of each of these people; 0 for nobody, and for strangers."""
        return self.counts[self._slots(ids)]

    def mask(self, block: Rows, chosen: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Whether the person of each record is among the chosen ones; False for nobody's.

        ``block`` are pairs, shape ``(rows, 2)``; ``chosen`` has one entry a person.
        """
        by_slot = np.zeros(len(self.counts), dtype=bool)
        by_slot[self.counts > 0] = chosen
        return by_slot[self._slots(self.identifiers(block))]


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


# ---- weights


@dataclass(frozen=True, eq=False)
class RecordWeights:
    """From the last columns of raw records to their weights.

    Raw records have ``columns`` values, then the two halves of an identifier if ``people`` is
    there, then a stated weight if there is a ``bound``.
    """

    columns: int
    people: PersonCounts | None = None
    contribution: int = 1
    bound: float | None = None

    def integers(self, raw: Rows) -> Integers:
        """Weight of each record, a whole number from 0 to 2²⁴."""
        return self.integers_and_checksum(raw)[0]

    def integers_and_checksum(self, raw: Rows) -> tuple[Integers, int]:
        """Weight of each record, and the checksum of identifiers; 0 without."""
        stated: Integers | int = ONE
        if self.bound is not None:
            with np.errstate(all="ignore"):
                fraction = raw[:, -1] / self.bound
                fraction = np.where(fraction > 0, np.minimum(fraction, 1.0), 0.0)  # NaN: 0
            stated = np.trunc(fraction * ONE).astype(np.int64)
        if self.people is None:
            return np.broadcast_to(stated, len(raw)), 0
        ids = self.people.identifiers(raw[:, self.columns : self.columns + 2])
        counts = self.people.of(ids)
        weights = stated // np.maximum(counts, self.contribution)
        weights[counts == 0] = 0
        return weights, checksum(ids)

    @property
    def most_groups(self) -> int:
        """In how many groups of equal weights, or digits, one record may be."""
        if self.bound is None:
            return 1
        return WEIGHT_BITS // _DIGIT + 1


def weighted_chunk(block_rows: int, columns: int) -> int:
    """How many records are sorted by weight together, for blocks of so many rows."""
    return max(block_rows, min(_CHUNK * block_rows, _CHUNK_NUMBERS // columns))


def equal_weights(weights: Integers) -> Iterator[tuple[int, NDArray[np.intp]]]:
    """Weights, and the rows that have each; weights of a row add up to its own.

    Rows of weight zero are left out.
    """
    few = _numbered(weights)
    if few is not None:
        yield from _groups(*few)
        return
    for low in range(0, WEIGHT_BITS + 1, _DIGIT):
        digits = (weights >> low) & (2**_DIGIT - 1)
        yield from _groups(np.arange(2**_DIGIT) << low, digits.astype(np.uint8))


def _numbered(weights: Integers) -> tuple[Integers, NDArray[Any]] | None:
    """The different weights, and which of them each row has; None if there are too many.

    Rows are numbered by some mixed bits of their weight, where these tell all weights apart, which
    is seen by looking.
    """
    most = max(len(weights), _SMALL_GROUP**2) // _SMALL_GROUP
    mixed = weights.astype(np.uint64) * _MIX[1]
    bits = (mixed >> np.uint64(64 - _MIXED_BITS)).astype(np.uint16)
    values = np.zeros(2**_MIXED_BITS, np.int64)
    values[bits] = weights
    if np.array_equal(values[bits], weights):
        used = np.zeros(2**_MIXED_BITS, dtype=bool)
        used[bits] = True
        different = values[used]
        numbers = (np.cumsum(used) - 1).astype(np.uint16)[bits]
    else:
        different = np.unique(weights)
        numbers = np.zeros(0, np.uint16)
        if len(different) <= most:
            numbers = np.searchsorted(different, weights).astype(np.uint16)  # most is 2¹⁶ or less
    if len(different) > most:
        return None
    return different, numbers


def _groups(values: Integers, numbers: NDArray[Any]) -> Iterator[tuple[int, NDArray[np.intp]]]:
    """Rows of each of some values, but for zero; ``numbers`` say which value each row has."""
    order = np.argsort(numbers, kind="stable")  # small numbers: by their digits
    ends = np.cumsum(np.bincount(numbers, minlength=len(values))).tolist()
    for value, start, end in zip(values.tolist(), [0, *ends], ends, strict=False):
        if value and end > start:
            yield value, order[start:end]


# ---- sums

# From records of one weight, shape (rows, columns), and that weight, to their exact sum.
EqualSum = Callable[[Rows, int], NDArray[Any]]


@dataclass(frozen=True, eq=False)
class UnweightedSum:
    """A sum over records that all count as one."""

    block_sum: EqualSum

    def __call__(self, raw: Rows) -> NDArray[Any]:
        """Sum over one block."""
        return self.block_sum(raw, 1)


@dataclass(frozen=True, eq=False)
class WeightedSum:
    """From a chunk of raw records to Σ w·block_sum, in limbs; travels to other machines.

    ``shape`` is that of ``block_sum``, ``rows`` the longest block that it adds up exactly.
    """

    block_sum: EqualSum
    weights: RecordWeights
    shape: tuple[int, ...]
    rows: int

    def __call__(self, raw: Rows) -> Integers:
        """Limbs of the sum, and of the checksum behind them: shape ``(2, size + 1)``."""
        limbs = np.zeros((2, int(np.prod(self.shape)) + 1), np.int64)
        columns = self.weights.columns
        weights, seal = self.weights.integers_and_checksum(raw)
        for weight, rows in equal_weights(weights):
            for piece in pieces(0, len(rows), self.rows):
                some = np.ascontiguousarray(raw.take(rows[piece], axis=0)[:, :columns])
                add_limbs(limbs[:, :-1], self.block_sum(some, weight).reshape(-1), weight)
        limbs[:, -1] = seal % 2**32, seal >> 32
        return limbs

    def integers(self, total: Total) -> NDArray[Any]:
        """The sum that a total of limbs stands for, in steps of 2⁻²⁴; Python's integers."""
        return joined(total.integers(), self.shape)


def joined(limbs: Any, shape: tuple[int, ...]) -> NDArray[Any]:
    """Σ w·block_sum from the limbs of a total; zeros if nothing was added."""
    if not isinstance(limbs, np.ndarray):
        limbs = np.zeros((2, int(np.prod(shape)) + 1), dtype=object)
    whole = limbs[0, :-1] + limbs[1, :-1] * 2**_LIMB
    return np.asarray(whole.astype(object).reshape(shape))


def total_checksum(limbs: Any) -> int:
    """The checksum that a total of limbs carries."""
    if not isinstance(limbs, np.ndarray):
        return 0
    return int(limbs[0, -1] + limbs[1, -1] * 2**32) % 2**64


def add_limbs(limbs: Integers, block_sum: NDArray[Any], weight: int) -> None:
    """Add weight·block_sum: whole numbers of at most 2⁵⁵, and a weight of at most 2²⁴.

    The low limb stays below 2³⁵; the high one is at most 2⁵⁵ over a chunk.
    """
    whole = block_sum.astype(np.int64)
    limbs[0] += (whole & (2**_LIMB - 1)) * weight
    limbs[1] += (whole >> _LIMB) * weight + (limbs[0] >> _LIMB)
    limbs[0] &= 2**_LIMB - 1
