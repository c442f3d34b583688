"""Known noise levels: a column that says how noisy each record's output is, and how much the record therefore counts.

A record whose output has a standard deviation s counts with the weight low/s, where low is the public lower bound of the column:
weights are at most one, so they only shorten rows, and a weighted residual has the same noise, low, in every record.
(Appendix D of the DP-GP paper asks for an upper bound on the variance; it is the lower one that limits a record.)
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.privacy.sources import Field, Source

__all__ = ["Level"]

_NOTHING = 1e-300  # above what some machines take for zero


@dataclass(frozen=True)
class Level:
    """The column of noise levels: its place among the columns of X, its name, and its public range, low > 0."""

    at: int
    name: str | None
    low: float
    high: float

    def held(self, levels: NDArray[np.float64]) -> NDArray[np.float64]:
        """Levels within the range: outside counts as the edge; missing, zero and below as the high end, which counts least."""
        with np.errstate(all="ignore"):
            known = np.where(levels > _NOTHING, levels, self.high)  # not so for NaN
            return np.asarray(np.minimum(np.maximum(known, self.low), self.high))

    def weights(self, levels: NDArray[np.float64]) -> NDArray[np.float64]:
        """low/level, from low/high to 1: comparisons and one division, elementwise."""
        return np.asarray(self.low / self.held(levels))

    def field(self, source: Source, inputs: int) -> Field | None:
        """Where a source holds levels besides so many inputs: by name if it has names, else by position; None if nowhere."""
        if source.names is not None and self.name is not None:
            return Field(self.name) if self.name in source.names else None
        return Field(self.at) if source.width - source.targets == inputs + 1 else None

    def to_dict(self) -> dict[str, Any]:
        """Give plain JSON values; ``Level(**fields)`` is the inverse."""
        return {"at": self.at, "name": self.name, "low": self.low, "high": self.high}
