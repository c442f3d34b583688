"""Functions along one input: orthonormal, without a mean, with the covariance they should have."""

import numpy as np
import pytest

from reticent.inference.kernels.anova import Anova, AnovaPriors
from reticent.inference.kernels.axes import LINE, Axis, axis_functions, word_contrasts

AXES = [LINE, Axis("circle"), Axis("ordered", 5), Axis("words", 2), Axis("words", 7)]
KERNELS = [Anova(), Anova(linear=0.0, length=0.12), Anova(linear=0.9, length=1.6)]


def places(axis, count=4000):
    if axis.levels:
        return (2 * np.arange(axis.levels) + 1 - axis.levels) / axis.levels
    return (np.arange(count) + 0.5) / count * 2 - 1


@pytest.mark.parametrize("axis", AXES, ids=str)
def test_functions_are_orthonormal_and_have_no_mean(axis):
    prior = AnovaPriors(1, 0, KERNELS, [axis])
    basis, _, _ = prior.choose(min(prior.max_size, 13))
    values = basis.evaluate(places(axis)[:, None])
    gram = values.T @ values / len(values)
    assert np.abs(gram - np.eye(len(gram))).max() < 1e-3


@pytest.mark.parametrize("axis", AXES, ids=str)
def test_an_effect_has_an_average_variance_of_one(axis):
    decays = axis_functions(axis, KERNELS).decays
    assert decays.shape[0] == len(KERNELS)
    assert decays.sum(axis=1) == pytest.approx([1.0] * len(KERNELS), abs=0.06)
    assert (decays > 0).all()


def covariance(axis, size=None):
    """Prior covariance of the function between the levels, without the constant."""
    prior = AnovaPriors(1, 0, [Anova(variance=1.0)], [axis])
    basis, (S,), _ = prior.choose(size or prior.max_size)
    values = basis.evaluate(places(axis, 12)[:, None])
    constant = prior.constant_index
    variances = S.copy()
    variances[constant] = 0.0
    return values * variances @ values.T


def test_words_are_exchangeable():
    found = covariance(Axis("words", 6))
    apart = found[~np.eye(6, dtype=bool)]
    assert np.diag(found) == pytest.approx([1.0] * 6, abs=1e-5)
    assert apart == pytest.approx([-1 / 5] * 30, abs=1e-5)


def test_ordered_levels_are_smooth():
    found = covariance(Axis("ordered", 6))
    assert found[0, 1] > found[0, 2] > found[0, 3]
    assert found[2, 3] > found[2, 5]


def test_a_circle_has_no_ends():
    found = covariance(Axis("circle"))
    turned = np.roll(np.roll(found, 5, axis=0), 5, axis=1)
    assert np.abs(found - turned).max() < 1e-3
    assert found[0, 11] == pytest.approx(found[0, 1], abs=1e-3)


@pytest.mark.parametrize("levels", [2, 3, 7, 40])
def test_contrasts_in_any_order_say_the_same(levels):
    order = np.random.default_rng(0).permutation(levels).tolist()
    one = word_contrasts(levels, range(levels))
    other = word_contrasts(levels, order)
    assert np.abs(one.T @ one - other.T @ other).max() < 1e-9
    assert other[1].argmax() == order[0]  # the first contrast sets the most frequent word apart


def test_of_many_words_the_rare_ones_share_an_effect():
    frequent = [*range(100, 139), *range(100), *range(139, 500)]
    contrasts = word_contrasts(500, frequent)
    assert contrasts.shape == (40, 500)
    assert len(np.unique(contrasts, axis=1).T) == 40
    assert np.ptp(contrasts[:, frequent[39:]], axis=1).max() == 0
    axis = Axis("words", 500)
    prior = AnovaPriors(1, 0, [Anova(variance=0.5)], [axis])
    _, _, left = prior.choose(prior.max_size)
    assert left[0] == pytest.approx(0.5 * axis.shared_fraction)  # counts as not represented
    assert Axis("words", 40).shared_fraction == 0


def test_sorted_words_keep_the_rest_of_the_basis():
    axes = [LINE, Axis("words", 4)]
    prior = AnovaPriors(2, 0, KERNELS, axes)
    basis, _, _ = prior.choose(20)
    densities = [np.full(128, 1 / 128), np.array([0.1, 0.2, 0.6, 0.1])]
    changed = prior.sorted_words(basis, densities)
    assert changed.mix[0] == basis.mix[0]
    assert changed.index == basis.index
    assert int(np.argmax(changed.mix[1][1])) == 2
