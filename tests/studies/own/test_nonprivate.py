"""Large budgets against models without privacy: the study's own arithmetic, on made-up records."""

import numpy as np

from reticent import Bounds
from reticent.studies.own import nonprivate


class Plane:
    name = "diabetes"
    bounds = Bounds(x=[(-1, 1)] * 2, y=(-3, 3))

    def load(self):
        rng = np.random.default_rng(0)
        X = rng.uniform(-1, 1, size=(900, 2))
        return X, X[:, 0] - X[:, 1] + 0.1 * rng.normal(size=900)


def test_a_plane_costs_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(nonprivate, "TASKS", {"diabetes": Plane()})
    monkeypatch.setattr(nonprivate, "_FITTED", 100)
    found = nonprivate.run(tmp_path, repeats=1, quick=True, seed=3, progress=lambda *_: None)
    assert len(found.records) == 4
    errors = {row["method"]: row["rmse"] for row in found.records}
    best = min(errors["boosting"], errors["exact GP"])
    for epsilon in nonprivate._FACTORS:
        ratio = nonprivate._ratio(found.records, "diabetes", 3, epsilon)
        assert ratio == errors[f"GPRegressor, ε = {epsilon:g}"] / best
    assert all(claim.kept for claim in found.claims)
    assert (tmp_path / "results.csv").exists()
