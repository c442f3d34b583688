"""Relevance of inputs: the evidence's slopes and integral, and what a fit makes of it."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import multivariate_normal

from reticent.inference.kernels.anova import AnovaPriors
from reticent.inference.kernels.axes import Axis
from reticent.inference.moment_model.posterior import StagedPosterior
from reticent.inference.moment_model.relevance import (
    RelevanceModel,
    learned_relevance,
    mixed_factor,
)
from reticent.inference.moment_model.settings import RELEVANCE


def observed(variances, noise=0.3, m=30, seed=0):
    """Information and pull of weights that are seen with noise, some through each other."""
    rng = np.random.default_rng(seed)
    design = np.eye(m) + 0.1 * rng.normal(size=(m, m))
    seen = design @ (np.sqrt(variances) * rng.normal(size=m)) + noise * rng.normal(size=m)
    return design, seen, design.T @ design / noise**2, design.T @ seen / noise**2


def test_log_odds_are_the_integral_over_one_parameter():
    exponents = np.repeat([[1.0], [0.0]], 15, axis=0)
    variances = np.ones(30)
    design, seen, information, pull = observed(variances * np.exp(-2 * exponents[:, 0]))
    model = RelevanceModel(exponents, np.array([1.5]))

    def evidence(t):
        prior = variances * np.exp(exponents[:, 0] * t)
        covariance = (design * prior) @ design.T + 0.09 * np.eye(30)
        return multivariate_normal(cov=covariance).logpdf(seen)

    plain = evidence(0.0)
    integral, _ = quad(
        lambda t: np.exp(evidence(t) - plain - (t / 1.5) ** 2 / 2) / (1.5 * np.sqrt(2 * np.pi)),
        -8,
        8,
    )
    parameters, log_odds = learned_relevance(model, variances, information, pull)
    assert log_odds == pytest.approx(RELEVANCE.log_odds + np.log(integral), abs=0.1)
    around = [evidence(t) - (t / 1.5) ** 2 / 2 for t in parameters[0] + np.array([-0.1, 0, 0.1])]
    assert max(around) == around[1]


def test_several_parameters_are_found_and_rounded_to_the_grid():
    rng = np.random.default_rng(1)
    exponents = np.hstack([np.eye(3)[np.arange(300) % 3], rng.normal(size=(300, 1))])
    truth = np.array([1.0, -2.0, 0.0, 0.5])
    _, _, information, pull = observed(np.exp(exponents @ truth), 0.05, 300)
    model = RelevanceModel(exponents, np.array([1.5, 1.5, 1.5, 1.0]))
    parameters, log_odds = learned_relevance(model, np.ones(300), information, pull)
    assert parameters == pytest.approx(truth, abs=0.5)
    assert log_odds > 20
    assert mixed_factor(model, parameters, log_odds) == pytest.approx(
        np.exp(exponents @ parameters)
    )
    steps = parameters / model.sds / 0.01
    assert steps == pytest.approx(np.round(steps), abs=1e-6)


def test_nothing_seen_changes_nothing():
    model = RelevanceModel(np.eye(4), np.ones(4))
    parameters, log_odds = learned_relevance(model, np.ones(4), np.zeros((4, 4)), np.zeros(4))
    assert not parameters.any()
    assert log_odds == pytest.approx(RELEVANCE.log_odds, abs=1e-9)
    assert (mixed_factor(model, parameters, log_odds) == 1).all()


def test_variances_of_the_default_prior_depend_on_inputs_orders_and_lines():
    prior = AnovaPriors(3, 0, axes=(Axis(), Axis("words", 4), Axis("circle")))
    model = prior.relevance_model(40, lines=[2])
    assert model.exponents.shape == (41, 3 + 2 + 2)
    assert not model.exponents[prior.constant_index].any()
    assert model.exponents[40].tolist() == [0, 0, 1, 0, 0, 0, 0]
    assert model.exponents[prior.linear_index(0)].tolist() == [1, 0, 0, 0, 0, 0, 0]
    order = model.exponents[:40, :3].sum(axis=1)
    assert (model.exponents[:40, 5] == (order == 2)).all()
    assert (model.exponents[:40, 6] == (order == 3)).all()
    assert AnovaPriors(1, 0).relevance_model(10) is None


def fitted(relevance, seed=0):
    """A staged posterior of 40 weights of which half are next to nothing, under much noise."""
    rng = np.random.default_rng(seed)
    m, n = 40, 400
    phi = rng.normal(size=(n, m)) / np.sqrt(m)
    w = np.where(np.arange(m) < 8, 2.0, 0.02) * rng.normal(size=m)
    y = phi @ w + 0.1 * rng.normal(size=n)
    hypotheses = np.array([np.ones(m), 0.5 * np.ones(m)])
    staged = StagedPosterior(
        hypotheses, np.zeros(2), phi, n, 0.01, learn_noise=True, relevance=relevance
    )
    sd = 2.0
    for _ in range(4):
        e = y - phi @ staged.mean
        noise = rng.normal(size=(m, m)) / 4
        A = phi.T @ e + sd * rng.normal(size=m)
        B = phi.T @ phi + (noise + noise.T) / np.sqrt(2)
        staged.add(A, sd, B, np.full((m, m), 0.25), float(e @ e), 1.0, 50.0, staged.mean)
    staged.finish()
    return staged, w


def test_weights_that_do_not_matter_lose_their_noise():
    relevance = RelevanceModel(np.eye(2)[(np.arange(40) >= 8).astype(int)], np.full(2, 1.5))
    errors = []
    for seed in range(3):
        plain, w = fitted(None, seed)
        learned, _ = fitted(relevance, seed)
        errors.append([np.mean((one.mean - w) ** 2) for one in (plain, learned)])
        assert np.linalg.eigvalsh(learned.error_covariance())[0] > 0
        assert (learned.initial_prior == plain.initial_prior).all()
        assert np.diag(learned.prior)[8:].max() < 0.5 * np.diag(learned.prior)[:8].min()
    plain, learned = np.mean(errors, axis=0)
    assert learned < 0.8 * plain
