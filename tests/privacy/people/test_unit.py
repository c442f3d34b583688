"""Units of privacy: who is protected, and which parameters make no sense together."""

import json

import numpy as np
import pytest

import reticent
from reticent.errors import BadInput
from reticent.privacy.people.unit import PrivacyUnit

UNITS = [
    PrivacyUnit(),
    PrivacyUnit("label"),
    PrivacyUnit(records_per_person=5),
    PrivacyUnit("label", records_per_person=5),
    PrivacyUnit(person="id"),
    PrivacyUnit("label", person="id"),
    PrivacyUnit(person="id", contribution=4, neighbours="add-remove"),
    PrivacyUnit(neighbours="add-remove"),
    PrivacyUnit(weight="w", weight_bound=20),
    PrivacyUnit(person="id", weight="w", weight_bound=2.5, contribution=2),
]


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_a_unit_survives_its_dictionaries(unit):
    assert PrivacyUnit.from_dict(unit.to_dict()) == unit
    account = PrivacyUnit.from_dict(unit.for_account())
    assert account.for_account() == unit.for_account()
    assert (account.person, account.neighbours) == (unit.person, unit.neighbours)


def test_all_units_are_told_apart_in_words():
    protected = {(unit.relation, unit.records_per_person, unit.person) for unit in UNITS}
    assert len({unit.who() for unit in UNITS}) == len(protected)
    differ = {(unit.how_neighbours_differ(), str(unit.for_account())) for unit in UNITS}
    assert len({words for words, _ in differ}) == len({account for _, account in differ})


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_what_is_public_follows_from_the_unit(unit):
    words = unit.how_neighbours_differ()
    assert ("number of people is public" in words) == (
        unit.person == "id" and unit.relation == "record" and unit.number_is_public
    )
    assert ("number of records" in words and "public" in words) == unit.records_are_public
    assert ("protected" in words) == (not unit.number_is_public)


SAYINGS = [  # unit, who is protected, how neighbours differ, one word, records have weights
    ({}, "record", "in one record, replaced by any other", "record", False),
    ({"relation": "label"}, "label", "in the label of one record", "label", False),
    (
        {"records_per_person": 2},
        "group of 2 records of one person",
        "in up to 2 records of one person, replaced by any others",
        "record",
        False,
    ),
    (
        {"relation": "label", "records_per_person": 2},
        "group of 2 labels of one person",
        "in the labels of up to 2 records of one person",
        "label",
        False,
    ),
    (
        {"records_per_person": 2, "neighbours": "add-remove"},
        "group of 2 records of one person",
        "in up to 2 records of one person, added or removed; the number of records",
        "record",
        False,
    ),
    (
        {"person": "id"},
        "person with all of their records (id)",
        "in all records of one person, however many, replaced by those of any other",
        "person",
        True,
    ),
    (
        {"person": "id", "neighbours": "add-remove"},
        "person with all of their records (id)",
        "however many, added or removed; the number of people",
        "person",
        True,
    ),
    (
        {"relation": "label", "person": "id"},
        "person with the labels of all their records (id)",
        "in the labels of all records of one person",
        "label",
        True,
    ),
    (
        {"weight": "w", "weight_bound": 2.0},
        "record",
        "in one record, replaced by any other",
        "record",
        True,
    ),
]


@pytest.mark.parametrize(("options", "who", "differ", "noun", "weighted"), SAYINGS)
def test_a_unit_says_who_is_protected(options, who, differ, noun, weighted):
    unit = PrivacyUnit(**options)
    assert unit.nouns == {"record": "records", "label": "labels", "person": "people"}[noun]
    assert unit.who() == who
    assert differ in unit.how_neighbours_differ()
    assert unit.noun == noun
    assert unit.weighted is weighted


@pytest.mark.parametrize(
    ("options", "one_each"),
    [
        ({}, True),
        ({"person": "id"}, True),
        ({"person": "id", "contribution": 2}, False),
        ({"weight": "w", "weight_bound": 2.0}, False),
        ({"person": "id", "weight": "w", "weight_bound": 2.0}, False),
    ],
)
def test_units_weigh_one_each_unless_they_have_weights_or_count_several_times(options, one_each):
    assert PrivacyUnit(**options).one_each is one_each


def test_the_ends_of_what_is_allowed_are_allowed():
    assert PrivacyUnit(person="i" * 200).person == "i" * 200
    for bound in (1e-100, 1e100):
        assert PrivacyUnit(weight="w", weight_bound=bound).weight_bound == bound
    with pytest.raises(BadInput):
        PrivacyUnit(person="i" * 201)


def test_whole_numbers_of_other_libraries_become_pythons_own():
    unit = PrivacyUnit(person="id", contribution=np.int64(3))
    assert type(unit.contribution) is int
    assert json.loads(json.dumps(unit.to_dict()))["contribution"] == 3


@pytest.mark.parametrize(
    ("options", "parameter"),
    [
        ({"relation": "people"}, "relation"),
        ({"neighbours": "swap"}, "neighbours"),
        ({"records_per_person": 0}, "records_per_person"),
        ({"records_per_person": 2, "person": "id"}, "records_per_person"),
        ({"contribution": 2}, "contribution"),
        ({"contribution": 0, "person": "id"}, "contribution"),
        ({"contribution": 1.5, "person": "id"}, "contribution"),
        ({"person": ""}, "person"),
        ({"person": 3}, "person"),
        ({"person": "a\nb"}, "person"),
        ({"weight": "w"}, "weight_bound"),
        ({"weight_bound": 3.0}, "weight_bound"),
        ({"weight": "w", "weight_bound": 0.0}, "weight_bound"),
        ({"weight": "w", "weight_bound": -1.0}, "weight_bound"),
        ({"weight": "w", "weight_bound": float("nan")}, "weight_bound"),
        ({"weight": "w", "weight_bound": float("inf")}, "weight_bound"),
        ({"weight": "w", "weight_bound": "many"}, "weight_bound"),
        ({"relation": "label", "neighbours": "add-remove"}, "neighbours"),
    ],
)
def test_units_that_make_no_sense_are_refused(options, parameter):
    with pytest.raises(BadInput) as refusal:
        PrivacyUnit(**options)
    assert refusal.value.parameter == parameter


@pytest.mark.parametrize(
    ("opened", "charged"),
    [
        ({"person": "id"}, {}),
        ({}, {"person": "id"}),
        ({"person": "id"}, {"person": "visit"}),
        ({"person": "id"}, {"person": "id", "neighbours": "add-remove"}),
        ({"neighbours": "add-remove"}, {}),
        ({"person": "id"}, {"records_per_person": 3}),
    ],
)
def test_an_account_is_charged_for_its_own_unit_alone(tmp_path, opened, charged):
    ledger = reticent.Ledger(tmp_path / "budget.db")
    ledger.open("people", epsilon=3, delta=1e-6, **opened)
    event = reticent.Gaussian(noise_multiplier=reticent.calibrate(1.0, 1e-6))
    with pytest.raises(reticent.LedgerError, match="Nothing was read and nothing was charged"):
        ledger.charge("people", event, **charged)
    assert ledger.spent("people") == 0
    ledger.charge("people", event, **opened)
    assert ledger.spent("people") > 0
