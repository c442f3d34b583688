"""Exact sums: the same integers for every order, block size, thread count, machine and file format.

A block sum is made by BLAS (or NumPy) in float64 on integers. It is exact, whatever the order of the additions, as long
as the absolute values of all products of one output add up to at most 2⁵³; `Statistic.block_rows` is chosen so. (`Shared`
adds up to four such sums to one in int64.) Block sums are then added as int64, at most 2⁷ of them (2⁵⁵·2⁷ = 2⁶²), before they
move on to Python's unbounded integers: there is no n at which a total could overflow, and so nothing to check that depends on
records. Products are made in products.py, which checks the BLAS. Proof: statistic.md, 3.
"""

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, islice
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from reticent.memo import memo
from reticent.privacy.guard import quiet

__all__ = ["EXACT", "Total", "add_up", "one_blas_thread", "pieces"]

EXACT = 2**53  # integers up to here, and sums that stay below, are exact in float64
_SPILL = 2**7  # int64 additions before the total moves on: 2^7 · 2^55 = 2^62


class Records(Protocol):
    """Records that can be cut into pieces: an array, or anything like it."""

    def __len__(self) -> int: ...
    def __getitem__(self, rows: slice, /) -> Any: ...


R = TypeVar("R", bound=Records)


class Total:
    """A running sum of integer arrays that never overflows."""

    def __init__(self) -> None:
        self.rows = 0
        self._narrow: NDArray[np.int64] | None = None
        self._added = 0
        self._wide: Any = 0  # an object array of Python integers once something has spilled

    def add(self, block_sum: NDArray[Any], rows: int) -> None:
        """Add one block's sum: whole numbers of at most 2⁵³ in absolute value, or int64 of at most 2⁵⁵."""
        self.rows += rows
        whole = block_sum.astype(np.int64)  # first: int64 + float64 would be added in float64, and round
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
            self._narrow = other._narrow.copy() if self._narrow is None else self._narrow + other._narrow
            self._added += other._added

    def integers(self) -> Any:
        """Give the sum as an array of Python integers (0 if nothing was added)."""
        self._spill()
        return self._wide

    def _spill(self) -> None:
        if self._narrow is not None:
            self._wide = np.asarray(self._wide + self._narrow.astype(object), dtype=object)
            self._narrow, self._added = None, 0


def add_up(blocks: Iterable[R], block_sum: Callable[[R], NDArray[Any]], *, rows: int, threads: int = 1) -> Total:
    """Add ``block_sum(piece)`` over all pieces of at most ``rows`` rows of all ``blocks``.

    ``threads`` Python threads take turns at the iterator, and BLAS is kept to one thread of its own: on a busy machine
    BLAS's own threads wait for each other, these do not.
    """
    turn = threading.Lock()
    stopped = threading.Event()
    rest = (block[piece] for block in blocks for piece in pieces(0, len(block), rows))
    with quiet():
        start = list(islice(rest, 2))
    threads = threads if len(start) == 2 else 1
    waiting = chain(start, rest)

    def work() -> Total:
        total = Total()
        with quiet():  # a warning would say something about a record
            while True:
                with turn:
                    piece = None if stopped.is_set() else next(waiting, None)
                if piece is None:
                    return total
                total.add(block_sum(piece), len(piece))

    with one_blas_thread():
        if threads == 1:
            return work()
        with ThreadPoolExecutor(threads) as pool:
            total = Total()
            try:
                for future in [pool.submit(work) for _ in range(threads)]:
                    total.merge(future.result())
            finally:
                stopped.set()  # interrupted: the other threads need not read to the end
            return total


def one_blas_thread() -> Any:
    """A context in which BLAS keeps to one thread: on a busy machine its own threads wait for each other."""
    return _blas().limit(limits=1, user_api="blas")


@memo(1)
def _blas() -> ThreadpoolController:
    return ThreadpoolController()  # looks through all loaded libraries, which takes a while


def pieces(first: int, end: int, most: int) -> Iterator[slice]:
    """Cut rows ``first`` to ``end`` into equal pieces of at most ``most``: a short one costs nearly as much as a long one."""
    rows = end - first
    size = -(-rows // -(-rows // most)) if rows else 1
    return (slice(start, min(start + size, end)) for start in range(first, end, size))
