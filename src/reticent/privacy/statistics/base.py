"""Statistics: sums over the records, whose sensitivity the core enforces.

A model subclasses one of the kinds and writes the map from a record to its row; the kind does the
rest:

    Sum                Σ f(record)              f: a vector with ‖f‖² ≤ norm2
    Gram               Σ f(record) f(record)ᵀ   f: a vector with ‖f‖² ≤ norm2
    Counts             one count per group      f: for each group of cells, the record's cell
    AssignmentMoments  Σ γ_k (1, u_k, u_k u_kᵀ) γ: responsibilities of K parts, Σ γ_k ≤ 1; ‖u_k‖ ≤ 1

`CellSum` is a Sum whose rows are zero but for the numbers of one cell; `PartitionedGram` is a Gram
whose rows have a part that stays the same from release to release; `ColumnSum` adds up single
columns, with the number of records that have a value in each.

The bound travels with the map and is *enforced*: rows are truncated toward zero onto a grid of 2⁻ᵇ,
which cannot lengthen them, and a row that is still too long, or not a number, is shortened on the
integers. A wrong claim costs accuracy, never privacy. Limits and noise come from one object
(`enforced.Enforced`) that the core makes of the statistic's numbers, each asked for once. Whatever
else a subclass says, of its sensitivity for example, is not asked for.

The map must be a function of one record, bit for bit: elementwise + − × ÷, comparisons, table
look-ups; no float matrix product, no transcendental function, nothing across rows. What is computed
from the rows: privacy/reference.py, in plain loops. Proof: statistics.md.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from reticent.privacy.guard import map_rows_safely
from reticent.privacy.statistics.enforced import Enforced, enforce, positive, whole
from reticent.privacy.statistics.integer_grid import limit, quantize_and_clip

if TYPE_CHECKING:
    from reticent.privacy.release import Release

__all__ = ["RowMap", "RowStatistic", "Statistic"]

Rows = NDArray[np.float64]
# numbers in a block of rows: about 1 MB, so that all passes over it stay in cache
BLOCK_NUMBERS = 2**17
MOST_BITS = 400  # of a grid, either way: powers of two that floats hold


@dataclass(frozen=True)
class Statistic(ABC):  # noqa: B024 - the kinds have abstract maps
    """Abstract: an exact integer sum over records, with its sensitivity.

    The sensitivity is the one under the replacement of one record.
    Subclasses are frozen dataclasses; their fields are public and are written into the release.
    What is below tells what the core makes of a statistic, each time anew; releases do not ask for
    it here.
    """

    output_limit: ClassVar[float] = (
        1.0  # how far from the middle outputs may lie, in half-ranges of their bounds
    )
    # Whether a record that lacks a value adds nothing; otherwise the map sees NaN for the value.
    complete_records: ClassVar[bool] = True

    @property
    def kind(self) -> str:
        """One word for what is added up."""
        return enforce(self).kind

    @property
    def size(self) -> int:
        """How many numbers are released."""
        return enforce(self).size

    @property
    def sensitivity2(self) -> int:
        """Squared L2 distance, in grid steps, that replacing one record can move the sum.

        Off-diagonal numbers of a Gram matrix count twice.
        """
        return enforce(self).sensitivity2

    @property
    def sensitivity1(self) -> int | None:
        """L1 distance, in grid steps, or None where no L1 bound is enforced."""
        return enforce(self).sensitivity1

    @property
    def step(self) -> float:
        """The grid step of the released numbers: a power of two."""
        return enforce(self).step

    @property
    def block_rows(self) -> int:
        """Rows per block such that a block's sum is exact in float64."""
        return enforce(self).block_rows

    def block_sum(self, records: Rows) -> NDArray[Any]:
        """Sum over one block of scaled records, as whole numbers."""
        return enforce(self).block_sum(records)

    def coordinates(self, total: NDArray[Any]) -> NDArray[Any]:
        """The released numbers of a total, each once."""
        return enforce(self).coordinates(total)

    def coordinate_multiplicity(self) -> NDArray[np.int64]:
        """For each released number, how often its square counts in the squared distance.

        Once, or twice off a Gram matrix's diagonal.
        """
        return enforce(self).coordinate_multiplicity()

    def accumulates(self) -> NDArray[np.bool_]:
        """Which of the released numbers of a stream are worth adding up over its steps."""
        return enforce(self).accumulates()

    def describe(self) -> dict[str, Any]:
        """Everything public about the statistic, in plain JSON values."""
        return enforce(self).describe()

    @classmethod
    def decode(cls, release: "Release") -> object:
        """Released numbers of this statistic as a frozen dataclass with named arrays.

        A row map says in its own ``decode`` what the arrays are; without one, the release itself.
        The fields are those that the release tells: what was asked counts, since another machine
        may compute other last digits.
        """
        return release


class RowMap(ABC):
    """Abstract: a map from records to rows of bounded length."""

    @property
    @abstractmethod
    def columns(self) -> int:
        """Length of a row."""

    @property
    @abstractmethod
    def norm2(self) -> int | Fraction:
        """Bound on a row's squared Euclidean length."""

    @abstractmethod
    def rows(self, records: Rows) -> Rows:
        """Map scaled records (`Bounds.scale`) to rows, each a function of its own record alone.

        That is meant bit for bit. The records cannot be changed. If rows cannot be made, for
        whatever reason, the records are given one by one; one that fails alone has a row of zeros.
        """


def limits(statistic: "RowStatistic", name: str) -> tuple[int, int]:
    """The grid that rows are truncated to, and ``norm2`` on it, rounded down.

    What a row's squared length is held to.
    """
    bits = whole(f"{name}.bits", statistic.bits, -MOST_BITS, MOST_BITS)
    norm2 = positive(f"{name}.norm2", statistic.norm2)
    return bits, limit(norm2, Fraction(4) ** bits, f"{name}: norm2 · 4^bits")


class RowStatistic(Statistic, RowMap):
    """Abstract: statistics whose records become rows of bounded length."""

    @property
    @abstractmethod
    def bits(self) -> int:
        """Grid: row entries are multiples of 2⁻ᵇ."""

    @property
    def limit2(self) -> int:
        """``norm2`` on the grid, rounded down.

        What the squared length of the integer row is held to.
        """
        limit2: int = enforce(self).limit2  # type: ignore[attr-defined]
        return limit2

    @property
    def limit1(self) -> int | None:
        """``norm1`` on the grid, rounded down."""
        limit1: int | None = enforce(self).limit1  # type: ignore[attr-defined]
        return limit1

    def integers(self, records: Rows) -> Rows:
        """Rows on the integer grid, as whole float64 numbers, each within the limits."""
        integers: Rows = enforce(self).integers(records)  # type: ignore[attr-defined]
        return integers


@dataclass(frozen=True, eq=False)
class EnforcedRows(Enforced):
    """Abstract: rows of ``columns`` numbers, clipped to Σq² ≤ limit2 on a grid of 2⁻ᵇ.

    Where asked, also to Σ|q| ≤ limit1 and to q ≥ 0.
    """

    columns: int
    bits: int
    limit2: int
    limit1: int | None = None
    nonnegative: bool = False

    def integers(self, records: Rows) -> Rows:
        """Rows on the integer grid, as whole float64 numbers, each within the limits."""
        shape = len(records), self.columns
        filled, lacking = self.fill(records)
        rows = map_rows_safely(
            f"{self.name}.rows", lambda some: self.statistic.rows(some), shape, filled
        )
        q = quantize_and_clip(
            rows, self.bits, self.limit2, limit1=self.limit1, nonnegative=self.nonnegative
        )
        if lacking is not None:
            q[lacking] = 0.0
        return q
