"""Features of a record.

Basis functions of its warped inputs, clipped to a norm R, and its weight.
"""

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.errors import BadInput
from reticent.privacy.row_maps.features.polynomial_basis import GRID, HIGHEST_DEGREE, Basis
from reticent.privacy.statistics.enforced import saved_as
from reticent.privacy.statistics.exact_products import product
from reticent.privacy.statistics.partitioned_gram import FixedFeatures

__all__ = ["FeatureMap"]

Array = NDArray[np.float64]


_multiply_exactly = partial(product, records="right")


@dataclass(frozen=True)
class FeatureMap(FixedFeatures):
    """φ(u) = feature_scale · basis(warp(u)), no longer than R; ``weighted``.

    Times the record's weight, which follows its inputs.

    ``warp`` holds for each input the values, at equidistant places from −1 to 1, of a piecewise
    linear map of [−1, 1] to itself; () leaves the inputs as they are. ``constant``: the number of a
    function that is one everywhere. If it is given, what shortens a record's features is a weight
    of the record, which its outputs have too; it is read off that function. ``lines`` are further
    functions, slope·(u_j − middle) of inputs before their maps, each as (j, middle, slope).
    """

    basis: Basis
    feature_scale: tuple[float, ...] = field(metadata=saved_as("energy"))
    radius2: float
    warp: tuple[tuple[float, ...], ...] = ()
    weighted: bool = False
    constant: int = -1
    lines: tuple[tuple[int, float, float], ...] = ()

    def __post_init__(self) -> None:
        levels = self.basis.levels_of
        if len(levels) != self.basis.dimension:
            raise BadInput("A basis has one number of levels for each input, 0 where it has none.")
        tables = zip(levels, self.basis.mix, strict=True)
        if any(levels and len(row) != levels for levels, mix in tables for row in mix):
            raise BadInput("A function of an input with levels has one value for each of them.")
        rows = [
            row
            for levels, mix in zip(levels, self.basis.mix, strict=True)
            if not levels
            for row in mix
        ]
        if any(len(row) > HIGHEST_DEGREE + 1 for row in rows):
            raise BadInput(
                f"The polynomials of a basis have degrees up to {HIGHEST_DEGREE}: values of higher "
                "ones are too large for an exact product."
            )
        whole = all(float(v).is_integer() for row in rows for v in row)
        if not whole or any(sum(v * v for v in row) > 4 * GRID**2 for row in rows):
            raise BadInput(
                "The functions of a basis have no exact product: their numbers must be whole, and "
                "their length one."
            )

    @property
    def columns(self) -> int:
        """One for each basis function, and for each line."""
        return self.basis.size + len(self.lines)

    @property
    def norm2(self) -> Fraction:
        """R²."""
        return Fraction(self.radius2)

    @cached_property
    def _scale(self) -> Array:
        return np.array(self.feature_scale)

    def rows(self, records: Array) -> Array:
        """φ of each record, times its weight if it has one. Outputs are not looked at."""
        phi = self.features(records)
        if self.weighted:
            phi *= self.weight(records)
        return phi

    def weight(self, records: Array) -> Array:
        """The weight of each record, as a column."""
        return records[:, self.basis.dimension : self.basis.dimension + 1]

    def functions(self, records: Array) -> Array:
        """Functions that w are coefficients of: φ, with a ``constant`` before it is clipped."""
        if self.constant >= 0:
            return self.long(records)
        return self.features(records)

    def long(self, records: Array) -> Array:
        """φ before it is shortened."""
        phi = self.basis.evaluate(
            self.warped(records[:, : self.basis.dimension]), _multiply_exactly
        )
        if self.lines:
            phi = np.column_stack(
                [phi, *((records[:, j] - middle) * slope for j, middle, slope in self.lines)]
            )
        phi *= self._scale
        return phi

    def features(self, records: Array) -> Array:
        """φ at each row's inputs; column by column, so that a row does not depend on others."""
        phi = self.long(records)
        square = np.zeros(len(phi))
        for column in phi.T:
            square += column * column
        phi *= np.sqrt(self.radius2 / np.maximum(square, self.radius2))[:, None]
        return phi

    def warped(self, u: Array) -> Array:
        """The inputs after their monotone maps.

        A table look-up and a straight line between two knots.
        """
        if not self.warp:
            return u
        out = np.empty(u.shape)
        for j, knots in enumerate(self.warp):
            bins = len(knots) - 1
            table = np.array(knots)
            place = (u[:, j] + 1.0) * (bins / 2)
            left = np.clip(np.floor(place), 0, bins - 1)
            low = left.astype(np.intp)
            value = table[low] + (table[low + 1] - table[low]) * (place - left)
            np.clip(value, -1.0, 1.0, out=out[:, j])
        return out

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> "FeatureMap":
        """Rebuild a feature map from a release's plain lists."""
        warp = tuple(tuple(knots) for knots in fields["warp"])
        basis = Basis.from_dict(fields["basis"])
        feature_scale = tuple(fields["energy"])
        lines = tuple((j, middle, slope) for j, middle, slope in fields.get("lines", ()))
        return cls(
            basis,
            feature_scale,
            fields["radius2"],
            warp,
            fields["weighted"],
            fields.get("constant", -1),
            lines,
        )
