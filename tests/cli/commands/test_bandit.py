"""reticent bandit simulate, and the environments it plays in."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from reticent import Ledger
from reticent.cli.main import app
from reticent.service.store import Store
from reticent.service.tokens import Tokens
from reticent.studies.common.bandit_environments import ENVIRONMENTS, environment


def call(*words):
    return CliRunner().invoke(app, ["bandit", "simulate", *words])


def test_simulate_tells_what_privacy_costs():
    found = json.loads(call("--rounds", "60", "--epsilon", "5", "--delta", "0.01", "--json").stdout)
    assert found["rounds"] == 60
    assert found["releases"] >= 2
    assert 0 <= found["not private"] < 1.2
    plain = call("--rounds", "40", "--epsilon", "5", "--delta", "0.01")
    assert "of random play" in plain.stdout
    assert plain.exit_code == 0


@pytest.mark.parametrize("words", [("nowhere",), ("--rounds", "0")])
def test_wrong_use(words):
    assert call(*words).exit_code == 2


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_environments_are_what_they_say(name):
    where = environment(name, 3)
    rng = np.random.default_rng(0)
    sets = where.draw(rng, 50, 25)
    values = where.values(sets)
    low, high = np.array(where.box).T
    assert ((sets >= low) & (sets <= high)).all()
    assert values.min() > -0.3
    assert values.max() < 1.3
    assert set(np.unique(where.rewards(rng, values))) <= {0.0, 1.0} or not where.binary
    if name == "gp-sum":
        assert ((values >= 0.8).sum(axis=1) == 1).all()
        assert ((values <= 0.6).sum(axis=1) == 24).all()


@pytest.mark.parametrize("name", ["none.db", "people.csv"])
def test_serving_what_is_no_ledger_is_refused_in_words(tmp_path, name):
    (tmp_path / "people.csv").write_text("age\n1\n")
    answer = CliRunner().invoke(app, ["bandit", "serve", str(tmp_path / name)])
    assert answer.exit_code == 5
    assert "ledger" in answer.output
    assert "Traceback" not in answer.output


@pytest.fixture
def ledger(tmp_path):
    Ledger(tmp_path / "budget.db").open("patients", epsilon=1, delta=1e-6)
    return str(tmp_path / "budget.db")


@pytest.mark.parametrize("option", ["", "--json"])
def test_a_token_is_an_operators_and_is_shown_once(ledger, option):
    answer = CliRunner().invoke(
        app, ["bandit", "token", ledger, "--days", "2", *filter(None, [option])]
    )
    assert answer.exit_code == 0
    told = (
        json.loads(answer.stdout)
        if option
        else {"token": answer.stdout.split()[0], "role": "operator", "days": 2}
    )
    assert (told["role"], told["days"]) == ("operator", 2)
    found = Tokens(Store(ledger)).find(told["token"])
    assert found.role == "operator"
    for kept in (Path(ledger), Path(f"{ledger}.service")):
        assert told["token"].rsplit("_")[-1].encode() not in kept.read_bytes()


@pytest.mark.parametrize("days", ["0", "3651", "nan"])
def test_a_token_counts_for_a_time_that_people_can_oversee(ledger, days):
    answer = CliRunner().invoke(app, ["bandit", "token", ledger, "--days", days, "--json"])
    assert json.loads(answer.stderr)["error"]["exit_code"] == answer.exit_code == 2


@pytest.mark.parametrize("option", ["", "--json"])
def test_serving_says_where(ledger, option, monkeypatch):
    served = {}
    monkeypatch.setattr("uvicorn.run", lambda app, **how: served.update(how, app=app))
    words = [
        "bandit",
        "serve",
        ledger,
        "--host",
        "127.0.0.1",
        "--port",
        "8123",
        *filter(None, [option]),
    ]
    answer = CliRunner().invoke(app, words)
    where = "http://127.0.0.1:8123/"
    assert json.loads(answer.stdout) == {"url": where} if option else where in answer.stdout
    assert (served["host"], served["port"], served["access_log"]) == ("127.0.0.1", 8123, False)
    wrong = CliRunner().invoke(
        app, ["bandit", "serve", ledger, "--rate", "0", *filter(None, [option])]
    )
    assert wrong.exit_code == 2


def test_who_a_client_is_says_the_connection_or_a_proxy_that_was_named(
    ledger, monkeypatch, tmp_path
):
    served = []
    monkeypatch.setattr("uvicorn.run", lambda app, **how: served.append(how))
    for words in ((), ("--behind-proxy", "10.0.0.2", "--behind-proxy", "::1")):
        assert CliRunner().invoke(app, ["bandit", "serve", ledger, *words]).exit_code == 0
    assert [(how["proxy_headers"], how["forwarded_allow_ips"]) for how in served] == [
        (False, ""),
        (True, "10.0.0.2,::1"),
    ]
    for wrong in ("*", "proxy", ""):
        assert (
            CliRunner().invoke(app, ["bandit", "serve", ledger, "--behind-proxy", wrong]).exit_code
            == 2
        )
    store = str(tmp_path / "elsewhere")
    assert CliRunner().invoke(app, ["bandit", "serve", ledger, "--store", store]).exit_code == 0
    assert Path(store).stat().st_mode & 0o777 == 0o600
