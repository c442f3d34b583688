"""BoostedAdaSSP: private linear regression, boosted (Tang, Aydore, Kearns, Rho and others, 2023).

A third of μ² each buys

    Γ = XᵀX + noise                        once
    λ_min(XᵀX) + noise                     once: how much ridge Γ needs
    g_t = Xᵀ clip(y − Xθ, ±1) + noise      in each of T rounds, then θ ← θ + (Γ + ridge·I)⁻¹ g_t

T, the clip and the ridge are the paper's. A record is (1, x)/√(1 + d) with all x in [−1, 1]: its
norm is at most 1 without a clip. Outputs are in half-ranges.

Noise is Gaussian, by exact accounting. One record replaced moves XᵀX, whose upper triangle is
released, by at most √2 in Frobenius norm, λ_min by 1 and g_t by 2; one added or removed moves each
by at most 1.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reticent.privacy.accounting.composition import calibrate
from reticent.privacy.bounds import Bounds
from reticent.studies.peers.comparison import Cell

__all__ = ["Noise", "noise", "predict", "ridged", "rows"]

Array = NDArray[np.float64]
_ROUNDS = 100
_CLIP = 1.0  # of residuals, in half-ranges of y
_QUANTILE = 1.96  # standard deviations of noise that the ridge allows for


@dataclass(frozen=True)
class Noise:
    """Standard deviations of the noise in XᵀX, in λ_min and in each g_t."""

    gram: float
    eigenvalue: float
    gradient: float


def noise(epsilon: float, delta: float, replaced: bool) -> Noise:
    """Noise that is (ε, δ)-DP, for one record replaced, or added or removed."""
    unit = math.sqrt(3) * float(calibrate(epsilon, delta))  # by sensitivity, of a third of μ²
    gradient = unit * math.sqrt(_ROUNDS) * _CLIP
    if replaced:
        return Noise(math.sqrt(2) * unit, unit, 2 * gradient)
    return Noise(unit, unit, gradient)


def predict(cell: Cell, epsilon: float, replaced: bool) -> Array:
    """Train on the cell's records and predict at its new inputs, inside the bounds of y."""
    rng = np.random.default_rng(cell.seed)
    low, high = cell.bounds.y[0]
    half_range = (high - low) / 2
    X = rows(cell.bounds, cell.X)
    y = (np.clip(cell.y, low, high) - low) / half_range - 1
    sd = noise(epsilon, cell.delta, replaced)
    gram = ridged(X.T @ X, sd, rng)
    theta = np.zeros(X.shape[1])
    for _ in range(_ROUNDS):
        residuals = np.clip(y - X @ theta, -_CLIP, _CLIP)
        gradient = X.T @ residuals + sd.gradient * rng.normal(size=len(theta))
        theta = theta + np.linalg.solve(gram, gradient)
    predicted = (rows(cell.bounds, cell.X_new) @ theta + 1) * half_range + low
    return np.asarray(np.clip(predicted, low, high))


def rows(bounds: Bounds, X: Array) -> Array:
    """A constant and the inputs, of norm one at most."""
    low, high = np.array(bounds.x, dtype=np.float64).T
    unit = 2 * (np.clip(X, low, high) - low) / (high - low) - 1
    return np.column_stack([np.ones(len(X)), unit]) / math.sqrt(1 + X.shape[1])


def ridged(gram: Array, sd: Noise, rng: np.random.Generator) -> Array:
    """The noisy matrix with a ridge, smaller where the noisy least eigenvalue is large."""
    d = len(gram)
    upper = np.triu(rng.normal(size=(d, d)))
    noisy = gram + sd.gram * (upper + np.triu(upper, 1).T)
    least = float(np.linalg.eigvalsh(gram)[0]) + sd.eigenvalue * rng.normal()
    surely = max(least - _QUANTILE * sd.eigenvalue, 0.0)
    ridge = max(_QUANTILE * math.sqrt(d) * sd.gram - surely, 0.0)
    return np.asarray(noisy + ridge * np.eye(d))
