"""Sums of single columns, each with the number of records that have a value in it.

    ColumnSum   for each column j   Σ v_j   and   w·Σ 1[the record has v_j],   |v_j| ≤ 1

A record may lack any of its values. In one column two records that have a value differ by at most 2
in the sum and not at all in the count; one that has it and one that lacks it by |v| ≤ 1 and w. So
the counts cost nothing as long as 1 + w² ≤ 4 for Gaussian noise, or 1 + w ≤ 2 for Laplace noise.
Proof: column_sum.md.
"""

from abc import abstractmethod
from dataclasses import dataclass
from math import isqrt
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from reticent.privacy.guard import map_rows_safely
from reticent.privacy.statistics.base import BLOCK_NUMBERS, Rows, Statistic
from reticent.privacy.statistics.enforced import Enforced, common, enforce, is_kind, whole

__all__ = ["BITS", "ColumnSum", "EnforcedColumnSum"]

BITS = 24  # values are multiples of 2⁻²⁴
_ONE = 2**BITS


@final
@dataclass(frozen=True, eq=False)
class EnforcedColumnSum(Enforced):
    """For each of ``columns`` columns the sum of its values, then for each the weighted count."""

    columns: int
    laplace: bool

    kind: ClassVar[str] = "sum"
    saved_as: ClassVar[str] = "ColumnSumPlan"

    @property
    def size(self) -> int:
        """A sum and a count of each column."""
        return 2 * self.columns

    @property
    def count_weight(self) -> int:
        """What a record that has a value adds to its column's count, in grid steps: w.

        w² ≤ 3 for Gaussian noise, w ≤ 1 for Laplace noise, with values up to 1.
        """
        if self.laplace:
            return _ONE
        return isqrt(3 * _ONE**2)

    @property
    def sensitivity2(self) -> int:
        """In each column (v − v′)² ≤ 4 or v² + w², whichever is larger."""
        return self.columns * max(4 * _ONE**2, _ONE**2 + self.count_weight**2)

    @property
    def sensitivity1(self) -> int | None:
        """In each column |v − v′| ≤ 2 or |v| + w, whichever is larger."""
        return self.columns * max(2 * _ONE, _ONE + self.count_weight)

    @property
    def step(self) -> float:
        """The grid step 2⁻²⁴."""
        return 2.0**-BITS

    @property
    def block_rows(self) -> int:
        """No entry is above 2²⁵: any block that fits in cache is exact."""
        return max(64, BLOCK_NUMBERS // self.columns)

    def integers(self, records: Rows) -> Rows:
        """What each record adds, as whole float64 numbers: its values, then w where it has one."""
        shape = len(records), self.columns
        filled, lacking = self.fill(records)
        found = map_rows_safely(
            f"{self.name}.values", lambda some: self.statistic.values(some), shape, filled
        )
        values = np.trunc(found.astype(np.float64) * 2.0**BITS)
        present = ~np.isnan(values)
        if lacking is not None:
            present[lacking] = False
        q = np.where(present, np.clip(values, -float(_ONE), float(_ONE)), 0.0)
        return np.hstack([q, present * float(self.count_weight)])

    def block_sum(self, records: Rows) -> NDArray[Any]:
        """Sums of one block: whole float64 numbers below 2⁵³."""
        total: Rows = self.integers(records).sum(axis=0)
        return total


def _enforced_column_sum(statistic: "ColumnSum") -> EnforcedColumnSum:
    who = common(statistic)
    columns = whole(f"{who[1]}.columns", statistic.columns)
    return EnforcedColumnSum(*who, columns, bool(statistic.laplace))


@is_kind(_enforced_column_sum)
class ColumnSum(Statistic):
    """Abstract: for each column the sum of its values, and how many records have one."""

    # The map sees NaN: a record that lacks one value still counts in the other columns.
    complete_records: ClassVar[bool] = False

    @property
    @abstractmethod
    def columns(self) -> int:
        """How many columns are added up."""

    @property
    def laplace(self) -> bool:
        """Whether the counts shall be free under Laplace noise; otherwise under Gaussian noise."""
        return False

    @abstractmethod
    def values(self, records: Rows) -> Rows:
        """For each scaled record and column the value, moved to [−1, 1]; NaN if it has none.

        A function of that record alone, bit for bit.
        """

    @property
    def count_weight(self) -> float:
        """What a record that has a value adds to the count of its column."""
        enforced: EnforcedColumnSum = enforce(self)  # type: ignore[assignment]
        return enforced.count_weight * enforced.step
