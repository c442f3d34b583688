"""Feature cache: features of a partitioned Gram matrix, computed and multiplied once a fit.

A staged fit asks again and again for the Gram matrix of rows (features, residuals), and the
features are the same function of the record each time. Their integers (int32) and the scaled
records (for the residuals) are cached from the first stage on, with their exact Gram matrix; a
later stage needs the products with the residuals only. What is released is the same, bit for bit,
with the cache or without it (statistics.md, 3).

If the rows exceed `CACHE_BYTES`, which public numbers decide, nothing is cached, not even the Gram
matrix of the features: all sums of a stage come from a single pass over the records, even if
somebody changes them between two stages.
"""

import threading
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from reticent.privacy.people.weights import add_limbs, joined
from reticent.privacy.record_sum import RecordSum
from reticent.privacy.statistics.enforced import Enforced
from reticent.privacy.statistics.exact_products import gram
from reticent.privacy.statistics.exact_sum import add_up
from reticent.privacy.statistics.partitioned_gram import EnforcedPartitionedGram

__all__ = ["CACHE_BYTES", "FeatureCache"]

CACHE_BYTES = 2**30  # of cached rows: at 100 columns, 2.6 million records


@dataclass(frozen=True, eq=False)
class _Block:
    """Features of some records of one weight, (rows, m) in grid steps, and the scaled records."""

    features: NDArray[np.int32]
    records: NDArray[np.float64]
    weight: int

    def __len__(self) -> int:
        return len(self.records)

    def __getitem__(self, rows: slice) -> "_Block":
        return _Block(self.features[rows], self.records[rows], self.weight)


@dataclass(frozen=True, eq=False)
class _Features:
    """Features of all records, in blocks, and their exact Gram matrix, (m, m)."""

    key: tuple[Hashable, ...]
    gram: NDArray[Any]
    blocks: list[_Block]
    records: int
    weighted: bool

    def total(self, enforced: EnforcedPartitionedGram, threads: int) -> tuple[int, NDArray[Any]]:
        """Number of records, and the whole Gram matrix, with residuals that are made anew."""
        shape = enforced.columns, enforced.residual_columns

        def block_sum(block: _Block) -> NDArray[Any]:
            products = enforced.residual_products(block.features, block.records)
            if not self.weighted:
                return products
            limbs = np.zeros((2, products.size + 1), np.int64)
            add_limbs(limbs[:, :-1], products.reshape(-1), block.weight)
            return limbs

        products = add_up(self.blocks, block_sum, rows=enforced.block_rows, threads=threads)
        whole = products.integers()
        if self.weighted:
            whole = joined(whole, shape)
        return self.records, enforced.joined(self.gram, whole)


class FeatureCache:
    """Wraps `RecordSum.total` for the statistics of one fit. Never copied, never sent.

    Parameters
    ----------
    cache_bytes : int, optional
        Rows are cached if they take no more; `CACHE_BYTES` if not given.
    keep_totals : bool
        Whether the total of a fit's first statistic is cached too, for fits that are made again.
    """

    def __init__(self, cache_bytes: int | None = None, *, keep_totals: bool = False) -> None:
        self._cache_bytes = cache_bytes
        self._totals: dict[Hashable, tuple[int, NDArray[Any]]] | None = None
        if keep_totals:
            self._totals = {}
        self._features: _Features | None = None
        self._lock = threading.Lock()
        self._open = True

    def total(
        self, sums: RecordSum, enforced: Enforced, *, n: int, keep: bool, first: bool = False
    ) -> tuple[int, NDArray[Any]]:
        """Number of records, and the exact sum: what ``sums.total(enforced)`` gives.

        ``n`` is the number of records. With ``keep``, another stage may follow: features are
        cached if they fit. The ``first`` statistic of a fit does not depend on releases: where the
        same fit is made again, its total is cached.
        """
        if not first or self._totals is None:
            return self._total(sums, enforced, n=n, keep=keep)
        key = enforced.numbers(), enforced.statistic
        if key not in self._totals:
            self._totals[key] = self._total(sums, enforced, n=n, keep=keep)
        return self._totals[key]

    def _total(
        self, sums: RecordSum, enforced: Enforced, *, n: int, keep: bool
    ) -> tuple[int, NDArray[Any]]:
        if not isinstance(enforced, EnforcedPartitionedGram):
            return sums.total(enforced)
        cached = self._features
        if cached is not None and cached.key == _key(enforced):
            return cached.total(enforced, sums.threads)
        self._put(None)
        limit = CACHE_BYTES
        if self._cache_bytes is not None:
            limit = self._cache_bytes
        needed = n * (4 * enforced.feature_columns + 8 * len(sums.fields))
        if sums.weights is not None:
            needed *= sums.weights.most_groups
        if keep and sums.source.local and needed <= limit:
            return self._total_and_keep(sums, enforced, n)
        return sums.total(enforced)

    def _total_and_keep(
        self, sums: RecordSum, enforced: EnforcedPartitionedGram, n: int
    ) -> tuple[int, NDArray[Any]]:
        """The same total, and the features of each block on the way."""
        m = enforced.feature_columns
        blocks = list[_Block]()

        def block_sum(raw: NDArray[np.float64], weight: int = 1) -> NDArray[Any]:
            records = sums.bounds.scale(raw, enforced.output_limit)
            q = enforced.stacked(records)
            blocks.append(_Block(q[:, :m].astype(np.int32), records, weight))  # |q| ≤ 2^26
            return gram(q)

        rows, whole = sums.add_up(block_sum, rows=enforced.block_rows, shape=enforced.sum_shape)
        weighted = sums.weights is not None
        if rows == n and (weighted or n == sum(map(len, blocks))):
            self._put(_Features(_key(enforced), whole[:m, :m], blocks, rows, weighted))
        return rows, whole

    def close(self) -> None:
        """Let go of everything, and cache nothing any more."""
        self._open = False
        self._totals = None
        self._put(None)

    def __reduce__(self) -> NoReturn:
        raise TypeError("A feature cache holds records: it is never copied, pickled or sent.")

    def _put(self, features: _Features | None) -> None:
        with self._lock:
            if self._open:
                self._features = features
            else:
                self._features = None


def _key(enforced: EnforcedPartitionedGram) -> tuple[Hashable, ...]:
    """What decides the integers of features.

    Equality of feature maps is their own word; the other entries hold whatever they say.
    """
    return (
        enforced.feature_columns,
        enforced.feature_limit2,
        enforced.bits,
        enforced.output_limit,
        enforced.complete_records,
        enforced.feature_map,
    )
