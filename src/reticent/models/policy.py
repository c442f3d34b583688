"""What joint and local bandits share, all of it public: features, belief, batches, and the choice among candidates.

A policy says which statistic a batch is to be added up with (`stage`), takes in what was released of it (`take`), and
chooses (`choose`): the candidate with the highest mean + width·sd. Between two releases it does not change.
"""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.gaussian_process.kernels import Kernel

from reticent.errors import BadInput
from reticent.maths.anova import Anova, AnovaPriors
from reticent.maths.basis import public_points
from reticent.maths.gram import GramBelief
from reticent.maths.priors import KernelPriors, energies, kernels_around
from reticent.maths.tracking import Tracked
from reticent.models.residuals import Features, stage
from reticent.privacy.bounds import Bounds
from reticent.privacy.curator import Release

__all__ = ["GROWTH", "Policy", "batch_sizes", "best_of", "upper"]

Array = NDArray[np.float64]
GROWTH = 1.35
_FIRST = 8.0  # records of the first batch, by μ
_LEAST_BATCH = 6
_SHARE = 5.0  # of the prior variance, times μT, of a function that is worth having
_LEAST, _MOST = 4, 150
_EXPONENT, _QUANTILE = 0.4, 0.5  # of features: energies, and which length they are cut to (see models.gp)
_CLIP = 1.5  # in standard deviations of the residual
_NOISE = 0.2  # the least standard deviation of rewards that is told apart, in half-ranges
_PLAYS = 512  # rounds that are played in thought, to guess which candidates will be chosen
_VARIANCES, _LENGTHS, _LINEAR = (0.05, 0.3), (0.2, 0.4, 0.8), 0.1
_SHARES, _ADDITIVE, _FEW = (0.5, 0.35, 0.15), (1.0, 1e-3, 1e-4), 5
_TRIALS = 8
_CACHE = 2**18  # numbers


class Policy:
    """The public state of a bandit. ``mu``: strength of the noise, 1/multiplier; ``horizon``: rounds that the basis is for."""

    def __init__(
        self,
        bounds: Bounds,
        *,
        kernel: Kernel | None,
        mu: float,
        horizon: int,
        arms: int,
        width: float,
        basis: int | None = None,
        staged: bool = True,
    ) -> None:
        self._staged = staged  # whether residuals of the current fit are added up, or rewards as they are
        self.bounds, self.mu, self.width, self.arms = bounds, mu, width, arms
        self._basis, self.dimension = basis, len(bounds.x)
        low, high = bounds.y[0]
        self.middle, self.half = low / 2 + high / 2, high / 2 - low / 2
        self._priors: Any = _priors(bounds, kernel, self.half)
        self._choose_basis(horizon)
        self.belief = Tracked(self._hypotheses, self._outside, _NOISE**2)
        self._thought()

    def _choose_basis(self, horizon: int) -> None:
        priors = self._priors
        relative = priors.variances / max(float(priors.variances[1:].sum()), 1e-12)
        m = int((relative >= _SHARE / (self.mu * horizon)).sum()) if self._basis is None else int(self._basis)
        m = min(
            max(m, 1 if self._basis else _LEAST + 2 * self.dimension), _MOST if self._basis is None else m, priors.most
        )
        basis, hypotheses, self._outside = priors.choose(m)
        self._energy = energies(basis, priors.emphasis[:m], _EXPONENT, _QUANTILE)
        self.head = Features(basis, tuple(self._energy.tolist()), 1.0)
        self._hypotheses = [S / np.outer(self._energy, self._energy) for S in hypotheses]
        points = public_points(self.dimension, _PLAYS * self.arms)
        self._candidates = self.head.features(points).reshape(_PLAYS, self.arms, m)

    def grow(self, horizon: int) -> None:
        """More functions for more rounds; what is known about the old ones stays known."""
        old = self._energy
        self._choose_basis(horizon)
        if len(self._energy) > len(old):
            self.belief = self.belief.extended(self._hypotheses, self._outside, self._energy[: len(old)] ** -1 * old)
            self._thought()

    def _thought(self) -> None:
        """What the current choice would do among candidates that fill the box: a guess of the features that records will have."""
        C = self.belief.covariance
        self._root = np.linalg.cholesky(C + 1e-12 * np.trace(C) * np.eye(len(C)))
        self._single = self._root.astype(np.float32)  # a choice needs no more digits, and is twice as fast
        scores = self.scores(self._candidates)
        self._points = self._candidates[np.arange(_PLAYS), scores.argmax(axis=1)]
        law = self._points.T @ self._points / _PLAYS
        self.reach = min(_CLIP * self.belief.residual_sd(law), 2.0)
        centre = self.belief.mean if self._staged else 0 * self.belief.mean
        self.statistic = stage(self.head, centre[None, :], [self.reach if self._staged else 1.0])

    def scores(self, phi: Array) -> Array:
        """mean + width·sd at each feature row, in half-ranges."""
        return upper(phi, self.belief.mean, self._single, self.width)

    def features(self, candidates: Array) -> Array:
        """Features of candidates, whatever the shape before the last axis."""
        flat = candidates.reshape(-1, self.dimension)
        unit = self.bounds._with(y=(), y_names=None).unit(flat)
        return self.head.features(unit).reshape(*candidates.shape[:-1], self.head.columns)

    def choose(self, candidates: Array, rng: np.random.Generator) -> NDArray[np.int64]:
        """The best of each set of candidates (rounds × candidates × inputs); among equals, one at random."""
        together = max(_CACHE // (candidates.shape[1] * self.head.columns), 1)  # rounds whose features stay in cache
        pieces = [candidates[start : start + together] for start in range(0, len(candidates), together)]
        return best_of(np.concatenate([self.scores(self.features(piece)) for piece in pieces]), rng)

    def take(self, release: Release, noise: float = 1.0) -> None:
        """Learn from a released batch, whose noise is ``noise`` times that of the release's scale."""
        G, sd = release.matrix(), release.matrix_sd() * noise
        told, n, m = release.statistic, release.n, len(G) - 1
        centre, r = np.array(told["weights"][0]) * 2.0 ** -told["shift"], told["reach"][0]
        if n > 0:
            gram = GramBelief(self._points, n)
            gram.add(G[:m, :m], sd[:m, :m])
            known = G[:m, m] * r, float(sd[0, m]) * r, gram.mean, gram.variance, float(G[m, m]) * r * r
            self.belief.add(*known, float(sd[m, m]) * r * r, n, r, centre)
        self._thought()

    def take_public(self, A: Array, A_sd: float, B: Array, n: int, r: float, centre: Array) -> None:
        """Learn from rewards alone: the contexts, and so B, are public."""
        if n > 0:
            self.belief.add(A * r, A_sd * r, B, np.zeros_like(B), 0.0, math.inf, n, r, centre)
        self._thought()

    def again(self) -> None:
        """Forget all batches: a running sum holds them anyway."""
        self.belief = Tracked(self._hypotheses, self._outside, _NOISE**2)

    def paper_width(self, norm: float = 1.0, failure: float = 0.05) -> float:
        """√β_t as in Theorem 1 of the GP-UCB analysis, with the privacy noise where it is here, in the posterior covariance."""
        prior = np.einsum("h,hij->ij", self.belief.weights, np.array(self._hypotheses))
        gain = np.linalg.slogdet(prior)[1] - np.linalg.slogdet(self._root)[1] * 2
        return norm + math.sqrt(max(float(gain), 0.0) + 2 * math.log(2 / failure))

    def moments(self, candidates: Array) -> tuple[Array, Array]:
        """Mean and standard deviation of the reward function at candidates, in its own units."""
        phi = self.features(candidates)
        spread = ((phi @ self._root) ** 2).sum(axis=-1) + float(self.belief.weights @ self.belief.outside)
        return self.middle + self.half * (phi @ self.belief.mean), self.half * np.sqrt(spread)


def upper(phi: Array, mean: Array, root: NDArray[np.float32], width: float) -> Array:
    """mean + width·sd at each feature row."""
    level = phi @ mean
    if width == 0:
        return np.asarray(level)
    spread = phi.astype(np.float32) @ root
    np.multiply(spread, spread, out=spread)
    return np.asarray(level + width * np.sqrt(spread.sum(axis=-1)))


def best_of(scores: Array, rng: np.random.Generator) -> NDArray[np.int64]:
    """The best of each row; among equals, one at random."""
    best = scores == scores.max(axis=1, keepdims=True)
    return np.asarray((best * (1 + rng.random(best.shape))).argmax(axis=1))


def batch_sizes(mu: float, horizon: int | None, growth: float = GROWTH, first: float | None = None) -> Iterator[int]:
    """Sizes of batches, each ``growth`` times the one before: public, and without end if the horizon is not known."""
    size = max(_FIRST / mu if first is None else first, _LEAST_BATCH)
    left = horizon
    while left is None or left > 0:
        whole = round(size)
        if left is not None:
            whole = left if left - whole < 0.3 * growth * size else whole  # no short last batch
            left -= whole
        yield whole
        size *= growth


def _priors(bounds: Bounds, kernel: Kernel | None, half: float) -> Any:
    d = len(bounds.x)
    if kernel is None:
        shares = _SHARES if d <= _FEW else _ADDITIVE
        trials = [Anova(variance=v, shares=shares, linear=_LINEAR, length=t) for v in _VARIANCES for t in _LENGTHS]
        return AnovaPriors(d, 0, trials)
    if not isinstance(kernel, Kernel):
        raise BadInput(f"kernel must be a scikit-learn kernel such as RBF(2.0), or None, not {kernel!r}.")
    halves = np.array([high / 2 - low / 2 for low, high in bounds.x])
    return KernelPriors(kernels_around(clone(kernel), halves, _TRIALS), d, bounds.natural, half)
