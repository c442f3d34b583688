"""Corrections that docs/papers.md tells of and that no other test computes.

Small sums that anybody can follow.
"""

import math
import re
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize_scalar
from scipy.stats import lognorm, norm

from reticent.privacy.accounting.composition import calibrate, epsilon
from reticent.privacy.accounting.events import Gaussian

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "papers.md").read_text()


def delta_of(mu, eps):
    return norm.cdf(mu / 2 - eps / mu) - math.exp(eps) * norm.cdf(-mu / 2 - eps / mu)


def test_every_check_that_the_page_names_exists():
    named = re.findall(r"`((?:\w+/)*)(test_\w+)(?:\.py)?::(test_\w+)`", PAGE)
    assert len(named) > 20
    for folder, file, test in named:
        assert f"def {test}(" in (ROOT / "tests" / folder / f"{file}.py").read_text(), (
            f"{file}::{test}"
        )


# Honkela: "Gaussian processes with differential privacy"


@pytest.mark.parametrize("c", [0.05, 0.2, 0.5, 1.0, 4.0])
def test_honkela_equation_6_is_a_bound_and_exact_for_large_c_alone(c):
    """R = R_y = 1: two records at an angle, u = −⟨k, k′⟩ for outputs of equal sign;
    c = σ_a²/σ_b².
    """
    printed = 1 / (2 * c) + 2 + 2 * c
    found = minimize_scalar(
        lambda u: -(2 * (1 + u) + 2 * c * (1 - u**2)), bounds=(-1, 1), method="bounded"
    )
    exact = printed if c >= 0.5 else 4.0
    assert -found.fun == pytest.approx(exact, rel=1e-4)
    assert exact <= printed


def test_honkela_equation_14_leaves_out_cross_terms():
    """Cov(E v) of a symmetric E: diagonal variance 1, off it ½.

    As printed against the sum over independent entries.
    """
    v = np.array([1.0, -2.0, 0.5])
    exact = np.zeros((3, 3))
    printed = np.zeros((3, 3))
    for i in range(3):
        for j in range(i, 3):
            unit = np.zeros((3, 3))
            unit[i, j] = 1
            whole = unit if i == j else unit + unit.T
            exact += (1 if i == j else 0.5) * whole @ np.outer(v, v) @ whole.T
            for one in (unit,) if i == j else (unit, unit.T):
                printed += (1 if i == j else 0.5) * one @ np.outer(v, v) @ one.T
    np.testing.assert_allclose(exact, (v @ v * np.eye(3) + np.outer(v, v)) / 2)
    np.testing.assert_allclose(printed, (v @ v * np.eye(3) + np.diag(v**2)) / 2)


@pytest.mark.parametrize("alpha", [0.01, 1.01])
def test_honkela_equation_21_matches_the_moments_of_a_gamma_law(alpha):
    s2 = math.log(1 / alpha + 1)
    matched = lognorm(s=math.sqrt(s2), scale=math.exp(math.log(alpha) - s2 / 2))
    assert (matched.mean(), matched.var()) == pytest.approx((alpha, alpha))


# Smith, Zwiessele and Lawrence: "Differentially private Gaussian processes"


def test_smith_the_classical_noise_is_no_promise_above_one():
    def attained(eps):
        return epsilon(Gaussian(noise_multiplier=math.sqrt(2 * math.log(1.25 / 0.01)) / eps), 0.01)

    assert attained(1) < 1
    assert attained(30) > 60
    assert attained(60) > 200


# Dubey: "No-regret algorithms for private Gaussian process bandit optimization"


@pytest.mark.parametrize(("alpha", "attained"), [(1, 0.1486), (10, 11.92)])
def test_dubey_lemma_5_promises_too_much_at_ten(alpha, attained):
    """β = .1; t = ⟨Φ, Φ′⟩ < 0 and equal rewards of the largest size: (ΦΦᵀ, yΦ) moves by 2(1−t²) and
    2(1−t) squares.
    """
    sx2 = 8 / alpha**2 * math.log(2.5 / 0.1)
    su2 = 8 / alpha**2 * math.log(5 / 0.1)
    worst = max(2 * (1 - t**2) / sx2 + 2 * (1 - t) / su2 for t in np.linspace(-1, 1, 20_001))
    assert epsilon(Gaussian(noise_multiplier=1 / math.sqrt(worst)), 0.1) == pytest.approx(
        attained, rel=1e-3
    )


@pytest.mark.parametrize(("alpha", "too_much"), [(0.1, 43.1), (1, 11.3), (10, 4.36)])
def test_dubey_lemma_2_asks_for_too_much(alpha, too_much):
    """Read as a variance, as its proof does.

    B = 1, ρ = 0, T = 1024, β = .1: against exact calibration of 11 levels.
    """
    printed = math.sqrt(16 * 11 * 2) * math.log(10 / 0.1) / alpha
    assert printed / (calibrate(alpha, 0.1, releases=11) * math.sqrt(2) * 1.5) == pytest.approx(
        too_much, rel=1e-2
    )


# Park, Foulds, Chaudhuri and Welling: "DP-EM"


def test_park_noise_by_the_noisy_count_has_not_the_stated_promise():
    """A part that holds one record, x = 1 or −1.

    Its mean moves by 2, the noise is 2c/Ñ, Ñ = 1 + N(0, (2c)²); ε_i = 1 each.
    """
    c = math.sqrt(2 * math.log(1.25 / 1e-5))

    def delta(eps):
        def part(count):
            return norm.pdf((count - 1) / (2 * c)) / (2 * c) * delta_of(count / c, eps)

        return quad(part, 0.01, 1 + 18 * c, limit=400)[0]  # where the noisy count is positive

    assert delta(2) > 0.14  # 2e-5 is claimed
    assert delta(40) > 2e-5


def test_park_covariances_move_by_the_root_of_two():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(20_000, 2, 2))
    x /= np.linalg.norm(x, axis=2, keepdims=True)
    moved = np.linalg.norm(
        np.einsum("ni,nj->nij", x[:, 0], x[:, 0]) - np.einsum("ni,nj->nij", x[:, 1], x[:, 1]),
        axis=(1, 2),
    )
    assert 1.4142 < moved.max() <= math.sqrt(2) + 1e-12
