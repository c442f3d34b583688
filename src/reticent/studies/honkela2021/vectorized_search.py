"""Many runs of Honkela's Algorithm 2 at once, on one data set.

A candidate's sums are computed once, only noise is drawn anew. The fits are those of
`honkela_literal` (Algorithm 1, as printed) and the scores those of `honkela_selection` (CoinPress):
a test holds them to that. What differs between schemes is how many runs there are and how much
noise each one gets. **Not a private release to use**: noise is NumPy's, from a seed, and sums are
floats.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import RBF

from reticent.privacy.accounting.composition import calibrate
from reticent.privacy.accounting.selection import calibrate_selection, stop_for
from reticent.studies.honkela2021.algorithm1_as_printed import _RHO, feature_radius2, sensitivity
from reticent.studies.honkela2021.algorithm2_as_printed import (
    _GAMMA,
    coinpress_mean,
    selection_budget,
)

__all__ = ["Found", "Halves", "Scheme", "liu_talwar", "papernot_steinke"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Scheme:
    """How a search is paid for.

    Noise multiplier of a fit, ρ of a score, the coin that stops it, and the most runs.
    """

    multiplier: float
    rho: float
    stop: float
    most: int

    def runs(self, rng: np.random.Generator) -> int:
        """How many runs there are."""
        return int(min(rng.geometric(self.stop), self.most))


def liu_talwar(epsilon: float, delta: float) -> Scheme:
    """As in the paper."""
    each = selection_budget(epsilon, delta)
    return Scheme(calibrate(each.epsilon, each.delta), each.rho, _GAMMA, each.tries)


def papernot_steinke(epsilon: float, delta: float, runs: int) -> Scheme:
    """As in `PrivateSearch`: a geometric number of runs, each one Gaussian mechanism.

    CoinPress is 2ρ = μ².
    """
    stop = stop_for(runs)
    multiplier = calibrate_selection(epsilon, delta, stop=stop)
    return Scheme(multiplier, 1 / multiplier**2 / 2, stop, 10**9)


@dataclass(frozen=True)
class Found:
    """The best run: its candidate, and the mean of its fit at the places that were asked for."""

    length: float
    sigma: float
    mean: Array


class _Length:
    """All that depends on records and one length scale, but not on the noise."""

    def __init__(
        self, length: float, inducing: Array, x: Array, y: Array, at: Array, reach: float
    ) -> None:
        kernel = RBF(length)
        Z = inducing[:, None]
        half = len(x) // 2
        self.K = kernel(Z)
        self.unit = sensitivity(feature_radius2(kernel, inducing), reach)
        k = kernel(Z, x[:half, None])
        self.A = k @ np.clip(y[:half], -reach, reach)
        self.B = k @ k.T
        self.to_validation = kernel(Z, x[half:, None])
        self.to_at = kernel(Z, at[:, None])
        root = np.linalg.cholesky(self.K + 1e-10 * np.eye(len(Z)))
        # variance given the inducing points
        self.left = 1.0 - (np.linalg.solve(root, self.to_validation) ** 2).sum(axis=0)


class Halves:
    """One data set: the first half to fit, the second to judge."""

    def __init__(
        self,
        x: Array,
        y: Array,
        lengths: tuple[float, ...],
        inducing: Array,
        at: Array,
        reach: float,
    ) -> None:
        self._lengths = {one: _Length(one, inducing, x, y, at, reach) for one in lengths}
        self._y = y[len(x) // 2 :]
        self._at = at
        self._reach = reach

    def select(self, sigmas: tuple[float, ...], scheme: Scheme, rng: np.random.Generator) -> Found:
        """Algorithm 2: the candidate with the best private score.

        None, and a mean of zero, if no score was in its range.
        """
        runs = scheme.runs(rng)
        lengths = list(self._lengths)
        tried = rng.integers(len(lengths), size=runs)
        sigma = np.array(sigmas)[rng.integers(len(sigmas), size=runs)]
        best = -math.inf
        found = Found(math.nan, math.nan, np.zeros(len(self._at)))
        for i, length in enumerate(lengths):
            chosen = sigma[tried == i]
            if not len(chosen):
                continue
            weights, scores = self._attempts(self._lengths[length], chosen, scheme, rng)
            winner = int(np.argmax(scores))
            if scores[winner] > best:
                best = float(scores[winner])
                found = Found(
                    length, float(chosen[winner]), weights[winner] @ self._lengths[length].to_at
                )
        return found

    def _attempts(
        self, one: _Length, sigma: Array, scheme: Scheme, rng: np.random.Generator
    ) -> tuple[Array, Array]:
        """Fit and judge with one length scale and several noise levels.

        Weights of the means, and private scores.
        """
        s2 = sigma[:, None, None] ** 2
        m = len(one.K)
        noise = scheme.multiplier * one.unit
        A = one.A + noise * rng.normal(size=(len(sigma), m))
        E = np.triu(rng.normal(size=(len(sigma), m, m)), 1) / math.sqrt(2)
        E = E + E.transpose(0, 2, 1) + np.eye(m) * rng.normal(size=(len(sigma), 1, m))
        ridge = noise / s2 * math.sqrt(m * math.log(2 * m**2 / _RHO)) * (m + 1) / (2 * m)
        inverse = np.linalg.inv(one.K + (one.B + noise * E) / s2 + ridge * np.eye(m))
        v = np.einsum("kij,kj->ki", inverse, A)
        square = np.sum(v**2, axis=1, keepdims=True)
        linear = noise**2 * (v**2 + (square - v**2) / 2)
        added = noise**2 / sigma[:, None] ** 4 + linear / sigma[:, None] ** 8
        S = inverse + inverse @ (added[:, :, None] * inverse)
        weights = v / sigma[:, None] ** 2
        k = one.to_validation
        variance = np.maximum(one.left + ((S @ k) * k).sum(axis=1), 0.0) + sigma[:, None] ** 2
        scores = -(np.log(2 * math.pi * variance) + (self._y - weights @ k) ** 2 / variance) / 2
        radius = self._reach**2 / sigma**2
        top = -math.log(2 * math.pi) / 2 - np.log(sigma)
        mean = coinpress_mean(
            np.clip(scores, (top - 2 * radius)[:, None], top[:, None]),
            top - radius,
            radius,
            scheme.rho,
            rng,
        )
        return weights, np.where(mean <= top, mean, -np.inf)
