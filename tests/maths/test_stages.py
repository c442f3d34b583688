"""Staged posteriors: right without noise, positive definite with any noise, and honest about clipping."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reticent.maths.stages import Staged, clip_moments, quadratic, unclipped_variance


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
def test_variance_before_clipping(sd, z):
    r = z * sd
    second = sd**2 * clip_moments(r / sd)[1]
    assert unclipped_variance(second, r) == pytest.approx(sd**2, rel=1e-3)


def problem(n=4000, m=6, seed=0, noise=0.1):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(400, m)) * 0.3
    phi = rng.normal(size=(n, m)) * 0.3
    w = rng.normal(size=m)
    return points, phi, w, phi @ w + noise * rng.normal(size=n)


def test_without_noise_it_is_bayesian_linear_regression():
    points, phi, _, y = problem()
    staged = Staged(np.eye(6), points, len(y), 0.01)
    B = phi.T @ phi
    for _ in range(3):
        e, r = y - phi @ staged.mean, 50.0
        staged.add(phi.T @ e, 1e-9, B, np.full((6, 6), 1e-9), float(e @ e), 1e-9, r)
    precision = np.eye(6) + B / 0.01
    assert staged.mean == pytest.approx(np.linalg.solve(precision, phi.T @ y / 0.01), abs=1e-5)
    assert np.diag(staged.covariance) == pytest.approx(np.diag(np.linalg.inv(precision)), rel=0.02)


@settings(max_examples=40)
@given(st.integers(0, 10_000), st.floats(1e-3, 1e6), st.booleans())
def test_any_noise_leaves_a_proper_posterior(seed, scale, learn_noise):
    """Noise far above the signal, of any draw: finite, symmetric, no wider than the prior, and no blow-up."""
    rng = np.random.default_rng(seed)
    points, phi, _, y = problem(n=50, seed=seed)
    staged = Staged(np.eye(6), points, 50, 0.01, learn_noise=learn_noise)
    for _ in range(3):
        r = 2 * staged.residual_sd()
        e = np.clip(y - phi @ staged.mean, -r, r)
        noise = rng.normal(size=(6, 6)) * scale
        B = phi.T @ phi + (noise + noise.T) / 2
        A = phi.T @ e + rng.normal(size=6) * scale * r
        staged.add(
            A, scale * r, B, np.full((6, 6), scale), float(e @ e) + rng.normal() * scale * r * r, scale * r * r, r
        )
        values = np.linalg.eigvalsh(staged.covariance)
        assert np.isfinite(staged.mean).all()
        assert values[0] > 0
        assert values[-1] <= 1 + 1e-9
        assert np.isfinite(staged.s2)
    assert np.linalg.norm(staged.mean) < 50


def test_evidence_prefers_the_prior_that_made_the_weights():
    points, phi, w, y = problem(seed=3)
    staged = Staged(np.eye(6), points, len(y), 0.01)
    for _ in range(3):
        r = 2 * staged.residual_sd()
        e = np.clip(y - phi @ staged.mean, -r, r)
        staged.add(phi.T @ e, 1.0, phi.T @ phi, np.full((6, 6), 1.0), float(e @ e), 1.0, r)
    right, narrow, wide = (staged.evidence(np.eye(6) * s) for s in (float(w @ w) / 6, 1e-3, 1e3))
    assert right > narrow
    assert right > wide
    before = staged.mean.copy()
    staged.change_prior(np.eye(6) * 1e-6)
    assert np.linalg.norm(staged.mean) < np.linalg.norm(before)


def test_quadratic_forms():
    rows, matrix = np.random.default_rng(0).normal(size=(5, 3)), np.diag([1.0, 2.0, 3.0])
    assert quadratic(rows, matrix) == pytest.approx([row @ matrix @ row for row in rows])
