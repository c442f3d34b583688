"""Kernels that fall with distance.

Which are taken for such, and that no point of a cell is farther than its corners.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import (
    RBF,
    CompoundKernel,
    ConstantKernel,
    DotProduct,
    Exponentiation,
    ExpSineSquared,
    Kernel,
    Matern,
    PairwiseKernel,
    Product,
    RationalQuadratic,
    Sum,
    WhiteKernel,
)

from reticent.obfuscation.solver.covariance import between
from reticent.obfuscation.solver.decreasing_kernels import (
    check_falls_with_distance,
    largest_difference,
)
from tests.support.curves import falling_kernels


class Flat(RBF):
    """Nothing of its own, but that is not known."""


class LikeASum(Sum):
    def __call__(self, X, Y=None, eval_gradient=False):
        return np.cos(20_000 * (X - Y.T))


REFUSED = [
    Flat(0.2),
    LikeASum(RBF(0.2), RBF(0.3)),
    RBF(0.2) + Flat(0.2),
    RBF(0.2) * Flat(0.2),
    Exponentiation(Flat(0.2), 2),
    DotProduct(1.0),
    RBF(0.2) + DotProduct(1.0),
    RBF(0.2) * DotProduct(1.0),
    PairwiseKernel(metric="rbf"),
    CompoundKernel([RBF(0.2), RBF(0.3)]),
    Matern(0.2, nu=0.3),
    Matern(0.2, nu=1.0),
    RBF(0.2) ** 0.5,
    RBF(0.2) ** 2.5,
    RBF(0.2) ** 0,
    RBF(0.2) ** -1,
    RBF(-0.2),
    RBF([0.2, 0.0]),
    RBF(np.nan),
    Matern(0.0, nu=1.5),
    RationalQuadratic(0.2, -1.0),
    ConstantKernel(-1.0) * RBF(0.2),
    ConstantKernel(-1.0) * (ConstantKernel(-1.0) * RBF(0.2)),
    ConstantKernel(np.inf),
]


@pytest.mark.parametrize("kernel", REFUSED, ids=lambda kernel: type(kernel).__name__)
def test_what_is_not_known_to_fall_is_refused(kernel):
    with pytest.raises(ValueError, match=r"fall with distance, .*RBF, Matern.*points"):
        check_falls_with_distance(kernel, 1)
    with pytest.raises(ValueError, match="fall with distance"):
        largest_difference(kernel, np.full((3, 1), 1e-4))


def test_a_call_put_on_an_instance_is_not_what_python_calls():
    kernel = RBF(0.2)
    kernel.__call__ = lambda X, Y=None: np.cos(20_000 * (X - Y.T))
    at = np.array([[1e-4]])
    assert largest_difference(kernel, at)[0] == pytest.approx(largest_difference(RBF(0.2), at)[0])


def test_a_kernel_of_ones_own_is_named_but_not_quoted():
    class Own(Kernel):
        def __init__(self):
            pass

        def __call__(self, X, Y=None, eval_gradient=False):
            raise AssertionError

        def diag(self, X):
            raise AssertionError

        def is_stationary(self):
            return True

        def __repr__(self):
            raise AssertionError

    with pytest.raises(ValueError, match="Own as it is given is not"):
        check_falls_with_distance(RBF(0.1) + Own(), 1)


def test_periods_are_long_and_of_one_input():
    kernel = ExpSineSquared(0.7, 1.0) * RBF(0.3) + WhiteKernel(0.1)
    check_falls_with_distance(kernel, 1, 0.25)
    with pytest.raises(ValueError, match=r"period 1 is too short .* 0\.52 wide"):
        check_falls_with_distance(kernel, 1, 0.26)
    with pytest.raises(ValueError, match="ExpSineSquared of one input"):
        check_falls_with_distance(kernel, 2, 0.01)
    for wrong in (ExpSineSquared(0.7, -1.0), ExpSineSquared(0.0, 1.0)):
        with pytest.raises(ValueError, match="must be positive"):
            check_falls_with_distance(wrong, 1)


def test_a_periodic_kernel_of_two_inputs_is_no_covariance():
    """Why it is refused: by scikit-learn's distance in the plane it has negative eigenvalues."""
    x = np.random.default_rng(0).uniform(0, 2, (40, 2))
    assert np.linalg.eigvalsh(ExpSineSquared(0.3, 1.0)(x))[0] < -0.1


def test_a_power_that_is_not_whole_need_be_no_covariance():
    """Why it is refused: here a root of a sum of two covariances has a negative eigenvalue."""
    x = np.linspace(0, 3, 30)[:, None]
    assert np.linalg.eigvalsh((RBF(1.0) + ConstantKernel(1e-3))(x) ** 0.1)[0] < -1e-4


def test_steps_grow_with_the_formula():
    one = check_falls_with_distance(RBF(0.2), 1)
    assert check_falls_with_distance(RBF(0.2) + RBF(0.3), 1) > 2 * one
    assert check_falls_with_distance(RBF(0.2) ** 5, 1) >= 5 * one
    assert check_falls_with_distance(RationalQuadratic(0.2, 1e4), 1) > 1e4
    assert isinstance(check_falls_with_distance(Product(RBF(0.2), Matern([0.3, 0.4])), 2), float)


@settings(max_examples=60, deadline=None)
@given(
    kernel=falling_kernels(),
    columns=st.integers(1, 3),
    seed=st.integers(0, 10**6),
    scale=st.floats(-7, -0.7),
)
def test_no_point_of_a_cell_differs_more_from_its_centre_than_its_corner(
    kernel, columns, seed, scale
):
    """Against the kernel itself at random points of random cells, wherever they are."""
    rng = np.random.default_rng(seed)
    half = 10.0**scale * rng.uniform(0.1, 1, (1, columns))
    made = kernel(columns, float(np.linalg.norm(half)))
    margin = largest_difference(made, half)[0]
    offsets = half * rng.uniform(-1, 1, (400, columns)) * rng.uniform(0, 1, (400, 1)) ** 0.25
    centre = rng.choice([0.0, 0.3, 7.0]) * rng.uniform(-1, 1, (1, columns))
    points = centre + offsets
    covariance = between(made, centre, points)[0]
    variance = between(made, centre, centre)[0, 0]
    rounding = 1e-12 * (1 + np.abs(centre).max() / half.min())  # of the test's own offsets
    assert (2 * (variance - covariance) <= margin**2 * (1 + rounding) + 1e-15 * variance).all()
    corner = 2 * (variance - between(made, centre, centre + half)[0, 0])
    assert margin**2 <= corner * (1 + rounding) + 1e-12 * variance
