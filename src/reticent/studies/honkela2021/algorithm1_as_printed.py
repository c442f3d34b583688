"""Honkela's DP-GP (Algorithm 1), as printed: to compare with, **not a private release to use**.

Its noise is NumPy's, from a seed, and its sums are floats. Where the paper leaves a choice, the one
that favours it is taken:

* R_k is the least of the bounds (4), (7) and (8); that is (7), for points on a line.
* σ_a = σ_b ("that we assumed to be even"), so that it does not matter that c is σ_a/σ_b in
  Algorithm 1 and its square in App. A.
* Outputs beyond R_y are clipped. ρ = 0.01 in (10), as in the paper's experiments.
* The mean and covariance of (17) are computed without inverting K_ZZ where it cancels; the triple
  sum (14) in closed form.
* A variance that comes out negative, because λ was too small for the noise, counts as zero.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import Kernel

from reticent.privacy.accounting.composition import calibrate

__all__ = ["LiteralGP", "feature_radius2", "sensitivity"]

Array = NDArray[np.float64]
_RHO = 0.01


def feature_radius2(kernel: Kernel, inducing: Array) -> float:
    """R_k², the least of the bounds (4), (7) and (8) on the squared length of k(Z, x).

    ``inducing``: equidistant points on a line.
    """
    count = len(inducing)
    gap = float(inducing[1] - inducing[0])

    def squared(distance: float) -> float:
        return float(kernel(np.array([[0.0]]), np.array([[distance]]))[0, 0]) ** 2

    below = count // 2
    above = -(-count // 2)
    by_distance = sum(2 * squared(j * gap) for j in range(below + 1)) + (above - below) * squared(
        above * gap
    )
    return min(count * squared(0.0), by_distance, squared(0.0) + (count - 1) * squared(gap / 2))


def sensitivity(radius2: float, reach: float, ratio: float = 1.0) -> float:
    """Eq. (6), in units of A, with ``ratio`` = σ_a²/σ_b²."""
    return math.sqrt(reach**4 / (2 * ratio) + 2 * reach**2 * radius2 + 2 * ratio * radius2**2)


@dataclass
class LiteralGP:
    """Algorithm 1 for one input."""

    kernel: Kernel
    inducing: Array
    sigma: float
    reach: float
    epsilon: float
    delta: float

    def fit(self, x: Array, y: Array, rng: np.random.Generator) -> "LiteralGP":
        """Eqs (3), (5), (9)–(11), (14)."""
        Z = np.asarray(self.inducing)[:, None]
        s2 = self.sigma**2
        K = self.kernel(Z)
        m = len(Z)
        noise = calibrate(self.epsilon, self.delta) * sensitivity(
            feature_radius2(self.kernel, Z[:, 0]), self.reach
        )
        k = self.kernel(Z, x[:, None])
        A = k @ np.clip(y, -self.reach, self.reach) + noise * rng.normal(size=m)
        upper = np.triu(rng.normal(size=(m, m)), 1) / math.sqrt(2)
        B = k @ k.T + noise * (upper + upper.T + np.diag(rng.normal(size=m)))
        ridge = noise / s2 * math.sqrt(m * math.log(2 * m**2 / _RHO)) * (m + 1) / (2 * m)
        inverse = np.linalg.inv(K + B / s2 + ridge * np.eye(m))  # Σ̃
        v = inverse @ A
        linear = noise**2 * (v**2 + (np.sum(v**2) - v**2) / 2)  # of E_b, Eq. (14)
        self._weights = v / s2  # K⁻¹m
        self._own = inverse  # K⁻¹(S − S₂)K⁻¹
        self._added = inverse @ np.diag(noise**2 / s2**2 + linear / s2**4) @ inverse  # K⁻¹S₂K⁻¹
        self._K = K
        return self

    def predict(self, at: Array, *, aware: bool = True) -> tuple[Array, Array]:
        """Eq. (17): mean and standard deviation of the function.

        Without S₂, as the paper's naive variant, if not ``aware``.
        """
        k = self.kernel(at[:, None], np.asarray(self.inducing)[:, None])
        root = np.linalg.cholesky(self._K + 1e-10 * np.eye(len(self._K)))
        known = (np.linalg.solve(root, k.T) ** 2).sum(axis=0)
        if aware:
            S = self._own + self._added
        else:
            S = self._own
        variance = self.kernel.diag(at[:, None]) - known + ((k @ S) * k).sum(axis=1)
        return k @ self._weights, np.sqrt(np.maximum(variance, 0.0))
