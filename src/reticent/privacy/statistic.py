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
never privacy. Sensitivities are integers derived from the enforced bounds alone, so a subclass cannot change them.

The map must be a function of one record, bit for bit: elementwise + − × ÷, comparisons, table look-ups; no float matrix
product, no transcendental function, nothing across rows. Proof of all that is claimed here: statistic.md.
"""

import json
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, is_dataclass
from fractions import Fraction
from functools import cached_property
from inspect import get_annotations
from operator import index
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from reticent.errors import BadInput
from reticent.memo import memo
from reticent.privacy.grid import held, limit, log2_ceiling
from reticent.privacy.products import gram
from reticent.privacy.sums import EXACT, pieces

__all__ = ["Counts", "Gram", "Statistic", "Sum"]

Rows = NDArray[np.float64]
_KINDS = (__name__, *(f"reticent.privacy.{name}" for name in ("staged", "shared", "celled")))  # where kinds are defined
SETTLED = (  # by every kind
    frozenset({"kind", "size", "sensitivity2", "sensitivity1", "step", "block_rows", "block_sum"})
    | {"coordinates", "shares", "lasting", "describe", "_settled"}
)
_CACHE = 2**17  # numbers in a block of rows: about 1 MB, so that all passes over it stay in cache


@dataclass(frozen=True)
class Statistic(ABC):
    """Abstract: an exact integer sum over records, with its sensitivity under the replacement of one record.

    Subclasses are frozen dataclasses; their fields are public and are written into the release.
    """

    kind: ClassVar[str]
    output_reach: ClassVar[float] = 1.0  # how far from the middle outputs may lie, in half-ranges of their bounds
    _settled: ClassVar[frozenset[str]] = frozenset()  # what a kind has settled, nobody else may touch

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.__module__ in _KINDS:
            return
        kinds = [base for base in cls.__mro__ if base.__module__ in _KINDS]
        settled = frozenset().union(*(vars(kind).get("_settled", ()) for kind in kinds))
        for base in cls.__mro__:  # behind a kind, too: a property there would stand before what an instance holds
            own = () if base in kinds else settled & (vars(base).keys() | get_annotations(base).keys())
            for name in own:
                raise TypeError(f"{base.__name__} may not define {name}: the proof of {cls.__name__} depends on it.")

    @property
    @abstractmethod
    def size(self) -> int:
        """How many numbers are released."""

    @property
    @abstractmethod
    def sensitivity2(self) -> int:
        """Squared L2 distance, in grid steps, that replacing one record can move the sum (off-diagonals counted twice)."""

    @property
    @abstractmethod
    def sensitivity1(self) -> int | None:
        """L1 distance, in grid steps, or None where no L1 bound is enforced."""

    @property
    @abstractmethod
    def step(self) -> float:
        """The grid step of the released numbers: a power of two."""

    @property
    @abstractmethod
    def block_rows(self) -> int:
        """Rows per block such that a block's sum is exact in float64."""

    @abstractmethod
    def block_sum(self, records: Rows) -> NDArray[Any]:
        """Sum over one block of scaled records, as whole numbers."""

    def coordinates(self, total: NDArray[Any]) -> NDArray[Any]:
        """The released numbers of a total, each once."""
        return total

    def shares(self) -> NDArray[np.int64]:
        """For each released number, how often its square counts in the squared distance: 1, or 2 off a Gram's diagonal."""
        return np.ones(self.size, dtype=np.int64)

    def lasting(self) -> NDArray[np.bool_]:
        """Which of the released numbers, where steps of a stream are released, are worth adding up over steps."""
        return np.ones(self.size, dtype=bool)

    @final
    def describe(self) -> dict[str, Any]:
        """Everything public about the statistic, in plain JSON values."""
        told = {"name": type(self).__name__, "kind": self.kind, "size": self.size, **_fields(self)}
        return {name: _plain(value) for name, value in told.items()}


def _fields(thing: Any) -> dict[str, Any]:
    """The fields of a dataclass; `dataclasses.asdict` copies a large basis number by number."""
    return {field.name: getattr(thing, field.name) for field in fields(thing)}


_PLAIN, _NUMBERS = {int, float, str, bool}, ({int}, {float})


def _plain(value: Any) -> Any:
    """A value as JSON would give it back; long tables of numbers, which are most of it, without the detour."""
    if type(value) in _PLAIN:
        return value
    if isinstance(value, tuple):
        return list(value) if set(map(type, value)) in _NUMBERS else list(map(_plain, value))
    if is_dataclass(value):
        return {name: _plain(one) for name, one in _fields(value).items()}
    return json.loads(json.dumps(value, default=_fields))


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
        """Map scaled records (`Bounds.unit`) to rows, each a function of its own record alone, bit for bit."""


class _Rows(Statistic, RowMap):
    """Abstract: statistics whose records become rows of bounded length."""

    @property
    @abstractmethod
    def bits(self) -> int:
        """Grid: row entries are multiples of 2⁻ᵇ."""

    @property
    def norm1(self) -> int | Fraction | None:
        """Bound on the sum of a row's absolute values, where Laplace noise is wanted."""
        return None

    @property
    def nonnegative(self) -> bool:
        """Whether rows have no negative entries."""
        return False

    @cached_property
    def limit2(self) -> int:
        """``norm2`` on the grid, rounded down: what the squared length of the integer row is held to."""
        return limit(self.norm2, 4 ** index(self.bits), f"{type(self).__name__}: norm2 · 4^bits")

    @cached_property
    def limit1(self) -> int | None:
        """``norm1`` on the grid, rounded down."""
        return (
            None
            if self.norm1 is None
            else limit(self.norm1, 2 ** index(self.bits), f"{type(self).__name__}: norm1 · 2^bits")
        )

    def integers(self, records: Rows) -> Rows:
        """Rows on the integer grid, as whole float64 numbers, each within the limits."""
        return held(
            self.rows(records),
            (len(records), self.columns),
            self.bits,
            self.limit2,
            limit1=self.limit1,
            nonnegative=self.nonnegative,
            name=f"{type(self).__name__}.rows",
        )


class Sum(_Rows):
    """Abstract: Σ f(record)."""

    kind: ClassVar[str] = "sum"
    _settled = SETTLED | {"integers", "limit1", "limit2"}

    @property
    def size(self) -> int:
        """How many numbers are released."""
        return self.columns

    @property
    def bits(self) -> int:
        """Grid: as fine as exactness allows, at most 2⁻²⁴."""
        return min(24, (50 - log2_ceiling(self.norm2)) // 2)

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


class Gram(_Rows):
    """Abstract: Σ f(record) f(record)ᵀ, a symmetric matrix, released as its upper triangle."""

    kind: ClassVar[str] = "gram"
    _settled = Sum._settled | {"nonnegative", "norm1", "piece_rows", "stacked"}

    @property
    def size(self) -> int:
        """How many numbers are released."""
        return self.columns * (self.columns + 1) // 2

    @property
    def bits(self) -> int:
        """Grid: at most 2⁻²⁰, and such that blocks of 2,048 rows are exact."""
        return min(20, (42 - log2_ceiling(self.norm2)) // 2)

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


@memo(16)  # a model asks for the same few sizes again and again
def upper(columns: int) -> tuple[NDArray[np.intp], ...]:
    """Rows and columns of the upper triangle of a matrix, row by row."""
    both = np.triu_indices(columns)
    for one in both:
        one.flags.writeable = False
    return both


class Counts(Statistic):
    """Abstract: for each of several groups of cells, how many records fall into each cell."""

    kind: ClassVar[str] = "counts"
    _settled = SETTLED | {"_checked"}

    @property
    @abstractmethod
    def groups(self) -> tuple[int, ...]:
        """Number of cells in each group; a record is counted once in every group."""

    @abstractmethod
    def cells(self, records: Rows) -> Rows:
        """For each record and group the cell, a number from 0 up; anything else is moved to the nearest cell, NaN to 0."""

    @property
    def size(self) -> int:
        """How many counts are released."""
        return sum(self._checked())

    @property
    def sensitivity2(self) -> int:
        """In each group one count falls by one and one rises: 2 per group."""
        return 2 * len(self._checked())

    @property
    def sensitivity1(self) -> int | None:
        """The same: 2 per group."""
        return 2 * len(self._checked())

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
        groups = self._checked()
        cells = np.asarray(self.cells(records))
        if cells.dtype.kind not in "biuf" or cells.shape != (len(records), len(groups)):
            raise BadInput(f"{type(self).__name__}.cells must give {len(groups)} cells, as numbers, for each record.")
        cells = np.trunc(cells.astype(np.float64))
        cells = np.where(cells > 0, np.minimum(cells, np.array(groups) - 1.0), 0.0)  # NaN > 0 is false
        first = np.concatenate([[0], np.cumsum(groups)[:-1]])
        return np.bincount((cells.astype(np.int64) + first).ravel(), minlength=self.size)

    def _checked(self) -> list[int]:
        """The groups, each with at least one cell: a record must have a place in every one."""
        groups = [index(size) for size in self.groups]
        if not groups or min(groups) < 1 or sum(groups) > 2**40:
            raise BadInput(f"{type(self).__name__}.groups must be a list of whole numbers of at least 1.")
        return groups
