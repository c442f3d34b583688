"""Maps that spread inputs evenly, from noisy moments and counts."""

import numpy as np
import pytest

from reticent.maths.warp import (
    BINS,
    bins_that_tell,
    counted_law,
    crowded,
    inhabited,
    input_law,
    laws_along,
    outskirts,
    places,
    remoteness,
    shared,
    sparsely,
    spread_out,
    unwarped,
    zoomed,
)

EDGES = np.linspace(-1, 1, BINS + 1)
MIDDLES = (EDGES[:-1] + EDGES[1:]) / 2


def moments(x):
    return float(x.mean()), float((x**2).mean())


def test_a_law_from_moments_has_these_moments():
    law = input_law(0.3, 0.3**2 + 0.1**2, 1e-6)
    normal = (law - 0.1 / BINS) / 0.9
    assert law.sum() == pytest.approx(1)
    assert normal @ MIDDLES == pytest.approx(0.3, abs=0.005)
    assert np.sqrt(normal @ MIDDLES**2 - 0.3**2) == pytest.approx(0.1, rel=0.02)


def test_moments_that_are_noise_say_nothing():
    law = input_law(5.0, -7.0, 10.0)
    assert law.max() < 2 * law.min()


@pytest.mark.parametrize("mean", [-1e9, 1e9, 0.0])
@pytest.mark.parametrize("square", [-1e9, 1e9, 0.0])
def test_laws_exist_for_all_noise(mean, square):
    for sd in (1e-9, 1.0, 1e9):
        law = counted_law(input_law(mean, square, sd), np.linspace(-1e9, 1e9, BINS), 1.0, 100)
        assert np.isfinite(law).all()
        assert law.sum() == pytest.approx(1)
        knots = np.array(spread_out(law))
        assert (np.diff(knots) > 0).all()
        assert knots[[0, -1]].tolist() == [-1, 1]


def test_counts_correct_a_law_that_is_not_normal():
    x = np.concatenate([np.full(5000, -0.8), np.full(5000, 0.61)])
    counts = np.histogram(x, EDGES)[0].astype(float)
    law = counted_law(
        input_law(*moments(x), 1e-3), counts + 3 * np.random.default_rng(0).normal(size=BINS), 3.0, 10_000
    )
    assert law[counts > 0].sum() > 0.95


def test_counts_that_are_noise_are_known_beforehand():
    assert bins_that_tell(1e3, 500) == 0
    assert bins_that_tell(3.0, 10_000) == BINS
    found = [bins_that_tell(sd, 500) for sd in (10.0, 20.0, 30.0, 40.0, 60.0)]
    assert found == sorted(found, reverse=True)
    assert {BINS, 0} < set(found)  # in between, there are fewer bins


def test_few_bins_tell_where_the_crowds_are():
    x = np.concatenate([np.full(5000, -0.8), np.full(5000, 0.61)])
    counts = np.histogram(x, 16, (-1, 1))[0].astype(float)
    law = counted_law(input_law(*moments(x), 1e-3), counts, 3.0, 10_000)
    assert law.sum() == pytest.approx(1.0)
    assert law.reshape(16, -1).sum(axis=1)[counts > 0].min() > 0.45


def test_the_inhabited_share_of_the_box_is_that_of_the_usual_input():
    law, even = np.zeros(BINS), np.full(BINS, 1 / BINS)
    law[: BINS // 4] = 4 / BINS
    assert inhabited([even]) == pytest.approx(1.0)
    assert inhabited([law]) == pytest.approx(0.25)
    assert inhabited([np.stack([law, law[::-1]])]) == pytest.approx(0.5)  # of laws that an input may have, their mean
    assert inhabited([even, law]) == pytest.approx(0.5)


def test_few_of_many_records_are_not_remote():
    """A place with a tenth of the usual records is less known if they are 500, and not if they are 20,000."""
    law = np.full(BINS, 1.0)
    law[: BINS // 4] = 0.1
    law /= law.sum()
    few, many = (remoteness([law], np.array([[-0.8]]), sparsely(1, n, 4.0))[0] for n in (500, 20_000))
    assert few > 0.7
    assert many == 0
    assert sparsely(1, 20_000, 4e3)[1] == sparsely(1, 20, 4.0)[1] == sparsely(1, 500, 4.0)[1]  # noise counts as fewer
    assert sparsely(2, 20_000, 4.0) == sparsely(2, 20, 4.0)


def test_places_without_records_are_remote():
    law = np.zeros(BINS)
    law[BINS // 2 :] = 2 / BINS  # nobody in the lower half
    at = np.linspace(-1, 1, 21)[:, None]
    found = remoteness([law], at)
    assert (found[:4] > 0.99).all()
    assert (found[10:] == 0).all()
    assert (remoteness([law], at, sparsely(1, 500, 3.3))[:9] > 0.99).all()
    assert remoteness([np.stack([np.full(BINS, 1 / BINS), law])], at) == pytest.approx(found)  # nobody may be there
    assert (np.diff(found) <= 0).all()
    even = np.full(BINS, 1 / BINS)
    assert not remoteness([even], at).any()
    assert remoteness([even, law], np.hstack([at, at])).tolist() == found.tolist()  # the emptier one decides
    assert not remoteness([], np.empty((3, 0))).any()


def test_what_counts_say_beside_their_noise_is_little():
    law = input_law(0.1, 0.2, 0.01)
    counts, sd = 500 * law + 8 * np.random.default_rng(0).normal(size=BINS), 8.0
    assert np.abs(counted_law(law, counts, sd, 500) - law).sum() < 0.3 * np.abs(counts / 500 - law).sum()


def test_noisy_moments_of_many_inputs_are_nearer_to_the_truth_together():
    rng = np.random.default_rng(0)
    truth = rng.normal(-0.4, 0.2, size=(2, 30))
    found, sd = shared(truth + 0.5 * rng.normal(size=(2, 30)), 0.5)
    assert np.sqrt(np.mean((found - truth) ** 2)) < 0.25  # 0.5 without
    assert sd < 0.15


def test_moments_without_noise_stay_as_they_are_and_so_does_one_input_with_it():
    values = np.random.default_rng(0).uniform(-1, 1, size=(2, 5))
    found, sd = shared(values, 1e-6)
    assert found == pytest.approx(values, abs=1e-9)
    assert sd == pytest.approx(1e-6)
    found, sd = shared(values[:, :1], 3.0)
    assert (found == values[:, :1]).all()
    assert sd == pytest.approx(3.0)


def test_points_are_placed_like_the_records():
    x = np.random.default_rng(3).beta(2, 6, size=20_000) * 2 - 1
    law = counted_law(input_law(*moments(x), 1e-4), np.histogram(x, EDGES)[0].astype(float), 0.1, len(x))
    at = places(law, np.linspace(-1, 1, 2001))
    for share in (0.1, 0.5, 0.9):
        assert np.quantile(at, share) == pytest.approx(np.quantile(x, share), abs=0.03)


def test_inputs_are_more_even_after_the_map():
    x = np.random.default_rng(4).normal(-0.7, 0.03, size=10_000).clip(-1, 1)
    law = counted_law(input_law(*moments(x), 1e-4), np.histogram(x, EDGES)[0].astype(float), 0.1, len(x))
    assert np.interp(x, EDGES, spread_out(law)).std() > 5 * x.std()


def test_laws_on_points_are_laws_of_each_input():
    points = np.array([[-1.0, 1.0], [0.0, 0.5], [1.0, -1.0]])
    first, second = laws_along(points, np.array([[0.2, 0.3, 0.5], [1.0, 0.0, 0.0]]))
    assert (first[0, [0, BINS // 2, -1]]).tolist() == [0.2, 0.3, 0.5]
    assert (second[0, [-1, BINS * 3 // 4, 0]]).tolist() == [0.2, 0.3, 0.5]
    assert first[1, 0] == second[1, -1] == 1.0


def law_within(low, high, share):
    """So much of the records evenly between two places, the others anywhere."""
    inside = (low < MIDDLES) & (high > MIDDLES)
    return share * inside / inside.sum() + (1 - share) / BINS


def test_a_small_part_of_the_range_that_surely_holds_most_records_is_found():
    laws = np.stack([law_within(0.2, 0.4, share) for share in (0.8, 0.9, 0.99)])
    low, high = crowded(laws)
    assert low <= 0.2
    assert high >= 0.4
    assert high - low < 0.7


@pytest.mark.parametrize(
    "laws",
    [
        np.full((3, BINS), 1 / BINS),
        [law_within(-0.7, 0.7, 1.0)] * 3,  # no small part
        [law_within(0.2, 0.4, 0.9), law_within(-0.4, -0.2, 0.9)],  # not surely there
        [law_within(0.2, 0.4, 0.9), np.full(BINS, 1 / BINS)],
        [(law_within(-0.9, -0.8, 1.0) + law_within(0.8, 0.9, 1.0)) / 2] * 2,  # two crowds, far apart
    ],
    ids=["even", "wide", "here or there", "perhaps even", "two crowds"],
)
def test_what_is_not_surely_a_small_part_stays_as_it_is(laws):
    assert crowded(np.array(laws)) is None


@pytest.mark.parametrize("part", [(-0.3, 0.1), (-1.0, -0.9), (0.5, 1.0)])
def test_zooming_gives_most_room_to_a_part_and_can_be_undone(part):
    warp = [zoomed(EDGES, *part), tuple(EDGES)]
    u = np.random.default_rng(5).uniform(-1, 1, size=(1000, 2))
    natural = unwarped(warp, u)
    assert np.interp(natural[:, 0], EDGES, warp[0]) == pytest.approx(u[:, 0], abs=1e-12)
    assert natural[:, 1] == pytest.approx(u[:, 1], abs=1e-12)
    room = np.diff(np.interp(part, EDGES, warp[0]))[0] / 2
    assert room > 0.85
    assert outskirts(warp) == pytest.approx(1 - room, abs=0.08)  # parts of bins at both ends
    assert outskirts([tuple(EDGES)] * 2) == 0
