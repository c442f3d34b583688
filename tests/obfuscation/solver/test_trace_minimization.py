"""The weak problem.

Closed forms, units, rotations, working sets and subspaces, all with the same answer and a bound.
"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF, Matern

from reticent.obfuscation.solver import trace_minimization as obfuscation_weak
from reticent.obfuscation.solver.settings import SOLVER
from reticent.obfuscation.solver.trace_minimization import dual_bound, weak


def problem(n=12, g=3, kernel=None, noise=0.01, promised=0.5):
    kernel = kernel or RBF(0.15)
    x = np.linspace(0, 1, n)[:, None]
    s = np.linspace(0.35, 0.65, g)[:, None]
    return kernel(x) + noise * np.eye(n), kernel(x, s) / np.sqrt(1 - promised)


def noise_of(found):
    return found.factor @ found.factor.T


def reached(m, c, S):
    return np.einsum("ij,ij->j", c, np.linalg.solve(m + S, c))


def test_what_is_hidden_already_needs_no_noise():
    m, c = problem(promised=1e-6)
    found = weak(m + 50 * np.eye(12), c)
    assert found.factor.shape == (12, 0)
    assert found.bound == 0


def test_one_point_has_the_closed_form():
    m, c = problem(g=1)
    values = np.linalg.eigvalsh(c @ c.T - m)
    exact = values[values > 0].sum()
    assert np.trace(noise_of(weak(m, c))) == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize("g", [2, 5, 40])
def test_the_answer_is_feasible_and_its_bound_is_near(g):
    m, c = problem(g=g)
    found = weak(m, c)
    assert reached(m, c, noise_of(found)).max() <= 1 + 1e-8
    trace = np.trace(noise_of(found))
    assert found.bound <= trace * (1 + 1e-9)
    assert found.bound == pytest.approx(trace, rel=1e-6)


@settings(max_examples=3)
@given(st.integers(0, 10**6), st.floats(-3, 3))
def test_units_and_rotations_do_not_matter(seed, size):
    m, c = problem(6, 2)
    turn = np.linalg.qr(np.random.default_rng(seed).normal(size=(6, 6)))[0]
    scale = 10.0**size
    plain = weak(m, c)
    other = weak(scale * turn @ m @ turn.T, np.sqrt(scale) * turn @ c)
    assert turn.T @ noise_of(other) @ turn / scale == pytest.approx(noise_of(plain), abs=2e-4)
    assert other.bound == pytest.approx(scale * plain.bound, rel=1e-6)


def test_more_to_hide_needs_more_noise_and_the_same_twice_does_not():
    m, c = problem(g=4)
    traces = [np.trace(noise_of(weak(m, c[:, :k]))) for k in (2, 3, 4)]
    assert traces == sorted(traces)
    twice = np.trace(noise_of(weak(m, np.hstack([c, c[:, ::-1]]))))
    assert twice == pytest.approx(traces[-1], rel=1e-6)
    assert np.trace(noise_of(weak(m + 0.1 * np.eye(12), c))) < traces[-1], (
        "noise that is there already helps"
    )


@pytest.mark.parametrize("kernel", [RBF(0.15), Matern(0.2, nu=1.5)], ids=str)
def test_a_subspace_holds_the_answer_of_the_whole_space(kernel, monkeypatch):
    m, c = problem(40, 6, kernel)
    whole = weak(m, c)
    monkeypatch.setattr(obfuscation_weak, "SOLVER", replace(SOLVER, whole_dimension=5))
    asked = []
    basis = obfuscation_weak._basis
    monkeypatch.setattr(
        obfuscation_weak, "_basis", lambda *given: (asked.append(basis(*given)), asked[-1])[1]
    )
    part = weak(m, c)
    assert np.trace(noise_of(part)) == pytest.approx(np.trace(noise_of(whole)), rel=1e-6)
    assert noise_of(part) == pytest.approx(noise_of(whole), abs=2e-3)
    assert reached(m, c, noise_of(part)).max() <= 1 + 1e-8
    assert part.bound == pytest.approx(whole.bound, rel=1e-6)
    for one in asked:
        assert one.T @ one == pytest.approx(np.eye(one.shape[1]))


def test_a_problem_in_a_subspace_is_the_same_problem_there():
    """d and E in the place of c and M.

    Constraints are those of the whole space, whatever S the span holds.
    """
    m, c = problem(10, 3)
    basis = np.linalg.qr(np.random.default_rng(0).normal(size=(10, 4)))[0]
    factored = obfuscation_weak.cho_factor(m, lower=True)
    part = obfuscation_weak._Subproblem.of(
        basis, m, factored, c, np.einsum("ij,ij->j", c, np.linalg.solve(m, c))
    )
    root = np.random.default_rng(1).normal(size=(4, 4))
    inside = root @ root.T
    h = np.einsum("ij,ij->j", part.d, np.linalg.solve(part.e + inside, part.d))
    exact = reached(m, c, basis @ inside @ basis.T)
    assert h + 1 - part.room == pytest.approx(exact)
    whole = obfuscation_weak._Subproblem.of(np.eye(10), m, factored, c, exact)
    assert (whole.e is m, whole.d is c, whole.room.tolist()) == (True, True, [1, 1, 1])


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.floats(-3, 3))
def test_every_vector_gives_a_bound(seed, size):
    m, c = problem(8, 2)
    y = np.random.default_rng(seed).normal(size=(8, 2)) * 10.0**size
    assert dual_bound(m, c, y) <= 1.0000001 * np.trace(noise_of(_BEST))


_BEST = weak(*problem(8, 2))


def test_vectors_are_cut_to_length_one():
    y = np.diag([3.0, 0.5])
    assert obfuscation_weak._cut(y) == pytest.approx(np.diag([1.0, 0.5]))
    m = np.eye(2)
    c = np.array([[2.0], [0.0]])
    assert dual_bound(m, c, np.array([[7.0], [0.0]])) == pytest.approx(4 - 1), (
        "Y = (1, 0): (c·y)² − yᵀMy"
    )


def test_working_sets():
    assert obfuscation_weak._evenly_spread(3).tolist() == [0, 1, 2]
    many = obfuscation_weak._evenly_spread(1000)
    assert (many[0], many[-1], len(many)) == (0, 999, 12)
    assert obfuscation_weak._merged(
        np.array([1.0, 10.0]), np.array([1.1, 3.0, 3.1, 12.5])
    ).tolist() == [1, 10, 3, 12.5]
    h = np.array([2.0, 1.9, 3.0, 1.0, 1.5])
    c = np.eye(4)[:, [0, 0, 1, 2, 3]] * np.sqrt(h)
    assert obfuscation_weak._apart(h, c, c, np.array([4])) == [2, 0], (
        "the worst first, no twin, none that holds"
    )
    assert obfuscation_weak._apart(h, c, c, np.array([0, 2])) == [1, 4]
