"""Noise of a given covariance on a curve: its law, its grid, and what is refused."""

import numpy as np
import pytest

from reticent import BadInput
from reticent.obfuscation.noise import grid_step, obfuscated

CURVE = np.array([0.3, -2.0, 1e3])
FACTOR = np.array([[3.0, 0.0], [-3.0, 1.0], [0.0, 0.0]])


@pytest.mark.parametrize(
    ("floor", "step"),
    [(1.0, 1.0), (0.99, 0.5), (4.0, 2.0), (3.9, 1.0), (16.0, 4.0), (2.0**-20, 2.0**-10)],
)
def test_the_grid_is_the_largest_power_of_two_below_the_floor(floor, step):
    assert grid_step(floor) == step
    assert step**2 <= floor < 4 * step**2


def test_values_are_middles_of_cells_and_a_seed_repeats_them():
    one = obfuscated(CURVE, FACTOR, 0.01, seed=b"1")
    cells = one / grid_step(0.01) - 0.5
    assert (cells == np.round(cells)).all()
    assert (obfuscated(CURVE, FACTOR, 0.01, seed=b"1") == one).all()
    assert (obfuscated(CURVE, FACTOR, 0.01, seed=b"2") != one).any()
    assert (obfuscated(CURVE, FACTOR, 0.01) != obfuscated(CURVE, FACTOR, 0.01)).any()


def test_mean_and_covariance_are_as_asked():
    runs = 3000
    floor = 0.01
    drawn = np.array([obfuscated(CURVE, FACTOR, floor, seed=b"%d" % i) for i in range(runs)])
    asked = FACTOR @ FACTOR.T + (floor + grid_step(floor) ** 2 / 12) * np.eye(
        3
    )  # a cell's middle is a little off
    sd = np.sqrt(np.diag(asked))
    assert (np.abs(drawn.mean(axis=0) - CURVE) < 5 * sd / np.sqrt(runs)).all()
    off = (np.cov(drawn.T) - asked) / np.outer(sd, sd)
    assert (np.abs(off) < 5 * np.sqrt(2 / runs)).all()


def test_without_a_factor_the_floor_alone_is_added():
    drawn = np.array(
        [obfuscated(np.zeros(40), np.zeros((40, 0)), 4.0, seed=b"%d" % i) for i in range(50)]
    )
    assert drawn.std() == pytest.approx(np.sqrt(4 + 4 / 12), rel=0.08)


def test_numbers_of_any_size():
    huge = obfuscated(np.array([1e300, -1e-300]), np.array([[1e150], [0.0]]), 1e290, seed=b"1")
    assert huge[0] == pytest.approx(1e300)
    assert abs(huge[1]) < 1e146


@pytest.mark.parametrize(
    ("y", "factor", "floor"),
    [
        (CURVE[:, None], FACTOR, 1.0),
        (CURVE, FACTOR[0], 1.0),
        (CURVE, FACTOR[:2], 1.0),
        (CURVE, FACTOR, 0.0),
        (CURVE, FACTOR, np.nan),
        (CURVE * np.inf, FACTOR, 1.0),
        (CURVE, FACTOR * np.nan, 1.0),
        (CURVE, FACTOR, np.inf),
        (CURVE, FACTOR, 1e-120),
    ],
)
def test_what_is_refused(y, factor, floor):
    with pytest.raises(BadInput), np.errstate(invalid="ignore"):
        obfuscated(y, factor, floor)
