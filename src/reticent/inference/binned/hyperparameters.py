"""Posterior of a function, averaged over kernels, from noisy counts and sums in regions.

Kernels and noise levels are hypotheses, weighed by the evidence of what was released
(`weigh_hypotheses`): no budget is spent on them, and their disagreement is part of the variance.
Some variances depend on what is to be learned (that of a count on its expectation, that of N·f̄ on
f̄), so the fit is made two or three times, each time with what the last one found.
"""

from dataclasses import dataclass, replace
from functools import partial
from math import log

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import Kernel

from reticent.inference.binned.posterior import (
    HypothesisPosterior,
    RegionObservations,
    Regions,
    nonnegative_moments,
    uneven_density,
)
from reticent.inference.binned.settings import BINNED_POSTERIOR
from reticent.inference.kernels.integral import Boxes
from reticent.inference.kernels.projection import theta_range
from reticent.inference.moment_model.hyperparameters import (
    weigh_hypotheses,
    weigh_models,
)

__all__ = ["BinnedPosterior", "ProcessPrior", "fit_density", "fit_means"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class ProcessPrior:
    """A kernel and what it may be.

    In its own units, and times ``scale`` in those of the process.
    """

    kernel: Kernel
    scale: float
    half: Array  # half-widths of the box
    shortest: float  # lengthscale, in half-widths of the box
    learn: bool
    trials: int
    coarse: bool = False  # nobody gave the kernel: few Gaussians are enough
    rougher: Kernel | None = None  # another one that is as likely, with the same parameters


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
        means, whole, nonprivate = (
            np.array(part)
            for part in zip(
                *(hypothesis.moments(places) for hypothesis in self.hypotheses), strict=True
            )
        )
        mean = self.weights @ means
        apart = self.weights @ (means - mean) ** 2
        return mean, self.weights @ whole + apart, self.weights @ nonprivate + apart

    def mean_and_covariance(self, places: Regions | Boxes) -> tuple[Array, Array]:
        """Mean and covariance between points or regions."""
        means = np.array([hypothesis.moments(places)[0] for hypothesis in self.hypotheses])
        mean = self.weights @ means
        inner = sum(
            w * hypothesis.covariance_between(places)
            for w, hypothesis in zip(self.weights, self.hypotheses, strict=True)
        )
        return mean, inner + (means - mean).T @ ((means - mean) * self.weights[:, None])

    @property
    def prior_variance(self) -> float:
        """Of the process before the fit."""
        return float(self.weights @ [hypothesis.mixture.variance for hypothesis in self.hypotheses])

    @property
    def noise_variance(self) -> float:
        """Mean variance of an observation."""
        return float(self.weights @ [hypothesis.noise2 for hypothesis in self.hypotheses])

    def squared_residuals(self) -> tuple[float, float]:
        """Mean and variance of Σ(y − f̄)² less Σy²."""
        moments = np.array([hypothesis.squared_residuals() for hypothesis in self.hypotheses])
        value = float(self.weights @ moments[:, 0])
        apart = self.weights @ (moments[:, 0] - value) ** 2
        return value, float(self.weights @ moments[:, 1] + apart)

    def denoised_sums(self, total: tuple[float, float] | None) -> tuple[Array, Array]:
        """Mean and variances of the sums without their privacy noise.

        ``total``: mean and variance of their sum, where it is known.
        """
        moments = [hypothesis.denoised_sums(total) for hypothesis in self.hypotheses]
        means = np.array([mean for mean, _ in moments])
        mean = self.weights @ means
        inner = self.weights @ [np.diag(C) for _, C in moments]
        return mean, inner + self.weights @ (means - mean) ** 2


@dataclass(frozen=True)
class _SquaredResiduals:
    """Estimate of Σ(y − f̄)², its variance, and how many records of each region it is of."""

    value: float
    variance: float
    weight: Array  # of each region

    def evidence(self, hypothesis: HypothesisPosterior, noise2: float) -> tuple[float, Array]:
        """Its logarithm under a hypothesis, and the gradient by θ and log σ²."""
        records = float(self.weight.sum())
        off = self.value - records * noise2 - float(self.weight @ hypothesis.within)
        slope = np.append(self.weight @ hypothesis.d_within(), records * noise2)
        return -0.5 * off**2 / self.variance, off / self.variance * slope


def _fit_hypotheses(
    prior: ProcessPrior,
    observations: RegionObservations,
    noise2: float | None,
    squared_residuals: _SquaredResiduals | None,
    trials: int,
    log_noise_range: tuple[float, float] = BINNED_POSTERIOR.log_noise_range,
) -> BinnedPosterior:
    """Weigh kernels, and noise variances in exp(``log_noise_range``) if ``noise2`` is None."""
    kernel = prior.kernel
    free = prior.learn and len(kernel.theta) > 0
    low, high = (
        theta_range(kernel, prior.half, prior.shortest) if free else (kernel.theta, kernel.theta)
    )
    if noise2 is None:
        noises = log_noise_range
    else:
        noises = (log(max(noise2, 1e-300)),) * 2
    low = np.append(low, noises[0])
    high = np.append(high, noises[1])

    def hypothesis(kernel: Kernel, theta: Array, *, gradient: bool = False) -> HypothesisPosterior:
        if noise2 is None:
            level = float(np.exp(theta[-1]))
        else:
            level = noise2
        return HypothesisPosterior(
            kernel,
            theta[:-1],
            prior.scale,
            level,
            observations,
            gradient=gradient,
            coarse=prior.coarse,
        )

    def evidence(kernel: Kernel, theta: Array) -> tuple[float, Array]:
        posterior = hypothesis(kernel, theta, gradient=True)
        value, slope = posterior.evidence()
        if squared_residuals is not None:
            value_of_squares, slope_of_squares = squared_residuals.evidence(
                posterior, posterior.noise2
            )
            value = value + value_of_squares
            slope = slope + slope_of_squares
        return value, slope

    most = BINNED_POSTERIOR.max_hypotheses
    if prior.rougher is None:
        best, points, weights = weigh_hypotheses(partial(evidence, kernel), low, high, trials, most)
        hypotheses = [hypothesis(kernel, theta) for theta in points]
        return BinnedPosterior(kernel.clone_with_theta(best[:-1]), hypotheses, weights)
    kernels = [kernel, prior.rougher]
    modes, numbers, points, weights = weigh_models(
        [partial(evidence, one) for one in kernels], low, high, trials, most
    )
    likeliest = int(np.bincount(numbers, weights).argmax())
    hypotheses = [
        hypothesis(kernels[number], theta) for number, theta in zip(numbers, points, strict=True)
    ]
    best_kernel = kernels[likeliest].clone_with_theta(modes[likeliest][:-1])
    return BinnedPosterior(best_kernel, hypotheses, weights)


def _few_trials(prior: ProcessPrior) -> int:
    """Hypotheses of a fit that only prepares the last one."""
    fraction = prior.trials // BINNED_POSTERIOR.first_trials_fraction
    return max(fraction, BINNED_POSTERIOR.min_trials)


def fit_density(
    prior: ProcessPrior,
    regions: Regions,
    counts: Array,
    variance: Array,
    expected: Array,
    dispersion: float | None,
) -> BinnedPosterior:
    """From noisy counts: the density relative to a uniform one, less one.

    ``dispersion``: variance of a count over its expectation; if None it is at least one and
    learned, so that counts which do not follow a smooth density are left as they are.
    """
    observations = RegionObservations(
        regions, counts - expected, expected, expected, variance, False
    )
    for trials in (_few_trials(prior), prior.trials):
        posterior = _fit_hypotheses(
            prior, observations, dispersion, None, trials, BINNED_POSTERIOR.log_dispersion_range
        )
        mean, var, _ = posterior.moments(regions)
        relative = nonnegative_moments(1 + mean, var)[0]
        observations = replace(
            observations, noise_weight=np.maximum(expected * relative, BINNED_POSTERIOR.min_count)
        )
    return posterior


def fit_means(
    prior: ProcessPrior,
    regions: Regions,
    sums: Array,
    variance: Array,
    counts: Array,
    count_variance: Array,
    *,
    neighbours: NDArray[np.int64],
    noise2: float | None,
    squares: tuple[float, float] | None,
    output_variance: float,
) -> BinnedPosterior:
    """The function, from noisy sums of outputs, counts with their variances, and perhaps Σy².

    ``neighbours``: pairs of regions side by side, (pairs, 2). ``squares``: Σy² and its variance, if
    it was released. ``output_variance``: of all outputs, relative to even ones.
    """
    low, high = BINNED_POSTERIOR.log_noise_range
    log_noise_range = low + log(output_variance), high + log(output_variance)
    uneven = uneven_density(neighbours, counts, count_variance, regions.volumes)
    # records whose outputs surely scatter: noise of a count that may be none would tell of σ²
    surely = np.maximum(counts - BINNED_POSTERIOR.empty_sd * np.sqrt(count_variance), 0.0)
    # of f̄, for now
    square = np.full(
        len(sums), min(prior.scale * float(prior.kernel.diag(regions.centres[:1])[0]), 1.0)
    )
    squared_residuals: _SquaredResiduals | None = None
    for last in (False, False, True):
        observations = RegionObservations(
            regions,
            sums,
            counts,
            surely,
            variance + count_variance * square,
            True,
            uneven,
        )
        posterior = _fit_hypotheses(
            prior,
            observations,
            noise2,
            squared_residuals,
            prior.trials if last else _few_trials(prior),
            log_noise_range,
        )
        mean, var, _ = posterior.moments(regions)
        square = mean**2 + var
        if squares is not None and noise2 is None:
            difference, uncertainty = posterior.squared_residuals()
            value = squares[0] + difference
            records = max(float(counts.sum()), 1.0)
            noise_level = max(value / records, BINNED_POSTERIOR.min_noise_variance)
            sampling_variance = 2 * records * noise_level**2
            squared_residuals = _SquaredResiduals(
                value, squares[1] + sampling_variance + uncertainty, counts
            )
    return posterior
