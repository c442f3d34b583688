"""What the bandit service keeps and blanks, whose tokens count, and what becomes of rounds: in one process, without HTTP."""

from dataclasses import replace

import pytest

from reticent import Bounds, JointBandit, Ledger
from reticent.apps.service import host as hosts
from reticent.apps.service import tokens
from reticent.apps.service.app import make_app
from reticent.apps.service.host import Host, Unknown
from reticent.apps.service.store import Experiment, Round, Store, now
from reticent.apps.service.tokens import Tokens, issue
from reticent.errors import BadInput, BudgetExceeded, LedgerError

PARAMS = {"bounds": Bounds(x=[(0, 1)], y=(0, 1)), "horizon": 100, "epsilon": 1.0, "delta": 1e-6}


@pytest.fixture
def store(tmp_path):
    Ledger(tmp_path / "budget.db").open("patients", epsilon=1, delta=1e-6)
    return Store(str(tmp_path / "budget.db"))


def round_(ask, asked=10, candidate="[0.5]"):
    return Round(ask, "t", asked, None, candidate, None)


def test_a_name_is_taken_once_and_given_back_only_unpaid(store):
    one = Experiment("doses", "joint", "", "", 1)
    with store.write() as execute:
        assert store.add_experiment(execute, one)
        assert not store.add_experiment(execute, replace(one, mode="local"))
        store.drop_experiment(execute, "doses")
        assert store.experiments(execute) == []
        store.add_experiment(execute, one)
        store.keep_state(execute, "doses", "paid", 0)
        store.drop_experiment(execute, "doses")
        assert store.experiments(execute) == [replace(one, state="paid")]


def test_experiments_come_oldest_first(store):
    with store.write() as execute:
        for name, created in (("c", 2), ("b", 2), ("a", 3), ("d", 1)):
            store.add_experiment(execute, Experiment(name, "joint", "", "", created))
        assert [one.name for one in store.experiments(execute)] == ["d", "b", "c", "a"]


def test_a_release_blanks_the_rounds_in_it_and_no_others(store):
    with store.write() as execute:
        store.add_experiment(execute, Experiment("doses", "joint", "", "", 1))
        for number, ask in enumerate("abcd", 1):
            for name in ("doses", "other"):
                store.add_ask(execute, name, round_(ask))
                if ask != "d":
                    store.add_tell(execute, name, ask, number, "0.25")
        assert store.counts(execute, "doses") == (3, 1)
        store.keep_state(execute, "doses", "new", 2)
        assert [one.ask for one in store.unreleased(execute, "doses")] == ["c"]
        assert store.round(execute, "doses", "a") == Round("a", "t", 10, 1, None, None)
        assert store.round(execute, "doses", "c").reward == "0.25"
        assert store.round(execute, "doses", "d") == round_("d")  # open: it will be told
        assert len(store.unreleased(execute, "other")) == 3
        assert store.counts(execute, "doses") == (3, 1)  # that they were told stays
        assert store.round(execute, "doses", "e") is None


def test_unreleased_rounds_come_in_the_order_of_telling(store):
    with store.write() as execute:
        for ask, told in (("a", 3), ("b", 1), ("c", 2)):
            store.add_ask(execute, "doses", round_(ask))
            store.add_tell(execute, "doses", ask, told, "1")
        assert [one.ask for one in store.unreleased(execute, "doses")] == ["b", "c", "a"]


def test_old_asks_are_forgotten_but_never_what_was_told(store):
    with store.write() as execute:
        for ask, asked in (("old", 5), ("told", 5), ("new", 20)):
            store.add_ask(execute, "doses", round_(ask, asked))
        store.add_tell(execute, "doses", "told", 1, "1")
        assert store.expire(execute, "doses", 20) == 1
        assert store.expire(execute, "doses", 20) == 0
        assert store.expire(execute, "other", 99) == 0
        assert store.counts(execute, "doses") == (1, 1)
        assert store.round(execute, "doses", "old") is None


def test_only_a_token_of_the_experiment_is_ended(store):
    text = issue(store, "client", "doses", days=1)
    id_, known = text.split("_")[1], Tokens(store)
    with store.write() as execute:
        assert not store.revoke(execute, id_, "other")
    assert known.find(text).experiment == "doses"
    with store.write() as execute:
        assert store.revoke(execute, id_, "doses")
    assert known.find(text) is not None, "seen a moment later"
    known.refresh(soon=True)
    assert known.find(text) is None


def test_a_token_counts_until_its_day(store, monkeypatch):
    text, known = issue(store, "client", "doses", days=2), Tokens(store)
    start = now()
    for later, counts in ((0, True), (2 * 86400 - 10, True), (2 * 86400 + 10, False)):
        monkeypatch.setattr(tokens, "now", lambda later=later: start + later)
        assert (known.find(text) is not None) == counts


@pytest.mark.parametrize(
    "change",
    [
        str.upper,
        lambda t: t[:-1],
        lambda t: t + "0",
        lambda t: t[3:],
        lambda t: t.replace("_", "-"),
        lambda t: f" {t}",
        lambda t: t + "\n",
    ],
)
def test_what_is_nearly_a_token_is_none(store, change):
    text = issue(store, "operator", days=1)
    assert Tokens(store).find(text).role == "operator"
    assert Tokens(store).find(change(text)) is None


def test_the_secret_of_one_token_does_not_open_another(store):
    first, second = (issue(store, "operator", days=1).split("_") for _ in range(2))
    assert Tokens(store).find(f"rt_{first[1]}_{second[2]}") is None
    assert first[1:] != second[1:]


@pytest.fixture
def host(store, monkeypatch):
    monkeypatch.setattr(hosts, "_sometimes", lambda: True)
    one = Host(store, open_seconds=100)
    one.create("doses", "joint", "", lambda: JointBandit(**PARAMS))
    yield one
    one.close()


def done(host, method, *args):
    return host.submit(lambda execute: getattr(host, method)(execute, *args)).result()


def test_a_round_is_told_by_whom_it_was_asked_and_once(host, store):
    ask, choice = done(host, "ask", "doses", "me", [[0.1], [0.9]])
    assert choice in (0, 1)
    with pytest.raises(Unknown, match="not by this token"):
        done(host, "tell", "doses", "another", ask, 0.5)
    with pytest.raises(Unknown, match="never made"):
        done(host, "tell", "doses", "me", "0" * 32, 0.5)
    assert [done(host, "tell", "doses", "me", ask, reward) for reward in (0.5, 0.9)] == [1, 1]
    with store.read() as execute:
        kept = store.round(execute, "doses", ask)
    assert (kept.told, kept.reward) == (1, "0.5")  # the first one


def test_names_that_nobody_has_and_the_wrong_kind_are_refused(host):
    for method, *more in (("ask", "me", [[0.5]]), ("tell", "me", "0" * 32, 1.0), ("local",), ("running",)):
        with pytest.raises(Unknown, match="There is no experiment 'none'"):
            done(host, method, "none", *more)
    with pytest.raises(BadInput, match=r"is a joint one\. Ask and tell it"):
        done(host, "local", "doses")
    with pytest.raises(BadInput, match="already: choose another name"):
        host.create("doses", "joint", "", lambda: JointBandit(**PARAMS))


def test_an_ask_that_was_never_told_gives_its_place_back(host, store, monkeypatch):
    start = now()
    asks = [done(host, "ask", "doses", "me", [[0.5]])[0] for _ in range(3)]
    monkeypatch.setattr(hosts, "now", lambda: start + 500)
    done(host, "ask", "doses", "me", [[0.5]])
    with store.read() as execute:
        assert store.counts(execute, "doses") == (0, 1)
    with pytest.raises(Unknown, match="too long ago"):
        done(host, "tell", "doses", "me", asks[0], 1.0)


def test_one_that_cannot_be_paid_for_gives_its_name_back(host, store):
    dear = {**PARAMS, "epsilon": 50.0, "ledger": store.url, "dataset": "patients"}
    with pytest.raises(BudgetExceeded):
        host.create("dear", "joint", "patients", lambda: JointBandit(**dear))
    host.create("dear", "joint", "", lambda: JointBandit(**PARAMS))
    assert done(host, "running", "dear").bandit.rounds_ == 0


def test_a_job_that_fails_inside_tells_nobody_why_and_throws_memory_away(host):
    before = done(host, "running", "doses")

    def broken(execute):
        raise RuntimeError("patient Smith")

    with pytest.raises(LedgerError, match="failed inside") as told:
        host.submit(broken).result()
    assert "Smith" not in str(told.value)
    assert done(host, "running", "doses") is not before
    assert done(host, "ask", "doses", "me", [[0.5]])[1] == 0


def test_a_restart_goes_on_where_it_stopped(host, store):
    told = [done(host, "ask", "doses", "me", [[0.1], [0.9]])[0] for _ in range(4)]
    for ask in told[:3]:
        done(host, "tell", "doses", "me", ask, 0.25)
    host.close()
    again = Host(store)
    assert done(again, "running", "doses").told == 3
    assert done(again, "tell", "doses", "me", told[3], 0.75) == 4
    assert done(again, "tell", "doses", "me", told[0], 0.75) == 4
    again.close()


def test_every_path_but_the_public_ones_has_a_gate_of_its_own(store):
    """Handlers do not rely on the gate before them: each names whom it lets in."""
    app = make_app(store.url)
    for route in app.routes:
        path = getattr(route, "path", "")
        if path.startswith("/experiments"):
            names = {call.call.__name__ for call in route.dependant.dependencies}
            mine = path.split("/")[-1] in ("ask", "tell", "message", "report")
            assert names == {"_client" if mine else "_operator"}, path
