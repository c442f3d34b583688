"""Features and staged residuals: what the formulas say, exact where the proof needs it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reticent.errors import BadInput
from reticent.inference.kernels.anova import AnovaPriors
from reticent.inference.kernels.eigenbasis import eigenbasis, tensor_basis
from reticent.privacy.row_maps.features.basis_features import FeatureMap
from reticent.privacy.row_maps.features.polynomial_basis import Basis, legendre
from reticent.privacy.row_maps.input_marginals import InputCounts, InputMoments
from reticent.privacy.row_maps.residual_gram import (
    ResidualGram,
    ResidualSizeGram,
    stage,
    stage_with_sizes,
)

KNOTS = (-1.0, -0.9, 0.2, 0.2, 1.0)


def features(d=2, m=12, warp=(), radius2=1.1):
    values, mix = eigenbasis(lambda a, b: np.exp(-((a[:, None] - b) ** 2)), 6)
    basis, _ = tensor_basis([values] * d, [mix] * d, m)
    return FeatureMap(basis, tuple(np.linspace(0.5, 0.05, m).tolist()), radius2, warp)


def points(n=500, d=2, outputs=1, seed=0):
    rng = np.random.default_rng(seed)
    u = rng.uniform(-1, 1, size=(n, d + outputs))
    u[:3, :d] = [[-1.0] * d, [1.0] * d, [0.0] * d]
    return u


def plain_basis(basis, u):
    """Products of eigenfunctions, straight from their definition."""
    values = np.ones((len(u), basis.size))
    for j, mix in enumerate(basis.mix):
        psi = legendre(u[:, j]) @ (np.array(mix).T / 2.0**22)
        values *= psi[:, [index[j] for index in basis.index]]
    return values


@pytest.mark.parametrize("warp", [(), (KNOTS, (-1.0, 1.0))])
def test_features_are_what_they_say(warp):
    head = features(warp=warp)
    u = points()
    at = (
        np.column_stack(
            [np.interp(u[:, j], np.linspace(-1, 1, len(k)), k) for j, k in enumerate(warp)]
        )
        if warp
        else u
    )
    phi = plain_basis(head.basis, at[:, :2]) * np.array(head.feature_scale)
    long = np.maximum((phi**2).sum(axis=1), head.radius2)
    assert (long > head.radius2).any()
    assert (long == head.radius2).any()
    assert head.rows(u) == pytest.approx(phi * np.sqrt(head.radius2 / long)[:, None], abs=1e-5)
    assert (head.rows(u) == head.rows(u[:, :2])).all()  # outputs are not looked at


def test_products_share_factors_and_leave_out_ones():
    """A constant factor, equal beginnings, a product that is another one's beginning, and the same
    product twice.
    """
    one = (2**22, *[0] * 31)
    mix = (
        one,
        *(
            tuple(row)
            for row in np.trunc(eigenbasis(lambda a, b: a[:, None] * b + 1, 2)[1] * 2**22)
            .astype(int)
            .tolist()
        ),
    )
    index = ((0, 0, 0), (1, 2, 0), (1, 0, 0), (1, 2, 1), (0, 2, 1), (1, 2, 2), (0, 0, 2), (1, 2, 1))
    basis = Basis((mix,) * 3, index)
    u = points(d=3)[:, :3]
    assert basis.evaluate(u) == pytest.approx(plain_basis(basis, u), abs=1e-5)
    assert (basis.evaluate(u)[:, 0] == 1.0).all()
    assert (basis.evaluate(u)[:, 3] == basis.evaluate(u)[:, 7]).all()
    assert basis.evaluate(u[:0]).shape == (0, 8)


@given(
    st.lists(st.floats(0.0, 1.0), min_size=1, max_size=70),
    st.lists(st.floats(-1.0, 1.0), min_size=1, max_size=30),
)
@settings(max_examples=100, deadline=None)
def test_a_warp_is_monotone_and_stays_in_the_box(steps, inputs):
    total = sum(steps) or 1.0
    knots = (
        -1.0,
        *np.minimum(np.cumsum([2 * s / total for s in steps]) - 1, 1.0).tolist()[:-1],
        1.0,
    )
    u = np.sort([-1.0, *inputs, 1.0])
    head = features(d=1, m=4, warp=(knots,))
    found = head.warped(u[:, None])[:, 0]
    assert (np.abs(found) <= 1.0).all()
    assert (found[0], found[-1]) == (-1.0, pytest.approx(1.0, abs=1e-15))
    assert (np.diff(found) >= -1e-15).all()
    assert found == pytest.approx(np.interp(u, np.linspace(-1, 1, len(knots)), knots), abs=1e-12)


@pytest.mark.parametrize("outputs", [1, 2, 3])
def test_residuals_are_what_they_say(outputs):
    head = features()
    u = points(outputs=outputs)
    rng = np.random.default_rng(1)
    W = rng.normal(size=(outputs, 12))
    r = [0.5, 1.5, 0.1][:outputs]
    statistic = stage(head, W, r)
    rows = statistic.rows(u)
    phi = rows[:, :12]
    t = rows[:, 12:]
    radius = np.sqrt(head.radius2 / outputs)
    expected = radius / np.array(r) * np.clip(u[:, 2:] - phi @ W.T, -np.array(r), r)
    assert t == pytest.approx(expected, abs=2 * 2.0**-statistic.bits)
    assert (np.abs(expected) == radius).any()
    assert ((t**2).sum(axis=1) <= head.radius2).all()
    assert statistic.columns == 12 + outputs
    assert statistic.norm2 == 2 * head.norm2


@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("weighed", [False, True])
def test_sizes_are_what_they_say(outputs, weighed):
    head = fair() if weighed else features()
    m = head.columns
    u = points(outputs=outputs)
    W = np.random.default_rng(1).normal(size=(outputs, m))
    r = np.array([0.5, 1.5][:outputs])
    s = np.array([0.9, 0.2][:outputs])
    statistic = stage_with_sizes(head, W, r, s)
    rows = statistic.rows(u)
    phi = rows[:, :m]
    weight = phi[:, :1] / head.feature_scale[0] if weighed else np.ones((len(u), 1))
    assert (weight < 0.99).any() == weighed
    errors = weight * u[:, 2:] - phi @ W.T
    radius = np.sqrt(head.radius2 / (2 * outputs))
    sizes = radius * (2 * np.minimum(np.abs(errors), weight * s) / s - weight)
    step = 2.0**-statistic.bits
    assert rows[:, m : m + outputs] == pytest.approx(
        radius * np.clip(errors / r, -1, 1), abs=4 * step
    )
    assert rows[:, m + outputs :] == pytest.approx(sizes, abs=16 * step)
    assert ((rows[:, m:] ** 2).sum(axis=1) <= head.radius2).all()
    assert statistic.norm2 == 2 * head.norm2


@pytest.mark.parametrize("size", [0.0, 1e-9, 1.0, 1e4, 1e9])
def test_predictions_are_exact_products_whatever_the_size_of_the_weights(size):
    head = features()
    u = points(200)
    statistic = stage(head, size * np.random.default_rng(2).normal(size=(1, 12)), [1.0])
    h = statistic.enforced().feature_integers(u)
    exact = h.astype(np.int64).astype(object) @ np.array(statistic.weights[0], dtype=object)
    assert abs(exact).max() <= 2**52
    assert (h @ np.array(statistic.weights[0], dtype=float) == exact.astype(float)).all()
    assert (
        size < 1e-3 or statistic.feature_limit2 * sum(v * v for v in statistic.weights[0]) > 4**49
    )  # no finer steps fit
    assert np.isfinite(statistic.rows(u)).all()


def test_weights_that_are_too_long_for_an_exact_product_are_refused():
    head = features()
    with pytest.raises(BadInput, match="too long"):
        ResidualGram(head, ((2**40,) * 12,), 40, (1.0,))


def test_functions_that_are_too_long_for_an_exact_product_are_refused():
    FeatureMap(Basis((((2**23, *[0] * 31),),), ((0,),)), (1.0,), 1.0)
    with pytest.raises(BadInput, match="no exact product"):
        FeatureMap(Basis((((2**23, 1, *[0] * 30),),), ((0,),)), (1.0,), 1.0)


def fair(weighted=False):
    """Features with a constant and a line, whose records are weighed where these are too long."""
    basis, _, _ = AnovaPriors(2, 0).choose(9)
    feature_scale = tuple(np.linspace(0.5, 0.3, 11).tolist())
    warp = (KNOTS, (-1.0, 1.0))
    lines = ((1, 0.25, 1.5), (0, -0.5, 3.0))
    return FeatureMap(basis, feature_scale, 1.1, warp, weighted, constant=0, lines=lines)


def test_lines_are_straight_in_the_inputs_as_given():
    head = fair()
    u = points()
    straight = (
        np.column_stack([1.5 * (u[:, 1] - 0.25), 3 * (u[:, 0] + 0.5)]) * head.feature_scale[-2:]
    )
    assert head.functions(u)[:, 9:] == pytest.approx(straight, abs=1e-12)
    assert head.columns == head.rows(u).shape[1] == 11


@pytest.mark.parametrize("weighted", [False, True])
def test_outputs_are_weighed_with_features_that_would_be_too_long(weighted):
    """A function in the span leaves no residual anywhere.

    Shortened features alone would have bent it.
    """
    head = fair(weighted)
    u = points(outputs=1 + weighted)
    if weighted:
        u[:, 2] = np.random.default_rng(3).uniform(0.2, 1.0, len(u))
    w = np.random.default_rng(2).normal(size=11)
    phi = head.functions(u)
    long = np.sqrt((phi**2).sum(axis=1))
    assert (long**2 > 1.3 * head.radius2).any()
    u[:, -1] = phi @ w
    statistic = stage(head, w[None], [0.01])
    rows = statistic.rows(u)
    assert rows[:, -1] == pytest.approx(0, abs=5e-3)  # of a length of √1.1, at the clip
    u[:, -1] += 1e-3
    weight = (
        np.sqrt(head.radius2)
        / np.maximum(long, np.sqrt(head.radius2))
        * (u[:, 2] if weighted else 1.0)
    )
    more = statistic.rows(u)[:, -1] - rows[:, -1]
    assert more == pytest.approx(weight * 0.1 * np.sqrt(head.radius2), abs=1e-4)
    assert rows[:, :11] == pytest.approx(phi * weight[:, None], abs=1e-5)


def test_features_that_were_told_before_there_were_constants_and_lines_are_understood():
    told = stage(features(), np.ones((1, 12)), [0.3]).describe()["head"]
    del told["constant"], told["lines"]
    assert FeatureMap.from_dict(told) == features()


def test_a_release_tells_the_features_again():
    for head in (features(), features(warp=(KNOTS, (-1.0, 1.0))), fair()):
        told = stage(head, np.ones((1, head.columns)), [0.3]).describe()
        assert FeatureMap.from_dict(told["head"]) == head
        assert (told["reach"], len(told["weights"][0])) == ([0.3], head.columns)


def test_inputs_are_counted():
    statistic = InputCounts(2, 4)
    u = np.array([[-1.0, 1.0, 7.0], [-0.51, 0.99, 7.0], [0.0, -0.5, 7.0], [1.0, 0.0, 7.0]])
    assert statistic.block_sum(u).tolist() == [2, 0, 1, 1, 0, 1, 1, 2]


def test_moments_of_inputs_are_added_up():
    statistic = InputMoments(2)
    u = np.array([[-1.0, 0.5, 7.0], [0.25, 0.0, 7.0]])
    found = (statistic.block_sum(u) * statistic.step).tolist()
    assert found[:4] == [-0.75, 0.5, -0.9375, -1.75]
    assert found[4] == pytest.approx(2 * 6**0.5, rel=1e-6)  # two records, each counts √(3·norm2)
    corners = np.array([[1.0, -1.0, 7.0]])
    assert (statistic.rows(corners) ** 2).sum() == statistic.norm2


@pytest.mark.parametrize(("r", "s"), [((0.5,), ()), ((0.5,), (1.0, 1.0)), ((), (1.0,))])
def test_thresholds_that_leave_out_an_output_are_refused(r, s):
    """A column that nothing is written to would hold what memory held: other records, say."""
    plain = stage(features(), np.zeros((1, features().columns)), (0.5,))
    with pytest.raises(BadInput, match="one threshold for each of its 1 outputs"):
        ResidualSizeGram(plain.feature_map, plain.weights, plain.shift, r, s)
    if not r:
        with pytest.raises(BadInput, match="one threshold for each"):
            ResidualGram(plain.feature_map, plain.weights, plain.shift, r)
