"""Events survive storage unchanged, and what is not an event is refused."""

import json
import math
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reticent
from reticent.errors import BadInput
from reticent.privacy.accounting.events import (
    Event,
    Gaussian,
    Laplace,
    Pure,
    Selection,
    checked_event,
    event_from_dict,
    event_from_json,
    is_event,
)
from reticent.privacy.row_maps.column_moments import MeanSum
from reticent.privacy.selection.private_selection import Candidate
from reticent.privacy.streams.stream import Stream

sizes = st.floats(1e-9, 1e30)
counts = st.integers(1, 10**9)
events = st.one_of(
    st.builds(Gaussian, count=counts, noise_multiplier=sizes),
    st.builds(Laplace, count=counts, noise_multiplier=sizes),
    st.builds(Pure, count=counts, epsilon=sizes),
)


@given(events)
def test_storage_is_exact(event):
    assert event_from_json(event.to_json()) == event
    assert event_from_dict(event.to_dict()) == event
    assert event_from_json(event.to_json()).to_json() == event.to_json()
    assert json.loads(event.to_json()) == event.to_dict()


@given(st.integers(1, 10**20))
def test_whole_numbers_are_stored_as_the_same_event(value):
    assert (
        Gaussian(noise_multiplier=value).to_json()
        == Gaussian(noise_multiplier=float(value)).to_json()
    )


def test_the_text_is_canonical():
    """Accounts of past releases hold this text: it never changes."""
    assert (
        Gaussian(noise_multiplier=1.5).to_json()
        == '{"count":1,"kind":"gaussian","noise_multiplier":1.5}'
    )
    assert (
        Laplace(count=2, noise_multiplier=1).to_json()
        == '{"count":2,"kind":"laplace","noise_multiplier":1.0}'
    )
    assert Pure(epsilon=0.1).to_json() == '{"count":1,"epsilon":0.1,"kind":"pure"}'


@pytest.mark.parametrize(
    "text",
    [
        '{"kind":"exponential","count":1,"epsilon":1}',
        '{"kind":"gaussian","count":1}',
        '{"kind":"gaussian","count":1,"noise_multiplier":1,"sampling":0.1}',
        '{"kind":"gaussian","count":1,"epsilon":1}',
        '{"kind":["gaussian"],"count":1,"noise_multiplier":1}',
        '{"count":1,"noise_multiplier":1}',
        "{}",
        "[1]",
        "null",
        "not json",
    ],
)
def test_unknown_kinds_are_refused(text):
    with pytest.raises(BadInput, match="Known kinds: gaussian, laplace, pure"):
        event_from_json(text)


@pytest.mark.parametrize("value", [0, -1.0, math.nan, math.inf, 9e-10, 1.1e30, True, "1", None])
def test_senseless_sizes_are_refused(value):
    for build in (
        lambda v: Gaussian(noise_multiplier=v),
        lambda v: Laplace(noise_multiplier=v),
        lambda v: Pure(epsilon=v),
    ):
        with pytest.raises(BadInput, match="number from 1e-09 to 1e\\+30"):
            build(value)
    with pytest.raises(BadInput):
        event_from_dict({"kind": "pure", "count": 1, "epsilon": value})


@pytest.mark.parametrize("count", [0, -1, 1.0, 10**9 + 1, True, "1"])
def test_senseless_counts_are_refused(count):
    with pytest.raises(BadInput, match="whole number"):
        Gaussian(count=count, noise_multiplier=1.0)


def test_events_cannot_be_changed_and_the_base_cannot_be_made():
    with pytest.raises(FrozenInstanceError):
        Gaussian(noise_multiplier=1.0).noise_multiplier = 2.0
    with pytest.raises(TypeError, match="abstract"):
        Event()


FINE = 2.0**-40


@pytest.mark.parametrize(
    "fields",
    [
        {"stop": 2.0**-20},
        {"stop": 2.0**-20 + FINE},
        {"stop": 0.5 + FINE},
        {"stop": 1.0},
        {"most": 1},
        {"most": 5, "stop": 0.5},
        {"most": 10**9},
        {"shape": 0, "stop": 0.5},
        {"shape": 1, "most": 0},
    ],
    ids=str,
)
def test_searches_that_make_sense(fields):
    event = Selection(noise_multiplier=2.0, **fields)
    assert event_from_dict(event.to_dict()) == event
    assert all(getattr(event, name) == value for name, value in fields.items())


@pytest.mark.parametrize(
    "fields",
    [
        {"stop": 2.0**-20 - FINE},
        {"stop": 2.0**-21},
        {"stop": 1 + FINE},
        {"stop": 2.0},
        {"stop": 0.5 + FINE / 2},
        {"stop": 0.3},
        {"stop": 0.0},
        {"stop": True},
        {"most": -1},
        {"most": 10**9 + 1},
        {"most": 1.0},
        {"most": True},
        {"shape": -1},
        {"shape": 2},
        {"shape": True},
        {"shape": "1"},
        {"shape": 0, "most": 5, "stop": 0.5},
    ],
    ids=str,
)
def test_searches_that_make_no_sense_are_refused(fields):
    with pytest.raises(BadInput):
        Selection(noise_multiplier=2.0, **fields)


def test_counts_go_up_to_a_thousand_million():
    assert Gaussian(count=10**9, noise_multiplier=1.0).count == 10**9
    with pytest.raises(BadInput, match="count"):
        Gaussian(count=10**9 + 1, noise_multiplier=1.0)


class Other(Gaussian):
    """Nothing is changed, but it could be."""


class Odd(int):
    """A whole number with arithmetic of its own."""

    def __mul__(self, other):
        return 0

    __rmul__ = __mul__


def test_only_the_kinds_themselves_are_events():
    one = Gaussian(count=2, noise_multiplier=3.0)
    copy = checked_event(one, Laplace, Gaussian)
    assert copy == one
    assert copy is not one
    assert is_event(one)
    for wrong in (Other(noise_multiplier=3.0), Laplace(noise_multiplier=3.0), Gaussian, None):
        with pytest.raises(BadInput, match="Give a Gaussian event"):
            checked_event(wrong, Gaussian)
    assert not is_event(Other(noise_multiplier=3.0))


def test_subclasses_are_neither_charged_nor_counted_nor_used(tmp_path):
    event = Other(noise_multiplier=3.0)
    bounds = reticent.Bounds(x=[(-1, 1)])
    ledger = reticent.Ledger(tmp_path / "budget.db")
    ledger.open("people", epsilon=1, delta=1e-6)
    for attempt in (
        lambda: ledger.charge("people", event),
        lambda: reticent.epsilon(event, 1e-6),
        lambda: reticent.Curator(reticent.scan(np.zeros((3, 1))), bounds=bounds, event=event),
        lambda: Stream(bounds=bounds, event=event),
        lambda: Candidate(bounds, bounds, event, Gaussian(noise_multiplier=3.0)),
        lambda: Candidate(
            bounds, bounds, Gaussian(noise_multiplier=3.0), Laplace(noise_multiplier=3.0)
        ),
    ):
        with pytest.raises(BadInput):
            attempt()
    assert ledger.history("people") == []


def test_whole_numbers_are_plain_ones():
    event = Selection(count=Odd(2), noise_multiplier=1.0, shape=Odd(1), most=Odd(3))
    assert {type(value) for value in (event.count, event.shape, event.most)} == {int}
    assert event.count * 3 == 6


def test_what_a_curator_paid_for_does_not_change_later():
    event = Gaussian(noise_multiplier=3.0)
    curator = reticent.Curator(
        reticent.scan(np.zeros((3, 1))), bounds=reticent.Bounds(x=[(-1, 1)]), event=event
    )
    object.__setattr__(event, "noise_multiplier", 1e-9)
    assert curator.release(MeanSum(1, 1)).event == Gaussian(noise_multiplier=3.0)
