"""People in a stream: the first records of each count, and no others."""

import json
from dataclasses import dataclass

import numpy as np
import pytest

import reticent
from reticent import BadInput, Bounds, Gaussian, ReleaseRefused
from reticent.privacy.streams.records_of_people import RecordsOfPeople
from reticent.privacy.streams.stream import Stream

BOUNDS = Bounds(x=[(-1, 1)])


@dataclass(frozen=True)
class Squares(reticent.Gram):
    """(1, u), so that sums count records."""

    columns = 2
    norm2 = 2

    def rows(self, records):
        return np.hstack([np.ones((len(records), 1)), records])


@dataclass(frozen=True)
class Values(reticent.Sum):
    """u, and on request how many records there are."""

    counts: bool = False
    columns = 1
    norm2 = 1

    @property
    def counts_records(self):
        return self.counts

    def rows(self, records):
        return records


def stream(**options):
    event = Gaussian(noise_multiplier=1e-9)
    return Stream(bounds=BOUNDS, event=event, seed=b"test", **options)


def number_of_records(release):
    return round(release.value[0])


@pytest.mark.parametrize(("contribution", "counted"), [(1, 2), (2, 3), (5, 4)])
def test_the_first_records_of_each_person_count(contribution, counted):
    sums = stream(person="user", contribution=contribution)
    sums.add(Squares(), np.ones((4, 1)), person=["a", "b", "a", "a"])
    release = sums.release(Squares())
    assert number_of_records(release) == counted
    assert release.n == 4


def test_records_are_counted_over_steps_and_restarts():
    sums = stream(person="user", contribution=2)
    sums.add(Squares(), np.ones((1, 1)), person=[7])
    sums.release(Squares())
    again = stream(person="user", contribution=2, state=sums.state())
    again.add(Squares(), np.ones((3, 1)), person=["7", 7.0, " 7"])
    assert number_of_records(again.release(Squares())) == 1


def test_a_record_of_nobody_adds_nothing():
    sums = stream(person="user")
    sums.add(Squares(), np.ones((4, 1)), person=[None, float("nan"), "", "somebody"])
    assert number_of_records(sums.release(Squares())) == 1


def test_a_masked_identifier_is_nobodys_and_nothing_warns(recwarn):
    people = RecordsOfPeople(b"0" * 16, {})
    masked = np.ma.masked_array([8, 9, 9], mask=[False, True, True])
    assert people.count(masked, 1).tolist() == [True, False, False]
    assert people.count([9, None], 1).tolist() == [True, False]
    assert not recwarn.list


def test_noise_is_for_records_that_stand_in_other_steps():
    of_records = stream().scale(Squares())
    of_people = stream(person="user", contribution=3).scale(Squares())
    np.testing.assert_allclose(of_people, 3 * np.sqrt(2) * of_records, rtol=1e-9)


def test_who_is_of_whom_must_be_said_and_only_where_it_counts():
    with pytest.raises(BadInput, match="whose each record"):
        stream(person="user").add(Squares(), np.ones((1, 1)))
    with pytest.raises(BadInput, match="leave person out"):
        stream().add(Squares(), np.ones((1, 1)), person=["a"])
    with pytest.raises(BadInput, match="2 records, and 1 people"):
        stream(person="user").add(Squares(), np.ones((2, 1)), person=["a"])


def test_a_free_count_is_not_free_across_steps():
    with pytest.raises(ReleaseRefused, match="counts records"):
        stream(person="user").add(Values(counts=True), np.ones((1, 1)), person=["a"])
    stream(person="user").add(Values(), np.ones((1, 1)), person=["a"])


def test_a_state_belongs_to_its_unit():
    state = stream(person="user", contribution=2).state()
    with pytest.raises(BadInput, match="contribution"):
        stream(person="user", contribution=3, state=state)
    with pytest.raises(BadInput, match="another"):
        stream(state=state)
    altered = json.loads(state) | {"people": {"multilinear key": "zz", "counts": {}}}
    with pytest.raises(BadInput, match="altered"):
        stream(person="user", contribution=2, state=json.dumps(altered).encode())


def test_identifiers_of_another_hash_are_refused():
    first = stream(person="user")
    first.add(Squares(), np.ones((1, 1)), person=["ann"])
    fields = json.loads(first.state())
    stored = fields["people"]
    fields["people"] = {"key": stored["multilinear key"], "counts": stored["counts"]}
    with pytest.raises(BadInput, match="altered"):
        stream(person="user", state=json.dumps(fields).encode())


def test_a_bandit_counts_the_first_rounds_of_each_user():
    def told(people):
        bandit = reticent.JointBandit(
            bounds=Bounds(x=[(0, 1)], y=(0, 1)),
            horizon=40,
            epsilon=1,
            delta=1e-6,
            records_per_person=2,
            person="user",
            random_state=0,
        )
        for person in people:
            bandit.ask([[0.2], [0.8]])
            bandit.tell([0.8], 1.0, person=person)
        return bandit

    alone = told(["a", "b"] * 20)
    others = told(["a", "b"] + ["b", "a"] * 19)
    assert alone.releases_
    for one, two in zip(alone.releases_, others.releases_, strict=True):
        np.testing.assert_array_equal(one.value, two.value)
    assert alone.guarantee_.person == "user"
    with pytest.raises(BadInput, match="whose each one is"):
        alone.tell([[0.8], [0.2]], [1.0, 0.0])
    rebuilt = reticent.JointBandit.from_releases(alone.releases_, **alone._params)
    places = np.array([[0.2], [0.8]])
    np.testing.assert_array_equal(
        rebuilt.posterior_.moments(places)[0], alone.posterior_.moments(places)[0]
    )
