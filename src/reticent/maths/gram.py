"""What noisy Gram matrices of features say about the true one, and about where the records are.

B = Σφφᵀ is released in every stage. It is a mean over a law of the inputs, n·Σ_g p_g φ_gφ_gᵀ on points g of the box, and the law
has p ≥ 0 and Σp = 1: that tells more than the noise hides. Laws that fit the mean of all releases are those with the least

    ‖B − n·Σ p_g φ_gφ_gᵀ‖²/2σ² + α·KL(p ‖ p₀),                  a quadratic form in p: (φ_gᵀφ_h)² and φ_gᵀBφ_g are all it needs.

Several are kept, each found from its own p₀ (the guess, times a random function) and with noise of its own added to B: how they
differ is what is not known about B. To their mean comes the difference to the releases, whose eigenvalues are shrunk as the
noise, whose law is known, asks for.

Records may be weighted: then φ is its product with a weight of at most one, and the guess is scaled by the mean square of the
weights (``share``). It is not known, but the released B tells it.
"""

import math

import numpy as np
from numpy.typing import NDArray

from reticent.maths.linalg import quadratic

__all__ = ["DAMPING", "GramBelief", "denoised"]

Array = NDArray[np.float64]
DAMPING = 0.1  # for inputs that may depend on each other; found on two tuning tasks, flat from 0.05 to 0.2
_LEAST_ERROR = 0.02  # of the belief, as a share of the noise's variance
_LEAST_WRONG = 1.0  # of the laws' mean, in its own sampling variance: a record may be unlike the points
_HIDDEN = 2.0  # what no law shows of B, compared with what noise hides of its difference to an even law
_LAWS = 8
_KEEP = 10.0  # α: how many records the guess of a law counts
_ELSEWHERE = 2.0  # sd of the logarithm of how wrong the guess may be, from place to place
_STEPS, _FIRST_STEPS = 12, 60
_LEAST_LOG = -700.0
_SAME = 1e-9  # relative difference that is rounding: which machine it is must not decide about a step


class GramBelief:
    """B̂ (``mean``) and the variances of the error in its entries (``variance``), from features at public points and releases.

    ``possible`` is B̂ without damping and with no larger a trace than features of length one can have.

    ``damping`` is added to the diagonal, as a share of the noise's largest eigenvalue: where inputs depend on each other, what
    noise hides of the largest eigenvalues of B would let steps go too far. Functions get it in proportion to their squares: of
    one that is small at all records nothing large is hidden, and its noise would be taken for a coefficient that is well known.
    ``least``: the square of the least weight a record can have; 1 for records that are not weighted.
    """

    def __init__(self, points: Array, n: int, *, damping: float = 0.0, least: float = 1.0) -> None:
        self.n, self._damping, self._least = n, damping, least
        # of weights between the least and one, evenly spread on a logarithmic scale
        self.share = self._usual = (1 - least) / -math.log(least) if least < 1 else 1.0
        self._points, m = points, points.shape[1]
        self._alike = _alike(points)
        self._longest = float((points * points).sum(axis=1).max()) ** 2
        rng = np.random.default_rng(0)  # public: what is drawn stands for what is not known
        waves = points @ rng.normal(size=(m, _LAWS))
        waves = (waves - waves.mean(axis=0)) / np.maximum(waves.std(axis=0), 1e-12)
        self._guesses = _normalised(_ELSEWHERE * waves.T)
        for _ in range(_STEPS):  # their mean is the guess
            self._guesses = _normalised(self._guesses - np.log(np.exp(self._guesses).mean(axis=0)))
        self._logs, self._pace = self._guesses.copy(), np.zeros(_LAWS)
        noise = rng.normal(size=(_LAWS, m, m))
        self._blurs = np.stack([quadratic(points, (one + one.T) / 2) for one in noise])
        self.laws = np.exp(self._guesses)
        self.law = self._even = points.T @ points / len(points)
        self.mean = self.possible = n * self.share * self.law
        self.variance = np.zeros_like(self.law)
        self._sum, self._weight = np.zeros_like(self.law), np.zeros_like(self.law)

    def add(self, B: Array, sd: Array) -> None:
        """Take in one more noisy matrix."""
        self._sum, self._weight = self._sum + B / sd**2, self._weight + 1 / sd**2
        released = self._sum / self._weight
        noise2 = float(np.mean(np.diag(1 / self._weight))) / 2  # outside the diagonal, where it is half
        if self._least < 1:
            self.share = self._found_share(noise2)
        n = self.n * self.share
        self.laws = self._fitted(released, 2 * noise2)
        roots = [np.sqrt(n * p)[:, None] * self._points for p in self.laws]
        each = np.stack([root.T @ root for root in roots])  # which takes half the time of other products
        guess = each.mean(axis=0)
        self.law = guess / n
        away, left, signal = denoised(released - guess, noise2)
        possible = np.outer(np.diag(guess), np.diag(guess))
        wrong = (signal / float(possible.sum()) + _LEAST_WRONG / self.n) * possible
        error = left + _LEAST_ERROR * noise2
        floor = self._damping * 2 * math.sqrt(len(guess) * noise2)
        undamped = _positive(guess + away * wrong / (wrong + error))
        self.mean = undamped + floor * np.diag(np.diag(guess) / np.diag(guess).max())
        self.possible = undamped * min(1.0, self.n / max(float(np.trace(undamped)), 1e-300))
        _, hidden, _ = denoised(released - n * self._even, noise2)
        self.variance = np.maximum(each.var(axis=0) + wrong * error / (wrong + error), _HIDDEN * hidden)

    def _fitted(self, released: Array, noise2: float) -> Array:
        """Laws that fit the releases, by mirror descent from the last ones; steps get longer while they help."""
        n = self.n * self.share
        slope = n / noise2 * (quadratic(self._points, released) + math.sqrt(noise2) * self._blurs)
        curve = n * n / noise2
        logs = self._logs
        steps = _STEPS if self._pace.any() else _FIRST_STEPS
        pace = np.maximum(self._pace, 5 / (curve * self._longest + _KEEP))

        def at(logs: Array) -> tuple[Array, Array, Array]:
            p = np.exp(logs)
            pushed = p @ self._alike[0] if len(self._alike) == 1 else p @ self._alike[0] @ self._alike[1]
            value = ((curve / 2 * pushed - slope + _KEEP * (logs - self._guesses)) * p).sum(axis=1)
            return p, curve * pushed - slope + _KEEP * (logs - self._guesses), value

        p, gradient, value = at(logs)
        for _ in range(steps):
            tried = _normalised(logs - pace[:, None] * (gradient - (p * gradient).sum(axis=1, keepdims=True)))
            new = at(tried)
            better = new[2] <= value + _SAME * np.abs(value)
            logs = np.where(better[:, None], tried, logs)
            p, gradient = (np.where(better[:, None], a, b) for a, b in zip(new[:2], (p, gradient), strict=True))
            value = np.where(better, new[2], value)
            pace = np.where(better, 1.5 * pace, 0.4 * pace)
        self._logs, self._pace = logs, pace
        return p

    def _found_share(self, noise2: float) -> float:
        """The mean square of the weights: how long B is along the guess, or the usual, as far as the noise allows."""
        length2 = float((self.law**2).sum())
        found = float((self._sum / self._weight * self.law).sum()) / (self.n * length2)
        doubt = 2 * noise2 / (self.n**2 * length2)
        share = (found / doubt + 1 / self._usual) / (1 / doubt + 1 / self._usual**2)
        return min(max(share, self._least), 1.0)


def _alike(points: Array) -> tuple[Array, ...]:
    """(φ_gᵀφ_h)² of all points; with few functions as two factors, pairs' products, whose product is never written out."""
    m = points.shape[1]
    if m * (m + 1) >= len(points):
        return ((points @ points.T) ** 2,)
    i, j = np.triu_indices(m)
    pairs = points[:, i] * points[:, j] * np.where(i == j, 1.0, math.sqrt(2.0))
    return pairs, np.ascontiguousarray(pairs.T)


def _normalised(logs: Array) -> Array:
    """Logarithms of weights, in rows, that add up to one."""
    logs = np.maximum(logs - logs.max(axis=1, keepdims=True), _LEAST_LOG)
    return np.asarray(logs - np.log(np.exp(logs).sum(axis=1, keepdims=True)))


def _positive(matrix: Array) -> Array:
    """The nearest positive semi-definite matrix."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)


def denoised(noisy: Array, noise2: float) -> tuple[Array, float, float]:
    """A symmetric matrix without its noise (variance ``noise2``, twice that on the diagonal), the error left, the sum of squares.

    The best that can be done without knowing the eigenvectors: an eigenvalue λ becomes λ − 2·m·noise2·H(λ), where H is the
    Hilbert transform of the density of eigenvalues (Bun, Bouchaud and Potters). Pure noise becomes nothing.
    """
    m = len(noisy)
    values, vectors = np.linalg.eigh(noisy)
    width2 = 4 * noise2  # that of single eigenvalues: 2√(m·noise2)/√m
    gaps = values[:, None] - values
    shrunk = values - 2 * noise2 * (gaps / (gaps * gaps + width2)).sum(axis=1)
    shrunk = np.where(values > 0, np.clip(shrunk, 0, values), np.clip(shrunk, values, 0))
    signal = max(float(values @ values) - noise2 * m * (m + 1), 0.0)
    left = max(signal - float(shrunk @ shrunk), 0.0) / m**2
    return (vectors * shrunk) @ vectors.T, left, signal
