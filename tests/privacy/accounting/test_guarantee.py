"""The promise in words: who is protected, how strongly, and what is not."""

import math
import re

import pytest

from reticent import BadInput, Gaussian, calibrate
from reticent.privacy.accounting.guarantee import Guarantee


def promise(eps=1.0, **fields):
    events = (Gaussian(noise_multiplier=calibrate(eps, 1e-6)),)
    return Guarantee(
        **({"delta": 1e-6, "relation": "record", "events": events, "private": True} | fields)
    )


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
        (
            {"relation": "label", "records_per_person": 2},
            "had any one group of 2 labels of one person been another",
        ),
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
    # what a neighbour may change: the whole record, or its label alone
    assert ("replaced by any other" in words) == ("relation" not in fields)
    assert ("all inputs and the number of records are public" in words) == ("relation" in fields)


@pytest.mark.parametrize("eps", [1.0000004, 0.1, 0.3, 1.99999951, 9.0000001, 123.00001, 1e-7])
@pytest.mark.parametrize("delta", [1e-6, 1.0000004e-6, 0.1, 1.55e-5])
def test_no_number_of_the_statement_is_below_the_promise(eps, delta):
    one = promise(events=(Gaussian(noise_multiplier=calibrate(eps, delta)),), delta=delta)
    pair, _, rest = one.statement.partition(")")
    told = [float(word) for word in pair.strip("(").split(", ")]
    exponent = re.search(r"e\^(\S+) = ", rest)[1]
    chance = re.search(r"chance of (\S+)\.$", rest)[1]
    assert one.epsilon <= told[0] <= one.epsilon * (1 + 1e-5)
    assert delta <= told[1] <= delta * (1 + 1e-5)
    assert one.epsilon <= float(exponent) <= one.epsilon * (1 + 1e-3)
    assert delta <= float(chance) <= delta * 1.1
    if eps < 100:
        factor = float(re.search(r" = (\S+) times", rest)[1])
        assert math.exp(one.epsilon) <= factor <= 1.01 * math.exp(one.epsilon)


@pytest.mark.parametrize("wrong", [1.999, 0, True, "1"])
def test_people_have_whole_records(wrong):
    with pytest.raises(BadInput, match="records_per_person must be a whole number"):
        promise(records_per_person=wrong)


def test_a_promise_in_name_only_is_no_number_to_be_proud_of():
    assert "= a very large number of times as likely" in promise(120.0).statement


def test_a_seed_leaves_no_promise():
    words = promise(private=False).statement
    assert words.startswith("NOT PRIVATE")
    assert "differential privacy" not in words
