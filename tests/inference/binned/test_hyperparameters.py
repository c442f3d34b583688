"""Learning from noisy counts and sums in regions.

Mixtures of hypotheses, and what the fit finds of what it was made from.
"""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from reticent.inference.binned import hyperparameters as binned_fit
from reticent.inference.binned.hyperparameters import (
    BinnedPosterior,
    ProcessPrior,
    fit_density,
    fit_means,
)
from reticent.inference.binned.posterior import HypothesisPosterior, RegionObservations, Regions
from reticent.inference.kernels.integral import Boxes

KERNEL = RBF(0.3)
AT = Boxes.points(np.linspace(-0.9, 0.9, 7)[:, None])


def bins(count=20):
    edges = np.linspace(-1, 1, count + 1)[:, None]
    return Regions(Boxes(edges[:-1], edges[1:]), np.arange(count), count)


def prior(kernel=KERNEL, learn=False, trials=12, scale=1.0):
    return ProcessPrior(kernel, scale, np.ones(1), 0.1, learn, trials)


def two_hypotheses():
    regions = bins(5)
    rng = np.random.default_rng(0)
    data = RegionObservations(
        regions, rng.normal(size=5), np.ones(5), np.ones(5), np.full(5, 0.3), True
    )
    each = [
        HypothesisPosterior(one, one.theta, 1.0, noise, data)
        for one, noise in ((RBF(0.3), 0.1), (2 * RBF(1.0), 0.4))
    ]
    return each, BinnedPosterior(KERNEL, each, np.array([0.7, 0.3]))


def test_a_mixture_has_the_moments_of_its_parts():
    """Mean, and variance within and between; the latter is no privacy noise."""
    each, both = two_hypotheses()
    means, wholes, owns = zip(*(one.moments(AT) for one in each), strict=True)
    mean, whole, own = both.moments(AT)
    apart = 0.7 * 0.3 * (means[0] - means[1]) ** 2
    assert mean == pytest.approx(0.7 * means[0] + 0.3 * means[1])
    assert whole == pytest.approx(0.7 * wholes[0] + 0.3 * wholes[1] + apart)
    assert own == pytest.approx(0.7 * owns[0] + 0.3 * owns[1] + apart)
    again, covariance = both.mean_and_covariance(AT)
    assert again == pytest.approx(mean)
    assert np.diag(covariance) == pytest.approx(whole)
    between = 0.21 * np.outer(means[0] - means[1], means[0] - means[1])
    assert covariance == pytest.approx(
        0.7 * each[0].covariance_between(AT) + 0.3 * each[1].covariance_between(AT) + between
    )
    assert (both.prior_variance, both.noise_variance) == pytest.approx((0.7 + 0.3 * 2, 0.07 + 0.12))


@pytest.mark.parametrize("total", [None, 2.0])
def test_cleaned_sums_of_a_mixture(total):
    each, both = two_hypotheses()
    (one, C), (two, D) = (
        part.denoised_sums(None if total is None else (total, 0.0)) for part in each
    )
    mean, variance = both.denoised_sums(None if total is None else (total, 0.0))
    assert mean == pytest.approx(0.7 * one + 0.3 * two)
    assert variance == pytest.approx(0.7 * np.diag(C) + 0.3 * np.diag(D) + 0.21 * (one - two) ** 2)


def test_a_spread_tells_the_noise():
    """Σ(y − f̄)² is the number of records times σ² and what f varies within its region.

    Its slope by differences.
    """
    each, _ = two_hypotheses()
    spread = binned_fit._SquaredResiduals(9.0, 4.0, np.full(5, 10.0))
    one = each[0]
    off = 9.0 - 50 * 0.1 - 10 * one.within.sum()
    assert spread.evidence(one, 0.1)[0] == pytest.approx(-(off**2) / 8)
    moved = []
    for sign in (1, -1):
        theta = RBF(0.3).theta + sign * 1e-5
        noise = 0.1 * np.exp(sign * 1e-5)
        steep = HypothesisPosterior(RBF(0.3), theta, 1.0, 0.1, one.observations, gradient=True)
        moved.append([spread.evidence(steep, 0.1)[0], spread.evidence(one, noise)[0]])
    slope = spread.evidence(
        HypothesisPosterior(RBF(0.3), RBF(0.3).theta, 1.0, 0.1, one.observations, gradient=True),
        0.1,
    )[1]
    assert slope == pytest.approx((np.array(moved[0]) - moved[1]) / 2e-5, rel=1e-4)


def counted(density, n=20_000, sd=5.0, seed=0, count=20):
    """Noisy counts of n records from a density on [−1, 1], and what an even law would expect."""
    rng = np.random.default_rng(seed)
    regions = bins(count)
    middle = regions.centres[:, 0]
    chance = density(middle) / density(middle).sum()
    counts = rng.multinomial(n, chance) + sd * rng.normal(size=count)
    return regions, chance * count - 1, (counts, np.full(count, sd**2), np.full(count, n / count))


def test_a_density_is_found_in_noisy_counts():
    regions, truth, told = counted(lambda t: 1 + 0.6 * np.sin(3 * t))
    believed = fit_density(prior(), regions, *told, 1.0)
    mean, variance, own = believed.moments(regions)
    assert np.abs(mean - truth).max() < 0.06
    assert 0.2 < np.mean((mean - truth) ** 2 / variance) < 3
    assert (own < variance).all()
    assert len(believed.hypotheses) == 1, "nothing is to be learned"
    assert believed.noise_variance == pytest.approx(1.0)
    assert believed.hypotheses[0].observations.noise_weight == pytest.approx(
        1000 * (1 + truth), rel=0.1
    ), "variances of counts"


def test_counts_without_any_record_have_a_least_variance():
    regions, _, told = counted(lambda t: np.where(t > 0, 1.0, 1e-9), n=10, sd=0.1)
    own = fit_density(prior(), regions, *told, 1.0).hypotheses[0].observations.noise_weight
    assert own.min() == pytest.approx(0.3)


def test_counts_that_are_no_smooth_density_are_left_as_they_are():
    """Every other bin is empty: dispersion, if it may be learned, explains it.

    And counts keep what they are.
    """
    regions, truth, told = counted(lambda t: 0.1 + (np.arange(len(t)) % 2))
    learned = fit_density(prior(RBF(1.0, "fixed")), regions, *told, None)
    fixed = fit_density(prior(RBF(1.0, "fixed")), regions, *told, 1.0)
    assert learned.noise_variance > 50
    assert fixed.noise_variance == pytest.approx(1.0)
    assert learned.denoised_sums(None)[0] + 1000 == pytest.approx(told[0], abs=10)
    assert np.abs(learned.moments(regions)[0]).max() < 0.3 * np.abs(truth).max()


@pytest.mark.parametrize("wave", [1.0, 6.0])
def test_lengths_are_learned_by_evidence(wave):
    regions, _, told = counted(lambda t: 1 + 0.6 * np.sin(wave * t))
    believed = fit_density(prior(RBF(0.8), learn=True, trials=16), regions, *told, 1.0)
    assert believed.weights.sum() == pytest.approx(1)
    assert len(believed.hypotheses) > 1
    length = believed.kernel.length_scale
    assert (length > 0.5) if wave == 1 else (0.1 < length < 0.6)


def outputs(n=6000, noise=0.3, sd=2.0, doubt=1.0, seed=1):
    """Noisy sums of outputs and counts of records in bins; f = sin 3t in half-ranges."""
    rng = np.random.default_rng(seed)
    regions = bins(16)
    t = rng.uniform(-1, 1, n)
    y = 0.7 * np.sin(3 * t) + noise * rng.normal(size=n)
    which = np.minimum(((t + 1) * 8).astype(int), 15)
    counts = np.bincount(which, minlength=16) + np.sqrt(doubt) * rng.normal(size=16)
    sums = np.bincount(which, y, 16) + sd * rng.normal(size=16)
    return regions, sums, np.full(16, sd**2), counts, np.full(16, doubt), float(y @ y)


def learned(noise2, squares, **how):
    regions, *told, whole = outputs(**how)
    squares = (whole, 1.0) if squares else None
    return regions, fit_means(
        prior(),
        regions,
        *told,
        neighbours=side_by_side(16),
        noise2=noise2,
        squares=squares,
        output_variance=1.0,
    )


def side_by_side(n):
    return np.column_stack([np.arange(n - 1), np.arange(1, n)])


def test_a_function_is_found_in_noisy_sums():
    _, believed = learned(0.09, False)
    at = AT.low[:, 0]
    mean, variance, own = believed.moments(AT)
    away = mean - 0.7 * np.sin(3 * at)
    assert np.abs(away).max() < 0.1
    assert np.mean(away**2 / variance) < 4
    assert (own < variance).all()
    assert believed.noise_variance == pytest.approx(0.09)


@pytest.mark.parametrize("noise", [0.3, 0.6])
def test_squares_of_outputs_tell_their_noise(noise):
    _, believed = learned(None, True, noise=noise)
    assert np.sqrt(believed.noise_variance) == pytest.approx(noise, rel=0.1)


def test_doubt_about_counts_is_doubt_about_sums():
    """Errors in variables: a count that is off by one is a sum that is off by the mean there."""
    sure, unsure = (learned(0.09, False, doubt=doubt)[1] for doubt in (1e-9, 400.0))
    regions = sure.hypotheses[0].observations.regions
    assert (unsure.moments(regions)[1] > sure.moments(regions)[1]).all()
    added = unsure.hypotheses[0].observations.privacy - 4.0
    mean, variance, _ = unsure.moments(regions)
    assert added / 400 == pytest.approx(mean**2 + variance, abs=0.02)
    assert sure.hypotheses[0].observations.privacy == pytest.approx(np.full(16, 4.0))


def test_bins_without_records_say_nothing_and_do_not_fail():
    regions = bins(8)
    zero = np.zeros(8)
    believed = fit_means(
        prior(),
        regions,
        zero,
        zero + 1,
        zero - 3,
        zero + 1,
        neighbours=side_by_side(8),
        noise2=None,
        squares=(-5.0, 1.0),
        output_variance=1.0,
    )
    mean, variance, _ = believed.moments(regions)
    assert np.isfinite(mean).all()
    assert (variance > 0).all()
    assert variance.max() <= 1 + 1e-9


def test_records_that_stand_together_tell_less_of_their_bin():
    """All records of every other bin stand at its right end: sums are not those of even ones."""
    regions = bins(8)
    low, high = regions.boxes.low[:, 0], regions.boxes.high[:, 0]
    places = (high - 0.01)[::2]
    averages = 0.7 * (np.cos(3 * low) - np.cos(3 * high)) / (3 * (high - low))
    counts = np.zeros(8)
    counts[::2] = 5000.0
    sums = np.zeros(8)
    sums[::2] = 5000 * 0.7 * np.sin(3 * places)
    tiny = np.full(8, 1e-2)
    known = {"noise2": 0.09, "squares": None, "output_variance": 1.0}
    together, even = (
        fit_means(prior(), regions, sums, tiny, counts, tiny, neighbours=pairs, **known)
        for pairs in (side_by_side(8), np.zeros((0, 2), dtype=np.int64))
    )
    for believed, covers in ((together, True), (even, False)):
        mean, variance, _ = believed.moments(regions)
        off = np.abs(mean - averages)[::2] / np.sqrt(variance[::2])
        assert (off.max() < 2.5) == covers


def test_noise_far_from_the_middle_is_known():
    """Sums and squares together tell it: squares of such means are far from certain."""
    rng = np.random.default_rng(2)
    regions = bins(16)
    t = rng.uniform(-1, 1, 4000)
    y = -0.9 + 0.02 * t + 0.05 * rng.normal(size=4000)
    which = np.minimum(((t + 1) * 8).astype(int), 15)
    counts = np.bincount(which, minlength=16).astype(float)
    tiny = np.full(16, 1e-6)
    believed = fit_means(
        prior(ConstantKernel(1.0, "fixed") + ConstantKernel(0.01, "fixed") * RBF(1.0, "fixed")),
        regions,
        np.bincount(which, y, 16),
        tiny,
        counts,
        tiny,
        neighbours=side_by_side(16),
        noise2=None,
        squares=(float(y @ y), 1e-6),
        output_variance=1.0,
    )
    levels = np.sqrt([hypothesis.noise2 for hypothesis in believed.hypotheses])
    assert believed.weights @ levels == pytest.approx(0.05, rel=0.03)
    # the variance of 4000 squares alone; .02 if squares of means were counted as unknown
    assert np.sqrt(believed.weights @ (levels - 0.05) ** 2) < 0.0012
