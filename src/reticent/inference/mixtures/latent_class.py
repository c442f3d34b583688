"""Latent classes: components that are normal in some columns and have levels in others.

Within a component, columns of words are independent of each other and of the numbers. Pure
functions of public numbers and releases.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from reticent.inference.mixtures.gaussian_mixture import NormalMixture
from reticent.inference.mixtures.settings import LATENT_CLASS

__all__ = [
    "LatentClassMixture",
    "level_chances",
    "match_margins",
    "nearest_probabilities",
    "shrink_to_margins",
]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class LatentClassMixture:
    """Weights π (K,), a normal distribution of p numbers and levels in each component.

    ``normal`` has the same weights; None if there are no numbers. ``level_probabilities``: for each
    column of words (K, L), rows that add up to one.
    """

    weights: Array
    normal: NormalMixture | None
    level_probabilities: tuple[Array, ...]

    @property
    def log_heights(self) -> Array:
        """Logarithms of weight over volume of each component, up to a constant."""
        if self.normal is None:
            return np.log(self.weights)
        return self.normal.log_heights

    def log_densities(self, numbers: Array, levels: NDArray[np.int64]) -> Array:
        """log π_k p_k(record), a row for each of n records.

        ``numbers`` (n, p), ``levels`` (n, number of columns of words).
        """
        if self.normal is None:
            log = np.repeat(np.log(self.weights)[None], len(levels), axis=0)
        else:
            log = self.normal.log_densities(numbers)
        for probabilities, level in zip(self.level_probabilities, levels.T, strict=True):
            log = log + np.log(probabilities).T[level]
        return log

    def score(self, numbers: Array, levels: NDArray[np.int64]) -> Array:
        """Log-density of the numbers times the probability of the levels, of each record."""
        return np.asarray(logsumexp(self.log_densities(numbers, levels), axis=1))

    def responsibilities(self, numbers: Array, levels: NDArray[np.int64]) -> Array:
        """Posterior probabilities of the components, a row for each record."""
        log = self.log_densities(numbers, levels)
        return np.asarray(np.exp(log - logsumexp(log, axis=1, keepdims=True)))

    def joined(self, other: "LatentClassMixture") -> "LatentClassMixture":
        """Both mixtures in one, at even odds."""
        normal = None
        weights = np.concatenate([self.weights, other.weights]) / 2
        if self.normal is not None and other.normal is not None:
            normal = NormalMixture(
                weights,
                np.vstack([self.normal.means, other.normal.means]),
                np.concatenate([self.normal.roots, other.normal.roots]),
            )
        level_probabilities = tuple(
            np.vstack(pair)
            for pair in zip(self.level_probabilities, other.level_probabilities, strict=True)
        )
        return LatentClassMixture(weights, normal, level_probabilities)


def nearest_probabilities(values: Array) -> Array:
    """The nearest rows of probabilities: none below a least probability, each adding up to one.

    The Euclidean projection to the simplex, row by row, and a little of the even distribution.
    """
    many = values.shape[1]
    ordered = -np.sort(-values, axis=1)
    excess = (np.cumsum(ordered, axis=1) - 1) / np.arange(1, many + 1)
    last = np.maximum((ordered > excess).sum(axis=1) - 1, 0)
    projected = np.maximum(values - excess[np.arange(len(values)), last][:, None], 0.0)
    least = LATENT_CLASS.least_chance
    return np.asarray((projected + least) / (projected.sum(axis=1, keepdims=True) + many * least))


def level_chances(counts: Array, sd: float) -> Array:
    """Chances of the levels of one column (L,), from noisy counts with a small Dirichlet prior."""
    total = max(float(counts.sum()), sd, 1.0)
    prior = LATENT_CLASS.prior_records
    probabilities = (counts + prior / len(counts)) / (total + prior)
    return nearest_probabilities(probabilities[None])[0]


def shrink_to_margins(counts: Array, levels: Array, levels_sd: float, margins: Array) -> Array:
    """Chances of a column's levels in each component (K, L).

    From the noisy numbers of records of each component (K,) and of each level among them (K, L):
    posterior means under a prior about the ``margins`` (L,), whose width is that of the deviations
    beyond noise. A small Dirichlet prior with these margins is added.
    """
    prior = LATENT_CLASS.prior_records
    sizes = np.maximum(counts, levels_sd)[:, None]
    deviation = (levels + prior * margins) / (sizes + prior) - margins
    noise2 = (levels_sd / sizes) ** 2
    signal2 = np.maximum((deviation**2).mean(axis=1, keepdims=True) - noise2, 0.0)
    return nearest_probabilities(margins + deviation * signal2 / (signal2 + noise2))


def match_margins(weights: Array, probabilities: Array, margins: Array) -> Array:
    """Probabilities (K, L) changed as little as needed to have these ``margins`` (L,) on average.

    Iterative proportional fitting: margins are known better than what each component adds to them.
    """
    fitted = probabilities
    for _ in range(LATENT_CLASS.fitting_steps):
        fitted = fitted * (margins / (weights @ fitted))
        fitted = fitted / fitted.sum(axis=1, keepdims=True)
    return np.asarray(fitted)
