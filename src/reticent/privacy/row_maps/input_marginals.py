"""Moments and counts of each input alone, from which a fit learns how the inputs are spread."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reticent.privacy.release import Release
from reticent.privacy.statistics.counts import Counts
from reticent.privacy.statistics.sum import Sum

__all__ = ["DecodedInputCounts", "DecodedInputMoments", "InputCounts", "InputMoments"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class InputMoments(Sum):
    """Σ u and Σ (u² − 1) of each input u in [−1, 1]; the 1 makes the rows shorter."""

    inputs: int

    @property
    def columns(self) -> int:
        """Two for each input."""
        return 2 * self.inputs

    @property
    def norm2(self) -> int:
        """u² + (1 − u²)² is at most 1."""
        return self.inputs

    def rows(self, records: Array) -> Array:
        """All inputs, then their squares less one; outputs are not looked at."""
        u = records[:, : self.inputs]
        return np.hstack([u, u * u - 1.0])

    @classmethod
    def decode(cls, release: Release) -> "DecodedInputMoments":
        """Means over the records."""
        d = release.statistic["inputs"]
        return DecodedInputMoments(
            release.value.reshape(2, d) / release.n, float(release.sd[0]) / release.n
        )


@dataclass(frozen=True, eq=False)
class DecodedInputMoments:
    """Noisy means of each input u on [−1, 1].

    Attributes
    ----------
    means : array (2, d)
        Means of u, then of u² − 1.
    sd : float
        Standard deviation of the noise of each.
    """

    means: Array
    sd: float


@dataclass(frozen=True)
class InputCounts(Counts):
    """For each input, how many records fall into each of equally wide bins of [−1, 1]."""

    inputs: int
    bins: int

    @property
    def groups(self) -> tuple[int, ...]:
        """One group of bins per input."""
        return (self.bins,) * self.inputs

    def cells(self, records: Array) -> Array:
        """The bin of each input; outputs are not looked at."""
        return np.floor((records[:, : self.inputs] + 1.0) * (self.bins / 2))

    @classmethod
    def decode(cls, release: Release) -> "DecodedInputCounts":
        """A row of counts per input."""
        return DecodedInputCounts(
            release.value.reshape(release.statistic["inputs"], -1), float(release.sd[0])
        )


@dataclass(frozen=True, eq=False)
class DecodedInputCounts:
    """Noisy number of records in equal bins of each input.

    Attributes
    ----------
    counts : array (d, bins)
    sd : float
        Standard deviation of the noise of each count.
    """

    counts: Array
    sd: float
