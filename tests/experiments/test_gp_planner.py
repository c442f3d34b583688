"""The study of the planner: its own functions have the covariance they should, and it compares what it says it compares."""

import csv

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, Matern

from reticent.experiments import gp_planner
from reticent.maths.anova import Anova


@pytest.mark.parametrize(
    ("kernel", "d"), [(RBF(0.8, "fixed"), 1), (RBF([0.8, 2.0], "fixed"), 2), (Matern(1.5, "fixed", nu=1.5), 2)]
)
def test_given_kernels(kernel, d):
    at, draws = np.random.default_rng(0).uniform(-2, 2, (6, d)), 300
    values = np.array([gp_planner._given(kernel, d, False, np.random.default_rng(i))(at) for i in range(draws)])
    assert np.abs(np.cov(values.T) - kernel(at)).max() < 5 * (2 / draws) ** 0.5


def test_lengths_are_drawn_inside_their_prior():
    kernel = RBF(2.0, (1.0, 4.0))
    at = np.array([[0.0], [2.0]])
    values = np.array([gp_planner._given(kernel, 1, True, np.random.default_rng(i))(at) for i in range(600)])
    correlation = np.corrcoef(values.T)[0, 1]
    assert correlation == pytest.approx(np.mean(np.exp(-2 / np.exp(np.linspace(0, np.log(16), 99)))), abs=0.1)


def test_the_default_prior(monkeypatch):
    one = Anova(variance=0.5, shares=(1.0, 0.5, 0.3), length=0.4)
    monkeypatch.setattr(Anova, "among", staticmethod(lambda place: one))
    u, draws = np.random.default_rng(0).uniform(-1, 1, (5, 3)), 300
    values = np.array([gp_planner._default(3, np.random.default_rng(i))(2 * u) for i in range(draws)])
    exact = one(u, u.copy())
    assert np.abs(np.cov(values.T) - exact).max() < 5 * exact.max() * (2 / draws) ** 0.5


def test_a_quick_run(tmp_path, monkeypatch):
    monkeypatch.setattr(gp_planner, "SETTINGS", (gp_planner.Setting("RBF", 1, 200, RBF(1.0, "fixed")),))
    found = gp_planner.run(tmp_path, repeats=2, quick=True, seed=0, progress=lambda done, total, what: None)
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
    assert gp_planner._table([record], (setting,), (1.0,)).rows[0][-1] == "2.000 / 1.000 = 2.00"
    several = record | {"ratio_error": 0.25}
    assert gp_planner._table([several], (setting,), (1.0,)).rows[0][-1] == "2.000 / 1.000 = 2.00 ± 0.25"


def test_a_planner_that_is_wrong_is_found_out(tmp_path, monkeypatch):
    right = gp_planner.plan

    def wrong(model, n, epsilons, **options):
        return right(model.set_params(noise=0.6), 20 * n, epsilons, **options)

    monkeypatch.setattr(gp_planner, "SETTINGS", (gp_planner.Setting("RBF", 1, 200, RBF(1.0, "fixed")),))
    monkeypatch.setattr(gp_planner, "plan", wrong)
    found = gp_planner.run(tmp_path, repeats=3, quick=True, seed=0, progress=lambda done, total, what: None)
    assert not any(claim.kept for claim in found.claims)
