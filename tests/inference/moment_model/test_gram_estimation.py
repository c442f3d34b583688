"""What noisy Gram matrices say about the true one, and about where the records are."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reticent.inference.kernels.anova import AnovaPriors
from reticent.inference.kernels.eigenbasis import quasi_random_points
from reticent.inference.kernels.projection import feature_scales
from reticent.inference.linalg import quadratic_forms
from reticent.inference.moment_model.gram_estimation import GramEstimator, denoise_spectrum
from reticent.privacy.row_maps.features.polynomial_basis import legendre

_M = 12
_N = 512
_SD = 9.0


def _features(x):
    values = legendre(np.clip(x, -1, 1))[:, :_M] * 0.8 ** np.arange(_M)
    return values / np.sqrt(np.maximum((values**2).sum(axis=1), 1.0))[:, None]


def _clusters(rng):
    return np.where(rng.random(_N) < 0.9, -0.25, 0.5) + 0.04 * rng.normal(size=_N)


def _uniform(rng):
    return rng.uniform(-1, 1, _N)


def _fit(x, rng, releases=4):
    phi = _features(x)
    sd = np.full((_M, _M), _SD * np.sqrt(releases / 2))
    np.fill_diagonal(sd, _SD * np.sqrt(releases))
    belief = GramEstimator(_features(quasi_random_points(1, 256)[:, 0]), _N)
    for _ in range(releases):
        noise = rng.normal(size=(_M, _M))
        belief.add(phi.T @ phi + sd[0, 0] * (noise + noise.T) / 2, sd)
        belief.update()
    return belief, phi.T @ phi


@pytest.mark.parametrize("inputs", [_clusters, _uniform])
def test_laws_find_the_matrix_and_know_how_well(inputs):
    """Without p ≥ 0, the error would be that of the noise.

    With it, it is a fraction, and not far from what is claimed.
    """
    errors = []
    claimed = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        belief, truth = _fit(inputs(rng), rng)
        errors.append(((belief.damped_estimate - truth) ** 2).sum())
        claimed.append(belief.entry_variance.sum())
        assert np.linalg.eigvalsh(belief.damped_estimate)[0] > -1e-6
    assert np.mean(errors) < 0.25 * _SD**2 * _M * (_M + 1) / 2
    assert 0.2 < np.mean(errors) / np.mean(claimed) < 5


def test_laws_are_where_the_records_are():
    rng = np.random.default_rng(3)
    belief, _ = _fit(_clusters(rng), rng)
    u = quasi_random_points(1, 256)[:, 0]
    near = np.abs(u + 0.25) < 0.15
    assert belief.densities.sum(axis=1) == pytest.approx(np.ones(len(belief.densities)))
    assert belief.densities[:, near].sum(axis=1).min() > 0.75
    assert belief.densities[:, u < -0.7].sum(axis=1).max() < 0.1


def test_without_information_the_guess_stands():
    """All noise: the mean of the laws is the guess, and the releases change next to nothing."""
    points = _features(quasi_random_points(1, 256)[:, 0])
    belief = GramEstimator(points, _N)
    assert belief.densities.mean(axis=0) == pytest.approx(np.full(256, 1 / 256), rel=0.05)
    belief.add(1e7 * np.eye(_M), np.full((_M, _M), 1e8))
    belief.update()
    assert (
        quadratic_forms(points, belief.damped_estimate - _N * points.T @ points / 256).max()
        < 0.1 * _N
    )


def noisy(seed, m, signal=0.0):
    """A matrix of rank two under symmetric noise of variance one, two on the diagonal."""
    rng = np.random.default_rng(seed)
    raw = rng.normal(size=(m, m))
    axes = np.linalg.qr(rng.normal(size=(m, m)))[0][:, :2]
    return signal * (axes * [1.0, -0.7][:m]) @ axes.T, (raw + raw.T) / np.sqrt(2)


@pytest.mark.parametrize("m", [1, 5, 40])
def test_without_noise_nothing_is_taken_away(m):
    _, raw = noisy(0, m)
    found, left, signal = denoise_spectrum(raw, 1e-14)
    assert found == pytest.approx(raw, abs=1e-6)
    assert left == pytest.approx(0, abs=1e-6)
    assert signal == pytest.approx(np.square(raw).sum())


@pytest.mark.parametrize(("m", "kept"), [(12, 0.25), (40, 0.08), (120, 0.035)])
def test_noise_alone_becomes_next_to_nothing(m, kept):
    """Of its sum of squares, m(m + 1).

    The larger the matrix, the better its law is known from its own eigenvalues.
    """
    ratios = [
        np.square(denoise_spectrum(noisy(seed, m)[1], 1.0)[0]).sum() / m**2 for seed in range(6)
    ]
    assert np.mean(ratios) < kept


@pytest.mark.parametrize("size", [10.0, 25.0, 60.0])
def test_a_denoised_matrix_is_much_nearer_to_the_truth(size):
    """Eigenvalues of the noise reach 2√40 = 12.6; two of the truth's are beyond, or not."""
    errors = []
    for seed in range(6):
        truth, noise = noisy(seed, 40, size)
        found, _, signal = denoise_spectrum(truth + noise, 1.0)
        errors.append(np.square(found - truth).sum() / np.square(noise).sum())
    assert np.mean(errors) < 0.2
    assert signal == pytest.approx(np.square(truth).sum(), abs=8 * 40 + 8 * size)


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.integers(1, 12), st.floats(-3, 3))
def test_eigenvalues_shrink_towards_zero_in_their_own_axes(seed, m, size):
    rng = np.random.default_rng(seed)
    raw = noisy(seed, m)[1]
    noise2 = 10.0**size
    found, left, signal = denoise_spectrum(raw, noise2)
    before, axes = np.linalg.eigh(raw)
    after = np.diag(axes.T @ found @ axes)
    assert axes.T @ found @ axes == pytest.approx(np.diag(after), abs=1e-8)
    assert (after * before >= -1e-9).all(), "no sign changes"
    assert (np.abs(after) <= np.abs(before) + 1e-9).all()
    assert left >= 0
    assert signal >= 0
    turn = np.linalg.qr(rng.normal(size=(m, m)))[0]
    assert denoise_spectrum(turn @ raw @ turn.T, noise2)[0] == pytest.approx(
        turn @ found @ turn.T, abs=1e-7
    )
    assert denoise_spectrum(-raw, noise2)[0] == pytest.approx(-found, abs=1e-8)
    assert denoise_spectrum(3 * raw, 9 * noise2)[0] == pytest.approx(3 * found, abs=1e-7)


def test_damping_is_in_proportion_to_the_squares_of_functions():
    """A function that is small at all records hides nothing large.

    It is damped as little as it is small.
    """
    rng = np.random.default_rng(0)
    points = rng.normal(size=(256, 6)) * [1, 1, 0.1, 0.1, 0.01, 0.01] / 4
    plain, damped = (GramEstimator(points, 500, damping=share) for share in (0.0, 0.1))
    for belief in (plain, damped):
        belief.add(500 * points.T @ points / 256, np.full((6, 6), 20.0))
        belief.update()
    added = damped.damped_estimate - plain.damped_estimate
    assert np.diag(added) == pytest.approx(
        np.diag(added).max() * np.diag(damped.feature_moment) / np.diag(damped.feature_moment).max()
    )
    assert np.abs(added - np.diag(np.diag(added))).max() == 0
    assert np.diag(added)[4:].max() < 1e-3 * np.diag(added).max()
    assert damped.estimate == pytest.approx(plain.estimate)


def test_many_points_repair_what_few_integrate_badly():
    """Even inputs, and as many functions as there are points."""
    rng = np.random.default_rng(0)
    m, n = 60, 5000
    prior = AnovaPriors(3, 4)
    basis, _, _ = prior.choose(m)
    scale = feature_scales(basis, prior.scaling_variance[:m], 0.3, 1.0)

    def features(x):
        return basis.evaluate(x) * scale

    points = features(quasi_random_points(3, 64))
    even = features(quasi_random_points(3, 8192))
    phi = features(rng.uniform(-1, 1, (n, 3)))
    noise = 15 * rng.normal(size=(m, m))
    errors = []
    for even_moment in (None, even.T @ even / len(even)):
        belief = GramEstimator(points, n, even_moment=even_moment)
        belief.add(phi.T @ phi + (noise + noise.T) / 2, np.full((m, m), 15.0))
        belief.update()
        errors.append(np.linalg.norm(belief.damped_estimate - phi.T @ phi))
    assert errors[1] < 0.85 * errors[0]
