"""Smith et al.: their numbers come out, what is said against them holds, and our studies return
what they promise.
"""

import numpy as np
import pytest
from scipy.optimize import minimize

from reticent.privacy.accounting.composition import calibrate
from reticent.studies import STUDIES
from reticent.studies.smith2018.as_printed import Problem, noise_root
from reticent.studies.smith2018.printed_sensitivities import (
    exact_sensitivity,
    fitc_map,
    row_sum,
    smith_kernel,
)
from reticent.studies.smith2018.table1 import children

X = np.linspace(0, 4, 15)[:, None]


def quick(name, out):
    return STUDIES[name].run(out, repeats=1, quick=True, seed=1, progress=lambda *told: None)


def test_the_numbers_of_the_text(tmp_path):
    found = quick("smith-numbers", tmp_path)
    printed = [round(float(record["as_printed"]), 4) for record in found.records]
    assert printed == pytest.approx([0.1289, 3.2552, 0.4197, 293.69, 3.3309, 88.17], rel=2e-4)
    exact = [float(record["exact"]) for record in found.records]
    assert exact[3:5] == pytest.approx([1.318, 0.0882], rel=1e-3)
    assert all(claim.kept for claim in found.claims)
    assert "293.7" in (tmp_path / "table.md").read_text()


def test_the_exact_sensitivity_is_what_the_worst_label_does():
    """‖f − f′‖ in the kernel's own space, over all pairs of labels that differ in one place.

    A search finds it, and no more.
    """
    gram = smith_kernel(X, X, 1.0)
    alpha = np.linalg.inv(gram + 0.1 * np.eye(15))
    exact = exact_sensitivity(alpha, gram)

    def moved(j, change):
        difference = alpha[:, j] * np.clip(change, -1, 1)
        return float(np.sqrt(difference @ gram @ difference))

    found = max(
        -minimize(lambda v, j=j: -moved(j, v[0]), [0.3], method="Nelder-Mead").fun
        for j in range(15)
    )
    assert found == pytest.approx(exact, rel=1e-9)
    assert exact < row_sum(alpha)


def test_inducing_inputs_at_all_inputs_are_the_whole_process():
    alpha, gram = fitc_map(X[::3], X[::3], 1.0, 0.1)
    full = np.linalg.inv(smith_kernel(X[::3], X[::3], 1.0) + 0.1 * np.eye(5))
    np.testing.assert_allclose(alpha, full, atol=1e-6)
    np.testing.assert_allclose(gram, smith_kernel(X[::3], X[::3], 1.0))


@pytest.mark.parametrize("method", ["logdet cloak", "trace cloak", "inducing trace cloak"])
def test_cloaks_hide_every_label(method):
    problem = Problem(X, X + 0.1, X[::4], 1.0, 1.0, 0.1, 2.0)
    C, root = noise_root(problem, method, 1.0, 0.01)
    reach = np.linalg.norm(np.linalg.pinv(root) @ C, axis=0) * 2.0 * calibrate(1.0, 0.01)
    assert reach.max() == pytest.approx(1.0, abs=2e-3)


def test_printed_noise_is_far_larger_at_one_and_too_small_at_thirty():
    problem = Problem(X, X, X[::4], 1.0, 1.0, 0.1, 2.0)
    scale = {
        name: [np.linalg.norm(noise_root(problem, name, e, 0.01)[1]) for e in (1.0, 30.0)]
        for name in ("printed", "exact")
    }
    assert scale["printed"][0] > 3 * scale["exact"][0]
    assert scale["printed"][1] / scale["printed"][0] < scale["exact"][1] / scale["exact"][0]


def test_children_look_like_those_of_the_paper():
    X, y = children(np.random.default_rng(0))
    assert X.shape == (89, 2)
    assert y.min() >= 9.8
    assert y.max() <= 21.5
    assert 1.5 < y.std() < 4
    assert np.corrcoef(X[:, 0], y)[0, 1] > 0.7


@pytest.mark.parametrize("name", ["gp-labels", "smith-table"])
def test_studies(name, tmp_path):
    found = quick(name, tmp_path)
    by = {(record["method"], record["epsilon"]): record["rmse"] for record in found.records}
    assert (
        by["reticent: cloak", 1.0] < by["trace cloak", 1.0] < by["log det cloak (2018)", 1.0] * 1.3
    )
    assert {file.parent for file in found.files} == {tmp_path}
    assert found.tables[0].title in (tmp_path / "table.md").read_text()
