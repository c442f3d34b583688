"""``reticent reproduce``: the list, one study, all of them, and what it says to wrong words."""

import json

import pytest

from reticent.cli.commands import reproduce
from reticent.studies import REPORT_SEED, STUDIES
from reticent.studies.common.results import Claim, Findings, ResultTable


class Fake:
    """Stands where a study would, and remembers how it was asked."""

    shows = "Nothing."
    repeats = 40
    quick = 2

    def __init__(self):
        self.asked = []

    def run(self, out, *, repeats, quick, seed, progress):
        progress(0, 1, "all")
        self.asked.append((out.name, repeats, quick, seed))
        found = Findings(
            "Found",
            [{"a": 1}],
            [ResultTable("ResultTable", ("x", "y"), [("one", "2.5")])],
            [Claim("c", "f", True)],
        )
        found.write(out)
        return found


@pytest.fixture
def fakes(monkeypatch):
    found = {"first": Fake(), "second": Fake()}
    monkeypatch.setattr(reproduce, "STUDIES", found)
    return found


def test_without_a_name_it_lists_all_studies(run):
    answer = run("reproduce")
    assert answer.code == 0
    assert all(name in answer.out for name in STUDIES)
    listed = json.loads(run("reproduce", "--json").out)
    assert [(one["name"], one["shows"]) for one in listed] == [
        (name, study.shows) for name, study in STUDIES.items()
    ]


def test_one_study(run, fakes, tmp_path):
    answer = run("reproduce", "first", "--out", tmp_path)
    assert answer.code == 0
    assert "ResultTable" in answer.out
    assert "2.5" in answer.out
    assert "yes" in answer.out
    assert (tmp_path / "first" / "results.csv").read_text() == "a\n1\n"
    assert fakes["first"].asked == [("first", 40, False, REPORT_SEED)]
    assert fakes["second"].asked == []


def test_all_of_them_for_machines_and_again(run, fakes, tmp_path):
    for _ in range(2):  # files of an earlier run are replaced
        found = json.loads(run("reproduce", "all", "--quick", "--json", "--out", tmp_path).out)
        assert list(found) == ["first", "second"]
        assert found["first"]["records"] == [{"a": 1}]
        assert found["first"]["claims"] == [{"claim": "c", "found": "f", "kept": True}]
    assert (
        fakes["second"].asked == [("second", 2, True, 0)] * 2
    )  # a quick run leaves the report's seed alone


def test_repeats_and_seed_can_be_chosen(run, fakes, tmp_path):
    run("reproduce", "first", "--out", tmp_path, "--repeats", 3, "--seed", 9)
    assert fakes["first"].asked == [("first", 3, False, 9)]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("gp-dimension",), "Did you mean gp-dimensions?"),
        (("nonsense",), "There is no study 'nonsense'"),
        (("gp-dimensions", "--repeats", 0), "--repeats must be at least 1"),
        (("gp-dimensions", "--seed", -1), "--seed must be zero or more"),
    ],
)
def test_wrong_words(run, tmp_path, words, said):
    answer = run("reproduce", *words, "--out", tmp_path / "none")
    assert answer.code == 2
    assert said in answer.err
    assert not (tmp_path / "none").exists()
