"""FactorAnalysis and PCA.

What they find, what they survive, and that their rows are as short as they must be.
"""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.datasets import load_breast_cancer, load_digits

import reticent
from reticent.inference.mixtures.factor_model import (
    ColumnEstimates,
    factor_analysis,
    factor_em_step,
    factor_log_density,
    factor_scores,
)
from reticent.privacy.row_maps.column_moments import ColumnMoments, ScaledGram

BOX = reticent.Bounds(x=(-5, 5))
LOADINGS = np.array([[1.0, 0.8, -0.6, 0.0], [0.0, 0.5, 0.5, 0.9]])


def made(n=20_000, seed=0):
    rng = np.random.default_rng(seed)
    return 0.5 + rng.normal(size=(n, 2)) @ LOADINGS + rng.normal(size=(n, 4)) * [0.3, 0.4, 0.3, 0.5]


def fitted(model=reticent.FactorAnalysis, k=2, data=None, **params):
    settings = {"bounds": BOX, "epsilon": 1, "delta": 1e-6, "random_state": 0} | params
    return model(k, **settings).fit(made() if data is None else data)


def test_factors_are_found_up_to_rotation():
    model = fitted()
    truth = LOADINGS.T @ LOADINGS + np.diag([0.09, 0.16, 0.09, 0.25])
    assert np.abs(model.get_covariance() - truth).max() < 0.1
    assert np.abs(model.mean_ - 0.5).max() < 0.05
    assert np.diag(model.components_ / model.noise_variance_ @ model.components_.T)[0] > 1
    crossed = model.components_ / model.noise_variance_ @ model.components_.T
    assert abs(crossed[0, 1]) < 1e-9 * crossed[0, 0], (
        "the rotation in which the factors don't share what they explain"
    )


def test_densities_scores_and_samples_are_those_of_the_model():
    from scipy.stats import multivariate_normal

    model = fitted()
    new = made(50, seed=1)
    inside = np.clip(new, -5, 5)
    expected = multivariate_normal(model.mean_, model.get_covariance()).logpdf(inside)
    assert model.score_samples(new) == pytest.approx(expected, rel=1e-9)
    assert model.score(new) == pytest.approx(expected.mean())
    W = model.components_.T
    psi = model.noise_variance_
    regression = (inside - model.mean_) @ np.linalg.solve(model.get_covariance(), W)
    assert model.transform(new) == pytest.approx(regression, abs=1e-9)
    assert factor_scores(inside, W, psi).shape == (50, 2)
    drawn = model.sample(20_000, random_state=3)
    assert np.abs(np.cov(drawn.T) - model.get_covariance()).max() < 0.1
    assert np.array_equal(drawn, model.sample(20_000, random_state=3))
    assert drawn.min() >= -5
    assert drawn.max() <= 5
    with pytest.raises(reticent.BadInput, match="whole number"):
        model.sample(0)


def test_components_are_those_of_the_covariance():
    model = fitted(reticent.PCA)
    values, vectors = np.linalg.eigh(np.cov(made().T))
    assert np.abs(np.abs(model.components_ @ vectors[:, :-3:-1]) - np.eye(2)).max() < 0.15
    assert model.explained_variance_ == pytest.approx(values[:-3:-1], rel=0.1)
    assert model.explained_variance_ratio_ == pytest.approx(values[:-3:-1] / values.sum(), abs=0.03)
    assert model.components_ @ model.components_.T == pytest.approx(np.eye(2), abs=1e-12)
    scores = model.transform(made(10, seed=2))
    assert model.transform(model.inverse_transform(scores)) == pytest.approx(scores, abs=1e-9)
    with pytest.raises(reticent.BadInput, match="2 components"):
        model.inverse_transform([[1.0]])


def test_digits_reach_what_was_promised():
    """Test log-likelihood on the scale of the unit ball, (x − 8)/64.

    The reference for ε = 1 is 104.
    """
    X = load_digits().data
    order = np.random.default_rng(7).permutation(len(X))
    model = fitted(
        k=10, data=X[order[:1437]], bounds=reticent.Bounds(x=(0, 16)), delta=1e-5, random_state=7
    )
    assert model.score(X[order[1437:]]) + 64 * np.log(64) > 104


def test_small_budgets_find_directions_where_one_noisy_second_moment_would():
    """Cells of breast tumours, ε = .3: of the variance of three components, .79 without noise.

    One noisy second moment of unclipped records has .3, a random direction .03 each.
    """
    X = load_breast_cancer().data
    largest = X.max(axis=0)
    captured = []
    for seed in range(4):
        model = fitted(
            reticent.PCA,
            k=3,
            data=X / largest,
            bounds=reticent.Bounds(x=[(0, 1)] * 30),
            epsilon=0.3,
            delta=1e-5,
            random_state=seed,
        )
        covariance = np.cov((X / largest).T)
        kept = np.trace(model.components_ @ covariance @ model.components_.T)
        captured.append(kept / np.trace(covariance))
    assert np.mean(captured) > 0.33


def test_em_climbs_and_is_right_about_psi():
    """W_new, not W_old, belongs in Ψ: with the old one the likelihood can fall."""
    covariance = LOADINGS.T @ LOADINGS + np.diag([0.09, 0.16, 0.09, 0.25])

    def likelihood(W, psi):
        model = W @ W.T + np.diag(psi)
        return -np.linalg.slogdet(model)[1] - np.trace(np.linalg.solve(model, covariance))

    rng = np.random.default_rng(0)
    for _ in range(20):
        W, psi = rng.normal(size=(4, 2)), rng.uniform(0.1, 2, size=4)
        before = likelihood(W, psi)
        for _ in range(15):
            W, psi = factor_em_step(covariance, W, psi, 1e-6)
            assert likelihood(W, psi) >= before - 1e-10
            before = likelihood(W, psi)
    W, psi = factor_analysis(covariance, 2, 1e-6, iterations=3000)
    assert W @ W.T + np.diag(psi) == pytest.approx(covariance, abs=2e-2)
    assert factor_log_density(np.zeros((1, 4)), W, psi)[0] == pytest.approx(
        -np.linalg.slogdet(2 * np.pi * (W @ W.T + np.diag(psi)))[1] / 2
    )


def test_a_narrow_stage_is_not_believed_where_a_wide_one_surely_found_more():
    columns = ColumnEstimates(2)
    columns.add(np.zeros(2), np.ones(2), np.zeros(2), np.array([0.0, 0.0, 0.2, 0.011]), sd=0.01)
    columns.add(np.zeros(2), np.full(2, 0.1), np.zeros(2), np.array([0.0, 0.0, 0.3, 0.3]), sd=0.01)
    assert columns.variance[0] == pytest.approx(0.2, rel=0.05)  # rare values far away
    assert 0.0025 < columns.variance[1] < 0.006  # the wide stage saw noise, or a rare value
    assert (columns.scale() > 0).all()


STATISTICS = [
    (ColumnMoments((0.0,) * 2, (1.0,) * 2, (1.0,) * 2, 2.0), True),
    (ColumnMoments((0.3, -0.5), (0.4, 0.2), (0.2, 0.4), 0.9), True),
    (ScaledGram((0.1, 0.0), (3.0, 4.0), 1.7), True),
]


@pytest.mark.parametrize(("statistic", "attained"), STATISTICS, ids=["first", "closer", "gram"])
def test_no_pair_of_records_is_further_apart_than_the_sensitivity_and_some_nearly_are(
    statistic, attained
):
    shares = statistic.coordinate_multiplicity()
    best = 0.0

    def apart(pair):
        a, b = (
            statistic.coordinates(statistic.block_sum(np.clip(u[None], -1, 1)))
            for u in np.split(pair, 2)
        )
        return -float(shares @ (a - b).astype(np.float64) ** 2) / statistic.sensitivity2

    rng = np.random.default_rng(0)
    for _ in range(6):
        found = minimize(
            apart, rng.uniform(-1, 1, size=4), method="Nelder-Mead", options={"maxiter": 250}
        )
        best = max(best, -found.fun)
    corners = [np.array([*a, *b]) for a in np.ndindex(3, 3) for b in np.ndindex(3, 3)]
    best = max(best, *(-apart(pair - 1.0) for pair in corners))
    assert best <= 1
    assert best > 0.999 or not attained or statistic is STATISTICS[1][0]
    assert best > 0.6


@pytest.mark.parametrize("model", [reticent.FactorAnalysis, reticent.PCA])
@pytest.mark.parametrize(
    "data",
    [np.full((50, 3), 2.0), np.zeros((1, 3)), np.full((40, 3), 1e9), np.full((40, 3), np.nan)],
    ids=["equal", "one", "outside", "missing"],
)
def test_hopeless_records_give_a_usable_model(model, data):
    for epsilon in (1e-3, 1.0, 1e4):
        one = fitted(model, 2, data, epsilon=epsilon)
        assert np.isfinite(one.components_).all()
        complete = np.nan_to_num(data)
        assert np.isfinite(one.transform(complete)).all()
        assert np.isfinite(one.score(complete))
        assert np.isnan(one.transform(data)).all() == np.isnan(data).all()


def test_a_constant_column_among_others():
    data = made()
    data[:, 1] = 2.0
    model = fitted(data=data, epsilon=10)
    assert np.sqrt(model.get_covariance()[1, 1]) < 0.1
    assert model.get_covariance()[0, 0] == pytest.approx(np.var(data[:, 0]), rel=0.1)
    assert np.isfinite(np.linalg.cholesky(model.get_covariance())).all()


def test_one_column_and_a_norm():
    one = fitted(k=1, data=made()[:, :1])
    assert one.get_covariance()[0, 0] == pytest.approx(np.var(made()[:, 0]), rel=0.1)
    ball = fitted(bounds=reticent.Bounds(x=[(-5, 5)] * 4, norm=6.0))
    assert ball.get_covariance()[0, 0] == pytest.approx(np.var(made()[:, 0]), rel=0.15)


@pytest.mark.parametrize("k", [0, -1, True, 1.5, "2", 5])
def test_wrong_numbers_of_components_are_refused(k):
    with pytest.raises(reticent.BadInput, match="n_components"):
        fitted(k=k)


def test_no_column_varies_less_than_noise_could_hide():
    """At small ε nothing is known, and the model says so: scales as wide as the box allows."""
    model = fitted(epsilon=0.001, data=made(200))
    assert np.sqrt(np.diag(model.get_covariance())).min() > 2.0
