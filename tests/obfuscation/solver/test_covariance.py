"""The covariance of raw data, whole or of low rank.

Everything it is asked, against dense matrices.
"""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel

from reticent.obfuscation.solver import covariance as obfuscation
from reticent.obfuscation.solver.covariance import (
    between,
    diagonal,
    observe,
    orthonormal_basis,
    pivots,
    positive_part,
    prior_variance,
    white_noise,
)
from reticent.obfuscation.solver.settings import SOLVER

SENSITIVE = np.array([[0.4], [0.55]])
KERNEL = ConstantKernel(2.0) * RBF(0.15)


def data(n):
    return np.linspace(0, 1, n)[:, None]


CASES = {
    "dense": (KERNEL, data(20), 0.01),
    "a variance each": (KERNEL, data(80), np.linspace(0.01, 0.1, 80)),
    "a matrix": (KERNEL, data(12), 0.05 * (np.eye(12) + 0.3)),
    "low rank": (KERNEL, data(120), 0.01),
    "rough": (Matern(0.05, nu=0.5), data(70), 0.01),
}


def dense(raw, kernel, x, noise):
    noise = np.diag(np.broadcast_to(noise, len(x))) if np.ndim(noise) < 2 else noise
    return kernel(x) + noise + raw.floor * np.eye(len(x))


@pytest.mark.parametrize(("kernel", "x", "noise"), CASES.values(), ids=CASES)
def test_it_is_the_kernel_and_the_noise_and_a_floor(kernel, x, noise):
    raw = observe(kernel, x, noise, SENSITIVE)
    n = len(x)
    exact = dense(raw, kernel, x, noise)
    Q = np.eye(n) if raw.basis is None else raw.basis
    assert pytest.approx(np.eye(Q.shape[1])) == Q.T @ Q
    found = Q @ raw.inner @ Q.T + raw.rest * (np.eye(n) - Q @ Q.T)
    assert found == pytest.approx(exact, abs=1e-9)
    assert np.linalg.eigvalsh(exact - found)[0] > -1e-12, "never more than it is"
    assert raw.floor == pytest.approx(prior_variance(kernel, x).mean() * SOLVER.floor)
    assert (raw.basis is not None) == (n == 120), "a smooth kernel at many places"
    cross = between(kernel, x, SENSITIVE)
    inside, outside = raw.into(cross)
    assert raw.out(inside) == pytest.approx(cross, abs=1e-6), (
        "the factor holds the sensitive points, too"
    )
    assert outside == pytest.approx(np.zeros(2), abs=1e-9)


@pytest.mark.parametrize(
    ("kernel", "x", "noise"), [CASES["dense"], CASES["low rank"]], ids=["dense", "low rank"]
)
def test_what_is_known_of_the_sensitive_values(kernel, x, noise, monkeypatch):
    """KᵀA⁻¹K with half of the floor, its diagonal both ways, and the likeliest mean."""
    raw = observe(kernel, x, noise, SENSITIVE)
    rng = np.random.default_rng(0)
    factor = rng.normal(size=(len(raw.inner), 2))
    A = (
        dense(raw, kernel, x, noise)
        - raw.floor / 2 * np.eye(len(x))
        + raw.out(factor) @ raw.out(factor).T
    )
    for columns in (between(kernel, x, SENSITIVE), rng.normal(size=(len(x), 3))):
        exact = columns.T @ np.linalg.solve(A, columns)
        assert raw.reductions(columns, factor) == pytest.approx(np.diag(exact), rel=1e-6)
        if raw.basis is None:
            assert raw.reduced(columns, factor) == pytest.approx(exact, rel=1e-6, abs=1e-9)
        with monkeypatch.context() as patch:
            patch.setattr(obfuscation, "SOLVER", replace(SOLVER, lanczos_dimension=1))
            assert raw.reductions(columns, factor) == pytest.approx(np.diag(exact), rel=1e-6)
    inverse = np.linalg.inv(A + raw.floor / 2 * np.eye(len(x)))
    w = rng.normal(size=len(x))
    expected = inverse.sum(axis=0) @ w / inverse.sum()
    assert raw.mean(w, raw.out(factor)) == pytest.approx(expected, rel=1e-6, abs=1e-9)
    assert raw.mean(np.full(len(x), 3.5), raw.out(factor)) == pytest.approx(3.5)


@pytest.mark.parametrize("case", ["dense", "low rank"])
def test_another_floor(case):
    raw = observe(*CASES[case], SENSITIVE)
    more = raw.with_floor(0.3)
    assert more.floor == 0.3
    assert more.inner - raw.inner == pytest.approx((0.3 - raw.floor) * np.eye(len(raw.inner)))
    assert more.rest - raw.rest == pytest.approx(0.3 - raw.floor)


def test_many_rough_records_are_refused(monkeypatch):
    monkeypatch.setattr(obfuscation, "SOLVER", replace(SOLVER, max_dense_records=65))
    with pytest.raises(ValueError, match="70 records need a kernel that is smooth"):
        observe(*CASES["rough"], SENSITIVE)
    assert observe(*CASES["low rank"], SENSITIVE).basis is not None


@pytest.mark.parametrize("most", [3, 60])
def test_pivots_stop_at_a_number_or_where_next_to_nothing_is_left(most):
    lower, chosen, left = pivots(KERNEL, data(50), left_out=1e-5, most=most)
    rest = KERNEL(data(50)) - lower @ lower.T
    assert len(set(chosen)) == len(chosen) == lower.shape[1]
    assert left == pytest.approx(np.trace(rest), rel=1e-5)
    assert np.linalg.eigvalsh(rest)[0] > -1e-10
    assert lower[chosen[0]] == pytest.approx([np.sqrt(2), *np.zeros(lower.shape[1] - 1)])
    if most == 3:
        assert len(chosen) == 3
    else:
        assert np.diag(rest).max() <= 2e-5
        assert len(chosen) < 20


def test_white_noise_of_a_kernel():
    class Growing(WhiteKernel):
        def diag(self, X):
            return self.noise_level * X[:, 0]

    x = np.array([[1.0], [2.0], [4.0]])
    assert white_noise(RBF(0.3) + WhiteKernel(0.2), x) == pytest.approx(0.2)
    assert isinstance(white_noise(RBF(0.3), x), float)
    assert white_noise(RBF(0.3) + Growing(0.2), x) == pytest.approx([0.2, 0.4, 0.8])
    many = np.linspace(0, 1, 150)[:, None]
    assert prior_variance(KERNEL + WhiteKernel(1.0), many) == pytest.approx(np.full(150, 2.0))


def test_the_positive_part_is_that_of_the_spectrum():
    rng = np.random.default_rng(1)
    u = 3 * rng.normal(size=(10, 4))
    root = rng.normal(size=(10, 10))
    m = root @ root.T / 3
    found = positive_part(u, m)
    values, vectors = np.linalg.eigh(u @ u.T - m)
    assert found @ found.T == pytest.approx((vectors * np.maximum(values, 0)) @ vectors.T)
    assert found.shape[1] == (values > 0).sum() <= 4
    assert positive_part(u * 1e-9, m + np.eye(10)).shape == (10, 0)


def test_directions_without_what_rounding_has_made():
    rng = np.random.default_rng(2)
    block = rng.normal(size=(8, 2))
    alike = np.hstack([block, block @ rng.normal(size=(2, 3))])
    q = orthonormal_basis(alike)
    assert q.shape == (8, 2)
    assert q @ q.T @ block == pytest.approx(block)
    assert orthonormal_basis(1e-15 * block, 1.0).shape == (8, 0)
    assert orthonormal_basis(1e-15 * block).shape == (8, 2), "small, but nothing larger is there"


def test_independent_noise_is_least_and_its_bound_near():
    """Feasible, with a bound.

    And taking from any one variance breaks a constraint or is nothing.
    """
    x = data(7)
    m = RBF(0.3)(x) + 0.02 * np.eye(7)
    c = RBF(0.3)(x, SENSITIVE) / np.sqrt(0.5)
    v, bound = diagonal(m, c)

    def reached(v):
        return np.einsum("ij,ij->j", c, np.linalg.solve(m + np.diag(v), c)).max()

    assert v.min() >= 0
    assert reached(v) <= 1
    assert bound <= v.sum() <= bound * (1 + 1e-6)
    for j in np.flatnonzero(v > 0.05 * v.max()):
        assert reached(v * np.where(np.arange(7) == j, 0.9, 1.0)) > 1
    again, _ = diagonal(4 * m, 2 * c)
    assert again == pytest.approx(4 * v, abs=1e-3)
