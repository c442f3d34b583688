"""Rewards where contexts are public: the statistic that a bandit then releases.

Proof: models/bandits/joint.md.
"""

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from reticent.privacy.release import Release, symmetric
from reticent.privacy.row_maps.features.basis_features import FeatureMap
from reticent.privacy.row_maps.residual_gram import ResidualGram, weights_from_steps
from reticent.privacy.statistics.enforced import saved_as
from reticent.privacy.statistics.partitioned_gram import EnforcedPartitionedGram
from reticent.privacy.statistics.sum import Sum

__all__ = ["DecodedRewardSum", "RewardSum", "reward_sum"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class RewardSum(Sum):
    """Σ φ·t, t = clip(y − φᵀw, ±r)/r: of a row only t is protected, and ‖φt − φt′‖ ≤ 2‖φ‖.

    Last, R times the number of missing rewards: a record without one has the row (0, R).
    """

    complete_records: ClassVar[bool] = False
    feature_map: FeatureMap = field(metadata=saved_as("head"))
    output_limit: ClassVar[float] = 64.0  # as for ResidualGram
    weights: tuple[int, ...]
    shift: int
    clip_threshold: float = field(metadata=saved_as("reach"))

    # one for each basis function, and one for missing rewards
    columns = property(lambda self: self.feature_map.columns + 1)
    norm2 = property(lambda self: self.feature_map.norm2)  # ‖φ‖² ≤ R², |t| ≤ 1

    @cached_property
    def _residuals(self) -> EnforcedPartitionedGram:
        return ResidualGram(
            self.feature_map, (self.weights,), self.shift, (self.clip_threshold,)
        ).enforced()

    def rows(self, records: Array) -> Array:
        """φ·t, by the very operations of `ResidualGram`; nothing without a context."""
        missing = np.isnan(records)
        filled = np.where(missing, 0.0, records)
        inner = self._residuals
        h = inner.feature_integers(filled)
        t = inner.residual_integers(h, filled)
        radius = float(self.feature_map.radius2) ** 0.5
        rows = np.zeros((len(records), self.columns))
        rows[:, :-1] = np.asarray(h * t) * (4.0**-inner.bits / radius)
        rows[missing[:, -1]] = 0.0
        rows[missing[:, -1], -1] = radius
        rows[missing[:, :-1].any(axis=1)] = 0.0
        return rows

    @classmethod
    def decode(cls, release: Release) -> "DecodedRewardSum":
        """Sums of features times scaled residuals, and the public Gram matrix beside them."""
        asked = release.statistic
        m = len(asked["weights"])
        radius = math.sqrt(asked["head"]["radius2"])
        return DecodedRewardSum(
            scaled_cross=release.value[:m],
            scaled_cross_sd=float(release.scale[0]),
            missing=float(release.value[m]) / radius,
            missing_sd=float(release.scale[m]) / radius,
            gram=symmetric(release.value[m + 1 : -1]),
            contexts=float(release.value[-1]),
            clip_threshold=asked["reach"],
            weights=weights_from_steps([asked["weights"]], asked["shift"])[0],
        )


@dataclass(frozen=True, eq=False)
class DecodedRewardSum:
    """Noisy Σφt of scaled rewards t = e/r, and ΦᵀΦ without noise, which a bandit adds.

    Attributes
    ----------
    scaled_cross : array (m,)
        Φᵀt.
    scaled_cross_sd : float
        Standard deviation of each entry's noise.
    missing, missing_sd : float
        Number of missing rewards, and the standard deviation of its noise.
    gram : array (m, m)
        ΦᵀΦ of the public contexts, with a reward or without.
    contexts : float
        Number of public contexts that lack nothing.
    clip_threshold : float
        r, in half-ranges of the reward.
    weights : array (m,)
        w, in half-ranges of the reward: e = clip(y − φᵀw, ±r).
    """

    scaled_cross: Array
    scaled_cross_sd: float
    missing: float
    missing_sd: float
    gram: Array
    contexts: float
    clip_threshold: float
    weights: Array


def reward_sum(statistic: ResidualGram) -> RewardSum:
    """The same residuals, for rewards alone."""
    return RewardSum(
        statistic.feature_map, statistic.weights[0], statistic.shift, statistic.clip_thresholds[0]
    )
