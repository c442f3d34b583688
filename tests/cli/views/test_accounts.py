"""Accounts on a terminal and in the report.

Every figure is the ledger's, and the parts of a budget add up to its cap.
"""

import copy
import re

import pytest

import reticent
from reticent.cli.views import accounts as shown
from reticent.errors import BadInput, LedgerError
from reticent.privacy.accounting.composition import account_epsilon
from reticent.privacy.people.unit import PrivacyUnit
from reticent.privacy.release import derived
from reticent.reporting.budget import COMPOSITION_NOTE, budget
from tests.support.fitted_models import kept
from tests.support.prose import says
from tests.support.stand_ins import printed

ONE_RECORD = {"records_per_person": 1, "person": None, "neighbours": "replace"}


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    monkeypatch.setenv("COLUMNS", "140")


@pytest.fixture
def ledger(tmp_path):
    one = reticent.Ledger(tmp_path / "budget.db")
    one.open("people", 2.0, 1e-5)
    one.open("labels", 1.0, 0.0, relation="label")
    return one


def charge(
    ledger, noise, what="PrivateMean, 1 release: x age, height, weight, ward", dataset="people"
):
    event = reticent.Gaussian(noise_multiplier=noise)
    ledger.charge(dataset, event, what=what)
    return event


def rows(capsys, table):
    return [line.split() for line in printed(capsys, table).splitlines()]


def test_states_are_the_ledgers(ledger, capsys):
    events = [charge(ledger, 10.0), charge(ledger, 20.0)]
    people, labels = shown.accounts(ledger.url, None)
    assert people["spent"] == account_epsilon(events, 1e-5) == ledger.spent("people")
    assert people["left"] == ledger.remaining("people")
    assert (people["charges"], labels["charges"]) == (2, 0)
    assert (labels["spent"], labels["left"], labels["relation"]) == (0, 1.0, "label")
    assert shown.accounts(ledger.url, "labels") == [labels]
    head, first, second, *_ = rows(capsys, shown.accounts_table([people, labels]))
    assert head[:2] == ["data", "set"]
    assert first[:5] == ["people", "a", "record", "2", "1e-5"]
    assert [float(value) for value in first[5:7]] == pytest.approx(
        [people["spent"], people["left"]], rel=5e-3
    )
    assert float(first[6]) <= people["left"]  # or it would be refused
    assert second == ["labels", "a", "label", "1", "0", "0", "1", "0"]


@pytest.mark.parametrize(
    ("delta", "charges", "explained"), [(1e-5, 1, True), (1e-5, 0, False), (0.0, 1, False)]
)
def test_composition_is_explained_where_it_shows(capsys, delta, charges, explained):
    state = {
        "dataset": "a",
        "relation": "record",
        **ONE_RECORD,
        "epsilon": 1,
        "delta": delta,
    }
    state |= {"spent": 0.5, "left": 0.5}
    assert (
        COMPOSITION_NOTE in printed(capsys, shown.accounts_table([{**state, "charges": charges}]))
    ) == explained


def test_opening_says_what_there_is_to_spend(tmp_path):
    unit = PrivacyUnit(relation="label", records_per_person=5)
    (state,) = shown.open_account(str(tmp_path / "new.db"), "a", epsilon=3, delta=1e-6, unit=unit)
    assert state == {
        "dataset": "a",
        "relation": "label",
        "records_per_person": 5,
        "person": None,
        "within": None,
        "neighbours": "replace",
        "epsilon": 3,
        "delta": 1e-6,
        "spent": 0,
        "left": pytest.approx(3),
        "charges": 0,
    }


def test_the_history_has_every_row_in_order_and_a_part_for_each_data_set(ledger, capsys):
    charge(ledger, 10.0, what="first")
    ledger.charge("labels", reticent.Pure(epsilon=0.25), relation="label", what="second")
    event = charge(ledger, 20.0, what="third")
    found = shown.history(ledger.url, None)
    assert [one["number"] for one in found] == [1, 2, 3, 4, 5]
    assert [one.get("what") for one in found] == [None, None, "first", "second", "third"]
    assert found[4]["epsilon_alone"] == account_epsilon([event], 1e-5)
    assert found[3]["event"] == {"kind": "pure", "count": 1, "epsilon": 0.25}
    assert [one["number"] for one in shown.history(ledger.url, "labels")] == [2, 4]
    text = printed(capsys, shown.history_table(found))
    people, labels = text.split('Data set "labels"')
    assert [line.split()[0] for line in people.splitlines()[2:5]] == ["1", "3", "5"]
    assert "second" in labels
    assert "second" not in people
    assert says(people, "ε=2", "δ=1e-5", "protects a record")
    assert text.rstrip().endswith("ε alone: of this charge by itself, at the cap's δ.")


def test_words_stand_left_and_figures_right(ledger, capsys):
    charge(ledger, 10.0, what="a charge")
    state = {
        "dataset": "d",
        "relation": "record",
        **ONE_RECORD,
        "epsilon": 100.0,
        "delta": 1e-5,
        "spent": 7.0,
        "left": 93.0,
        "charges": 0,
    }
    head, first, second = printed(
        capsys, shown.accounts_table([state, {**state, "epsilon": 1.0}])
    ).splitlines()
    assert head.index("cap ε") + len("cap ε") == first.index("100") + 3 == second.index(" 1 ") + 2
    assert first.index("a record") == head.index("protects")
    opened, charged = printed(
        capsys, shown.history_table(shown.history(ledger.url, "people"))
    ).splitlines()[2:4]
    assert re.match(r"  1 +\d{4}-\d\d-\d\d \d\d:\d\d  cap ε", opened)
    assert charged.index("a charge") == opened.index("cap ε")
    who = shown.history(ledger.url, "people")[0]["who"]
    assert charged.index(who) == opened.index(who), (
        "who did it stands below each other, after the numbers"
    )
    one = {
        "dataset": "long name",
        "when": "2026-01-02T03:04:05.6",
        "who": "me",
        "values": 1234567,
        "releases": 2,
    }
    head, first, second = printed(
        capsys, shown.curves_table([one, {**one, "dataset": "b", "values": 5}])
    ).splitlines()
    assert first.index("1,234,567") + 9 == second.index(" 5 ") + 2 == head.index("values") + 6
    assert "2026-01-02 03:04  me" in first


def test_an_account_that_was_only_opened_says_so(ledger, capsys):
    text = printed(capsys, shown.history_table(shown.history(ledger.url, None)))
    assert text.count("Nothing was charged yet.") == 2
    assert "ε alone: of this charge" not in text


def test_curves_are_beside_the_accounts(monkeypatch, capsys):
    kept_ = [
        {
            "dataset": name,
            "when": "2026-01-02T03:04:05",
            "who": "me@host",
            "values": 1234,
            "releases": 2,
        }
        for name in ("orbit", "other")
    ]
    monkeypatch.setattr(shown, "remembered", lambda url: kept_)
    assert shown.curves("x", None) == kept_
    assert shown.curves("x", "other") == kept_[1:]
    _, first, _ = rows(capsys, shown.curves_table(kept_))
    assert first == ["orbit", "2026-01-02", "03:04", "me@host", "1,234", "2"]


def test_verifying_looks_at_curves_too(ledger, monkeypatch):
    head = shown.verify(ledger.url, None)
    assert head == ledger.verify()
    assert shown.verify(ledger.url, head) == head

    def broken(url):
        raise LedgerError("a curve was altered")

    monkeypatch.setattr(shown, "remembered", broken)
    with pytest.raises(LedgerError, match="a curve was altered"):
        shown.verify(ledger.url, None)


def budget_of(ledger, entry=None):
    """The budget of a model that this entry paid for."""
    model = copy.copy(kept("mean"))
    paid = None if entry is None else entry.hash
    model.releases_ = [derived(release, entry=paid) for release in model.releases_]
    return budget(model.releases_, ledger.url, "people")


def test_the_parts_of_a_budget_add_up_to_the_cap(ledger):
    mine = kept("mean").releases_[0].event
    before = charge(ledger, 10.0, what="other")
    entry = ledger.charge("people", mine, what=_words())
    after = charge(ledger, 20.0, what="more")
    found = budget_of(ledger, entry)
    assert [part["kind"] for part in found["parts"]] == ["before", "this", "after", "left"]
    assert sum(part["epsilon"] for part in found["parts"]) == pytest.approx(2.0)
    assert sum(float(part["percent"]) for part in found["parts"]) == pytest.approx(100, abs=0.02)
    first, second, third, _ = (part["epsilon"] for part in found["parts"])
    assert first == pytest.approx(account_epsilon([before], 1e-5))
    assert first + second == pytest.approx(account_epsilon([before, mine], 1e-5))
    assert (
        first + second + third
        == pytest.approx(account_epsilon([before, mine, after], 1e-5))
        == found["spent"]
    )
    assert [entry["this"] for entry in found["entries"]] == [False, True, False]
    assert found["charged"].endswith(" UTC")
    assert found["head"] == ledger.verify()
    assert found["remaining"] == shown.spendable(ledger.remaining("people"))
    assert found["composed"] == COMPOSITION_NOTE


def _words():
    """What a fit of the model writes beside its charge."""
    from reticent.models.base import columns_words

    model = kept("mean")
    return f"PrivateMean, 1 release{columns_words(model.releases_[0].bounds)}"


def test_a_release_that_the_ledger_does_not_know_has_no_part(ledger):
    charge(ledger, 10.0, what="other")
    found = budget_of(ledger)
    assert [part["kind"] for part in found["parts"]] == ["before", "left"]
    assert found["charged"] is None
    assert found["alone"] is None
    empty = budget(kept("mean").releases_, ledger.url, "labels")
    assert [part["kind"] for part in empty["parts"]] == ["left"]
    assert empty["composed"] == ""


def test_of_many_charges_the_last_five_and_its_own_are_shown(ledger):
    entry = ledger.charge("people", kept("mean").releases_[0].event, what=_words())
    for i in range(9):
        charge(ledger, 100.0, what=f"later {i}")
    found = budget_of(ledger, entry)
    assert [entry["what"] for entry in found["entries"]] == [
        _words(),
        *(f"later {i}" for i in range(4, 9)),
    ]
    assert found["charges"] == 10


def test_of_charges_that_look_alike_the_one_that_paid_is_taken(ledger):
    event = kept("mean").releases_[0].event
    entries = [ledger.charge("people", event, what=_words()) for _ in range(3)]
    found = budget_of(ledger, entries[1])
    assert found["charged"].endswith(" UTC")
    assert [entry["this"] for entry in found["entries"]] == [False, True, False]


def test_a_model_that_was_never_charged_does_not_say_to_which_account(ledger):
    with pytest.raises(BadInput, match="give --dataset"):
        budget(kept("mean").releases_, ledger.url, None)
    with pytest.raises(LedgerError, match="'people'"):
        budget(kept("mean").releases_, ledger.url, "peeple")


def test_the_unit_is_shown_in_words(ledger, capsys):
    ledger.open("visits", 1.0, 1e-6, records_per_person=5)
    ledger.charge(
        "visits", reticent.Gaussian(noise_multiplier=20.0), records_per_person=5, what="mean"
    )
    [state] = shown.accounts(ledger.url, "visits")
    assert state["records_per_person"] == 5
    assert "5 records" in printed(capsys, shown.accounts_table([state]))
    entries = shown.history(ledger.url, "visits")
    assert [(one["relation"], one["records_per_person"]) for one in entries] == [("record", 5)] * 2
    assert "protects 5 records" in printed(capsys, shown.history_table(entries))
