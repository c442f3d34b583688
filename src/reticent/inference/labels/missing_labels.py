"""How many labels are missing at each public input, from noisy sums over records that lack one.

With c_j records at input j, m_j of them without a label, a release gives Σ a_j m_j + noise, with
public columns a_j. Hypotheses: no label is missing; or each is with a probability that is the same
everywhere, or a smooth function of the input,

    m_j = c_j p_j + e_j,   p_j = ½ + b·u_0 + a·ψ_jᵀu,   u ~ N(0, I),   Var e_j = c_j p̄(1 − p̄).

All are normal and linear, and are weighed by their evidence.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reticent.inference.labels.settings import MISSING_LABELS
from reticent.inference.linalg import SMALL_JITTER, robust_cholesky, solve_lower

__all__ = ["MissingLabels"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class _Hypothesis:
    """Covariance D + FᵀF of the m_j before the releases, and what these say of them."""

    weight: float
    prior: Array  # diagonal of D, (inputs,)
    factor: Array  # F, (rank, inputs)
    gain: Array  # L⁻¹B(D + FᵀF), (rows, inputs)
    mean: Array  # of m_j, (inputs,)

    def covariance(self, X: Array) -> Array:
        """Covariance of Σ m_j x_j for some columns x_j, (inputs, k)."""
        spread = self.factor @ X
        known = self.gain @ X
        return np.asarray((X.T * self.prior) @ X + spread.T @ spread - known.T @ known)


class MissingLabels:
    """Posterior of the numbers of missing labels.

    Parameters: features of the inputs, (rank, inputs), whose squares add up to one at most; and how
    many records stand at each input.
    """

    def __init__(self, psi: Array, records: Array) -> None:
        self._psi = psi
        self._records = records
        self._rows = np.zeros((0, len(records)))
        self._observed = np.zeros(0)
        self._total = 0.0  # Σ m_j by its own releases, with its precision
        self._precision = 0.0
        self._hypotheses = [self._none(1.0)]

    @property
    def mean(self) -> Array:
        """Expected number of missing labels at each input."""
        total = sum(one.weight * one.mean for one in self._hypotheses)
        return np.clip(total, 0.0, MISSING_LABELS.largest_share * self._records)

    def covariance(self, X: Array) -> Array:
        """Covariance of Σ m_j x_j for columns x_j (inputs, k)."""
        mean = sum(one.weight * one.mean for one in self._hypotheses)
        total = np.zeros((X.shape[1], X.shape[1]))
        for one in self._hypotheses:
            apart = X.T @ (one.mean - mean)
            total += one.weight * (one.covariance(X) + np.outer(apart, apart))
        return total

    def add(self, columns: Array, value: Array, sd: float, total: tuple[float, float]) -> None:
        """Condition on a release of Σ m_j·column_j, (k,), with noise ``sd``.

        ``total``: what the release says of Σ m_j, and the standard deviation of its noise.
        """
        rows = np.vstack([self._rows, columns.T / sd])
        observed = np.append(self._observed, value / sd)
        values, axes = np.linalg.eigh(rows @ rows.T)
        axes = axes[:, values > MISSING_LABELS.negligible_row * values[-1]]
        self._rows = axes.T @ rows
        self._observed = axes.T @ observed
        precision = total[1] ** -2
        self._total = (self._total * self._precision + total[0] * precision) / (
            self._precision + precision
        )
        self._precision += precision
        self._weigh()

    def _weigh(self) -> None:
        n = max(float(self._records.sum()), 1.0)
        share = float(np.clip(self._total, 0.5, max(n - 0.5, 0.5))) / n
        scores = [-float(self._observed @ self._observed) / 2]
        found = [self._none(0.0)]
        for amplitude in MISSING_LABELS.amplitudes:
            score, one = self._solve(share, amplitude)
            scores.append(score - math.log(len(MISSING_LABELS.amplitudes)))
            found.append(one)
        weights = np.exp(np.array(scores) - max(scores))
        weights /= weights.sum()
        self._hypotheses = [
            _Hypothesis(float(weight), one.prior, one.factor, one.gain, one.mean)
            for weight, one in zip(weights, found, strict=True)
        ]

    def _none(self, weight: float) -> _Hypothesis:
        nothing = np.zeros(len(self._records))
        rows = np.zeros((1, len(self._records)))
        return _Hypothesis(weight, nothing, rows, rows, nothing)

    def _solve(self, share: float, amplitude: float) -> tuple[float, _Hypothesis]:
        """Evidence of a hypothesis, and its posterior; as often missing as not, and one sd more."""
        c = self._records
        prior = c * (share * (1 - share))
        factor = np.vstack([np.full(len(c), MISSING_LABELS.share_sd), amplitude * self._psi]) * c
        B = self._rows
        along = B @ factor.T
        S = (B * prior) @ B.T + along @ along.T + np.eye(len(B))
        lower = robust_cholesky(S, SMALL_JITTER)
        white = solve_lower(lower, self._observed - B @ c / 2)
        gain = solve_lower(lower, B * prior + along @ factor)
        evidence = float(-np.log(np.diag(lower)).sum() - white @ white / 2)
        return evidence, _Hypothesis(0.0, prior, factor, gain, c / 2 + white @ gain)
