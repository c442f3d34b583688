"""Kalman filter: posterior of a linear model's weights, from noisy batches of records.

The model is that of `moment_model.posterior`, y = φ(x)ᵀw + noise of variance s², w ~ N(0, S); but
each batch has records of its own, so that what one batch says is independent of the others given w.
A batch of n records gives, with Gaussian noise of known scale,

    A = Σ φ e,   B = Σ φφᵀ, q = Σ e², e = clip(y − φᵀc, ±r), c: the mean of w before the batch.

With the gain g of the clip and an estimate B̂ of B whose entries have error variances V in some
axes (`batch_gram`),

    A/g + B̂c = B̂w + noise,   Cov = (s² + distortion)·B̂ + V∘E[(w−c)(w−c)ᵀ]-terms + (σ/g)²I

so noise in B multiplies only w − c, and the filter's covariance is positive for every draw of the
noise. Each hypothesis about S has a filter of its own and a weight by its evidence. In the axes of
B̂, each in units of its own noise, the covariance of what is seen is the identity plus a positive
matrix: a batch of fewer records than weights is no special case. Without privacy noise and clip
(σ, V → 0, g = 1) the posterior is that of Bayesian linear regression on all records.

s² is one number for all hypotheses. A batch tells it by q, given what is known of w:
E q = n·s² + tr(B̂·E[(w−c)(w−c)ᵀ]), whatever the law of the noise is, where nothing was clipped.
When the estimate has moved, all batches are filtered again with the new one.

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

from reticent.inference.linalg import robust_cholesky, solve_lower
from reticent.inference.moment_model.clipping import (
    clip_effect,
    clipped_second_moment,
    unclipped_variance,
)
from reticent.inference.moment_model.settings import CLIPPED_MOMENTS, POSTERIOR
from reticent.number_kinds import Numerical, Prior, Tuned

__all__ = ["KalmanPosterior", "KalmanSettings"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class KalmanSettings:
    """Priors and numerical settings of `KalmanPosterior`.

    Parameters
    ----------
    noise_grid : (lowest, highest, number)
        Candidates of s², geometric, as multiples of the guess.
    prior_residuals : float
        Prior: residuals of the guessed size that count as seen, so that a few equal rewards do not
        make s² zero.
    noise_change : float
        Change of log s² from which on all batches are filtered again.
    likely_noise : float
        Log-likelihood below the largest, up to which a candidate of s² is likely.
    variance_steps : int
        Steps of the fixed point of the prior variances, for each batch.
    prior_count : float
        Number of weights that the first guess of a prior variance counts for.
    max_step : float
        Largest factor by which a prior variance changes in a step.
    max_change : float
        Largest factor by which a prior variance changes in all.
    """

    noise_grid: Numerical[tuple[float, float, int]] = (1e-4, 25.0, 250)
    prior_residuals: Prior[float] = 1.0
    noise_change: Tuned[float] = 0.2
    likely_noise: Tuned[float] = 1.0
    variance_steps: Tuned[int] = 2
    prior_count: Prior[float] = 3.0
    max_step: Numerical[float] = 5.0
    max_change: Prior[float] = 100.0


_SETTINGS = KalmanSettings()
_NOISE_GRID = np.geomspace(*_SETTINGS.noise_grid)
_NOISE_PRIOR = (
    -((np.log(_NOISE_GRID) / POSTERIOR.log_noise_sd) ** 2) / 2
    - _SETTINGS.prior_residuals * (1 / _NOISE_GRID + np.log(_NOISE_GRID)) / 2
)
# of the mean variance of what is seen, in units of its own noise
_ROUNDING: Numerical[float] = 1e-13


@dataclass(frozen=True, eq=False)
class _Batch:
    """What one batch says, in the units that weights had then.

    Attributes
    ----------
    A, A_sd, q, q_sd, n, clip_threshold, centre, noise_carryover, unclipped, hidden
        As `KalmanPosterior.add` got them.
    values, vectors
        Eigenvalues (m,) of B, the largest first, and eigenvectors (m, m).
    error_axes
        Axes of ``entry_variance`` (m, m), in those of B; None where B is exact.
    gain, distortion
        Of the clip.
    resolved
        Number of eigenvalues that stand above the noise.
    units
        What a weight in the units of the first batch is multiplied by, (m,).
    """

    A: Array
    A_sd: float
    values: Array
    vectors: Array
    q: float
    q_sd: float
    n: float
    clip_threshold: float
    centre: Array
    entry_variance: Array | None
    error_axes: Array | None
    noise_carryover: float
    unclipped: bool
    gain: float
    distortion: float
    resolved: int
    hidden: float
    units: Array


@dataclass(eq=False)
class _Filter:
    """Posterior of w (m,) and of the last batch's noise z (m,) under one hypothesis.

    ``prior``: variances a priori (m,), which ``guess`` was before any were learned;
    ``noise_likelihood``: of the candidates of s².
    """

    mean: Array
    covariance: Array
    prior: Array
    guess: Array
    noise: Array
    noise_covariance: Array
    cross: Array  # covariance of w with z
    evidence: float
    noise_likelihood: Array

    @classmethod
    def start(
        cls, mean: Array, covariance: Array, prior: Array, evidence: float, noise_likelihood: Array
    ) -> "_Filter":
        m = len(mean)
        return cls(
            mean=mean.copy(),
            covariance=covariance.copy(),
            prior=prior.copy(),
            guess=prior.copy(),
            noise=np.zeros(m),
            noise_covariance=np.eye(m),
            cross=np.zeros((m, m)),
            evidence=evidence,
            noise_likelihood=noise_likelihood.copy(),
        )

    def copy(self) -> "_Filter":
        """A filter of its own: no update changes an array in place."""
        return _Filter(**vars(self))

    def rescale(self, factor: Array) -> None:
        """Give the weights other units: each is ``factor`` times what it was."""
        self.mean = self.mean * factor
        self.covariance = self.covariance * np.outer(factor, factor)
        self.cross = self.cross * factor[:, None]
        self.prior = self.prior * factor**2
        self.guess = self.guess * factor**2

    def condition(self, batch: _Batch, noise2: float, s2: float, truncation: float) -> None:
        """Condition on a batch, with noise of variance ``s2`` + ``truncation``.

        ``noise2``: the guess that candidates of s² are multiples of.
        """
        U = batch.vectors
        values = batch.values
        positive = np.maximum(values, batch.hidden)
        noise_sd = batch.A_sd / batch.gain
        scale = np.sqrt((s2 + truncation + batch.distortion) * positive + noise_sd**2)
        shift = U.T @ (batch.centre - self.mean)
        K = U.T @ self.covariance @ U

        rows = values / scale
        carried = batch.noise_carryover * noise_sd / scale
        X = (U.T @ self.cross @ U) * carried
        Z = (U.T @ self.noise_covariance @ U) * np.outer(carried, carried)
        known = K * rows - X  # covariance of w with what is seen
        seen = rows[:, None] * known - X.T * rows + Z
        seen += np.diag(((s2 + truncation + batch.distortion) * positive + noise_sd**2) / scale**2)
        if batch.entry_variance is not None and batch.error_axes is not None:
            axes = batch.error_axes
            turned = axes.T @ (K + np.outer(shift, shift)) @ axes
            error = batch.entry_variance * turned
            np.fill_diagonal(error, batch.entry_variance @ np.diag(turned))
            seen += (axes @ error @ axes.T) / np.outer(scale, scale)
        lower = robust_cholesky(seen, _ROUNDING)
        G = solve_lower(lower, known.T) @ U.T
        F = solve_lower(lower, np.diag(noise_sd / scale)) @ U.T
        innovation = U.T @ (batch.A / batch.gain) / scale
        innovation += rows * shift + carried * (U.T @ self.noise)
        z = solve_lower(lower, innovation)
        self.mean = self.mean + G.T @ z
        self.noise = F.T @ z
        C = self.covariance - G.T @ G
        self.covariance = (C + C.T) / 2
        self.cross = -G.T @ F
        self.noise_covariance = np.eye(len(values)) - F.T @ F
        # of the directions that were seen, which come first: what the others show is not told by w
        terms = np.log(np.diag(lower)) + np.log(scale) + z**2 / 2
        self.evidence -= float(terms[: batch.resolved].sum())
        self._learn_noise(batch, noise2, s2, truncation)

    def _learn_noise(self, batch: _Batch, noise2: float, s2: float, truncation: float) -> None:
        """Likelihood of the candidates of s² by Σe², given what is known of w.

        Clipped residuals never speak for less noise than ``s2``: rare large ones are clipped too,
        and clips that follow such an estimate would become narrower and narrower.
        """
        if batch.q_sd == math.inf:
            return
        n = batch.n
        values = batch.values
        K = batch.vectors.T @ self.covariance @ batch.vectors
        shift = batch.vectors.T @ (batch.centre - self.mean)
        spread = np.diag(K) + shift**2
        explained = max(float(values @ spread), 0.0) / n
        weighted = values * shift
        doubt = 2 * float(values @ (K * K) @ values) + 4 * float(weighted @ K @ weighted)
        variances = noise2 * _NOISE_GRID + truncation
        expected = explained + variances
        law_error = 0.0
        if not batch.unclipped:
            expected = clipped_second_moment(expected, batch.clip_threshold)
            law_error = CLIPPED_MOMENTS.second_moment_error**2
        variance = (
            (batch.q_sd / n) ** 2
            + max(doubt, 0.0) / n**2
            + 4 * variances * explained / n
            + (law_error + 2 / n) * expected**2
        )
        likelihood = -((batch.q / n - expected) ** 2) / variance / 2 - np.log(variance) / 2
        if not batch.unclipped:
            less = noise2 * _NOISE_GRID < s2
            here = likelihood[min(int(less.sum()), len(less) - 1)]
            likelihood = np.where(less, np.minimum(likelihood, here), likelihood)
        self.noise_likelihood = self.noise_likelihood + likelihood - likelihood[-1]

    def learn_variances(self, groups: NDArray[np.int64]) -> None:
        """Bring the prior variances of weights that are alike to what their estimates say."""
        prior = self.prior
        m = self.mean
        determined = 1 - np.diag(self.covariance) / prior
        ratio = np.ones(len(m))
        for g in np.unique(groups[groups >= 0]):
            members = groups == g
            squares = float(np.sum(m[members] ** 2 / prior[members]))
            effective_number = float(np.clip(determined[members], 0, 1).sum())
            ratio[members] = np.clip(
                (_SETTINGS.prior_count + squares) / (_SETTINGS.prior_count + effective_number),
                1 / _SETTINGS.max_step,
                _SETTINGS.max_step,
            )
        self.replace_prior(
            np.clip(
                prior * ratio,
                self.guess / _SETTINGS.max_change,
                self.guess * _SETTINGS.max_change,
            )
        )

    def replace_prior(self, prior: Array) -> None:
        """Other prior variances for what was learned already, of w and the noise together.

        (C⁻¹ + D)⁻¹ = C − C(1 + DC)⁻¹DC.
        """
        D = 1 / prior - 1 / self.prior
        C = self.covariance
        X = self.cross
        M = np.linalg.solve(np.eye(len(D)) + D[:, None] * C, np.diag(D))
        moved = M @ self.mean
        self.mean = self.mean - C @ moved
        self.noise = self.noise - X.T @ moved
        self.noise_covariance = self.noise_covariance - X.T @ M @ X
        self.cross = X - C @ M @ X
        C = C - C @ M @ C
        self.covariance = (C + C.T) / 2
        self.prior = prior


class KalmanPosterior:
    """Posterior of w, batch by batch.

    Parameters: for each hypothesis the prior covariance of w and the variance of what the basis
    cannot represent; a guess of the variance of the observation noise; for each weight the number
    of the group that it is like, or -1 (priors are diagonal then), where variances are to be
    learned.
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
        self._variance_groups = variance_groups
        self._start(
            [_Filter.start(np.zeros(len(S)), S, np.diag(S), 0.0, _NOISE_PRIOR) for S in priors],
            noise2,
        )

    def _start(self, filters: list[_Filter], s2: float) -> None:
        """Begin with these filters, and without batches."""
        self._first = [one.copy() for one in filters]
        self._filters = filters
        self._batches: list[_Batch] = []
        self._units = np.ones(len(filters[0].mean))
        self._noise_variance = s2
        self._largest_noise_variance = s2
        self._mix()

    def _mix(self) -> None:
        """Mean and covariance over all hypotheses."""
        evidence = np.array([one.evidence for one in self._filters])
        weights = np.exp(evidence - evidence.max())
        self.hypothesis_weights = weights / weights.sum()
        self.mean: Array = self.hypothesis_weights @ np.array([one.mean for one in self._filters])
        self.covariance: Array = self.open_covariance(0.0)
        self.s2 = self._noise_variance + float(self.hypothesis_weights @ self.truncation_variance)

    def open_covariance(self, share: float) -> Array:
        """Covariance about the mean if a share of the weight were even over all hypotheses."""
        weights = (1 - share) * self.hypothesis_weights + share / len(self._filters)
        covariance: Array = sum(
            w * (one.covariance + np.outer(one.mean - self.mean, one.mean - self.mean))
            for w, one in zip(weights, self._filters, strict=True)
        )
        return covariance

    def residual_sd(self, feature_moment: Array, s2: float) -> float:
        """Standard deviation of a residual of records with E[φφᵀ] = ``feature_moment`` (m, m).

        ``s2``: the variance of their noise.
        """
        return math.sqrt(max(float((self.covariance * feature_moment).sum()), 0.0) + s2)

    @property
    def largest_s2(self) -> float:
        """The largest s² that is likely, with the variance of what the basis cannot represent."""
        return self.s2 + max(self._largest_noise_variance - self._noise_variance, 0.0)

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
        noise_variances: Array | None = None,
        hidden: float = 0.0,
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
        noise_variances : (m,) array, optional
            Of the noise in each row of B, in these axes: hypotheses are weighed by directions in
            which B stands above the eigenvalues of such noise.
        hidden : float
            About what the true B is in the other directions, where its estimate may be zero.
        """
        gain, distortion = 1.0, 0.0
        if not unclipped:
            gain, distortion = self._clipped(q / n, q_sd / n, n, clip_threshold, B)
        values, vectors = np.linalg.eigh(B)
        values, vectors = values[::-1], vectors[:, ::-1]
        error_axes = None
        resolved = len(values)
        if axes is not None:
            error_axes = vectors.T @ axes
        if error_axes is not None and noise_variances is not None:
            resolved = int((values > 2 * np.sqrt(error_axes**2 @ noise_variances)).sum())
        batch = _Batch(
            A=A,
            A_sd=A_sd,
            values=values,
            vectors=vectors,
            q=q,
            q_sd=q_sd,
            n=n,
            clip_threshold=clip_threshold,
            centre=centre,
            entry_variance=entry_variance,
            error_axes=error_axes,
            noise_carryover=noise_carryover,
            unclipped=unclipped,
            gain=gain,
            distortion=distortion,
            resolved=resolved,
            hidden=hidden,
            units=self._units,
        )
        self._batches.append(batch)
        for h in range(len(self._filters)):
            self._condition(h, batch)
        self._learn_variances()
        self._mix()
        likelihood = self.hypothesis_weights @ np.array(
            [one.noise_likelihood for one in self._filters]
        )
        s2 = self._noise2 * float(_NOISE_GRID[np.argmax(likelihood)])
        likely = np.flatnonzero(likelihood >= likelihood.max() - _SETTINGS.likely_noise)
        self._largest_noise_variance = self._noise2 * float(_NOISE_GRID[likely[-1]])
        if abs(math.log(s2 / self._noise_variance)) > _SETTINGS.noise_change:
            self._noise_variance = s2
            self._filter_again()

    def _condition(self, h: int, batch: _Batch) -> None:
        self._filters[h].condition(
            batch, self._noise2, self._noise_variance, float(self.truncation_variance[h])
        )

    def _learn_variances(self) -> None:
        if self._variance_groups is None:
            return
        for one in self._filters:
            for _ in range(_SETTINGS.variance_steps):
                one.learn_variances(self._variance_groups)

    def _filter_again(self) -> None:
        """Condition on all batches anew, with the present variances of noise and weights."""
        for h, last in enumerate(self._filters):
            one = self._first[h].copy()
            if self._variance_groups is not None:
                one.replace_prior(last.prior / self._units**2)
            self._filters[h] = one
            units = np.ones(len(self._units))
            for batch in self._batches:
                one.rescale(batch.units / units)
                units = batch.units
                self._condition(h, batch)
            one.rescale(self._units / units)
        self._mix()

    def _clipped(
        self, second: float, sd: float, n: float, r: float, B: Array
    ) -> tuple[float, float]:
        """Gain of the clip, and the variance that it adds."""
        expected = max(float((self.covariance * B).sum()) / n, 0.0) + self.s2
        clip = clip_effect(unclipped_variance(expected, second, sd, r, 2 / n), r)
        return clip.gain, clip.added_variance

    def rescale(self, factor: Array) -> None:
        """Give the weights other units: each is ``factor`` times what it was."""
        self._units = self._units * factor
        for one in self._filters:
            one.rescale(factor)
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
        in common with those before, and those before are not filtered again.
        """
        new = KalmanPosterior(priors, truncation_variance, self._noise2, variance_groups)
        m = len(scale)
        filters = []
        for S, old in zip(priors, self._filters, strict=True):
            # what the old functions say about the new ones a priori, and what is left open
            along = np.linalg.solve(S[:m, :m], S[:m, m:]).T
            lift = np.vstack([np.eye(m), along]) * scale
            conditional = np.zeros_like(S)
            conditional[m:, m:] = S[m:, m:] - along @ S[:m, m:]
            C = lift @ old.covariance @ lift.T + conditional
            one = _Filter.start(
                lift @ old.mean, (C + C.T) / 2, np.diag(S), old.evidence, old.noise_likelihood
            )
            one.prior[:m] = old.prior * scale**2
            filters.append(one)
        new._start(filters, self._noise_variance)
        new._largest_noise_variance = self._largest_noise_variance
        return new
