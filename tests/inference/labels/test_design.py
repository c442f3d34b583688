"""Which maps of labels to release.

Expected errors against dense conditioning, and columns that keep their limit.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reticent.inference.labels import design as label_design
from reticent.inference.labels.design import DesignProblem, design_release, mean_coefficients

CRITERIA = [None, "trace", "logdet"]


def problem(seed=0, q=4, n=12, noise=0.5, interest=6):
    rng = np.random.default_rng(seed)
    psi = rng.normal(size=(q, n)) * np.geomspace(1, 0.1, q)[:, None]
    at = rng.normal(size=(q, interest)) * np.geomspace(1, 0.1, q)[:, None]
    return DesignProblem(
        psi, rng.integers(1, 4, n).astype(float), rng.uniform(0.1, 0.3, n), at @ at.T, noise
    )


def left(one, columns):
    """Covariance of w after the release: labels' sums have mean c·ψᵀw and variance c·ν."""
    C = np.diag(one.counts)
    H = columns.T @ C @ one.psi.T
    R = columns.T @ C @ np.diag(one.nu) @ columns + one.noise * np.eye(columns.shape[1])
    return np.linalg.inv(np.eye(len(one.psi)) + H.T @ np.linalg.solve(R, H))


@pytest.mark.parametrize("rows", [1, 3, 20])
def test_the_expected_error_is_that_of_dense_conditioning(rows):
    one = problem()
    columns = np.random.default_rng(1).normal(size=(12, rows)) / 5
    assert one.expected_error(columns) == pytest.approx(
        np.trace(one.target @ left(one, columns)), rel=1e-6
    )
    assert one.expected_error(1e-9 * columns) == pytest.approx(np.trace(one.target)), (
        "what is hardly told"
    )


def test_coefficients_are_those_of_the_posterior_mean():
    """h_j is what one more unit of a label at j adds to E[w]: differences of the dense mean."""
    one = problem(2)
    precision = np.eye(4) + (one.psi * (one.counts / one.nu)) @ one.psi.T
    by_hand = np.linalg.solve(precision, one.psi / one.nu)
    assert mean_coefficients(one.psi, one.counts, one.nu) == pytest.approx(by_hand)


@pytest.mark.parametrize("criterion", CRITERIA)
@settings(max_examples=6)
@given(st.integers(0, 10**6), st.sampled_from([1e-6, 0.1, 10.0, 1e6]))
def test_no_column_is_longer_than_one_and_one_nearly_is(criterion, seed, noise):
    one = problem(seed, noise=noise)
    columns, cloak = design_release(one, criterion)
    lengths = np.square(columns).sum(axis=1)
    assert lengths.max() <= 1
    assert lengths.max() > 1 - 1e-6
    assert (cloak is None) == (criterion is None)
    assert np.isfinite(columns).all()
    assert columns.shape[0] == 12
    assert 1 <= columns.shape[1] <= 4


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("noise", [1e-3, 1.0, 1e3])
def test_maps_are_as_smooth_as_is_best(criterion, noise):
    """Of the multiples of ν that are tried, none with the same kind of noise is expected to err
    much less.
    """
    one = problem(3, noise=noise)
    columns, _ = design_release(one, criterion)
    values, vectors = np.linalg.eigh(one.target)
    root = np.eye(4) if criterion is None else (vectors * np.sqrt(np.maximum(values, 0))).T

    def at(smoother):
        d = root @ mean_coefficients(one.psi, one.counts, smoother * one.nu)
        near = None if criterion is None else label_design.cloak(d, criterion, 1e-3)
        return one.expected_error(label_design._Map(d, near).columns)

    errors = [at(4.0**k) for k in range(8)]
    assert one.expected_error(columns) <= 1.02 * min(errors)
    if noise == 1e3 and criterion != "logdet":  # the smallest ellipsoid is the same in all units
        assert min(errors) < 0.999 * errors[0], "much noise asks for a smoother map"


def test_a_cloak_for_the_points_of_interest_errs_less_there():
    one = problem(4, noise=2.0)
    rank_one = replace(one, target=np.diag([1.0, 0, 0, 0]))
    errors = {
        criterion: rank_one.expected_error(design_release(rank_one, criterion)[0])
        for criterion in CRITERIA
    }
    assert errors["trace"] < 0.99 * errors[None]
    assert design_release(rank_one, "trace")[0].shape[1] == 1, "one number is of interest"


def test_directions_that_noise_drowns_are_left_out():
    one = problem(5)
    columns = np.zeros((12, 3))
    columns[0, 0] = 1.0
    columns[1, 1] = 0.5
    columns[2, 2] = 1e-9
    axes = one.informative_axes(columns)
    assert axes.shape == (3, 2)
    assert axes[2] == pytest.approx(np.zeros(2), abs=1e-6)
    assert axes.T @ axes == pytest.approx(np.eye(2))
    loud = replace(one, noise=1e9)
    assert loud.informative_axes(columns).shape == (3, 1), "the clearest one is always told"
    signal = (columns.T * one.counts) @ one.psi.T
    told = np.square(axes.T @ signal).sum(axis=1)
    assert told.min() > 1e-3 * one.noise


@pytest.mark.parametrize("criterion", CRITERIA)
def test_parts_of_a_map_have_errors_as_long_as_in_the_whole(criterion):
    """What is read off at the points of interest.

    Noise of one part is as far from the truth as in the whole release.
    """
    one = problem(6)
    d = mean_coefficients(one.psi, one.counts, one.nu)
    near = None if criterion is None else label_design.cloak(d, criterion, 1e-4)
    whole = label_design._Map(d, near)
    axes = np.linalg.qr(np.random.default_rng(0).normal(size=(4, 2)))[0]
    part = whole.part(axes)
    assert part.shape == (2, 12)
    back = axes if near is None else near.back @ axes
    inside = axes.T @ (d if near is None else near.whiten @ d)
    assert part.T @ part == pytest.approx((back @ inside).T @ (back @ inside))
    assert whole.columns @ whole.columns.T == pytest.approx(
        (d.T @ d / np.square(d).sum(axis=0).max())
        if near is None
        else d.T @ np.linalg.inv(near.back @ near.back.T) @ d,
        abs=1e-6,
    )
    assert math.sqrt(np.square(whole.columns).sum(axis=1).max()) <= 1
