"""Rewards where contexts are public: the statistic that a bandit then releases. Proof: bandit.md."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from reticent.models.residuals import Features, ResidualGram
from reticent.privacy.staged import StagedPlan
from reticent.privacy.statistic import Sum

__all__ = ["RewardSum", "reward_sum"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class RewardSum(Sum):
    """Σ φ·t, t = clip(y − φᵀw, ±r)/r: of a row only t is protected, and ‖φt − φt′‖ ≤ 2‖φ‖."""

    head: Features
    output_reach: ClassVar[float] = 64.0  # as for ResidualGram
    weights: tuple[int, ...]
    shift: int
    reach: float

    columns = property(lambda self: self.head.columns)  # one for each basis function
    norm2 = property(lambda self: self.head.norm2)  # ‖φ‖² ≤ R², |t| ≤ 1

    @cached_property
    def _residuals(self) -> StagedPlan:
        return ResidualGram(self.head, (self.weights,), self.shift, (self.reach,)).plan()

    def rows(self, records: Array) -> Array:
        """φ·t, by the very operations of `ResidualGram`."""
        inner = self._residuals
        h = inner.head_integers(records)
        t = inner.tail_integers(h, records)
        return np.asarray(h * t) * (4.0**-inner.bits / float(self.head.radius2) ** 0.5)


def reward_sum(statistic: ResidualGram) -> RewardSum:
    """The same residuals, for rewards alone."""
    return RewardSum(statistic.head, statistic.weights[0], statistic.shift, statistic.reach[0])
