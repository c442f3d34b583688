"""The promise in words: who is protected, how strongly, and what is not."""

import pytest

from reticent import Gaussian, calibrate
from reticent.privacy.guarantee import Guarantee


def promise(eps=1.0, **fields):
    events = (Gaussian(noise_multiplier=calibrate(eps, 1e-6)),)
    return Guarantee(**({"delta": 1e-6, "relation": "record", "events": events, "private": True} | fields))


def test_epsilon_is_what_the_events_add_up_to():
    one = promise()
    assert one.epsilon == pytest.approx(1.0)
    twice = promise(events=one.events * 2)
    assert 1.3 < twice.epsilon < 1.6  # √2 times the distance


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({}, "had any one record been another"),
        ({"records_per_person": 3}, "had any one group of 3 records of one person been another"),
        ({"relation": "label"}, "had any one label been another"),
        ({"relation": "label", "records_per_person": 2}, "had any one group of 2 labels of one person been another"),
    ],
)
def test_who_is_protected(fields, told):
    words = promise(**fields).statement
    assert words.startswith("(1, 1e-06)-differential privacy; neighbours differ in ")
    several = fields.get("records_per_person", 1)
    assert ("differ in one record" in words or "of one record;" in words) == (several == 1)
    assert (f"up to {several} records of one person" in words) == (several > 1)
    assert told in words
    assert "at most e^1 = 2.72 times as likely" in words
    assert "but for a chance of 1e-06." in words
    assert ("inputs are NOT protected" in words) == ("relation" in fields)


def test_a_promise_in_name_only_is_no_number_to_be_proud_of():
    assert "= a very large number of times as likely" in promise(120.0).statement


def test_a_seed_leaves_no_promise():
    words = promise(private=False).statement
    assert words.startswith("NOT PRIVATE")
    assert "differential privacy" not in words
