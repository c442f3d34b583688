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
_WAITING = 2**20  # identifiers that are counted before they are put in order
_DIGIT = 6  # bits
_SMALL_GROUP = 16  # rows: with fewer of equal weight on average, weights are taken apart
_NOBODY = -(2.0**33)  # the first of nobody's pair: that of an identifier is −2³¹ or more
_MIX = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))

Rows = NDArray[np.float64]
Integers = NDArray[np.int64]
Words = NDArray[np.uint64]


# ---- how many records each person has


class Identifiers(NamedTuple):
    """Identifiers as they are looked up: keyed words of 64 bits, and the second of each pair.

    The two together tell all pairs apart. The second is NaN for nobody's.
    """

    words: Words
    seconds: Rows


# Behind all people: no second of a pair is infinite.
_END = Identifiers(np.array([2**64 - 1], np.uint64), np.array([np.inf]))


class PersonCounts:
    """Number of records of each person: the first of two readings.

    People have places in the order of their words (`Identifiers`); ``counts`` are the records of
    each, and a zero behind them; ``records`` all records, those of nobody too; ``checksum`` of all
    identifiers, the same for any order. ``key`` is secret.
    """

    def __init__(self, key: int) -> None:
        self._first, self._second = _mix(np.array([key, key ^ 1], np.uint64)) | np.uint64(1)
        self._ids = _END
        self._starts: Integers = np.zeros(2, np.int64)  # place of the first of each bucket
        self._shift = np.uint64(63)
        self.counts: Integers = np.zeros(1, np.int64)
        self.records = 0
        self.checksum = 0
        self._waiting: list[tuple[Identifiers, Integers]] = []
        self._waiting_size = 0

    def identifiers(self, block: Rows) -> Identifiers:
        """Identifiers of a block of pairs, shape ``(rows, 2)``; a pair with a NaN is nobody's."""
        first = block[:, 0]
        second = block[:, 1]
        nobody = np.isnan(first + second)
        if nobody.any():
            first = np.where(nobody, _NOBODY, first)
            second = np.where(nobody, 0.0, second)
        words = first.astype(np.int64).view(np.uint64) * self._first
        words += second.astype(np.int64).view(np.uint64) * self._second
        if nobody.any():
            second[nobody] = np.nan
        return Identifiers(words, second)

    def add(self, block: Rows) -> None:
        """Count one block of pairs, shape ``(rows, 2)``."""
        ids = self.identifiers(block)
        self.records += len(block)
        self.checksum = (self.checksum + checksum(ids)) % 2**64
        places = self._places(ids)
        np.add.at(self.counts, places, 1)
        self.counts[-1] = 0
        new = (places == len(self.counts) - 1) & ~np.isnan(ids.seconds)
        self._put(Identifiers(ids.words[new], ids.seconds[new]), np.ones(new.sum(), np.int64))

    def merge(self, other: "PersonCounts") -> None:
        """Add what was counted elsewhere, with the same key."""
        other.settle()
        self.records += other.records
        self.checksum = (self.checksum + other.checksum) % 2**64
        ids = Identifiers(other._ids.words[:-1], other._ids.seconds[:-1])
        self._put(ids, other.counts[:-1])

    def _put(self, ids: Identifiers, counts: Integers) -> None:
        self._waiting.append((ids, counts))
        self._waiting_size += len(counts)
        if self._waiting_size > max(len(self.counts), _WAITING):  # so that memory is people's
            self.settle()

    def settle(self) -> "PersonCounts":
        """Bring all that was counted together."""
        if self._waiting_size:
            waiting = [(self._ids, self.counts), *self._waiting]
            words = np.concatenate([ids.words for ids, _ in waiting])
            seconds = np.concatenate([ids.seconds for ids, _ in waiting])
            counts = np.concatenate([counts for _, counts in waiting])
            order = np.argsort(words)
            if _changes(words[order]).sum() < _changes(words[order], seconds[order]).sum():
                order = np.lexsort((seconds, words))  # slower: for people with equal words
            words = words[order]
            seconds = seconds[order]
            people = np.flatnonzero(_changes(words, seconds))
            self._ids = Identifiers(words[people], seconds[people])
            self.counts = np.add.reduceat(counts[order], people)
            bits = len(people).bit_length()  # one or two buckets a person
            self._shift = np.uint64(64 - bits)
            in_bucket = np.bincount(self._ids.words >> self._shift, minlength=2**bits)
            self._starts = np.cumsum(in_bucket) - in_bucket
        self._waiting = []
        self._waiting_size = 0
        return self

    @property
    def people(self) -> int:
        """How many people there are."""
        return len(self.settle().counts) - 1

    def _places(self, ids: Identifiers) -> NDArray[np.intp]:
        """Place of each of these people among those that are settled; the last one for others."""
        places = self._starts[ids.words >> self._shift]
        words = self._ids.words[places]
        seconds = self._ids.seconds[places]
        later = (words == ids.words) & (seconds < ids.seconds)
        behind = np.flatnonzero((words < ids.words) | later)
        while len(behind):
            places[behind] += 1
            theirs = self._ids.words[places[behind]]
            wanted = ids.words[behind]
            words[behind] = theirs
            seconds[behind] = self._ids.seconds[places[behind]]
            later = (theirs == wanted) & (seconds[behind] < ids.seconds[behind])
            behind = behind[(theirs < wanted) | later]
        found = (words == ids.words) & (seconds == ids.seconds)
        return np.where(found, places, len(self.counts) - 1)

    def of(self, ids: Identifiers) -> Integers:
        """Number of records of each of these people; 0 for nobody, and for strangers."""
        return self.settle().counts[self._places(ids)]

    def mask(self, block: Rows, chosen: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Whether the person of each record is among the chosen ones; False for nobody's.

        ``block`` are pairs, shape ``(rows, 2)``; ``chosen`` has one entry a person.
        """
        places = self.settle()._places(self.identifiers(block))
        return np.append(chosen, False)[places]


def _changes(*columns: NDArray[Any]) -> NDArray[np.bool_]:
    """Where a row differs from the one before it; the first does."""
    changes = np.ones(len(columns[0]), dtype=bool)
    changes[1:] = False
    for column in columns:
        changes[1:] |= column[1:] != column[:-1]
    return changes


def checksum(ids: Identifiers) -> int:
    """Sum of a mix of each identifier's keyed word, modulo 2⁶⁴."""
    return int(_mix(ids.words).sum(dtype=np.uint64))


def _mix(words: Words) -> Words:
    """Mix the bits of each word, one to one (the finaliser of SplitMix64)."""
    mixed = words + _MIX[0]
    mixed = (mixed ^ (mixed >> np.uint64(30))) * _MIX[1]
    mixed = (mixed ^ (mixed >> np.uint64(27))) * _MIX[2]
    return np.asarray(mixed ^ (mixed >> np.uint64(31)))


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
        weights = np.full(len(raw), ONE, np.int64)
        seal = 0
        if self.bound is not None:
            with np.errstate(all="ignore"):
                fraction = raw[:, -1] / self.bound
                fraction = np.where(fraction > 0, np.minimum(fraction, 1.0), 0.0)  # NaN: 0
            weights = np.trunc(fraction * ONE).astype(np.int64)
        if self.people is not None:
            ids = self.people.identifiers(raw[:, self.columns : self.columns + 2])
            counts = self.people.of(ids)
            weights = np.where(counts > 0, weights // np.maximum(counts, self.contribution), 0)
            seal = checksum(ids)
        return weights, seal

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
    different = np.unique(weights)
    if len(different) * _SMALL_GROUP <= max(len(weights), _SMALL_GROUP**2):
        yield from _groups(weights, different)
        return
    for low in range(0, WEIGHT_BITS + 1, _DIGIT):
        digits = (weights >> low) & (2**_DIGIT - 1)
        for digit, rows in _groups(digits, np.arange(2**_DIGIT)):
            yield digit << low, rows


def _groups(values: Integers, different: Integers) -> Iterator[tuple[int, NDArray[np.intp]]]:
    """Rows of each of the ``different`` values, which are in order, but for zero."""
    numbers = np.searchsorted(different, values).astype(np.min_scalar_type(len(different)))
    order = np.argsort(numbers, kind="stable")  # small numbers: by their digits
    ends = np.cumsum(np.bincount(numbers, minlength=len(different))).tolist()
    for value, start, end in zip(different.tolist(), [0, *ends], ends, strict=False):
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
