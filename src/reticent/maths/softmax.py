"""Staged releases for classes: what noisy gradients of a multinomial likelihood say about its weights.

The model is P(class c | x) ∝ exp(φ(x)ᵀw_c), each column of the m × C matrix W with prior N(0, S), Σ_c w_c = 0. Stage k releases

    A_k = Σ φ e_kᵀ,   B_k = Σ φφᵀ,   q_k = Σ ‖e_k‖²,      e_k = onehot(y) − softmax(φW_k),  shortened to length r_k.

Near W_k the gradient is nearly linear, A_k ≈ h·B(W − W_k) + noise, with the mean curvature h = E‖e‖²/(C − 1), which q tells; the
sampling noise of A is h·B, because the variance of e is the curvature. So each stage observes W as in regression (`stages`),

    A_k/h + B̂W_k = B̂W + noise,    Cov = B̂/h + privacy noise/h² + error in B̂ times (W − W_k) + what is not linear,

and all are merged into one observation. Stages that started far from W count less: there the gradient is not linear, and the
error in B̂ is multiplied by more. With link "linear", e = onehot(y) − 1/C − φW, and h = 1: label regression.
"""

import math

import numpy as np
from numpy.typing import NDArray

from reticent.maths.gram import DAMPING, GramBelief
from reticent.maths.linalg import LEAST_ROUNDING, ROUNDING, factor, own_covariance, solve_lower

__all__ = ["StagedClasses"]

Array = NDArray[np.float64]
_ROUNDS = 20
_BENT = 0.25  # relative error of the curvature between a stage's weights and the answer
_LEAST_CURVATURE = 0.05  # of the largest
_SHARPER = 0.7  # sd of the logarithm of the factor that makes logits calibrated, before
_FACTORS = (0.25, 4.0, 49)  # the least, the greatest, and how many
_DRIFT, _FIRST = 0.05, 0.3  # sd of the change of E‖e‖² from stage to stage, and of what is known before


class StagedClasses:
    """The belief about W, stage by stage: ``mean`` (m × C) and one ``covariance`` (m × m) that all classes share.

    Parameters: for each hypothesis the prior covariance of a column of W; features at points that are spread like the records may
    be; the number of records and of classes; whether e is taken from a softmax; whether the hypotheses are to be weighed.
    """

    def __init__(
        self, hypotheses: list[Array], points: Array, n: int, classes: int, *, softmax: bool = True, learn: bool = True
    ) -> None:
        self.n, self.classes, self.softmax, self._learn = n, classes, softmax, learn
        self._hypotheses, self._points = hypotheses, points
        self._roots = [np.asarray(np.linalg.cholesky(S), dtype=np.float64) for S in hypotheses]
        self._gram = GramBelief(points, n, damping=DAMPING)
        self._use(np.full(len(hypotheses), 1 / len(hypotheses)))
        m = len(hypotheses[0])
        self.mean, self.covariance = np.zeros((m, classes)), self.prior.copy()
        self.second, self._second_sd = 1 - 1 / classes, _FIRST  # E‖e‖²
        self._A: list[Array] = []
        self._centres: list[Array] = []
        self._reaches: list[float] = []
        self._about: list[tuple[float, float]] = []  # variance of the noise in A, E‖e‖² then

    def _use(self, weights: Array) -> None:
        self.weights = weights
        self.prior: Array = np.einsum("h,hij->ij", weights, np.array(self._hypotheses))
        self._root = np.linalg.cholesky(self.prior)

    @property
    def _most(self) -> float:
        return 1 - 1 / self.classes

    def add(
        self, A: Array, A_sd: float, B: Array, B_sd: Array, q: float, q_sd: float, centre: Array, reach: float
    ) -> None:
        """Take in one stage, whose gradients were taken at ``centre`` and shortened to ``reach``."""
        self._gram.add(B, B_sd)
        before, noise = self._second_sd**2 + _DRIFT**2, (q_sd / self.n) ** 2
        self.second += (q / self.n - self.second) * before / (before + noise)
        self.second = min(max(self.second, _LEAST_CURVATURE * self._most), self._most if self.softmax else math.inf)
        self._second_sd = math.sqrt(before * noise / (before + noise))
        self._A.append(A - A.mean(axis=1, keepdims=True))
        self._centres.append(centre)
        self._reaches.append(reach)
        self._about.append((A_sd**2, self.second))
        self._solve()
        if self._learn and len(self._roots) > 1:
            scores = np.array([self._fit(root)[2] for root in self._roots])
            weights = np.exp(scores - scores.max())
            self._use(weights / weights.sum())
            self._solve()

    def _solve(self) -> None:
        B, V, m, free = self._gram.mean, self._gram.variance, len(self.prior), self.classes - 1
        noise, then = np.array(self._about).T
        centres = np.array(self._centres)
        now = self.second / free
        h = (then / free + now) / 2 if self.softmax else np.ones(len(then))
        s2 = 1 / now if self.softmax else now  # sampling noise of A/h is s²·B
        observed = np.array(self._A) / h[:, None, None]
        for _ in range(_ROUNDS):
            away = self.mean - centres
            far = ((away**2).sum(axis=2) / free + np.diag(self.covariance)) @ V.mean(axis=0)
            bent = _BENT**2 * ((B @ away) ** 2).sum(axis=(1, 2)) / (m * free) if self.softmax else np.zeros(len(h))
            omega = 1 / (noise / h**2 + far + bent)
            omega /= omega.sum()
            centre = np.tensordot(omega, centres, 1)
            self._observed = np.tensordot(omega, observed, 1) + B @ centre
            off = self.mean - centre
            second = self.covariance + off @ off.T / free
            self._W = s2 * B + V * second
            own = omega**2 @ (noise / h**2 + bent)
            np.fill_diagonal(self._W, s2 * np.diag(B) + V @ np.diag(second) + own)
            before = self.mean
            self.mean, root, _ = self._fit(self._root)
            self.covariance = root.T @ root
            if np.linalg.norm(self.mean - before) <= 1e-6 * (1 + np.linalg.norm(self.mean)):
                break

    def without_privacy(self) -> Array:
        """Covariance of the weights had the sums been seen without privacy noise: what is the model's own doubt."""
        now = self.second / (self.classes - 1)
        s2 = 1 / now if self.softmax else now
        return own_covariance(self._root, self._gram.mean / s2)

    def sharpness(self) -> float:
        """By what factor the logits η should be larger than the posterior mean's to be calibrated.

        They are drawn to zero by the prior, and away from it by the clip of e, which lets surprises count too little. Both show
        in Σ ηᵀe = ⟨W, A⟩: what it was, over the later stages, against what it would be if chances were softmax(factor · η).
        Points stand for the records, with logits brought to the size that B tells.
        """
        late = range(len(self._A) // 2, len(self._A))
        told = sum(float((self._centres[k] * self._A[k]).sum()) for k in late) / self.n
        error = math.sqrt(sum(self._about[k][0] * float((self._centres[k] ** 2).sum()) for k in late)) / self.n
        scores = [self._score(self._centres[k], self._reaches[k]) for k in late]

        factors = np.geomspace(*_FACTORS)
        expected = [sum((_softmax(f * eta) * score).sum(axis=1).mean() for eta, score in scores) for f in factors]
        off = (np.array(expected) - told) / max(error, 1e-300)
        evidence = -(off**2 + (np.log(factors) / _SHARPER) ** 2) / 2
        weights = np.exp(evidence - evidence.max())
        return float(np.exp(weights @ np.log(factors) / weights.sum()))

    def _score(self, W: Array, reach: float) -> tuple[Array, Array]:
        """Logits at the points, and what a record of each class adds there to Σ ηᵀe, e clipped."""
        logits = self._points @ W
        size = max(float((W * (self._gram.possible @ W)).sum()) / self.n, 0.0)
        logits *= math.sqrt(size / max(float((logits**2).sum(axis=1).mean()), 1e-300))
        chances = _softmax(logits)
        length = np.sqrt(np.maximum(1 + (chances**2).sum(axis=1, keepdims=True) - 2 * chances, 0.0))
        away = logits - (chances * logits).sum(axis=1, keepdims=True)
        return logits, away * (reach / np.maximum(length, reach))

    def _fit(self, root: Array) -> tuple[Array, Array, float]:
        """Posterior mean, root of the covariance, and evidence, for columns w ~ N(0, root·rootᵀ) seen as B̂w + N(0, W)."""
        lower = factor(self._W, ROUNDING)
        H, z = solve_lower(lower, self._gram.mean @ root), solve_lower(lower, self._observed)
        inner = factor(np.eye(len(root)) + H.T @ H, LEAST_ROUNDING)
        half, told = solve_lower(inner, root.T), solve_lower(inner, H.T @ z)
        logdet = np.log(np.diag(lower)).sum() + np.log(np.diag(inner)).sum()
        return half.T @ told, half, float(-(self.classes - 1) * logdet - ((z**2).sum() - (told**2).sum()) / 2)


def _softmax(logits: Array) -> Array:
    chances = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(chances / chances.sum(axis=1, keepdims=True))
