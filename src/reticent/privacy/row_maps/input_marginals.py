"""Moments and counts of each input alone, from which a fit learns how the inputs are spread."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reticent.privacy.release import Release
from reticent.privacy.statistics.counts import Counts
from reticent.privacy.statistics.enforced import enforce
from reticent.privacy.statistics.sum import EnforcedSum, Sum

__all__ = ["DecodedInputCounts", "DecodedInputMoments", "InputCounts", "InputMoments"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class InputMoments(Sum):
    """Σ u and Σ (u² − 1) of each input u in [−1, 1]; the 1 makes the rows shorter.

    The number of complete records is released along.
    """

    inputs: int

    @property
    def counts_records(self) -> bool:
        """The number of complete records is released along."""
        return True

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
        """Sums over the complete records, and their number."""
        d = release.statistic["inputs"]
        enforced = enforce(cls(d))
        assert isinstance(enforced, EnforcedSum)
        weight = enforced.count_weight * enforced.step
        return DecodedInputMoments(
            release.value[: 2 * d].reshape(2, d),
            float(release.sd[0]),
            float(release.value[-1]) / weight,
            float(release.sd[-1]) / weight,
        )


@dataclass(frozen=True, eq=False)
class DecodedInputMoments:
    """Noisy sums over the complete records of each input u on [−1, 1].

    Attributes
    ----------
    sums : array (2, d)
        Sums of u, then of u² − 1.
    sd : float
        Standard deviation of the noise of each.
    count, count_sd : float
        Number of complete records, and the standard deviation of its noise.
    """

    sums: Array
    sd: float
    count: float
    count_sd: float


@dataclass(frozen=True)
class InputCounts(Counts):
    """For each input, how many records fall into each of equally wide bins of [−1, 1].

    ``bins``: how many, or how many of each input: L bins hold one of L levels each.
    """

    inputs: int
    bins: int | tuple[int, ...]

    @property
    def groups(self) -> tuple[int, ...]:
        """One group of bins per input."""
        if isinstance(self.bins, tuple):
            return self.bins
        return (self.bins,) * self.inputs

    def cells(self, records: Array) -> Array:
        """The bin of each input; outputs are not looked at."""
        halves = np.array(self.groups) / 2
        return np.floor((records[:, : self.inputs] + 1.0) * halves)

    @classmethod
    def decode(cls, release: Release) -> "DecodedInputCounts":
        """The counts of each input."""
        bins = release.statistic["bins"]
        if not isinstance(bins, list):
            bins = [bins] * release.statistic["inputs"]
        counts = np.split(release.value, np.cumsum(bins)[:-1])
        return DecodedInputCounts(counts, float(release.sd[0]))


@dataclass(frozen=True, eq=False)
class DecodedInputCounts:
    """Noisy number of records in equal bins of each input.

    Attributes
    ----------
    counts : list of d arrays (bins,)
    sd : float
        Standard deviation of the noise of each count.
    """

    counts: list[Array]
    sd: float
