"""Posterior of a function, averaged over kernels, from noisy counts and sums in regions.

Kernels and noise levels are hypotheses, weighed by the evidence of what was released
(`weigh_hypotheses`): no budget is spent on them, and what they disagree about is part of the doubt.
Some variances depend on what is to be learned (that of a count on its expectation, that of N·f̄ on
f̄), so the fit is made two or three times, each time with what the last one found.
"""

from dataclasses import dataclass, replace
from math import log

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import Kernel

from reticent.inference.binned.posterior import (
    HypothesisPosterior,
    RegionObservations,
    Regions,
    nonnegative_moments,
)
from reticent.inference.kernels.integral import Boxes
from reticent.inference.kernels.projection import theta_range
from reticent.inference.moment_model.hyperparameters import weigh_hypotheses

__all__ = ["BinnedPosterior", "ProcessPrior", "fit_density", "fit_means"]

Array = NDArray[np.float64]
_KEPT = 16  # hypotheses
_NOISES = log(0.02**2), log(0.9**2)  # variances of outputs at one place, in half-ranges
_DISPERSIONS = 0.0, log(400.0)
_LEAST_COUNT = 0.3  # expected in a region, where noise says less


@dataclass(frozen=True)
class ProcessPrior:
    """A kernel and what it may be.

    In its own units, and times ``scale`` in those of the process.
    """

    kernel: Kernel
    scale: float
    half: Array  # half-widths of the box
    learn: bool
    trials: int


@dataclass(frozen=True)
class BinnedPosterior:
    """Hypotheses and their weights; ``kernel`` is that of the highest evidence."""

    kernel: Kernel
    hypotheses: list[HypothesisPosterior]
    weights: Array

    def moments(self, places: Regions | Boxes) -> tuple[Array, Array, Array]:
        """Mean, variance, and variance without privacy noise.

        Hypotheses that disagree add to both.
        """
        means, whole, own = (
            np.array(part)
            for part in zip(*(one.moments(places) for one in self.hypotheses), strict=True)
        )
        mean = self.weights @ means
        apart = self.weights @ (means - mean) ** 2
        return mean, self.weights @ whole + apart, self.weights @ own + apart

    def mean_and_covariance(self, places: Regions | Boxes) -> tuple[Array, Array]:
        """Mean and covariance between points or regions."""
        means = np.array([one.moments(places)[0] for one in self.hypotheses])
        mean = self.weights @ means
        inner = sum(
            w * one.covariance_between(places)
            for w, one in zip(self.weights, self.hypotheses, strict=True)
        )
        return mean, inner + (means - mean).T @ ((means - mean) * self.weights[:, None])

    @property
    def prior_variance(self) -> float:
        """Of the process before the fit."""
        return float(self.weights @ [one.mixture.variance for one in self.hypotheses])

    @property
    def noise_variance(self) -> float:
        """Mean variance of an observation."""
        return float(self.weights @ [one.noise2 for one in self.hypotheses])

    def denoised_sums(self, total: float | None) -> tuple[Array, Array]:
        """Mean and variances of the sums without their privacy noise."""
        both = [one.denoised_sums(total) for one in self.hypotheses]
        means = np.array([mean for mean, _ in both])
        mean = self.weights @ means
        inner = self.weights @ [np.diag(C) for _, C in both]
        return mean, inner + self.weights @ (means - mean) ** 2


@dataclass(frozen=True)
class _Spread:
    """What is known of Σ(y − f̄)²: its value, its variance, and how many records it is of."""

    value: float
    variance: float
    weight: Array  # of each region

    def evidence(self, one: HypothesisPosterior, noise2: float) -> tuple[float, Array]:
        """Its logarithm under a hypothesis, and the gradient by θ and log σ²."""
        records = float(self.weight.sum())
        off = self.value - records * noise2 - float(self.weight @ one.within)
        slope = np.append(self.weight @ one.d_within(), records * noise2)
        return -0.5 * off**2 / self.variance, off / self.variance * slope


def _believe(
    prior: ProcessPrior,
    seen: RegionObservations,
    noise2: float | None,
    spread: _Spread | None,
    trials: int,
    levels: tuple[float, float] = _NOISES,
) -> BinnedPosterior:
    """Weigh kernels, and noise variances between exp(``levels``) if ``noise2`` is None."""
    kernel = prior.kernel
    free = prior.learn and len(kernel.theta) > 0
    low, high = theta_range(kernel, prior.half) if free else (kernel.theta, kernel.theta)
    if noise2 is None:
        noises = levels
    else:
        noises = (log(max(noise2, 1e-300)),) * 2
    low = np.append(low, noises[0])
    high = np.append(high, noises[1])

    def hypothesis(theta: Array, *, gradient: bool = False) -> HypothesisPosterior:
        if noise2 is None:
            level = float(np.exp(theta[-1]))
        else:
            level = noise2
        return HypothesisPosterior(kernel, theta[:-1], prior.scale, level, seen, gradient=gradient)

    def evidence(theta: Array) -> tuple[float, Array]:
        one = hypothesis(theta, gradient=True)
        value, slope = one.evidence()
        if spread is not None:
            more, steeper = spread.evidence(one, one.noise2)
            value = value + more
            slope = slope + steeper
        return value, slope

    best, points, weights = weigh_hypotheses(evidence, low, high, trials, _KEPT)
    return BinnedPosterior(
        kernel.clone_with_theta(best[:-1]), [hypothesis(theta) for theta in points], weights
    )


def fit_density(
    prior: ProcessPrior,
    regions: Regions,
    counts: Array,
    variance: Array,
    expected: Array,
    dispersion: float | None,
) -> BinnedPosterior:
    """From noisy counts: the density relative to an even one, less one.

    ``dispersion``: variance of a count over its expectation; if None it is at least one and
    learned, so that counts which do not follow a smooth density are left as they are.
    """
    seen = RegionObservations(regions, counts - expected, expected, expected, variance, False)
    for trials in (max(prior.trials // 3, 4), prior.trials):
        believed = _believe(prior, seen, dispersion, None, trials, _DISPERSIONS)
        mean, var, _ = believed.moments(regions)
        relative = nonnegative_moments(1 + mean, var)[0]
        seen = replace(seen, own=np.maximum(expected * relative, _LEAST_COUNT))
    return believed


def fit_means(
    prior: ProcessPrior,
    regions: Regions,
    sums: Array,
    variance: Array,
    counts: Array,
    doubt: Array,
    *,
    noise2: float | None,
    squares: tuple[float, float] | None,
) -> BinnedPosterior:
    """From noisy sums of outputs, counts and their variances, and perhaps Σy² with its variance.

    The function.
    """
    # of f̄, for now
    square = np.full(
        len(sums), min(prior.scale * float(prior.kernel.diag(regions.centres[:1])[0]), 1.0)
    )
    spread: _Spread | None = None
    for last in (False, False, True):
        seen = RegionObservations(
            regions, sums, counts, np.maximum(counts, _LEAST_COUNT), variance + doubt * square, True
        )
        believed = _believe(
            prior, seen, noise2, spread, prior.trials if last else max(prior.trials // 3, 4)
        )
        mean, var, _ = believed.moments(regions)
        square = mean**2 + var
        if squares is not None and noise2 is None:
            value = squares[0] - float(counts @ square)
            records = max(float(counts.sum()), 1.0)
            level = max(value / records, 1e-4)
            C = believed.mean_and_covariance(regions)[1]
            lever = counts * mean
            unsure = float(
                4 * lever @ C @ lever + 2 * (C * C * np.outer(counts, counts)).sum()
            )  # of Σ N f̄²
            spread = _Spread(value, squares[1] + 2 * records * level**2 + unsure, counts)
    return believed
