"""From a promise to noise.

Each way against the attacker's dense formula, scaling up, and what the certificate says.
"""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from reticent.obfuscation.parameters import SOLUTIONS
from reticent.obfuscation.solver import certificate as obfuscation_solution
from reticent.obfuscation.solver.certificate import _checked, solve
from reticent.obfuscation.solver.constraints import cells, promise
from reticent.obfuscation.solver.covariance import observe
from reticent.obfuscation.solver.settings import SOLVER

K = ConstantKernel(2.0) * RBF(0.2)
X = np.linspace(0, 1, 15)[:, None]
POINTS = np.array([[0.4], [0.52]])


def asked(at=POINTS, promised=0.6, x=X, noise=0.01):
    return observe(K, x, noise, at), promise(K, at, np.full(len(at), promised), None, 0)


def solved(solution, x=X, **how):
    raw, made = asked(x=x)
    return solve(K, x, raw, made, solution=solution, **how)


def known(found, at, x=X, noise=0.01):
    """Covariance of f(at) given what is released."""
    A = K(x) + noise * np.eye(len(x)) + found.factor @ found.factor.T + found.floor * np.eye(len(x))
    c = K(x, at)
    return K(at) - c.T @ np.linalg.solve(A, c)


WAYS = {
    "weak": {},
    "diagonal": {},
    "strong": {"xi": np.array([[0.6, 0.5], [0.5, 0.6]])},
    "kernel": {"share": 0.3},
    "uniform": {"share": 0.3},
}


@pytest.mark.parametrize("solution", SOLUTIONS)
def test_every_way_keeps_the_promise_and_certifies_it(solution):
    found = solved(solution, **WAYS[solution])
    certificate = found.certificate
    attained = np.diag(known(found, POINTS))
    assert attained.min() >= 0.6 * (1 - 1e-9)
    assert found.attained == pytest.approx(attained, rel=1e-6)
    assert certificate.held
    assert certificate.solution == solution
    assert certificate.trace == pytest.approx(np.square(found.factor).sum() + 15 * found.floor)
    assert certificate.ratio == pytest.approx(certificate.attained / certificate.promised)
    assert certificate.attained == pytest.approx(attained.min(), rel=1e-6)
    assert (certificate.checked, certificate.regions, certificate.promised) == (2, 0, 0.6)
    assert certificate.to_dict()["held"] is True
    assert -1e-9 <= certificate.gap < 2e-6


def test_stronger_promises_cost_more():
    traces = {
        solution: solved(solution, **WAYS[solution]).certificate.trace for solution in SOLUTIONS
    }
    assert traces["weak"] <= traces["strong"] * (1 + 1e-6)
    assert traces["weak"] < traces["diagonal"]
    assert traces["kernel"] < traces["uniform"], "everywhere is more than at two points"


def test_a_strong_promise_is_about_combinations():
    xi = WAYS["strong"]["xi"]
    found = solved("strong", xi=xi)
    assert np.linalg.eigvalsh(known(found, POINTS) - xi)[0] > -1e-7
    weakly = solved("weak")
    assert np.linalg.eigvalsh(known(weakly, POINTS) - xi)[0] < -1e-3


def test_without_xi_promised_variances_have_the_priors_correlations():
    xi = 0.6 / 2 * K(POINTS)
    assert solved("strong").factor @ solved("strong").factor.T == pytest.approx(
        solved("strong", xi=xi).factor @ solved("strong", xi=xi).factor.T, abs=1e-6
    )
    assert solved("kernel", share=0.3).certificate.trace == pytest.approx(
        solved("strong", xi=xi).certificate.trace
    )


@pytest.mark.parametrize(
    "how", [{"share": 0.3}, {"hidden": ConstantKernel(0.6) * RBF(0.22)}], ids=["share", "kernel"]
)
@pytest.mark.parametrize("n", [15, 90])
def test_a_uniform_solution_hides_at_every_place(how, n):
    x = np.linspace(0, 1, n)[:, None]
    found = solved("uniform", x=x, **how)
    at = np.random.default_rng(0).uniform(0, 1, (12, 1))
    assert np.linalg.eigvalsh(known(found, at, x) - 0.6 / 2 * K(at) * ("share" in how))[0] > -1e-6
    assert np.diag(known(found, at, x)).min() >= 0.6 - 1e-6


def test_regions_have_a_subset_that_says_nearly_all():
    box = np.array([[(0.4, 0.5)]])
    at, half, _ = cells(box)
    at = at[::100]
    half = half[::100] * 100
    made = promise(K, at, np.full(len(at), 0.3), half, 1)
    raw = observe(K, X, 0.01, at)
    found = solve(K, X, raw, made, solution="kernel", share=0.35)
    assert found.certificate.held
    assert found.certificate.regions == 1
    assert 0 < found.certificate.converged < 0.5
    inside = np.linspace(0.4, 0.5, 333)[:, None]
    assert np.diag(known(found, inside)).min() >= 0.3
    weakly = solve(K, X, raw, made, solution="weak")
    assert np.diag(known(weakly, inside)).min() >= 0.3
    assert weakly.certificate.trace <= found.certificate.trace
    assert weakly.certificate.converged == 0


@pytest.mark.parametrize("short", [0.5, 0.99])
def test_noise_that_falls_short_is_scaled_up(short):
    raw, made = asked()
    good = solved("weak")
    found = _checked(raw, made, K(X, POINTS), short * good.factor, 0.0, "weak", None, 0.0)
    assert found.certificate.held
    assert np.diag(known(found, POINTS)).min() >= 0.6 * (1 - 1e-9)
    assert found.certificate.trace < 1.5 * good.certificate.trace


def test_what_cannot_be_kept_is_said():
    """Noise without any direction cannot be scaled up."""
    raw, made = asked()
    found = _checked(raw, made, K(X, POINTS), np.zeros((15, 1)), 0.0, "weak", None, 0.0)
    assert not found.certificate.held
    assert found.certificate.eigenvalue < 0
    assert found.certificate.attained < 0.6
    assert found.certificate.to_dict()["held"] is False


def test_strong_promises_have_a_little_slack_and_weak_ones_none():
    one = solved("weak").certificate
    assert not replace(one, eigenvalue=-5e-8).held
    assert replace(one, eigenvalue=-5e-8, solution="strong").held
    assert replace(one, eigenvalue=-5e-8, solution="kernel").held
    assert not replace(one, eigenvalue=-2e-7, solution="strong").held
    assert not replace(one, attained=one.promised * (1 - 1e-9)).held


@pytest.mark.parametrize(
    ("xi", "why"),
    [
        (np.array([[0.6, 0.9], [0.9, 0.6]]), "no covariance matrix"),
        (np.array([[0.6, -0.3], [-0.3, 0.6]]), "negative eigenvalue"),
    ],
)
def test_uncertainty_beyond_the_prior_is_refused(xi, why):
    with pytest.raises(ValueError, match=why):
        solved("strong", xi=xi)


def test_independent_noise_is_for_few_records(monkeypatch):
    monkeypatch.setattr(obfuscation_solution, "SOLVER", replace(SOLVER, max_diagonal_records=10))
    with pytest.raises(ValueError, match="independent noise is there to compare with"):
        solved("diagonal")
    with pytest.raises(ValueError, match="independent noise"):
        solved("diagonal", x=np.linspace(0, 1, 90)[:, None])


def test_a_hidden_kernel_must_be_below_the_prior():
    with pytest.raises(ValueError, match="spectral condition"):
        solved("kernel", hidden=ConstantKernel(3.0) * RBF(0.2))
    found = solved("kernel", hidden=ConstantKernel(0.6) * RBF(0.22))
    assert np.linalg.eigvalsh(known(found, POINTS) - 0.6 * RBF(0.22)(POINTS))[0] > -1e-6
