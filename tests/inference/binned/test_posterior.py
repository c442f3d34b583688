"""A process seen through sums over regions.

Against dense Gaussian conditioning on a fine grid of points.
"""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multivariate_normal, truncnorm
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from reticent.inference.binned.posterior import (
    HypothesisPosterior,
    RegionObservations,
    Regions,
    likelihood_quadratics,
    nonnegative_moments,
    occupied_outputs,
    occupied_part,
    solve_lower_transposed,
    uneven_density,
)
from reticent.inference.kernels.integral import Boxes

KERNEL = ConstantKernel(0.8) * RBF(0.5)
SCALE = 1.5
NOISE = 0.2
FINE = 60  # points in each box, for averages


def line(edges=(0.0, 0.4, 0.7, 1.3, 2.0), of=None, **how):
    low = np.array(edges[:-1])[:, None]
    high = np.array(edges[1:])[:, None]
    of = np.arange(len(low)) if of is None else np.array(of)
    return Regions(Boxes(low, high), of, int(of.max()) + 1, **how)


def averages(regions):
    """Points, and for each region the weights that make an average over it of values there."""
    boxes = regions.boxes
    at = []
    rows = []
    for low, high, of in zip(boxes.low[:, 0], boxes.high[:, 0], regions.of, strict=True):
        at.append(low + (high - low) * (np.arange(FINE) + 0.5) / FINE)
        row = np.zeros((regions.size, FINE))
        row[of] = (high - low) / FINE
        rows.append(row)
    table = np.hstack(rows)
    return np.concatenate(at)[:, None], table / table.sum(axis=1, keepdims=True)


def seen(regions, seed=0, places=True):
    rng = np.random.default_rng(seed)
    size = regions.size
    weight = rng.uniform(2, 9, size)
    return RegionObservations(
        regions,
        rng.normal(size=size) * weight,
        weight,
        weight * 1.1,
        rng.uniform(0.5, 2, size),
        places,
    )


def hypothesis(data, **how):
    return HypothesisPosterior(KERNEL, KERNEL.theta, SCALE, NOISE, data, **how)


def dense(data, places=None):
    """Covariance of what was observed, and its covariance with f at other points.

    By points, not by integrals.
    """
    at, average = averages(data.regions)
    K = SCALE * average @ KERNEL(at) @ average.T
    within = SCALE * 0.8 - np.diag(K) if data.places else 0.0
    weights = np.outer(data.weight, data.weight)
    cross = (
        None if places is None else data.weight[:, None] * (SCALE * average @ KERNEL(at, places))
    )
    return K * weights + np.diag(data.noise_weight * (NOISE + within) + data.privacy), cross, K


def test_regions_are_unions_of_boxes():
    regions = line(of=[0, 1, 1, 0])
    assert regions.volumes == pytest.approx([1.1, 0.9])
    assert regions.centres[:, 0] == pytest.approx(
        [(0.4 * 0.2 + 0.7 * 1.65) / 1.1, (0.3 * 0.55 + 0.6 * 1.0) / 0.9]
    )


@pytest.mark.parametrize("of", [[0, 1, 2, 3], [0, 1, 1, 0], [1, 0, 2, 2]])
def test_covariances_of_averages_are_those_of_many_points(of):
    regions = line(of=of)
    other = line((0.1, 0.2, 1.9), of=[0, 0])
    m = hypothesis(seen(regions)).mixture
    at, average = averages(regions)
    there, another = averages(other)
    exact = SCALE * average @ KERNEL(at, there) @ another.T
    assert regions.between(m, other)[0] == pytest.approx(exact, abs=1e-3)
    assert other.between(m, regions)[0] == pytest.approx(exact.T, abs=1e-3)
    points = np.array([[0.3], [1.9]])
    assert regions.between(m, Boxes.points(points))[0] == pytest.approx(
        SCALE * average @ KERNEL(at, points), abs=1e-3
    )
    among, slopes = regions.between(m, regions, gradient=True)
    assert among == pytest.approx(SCALE * average @ KERNEL(at) @ average.T, abs=1e-3)
    assert slopes[:, :, 0] == pytest.approx(among), "by the logarithm of the variance"
    assert slopes.shape == (regions.size, regions.size, 2)


def test_without_integrals_a_region_is_its_centre():
    regions = line(of=[0, 1, 1, 0], integral=False)
    one = hypothesis(seen(regions))
    centres = regions.centres
    assert regions.between(one.mixture, regions)[0] == pytest.approx(SCALE * KERNEL(centres))
    assert (one.within == 0).all()
    assert one.prior == pytest.approx(np.full(2, SCALE * 0.8))


@pytest.mark.parametrize("places", [True, False])
@pytest.mark.parametrize("of", [[0, 1, 2, 3], [0, 1, 1, 0]])
def test_means_and_variances_are_those_of_dense_conditioning(of, places):
    data = seen(line(of=of), places=places)
    one = hypothesis(data)
    at = np.linspace(-0.2, 2.2, 7)[:, None]
    C, cross, _ = dense(data, at)
    mean, variance, own = one.moments(Boxes.points(at))
    assert mean == pytest.approx(cross.T @ np.linalg.solve(C, data.value), abs=2e-3)
    exact = SCALE * KERNEL(at) - cross.T @ np.linalg.solve(C, cross)
    assert variance == pytest.approx(np.diag(exact), abs=2e-3)
    assert one.covariance_between(Boxes.points(at)) == pytest.approx(exact, abs=2e-3)
    quiet = hypothesis(replace(data, privacy=np.zeros(data.regions.size)))
    assert own == pytest.approx(quiet.moments(Boxes.points(at))[1]), (
        "had there been no privacy noise"
    )
    assert (own <= variance).all()


def test_averages_over_regions_are_known_as_well():
    data = seen(line())
    one = hypothesis(data)
    at, average = averages(data.regions)
    C, cross, K = dense(data, at)
    mean, variance, _ = one.moments(data.regions)
    exact = K - average @ cross.T @ np.linalg.solve(C, cross @ average.T)
    assert mean == pytest.approx(average @ cross.T @ np.linalg.solve(C, data.value), abs=2e-3)
    assert one.covariance_between(data.regions) == pytest.approx(exact, abs=2e-3)
    assert variance == pytest.approx(np.diag(exact), abs=2e-3)


def test_the_evidence_is_the_density_of_what_was_observed():
    data = seen(line(of=[0, 1, 1, 0]))
    one = hypothesis(data, gradient=True)
    exact = multivariate_normal(np.zeros(2), dense(data)[0]).logpdf(data.value)
    assert one.evidence()[0] == pytest.approx(exact, abs=2e-3)
    assert one.inverse == pytest.approx(np.linalg.inv(dense(data)[0]), rel=1e-3, abs=1e-5)
    slopes = []
    for k in range(3):
        values = []
        for sign in (1, -1):
            theta = KERNEL.theta.copy()
            noise = NOISE
            if k < 2:
                theta[k] += sign * 1e-4
            else:
                noise *= np.exp(sign * 1e-4)
            values.append(HypothesisPosterior(KERNEL, theta, SCALE, noise, data, gradient=True))
        slopes.append((values[0].evidence()[0] - values[1].evidence()[0]) / 2e-4)
        if k < 2:
            assert one.d_within()[:, k] == pytest.approx(
                (values[0].within - values[1].within) / 2e-4, abs=1e-6
            )
    assert one.evidence()[1] == pytest.approx(np.array(slopes), rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("total", [None, 30.0])
def test_sums_are_cleaned_by_conditioning(total):
    """T ~ N(0, C − privacy), seen with noise of known variance.

    And then also with a total that is known.
    """
    data = seen(line())
    mean, covariance = hypothesis(data).denoised_sums(None if total is None else (total, 0.0))
    C = dense(data)[0]
    before = C - np.diag(data.privacy)
    H = np.eye(4)
    R = np.diag(data.privacy)
    told = data.value
    if total is not None:
        H = np.vstack([H, np.ones(4)])
        R = np.diag([*data.privacy, 1e-9])
        told = np.append(told, total)
    gain = before @ H.T @ np.linalg.inv(H @ before @ H.T + R)
    assert mean == pytest.approx(gain @ told, abs=5e-3)
    assert covariance == pytest.approx(before - gain @ H @ before, abs=5e-3)
    if total is not None:
        assert mean.sum() == pytest.approx(total)
        assert covariance.sum() == pytest.approx(0, abs=1e-9)


def test_without_privacy_noise_there_is_nothing_to_clean():
    data = replace(seen(line()), privacy=np.zeros(4))
    for total in (None, 1e3):  # a total that is wrong cannot change what is known
        mean, covariance = hypothesis(data).denoised_sums(None if total is None else (total, 0.0))
        assert mean == pytest.approx(data.value)
        assert covariance == pytest.approx(np.zeros((4, 4)))


@pytest.mark.parametrize("mean", [-8.0, -1.0, 0.0, 2.0, 30.0])
@pytest.mark.parametrize("sd", [0.5, 3.0])
def test_numbers_that_are_not_negative_are_truncated_normal(mean, sd):
    law = truncnorm(-mean / sd, np.inf, loc=mean, scale=sd)
    found = nonnegative_moments(np.array([mean]), np.array([sd**2]))
    assert found[0].item() == pytest.approx(law.mean(), rel=1e-6)
    assert found[1].item() == pytest.approx(law.var(), rel=1e-4)


def test_numbers_far_below_zero_are_zero():
    mean, variance = nonnegative_moments(np.array([-1e3, 5.0, -1e-3]), np.array([1.0, 0.0, 0.0]))
    assert mean == pytest.approx([1e-3, 5.0, 0.0], abs=2e-6)
    assert (variance >= 0).all()
    assert variance == pytest.approx([1e-6, 0.0, 0.0], abs=2e-6)


def test_likelihoods_as_forms_of_the_sums():
    """2·log N(value − T | 0, C) + 4·log 2π, for sums T that are counted from somewhere."""
    data = replace(seen(line()), privacy=np.zeros(4))
    kernels = [KERNEL, ConstantKernel(0.3) * RBF(1.5)]
    G, linear, constants = likelihood_quadratics(kernels, SCALE, NOISE, data)
    T = np.random.default_rng(1).normal(size=4) * 5
    for g, by, c, kernel in zip(G, linear, constants, kernels, strict=True):
        one = HypothesisPosterior(
            kernel, kernel.theta, SCALE, NOISE, replace(data, value=data.value - T), gradient=True
        )
        expected = 2 * one.evidence()[0] + 4 * np.log(2 * np.pi)
        assert by @ T - T @ g @ T + c == pytest.approx(expected)


def test_triangular_systems_from_above():
    lower = np.tril(np.random.default_rng(2).normal(size=(4, 4))) + 3 * np.eye(4)
    b = np.arange(4.0)
    assert lower.T @ solve_lower_transposed(lower, b) == pytest.approx(b)


def _by_steps(fall, number=1000):
    """Squared offset of the mean of records whose density falls once, by that of even ones."""
    x = (np.arange(number) + 0.5) / number - 0.5
    density = np.where(x[:, None] < x, 1.0, 1 - fall)  # a column for each place of the step
    means = x @ (density / density.sum(axis=0))
    return np.mean(means**2) * 12


def test_density_that_changes_between_regions_may_change_within():
    neighbours = np.array([[0, 1], [1, 2], [2, 3]])
    volumes = np.array([1.0, 1.0, 2.0, 2.0])
    even = uneven_density(neighbours, np.array([1e4, 1e4, 2e4, 2e4]), np.zeros(4), volumes)
    assert even.tolist() == [0.0] * 4
    steps = uneven_density(neighbours, np.array([0.0, 1e4, 1e4, 1e4]), np.zeros(4), volumes)
    assert steps == pytest.approx([1.0, 1.0, _by_steps(0.5), 0.0], abs=0.01)
    noise = np.full(4, 1e9)  # a change within the error of the counts is none
    assert uneven_density(neighbours, np.array([0.0, 1e4, 1e4, 1e4]), noise, volumes).max() == 0
    alone = np.zeros((0, 2), dtype=np.int64)
    assert uneven_density(alone, np.array([5.0]), np.ones(1), np.ones(1)).tolist() == [0.0]


def test_records_in_a_part_of_the_box_occupy_that_part():
    edges = np.linspace(-10.0, 10.0, 21)
    boxes = Boxes(edges[:-1, None], edges[1:, None])
    regions = Regions(boxes, np.arange(20), 20)
    half = np.array([10.0])
    noise = np.full(20, 9.0)
    even = np.full(20, 1e3)
    assert occupied_part(regions, even, noise, half) == pytest.approx([1.0])
    middle = np.where(np.abs(regions.centres[:, 0]) < 2, 1e3, 5.0)  # the others may be noise
    assert occupied_part(regions, middle, noise, half) == pytest.approx([0.2])
    assert occupied_part(regions, np.full(20, 5.0), noise, half).tolist() == [1.0]


@pytest.mark.parametrize("middle", [0.0, 1e8, -1e9])
def test_how_wide_records_stand_does_not_depend_on_where_the_box_is(middle):
    edges = middle + np.linspace(-1.0, 1.0, 21)
    regions = Regions(Boxes(edges[:-1, None], edges[1:, None]), np.arange(20), 20)
    first = np.where(np.arange(20) == 0, 1e3, 0.0)
    found = occupied_part(regions, first, np.full(20, 9.0), np.array([1.0]))
    assert found == pytest.approx([0.05], rel=1e-4)


def test_squared_residuals_given_the_sums():
    """Against draws of the averages and the privacy noise, given the observed sums."""
    observations = seen(line())
    posterior = HypothesisPosterior(KERNEL, KERNEL.theta, SCALE, NOISE, observations)
    value, variance = posterior.squared_residuals()
    size = observations.regions.size
    K = observations.regions.between(posterior.mixture, observations.regions)[0]
    weight = observations.weight
    D = np.diag(observations.privacy)
    joint = np.block([[K, np.zeros((size, size))], [np.zeros((size, size)), D]])
    across = np.vstack([K * weight, D])
    gain = across @ np.linalg.inv(posterior.lower @ posterior.lower.T)
    mean = gain @ observations.value
    rng = np.random.default_rng(4)
    draws = rng.multivariate_normal(mean, joint - gain @ across.T, 200_000, method="eigh")
    f, noise = draws[:, :size], draws[:, size:]
    drawn = (weight * f**2 - 2 * (observations.value - noise) * f).sum(axis=1)
    assert value == pytest.approx(drawn.mean(), abs=5 * drawn.std() / 400)
    # what is of fourth order is about right
    assert 0.5 < variance / drawn.var() < 2


def test_outputs_in_a_part_of_their_range():
    rng = np.random.default_rng(5)
    y = 0.7 + 0.05 * rng.normal(size=4000)
    sums, counts = np.array([y[:1000].sum(), y[1000:].sum()]), np.array([1000.0, 3000.0])
    exact = occupied_outputs(sums, np.zeros(2), counts, (float(y @ y), 0.0))
    assert exact == pytest.approx(3 * 0.05**2, rel=0.1)
    # noise of the sums may be the reason why they look so alike
    assert occupied_outputs(sums, np.full(2, 1e4), counts, (float(y @ y), 1e4)) > 5 * exact
    assert occupied_outputs(sums, np.full(2, 1e8), counts, (float(y @ y), 1e4)) == 1
    assert occupied_outputs(sums, np.zeros(2), counts, None) == 1
