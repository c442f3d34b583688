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
from typing import Any

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
_LIMB = 29  # bits of the low limb
_CHUNK = 16  # blocks that are sorted by weight together
_DIGIT = 6  # bits
_SMALL_GROUP = 16  # rows: with fewer of equal weight on average, weights are taken apart
_NO_ONE = complex(0.5, 0.5)  # stands for nobody in a checksum: halves of identifiers are whole
_MIX = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))

Rows = NDArray[np.float64]
Integers = NDArray[np.int64]
Identifiers = NDArray[np.complex128]


# ---- how many records each person has


class PersonCounts:
    """Number of records of each person: the first of two readings.

    ``ids`` are identifiers (first + second·i), sorted, ``counts`` the records of each;
    ``records`` all records, those of nobody too; ``checksum`` of all identifiers, with a secret
    key, the same for any order.
    """

    def __init__(self, key: int) -> None:
        self.key = key
        self.ids: Identifiers = np.empty(0, np.complex128)
        self.counts: Integers = np.empty(0, np.int64)
        self.records = 0
        self.checksum = 0
        self._waiting: list[tuple[Identifiers, Integers]] = []
        self._waiting_size = 0

    def add(self, block: Rows) -> None:
        """Count one block of pairs, shape ``(rows, 2)``."""
        ids = identifiers(block)
        self.records += len(ids)
        self.checksum = (self.checksum + checksum(ids, self.key)) % 2**64
        self._put(*np.unique(ids[~np.isnan(ids)], return_counts=True))

    def merge(self, other: "PersonCounts") -> None:
        """Add what was counted elsewhere."""
        other.settle()
        self.records += other.records
        self.checksum = (self.checksum + other.checksum) % 2**64
        self._put(other.ids, other.counts)

    def _put(self, ids: Identifiers, counts: Integers) -> None:
        self._waiting.append((ids, counts))
        self._waiting_size += len(ids)
        if self._waiting_size > max(len(self.ids), 2**16):  # so that memory is a few people's
            self.settle()

    def settle(self) -> "PersonCounts":
        """Bring all that was counted together."""
        if self._waiting:
            ids = np.concatenate([self.ids, *(one for one, _ in self._waiting)])
            counts = np.concatenate([self.counts, *(one for _, one in self._waiting)])
            self.ids, places = np.unique(ids, return_inverse=True)
            self.counts = np.zeros(len(self.ids), np.int64)
            np.add.at(self.counts, places, counts)
            self._waiting = []
            self._waiting_size = 0
        return self

    @property
    def people(self) -> int:
        """How many people there are."""
        return len(self.settle().ids)

    def of(self, ids: Identifiers) -> Integers:
        """Number of records of each of these people; 0 for nobody, and for strangers."""
        self.settle()
        if not len(self.ids):
            return np.zeros(len(ids), np.int64)
        places = np.minimum(np.searchsorted(self.ids, ids), len(self.ids) - 1)
        return np.where(self.ids[places] == ids, self.counts[places], 0)

    def mask(self, block: Rows, chosen: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Whether the person of each record is among the chosen ones; False for nobody's.

        ``block`` are pairs, shape ``(rows, 2)``; ``chosen`` has one entry a person.
        """
        ids = identifiers(block)
        if not self.people:
            return np.zeros(len(ids), dtype=bool)
        places = np.minimum(np.searchsorted(self.ids, ids), len(self.ids) - 1)
        return np.asarray(chosen[places] & (self.ids[places] == ids))


def identifiers(block: Rows) -> Identifiers:
    """Pairs as complex numbers, which compare and sort as pairs; one that is NaN in part is NaN."""
    pairs = np.ascontiguousarray(block).view(np.complex128)[:, 0].copy()
    pairs[np.isnan(pairs)] = complex(np.nan, np.nan)
    return pairs


def checksum(ids: Identifiers, key: int) -> int:
    """Sum of a keyed mix of each identifier, modulo 2⁶⁴; nobody's count as a pair of no one's."""
    known = np.where(np.isnan(ids), _NO_ONE, ids)
    mixed = _mix(known.real.view(np.uint64) ^ np.uint64(key))
    mixed = _mix(mixed ^ known.imag.copy().view(np.uint64))
    return int(mixed.sum(dtype=np.uint64))


def _mix(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
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
        weights = np.full(len(raw), ONE, np.int64)
        if self.bound is not None:
            with np.errstate(all="ignore"):
                fraction = raw[:, -1] / self.bound
                fraction = np.where(fraction > 0, np.minimum(fraction, 1.0), 0.0)  # NaN: 0
            weights = np.trunc(fraction * ONE).astype(np.int64)
        if self.people is not None:
            counts = self.people.of(self.identifiers(raw))
            weights = np.where(counts > 0, weights // np.maximum(counts, self.contribution), 0)
        return weights

    @property
    def most_groups(self) -> int:
        """In how many groups of equal weights, or digits, one record may be."""
        if self.bound is None:
            return 1
        return WEIGHT_BITS // _DIGIT + 1

    def identifiers(self, raw: Rows) -> Identifiers:
        """Whose each record is."""
        return identifiers(raw[:, self.columns : self.columns + 2])

    def checksum(self, raw: Rows) -> int:
        """Checksum of the identifiers; 0 without."""
        if self.people is None:
            return 0
        return checksum(self.identifiers(raw), self.people.key)


def weighted_chunk(block_rows: int) -> int:
    """How many records are sorted by weight together, for blocks of so many rows."""
    return _CHUNK * block_rows


def equal_weights(weights: Integers) -> Iterator[tuple[int, NDArray[np.intp]]]:
    """Weights, and the rows that have each; weights of a row add up to its own.

    Rows of weight zero are left out.
    """
    if len(np.unique(weights)) * _SMALL_GROUP <= max(len(weights), _SMALL_GROUP**2):
        yield from _groups(weights)
        return
    for low in range(0, WEIGHT_BITS + 1, _DIGIT):
        digits = (weights >> low) & (2**_DIGIT - 1)
        for digit, rows in _groups(digits):
            yield digit << low, rows


def _groups(values: Integers) -> Iterator[tuple[int, NDArray[np.intp]]]:
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=-1))
    ends = np.append(starts, len(ordered))[1:]
    for start, end in zip(starts, ends, strict=True):
        value = int(ordered[start])
        if value:
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
        records = raw[:, : self.weights.columns]
        for weight, rows in equal_weights(self.weights.integers(raw)):
            for piece in pieces(0, len(rows), self.rows):
                some = np.ascontiguousarray(records[rows[piece]])
                add_limbs(limbs[:, :-1], self.block_sum(some, weight).reshape(-1), weight)
        seal = self.weights.checksum(raw)
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

    The low limb stays below 2²⁹; the high one is at most 2⁵⁴ over a chunk.
    """
    whole = block_sum.astype(np.int64)
    limbs[0] += (whole & (2**_LIMB - 1)) * weight
    limbs[1] += (whole >> _LIMB) * weight + (limbs[0] >> _LIMB)
    limbs[0] &= 2**_LIMB - 1
