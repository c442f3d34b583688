"""Sums: Σ f(record), where f is a vector with ‖f‖² ≤ norm2.

Where stated, ‖f‖₁ ≤ norm1 and f ≥ 0 are enforced as well. On request the number of complete records
is released along, as one more coordinate w·Σ1 with a weight w so small that it costs nothing: two
complete records differ by ‖f − g‖ ≤ 2·norm in the rest and not at all in the count; a complete and
an incomplete one by (‖f‖² + w²)^½, which is no more as long as w² ≤ 3·norm2. Proof: statistics.md,
2 to 4.

A `ColumnSum` does the same column by column, for records that may lack any of their values:

    ColumnSum   for each column j   Σ v_j   and   w·Σ 1[the record has v_j],   |v_j| ≤ 1

In one column two records that have a value differ by at most 2 in the sum and not at all in the
count; one that has it and one that lacks it by |v| ≤ 1 and w. So the counts cost nothing as long as
1 + w² ≤ 4 for Gaussian noise, or 1 + w ≤ 2 for Laplace noise. Proof: column_sum.md.
"""

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from reticent.errors import BadInput
from reticent.privacy.guard import map_rows_safely
from reticent.privacy.statistics.base import (
    BLOCK_NUMBERS,
    EnforcedRows,
    Rows,
    RowStatistic,
    Statistic,
    limits,
)
from reticent.privacy.statistics.enforced import (
    Enforced,
    Sensitivity,
    common,
    enforce,
    is_kind,
    positive,
    whole,
)
from reticent.privacy.statistics.integer_grid import limit, log2_ceiling

__all__ = ["COLUMN_BITS", "ColumnSum", "EnforcedColumnSum", "EnforcedSum", "Sum", "sum_limits"]

COLUMN_BITS = 24  # values of single columns are multiples of 2⁻²⁴
_ONE = 2**COLUMN_BITS
# Under add-remove a count costs: its squared length is one part in so many of the row's. Noise of
# the row is 6 % larger for it, and the count's standard deviation three times the noise multiplier.
COUNT_RATIO = 8


@dataclass(frozen=True, eq=False)
class EnforcedSum(EnforcedRows):
    """Σ f(record)."""

    counts_records: bool = False

    kind: ClassVar[str] = "sum"
    saved_as: ClassVar[str] = "SumPlan"

    @property
    def size(self) -> int:
        """How many numbers are released."""
        return self.columns + self.counts_records

    @property
    def sensitivity2(self) -> int:
        """‖f − g‖² ≤ (‖f‖ + ‖g‖)² ≤ 4·limit2.

        For f, g ≥ 0 the mixed term is not positive: 2·limit2. Against an incomplete record
        ‖f‖² + w² ≤ limit2 + (that − limit2), with w the `count_weight`.
        """
        return (2 if self.nonnegative else 4) * self.limit2

    @property
    def count_weight(self) -> int:
        """What a complete record adds to the last coordinate, in grid steps: w.

        w² ≤ 3·limit2 (limit2 where rows are not negative), and w ≤ limit1 where there is one.
        """
        weight = isqrt((1 if self.nonnegative else 3) * self.limit2)
        if self.limit1 is not None:
            weight = min(weight, self.limit1)
        return weight

    @property
    def sensitivity1(self) -> int | None:
        """‖f − g‖₁ ≤ 2·limit1; against an incomplete record ‖f‖₁ + w ≤ 2·limit1."""
        if self.limit1 is None:
            return None
        return 2 * self.limit1

    def contribution(self) -> Sensitivity:
        """‖f‖² ≤ limit2, and ‖f‖₁ ≤ limit1.

        A count of w each has noise of its own, so that it lengthens a row by an eighth at most:
        with the multiplicities m of the row's numbers and 1 of the count, m·limit2 + w².
        """
        multiplicity = self.coordinate_multiplicity()
        if not self.counts_records:
            return Sensitivity(self.limit2, self.limit1, multiplicity)
        weight = self.count_weight
        times = COUNT_RATIO * -(-(weight**2) // self.limit2)
        multiplicity[:-1] *= times
        l1 = None
        if self.limit1 is not None:
            l1 = self.limit1 + weight
        return Sensitivity(times * self.limit2 + weight**2, l1, multiplicity)

    @property
    def step(self) -> float:
        """The grid step 2⁻ᵇ."""
        return 2.0**-self.bits

    @property
    def block_rows(self) -> int:
        """No entry is longer than √limit2 < 2²⁶: any block that fits in cache is exact."""
        return max(64, min(BLOCK_NUMBERS // self.columns, 2**26))

    def block_sum(self, records: Rows) -> NDArray[Any]:
        """Column sums of the integer rows, and the weighted number of complete records."""
        total: Rows = self.integers(records).sum(axis=0)
        if not self.counts_records:
            return total
        _, lacking = self.fill(records)
        complete = len(records)
        if lacking is not None:
            complete -= int(lacking.sum())
        return np.append(total, float(complete * self.count_weight))


def sum_limits(statistic: "Sum", name: str) -> tuple[int, int, int | None, bool]:
    """Bits, limit2, limit1 and whether rows are held to q ≥ 0."""
    bits, limit2 = limits(statistic, name)
    norm1 = statistic.norm1
    limit1 = None
    if norm1 is not None:
        limit1 = limit(
            positive(f"{name}.norm1", norm1), Fraction(2) ** bits, f"{name}: norm1 · 2^bits"
        )
    return bits, limit2, limit1, bool(statistic.nonnegative)


def _enforced_sum(statistic: "Sum") -> EnforcedSum:
    who = common(statistic)
    columns = whole(f"{who[1]}.columns", statistic.columns)
    bits, limit2, limit1, nonnegative = sum_limits(statistic, who[1])
    counts_records = bool(statistic.counts_records)
    if counts_records and not who[3]:
        raise BadInput(f"{who[1]} counts complete records, and so must ask for complete_records.")
    return EnforcedSum(*who, columns, bits, limit2, limit1, nonnegative, counts_records)


@is_kind(_enforced_sum)
class Sum(RowStatistic):
    """Abstract: Σ f(record)."""

    @property
    def bits(self) -> int:
        """Grid: as fine as exactness allows, at most 2⁻²⁴."""
        return min(24, (50 - log2_ceiling(self.norm2)) // 2)

    @property
    def norm1(self) -> int | Fraction | None:
        """Bound on the sum of a row's absolute values, where Laplace noise is wanted."""
        return None

    @property
    def nonnegative(self) -> bool:
        """Whether rows have no negative entries: those that have are held to zero."""
        return False

    @property
    def counts_records(self) -> bool:
        """Whether the number of complete records is released along, which costs nothing."""
        return False


# ---- single columns


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

    def contribution(self) -> Sensitivity:
        """In each column v² ≤ 1 and w², with m the multiplicity of sums, and 1 that of counts."""
        times = COUNT_RATIO * -(-(self.count_weight**2) // _ONE**2)
        multiplicity = self.coordinate_multiplicity()
        multiplicity[: self.columns] *= times
        each = times * _ONE**2 + self.count_weight**2
        l1 = self.columns * (_ONE + self.count_weight)
        return Sensitivity(self.columns * each, l1, multiplicity)

    @property
    def step(self) -> float:
        """The grid step 2⁻²⁴."""
        return 2.0**-COLUMN_BITS

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
        values = np.trunc(found.astype(np.float64) * 2.0**COLUMN_BITS)
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
