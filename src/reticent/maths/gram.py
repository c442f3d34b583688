"""What noisy Gram matrices of features say about the true one.

B = Σφφᵀ is released in every stage. The belief is a public guess of it, from points that are spread like the records may be, plus
the difference to the mean of all releases, whose eigenvalues are shrunk as the noise, whose law is known, asks for.

Records may be weighted: then φ is its product with a weight of at most one, and the guess is scaled by the mean square of the
weights (``share``). It is not known, but the released B tells it.
"""

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["DAMPING", "GramBelief", "denoised"]

Array = NDArray[np.float64]
DAMPING = 0.1  # for inputs that may depend on each other; found on two tuning tasks, flat from 0.05 to 0.2
_LEAST_ERROR = 0.02  # of the belief, as a share of the noise's variance
_LEAST_WRONG = 10.0  # of the guess, in its own sampling variance: a record may be unlike the points


class GramBelief:
    """B̂ (``mean``) and the variances of the error in its entries (``variance``), from features at public points and releases.

    ``damping`` is added to all directions, as a share of the noise's largest eigenvalue: where inputs depend on each other, what
    noise hides of the largest eigenvalues of B would let steps go too far. ``least``: the square of the least weight a record
    can have; 1 for records that are not weighted.
    """

    def __init__(self, points: Array, n: int, *, damping: float = 0.0, least: float = 1.0) -> None:
        self.n, self._damping, self._least = n, damping, least
        # of weights between the least and one, evenly spread on a logarithmic scale
        self.share = self._usual = (1 - least) / -math.log(least) if least < 1 else 1.0
        self.law = points.T @ points / len(points)
        self.mean = self.undamped = n * self.share * self.law
        self.variance = np.zeros_like(self.law)
        self._sum, self._weight = np.zeros_like(self.law), np.zeros_like(self.law)

    def add(self, B: Array, sd: Array) -> None:
        """Take in one more noisy matrix.

        The guess may be wrong by a share of what is possible, |B_ij|² ≤ B_ii·B_jj, which the releases tell.
        """
        self._sum, self._weight = self._sum + B / sd**2, self._weight + 1 / sd**2
        noise2 = float(np.mean(np.diag(1 / self._weight))) / 2  # outside the diagonal, where it is half
        if self._least < 1:
            self.share = self._found_share(noise2)
        guess = self.n * self.share * self.law
        away, left, signal = denoised(self._sum / self._weight - guess, noise2)
        possible = np.outer(np.diag(guess), np.diag(guess))
        wrong = (signal / float(possible.sum()) + _LEAST_WRONG / self.n) * possible
        error = left + _LEAST_ERROR * noise2
        floor = self._damping * 2 * math.sqrt(len(guess) * noise2)
        self.undamped = _positive(guess + away * wrong / (wrong + error))
        self.mean = self.undamped + floor * np.eye(len(guess))
        self.variance = wrong * error / (wrong + error)

    def _found_share(self, noise2: float) -> float:
        """The mean square of the weights: how long B is along the guess, or the usual, as far as the noise allows."""
        length2 = float((self.law**2).sum())
        found = float((self._sum / self._weight * self.law).sum()) / (self.n * length2)
        doubt = 2 * noise2 / (self.n**2 * length2)
        share = (found / doubt + 1 / self._usual) / (1 / doubt + 1 / self._usual**2)
        return min(max(share, self._least), 1.0)


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
