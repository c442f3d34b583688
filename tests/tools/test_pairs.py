"""A study on two versions of the library, in pairs."""

import sys
from pathlib import Path

import pytest

import reticent
from reticent.studies import STUDIES
from tools import pairs
from tools.pairs import HERE, Pair, paired, summary


def rows(*errors):
    return [
        {"task": task, "epsilon": 1.0, "rmse": error}
        for task, error in zip("abc", errors, strict=True)
    ]


def test_cells_are_paired_and_named_by_what_versions_share():
    before = [rows(2.0, 4.0, 7.0), rows(3.0, 5.0, 7.0)]
    now = [rows(1.0, 5.0, 7.0), rows(1.9, 6.1, 7.0)]
    found = paired(before, now, "rmse")
    assert found[0] == Pair("task=a, epsilon=1.0", [2.0, 3.0], [1.0, 1.9])
    assert [pair.ratio for pair in found] == pytest.approx([2.9 / 5, 11.1 / 9, 1.0])
    assert [pair.errors for pair in found] == pytest.approx([-21.0, 21.0, 0.0])
    said = summary(found)
    assert "3 cells, 2 of them different" in said
    assert "1 better, 1 worse" in said
    assert said.splitlines()[0].startswith("task=b")
    assert summary(found, higher=True).splitlines()[0].startswith("task=a")


def test_one_repeat_tells_nothing_and_equal_differences_all():
    assert Pair("one", [1.0], [2.0]).errors == 0.0
    assert Pair("equal", [1.0, 2.0], [2.0, 3.0]).errors == float("inf")
    assert "0 better, 0 worse" in summary([Pair("one", [1.0], [2.0])])


def test_versions_with_different_cells_are_not_compared():
    with pytest.raises(SystemExit, match="different cells"):
        paired([rows(1.0, 2.0, 3.0)], [rows(1.0, 2.0, 3.0)[:2]], "rmse")


def test_a_version_compared_with_itself_is_the_same(tmp_path, monkeypatch, capsys):
    """One run in a process of its own, as the tool's are, and one here: starting takes longest."""

    def here(library, study, seed, quick):
        options = {"repeats": 1, "quick": quick, "seed": seed, "progress": lambda *_: None}
        return list(STUDIES[study].run(tmp_path, **options).records)

    assert Path(reticent.__file__).is_relative_to(HERE)
    ways = [pairs._run, here]
    monkeypatch.setattr(pairs, "_run", lambda *asked: ways.pop(0)(*asked))
    command = [str(HERE), "dpem-factors", "log_likelihood", "--quick", "--repeats", "1"]
    monkeypatch.setattr(sys, "argv", ["pairs.py", *command])
    pairs.main()
    assert "3 cells, 0 of them different" in capsys.readouterr().out
    assert ways == []
