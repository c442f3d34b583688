"""The barrier method.

Its linear system solved densely, gradients by differences, and centres by duality.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reticent.obfuscation.solver.barrier import (
    Centre,
    barrier_value,
    centre,
    follow,
    solve_newton_system,
)


def problem(seed=0, k=5, a=3):
    rng = np.random.default_rng(seed)
    e = rng.normal(size=(k, k))
    d = rng.normal(size=(k, a))
    e = e @ e.T / k + 0.05 * np.eye(k)
    start = 2.0 * np.square(d).sum(axis=0).max() * np.eye(k)
    return e, d, start


def barrier(e, d, s, t):
    h = np.einsum("ij,ij->j", d, np.linalg.solve(e + s, d))
    return t * np.trace(s) - np.linalg.slogdet(s)[1] - np.log(1 - h).sum()


@settings(max_examples=20)
@given(st.integers(0, 10**6), st.integers(1, 5), st.integers(1, 6))
def test_the_newton_system_is_solved_as_a_dense_one(seed, k, a):
    """N + ΓN·diag(ρ, 0) + diag(ρ, 0)·NΓ + R diag(rᵢᵀN₁₁rᵢ)Rᵀ = right, as k² equations."""
    rng = np.random.default_rng(seed)
    m = min(k, a)
    root = rng.normal(size=(k, k))
    gamma = root @ root.T / k
    rho = np.sort(rng.uniform(0.1, 3, m))[::-1]
    r = np.sqrt(rho)[:, None] * np.linalg.qr(rng.normal(size=(a, a)))[0][:m]
    right = rng.normal(size=(k, k))
    right = right + right.T
    wide = np.zeros((k, a))
    wide[:m] = r
    whole = np.zeros(k)
    whole[:m] = rho

    def left(n):
        return (
            n
            + gamma @ n * whole
            + (gamma @ n * whole).T
            + (wide * np.einsum("ij,ik,kj->j", wide, n, wide)) @ wide.T
        )

    def symmetric(i, j):
        unit = np.zeros((k, k))
        unit[i, j] = unit[j, i] = 1.0
        return unit

    i, j = np.triu_indices(k)
    matrix = np.array([left(symmetric(*at))[i, j] for at in zip(i, j, strict=True)]).T
    exact = np.zeros((k, k))
    exact[i, j] = exact[j, i] = np.linalg.solve(matrix, right[i, j])
    assert solve_newton_system(gamma, rho, r, right) == pytest.approx(exact, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("t", [0.1, 10.0])
def test_a_centre_is_where_the_barrier_is_least(t):
    e, d, start = problem(1)
    found = centre(e, d, start, t)
    least = barrier(e, d, found.s, t)
    rng = np.random.default_rng(2)
    for _ in range(30):
        step = rng.normal(size=(5, 5))
        assert (
            barrier(e, d, found.s + 1e-3 * (step + step.T) * np.trace(found.s) / 5, t)
            > least - 1e-6
        )
    assert barrier_value(e, d, found.s, t)[0] == pytest.approx(least)
    assert found.u == pytest.approx(np.linalg.solve(e + found.s, d))
    assert found.h == pytest.approx(np.einsum("ij,ij->j", d, found.u))
    assert found.t == t


def test_a_start_that_breaks_a_constraint_is_refused():
    e, d, _ = problem()
    for wrong in (1e-6 * np.eye(5), -np.eye(5)):
        with pytest.raises(ValueError, match="strictly feasible"):
            centre(e, d, wrong, 1.0)
    assert barrier_value(e, d, 1e-6 * np.eye(5), 1.0) == (np.inf, None)


@pytest.mark.parametrize("last", [1e2, 1e4, 1e6])
def test_the_path_comes_as_near_as_its_parameter_says(last):
    """Multipliers and vectors are dual feasible, nearly.

    Their bound is within (k + a)/t of the trace.
    """
    e, d, start = problem(3)
    found = follow(e, d, start, 1.0, last)
    assert found.t == last
    y = found.u * np.sqrt(found.multipliers)
    assert np.linalg.eigvalsh(y @ y.T)[-1] < 1 + 0.01
    y /= max(1.0, np.linalg.norm(y, 2))
    bound = np.square(np.einsum("ij,ij->j", d, y)).sum() - np.einsum("ij,ij->", y, e @ y)
    assert bound <= np.trace(found.s)
    assert np.trace(found.s) - bound < 1.5 * (5 + 3) / last + 1e-9
    assert found.h.max() < 1


def test_multipliers():
    one = Centre(np.eye(1), 4.0, np.array([0.5, 0.75]), np.eye(1))
    assert one.multipliers == pytest.approx([0.5, 1.0])


def test_one_constraint_has_a_closed_form():
    """The positive part of ddᵀ − E."""
    e, d, start = problem(4, a=1)
    values, vectors = np.linalg.eigh(d @ d.T - e)
    exact = (vectors * np.maximum(values, 0)) @ vectors.T
    assert follow(e, d, start, 1.0, 1e8).s == pytest.approx(exact, abs=1e-5)


def test_a_path_that_is_at_its_end_stays_there():
    e, d, start = problem(5)
    assert follow(e, d, start, 10.0, 1.0).t == 1.0
