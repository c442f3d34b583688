"""Classification by Dirichlet targets: without noise it is weighted regression on the records.

With noise, less of it.
"""

import numpy as np
import pytest
from scipy.stats import gamma, lognorm

from reticent.inference.classification.dirichlet_targets import (
    dirichlet_posterior,
    dirichlet_target,
)

M = 4
N = 300
CLASSES = 3
PRIOR = np.diag([1.0, 0.5, 0.3, 0.2])


def records(seed=0, classes=CLASSES, n=N):
    rng = np.random.default_rng(seed)
    phi = rng.normal(size=(n, M))
    phi /= np.maximum(np.linalg.norm(phi, axis=1, keepdims=True), 1.0)
    logits = phi @ rng.normal(size=(M, classes)) * 3
    return phi, (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)


def sums(phi, label, classes=CLASSES):
    each = [phi[label == c] for c in range(classes)]
    return np.array([one.T @ one for one in each]), np.array([one.sum(axis=0) for one in each])


def posterior(S, a, sd, points, n=N):
    return dirichlet_posterior(S, a, np.full((M, M), sd), sd, PRIOR, points, n)


def regression(phi, label, c, classes=CLASSES):
    """Targets and their noise, record by record: the formulas of Milios et al., with α₀ = 0.1."""
    alpha = np.where(label == c, 1.1, 0.1)
    v = np.log(1 / alpha + 1)
    low, high = (np.log(one) - np.log(1 / one + 1) / 2 for one in (0.1, 1.1))
    y = np.log(alpha) - v / 2 - (low + (high - low) / classes)
    C = np.linalg.inv(np.linalg.inv(PRIOR) + (phi.T / v) @ phi)
    return C @ (phi.T / v) @ y, C


@pytest.mark.parametrize("alpha", [0.1, 1.1, 7.0])
def test_targets_have_the_moments_of_a_gamma_law(alpha):
    mean, variance = dirichlet_target(alpha)
    law = lognorm(np.sqrt(variance), scale=np.exp(mean))
    assert (law.mean(), law.var()) == pytest.approx((gamma(alpha).mean(), gamma(alpha).var()))


@pytest.mark.parametrize("classes", [2, 3])
def test_without_noise_it_is_weighted_regression(classes):
    phi, label = records(classes=classes)
    mean, covariance, own = posterior(*sums(phi, label, classes), 1e-7, phi)
    exact = [regression(phi, label, c, classes) for c in range(classes)]
    expected = np.array([w for w, _ in exact]).T
    assert mean == pytest.approx(expected - expected.mean(axis=1, keepdims=True), abs=1e-3)
    assert covariance == pytest.approx(np.array([C for _, C in exact]), abs=1e-4)
    assert own == pytest.approx(covariance, abs=1e-4)


def test_logits_add_up_to_zero_and_follow_the_classes():
    phi, label = records(1)
    S, a = sums(phi, label)
    mean, covariance, own = posterior(S, a, 1.0, phi)
    assert mean.sum(axis=1) == pytest.approx(np.zeros(M), abs=1e-12)
    order = [2, 0, 1]
    again = posterior(S[order], a[order], 1.0, phi)
    assert again[0] == pytest.approx(mean[:, order])
    assert again[1] == pytest.approx(covariance[order])
    assert again[2] == pytest.approx(own[order])


def test_the_more_noise_the_less_is_known():
    phi, label = records(2)
    S, a = sums(phi, label)
    traces = []
    lengths = []
    for sd in (1e-6, 3.0, 30.0, 1e5):
        mean, covariance, own = posterior(S, a, sd, phi)
        covariance, own = covariance.mean(axis=0), own.mean(axis=0)
        traces.append(np.trace(covariance))
        lengths.append(np.linalg.norm(mean))
        assert np.linalg.eigvalsh(covariance)[0] > 0
        assert np.trace(own) <= np.trace(covariance) * (1 + 1e-6), (
            "noise takes nothing away from doubt"
        )
    assert traces == sorted(traces)
    assert lengths == sorted(lengths, reverse=True)
    assert traces[-1] == pytest.approx(np.trace(PRIOR), rel=0.02)
    assert lengths[-1] < 0.01 * lengths[0]


def test_a_claimed_covariance_is_that_of_errors_over_draws_of_the_noise():
    """Against the fit without noise.

    Errors and what is claimed beyond the model's own doubt are of one size.
    """
    phi, label = records(3, n=2000)
    S, a = sums(phi, label)
    plain = posterior(S, a, 1e-7, phi[:300], 2000)[0]
    errors = []
    claimed = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        noise = rng.normal(size=(CLASSES, M, M)) * 8
        symmetric = (noise + noise.transpose(0, 2, 1)) / 2
        mean, covariance, own = dirichlet_posterior(
            S + symmetric,
            a + 8 * rng.normal(size=a.shape),
            np.full((M, M), 8.0),
            8.0,
            PRIOR,
            phi[:300],
            2000,
        )
        errors.append(np.square(mean - plain).sum() / (CLASSES - 1))
        claimed.append(np.trace((covariance - own).mean(axis=0)))
    assert 0.3 < np.mean(errors) / np.mean(claimed) < 2


@pytest.mark.parametrize("value", [-1e9, 0.0, 1e9])
def test_any_release_gives_finite_weights(value):
    phi, _ = records(4)
    S = np.full((CLASSES, M, M), value)
    a = np.full((CLASSES, M), value)
    for found in posterior(S, a, 1.0, phi):
        assert np.isfinite(found).all()
