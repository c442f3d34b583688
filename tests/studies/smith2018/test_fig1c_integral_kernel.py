"""Smith et al., Fig 1c: the made-up ages, and the shape of what the study gives."""

import numpy as np

from reticent.studies.smith2018 import fig1c_integral_kernel as smith_lengthscales
from reticent.studies.smith2018.fig1c_integral_kernel import YEARS, ages, run


def test_ages_are_drawn_from_the_density_that_errors_are_measured_by():
    truth, people = ages(np.random.default_rng(0))
    assert people.shape == (255, 1)
    assert abs(truth.sum() - 255) < 1e-9
    assert ((people >= 0) & (people <= 100)).all()
    mean = truth @ YEARS / 255
    sd = np.sqrt(truth @ YEARS**2 / 255 - (truth @ YEARS / 255) ** 2)
    assert abs(people.mean() - mean) < 4 * sd / np.sqrt(255)


def test_the_study_compares_three_methods_at_each_length(tmp_path, monkeypatch):
    monkeypatch.setattr(smith_lengthscales, "LENGTHSCALES", (5.0, 10.0, 15.0, 20.0))
    monkeypatch.setattr(smith_lengthscales, "REGRESSION", {30.0: 0.34})
    told = []
    found = run(tmp_path, repeats=1, quick=True, seed=1, progress=lambda *step: told.append(step))
    ages_ = [one for one in found.records if one["part"] == "ages"]
    assert {(one["method"], one["length"]) for one in ages_} == {
        (m, 10.0) for m in ("integral", "point", "histogram")
    }
    assert told[-1][0] == told[-1][1] == 2
    assert found.claims[-1].kept
    assert (tmp_path / "lengthscales.png").exists()
