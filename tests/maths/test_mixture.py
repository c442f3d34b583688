"""Moments of shortened residuals, and what is computed from them."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from reticent.maths.mixture import Gains, Mixture, corrected, gains, grid_mixture, merged, positive, reach


@pytest.mark.parametrize("d", [1, 2, 10])
def test_gains_are_those_of_shortened_normal_vectors(d):
    """By simulation with common random numbers: small changes of mean and covariance, and what is left of them."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=(400_000, d))
    radius = reach(d, 0.6)
    gain = gains(d, radius)

    def moments(vectors):
        u = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), radius)
        return u.mean(axis=0), (u**2).mean(axis=0)

    small = 0.02
    _, plain = moments(z)
    assert plain.mean() == pytest.approx(gain.level, rel=0.01)
    moved, _ = moments(np.vstack([z, -z]) + np.eye(d)[0] * small)
    assert moved[0] / small == pytest.approx(gain.mean, rel=0.02)
    _, wider = moments(z * (1 + small))
    assert (wider - plain).mean() / (2 * small) == pytest.approx(gain.trace, rel=0.08)
    if d > 1:
        _, bent = moments(z * (1 + small * np.where(np.arange(d) == 0, 1, np.where(np.arange(d) == 1, -1, 0))))
        assert (bent - plain)[0] / (2 * small) == pytest.approx(gain.spread, rel=0.08)


def change_and_shift(*asked):
    """E and δ of z ~ N(δ, I + E)."""
    shift, values, vectors = corrected(*asked)
    return (vectors * (values - 1)) @ vectors.T, shift


def test_corrections_find_the_change_and_take_noise_for_nothing():
    d, rng = 8, np.random.default_rng(1)
    gain = gains(d, reach(d, 0.6))
    truth = np.zeros((d, d))
    truth[0, 1] = truth[1, 0] = 0.3
    truth[2, 2] = 0.4
    level = np.eye(d) * (gain.level + gain.trace * np.trace(truth) / d)
    second = level + gain.spread * (truth - np.eye(d) * np.trace(truth) / d)
    change, shift = change_and_shift(gain, np.full(d, 0.01), second, 1e-8)
    assert shift == pytest.approx(np.full(d, 0.01 / gain.mean))
    assert change == pytest.approx(truth, abs=0.02)
    diagonal, _ = change_and_shift(gain, np.zeros(d), np.diag(second), 1e-8)
    assert np.diag(diagonal) == pytest.approx(np.diag(truth), abs=0.02)
    trace, _ = change_and_shift(gain, np.zeros(d), np.array(np.trace(second)), 1e-8)
    assert trace == pytest.approx(np.eye(d) * 0.05, abs=1e-9)
    noise = rng.normal(size=(40, 40))
    many = gains(40, reach(40, 0.6))
    off = np.triu(noise, 1) * 0.5 * many.spread
    nothing, _ = change_and_shift(many, np.zeros(40), np.eye(40) * many.level + off + off.T, (0.5 * many.spread) ** 2)
    assert np.abs(nothing).max() < 0.3  # eigenvalues of the noise reach 6


def test_a_change_never_makes_a_variance_vanish_or_explode():
    plain = Gains(1.0, 1.0, 1.0, 1.0, 1.0)
    for value in (-1e9, 1e9):
        change, _ = change_and_shift(plain, np.zeros(3), np.eye(3) * value, 1.0)
        assert np.linalg.eigvalsh(change).min() >= -0.8
        assert np.linalg.eigvalsh(change).max() <= 4.0
    assert np.linalg.eigvalsh(positive(np.zeros((3, 3)), 0.1)).min() == pytest.approx(0.1)


def mixture():
    rng = np.random.default_rng(2)
    roots = np.array([np.linalg.cholesky(a @ a.T + np.eye(3)) for a in rng.normal(size=(2, 3, 3))])
    return Mixture(np.array([0.3, 0.7]), rng.normal(size=(2, 3)), roots)


def test_densities_and_chances_agree_with_scipy():
    one, x = mixture(), np.random.default_rng(3).normal(size=(20, 3))
    parts = [
        w * multivariate_normal(m, c).pdf(x) for w, m, c in zip(one.weights, one.means, one.covariances, strict=True)
    ]
    assert one.score(x) == pytest.approx(np.log(sum(parts)))
    assert one.responsibilities(x)[:, 0] == pytest.approx(parts[0] / sum(parts))


def test_samples_have_the_moments_of_the_mixture():
    one = mixture()
    x = one.sample(100_000, np.random.default_rng(4))
    mean = one.weights @ one.means
    assert x.mean(axis=0) == pytest.approx(mean, abs=0.05)
    away = one.means - mean
    covariance = np.einsum("k,kpq->pq", one.weights, one.covariances) + away.T @ (away * one.weights[:, None])
    assert np.cov(x.T) == pytest.approx(covariance, abs=0.15)


def test_joining_keeps_weight_and_mean_and_joins_the_nearest():
    weights, means = np.array([0.2, 0.3, 0.5]), np.array([[0.0, 0.0], [0.1, 0.0], [5.0, 5.0]])
    w, m = merged(weights, means, 2)
    assert np.sort(w) == pytest.approx([0.5, 0.5])
    assert w @ m == pytest.approx(weights @ means)
    assert sorted(m[:, 0]) == pytest.approx([0.06, 5.0])


def test_a_mixture_is_found_in_a_noisy_histogram():
    rng = np.random.default_rng(5)
    x = np.concatenate([rng.normal(-1.5, 0.5, 6000), rng.normal(1.0, 0.7, 4000)])
    counts, edges = np.histogram(x, bins=64, range=(-4, 4))
    points = ((edges[1:] + edges[:-1]) / 2)[:, None]
    found = grid_mixture(points, counts + rng.normal(0, 15, 64), 0.125, 2)
    order = np.argsort(found.means[:, 0])
    assert found.means[order, 0] == pytest.approx([-1.5, 1.0], abs=0.1)
    assert found.weights[order] == pytest.approx([0.6, 0.4], abs=0.04)
    assert np.sqrt(found.covariances[order, 0, 0]) == pytest.approx([0.5, 0.7], abs=0.1)
    empty = grid_mixture(points, np.full(64, -1.0), 0.125, 3)
    assert np.isfinite(empty.score(points)).all()
