"""Clipped residuals.

Their moments, and what these say about noise whose size varies from record to record.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reticent.inference.moment_model.clipping import (
    clip_moments,
    clipped_second_moment,
    estimate_skewness,
    heteroscedastic_excess,
)


@pytest.mark.parametrize("z", [0.1, 0.5, 1.0, 2.0, 4.0])
def test_moments_of_a_clipped_normal(z):
    n = np.random.default_rng(0).normal(size=2_000_000)
    clipped = np.clip(n, -z, z)
    gain, second, odd = clip_moments(z)
    assert gain == pytest.approx((clipped * n).mean(), abs=4e-3)
    assert second == pytest.approx((clipped**2).mean(), abs=4e-3)
    he3 = (n**3 - 3 * n) / np.sqrt(6)
    assert odd[0] == pytest.approx((clipped * he3).mean(), abs=6e-3)
    assert sum(a * a for a in odd) <= second - gain**2 + 1e-12


@given(st.floats(0.01, 10), st.floats(0.3, 30))
def test_second_moment_of_clipped_normals(sd, z):
    """The array version agrees with the scalar one, and grows with the variance."""
    second = clipped_second_moment(np.array([sd**2, 2 * sd**2]), z * sd)
    assert second[0] == pytest.approx(sd**2 * clip_moments(z)[1])
    assert second[1] > second[0]


@pytest.mark.parametrize("uneven", [0.0, 0.5])
def test_uneven_noise_is_told_by_clips_of_different_widths(uneven):
    rng = np.random.default_rng(0)
    noise = rng.normal(size=400_000) * np.exp(uneven * rng.normal(size=400_000))
    r = np.array([0.5, 0.7, 1.0, 2.0, 4.0])
    second = np.array([np.mean(np.clip(noise, -one, one) ** 2) for one in r])
    found = heteroscedastic_excess(0.8, np.zeros(5), second, np.full(5, 1e-3), r)
    assert 0.8 + found == pytest.approx(np.mean(noise**2), rel=0.06)


@pytest.mark.parametrize("z", [0.5, 0.7, 1.0, 2.0])
def test_what_a_clip_leaves_of_skewed_noise(z):
    """A gamma law of small skewness γ.

    The clipped mean, by the gain, is γ·odd₃/(√6·gain), as stages take it to be.
    """
    shape = 400.0
    noise = (np.random.default_rng(1).gamma(shape, size=4_000_000) - shape) / np.sqrt(shape)
    gain, _, odd = clip_moments(z)
    lean = 2 / np.sqrt(shape) * odd[0] / (np.sqrt(6) * gain)
    assert np.clip(noise, -z, z).mean() / gain == pytest.approx(lean, abs=2e-3)


def test_skewness_is_told_by_levels_that_differ_as_the_leans_say():
    rng = np.random.default_rng(0)
    leans = np.array([-0.01, -0.04, -0.1, -0.14, -0.14])
    for skew in (-2.0, 0.0, 1.5):
        levels = 7.0 + skew * leans + 1e-3 * rng.normal(size=5)
        mean, variance = estimate_skewness(levels, np.full(5, 1e-6), leans)
        assert mean == pytest.approx(skew, abs=0.1)
        assert variance < 0.02
    mean, variance = estimate_skewness(
        7.0 + 1.5 * leans, np.full(5, 1e6), leans
    )  # all noise: nothing is told
    assert mean == pytest.approx(0.0, abs=1e-6)
    assert 0.5 < variance < 4.0
    assert estimate_skewness(np.array([3.0]), np.array([1.0]), np.array([-0.1]))[
        0
    ] == pytest.approx(0.0)  # one stage tells nothing
