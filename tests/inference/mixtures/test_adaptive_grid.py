"""Two looks at where records are.

Cuts and neighbours by brute force, and points without noise by hand.
"""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reticent.inference.mixtures.adaptive_grid import (
    AdaptiveGridCounts,
    cell_splits,
    expected_counts,
    touching_cells,
)


@pytest.mark.parametrize("d", [1, 2, 3])
@settings(max_examples=40)
@given(st.lists(st.floats(-1e3, 1e5), min_size=1, max_size=9), st.floats(0.5, 20))
def test_cells_are_cut_as_finely_as_counts_allow(d, counts, sd):
    """Powers of two.

    Leaves hold six standard deviations of noise on average, and would not if they were halved.
    """
    counts = np.array(counts)
    cut = np.array(cell_splits(counts, sd, d), dtype=float)
    fine = max(6.0, np.maximum(counts, 0).sum() / (4096 * sd))
    assert set(cut) <= {1.0, 2.0, 4.0, 8.0, 16.0, 32.0}
    held = counts / cut**d
    assert (held[cut > 1] >= fine * sd * (1 - 1e-9)).all()
    assert (counts / (2 * cut) ** d < fine * sd * (1 + 1e-9))[cut < 32].all()


def test_there_are_not_too_many_leaves():
    assert cell_splits(np.full(2, 1e9), 1.0, 1) == (32, 32)
    few, many = (np.array(cell_splits(np.full(cells, 1e6), 1.0, 2)) for cells in (9, 900))
    assert many.max() < few.min()
    assert np.square(many).sum() <= 4096


@settings(max_examples=15)
@given(st.integers(0, 10**6), st.integers(1, 3))
def test_neighbours_are_those_that_share_a_face(seed, d):
    rng = np.random.default_rng(seed)
    node = rng.integers(5, size=(4,) * d)
    side = rng.integers(1, 4, 5).astype(float)
    faces = {}
    for place in product(range(4), repeat=d):
        for axis in range(d):
            beside = list(place)
            beside[axis] += 1
            if beside[axis] < 4 and node[place] != node[tuple(beside)]:
                pair = tuple(sorted((int(node[place]), int(node[tuple(beside)]))))
                faces[pair] = faces.get(pair, 0) + 1
    edges, share = touching_cells(node, side)
    found = {tuple(edge): part for edge, part in zip(edges.tolist(), share, strict=True)}
    assert found.keys() == faces.keys()
    for (a, b), count in faces.items():
        assert found[a, b] == pytest.approx(count / max(side[a], side[b]) ** (d - 1))


def test_who_has_a_neighbour_with_records_is_expected_to_have_some():
    clear = np.array([1.0, 1.0, 1.0])
    edge = np.array([[0, 1]])
    alone = expected_counts(clear, edge, np.zeros(1))
    assert alone == pytest.approx(np.full(3, alone[0]))
    rich, poor = (
        expected_counts(np.array([1.0, beside, 1.0]), edge, np.ones(1)) for beside in (12.0, -3.0)
    )
    assert rich[0] > alone[0] > poor[0]
    assert rich[2] == poor[2] == pytest.approx(alone[2])
    assert expected_counts(np.array([25.0]), np.zeros((0, 2), dtype=int), np.zeros(0)).tolist() == [
        25.0
    ]


@settings(max_examples=40)
@given(st.lists(st.floats(-50, 50), min_size=2, max_size=2))
def test_the_more_is_counted_the_more_is_expected(pair):
    low, high = expected_counts(np.sort(pair), np.zeros((0, 2), dtype=int), np.zeros(0))
    assert 0 <= low <= high + 1e-12


def looked(counts_sd=1e-6, places_sd=1e-6, counts=(70.0, 30.0, 0.0, 0.0), **changed):
    """A line of four cells: the first is cut in four leaves.

    The second, alone, and the others, joined, are two blocks.
    """
    given = {
        "coarse": np.array([100.0, 8.0, 0.0, 0.0]),
        "coarse_sd": counts_sd,
        "block": np.array([-1, 0, 1, 1]),
        "cell": np.array([0, 0, 0, 0, 1, 2]),
        "corner": np.array([-1.0, -0.875, -0.75, -0.625, -0.5, 0.0])[:, None],
        "width": np.array([0.125] * 4 + [0.5, 1.0]),
        "counts": np.array([*counts, 8.0, 0.0]),
        "places": np.array([0.2, 0.5, 0.5, 0.5, 0.75, 0.5])[:, None]
        * np.array([*counts, 8.0, 0.0])[:, None],
        "counts_sd": counts_sd,
        "places_sd": places_sd,
    }
    return AdaptiveGridCounts(**{**given, **changed})


def test_without_noise_points_are_where_the_records_are():
    points, weights, spread = looked().points()
    found = {
        round(float(at), 6): w for at, w in zip(points[:, 0], weights, strict=True) if w > 1e-3
    }
    assert found == pytest.approx({-0.975: 70.0, -0.8125: 30.0, -0.125: 8.0})
    assert spread[np.isclose(points[:, 0], -0.125)] == pytest.approx([0.5**2 / 24])
    assert (spread[points[:, 0] < -0.7] == 0).all()


@pytest.mark.parametrize(("sd", "trust"), [(1e-9, 1.0), (70 / np.sqrt(12), 0.5), (1e9, 0.0)])
def test_places_are_believed_as_far_as_their_noise_allows(sd, trust):
    """A place that may be anywhere has variance 1/12: of 70 records, that of noise is (sd/70)²."""
    points, weights, _ = looked(places_sd=sd).points()
    assert points[weights == 70.0, 0] == pytest.approx([-1 + 0.125 * (0.5 - 0.3 * trust)])


def test_leaves_that_do_not_stand_out_are_one_point_together():
    """Counts of 9 with noise 10: no leaf is sure, but of the cell 200 are.

    What is left stands at the leaves' middle.
    """
    dim = looked(10.0, 1.0, (9.0, 9.0, 9.0, 173.0), coarse=np.array([200.0, 0.0, 0.0, 0.0]))
    points, weights, _ = dim._heavy()
    assert weights.max() == 173.0
    loud = looked(10.0, 1.0, (19.0, 19.0, 19.0, 19.0), coarse=np.array([76.0, 0.0, 0.0, 0.0]))
    points, weights, _ = loud._heavy()
    assert points == pytest.approx(np.array([[-0.75]]))
    assert weights == pytest.approx([76.0])
    nothing = looked(10.0, 1.0, (1.0, 1.0, 1.0, 1.0), coarse=np.array([4.0, 0.0, 0.0, 0.0]))
    assert len(nothing._heavy()[1]) == 0


def test_two_looks_are_weighed_by_their_noise():
    """One block: its own count and the first look at its two cells, of which one has a quarter of
    the variance.
    """
    one = looked(1.0, 1.0, coarse=np.array([100.0, 40.0, 0.0, 0.0]), counts=(100.0, 0.0, 0.0, 0.0))
    surer = looked(1.0, 1.0, coarse=np.array([100.0, 40.0, 0.0, 0.0]), coarse_sd=0.5)
    for leaves, share in ((one, 0.5), (surer, 0.8)):
        _, weights, _ = leaves._light()
        assert weights[0] == pytest.approx(share * 40 + (1 - share) * 8), (
            "more than 20 sds: taken as it is"
        )
