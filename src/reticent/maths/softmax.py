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
from reticent.maths.linalg import LEAST_ROUNDING, ROUNDING, factor, solve_lower

__all__ = ["StagedClasses"]

Array = NDArray[np.float64]
_ROUNDS = 20
_BENT = 0.25  # relative error of the curvature between a stage's weights and the answer
_LEAST_CURVATURE = 0.05  # of the largest
_SHARPER = 0.5  # sd of that factor, before
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
        self._hypotheses = hypotheses
        self._roots = [np.asarray(np.linalg.cholesky(S), dtype=np.float64) for S in hypotheses]
        self._gram = GramBelief(points, n, damping=DAMPING)
        self._use(np.full(len(hypotheses), 1 / len(hypotheses)))
        m = len(hypotheses[0])
        self.mean, self.covariance = np.zeros((m, classes)), self.prior.copy()
        self.second, self._second_sd = 1 - 1 / classes, _FIRST  # E‖e‖²
        self._A: list[Array] = []
        self._centres: list[Array] = []
        self._about: list[tuple[float, float]] = []  # variance of the noise in A, E‖e‖² then

    def _use(self, weights: Array) -> None:
        self.weights = weights
        self.prior: Array = np.einsum("h,hij->ij", weights, np.array(self._hypotheses))
        self._root = np.linalg.cholesky(self.prior)

    @property
    def _most(self) -> float:
        return 1 - 1 / self.classes

    def add(self, A: Array, A_sd: float, B: Array, B_sd: Array, q: float, q_sd: float, centre: Array) -> None:
        """Take in one stage, whose gradients were taken at ``centre``."""
        self._gram.add(B, B_sd)
        before, noise = self._second_sd**2 + _DRIFT**2, (q_sd / self.n) ** 2
        self.second += (q / self.n - self.second) * before / (before + noise)
        self.second = min(max(self.second, _LEAST_CURVATURE * self._most), self._most if self.softmax else math.inf)
        self._second_sd = math.sqrt(before * noise / (before + noise))
        self._A.append(A - A.mean(axis=1, keepdims=True))
        self._centres.append(centre)
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

    def sharpness(self) -> float:
        """By what factor the logits should be larger than the posterior mean's, which is drawn to zero, to be calibrated.

        At the right factor Σ logitsᵀe = ⟨W, A⟩ is zero; Newton's step from there, over the later stages, shrunk by its noise.
        """
        late = range(len(self._A) // 2, len(self._A))
        slope = error2 = curvature = 0.0
        for k in late:
            W, (noise, second) = self._centres[k], self._about[k]
            slope += float((W * self._A[k]).sum())
            error2 += noise * float((W**2).sum())
            curvature += second / (self.classes - 1) * float((W * (self._gram.mean @ W)).sum())
        if not curvature > 0:
            return 1.0
        trust = _SHARPER**2 / (_SHARPER**2 + error2 / curvature**2)
        return min(max(1 + trust * slope / curvature, 0.25), 4.0)

    def _fit(self, root: Array) -> tuple[Array, Array, float]:
        """Posterior mean, root of the covariance, and evidence, for columns w ~ N(0, root·rootᵀ) seen as B̂w + N(0, W)."""
        lower = factor(self._W, ROUNDING)
        H, z = solve_lower(lower, self._gram.mean @ root), solve_lower(lower, self._observed)
        inner = factor(np.eye(len(root)) + H.T @ H, LEAST_ROUNDING)
        half, told = solve_lower(inner, root.T), solve_lower(inner, H.T @ z)
        logdet = np.log(np.diag(lower)).sum() + np.log(np.diag(inner)).sum()
        return half.T @ told, half, float(-(self.classes - 1) * logdet - ((z**2).sum() - (told**2).sum()) / 2)
