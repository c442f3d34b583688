"""Sums: Σ f(record), where f is a vector with ‖f‖² ≤ norm2.

Where stated, ‖f‖₁ ≤ norm1 and f ≥ 0 are enforced as well. Proof: statistics.md, 2 to 4.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from numpy.typing import NDArray

from reticent.privacy.statistics.base import BLOCK_NUMBERS, EnforcedRows, Rows, RowStatistic, limits
from reticent.privacy.statistics.enforced import common, is_kind, positive, whole
from reticent.privacy.statistics.integer_grid import limit, log2_ceiling

__all__ = ["EnforcedSum", "Sum", "sum_limits"]


@dataclass(frozen=True, eq=False)
class EnforcedSum(EnforcedRows):
    """Σ f(record)."""

    kind: ClassVar[str] = "sum"
    saved_as: ClassVar[str] = "SumPlan"

    @property
    def size(self) -> int:
        """How many numbers are released."""
        return self.columns

    @property
    def sensitivity2(self) -> int:
        """‖f − g‖² ≤ (‖f‖ + ‖g‖)² ≤ 4·limit2.

        For f, g ≥ 0 the mixed term is not positive: 2·limit2.
        """
        return (2 if self.nonnegative else 4) * self.limit2

    @property
    def sensitivity1(self) -> int | None:
        """‖f − g‖₁ ≤ 2·limit1."""
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
        """Column sums of the integer rows."""
        total: Rows = self.integers(records).sum(axis=0)
        return total


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
    return EnforcedSum(*who, columns, bits, limit2, limit1, nonnegative)


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
