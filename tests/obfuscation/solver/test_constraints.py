"""Promises about points and regions.

The margin between checked points against every point of a cell, and what is refused.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    ExpSineSquared,
    Matern,
    WhiteKernel,
)

from reticent.obfuscation.solver.constraints import cells, promise
from reticent.obfuscation.solver.settings import SOLVER


def region(kernel, box, promised=0.1):
    at, half, _ = cells(np.array([box], dtype=float))
    return promise(kernel, at, np.full(len(at), promised), half, 1), half


def between(kernel, s, t):
    """Prior standard deviation of f(s) − f(t), point by point."""
    K = kernel(np.vstack([s, t]), np.vstack([s, t]).copy())
    n = len(s)
    return np.sqrt(np.maximum(np.diag(K)[:n] + np.diag(K)[n:] - 2 * np.diag(K[:n, n:]), 0))


@pytest.mark.parametrize(
    "kernel", [RBF(0.3), Matern(0.5, nu=1.5), 4 * Matern(0.2, nu=0.5) + WhiteKernel(1.0)], ids=str
)
@pytest.mark.parametrize("box", [[(0.0, 1.0)], [(0.0, 1.0), (-1.0, 3.0)]], ids=["line", "square"])
def test_no_point_of_a_cell_differs_more_from_its_centre_than_the_margin(kernel, box):
    made, half = region(kernel, box)
    rng = np.random.default_rng(0)
    some = rng.choice(len(made.at), 40, replace=False)
    for _ in range(5):
        inside = made.at[some] + rng.uniform(-1, 1, (40, len(box))) * half[some]
        assert (between(kernel, made.at[some], inside) <= made.margin[some]).all()
    corner = made.at[some] + half[some]
    assert between(kernel, made.at[some], corner) == pytest.approx(made.margin[some], rel=1e-6)
    assert made.kept == pytest.approx((np.sqrt(0.1) + made.margin) ** 2)


def test_points_have_no_margin():
    made = promise(RBF(0.3), np.array([[0.2], [0.4]]), np.array([0.3, 0.4]), None, 0)
    assert not made.margin.any()
    assert made.kept == pytest.approx([0.3, 0.4])
    assert made.prior == pytest.approx([1.0, 1.0])


@settings(max_examples=10)
@given(st.integers(1, 3), st.integers(1, 3), st.integers(0, 10**6))
def test_cells_fill_boxes_without_overlap(count, d, seed):
    rng = np.random.default_rng(seed)
    low = rng.uniform(-5, 5, (count, d, 1))
    boxes = np.concatenate([low, low + rng.uniform(0.1, 3, (count, d, 1))], axis=2)
    at, half, owner = cells(boxes)
    assert len(at) == len(half) == len(owner) <= max(SOLVER.region_cells, count * 2**d)
    volumes = np.bincount(owner, (2 * half).prod(axis=1))
    assert volumes == pytest.approx((boxes[:, :, 1] - boxes[:, :, 0]).prod(axis=1))
    box = boxes[owner]
    assert (at - half >= box[:, :, 0] - 1e-9).all()
    assert (at + half <= box[:, :, 1] + 1e-9).all()
    # boxes may overlap by chance, and the cells of two of them then have one centre
    assert len(np.unique(np.column_stack([owner, at.round(9)]), axis=0)) == len(at)


def test_a_box_without_width_is_one_cell_there():
    at, half, owner = cells(np.array([[(2.0, 2.0), (3.0, 3.0)], [(0.0, 1.0), (5.0, 5.0)]]))
    assert at[owner == 0].tolist() == [[2.0, 3.0]]
    assert not half[owner == 0].any()
    assert (owner == 1).sum() == SOLVER.region_cells // 2
    assert set(at[owner == 1][:, 1]) == {5.0}


@pytest.mark.parametrize("wrong", [0.0, -0.1, np.nan, np.inf])
def test_a_promise_must_be_a_positive_number(wrong):
    with pytest.raises(ValueError, match="must be a positive number"):
        promise(RBF(0.3), np.zeros((2, 1)), np.array([0.1, wrong]), None, 0)


def test_what_the_kernel_knows_cannot_be_hidden():
    with pytest.raises(ValueError, match=r"prior variance at \[0\.\] is 0"):
        promise(DotProduct(0.0), np.array([[1.0], [0.0]]), np.full(2, 0.1), None, 0)


@pytest.mark.parametrize("promised", [1.0, 1.2])
def test_nobody_knows_less_than_before_any_data(promised):
    with pytest.raises(ValueError, match=r"at \[0\.2\].*Promise less than 1$"):
        promise(RBF(0.3), np.array([[0.1], [0.2]]), np.array([0.5, promised]), None, 0)


def test_a_margin_may_be_too_much_for_a_promise():
    kernel = Matern(0.01, nu=0.5)
    made, _ = region(kernel, [(0.0, 1.0)], 0.5)
    most = (1 - made.margin.max()) ** 2
    assert region(kernel, [(0.0, 1.0)], 0.999 * most)[0].kept.max() < 1
    with pytest.raises(ValueError, match="or hide a smaller region") as refused:
        region(kernel, [(0.0, 1.0)], 1.001 * most)
    assert f"Promise less than {most:.4g}," in str(refused.value)
    assert "with the margin between checked points" in str(refused.value)


@pytest.mark.parametrize(
    "kernel", [ExpSineSquared(1.0, 1e-4), ConstantKernel(2.0) * ExpSineSquared(1.0, 1e-4)], ids=str
)
def test_a_cell_must_not_hold_a_period(kernel):
    with pytest.raises(ValueError, match=r"period 0\.0001 is too short"):
        region(kernel, [(0.0, 1.0)])
    longer = ExpSineSquared(5.0, 2.1e-4)  # cells are 1e-4 wide
    region(longer, [(0.0, 1.0)], 1e-6)
    promise(kernel, np.array([[0.3]]), np.array([0.1]), None, 0)  # points have no cells
