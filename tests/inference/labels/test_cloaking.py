"""The cloak: feasible, near the optimum by its own bound, and what an independent solver finds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from reticent.inference.labels.cloaking import CRITERIA, cloak


def columns(r=3, n=12, seed=0):
    return np.random.default_rng(seed).normal(size=(r, n)) * np.array([3.0, 1.0, 0.2])[:r, None]


def reach(found, d):
    return np.square(found.whiten @ d).sum(axis=0)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_no_label_reaches_further_than_one_and_some_reach_it(criterion):
    d = columns()
    found = cloak(d, criterion, 1e-6)
    assert reach(found, d).max() == pytest.approx(1.0, abs=1e-9)
    assert found.gap <= 1e-6
    assert found.value >= found.bound
    np.testing.assert_allclose(found.whiten @ found.back, np.eye(3), atol=1e-9)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_an_independent_solver_finds_nothing_better(criterion):
    """M⁻¹ = LLᵀ, free.

    Made feasible by division: the value of every M that the search tries is an upper bound.
    """
    d = columns()
    lower = np.tril_indices(3)

    def value(v):
        root = np.zeros((3, 3))
        root[lower] = v
        inverse = root @ root.T
        M = np.linalg.inv(inverse) * np.einsum("ij,ik,kj->j", d, inverse, d).max()
        return np.trace(M) if criterion == "trace" else np.linalg.slogdet(M)[1]

    found = cloak(d, criterion, 1e-7)
    rng = np.random.default_rng(1)
    best = np.inf
    for _ in range(2):
        start = np.linalg.cholesky(np.linalg.inv(found.back @ found.back.T))[lower] * rng.uniform(
            0.8, 1.2, 6
        )
        tried = minimize(
            value,
            start,
            method="Nelder-Mead",
            options={"maxfev": 3000, "xatol": 1e-7, "fatol": 1e-8},
        )
        best = min(best, tried.fun)
    assert best >= found.bound - 1e-9
    assert best == pytest.approx(found.value, rel=0.02, abs=0.02)


def test_the_trace_cloak_disturbs_less_than_the_ellipsoid():
    d = columns()
    trace, logdet = (cloak(d, criterion, 1e-5) for criterion in CRITERIA)
    assert np.square(trace.back).sum() == pytest.approx(trace.value, rel=1e-9)
    assert np.square(trace.back).sum() < 0.99 * np.square(logdet.back).sum()
    assert (
        np.linalg.slogdet(logdet.back @ logdet.back.T)[1]
        < np.linalg.slogdet(trace.back @ trace.back.T)[1]
    )


def test_known_cases():
    """One label: M = ddᵀ. Orthogonal labels: each in its own direction, M = diag(d²)."""
    one = cloak(np.array([[3.0], [4.0]]))
    assert one.whiten.shape == (1, 2)
    np.testing.assert_allclose(one.back @ one.back.T, [[9, 12], [12, 16]], rtol=1e-6)
    both = cloak(np.diag([2.0, 5.0]), "trace", 1e-9)
    np.testing.assert_allclose(both.back @ both.back.T, np.diag([4.0, 25.0]), rtol=1e-6, atol=1e-9)


def test_equal_labels_and_labels_that_say_nothing():
    d = np.repeat(columns(2, 3), 4, axis=1)
    again = cloak(np.hstack([d, np.zeros((2, 5))]), "trace", 1e-6)
    assert again.value == pytest.approx(cloak(d[:, ::4], "trace", 1e-6).value, rel=1e-5)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_low_rank_is_found_and_stays_feasible(criterion):
    d = np.random.default_rng(2).normal(size=(30, 4)) @ columns(3, 40)[:3].repeat(2, axis=0)[:4]
    found = cloak(d, criterion)
    assert len(found.whiten) <= 3
    assert reach(found, d).max() <= 1 + 1e-9
    np.testing.assert_allclose(found.back @ (found.whiten @ d), d, atol=1e-5 * np.abs(d).max())


@pytest.mark.parametrize("criterion", CRITERIA)
@settings(max_examples=8)
@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(1, 9))
def test_cloaks_follow_rotations_and_units(criterion, seed, r, n):
    """M of turned and scaled columns is the turned and scaled M.

    And the order of the labels does not matter.
    """
    rng = np.random.default_rng(seed)
    d = rng.normal(size=(r, n))
    turn = np.linalg.qr(rng.normal(size=(r, r)))[0]
    plain = cloak(d, criterion, 1e-5)
    other = cloak(5 * turn @ d[:, rng.permutation(n)], criterion, 1e-5)
    rank = min(r, n)
    assert plain.whiten.shape == (rank, r)
    assert reach(plain, d).max() == pytest.approx(1.0, abs=1e-6)
    wider = 25 * plain.value if criterion == "trace" else plain.value + 2 * rank * np.log(5)
    assert other.value == pytest.approx(wider, rel=1e-4, abs=1e-4 * rank)
    assert plain.weight.sum() == pytest.approx(1)


def test_where_all_labels_reach_as_far_weights_are_those_of_the_optimum():
    """Conditions of Karush, Kuhn and Tucker.

    Whoever has weight reaches the limit, nobody goes beyond.
    """
    d = columns(3, 30, seed=4)
    for criterion in CRITERIA:
        found = cloak(d, criterion, 1e-7)
        far = reach(found, d)
        heavy = found.weight > 1e-3
        assert far[heavy] == pytest.approx(np.ones(heavy.sum()), abs=1e-3)
        assert far.max() <= 1 + 1e-9


def test_a_start_from_a_similar_cloak_ends_at_the_same_place():
    d = columns(3, 12, seed=5)
    near = cloak(d * 1.05, "trace", 1e-3)
    found = cloak(d, "trace", 1e-6, near)
    fresh = cloak(d, "trace", 1e-6)
    assert found.value == pytest.approx(fresh.value, rel=2e-6)
    assert found.back @ found.back.T == pytest.approx(fresh.back @ fresh.back.T, rel=1e-2, abs=1e-3)


def test_a_tolerance_is_kept():
    d = columns(3, 40, seed=6)
    for tolerance in (0.1, 1e-3):
        for criterion in CRITERIA:
            found = cloak(d, criterion, tolerance)
            off = found.value - found.bound
            assert found.gap == pytest.approx(
                off / found.value if criterion == "trace" else off / 3
            )
            assert found.gap <= tolerance
