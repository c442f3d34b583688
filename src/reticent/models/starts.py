"""What stages of residual releases begin with, and begin again with once kernels are known better."""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from reticent.maths.priors import KernelPriors
from reticent.maths.stages import Staged
from reticent.models.residuals import Features
from reticent.privacy.curator import Release

__all__ = ["Start", "taken"]

Array = NDArray[np.float64]


@dataclass
class Start:
    """Features, points that are spread like the records, a belief for each output, how to clip."""

    head: Features
    like: Array
    beliefs: list[Staged]
    widest: float
    wider: float
    unseen: float  # share of the prior variance that the basis cannot show
    thin: float  # mean square of the weights that records have because their features would be too long
    before: "Start | None" = None  # with the kernels that were given, where these have been refined

    def coarse(self, missed: float | None = None) -> float:
        """Variance that the basis cannot show, as believed or as given, by that of what is not known of the function."""
        belief = self.beliefs[0]
        return (float(belief.weights @ belief.outside) if missed is None else missed) / max(belief.doubt(), 1e-300)

    def after(self, before: "Start", priors: KernelPriors, old: KernelPriors, odds: Array, left: float) -> "Start":
        """The same where stages with other functions, of other priors and one output, have told something.

        ``odds``: of the hypotheses here, which were made for what was told; ``left``: how many times as many stages are to come.
        """
        values, projection = priors.shown(self.head.columns)
        see = old.shown(before.head.columns)[1] / np.array(before.head.energy)[:, None]
        (then,), (now,) = before.beliefs, self.beliefs
        onto, beyond = see @ (values * np.array(self.head.energy)), priors.beyond(see - see @ values @ projection)
        belief = replace(now, earlier=then.told(onto, beyond, left), odds=odds, at_first=then.s2)
        return replace(self, beliefs=[belief], wider=before.wider, before=before)

    def moves(self, belief: Staged) -> float:
        """Variance of the function around its own mean, before anything was told."""
        first = self if self.before is None else self.before
        one = belief if self.before is None else self.before.beliefs[0]
        shown = first.head.functions(first.like)
        return float((one.first * np.cov(shown.T, bias=True)).sum()) + float(one.outside.mean()) / first.thin


def taken(release: Release, beliefs: list[Staged]) -> Features:
    """Tell each belief what a stage released. What was really asked counts: machines differ in the last bits of sums."""
    asked = release.statistic
    head = Features.from_dict(asked["head"])
    G, sd, p = release.matrix(), release.matrix_sd(), len(beliefs)
    m = len(G) - p
    for j, belief in enumerate(beliefs):
        w, r = np.array(asked["weights"][j]) * 2.0 ** -asked["shift"], asked["reach"][j]
        back, t = r * math.sqrt(p / head.radius2), m + j
        noise = sd[0, t] * back
        belief.add(G[:m, t] * back, noise, G[:m, :m], sd[:m, :m], G[t, t] * back**2, sd[t, t] * back**2, r, w)
    return head
