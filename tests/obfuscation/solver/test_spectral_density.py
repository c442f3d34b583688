"""Spectra of stationary kernels.

Waves against Bessel's integral, densities against kernels, and what hides a share of K.
"""

import numpy as np
import pytest
from scipy.integrate import quad
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern

from reticent.obfuscation.solver.spectral_density import (
    check_below,
    everywhere,
    radial_frequencies,
    radial_wave,
    spectral_density,
)

KERNELS = [
    RBF(0.3),
    2.5 * Matern(0.4, nu=1.5),
    Matern(0.7, nu=2.5) * ConstantKernel(0.5) + RBF(1.2),
    Matern(0.2, nu=0.5),
]


def places(d, count=9):
    return np.random.default_rng(d).uniform(0, 1, (count, d))


@pytest.mark.parametrize("z", [0.0, 1e-9, 0.3, 2.0, 15.0])
def test_waves_are_means_over_all_directions(z):
    at = np.array([z])
    assert radial_wave(at, 1) == pytest.approx(np.cos(at))
    assert radial_wave(at, 2) == pytest.approx(
        quad(lambda t: np.cos(z * np.cos(t)) / np.pi, 0, np.pi)[0], abs=1e-9
    )
    assert radial_wave(at, 3) == pytest.approx(
        quad(lambda t: np.cos(z * t) / 2, -1, 1)[0], abs=1e-9
    )


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("kernel", KERNELS[:3], ids=str)
def test_densities_are_those_of_the_kernel_at_any_distance(kernel, d):
    w, weights = radial_frequencies(kernel, d)
    mass = weights * spectral_density(kernel, w, d)
    assert (mass >= 0).all()
    for r in (0.0, 0.2, 0.9):
        exact = kernel(np.zeros((1, d)), np.eye(d)[:1] * r)[0, 0]
        assert mass @ radial_wave(w * r, d) == pytest.approx(exact, abs=2e-6)


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("kernel", KERNELS[:3], ids=str)
@pytest.mark.parametrize("share", [0.2, 0.9])
def test_a_share_of_the_kernel_is_hidden_by_a_multiple_of_it(kernel, d, share):
    """H = cK: k²/(k − h) = k/(1 − c), so G = K/(1 − c), exactly."""
    x = places(d)
    assert check_below(kernel, ConstantKernel(share) * kernel, d) == pytest.approx(share)
    found = everywhere(kernel, ConstantKernel(share) * kernel, x)
    assert found == pytest.approx(kernel(x) / (1 - share), rel=1e-5, abs=1e-5 / (1 - share))


def test_hiding_more_needs_more_everywhere():
    x = places(1)
    hidden = RBF(0.4)
    before = RBF(0.3)(x)
    for size in (0.2, 0.4, 0.6):
        found = everywhere(RBF(0.3), ConstantKernel(size) * hidden, x)
        assert np.linalg.eigvalsh(found - before)[0] > -1e-9
        before = found
    assert (found == found.T).all()


def test_equal_places_have_equal_rows():
    x = np.array([[0.1], [0.1], [0.7]])
    found = everywhere(RBF(0.3), 0.3 * RBF(0.35), x)
    assert found[0] == pytest.approx(found[1])
    assert found[0, 0] == pytest.approx(found[2, 2])


def test_smoother_tails_can_be_hidden_behind_rougher_ones_only():
    """Of a Matérn kernel's spectrum the tail falls as a power.

    An RBF kernel fits below it, and not the other way round.
    """
    assert check_below(Matern(0.3, nu=1.5), 0.3 * RBF(0.4), 1) < 1
    with pytest.raises(ValueError, match="spectral condition fails"):
        check_below(RBF(0.3), 1e-3 * Matern(0.3, nu=1.5), 1)


def test_a_ratio_of_one_is_just_possible_but_has_no_integral():
    assert check_below(RBF(0.3), ConstantKernel(1.0) * RBF(0.3), 2) == pytest.approx(1.0)
    with pytest.raises(ValueError, match="touches"):
        everywhere(RBF(0.3), ConstantKernel(1.0) * RBF(0.3), places(2))
    with pytest.raises(ValueError, match=r"is 1\.001 times"):
        check_below(RBF(0.3), ConstantKernel(1.001) * RBF(0.3), 2)


@pytest.mark.parametrize(
    "kernel", [RBF([0.1, 0.2]), RBF(0.1) * RBF(0.2), DotProduct(), RBF(0.1) + DotProduct()], ids=str
)
def test_kernels_without_a_known_spectrum_are_refused(kernel):
    for known in ((kernel, RBF(0.5)), (RBF(0.5), kernel)):
        with pytest.raises(ValueError, match="is not known"):
            check_below(*known, 2)
