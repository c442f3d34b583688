"""Gram matrices: Σ f(record) f(record)ᵀ, where f is a vector with ‖f‖² ≤ norm2.

The matrix is symmetric, and its upper triangle is released. Proof: statistics.md, 2 to 4.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from reticent.memo import memo
from reticent.privacy.statistics.base import EnforcedRows, Rows, RowStatistic, limits
from reticent.privacy.statistics.enforced import Sensitivity, common, is_kind, whole
from reticent.privacy.statistics.exact_products import gram
from reticent.privacy.statistics.exact_sum import EXACT, pieces
from reticent.privacy.statistics.integer_grid import log2_ceiling

__all__ = ["EnforcedGram", "Gram", "as_they_are", "upper_triangle"]

_CACHE = 2**16  # numbers in a piece of rows: half a megabyte,
_LEAST_ROWS = 2**10  # unless these are fewer rows, of which BLAS makes poor products


def as_they_are(records: Rows) -> Rows:
    """Records that are scaled already."""
    return records


@dataclass(frozen=True, eq=False)
class EnforcedGram(EnforcedRows):
    """Σ f(record) f(record)ᵀ."""

    kind: ClassVar[str] = "gram"
    saved_as: ClassVar[str] = "GramPlan"

    @property
    def size(self) -> int:
        """How many numbers are released."""
        return self.columns * (self.columns + 1) // 2

    @property
    def sum_shape(self) -> tuple[int, ...]:
        """The whole matrix."""
        return self.columns, self.columns

    @property
    def sensitivity2(self) -> int:
        """‖ffᵀ − ggᵀ‖² = ‖f‖⁴ + ‖g‖⁴ − 2⟨f, g⟩² ≤ 2·limit2² (Frobenius norm)."""
        return 2 * self.limit2**2

    @property
    def sensitivity1(self) -> int | None:
        """No L1 bound is enforced: a Gram matrix is not released with Laplace noise."""
        return None

    def contribution(self) -> Sensitivity:
        """‖ffᵀ‖ = ‖f‖² ≤ limit2 (Frobenius norm)."""
        return Sensitivity(self.limit2**2, None, self.coordinate_multiplicity())

    @property
    def step(self) -> float:
        """The grid step 4⁻ᵇ of a product."""
        return 4.0**-self.bits

    @property
    def block_rows(self) -> int:
        """Σ|products| ≤ rows · limit2 ≤ 2⁵³.

        And long blocks, since every product fills a whole matrix.
        """
        return min(4096, EXACT // self.limit2)

    @property
    def piece_rows(self) -> int:
        """Rows of a block that are made and multiplied together: they are few, and stay in a cache.

        But not too few: a product of short rows takes as long as one of longer ones.
        """
        return max(_LEAST_ROWS, _CACHE // self.columns)

    def raw_block_sum(self, raw: Rows, scale: Callable[[Rows], Rows]) -> NDArray[Any]:
        """The same as `block_sum`, with each piece scaled while it is in a cache."""
        total = np.zeros((self.columns, self.columns))
        for piece in pieces(0, len(raw), self.piece_rows):
            total += gram(self.integers(scale(raw[piece])))  # whole, and below 2⁵³ for the block
        return total

    def block_sum(self, records: Rows) -> NDArray[Any]:
        """Σqqᵀ by BLAS (symmetric rank-k updates), exact."""
        return self.raw_block_sum(records, as_they_are)

    def coordinates(self, total: NDArray[Any]) -> NDArray[Any]:
        """The upper triangle, row by row."""
        return np.asarray(total[upper_triangle(self.columns)])

    def coordinate_multiplicity(self) -> NDArray[np.int64]:
        """1 on the diagonal, 2 off it."""
        row, column = upper_triangle(self.columns)
        return np.where(row == column, 1, 2)


def _enforced_gram(statistic: "Gram") -> EnforcedGram:
    who = common(statistic)
    columns = whole(f"{who[1]}.columns", statistic.columns)
    return EnforcedGram(*who, columns, *limits(statistic, who[1]))


@is_kind(_enforced_gram)
class Gram(RowStatistic):
    """Abstract: Σ f(record) f(record)ᵀ, a symmetric matrix, released as its upper triangle."""

    @property
    def bits(self) -> int:
        """Grid: at most 2⁻²⁰, and such that blocks of 2,048 rows are exact."""
        return min(20, (42 - log2_ceiling(self.norm2)) // 2)


@memo(16)  # a model asks for the same few sizes again and again
def upper_triangle(columns: int) -> tuple[NDArray[np.intp], ...]:
    """Rows and columns of the upper triangle of a matrix, row by row."""
    both = np.triu_indices(columns)
    for one in both:
        one.flags.writeable = False
    return both
