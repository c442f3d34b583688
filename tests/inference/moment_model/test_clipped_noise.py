"""Clips of skewed noise that is larger at some places: how much they take where."""

import numpy as np
import pytest

from reticent.inference.moment_model.clipped_noise import (
    NoiseSizes,
    estimate_uneven_clip_bias,
    uneven_clip_biases,
)
from reticent.inference.moment_model.clipping import NoiseTail, clip_effect, fit_noise_tails

POINTS = np.linspace(-1, 1, 201)
EVEN = np.full(len(POINTS), 1 / len(POINTS))
GROWING = NoiseSizes.of(np.exp(POINTS), EVEN)
TAIL = NoiseTail(np.array([0.5]), np.array([0.05]), np.array([3.0]), np.ones(1))
R = np.array([1.0, 2.0, 5.0, 20.0])


def test_sizes_have_a_mean_square_of_one():
    sizes, shares = GROWING.slices
    assert shares.sum() == pytest.approx(1.0)
    assert shares @ sizes**2 == pytest.approx(1.0)
    assert (np.diff(sizes) > 0).all()
    one, share = NoiseSizes.of(np.full(len(POINTS), 7.0), EVEN).slices
    assert one == pytest.approx(np.ones(len(share)))


def test_noise_of_one_size_is_cut_alike_everywhere():
    same = NoiseSizes.of(np.ones(len(POINTS)), EVEN)
    found = uneven_clip_biases((TAIL, TAIL), 0.9, same, R, np.ones(4), 9.0)
    clip = clip_effect(1.0, R)
    cut = -TAIL.shortfall(R) / clip.gain
    wanted = np.column_stack([0.9**1.5 * clip.skew_bias, cut, cut])
    assert found == pytest.approx(np.broadcast_to(wanted, found.shape))


def test_a_clip_takes_from_a_place_what_it_takes_from_noise_of_that_size():
    found = uneven_clip_biases((TAIL, TAIL), 1.0, GROWING, R, np.ones(4), 99.0)
    for i in (0, 100, 200):
        size = GROWING.relative[i]
        one = NoiseSizes.of(np.ones(1), np.ones(1))
        alone = uneven_clip_biases((TAIL, TAIL), 1.0, one, R / size, np.ones(4), 99.0)
        assert found[i, :, :2] == pytest.approx(size * alone[0, :, :2])
    # where rare parts are as long everywhere, by how many there are
    assert found[:, :, 2] == pytest.approx(np.outer(found[100, :, 2], np.exp(POINTS)).T)


def test_the_tail_at_size_one_is_found_from_records_of_all_sizes():
    r = np.geomspace(0.3, 30, 20)
    draws = 400_000
    rng = np.random.default_rng(0)
    size = rng.choice(GROWING.relative, draws)
    rare = rng.random(draws) < 0.05
    noise = size * np.where(rare, 3.0, np.sqrt(0.5) * rng.normal(size=draws))
    second = np.square(np.minimum(np.abs(noise), r[:, None])).mean(axis=1)
    sd = 1e-3 * r**2
    (tail,) = fit_noise_tails(0.95, np.zeros(20), second, sd, r, 30.0, sizes=GROWING.slices)
    assert tail.shortfall(np.array([1.0]))[0] == pytest.approx(0.1, rel=0.2)
    (even,) = fit_noise_tails(0.95, np.zeros(20), second, sd, r, 30.0)
    assert even.shortfall(np.array([1.0]))[0] > 1.3 * tail.shortfall(np.array([1.0]))[0]


def test_no_residual_is_longer_than_bounds_allow():
    free, bounded = (
        uneven_clip_biases((TAIL, TAIL), 1.0, GROWING, R, np.ones(4), longest)[:, :2, 1]
        for longest in (99.0, 3.0)
    )
    assert bounded[:100] == pytest.approx(free[:100])
    assert (bounded[-1] > free[-1]).all()
    assert bounded[-1] == pytest.approx(bounded[-20], rel=0.2)


@pytest.mark.parametrize("cause", [1, 3, 4])
def test_what_stages_see_along_the_size_of_the_noise_tells_where_clips_take_more(cause):
    rng = np.random.default_rng(cause)
    features = np.polynomial.legendre.legvander(POINTS, 5)
    thresholds = np.repeat([0.8, 1.5, 4.0, 20.0], 5)
    uneven = uneven_clip_biases((TAIL, TAIL), 1.0, GROWING, thresholds, np.full(20, 1.01), 99.0)
    clip = clip_effect(1.01, thresholds)
    even = np.column_stack([clip.skew_bias, -TAIL.shortfall(thresholds) / clip.gain])
    even = np.broadcast_to(even, (len(POINTS), *even.shape))
    values = np.concatenate([even, uneven], axis=2)
    biases = 1000 * np.einsum("gm,gkc->kcm", features, values) / len(POINTS)
    truth = 0.9 * biases[:, cause]

    def found(sd):
        sums = 50 * rng.normal(size=6) + truth + sd * rng.normal(size=truth.shape)
        return estimate_uneven_clip_bias(sums, sd**2 * np.array([np.eye(6)] * 20), biases, 1.0)

    mean, covariance = found(0.5)
    moved = np.tensordot(mean, biases, axes=(0, 1))
    assert moved - moved[-1] == pytest.approx(truth - truth[-1], abs=0.1 * np.abs(truth).max())
    mean, covariance = found(1e6)
    assert np.abs(mean).max() < 0.05
    assert (np.diag(covariance) > 0.05).all()


def test_a_function_that_is_none_tells_nothing_and_does_no_harm():
    rng = np.random.default_rng(0)
    biases = np.zeros((6, 5, 2))
    biases[:, :, 0] = -np.array([1.0, 1.0, 1.0, 0.1, 0.1, 0.0])[:, None]
    sums = 0.5 * biases[:, 1] + 0.01 * np.outer(rng.normal(size=6), [1.0, 0.0])
    covariances = np.broadcast_to(np.diag([1e-4, 0.0]), (6, 2, 2))
    mean, _ = estimate_uneven_clip_bias(sums, covariances, biases, 1.0)
    assert mean.sum() == pytest.approx(0.5, abs=0.05)
