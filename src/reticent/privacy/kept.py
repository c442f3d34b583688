"""What a curator keeps between the stages of one fit: the heads of a staged statistic, made and multiplied once.

A staged fit asks again and again for the Gram matrix of rows (head, tail), and the head is the same function of the record each
time. Its integers (int32) and the scaled records (for the tails) are kept from the first stage on, with their exact Gram matrix;
a later stage needs the products with the tail only. What is released is the same, bit for bit (statistic.md, 3).

Rows are kept if they fit `MEMORY`, which public numbers decide. If not, nothing is kept, the Gram matrix of the heads neither:
all sums of a stage come from the same reading of the records, even if somebody changes them between two stages.
"""

import threading
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from reticent.errors import BadInput
from reticent.privacy.bounds import Bounds
from reticent.privacy.guard import noted
from reticent.privacy.plan import Plan
from reticent.privacy.products import gram
from reticent.privacy.sources import Field, Source
from reticent.privacy.staged import StagedPlan
from reticent.privacy.sums import add_up

__all__ = ["BlockSum", "Keeper", "public_records", "try_out"]

MEMORY = 2**30  # bytes of kept rows: at 100 columns, 2.6 million records


@dataclass(frozen=True)
class BlockSum:
    """From a block of raw records to its integer sum; travels to other threads and machines."""

    plan: Plan
    bounds: Bounds

    def __call__(self, raw: NDArray[np.float64]) -> NDArray[Any]:
        """Sum over one block."""
        return self.plan.block_sum(self.bounds.unit(raw, self.plan.output_reach))


def public_records(bounds: Bounds) -> NDArray[np.float64]:
    """Three raw records that are nobody's: the lower ends of all ranges, their middles, and their upper ends."""
    ranges = [*bounds.x]
    if bounds.level is not None:
        ranges.append((bounds.level.low, bounds.level.high))
    ranges += bounds.y
    low, high = np.array(ranges).T
    records = np.stack([low, low / 2 + high / 2, high])
    if bounds.classes is not None:
        labels = np.array([0, 0, len(bounds.classes) - 1])
        records = np.column_stack([records, labels])
    return records


def try_out(plan: Plan, bounds: Bounds) -> None:
    """Ask for rows of public records, and refuse a map that fails for them: on records it would do so in silence."""
    block_sum = BlockSum(plan, bounds)
    records = public_records(bounds)
    with noted() as failures:
        block_sum(records)
        block_sum(records[:1])
    if failures:
        raise BadInput(
            f"{failures[0]}. It was asked for rows of the middle and the ends of the bounds, scaled, which are no records: "
            "ask it yourself for those of np.zeros((2, columns)) to see why."
        )


@dataclass(frozen=True, eq=False)
class _Block:
    """Heads of some records, in grid steps, and the scaled records."""

    heads: NDArray[np.int32]
    records: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.records)

    def __getitem__(self, rows: slice) -> "_Block":
        return _Block(self.heads[rows], self.records[rows])


@dataclass(frozen=True, eq=False)
class _Heads:
    """All heads of one kind, and their exact Gram matrix."""

    key: tuple[Any, ...]
    gram: Any
    blocks: list[_Block]


class Keeper:
    """Adds up statistics over the records of one curator. Never copied, never sent."""

    def __init__(self, bounds: Bounds, memory: int | None = None, *, again: bool = False) -> None:
        self._bounds, self._memory = bounds, memory
        self._totals: dict[Any, Any] | None = {} if again else None  # of first statistics, which many fits begin with
        self._heads: _Heads | None = None
        self._lock, self._open = threading.Lock(), True

    def total(
        self,
        source: Source,
        fields: tuple[Field, ...],
        plan: Plan,
        *,
        n: int,
        threads: int,
        keep: bool,
        first: bool = False,
    ) -> tuple[int, Any]:
        """Number of records read, and the exact sum. With ``keep``, another stage may follow: heads are kept if they fit.

        The ``first`` statistic of a fit does not depend on releases: where the same fit is made again, its sum is kept too.
        """
        if not first or self._totals is None:
            return self._sum(source, fields, plan, n=n, threads=threads, keep=keep)
        key = plan.numbers(), plan.statistic
        if key not in self._totals:
            self._totals[key] = self._sum(source, fields, plan, n=n, threads=threads, keep=keep)
        return self._totals[key]

    def _sum(
        self, source: Source, fields: tuple[Field, ...], plan: Plan, *, n: int, threads: int, keep: bool
    ) -> tuple[int, Any]:
        rows = plan.block_rows
        if isinstance(plan, StagedPlan):
            heads = self._heads
            key = _key(plan)
            if heads is not None and heads.key == key:
                known = heads.blocks
                tails = add_up(known, lambda b: plan.tail_sum(b.heads, b.records), rows=rows, threads=threads)
                return tails.rows, plan.joined(heads.gram, tails.integers())
            self._put(None)
            most = MEMORY if self._memory is None else self._memory
            if keep and source.local and n * (4 * plan.head_columns + 8 * len(fields)) <= most:
                return self._sum_and_keep(source, fields, plan, n=n, threads=threads)
        total = source.total(fields, BlockSum(plan, self._bounds), rows=rows, threads=threads)
        return total.rows, total.integers()

    def _sum_and_keep(
        self, source: Source, fields: tuple[Field, ...], plan: StagedPlan, *, n: int, threads: int
    ) -> tuple[int, Any]:
        m = plan.head_columns
        blocks = list[_Block]()

        def block_sum(raw: NDArray[np.float64]) -> NDArray[Any]:
            records = self._bounds.unit(raw, plan.output_reach)
            q = plan.stacked(records)
            blocks.append(_Block(q[:, :m].astype(np.int32), records))  # |q| ≤ 2^26
            return gram(q)

        total = source.total(fields, block_sum, rows=plan.block_rows, threads=threads)
        whole = total.integers()
        if total.rows == n == sum(map(len, blocks)):
            self._put(_Heads(_key(plan), whole[:m, :m], blocks))
        return total.rows, whole

    def close(self) -> None:
        """Let go of everything, and keep nothing any more."""
        self._open, self._totals = False, None
        self._put(None)

    def __reduce__(self) -> NoReturn:
        raise TypeError("A keeper holds records: it is never copied, pickled or sent.")

    def _put(self, heads: _Heads | None) -> None:
        with self._lock:
            self._heads = heads if self._open else None


def _key(plan: StagedPlan) -> tuple[Any, ...]:
    """What makes a head's integers. Equality is the head's own word; the other entries hold whatever it says."""
    return plan.head_columns, plan.head_limit2, plan.bits, plan.output_reach, plan.head
