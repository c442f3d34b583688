"""Mean and covariance of records whose columns are measured by one length.

For noise that hides the variances of single columns: then columns cannot be standardised, and what
can be learned is how long records are, where their middle is, and in which directions they spread.

* `Middle`: the mean, and the mean squared distance from it, from noisy looks at shortened records,
  each from the mean of the one before;
* `SpreadEstimate`: the covariance, from one noisy Gram matrix of records shortened to one length.
"""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import gammainc, gammaincc

from reticent.inference.mixtures.settings import SPREAD
from reticent.inference.moment_model.gram_estimation import denoise_spectrum

__all__ = ["Middle", "SpreadEstimate", "first_radius", "looks_pay", "unshortened", "wide_enough"]

Array = NDArray[np.float64]


def looks_pay(noise: float, part: float) -> bool:
    """Whether looks for the mean, at this part of the budget, make one Gram matrix less noisy.

    ``noise``: expected length of the noise in a mean by the whole budget, relative to the length
    that records are shortened to. From the true mean, half of the records' squared length is left,
    a priori; from a noisy one what its error adds. The Gram matrix has noise in proportion.
    """
    return (SPREAD.spread + noise**2 / part) / math.sqrt(1 - part) <= 1


def first_radius(noise: float) -> float:
    """The length that records are first shortened to, relative to the longest.

    ``noise``: as in `looks_pay`, of this look. If it is evenly distributed how far from the middle
    the mean lies, the squared error ν²r² of the noise and (1 − r)³/3 of what is cut off are least
    together where 2ν²r = (1 − r)².
    """
    excess = 1 + noise**2
    return 1 / (excess + math.sqrt(excess**2 - 1))


def wide_enough(noise: float) -> float:
    """What to shorten records to in a look, in root mean squared lengths.

    ``noise``: as in `looks_pay`, of this look. What is cut off beyond r may move the mean by c/r²:
    with the noise νr that is least at r³ = √2·c/ν. So a look is ever wider as the noise vanishes.
    """
    return max((math.sqrt(2) * SPREAD.cut_off / noise) ** (1 / 3), SPREAD.least_excess)


class Middle:
    """Mean of the scaled records (d,), and their mean squared distance from it.

    ``longest``: the longest record possible; ``radius``: what records are shortened to in the next
    look; ``mean_variance``: of the error in
    each column's mean.
    """

    def __init__(self, d: int, longest: float, radius: float) -> None:
        self.mean = np.zeros(d)
        self.mean_variance = math.inf
        self.longest = longest
        self.radius = radius
        self.looked = radius  # what they were shortened to in the last look
        self.square = 0.0
        self.square_sd = math.inf

    def add(self, step: Array, sd: float, square: float, square_sd: float) -> None:
        """Condition on noisy means of z = (u − mean)/radius, shortened to one, (d,), and of ‖z‖².

        ``sd``: noise in each column; ``square_sd``: in the mean of ‖z‖².
        """
        d = len(self.mean)
        self.looked = self.radius
        step = self.radius * np.clip(step, -1.0, 1.0)
        noise2 = (self.radius * sd) ** 2
        # of the mean around where it was thought to be, by what the step shows
        seen = float(step @ step) / d - noise2
        if math.isinf(self.mean_variance):
            moved = max(seen, 0.0)  # James and Stein
            spread = max(seen, noise2 * math.sqrt(2 / d))  # which the noise would hide
        else:
            moved = spread = max(self.mean_variance, seen)
        self.mean = np.clip(self.mean + moved / (moved + noise2) * step, -1.0, 1.0)
        self.mean_variance = spread * noise2 / (spread + noise2)
        self.square_sd = self.radius**2 * square_sd
        # a distance from the mean that noise could hide is not told apart from none
        self.square = max(self.radius**2 * square - d * max(seen, 0.0), self.square_sd)

    def wide(self, excess: float) -> float:
        """What to shorten records to in the next look, which shall cut little off.

        So many times their root mean squared length from the mean as it is estimated, whose error
        makes them longer.
        """
        return min(self.longest, excess * self._length(1.0))

    def narrow(self) -> float:
        """What to shorten records to in a Gram matrix: at most their root mean squared length.

        What is shorter keeps its direction.
        """
        return min(self.radius, self._length(2.0))

    def _length(self, doubt: float) -> float:
        """Root mean squared length from the mean as it is estimated, whose error adds to it.

        Too short costs little, too long costs noise: what noise may have added is left out, the
        more the larger the ``doubt`` is, in its standard deviations.
        """
        sure = self.square * self.square / (self.square + doubt * self.square_sd)
        return math.sqrt(sure + len(self.mean) * self.mean_variance)


def unshortened(seen: float, dimensions: float) -> tuple[float, float]:
    """Mean square of lengths that were shortened to one before, and by how much noise grows.

    As if squares had a gamma distribution, of so many normal ``dimensions``. With one or two
    dimensions so many are short that lengths of any size may not have this mean square: then it is
    the largest.
    """
    seen = min(seen, SPREAD.saturated)
    largest = SPREAD.largest_square
    shape = dimensions / 2

    def excess(whole: float) -> float:
        within = shape / whole
        return float(whole * gammainc(shape + 1, within) + gammaincc(shape, within)) - seen

    if excess(seen) >= 0:  # nothing is shortened, but for rounding
        whole = seen
    elif excess(largest) <= 0:
        whole = largest
    else:
        whole = float(brentq(excess, seen, largest))
    return whole, 1 / float(gammainc(shape + 1, shape / whole))


class SpreadEstimate:
    """Mean, scales and correlations of scaled records, as `CorrelationEstimate` has them.

    ``gram`` is the noisy mean of zzᵀ, z = (u − mean)/radius shortened to one, ``sd`` the noise of
    its diagonal. Not ``centred``: z = u/radius, since noise hides where the mean is.
    """

    def __init__(
        self, middle: Middle, gram: Array, sd: float, radius: float, *, centred: bool = True
    ) -> None:
        d = len(gram)
        noise2 = sd**2 / 2  # outside the diagonal
        # the mean eigenvalue: no z is longer than one
        each = min(max(float(np.trace(gram)), sd * math.sqrt(d)), 1.0) / d
        surplus = gram - each * np.eye(d)
        denoised, _, _ = denoise_spectrum(surplus, noise2)
        denoised /= 1 + noise2 / (d * each**2)  # no eigenvalue is much larger than d of the mean
        # what noise would hide is still the likeliest order of the directions
        denoised += SPREAD.hidden_order * surplus
        relative = math.sqrt(noise2) / each
        self.least = float(min(SPREAD.max_floor, relative)) + 1e-6
        values, vectors = np.linalg.eigh(denoised + each * np.eye(d))
        floor = self.least * each * (1 + SPREAD.hidden_order * np.arange(d) / d)
        covariance = (vectors * np.maximum(values, floor)) @ vectors.T
        trace = float(np.trace(covariance))
        dimensions = trace**2 / float((covariance**2).sum())
        total = middle.longest**2 * SPREAD.box_square  # and records may be all over the box
        mean_variance = total / d
        if centred:
            mean_variance = middle.mean_variance
            total = self._total(
                middle, dimensions, float(np.trace(gram)), sd * math.sqrt(d), radius
            )
        covariance *= total / trace
        self.covariance = np.asarray((covariance + covariance.T) / 2)
        self.mean = middle.mean
        self.mean_sd = np.full(d, math.sqrt(mean_variance))
        self.scale = np.sqrt(np.diag(self.covariance))
        self.correlation = self.covariance / np.outer(self.scale, self.scale)

    @staticmethod
    def _total(middle: Middle, dimensions: float, trace: float, sd: float, radius: float) -> float:
        """Mean squared distance from the mean, by the last look and by the Gram matrix.

        Each with the error of its noise, and of what it puts back of shortened records: the nearer
        the mean square is to the largest possible, the less it says. One error of the
        noise is added.
        """
        looks = (middle.looked**2, middle.square / middle.looked**2, middle.square_sd)
        gram = (radius**2, max(trace, sd), sd * radius**2)
        total = 0.0
        precision = 0.0
        noise2 = 0.0
        for radius2, seen, noise in (looks, gram):
            whole, growth = unshortened(seen, dimensions)
            weight = 1 / ((growth * noise) ** 2 + (seen * radius2 * whole) ** 2)
            total += weight * radius2 * whole
            precision += weight
            noise2 += (weight * growth * noise) ** 2
        # what is too narrow fits worse than what is too wide
        return (total + math.sqrt(noise2)) / precision
