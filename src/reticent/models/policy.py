"""What joint and local bandits share, all of it public: features, belief, batches, and the choice among candidates.

A policy says which statistic a batch is to be added up with (`stage`), takes in what was released of it (`take`), and
chooses (`choose`): the candidate with the highest mean + width·sd, and in the first batch any. Between two releases it does not
change. Before each batch it plays that batch in thought, to know which features to expect, and makes those functions loud in the
features of which least is known.
"""

import math
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Kernel

from reticent.errors import BadInput
from reticent.maths.anova import Anova, AnovaPriors
from reticent.maths.basis import public_points
from reticent.maths.played import WRONG, PlayedGram
from reticent.maths.priors import KernelPriors, energies, kernels_around
from reticent.maths.tracking import Tracked
from reticent.models.residuals import Features, stage
from reticent.privacy.bounds import Bounds
from reticent.privacy.curator import Release

__all__ = ["GROWTH", "Policy", "batch_sizes", "best_of", "coins", "upper"]

Array = NDArray[np.float64]
Words = NDArray[np.uint64]
GROWTH = 1.2
_FIRST = 8.0  # records of the first batch, by μ
_LEAST_BATCH = 6
_FIRST_SHARE = 0.01  # and at least so much of the horizon
_SHARE = 5.0  # of the prior variance, times μT, of a function that is worth having
_LEAST, _MOST = 4, 200
_EXPONENT, _QUANTILE = 0.4, 0.5  # of features: energies, and which length they are cut to (see models.gp)
_LOUD = 0.1  # of the variance of all other functions: the most that one of them counts for
_AGAIN = 0.3  # the same exponent, of what is not known of a function after the first batch
_FIRST_CLIP, _CLIP = 1.5, 0.8  # in standard deviations of the residual
# from which standard deviation on, or share of the largest variance, rewards count as they are
_WIDE, _EXTREME = 0.7, 0.5
_NOISE = 0.2  # the least standard deviation of rewards that is told apart, in half-ranges
_LEAST_PLAYS, _PLAYS = 256, 2048  # rounds that are played in thought, about as many as a batch has
_EVENLY = 1024  # points that stand for the box
_CONSTANT, _VARIANCES, _LENGTHS = 0.25, (0.15, 0.4), (0.3, 0.6)
# above so many inputs, effects of single inputs, whose variances are learned degree by degree: a rough guess will do
_FEW, _ADDITIVE = 5, Anova(variance=0.1, shares=(1.0, 1e-3, 1e-4), linear=0.0, length=0.13)
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
        self.bounds, self.mu, self.width, self.arms = bounds, mu, width, int(arms)
        self._basis, self.dimension = basis, len(bounds.x)
        low, high = bounds.y[0]
        self.middle, self.half = low / 2 + high / 2, high / 2 - low / 2
        self._priors: Any = _priors(bounds, kernel, self.half)
        coins = np.random.Generator(np.random.PCG64(8))  # public: everyone plays the same in thought
        self._imagined: Callable[[int], Array] = lambda count: 2 * coins.random((count, self.dimension)) - 1
        self._plays, self._informed = _LEAST_PLAYS, False
        self._choose_basis(horizon)
        self.belief, self._misfit = self._unlearned()
        self._thought()

    def _choose_basis(self, horizon: int) -> None:
        priors = self._priors
        relative = priors.variances / max(float(priors.variances[1:].sum()), 1e-12)
        m = int((relative >= _SHARE / (self.mu * horizon)).sum()) if self._basis is None else int(self._basis)
        m = min(
            max(m, 1 if self._basis else _LEAST + 2 * self.dimension), _MOST if self._basis is None else m, priors.most
        )
        basis, hypotheses, self._outside = priors.choose(m)
        self._energy = energies(basis, priors.variances[:m], _EXPONENT, _QUANTILE)
        self.head = Features(basis, tuple(self._energy.tolist()), 1.0)
        self._hypotheses = [S / np.outer(self._energy, self._energy) for S in hypotheses]
        self._alike = priors.alike(m) if isinstance(priors, AnovaPriors) else None

    def grow(self, horizon: int) -> None:
        """More functions for more rounds; what is known about the old ones stays known."""
        old = self._energy
        self._choose_basis(horizon)
        units = old / self._energy[: len(old)]
        if len(self._energy) > len(old):
            self.belief = self.belief.extended(self._hypotheses, self._outside, units, self._alike)
        else:
            self.belief.rescale(units)
        self._thought()

    def _thought(self) -> None:
        """Get ready for the next batch: features, what to expect of them, and the clip."""
        if self._informed and self._staged:
            self._emphasise()
        C = self.belief.covariance
        self._root = np.linalg.cholesky(C + 1e-12 * np.trace(C) * np.eye(len(C)))
        # a choice needs no more digits, and is twice as fast; as long as nothing is known, all candidates are equal
        self.level, self.spread = self.belief.mean * self._informed, (self._root * self._informed).astype(np.float32)
        self._points = self._played()
        law = self._points.T @ self._points / len(self._points)
        self.reach, centre = self._window(law)
        self.statistic = stage(self.head, centre[None, :], [self.reach])

    def _window(self, law: Array) -> tuple[float, Array]:
        """Which part of rewards counts: those within a reach of the fit, or all of them, about the middle of their range.

        Noise is as large as the reach is. A normal residual tells most within .8 standard deviations of the fit; of rewards that
        are mostly at either end of their range, that would leave out the rare ones, from which all is learned.
        """
        known, mean = self.belief, self.belief.mean
        sd, fit = known.residual_sd(law), np.clip(self._points @ mean, -1, 1)
        least = _NOISE**2 + float(known.weights @ known.outside)
        # share of the largest variance that rewards can have about this fit, of what is more than the least
        extreme = (known.s2 - least) / max(1 - float(np.mean(fit**2)) - least, known.s2 - least, 1e-6)
        if not self._staged:  # one sum for all rounds: what it adds up must never change
            return 1.0, 0 * mean
        if not self._informed:
            return min(_FIRST_CLIP * sd, 1.0), 0 * mean
        if sd >= _WIDE or extreme >= _EXTREME:
            return 1.0, 0 * mean
        return _CLIP * (1 + known.s2) * sd, mean

    def _emphasise(self) -> None:
        """Noise is the same for all features: give most of their length to functions of which little is known."""
        old = self._energy
        variances = _emphasis(np.diag(self.belief.covariance) * old**2)
        self._energy = energies(self.head.basis, variances, _AGAIN, _QUANTILE)
        self.head = replace(self.head, energy=tuple(self._energy.tolist()))
        self.belief.rescale(old / self._energy)

    def _played(self) -> Array:
        """Features of what would be chosen among candidates that are drawn evenly; each time other ones."""
        parts = []
        for _ in range(0, self._plays, _LEAST_PLAYS):
            phi = self.head.features(self._imagined(_LEAST_PLAYS * self.arms)).reshape(_LEAST_PLAYS, self.arms, -1)
            parts.append(phi[np.arange(_LEAST_PLAYS), self.scores(phi).argmax(axis=1)])
        return np.concatenate(parts)

    def imagine(self, draw: Callable[[int], Array]) -> None:
        """Draw the candidates of plays in thought, in [−1, 1]ᵈ, from another law than the even one. Only accuracy rests on it."""
        self._imagined = draw
        self._thought()

    def scores(self, phi: Array) -> Array:
        """mean + width·sd at each feature row, in half-ranges."""
        return upper(phi, self.level, self.spread, self.width)

    def features(self, candidates: Array) -> Array:
        """Features of candidates, whatever the shape before the last axis."""
        flat = candidates.reshape(-1, self.dimension)
        unit = self.bounds._with(y=(), y_names=None).unit(flat)
        return self.head.features(unit).reshape(*candidates.shape[:-1], self.head.columns)

    def choose(self, candidates: Array | Sequence[Array], words: Words) -> NDArray[np.int64]:
        """The best of each set of candidates; among equals, the one that the round's own word draws.

        An array of (rounds, candidates, inputs), or a list of sets of any size: those are judged
        one by one, so that not even the rounding of a score depends on how many candidates others
        have. Of an empty set: 0.
        """
        if not isinstance(candidates, np.ndarray):
            own = [self.choose(one[None], words[i : i + 1])[0] if len(one) else 0 for i, one in enumerate(candidates)]
            return np.array(own, dtype=np.int64)
        together = max(_CACHE // (candidates.shape[1] * self.head.columns), 1)  # rounds whose features stay in cache
        pieces = [candidates[start : start + together] for start in range(0, len(candidates), together)]
        return best_of(np.concatenate([self.scores(self.features(piece)) for piece in pieces]), words)

    def take(self, release: Release, noise: float = 1.0) -> None:
        """Learn from a released batch, whose noise is ``noise`` times that of the release's scale."""
        G, sd = release.matrix(), release.matrix_sd() * noise
        told, n, m = release.statistic, release.n, len(G) - 1
        centre, r = np.array(told["weights"][0]) * 2.0 ** -told["shift"], told["reach"][0]
        if n > 0:
            even = self.head.features(public_points(self.dimension, _EVENLY))
            gram = PlayedGram(self._points, even.T @ even / _EVENLY, n, G[:m, :m], float(sd[0, 1]), self._misfit)
            self._misfit = gram.misfit
            echo, whole = told.get("echo", 0.0), r >= 1 and not centre.any()
            own = float(sd[0, m]) * r / math.sqrt(1 + echo**2)  # the noise of this batch alone
            known = G[:m, m] * r, own, gram.mean, float(G[m, m]) * r * r, float(sd[m, m]) * r * r
            self.belief.add(*known, n, r, centre, gram.variance, gram.axes, echo, whole)
        self._plays, self._informed = min(max(n, _LEAST_PLAYS), _PLAYS if self._staged else _LEAST_PLAYS), True
        self._thought()

    def take_public(self, A: Array, A_sd: float, B: Array, n: int, r: float, centre: Array, echo: float = 0.0) -> None:
        """Learn from rewards alone: the contexts, and so B, are public."""
        if n > 0:
            whole = r >= 1 and not centre.any()
            own = A_sd * r / math.sqrt(1 + echo**2)
            self.belief.add(A * r, own, B, 0.0, math.inf, n, r, centre, echo=echo, whole=whole)
        self._plays, self._informed = min(max(n, _LEAST_PLAYS), _PLAYS), True
        self._thought()

    def again(self) -> None:
        """Forget all batches: a running sum holds them anyway."""
        self.belief, self._misfit = self._unlearned()

    def _unlearned(self) -> tuple[Tracked, Array]:
        return Tracked(self._hypotheses, self._outside, _NOISE**2, self._alike), np.zeros(len(WRONG))

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


def _emphasis(variances: Array) -> Array:
    """The constant, which one batch mostly tells, needs no feature as loud as it may be large, but one of the loudest."""
    if len(variances) == 1:
        return variances
    return np.minimum(variances, max(np.sort(variances)[-2], _LOUD * (variances.sum() - variances.max())))


def upper(phi: Array, mean: Array, root: NDArray[np.float32], width: float) -> Array:
    """mean + width·sd at each feature row."""
    level = phi @ mean
    if width == 0:
        return np.asarray(level)
    spread = phi.astype(np.float32) @ root
    np.multiply(spread, spread, out=spread)
    return np.asarray(level + width * np.sqrt(spread.sum(axis=-1)))


def coins(count: int, first: int = 0, seed: bytes | None = None) -> Words:
    """One word of 64 random bits for each round, however many candidates it has: from the operating system.

    With a ``seed`` (tests; nothing is private then) the word of a round follows from the seed and
    the round's number.
    """
    if seed is None:
        return np.frombuffer(os.urandom(8 * count), dtype="<u8")
    names = (b"reticent, not private: round %d of " % number + seed for number in range(first, first + count))
    return np.frombuffer(b"".join(sha256(name).digest()[:8] for name in names), dtype="<u8")


def best_of(scores: Array, words: Words) -> NDArray[np.int64]:
    """The best of each row; among k equals, the ⌊uk⌋-th, u the first 53 bits of the row's word (k·2⁻⁵³ from even)."""
    best = scores == scores.max(axis=1, keepdims=True)
    equals = best.cumsum(axis=1, dtype=np.int32)
    drawn = (words >> np.uint64(11)) * 2.0**-53 * equals[:, -1]
    return np.asarray((equals > drawn.astype(np.int32)[:, None]).argmax(axis=1))


def batch_sizes(mu: float, horizon: int | None, growth: float = GROWTH, first: float | None = None) -> Iterator[int]:
    """Sizes of batches, each ``growth`` times the one before: public, and without end if the horizon is not known."""
    size = max(_FIRST / mu if first is None else first, _LEAST_BATCH, _FIRST_SHARE * (horizon or 0))
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
    if kernel is None and d > _FEW:
        return AnovaPriors(d, 0, [_ADDITIVE])
    if kernel is None:  # of the same variance everywhere: where no candidates are, nothing draws the choice there
        kernels = [ConstantKernel(_CONSTANT) + ConstantKernel(v) * RBF(t) for v in _VARIANCES for t in _LENGTHS]
        return KernelPriors(kernels, d, lambda unit: unit, 1.0)
    if not isinstance(kernel, Kernel):
        raise BadInput(f"kernel must be a scikit-learn kernel such as RBF(2.0), or None, not {kernel!r}.")
    halves = np.array([high / 2 - low / 2 for low, high in bounds.x])
    return KernelPriors(kernels_around(clone(kernel), halves, _TRIALS), d, bounds.natural, half)
