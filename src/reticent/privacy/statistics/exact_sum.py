"""Exact sums: the same integers for every order, block size, thread count, machine and file format.

A block sum is made by BLAS (or NumPy) in float64 on integers. It is exact, whatever the order of
the additions, as long as the absolute values of all products of one output add up to at most 2⁵³;
`Statistic.block_rows` is chosen so. (`AssignmentMoments` adds up to four such sums to one in
int64.) Block sums are then added as int64, at most 2⁷ of them (2⁵⁵·2⁷ = 2⁶²), before they move on
to Python's unbounded integers: there is no n at which a total could overflow, and so nothing to
check that depends on records. Products are made in exact_products.py, which checks the BLAS.
Proof: statistics.md, 3.
"""

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from itertools import chain, islice
from typing import Any, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from reticent.memo import memo
from reticent.privacy.guard import suppress_warnings

__all__ = ["EXACT", "Total", "add_up", "one_blas_thread", "pieces"]

EXACT = 2**53  # integers up to here, and sums that stay below, are exact in float64
_SPILL = 2**7  # int64 additions before the total moves on: 2^7 · 2^55 = 2^62


class Records(Protocol):
    """Records that can be cut into pieces: an array, or anything like it."""

    def __len__(self) -> int: ...
    def __getitem__(self, rows: slice, /) -> Self: ...


R = TypeVar("R", bound=Records)


class Total:
    """A running sum of integer arrays that never overflows."""

    def __init__(self) -> None:
        self.rows = 0
        self._narrow: NDArray[np.int64] | None = None
        self._added = 0
        self._wide: Any = 0  # an object array of Python integers once something has spilled

    def add(self, block_sum: NDArray[Any], rows: int) -> None:
        """Add one block's sum.

        Whole numbers of at most 2⁵³ in absolute value, or int64 of at most 2⁵⁵.
        """
        self.rows += rows
        whole = block_sum.astype(
            np.int64
        )  # first: int64 + float64 would be added in float64, and round
        if self._narrow is None:
            self._narrow = whole
        else:
            self._narrow += whole
        self._added += 1
        if self._added == _SPILL:
            self._spill()

    def merge(self, other: "Total") -> None:
        """Add another total to this one."""
        self.rows += other.rows
        self._wide = self._wide + other._wide
        if other._narrow is not None:
            if self._added + other._added >= _SPILL:
                self._spill()
            if self._narrow is None:
                self._narrow = other._narrow.copy()
            else:
                self._narrow = self._narrow + other._narrow
            self._added += other._added

    def integers(self) -> Any:
        """Give the sum as an array of Python integers (0 if nothing was added)."""
        self._spill()
        return self._wide

    def _spill(self) -> None:
        if self._narrow is not None:
            self._wide = np.asarray(self._wide + self._narrow.astype(object), dtype=object)
            self._narrow = None
            self._added = 0


def add_up(
    blocks: Iterable[R], block_sum: Callable[[R], NDArray[Any]], *, rows: int, threads: int = 1
) -> Total:
    """Add ``block_sum(piece)`` over all pieces of at most ``rows`` rows of all ``blocks``."""

    def add_pieces(some: Iterable[R]) -> Total:
        total = Total()
        for piece in some:
            total.add(block_sum(piece), len(piece))
        return total

    cut = (block[piece] for block in blocks for piece in pieces(0, len(block), rows))
    return _add_in_threads(add_pieces, cut, threads)


def _add_in_threads(
    add_pieces: Callable[[Iterable[R]], Total], cut: Iterator[R], threads: int
) -> Total:
    """Totals of ``threads`` threads that take turns at the pieces, merged into one.

    BLAS is kept to one thread of its own: on a busy machine BLAS's own threads wait for each other,
    these do not. A single piece needs no thread. Warnings are suppressed: one would say something
    about a record.
    """
    with suppress_warnings():
        first_two = list(islice(cut, 2))
    waiting = _TakeTurns(chain(first_two, cut))

    def work() -> Total:
        with suppress_warnings():
            return add_pieces(waiting)

    with one_blas_thread():
        if threads == 1 or len(first_two) < 2:
            return work()
        with ThreadPoolExecutor(threads) as pool:
            total = Total()
            try:
                for future in [pool.submit(work) for _ in range(threads)]:
                    total.merge(future.result())
            finally:
                waiting.stop()  # interrupted: the other threads need not read to the end
            return total


class _TakeTurns(Iterator[R]):
    """An iterator that several threads draw from, one at a time, until it is stopped."""

    def __init__(self, items: Iterator[R]) -> None:
        self._items = items
        self._turn = threading.Lock()
        self._stopped = threading.Event()

    def __next__(self) -> R:
        with self._turn:
            if self._stopped.is_set():
                raise StopIteration
            return next(self._items)

    def stop(self) -> None:
        self._stopped.set()


def one_blas_thread() -> AbstractContextManager[object]:
    """A context in which BLAS keeps to one thread.

    On a busy machine its own threads wait for each other.
    """
    return _blas().limit(limits=1, user_api="blas")


@memo(1)
def _blas() -> ThreadpoolController:
    return ThreadpoolController()  # looks through all loaded libraries, which takes a while


def pieces(first: int, end: int, most: int) -> Iterator[slice]:
    """Cut rows ``first`` to ``end`` into equal pieces of at most ``most``.

    A short one costs nearly as much as a long one.
    """
    rows = end - first
    if rows:
        size = -(-rows // -(-rows // most))
    else:
        size = 1
    return (slice(start, min(start + size, end)) for start in range(first, end, size))
