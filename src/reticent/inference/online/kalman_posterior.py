"""Kalman filter: posterior of a linear model's weights, from noisy batches of records.

The model is that of `moment_model.posterior`, y = φ(x)ᵀw + noise of variance s², w ~ N(0, S); but
each batch has records of its own, so that what one batch says is independent of the others given w.
A batch of n records gives, with Gaussian noise of known scale,

    A = Σ φ e,   B = Σ φφᵀ, q = Σ e², e = clip(y − φᵀc, ±r), c: the mean of w before the batch.

With the gain g of the clip and an estimate B̂ of B whose entries have error variances V in some
axes (`batch_gram`),

    A/g + B̂c = B̂w + noise,   Cov = (s² + distortion)·B̂ + V∘E[(w−c)(w−c)ᵀ]-terms + (σ/g)²I

so noise in B multiplies only w − c, and the filter's covariance is positive for every draw of the
noise. Each hypothesis about S has a filter of its own and a weight by its evidence; s² follows from
the released q.

Where a batch takes back a part of the last one's noise (A has noise σ(z_t − ρz_{t−1})), the
filter's state is (w, z_t): what is known of w says what the last noise was. And where weights are
said to be alike (those of one degree, for all inputs), their common prior variance is learned
(MacKay's fixed point), and the filter is given the new prior in the place of the old one: posterior
precisions are those of the prior plus those of the data, so that the old one can be taken out
again.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reticent.inference.linalg import JITTER, robust_cholesky, solve_lower
from reticent.inference.moment_model.clipping import clip_moments, clipped_second_moment

__all__ = ["KalmanPosterior", "KalmanSettings"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class KalmanSettings:
    """Tuned numbers of `KalmanPosterior`.

    Parameters
    ----------
    min_gain : float
        Smallest gain of a clip that A is divided by; a smaller one would amplify noise.
    noise_grid : (lowest, highest, number)
        Candidates of s², geometric, as multiples of the smallest.
    log_noise_sd : float
        Standard deviation of log s² a priori.
    noise_memory : float
        Factor on earlier evidence about s²: other actions were chosen, by a poorer fit.
    variance_grid : (lowest, highest, number)
        Candidates of a residual's variance, geometric, as multiples of the expected one.
    surprise : float
        Scale of the logarithm of that multiple.
    second_moment_error : float
        Relative error of a second moment: residuals are not quite normal.
    variance_steps : int
        Steps of the fixed point of the prior variances, for each batch.
    prior_count : float
        Number of weights that the first guess of a prior variance counts for.
    max_step : float
        Largest factor by which a prior variance changes in a step.
    max_change : float
        Largest factor by which a prior variance changes in all.
    """

    min_gain: float = 0.3
    noise_grid: tuple[float, float, int] = (1.0, 25.0, 17)
    log_noise_sd: float = 3.0
    noise_memory: float = 0.8
    variance_grid: tuple[float, float, int] = (1e-2, 1e2, 81)
    surprise: float = 0.3
    second_moment_error: float = 0.05
    variance_steps: int = 2
    prior_count: float = 3.0
    max_step: float = 5.0
    max_change: float = 100.0


_SETTINGS = KalmanSettings()
_NOISE_GRID = np.geomspace(*_SETTINGS.noise_grid)
_VARIANCE_FACTORS = np.geomspace(*_SETTINGS.variance_grid)


class KalmanPosterior:
    """Posterior of w, batch by batch.

    Parameters: for each hypothesis the prior covariance of w and the variance of what the basis
    cannot represent; the least variance of the observation noise that is worth telling apart; for
    each weight the number of the group that it is like, or -1 (priors are diagonal then), where
    variances are to be learned.
    """

    def __init__(
        self,
        priors: Sequence[Array],
        truncation_variance: Array,
        noise2: float,
        variance_groups: NDArray[np.int64] | None = None,
    ) -> None:
        self.truncation_variance = np.asarray(truncation_variance, dtype=np.float64)
        self._noise2 = noise2
        self._means = [np.zeros(len(S)) for S in priors]
        self._covariances = [S.copy() for S in priors]
        # of the last batch's noise: mean, covariance, and covariance with w
        self._noises = [np.zeros(len(S)) for S in priors]
        self._noise_covariances = [np.eye(len(S)) for S in priors]
        self._crosses = [np.zeros_like(S) for S in priors]
        self._variance_groups = variance_groups
        self._priors = [np.diag(S).copy() for S in priors]
        self._guesses = [np.diag(S).copy() for S in priors]
        self._evidence = np.zeros(len(priors))
        self._noise_fit = np.zeros((len(priors), len(_NOISE_GRID)))
        self._s2 = noise2 + self.truncation_variance
        self._mix()

    def _mix(self) -> None:
        """Mean and covariance over all hypotheses."""
        weights = np.exp(self._evidence - self._evidence.max())
        self.hypothesis_weights = weights / weights.sum()
        self.mean: Array = self.hypothesis_weights @ np.array(self._means)
        parts = zip(self.hypothesis_weights, self._covariances, self._means, strict=True)
        self.covariance: Array = sum(
            w * (C + np.outer(m - self.mean, m - self.mean)) for w, C, m in parts
        )
        self.s2 = float(self.hypothesis_weights @ self._s2)

    def residual_sd(self, feature_moment: Array) -> float:
        """Standard deviation of a residual of records with E[φφᵀ] = ``feature_moment`` (m, m)."""
        return math.sqrt(max(float((self.covariance * feature_moment).sum()), 0.0) + self.s2)

    def add(
        self,
        A: Array,
        A_sd: float,
        B: Array,
        q: float,
        q_sd: float,
        n: float,
        clip_threshold: float,
        centre: Array,
        entry_variance: Array | None = None,
        axes: Array | None = None,
        noise_carryover: float = 0.0,
        unclipped: bool = False,
    ) -> None:
        """Condition on a batch of n records, whose residuals were clipped around φᵀ``centre``.

        Parameters
        ----------
        A : (m,) array
            Released Σφe, in half-ranges of the reward.
        A_sd : float
            Standard deviation of this batch's own noise in A.
        B : (m, m) array
            Σφφᵀ, or its estimate.
        q, q_sd : float
            Released Σe² and the standard deviation of its noise; ∞ if it was not released.
        n : float
            Records of the batch.
        clip_threshold : float
            Bound of the residuals.
        centre : (m,) array
            Weights that residuals were taken of.
        entry_variance, axes : (m, m) arrays, optional
            Variances of the errors in B, in these orthonormal axes (columns); None if B is exact.
        noise_carryover : float
            Part of the last batch's noise that is taken back in this one's.
        unclipped : bool
            Whether no residual can exceed the threshold, so that none was clipped.
        """
        gain, distortion = (
            (1.0, 0.0) if unclipped else self._clipped(q / n, q_sd / n, n, clip_threshold, B)
        )
        if unclipped:
            effective_threshold = math.inf
        else:
            effective_threshold = clip_threshold
        values, vectors = np.linalg.eigh(B)
        positive = (vectors * np.maximum(values, 0)) @ vectors.T
        for h, (m, C) in enumerate(zip(self._means, self._covariances, strict=True)):
            spread = C + np.outer(m - centre, m - centre)
            W = (self._s2[h] + distortion) * positive + (A_sd / gain) ** 2 * np.eye(len(B))
            if entry_variance is not None and axes is not None:
                turned = axes.T @ spread @ axes
                error = entry_variance * turned
                np.fill_diagonal(error, entry_variance @ np.diag(turned))
                W += axes @ error @ axes.T
            noise_sd = A_sd / gain
            X = self._crosses[h]
            Z = self._noise_covariances[h]
            last = self._noises[h]
            carried_sd = noise_carryover * noise_sd
            known = C @ B - carried_sd * X  # covariance of w with what is seen
            lower = robust_cholesky(B @ known - carried_sd * (X.T @ B - carried_sd * Z) + W, JITTER)
            G = solve_lower(lower, known.T)
            F = noise_sd * solve_lower(lower, np.eye(len(B)))
            z = solve_lower(lower, A / gain + B @ (centre - m) + carried_sd * last)
            self._means[h] = m = m + G.T @ z
            self._noises[h] = F.T @ z
            C = C - G.T @ G
            self._covariances[h] = C = (C + C.T) / 2
            self._crosses[h], self._noise_covariances[h] = -G.T @ F, np.eye(len(B)) - F.T @ F
            self._evidence[h] -= np.log(np.diag(lower)).sum() + z @ z / 2
            shift = m - centre
            self._learn_noise(
                h,
                max(float((C * B).sum() + shift @ B @ shift) / n, 0.0),
                q / n,
                q_sd / n,
                n,
                effective_threshold,
            )
        for h in range(len(self._means) if self._variance_groups is not None else 0):
            for _ in range(_SETTINGS.variance_steps):
                self._learn_variances(h)
        self._mix()

    def _learn_variances(self, h: int) -> None:
        """Bring the prior variances of weights that are alike to what their estimates say."""
        prior = self._priors[h]
        m = self._means[h]
        determined = 1 - np.diag(self._covariances[h]) / self._priors[h]
        ratio = np.ones(len(m))
        group = self._variance_groups
        for g in np.unique(group[group >= 0]) if group is not None else ():
            members = group == g
            squares = float(np.sum(m[members] ** 2 / prior[members]))
            effective_number = float(np.clip(determined[members], 0, 1).sum())
            ratio[members] = np.clip(
                (_SETTINGS.prior_count + squares) / (_SETTINGS.prior_count + effective_number),
                1 / _SETTINGS.max_step,
                _SETTINGS.max_step,
            )
        self._replace_prior(
            h,
            np.clip(
                prior * ratio,
                self._guesses[h] / _SETTINGS.max_change,
                self._guesses[h] * _SETTINGS.max_change,
            ),
        )

    def _replace_prior(self, h: int, prior: Array) -> None:
        """Other prior variances for what was learned already, of w and the noise together.

        (C⁻¹ + D)⁻¹ = C − C(1 + DC)⁻¹DC.
        """
        D = 1 / prior - 1 / self._priors[h]
        C = self._covariances[h]
        X = self._crosses[h]
        m = self._means[h]
        M = np.linalg.solve(np.eye(len(D)) + D[:, None] * C, np.diag(D))
        self._means[h], self._noises[h] = m - C @ (M @ m), self._noises[h] - X.T @ (M @ m)
        self._noise_covariances[h] = self._noise_covariances[h] - X.T @ M @ X
        self._crosses[h] = X - C @ M @ X
        C = C - C @ M @ C
        self._covariances[h] = (C + C.T) / 2
        self._priors[h] = prior

    def _clipped(
        self, second: float, sd: float, n: float, r: float, B: Array
    ) -> tuple[float, float]:
        """Gain of the clip, and the variance that it adds."""
        variance = self._variance(second, sd, n, r, B)
        inside, kept, _ = clip_moments(r / math.sqrt(variance))
        gain = max(inside, _SETTINGS.min_gain)
        return gain, max((kept - gain**2) * variance, 0.0) / gain**2

    def _variance(self, second: float, sd: float, n: float, r: float, B: Array) -> float:
        """Variance of a residual before the clip.

        What was expected, corrected by the released second moment.
        """
        expected = max(float((self.covariance * B).sum()) / n, 0.0) + self.s2
        clipped = clipped_second_moment(expected * _VARIANCE_FACTORS, r)
        misfit = (second - clipped) ** 2 / (
            sd**2 + (2 * _SETTINGS.second_moment_error**2 + 2 / n) * clipped**2
        )
        surprise = 2 * np.log1p((np.log(_VARIANCE_FACTORS) / _SETTINGS.surprise) ** 2)
        return float(expected * _VARIANCE_FACTORS[np.argmin(misfit + surprise)])

    def _learn_noise(
        self, h: int, explained: float, second: float, sd: float, n: float, r: float
    ) -> None:
        s2 = self._noise2 * _NOISE_GRID + self.truncation_variance[h]
        if r == math.inf:
            expected = explained + s2
        else:
            expected = clipped_second_moment(explained + s2, r)
        self._noise_fit[h] *= _SETTINGS.noise_memory
        self._noise_fit[h] -= (
            (second - expected) ** 2
            / (sd**2 + (_SETTINGS.second_moment_error**2 + 2 / n) * expected**2)
            / 2
        )
        self._s2[h] = s2[
            np.argmax(self._noise_fit[h] - (np.log(_NOISE_GRID) / _SETTINGS.log_noise_sd) ** 2 / 2)
        ]

    def rescale(self, factor: Array) -> None:
        """Give the weights other units: each is ``factor`` times what it was."""
        self._means = [m * factor for m in self._means]
        self._covariances = [C * np.outer(factor, factor) for C in self._covariances]
        self._crosses = [X * factor[:, None] for X in self._crosses]
        self._priors = [p * factor**2 for p in self._priors]
        self._guesses = [p * factor**2 for p in self._guesses]
        self._mix()

    def with_more_features(
        self,
        priors: Sequence[Array],
        truncation_variance: Array,
        scale: Array,
        variance_groups: NDArray[np.int64] | None = None,
    ) -> "KalmanPosterior":
        """The same posterior with more functions, whose priors are given.

        ``scale``: old weights in units of the new ones. Batches with more functions have no noise
        in common with those before.
        """
        new = KalmanPosterior(priors, truncation_variance, self._noise2, variance_groups)
        m = len(scale)
        for h, S in enumerate(priors):
            # what the old functions say about the new ones a priori, and what is left open
            along = np.linalg.solve(S[:m, :m], S[:m, m:]).T
            lift = np.vstack([np.eye(m), along]) * scale
            new._means[h] = lift @ self._means[h]
            conditional = np.zeros_like(S)
            conditional[m:, m:] = S[m:, m:] - along @ S[:m, m:]
            C = lift @ self._covariances[h] @ lift.T + conditional
            new._covariances[h] = (C + C.T) / 2
            new._priors[h][:m] = self._priors[h] * scale**2
        new._evidence = self._evidence.copy()
        new._noise_fit = self._noise_fit.copy()
        new._s2 = self._s2 - self.truncation_variance + new.truncation_variance
        new._mix()
        return new
