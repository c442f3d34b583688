"""Posterior of a softmax model's weights, from staged releases of noisy gradients.

The model is P(class c | x) = π_c(x; W) ∝ exp(φ(x)ᵀw_c), each column of the m × C matrix W with
prior N(0, S), Σ_c w_c = 0. Stage k releases

    A_k = Σ φ clip(e_k)ᵀ,  e_k = onehot(y) − π(x; W_k), its norm clipped at r_k,  and  B_k = Σφφᵀ.

The law of a clipped residual given x is known: it takes C values, with probabilities π_c(x; W). So
with weights ω_k that add up to one, M = Σ ω_k A_k is one observation of W, whose mean and sampling
covariance are known whether a clip bites or not:

    u_c(x) = Σ_k ω_k clip(onehot_c − π(x; W_k))       what a record of class c contributes
    F(W)   = Σ φ Σ_c π_c(x; W) u_c(x)ᵀ                its mean, summed over the records

The covariance counts records once: all stages have the same ones. Sums over records are taken over
public points with the density that fits the releases of B, moved (by the linear map nearest to
none) so that their second moment is the estimate of B. Privacy noise, the error of that estimate
times W − W_k, and a relative error of the means F_k(W) add to the covariance: stages that started
near W, with clips that hardly bite, count most.

Means solve κS⁻¹w_c = J_cV_c⁻¹(M_c − F_c(W)), which without noise and clips is the exact maximum of
the posterior density. V_c is the covariance of M_c, J_c its slope along one class against all
others, κ = C/(C − 1). With link "linear", π = 1/C + φW: label regression.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from reticent.inference.classification.probability_bands import log_odds, mean_probabilities
from reticent.inference.linalg import (
    JITTER,
    SMALL_JITTER,
    posterior_covariance,
    quadratic_forms,
    robust_cholesky,
    solve_lower,
    solve_upper,
)
from reticent.inference.moment_model.gram_estimation import DAMPING, GramEstimator
from reticent.number_kinds import Numerical, Prior, Tuned

__all__ = ["SoftmaxPosterior", "SoftmaxSettings"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class SoftmaxSettings:
    """Numbers of `SoftmaxPosterior`.

    Parameters
    ----------
    max_iterations : int
        Steps towards the posterior mean after a stage.
    halvings : int
        Most halvings of such a step.
    tolerance : float
        Change of log-odds at which it stops.
    final_sweeps : int
        How often slopes and covariances are taken anew after the last stage.
    density_error : float
        Relative error of the change of a gradient as the points tell it: inputs may depend on each
        other in ways that B does not show.
    min_probability : float
        Least probability of a class that slopes and variances assume.
    min_clip, clip_grid : float and int
        Least clip threshold that is considered, and the number of those that are compared.
    log_calibration_sd : float
        Standard deviation a priori of the logarithm of the calibration factor.
    max_calibration : float
        Largest calibration factor; the smallest is its inverse.
    """

    max_iterations: Numerical[int] = 20
    halvings: Numerical[int] = 5
    tolerance: Numerical[float] = 1e-3
    final_sweeps: Numerical[int] = 3
    density_error: Prior[float] = 0.25
    min_probability: Numerical[float] = 1e-6
    min_clip: Tuned[float] = 0.6
    clip_grid: Numerical[int] = 16
    log_calibration_sd: Prior[float] = 0.7
    max_calibration: Numerical[float] = 8.0


_SETTINGS = SoftmaxSettings()
_LEAST: Numerical[float] = 1e-12  # slopes and variances stay positive


class SoftmaxPosterior:
    """Posterior of W, stage by stage: ``mean`` (m, C), ``covariances`` (C, m, m) of its columns.

    Parameters: for each hypothesis the prior covariance (m, m) of a column of W; features
    (points, m) at points that are distributed as the records may be; the number of records and of
    classes; whether e is taken from a softmax; whether hypotheses are weighed by their evidence;
    the squared relative error of the number of records.
    """

    def __init__(
        self,
        hypotheses: list[Array],
        points: Array,
        n: float,
        classes: int,
        *,
        softmax: bool = True,
        learn_prior: bool = True,
        count_variance: float = 0.0,
    ) -> None:
        self.n = n
        self.classes = classes
        self.softmax = softmax
        self._learn_prior = learn_prior
        self._hypotheses = np.array(hypotheses)
        self._roots = [np.asarray(np.linalg.cholesky(S), dtype=np.float64) for S in hypotheses]
        self._public_points = points
        self._gram = GramEstimator(points, n, damping=DAMPING, count_variance=count_variance)
        self._kappa = classes / (classes - 1)
        # Two classes: the second is the negative of the first.
        self._solved = classes
        if classes == 2:
            self._solved = 1
        # diag(π) − ππᵀ relative to its diagonal is I − P for a random walk P that never stays, with
        # one positive eigenvalue: all others of I − P are between 1 and 2, and 2 for two classes.
        # A step of ⅔ of what one class alone asks for shrinks every error to a third or less.
        self._step = 1.0
        if softmax and classes > 2:
            self._step = 2 * self._kappa / 3
        m = points.shape[1]
        self.mean = np.zeros((m, classes))
        self._average_hypotheses(np.full(len(hypotheses), 1 / len(hypotheses)))
        self.covariances = np.repeat(self.prior[None] / self._kappa, classes, axis=0)
        self._points = points
        self._density = np.full(len(points), 1 / len(points))
        self._A: list[Array] = []
        self._centres: list[Array] = []
        self._clip_thresholds: list[float] = []
        self._noise: list[float] = []  # variance of the noise in A

    def _average_hypotheses(self, weights: Array) -> None:
        """Take the mean of the hypotheses with these weights."""
        self.hypothesis_weights = weights
        self.prior: Array = np.tensordot(weights, self._hypotheses, 1)
        self._root: Array = np.asarray(np.linalg.cholesky(self.prior), dtype=np.float64)

    def set_count(self, n: float, count_variance: float) -> None:
        """Learn the number of records, and its squared relative error, before the first stage."""
        self.n = n
        self._gram.set_count(n, count_variance)

    def add(
        self,
        A: Array,
        A_sd: float,
        B: Array,
        B_sd: Array,
        centre: Array,
        clip_threshold: float,
    ) -> None:
        """Condition on one stage, with gradients at ``centre``, their residuals clipped.

        Parameters
        ----------
        A, A_sd : (m, C) array and float
            Released Σ φ clip(e)ᵀ, and the standard deviation of its noise.
        B, B_sd : (m, m) arrays
            Released Σφφᵀ, and the standard deviations of its noise.
        centre : (m, C) array
            Weights W_k of the stage.
        clip_threshold : float
            Bound of ‖e‖.
        """
        self._gram.add(B, B_sd)
        self._gram.update()
        self._density = self._gram.densities.mean(axis=0)
        self._points = self._public_points @ _transport(
            self.n * self._gram.feature_moment, self._gram.estimate
        )
        self._A.append(A - A.mean(axis=1, keepdims=True))
        self._centres.append(centre)
        self._clip_thresholds.append(clip_threshold)
        self._noise.append(A_sd**2)
        self._solve()
        if self._learn_prior and len(self._roots) > 1:
            scores = np.array([self._evidence(root) for root in self._roots])
            weights = np.exp(scores - scores.max())
            self._average_hypotheses(weights / weights.sum())
            self._solve()

    def finish(self) -> None:
        """Repeat the last step until slopes and covariances are those at the posterior mean."""
        for _ in range(_SETTINGS.final_sweeps):
            self._solve()

    def best_clip_threshold(self, stages: int) -> float:
        """Threshold that leaves the least variance of a coefficient of W.

        That of sampling, of privacy noise averaged over ``stages``, and of what points may say
        wrong about the mean of clipped residuals, over the square of the slope. Nothing is clipped
        where there is little noise or many records. At first all residuals are of one length.
        """
        if not self._noise:
            return math.sqrt(1 - 1 / self.classes)
        m = len(self.prior)
        features = float(np.trace(self._gram.estimate)) / m  # mean of Σφ_j²
        privacy_noise = self._noise[-1] / self._clip_thresholds[-1] ** 2 / stages / features
        probabilities = self._link(self._points @ self.mean)
        thresholds = np.geomspace(math.sqrt(2), _SETTINGS.min_clip, _SETTINGS.clip_grid)
        best = (math.inf, math.sqrt(2))
        for threshold in thresholds:
            residuals = _clipped_residuals(probabilities, float(threshold))
            slopes, variances = self._moments(probabilities, residuals)
            change = self._expected(probabilities, residuals)
            variance = float(self._density @ variances.mean(axis=1))
            variance += privacy_noise * threshold**2 + self._density_error(change) / features
            slope = float(self._density @ slopes.mean(axis=1))
            best = min(best, (variance / slope**2, float(threshold)))
        return best[1]

    def _link(self, values: Array) -> Array:
        """Probabilities (points, C) from values φW (points, C)."""
        if self.softmax:
            return _softmax_rows(values)
        return values + 1 / self.classes

    def _log_odds_variance(self) -> Array:
        """Posterior variances of the log-odds at the points, (points, C)."""
        forms = [quadratic_forms(self._points, C) for C in self.covariances]
        return self._kappa**2 * np.maximum(np.stack(forms, axis=1), 0.0)

    def _moments(self, probabilities: Array, contributions: Array) -> tuple[Array, Array]:
        """Slope along a class and variance of what records of these probabilities contribute.

        Parameters: probabilities (points, C); ``contributions`` (points, C, C) of a record of each
        class to the sum of each class. Returns two arrays (points, C).
        """
        least = _SETTINGS.min_probability
        inside = np.clip(probabilities, least, 1 - least)
        inside /= inside.sum(axis=1, keepdims=True)
        mean = np.einsum("gc,gcj->gj", inside, contributions)
        variances = np.einsum("gc,gcj->gj", inside, contributions**2) - mean**2
        own = np.einsum("gjj->gj", contributions)
        others = (mean - inside * own) / (1 - inside)
        slopes = own - others
        if self.softmax:
            slopes = self._kappa * inside * (1 - inside) * slopes
        # link "linear" may leave [0, 1], and variances are differences
        return np.maximum(slopes, _LEAST), np.maximum(variances, _LEAST)

    def _expected(self, probabilities: Array, contributions: Array) -> Array:
        """Sum (m, C) over records of these probabilities at the points, as for `_moments`."""
        mean = np.einsum("gc,gcj->gj", probabilities, contributions)
        return np.asarray(self._points.T @ ((self.n * self._density)[:, None] * mean))

    def _density_error(self, expected: Array) -> float:
        """Variance of the error of a coefficient of an expected sum (m, C), by that of points."""
        if not self.softmax:
            return 0.0
        square = float((expected**2).mean()) * self._kappa
        return _SETTINGS.density_error**2 * square

    def _solve(self) -> None:
        """Posterior given all stages, with slopes and covariances at the last mean."""
        m = len(self.prior)
        phi = self._points
        n_density = self.n * self._density
        noise = np.array(self._noise)
        centres = np.array(self._centres)
        V = self._gram.entry_variance
        damping = self._gram.damped_estimate - self._gram.estimate
        probabilities = self._link(phi @ self.mean)
        stages = [
            _clipped_residuals(self._link(phi @ W), r)
            for W, r in zip(centres, self._clip_thresholds, strict=True)
        ]
        mean_slopes = np.array(
            [self._density @ self._moments(probabilities, one)[0].mean(axis=1) for one in stages]
        )
        density_errors = np.array(
            [self._density_error(self._expected(probabilities, one)) for one in stages]
        )
        differences = self.mean - centres
        spread = self._kappa * np.einsum("cii->i", self.covariances) / self.classes
        gram_errors = ((differences**2).sum(axis=2) / (self.classes - 1) + spread) @ V.mean(axis=0)
        omega = mean_slopes / (noise + density_errors + mean_slopes**2 * gram_errors)
        omega /= omega.sum()

        M = np.tensordot(omega, np.array(self._A), 1)
        centre = np.tensordot(omega, centres, 1)
        contributions = np.tensordot(omega, np.array(stages), 1)
        slopes, variances = self._moments(probabilities, contributions)
        mean_slope = self._density @ slopes
        mean_variance = self._density @ variances
        off = self.mean - centre
        second = self._kappa * self.covariances.mean(axis=0) + off @ off.T / (self.classes - 1)
        gram_error = V * second
        np.fill_diagonal(gram_error, V @ np.diag(second))
        private = (omega**2 @ (noise + density_errors)) / self._kappa
        J = []
        halves = []
        inners = []
        filters = []
        self._W = np.zeros((m, m))
        for c in range(self._solved):
            slope = phi.T @ ((n_density * slopes[:, c])[:, None] * phi)
            slope += mean_slope[c] * damping
            W = phi.T @ ((n_density * variances[:, c])[:, None] * phi)
            W += mean_slope[c] ** 2 / self._kappa * gram_error
            W += mean_variance[c] * damping
            W.ravel()[:: m + 1] += private
            lower = robust_cholesky(W, JITTER)
            H = solve_lower(lower, slope)
            R = H @ self._root / math.sqrt(self._kappa)
            inner = robust_cholesky(np.eye(m) + R.T @ R, SMALL_JITTER)
            half = solve_lower(inner, self._root.T) / math.sqrt(self._kappa)
            J.append(slope)
            inners.append(inner)
            halves.append(half)
            filters.append(solve_upper(lower, H).T)
            self._W += W
        self._J = np.mean(J, axis=0)
        self._W *= self._kappa / self._solved
        self.covariances = np.stack([half.T @ half for half in halves])
        if self._solved < self.classes:
            self.covariances = np.repeat(self.covariances, self.classes, axis=0)

        def residual(W: Array) -> Array:
            expected = self._expected(self._link(phi @ W), contributions)
            return np.asarray(M - expected - (damping @ (W - centre)) * mean_slope)

        def step(W: Array, left: Array) -> tuple[Array, float]:
            """Quasi-Newton step, and the root mean square by which it changes values φW."""
            columns = []
            for c in range(self._solved):
                prior_pull = solve_lower(inners[c], solve_lower(self._root, W[:, c]))
                whitened = halves[c] @ (filters[c] @ left[:, c])
                whitened -= math.sqrt(self._kappa) * prior_pull
                columns.append(halves[c].T @ whitened)
            if self._solved < self.classes:
                columns.append(-columns[0])
            change = np.stack(columns, axis=1)
            change -= change.mean(axis=1, keepdims=True)
            return change, math.sqrt(float(((phi @ change) ** 2).mean(axis=1) @ self._density))

        W = self.mean
        left = residual(W)
        change, length = step(W, left)
        for _ in range(_SETTINGS.max_iterations):
            if length <= _SETTINGS.tolerance:
                break
            factor = self._step
            for _ in range(_SETTINGS.halvings):
                tried = W + factor * change
                tried_left = residual(tried)
                tried_change, tried_length = step(tried, tried_left)
                if tried_length < length:
                    break
                factor /= 2
            W, left, change, length = tried, tried_left, tried_change, tried_length
        self.mean = W
        self._observed = left + self._J @ W

    def nonprivate_covariances(self) -> Array:
        """Posterior covariances (C, m, m) of the weights without privacy noise in the sums."""
        probabilities = self._link(self._points @ self.mean)
        whole = _clipped_residuals(probabilities, math.inf)
        slopes, variances = self._moments(probabilities, whole)
        weights = self.n * self._density[:, None] * slopes**2 / variances
        root = self._root / math.sqrt(self._kappa)
        found = [
            posterior_covariance(root, self._points.T @ (weights[:, c, None] * self._points))
            for c in range(self._solved)
        ]
        if self._solved < self.classes:
            found = found * self.classes
        return np.stack(found)

    def calibration_factor(self) -> float:
        """Factor on the log-odds of the posterior mean that calibrates them.

        A prior draws every coefficient to zero by itself. Along the weights of a stage, which its
        noise is independent of, the released ⟨W_k, A_k⟩ = Σ ηᵀe tells what that costs together:
        what it was, over the later stages, against what it would be with factor · log-odds. The
        factor tends to one as noise vanishes, since ⟨W_k, A_k⟩ then tends to zero.
        """
        if not self.softmax:
            return 1.0
        late = range(len(self._A) // 2, len(self._A))
        observed = sum(float((self._centres[k] * self._A[k]).sum()) for k in late) / self.n
        noise = sum(self._noise[k] * float((self._centres[k] ** 2).sum()) for k in late)
        error = max(math.sqrt(noise) / self.n, _LEAST)
        variance = self._log_odds_variance()
        odds = []
        scores = []
        for k in late:
            logits = self._points @ self._centres[k]
            residuals = _clipped_residuals(self._link(logits), self._clip_thresholds[k])
            odds.append(log_odds(logits))
            scores.append(np.einsum("gcj,gj->gc", residuals, logits))

        def misfit(log_factor: float) -> float:
            expected = 0.0
            for one, score in zip(odds, scores, strict=True):
                calibrated = mean_probabilities(math.exp(log_factor) * one, variance)[0]
                expected += float((calibrated * score).sum(axis=1) @ self._density)
            prior = log_factor / _SETTINGS.log_calibration_sd
            return ((expected - observed) / error) ** 2 + prior**2

        most = math.log(_SETTINGS.max_calibration)
        found = minimize_scalar(misfit, bounds=(-most, most), method="bounded")
        return math.exp(float(found.x))

    def _evidence(self, root: Array) -> float:
        """Log density of the observation, linear at the mean, for columns w ~ N(0, root·rootᵀ)."""
        lower = robust_cholesky(self._W, JITTER)
        H = solve_lower(lower, self._J @ root)
        z = solve_lower(lower, self._observed)
        inner = robust_cholesky(np.eye(len(root)) + H.T @ H, SMALL_JITTER)
        whitened = solve_lower(inner, H.T @ z)
        logdet = np.log(np.diag(lower)).sum() + np.log(np.diag(inner)).sum()
        return float(-(self.classes - 1) * logdet - ((z**2).sum() - (whitened**2).sum()) / 2)


def _clipped_residuals(probabilities: Array, threshold: float) -> Array:
    """onehot(y) − π, its norm clipped, for each row of π (points, C) and each y: (points, C, C)."""
    residuals = np.eye(probabilities.shape[1]) - probabilities[:, None, :]
    norms = np.sqrt((residuals**2).sum(axis=2))
    return np.asarray(
        residuals * np.minimum(1.0, threshold / np.maximum(norms, 1e-300))[:, :, None]
    )


def _transport(of: Array, to: Array) -> Array:
    """The symmetric T with T·of·T = to, for positive semi-definite matrices: least movement."""
    values, vectors = np.linalg.eigh((of + of.T) / 2)
    values = np.maximum(values, 1e-10 * max(values[-1], _LEAST))
    root = (vectors * np.sqrt(values)) @ vectors.T
    inverse = (vectors / np.sqrt(values)) @ vectors.T
    middle = root @ to @ root
    values, vectors = np.linalg.eigh((middle + middle.T) / 2)
    return np.asarray(inverse @ (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T @ inverse)


def _softmax_rows(logits: Array) -> Array:
    exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(exponentials / exponentials.sum(axis=1, keepdims=True))
