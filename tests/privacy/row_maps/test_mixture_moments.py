"""Distances and responsibilities, against fractions.

What responsibilities.md says of products, clips, ties and tables.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

from reticent import BadInput
from reticent.privacy.accounting.events import Gaussian
from reticent.privacy.bounds import Bounds
from reticent.privacy.release import Release
from reticent.privacy.row_maps import mixture_moments as responsibilities
from reticent.privacy.row_maps.mixture_moments import (
    CellCounts,
    CentredGram,
    LengthCounts,
    LogRatio,
    Metric,
    ResidualMoments,
    _chances,
    metric,
    residual_moments,
)

FINE = 2**14  # z is in steps of 1/FINE
rng = np.random.default_rng(0)
RECORDS = np.vstack(
    [rng.uniform(-1, 1, size=(12, 3)), np.eye(3), -np.ones((1, 3)), [[1 / 3, -1 / 3, 0.1]]]
)


def exact(where, record):
    """z of every centre in steps of 2^-14, not yet rounded, in fractions."""
    q = [Fraction(math.trunc(v * 2**24)) for v in record]
    unit = (
        Fraction(FINE) / 2 ** (24 + where.shift)
        if where.shift >= -24
        else Fraction(FINE * 2 ** -(24 + where.shift))
    )
    maps = where.maps if len(where.maps) > 1 else where.maps * len(where.centres)
    return [
        [
            (sum(a * b for a, b in zip(q, column, strict=True)) - c) * unit
            for column, c in zip(zip(*A, strict=True), centre, strict=True)
        ]
        for A, centre in zip(maps, where.centres, strict=True)
    ]


@pytest.mark.parametrize("size", [1e-6, 0.3, 1.0, 50.0, 200.0])
@pytest.mark.parametrize("shared", [True, False])
def test_distances_are_exact_products_rounded_once(size, shared):
    maps = size * rng.normal(size=(3, 2) if shared else (4, 3, 2))
    where = metric(maps, size * rng.normal(size=(4, 2)))
    z, square = where.away(RECORDS)
    assert z.shape == (2, 4, len(RECORDS))
    assert (z == np.rint(z)).all()
    for i, record in enumerate(RECORDS):
        for k, centre in enumerate(exact(where, record)):
            assert all(abs(z[p, k, i] - value) <= Fraction(1, 2) for p, value in enumerate(centre))
            assert (
                Fraction(square[k, i])
                == sum(Fraction(int(z[p, k, i])) ** 2 for p in range(2)) / FINE**2
            )


@given(st.floats(-25, 25), st.floats(-25, 25), st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_no_map_or_centre_is_too_long_for_the_steps_that_are_chosen(map_size, centre_size, seed):
    """`metric` scales them so that they never are.

    Nothing that a release can lead to is refused.
    """
    draw = np.random.default_rng(seed)
    maps = 2.0**map_size * draw.normal(size=(2, 3, 3))
    centres = 2.0**centre_size * draw.normal(size=(2, 3))
    where = metric(maps, centres)
    z, square = where.away(RECORDS)
    assert np.isfinite(square).all()
    assert (np.abs(z) <= 2**26).all()
    assert (square * FINE**2 <= 2**52).all(), "sums of squares are exact in every order"


def test_a_clip_that_is_left_out_would_have_changed_nothing():
    for size in (0.5, 30.0, 1e3, 2e5):
        where, other = (metric(size * np.eye(3), np.zeros((1, 3))) for _ in range(2))
        other.__dict__["_long"] = True
        for one, two in zip(where.away(RECORDS), other.away(RECORDS), strict=True):
            np.testing.assert_array_equal(one, two)
    assert not metric(np.eye(3), np.zeros((1, 3)))._long
    assert metric(1e6 * np.eye(3), np.zeros((1, 3)))._long


@pytest.mark.parametrize(
    ("maps", "shift", "centres", "words"),
    [
        ((((2**28 + 1,),),), 0, ((0,),), "map of records is too long"),
        ((((2**27,), (2**27 + 1,)),), 0, ((0,),), "map of records is too long"),
        ((((1,),),), 0, ((2**52 + 1,),), "centre lies too far"),
        ((((1,),), ((1,),)), 0, ((0,), (0,), (0,)), "one map for all centres, or one for each"),
    ],
)
def test_what_would_not_be_exact_is_refused_before_any_record(maps, shift, centres, words):
    with pytest.raises(BadInput, match=words):
        Metric(maps, shift, centres)
    Metric((((2**28,),),), 0, ((2**52,),))  # and these are still exact


def test_lengths_on_an_edge_are_in_the_bin_that_begins_there():
    counts = LengthCounts(metric(np.eye(1), np.zeros((1, 1))), (0.25, 0.5), (0.0,))
    found = counts.cells(np.array([[0.0], [0.25 - 2.0**-14], [0.25], [-0.25], [0.5], [1.0]]))
    assert found[:, 0].tolist() == [0, 0, 1, 1, 2, 2]
    assert counts.groups == (3,)


def test_lengths_are_from_the_likeliest_centre():
    where = metric(np.eye(1), np.array([[-0.5], [0.5]]))
    counts = LengthCounts(where, (0.25, 0.75), (0.0, -0.1))
    found = counts.cells(np.array([[-0.5], [0.5], [0.2], [0.0], [-1.0], [0.12]]))
    # between the centres the heavier one is likelier, although a little farther away
    assert found[:, 0].tolist() == [0, 0, 1, 1, 1, 1]
    with pytest.raises(BadInput, match="one level for each centre"):
        LengthCounts(where, (0.25,), (0.0,))


def test_log_ratios_are_those_of_the_densities():
    rng = np.random.default_rng(0)
    maps = rng.normal(size=(5, 2, 2)) * 3
    centres = rng.normal(size=(5, 2))
    levels = rng.normal(size=5)
    records = rng.uniform(-1, 1, size=(200, 2))
    ratio = LogRatio(metric(maps, centres), tuple(levels.tolist()), 3, (1000.0, 1e-3))
    square = ((np.einsum("nd,kdp->knp", records, maps) - centres[:, None]) ** 2).sum(axis=2)
    logs = levels[:, None] - square / 2
    expected = logsumexp(logs[:3], axis=0) - logsumexp(logs[3:], axis=0)
    found = ratio.rows(records)
    assert np.abs(found[:, 0] / 0.89 * 1000 - expected).max() < 2e-3
    clear = np.abs(expected) > 0.01
    assert np.array_equal(found[clear, 1], 0.4559 * np.sign(expected[clear]))
    assert (found**2).sum(axis=1).max() <= 1
    with pytest.raises(BadInput, match="two mixtures"):
        LogRatio(metric(maps, centres), tuple(levels.tolist()), 5, (1.0, 2.0))


def test_cells_are_counted_with_the_last_column_fastest_and_the_outside_in_the_nearest():
    cells = CellCounts(metric(np.eye(2), np.zeros((1, 2))), 0.5, 4)
    at = np.array(
        [
            [-0.5, -0.5],
            [-0.5, -0.25],
            [-0.25, -0.5],
            [0.49, 0.49],
            [0.5, 0.5],
            [1.0, -1.0],
            [-1.0, 1.0],
        ]
    )
    assert cells.cells(at)[:, 0].tolist() == [0, 1, 4, 15, 15, 12, 3]
    assert cells.groups == (16,)


@pytest.mark.parametrize("side", [0.35, 0.7, 1.0])
def test_the_sensitivity_of_a_centred_gram_is_attained_at_the_angle_that_the_proof_names(side):
    """Rows of full length with ⟨u, u′⟩ = −s²."""
    gram = CentredGram(metric(8.0 * np.eye(2), np.zeros((1, 2))), 0.5, side)
    angle = math.acos(-(side**2))
    u = np.array([[1.0, 0.0]])
    v = np.array([[math.cos(angle), math.sin(angle)]])
    one, other = (gram.coordinates(gram.block_sum(record)) for record in (u, v))
    moved = float(gram.coordinate_multiplicity() @ (one - other).astype(float) ** 2)
    assert 0.9999 < moved / float(gram.sensitivity2) <= 1
    beside = gram.coordinates(gram.block_sum(np.array([[0.0, 1.0]])))
    assert (
        float(gram.coordinate_multiplicity() @ (one - beside).astype(float) ** 2) < 0.9999 * moved
    ), "no other angle is as far"


@pytest.mark.parametrize("weights", [(4, 4, 1), (1, 2, 8), (1, 4, 32)])
def test_the_sensitivity_depends_on_weights_alone(weights):
    """Not on the number of parts, on centres, maps, radii or levels.

    So that these may follow releases.
    """
    found = set()
    for parts, size in ((1 + 1, 1.0), (2, 1e3), (7, 0.01), (40, 5.0)):
        where = metric(size * rng.normal(size=(3, 3)), rng.normal(size=(parts, 3)))
        asked = residual_moments(
            where,
            radius=rng.uniform(0.1, 9, parts),
            levels=rng.normal(size=parts),
            second="full",
            weights=weights,
        )
        found.add(asked.sensitivity2)
    assert len(found) == 1


def test_a_step_of_clusters_has_the_sensitivity_that_its_proof_says():
    """Δ² = max{2(4 + 4 + 1), 16} = 18.

    Of these, records of different centres at the end of their reach attain 16.
    """
    centres = np.array([[-0.5, 0.0], [0.5, 0.0]])
    asked = residual_moments(
        metric(np.eye(2), centres),
        radius=[0.25, 0.25],
        second="trace",
        together=True,
        weights=(4, 4, 1),
        hard=True,
    )
    unit = asked.coordinates(np.array([2**12, *[0] * 6]))[
        0
    ]  # one record, in steps of the released numbers
    assert asked.sensitivity2 == pytest.approx(18 * unit**2, rel=1e-6)

    def moved(one, other):
        a, b = (asked.coordinates(asked.block_sum(np.array([point]))) for point in (one, other))
        return float((asked.coordinate_multiplicity() * (a - b) ** 2).sum()) / unit**2

    assert moved([-1.0, 0.0], [1.0, 0.0]) == pytest.approx(16, rel=1e-3), (
        "the one sum of squares is the same"
    )
    assert moved([-1.0, 0.0], [0.5, 0.0]) == pytest.approx(4 + 4 + 4 + 1, rel=1e-3), (
        "a record at its centre has none"
    )
    assert moved([-1.0, 0.0], [0.0, 0.0]) == pytest.approx(16, rel=1e-3), (
        "opposite ends of one reach"
    )
    points = np.random.default_rng(0).uniform(-1, 1, size=(60, 2))
    assert max(moved(p, q) for p, q in zip(points[::2], points[1::2], strict=True)) <= 16.01


def test_among_equally_near_centres_the_first_gets_all():
    asked = residual_moments(metric(np.eye(1), [[-0.5], [0.5], [0.5]]), radius=[1.0] * 3, hard=True)
    gamma, _ = asked.responsibilities(np.array([[0.0], [0.7], [-0.1]]))
    assert gamma.tolist() == [[1, 0, 0], [0, 1, 0], [1, 0, 0]]


def test_levels_are_logarithms_of_weights():
    asked = residual_moments(
        metric(np.eye(1), [[-0.5], [0.5]]), radius=[1.0] * 2, levels=np.log([0.9, 0.1])
    )
    gamma, _ = asked.responsibilities(np.array([[0.0]]))
    assert gamma[0] == pytest.approx([0.9, 0.1], abs=1e-3)
    with pytest.raises(BadInput, match="one level and one radius for each part"):
        residual_moments(metric(np.eye(1), [[-0.5], [0.5]]), radius=[1.0])
    with pytest.raises(BadInput, match="one level and one radius for each part"):
        residual_moments(metric(np.eye(1), [[-0.5], [0.5]]), radius=[1.0] * 2, levels=[0.0])


@given(st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=9), st.integers(0, 8))
@settings(max_examples=60, deadline=None)
def test_chances_from_the_table_are_those_of_a_softmax(logits, place):
    column = np.array(logits)[:, None]
    true = np.exp(np.maximum(column - column.max(), -700))
    true /= true.sum()
    block = np.tile(column, 9) - np.arange(
        9
    )  # neighbours with other levels: a record's chances are its own
    block[:, place] = column[:, 0]
    found = _chances(block.copy())[:, place]
    cut = len(logits) * 2.0**-12  # chances below a step count as none, and the others share them
    assert found == pytest.approx(true[:, 0], rel=1.1e-4, abs=cut)
    assert found.sum() == pytest.approx(1, abs=1e-12)
    np.testing.assert_array_equal(found, _chances(column.copy())[:, 0])


def test_shares_that_cannot_reach_the_grid_are_left_out_and_others_are_not():
    """On the grid the same whole numbers as by the table."""
    edge = responsibilities._FARTHEST
    for below, alone in ((edge, True), (edge - 1, True), (edge + 1e-3, False), (-5.0, False)):
        chances = _chances(np.array([[0.0], [below]]))[:, 0]
        assert (chances[0] == 1.0) == alone
        by_table = responsibilities._softmax(np.array([[0.0], [below]]))[:, 0]
        assert math.trunc(by_table[1] * 2**12) == math.trunc(chances[1] * 2**12)


def test_the_table_rounds_to_the_nearest():
    """A relative error of half a step, log 2 / 8192, at most; without bias."""
    below = -np.random.default_rng(0).uniform(0, 600, size=20_000)
    first, second = responsibilities._softmax(np.stack([0 * below, below.copy()]))
    error = second / first / np.exp(below) - 1
    assert np.abs(error).max() < 1.001 * math.log(2) / 8192
    assert abs(error.mean()) < 2e-6


def test_the_table_holds_powers_of_two():
    assert pytest.approx(2.0 ** (np.arange(4096) / 4096), rel=1e-14) == responsibilities._POWERS
    assert pytest.approx(4096 / math.log(2), rel=1e-15) == responsibilities._STEPS


@pytest.mark.parametrize("second", ["none", "trace", "diagonal", "full"])
@pytest.mark.parametrize("together", [False, True])
def test_a_release_is_taken_apart_into_the_moments_that_were_summed(second, together):
    """Against sums by plain arithmetic, for a release without noise."""
    centres = np.array([[-0.4, 0.1, 0.0], [0.3, -0.2, 0.1]])
    d = 3
    asked = residual_moments(
        metric(np.eye(d), centres),
        radius=[0.5, 0.7],
        second=second,
        together=together,
        weights=(1, 1, 0 if second == "none" else 1),
    )
    value = asked.coordinates(asked.block_sum(RECORDS)).astype(float) * asked.step
    bounds = Bounds(x=[(-1, 1)] * d)
    sd = np.sqrt(1 / asked.coordinate_multiplicity())
    release = Release(
        asked.describe(),
        value,
        sd,
        Gaussian(noise_multiplier=1.0),
        len(RECORDS),
        bounds,
        1,
        True,
        "x",
        relation="record",
    )
    found = ResidualMoments.decode(release)
    away = RECORDS[:, None] - centres
    square = (away**2).sum(axis=2)
    gamma = np.exp(-square / 2) / np.exp(-square / 2).sum(axis=1, keepdims=True)
    u = away / np.maximum(np.sqrt(square), [0.5, 0.7])[:, :, None]
    assert found.counts == pytest.approx(gamma.sum(axis=0), abs=0.01)
    assert found.counts.sum() == pytest.approx(len(RECORDS), abs=1e-9), "a record counts as one"
    assert found.first == pytest.approx(np.einsum("nk,nkd->kd", gamma, u), abs=0.01)
    each = np.einsum("nk,nkd,nke->kde", gamma, u, u)
    each = each.sum(axis=0)[None] if together else each
    want = {
        "none": [],
        "full": list(each),
        "diagonal": [np.diag(one) for one in each],
        "trace": [[np.trace(one)] for one in each],
    }[second]
    assert len(found.second) == len(want)
    assert (found.counts_sd, found.first_sd) == (1, 1)
    assert found.second_sd == pytest.approx(math.sqrt(0.5) if want else 0.0), (
        "that of numbers off a diagonal"
    )
    for one, other in zip(found.second, want, strict=True):
        assert np.asarray(one) == pytest.approx(np.asarray(other), abs=0.02)
