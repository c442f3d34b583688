"""What a curator counts off, charges, adds and shows, number by number."""

import math
import warnings
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

from reticent import (
    BadInput,
    Bounds,
    Curator,
    Gaussian,
    Laplace,
    Ledger,
    ReleaseRefused,
    Selection,
    scan,
)
from reticent.privacy import curator as module
from reticent.privacy import noise as noise_module
from reticent.privacy.guard import suppress_warnings
from reticent.privacy.row_maps.column_moments import MeanSum, MomentGram
from reticent.privacy.selection.exponential_mechanism import Scores, epsilon_of
from reticent.privacy.selection.private_selection import Candidate
from reticent.privacy.sources.base import Source
from reticent.privacy.statistics.counts import Counts
from reticent.privacy.statistics.enforced import enforce

BOX = Bounds(x=(-2, 2))
DATA = np.array([[1.0, -1.0], [0.5, 9.0], [0.25, np.nan]])


def curator(event=None, data=DATA, **options):
    source = data if isinstance(data, Source) else scan(data)
    return Curator(
        source, bounds=BOX, event=event or Gaussian(noise_multiplier=2.0, count=3), **options
    )


class Logged(Source):
    """A source that writes down what happens to it, and learns its length by counting."""

    names = None
    width = 2
    targets = 0
    known_n = None

    def __init__(self, log, rows=3):
        self.log = log
        self.data = np.zeros((rows, 2))

    def kind(self, position):
        return "number", "float64"

    def count(self):
        self.log.append("counted")
        return len(self.data)

    def blocks(self, fields):
        self.log.append("read")
        yield self.data[:, [int(field.key) for field in fields]]


@pytest.mark.parametrize(
    ("event", "statistic"),
    [
        (Gaussian(noise_multiplier=2.0), MeanSum(2, 2)),
        (Gaussian(noise_multiplier=2.0), MomentGram(2, 2)),
        (Laplace(noise_multiplier=2.0), MeanSum(2, 2)),
    ],
)
def test_every_number_gets_the_noise_of_its_own_kind_and_half_a_step(event, statistic, monkeypatch):
    asked = []

    def noise(law, scale, size, bits):
        asked.append((law, scale, size))
        return np.arange(size, dtype=object) * 2 + len(asked) * 1000

    monkeypatch.setattr(noise_module, "floor_noise", noise)
    one = curator(event)
    release = one.release(statistic)
    scales = one._scales(enforce(statistic))
    exact = statistic.coordinates(statistic.block_sum(one.bounds.scale(DATA)))
    shares = statistic.coordinate_multiplicity()
    expected = np.empty(statistic.size)
    for call, (share, scale) in enumerate(scales.items(), start=1):
        at = np.flatnonzero(shares == share)
        expected[at] = (exact[at] + np.arange(len(at)) * 2 + call * 1000 + 0.5) * statistic.step
        assert release.scale[at] == pytest.approx(float(scale.exact) * statistic.step, rel=1e-15)
    assert sorted(scales) == sorted(set(shares.tolist()))
    assert asked == [
        (event.kind, scale, int((shares == share).sum())) for share, scale in scales.items()
    ]
    assert release.value.tolist() == expected.tolist()


@pytest.mark.parametrize("people", [1, 7])
@pytest.mark.parametrize("multiplier", [0.7, 3.0])
def test_laplace_noise_grows_with_the_records_of_a_person(people, multiplier):
    statistic = MeanSum(2, 2)
    scales = curator(Laplace(noise_multiplier=multiplier), records_per_person=people)._scales(
        enforce(statistic)
    )
    least = Fraction(multiplier) * statistic.sensitivity1 * people
    assert list(scales) == [1]
    assert least <= scales[1].exact <= least * (1 + Fraction(1, 2**39))


def test_how_many_records_a_person_may_have():
    for people in (1, 10**6, np.int64(7)):
        assert (
            curator(records_per_person=people).release(MeanSum(2, 2)).records_per_person == people
        )
    for people in (0, 10**6 + 1, 1.0, True, "1"):
        with pytest.raises(BadInput, match="records_per_person"):
            curator(records_per_person=people)


def test_the_charge_comes_before_the_first_look_and_says_what_for(tmp_path, monkeypatch):
    log = []
    ledger = Ledger(tmp_path / "budget.db")
    charge = Ledger.charge
    ledger.open("people", 1.0, 1e-6, relation="label")
    monkeypatch.setattr(
        Ledger,
        "charge",
        lambda *args, **kwargs: (log.append("charged"), charge(*args, **kwargs))[1],
    )
    event = Gaussian(noise_multiplier=20.0, count=2)
    one = curator(
        event,
        Logged(log),
        ledger=ledger.url,
        dataset="people",
        relation="label",
        what="mean of age",
    )
    assert log == ["charged"]
    one.release(MeanSum(2, 2)), one.release(MeanSum(2, 2))
    assert log == ["charged", "counted", "read", "read"]
    (entry,) = ledger.history("people")
    assert (entry.event, entry.what) == (event, "mean of age")


def test_without_records_nothing_is_charged_where_that_is_known(tmp_path):
    ledger = Ledger(tmp_path / "budget.db")
    ledger.open("people", 1e9, 1e-6)
    own = {"ledger": ledger.url, "dataset": "people"}
    with pytest.raises(BadInput, match="no records"):
        curator(data=DATA[:0], **own)
    assert ledger.history("people") == []
    one = curator(data=Logged([], rows=0), **own)
    with pytest.raises(BadInput, match="charge stays"):
        _ = one.n
    assert len(ledger.history("people")) == 1


def test_one_record_is_enough_for_a_release_and_two_for_a_search():
    assert curator(data=DATA[:1]).release(MeanSum(2, 2)).n == 1
    event = Selection(noise_multiplier=0.5)
    noise = Gaussian(noise_multiplier=0.5)
    for rows in (1, 2):
        one = curator(event, Logged([], rows), candidates=[Candidate(BOX, BOX, noise, noise)])

        def attempt(index, training, validation):
            training.release(MeanSum(2, 2)), validation.release(MeanSum(2, 2))
            return 1.5

        if rows == 1:
            with pytest.raises(ReleaseRefused, match="2 records"):
                one.choose(attempt)
        else:
            first, *rest = (one.choose(attempt), one.releases)[1]
            assert (first.value.tolist(), first.scale.tolist(), first.n, first.shares_spent) == (
                [0, 1.5],
                [0, 0],
                2,
                1,
            )
            told = {"candidates": 1, "releases": 1, "training": 1, "validation": 1, "size": 2}
            assert first.statistic == {"name": "Choice", "kind": "choice", **told}
            assert len(rest) == 2


def test_a_search_too_large_for_memory_is_refused_after_its_charge(monkeypatch):
    """Where the number of records is found by counting.

    Public numbers decide, and nothing is read.
    """
    log = []
    noise = Gaussian(noise_multiplier=0.5)
    one = curator(
        Selection(noise_multiplier=0.5), Logged(log), candidates=[Candidate(BOX, BOX, noise, noise)]
    )
    monkeypatch.setattr(module, "exceeds_memory", lambda n, columns: (n, columns) == (3, 2))
    with pytest.raises(ReleaseRefused, match="memory"):
        one.choose(lambda *run: 1.0)
    assert log == ["counted"]


def test_runs_of_a_search_count_a_persons_records_as_the_search_does():
    noise = Gaussian(noise_multiplier=0.5)
    seen = []
    one = curator(
        Selection(noise_multiplier=0.5),
        records_per_person=3,
        candidates=[Candidate(BOX, BOX, noise, noise)],
    )

    def attempt(index, *sides):
        seen.extend(side.release(MeanSum(2, 2)) for side in sides)
        return 1.0

    one.choose(attempt)
    alone = curator(noise, records_per_person=3).release(MeanSum(2, 2))
    assert all(
        release.records_per_person == 3 and (release.scale == alone.scale).all() for release in seen
    )


def test_a_curator_that_was_closed_has_nothing_left():
    one = curator()
    one.close()
    assert repr(one) == "<Curator: 0 releases left>"
    with pytest.raises(ReleaseRefused, match="paid for"):
        one.release(MeanSum(2, 2))
    two = curator(data=Logged([]))
    two.close()
    with pytest.raises(ReleaseRefused, match="closed"):
        _ = two.n


def test_a_seed_is_another_key_for_each_release_and_is_told():
    first = curator(seed=b"1")
    second = curator(seed=b"1")
    a, b = (one.release(MeanSum(2, 2)) for one in (first, second))
    assert a.value.tolist() == b.value.tolist()
    again = first.release(MeanSum(2, 2))
    assert (
        len({a.value[0], again.value[0], curator(seed=b"2").release(MeanSum(2, 2)).value[0]}) == 3
    )
    assert not a.private
    assert curator().release(MeanSum(2, 2)).private
    assert a.fit == again.fit != b.fit


def test_what_may_be_kept_is_said_for_each_release(monkeypatch):
    """The first release of a fit, and whether another one may follow."""
    one = curator()
    told = []
    honest = one._cache.total

    def total(*args, first, keep, n, **more):
        told.append((first, keep, n))
        return honest(*args, first=first, keep=keep, n=n, **more)

    monkeypatch.setattr(one._cache, "total", total)
    for _ in range(3):
        one.release(MeanSum(2, 2))
    assert told == [(True, True, 3), (False, True, 3), (False, False, 3)]


@pytest.mark.parametrize("relation", ["label", "record"])
def test_inputs_are_looked_at_before_the_charge_only_where_they_are_public(relation, tmp_path):
    seen = []
    log = []
    one = curator(data=Logged(log), relation=relation, look=seen.append)
    assert log == (["read"] if relation == "label" else [])
    if relation == "record":
        assert seen == []
        return
    assert seen[0].tolist() == [[0, 0]] * 3

    def design(inputs):
        seen.append(inputs)
        return MeanSum(2, 2)

    assert one.release_given_inputs(design, shares_spent=2).shares_spent == 2
    assert seen[1] is seen[0]
    two = curator(relation=relation)
    two.release_given_inputs(design), two.release_given_inputs(design)
    assert [0.5, -0.5] in seen[2].tolist()
    assert [0.25, 1.0] in seen[2].tolist()
    assert np.isnan(seen[2]).sum(axis=0).tolist() == [0, 1]
    assert seen[3] is seen[2]


@dataclass(frozen=True)
class Sides(Counts):
    """How many records are left and right of the middle."""

    groups = (2,)

    def cells(self, records):
        return records[:, :1] > 0


SCORES = Scores(np.zeros((2, 2, 2)), np.array([[1.0, 0.0], [0.0, 1.0]]), np.zeros(2))


@pytest.mark.parametrize("times", [1, 2])
def test_a_choice_by_score_costs_what_was_paid_for_it(times, monkeypatch):
    told = []
    honest = module.exponents
    monkeypatch.setattr(
        module, "exponents", lambda *args, **how: (told.append(how), honest(*args, **how))[1]
    )
    one = curator(Gaussian(noise_multiplier=4.0, count=4), records_per_person=5)
    release = one.select(Sides(), SCORES, shares_spent=times)
    assert repr(one) == f"<Curator: {4 - times} releases left>"
    assert release.shares_spent == times
    (how,) = told
    assert how == {"n": 3, "people": 5, "counts": None, "epsilon": epsilon_of(math.sqrt(times) / 4)}


def test_choices_of_one_seed_differ_from_release_to_release(monkeypatch):
    keys = []
    monkeypatch.setattr(module, "pick", lambda values, bits: keys.append(bits.more()) or 0)
    for _ in range(2):
        one = curator(seed=b"1")
        one.select(Sides(), SCORES), one.select(Sides(), SCORES)
    assert keys[:2] == keys[2:]
    assert keys[0] != keys[1]


def test_public_counts_are_of_use_only_where_labels_alone_are_protected():
    with pytest.raises(ReleaseRefused, match="protected here"):
        curator().select(Sides(), SCORES, counts=np.array([0, 3]))
    with pytest.raises(ReleaseRefused, match="delta > 0"):
        curator(Laplace(noise_multiplier=1.0)).select(Sides(), SCORES)


def test_the_cores_own_words_leave_and_a_statistics_words_do_not():
    class Long(MeanSum):
        def rows(self, records):
            return np.zeros((len(records), 3))

    class Chatty(MeanSum):
        def rows(self, records):
            raise ReleaseRefused(f"{records}")

    with pytest.raises(BadInput, match=r"^Long.rows must give one row of 2 numbers"):
        curator().release(Long(2, 2))
    with pytest.raises(BadInput, match=r"^Chatty.rows failed \(an error of its own\)"):
        curator().release(Chatty(2, 2))


def test_warnings_are_silent_until_the_last_reader_leaves():
    before = list(warnings.filters)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        always = list(warnings.filters)
        with suppress_warnings():
            with suppress_warnings():
                warnings.warn("a record", stacklevel=1)
            warnings.warn("another record", stacklevel=1)
            assert warnings.filters != always
        assert warnings.filters == always
        with suppress_warnings():
            warnings.warn("a third", stacklevel=1)
        assert warnings.filters == always
    assert caught == []
    assert warnings.filters == before
