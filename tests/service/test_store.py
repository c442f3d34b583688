"""What the bandit service keeps and blanks, whose tokens count, and what becomes of rounds.

In one process, without HTTP.
"""

import os
import stat
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from reticent import Bounds, JointBandit, Ledger
from reticent.errors import BadInput, BudgetExceeded, LedgerError, ReleaseRefused
from reticent.privacy.ledger import connection as database
from reticent.service import experiment_host as hosts
from reticent.service import tokens
from reticent.service.experiment_host import ExperimentHost, NotFound
from reticent.service.http_api import make_app
from reticent.service.store import Experiment, Round, Store, now
from reticent.service.tokens import Tokens, issue
from tests.support.postgres import server

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
    id_ = text.split("_")[1]
    known = Tokens(store)
    with store.write() as execute:
        assert not store.revoke(execute, id_, "other")
    assert known.find(text).experiment == "doses"
    with store.write() as execute:
        assert store.revoke(execute, id_, "doses")
    assert known.find(text) is not None, "seen a moment later"
    known.refresh(soon=True)
    assert known.find(text) is None


def test_a_token_counts_until_its_day(store, monkeypatch):
    text = issue(store, "client", "doses", days=2)
    known = Tokens(store)
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
def host(store):
    one = ExperimentHost(store, open_seconds=100)
    one.create("doses", "joint", "", lambda: JointBandit(**PARAMS))
    yield one
    one.close()


def done(host, method, *args, **more):
    return host.submit(lambda execute: getattr(host, method)(execute, *args, **more)).result()


def test_a_round_is_told_by_whom_it_was_asked_and_once(host, store):
    ask, choice = done(host, "ask", "doses", "me", [[0.1], [0.9]])
    assert choice in (0, 1)
    with pytest.raises(NotFound, match="not by this token"):
        done(host, "tell", "doses", "another", ask, 0.5)
    with pytest.raises(NotFound, match="never made"):
        done(host, "tell", "doses", "me", "0" * 32, 0.5)
    assert [done(host, "tell", "doses", "me", ask, reward) for reward in (0.5, 0.9)] == [1, 1]
    with store.read() as execute:
        kept = store.round(execute, "doses", ask)
    assert (kept.told, kept.reward) == (1, "0.5")  # the first one


def test_names_that_nobody_has_and_the_wrong_kind_are_refused(host):
    for method, *more in (
        ("ask", "me", [[0.5]]),
        ("tell", "me", "0" * 32, 1.0),
        ("local",),
        ("running",),
    ):
        with pytest.raises(NotFound, match="'none'"):
            done(host, method, "none", *more)
    with pytest.raises(BadInput, match="joint"):
        done(host, "local", "doses")
    with pytest.raises(BadInput, match="another name"):
        host.create("doses", "joint", "", lambda: JointBandit(**PARAMS))


def test_an_ask_that_was_never_told_gives_its_place_back(host, store, monkeypatch):
    start = now()
    asks = [done(host, "ask", "doses", "me", [[0.5]], relay=True)[0] for _ in range(3)]
    monkeypatch.setattr(hosts, "now", lambda: start + 500)
    done(host, "ask", "doses", "me", [[0.5]])
    with store.read() as execute:
        assert store.counts(execute, "doses") == (0, 1)
    with pytest.raises(NotFound, match="too long ago"):
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
    told = [done(host, "ask", "doses", "me", [[0.1], [0.9]], relay=True)[0] for _ in range(4)]
    for ask in told[:3]:
        done(host, "tell", "doses", "me", ask, 0.25)
    host.close()
    again = ExperimentHost(store)
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


def test_a_person_takes_part_as_often_as_the_promise_counts_on(store, monkeypatch):
    one = ExperimentHost(store, open_seconds=100)
    start = now()
    one.create("doses", "joint", "", lambda: JointBandit(**PARAMS, records_per_person=2))
    first = done(one, "ask", "doses", "me", [[0.5]])[0]
    done(one, "ask", "doses", "me", [[0.5]])
    done(one, "tell", "doses", "me", first, 0.5)
    with pytest.raises(ReleaseRefused, match="at most 2 rounds"):
        done(one, "ask", "doses", "me", [[0.5]])
    done(one, "ask", "doses", "another", [[0.5]])
    monkeypatch.setattr(hosts, "now", lambda: start + 500)
    done(
        one, "ask", "doses", "me", [[0.5]]
    )  # the one that was never told counts no more; the one that was told does
    with pytest.raises(ReleaseRefused, match="at most 2 rounds"):
        done(one, "ask", "doses", "me", [[0.5]])
    one.close()


@pytest.mark.parametrize(
    ("horizon", "most"), [(None, 1000), (1, 1), (9, 1), (400, 40), (10**9, 1000)]
)
def test_an_app_may_have_a_tenth_of_the_horizon_open(horizon, most):
    assert hosts.open_quota(horizon) == most


def test_an_app_that_never_tells_leaves_rounds_for_others(host):
    for _ in range(10):
        done(host, "ask", "doses", "greedy", [[0.5]], relay=True)
    with pytest.raises(ReleaseRefused, match="100 seconds"):
        done(host, "ask", "doses", "greedy", [[0.5]], relay=True)
    for number in range(90):
        done(host, "ask", "doses", f"other {number}", [[0.5]])
    with pytest.raises(ReleaseRefused, match="horizon of 100"):
        done(host, "ask", "doses", "late", [[0.5]])


def test_a_candidate_of_another_length_is_refused_and_begins_no_round(host, store):
    for wrong in ([[0.1, 0.2]], [[0.1], []]):
        with pytest.raises(BadInput, match="list of 1 numbers"):
            done(host, "ask", "doses", "me", wrong)
    with store.read() as execute:
        assert store.counts(execute, "doses") == (0, 0)


def test_an_experiment_is_paid_for_before_it_is_written_down(store, monkeypatch):
    """Killed in between, it has paid for nothing: there is no experiment without a charge."""
    ledger = Ledger(store.url)
    one = ExperimentHost(store)
    monkeypatch.setattr(store, "keep_state", lambda *_: (_ for _ in ()).throw(OSError("killed")))
    params = {**PARAMS, "epsilon": 0.5, "ledger": store.url, "dataset": "patients"}
    with pytest.raises(LedgerError):
        one.create("doses", "joint", "patients", lambda: JointBandit(**params))
    one.close()
    monkeypatch.undo()
    assert len(ledger.history("patients")) == 1
    again = ExperimentHost(store)
    with pytest.raises(NotFound):
        done(again, "running", "doses")
    again.close()


def test_the_store_is_its_owners_from_its_first_byte_on(tmp_path, monkeypatch):
    Ledger(tmp_path / "budget.db").open("patients", epsilon=1, delta=1e-6)
    before = os.umask(0)
    seen = []
    opened = os.open

    def looked(path, flags, mode=0o777, **more):
        found = opened(path, flags, mode, **more)
        if str(path).endswith(".service"):
            seen.append(
                (
                    stat.S_IMODE(os.fstat(found).st_mode),
                    os.fstat(found).st_size,
                    bool(flags & os.O_EXCL),
                )
            )
        return found

    monkeypatch.setattr(os, "open", looked)
    try:
        store = Store(str(tmp_path / "budget.db"))
    finally:
        os.umask(before)
    assert seen == [(0o600, 0, True)]
    assert stat.S_IMODE(os.stat(store.path).st_mode) == 0o600


@pytest.mark.parametrize(
    "wrong", ["readable", "link", "second name", "not ours", "folder", "open folder"]
)
def test_a_store_that_others_may_read_or_replace_is_refused(tmp_path, wrong):
    Ledger(tmp_path / "budget.db").open("patients", epsilon=1, delta=1e-6)
    folder = tmp_path / "kept"
    folder.mkdir(0o700)
    path = folder / "secrets"
    if wrong == "readable":
        Store(str(tmp_path / "budget.db"), str(path))
        path.chmod(0o640)
    elif wrong == "link":
        (tmp_path / "elsewhere").touch(0o600)
        path.symlink_to(tmp_path / "elsewhere")
    elif wrong == "second name":
        Store(str(tmp_path / "budget.db"), str(path))
        os.link(path, tmp_path / "again")
    elif wrong == "not ours":
        path.touch(0o600)
        path.write_text("a file of another program, long enough to be one " * 40)
    elif wrong == "folder":
        path = tmp_path / "none" / "secrets"
    else:
        folder.chmod(0o777)
    with pytest.raises(LedgerError, match=r"own file .* cannot be used"):
        Store(str(tmp_path / "budget.db"), str(path))


def test_a_ledger_in_which_the_old_version_kept_rounds_is_refused(tmp_path):
    url = str(tmp_path / "budget.db")
    Ledger(url).open("patients", epsilon=1, delta=1e-6)
    with database.transaction(url, write=True) as execute:
        execute("CREATE TABLE reticent_rounds (candidate TEXT)", [])
    with pytest.raises(LedgerError, match=r"0\.1\.0"):
        Store(url)
    assert not Path(f"{url}.service").exists()


@pytest.fixture(scope="module")
def postgres_url():
    with server() as url:
        with psycopg.connect(f"{url}/postgres", autocommit=True) as connection:
            connection.execute("CREATE DATABASE served")
        yield f"{url}/served"


def test_a_store_on_postgresql_is_a_schema_that_others_may_not_use(postgres_url):
    Ledger(postgres_url).open("patients", epsilon=1, delta=1e-6)
    store = Store(postgres_url)
    assert Tokens(store).find(issue(store, "operator", days=1)).role == "operator"
    one = ExperimentHost(store, open_seconds=100)
    params = {**PARAMS, "ledger": postgres_url, "dataset": "patients"}
    one.create("doses", "joint", "patients", lambda: JointBandit(**params))
    ask = done(one, "ask", "doses", "me", [[0.5]])[0]
    assert done(one, "tell", "doses", "me", ask, 0.25) == 1
    one.close()
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        where = connection.execute(
            "SELECT schemaname FROM pg_tables WHERE tablename LIKE 'reticent%' ORDER BY 1"
        )
        assert [name for (name,) in where.fetchall()] == ["public", *["reticent_service"] * 4]
        connection.execute("CREATE ROLE reader")
        connection.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader")
        connection.execute("SET ROLE reader")
        assert connection.execute("SELECT COUNT(*) FROM reticent_ledger").fetchone() == (2,)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("SELECT * FROM reticent_service.reticent_rounds")
        connection.execute("RESET ROLE")
        connection.execute("GRANT USAGE ON SCHEMA reticent_service TO PUBLIC")
    with pytest.raises(LedgerError, match="schema"):
        store.read().__enter__()
