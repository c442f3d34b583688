"""What chance decides in a search, word by word of its random bits, and what runs share and do not
share.
"""

import numpy as np
import pytest

from reticent import Bounds, Gaussian, Selection, scan
from reticent.errors import BadInput, ReleaseRefused
from reticent.privacy.selection import private_selection as choosing
from reticent.privacy.selection.private_selection import (
    Candidate,
    DrawnRuns,
    best_run,
    check_candidates,
    draw_runs,
    exceeds_memory,
)
from reticent.privacy.selection.random_draws import number_of_runs, split, uniform
from reticent.privacy.selection.random_split import RecordSplit, split_records
from reticent.privacy.sources.base import Field

ONES = 2**64 - 1
BOUNDS = Bounds(x=[(-1.0, 1.0)])


class Words:
    """Random bits that were written down: what each call is given, with ones behind it."""

    def __init__(self, *calls):
        self.calls = list(calls)

    def words(self, count):
        out = np.full(count, ONES, dtype=np.uint64)
        given = self.calls.pop(0)
        out[: len(given)] = given
        return out


def search(**options):
    return Selection(noise_multiplier=1.0, **options)


@pytest.mark.parametrize(
    ("calls", "runs"),
    [
        ([[0]], 1),
        ([[2**44 - 1]], 1),  # γ 2⁶⁴ = 2⁴⁴: just below
        ([[2**44, ONES, 2**44 - 1]], 3),
        ([[ONES, 0, ONES, 0]], 2),  # the first of two
        ([[], [ONES, 0]], 1024 + 2),  # not among the first
        ([[], [], [0]], 2048 + 1),
    ],
)
def test_runs_end_at_the_first_word_below_the_share(calls, runs):
    words = Words(*calls)
    assert number_of_runs(search(stop=2.0**-20), words) == runs
    assert words.calls == []
    words = Words(*calls)
    assert number_of_runs(search(stop=2.0**-20, most=3), words) == min(runs, 3)


def test_one_run_needs_no_chance():
    assert number_of_runs(search(stop=1.0), Words()) == 1


def test_a_logarithmic_number_is_kept_with_chance_one_in_itself():
    law = search(stop=0.5, shape=0)
    half = 2**63
    assert number_of_runs(law, Words([half - 1], [5])) == 1  # one in one
    assert (
        number_of_runs(law, Words([half, 0], [2])) == 2
    )  # the last bit of the second word is 0: kept
    assert (
        number_of_runs(law, Words([half, 0], [3], [half, half, 0], [3], [4])) == 3
    )  # thrown away; 3 of 0 … 2: again; 0


@pytest.mark.parametrize(
    ("n", "words", "drawn"),
    [
        (1, [ONES], 0),
        (2, [6], 0),
        (2, [7], 1),
        (3, [7, 6], 2),
        (4, [7], 3),
        (5, [15, 13, 12], 4),
        (5, [6, 5, 8], 0),
    ],
)
def test_a_uniform_number_is_masked_and_what_is_too_large_is_drawn_again(n, words, drawn):
    bits = Words(*([word] for word in words))
    assert uniform(n, bits) == drawn
    assert bits.calls == []


def test_the_places_with_the_smallest_words_are_set_apart():
    words = [5, 1, 1, 9, 0]
    assert np.flatnonzero(split(5, 1, Words(words))).tolist() == [4]
    assert np.flatnonzero(split(5, 2, Words(words))).tolist() == [
        1,
        4,
    ]  # of two that are equal, the first
    assert np.flatnonzero(split(5, 4, Words(words))).tolist() == [0, 1, 2, 4]


@pytest.mark.parametrize(
    ("n", "share", "apart"),
    [(8, 0.25, 2), (8, 0.0, 1), (8, 0.01, 1), (8, 1.0, 7), (3, 0.5, 2), (2, 0.9, 1)],
)
def test_both_halves_have_a_place(n, share, apart):
    assert DrawnRuns([], Words(range(n))).validation_mask(n, share).sum() == apart


def test_each_run_has_its_own_candidate():
    drawn = draw_runs(search(stop=2.0**-20), 3, Words([ONES, ONES, 0], [2], [3], [1], [0]))
    assert drawn.order == [2, 1, 0]


def test_what_a_run_may_use_is_what_was_paid_to_the_last_digit():
    source = scan(np.zeros((4, 1)))
    event = Selection(noise_multiplier=0.1)
    below = Gaussian(noise_multiplier=np.nextafter(0.1, 0))
    other = Gaussian(noise_multiplier=0.1)
    twice = Gaussian(2, float(np.nextafter(0.1 * 2**0.5, 1)))

    def check(fit, judge):
        return check_candidates(
            [Candidate(BOUNDS, BOUNDS, fit, judge)], event, source, targets=False
        )

    assert check(other, other) == check(twice, other) == (Field(0, BOUNDS.x_kinds[0]),)
    for wrong in (below, Gaussian(2, 0.1)):
        for sides in ((wrong, other), (other, wrong)):
            with pytest.raises(BadInput, match="less noise"):
                check(*sides)
    with pytest.raises(BadInput, match="needs candidates"):
        check_candidates([], event, source, targets=False)


def test_a_candidate_that_may_change_its_mind_is_refused():
    class Another(Candidate):
        pass

    noise = Gaussian(noise_multiplier=1.0)
    with pytest.raises(BadInput, match="not Another"):
        check_candidates(
            [Another(BOUNDS, BOUNDS, noise, noise)], search(), scan(np.zeros((2, 1))), targets=False
        )


def test_two_records_can_be_searched_and_one_cannot():
    some = [Candidate(BOUNDS, BOUNDS, *[Gaussian(noise_multiplier=1.0)] * 2)]
    assert check_candidates(some, search(), scan(np.zeros((2, 1))), targets=False)
    with pytest.raises(BadInput, match="1 sample"):
        check_candidates(some, search(), scan(np.zeros((1, 1))), targets=False)


def test_a_search_holds_a_gibibyte():
    some = [Candidate(BOUNDS, BOUNDS, *[Gaussian(noise_multiplier=1.0)] * 2)]
    source = scan(np.zeros((2, 1)))
    for known in (None, 2**27):  # eight bytes each
        source.known_n = known
        assert check_candidates(some, search(), source, targets=False)
    source.known_n = 2**27 + 1
    with pytest.raises(BadInput, match="memory"):
        check_candidates(some, search(), source, targets=False)
    assert not exceeds_memory(2**26, 2)
    assert exceeds_memory(2**26 + 1, 2)
    assert not exceeds_memory(1, 1)


class Side:
    """Stands for the curator of one side of a run."""

    def __init__(self, half, bounds, event, name):
        self.half = half
        self.bounds = bounds
        self.name = name
        self.releases = [name]
        self.cache = None

    def use_cache(self, cache):
        self.cache = cache


def test_runs_have_noise_of_their_own_and_share_sums_with_the_same_candidate_only(monkeypatch):
    kept = []

    class FeatureCache:
        def __init__(self, cache_bytes, *, keep_totals):
            self.options = (cache_bytes, keep_totals)
            self.closed = 0
            kept.append(self)

        def close(self):
            self.closed += 1

    monkeypatch.setattr(choosing, "FeatureCache", FeatureCache)
    noise = Gaussian(noise_multiplier=1.0)
    seen = []

    def attempt(index, training, validation):
        seen.append((index, training, validation))
        return [1.0, 3.0, 3.0, 2.0][len(seen) - 1]

    judged = Bounds(x=[(0.0, 1.0)])
    best = best_run(
        attempt, [Candidate(BOUNDS, judged, noise, noise)] * 2, [1, 0, 1, 0], ("a", "b"), Side
    )
    assert [index for index, _, _ in seen] == [1, 0, 1, 0]
    names = [(t.name, v.name) for _, t, v in seen]
    assert names == [(b"run %d side 0" % i, b"run %d side 1" % i) for i in range(4)]
    assert {(t.half, v.half) for _, t, v in seen} == {("a", "b")}
    assert [t.cache for _, t, _ in seen] == [kept[0], kept[1], kept[0], kept[1]]
    assert [v.cache for _, _, v in seen] == [None] * 4
    assert all((t.bounds, v.bounds) == (BOUNDS, judged) for _, t, v in seen)
    assert [one.options for one in kept] == [(2**29, True)] * 2  # one gibibyte for all of them
    assert [one.closed for one in kept] == [1, 1]
    assert (best.score, best.index) == (3.0, 0)  # of two that are equal, the first
    assert (best.training, best.validation) == ((b"run 1 side 0",), (b"run 1 side 1",))


@pytest.mark.parametrize(
    ("score", "released"), [(np.inf, 2), (np.nan, 2), (9.0, 0), (9.0, -1), (9.0, 1)]
)
def test_a_run_without_a_number_or_without_releases_of_both_sides_is_the_worst(score, released):
    """None, those of training alone (1), those of validation alone (−1), or both (2)."""
    noise = Gaussian(noise_multiplier=1.0)
    runs = []

    def attempt(index, training, validation):
        runs.append(index)
        if len(runs) == 2:
            return 1.0
        for side, kept in ((training, released > 0), (validation, released in (-1, 2))):
            side.releases = side.releases if kept else []
        return score

    best = best_run(attempt, [Candidate(BOUNDS, BOUNDS, noise, noise)], [0, 0, 0], ("a", "b"), Side)
    assert len(runs) == 3
    assert (best.score, best.training, best.validation) == (
        1.0,
        (b"run 1 side 0",),
        (b"run 1 side 1",),
    )


def test_a_part_gives_the_columns_it_was_asked_for():
    table = np.arange(12.0).reshape(4, 3)
    training, validation = split_records(
        scan(table), (Field(2), Field(0)), RecordSplit(np.array([False, True, False, True]))
    )
    assert [block.tolist() for block in training.blocks((Field(0),))] == [[[0.0], [6.0]]]
    assert [block.tolist() for block in validation.blocks((Field(0), Field(2)))] == [
        [[3.0, 5.0], [9.0, 11.0]]
    ]
    assert training.known_n == training.count() == 2
    assert (training.width, training.names, training.targets) == (3, None, 0)
    assert training.kind(1) == scan(table).kind(1)


@pytest.mark.parametrize("n", [1, 2, 3, 5, 6])
def test_a_source_that_has_grown_or_shrunk_is_in_no_half(n, monkeypatch):
    """Two blocks of two: a table that is full after the first is as wrong as one that never is."""
    source = scan(np.arange(4.0)[:, None])
    monkeypatch.setattr(
        type(source), "blocks", lambda self, fields: iter([np.zeros((2, 1)), np.ones((2, 1))])
    )
    with pytest.raises(ReleaseRefused, match="number of records changed"):
        split_records(source, (Field(0),), RecordSplit(np.zeros(n, dtype=bool)))
    whole, _ = split_records(
        source, (Field(0),), RecordSplit(np.array([False, False, False, True]))
    )
    assert [block.tolist() for block in whole.blocks((Field(0),))] == [[[0.0], [0.0], [1.0]]]
