"""Posterior of a Gaussian process from noisy sums over regions.

    value_b = weight_b · f̄_b + noise,   f̄_b: the average of f over region b (or its value at the
                                         region's centre)
    noise variance = m_b · (σ² + within_b) + (weight_b)² · uneven_b · within_b + privacy_b

For counts the weight is the number expected in the region under a uniform density, f the density
relative to it, less one, and m_b·σ² the variance of a count. For means the weight is the number of
records, which is itself uncertain: its variance, times E f̄_b², is part of privacy_b (errors in
variables); and within_b = k(x, x) − Var f̄_b is how f varies within the region, where records are
somewhere. Records that stand together in one place of their region, and not evenly, have a mean
that differs from f̄_b, with a variance of up to within_b: of how much, `uneven_density` judges by
the neighbours. Nothing is ever divided by a noisy count.
"""

from dataclasses import dataclass
from functools import cached_property
from math import log, pi, sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr
from sklearn.gaussian_process.kernels import Kernel

from reticent.inference.binned.settings import BINNED_POSTERIOR
from reticent.inference.kernels.integral import (
    Boxes,
    BoxPairs,
    KernelMixture,
    box_covariance,
    box_pairs,
    kernel_mixture,
)
from reticent.inference.linalg import robust_cholesky, solve_lower

__all__ = [
    "HypothesisPosterior",
    "RegionObservations",
    "Regions",
    "likelihood_quadratics",
    "nonnegative_moments",
    "occupied_outputs",
    "occupied_part",
    "uneven_density",
]

Array = NDArray[np.float64]
_STEPS, _STEP_WEIGHTS = np.polynomial.legendre.leggauss(BINNED_POSTERIOR.step_nodes)


@dataclass(frozen=True)
class Regions:
    """Regions as unions of boxes: the boxes, the region of each, and how many regions there are."""

    boxes: Boxes
    of: NDArray[np.int64]
    size: int
    integral: bool = True  # averages over regions; else values at their centres

    @cached_property
    def volumes(self) -> Array:
        """Volume of each region."""
        return np.asarray(np.bincount(self.of, weights=self.boxes.volumes, minlength=self.size))

    @cached_property
    def _volume_fractions(self) -> Array:
        fractions = np.zeros((self.size, len(self.boxes)))
        fractions[self.of, np.arange(len(self.boxes))] = self.boxes.volumes / self.volumes[self.of]
        return fractions

    @cached_property
    def centres(self) -> Array:
        """Centre of gravity of each region."""
        return np.asarray(self._volume_fractions @ ((self.boxes.low + self.boxes.high) / 2))

    def spread_of_inputs(self, share: Array, half: Array) -> Array:
        """Standard deviations (inputs,), by ``half`` (inputs,), of inputs that are even in regions.

        ``share``: of each region, (regions,). Inputs are measured from about their mean: squares of
        numbers that lie far from zero, in a narrow box, would lose what is sought.
        """
        share = share @ self._volume_fractions
        middle = share @ (self.boxes.low / 2 + self.boxes.high / 2)
        low = (self.boxes.low - middle) / half
        high = (self.boxes.high - middle) / half
        mean = share @ (low + high) / 2
        square = share @ (low**2 + low * high + high**2) / 3
        return np.asarray(np.sqrt(np.maximum(square - mean**2, 0.0)))

    def between(
        self, m: KernelMixture, other: "Regions | Boxes", *, gradient: bool = False
    ) -> tuple[Array, Array]:
        """Covariances of f̄ with those of other regions, or with values at points.

        And their derivatives.
        """
        if isinstance(other, Boxes):
            pairs = box_pairs(self._observed_boxes, other, separately=True)
            a, slopes = box_covariance(m, pairs, gradient=gradient)
            return self._averaged(a), slopes
        if other is self:
            among = self._pairs
        else:
            among = box_pairs(self._observed_boxes, other._observed_boxes)
        a, slopes = box_covariance(m, among, gradient=gradient)
        a = other._averaged(self._averaged(a).T).T
        if gradient:
            slopes = self._averaged(slopes)
            slopes = np.swapaxes(other._averaged(np.swapaxes(slopes, 0, 1)), 0, 1)
        return a, slopes

    @cached_property
    def _pairs(self) -> BoxPairs:
        return box_pairs(self._observed_boxes, self._observed_boxes)

    @cached_property
    def _observed_boxes(self) -> Boxes:
        if self.integral:
            return self.boxes
        return Boxes.points(self.centres)

    def _averaged(self, table: Array) -> Array:
        """From boxes to regions, along the first axis."""
        if not self.integral or (
            len(self.boxes) == self.size and (self.of == np.arange(self.size)).all()
        ):
            return table
        return np.tensordot(self._volume_fractions, table, axes=1)


@dataclass(frozen=True)
class RegionObservations:
    """What was observed of each region: arrays (regions,), in the terms of this module."""

    regions: Regions
    value: Array
    weight: Array
    noise_weight: Array  # m_b
    privacy: Array  # variance of the privacy noise
    places: bool  # whether it matters where in its region a record is
    uneven: Array | float = (
        0.0  # from 0, records stand evenly in their region, to 1, all in one place
    )


class HypothesisPosterior:
    """The process under one kernel and one noise variance, given what was observed."""

    def __init__(
        self,
        kernel: Kernel,
        theta: Array,
        scale: float,
        noise2: float,
        observations: RegionObservations,
        *,
        gradient: bool = False,
        coarse: bool = False,
    ) -> None:
        self.noise2 = noise2
        self.observations = observations
        inputs = observations.regions.boxes.low.shape[1]
        unscaled = kernel_mixture(kernel, inputs, theta, coarse=coarse)
        self.mixture = KernelMixture(
            unscaled.log_weights + log(scale),
            unscaled.inverse,
            unscaled.d_weights,
            unscaled.d_inverse,
        )
        K, self._slopes = observations.regions.between(
            self.mixture, observations.regions, gradient=gradient
        )
        self.prior = np.diag(K).copy()  # variance of f̄
        self.inside = float(observations.places and observations.regions.integral)
        self.within = np.maximum(self.mixture.variance - self.prior, 0.0) * self.inside
        self._signal = K * np.outer(observations.weight, observations.weight)
        self.lower = self._factor(observations.privacy)
        self.white = solve_lower(self.lower, observations.value)

    def _factor(self, privacy: Array) -> Array:
        observations = self.observations
        noise = (
            observations.noise_weight * (self.noise2 + self.within)
            + observations.uneven * observations.weight**2 * self.within
            + privacy
            + BINNED_POSTERIOR.min_variance
        )
        jitter = BINNED_POSTERIOR.jitter + BINNED_POSTERIOR.jitter_per_pair * len(noise) ** 2
        return robust_cholesky(self._signal + np.diag(noise), jitter)

    @cached_property
    def _nonprivate_factor(self) -> Array:
        """The same factor had there been no privacy noise."""
        return self._factor(np.zeros(len(self.observations.value)))

    @cached_property
    def inverse(self) -> Array:
        """Inverse covariance of the observations."""
        root = solve_lower(self.lower, np.eye(len(self.lower)))
        return root.T @ root

    def evidence(self) -> tuple[float, Array]:
        """Logarithm of the density of what was observed, and its gradient by θ and by log σ²."""
        value = -0.5 * float(self.white @ self.white) - float(np.log(np.diag(self.lower)).sum())
        alpha = solve_lower_transposed(self.lower, self.white)
        inner = np.outer(alpha, alpha) - self.inverse
        observations = self.observations
        along = np.diag(inner)
        weighted = inner * np.outer(observations.weight, observations.weight)
        by_within = observations.noise_weight + observations.uneven * observations.weight**2
        slopes = np.tensordot(weighted, self._slopes, axes=2)
        slopes += self.d_within().T @ (along * by_within)
        return value - 0.5 * len(self.white) * log(2 * pi), 0.5 * np.append(
            slopes, float(along @ observations.noise_weight) * self.noise2
        )

    def d_within(self) -> Array:
        """Derivatives of ``within`` by θ: regions × parameters."""
        whole = np.exp(self.mixture.log_weights) @ self.mixture.d_weights
        within_regions = np.einsum("bbk->bk", self._slopes)
        return np.asarray((whole - within_regions) * self.inside)

    def moments(self, places: Regions | Boxes) -> tuple[Array, Array, Array]:
        """Mean of f at points, or of its averages over regions.

        Its variance, and that without privacy noise.
        """
        K = (
            self.observations.regions.between(self.mixture, places)[0]
            * self.observations.weight[:, None]
        )
        if isinstance(places, Boxes):
            prior = np.full(len(places), self.mixture.variance)
        else:
            prior = np.diag(places.between(self.mixture, places)[0])
        whole, nonprivate = (
            np.maximum(prior - (solve_lower(lower, K) ** 2).sum(axis=0), 0.0)
            for lower in (self.lower, self._nonprivate_factor)
        )
        return solve_lower(self.lower, K).T @ self.white, whole, np.minimum(nonprivate, whole)

    def covariance_between(self, places: Regions | Boxes) -> Array:
        """Covariance of f between points, or of its averages between regions."""
        K = solve_lower(
            self.lower,
            self.observations.regions.between(self.mixture, places)[0]
            * self.observations.weight[:, None],
        )
        if isinstance(places, Boxes):
            return box_covariance(self.mixture, box_pairs(places, places))[0] - K.T @ K
        return places.between(self.mixture, places)[0] - K.T @ K

    def squared_residuals(self) -> tuple[float, float]:
        """Σ(y − f̄)² less Σy², given the observed sums: its mean and variance.

        That is N·f̄² − 2T·f̄ with sums T free from privacy noise η. Where there is little of that,
        it hardly depends on f̄, for T is near N·f̄: so Σ(y − f̄)² is known far better than Σf̄².
        """
        weight = self.observations.weight
        privacy = self.observations.privacy
        K = self.observations.regions.between(self.mixture, self.observations.regions)[0]
        gain = self.inverse @ (K * weight[:, None])
        mean = gain.T @ self.observations.value
        C = K - (K * weight) @ gain
        noise = privacy * (self.inverse @ self.observations.value)
        noise_covariance = np.diag(privacy) - privacy[:, None] * self.inverse * privacy
        across = -privacy[:, None] * gain  # covariance of η with f̄
        sums = self.observations.value - noise
        by_mean = 2 * (weight * mean - sums)
        by_noise = 2 * mean
        linear = (
            by_mean @ C @ by_mean
            + 2 * by_noise @ across @ by_mean
            + by_noise @ noise_covariance @ by_noise
        )
        quadratic = 2 * (C * C * np.outer(weight, weight)).sum()
        value = weight @ (mean**2 + np.diag(C)) - 2 * sums @ mean + 2 * np.trace(across)
        return float(value), max(float(linear + quadratic), 0.0)

    def denoised_sums(self, total: tuple[float, float] | None) -> tuple[Array, Array]:
        """What the observed sums were before the privacy noise: mean and covariance.

        Their ``total`` may be known: its mean and variance.
        """
        privacy = self.observations.privacy
        C = np.diag(privacy) - privacy[:, None] * self.inverse * privacy
        mean = self.observations.value - privacy * solve_lower_transposed(self.lower, self.white)
        if total is None:
            return mean, C
        along = C.sum(axis=0)
        along_total = max(float(along.sum()) + total[1], 1e-300)
        return mean + along * (total[0] - mean.sum()) / along_total, C - np.outer(
            along, along
        ) / along_total


def solve_lower_transposed(lower: Array, b: Array) -> Array:
    """lower⁻ᵀ b."""
    from scipy.linalg import solve_triangular

    return np.asarray(solve_triangular(lower, b, lower=True, trans=1, check_finite=False))


def uneven_density(
    neighbours: NDArray[np.int64], counts: Array, variance: Array, volumes: Array
) -> Array:
    """How unevenly records may stand within each region, from 0 to 1, by the regions around it.

    Where the density of records falls by a fraction r from a region to its neighbour, it may fall
    inside either: by a step, anywhere with equal chance (`_step_variance`); the largest of all
    neighbours. A change that is within the error of the counts is none.

    ``neighbours``: pairs of regions, (pairs, 2); ``counts``, their ``variance`` and ``volumes``:
    (regions,).
    """
    falls = np.zeros(len(counts))
    one, other = neighbours.T
    density = np.maximum(counts, 0.0) / volumes
    error2 = (variance + np.maximum(counts, 0.0)) / volumes**2
    change2 = (density[one] - density[other]) ** 2 - error2[one] - error2[other]
    largest2 = np.maximum(np.maximum(density[one], density[other]) ** 2, 1e-300)
    squares = np.clip(change2 / largest2, 0.0, 1.0)
    np.maximum.at(falls, one, squares)
    np.maximum.at(falls, other, squares)
    return _step_variance(np.sqrt(falls))


def _step_variance(falls: Array) -> Array:
    """Mean square of how far records stand from the middle, if their density falls by a step.

    By fractions r = ``falls`` (regions,), relative to the variance of even records. A step at a
    part q of the way moves the mean of a uniform number by rq(1 − q)/2(1 − r + rq); q is uniform.

    >>> _step_variance(np.array([0.0, 1.0])).round(12).tolist()
    [0.0, 1.0]
    """
    r = falls[:, None]
    q = (1 + _STEPS) / 2
    moved = r * q * (1 - q) / (1 - r + r * q)
    return np.asarray(3 * moved**2 @ _STEP_WEIGHTS / 2)


def occupied_part(regions: Regions, counts: Array, variance: Array, half: Array) -> Array:
    """How wide records stand, by the width of the box, for each input; (inputs,), at most 1.

    By the standard deviation of their inputs: 1 for even ones in all of the box. Regions that may
    have no records count as empty (``counts`` and their ``variance``, (regions,)); if all may, 1.
    ``half``: half-widths of the box, (inputs,).
    """
    surely = np.maximum(counts - BINNED_POSTERIOR.empty_sd * np.sqrt(variance), 0.0)
    if not surely.any():
        return np.ones(len(half))
    spread = regions.spread_of_inputs(surely / surely.sum(), half)
    return np.minimum(sqrt(3) * spread, 1.0)


def occupied_outputs(
    sums: Array, variance: Array, counts: Array, squares: tuple[float, float] | None
) -> float:
    """Largest likely variance of all outputs, by that of even ones in all of their range.

    At most 1, also where ``squares``, Σu² and its variance, is not known. ``sums`` with their
    ``variance`` and ``counts``: (regions,).

    >>> round(occupied_outputs(np.array([-90.0]), np.zeros(1), np.array([100.0]), (82.0, 0.0)), 9)
    0.03
    """
    if squares is None:
        return 1.0
    records = max(float(counts.sum()), 1.0)
    mean = float(sums.sum()) / records
    sd = np.sqrt(squares[1] + 4 * mean**2 * float(variance.sum())) / records
    largest = squares[0] / records - mean**2 + BINNED_POSTERIOR.empty_sd * sd
    return float(np.clip(3 * largest, BINNED_POSTERIOR.min_output_variance, 1.0))


def nonnegative_moments(mean: Array, variance: Array) -> tuple[Array, Array]:
    """Mean and variance of normal numbers that are known not to be negative."""
    sd = np.sqrt(np.maximum(variance, 1e-12))
    z = mean / sd
    ratio = np.exp(-0.5 * z**2 - 0.5 * log(2 * pi) - log_ndtr(z))  # φ/Φ
    return np.maximum(mean + sd * ratio, 0.0), np.maximum(sd**2 * (1 - ratio * (z + ratio)), 0.0)


def likelihood_quadratics(
    kernels: list[Kernel], scale: float, noise2: float, observations: RegionObservations
) -> tuple[Array, Array, Array]:
    """Two times the log-likelihood of sums T without privacy noise, l·T − TᵀGT + c.

    G, l and c for each kernel.

    ``observations.value`` is what T is counted from.
    """
    forms = []
    for kernel in kernels:
        posterior = HypothesisPosterior(kernel, kernel.theta, scale, noise2, observations)
        weighted = posterior.inverse @ observations.value
        logdet = 2 * np.log(np.diag(posterior.lower)).sum()
        forms.append(
            (posterior.inverse, 2 * weighted, -float(observations.value @ weighted + logdet))
        )
    G, linear, constants = zip(*forms, strict=True)
    return np.array(G), np.array(linear), np.array(constants)
