"""What a ledger promises, on both databases."""

import copy
import dataclasses
import getpass
import math
import pickle
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reticent.errors import BadInput, BudgetExceeded, LedgerError
from reticent.obfuscation.register import recall, recall_or, remembered
from reticent.privacy.accounting.composition import (
    account_epsilon,
    calibrate,
    epsilon,
    remaining_epsilon,
)
from reticent.privacy.accounting.events import Gaussian, Laplace, Pure
from reticent.privacy.accounting.rounding import rounded_up
from reticent.privacy.ledger import connection as database
from reticent.privacy.ledger import tables
from reticent.privacy.ledger.ledger import RELATIONS, Ledger, _append, check_account

SMALL = Gaussian(noise_multiplier=20.0)


@pytest.fixture
def ledger(url):
    ledger = Ledger(url)
    ledger.open("people", 1.0, 1e-6)
    return ledger


def test_a_charge_is_on_the_ledger_with_who_when_and_what(ledger):
    before = datetime.now(UTC) - timedelta(seconds=1)
    entry = ledger.charge("people", SMALL, what="mean of age")
    assert ledger.history("people") == [entry]
    assert (entry.number, entry.dataset, entry.event, entry.what) == (
        2,
        "people",
        SMALL,
        "mean of age",
    )
    assert entry.who.startswith(f"{getpass.getuser()}@")
    assert before <= datetime.fromisoformat(entry.when) <= datetime.now(UTC)
    assert len(entry.hash) == 64
    with pytest.raises(dataclasses.FrozenInstanceError):
        entry.who = "someone else"


def test_totals_are_exact_compositions_and_not_sums(ledger):
    events = [SMALL, Gaussian(noise_multiplier=15.0, count=3), Gaussian(noise_multiplier=40.0)]
    for i, event in enumerate(events, start=1):
        ledger.charge("people", event)
        assert ledger.spent("people") == epsilon(events[:i], 1e-6)
    assert [entry.event for entry in ledger.history("people")] == events
    assert ledger.spent("people") < sum(epsilon(event, 1e-6) for event in events)


def test_mixed_accounts_are_counted_as_gaussian_ones(ledger):
    """Composing what was done is no valid filter for them.

    A choice between kinds in view of results could pass the cap.
    """
    events = [Gaussian(noise_multiplier=15.0), Pure(epsilon=0.05), Laplace(noise_multiplier=30.0)]
    for i, event in enumerate(events, start=1):
        ledger.charge("people", event)
        assert ledger.spent("people") == account_epsilon(events[:i], 1e-6)
    assert ledger.spent("people") >= epsilon(events, 1e-6)
    with pytest.raises(BudgetExceeded, match="name of its own"):
        ledger.charge("people", Pure(epsilon=0.3))


def test_pure_accounts_add_up_or_compose_whichever_is_less():
    few = [Pure(epsilon=0.1)] * 3
    many = [Pure(epsilon=0.001)] * 10_000
    assert account_epsilon(few, 1e-6) == pytest.approx(0.3)
    assert account_epsilon(many, 1e-6) < 1
    assert account_epsilon(many, 0.0) == pytest.approx(10.0)
    assert account_epsilon([Pure(epsilon=40.0)], 1e-6) == pytest.approx(40.0)
    assert account_epsilon([Pure(epsilon=40.0), SMALL], 1e-6) == float("inf")


def test_grouping_charges_does_not_change_the_total(ledger):
    ledger.open("grouped", 1.0, 1e-6)
    for _ in range(7):
        ledger.charge("people", Gaussian(noise_multiplier=33.3))
    ledger.charge("grouped", Gaussian(noise_multiplier=33.3, count=4))
    ledger.charge("grouped", Gaussian(noise_multiplier=33.3, count=3))
    assert ledger.spent("people") == ledger.spent("grouped")
    assert ledger.remaining("people") == ledger.remaining("grouped")


def test_accounts_are_separate(ledger):
    ledger.open("others", 2.0, 0.0, relation="label")
    ledger.charge("others", Pure(epsilon=0.5), relation="label")
    assert (ledger.spent("people"), ledger.remaining("people")) == (0.0, 1.0)
    assert ledger.spent("others") == pytest.approx(0.5)
    assert ledger.remaining("others") == pytest.approx(1.5)
    summary = [(a.dataset, a.relation, a.epsilon, a.delta) for a in ledger.datasets()]
    assert summary == [("people", "record", 1.0, 1e-6), ("others", "label", 2.0, 0.0)]
    assert ledger.account("others") == ledger.datasets()[1]


def test_a_charge_past_the_cap_is_refused_and_leaves_no_trace(ledger):
    ledger.charge("people", SMALL)
    head = ledger.verify()
    with pytest.raises(BudgetExceeded, match="cap of ε = 1, δ = 1e-06") as refusal:
        ledger.charge("people", Gaussian(noise_multiplier=4.0))
    text = str(refusal.value)
    assert "1 gaussian release (noise multiplier 4)" in text
    assert f"{rounded_up(ledger.spent('people'), 6):.6g} at the cap's δ" in text
    assert "with delta = 1e-06 in one release" in text  # ε alone says nothing
    assert ledger.verify() == head
    advised = float(text.partition("at most epsilon = ")[2].split()[0])
    assert advised == pytest.approx(ledger.remaining("people"), rel=1e-4)
    ledger.charge("people", Gaussian(noise_multiplier=calibrate(advised, 1e-6)))


def test_what_is_refused_says_so_when_nothing_is_left_or_delta_is_zero(ledger):
    ledger.charge("people", Gaussian(noise_multiplier=calibrate(1.0, 1e-6)))
    assert ledger.remaining("people") < 1e-3
    ledger.open("pure", 1.0, 0.0)
    with pytest.raises(BudgetExceeded, match="admits no Gaussian"):
        ledger.charge("pure", Gaussian(noise_multiplier=1e6))
    ledger.charge("pure", Laplace(noise_multiplier=calibrate(ledger.remaining("pure"), 0.0)))
    assert ledger.remaining("pure") < 1e-12
    with pytest.raises(BudgetExceeded):
        ledger.charge("pure", Pure(epsilon=1e-9))


def test_the_cap_can_be_used_up_to_its_last_bit(ledger):
    event = Gaussian(noise_multiplier=calibrate(1.0, 1e-6, releases=5))
    for _ in range(5):
        ledger.charge("people", event)
    with pytest.raises(BudgetExceeded):
        ledger.charge("people", Gaussian(noise_multiplier=1e4))
    assert len(ledger.history("people")) == 5


def test_opening_again_changes_nothing(ledger):
    ledger.charge("people", SMALL)
    head = ledger.verify()
    account = ledger.account("people")
    assert ledger.open("people", 1, 1e-6) == account
    assert ledger.verify() == head


@pytest.mark.parametrize(
    "cap", [(2.0, 1e-6, "record"), (1.0, 1e-5, "record"), (1.0, 1e-6, "label")]
)
def test_a_cap_never_changes(ledger, cap):
    with pytest.raises(LedgerError, match="already open with ε = 1, δ = 1e-06, relation 'record'"):
        ledger.open("people", *cap[:2], relation=cap[2])
    assert len(ledger.datasets()) == 1


def test_relations_never_mix(ledger):
    with pytest.raises(LedgerError, match="open for relation 'record'"):
        ledger.charge("people", SMALL, relation="label")
    with pytest.raises(BadInput, match="one of record, label"):
        ledger.charge("people", SMALL, relation="person")
    with pytest.raises(BadInput, match="one of record, label"):
        ledger.open("more", 1.0, 1e-6, relation="person")
    assert ledger.history("people") == []
    assert set(RELATIONS) == {"record", "label"}


def test_people_with_several_records_are_never_mixed_with_single_records(ledger):
    """Noise that hides one of five records does not hide the person: ε would be far more than the
    account says.
    """
    account = ledger.open("visits", 1.0, 1e-6, records_per_person=5)
    assert (account.relation, account.records_per_person) == ("record", 5)
    assert ledger.account("visits") == account
    entry = ledger.charge("visits", SMALL, records_per_person=5)
    assert (entry.relation, entry.records_per_person) == ("record", 5)
    assert ledger.history("visits") == [entry]
    for dataset, other in (("visits", 1), ("visits", 4), ("visits", 6), ("people", 5)):
        with pytest.raises(
            LedgerError,
            match=r"do not add up.*Fit with records_per_person=[15] and .*nothing was charged",
        ):
            ledger.charge(dataset, SMALL, records_per_person=other)
    with pytest.raises(
        LedgerError, match=r"already open with .*records_per_person = 5\); asked was .*never change"
    ):
        ledger.open("visits", 1.0, 1e-6)
    for wrong in (0, -1, 1.5, 10**6 + 1, True, "5", None):
        with pytest.raises(BadInput, match="records_per_person must be a whole number"):
            ledger.charge("people", SMALL, records_per_person=wrong)
        with pytest.raises(BadInput, match="records_per_person must be a whole number"):
            ledger.open("more", 1.0, 1e-6, records_per_person=wrong)
    assert len(ledger.history("visits")) == 1
    assert ledger.history("people") == []
    ledger.verify()


def test_rows_of_the_first_format_count_as_single_records(ledger):
    """Version 0.1.0 wrote caps and events without a number of records per person."""
    with database.transaction(ledger.url, write=True) as execute:
        _append(execute, "open", "old", '{"delta":1e-06,"epsilon":1.0,"relation":"label"}', "")
        _append(execute, "charge", "old", SMALL.to_json(), "by 0.1.0")
    account = ledger.account("old")
    [entry] = ledger.history("old")
    assert (account.relation, account.records_per_person) == ("label", 1)
    assert (entry.event, entry.relation, entry.records_per_person) == (SMALL, "label", 1)
    ledger.charge("old", SMALL, relation="label")
    assert ledger.spent("old") == epsilon([SMALL] * 2, 1e-6)
    with pytest.raises(LedgerError, match="do not add up"):
        ledger.charge("old", SMALL, relation="label", records_per_person=2)
    ledger.verify()


def test_a_charge_creates_no_account(ledger):
    for use in (
        ledger.spent,
        ledger.remaining,
        ledger.history,
        ledger.account,
        lambda d: ledger.charge(d, SMALL),
    ):
        with pytest.raises(
            LedgerError, match=r"no account for data set 'poeple'. It has: 'people'.*ledger open"
        ):
            use("poeple")
    assert len(ledger.datasets()) == 1


def test_bad_values_are_refused(ledger):
    for name in ("", "x" * 201, "two\nlines", "\ud800", "nul\0", None, 3):
        with pytest.raises(BadInput, match=r"^dataset must be"):
            ledger.open(name, 1.0, 1e-6)
        with pytest.raises(BadInput, match=r"^dataset must be"):
            ledger.charge(name, SMALL)
    for eps, delta in (
        (0.0, 1e-6),
        (-1.0, 1e-6),
        (float("nan"), 1e-6),
        (1.0, 1.0),
        (1.0, -1e-9),
        ("1", 0.0),
    ):
        with pytest.raises(BadInput):
            ledger.open("more", eps, delta)
    for event in (None, 0.5, "gaussian", {"kind": "gaussian"}, [SMALL]):
        with pytest.raises(BadInput, match="Only an Event"):
            ledger.charge("people", event)
    with pytest.raises(BadInput, match="what"):
        ledger.charge("people", SMALL, what="two\nlines")
    assert len(ledger.datasets()) == 1
    assert ledger.history("people") == []


def test_names_may_be_any_printable_text(ledger):
    name = 'Æther\'s "data" %s ? 数 ' + "x" * 170
    ledger.open(name, 1.0, 1e-6)
    ledger.charge(name, SMALL, what="50 % of ε? {x}")
    assert ledger.history(name)[0].what == "50 % of ε? {x}"
    ledger.verify()


def test_copies_and_pickles_spend_from_the_same_account(ledger):
    for same in (copy.copy(ledger), copy.deepcopy(ledger), pickle.loads(pickle.dumps(ledger))):
        assert vars(same) == {"url": ledger.url}
        same.charge("people", SMALL)
    assert len(ledger.history("people")) == 3


def test_a_new_process_sees_what_was_spent(ledger, elsewhere):
    ledger.charge("people", SMALL)
    code = (
        "from reticent.privacy.ledger.ledger import Ledger; "
        f"print(Ledger({ledger.url!r}).spent('people'))"
    )
    ended, out = elsewhere(code)
    assert ended == 0
    assert float(out) == ledger.spent("people") > 0


def test_a_long_history_is_charged_like_a_short_one(ledger):
    with database.transaction(ledger.url, write=True) as execute:
        for i in range(3_000):
            _append(
                execute, "charge", "people", Gaussian(noise_multiplier=3000.0 + i / 7).to_json(), ""
            )
    for _ in range(3):
        ledger.charge("people", Gaussian(noise_multiplier=3000.0))
    assert len(ledger.history("people")) == 3_003


@settings(max_examples=25, deadline=None)
@given(
    cap=st.floats(1e-3, 20),
    delta=st.sampled_from([1e-12, 1e-6, 1e-3, 0.2]),
    shares=st.lists(st.floats(0.01, 1.0), max_size=4),
)
def test_what_remains_can_be_charged(tmp_path_factory, cap, delta, shares):
    ledger = Ledger(tmp_path_factory.mktemp("ledger") / "budget.db")
    ledger.open("people", cap, delta)
    for share in shares:
        left = ledger.remaining("people")
        if left > 0:
            ledger.charge("people", Gaussian(noise_multiplier=calibrate(left * share, delta)))
    left = ledger.remaining("people")
    if left > 0:  # else what is left is too little to have an ε of its own at this δ
        ledger.charge("people", Gaussian(noise_multiplier=calibrate(left, delta)))
        assert ledger.spent("people") == pytest.approx(cap, rel=1e-6)
    assert ledger.spent("people") <= cap


gaussians = st.floats(0.5, 1e4).map(lambda z: Gaussian(noise_multiplier=z))
others = st.floats(0.05, 1).map(lambda e: Pure(epsilon=e)) | st.floats(1, 20).map(
    lambda z: Laplace(noise_multiplier=z)
)


@settings(max_examples=200, deadline=None)
@given(events=st.lists(gaussians, max_size=5), cap=st.floats(1e-3, 50), delta=st.floats(1e-20, 0.5))
def test_remaining_epsilon_is_granted_and_no_more_would_be(events, cap, delta):
    left = remaining_epsilon(events, cap, delta)
    assert 0 <= left <= cap
    if left > 1e-9:
        more = left * (1 + 1e-6)
        assert epsilon([*events, Gaussian(noise_multiplier=calibrate(left, delta))], delta) <= cap
        assert epsilon([*events, Gaussian(noise_multiplier=calibrate(more, delta))], delta) > cap
    elif epsilon(events, delta) > cap:
        assert left == 0


@settings(max_examples=12, deadline=None)
@given(
    events=st.lists(gaussians | others, max_size=3),
    other=others,
    cap=st.floats(0.1, 10),
    delta=st.sampled_from([0.0, 1e-30, 1e-6, 0.1]),
)
def test_remaining_epsilon_is_granted_among_other_events(events, other, cap, delta):
    events = [*events, other]
    left = remaining_epsilon(events, cap, delta)
    assert 0 <= left <= cap
    if left > 0:
        kind = Gaussian if delta else Laplace
        assert epsilon([*events, kind(noise_multiplier=calibrate(left, delta))], delta) <= cap


def test_remaining_epsilon_at_the_edges():
    assert remaining_epsilon([], 1.0, 1e-6) == 1.0
    assert remaining_epsilon([], 1.0, 0.0) == 1.0
    assert remaining_epsilon([Gaussian(noise_multiplier=1e6)], 1.0, 0.0) == 0.0
    assert remaining_epsilon([Gaussian(noise_multiplier=1.0)], 1.0, 1e-6) == 0.0
    assert remaining_epsilon([Pure(epsilon=0.25)], 1.0, 1e-6) == 0.0
    assert 0.9 < remaining_epsilon([Pure(epsilon=0.05)], 1.0, 1e-6) < 1.0
    assert remaining_epsilon([], 1e300, 1e-6) == 1e9
    assert (
        0.2 < remaining_epsilon([Pure(epsilon=0.01)] * 300, 1.0, 1e-6) < 1.0
    )  # although 300 × 0.01 > 1


@pytest.mark.parametrize(
    "events", [[Gaussian(noise_multiplier=4.2), Pure(epsilon=0.2)], [Pure(epsilon=0.05)] * 30]
)
def test_the_cap_less_what_is_spent_would_be_too_much(events):
    cap = 1.0
    delta = 0.1
    naive = cap - epsilon(events, delta)
    assert epsilon([*events, Gaussian(noise_multiplier=calibrate(naive, delta))], delta) > cap
    left = remaining_epsilon(events, cap, delta)
    assert 0.7 < left < naive
    assert epsilon([*events, Gaussian(noise_multiplier=calibrate(left, delta))], delta) <= cap


def test_curves_are_remembered_on_both_databases(ledger):
    url = ledger.url
    drawn = []

    def draw():
        drawn.append(1)
        return {"w": [[0.5, 1.0]]}

    assert recall(url, "orbit", "asked") is None
    assert remembered(url) == []
    assert (
        recall_or(url, "orbit", "asked", draw)
        == recall_or(url, "orbit", "asked", draw)
        == recall(url, "orbit", "asked")
    )
    assert len(drawn) == 1
    for ask in (
        lambda: recall(url, "orbit", "other"),
        lambda: recall_or(url, "people", "asked", draw),
    ):
        with pytest.raises(BudgetExceeded):
            ask()
    with pytest.raises(BudgetExceeded, match="obfuscated curve"):
        ledger.open("orbit", 1, 1e-6)
    [one] = remembered(url)
    assert (one["dataset"], one["releases"], one["values"]) == ("orbit", 1, 2)
    with pytest.raises(BadInput, match="printable"):
        recall(url, "a\nb", "asked")


def test_a_charge_that_meets_the_cap_exactly_is_granted_and_the_next_number_is_not(tmp_path):
    event = Gaussian(noise_multiplier=4.0)
    total = epsilon(event, 1e-6)
    ledger = Ledger(tmp_path / "budget.db")
    ledger.open("exact", total, 1e-6)
    ledger.charge("exact", event)
    assert ledger.spent("exact") == ledger.account("exact").epsilon
    ledger.open("short", math.nextafter(total, 0), 1e-6)
    with pytest.raises(BudgetExceeded):
        ledger.charge("short", event)


def test_texts_have_their_lengths(tmp_path):
    ledger = Ledger(tmp_path / "budget.db")
    for name in ("x", "x" * 200):
        ledger.open(name, 1.0, 1e-6)
        ledger.charge(name, SMALL, what="w" * 1000)
        assert ledger.history(name)[0].what == "w" * 1000
    with pytest.raises(BadInput, match="0 to 1000"):
        ledger.charge("x", SMALL, what="w" * 1001)
    with pytest.raises(BadInput, match="1 to 200"):
        ledger.history("x" * 201)


def test_the_lock_is_taken_before_anything_is_read(ledger, monkeypatch):
    """Whoever reads first and locks then decides by a history that others have spent from in
    between: refusals wait, too.
    """
    monkeypatch.setattr(tables, "LOCK_SECONDS", 0.05)
    with database.transaction(ledger.url, write=True):
        for use in (
            lambda: ledger.charge("people", Gaussian(noise_multiplier=0.1)),
            lambda: ledger.open("people", 1.0, 1e-6),
        ):
            with pytest.raises(LedgerError, match="held its lock"):
                use()
        if ledger.url.startswith("postgresql"):
            assert ledger.spent("people") == 0  # reading does not wait there
        else:
            with pytest.raises(LedgerError, match="held its lock"):
                ledger.spent("people")
    with pytest.raises(BudgetExceeded):
        ledger.charge("people", Gaussian(noise_multiplier=0.1))


def test_the_text_of_a_cap_is_canonical(ledger):
    """Ledgers hold this text: it never changes."""
    with database.transaction(ledger.url) as execute:
        [(body,)] = execute(f"SELECT body FROM {tables.TABLE}", [])
    unit = '"unit":{"records_per_person":1,"relation":"record"}'
    assert body == '{"delta":1e-06,"epsilon":1.0,' + unit + "}"
    ledger.charge("people", SMALL)
    with database.transaction(ledger.url) as execute:
        [(body,)] = execute(f"SELECT body FROM {tables.TABLE} WHERE number = 2", [])
    assert body == '{"event":{"count":1,"kind":"gaussian","noise_multiplier":20.0},' + unit + "}"


def test_an_event_is_charged_as_what_it_is(tmp_path):
    """Neither what has the text of an event without being one, nor an event that has the text of a
    smaller one.
    """

    class Lookalike:
        def to_json(self):
            return SMALL.to_json()

    class Understated(Gaussian):
        def to_json(self):
            return SMALL.to_json()

    ledger = Ledger(tmp_path / "budget.db")
    ledger.open("people", 1e9, 1e-6)
    for event in (Lookalike(), Understated(noise_multiplier=0.1)):
        with pytest.raises(BadInput, match="Only an Event"):
            ledger.charge("people", event)
    assert ledger.history("people") == []


def test_an_event_of_very_many_uses_is_charged_more_than_once(tmp_path):
    """No single event states as many uses as two such charges have."""
    event = Gaussian(noise_multiplier=1e6, count=10**9)
    ledger = Ledger(tmp_path / "budget.db")
    ledger.open("people", 1.0, 1e-6)
    for charges in (1, 2, 3):
        ledger.charge("people", event)
        assert ledger.spent("people") == epsilon([event] * charges, 1e-6)


def test_people_with_up_to_a_million_records(tmp_path):
    ledger = Ledger(tmp_path / "budget.db")
    assert ledger.open("many", 1.0, 1e-6, records_per_person=10**6).records_per_person == 10**6
    entry = ledger.charge("many", SMALL, records_per_person=10**6)
    assert entry.records_per_person == 10**6
    for wrong in (0, 10**6 + 1):
        with pytest.raises(BadInput, match="records_per_person"):
            ledger.open("more", 1.0, 1e-6, records_per_person=wrong)


def test_a_data_set_without_an_account_is_told_ten_that_have_one(tmp_path):
    ledger = Ledger(tmp_path / "budget.db")
    for number in range(11):
        ledger.open(f"set {number}", 1.0, 1e-6)
    with pytest.raises(LedgerError, match=r"'set 0', .*'set 9'\.") as error:
        ledger.spent("set 11")
    assert "'set 10'" not in str(error.value)


def test_a_ledger_and_a_data_set_are_given_both_or_neither():
    check_account(None, None)
    check_account("budget.db", "people")
    for ledger, dataset in (("budget.db", None), (None, "people")):
        with pytest.raises(BadInput, match="Give both ledger and dataset, or neither"):
            check_account(ledger, dataset)
