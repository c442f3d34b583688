"""Rewards where contexts are public: the statistic that a bandit then releases.

Proof: models/bandits/joint.md.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from reticent.privacy.release import Release, symmetric
from reticent.privacy.row_maps.basis_features import FeatureMap
from reticent.privacy.row_maps.residual_gram import ResidualGram, weights_from_steps
from reticent.privacy.statistics.enforced import saved_as
from reticent.privacy.statistics.partitioned_gram import EnforcedPartitionedGram
from reticent.privacy.statistics.sum import Sum

__all__ = ["DecodedRewardSum", "RewardSum", "reward_sum"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class RewardSum(Sum):
    """Σ φ·t, t = clip(y − φᵀw, ±r)/r: of a row only t is protected, and ‖φt − φt′‖ ≤ 2‖φ‖."""

    feature_map: FeatureMap = field(metadata=saved_as("head"))
    output_limit: ClassVar[float] = 64.0  # as for ResidualGram
    weights: tuple[int, ...]
    shift: int
    clip_threshold: float = field(metadata=saved_as("reach"))

    columns = property(lambda self: self.feature_map.columns)  # one for each basis function
    norm2 = property(lambda self: self.feature_map.norm2)  # ‖φ‖² ≤ R², |t| ≤ 1

    @cached_property
    def _residuals(self) -> EnforcedPartitionedGram:
        return ResidualGram(
            self.feature_map, (self.weights,), self.shift, (self.clip_threshold,)
        ).enforced()

    def rows(self, records: Array) -> Array:
        """φ·t, by the very operations of `ResidualGram`."""
        inner = self._residuals
        h = inner.feature_integers(records)
        t = inner.residual_integers(h, records)
        return np.asarray(h * t) * (4.0**-inner.bits / float(self.feature_map.radius2) ** 0.5)

    @classmethod
    def decode(cls, release: Release) -> "DecodedRewardSum":
        """Sums of features times scaled residuals, and the public Gram matrix beside them."""
        asked = release.statistic
        m = len(asked["weights"])
        return DecodedRewardSum(
            scaled_cross=release.value[:m],
            scaled_cross_sd=float(release.scale[0]),
            gram=symmetric(release.value[m:]),
            clip_threshold=asked["reach"],
            weights=weights_from_steps([asked["weights"]], asked["shift"])[0],
        )


@dataclass(frozen=True, eq=False)
class DecodedRewardSum:
    """Noisy Σφt of scaled rewards t = e/r, and ΦᵀΦ without noise, where a stream adds it.

    Attributes
    ----------
    scaled_cross : array (m,)
        Φᵀt.
    scaled_cross_sd : float
        Standard deviation of each entry's noise.
    gram : array (m, m)
        ΦᵀΦ of the public contexts; (0, 0) if it was not released.
    clip_threshold : float
        r, in half-ranges of the reward.
    weights : array (m,)
        w, in half-ranges of the reward: e = clip(y − φᵀw, ±r).
    """

    scaled_cross: Array
    scaled_cross_sd: float
    gram: Array
    clip_threshold: float
    weights: Array


def reward_sum(statistic: ResidualGram) -> RewardSum:
    """The same residuals, for rewards alone."""
    return RewardSum(
        statistic.feature_map, statistic.weights[0], statistic.shift, statistic.clip_thresholds[0]
    )
