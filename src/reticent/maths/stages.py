"""Staged residual releases: what several noisy Gram matrices say about the weights of a linear model.

The model is y = φ(x)ᵀw + noise of variance s², w ~ N(0, S). Stage k releases, with Gaussian noise of known scale,

    A_k = Σ φ e_k,   B_k = Σ φφᵀ,   q_k = Σ e_k²,      e_k = clip(y − φᵀw_k, ±r_k),   w_k: the weights known before the stage.

Clipping a residual with standard deviation s at r = z·s keeps, of its linear part, the gain g = P(|N| < z) (Bussgang), and adds
a distortion that is uncorrelated with it. All stages see the same residual noise, so with weights ω_k (Σω = 1) they merge
into one observation of w, linear and Gaussian given the noise in B:

    Σ ω_k A_k/g_k + B̂ w̄  =  B̂ w + noise,   w̄ = Σ ω_k w_k
    Cov = s²B̂ + V∘E[(w−w̄)(w−w̄)ᵀ]-terms + Σ ω_k² (σ_k²I + D_k)/g_k²

B̂ is a public guess, corrected by the mean of all released B: the eigenvalues of their difference are shrunk as the noise, whose
law is known, asks for. What error remains, of variance V an entry, multiplies only w − w̄, which is small after the first
stages. Its expectation depends on the answer, so it is iterated. Each stage sees again what an error in B̂ left over, as far as
noise in A lets it: so where steps are damped, and do not go too far, it counts for no more than a part of that noise. (It is
large where w is little known, and would keep w from being known better.) The precision S⁻¹ + B̂Cov⁻¹B̂ is positive for every draw
of the noise: nothing has to be regularised.

Records may be weighted: then φ and y are their products with weights of at most one (`maths.gram`), and what the basis cannot
represent counts by their mean square.

S and s² need not be known. Each of several hypotheses about S gets the s² that fits the released q best, and a weight by the
evidence of all that was released; the next stage uses their mean. An s² that is known is the least: a fit that is far off, or
outliers, show in q, and a belief that explains them away as nothing would walk on in short clipped steps.
"""

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from reticent.maths.clips import (
    TRUST,
    clip_moments,
    clipped_second,
    differing,
    shared_distortion,
    skewness,
    unclipped_variance,
    uneven_excess,
)
from reticent.maths.gram import GramBelief
from reticent.maths.linalg import LEAST_ROUNDING, ROUNDING, factor, own_covariance, solve_lower, solve_upper

__all__ = ["Staged"]

Array = NDArray[np.float64]
_LEAST_GAIN = 0.3
_ROUNDS = 20
_TOGETHER = 2**16  # entries of matrices of several hypotheses that fit a cache
_NOISES = np.geomspace(1e-4, 1e2, 61)  # s² as a multiple of the first guess
_MORE = np.geomspace(1.0, 1e2, 41)  # the same of a known one: residuals may be larger than it explains
_BURDEN = 2.0  # nats by which more noise than is known must fit better
_NOISE_SPREAD = 3.0  # of log s² a priori
_ROUGHNESS_SPREAD = 1.0  # the same of the variance of what the basis cannot represent
_LOGITS, _NOTHING = np.linspace(-12, 12, 121), 1e-9
_UNDERSTATED = 1.0  # the error in B̂ counts once more: its variance is made for the best estimate
_SEEN = 0.3  # part of the noise in A that the error in B̂ counts for at most, where steps are damped


@dataclass(frozen=True)
class _Stage:
    observed: Array  # A/g
    centre: Array  # w_k
    noise: float  # variance of the noise in A/g
    distortion: Array  # covariance of the clip's distortion, by g²
    second: float  # q/n
    second_sd: float
    reach: float  # r
    lean: float  # by which A/g is off, in units of B̂ along the level, for a third cumulant of one
    narrowed: bool  # whether r is narrower than is safe for skewed noise


@dataclass(frozen=True)
class _Fit:
    """The posterior of w under one hypothesis, and its evidence."""

    mean: Array
    root: Array  # covariance = rootᵀ·root
    evidence: float


@dataclass
class Staged:
    """The belief about w, stage by stage.

    Parameters: for each hypothesis the prior covariance of w and the variance of what the basis cannot represent; features at
    points that are spread like the records may be; the number of records; the variance of the observation noise, and whether that
    is only a first guess (else it is the least); whether the hypotheses are to be weighed; the square of the least weight that a
    record can have (1: records are not weighted; less: the noise must be known).
    """

    hypotheses: Array
    outside: Array
    points: Array
    n: int
    noise2: float
    learn_noise: bool = False
    learn_prior: bool = True
    least: float = 1.0
    damping: float = 0.0  # of B̂ (`GramBelief`)
    narrowed: bool = field(init=False, default=False)  # whether the next clip is narrower than is safe for skewed noise
    earlier: tuple[Array, Array] | None = None  # (H, z): what is known of w beforehand, z = H·w + N(0, I)
    odds: Array | float = 0.0  # logarithms of the hypotheses' prior weights
    level: Array | None = None  # weights of a function that is one everywhere; by least squares if not given
    at_first: float | None = None  # what looked like noise before the first stage; the guess if nothing did
    mean: Array = field(init=False)
    covariance: Array = field(init=False)

    def __post_init__(self) -> None:
        m = len(self.hypotheses[0])
        self.hypotheses = np.asarray(self.hypotheses)
        self._roots: Array = np.asarray(np.linalg.cholesky(self.hypotheses), dtype=np.float64)
        diagonals = self._roots.diagonal(axis1=1, axis2=2)
        if np.count_nonzero(self._roots) == np.count_nonzero(diagonals):  # as in the default prior
            self._roots = diagonals.copy()  # products with them take less time
        self._gram = GramBelief(self.points, self.n, damping=self.damping, least=self.least)
        self._noise: Array | float = self.noise2 if self.at_first is None else self.at_first  # of each hypothesis
        self._s2 = self._noise + self._gram.share * self.outside
        self._use(np.full(len(self._roots), 1 / len(self._roots)))
        self._H, self._z = self.earlier or (np.zeros((0, m)), np.zeros(0))
        self.mean, self.covariance = np.zeros(m), self.prior.copy()
        if self.earlier:
            self.covariance = own_covariance(self._root, self._H.T @ self._H)
            self.mean = self.covariance @ (self._H.T @ self._z)
        self.stages: list[_Stage] = []
        even = np.linalg.lstsq(self.points, np.ones(len(self.points)), rcond=None)[0]
        self._level: Array = np.asarray(even if self.level is None else self.level, dtype=np.float64)
        self._size, self._usual = 1.0, self.residual_sd()

    def _use(self, weights: Array) -> None:
        """Take the mean of the hypotheses with these weights."""
        self.weights = weights
        self.prior: Array = np.asarray(np.tensordot(weights, self.hypotheses, 1), dtype=np.float64)
        self._root: Array = np.asarray(np.linalg.cholesky(self.prior), dtype=np.float64)
        self.s2 = float(weights @ self._s2)

    @property
    def first(self) -> Array:
        """The prior covariance of w before anything was released."""
        return np.asarray(np.mean(self.hypotheses, axis=0))

    @property
    def laws(self) -> Array:
        """Laws of the records on the points that agree with the releases, a row each."""
        return self._gram.laws

    def stretch(self) -> None:
        """Take functions for larger than was said, if residuals are larger than outputs should be: the range of y is wrong."""
        before, self._size = self._size, max(self.residual_sd() / self._usual, 1.0)
        ratio = (self._size / before) ** 2
        if ratio == 1:
            return
        self.hypotheses, self._roots = ratio * self.hypotheses, math.sqrt(ratio) * self._roots
        self.outside = ratio * self.outside
        self._use(self.weights)
        self._solve()
        self._weigh()
        self._solve()

    def residual_sd(self) -> float:
        """Standard deviation of a residual, as far as is known."""
        return math.sqrt(self.doubt() + self.s2)

    def doubt(self) -> float:
        """Variance of φᵀw on average over the records, as far as B is known."""
        return max(float((self.covariance * self._gram.possible).sum()) / self.n, 0.0)

    def add(self, A: Array, A_sd: float, B: Array, B_sd: Array, q: float, q_sd: float, r: float, centre: Array) -> None:
        """Take in one stage, whose residuals were clipped at ±r around ``centre``."""
        self._gram.add(B, B_sd)
        if self.least < 1:
            self._s2 = self._noise + self._gram.share * self.outside
            self.s2 = float(self.weights @ self._s2)
        variance = unclipped_variance(self.doubt() + self.s2, q / self.n, q_sd / self.n, r)
        inside, second, odd = clip_moments(r / math.sqrt(variance))
        gain = max(inside, _LEAST_GAIN)
        P = self.points[::2]  # evenly spread too, and enough for a mean
        common, here = shared_distortion(P, self._gram.share * (P @ self.covariance), self.s2, odd)
        own = max((second - gain**2 - here) * variance, 0.0)
        shared = self.n**2 * variance * common
        distortion = self._gram.share * (shared + self.n * own * self._gram.law)
        noise = (A_sd / gain) ** 2
        told = q / self.n, q_sd / self.n, r
        lean = odd[0] / (math.sqrt(6) * gain * variance)  # Gram and Charlier's: of noise that is nearly normal
        self.stages.append(_Stage(A / gain, centre, noise, distortion / gain**2, *told, lean, self.narrowed))
        self._solve()
        before = self.s2
        self._weigh()
        if len(self._roots) > 1 or self.s2 != before:
            self._solve()

    def _solve(self) -> None:
        B, V, m = self._gram.mean, self._gram.variance, len(self.mean)
        centres = np.array([one.centre for one in self.stages])
        observed = np.array([one.observed for one in self.stages])
        noises = np.array([one.noise for one in self.stages])
        distortions = np.array([one.distortion for one in self.stages])
        own = noises + np.trace(distortions, axis1=1, axis2=2) / m + self.skew()
        (lean, doubt), along = self._lean(), B @ self._level
        leans = np.array([one.lean for one in self.stages])
        for _ in range(_ROUNDS):
            # stages that started far from w suffer from the error in B: they count less
            far = ((self.mean - centres) ** 2 + np.diag(self.covariance)) @ V.mean(axis=0)
            omega = 1 / (own + far)
            omega /= omega.sum()
            centre = omega @ centres
            self._observed = omega @ observed + B @ centre - lean * (omega @ leans) * along
            away = self.mean - centre
            second = self.covariance + np.outer(away, away)
            self._wrong = V * second
            np.fill_diagonal(self._wrong, V @ np.diag(second))
            noise = np.tensordot(omega**2, distortions, 1) + doubt * (omega @ leans) ** 2 * np.outer(along, along)
            noise.ravel()[:: m + 1] += omega**2 @ noises
            expected = max(float(np.trace(self._wrong)), 1e-300)
            part = min(_SEEN * float(np.trace(noise)) / expected, 1.0) if self.damping else 1.0
            self._W = self.s2 * B + part * self._wrong + noise
            fit, before = self._fit(self._root, self._W), self.mean
            self.mean, self.covariance = fit.mean, fit.root.T @ fit.root
            if np.linalg.norm(self.mean - before) <= 1e-6 * (1 + np.linalg.norm(self.mean)):
                break

    def _fit(self, root: Array, W: Array) -> _Fit:
        """Posterior of w ~ N(0, root·rootᵀ) from observed = B̂w + N(0, W), in coordinates in which the prior is the identity."""
        lower = factor(W, ROUNDING)
        H = np.vstack([solve_lower(lower, self._gram.mean @ root), self._H @ root])
        z = np.concatenate([solve_lower(lower, self._observed), self._z])
        inner = factor(np.eye(len(W)) + H.T @ H, LEAST_ROUNDING)
        half, told = solve_lower(inner, root.T), solve_lower(inner, H.T @ z)
        logdet = np.log(np.diag(lower)).sum() + np.log(np.diag(inner)).sum()
        return _Fit(half.T @ told, half, float(-logdet - (z @ z - told @ told) / 2))

    def _fits(self) -> tuple[Array, Array, Array]:
        """Of `_fit` under each hypothesis, with its own noise: the means, tr(B·covariance), and the evidence.

        One basis T makes all of them easy: TᵀT = W and TᵀλT = B, so that a hypothesis' noise changes a diagonal only.
        """
        lower, B = factor(self._W, ROUNDING), self._gram.possible
        whitened = solve_lower(lower, solve_lower(lower, B).T)
        values, vectors = np.linalg.eigh((whitened + whitened.T) / 2)
        values = np.clip(values, 0.0, 1 / self.s2)  # W has s²B̂ in it
        T, z = (np.sqrt(values) * (lower @ vectors)).T, vectors.T @ solve_lower(lower, self._observed)
        design = vectors.T @ solve_lower(lower, self._gram.mean)
        spread = np.sqrt(np.maximum(1 + (self._s2[:, None] - self.s2) * values, LEAST_ROUNDING))
        design, z = np.vstack([design, self._H]), np.concatenate([z, self._z])
        spread = np.hstack([spread, np.ones((len(spread), len(self._z)))])
        z = z / spread
        means, doubts, evidence = np.empty((len(z), len(T))), np.empty(len(z)), -np.log(spread).sum(axis=1)
        few = max(_TOGETHER // len(T) ** 2, 1)
        for first in range(0, len(z), few):
            some = slice(first, first + few)
            told, seen = self._times(design, some) / spread[some, :, None], self._times(T, some)
            inner = told.transpose(0, 2, 1) @ told
            size = 1 + inner.trace(axis1=1, axis2=2) / len(T)
            inner.reshape(len(inner), -1)[:, :: len(T) + 1] += 1 + LEAST_ROUNDING * size[:, None]
            for h, one in enumerate(np.linalg.cholesky(inner), first):
                known = solve_lower(one, z[h] @ told[h - first])
                means[h], doubts[h] = solve_upper(one, known), np.square(solve_lower(one, seen[h - first].T)).sum()
                evidence[h] -= np.log(np.diag(one)).sum() + (z[h] @ z[h] - known @ known) / 2
        means = means * self._roots if self._roots.ndim == 2 else (self._roots @ means[:, :, None])[:, :, 0]
        return means, doubts, evidence

    def _times(self, matrix: Array, some: slice) -> Array:
        """The matrix times the roots of some hypotheses."""
        roots = self._roots[some]
        return matrix * roots[:, None] if roots.ndim == 2 else matrix @ roots

    def _only(self) -> tuple[Array, Array, Array]:
        """What `_fits` gives for a single hypothesis, which is the present fit."""
        return self.mean[None], np.array([max((self.covariance * self._gram.possible).sum(), 0.0)]), np.zeros(1)

    def _weigh(self) -> None:
        """Give each hypothesis its noise and its weight by the evidence."""
        B, n = self._gram.possible, self.n
        second, sd, reach = np.array([(one.second, one.second_sd, one.reach) for one in self.stages]).T
        means, doubts, evidence = self._fits() if len(self._roots) > 1 else self._only()
        away = means[:, None] - np.array([one.centre for one in self.stages])
        explained = (doubts[:, None] + np.maximum(((away @ B) * away).sum(axis=2), 0.0)) / n
        noise = self.noise2 * (_NOISES if self.learn_noise else _MORE)
        s2 = noise + self._gram.share * self.outside[:, None]
        expected = clipped_second(explained[:, None] + s2[:, :, None], reach)
        misfit = (second - expected) ** 2 / (sd**2 + (TRUST * expected) ** 2)
        fits = -(misfit.sum(axis=2) + (np.log(s2 / self.noise2) / _NOISE_SPREAD) ** 2) / 2
        if not self.learn_noise:
            fits[:, 1:] -= _BURDEN
        best = fits.argmax(axis=1)[:, None]
        self._noise, self._s2 = noise[best[:, 0]], np.take_along_axis(s2, best, axis=1)[:, 0]
        self._means = means
        scores = self.odds + evidence + np.take_along_axis(fits, best, axis=1)[:, 0]
        weights = np.exp(scores - scores.max()) if self.learn_prior else self.weights
        self._use(weights / weights.sum())

    def skew(self) -> Array:
        """Variance of each stage by skewed noise: none, unless narrow clips see another sum of outputs than wide ones.

        Of skewed noise, narrow clips leave another mean than wide ones, which came first: beyond what chance explains, they err.
        """
        narrow = np.array([one.narrowed for one in self.stages])
        return np.asarray(
            narrow * (differing(*self._levels(), narrow) / (self._level @ self._level) if narrow.any() else 0.0)
        )

    def _levels(self) -> tuple[Array, Array]:
        """What each stage says of the outputs' sum, and the variance of what stages do not share."""
        u, centres = self._level, np.array([one.centre for one in self.stages])
        levels = (np.array([one.observed for one in self.stages]) + centres @ self._gram.mean) @ u
        far = ((self.mean - centres) ** 2 + np.diag(self.covariance)) @ (self._gram.variance @ u**2)
        return levels, far + np.array([one.noise * (u @ u) + u @ one.distortion @ u for one in self.stages])

    def _lean(self) -> tuple[float, float]:
        """Third cumulant of noise that is learned, and the variance of what is not known of it."""
        if not self.learn_noise:
            return 0.0, 0.0
        third, along = self.s2**1.5, float(self._level @ self._gram.mean @ self._level)
        mean, variance = skewness(*self._levels(), third * along * np.array([one.lean for one in self.stages]))
        return third * mean, third**2 * variance

    def averaged(self) -> Array:
        """The mean of w over the hypotheses, each fitted by itself, to predict with.

        Steps go by ``mean``, with the mean of the priors: careful where nobody is, but unlikely short waves let noise through.
        """
        return self.weights @ self._means if self.learn_prior and len(self._roots) > 1 else self.mean

    def mean_square(self, j: int) -> float:
        """Mean square of one feature among the records, as B̂ has it; from half the least to the most at a point."""
        square = np.square(self.points[:, j])
        return float(np.clip(self._gram.possible[j, j] / self.n, square.min() / 2, square.max()))

    def excess(self) -> float:
        """By how much the noise's variance exceeds s², which narrow clips tell: it need not be normal.

        They see the middle of a skewed or uneven noise only; the first stages, and the last one, are clipped wide.
        """
        away = np.array([one.centre for one in self.stages]) - self.mean
        explained = self.doubt() + np.maximum(((away @ self._gram.possible) * away).sum(axis=1), 0.0) / self.n
        second, sd, reach = np.array([(one.second, one.second_sd, one.reach) for one in self.stages]).T
        return uneven_excess(self.s2, explained, second, sd, reach)

    def roughness(self) -> float:
        """Variance of what the basis cannot represent, by the residuals too: without repeated inputs it looks like noise.

        Of what residuals show, s², any share may be of the function. Logarithms of both parts are normal a priori, of the
        function's around ``outside``; it is taken for no less than that.
        """
        if not self.learn_noise:
            return float(self.weights @ self.outside)
        part = 1 / (1 + np.exp(_LOGITS))  # noise's share
        usual = np.maximum(self.outside, _NOTHING * self._s2)[:, None]
        rough = np.log((1 - part) * self._s2[:, None] / usual) / _ROUGHNESS_SPREAD
        loud = np.log(part * self._s2[:, None] / self.noise2) / _NOISE_SPREAD
        chance = np.exp(-(rough**2 + loud**2) / 2 + (rough**2 + loud**2).min(axis=1, keepdims=True) / 2)
        share = (chance @ (1 - part)) / chance.sum(axis=1)
        return float(self.weights @ np.maximum(share * self._s2, self.outside))

    def error(self, share: float = 1.0) -> Array:
        """Covariance of the error of ``mean``, more careful than ``covariance``, on which the stages went.

        It is that of the same linear estimate where B̂ is not damped, the error in B̂ is as large as it was found to be (its
        variance is made for the best estimate, and falls short), and hypotheses are weighed by half of the evidence only.
        Learned from records in a ``share`` of the box, they are also believed by that share: what the prior leaves open there
        is more than it says (shorter waves than were thought of, in a box that is too wide).
        """
        lower = factor(self._W, ROUNDING)
        gain = solve_lower(lower, np.eye(len(lower))).T @ solve_lower(lower, self._gram.mean @ self.covariance)
        half = (np.log(np.maximum(self.weights, 1e-300)) + self.odds) / 2
        weights, before = np.exp(half - half.max()), self._H @ self.covariance
        root = np.linalg.cholesky(np.tensordot(weights / weights.sum(), self.hypotheses, 1))
        left = root - gain.T @ (self._gram.mean @ root) - before.T @ (self._H @ root)
        seen = gain.T @ (self._W + _UNDERSTATED * self._wrong) @ gain + before.T @ before
        return np.asarray(left @ left.T / share + seen)

    def evidence(self, prior: Array) -> tuple[float, Array]:
        """Its logarithm for another prior covariance of w, with the noise that is believed now; and the gradient."""
        B = self._gram.mean
        lower = factor(B @ prior @ B + self._W, ROUNDING)
        half, z = solve_lower(lower, B), solve_lower(lower, self._observed)
        pull = half.T @ z
        return float(-np.log(np.diag(lower)).sum() - z @ z / 2), (np.outer(pull, pull) - half.T @ half) / 2

    def told(self, onto: Array, beyond: Array, left: float) -> tuple[Array, Array]:
        """What was released, as an observation (H, z) of other weights v: w is onto·v + N(0, beyond).

        ``left``: how many times as many stages are to come. They see the same records' noise C again, but not the noise N of
        privacy: together all know 1/(C + N/(1 + left)), and those to come alone 1/(C + N/left). The difference is passed on.
        """
        B = self._gram.mean
        same = self.s2 * B
        own = self._W - same + B @ beyond @ B
        half = solve_lower(factor(own, ROUNDING), same)
        lower = factor(own + (2 * left + 1) * same + left * (left + 1) * half.T @ half, ROUNDING)
        return solve_lower(lower, B @ onto), solve_lower(lower, self._observed)

    def without_privacy(self) -> Array:
        """Covariance of the weights had the sums been seen without privacy noise: what is the model's own doubt."""
        return own_covariance(self._root, self._gram.mean / self.s2)
