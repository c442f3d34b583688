"""The paper's variant.

Its formulas against slow, literal ones, and its sensitivity against a search for neighbours.
"""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.gaussian_process.kernels import RBF

from reticent.privacy.accounting.composition import calibrate
from reticent.studies.honkela2021.algorithm1_as_printed import (
    LiteralGP,
    feature_radius2,
    sensitivity,
)
from reticent.studies.honkela2021.data import DELTA, EPSILONS, SETUPS

NINE = np.linspace(-3, 3, 9)


def one_record(z, x, y, ratio):
    """(A, √ratio·B̂) of one record, as in Eqs (5) and (27)."""
    k = RBF(1.0)(z[:, None], np.array([[x]]))[:, 0]
    rows, columns = np.triu_indices(len(k), 1)
    b = np.concatenate([k**2, np.sqrt(2) * k[rows] * k[columns]])
    return np.concatenate([y * k, np.sqrt(ratio) * b])


def moved(z, pair, reach, ratio):
    x, y, other_x, other_y = pair
    y, other_y = np.clip([y, other_y], -reach, reach)
    return float(
        np.linalg.norm(one_record(z, x, y, ratio) - one_record(z, other_x, other_y, ratio))
    )


@pytest.mark.parametrize("setup", SETUPS[:2], ids=lambda one: one.section)
@pytest.mark.parametrize("ratio", [1.0, 0.3])
def test_no_neighbour_moves_more_than_the_papers_sensitivity(setup, ratio):
    z = np.array(setup.inducing)
    rng = np.random.default_rng(0)
    pairs = rng.uniform([-4, -setup.reach] * 2, [4, setup.reach] * 2, size=(2000, 4))
    best = pairs[np.argmax([moved(z, pair, setup.reach, ratio) for pair in pairs])]
    found = minimize(lambda pair: -moved(z, pair, setup.reach, ratio), best, method="Nelder-Mead")
    bound = sensitivity(feature_radius2(RBF(1.0), z), setup.reach, ratio)
    assert (
        0.5 * bound < -found.fun < bound
    )  # within, and not by so much that the search would be worthless


def test_the_feature_bound_is_equation_seven_and_holds():
    """3.36 for nine points, where Eq. (8) gives 7.95 and the truth is 2.36."""
    x = np.linspace(-4, 4, 2001)
    longest = (RBF(1.0)(NINE[:, None], x[:, None]) ** 2).sum(axis=0).max()
    assert feature_radius2(RBF(1.0), NINE) == pytest.approx(3.363, abs=1e-3)
    assert longest == pytest.approx(2.36, abs=0.01)
    assert feature_radius2(RBF(100.0), NINE) == pytest.approx(
        9, rel=0.01
    )  # Eq. (4), where all are alike


@pytest.fixture
def fitted():
    setup = SETUPS[0]
    data = setup.draw(np.random.default_rng(1))
    model = LiteralGP(RBF(1.0), np.array(setup.inducing), setup.sigma, setup.reach, 3.0, DELTA)
    return setup, data, model.fit(data.x, data.y, np.random.default_rng(2))


def test_mean_and_covariance_are_those_of_the_printed_sums(fitted):
    """Eqs (9) to (17) term by term, with the triple sum (14) as it stands."""
    setup, data, model = fitted
    rng = np.random.default_rng(2)
    z = np.array(setup.inducing)[:, None]
    s2 = setup.sigma**2
    K = RBF(1.0)(z)
    k = RBF(1.0)(z, data.x[:, None])
    m = len(z)
    radius2 = sum(2 * np.exp(-((0.75 * j) ** 2)) for j in range(5)) + np.exp(-((0.75 * 5) ** 2))
    delta_f = np.sqrt(setup.reach**4 / 2 + 2 * setup.reach**2 * radius2 + 2 * radius2**2)
    noise = calibrate(3.0, DELTA) * delta_f
    A = k @ np.clip(data.y, -setup.reach, setup.reach) + noise * rng.normal(size=m)
    upper = np.triu(rng.normal(size=(m, m)), 1) / np.sqrt(2)
    B = k @ k.T + noise * (upper + upper.T + np.diag(rng.normal(size=m)))
    ridge = noise / s2 * np.sqrt(m * np.log(2 * m**2 / 0.01)) * (m + 1) / (2 * m)
    inverse = np.linalg.inv(K + B / s2 + ridge * np.eye(m))
    S = K @ inverse @ K + noise**2 / s2**2 * K @ inverse @ inverse @ K
    for i in range(m):
        for j in range(i, m):
            for a, b in {(i, j), (j, i)}:
                E = np.zeros((m, m))
                E[a, b] = 1
                column = K @ inverse @ E @ inverse @ A
                S += noise**2 / (1 if i == j else 2) / s2**4 * np.outer(column, column)
    at = np.linspace(-3.5, 3.5, 20)
    V = RBF(1.0)(at[:, None], z) @ np.linalg.inv(K)
    mean, sd = model.predict(at)
    assert mean == pytest.approx(V @ (K @ inverse @ A / s2), abs=1e-6)
    assert sd**2 == pytest.approx(1 - np.diag(V @ (K - S) @ V.T), abs=1e-6)


def test_the_naive_variant_knows_less_of_its_doubt(fitted):
    _, data, model = fitted
    mean, sd = model.predict(data.at)
    same, naive = model.predict(data.at, aware=False)
    assert np.array_equal(mean, same)
    assert (naive < sd).all()


def test_errors_are_those_that_others_found():
    """Sec 6.1 at five ε: .356 .253 .174 .111 .062 in an independent implementation, here means of
    ten draws.
    """
    setup = SETUPS[0]
    found = []
    for epsilon in EPSILONS:
        errors = []
        for repeat in range(10):
            rng = np.random.default_rng([7, repeat])
            data = setup.draw(rng)
            model = LiteralGP(
                RBF(1.0), np.array(setup.inducing), setup.sigma, setup.reach, epsilon, DELTA
            )
            mean, _ = model.fit(data.x, data.y, rng).predict(data.at)
            errors.append(np.sqrt(np.mean((mean - data.truth(data.at)) ** 2)))
        found.append(np.mean(errors))
    assert found == pytest.approx([0.356, 0.253, 0.174, 0.111, 0.062], rel=0.12)
