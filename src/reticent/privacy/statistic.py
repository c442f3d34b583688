"""Statistics: what is added up over the records, and how far one record can move the sum.

There are four kinds. A model subclasses one of them and writes the map from a record to its row; the kind does the rest:

    Sum      Σ f(record)               f: a vector with ‖f‖² ≤ norm2 (and ‖f‖₁ ≤ norm1, and f ≥ 0, where stated)
    Gram     Σ f(record) f(record)ᵀ    f: a vector with ‖f‖² ≤ norm2
    Counts   one count per group       f: for each group of cells, the cell the record falls into
    Shared   Σ γ_k (1, u_k, u_k u_kᵀ)  γ: responsibilities of K parts that add up to at most one, ‖u_k‖ ≤ 1 (shared.py)

(`staged.StagedGram` is a Gram whose rows have a part that stays the same from release to release; `celled.CellSum` is a Sum
whose rows are zero but for the numbers of one cell.)

The bound travels with the map and is *enforced*: rows are truncated toward zero onto a grid of 2⁻ᵇ (which cannot lengthen
them) and every row that is still too long, or not a number, is shortened on the integers. A wrong claim costs accuracy,
never privacy. What is enforced and how much noise there is come from one plan (plan.py), which the core makes of the
statistic's numbers, asked once; what else a subclass says, of its sensitivity for example, is not asked.

The map must be a function of one record, bit for bit: elementwise + − × ÷, comparisons, table look-ups; no float matrix
product, no transcendental function, nothing across rows. Proof of all that is claimed here: statistic.md.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from reticent.errors import BadInput
from reticent.memo import memo
from reticent.privacy.grid import held, limit, log2_ceiling
from reticent.privacy.guard import mapped
from reticent.privacy.plan import Plan, common, is_kind, planned, positive, whole
from reticent.privacy.products import gram
from reticent.privacy.sums import EXACT, pieces

__all__ = ["Counts", "Gram", "Statistic", "Sum"]

Rows = NDArray[np.float64]
_CACHE = 2**17  # numbers in a block of rows: about 1 MB, so that all passes over it stay in cache
MOST_BITS = 400  # of a grid, either way: powers of two that floats hold


@dataclass(frozen=True)
class Statistic(ABC):  # noqa: B024 - the kinds have abstract maps
    """Abstract: an exact integer sum over records, with its sensitivity under the replacement of one record.

    Subclasses are frozen dataclasses; their fields are public and are written into the release. What is below tells what the
    core makes of a statistic, each time anew; releases do not ask for it here.
    """

    output_reach: ClassVar[float] = 1.0  # how far from the middle outputs may lie, in half-ranges of their bounds

    @property
    def kind(self) -> str:
        """One word for what is added up."""
        return planned(self).kind

    @property
    def size(self) -> int:
        """How many numbers are released."""
        return planned(self).size

    @property
    def sensitivity2(self) -> int:
        """Squared L2 distance, in grid steps, that replacing one record can move the sum (off-diagonals counted twice)."""
        return planned(self).sensitivity2

    @property
    def sensitivity1(self) -> int | None:
        """L1 distance, in grid steps, or None where no L1 bound is enforced."""
        return planned(self).sensitivity1

    @property
    def step(self) -> float:
        """The grid step of the released numbers: a power of two."""
        return planned(self).step

    @property
    def block_rows(self) -> int:
        """Rows per block such that a block's sum is exact in float64."""
        return planned(self).block_rows

    def block_sum(self, records: Rows) -> NDArray[Any]:
        """Sum over one block of scaled records, as whole numbers."""
        return planned(self).block_sum(records)

    def coordinates(self, total: NDArray[Any]) -> NDArray[Any]:
        """The released numbers of a total, each once."""
        return planned(self).coordinates(total)

    def shares(self) -> NDArray[np.int64]:
        """For each released number, how often its square counts in the squared distance: 1, or 2 off a Gram's diagonal."""
        return planned(self).shares()

    def lasting(self) -> NDArray[np.bool_]:
        """Which of the released numbers, where steps of a stream are released, are worth adding up over steps."""
        return planned(self).lasting()

    def describe(self) -> dict[str, Any]:
        """Everything public about the statistic, in plain JSON values."""
        return planned(self).describe()


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
        """Map scaled records (`Bounds.unit`) to rows, each a function of its own record alone, bit for bit.

        The records cannot be changed. If rows cannot be made, for whatever reason, the records are given one by one; one that
        fails alone has a row of zeros.
        """


def limits(statistic: Any, name: str) -> tuple[int, int]:
    """The grid that rows are truncated to, and ``norm2`` on it, rounded down: what a row's squared length is held to."""
    bits = whole(f"{name}.bits", statistic.bits, -MOST_BITS, MOST_BITS)
    norm2 = positive(f"{name}.norm2", statistic.norm2)
    return bits, limit(norm2, Fraction(4) ** bits, f"{name}: norm2 · 4^bits")


class _Rows(Statistic, RowMap):
    """Abstract: statistics whose records become rows of bounded length."""

    @property
    @abstractmethod
    def bits(self) -> int:
        """Grid: row entries are multiples of 2⁻ᵇ."""

    @property
    def limit2(self) -> int:
        """``norm2`` on the grid, rounded down: what the squared length of the integer row is held to."""
        limit2: int = planned(self).limit2  # type: ignore[attr-defined]
        return limit2

    @property
    def limit1(self) -> int | None:
        """``norm1`` on the grid, rounded down."""
        limit1: int | None = planned(self).limit1  # type: ignore[attr-defined]
        return limit1

    def integers(self, records: Rows) -> Rows:
        """Rows on the integer grid, as whole float64 numbers, each within the limits."""
        integers: Rows = planned(self).integers(records)  # type: ignore[attr-defined]
        return integers


@dataclass(frozen=True, eq=False)
class _RowsPlan(Plan):
    """Abstract: rows of ``columns`` numbers, held to Σq² ≤ limit2 (and Σ|q| ≤ limit1, q ≥ 0) on a grid of 2⁻ᵇ."""

    columns: int
    bits: int
    limit2: int
    limit1: int | None = None
    nonnegative: bool = False

    def integers(self, records: Rows) -> Rows:
        """Rows on the integer grid, as whole float64 numbers, each within the limits."""
        shape = len(records), self.columns
        rows = mapped(f"{self.name}.rows", lambda some: self.statistic.rows(some), shape, records)
        return self.held(rows)

    def held(self, rows: NDArray[Any]) -> Rows:
        """Rows on the grid, within the limits."""
        return held(rows, self.bits, self.limit2, limit1=self.limit1, nonnegative=self.nonnegative)


# ---- sums


@dataclass(frozen=True, eq=False)
class SumPlan(_RowsPlan):
    """Σ f(record)."""

    kind: ClassVar[str] = "sum"

    @property
    def size(self) -> int:
        """How many numbers are released."""
        return self.columns

    @property
    def sensitivity2(self) -> int:
        """‖f − g‖² ≤ (‖f‖ + ‖g‖)² ≤ 4·limit2; for f, g ≥ 0 the mixed term is not positive: 2·limit2."""
        return (2 if self.nonnegative else 4) * self.limit2

    @property
    def sensitivity1(self) -> int | None:
        """‖f − g‖₁ ≤ 2·limit1."""
        return None if self.limit1 is None else 2 * self.limit1

    @property
    def step(self) -> float:
        """The grid step 2⁻ᵇ."""
        return 2.0**-self.bits

    @property
    def block_rows(self) -> int:
        """No entry is longer than √limit2 < 2²⁶: any block that fits in cache is exact."""
        return max(64, min(_CACHE // self.columns, 2**26))

    def block_sum(self, records: Rows) -> NDArray[Any]:
        """Column sums of the integer rows."""
        total: Rows = self.integers(records).sum(axis=0)
        return total


def sum_limits(statistic: Any, name: str) -> tuple[int, int, int | None, bool]:
    """Bits, limit2, limit1 and whether rows are held to q ≥ 0."""
    bits, limit2 = limits(statistic, name)
    norm1 = statistic.norm1
    limit1 = None
    if norm1 is not None:
        limit1 = limit(positive(f"{name}.norm1", norm1), Fraction(2) ** bits, f"{name}: norm1 · 2^bits")
    return bits, limit2, limit1, bool(statistic.nonnegative)


def _sum_plan(statistic: Any) -> SumPlan:
    who = common(statistic)
    columns = whole(f"{who[1]}.columns", statistic.columns)
    bits, limit2, limit1, nonnegative = sum_limits(statistic, who[1])
    return SumPlan(*who, columns, bits, limit2, limit1, nonnegative)


@is_kind(_sum_plan)
class Sum(_Rows):
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


# ---- Gram matrices


@dataclass(frozen=True, eq=False)
class GramPlan(_RowsPlan):
    """Σ f(record) f(record)ᵀ."""

    kind: ClassVar[str] = "gram"

    @property
    def size(self) -> int:
        """How many numbers are released."""
        return self.columns * (self.columns + 1) // 2

    @property
    def sensitivity2(self) -> int:
        """‖ffᵀ − ggᵀ‖² = ‖f‖⁴ + ‖g‖⁴ − 2⟨f, g⟩² ≤ 2·limit2² (Frobenius norm)."""
        return 2 * self.limit2**2

    @property
    def sensitivity1(self) -> int | None:
        """No L1 bound is enforced: a Gram matrix is not released with Laplace noise."""
        return None

    @property
    def step(self) -> float:
        """The grid step 4⁻ᵇ of a product."""
        return 4.0**-self.bits

    @property
    def block_rows(self) -> int:
        """Σ|products| ≤ rows · limit2 ≤ 2⁵³; and long blocks, since every product fills a whole matrix."""
        return min(4096, EXACT // self.limit2)

    @property
    def piece_rows(self) -> int:
        """Rows of a block that are made together: a piece stays in cache."""
        return max(64, _CACHE // self.columns)

    def stacked(self, records: Rows) -> Rows:
        """The integer rows of a block, made in pieces."""
        q = np.empty((len(records), self.columns))
        for piece in pieces(0, len(records), self.piece_rows):
            q[piece] = self.integers(records[piece])
        return q

    def block_sum(self, records: Rows) -> NDArray[Any]:
        """qᵀq by BLAS (a symmetric rank-k update), exact."""
        q = self.stacked(records)
        return gram(q)

    def coordinates(self, total: NDArray[Any]) -> NDArray[Any]:
        """The upper triangle, row by row."""
        return np.asarray(total[upper(self.columns)])

    def shares(self) -> NDArray[np.int64]:
        """1 on the diagonal, 2 off it."""
        row, column = upper(self.columns)
        return np.where(row == column, 1, 2)


def _gram_plan(statistic: Any) -> GramPlan:
    who = common(statistic)
    columns = whole(f"{who[1]}.columns", statistic.columns)
    return GramPlan(*who, columns, *limits(statistic, who[1]))


@is_kind(_gram_plan)
class Gram(_Rows):
    """Abstract: Σ f(record) f(record)ᵀ, a symmetric matrix, released as its upper triangle."""

    @property
    def bits(self) -> int:
        """Grid: at most 2⁻²⁰, and such that blocks of 2,048 rows are exact."""
        return min(20, (42 - log2_ceiling(self.norm2)) // 2)


@memo(16)  # a model asks for the same few sizes again and again
def upper(columns: int) -> tuple[NDArray[np.intp], ...]:
    """Rows and columns of the upper triangle of a matrix, row by row."""
    both = np.triu_indices(columns)
    for one in both:
        one.flags.writeable = False
    return both


# ---- counts


@final
@dataclass(frozen=True, eq=False)
class CountsPlan(Plan):
    """For each of several groups of cells, how many records fall into each cell."""

    groups: tuple[int, ...]

    kind: ClassVar[str] = "counts"

    @property
    def size(self) -> int:
        """How many counts are released."""
        return sum(self.groups)

    @property
    def sensitivity2(self) -> int:
        """In each group one count falls by one and one rises: 2 per group."""
        return 2 * len(self.groups)

    @property
    def sensitivity1(self) -> int | None:
        """The same: 2 per group."""
        return 2 * len(self.groups)

    @property
    def step(self) -> float:
        """Counts are whole."""
        return 1.0

    @property
    def block_rows(self) -> int:
        """Counts of a block are exact for any number of rows."""
        return max(64, _CACHE // len(self.groups))

    def block_sum(self, records: Rows) -> NDArray[Any]:
        """Counts of one block."""
        shape = len(records), len(self.groups)
        found = mapped(f"{self.name}.cells", lambda some: self.statistic.cells(some), shape, records)
        cells = np.trunc(found.astype(np.float64))
        cells = np.where(cells > 0, np.minimum(cells, np.array(self.groups) - 1.0), 0.0)  # NaN > 0 is false
        first = np.concatenate([[0], np.cumsum(self.groups)[:-1]])
        return np.bincount((cells.astype(np.int64) + first).ravel(), minlength=self.size)


def _counts_plan(statistic: Any) -> CountsPlan:
    who = common(statistic)
    groups = tuple(whole(f"{who[1]}.groups: each number of cells", size) for size in statistic.groups)
    if not groups or sum(groups) > 2**40:
        raise BadInput(f"{who[1]}.groups must be a list of whole numbers of at least 1.")
    return CountsPlan(*who, groups)


@is_kind(_counts_plan)
class Counts(Statistic):
    """Abstract: for each of several groups of cells, how many records fall into each cell."""

    @property
    @abstractmethod
    def groups(self) -> tuple[int, ...]:
        """Number of cells in each group; a record is counted once in every group."""

    @abstractmethod
    def cells(self, records: Rows) -> Rows:
        """For each record and group the cell, a number from 0 up; anything else is moved to the nearest cell, NaN to 0.

        If cells cannot be told, the records are given one by one; one that fails alone is counted in the first
        cell of every group.
        """
