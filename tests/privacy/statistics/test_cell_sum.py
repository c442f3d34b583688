"""Sums by cell, number by number.

A record's row goes to its own cell, and nowhere if it has none.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

from reticent import BadInput
from reticent.privacy.statistics.cell_sum import CellSum


@dataclass(frozen=True)
class Cells(CellSum):
    """A record (cell, numbers …) adds its numbers as they are, on a grid of sixteenths."""

    cells: int = 3
    own: int = 2
    shared: int = 1
    norm2: int | Fraction = 1

    bits = 4

    def cell(self, records):
        return records[:, 0]

    def short_rows(self, records):
        return records[:, 1:]


def integers(*records):
    return Cells().integers(np.array(records, dtype=np.float64)).tolist()


def test_numbers_of_its_own_stand_in_its_cell_and_shared_ones_behind():
    assert integers((0, 0.5, 0.25, 0.125)) == [[8, 0, 0, 4, 0, 0, 2]]
    assert integers((1, 0.5, 0.25, 0.125)) == [[0, 8, 0, 0, 4, 0, 2]]
    assert integers((2, 0.5, -0.25, -0.125)) == [[0, 0, 8, 0, 0, -4, -2]]
    assert integers((1.9, 0.5, 0.25, 0.125)) == integers((1, 0.5, 0.25, 0.125))
    assert Cells().rows(np.array([[0.0, 0.5, 0.25, 0.125]])).tolist() == [
        [0.5, 0, 0, 0.25, 0, 0, 0.125]
    ]


def test_either_kind_of_numbers_may_be_missing_but_not_less_than_that():
    assert Cells(own=0).columns == 1
    assert Cells(shared=0).columns == 6
    for wrong in (Cells(own=-1, shared=5), Cells(own=2, shared=-1)):
        with pytest.raises(BadInput, match="at least 0"):
            assert wrong.columns


@pytest.mark.parametrize("cell", [-1, -2.5, 3, 3.7, 1e300, np.inf, -np.inf, np.nan])
def test_a_record_in_no_cell_adds_nothing_to_what_is_shared_either(cell):
    records = np.array([(cell, 0.5, 0.25, 0.125), (2, 0.5, 0.25, 0.125)], dtype=np.float64)
    assert Cells().integers(records).tolist() == [[0] * 7, [0, 0, 8, 0, 0, 4, 2]]
    assert Cells().block_sum(records).tolist() == [0, 0, 8, 0, 0, 4, 2]


def test_the_sum_of_a_block_is_that_of_its_whole_rows():
    rng = np.random.default_rng(0)
    records = np.column_stack([rng.integers(-1, 4, 500), rng.normal(0, 0.4, (500, 3))])
    for statistic in (Cells(), Cells(own=3, shared=0), Cells(own=1, shared=2)):
        assert (
            statistic.block_sum(records).tolist()
            == statistic.integers(records).sum(axis=0).tolist()
        )
        assert len(statistic.block_sum(records)) == statistic.size


def test_own_and_shared_numbers_are_held_together():
    (row,) = integers((1, 1, 1, 1))  # √3 long: each becomes 16/√3 = 9.2, truncated
    assert row == [0, 9, 0, 0, 9, 0, 9]
    assert Cells().sensitivity2 == 4 * 16**2
    assert Cells(norm2=Fraction(1, 4)).integers(np.array([[0.0, 1, 1, 1]])).tolist() == [
        [4, 0, 0, 4, 0, 0, 4]
    ]


def test_a_block_fits_the_cache_by_its_short_rows_not_by_its_cells():
    assert (Cells().columns, Cells(cells=10**6).columns) == (7, 2 * 10**6 + 1)
    assert Cells(cells=10**6).block_rows == Cells().block_rows == 2**17 // 3
    assert Cells(own=2**14).block_rows == 64
