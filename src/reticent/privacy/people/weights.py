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
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.privacy.people.person_counts import PersonCounts, checksum
from reticent.privacy.statistics.exact_sum import Total, pieces

__all__ = [
    "ONE",
    "WEIGHT_BITS",
    "NumberedRecords",
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
_MIX = np.uint64(0xBF58476D1CE4E5B9)  # odd, with as many ones as zeros

Rows = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class RecordWeights:
    """From the last columns of raw records to their weights.

    Raw records have ``columns`` values, then the two halves of an identifier if ``people`` is
    there, then a stated weight if there is a ``bound``. Records of identifiers that ``nobody``
    lists weigh nothing; they are people all the same, so that the number of people, which is
    public, does not tell whether somebody is there.
    """

    columns: int
    people: PersonCounts | None = None
    contribution: int = 1
    bound: float | None = None
    nobody: tuple[tuple[float, float], ...] = ()

    def integers(self, raw: Rows) -> Integers:
        """Weight of each record, a whole number from 0 to 2²⁴."""
        return self.integers_and_checksum(raw)[0]

    def integers_and_checksum(self, raw: Rows) -> tuple[Integers, int]:
        """Weight of each record, and the checksum of the identifiers that were read; 0 of none."""
        if self.people is None:
            return np.broadcast_to(self._stated(raw), len(raw)), 0
        ids = self.people.identifiers(raw[:, self.columns : self.columns + 2])
        return self.of_numbers(raw, self.people.numbers(ids)), checksum(ids)

    def of_numbers(self, raw: Rows, numbers: NDArray[Any]) -> Integers:
        """Weight of each record, whose person has this number; ``raw`` needs no identifiers."""
        return self._stated(raw) // self._divisors[numbers]

    def _stated(self, raw: Rows) -> Integers | int:
        """The weight that each record states, from 0 to 2²⁴; 2²⁴ of all without."""
        if self.bound is None:
            return ONE
        with np.errstate(all="ignore"):
            fraction = raw[:, -1] / self.bound
            fraction = np.where(fraction > 0, np.minimum(fraction, 1.0), 0.0)  # NaN: 0
        return np.trunc(fraction * ONE).astype(np.int64)

    @cached_property
    def _divisors(self) -> Integers:
        """What the weights of each person's records are divided by, by number.

        More than a weight can be, where records do not count.
        """
        assert self.people is not None
        divisors = np.maximum(self.people.counts, self.contribution)
        divisors[0] = ONE + 1
        if self.nobody:
            ids = self.people.identifiers(np.array(self.nobody))
            divisors[self.people.numbers(ids)] = ONE + 1
        return divisors

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
    mixed = weights.astype(np.uint64) * _MIX
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
class NumberedRecords:
    """Raw records without identifiers, and the numbers of their people."""

    raw: Rows
    numbers: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.raw)

    def __getitem__(self, rows: slice) -> "NumberedRecords":
        return NumberedRecords(self.raw[rows], self.numbers[rows])


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
        return self._limbs(raw, *self.weights.integers_and_checksum(raw))

    def of_numbered(self, records: NumberedRecords) -> Integers:
        """The same for records whose people are known, without a checksum."""
        weights = self.weights.of_numbers(records.raw, records.numbers)
        return self._limbs(records.raw, weights, 0)

    def _limbs(self, raw: Rows, weights: Integers, seal: int) -> Integers:
        limbs = np.zeros((2, int(np.prod(self.shape)) + 1), np.int64)
        columns = self.weights.columns
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
