"""Leaves of heavy cells and blocks of light ones: what is summed, and what is read off the sums."""

import math

import numpy as np
import pytest

import reticent
from reticent.inference.mixtures import adaptive_grid as rules
from reticent.inference.mixtures.adaptive_grid import (
    AdaptiveGridCounts,
    cell_splits,
    expected_counts,
    merge_light_cells,
)
from reticent.inference.mixtures.settings import ADAPTIVE_GRID
from reticent.inference.mixtures.weighted_kmeans import weighted_kmeans
from reticent.privacy.row_maps.grid_counts import GridCounts, LeafSums

NONE = np.zeros((0, 2), dtype=np.int64), np.zeros(0)


def tables(d, rng):
    """Splits of the cells of a grid with three bins, and blocks of some of those
    that are not cut.
    """
    cut = rng.choice([1, 1, 2, 4], size=3**d)
    cut[[0, -1]] = 1
    light = cut == 1
    joined = np.full(3**d, -1)
    joined[light] = np.unique(rng.integers(3, size=light.sum()), return_inverse=True)[1]
    return tuple(cut.tolist()), tuple(joined.tolist())


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("joined", [False, True])
def test_leaves_say_where_records_are(d, joined):
    """Every record is in the leaf whose corner and width say so, at the place that is summed."""
    rng = np.random.default_rng(0)
    cut, block = tables(d, rng)
    asked = LeafSums(d, 3, cut, block if joined else ())
    cell, corner, width = asked.leaves()
    data = np.vstack([rng.uniform(-1, 1, size=(300, d)), np.ones((1, d)), -np.ones((1, d))])
    leaf = asked.cell(data).astype(int)
    assert asked.cells == len(width) == len(cell)
    assert leaf.max() == asked.cells - 1, "enough records for the last leaf"
    place = (data - corner[leaf]) / width[leaf, None]
    assert asked.short_rows(data)[:, 1:] == pytest.approx(place / 2, abs=1e-9)
    assert place.min() > -1e-9
    assert place.max() < 1 + 1e-9
    true = GridCounts(d, 3).cells(data)[:, 0].astype(int)
    if not joined:
        assert (cell[leaf] == true).all()
        assert (width**d).sum() == pytest.approx(2**d)
    for number in range(max(block) + 1 if joined else 0):
        inside = np.array(block)[true] == number
        assert len(set(leaf[inside])) == 1, "a block is one leaf"
        assert not np.isin(leaf[~inside], leaf[inside]).any()


@pytest.mark.parametrize(
    ("asked", "corner"),
    [
        (LeafSums(2, 2, (1, 4, 1, 2)), -1e-9),
        (LeafSums(2, 3, (1,) * 8 + (2,), (0, 0, -1, 0, 0, -1, -1, -1, -1)), 1 / 3 - 1e-9),
    ],
)
def test_the_far_corners_of_two_leaves_attain_the_sensitivity(asked, corner):
    one, other = (asked.block_sum(np.full((1, 2), at)) for at in (1.0, corner))
    ratio = ((one - other) ** 2).sum() / asked.sensitivity2
    assert 0.999 < ratio <= 1


def test_no_pair_of_records_goes_further_than_the_sensitivity():
    """The best of random pairs at corners of cells, leaves and blocks, where rows are longest."""
    rng = np.random.default_rng(0)
    cut, block = tables(2, rng)
    asked = LeafSums(2, 3, cut, block)
    corners = np.linspace(-1, 1, 3 * 4 + 1)
    records = rng.choice([*corners, *(corners - 1e-9)], size=(400, 2)).clip(-1, 1)
    rows = asked.integers(records)
    furthest = max(float(((rows - row) ** 2).sum(axis=1).max()) for row in rows)
    assert 0.99 < furthest / asked.sensitivity2 <= 1


@pytest.mark.parametrize("wrong", [(1, 1, 1), (1, 1, 1, 0), (1,) * 5])
def test_a_table_that_lacks_a_cell_is_refused_before_any_record(wrong):
    with pytest.raises(reticent.BadInput, match="each of 4 cells"):
        LeafSums(2, 2, wrong)


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ((0, 0, 0), "each of 4 cells"),
        ((0, 2, -1, -1), "without gaps"),
        ((-2, 0, -1, -1), "without gaps"),
        ((0, 0, 0, 0), "not both"),
    ],
)
def test_blocks_that_cannot_be_are_refused_before_any_record(wrong, why):
    with pytest.raises(reticent.BadInput, match=why):
        LeafSums(2, 2, (1, 1, 1, 2), wrong)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_a_heap_across_light_cells_is_one_block(d):
    bins = {1: 20, 2: 11, 3: 10}[d]
    counts = np.zeros((bins,) * d)
    counts[(slice(6, 8),) * d] = 2.0
    heavy = np.ones_like(counts, dtype=int)
    heavy[(0,) * d] = 4
    found = np.reshape(
        merge_light_cells(counts.ravel(), tuple(heavy.ravel().tolist()), d, 10**9, 1), counts.shape
    )
    heap = found[(slice(6, 8),) * d]
    assert len(set(heap.ravel())) == 1
    assert (found == heap.ravel()[0]).sum() == 2**d
    assert found[(0,) * d] == -1
    assert (np.bincount(found[found >= 0]) > 0).all(), "numbered without gaps"
    beside = found[(slice(0, 2),) * d].ravel()[1:]
    assert all((found == number).sum() == 1 for number in beside), (
        "cells beside a heavy one stay alone"
    )
    width = [
        np.ptp(np.argwhere(found == number), axis=0).max() + 1 for number in range(found.max() + 1)
    ]
    assert max(width) <= max(min(bins // 5, 3), 1)


def test_every_light_cell_is_in_one_block_whatever_is_released():
    rng = np.random.default_rng(0)
    for bins in (2, 5, 11, 16):
        for counts in (rng.normal(size=bins**2), np.zeros(bins**2), np.full(bins**2, -1e9)):
            cut = tuple(rng.choice([1, 1, 1, 2], size=bins**2).tolist())
            found = np.array(merge_light_cells(counts, cut, 2, 100, 2))
            assert ((found >= 0) == (np.array(cut) == 1)).all()
            LeafSums(2, bins, cut, tuple(found.tolist()))  # accepts them


@pytest.mark.parametrize(("clusters", "side"), [(1, 2), (5, 2), (6, 1), (400, 1)])
def test_a_block_spans_at_most_a_fifth_and_a_kth_of_a_column(clusters, side):
    empty = np.random.default_rng(0).normal(size=10**3)
    found = np.bincount(merge_light_cells(empty, (1,) * 10**3, 3, 10**6, clusters))
    assert found.max() == side**3


def test_a_block_of_several_cells_has_at_most_a_fifth_of_the_records_of_a_cluster():
    counts = np.random.default_rng(0).normal(0, 10, size=(10, 10))
    counts[5:] += 400  # 20,000 records in half of the box
    found = np.array(merge_light_cells(counts.ravel(), (1,) * 100, 2, 20_000, 4))
    size = np.bincount(found)
    total = np.bincount(found, counts.ravel())
    assert size.max() == 4
    assert total[size > 1].max() <= 20_000 / (5 * 4)
    assert len(np.unique(found[50:])) >= 5 * 4


@pytest.mark.parametrize("d", [1, 2, 3])
def test_there_are_several_places_for_each_cluster(d):
    """Even records, no cell of which is cut.

    Joined as if there were five clusters, some had no place of their own.
    """
    data = np.random.default_rng(0).uniform(-1, 1, size=(20_000, d))
    k = 100
    settings = {
        "bounds": reticent.Bounds(x=(-1, 1)),
        "epsilon": 25,
        "delta": 1e-6,
        "random_state": 0,
    }
    model = reticent.KMeans(k, **settings).fit(data)
    asked = model.releases_[1]
    assert asked.statistic["name"] == "LeafSums"
    assert len(asked.value) / (d + 1) > 4 * k


def test_what_is_expected_is_bayes_rule_where_nothing_touches():
    clear = np.array([-3.0, 0.0, 2.0, 3.0, 5.0, 12.0, 30.0])
    sizes = np.exp(np.linspace(math.log(0.25), math.log(40.0), 20_001))
    seen = np.exp(-((clear[:, None] - sizes) ** 2) / 2).mean(axis=1)
    chance = (
        ADAPTIVE_GRID.prior_odds
        * seen
        / (ADAPTIVE_GRID.prior_odds * seen + np.exp(-(clear**2) / 2))
    )
    mean = (np.exp(-((clear[:, None] - sizes) ** 2) / 2) * sizes).mean(axis=1) / seen
    want = np.where(clear > 20, clear, chance * mean)
    assert expected_counts(clear, *NONE) == pytest.approx(want, rel=0.02)


def test_chances_of_a_tree_of_blocks_are_exact():
    """Belief propagation on a chain, beside all sixteen states of four blocks."""
    clear = np.array([3.0, 1.5, -0.5, 2.0])
    chain = np.array([[0, 1], [1, 2], [2, 3]])
    alone = expected_counts(clear, *NONE)
    sizes = rules._SIZES
    ratio = np.exp(clear[:, None] * sizes - sizes**2 / 2)
    odds = ADAPTIVE_GRID.prior_odds * ratio.mean(axis=1)
    mean = (ratio * sizes).sum(axis=1) / ratio.sum(axis=1)
    assert alone == pytest.approx(mean * odds / (1 + odds))
    states = np.stack(np.meshgrid(*[[0, 1]] * 4, indexing="ij"), axis=-1).reshape(-1, 4)
    same = (states[:, chain[:, 0]] == states[:, chain[:, 1]]) @ np.array([1.0, 0.5, 1.0])
    weight = (odds**states).prod(axis=1) * np.exp(ADAPTIVE_GRID.coupling / 2 * same)
    want = mean * (weight @ states) / weight.sum()
    assert expected_counts(clear, chain, np.array([1.0, 0.5, 1.0])) == pytest.approx(want, rel=1e-6)


def looked_at(data, bins, sd, rng):
    """Two looks with the same noise in each count: cells, then leaves and blocks."""
    coarse = GridCounts(2, bins).block_sum(data) + sd * rng.normal(size=bins**2)
    cut = cell_splits(coarse, sd, 2)
    asked = LeafSums(2, bins, cut, merge_light_cells(coarse, cut, 2, 10**9, 1))
    exact = asked.block_sum(data) * asked.step
    counts = exact[: asked.cells]
    places = 2 * exact[asked.cells :].reshape(2, -1).T
    noisy = (
        counts + sd * rng.normal(size=counts.shape),
        places + 2 * sd * rng.normal(size=places.shape),
    )
    return asked, AdaptiveGridCounts(
        coarse, sd, np.array(asked.blocks), *asked.leaves(), *noisy, sd, 2 * sd
    )


def test_leaves_find_heaps_inside_a_cell_and_take_noise_for_nothing():
    """Two cities of 5,000 in one coarse cell, noise of 20 in each count.

    Two points near them, and little elsewhere.
    """
    rng = np.random.default_rng(1)
    data = rng.choice([[0.11, 0.13], [0.36, 0.41]], size=10_000) + 0.005 * rng.normal(
        size=(10_000, 2)
    )
    asked, leaves = looked_at(data, 4, 20.0, rng)
    points, weights, _ = leaves.points()
    assert weights.sum() == pytest.approx(10_000, rel=0.03)
    found = weighted_kmeans(points, weights, 2, rng)
    assert np.sort(found, axis=0) == pytest.approx(np.array([[0.11, 0.13], [0.36, 0.41]]), abs=0.01)
    assert max(asked.splits) == 8
    assert min(asked.splits) == 1, "empty cells are not cut"
    assert cell_splits(np.array([1e9]), 1e-3, 2) == (32,)


def test_a_thin_heap_across_cells_is_seen_where_cells_alone_would_not_show_it():
    """800 records at a corner of four cells.

    Two standard deviations of each look at each cell, eight of one look at all.
    """
    seen = []
    alone = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        far = 0.02 * rng.normal(size=(800, 2)) + [7 * 2 / 11 - 1, 3 * 2 / 11 - 1]
        city = 0.01 * rng.normal(size=(50_000, 2)) + [-0.6, 0.6]
        _, leaves = looked_at(np.vstack([city, far]), 11, 100.0, rng)
        points, weights, _ = leaves.points()
        near = ((points - far.mean(axis=0)) ** 2).sum(axis=1) < 0.2**2
        seen.append(weights[near].sum())
        elsewhere = ~near & (((points - [-0.6, 0.6]) ** 2).sum(axis=1) > 0.4**2)
        alone.append(weights[elsewhere].sum())
    assert np.mean(seen) == pytest.approx(800, rel=0.2)
    assert np.mean(alone) < 200, (
        "far away there is nothing, in a hundred cells with a noise of 70 each"
    )
