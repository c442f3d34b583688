"""Synthetic mixed tables: distances of margins, and a run without dpmm."""

import numpy as np
import pytest

from reticent.privacy.bounds import Bounds
from reticent.privacy.columns.numbers import Whole
from reticent.studies.common import python_environments
from reticent.studies.common.python_environments import Unavailable
from reticent.studies.peers.mixed import dpmm_baseline as dpmm
from reticent.studies.peers.mixed.synthetic import OURS, distances, run, whole_table
from reticent.studies.peers.mixed.tasks import MIXED_CLASS_TASKS

PAIR = Bounds(x={"sex": ["F", "M"], "age": (0, 100)})


def records(n, seed, tie):
    rng = np.random.default_rng(seed)
    sex = rng.integers(0, 2, n).astype(float)
    age = rng.uniform(0, 50, n) + 50 * np.where(tie, sex, rng.integers(0, 2, n))
    return np.column_stack([sex, age])


def test_margins_of_the_same_law_are_near_and_a_lost_tie_shows_in_pairs_alone():
    kept = records(20_000, 0, tie=True)
    near = distances(PAIR, records(20_000, 1, tie=True), kept)
    loose = distances(PAIR, records(20_000, 2, tie=False), kept)
    assert near["one-way"] < 0.02
    assert near["two-way"] < 0.03
    assert loose["one-way"] < 0.02
    assert loose["two-way"] == pytest.approx(0.5, abs=0.03)


def test_a_margin_that_is_elsewhere_has_distance_one():
    kept = np.array([[0.0, 10.0]] * 50)
    moved = np.array([[1.0, 90.0]] * 50)
    assert distances(PAIR, moved, kept)["two-way"] == 1.0


def test_the_output_is_the_last_column_of_a_whole_table():
    task = MIXED_CLASS_TASKS["patients"]
    bounds, codes = whole_table(task)
    assert bounds.x_names[-1] == "long"
    assert bounds.x_kinds[-1].levels == ("no", "yes")
    assert set(codes[:, -1]) == {0.0, 1.0}


def test_dpmm_is_given_levels_from_zero_and_no_more_than_the_budget(monkeypatch, tmp_path):
    given = {}

    def answer(python, name, script, word, arrays):
        given.update(arrays)
        return np.array(arrays["codes"])

    monkeypatch.setattr(dpmm, "environment", lambda pinned, make: tmp_path)
    monkeypatch.setattr(dpmm, "answered", answer)
    monkeypatch.setattr(dpmm.sys, "version_info", (3, 11))
    bounds = Bounds(x={"children": Whole(1, 4), "visits": Whole(0, 400), "age": (0, 100)})
    codes = np.array([[1.0, 30.0, 20.0], [4.0, 2.0, 77.0]])
    assert np.array_equal(dpmm.synthetic_codes(bounds, codes, 2.0, 1e-6, 5), codes)
    assert given["levels"] == [4, 0, 0]
    assert given["codes"].tolist() == [[0.0, 30.0, 20.0], [3.0, 2.0, 77.0]]
    assert given["epsilon"] + given["tree"] == pytest.approx(2.0)


def test_a_quick_run_installs_nothing_and_names_what_is_missing(monkeypatch, tmp_path):
    def install(*_, **__):
        raise AssertionError("a quick run must not install anything")

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(python_environments.venv, "create", install)
    found = run(tmp_path / "out", repeats=1, quick=True, seed=0, progress=lambda *_: None)
    (note,) = found.notes
    assert "MST" in note
    assert "dpmm" in note
    by_method = {row["method"]: row for row in found.records}
    assert by_method[OURS]["one-way"] < 0.25
    assert by_method["the records, not private"]["two-way"] < by_method[OURS]["two-way"]


def test_an_environment_that_is_there_is_not_made_again(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    home = tmp_path / "reticent" / "peers-dpmm==0.1.9"
    with pytest.raises(Unavailable, match="dpmm is not installed yet"):
        python_environments.environment(dpmm.PINNED, make=False)
    home.mkdir(parents=True)
    (home / "ready").touch()
    assert python_environments.environment(dpmm.PINNED, make=False) == home / "bin" / "python"
