"""Studies: what they promise to return and to write, with a stand-in for the model where only the
shape matters.
"""

import csv
import inspect
import math
from importlib import import_module

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from reticent.studies import STUDIES
from reticent.studies.common.results import (
    Claim,
    Findings,
    ResultTable,
    mean_error,
    plus_minus,
    times,
)
from reticent.studies.honkela2021 import algorithm2_as_printed as honkela_selection
from reticent.studies.honkela2021 import hyperparameters_free as gp_hyperparameters
from reticent.studies.honkela2021 import inference as honkela_inference
from reticent.studies.honkela2021 import methods as honkela_methods
from reticent.studies.honkela2021.data import SETUPS, prior_draw, sinc
from reticent.studies.own import dimensions as gp_dimensions
from reticent.studies.own import robustness as gp_robustness

OURS = [
    "dpgp-inference",
    "dpgp-calibration",
    "gp-hyperparameters",
    "gp-robustness",
    "gp-dimensions",
]


class StandIn:
    """Predicts nothing, with a band that is as wide as the prior."""

    kernel_ = RBF(1.0)
    noise_ = 0.1

    def __init__(self, *args, **options):
        pass

    def fit(self, x, y):
        return self

    def predict(self, at, return_std=False):
        return (np.zeros(len(at)), np.ones(len(at))) if return_std else np.zeros(len(at))


@pytest.fixture
def stand_in(monkeypatch):
    for module in (honkela_methods, gp_robustness, gp_dimensions):
        monkeypatch.setattr(module, "GPRegressor", StandIn)
    monkeypatch.setattr(gp_hyperparameters, "_OnGrid", StandIn)
    monkeypatch.setattr(honkela_selection, "_GAMMA", 0.5)  # two tries on average
    monkeypatch.setattr(gp_robustness, "_LARGE", 500)
    monkeypatch.setattr(gp_dimensions, "RECORDS", (100, 200))
    # where the words of a drawing go takes longest, and is not asked here
    monkeypatch.setattr(
        "matplotlib.figure.Figure.set_layout_engine", lambda self, *args, **options: None
    )


class Heard:
    def __init__(self):
        self.steps = []

    def __call__(self, done, total, what):
        self.steps.append((done, total))
        assert what


def study(name, out, **options):
    heard = Heard()
    given = {"repeats": 2, "quick": False, "seed": 1, **options}
    return STUDIES[name].run(out, progress=heard, **given), heard


@pytest.mark.parametrize("name", STUDIES)
def test_every_study_has_the_same_shape(name):
    one = STUDIES[name]
    run = import_module(f"reticent.studies.{one.module}").run
    parameters = inspect.signature(run).parameters
    assert list(parameters) == ["out", *one.options, "repeats", "quick", "seed", "progress"]
    assert all(
        one.kind is inspect.Parameter.KEYWORD_ONLY
        for key, one in parameters.items()
        if key != "out"
    )
    assert one.shows.endswith(".")
    assert 1 <= one.quick <= one.repeats


@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize("name", OURS)
def test_what_a_study_returns_and_writes(name, quick, stand_in, tmp_path):
    found, heard = study(name, tmp_path, quick=quick)
    assert bool(found.claims) is not quick  # a few draws judge nothing
    assert len({tuple(record) for record in found.records}) == 1
    for record in found.records:
        assert all(isinstance(value, str) or math.isfinite(value) for value in record.values())
    for table in found.tables:
        assert table.rows
        assert {len(row) for row in table.rows} == {len(table.headings)}
    assert {file.parent for file in found.files} == {tmp_path}
    with open(tmp_path / "results.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [list(row) for row in rows] == [list(record) for record in found.records]
    text = (tmp_path / "table.md").read_text(encoding="utf-8")
    assert "function ± standard error" in text or name != "dpgp-inference"
    assert all(table.title in text for table in found.tables)
    assert all(claim.claim in text for claim in found.claims)
    pictures = [file for file in found.files if file.suffix == ".png"]
    assert pictures
    assert all(file.read_bytes()[:4] == b"\x89PNG" for file in pictures)
    done, totals = zip(*heard.steps, strict=True)
    assert list(done) == list(range(totals[0]))
    assert len(set(totals)) == 1


@pytest.mark.parametrize("name", OURS)
def test_a_single_repeat_has_no_error_to_show(name, stand_in, tmp_path):
    study(name, tmp_path, quick=True, repeats=1)
    assert "±" not in (tmp_path / "table.md").read_text(encoding="utf-8")


def test_a_seed_gives_the_same_numbers_and_another_seed_others(tmp_path):
    """With the real model: its noise comes from the study's seed, too."""
    first, second, other = (
        study("gp-hyperparameters", tmp_path, quick=True, repeats=1, seed=seed)[0].records
        for seed in (4, 4, 5)
    )
    assert first == second
    for method in ("reticent", "paper"):
        one, another = (
            [r["rmse"] for r in records if r["method"] == method] for records in (first, other)
        )
        assert one != another
    assert all(record["rmse"] < 0.1 for record in first if record["method"] == "reticent")


def test_both_methods_get_the_same_data_and_ours_is_better(tmp_path):
    found, _ = study("dpgp-inference", tmp_path, quick=True, repeats=1, seed=3)
    errors = {(r["setting"], r["method"], r["epsilon"]): r["rmse"] for r in found.records}
    assert len(errors) == 2 * 2 * 3
    assert errors["6.1, σ=0.1", "reticent", 10.0] < 0.5 * errors["6.1, σ=0.1", "paper", 10.0]


def test_claims_of_inference_can_fail():
    def claims(ours, theirs, coverage):
        trials = {}
        for setup in SETUPS:
            for i, epsilon in enumerate((0.1, 0.3, 1.0, 3.0, 10.0)):
                trials[setup.name, "reticent", epsilon] = [
                    honkela_inference.Trial(ours[i], coverage, 0.95)
                ] * 3
                trials[setup.name, "paper", epsilon] = [
                    honkela_inference.Trial(theirs, 0.5, 0.5)
                ] * 3
        return [
            one.kept for one in honkela_inference.judge(trials, SETUPS, (0.1, 0.3, 1.0, 3.0, 10.0))
        ]

    good = (0.19, 0.08, 0.037, 0.022, 0.015)
    assert all(claims(good, 0.06, 0.95))
    assert claims(good, 0.01, 0.95) == [
        True,
        False,
        True,
        False,
        True,
        False,
        True,
        True,
        False,
        True,
    ]
    assert not any(claims((9.0,) * 5, 0.06, 0.9))


def test_claims_of_robustness_can_fail():
    Trial = gp_robustness.Trial
    modes = gp_robustness.MODES
    cases = gp_robustness.CASES

    def kept(wrong_case, trial, row=(0.3, 0.2, 0.1, 0.1), exact=0.3):
        wrong = {(case.name, mode): [Trial(0.1, 0.95, 1.0)] for case in cases for mode in modes}
        wrong["inputs in two clusters", gp_robustness.EXACT] = [Trial(exact, 0.95, 1.0)]
        if wrong_case:
            wrong[wrong_case, "given"] = [trial]
        rising = {mode: [[Trial(value, 0.95, 1.0) for value in row]] for mode in modes}
        return [one.kept for one in gp_robustness.judge(wrong, rising)]

    assert kept(None, None) == [True] * 12
    assert kept("y bounds 6 × too small", Trial(0.13, 0.95, 1.0)) == [False] + [True] * 11
    assert kept("inputs in two clusters", Trial(0.5, 0.85, 1.0)) == [True, False] + [True] * 10
    assert kept("x bounds 10 × too wide", Trial(1.1, 0.95, 1.0)) == [True, True, False] + [True] * 9
    far = "inputs in two clusters", Trial(1.1, 0.95, 1.0)
    assert kept(*far) == [True, True, False] + [True] * 9
    assert (
        kept(*far, exact=1.2) == [True] * 12
    )  # where nobody is, without privacy and with all known it is no better
    assert kept(None, None, (0.3, 0.2, 0.4, 0.1)) == [True, True, True, False] * 3
    assert kept(None, None, (0.3, 0.2, 0.31, 0.3)) == [True] * 12  # as small as the records allow
    assert kept(None, None, (0.3, 0.2, 0.31, 0.28)) == [True, True, True, False] * 3


def test_what_goes_wrong_does_go_wrong():
    rng = np.random.default_rng(0)
    cases = {case.name: case for case in gp_robustness.CASES}
    y = np.zeros(10_000)
    assert np.mean(cases["10 % outliers at the bounds"].spoil(y, rng) != 0) == pytest.approx(
        0.1, abs=0.01
    )
    for name in ("noise of Student's t, 3 degrees", "noise of Student's t, 2 degrees"):
        noise = cases[name].noise(10_000, rng)
        assert np.mean(np.abs(noise) < 0.0674) == pytest.approx(
            0.5, abs=0.02
        )  # as large as usual noise in the middle
        assert np.abs(noise).max() > 0.8
    x = cases["inputs in two clusters"].inputs(1000, rng)
    assert np.mean(np.abs(x + 1) < 0.6) == pytest.approx(0.9, abs=0.03)


def test_functions_have_the_size_they_should():
    rng = np.random.default_rng(0)
    at = np.linspace(-4, 4, 50)
    values = np.array([prior_draw(rng)(at) for _ in range(300)])
    assert values.std() == pytest.approx(1, abs=0.1)
    assert np.corrcoef(values[:, 20], values[:, 26])[0, 1] == pytest.approx(
        np.exp(-((6 * 8 / 49) ** 2) / 2), abs=0.1
    )
    assert sinc(np.array([0.0, np.pi / 2])) == pytest.approx([1, 0])
    draws = np.array(
        [gp_dimensions.random_function(3, rng)(rng.uniform(-1, 1, (20, 3))) for _ in range(200)]
    )
    assert draws.std() == pytest.approx(1, abs=0.1)


def test_small_words():
    assert mean_error([1.0]) == (1.0, 0.0)
    assert mean_error([1.0, 3.0]) == (2.0, 1.0)
    assert (plus_minus([1.0, 3.0], 1), plus_minus([0.1, 0.2]), plus_minus([1.0])) == (
        "2.0±1.0",
        ".150±.050",
        "1.000",
    )
    assert (times(1), times(2)) == ("1 repeat", "2 repeats")


def test_findings_for_people_and_for_machines(tmp_path):
    found = Findings(
        "Title",
        [{"a": 1, "b": 0.5}],
        [ResultTable("T", ("x", "y"), [("one", "2")])],
        [Claim("c", "f", False)],
        ["note"],
    )
    found.write(tmp_path / "new")
    assert (tmp_path / "new" / "results.csv").read_text() == "a,b\n1,0.5\n"
    text = (tmp_path / "new" / "table.md").read_text()
    assert "| x | y |\n| :-- | --: |\n| one | 2 |" in text
    assert "**not kept**: c: f" in text
    plain = found.for_machines()
    assert plain["claims"] == [{"claim": "c", "found": "f", "kept": False}]
    assert plain["files"] == [str(tmp_path / "new" / name) for name in ("results.csv", "table.md")]
