"""Statistics: what is added up over the records, and how far one record can move the sum.

There are three kinds. A model subclasses one of them and writes the map from a record to its row; the kind does the rest:

    Sum      Σ f(record)               f: a vector with ‖f‖² ≤ norm2 (and ‖f‖₁ ≤ norm1, and f ≥ 0, where stated)
    Gram     Σ f(record) f(record)ᵀ    f: a vector with ‖f‖² ≤ norm2
    Counts   one count per group       f: for each group of cells, the cell the record falls into

The bound travels with the map and is *enforced*: rows are truncated toward zero onto a grid of 2⁻ᵇ (which cannot lengthen
them) and every row that is still too long, or not a number, is shortened on the integers. A wrong claim costs accuracy,
never privacy. Sensitivities are integers derived from the enforced bounds alone, so a subclass cannot change them.

The map must be a function of one record, bit for bit: elementwise + − × ÷, comparisons, table look-ups; no float matrix
product, no transcendental function, nothing across rows. Proof of all that is claimed here: statistic.md.
"""

import json
import math
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import cached_property
from inspect import get_annotations
from operator import index
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from reticent.errors import BadInput
from reticent.privacy.sums import EXACT

__all__ = ["Counts", "Gram", "Statistic", "Sum"]

Rows = NDArray[np.float64]
_CACHE = 2**17  # numbers in a block of rows: about 1 MB, so that all passes over it stay in cache


@dataclass(frozen=True)
class Statistic(ABC):
    """Abstract: an exact integer sum over records, with its sensitivity under the replacement of one record.

    Subclasses are frozen dataclasses; their fields are public and are written into the release.
    """

    kind: ClassVar[str]
    _settled: ClassVar[frozenset[str]] = frozenset()  # what a kind has settled, nobody else may touch

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.__module__ == __name__:
            return
        for name in cls._settled:
            owner = next(base for base in cls.__mro__ if name in vars(base) or name in get_annotations(base))
            if owner.__module__ != __name__:
                raise TypeError(f"{owner.__name__} may not define {name}: the proof of {cls.__name__} depends on it.")

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

    @final
    def describe(self) -> dict[str, Any]:
        """Everything public about the statistic, in plain JSON values."""
        fields = {"name": type(self).__name__, "kind": self.kind, "size": self.size, **asdict(self)}
        plain: dict[str, Any] = json.loads(json.dumps(fields))
        return plain


class _Rows(Statistic):
    """Abstract: statistics whose records become rows of bounded length."""

    @property
    @abstractmethod
    def columns(self) -> int:
        """Length of a row."""

    @property
    @abstractmethod
    def norm2(self) -> int | Fraction:
        """Bound on a row's squared Euclidean length."""

    @property
    @abstractmethod
    def bits(self) -> int:
        """Grid: row entries are multiples of 2⁻ᵇ."""

    @abstractmethod
    def rows(self, records: Rows) -> Rows:
        """Map scaled records (`Bounds.unit`) to rows, each a function of its own record alone."""

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
        limit = math.floor(_fraction(self.norm2) * 4 ** index(self.bits))
        if not 1 <= limit <= EXACT // 2:
            raise BadInput(
                f"{type(self).__name__}: norm2 · 4^bits must lie between 1 and 2^52, and is {float(limit):.3g}: "
                "choose fewer bits or a smaller norm."
            )
        return limit

    @cached_property
    def limit1(self) -> int | None:
        """``norm1`` on the grid, rounded down."""
        if self.norm1 is None:
            return None
        limit = math.floor(_fraction(self.norm1) * 2 ** index(self.bits))
        if not 1 <= limit <= EXACT // 2:
            raise BadInput(
                f"{type(self).__name__}: norm1 · 2^bits must lie between 1 and 2^52, and is {float(limit):.3g}."
            )
        return limit

    def integers(self, records: Rows) -> Rows:
        """Rows on the integer grid, as whole float64 numbers, each within the limits."""
        rows = np.asarray(self.rows(records))
        if rows.dtype.kind not in "biuf":
            raise BadInput(f"{type(self).__name__}.rows must give a NumPy array of real numbers.")
        q = np.multiply(rows, 2.0**self.bits, dtype=np.float64)  # float32 rows would be added up in float32
        if q.shape != (len(records), self.columns):
            raise BadInput(f"{type(self).__name__}.rows must give one row of {self.columns} numbers for each record.")
        np.trunc(q, out=q)
        if self.nonnegative:
            np.maximum(q, 0.0, out=q)
        outside = ~self._inside(q)  # also where a number is NaN or infinite
        if outside.any():
            q[outside] = self._shortened(q[outside])
        return q

    def _inside(self, q: Rows) -> NDArray[np.bool_]:
        # Exact: the sums are of whole numbers, and one that exceeds the limit cannot round to below it (statistic.md, 2).
        inside: NDArray[np.bool_] = np.einsum("ij,ij->i", q, q) <= self.limit2
        if self.limit1 is not None:
            inside &= np.abs(q).sum(axis=1) <= self.limit1
        return inside

    def _shortened(self, q: Rows) -> Rows:
        """Bring rows inside the limits. Column by column, so that a row's result does not depend on its neighbours."""
        reach = float(math.isqrt(self.limit2))
        q = np.clip(np.where(np.isnan(q), 0.0, q), -reach, reach)
        square, length = np.zeros(len(q)), np.zeros(len(q))
        for column in q.T:
            square += column * column
            length += np.abs(column)
        factor = np.sqrt(self.limit2 / np.maximum(square, self.limit2))
        if self.limit1 is not None:
            factor = np.minimum(factor, self.limit1 / np.maximum(length, self.limit1))
        q = np.trunc(q * (factor * (1 - 2.0**-40))[:, None])
        q[~self._inside(q)] = 0.0  # cannot happen, and is not left to that
        return q


class Sum(_Rows):
    """Abstract: Σ f(record)."""

    kind: ClassVar[str] = "sum"
    _settled = frozenset(
        {
            "kind",
            "size",
            "sensitivity2",
            "sensitivity1",
            "step",
            "block_rows",
            "block_sum",
            "coordinates",
            "shares",
        }
        | {"describe", "integers", "limit1", "limit2", "_inside", "_shortened"}
    )

    @property
    def size(self) -> int:
        """How many numbers are released."""
        return self.columns

    @property
    def bits(self) -> int:
        """Grid: as fine as exactness allows, at most 2⁻²⁴."""
        return min(24, (50 - _log2_ceiling(self.norm2)) // 2)

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
    _settled = Sum._settled | {"nonnegative", "norm1"}

    @property
    def size(self) -> int:
        """How many numbers are released."""
        return self.columns * (self.columns + 1) // 2

    @property
    def bits(self) -> int:
        """Grid: at most 2⁻²⁰, and such that blocks of 2,048 rows are exact."""
        return min(20, (42 - _log2_ceiling(self.norm2)) // 2)

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

    def block_sum(self, records: Rows) -> NDArray[Any]:
        """qᵀq by BLAS (a symmetric rank-k update), exact; its rows are made in pieces that stay in cache."""
        q, piece = np.empty((len(records), self.columns)), max(64, _CACHE // self.columns)
        for start in range(0, len(records), piece):
            q[start : start + piece] = self.integers(records[start : start + piece])
        return q.T @ q

    def coordinates(self, total: NDArray[Any]) -> NDArray[Any]:
        """The upper triangle, row by row."""
        upper: NDArray[Any] = total[np.triu_indices(self.columns)]
        return upper

    def shares(self) -> NDArray[np.int64]:
        """1 on the diagonal, 2 off it."""
        row, column = np.triu_indices(self.columns)
        return np.where(row == column, 1, 2)


class Counts(Statistic):
    """Abstract: for each of several groups of cells, how many records fall into each cell."""

    kind: ClassVar[str] = "counts"
    _settled = frozenset(
        {
            "kind",
            "size",
            "sensitivity2",
            "sensitivity1",
            "step",
            "block_rows",
            "block_sum",
            "coordinates",
            "shares",
        }
    )

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


def _fraction(value: Any) -> Fraction:
    """The number as a fraction of Python integers: NumPy's would wrap around."""
    if isinstance(value, np.integer):
        return Fraction(int(value))
    return value if isinstance(value, Fraction) else Fraction(value)


def _log2_ceiling(value: int | Fraction) -> int:
    """Least b with value ≤ 2ᵇ."""
    whole = math.ceil(_fraction(value))
    if whole < 1:
        raise BadInput(f"norm2 must be a positive number, not {value!r}.")
    return (whole - 1).bit_length()
