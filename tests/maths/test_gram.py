"""What noisy Gram matrices say about the true one, and about where the records are."""

import numpy as np
import pytest

from reticent.maths.basis import legendre, public_points
from reticent.maths.gram import GramBelief
from reticent.maths.linalg import quadratic

_M, _N, _SD = 12, 512, 9.0


def _features(x):
    values = legendre(np.clip(x, -1, 1))[:, :_M] * 0.8 ** np.arange(_M)
    return values / np.sqrt(np.maximum((values**2).sum(axis=1), 1.0))[:, None]


def _clusters(rng):
    return np.where(rng.random(_N) < 0.9, -0.25, 0.5) + 0.04 * rng.normal(size=_N)


def _uniform(rng):
    return rng.uniform(-1, 1, _N)


def _fit(x, rng, releases=4):
    phi, sd = _features(x), np.full((_M, _M), _SD * np.sqrt(releases / 2))
    np.fill_diagonal(sd, _SD * np.sqrt(releases))
    belief = GramBelief(_features(public_points(1, 256)[:, 0]), _N)
    for _ in range(releases):
        noise = rng.normal(size=(_M, _M))
        belief.add(phi.T @ phi + sd[0, 0] * (noise + noise.T) / 2, sd)
    return belief, phi.T @ phi


@pytest.mark.parametrize("inputs", [_clusters, _uniform])
def test_laws_find_the_matrix_and_know_how_well(inputs):
    """Without p ≥ 0, the error would be that of the noise; with it, it is a fraction, and not far from what is claimed."""
    errors, claimed = [], []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        belief, truth = _fit(inputs(rng), rng)
        errors.append(((belief.mean - truth) ** 2).sum())
        claimed.append(belief.variance.sum())
        assert np.linalg.eigvalsh(belief.mean)[0] > -1e-6
    assert np.mean(errors) < 0.25 * _SD**2 * _M * (_M + 1) / 2
    assert 0.2 < np.mean(errors) / np.mean(claimed) < 5


def test_laws_are_where_the_records_are():
    rng = np.random.default_rng(3)
    belief, _ = _fit(_clusters(rng), rng)
    u = public_points(1, 256)[:, 0]
    near = np.abs(u + 0.25) < 0.15
    assert belief.laws.sum(axis=1) == pytest.approx(np.ones(len(belief.laws)))
    assert belief.laws[:, near].sum(axis=1).min() > 0.75
    assert belief.laws[:, u < -0.7].sum(axis=1).max() < 0.1


def test_without_information_the_guess_stands():
    """All noise: the mean of the laws is the guess, and the releases change next to nothing."""
    points = _features(public_points(1, 256)[:, 0])
    belief = GramBelief(points, _N)
    assert belief.laws.mean(axis=0) == pytest.approx(np.full(256, 1 / 256), rel=0.05)
    belief.add(1e7 * np.eye(_M), np.full((_M, _M), 1e8))
    assert quadratic(points, belief.mean - _N * points.T @ points / 256).max() < 0.1 * _N
