"""Partitioned Gram matrices: rows (features, residuals), of which the features stay the same.

    PartitionedGram   Σ f fᵀ,  f = (h(record), t(h, record)),  ‖h‖² ≤ feature_map.norm2,
                                                               ‖t‖² ≤ residual_norm2

Features h and residuals t are truncated to the grid and clipped to limits of their own, so that the
integers of the features cannot depend on the residuals. Then Σ hhᵀ is the same in every stage of a
fit, and a curator that has cached it, with the integers h of every record, needs Σ htᵀ and Σ ttᵀ
only: of n·m² multiplications n·m·p are left. The integers that are released are the same, bit for
bit. Proof: statistics.md, 2 to 4.
"""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from operator import index
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from reticent.privacy.guard import map_rows_safely
from reticent.privacy.statistics.base import MOST_BITS, RowMap, Rows
from reticent.privacy.statistics.enforced import common, enforce, is_kind, positive, saved_as, whole
from reticent.privacy.statistics.exact_products import gram, product
from reticent.privacy.statistics.exact_sum import pieces
from reticent.privacy.statistics.gram import EnforcedGram, Gram, as_they_are, upper_triangle
from reticent.privacy.statistics.integer_grid import fraction, limit, quantize_and_clip

__all__ = ["EnforcedPartitionedGram", "FixedFeatures", "PartitionedGram"]

_CACHE = 2**18  # numbers in a piece of rows: about 2 MB


@dataclass(frozen=True)
class FixedFeatures(RowMap):
    """Abstract: the map from a record to the features of its row, the same in every stage.

    A frozen dataclass; equal fields mean the same map.
    """


@final
@dataclass(frozen=True, eq=False)
class EnforcedPartitionedGram(EnforcedGram):
    """Rows (features, residuals).

    The first ``feature_columns`` numbers are clipped to ``feature_limit2``, the others to
    ``residual_limit2``.

    ``limit2`` is the sum of both limits. ``feature_map`` is asked for features, the
    statistic for residuals.
    """

    feature_map: Any = None
    feature_columns: int = 0
    feature_limit2: int = 0
    residual_limit2: int = 0

    saved_as: ClassVar[str] = "StagedPlan"

    @property
    def residual_columns(self) -> int:
        """Number of residuals in a row."""
        return self.columns - self.feature_columns

    def feature_integers(self, records: Rows) -> Rows:
        """Features on the integer grid, (rows, m), within their limit; zero where the map fails."""
        shape = len(records), self.feature_columns
        name = type.__dict__["__name__"].__get__(type(self.feature_map))
        filled, lacking = self.fill(records)
        rows = map_rows_safely(
            f"{name}.rows", lambda some: self.feature_map.rows(some), shape, filled
        )
        q = quantize_and_clip(rows, self.bits, self.feature_limit2)
        if lacking is not None:
            q[lacking] = 0.0
        return q

    def residual_integers(self, features: Rows, records: Rows) -> Rows:
        """Residuals on the integer grid, (rows, p), in their limit; zero where the map fails."""
        shape = len(records), self.residual_columns
        filled, lacking = self.fill(records)
        rows = map_rows_safely(
            f"{self.name}.residuals",
            lambda h, some: self.statistic.residuals(h, some),
            shape,
            features,
            filled,
        )
        q = quantize_and_clip(rows, self.bits, self.residual_limit2)
        if lacking is not None:
            q[lacking] = 0.0
        return q

    def integers(self, records: Rows) -> Rows:
        """Rows on the integer grid: features, then residuals."""
        features = self.feature_integers(records)
        return np.hstack([features, self.residual_integers(features, records)])

    @property
    def piece_rows(self) -> int:
        """Rows of a block that are made together.

        Fewer and longer pieces than elsewhere, for rows are made column by column.
        """
        return max(64, _CACHE // self.columns)

    def stacked(self, records: Rows, scale: Callable[[Rows], Rows] = as_they_are) -> Rows:
        """The integer rows of a block, made in pieces; ``scale`` scales records that are raw.

        Column after column, as features usually come.
        """
        m = self.feature_columns
        q = np.empty((len(records), self.columns), order="F")
        for piece in pieces(0, len(records), self.piece_rows):
            some = scale(records[piece])
            q[piece, :m] = features = self.feature_integers(some)
            q[piece, m:] = self.residual_integers(features, some)
        return q

    def raw_block_sum(self, raw: Rows, scale: Callable[[Rows], Rows]) -> NDArray[Any]:
        """Σqqᵀ of a whole block at once: columns are long, and nothing is gained by pieces."""
        return gram(self.stacked(raw, scale))

    def residual_products(self, features: NDArray[np.int32], records: Rows) -> Rows:
        """Σ(h, t)tᵀ over one block whose features are known, (m + p, p).

        The last columns of its Gram matrix, exact.
        """
        m = self.feature_columns
        total = np.zeros((self.columns, self.residual_columns))
        for piece in pieces(0, len(records), self.piece_rows):
            h = features[piece].astype(np.float64)
            t = self.residual_integers(h, records[piece])
            total[:m] += product(h.T, t, records="inner")
            total[m:] += gram(t)
        return total

    def accumulates(self) -> NDArray[np.bool_]:
        """The products of features with residuals, and no others.

        Much is known beforehand of the features' own products, and little depends on the
        residuals'.
        """
        row, column = upper_triangle(self.columns)
        m = self.feature_columns
        return np.asarray((row < m) & (column >= m))

    def joined(self, features_gram: NDArray[Any], products: NDArray[Any]) -> NDArray[Any]:
        """The whole Gram matrix, from Σhhᵀ and the sum of `residual_products` over all blocks."""
        return np.hstack([np.vstack([features_gram, products[: len(features_gram)].T]), products])


def _enforced_partitioned_gram(statistic: "PartitionedGram") -> EnforcedPartitionedGram:
    who = common(statistic)
    name = who[1]
    feature_map = statistic.feature_map
    bits = whole(f"{name}.bits", statistic.bits, -MOST_BITS, MOST_BITS)
    feature_columns = whole(f"{name}: columns of the feature map", feature_map.columns)
    columns = feature_columns + whole(f"{name}.residual_columns", statistic.residual_columns)
    norms = {"features": feature_map.norm2, "residuals": statistic.residual_norm2}
    parts = []
    for part, norm2 in norms.items():
        what = f"{name}: norm2 · 4^bits of the {part}"
        parts.append(limit(positive(what, norm2), Fraction(4) ** bits, what))
    limit2 = limit(Fraction(sum(parts)), Fraction(1), f"{name}: norm2 · 4^bits")
    return EnforcedPartitionedGram(
        *who, columns, bits, limit2, None, False, feature_map, feature_columns, *parts
    )


@is_kind(_enforced_partitioned_gram)
@dataclass(frozen=True)
class PartitionedGram(Gram):
    """Abstract: Σ f fᵀ of rows f = (features, residuals), each part clipped to its own bound."""

    feature_map: FixedFeatures = field(metadata=saved_as("head"))

    @property
    @abstractmethod
    def residual_columns(self) -> int:
        """Number of residuals in a row."""

    @property
    @abstractmethod
    def residual_norm2(self) -> int | Fraction:
        """Bound on the squared Euclidean length of the residuals."""

    @abstractmethod
    def residuals(self, features: Rows, records: Rows) -> Rows:
        """Map features (whole numbers, in grid steps) and scaled records to residuals.

        Row by row, bit for bit.
        """

    @property
    def columns(self) -> int:
        """Length of a row."""
        return index(self.feature_map.columns) + index(self.residual_columns)

    @property
    def norm2(self) -> Fraction:
        """Bound on a row's squared length."""
        return fraction(self.feature_map.norm2) + fraction(self.residual_norm2)

    def rows(self, records: Rows) -> Rows:
        """The whole rows, on the grid."""
        enforced = self.enforced()
        return enforced.integers(records) * 2.0**-enforced.bits

    def enforced(self) -> EnforcedPartitionedGram:
        """What features and residuals are held to."""
        enforced = enforce(self)
        assert isinstance(enforced, EnforcedPartitionedGram)
        return enforced

    @property
    def feature_limit2(self) -> int:
        """Limit on the squared length of the features, in squared grid steps."""
        return self.enforced().feature_limit2

    @property
    def residual_limit2(self) -> int:
        """Limit on the squared length of the residuals, in squared grid steps."""
        return self.enforced().residual_limit2
