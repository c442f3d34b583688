"""The study of the planner.

Its own functions have the covariance they should, and it compares what it says it compares.
"""

import csv

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, Matern

from reticent.inference.kernels.anova import Anova
from reticent.studies.own import planner_calibration as gp_planner


@pytest.mark.parametrize(
    ("kernel", "d"),
    [(RBF(0.8, "fixed"), 1), (RBF([0.8, 2.0], "fixed"), 2), (Matern(1.5, "fixed", nu=1.5), 2)],
)
def test_given_kernels(kernel, d):
    at = np.random.default_rng(0).uniform(-2, 2, (6, d))
    draws = 150
    values = np.array(
        [
            gp_planner.kernel_function(kernel, d, np.empty(0), np.random.default_rng(i))(at)
            for i in range(draws)
        ]
    )
    assert np.abs(np.cov(values.T) - kernel(at)).max() < 5 * (2 / draws) ** 0.5


def test_lengths_are_drawn_inside_their_prior():
    kernel = RBF(2.0, (1.0, 4.0))
    at = np.array([[0.0], [2.0]])
    randoms = [np.random.default_rng(i) for i in range(600)]
    values = np.array(
        [gp_planner.kernel_function(kernel, 1, one.random(1), one)(at) for one in randoms]
    )
    correlation = np.corrcoef(values.T)[0, 1]
    assert correlation == pytest.approx(
        np.mean(np.exp(-2 / np.exp(np.linspace(0, np.log(16), 99)))), abs=0.1
    )


def test_the_default_prior(monkeypatch):
    one = Anova(variance=0.5, shares=(1.0, 0.5, 0.3), length=0.4)
    monkeypatch.setattr(Anova, "from_unit_cube", staticmethod(lambda place: one))
    u = np.random.default_rng(0).uniform(-1, 1, (5, 3))
    draws = 150
    values = np.array(
        [
            gp_planner.default_function(3, np.zeros(5), np.random.default_rng(i))(2 * u)
            for i in range(draws)
        ]
    )
    exact = one(u, u.copy())
    assert np.abs(np.cov(values.T) - exact).max() < 5 * exact.max() * (2 / draws) ** 0.5


def test_functions_stay_inside_the_bounds():
    setting = gp_planner.Setting("default", 1, 100)
    at = np.linspace(-2, 2, 200)[:, None]
    large = np.array([0.9, 0.5, 0.5, 0.5, 0.5])
    found = [setting.truth(large, np.random.default_rng(i))(at) for i in range(20)]
    assert max(np.mean(np.abs(one) > 1) for one in found) < 0.03
    assert max(np.ptp(one) for one in found) > 1


def test_the_same_hyperparameters_on_both_sides_make_a_smaller_error():
    rng = np.random.default_rng(0)
    both = rng.uniform(1, 3, 400)
    simulated, real = (both * (1 + 0.1 * rng.standard_normal(400)) for _ in range(2))
    record = gp_planner.summary_record(
        gp_planner.SETTINGS[0], 1.0, simulated.tolist(), real.tolist()
    )
    assert record["ratio"] == pytest.approx(1, abs=0.03)
    assert record["ratio_error"] == pytest.approx(0.1 * 2**0.5 / 20, rel=0.15)
    assert record["measured_error"] > 0.025


@pytest.mark.parametrize(
    ("epsilon", "repeats", "functions"), [(0.1, 40, 20), (0.3, 40, 10), (3.0, 1, 1)]
)
def test_small_epsilons_are_tried_on_more_functions(epsilon, repeats, functions):
    assert (
        gp_planner.Setting("default", 2, 100, often=0.25).functions(epsilon, repeats) == functions
    )


def test_a_quick_run(tmp_path, monkeypatch):
    monkeypatch.setattr(
        gp_planner, "SETTINGS", (gp_planner.Setting("RBF", 1, 200, RBF(1.0, "fixed")),)
    )
    found = gp_planner.run(
        tmp_path, repeats=2, quick=True, seed=0, progress=lambda done, total, what: None
    )
    assert [record["epsilon"] for record in found.records] == [0.1, 1.0]
    for record in found.records:
        assert record["ratio"] == pytest.approx(record["expected"] / record["measured"])
        assert 0.05 < record["measured"] < 2
    assert found.records[0]["measured"] > found.records[1]["measured"]
    with open(tmp_path / "results.csv") as file:
        assert len(list(csv.DictReader(file))) == 2
    assert (tmp_path / "planner.png").stat().st_size > 1000


def test_a_single_repeat_has_no_error_to_show():
    record = {"expected": 2.0, "measured": 1.0, "ratio": 2.0, "ratio_error": 0.0}
    setting = gp_planner.SETTINGS[0]
    assert (
        gp_planner.error_table([record], (setting,), (1.0,)).rows[0][-1] == "2.000 / 1.000 = 2.00"
    )
    several = record | {"ratio_error": 0.25}
    assert (
        gp_planner.error_table([several], (setting,), (1.0,)).rows[0][-1]
        == "2.000 / 1.000 = 2.00 ± 0.25"
    )


def test_a_planner_that_is_wrong_is_found_out(tmp_path, monkeypatch):
    def far_from_any_plan(setting, place, epsilons, rng, done):
        return {epsilon: 5.0 + 0.01 * rng.random() for epsilon in epsilons}

    monkeypatch.setattr(
        gp_planner, "SETTINGS", (gp_planner.Setting("RBF", 1, 200, RBF(1.0, "fixed")),)
    )
    monkeypatch.setattr(gp_planner, "measured", far_from_any_plan)
    found = gp_planner.run(
        tmp_path, repeats=3, quick=True, seed=0, progress=lambda done, total, what: None
    )
    assert not any(claim.kept for claim in found.claims)
