"""Where the kernel and the mean come from, and what they tell.

Attacks that succeed are why training is not the default.
"""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from reticent import BadInput, Obfuscator
from reticent.obfuscation.solver.marginal_likelihood import train
from reticent.obfuscation.solver.settings import SOLVER
from tests.support.curves import COMMON, K, X, Y, variance

FREE = ConstantKernel(1.0, (1e-4, 1e4)) * RBF(np.sqrt(1 / 20), "fixed")
NINE = np.arange(1, 10) / 10
R = RBF(np.sqrt(1 / 20))(NINE[:, None]) + 1e-10 * np.eye(9)


def told(model, w):
    """What a reader of the variance σ̂² = yᵀR⁻¹y/n knows of f(.5).

    Two values, and how likely each is. The noise has one direction, y = W − Fg, so that σ̂² is a
    quadratic equation for g. Given σ̂², all y are equally likely.
    """
    f = model.factor_[:, 0]
    variance = model.kernel_.k1.constant_value
    inverse = np.linalg.inv(R)
    g = np.roots([f @ inverse @ f, -2 * w @ inverse @ f, w @ inverse @ w - 9 * variance]).real
    chance = np.exp(-(g**2) / 2)
    return w[4] - f[4] * g, chance / chance.sum()


def test_a_variance_learned_from_the_curve_tells_the_curve():
    """Two candidates are left, and often one.

    The promise is for kernels fixed beforehand, and the statement says so.
    """
    rng = np.random.default_rng(1)
    root = np.linalg.cholesky(R)
    kept = []
    missed = []
    for _ in range(12):
        y = root @ rng.normal(size=9)
        model = Obfuscator(FREE, sensitive=[0.5], share=0.5, mean=0.0, train_on="curve-unprotected")
        values, chance = told(model, model.obfuscate(NINE, y))
        kept.append(chance @ (values - chance @ values) ** 2 / model.certificate_.promised)
        missed.append(np.abs(values - y[4]).min())
    assert (
        np.median(missed) < 0.01
    )  # one of the two is the truth, but for how exactly the maximum was found
    assert np.median(kept) < 0.5  # of what was promised
    assert min(kept) < 0.05
    assert model.conditional_
    assert "CONDITIONAL" in model.statement_
    assert "NOT" in model.statement_


def test_by_default_the_kernel_is_taken_as_it_is():
    model = Obfuscator(FREE, sensitive=[0.5], share=0.5)
    model.obfuscate(NINE, 100 * np.sin(NINE))
    assert model.kernel_ == FREE
    assert model.trained_on_ is None
    assert not model.conditional_
    assert "CONDITIONAL" not in model.statement_


def test_what_is_learned_from_another_curve_does_not_depend_on_this_one():
    learned = []
    for y in (Y, 50 * np.cos(9 * X), np.zeros(21)):
        model = Obfuscator(
            ConstantKernel(1.0) * RBF(0.3), sensitive=[0.5], share=0.5, train_on=(X, Y + X)
        )
        model.obfuscate(X, y)
        assert not model.conditional_
        assert "another curve" in model.statement_
        assert variance(model, [0.5])[0] >= model.certificate_.promised - 1e-9
        learned.append((model.kernel_.theta.tolist(), model.mean_, model.covariance_.tolist()))
    assert learned[0] == learned[1] == learned[2]


def test_nothing_free_is_nothing_learned():
    model = Obfuscator(K, train_on="curve-unprotected", **COMMON)
    model.obfuscate(X, Y)
    assert not model.conditional_
    assert model.trained_on_ is None


@pytest.mark.parametrize(
    ("change", "names"),
    [
        ({"train_on": "curve"}, "curve-unprotected"),
        ({"train_on": X}, "another curve"),
        ({"train_on": (np.zeros((5, 2)), np.zeros(5))}, "2 features"),
        ({"train_on": (X, np.full(21, np.nan))}, "NaN"),
        ({"train_on": (np.zeros(3), np.zeros(3))}, "singular"),
        ({"train_on": (X, np.ones(21)), "mean": None}, "All values to learn from are 1"),
        ({"train_on": (X, 2 * Y), "noise": np.full(21, 0.1)}, "says nothing of train_on"),
        ({"train_on": (X, Y)}, "no other curve: 21 of its 21"),
        ({"train_on": (X[:8], Y[:8])}, "no other curve: 8 of its 8"),
        ({"releases": 0}, "whole number"),
        ({"releases": 2.0}, "whole number"),
    ],
)
def test_wrong_training_names_what_is_wrong(change, names):
    with pytest.raises(BadInput, match=names):
        Obfuscator(ConstantKernel(1.0) * RBF(0.2), **{**COMMON, **change}).obfuscate(X, Y)


@pytest.mark.parametrize("y", [np.where(X > 0.5, 1e3, 0.0), 5 + 3 * X, 1e-9 * Y, 1e9 * Y])
def test_the_search_has_limits(y):
    """A jump, a line, very little and very much.

    The learned variance stays near the values' mean square.
    """
    kernel, _ = train(
        ConstantKernel(1.0, (1e-30, 1e30)) * RBF(0.3, (1e-2, 1e2)), X[:, None], y, 0.0, None
    )
    spread = ((y - np.median(y)) ** 2).mean()
    assert (
        0.9 / SOLVER.max_variance_ratio
        < kernel.k1.constant_value / spread
        < 1.1 * SOLVER.max_variance_ratio
    )


def test_training_finds_what_is_likely():
    rng = np.random.default_rng(0)
    x = np.linspace(0, 4, 120)[:, None]
    k = 4.0 * RBF(0.4)
    y = (
        7
        + np.linalg.cholesky(k(x) + 1e-8 * np.eye(120)) @ rng.normal(size=120)
        + 0.1 * rng.normal(size=120)
    )
    model = Obfuscator(
        ConstantKernel(1.0) * RBF(1.0) + WhiteKernel(0.1),
        sensitive=[2.0],
        share=0.3,
        train_on=(x, y),
    )
    model.obfuscate(x, y[::-1])
    assert model.kernel_.k1.k2.length_scale == pytest.approx(0.4, rel=0.3)
    assert model.kernel_.k2.noise_level == pytest.approx(0.01, rel=0.6)
    assert model.mean_ == pytest.approx(7, abs=3)
    assert variance(model, [2.0])[0] >= 0.3 * model.kernel_.k1.k1.constant_value - 1e-6


def test_the_mean_gives_nothing_away():
    """A mean learned from y is aᵀy for a public a.

    With aᵀW it told a combination of the noise, and so the curve.
    """
    rng = np.random.default_rng(0)
    x = np.linspace(0, 1, 41)
    y = rng.multivariate_normal(np.zeros(41), RBF(0.2)(x[:, None]) + 1e-10 * np.eye(41)) + 3
    one = Obfuscator(RBF(0.2, "fixed"), sensitive=[0.5], variance=0.4)
    w = one.obfuscate(x[:, None], y)
    K = RBF(0.2)(x[:, None]) + 1e-8 * np.eye(41)
    weights = np.linalg.solve(K, np.ones(41))
    assert abs(one.mean_ - weights @ y / weights.sum()) > 1e-3  # not that of y
    again = Obfuscator.from_release(
        x[:, None], one.release(), kernel=RBF(0.2, "fixed"), sensitive=[0.5], variance=0.4
    )
    assert again.mean_ == one.mean_
    np.testing.assert_array_equal(again.released_, w)
