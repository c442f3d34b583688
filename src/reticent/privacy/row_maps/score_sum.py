"""Sums and counts of bounded scores: what a search releases of each candidate's fit."""

from collections.abc import Callable, Iterator
from dataclasses import InitVar, dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from reticent.privacy.statistics.counts import Counts
from reticent.privacy.statistics.sum import Sum

__all__ = ["HALVINGS", "Judge", "ScoreCounts", "ScoreSum", "in_own_places"]

Array = NDArray[np.float64]

HALVINGS = 12
_PLACES = 256  # rows of a block in which each record has a place of its own
_ODD = np.uint64(0x9E3779B97F4A7C15)

Judge = Callable[[Array], Array]  # from scaled records to their scores


def in_own_places(judge: Judge) -> Judge:
    """The same judge, asked in blocks of one shape where each record's place is its own.

    The last bits of a prediction may depend on a record's place in its block, and on how long that
    is. Here both are functions of the record: blocks of 256, with the record at a place that its
    own bits say, and copies of another one where no record belongs. So its score is a function of
    the record, whoever else is in the table. (private_search.md)
    """

    def judged(records: Array) -> Array:
        scores = np.empty(len(records))
        places = _places(records)
        for rows in _layers(places):
            block = np.repeat(records[:1], _PLACES, axis=0)
            block[places[rows]] = records[rows]
            scores[rows] = judge(block)[places[rows]]
        return scores

    return judged


def _places(records: Array) -> NDArray[np.intp]:
    """Place of each record, from 0 to 255: a mix of its bits."""
    words = np.ascontiguousarray(records + 0.0).view(np.uint64)  # −0 is 0
    mixed = np.zeros(len(records), np.uint64)
    for column in words.T:
        mixed = (mixed ^ column) * _ODD
        mixed ^= mixed >> np.uint64(32)
    return (mixed % np.uint64(_PLACES)).astype(np.intp)


def _layers(places: NDArray[np.intp]) -> Iterator[NDArray[np.intp]]:
    """Rows in groups, in each of which no two have the same place."""
    order = np.argsort(places, kind="stable")
    ordered = places[order]
    first = np.searchsorted(ordered, ordered)
    depth = np.arange(len(ordered)) - first
    by_depth = np.argsort(depth, kind="stable")
    ends = np.searchsorted(depth[by_depth], np.arange(depth.max(initial=-1) + 1), side="right")
    start = 0
    for end in ends.tolist():
        yield order[by_depth[start:end]]
        start = end


@dataclass(frozen=True, eq=False)
class _Scored:
    """What is public about scores: their name and range; and what gives them."""

    score: str
    low: float
    high: float
    judge: InitVar[Judge | None] = None

    def __post_init__(self, judge: Judge | None) -> None:
        object.__setattr__(
            self, "_judge", judge
        )  # not a field: a fitted model is not written into the release


@dataclass(frozen=True, eq=False)
class ScoreSum(_Scored, Sum):
    """Σ of scores, held to [low, high] and scaled to [−½, ½].

    A record that lacks a value adds nothing; the number of complete records is released along.
    """

    @property
    def counts_records(self) -> bool:
        """The number of complete records is released along."""
        return True

    @property
    def columns(self) -> int:
        """One number."""
        return 1

    @property
    def norm2(self) -> Fraction:
        """(½)²: two scores differ by at most one."""
        return Fraction(1, 4)

    def rows(self, records: Array) -> Array:
        """The scaled scores."""
        scores = self._judge(records)  # type: ignore[attr-defined]
        scaled = (np.clip(scores, self.low, self.high) - (self.low / 2 + self.high / 2)) / (
            self.high - self.low
        )
        return np.clip(np.nan_to_num(scaled, nan=-0.5), -0.5, 0.5)[:, None]


@dataclass(frozen=True, eq=False)
class ScoreCounts(_Scored, Counts):
    """How many scores lie how far below the best one: bins that double in width.

    A record that lacks a value is in no bin.
    """

    @property
    def groups(self) -> tuple[int, ...]:
        """One group of bins."""
        return (HALVINGS + 1,)

    def cells(self, records: Array) -> Array:
        """Bin j holds scores that fall short of the best by more than 2⁻ʲ⁻¹ of the range.

        The last one the best ones. A score that is not a number is in bin 0, with the worst.
        """
        scores = self._judge(records)  # type: ignore[attr-defined]
        short = (self.high - scores) / (self.high - self.low)
        edges = 2.0 ** -np.arange(1, HALVINGS + 1)
        return np.sum(short[:, None] <= edges, axis=1)[:, None].astype(np.float64)
