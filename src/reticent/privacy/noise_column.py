"""Known noise levels.

A column that says how noisy each record's output is, and how much the record therefore counts. A
record whose output has a standard deviation s counts with the weight low/s, where low is the public
lower bound of the column: weights are at most one, so they only shorten rows, and a weighted
residual has the same noise, low, in every record. (Appendix D of the DP-GP paper asks for an upper
bound on the variance; it is the lower one that limits a record.)
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.errors import BadInput
from reticent.privacy.columns.numbers import Number
from reticent.privacy.sources.base import Field, Source

__all__ = ["NoiseColumn"]

_NOTHING = 1e-300  # above what some machines take for zero


@dataclass(frozen=True)
class NoiseColumn:
    """The column of noise levels.

    Its place among the columns of X, its name, and its public range, low > 0.
    """

    at: int
    name: str | None
    low: float
    high: float
    missing: tuple[str | float, ...] = ()  # codes that mean "missing"

    @property
    def kind(self) -> Number:
        """The column by itself: a number."""
        return Number(self.low, self.high, missing=self.missing)

    def clip(self, levels: NDArray[np.float64]) -> NDArray[np.float64]:
        """Levels within the range: outside counts as the edge.

        Zero and below as the high end, which counts least; so does what is missing, which
        `weights` leaves out.
        """
        with np.errstate(all="ignore"):
            known = np.where(levels > _NOTHING, levels, self.high)  # not so for NaN
            return np.asarray(np.minimum(np.maximum(known, self.low), self.high))

    def weights(self, levels: NDArray[np.float64]) -> NDArray[np.float64]:
        """low/level, from low/high to 1, NaN where the level is missing: elementwise."""
        return np.where(np.isnan(levels), np.nan, self.low / self.clip(levels))

    def field(self, source: Source, inputs: int) -> Field | None:
        """Where a source holds levels besides so many inputs.

        By name if it has names, else by position; None if nowhere.
        """
        if source.names is not None and self.name is not None:
            if self.name in source.names:
                return Field(self.name, self.kind)
            return None
        if source.width - source.targets == inputs + 1:
            return Field(self.at, self.kind)
        return None

    def to_dict(self) -> dict[str, Any]:
        """Give plain JSON values; `from_dict` is the inverse."""
        fields: dict[str, Any] = {
            "at": self.at,
            "name": self.name,
            "low": self.low,
            "high": self.high,
        }
        if self.missing:
            fields["missing"] = list(self.missing)
        return fields

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> "NoiseColumn":
        """Rebuild a column from `to_dict`, checked anew."""
        column = cls(**{**fields, "missing": tuple(fields.get("missing", ()))})
        if not column.kind.low > 0:
            raise BadInput("A noise column needs a lower bound above 0.")
        return column
