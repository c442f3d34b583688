"""Grids, regions and moments of columns, by hand.

Which cell a value is in, what a record adds, and when rows are shortened.
"""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reticent import BadInput, Bounds
from reticent.models.gp.binning import given_regions, label_sums, make_grid, region_boxes
from reticent.models.mixtures.standardized_covariance import _first_moments, fit_covariance
from reticent.privacy.accounting.events import Gaussian
from reticent.privacy.people.unit import PrivacyUnit
from reticent.privacy.release import Release
from reticent.privacy.row_maps.binned_sums import BinCounts, BinSums, BinTotals, Grid, LabelSums
from reticent.privacy.row_maps.column_moments import ColumnMoments, ScaledGram
from reticent.privacy.row_maps.grid_counts import GridCounts, bins_for

MAP = Bounds(x=[(-2.0, 3.0), (0.0, 110.0)], y=(-1.0, 3.0))
EDGES = ((-2.0, 0.0, 0.5, 3.0), (0.0, 50.0, 110.0))
TABLE = np.array([[0, 0], [-1, 1], [1, 2]])
SOME = Grid(EDGES, tuple(TABLE.ravel().tolist()))


def cell_of(value, edges):
    """The bin [edge, next edge) with the last one closed; what is outside counts as the edge."""
    held = min(max(value, edges[0]), edges[-1])
    return min(sum(held >= edge for edge in edges) - 1, len(edges) - 2)


@given(st.integers(-300, 400), st.integers(-200, 1400))
@settings(max_examples=80, deadline=None)
def test_a_record_is_in_the_region_of_its_cell(hundredths, tenths):
    x = hundredths / 100
    y = tenths / 10
    unit = MAP.scale(np.array([[x, y, 0.0]]))
    assert SOME.of(unit, MAP)[0] == TABLE[cell_of(x, EDGES[0]), cell_of(y, EDGES[1])]


@pytest.mark.parametrize(("x", "y"), list(itertools.product(*EDGES)))
def test_a_value_on_an_edge_is_in_the_bin_that_begins_there(x, y):
    """Edges are scaled by the same operations as records.

    To the last bit, and just below it is another bin.
    """
    for nudge in (0.0, -1e-12):
        unit = MAP.scale(np.array([[x + nudge, y, 0.0]]))
        assert SOME.of(unit, MAP)[0] == TABLE[cell_of(x + nudge, EDGES[0]), cell_of(y, EDGES[1])]


def test_the_boxes_of_regions_are_their_cells():
    boxes, of = region_boxes(SOME)
    area = np.bincount(of, np.prod(boxes.high - boxes.low, axis=1))
    widths = np.outer(np.diff(EDGES[0]), np.diff(EDGES[1]))
    assert area == pytest.approx([widths[region == TABLE].sum() for region in range(3)])
    points = np.random.default_rng(0).uniform([-2, 0], [3, 110], size=(300, 2))
    region = SOME.of(MAP.scale(np.column_stack([points, np.zeros(300)])), MAP)
    inside = ((points[:, None] >= boxes.low) & (points[:, None] < boxes.high)).all(axis=2)
    assert (inside.sum(axis=1) == (region >= 0)).all(), "in one box, or in none"
    assert (of[inside.argmax(axis=1)][region >= 0] == region[region >= 0]).all()
    assert not SOME.whole
    assert Grid(EDGES, ()).whole
    assert (Grid(EDGES, ()).size, SOME.size) == (6, 3)


def test_a_mask_keeps_single_cells_numbered_in_order():
    mask = make_grid((3, 2), [[True, False], [False, False], [True, True]], MAP)
    assert mask.regions == (0, -1, -1, -1, 1, 2)


@pytest.mark.parametrize(
    ("regions", "words"),
    [
        ([[0, 1]], "shaped like the grid"),
        ([[0.0, 1.0], [1.0, 2.0], [0.0, 0.0]], "whole numbers"),
        ([[0, 2], [2, 0], [0, 0]], "without gaps"),
        ([[1, 1], [1, 1], [1, 1]], "without gaps"),
        ([[-1, -1], [-1, -1], [-1, -1]], "at least one"),
        ([[False, False], [False, False], [False, False]], "at least one"),
    ],
    ids=str,
)
def test_regions_that_cannot_be_are_refused_in_words(regions, words):
    with pytest.raises(BadInput, match=words):
        make_grid((3, 2), regions, MAP)


@pytest.mark.parametrize(
    "regions",
    [
        None,
        [],
        [[]],
        [[[(1, 1)]]],
        [[[(2, 1)]]],
        [[[(0, np.inf)]]],
        [[[(0, np.nan)]]],
        [[[(0, 1), (0, 1)]], []],
        "all",
        [[["a", "b"]]],
        [3],
    ],
    ids=str,
)
def test_regions_to_predict_are_boxes_with_low_below_high(regions):
    with pytest.raises(BadInput, match="low < high for every input"):
        given_regions(regions, 2 if regions == [[[(0, 1), (0, 1)]], []] else 1)


def test_regions_to_predict_may_be_of_several_boxes():
    found = given_regions([[[(0, 1)], [(2, 5)]], [[(1, 2)]]], 1)
    assert found.volumes == pytest.approx([4, 1])


RECORDS = np.array(
    [[-1.0, 20.0, 3.0], [-1.0, 20.0, 1.0], [0.2, 20.0, -1.0], [2.0, 90.0, 0.0], [2.0, 10.0, np.nan]]
)


def added(statistic):
    """What the records add to the released numbers, in their own units."""
    total = statistic.coordinates(statistic.block_sum(MAP.scale(RECORDS)))
    return total.astype(float) * float(statistic.step)


def test_half_counts_tell_counts_and_sums_and_squares():
    """u = 1, 0 in region 0; one record in none; u = −½ in region 2.

    One whose output is missing is in no region, and counted behind them.
    """
    found = added(BinSums(SOME, MAP, True))
    up = found[:3]
    down = found[4:7]
    assert up + down == pytest.approx([2, 0, 1], abs=1e-6)
    assert up - down == pytest.approx([1, 0, -0.5], abs=1e-6)
    assert found[[3, 7]].tolist() == [1, 0]
    assert found[8] * math.sqrt(2) == pytest.approx(3 - (1 + 0.25), abs=1e-6), (
        "records less squares, of those in regions"
    )
    assert len(added(BinSums(SOME, MAP, False))) == 8


def test_labels_alone_tell_sums_and_counts_are_public():
    asked = label_sums(SOME, MAP, True, MAP.scale(RECORDS)[:, :2])
    assert asked.counts == (2, 1, 1)
    assert added(asked) == pytest.approx([1, 0, -0.5, 0, 1, 0, 3 - 1.25], abs=1e-6)
    assert added(BinTotals(SOME, MAP)) == pytest.approx([1, 0, -0.5], abs=1e-6)
    assert added(BinCounts(SOME, MAP)) == pytest.approx([2, 1, 1, 0, 1]), (
        "the last ones are for incomplete inputs, and for no region"
    )
    assert len(added(BinCounts(Grid(EDGES, ()), MAP))) == 7, "no last where all cells are regions"
    lacking = np.array([[np.nan, 0.3], [0.1, np.nan]])
    counts = BinCounts(SOME, MAP).block_sum(lacking)
    assert counts.tolist() == [0, 0, 0, 2, 0]
    told = {"name", "kind", "size", "grid", "bounds"}
    assert BinTotals(SOME, MAP).describe().keys() == told, "files hold this, and were paid for"


@pytest.mark.parametrize("u", np.linspace(-1, 1, 9))
def test_rows_are_no_longer_than_one_and_as_long_at_the_ends(u):
    """1 − u²(1 − u²)/2 of records, 1 − u²(1 − u²) of labels."""
    record = np.array([[0.0, 0.0, u]])
    for kind, less in ((BinSums(SOME, MAP, True), 2), (LabelSums(SOME, MAP, True, (0,) * 3), 1)):
        row = kind.short_rows(record)[0]
        assert row @ row == pytest.approx(1 - u**2 * (1 - u**2) / less, rel=1e-12)
    half = BinSums(SOME, MAP, False).short_rows(record)[0]
    assert (half >= 0).all()
    assert half.sum() == pytest.approx(1), "what Laplace noise rests on"


@pytest.mark.parametrize("dimension", [1, 2, 3])
@pytest.mark.parametrize("bins", [2, 5])
def test_the_middle_of_each_cell_is_in_it(dimension, bins):
    grid = GridCounts(dimension, bins)
    assert grid.cells(grid.centres())[:, 0].tolist() == list(range(bins**dimension))
    corners = np.array(
        [[-1.0] * dimension, [1.0] * dimension, [-9.0] * dimension, [9.0] * dimension]
    )
    assert grid.cells(corners)[:, 0].tolist() == [0, bins**dimension - 1] * 2


@given(st.integers(1, 10**9), st.floats(1e-6, 1e9), st.integers(1, 3))
@settings(max_examples=80, deadline=None)
def test_grids_are_finer_where_noise_allows_and_never_too_fine(n, sd, dimension):
    bins = bins_for(n, sd, dimension)
    assert bins >= 2
    assert bins == 2 or bins**dimension <= 4096
    assert bins_for(2 * n, sd, dimension) >= bins
    assert bins_for(n, 2 * sd, dimension) <= bins
    assert bins_for(10**9, 1e-6, dimension) == {1: 4096, 2: 64, 3: 16}[dimension], (
        "as many as a root is, not one less"
    )


@pytest.mark.parametrize("ball", [False, True])
def test_no_row_of_the_first_moments_is_shortened(ball):
    """In the box t² + (1 − t²)² ≤ 1 for each column.

    In the ball ‖t‖² + Σt⁴ ≤ 2: nothing is lost where nothing is known.
    """
    asked = _first_moments(4, ball=ball)
    draw = np.random.default_rng(0)
    records = np.vstack(
        [draw.uniform(-1, 1, size=(200, 4)), draw.choice([-1.0, 0.0, 1.0], size=(200, 4))]
    )
    if ball:
        records /= np.maximum(np.linalg.norm(records, axis=1, keepdims=True), 1)
    rows = asked.rows(records)
    assert (rows**2).sum(axis=1).max() <= float(asked.norm2) * (1 + 1e-12)
    assert asked.integers(records) == pytest.approx(np.trunc(rows * 2.0**asked.bits), abs=1)


def test_later_moments_look_closer_and_are_shortened():
    asked = ColumnMoments((0.5, -0.5), (0.1, 0.2), (0.25, 0.25), 1.0)
    rows = asked.rows(np.array([[0.5, -0.5], [0.55, -0.6], [0.9, -0.9]]))
    assert rows == pytest.approx(
        np.array([[0, 0, -0.25, -0.25], [0.5, -0.5, 0, 0], [1, -1, 0.75, 0.75]])
    )
    held = asked.integers(np.array([[0.9, -0.9]]))[0] * 2.0**-asked.bits
    assert np.linalg.norm(held) == pytest.approx(1, abs=1e-6)
    assert held / held[0] == pytest.approx(rows[2], abs=1e-5), "in its own direction"
    scaled = ScaledGram((0.5, 0.0), (10.0, 1.0), 3.0)
    assert scaled.rows(np.array([[0.6, 0.5], [-1.0, 1.0]])) == pytest.approx(
        np.array([[1.0, 0.5], [-4.0, 1.0]])
    )


class Counting:
    """An oracle that gives nothing away but zeros, and remembers what it was asked for and how
    often it counts.
    """

    unit = PrivacyUnit()
    n_sd = 0.0

    def __init__(self, n, d, norm=None):
        self.n = n
        self.bounds = Bounds(x=[(-1, 1)] * d, norm=norm)
        self.asked = []

    def release(self, statistic, shares_spent=1):
        self.asked.append((type(statistic).__name__, shares_spent, statistic))
        size = statistic.size
        event = Gaussian(noise_multiplier=1.0)
        value = np.zeros(size) if isinstance(statistic, ColumnMoments) else np.full(size, 1e-3)
        return Release(
            statistic.describe(),
            value,
            np.ones(size),
            event,
            self.n,
            self.bounds,
            1,
            True,
            "x",
            shares_spent,
            relation="record",
        )


@pytest.mark.parametrize("releases", [4, 7, 8])
@pytest.mark.parametrize(("n", "staged"), [(5, False), (10**6, True)])
@pytest.mark.parametrize("norm", [None, 1.0])
def test_shares_of_moments_and_correlations_are_what_was_paid_for(releases, n, staged, norm):
    """Half for the columns, in one stage or in as many, as n and the noise say.

    The rest for the correlations.
    """
    oracle = Counting(n, 3, norm)
    found = fit_covariance(oracle, 3.0, releases)
    names, times, _ = zip(*oracle.asked, strict=True)
    half = releases // 2
    assert times == ((1,) * half if staged else (half,)) + (releases - half,)
    assert names == ("ColumnMoments",) * (half if staged else 1) + ("ScaledGram",)
    assert np.isfinite(found.correlation).all()
    assert (found.scale > 0).all()


@pytest.mark.parametrize("releases", [4, 7, 8])
@pytest.mark.parametrize(("n", "centred"), [(5, False), (10**6, True)])
@pytest.mark.parametrize("norm", [None, 1.0])
def test_shares_of_looks_on_one_scale_are_what_was_paid_for(releases, n, centred, norm):
    """One look where noise hides the mean, else about a third; the rest for one Gram matrix."""
    oracle = Counting(n, 3, norm)
    found = fit_covariance(oracle, 3.0, releases, hidden_variances=0.0)
    names, times, _ = zip(*oracle.asked, strict=True)
    looks = {4: 1, 7: 2, 8: 3}[releases] if centred else 1
    assert times == (1,) * looks + (releases - looks,)
    assert names == ("ResidualMoments",) * looks + ("ScaledGram",)
    assert np.linalg.eigvalsh(found.covariance).min() > 0
    assert (found.scale > 0).all()
    assert (found.mean_sd > 0).all()
