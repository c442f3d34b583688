"""``reticent tour``, from end to end."""

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest

import reticent
from reticent.cli.commands import tour
from reticent.cli.demo_data import mean_weight, people
from tests.support.prose import says


@pytest.fixture(autouse=True)
def _brief(request, monkeypatch):
    """Few people and one simulation: the manners of the tour do not need more.

    Nor does a whole one need more simulations.
    """
    few = {} if "whole" in request.node.name else {"_PEOPLE": 300, "_OTHERS": 100}
    for name, value in {**few, "_DRAWS": 1}.items():
        monkeypatch.setattr(tour, name, value)


def test_twice_in_the_same_place(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first = run("tour")
    assert first.code == 0, first.err
    head = reticent.Ledger("tour/budget.db").verify()
    for size, small in (("_PEOPLE", 300), ("_OTHERS", 100), ("_DRAWS", 1)):
        monkeypatch.setattr(f"reticent.cli.commands.tour.{size}", small)
    second = run("tour")
    assert second.code == 0, second.err
    assert "tour-2/budget.db" in second.out
    assert reticent.Ledger("tour/budget.db").verify() == head
    assert sorted(path.name for path in (tmp_path / "tour").iterdir()) == sorted(
        ["people.csv", "budget.db", "budget.db-head", "weight.reticent", "report.html"]
    )
    for words in (
        "never lived",
        "no record read",
        "GPRegressor",
        "of the true means",
        "composed exactly",
        "Next:",
    ):
        assert words in first.out
    both = r"error of the mean [\d.]+ kg, of one weight [\d.]+ kg"
    assert (
        len(re.findall(both, " ".join(first.out.split()))) == 2
    )  # the plan's and the result's, in the same words
    assert [
        line[2] for line in first.out.split("\n") if line[:2] == "  " and line[2:3].isdigit()
    ] == list("1234567")


def test_the_whole_of_it_is_so(run, tmp_path):
    found = json.loads(run("tour", "--out", tmp_path / "t", "--json").out)
    ledger = reticent.Ledger(tmp_path / "t" / "budget.db")
    assert found["ledger"]["spent"] == ledger.spent("registry") == pytest.approx(1)
    assert len(ledger.history("registry")) == 1
    with open(tmp_path / "t" / "people.csv") as file:
        assert len(list(csv.DictReader(file))) == found["records"] == 5000
    model = reticent.load(tmp_path / "t" / "weight.reticent")
    assert model.guarantee_.private
    assert model.guarantee_.epsilon == pytest.approx(1)
    others = people(2000, 2)
    off = model.predict(np.column_stack([others["age"], others["height"]])) - others["weight"]
    assert found["error"] == pytest.approx(np.sqrt(np.mean(off**2)))
    assert found["error"] < 0.7 * found["spread"]
    assert (
        0 < found["mean_error"] < 0.6 * found["error"]
    )  # most of what is off is how people differ
    assert found["told"] == pytest.approx(
        found["error"], rel=0.25
    )  # by a noisy release: 5 % off on average
    assert found["expected"]["output_error"] == pytest.approx(found["error"], rel=0.15)
    assert 0.9 < found["coverage"] <= 1
    mean, std = model.predict(np.column_stack([others["age"], others["height"]]), return_std=True)
    wrong = np.abs(mean - mean_weight(others["age"], others["height"]))
    assert found["mean_coverage"] == pytest.approx(np.mean(wrong <= 1.96 * std), abs=0.005)
    page = (tmp_path / "t" / "report.html").read_text()
    assert found["ledger"]["head"] in page
    expected = found["expected"]
    assert (
        f"the plan expected an error of the mean of weight of {expected['rmse']:.3g}"[:-2] in page
    )
    assert expected["output_error"] == pytest.approx(np.hypot(expected["rmse"], 12), rel=0.05)
    assert "near their medians, as far as the noisy counts tell them: age " in page


def test_a_folder_in_use_is_left_alone(run, tmp_path, monkeypatch):
    monkeypatch.setattr(tour, "_plan", lambda say: {})
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "budget.db").write_text("precious")
    (tmp_path / "mine-2").write_text("a file")
    (tmp_path / "mine-3").mkdir()
    found = json.loads(run("tour", "--out", tmp_path / "mine", "--json").out)
    assert found["folder"] == str(tmp_path / "mine-3")
    assert (tmp_path / "mine" / "budget.db").read_text() == "precious"
    assert len(list((tmp_path / "mine").iterdir())) == 1


def test_a_file_is_not_a_folder(run, tmp_path):
    (tmp_path / "patients.csv").write_text("age\n1\n")
    answer = run("tour", "--out", tmp_path / "patients.csv")
    assert answer.code == 5
    assert says(answer.err, "is a file", "folder")
    assert [path.name for path in tmp_path.iterdir()] == ["patients.csv"]


def test_it_never_leaves_the_folder_it_was_given(run, tmp_path, monkeypatch):
    monkeypatch.setattr(tour, "_plan", lambda say: {})
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "notes").write_text("")
    monkeypatch.chdir(tmp_path / "home")
    assert json.loads(run("tour", "--out", ".", "--json").out)["folder"] == "home-2"
    assert [path.name for path in tmp_path.iterdir()] == ["home"]


def test_ctrl_c_says_what_was_charged(run, tmp_path, monkeypatch):
    def stopped(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(tour, "_balance", stopped)
    answer = run("tour", "--out", tmp_path / "t")
    assert answer.code == 130
    assert "was charged ε=1; no other" in answer.err


def test_a_place_that_cannot_be_written_is_5(run, tmp_path):
    (tmp_path / "file").write_text("")
    answer = run("tour", "--out", tmp_path / "file" / "below")
    assert answer.code == 5
    assert "Traceback" not in answer.err


EXAMPLES = Path(__file__).parents[3] / "examples"


def program(path, *words):
    """Code that runs a file as a program."""
    asked = [str(word) for word in (path, *words)]
    run = "runpy.run_path(sys.argv[0], run_name='__main__')"
    return f"import runpy, sys\nsys.argv = {asked}\n{run}"


def test_the_example_of_labels_runs_and_draws(tmp_path, elsewhere):
    ended, out = elsewhere(program(EXAMPLES / "labels.py", tmp_path / "a.png"))
    assert ended == 0
    assert "The inputs are NOT protected" in out
    assert (tmp_path / "a.png").read_bytes()[:4] == b"\x89PNG"


def test_the_example_runs(elsewhere):
    ended, out = elsewhere(program(EXAMPLES / "first_release.py"))
    assert ended == 0
    assert "(1, 1e-06)-differential privacy" in out
    assert out.startswith("age ")
    assert "Spent ε = 0.8" in out


def test_a_plan_says_how_far_single_functions_reach(run):
    asked = ("--x", "a=0:1", "--y", "b=0:1", "--n", 300, "--epsilon", 1, "--draws", 3, "--basis", 6)
    (row,) = json.loads(run("plan", *asked, "--json").out)["rows"]
    assert row["rmse_least"] < row["rmse"] < row["rmse_most"]
    shown = " ".join(run("plan", *asked).out.split())
    assert "least – most" in shown
    assert "some are easier than others" in shown
