"""Sums: Σ f(record), where f is a vector with ‖f‖² ≤ norm2.

Where stated, ‖f‖₁ ≤ norm1 and f ≥ 0 are enforced as well. On request the number of complete records
is released along, as one more coordinate w·Σ1 with a weight w so small that it costs nothing: two
complete records differ by ‖f − g‖ ≤ 2·norm in the rest and not at all in the count; a complete and
an incomplete one by (‖f‖² + w²)^½, which is no more as long as w² ≤ 3·norm2. Proof: statistics.md,
2 to 4.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from reticent.errors import BadInput
from reticent.privacy.statistics.base import BLOCK_NUMBERS, EnforcedRows, Rows, RowStatistic, limits
from reticent.privacy.statistics.enforced import common, is_kind, positive, whole
from reticent.privacy.statistics.integer_grid import limit, log2_ceiling

__all__ = ["EnforcedSum", "Sum", "sum_limits"]


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
