"""The fast path gives the integers of the reference implementation (privacy/reference.py)."""

from dataclasses import dataclass

import numpy as np
import pytest

from reticent.privacy.record_sum import BlockSum
from reticent.privacy.reference import reference_sum
from reticent.privacy.statistics import gram, partitioned_gram
from reticent.privacy.statistics.assignment_moments import AssignmentMoments
from reticent.privacy.statistics.cell_sum import CellSum
from reticent.privacy.statistics.counts import Counts
from reticent.privacy.statistics.enforced import enforce
from reticent.privacy.statistics.exact_sum import add_up
from reticent.privacy.statistics.gram import Gram
from reticent.privacy.statistics.sum import Sum
from tests.contract.cases import NASTY, STATISTICS, records

ODD = [0.0, -0.0, 0.5, -0.5, 0.9999, 1.0, -1.0, 3.0, -7.5, 1e-300, 1e300, -1e300, 2.0**60]
ODD += [np.inf, -np.inf, np.nan]


def same(statistic, unit):
    """Whether both ways give the same integers, for all records together and for some."""
    enforced = enforce(statistic)
    for table in (unit, unit[::3], unit[:1]):
        with np.errstate(all="ignore"):
            fast = add_up([table], enforced.block_sum, rows=enforced.block_rows).integers()
            plain = reference_sum(enforced, table)
        if enforced.coordinates(fast).tolist() != plain:
            return False
    return True


@pytest.mark.parametrize(
    ("statistic", "bounds"), [v[:2] for v in STATISTICS.values()], ids=STATISTICS
)
def test_every_statistic_of_the_library_adds_up_the_reference_integers(statistic, bounds):
    data = np.vstack([NASTY, records(12)])
    assert same(statistic, bounds.scale(data, statistic.output_limit))


@pytest.mark.parametrize(
    ("statistic", "bounds"), [v[:2] for v in STATISTICS.values()], ids=STATISTICS
)
def test_raw_records_add_up_to_the_same_integers_in_whatever_pieces(statistic, bounds, monkeypatch):
    """Gram blocks are scaled in pieces: of 64 records here, as of statistics with many columns."""
    for module in (gram, partitioned_gram):
        monkeypatch.setattr(module, "_CACHE", 1)
    enforced = enforce(statistic)
    data = np.vstack([NASTY, records(140), NASTY[::-1]])
    with np.errstate(all="ignore"):
        found = BlockSum(enforced, bounds)(data)
        plain = reference_sum(enforced, bounds.scale(data, statistic.output_limit))
    assert enforced.coordinates(found.astype(object)).tolist() == plain


def odd_records(columns, count=60):
    return np.random.default_rng(columns).choice(ODD, size=(count, columns))


@dataclass(frozen=True)
class UserSum(Sum):
    columns = 3
    norm2 = 2
    norm1: float | None = None
    nonnegative: bool = False

    def rows(self, records):
        return records


@pytest.mark.parametrize("norm1", [None, 1, 2])
@pytest.mark.parametrize("nonnegative", [False, True])
def test_rows_of_any_numbers_are_clipped_as_in_the_reference(norm1, nonnegative):
    assert same(UserSum(norm1, nonnegative), odd_records(3))


@dataclass(frozen=True)
class Picky(Gram):
    """Fails for some records, whether alone or in a block."""

    columns = 3
    norm2 = 3

    def rows(self, records):
        if (records[:, 0] == 0.5).any():
            raise KeyboardInterrupt(str(records))
        return records.astype(np.float32)


@dataclass(frozen=True)
class UserCounts(Counts):
    groups = (3, 1, 4)

    def cells(self, records):
        if (records[:, 0] == 1.0).any():
            return np.zeros((len(records), 2))
        return records


@dataclass(frozen=True)
class UserCells(CellSum):
    cells = 3
    own = 1
    shared = 1
    norm2 = 1

    def cell(self, records):
        return records[:, 0]

    def short_rows(self, records):
        return records[:, 1:]


@pytest.mark.parametrize("statistic", [Picky(), UserCounts(), UserCells()])
def test_maps_that_fail_or_give_anything_add_the_reference_integers(statistic):
    assert same(statistic, odd_records(3))


@dataclass(frozen=True)
class UserMoments(AssignmentMoments):
    """Two parts; rows can be had in one way only for some records, and in none for others."""

    def responsibilities(self, records):
        def rows(pairs):
            whole = np.vstack([records[:, 2:], -records[:, 2:]])
            if pairs is None and (records[:, 0] == 0.5).any():
                raise ValueError("all pairs at once")
            if (records[:, 0] == 1.0).any():
                raise SystemExit
            return whole if pairs is None else whole[pairs]

        return records[:, :2], rows


@pytest.mark.parametrize("pooled", [False, True])
@pytest.mark.parametrize("second", ["none", "trace", "diagonal", "full"])
def test_moments_of_any_responsibilities_are_the_reference_integers(second, pooled):
    weights = (1, 2, 0 if second == "none" else 3)
    assert same(UserMoments(2, 2, second, pooled, weights), odd_records(4, 120))
