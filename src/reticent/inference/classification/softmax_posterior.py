"""Posterior of a softmax model's weights, from staged releases of noisy gradients.

The model is P(class c | x) ∝ exp(φ(x)ᵀw_c), each column of the m × C matrix W with prior N(0, S),
Σ_c w_c = 0. Stage k releases

    A_k = Σ φ e_kᵀ,   B_k = Σ φφᵀ, q_k = Σ ‖e_k‖², e_k = onehot(y) − softmax(φW_k), its norm clipped
                      at r_k.

Near W_k the gradient is nearly linear, A_k ≈ h·B(W − W_k) + noise, with the mean curvature h =
E‖e‖²/(C − 1), which q gives; the sampling noise of A is h·B, because the variance of e is the
curvature. So each stage observes W as in regression (`moment_model.posterior`),

    A_k/h + B̂W_k = B̂W + noise,    Cov = B̂/h + privacy noise/h² + error in B̂ times (W − W_k) +
                                    what is not linear,

and all are merged into one observation. Stages that started far from W count less: there the
gradient is not linear, and the error in B̂ is multiplied by more. With link "linear", e = onehot(y)
− 1/C − φW, and h = 1: label regression.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reticent.inference.linalg import (
    JITTER,
    SMALL_JITTER,
    posterior_covariance,
    robust_cholesky,
    solve_lower,
)
from reticent.inference.moment_model.gram_estimation import DAMPING, GramEstimator

__all__ = ["SoftmaxPosterior", "SoftmaxSettings"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class SoftmaxSettings:
    """Tuned numbers of `SoftmaxPosterior`.

    Parameters
    ----------
    max_iterations : int
        Steps of the fixed point between the posterior and the covariance of the observation.
    tolerance : float
        Relative change of the weights at which it stops.
    curvature_error : float
        Relative error of the curvature between a stage's weights and the posterior mean.
    min_curvature : float
        Smallest E‖e‖², relative to its largest value 1 − 1/C.
    log_calibration_sd : float
        Standard deviation a priori of the logarithm of the calibration factor.
    calibration_grid : (lowest, highest, number)
        Candidates of the calibration factor, geometric.
    drift_sd : float
        Standard deviation of the change of E‖e‖² from stage to stage.
    initial_sd : float
        Standard deviation of E‖e‖² a priori.
    """

    max_iterations: int = 20
    tolerance: float = 1e-6
    curvature_error: float = 0.25
    min_curvature: float = 0.05
    log_calibration_sd: float = 0.7
    calibration_grid: tuple[float, float, int] = (0.25, 4.0, 49)
    drift_sd: float = 0.05
    initial_sd: float = 0.3


_SETTINGS = SoftmaxSettings()


class SoftmaxPosterior:
    """Posterior of W, stage by stage: ``mean`` (m, C), and a ``covariance`` (m, m) for each class.

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
        self._hypotheses = hypotheses
        self._points = points
        self._roots = [np.asarray(np.linalg.cholesky(S), dtype=np.float64) for S in hypotheses]
        self._gram = GramEstimator(points, n, damping=DAMPING, count_variance=count_variance)
        self._average_hypotheses(np.full(len(hypotheses), 1 / len(hypotheses)))
        m = len(hypotheses[0])
        self.mean = np.zeros((m, classes))
        self.covariance = self.prior.copy()
        # E‖e‖²
        self.mean_square_residual = 1 - 1 / classes
        self._second_sd = _SETTINGS.initial_sd
        self._A: list[Array] = []
        self._centres: list[Array] = []
        self._clip_thresholds: list[float] = []
        self._about: list[tuple[float, float]] = []  # variance of the noise in A, E‖e‖² then

    def _average_hypotheses(self, weights: Array) -> None:
        """Take the mean of the hypotheses with these weights."""
        self.hypothesis_weights = weights
        self.prior: Array = np.einsum("h,hij->ij", weights, np.array(self._hypotheses))
        self._root = np.linalg.cholesky(self.prior)

    def set_count(self, n: float, count_variance: float) -> None:
        """Learn the number of records, and its squared relative error, before the first stage."""
        self.n = n
        self._gram.set_count(n, count_variance)

    @property
    def _most(self) -> float:
        return 1 - 1 / self.classes

    def add(
        self,
        A: Array,
        A_sd: float,
        B: Array,
        B_sd: Array,
        q: float,
        q_sd: float,
        centre: Array,
        clip_threshold: float,
    ) -> None:
        """Condition on one stage, with gradients at ``centre``, their norms clipped.

        Parameters
        ----------
        A, A_sd : (m, C) array and float
            Released Σφeᵀ, and the standard deviation of its noise.
        B, B_sd : (m, m) arrays
            Released Σφφᵀ, and the standard deviations of its noise.
        q, q_sd : float
            Released Σ‖e‖², and the standard deviation of its noise.
        centre : (m, C) array
            Weights W_k of the stage.
        clip_threshold : float
            Bound of ‖e‖.
        """
        self._gram.add(B, B_sd)
        self._gram.update()
        variance = self._second_sd**2 + _SETTINGS.drift_sd**2
        noise = (q_sd / self.n) ** 2
        self.mean_square_residual += (
            (q / self.n - self.mean_square_residual) * variance / (variance + noise)
        )
        self.mean_square_residual = min(
            max(self.mean_square_residual, _SETTINGS.min_curvature * self._most),
            self._most if self.softmax else math.inf,
        )
        self._second_sd = math.sqrt(variance * noise / (variance + noise))
        self._A.append(A - A.mean(axis=1, keepdims=True))
        self._centres.append(centre)
        self._clip_thresholds.append(clip_threshold)
        self._about.append((A_sd**2, self.mean_square_residual))
        self._solve()
        if self._learn_prior and len(self._roots) > 1:
            scores = np.array([self._fit(root)[2] for root in self._roots])
            weights = np.exp(scores - scores.max())
            self._average_hypotheses(weights / weights.sum())
            self._solve()

    def _solve(self) -> None:
        B = self._gram.damped_estimate
        V = self._gram.entry_variance
        m = len(self.prior)
        free = self.classes - 1
        noise, mean_squares = np.array(self._about).T
        centres = np.array(self._centres)
        curvature = self.mean_square_residual / free
        if self.softmax:
            h = (mean_squares / free + curvature) / 2
        else:
            h = np.ones(len(mean_squares))
        # sampling noise of A/h is s²·B
        if self.softmax:
            s2 = 1 / curvature
        else:
            s2 = curvature
        observed = np.array(self._A) / h[:, None, None]
        for _ in range(_SETTINGS.max_iterations):
            differences = self.mean - centres
            gram_errors = ((differences**2).sum(axis=2) / free + np.diag(self.covariance)) @ V.mean(
                axis=0
            )
            if self.softmax:
                curvature_errors = (
                    _SETTINGS.curvature_error**2
                    * ((B @ differences) ** 2).sum(axis=(1, 2))
                    / (m * free)
                )
            else:
                curvature_errors = np.zeros(len(h))
            omega = 1 / (noise / h**2 + gram_errors + curvature_errors)
            omega /= omega.sum()
            centre = np.tensordot(omega, centres, 1)
            self._observed = np.tensordot(omega, observed, 1) + B @ centre
            off = self.mean - centre
            second = self.covariance + off @ off.T / free
            self._W = s2 * B + V * second
            diagonal = omega**2 @ (noise / h**2 + curvature_errors)
            np.fill_diagonal(self._W, s2 * np.diag(B) + V @ np.diag(second) + diagonal)
            previous_mean = self.mean
            self.mean, root, _ = self._fit(self._root)
            self.covariance = root.T @ root
            if np.linalg.norm(self.mean - previous_mean) <= _SETTINGS.tolerance * (
                1 + np.linalg.norm(self.mean)
            ):
                break

    def nonprivate_covariance(self) -> Array:
        """Posterior covariance (m, m) of the weights without privacy noise in the sums."""
        now = self.mean_square_residual / (self.classes - 1)
        if self.softmax:
            s2 = 1 / now
        else:
            s2 = now
        return posterior_covariance(self._root, self._gram.damped_estimate / s2)

    def calibration_factor(self) -> float:
        """Factor on the logits η of the posterior mean that calibrates them.

        They are drawn to zero by the prior, and away from it by the clip of e, which lets surprises
        count too little. Both show in Σ ηᵀe = ⟨W, A⟩: what it was, over the later stages, against
        what it would be if probabilities were softmax(factor · η). Points stand for the records,
        with logits scaled to the size that B implies.
        """
        late = range(len(self._A) // 2, len(self._A))
        observed = sum(float((self._centres[k] * self._A[k]).sum()) for k in late) / self.n
        error = (
            math.sqrt(sum(self._about[k][0] * float((self._centres[k] ** 2).sum()) for k in late))
            / self.n
        )
        scores = [self._score(self._centres[k], self._clip_thresholds[k]) for k in late]

        factors = np.geomspace(*_SETTINGS.calibration_grid)
        expected = [
            sum((_softmax_rows(f * eta) * score).sum(axis=1).mean() for eta, score in scores)
            for f in factors
        ]
        off = (np.array(expected) - observed) / max(error, 1e-300)
        evidence = -(off**2 + (np.log(factors) / _SETTINGS.log_calibration_sd) ** 2) / 2
        weights = np.exp(evidence - evidence.max())
        return float(np.exp(weights @ np.log(factors) / weights.sum()))

    def _score(self, W: Array, clip_threshold: float) -> tuple[Array, Array]:
        """Logits at the points, and what a record of each class adds there to Σ ηᵀe, e clipped."""
        logits = self._points @ W
        size = max(float((W * (self._gram.estimate @ W)).sum()) / self.n, 0.0)
        logits *= math.sqrt(size / max(float((logits**2).sum(axis=1).mean()), 1e-300))
        probabilities = _softmax_rows(logits)
        length = np.sqrt(
            np.maximum(1 + (probabilities**2).sum(axis=1, keepdims=True) - 2 * probabilities, 0.0)
        )
        centred = logits - (probabilities * logits).sum(axis=1, keepdims=True)
        return logits, centred * (clip_threshold / np.maximum(length, clip_threshold))

    def _fit(self, root: Array) -> tuple[Array, Array, float]:
        """Posterior mean, root of the covariance, and evidence.

        For columns w ~ N(0, root·rootᵀ) seen as B̂w + N(0, W).
        """
        lower = robust_cholesky(self._W, JITTER)
        H = solve_lower(lower, self._gram.damped_estimate @ root)
        z = solve_lower(lower, self._observed)
        inner = robust_cholesky(np.eye(len(root)) + H.T @ H, SMALL_JITTER)
        half = solve_lower(inner, root.T)
        whitened = solve_lower(inner, H.T @ z)
        logdet = np.log(np.diag(lower)).sum() + np.log(np.diag(inner)).sum()
        return (
            half.T @ whitened,
            half,
            float(-(self.classes - 1) * logdet - ((z**2).sum() - (whitened**2).sum()) / 2),
        )


def _softmax_rows(logits: Array) -> Array:
    exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(exponentials / exponentials.sum(axis=1, keepdims=True))
