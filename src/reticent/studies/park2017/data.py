"""Stand-ins for the two data sets of the DP-EM paper's Figs 2 and 3, which are not ours to give.

Records are drawn from a mixture whose columns have falling spreads, as principal components have;
centres lie apart mostly along the first columns, and every part has a covariance of its own. All is
scaled into the unit ball, and then so that the law itself has the log-likelihood per record that
our reading of the paper's figures has without privacy: 10.69 for 26,733 records of 10 columns in 3
parts, 247 for 50,000 of 100 columns in 10 parts.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reticent.inference.mixtures.gaussian_mixture import NormalMixture

__all__ = ["LIFE", "STROKE", "Kind"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Kind:
    """What a stand-in is like; ``steps``, ``each_delta``: of the paper's algorithm on it."""

    name: str
    n: int
    d: int
    parts: int
    decay: float  # spreads of columns j are proportional to j^-decay
    apart: float  # of centres, in spreads of the first column
    unlike: float  # of covariances: logarithms of stretches have this standard deviation
    level: float  # mean log-density of the law itself
    steps: int
    each_delta: float

    def draw(self, seed: int, n: int | None = None) -> tuple[Array, NormalMixture]:
        """Records in the unit ball, and the law that they were drawn from."""
        rng = np.random.default_rng(seed)
        n = n or self.n
        d = self.d
        place = np.arange(1, d + 1.0)
        spread = place**-self.decay
        weights = rng.dirichlet(np.full(self.parts, 5.0))
        means = self.apart * spread * place**-0.5 * rng.normal(size=(self.parts, d))
        roots = []
        for _ in range(self.parts):
            turn = np.linalg.qr(rng.normal(size=(d, d)))[0]
            stretch = self.unlike * rng.normal(size=d)
            roots.append(spread[:, None] * ((turn * np.exp(stretch - stretch.mean())) @ turn.T))
        law = NormalMixture(weights, means, np.array(roots))
        X = law.sample(n, rng)
        middle = X.mean(axis=0)
        X = X - middle
        law = NormalMixture(weights, means - middle, law.roots)
        scale = float(np.linalg.norm(X, axis=1).max())
        level = float(law.score(X[: min(n, 5000)]).mean()) + d * math.log(scale)
        scale *= max(math.exp((self.level - level) / d), 1.0)
        return X / scale, NormalMixture(weights, law.means / scale, law.roots / scale)


LIFE = Kind("Life-like", 26_733, 10, 3, 0.12, 2.5, 0.25, 10.69, 10, 1e-8)
STROKE = Kind("Stroke-like", 50_000, 100, 10, 0.33, 3.5, 0.42, 247.0, 20, 1e-7)
