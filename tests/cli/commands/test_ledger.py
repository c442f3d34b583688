"""``reticent ledger``: open, show, history, verify."""

import json
import sqlite3

import pytest

import reticent
from reticent.privacy.accounting.composition import epsilon
from reticent.privacy.accounting.rounding import rounded_up
from tests.support.prose import says


@pytest.fixture
def charged(budget):
    ledger = reticent.Ledger(budget)
    ledger.open("labels", 2, 1e-6, relation="label")
    for _ in range(2):
        ledger.charge("people", reticent.Gaussian(noise_multiplier=20.0), what="mean age")
    ledger.charge("labels", reticent.Pure(epsilon=0.25), relation="label", what="another tool")
    return budget


def test_open_again_changes_nothing_and_another_cap_is_refused(run, budget):
    again = run("ledger", "open", budget, "people", "--epsilon", 1, "--delta", 1e-5, "--json")
    assert json.loads(again.out)["spent"] == 0
    answer = run("ledger", "open", budget, "people", "--epsilon", 2, "--delta", 1e-5)
    assert answer.code == 5
    assert "never change" in answer.err
    assert run("ledger", "open", budget, "x", "--epsilon", 0, "--delta", 1e-5).code == 2
    assert (
        run(
            "ledger", "open", budget, "x", "--epsilon", 1, "--delta", 1e-5, "--relation", "house"
        ).code
        == 2
    )


def test_an_account_within_another(run, budget):
    part = ("--delta", 1e-6, "--within", "people")
    opened = run("ledger", "open", budget, "extract", "--epsilon", 0.5, *part, "--json")
    assert json.loads(opened.out)["within"] == "people"
    assert json.loads(run("ledger", "show", budget, "people", "--json").out)[0]["spent"] == 0.5
    assert run("ledger", "open", budget, "more", "--epsilon", 0.8, *part).code == 3


def test_an_account_for_people_with_several_records(run, budget, people_csv, tmp_path):
    opened = run(
        "ledger",
        "open",
        budget,
        "visits",
        "--epsilon",
        1,
        "--delta",
        1e-5,
        "--records-per-person",
        5,
    )
    assert "--dataset visits --records-per-person 5" in opened.out
    assert "5 records" in opened.out
    promise = (
        "--epsilon",
        0.5,
        "--delta",
        1e-6,
        "--ledger",
        budget,
        "--dataset",
        "visits",
        "--out",
        tmp_path / "m",
    )
    refused = run("fit", "mean", people_csv, "--x", "age=0:110", *promise)
    assert refused.code == 5
    assert "(--records-per-person 5)" in " ".join(refused.err.split())
    assert (
        run("fit", "mean", people_csv, "--x", "age=0:110", *promise, "--records-per-person", 5).code
        == 0
    )
    assert len(reticent.Ledger(budget).history("visits")) == 1


def test_show_has_a_row_per_data_set(run, charged):
    ledger = reticent.Ledger(charged)
    states = json.loads(run("ledger", "show", charged, "--json").out)
    assert [one["dataset"] for one in states] == ["people", "labels"]
    assert states[0]["spent"] == ledger.spent("people")
    assert states[0]["left"] == ledger.remaining("people")
    assert [one["charges"] for one in states] == [2, 1]
    text = run("ledger", "show", charged).out.split("\n")
    assert text[1].split()[:4] == ["people", "a", "record", "1"]
    assert text[2].split()[:4] == ["labels", "a", "label", "2"]
    assert "left ε (one more release)" in text[0]
    assert says(" ".join(" ".join(text).split()), "less", "sum")
    assert len(json.loads(run("ledger", "show", charged, "labels", "--json").out)) == 1


def test_history_in_order_and_by_data_set(run, charged):
    entries = json.loads(run("ledger", "history", charged, "--json").out)
    assert [one["number"] for one in entries] == [1, 2, 3, 4, 5]
    assert [one["kind"] for one in entries] == ["open"] * 2 + ["charge"] * 3
    assert (entries[1]["epsilon"], entries[1]["delta"], entries[1]["relation"]) == (
        2,
        1e-6,
        "label",
    )
    assert entries[2]["event"] == {"kind": "gaussian", "count": 1, "noise_multiplier": 20.0}
    alone = entries[2]["epsilon_alone"]
    assert alone == epsilon(reticent.Gaussian(noise_multiplier=20.0), 1e-5)
    assert entries[4]["epsilon_alone"] == pytest.approx(0.25)
    text = run("ledger", "history", charged).out
    assert 'Data set "people"' in text
    opened, *rows = [line.split() for line in text.split("\n")[2:5]]
    assert opened[3:9] == ["cap", "ε=1", "δ=1e-5,", "protects", "a", "record"]
    assert opened[-1] == rows[0][-1] == entries[0]["who"]
    assert [row[0] for row in rows] == ["3", "4"]
    assert [row[5] for row in rows] == [f"{rounded_up(alone, 4):.4g}"] * 2
    assert "labels" not in run("ledger", "history", charged, "people").out


def test_history_of_nothing(run, budget):
    text = run("ledger", "history", budget).out
    assert "cap ε=1 δ=1e-5" in text
    assert "Nothing was charged yet." in text
    assert "less than their sum" not in run("ledger", "show", budget).out


def test_verify_gives_the_head_and_finds_what_was_altered(run, charged):
    head = json.loads(run("ledger", "verify", charged, "--json").out)["head"]
    assert head == reticent.Ledger(charged).verify()
    assert head in run("ledger", "verify", charged, "--head", head).out
    assert run("ledger", "verify", charged, "--head", "f" * 64).code == 5
    with sqlite3.connect(charged) as raw:
        (table,) = raw.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchone()
        for (trigger,) in raw.execute(
            "SELECT name FROM sqlite_master WHERE type = 'trigger'"
        ).fetchall():
            raw.execute(f"DROP TRIGGER {trigger}")
        raw.execute(f"UPDATE {table} SET what = 'nothing' WHERE number = 3")
    raw.close()
    answer = run("ledger", "verify", charged)
    assert answer.code == 5
    assert "Row 3" in answer.err


def test_no_ledger_and_not_a_ledger(run, tmp_path):
    for command in ("show", "history", "verify"):
        assert run("ledger", command, tmp_path / "absent.db").code == 5
        assert not (tmp_path / "absent.db").exists()
    (tmp_path / "text.db").write_text(
        "not a ledger, but long enough to look like a file of some kind" * 20
    )
    assert run("ledger", "show", tmp_path / "text.db").code == 5
    assert (
        run("ledger", "open", tmp_path / "text.db", "people", "--epsilon", 1, "--delta", 1e-5).code
        == 5
    )


def test_what_to_do_next_can_be_copied(run, tmp_path, people_csv, monkeypatch):
    monkeypatch.chdir(tmp_path)
    opened = run("ledger", "open", "my budget.db", "staff north", "--epsilon", 1, "--delta", 1e-5)
    assert "--ledger 'my budget.db' --dataset 'staff north'" in opened.out
    for command, following in (("show", "history"), ("history", "verify")):
        assert (
            f"Next:  reticent ledger {following} 'my budget.db', "
            in run("ledger", command, "my budget.db").out
        )
    promise = (
        "--epsilon",
        0.5,
        "--delta",
        1e-6,
        "--ledger",
        "my budget.db",
        "--dataset",
        "staff north",
    )
    fitted = run("fit", "mean", people_csv, "--x", "age=0:110", *promise, "--out", "a mean")
    assert "reticent report 'a mean' --out 'a mean.html' --ledger 'my budget.db'" in fitted.out
    assert "PrivateMean, 1 release: age" in run("ledger", "history", "my budget.db").out


def test_a_report_without_the_ledger_says_what_the_ledger_would_add(
    tmp_path, run, people_csv, budget
):
    file = tmp_path / "m.reticent"
    charged = ("--ledger", budget, "--dataset", "people")
    options = ("--x", "age=0:110", "--epsilon", 0.3, "--delta", 1e-7, "--out", file)
    assert run("fit", "mean", people_csv, *options, *charged).code == 0
    told = []
    for name, more in (("without", ()), ("with", charged[:2])):
        said = " ".join(run("report", file, "--out", tmp_path / f"{name}.html", *more).out.split())
        page = (tmp_path / f"{name}.html").read_text()
        told.append(
            (
                "it also shows the budget of 'people'" in said,
                "but for what it says of the ledger" in page,
            )
        )
    assert told == [(True, False), (False, True)]
