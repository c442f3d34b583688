"""Exactness at and beyond the limits: never a wrong sum."""

import subprocess
import sys
import threading
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

import reticent.privacy.statistics.exact_sum as sums
from reticent.errors import BadInput
from reticent.privacy.bounds import Bounds
from reticent.privacy.record_sum import try_out
from reticent.privacy.statistics.enforced import enforce
from reticent.privacy.statistics.exact_sum import EXACT, Total, add_up, pieces
from reticent.privacy.statistics.gram import Gram
from reticent.privacy.statistics.sum import Sum


@dataclass(frozen=True)
class Constant(Gram):
    """Every record becomes the longest row: all sums run as high as they can."""

    b: int
    m: int = 3
    square: int = 1

    columns = property(lambda self: self.m)
    norm2 = property(lambda self: self.square)
    bits = property(lambda self: self.b)

    def rows(self, records):
        return np.full((len(records), self.m), (self.square / self.m) ** 0.5)


@dataclass(frozen=True)
class First(Sum):
    """Row (first column)."""

    square: Fraction = Fraction(1)

    columns = property(lambda self: 1)
    norm2 = property(lambda self: self.square)

    def rows(self, records):
        return records[:, :1]


@pytest.mark.parametrize("b", [1, 18, 20, 24, 25, 26])
def test_gram_blocks_are_exact_at_the_limit(b):
    statistic = Constant(b)
    rows = statistic.block_rows
    assert rows * statistic.limit2 <= EXACT
    q = int((1 / 3) ** 0.5 * 2**b)
    n = 3 * rows + 1
    total = add_up([np.zeros((n, 1))], statistic.block_sum, rows=rows)
    assert (total.integers() == n * q * q).all()


@pytest.mark.parametrize(("b", "square"), [(27, 1), (26, 2), (40, 1), (26, 4)])
def test_too_fine_a_grid_is_an_error_before_any_read(b, square):
    if square * 4**b <= EXACT // 2:
        assert Constant(b, square=square).limit2
    else:
        with pytest.raises(BadInput, match="fewer bits"):
            _ = Constant(b, square=square).sensitivity2


def test_totals_widen_before_they_could_overflow():
    """2¹² blocks of 2⁵³ are 2⁶⁵: int64 alone would wrap to a wrong number."""
    block = np.array([EXACT, EXACT // 3], dtype=float)
    expected = [2**65, 2**12 * (EXACT // 3)]
    total = Total()
    wrapped = np.zeros(2, dtype=np.int64)
    floating = np.zeros(2)
    for _ in range(2**12):
        total.add(block, 1)
        wrapped += block.astype(np.int64)
        floating += block
    assert total.integers().tolist() == expected
    assert total.rows == 2**12
    # the naive ways are wrong here, so this test can fail
    assert wrapped.tolist() != expected
    assert [int(v) for v in floating] != expected


def test_negative_and_merged_totals():
    a = Total()
    b = Total()
    for _ in range(1500):
        a.add(np.array([-float(EXACT)]), 1)
        b.add(np.array([1.0]), 2)
    a.merge(b)
    a.add(np.array([5.0]), 1)
    assert a.integers().tolist() == [-1500 * EXACT + 1500 + 5]
    assert a.rows == 1500 + 3000 + 1


def blocks_of(count, value=2**55):
    """A total of so many blocks that are as large as a block of int64 may be."""
    total = Total()
    for _ in range(count):
        total.add(np.array([value]), 1)
    return total


def test_two_totals_that_are_still_narrow_are_added():
    total = blocks_of(3, 5)
    total.merge(blocks_of(4, 7))
    assert total.integers().tolist() == [15 + 28]


@pytest.mark.parametrize("counts", [(127, 127, 127), (64, 64, 300), (100, 28, 300), (1, 127, 300)])
def test_merged_totals_widen_before_they_could_overflow(counts):
    """127 blocks of 2⁵⁵ fit int64, three times as many do not; 128 together must leave room for
    what is added then.
    """
    total = Total()
    for count in counts[:-1]:
        total.merge(blocks_of(count))
    merged = blocks_of(counts[-1])
    for _ in range(counts[-1]):
        total.add(np.array([2**55]), 1)
    total.merge(merged)
    whole = sum(counts) + counts[-1]
    assert total.integers().tolist() == [whole * 2**55]
    assert total.rows == whole


def test_threads_are_started_for_several_pieces_only():
    def who(count, threads):
        seen = set()

        def block_sum(block):
            seen.add(threading.current_thread() is threading.main_thread())
            return block.sum(axis=0)

        assert add_up([np.ones((3 * count, 1))], block_sum, rows=3, threads=threads).integers() == [
            3 * count
        ]
        return seen

    assert who(1, 2) == who(1, 1) == who(5, 1) == {True}
    assert who(2, 2) == who(3, 2) == who(5, 2) == {False}


def test_single_numbers_are_added_up_too():
    total = Total()
    for _ in range(300):
        total.add(np.array(2), 1)
    assert total.integers() == 600


def test_nothing_added_is_zero():
    total = add_up([], lambda block: block, rows=10, threads=2)
    assert total.integers() == 0
    assert total.rows == 0


def test_an_exception_in_a_thread_is_not_swallowed():
    def fail(block):
        raise RuntimeError("x")

    for threads in (1, 2):
        with pytest.raises(RuntimeError):
            add_up([np.zeros((10, 1))], fail, rows=3, threads=threads)


@pytest.mark.parametrize(
    "norm2", [Fraction(1, 1000), Fraction(1), Fraction(10**6, 7), Fraction(10**9)]
)
def test_norms_of_every_size_keep_their_limits(norm2):
    statistic = First(norm2)
    reach = float(norm2) ** 0.5
    data = np.array(
        [[reach], [-reach], [reach * (1 + 2**-52)], [2 * reach], [np.inf], [np.nan], [0.0]]
    )
    with np.errstate(all="ignore"):
        q = statistic.integers(data).astype(object)
    assert (q**2 <= statistic.limit2).all()
    assert q[5, 0] == 0
    assert float(q[3, 0]) * statistic.step == pytest.approx(reach, rel=1e-4)


def test_wrong_shapes_are_refused():
    @dataclass(frozen=True)
    class Bad(Sum):
        columns = property(lambda self: 2)
        norm2 = property(lambda self: 1)

        def rows(self, records):
            return np.zeros((len(records) + 1, 2))

    with pytest.raises(BadInput, match="one row of 2 numbers"):
        try_out(enforce(Bad()), Bounds(x=[(-1, 1)]))


@pytest.mark.parametrize(
    ("first", "end", "most"),
    [(0, 0, 3), (4, 4, 1), (0, 9, 4), (5, 14, 4), (7, 8, 9), (2, 12, 1), (3, 27, 8)],
)
def test_rows_are_cut_into_as_few_pieces_as_can_be_and_none_is_too_long(first, end, most):
    """Exactness rests on the longest: one after another, of equal lengths but for the last."""
    found = list(pieces(first, end, most))
    assert [k for piece in found for k in range(piece.start, piece.stop)] == list(range(first, end))
    lengths = [piece.stop - piece.start for piece in found]
    assert len(lengths) == -(-(end - first) // most)
    assert all(length <= most for length in lengths)
    assert len(set(lengths[:-1])) <= 1
    assert not lengths or lengths[0] == -(-(end - first) // len(lengths))


def test_blocks_are_cut_evenly_and_empty_ones_are_left_out():
    blocks = [np.arange(9), np.arange(0), np.arange(4), np.arange(10)]
    lengths = []
    add_up(blocks, lambda piece: lengths.append(len(piece)) or np.zeros(1), rows=4)
    assert lengths == [3, 3, 3, 4, 4, 4, 2]


def test_blas_keeps_to_one_thread():
    """In a process of its own.

    How many threads BLAS has is the whole process's, and threads of other tests may change it.
    """
    found = subprocess.run(
        [
            sys.executable,
            "-c",
            """
from threadpoolctl import threadpool_info, threadpool_limits
from reticent.privacy.statistics import exact_sum as sums

def threads():
    return {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}

with threadpool_limits(2, user_api="blas"):
    with sums.one_blas_thread():
        print(*threads())
    print(*threads())
""",
        ],
        check=True,
        capture_output=True,
        text=True,
    )
    assert found.stdout.split() == ["1", "2"]


def test_a_new_total_is_empty():
    total = Total()
    assert (total.rows, total.integers()) == (0, 0)
    total.merge(Total())
    assert (total.rows, total.integers()) == (0, 0)
    total.add(np.array([3.0]), 2)
    assert (total.rows, total.integers().tolist()) == (2, [3])


def test_totals_move_on_after_128_blocks():
    """2⁷ blocks of 2⁵⁵ make 2⁶²; 2⁵³ is the largest float below which no whole
    number is left out.
    """
    assert (sums._SPILL, EXACT) == (2**7, 2**53)
    total = blocks_of(127)
    assert total._narrow is not None
    total.add(np.array([2**55]), 1)
    assert total._narrow is None
    assert total.integers().tolist() == [2**62]
