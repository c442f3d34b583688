"""Staged residual releases: what several noisy Gram matrices say about the weights of a linear model.

The model is y = φ(x)ᵀw + noise, w ~ N(0, S). Stage k releases, with Gaussian noise of known scale,

    A_k = Σ φ e_k,   B_k = Σ φφᵀ,   q_k = Σ e_k²,      e_k = clip(y − φᵀw_k, ±r_k),   w_k: the weights known before the stage.

Clipping a residual with standard deviation s at r = z·s keeps, of its linear part, the gain g = P(|N| < z) (Bussgang), and adds
a distortion that is uncorrelated with it. All stages see the same residual noise, so with weights ω_k (Σω = 1) they merge
into one observation of w, linear and Gaussian given the noise in B:

    Σ ω_k A_k/g_k + B̂ w̄  =  B̂ w + noise,   w̄ = Σ ω_k w_k
    Cov = s²B̂ + V∘E[(w−w̄)(w−w̄)ᵀ]-terms + Σ ω_k² (σ_k²I + D_k)/g_k²

B̂ and its variances V come from all released B and a weak public prior. The error in B̂ multiplies only w − w̄, which is small
after the first stages. Its expectation depends on the answer, so it is iterated. The precision S⁻¹ + B̂Cov⁻¹B̂ is positive for
every draw of the noise: nothing has to be regularised.
"""

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf

__all__ = ["Staged", "clip_moments", "quadratic", "unclipped_variance"]

Array = NDArray[np.float64]
_INFLATIONS = np.geomspace(10, 1e6, 11)  # of the public prior on B: at least 10, so that a wrong guess does little harm
_LEAST_GAIN = 0.3
_MOST_VARIANCE = 1.0  # outputs are scaled to [−1, 1]
_ROUNDS = 20


def quadratic(rows: Array, matrix: Array) -> Array:
    """rowᵀ · matrix · row for each row."""
    return ((rows @ matrix) * rows).sum(axis=1)


def clip_moments(z: float) -> tuple[float, float, tuple[float, float, float]]:
    """Of clip(N, ±z), N standard normal: gain, second moment, and the Hermite coefficients 3, 5, 7 of the distortion."""
    pdf = math.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    inside = float(erf(z / math.sqrt(2)))
    second = inside - 2 * z * pdf + z * z * (1 - inside)
    he = (z, z**3 - 3 * z, z**5 - 10 * z**3 + 15 * z)
    odd = tuple(-2 * pdf * h / math.sqrt(math.factorial(k)) for h, k in zip(he, (3, 5, 7), strict=True))
    return inside, second, (odd[0], odd[1], odd[2])


def unclipped_variance(second: float, r: float) -> float:
    """Variance of a centred normal whose values clipped at ±r have the second moment ``second``."""
    low, high = 1e-6 * r, 1e3 * r
    if second >= high**2 * clip_moments(r / high)[1]:
        return high**2
    for _ in range(80):
        middle = math.sqrt(low * high)
        if middle**2 * clip_moments(r / middle)[1] < second:
            low = middle
        else:
            high = middle
    return low * high


@dataclass
class Staged:
    """The belief about w, stage by stage.

    Parameters: the prior covariance of w, features at public points, the number of records, the variance of the observation noise
    and of what the basis cannot represent (together ``s2``), and whether s2 is to be learned from the released q.
    """

    prior: Array
    points: Array
    n: int
    s2: float
    learn_noise: bool = False
    mean: Array = field(init=False)
    covariance: Array = field(init=False)

    def __post_init__(self) -> None:
        m = len(self.prior)
        self.mean, self.covariance = np.zeros(m), self.prior.copy()
        self._precision = np.linalg.inv(self.prior)
        law = self.points.T @ self.points / len(self.points)
        spread = (self.points**2).T @ (self.points**2) / len(self.points) - law**2
        self._law, self._spread = law, self.n * np.maximum(spread, 1e-9)
        self._B_sum, self._B_weight = np.zeros((m, m)), np.zeros((m, m))
        self._stages: list[tuple[Array, Array, float, Array]] = []  # A/g, w, noise variance/g², distortion/g²

    def residual_sd(self) -> float:
        """Standard deviation of a residual, as far as is known."""
        return math.sqrt(self._doubt() + self.s2)

    def _doubt(self) -> float:
        return float(np.mean(quadratic(self.points, self.covariance)))

    def add(
        self, A: Array, A_sd: float, B: Array, B_sd: Array, q: float, q_sd: float, r: float, centre: Array | None = None
    ) -> None:
        """Take in one stage, whose residuals were clipped at ±r around ``centre``, the current mean if not given."""
        doubt = self._doubt()
        if self.learn_noise:
            self._learn_noise(q, q_sd, r, doubt)
        variance = doubt + self.s2
        inside, second, odd = clip_moments(r / math.sqrt(variance))
        gain = max(inside, _LEAST_GAIN)
        P = self.points
        share = np.clip(P @ self.covariance @ P.T / variance, -1.0, 1.0)
        common = variance * sum(a * a * share**k for a, k in zip(odd, (3, 5, 7), strict=True))
        own = max((second - gain**2) * variance - float(np.mean(np.diag(common))), 0.0)
        distortion = (self.n / len(P)) ** 2 * (P.T @ common @ P) + self.n * own * self._law
        around = self.mean if centre is None else centre
        self._stages.append((A / gain, around, (A_sd / gain) ** 2, distortion / gain**2))
        weight = 1 / B_sd**2
        self._B_sum, self._B_weight = self._B_sum + B * weight, self._B_weight + weight
        self._solve()

    def _learn_noise(self, q: float, q_sd: float, r: float, doubt: float) -> None:
        """Total variance from the clipped second moment; what the weights' doubt explains is not noise."""
        second = min(max(q / self.n, 1e-4 * r * r), r * r * 0.999)
        total = unclipped_variance(second, r)
        told = 1 / (1 + (q_sd / max(q, q_sd)) ** 2)  # how much a noisy q is worth
        found = min(max(total - doubt, 0.05 * total), _MOST_VARIANCE)
        self.s2 = float(np.exp(told * math.log(found) + (1 - told) * math.log(self.s2)))

    def _belief(self) -> tuple[Array, Array]:
        """B and the variances of its entries: what was released, and a guess from the uniform law as far as it fits that."""
        noise, expected = 1 / self._B_weight, self.n * self._law
        surprise = (self._B_sum * noise - expected) ** 2
        fits = [-np.sum(np.log(noise + k * self._spread) + surprise / (noise + k * self._spread)) for k in _INFLATIONS]
        variance = _INFLATIONS[int(np.argmax(fits))] * self._spread
        V = 1 / (self._B_weight + 1 / variance)
        return V * (self._B_sum + expected / variance), V

    def _solve(self) -> None:
        B, V = self._belief()
        values, vectors = np.linalg.eigh(B)
        B_psd = (vectors * np.maximum(values, 0.0)) @ vectors.T
        m = len(B)
        precision = np.array([1 / (noise + np.trace(D) / m) for _, _, noise, D in self._stages])
        omega = precision / precision.sum()
        centre = sum(o * w for o, (_, w, _, _) in zip(omega, self._stages, strict=True))
        observed = sum(o * A for o, (A, _, _, _) in zip(omega, self._stages, strict=True)) + B @ centre
        fixed = self.s2 * B_psd
        for o, (_, _, noise, D) in zip(omega, self._stages, strict=True):
            fixed = fixed + o * o * (noise * np.eye(m) + D)
        mean: Array = self.mean
        covariance: Array = self.covariance
        for _ in range(_ROUNDS):
            away = mean - centre
            second = covariance + np.outer(away, away)
            error = V * second
            np.fill_diagonal(error, V @ np.diag(second))
            W = fixed + error
            half = np.linalg.solve(W, B)
            inverse = self._precision + B @ half
            covariance = np.asarray(np.linalg.inv((inverse + inverse.T) / 2), dtype=np.float64)
            before, mean = mean, covariance @ (half.T @ observed)
            if np.linalg.norm(mean - before) <= 1e-6 * (1 + np.linalg.norm(mean)):
                break
        self.mean, self.covariance = mean, (covariance + covariance.T) / 2
        self._seen = (observed, B, W, B_psd)

    def evidence(self, prior: Array) -> float:
        """Log-density of all that was observed, were ``prior`` the covariance of the weights."""
        observed, B, W, _ = self._seen
        total = B @ prior @ B + W
        _, logdet = np.linalg.slogdet(total)
        return -float(logdet + observed @ np.linalg.solve(total, observed)) / 2

    def change_prior(self, prior: Array) -> None:
        """Look at the same observations with another prior."""
        self.prior, self._precision = prior, np.linalg.inv(prior)
        self._solve()

    def without_privacy(self) -> Array:
        """Covariance of the weights had the sums been seen without privacy noise: what is the model's own doubt."""
        inverse = self._precision + self._seen[3] / self.s2
        return np.linalg.inv((inverse + inverse.T) / 2)
