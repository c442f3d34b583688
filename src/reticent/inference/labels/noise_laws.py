"""Laws of the noise in labels, weighed by all that releases and the bounds of y say of them.

As in `moment_model.clipping` the noise is a normal core with a rare part of larger residuals. Here
labels lie in [−1, 1] (half-ranges of y), which says more:

* Where their mean is f, a residual of more than 1 + f can only be above it, and one of more than
  1 − f only below. So a long rare part has a known side; the core is beside the mean, at f − side ·
  mass · length, and a clip at ±r moves the mean of a label by −side · mass · (length − r/gain).
  Each law so foretells by how much the levels of stages of different thresholds differ.
* The core is symmetric about its mean: its standard deviation is at most the distance from there
  to the nearer end of the range. Either there is room, and its mean was anywhere in the range a
  priori; or it rests against that end, as zeros do among rare ones or amounts. Then the rare part
  alone lifts the mean from the end: by anything a priori, and with even odds from the other end,
  as labels of two values.

Near the middle of the range both sides are open, and there these laws are those of `clipping`.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr
from scipy.stats import norm

from reticent.inference.moment_model.clipping import (
    NoiseTail,
    clipped_second_moment,
    second_moment_misfit,
)
from reticent.inference.moment_model.settings import CLIPPED_MOMENTS

__all__ = ["LevelEvidence", "NoiseLaws", "SecondMoments", "noise_laws", "open_side"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SecondMoments:
    """Released mean squares of clipped residuals, and their noise; all (stages,).

    ``level`` is the mean over labels of the present fit, ``apart`` and ``apart_squared`` are those
    of what it lies above the stage's centre, and of its square; ``unknown`` is its variance.
    """

    value: Array
    sd: Array
    level: float
    apart: Array
    apart_squared: Array
    unknown: float


@dataclass(frozen=True, eq=False)
class LevelEvidence:
    """What the levels of the releases say.

    A shift of each stage's level (stages,) has the log-likelihood shift·evidence −
    shiftᵀ·information·shift/2. The level of the function is ``mean`` − ``pull``·shift, known to
    ``sd``.
    """

    information: Array
    evidence: Array
    mean: float
    sd: float
    pull: Array


@dataclass(frozen=True, eq=False)
class NoiseLaws:
    """Laws with their weights, and the side of each one's rare part where bounds tell it.

    ``side`` (laws,) is that of `open_side`.
    """

    tail: NoiseTail
    side: Array

    @cached_property
    def lift(self) -> Array:
        """How far the rare part lifts the mean above the core; (laws,)."""
        return np.asarray(self.side * self.tail.mass * self.tail.length)

    def shifts(self, r: Array, gain: Array) -> Array:
        """What clips at each r move the mean of a label by, under each law; (laws, thresholds)."""
        length = self.tail.length[:, None]
        cut = np.where(length > r, np.maximum(length - r / gain, 0.0), 0.0)
        return np.asarray(-(self.side * self.tail.mass)[:, None] * cut)

    def shift_moments(self, r: Array, gain: Array) -> tuple[Array, Array]:
        """Mean and covariance of these shifts over the laws."""
        shifts = self.shifts(r, gain)
        mean = self.tail.weights @ shifts
        apart = shifts - mean
        return mean, (apart.T * self.tail.weights) @ apart

    def one_sided_excess(self, told: float) -> float:
        """Mean of what rare parts on a known side add to a variance of the noise that is told."""
        tail = self.tail
        more = np.maximum((1 - tail.mass) * tail.core + tail.mass * tail.length**2 - told, 0.0)
        return float(tail.weights @ (np.abs(self.side) * more))

    @cached_property
    def two_sided(self) -> NoiseTail:
        """The rare part that may be on either side."""
        return replace(self.tail, mass=self.tail.mass * (1 - np.abs(self.side)))

    def reweighed(self, log_factors: Array) -> "NoiseLaws":
        """The same laws, their weights times a factor each; unlikely ones are left out."""
        with np.errstate(divide="ignore"):
            log_weights = np.log(self.tail.weights) + log_factors
        weights = np.exp(log_weights - log_weights.max())
        kept = weights > CLIPPED_MOMENTS.negligible_weight
        weights = weights[kept] / weights[kept].sum()
        tail = NoiseTail(
            self.tail.core[kept], self.tail.mass[kept], self.tail.length[kept], weights
        )
        return NoiseLaws(tail, self.side[kept])

    def fits(
        self, r: Array, gain: Array, squares: SecondMoments, levels: LevelEvidence
    ) -> tuple[Array, Array]:
        """Log-likelihood of what was released under each law, and of where its core lies.

        And the probability that it rests against an end of the range; both (laws,).
        """
        tail = self.tail
        shifts = self.shifts(r, gain)
        level = levels.mean - shifts @ levels.pull
        fits = shifts @ levels.evidence
        fits -= np.einsum("ls,st,lt->l", shifts, levels.information, shifts) / 2
        below = (level - self.lift - squares.level)[:, None]
        around = squares.apart_squared + 2 * below * squares.apart + below**2
        core = clipped_second_moment(tail.core[:, None] + squares.unknown + around, r)
        rare = np.minimum(tail.length[:, None], r) ** 2
        expected = (1 - tail.mass)[:, None] * core + tail.mass[:, None] * rare
        fits -= np.sum(second_moment_misfit(squares.value, squares.sd, expected), axis=1) / 2
        room = (1 - np.abs(level - self.lift) - np.sqrt(tail.core)) / levels.sd
        at_end = self._at_end() * norm.pdf(room) / levels.sd
        density = np.maximum(ndtr(room) / 2 + at_end, 1e-300)
        return np.asarray(fits + np.log(density)), np.asarray(at_end / density)

    def _at_end(self) -> Array:
        """Odds of a core that rests against an end of the range, by those of one with room.

        The lift is uniform between 0 and the range, on the grid of masses; with even odds the rare
        part is at the other end, the longest length.
        """
        low, high, number = CLIPPED_MOMENTS.tail_masses
        many = CLIPPED_MOMENTS.tail_lengths
        two_values = self.tail.length >= self.tail.length.max() * (1 - 1e-9)
        lengths = np.where(two_values, many / 2, many / (2 * (many - 1)))
        masses = math.log(high / low) * number / (number - 1)
        return np.asarray(np.abs(self.lift) / 2 * masses * lengths)


def open_side(lengths: Array, means: Array, counts: Array) -> Array:
    """Share of the labels whose residual of such a length is above, less that below; (lengths,).

    Residuals that may be on either side count as neither; those with room on no side, as on the
    wider one. ``means`` (inputs,) of ``counts`` labels.

    >>> open_side(np.array([0.1, 0.5, 2.0]), np.array([-0.8]), np.ones(1)).tolist()
    [0.0, 1.0, 1.0]
    """
    order = np.argsort(means)
    reached = np.append(0.0, np.cumsum(counts[order]))
    above = reached[np.searchsorted(means[order], np.minimum(lengths - 1, 0.0))]
    up_to = reached[np.searchsorted(means[order], np.maximum(1 - lengths, 0.0), "right")]
    return np.asarray((above - (reached[-1] - up_to)) / reached[-1])


def noise_laws(s2: float, longest: float, means: Array, counts: Array) -> NoiseLaws:
    """All laws with a core of at most s², by their odds alone.

    ``longest``: largest residual that the bounds of y allow; ``means`` (inputs,) of the labels.
    """
    settings = CLIPPED_MOMENTS
    shortest = min(settings.shortest_tail * math.sqrt(s2), longest / 2)
    lengths = np.geomspace(shortest, longest, settings.tail_lengths)
    masses = np.geomspace(*settings.tail_masses)
    cores = s2 * np.geomspace(*settings.core_grid)
    core, mass, length = (part.ravel() for part in np.meshgrid(cores, masses, lengths))
    odds = math.exp(settings.tail_log_odds) / len(masses)
    # noise that is all core has the variance s²
    core = np.append(core, np.full(len(lengths), s2))
    mass = np.append(mass, np.zeros(len(lengths)))
    length = np.append(length, lengths)
    weights = np.where(mass > 0, odds, 1.0)
    tail = NoiseTail(core, mass, length, weights / weights.sum())
    return NoiseLaws(tail, open_side(length, means, counts))
