"""Who is protected and what is counted, in words."""

import numpy as np
import pandas as pd
import pytest

import reticent
from reticent.about import checked_about
from reticent.errors import BadInput
from reticent.privacy.people.unit import PrivacyUnit
from reticent.reporting.page import sections
from reticent.reporting.protected_unit import (
    counted_noun,
    number_and_noun,
    protected_words,
    strength_warning,
    weighting_words,
)
from reticent.reporting.registry import presenter_of
from reticent.reporting.released_checks import complete_share, notes


def visits(people=2000, most=4):
    random = np.random.default_rng(0)
    counts = 1 + np.arange(people) % most
    return pd.DataFrame(
        {
            "id": np.repeat([f"p{i}" for i in range(people)], counts),
            "age": np.repeat(random.uniform(0, 100, people), counts),
            "w": 1.0,
        }
    )


def histogram(records, **unit):
    bounds = reticent.Bounds(x={"age": (0, 100)})
    model = reticent.PrivateHistogram(bounds=bounds, epsilon=1.0, delta=1e-6, **unit)
    return model.fit(records)


@pytest.mark.parametrize(
    ("unit", "noun"),
    [
        ({}, "records"),
        ({"person": "id"}, "people"),
        ({"person": "id", "contribution": 2}, "weight"),
        ({"weight": "w", "weight_bound": 2}, "weight"),
    ],
)
def test_counts_are_of_records_people_or_weights(unit, noun):
    assert counted_noun(PrivacyUnit(**unit)) == noun
    assert bool(weighting_words(PrivacyUnit(**unit))) == (noun != "records")


@pytest.mark.parametrize(
    ("unit", "who"),
    [
        ({}, "any one of the 5,000 records"),
        ({"person": "id"}, "any one of the 2,000 people in 'id', with all of their records"),
        ({"records_per_person": 4}, "any one person with up to 4 records of 5,000 records"),
    ],
)
def test_the_statement_says_who(unit, who):
    model = histogram(visits(), **unit)
    assert model.guarantee_.who == who
    assert protected_words(model.guarantee_, model.releases_) == who
    assert who in model.guarantee_.statement


def test_a_search_is_about_all_and_its_best_fit_about_one_half(tmp_path):
    search = reticent.PrivateSearch(
        reticent.PrivateHistogram(), {"bins": [3, 5]}, bounds=reticent.Bounds(x={"age": (0, 100)})
    )
    search.set_params(epsilon=1.0, delta=1e-6, person="id").fit(visits(400))
    assert search.guarantee_.units == 400
    search.best_estimator_.save(tmp_path / "best")
    loaded = reticent.load(tmp_path / "best").guarantee_
    assert loaded.who == "any one person with all of their records (id)"
    assert loaded == search.guarantee_
    search.set_params(neighbours="add-remove").fit(visits(400))
    halves = [one for one in search.releases_ if one.statistic["name"] == "NumberOfUnits"]
    assert search.releases_[0].n == sum(one.n for one in halves)
    shown = number_and_noun(search.releases_).removeprefix("about ").removesuffix(" people")
    assert abs(int(shown) - search.releases_[0].n) <= 50


def test_a_noisy_number_is_rounded_to_its_noise():
    model = histogram(visits(), person="id", neighbours="add-remove")
    shown = number_and_noun(model.releases_)
    number = int(shown.removeprefix("about ").removesuffix(" people").replace(",", ""))
    assert number % 10 == 0  # its noise has a standard deviation of about 20
    assert abs(number - 2000) < 200
    assert "people" not in model.guarantee_.who  # its number is nowhere
    row = sections.reproduction(presenter_of(model))["releases"][0]
    assert row[0] == "number of people"
    assert "a noisy one was released" in sections.public(presenter_of(model))["number"]


def test_weights_are_not_taken_for_missing_values():
    """The weights of all add up to less than n, and no record lacks a value."""
    for unit in ({"contribution": 4}, {"weight": "w", "weight_bound": 5}):
        model = histogram(visits(), person="id", **unit)
        assert notes(model) == []
        assert complete_share(model) is None


def test_a_column_of_people_with_one_value_is_noted():
    records = visits(50).assign(id="clinic")
    model = histogram(records, person="id")
    assert any("all records are of one person in 'id'" in note for note in notes(model))
    assert number_and_noun(model.releases_) == "1 person"
    assert not any("of one person" in note for note in notes(histogram(visits(50), person="id")))


def test_counts_are_called_numbers_of_people_only_where_they_are():
    of_people = " ".join(weighting_words(PrivacyUnit(person="id")))
    assert "numbers of people" in of_people
    assert "a fifth of a yes" in of_people
    weighted = " ".join(weighting_words(PrivacyUnit(person="id", weight="w", weight_bound=2)))
    assert "numbers of people" not in weighted


def test_missing_values_of_people_are_told_as_such():
    records = visits()
    records.loc[records["id"].str.endswith(("0", "1", "2")), "age"] = np.nan
    (note,) = notes(histogram(records, person="id"))
    assert "of the records, each person counting once, have a value of age" in note


def test_a_number_with_noise_of_its_own_does_not_make_records_incomplete():
    records = visits(people=150)
    for _ in range(4):
        assert notes(histogram(records, neighbours="add-remove", person="id")) == []


def test_a_promise_in_name_only_is_called_so():
    model = histogram(visits(200))
    assert strength_warning(model.guarantee_) == ""
    weak = model.set_params(epsilon=11.0).fit(visits(200))
    assert "next to nothing" in strength_warning(weak.guarantee_)
    assert sections.guarantee_words(presenter_of(weak))["weak"]


def test_original_noise_parameters_are_told():
    model = histogram(visits(200))
    words = sections.guarantee_words(presenter_of(model))
    multiplier = model.releases_[0].event.noise_multiplier
    assert words["mechanisms"] == [f"Gaussian mechanism, noise multiplier {multiplier:.6g}"]


def test_who_confirmed_what_is_assumed():
    believed = histogram(visits(200), records_per_person=4)
    assumed = sections.public(presenter_of(believed))["assumed"]
    assert "believed" in assumed[0]
    assert "Nobody" in assumed[1]
    named = histogram(visits(200), records_per_person=4, about={"confirmed_by": "A. Keeper"})
    assert sections.public(presenter_of(named))["assumed"][1] == "Confirmed by A. Keeper."


def test_texts_about_a_release_survive_a_file(tmp_path):
    about = {"controller": "City hospital", "note": "first\nsecond"}
    model = histogram(visits(200), about=about)
    model.save(tmp_path / "m.reticent")
    again = reticent.load(tmp_path / "m.reticent")
    assert sections.documentation(presenter_of(again)) == [
        ["Controller", "City hospital"],
        ["Note", "first\nsecond"],
    ]


@pytest.mark.parametrize(
    "about", [3, {"titel": "x"}, {"title": 3}, {"title": "a\x1b[0m"}, {"note": "x" * 2001}]
)
def test_texts_that_are_none_are_refused_before_anything_is_read(about):
    with pytest.raises(BadInput, match="about"):
        checked_about(about)
    with pytest.raises(BadInput, match="about"):
        histogram(None, about=about)


@pytest.mark.parametrize(
    ("unit", "words"),
    [
        ({}, "A count times 2 is a sum of weights."),
        ({"person": "id"}, "A count times 2 is a sum of people's mean weights."),
        (
            {"person": "id", "contribution": 3},
            "A count times 6 is a sum of weights, in which people with more than 3 records",
        ),
    ],
)
def test_it_says_what_counts_of_weights_are(unit, words):
    assert words in " ".join(weighting_words(PrivacyUnit(weight="w", weight_bound=2, **unit)))


def test_a_count_times_the_bound_is_the_sum_of_weights():
    records = visits().assign(w=0.5)
    sizes = records.groupby("id").size()
    bounds = reticent.Bounds(x={"age": (0, 100)})
    for unit, times, truth in (
        ({}, 2, 0.5 * len(records)),
        ({"person": "id"}, 2, 0.5 * len(sizes)),
        ({"person": "id", "contribution": 3}, 6, 0.5 * np.minimum(sizes, 3).sum()),
    ):
        model = reticent.PrivateHistogram(
            bounds=bounds, epsilon=1e6, delta=1e-6, weight="w", weight_bound=2, bins=2, **unit
        ).fit(records)
        assert times * model.counts_[0].sum() == pytest.approx(truth, rel=1e-3)


@pytest.mark.parametrize(("people", "said"), [(3, True), (21, False)])
def test_a_column_of_hardly_any_people_is_told(people, said):
    found = notes(histogram(visits(people=people), person="id"))
    told = any(f"only {people} people in 'id'. Is it the column" in note for note in found)
    assert told == said
