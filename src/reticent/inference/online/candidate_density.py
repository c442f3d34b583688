"""Density of the candidates: what the Gram matrices of those that were chosen say of it.

Releases tell where the *chosen* candidates were, Σφφᵀ. How they were chosen is public: of k
candidates with a density p on G points of the box, the one with the highest score lies at point g
with probability

    c_g = F(s_g)ᵏ − F(s_g⁻)ᵏ,     F(s) = Σ p_h over all points with a score up to s,

and c = p where all scores are equal. So every batch is an observation of p: in the eigen-directions
a, b of what is expected,

    released_ab = n Σ_g c_g ψ_ga ψ_gb + N(0, ρ_ab) + N(0, τ_ab),

ρ for that the rounds are a sample, τ for privacy. As for the records of a regression
(`log_density`), log p = Λz − log Σ with z ~ N(0, I). What earlier batches said of z is kept as a
normal law around the best guess (an iterated extended Kalman filter).
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reticent.inference.moment_model.log_density import (
    density_modes,
    halved_step,
    least_factor,
    likely_mean_square,
)
from reticent.inference.moment_model.settings import JOINT
from reticent.number_kinds import Numerical

__all__ = ["CandidateDensity", "CandidateDensitySettings", "chosen_weights"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class CandidateDensitySettings:
    """Numerical settings of `CandidateDensity`.

    Parameters
    ----------
    directions : int
        Eigen-directions in which a release is looked at, those with the most mass. They have 300
        products, for 60 modes of the density.
    """

    directions: Numerical[int] = 24


_SETTINGS = CandidateDensitySettings()
_MOST_NATS: Numerical[float] = 500.0  # beyond which an exponential overflows


class CandidateDensity:
    """Density of the candidates on points of the box, learned batch by batch.

    Two hypotheses are weighed by their evidence: candidates are even, or have a density of their
    own.

    Parameters
    ----------
    points : (G, d) array
        Where candidates may be, evenly over the box.
    arms : int
        Candidates of a round.

    Attributes
    ----------
    weights : (G,) array
        p, the mean of both hypotheses; even before anything was learned.
    """

    def __init__(self, points: Array, arms: int) -> None:
        self._points = points
        self._arms = arms
        self._modes = density_modes(points)
        size = self._modes.shape[1]
        self._mean = np.zeros(size)
        self._precision = np.eye(size)
        self._even = np.full(len(points), 1 / len(points))
        self._log_odds = 0.0  # of a density of its own against an even one
        self.weights: Array = self._even

    def learn(self, features: Array, scores: Array, gram: Array, sd: float, n: float) -> None:
        """Learn from a batch.

        Parameters
        ----------
        features : (G, m) array
            φ at the points.
        scores : (G,) array
            What candidates were chosen by; all equal if they were chosen at random.
        gram : (m, m) array
            Released Σφφᵀ.
        sd : float
            Standard deviation of its noise off the diagonal.
        n : float
            Rounds of the batch.
        """
        expected = chosen_weights(self.weights, scores, self._arms)
        release = _Release(expected, features, gram, sd, n)
        z = self._mean
        for _ in range(JOINT.density_iterations):
            view = release.view(self._chosen(z, scores))
            slopes = view.standardised(self._chosen_slopes(z, scores))
            gradient = slopes @ view.residual - self._precision @ (z - self._mean)
            curvature = self._precision + slopes @ slopes.T
            step: Array = np.linalg.solve(curvature, gradient).astype(np.float64)
            step = step * self._step_length(z, step, view, scores)
            z = z + step
            if float(np.sqrt(np.mean(step**2))) < JOINT.tolerance:
                break
        view = release.view(self._chosen(z, scores))
        slopes = view.standardised(self._chosen_slopes(z, scores))
        precision = self._precision + slopes @ slopes.T
        learned = np.linalg.slogdet(precision)[1] - np.linalg.slogdet(self._precision)[1]
        evidence = view.log_likelihood - self._prior_misfit(z) - learned / 2  # Laplace
        even = release.view(chosen_weights(self._even, scores, self._arms))
        self._log_odds += float(evidence - even.log_likelihood)
        self._precision = precision
        self._mean = z
        own = 1 / (1 + math.exp(-np.clip(self._log_odds, -_MOST_NATS, _MOST_NATS)))
        self.weights = own * self._density(z) + (1 - own) * self._even

    def draw(self, random: np.random.Generator, count: int) -> Array:
        """Candidates (count, d): points with their weights, moved within the cell of each."""
        d = self._points.shape[1]
        chosen = random.choice(len(self._points), size=count, p=self.weights)
        half_cell = len(self._points) ** (-1 / d)
        moved = self._points[chosen] + half_cell * (2 * random.random((count, d)) - 1)
        beyond = np.maximum(np.abs(moved) - 1, 0)
        return np.asarray(moved - 2 * np.sign(moved) * beyond)  # reflected at the edges

    def _density(self, z: Array) -> Array:
        logs = self._modes @ z
        p = np.exp(logs - logs.max())
        return np.asarray(p / p.sum())

    def _chosen(self, z: Array, scores: Array) -> Array:
        return chosen_weights(self._density(z), scores, self._arms)

    def _chosen_slopes(self, z: Array, scores: Array) -> Array:
        """∂c/∂z (G, modes), by sums over all points up to each score."""
        p = self._density(z)
        slopes = p[:, None] * (self._modes - p @ self._modes)
        if np.ptp(scores) == 0:
            return np.asarray(slopes)
        order = np.argsort(scores, kind="stable")
        below = np.cumsum(p[order])
        rise = self._arms * below ** (self._arms - 1)
        summed = rise[:, None] * np.cumsum(slopes[order], axis=0)
        found = np.empty_like(slopes)
        found[order] = np.diff(summed, axis=0, prepend=0.0)
        return found

    def _prior_misfit(self, z: Array) -> float:
        """Minus the log density of z before this batch, beside that of the best guess."""
        off = z - self._mean
        return float(off @ self._precision @ off) / 2

    def _step_length(self, z: Array, step: Array, view: "_View", scores: Array) -> float:
        """Length of a step that does not make the posterior of z less likely."""

        def objective(length: float) -> float:
            moved = z + length * step
            return view.misfit(self._chosen(moved, scores)) + self._prior_misfit(moved)

        return halved_step(objective)


class _Release:
    """A released Gram matrix in the leading eigen-directions of what is expected."""

    def __init__(self, expected: Array, features: Array, gram: Array, sd: float, n: float) -> None:
        self.n = n
        directions = np.linalg.eigh((features.T * expected) @ features)[1]
        directions = directions[:, -_SETTINGS.directions :]
        i, j = np.triu_indices(directions.shape[1])
        rotated = np.ascontiguousarray((features @ directions).T)
        self.products: Array = rotated[i] * rotated[j]
        self.released: Array = (directions.T @ gram @ directions)[i, j]
        self.noise: Array = np.where(i == j, 2.0, 1.0) * sd**2
        self._squares = self.products**2

    def view(self, chosen: Array) -> "_View":
        """What it says beside what a law foretells."""
        return _View(self, chosen, self.n * self._squares @ chosen)


class _View:
    """A release beside what the weights ``chosen`` (G,) foretell, and the variance of that.

    Attributes
    ----------
    residual : (pairs,) array
        Released less expected, in standard deviations; upper triangle.
    log_likelihood : float
        Of the release, up to a constant.
    """

    def __init__(self, release: _Release, chosen: Array, sampling: Array) -> None:
        self._release = release
        difference = self._difference(chosen)
        squares = difference**2
        most = likely_mean_square(len(squares))

        def excess(factor: float) -> bool:
            return float((squares / (release.noise + factor * sampling)).mean()) > most

        self._spread = np.sqrt(release.noise + least_factor(excess) * sampling)
        self.residual: Array = difference / self._spread
        self.log_likelihood = -float((self.residual**2 / 2 + np.log(self._spread)).sum())

    def _difference(self, chosen: Array) -> Array:
        release = self._release
        return np.asarray(release.released - release.n * (release.products @ chosen))

    def misfit(self, chosen: Array) -> float:
        """Minus the log likelihood of other weights, with the same variances."""
        return float(((self._difference(chosen) / self._spread) ** 2).sum()) / 2

    def standardised(self, chosen_slopes: Array) -> Array:
        """Derivatives (modes, pairs) of what is expected, in standard deviations."""
        slopes = self._release.n * (self._release.products @ chosen_slopes)
        return np.asarray((slopes / self._spread[:, None]).T)


def chosen_weights(p: Array, scores: Array, arms: int) -> Array:
    """Probability c (G,) that the best of ``arms`` candidates with density p is at each point.

    At random where all scores are equal.
    """
    if np.ptp(scores) == 0:
        return p
    order = np.argsort(scores, kind="stable")
    below = np.cumsum(p[order])
    found = np.empty_like(p)
    found[order] = np.diff(below**arms, prepend=0.0)
    return found
