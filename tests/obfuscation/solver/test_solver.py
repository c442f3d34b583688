"""The noise itself.

The paper's examples to six digits, an independent solver, random problems, sizes that a test can
bear.
"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel

from reticent.obfuscation.solver import barrier as obfuscation_barrier
from reticent.obfuscation.solver import covariance as obfuscation
from reticent.obfuscation.solver import spectral_density as obfuscation_spectra
from reticent.obfuscation.solver.certificate import solve
from reticent.obfuscation.solver.constraints import cells, promise
from reticent.obfuscation.solver.covariance import (
    between,
    diagonal,
    observe,
    positive_part,
    prior_variance,
)
from reticent.obfuscation.solver.settings import SOLVER
from reticent.obfuscation.solver.trace_minimization import dual_bound, weak

K = RBF(np.sqrt(1 / 20))  # exp(−10 (x − y)²)
X = np.arange(1, 10)[:, None] / 10


def problem(sensitive, xi, kernel=K, x=X, noise=0.0):
    s = np.asarray(sensitive, dtype=float)[:, None]
    raw = observe(kernel, x, noise, s)
    return raw, promise(kernel, s, np.broadcast_to(np.asarray(xi, dtype=float), len(s)), None, 0)


def solved(sensitive, promised, solution="weak", **options):
    raw, made = problem(sensitive, promised)
    return raw, solve(K, X, raw, made, solution=solution, **options)


def variance(factor, at, floor=0.0):
    a = between(K, X, X) + factor @ factor.T + floor * np.eye(len(X))
    c = between(K, X, np.asarray(at)[:, None])
    return 1 - np.einsum("ij,ij->j", c, np.linalg.solve(a, c))


def test_example_1():
    _, found = solved([0.5], 0.5)
    assert found.certificate.trace == pytest.approx(3.545614, abs=5e-7)
    assert variance(found.factor, [0.4, 0.5, 0.6]) == pytest.approx(
        [0.378685, 0.5, 0.378685], abs=1e-6
    )
    assert found.certificate.rank == 1
    _, apart = solved([0.5], 0.5, "diagonal")
    assert apart.certificate.trace == pytest.approx(20.0729, abs=5e-5)


def test_example_2():
    _, weakly = solved([0.4, 0.6], 0.5)
    assert weakly.certificate.trace == pytest.approx(5.329920, abs=5e-7)
    assert weakly.certificate.gap < 1e-6
    assert solved([0.4, 0.6], 0.5, "diagonal")[1].certificate.trace == pytest.approx(
        24.3928, abs=5e-5
    )

    def strong(c):
        return solved([0.4, 0.6], 0.5, "strong", xi=np.array([[0.5, c], [c, 0.5]]))[
            1
        ].certificate.trace

    assert strong(0.39150) == pytest.approx(5.329920, abs=1e-6)
    assert strong(0.45) == pytest.approx(5.58829, abs=1e-5)
    assert strong(0.171) > strong(0.3) > strong(0.39150)
    for outside in (np.exp(-0.4) - 0.5 - 1e-4,):
        with pytest.raises(ValueError, match="negative eigenvalue"):
            strong(outside)


@pytest.mark.parametrize(
    ("points", "solution"),
    [([0.5], "weak"), ([0.4, 0.6], "weak"), ([0.3, 0.45, 0.8], "weak"), ([0.4, 0.6], "diagonal")],
)
def test_an_independent_solver_agrees(points, solution):
    cp = pytest.importorskip("cvxpy")
    raw, made = problem(points, 0.5)
    found = solve(K, X, raw, made, solution=solution)
    m = between(K, X, X)
    c = between(K, X, made.at) / np.sqrt(0.5)
    sigma = (
        cp.Variable((9, 9), PSD=True)
        if solution == "weak"
        else cp.diag(cp.Variable(9, nonneg=True))
    )
    constraints = [sigma + m - np.outer(c[:, i], c[:, i]) >> 0 for i in range(len(points))]
    cp.Problem(cp.Minimize(cp.trace(sigma)), constraints).solve(solver="CLARABEL")
    assert np.abs(found.factor @ found.factor.T - sigma.value).max() < 1e-5 * (
        1 if solution == "weak" else 10
    )


@settings(max_examples=6, deadline=None)
@given(st.integers(0, 10**6))
def test_random_problems(seed):
    rng = np.random.default_rng(seed)
    n = rng.integers(1, 30)
    g = rng.integers(1, 6)
    x = rng.uniform(size=(n, 1))
    s = rng.uniform(size=(g, 1))
    kernel = [RBF(0.2), Matern(0.3, nu=1.5), Matern(0.2, nu=0.5), 3.0 * RBF(0.1)][rng.integers(4)]
    noise = [0.0, 0.01, rng.uniform(0.01, 0.1, n)][rng.integers(3)]
    scale = prior_variance(kernel, s)[0]
    xi = scale * rng.uniform(0.05, 0.9, g)
    raw = observe(kernel, x, noise, s)
    made = promise(kernel, s, xi, None, 0)
    weakly = solve(kernel, x, raw, made, solution="weak")
    a = (
        between(kernel, x, x)
        + np.diag(np.broadcast_to(noise, n))
        + weakly.factor @ weakly.factor.T
        + weakly.floor * np.eye(n)
    )
    c = between(kernel, x, s)
    attained = prior_variance(kernel, s) - np.einsum("ij,ij->j", c, np.linalg.solve(a, c))
    assert (attained >= xi - 1e-9 * scale).all()
    assert weakly.certificate.held
    assert weakly.certificate.gap < 1e-6 or weakly.certificate.trace < 1e-5 * scale
    root = np.sqrt(xi.min() / scale)
    xi_matrix = root**2 * between(kernel, s, s) + np.diag(xi - xi.min())
    if np.linalg.eigvalsh(between(kernel, s, s) - xi_matrix)[0] < 1e-9:
        return  # not every Ξ with these variances is feasible
    strongly = solve(kernel, x, raw, made, solution="strong", xi=xi_matrix)
    assert strongly.certificate.held
    assert weakly.certificate.trace <= strongly.certificate.trace * (1 + 1e-6) + 1e-8 * scale


def test_the_optimum_does_not_depend_on_the_start():
    raw, made = problem([0.3, 0.5, 0.62], [0.5, 0.4, 0.6])
    c = between(K, X, made.at) / np.sqrt(1 - made.promised)
    sigmas = []
    rng = np.random.default_rng(0)
    for _ in range(3):
        b = rng.normal(size=(9, 9))
        start = b @ b.T + 40 * np.eye(9)
        found = obfuscation_barrier.follow(raw.inner, c, start, 1.0, 1e8)
        sigmas.append(found.s)
    assert max(np.abs(one - sigmas[0]).max() for one in sigmas[1:]) < 1e-6
    assert np.abs(sigmas[0] - weak(raw.inner, c).factor @ weak(raw.inner, c).factor.T).max() < 1e-4


def test_newton_step_is_that_of_the_dense_hessian():
    rng = np.random.default_rng(0)
    e = rng.normal(size=(6, 6))
    d = rng.normal(size=(6, 3))
    e = e @ e.T / 6 + 0.05 * np.eye(6)
    s = 30 * np.eye(6)
    t = 2.0
    _, state = obfuscation_barrier.barrier_value(e, d, s, t)
    step, decrement = obfuscation_barrier.newton_step(state, t)

    def gradient(s):
        u = np.linalg.solve(e + s, d)
        return t * np.eye(6) - np.linalg.inv(s) - (u / (1 - (d * u).sum(0))) @ u.T

    tiny = 1e-6
    change = (gradient(s + tiny * step) - gradient(s - tiny * step)) / (2 * tiny)
    assert np.abs(change + gradient(s)).max() < 1e-5 * np.abs(gradient(s)).max()
    assert decrement == pytest.approx(-(gradient(s) * step).sum())


def test_dual_bound_is_a_bound_for_any_vectors():
    raw, made = problem([0.3, 0.5], 0.5)
    c = between(K, X, made.at) / np.sqrt(0.5)
    best = weak(raw.inner, c)
    rng = np.random.default_rng(1)
    for _ in range(20):
        assert dual_bound(raw.inner, c, rng.normal(size=(9, 2))) <= (best.factor**2).sum()
    assert best.bound == pytest.approx((best.factor**2).sum(), rel=1e-6)


@pytest.mark.parametrize("kernel", [RBF(0.05), Matern(0.1, nu=1.5)])
def test_larger_problems(kernel):
    """Low rank and a subspace, each with the certificate of the whole problem."""
    x = np.linspace(0, 1, 300)[:, None]
    s = np.linspace(0.4, 0.5, 8)[:, None]
    raw = observe(kernel, x, 0.01, s)
    assert isinstance(kernel, Matern) or raw.basis is not None
    found = solve(kernel, x, raw, promise(kernel, s, np.full(8, 0.4), None, 0), solution="weak")
    assert found.certificate.gap < 1e-6
    a = between(kernel, x, x) + 0.01 * np.eye(300) + found.factor @ found.factor.T
    c = between(kernel, x, s)
    assert (1 - np.einsum("ij,ij->j", c, np.linalg.solve(a, c))).min() >= 0.4 - 1e-9


def test_general_noise():
    rng = np.random.default_rng(0)
    b = rng.normal(size=(150, 150))
    v = 0.1 * b @ b.T / 150 + 0.01 * np.eye(150)
    x = np.linspace(0, 1, 150)[:, None]
    s = np.array([[0.4], [0.5]])
    raw = observe(RBF(0.1), x, v, s)
    found = solve(RBF(0.1), x, raw, promise(RBF(0.1), s, np.full(2, 0.5), None, 0), solution="weak")
    c = between(RBF(0.1), x, s)
    a = between(RBF(0.1), x, x) + v + found.factor @ found.factor.T
    assert (1 - np.einsum("ij,ij->j", c, np.linalg.solve(a, c))).min() >= 0.5 - 1e-9
    assert found.certificate.gap < 1e-6


@pytest.mark.parametrize(
    ("kernel", "scale", "noise"), [(Matern(0.1, nu=1.5), 1.5, 0.01), (RBF(0.1), 3.0, 1e-6)]
)
def test_lanczos_finds_the_whole_positive_part(kernel, scale, noise, monkeypatch):
    x = np.linspace(0, 1, 400)[:, None]
    m = between(kernel, x, x) + noise * np.eye(400)
    u = scale * between(kernel, x, np.linspace(0.4, 0.6, 6)[:, None])
    dense = positive_part(u, m)
    monkeypatch.setattr(obfuscation, "SOLVER", replace(SOLVER, lanczos_dimension=50))
    assert obfuscation.few_positive(u, m) is not None
    few = positive_part(u, m)
    assert few.shape == dense.shape
    assert np.abs(few @ few.T - dense @ dense.T).max() < 1e-9 * np.abs(dense @ dense.T).max()


def test_lanczos_without_anything_positive_and_with_columns_alike():
    x = np.linspace(0, 1, 300)[:, None]
    m = between(Matern(0.1, nu=0.5), x, x) + 0.01 * np.eye(300)
    u = between(RBF(0.1), x, np.array([[0.5], [0.5]]))
    values, _ = obfuscation.few_positive(1e-3 * u, m)
    assert not (values > 0).any()
    values, vectors = obfuscation.few_positive(3 * u, m)
    exact = np.linalg.eigvalsh(9 * u @ u.T - m)
    assert values[values > 0] == pytest.approx(exact[exact > 0], rel=1e-9)
    assert vectors.shape[1] == len(values)


def test_incomplete_factor_is_below_the_kernel():
    x = np.linspace(0, 1, 200)[:, None]
    lower, chosen, left = obfuscation.pivots(RBF(0.1), x, left_out=1e-6, most=100)
    rest = between(RBF(0.1), x, x) - lower @ lower.T
    assert len(chosen) < 40
    assert np.linalg.eigvalsh(rest)[0] > -1e-12
    assert np.trace(rest) == pytest.approx(left, rel=1e-6)


def test_white_noise_is_no_part_of_the_function():
    kernel = RBF(0.2) + WhiteKernel(0.3)
    assert prior_variance(kernel, X) == pytest.approx(np.ones(9))
    assert between(kernel, X, X)[0, 0] == pytest.approx(1)


def test_spectra_integrate_to_the_kernel():
    for kernel, d in (
        (RBF(0.3), 1),
        (Matern(0.2, nu=1.5), 1),
        (2.0 * RBF(0.5), 2),
        (Matern(0.4, nu=2.5), 3),
    ):
        w, weights = obfuscation_spectra.radial_frequencies(kernel, d)
        density = obfuscation_spectra.spectral_density(kernel, w, d)
        for r in (0.0, 0.1, 0.4):
            wave = obfuscation_spectra.radial_wave(w * r, d)
            exact = between(kernel, np.zeros((1, d)), np.eye(d)[:1] * r)[0, 0]
            assert weights @ (density * wave) == pytest.approx(exact, abs=1e-6)


def test_example_3():
    """H = c·exp(−θ‖x − y‖²) fits below K = exp(−θ₀‖x − y‖²) iff c^(2/d) θ₀ ≤ θ ≤ θ₀."""
    theta0 = 10.0

    def ratio(c, theta, d):
        hidden = ConstantKernel(c) * RBF(np.sqrt(1 / (2 * theta)))
        return obfuscation_spectra.check_below(RBF(np.sqrt(1 / (2 * theta0))), hidden, d)

    for d in (1, 2, 3):
        assert ratio(0.4, 0.4 ** (2 / d) * theta0 * 1.0001, d) <= 1
        assert ratio(0.4, theta0, d) == pytest.approx(0.4)
        with pytest.raises(ValueError, match="frequency"):
            ratio(0.4, 0.4 ** (2 / d) * theta0 * 0.99, d)
        with pytest.raises(ValueError, match="frequency"):
            ratio(0.4, theta0 * 1.01, d)


def test_the_integral_of_proposition_2():
    hidden = ConstantKernel(0.3) * RBF(np.sqrt(1 / 16))
    g = obfuscation_spectra.everywhere(K, hidden, X)

    def part(w, r):
        k = np.exp(-(w**2) / 40) / np.sqrt(20)
        h = 0.3 * np.exp(-(w**2) / 32) / np.sqrt(16)
        return np.cos(w * r) * k**2 / (k - h) * 2 / np.sqrt(2 * np.pi)

    for j in (0, 3, 8):
        exact = quad(part, 0, 60, args=(0.1 * j,), limit=200)[0]
        assert g[0, j] == pytest.approx(exact, abs=1e-7)
    assert np.linalg.eigvalsh(g - between(K, X, X))[0] > -1e-9
    with pytest.raises(ValueError, match="touches"):
        obfuscation_spectra.everywhere(K, ConstantKernel(0.9) * RBF(np.sqrt(1 / (20 * 0.9**2))), X)
    with pytest.raises(ValueError, match="not known"):
        obfuscation_spectra.everywhere(Matern([0.1, 0.2]), hidden, X)


def test_cells_cover_their_boxes():
    boxes = np.array([[(0.0, 1.0), (2.0, 5.0)], [(3.0, 3.0), (0.0, 1.0)]])
    at, half, owner = cells(boxes)
    assert 5000 <= len(at) <= 10_000
    for number, box in enumerate(boxes):
        mine = at[owner == number]
        reach = half[owner == number]
        assert (mine - reach).min(axis=0) == pytest.approx(box[:, 0])
        assert (mine + reach).max(axis=0) == pytest.approx(box[:, 1])


def test_independent_noise_is_needed_only_where_something_is_hidden():
    raw, made = problem([0.5], 1e-6)
    v, bound = diagonal(raw.inner + 10 * np.eye(9), between(K, X, made.at))
    assert v.sum() == bound == 0
