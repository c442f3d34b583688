"""What batches of records, each seen once through noise, say about the weights of a linear model: a Kalman filter.

The model is that of `maths.stages`, y = φ(x)ᵀw + noise of variance s², w ~ N(0, S); but each batch has records of its own, so
that what one batch says is independent of the others given w. A batch of n records gives, with Gaussian noise of known scale,

    A = Σ φ e,   B = Σ φφᵀ,   q = Σ e²,      e = clip(y − φᵀc, ±r),   c: the mean of w before the batch.

With the gain g of the clip and a belief B̂ about B whose entries have error variances V in some axes (`maths.played`),

    A/g + B̂c = B̂w + noise,   Cov = (s² + distortion)·B̂ + V∘E[(w−c)(w−c)ᵀ]-terms + (σ/g)²I

so noise in B multiplies only w − c, and the filter's covariance is positive for every draw of the noise. Each hypothesis about S
has a filter of its own and a weight by its evidence; s² follows from the released q.

Where a batch takes back a part of the last one's noise (A has noise σ(z_t − ρz_{t−1})), the filter's state is (w, z_t): what is
known of w tells what the last noise was. And where weights are said to be alike (those of one degree, for all inputs), their
common prior variance is learned (MacKay's fixed point), and the filter is given the new prior in the place of the old one:
posterior precisions are those of the prior plus those of the data, so that the old one can be taken out again.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from reticent.maths.clips import clip_moments, clipped_second
from reticent.maths.linalg import ROUNDING, factor, solve_lower

__all__ = ["Tracked"]

Array = NDArray[np.float64]
_LEAST_GAIN = 0.3
_NOISES = np.geomspace(1.0, 25.0, 17)  # s² as a multiple of the least
_NOISE_SPREAD = 3.0  # of log s² a priori
_LASTS = 0.8  # what a batch said about s² counts so much less in the next: other places were chosen, by a poorer fit
_VARIANCES = np.geomspace(1e-2, 1e2, 81)  # of a residual, as a multiple of what was expected
_SURPRISE = 0.3  # in the logarithm of that variance
_TRUST = 0.05  # relative error of a second moment: residuals are not quite normal
_ROUNDS, _SETTLED = 2, 3.0  # steps of the fixed point, and how many weights the first guess of a variance counts for
_FASTEST, _FARTHEST = 5.0, 100.0  # by how much a variance may change, in a step and in all


class Tracked:
    """The belief about w, batch by batch.

    Parameters: for each hypothesis the prior covariance of w and the variance of what the basis cannot represent; the least
    variance of the observation noise that is worth telling apart; for each weight the number of the group that it is like, or
    -1 (priors are diagonal then), where variances are to be learned.
    """

    def __init__(
        self, priors: Sequence[Array], outside: Array, noise2: float, alike: NDArray[np.int64] | None = None
    ) -> None:
        self.outside, self._noise2 = np.asarray(outside, dtype=np.float64), noise2
        self._means = [np.zeros(len(S)) for S in priors]
        self._covariances = [S.copy() for S in priors]
        # of the last batch's noise: mean, covariance, and covariance with w
        self._noises = [np.zeros(len(S)) for S in priors]
        self._noise_covariances = [np.eye(len(S)) for S in priors]
        self._crosses = [np.zeros_like(S) for S in priors]
        self._alike = alike
        self._priors = [np.diag(S).copy() for S in priors]
        self._guesses = [np.diag(S).copy() for S in priors]
        self._evidence, self._noise_fit = np.zeros(len(priors)), np.zeros((len(priors), len(_NOISES)))
        self._s2 = noise2 + self.outside
        self._mix()

    def _mix(self) -> None:
        """Mean and covariance over all hypotheses."""
        weights = np.exp(self._evidence - self._evidence.max())
        self.weights = weights / weights.sum()
        self.mean: Array = self.weights @ np.array(self._means)
        parts = zip(self.weights, self._covariances, self._means, strict=True)
        self.covariance: Array = sum(w * (C + np.outer(m - self.mean, m - self.mean)) for w, C, m in parts)
        self.s2 = float(self.weights @ self._s2)

    def residual_sd(self, law: Array) -> float:
        """Standard deviation of a residual of records whose features have second moments ``law``."""
        return math.sqrt(max(float((self.covariance * law).sum()), 0.0) + self.s2)

    def add(
        self,
        A: Array,
        A_sd: float,
        B: Array,
        q: float,
        q_sd: float,
        n: int,
        r: float,
        centre: Array,
        V: Array | None = None,
        axes: Array | None = None,
        echo: float = 0.0,
        whole: bool = False,
    ) -> None:
        """Take in one batch of n records, whose residuals were clipped at ±r around ``centre``. q_sd = ∞: q is not known.

        V: variances of the errors in B, in the orthonormal ``axes``; left out where B is exact. ``echo``: which part of the last
        batch's noise is taken back in this one's, whose own is A_sd. ``whole``: no residual can be beyond ±r, none was clipped.
        """
        gain, distortion = (1.0, 0.0) if whole else self._clipped(q / n, q_sd / n, n, r, B)
        reach = math.inf if whole else r
        values, vectors = np.linalg.eigh(B)
        positive = (vectors * np.maximum(values, 0)) @ vectors.T
        for h, (m, C) in enumerate(zip(self._means, self._covariances, strict=True)):
            spread = C + np.outer(m - centre, m - centre)
            W = (self._s2[h] + distortion) * positive + (A_sd / gain) ** 2 * np.eye(len(B))
            if V is not None and axes is not None:
                turned = axes.T @ spread @ axes
                error = V * turned
                np.fill_diagonal(error, V @ np.diag(turned))
                W += axes @ error @ axes.T
            own, X, Z, last = A_sd / gain, self._crosses[h], self._noise_covariances[h], self._noises[h]
            back = echo * own
            known = C @ B - back * X  # covariance of w with what is seen
            lower = factor(B @ known - back * (X.T @ B - back * Z) + W, ROUNDING)
            G, F = solve_lower(lower, known.T), own * solve_lower(lower, np.eye(len(B)))
            z = solve_lower(lower, A / gain + B @ (centre - m) + back * last)
            self._means[h] = m = m + G.T @ z
            self._noises[h] = F.T @ z
            C = C - G.T @ G
            self._covariances[h] = C = (C + C.T) / 2
            self._crosses[h], self._noise_covariances[h] = -G.T @ F, np.eye(len(B)) - F.T @ F
            self._evidence[h] -= np.log(np.diag(lower)).sum() + z @ z / 2
            away = m - centre
            self._learn_noise(h, max(float((C * B).sum() + away @ B @ away) / n, 0.0), q / n, q_sd / n, n, reach)
        for h in range(len(self._means) if self._alike is not None else 0):
            for _ in range(_ROUNDS):
                self._learn_variances(h)
        self._mix()

    def _learn_variances(self, h: int) -> None:
        """Bring the prior variances of weights that are alike to what their estimates say."""
        prior, m, told = self._priors[h], self._means[h], 1 - np.diag(self._covariances[h]) / self._priors[h]
        ratio, group = np.ones(len(m)), self._alike
        for g in np.unique(group[group >= 0]) if group is not None else ():
            at = group == g
            squares, number = float(np.sum(m[at] ** 2 / prior[at])), float(np.clip(told[at], 0, 1).sum())
            ratio[at] = np.clip((_SETTLED + squares) / (_SETTLED + number), 1 / _FASTEST, _FASTEST)
        self._replace_prior(h, np.clip(prior * ratio, self._guesses[h] / _FARTHEST, self._guesses[h] * _FARTHEST))

    def _replace_prior(self, h: int, prior: Array) -> None:
        """Other prior variances, for what was learned already: (C⁻¹ + D)⁻¹ = C − C(1 + DC)⁻¹DC, for w and the noise together."""
        D, C, X, m = 1 / prior - 1 / self._priors[h], self._covariances[h], self._crosses[h], self._means[h]
        M = np.linalg.solve(np.eye(len(D)) + D[:, None] * C, np.diag(D))
        self._means[h], self._noises[h] = m - C @ (M @ m), self._noises[h] - X.T @ (M @ m)
        self._noise_covariances[h] = self._noise_covariances[h] - X.T @ M @ X
        self._crosses[h] = X - C @ M @ X
        C = C - C @ M @ C
        self._covariances[h], self._priors[h] = (C + C.T) / 2, prior

    def _clipped(self, second: float, sd: float, n: int, r: float, B: Array) -> tuple[float, float]:
        """Gain of the clip, and the variance that it adds."""
        variance = self._variance(second, sd, n, r, B)
        inside, kept, _ = clip_moments(r / math.sqrt(variance))
        gain = max(inside, _LEAST_GAIN)
        return gain, max((kept - gain**2) * variance, 0.0) / gain**2

    def _variance(self, second: float, sd: float, n: int, r: float, B: Array) -> float:
        """Variance of a residual before the clip: what was expected, corrected by the released second moment."""
        expected = max(float((self.covariance * B).sum()) / n, 0.0) + self.s2
        found = clipped_second(expected * _VARIANCES, r)
        misfit = (second - found) ** 2 / (sd**2 + (2 * _TRUST**2 + 2 / n) * found**2)
        surprise = 2 * np.log1p((np.log(_VARIANCES) / _SURPRISE) ** 2)
        return float(expected * _VARIANCES[np.argmin(misfit + surprise)])

    def _learn_noise(self, h: int, explained: float, second: float, sd: float, n: int, r: float) -> None:
        s2 = self._noise2 * _NOISES + self.outside[h]
        expected = explained + s2 if r == math.inf else clipped_second(explained + s2, r)
        self._noise_fit[h] *= _LASTS
        self._noise_fit[h] -= (second - expected) ** 2 / (sd**2 + (_TRUST**2 + 2 / n) * expected**2) / 2
        self._s2[h] = s2[np.argmax(self._noise_fit[h] - (np.log(_NOISES) / _NOISE_SPREAD) ** 2 / 2)]

    def rescale(self, factor: Array) -> None:
        """Give the weights other units: each is ``factor`` times what it was."""
        self._means = [m * factor for m in self._means]
        self._covariances = [C * np.outer(factor, factor) for C in self._covariances]
        self._crosses = [X * factor[:, None] for X in self._crosses]
        self._priors = [p * factor**2 for p in self._priors]
        self._guesses = [p * factor**2 for p in self._guesses]
        self._mix()

    def extended(
        self, priors: Sequence[Array], outside: Array, scale: Array, alike: NDArray[np.int64] | None = None
    ) -> "Tracked":
        """The same belief with more functions, whose priors are given; ``scale``: old weights in units of the new ones.

        Batches with more functions have no noise in common with those before.
        """
        new, m = Tracked(priors, outside, self._noise2, alike), len(scale)
        for h, S in enumerate(priors):
            # what the old functions say about the new ones a priori, and what is left open
            along = np.linalg.solve(S[:m, :m], S[:m, m:]).T
            lift = np.vstack([np.eye(m), along]) * scale
            new._means[h] = lift @ self._means[h]
            left = np.zeros_like(S)
            left[m:, m:] = S[m:, m:] - along @ S[:m, m:]
            C = lift @ self._covariances[h] @ lift.T + left
            new._covariances[h] = (C + C.T) / 2
            new._priors[h][:m] = self._priors[h] * scale**2
        new._evidence, new._noise_fit = self._evidence.copy(), self._noise_fit.copy()
        new._s2 = self._s2 - self.outside + new.outside
        new._mix()
        return new
