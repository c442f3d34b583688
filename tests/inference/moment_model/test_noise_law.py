"""The law of the noise, from counts of residuals and from levels that clips have moved."""

import math

import numpy as np
import pytest

from reticent.inference.moment_model.clipping import clip_moments
from reticent.inference.moment_model.noise_law import (
    NoiseLaw,
    ResidualSizes,
    fit_noise_law,
    residual_edges,
)

N = 200_000


def noise_of(law):
    rng = np.random.default_rng(0)
    return {
        "normal": lambda: rng.normal(size=N),
        "uneven": lambda: rng.normal(size=N) * np.exp(0.5 * rng.normal(size=N)),
        "exponential": lambda: rng.exponential(size=N) - 1,
        "lognormal": lambda: (np.exp(rng.normal(size=N)) - math.exp(0.5)) / 2.16,
        "rare": lambda: 0.1 * rng.normal(size=N) + np.where(rng.random(N) < 0.02, 9.8, -0.2),
        "t2": lambda: rng.standard_t(2, N),
    }[law]()


def counted(noise, sd, longest=12.0, noise_sd=1.0):
    edges = residual_edges(sd, longest)
    rng = np.random.default_rng(1)
    counts = np.histogram(noise, [-np.inf, *edges, np.inf])[0]
    return ResidualSizes(
        counts + noise_sd * rng.normal(size=len(counts)), noise_sd, edges, explained=0.0
    )


def core_sd(noise):
    """What narrow clips would take for the standard deviation."""
    return float(np.quantile(np.abs(noise), 0.383) / 0.5)


@pytest.mark.parametrize("longest", [0.1, 1.0, 30.0])
def test_edges_are_the_same_on_both_sides_and_reach_the_longest_residual(longest):
    edges = residual_edges(0.5, longest)
    assert edges == pytest.approx(-edges[::-1])
    assert (np.diff(edges) > 0).all()
    assert edges[-1] >= longest
    assert np.diff(edges)[np.abs(edges[1:]) < 1] == pytest.approx(0.25)


@pytest.mark.parametrize("law", ["normal", "uneven", "exponential", "lognormal", "rare"])
def test_what_clips_move_the_mean_by(law):
    """Of every law, by counts alone; and the variance of the noise."""
    noise = noise_of(law)
    sd = core_sd(noise)
    found = fit_noise_law(counted(noise, sd), sd**2, N, 1.0)
    r = sd * np.array([0.5, 1.0, 2.0, 4.0, 20.0])
    gain = clip_moments(r / sd)[0]
    true = [np.clip(noise, -one, one).mean() / g for one, g in zip(r, gain, strict=True)]
    mean, variance = found.bias_moments(found.bias_rows(r, gain), r)
    assert mean == pytest.approx(true - noise.mean(), abs=0.06 * noise.std())
    assert (np.abs(mean - true) < 4 * np.sqrt(variance) + 0.06 * noise.std()).all()
    total = sd**2 + found.excess_variance(np.array([math.inf]))[0]
    assert total == pytest.approx(noise.var(), rel=0.2)


@pytest.mark.parametrize("noise_sd", [30.0, 3000.0])
def test_normal_noise_is_left_alone(noise_sd):
    """Also where counts are noisy: nothing is corrected, and nothing added to its variance."""
    noise = noise_of("normal")
    found = fit_noise_law(counted(noise, 1.0, noise_sd=noise_sd), 1.0, N, 0.05)
    r = np.array([0.5, 1.0, 2.0])
    mean, _ = found.bias_moments(found.bias_rows(r, clip_moments(r)[0]), r)
    assert mean == pytest.approx(np.zeros(3), abs=0.02)
    assert found.excess_variance(np.array([math.inf]))[0] == pytest.approx(0.0, abs=0.1)


def test_what_counts_leave_open_stands_in_the_variance():
    """Rare parts of 2 %, and counts with noise of .3 or 2 %."""
    noise = noise_of("rare")
    r = np.array([0.1])
    gain = clip_moments(r / 0.1)[0]
    true = np.clip(noise, -0.1, 0.1).mean() / gain[0] - noise.mean()
    log_variance = (0.0, 3.0)
    told = fit_noise_law(counted(noise, 0.1, noise_sd=0.003 * N), 0.01, N, 1.0, log_variance)
    mean, variance = told.bias_moments(told.bias_rows(r, gain), r)
    assert abs(mean[0] - true) < 2 * math.sqrt(variance[0])
    drowned = counted(noise, 0.1, noise_sd=0.02 * N)
    found = [
        fit_noise_law(drowned, 0.01, N, doubt, prior)
        for doubt, prior in ((0.05, None), (1.0, None), (1.0, log_variance))
    ]
    variances = [one.bias_moments(one.bias_rows(r, gain), r)[1][0] for one in found]
    assert variances[0] < variances[1] < variances[2]


def test_levels_tell_what_noisy_counts_do_not():
    """Stages with clips of two widths see levels that differ by what the narrow ones move."""
    noise = noise_of("exponential")
    law = fit_noise_law(counted(noise, 1.0, noise_sd=0.02 * N), 1.0, N, 1.0)
    r = np.array([0.5, 0.5, 8.0, 8.0])
    gain = clip_moments(r)[0]
    rows = law.bias_rows(r, gain)
    moved = np.array([np.clip(noise, -one, one).mean() for one in r]) / gain
    told = law.given_levels(3.0 + moved, np.full(4, 1e-6), rows)
    mean, variance = told.bias_moments(rows[:1], r[:1])
    assert mean[0] == pytest.approx(moved[0], abs=0.02)
    before = law.bias_moments(rows[:1], r[:1])
    assert abs(before[0][0] - moved[0]) > abs(mean[0] - moved[0])
    assert variance[0] < before[1][0]
    # levels that are all noise, or a single one, tell nothing
    for some in (slice(0, 4), slice(0, 1)):
        none = law.given_levels(3.0 + moved[some], np.full(4, 1e9)[some], rows[some])
        assert none.moments()[0] == pytest.approx(law.moments()[0], abs=1e-6)


def test_a_law_that_nothing_is_known_of_is_normal():
    law = NoiseLaw.normal()
    r = np.array([0.1, 1.0])
    assert law.bias_moments(law.bias_rows(r, np.ones(2)), r)[0].tolist() == [0.0, 0.0]
    assert law.excess_variance(r).tolist() == [0.0, 0.0]
