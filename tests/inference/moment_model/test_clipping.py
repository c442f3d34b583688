"""Moments of clipped residuals."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reticent.inference.moment_model.clipping import clip_moments, clipped_second_moment


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
