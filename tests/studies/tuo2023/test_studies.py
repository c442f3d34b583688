"""Studies of obfuscated curves: what they find, and that their claims can fail."""

import numpy as np
import pytest

from reticent.studies import STUDIES
from reticent.studies.tuo2023.orbit import NAMES, orbit


def study(name, out):
    return STUDIES[name].run(
        out, repeats=1, quick=True, seed=1, progress=lambda done, total, what: None
    )


def test_examples_have_the_papers_traces(tmp_path):
    found = study("tuo-examples", tmp_path)
    for record in found.records[:4]:
        assert record["trace"] == pytest.approx(record["expected"], abs=6e-5)
    assert [row[2][:2] for row in found.tables[1].rows] == ["ye", "ye", "ye", "no", "no"]
    assert (tmp_path / "examples.png").read_bytes()[:4] == b"\x89PNG"


def test_five_fresh_releases_break_what_one_keeps(tmp_path):
    found = study("tuo-attacks", tmp_path)
    *learners, learned = found.records
    for record in learners:
        if record["releases"] == record["planned"]:
            assert record["variance"] > 0.5 - 4 * record["error"]
    assert (
        min(record["variance"] for record in learners if record["releases"] > record["planned"])
        < 0.25
    )
    assert learned["variance"] < 0.25


def test_the_arc_is_hidden_and_the_rest_is_not(tmp_path):
    for record in study("tuo-orbit", tmp_path).records:
        assert record["least_sd_inside"] ** 2 >= record["share"] * (1 - 1e-6)
        assert record["error_far"] < 0.02


def test_the_orbit_is_an_orbit():
    t = np.linspace(0, 3, 301)
    states = orbit(t)
    assert states.shape == (301, len(NAMES))
    radius, _, _, rate = states.T
    assert radius.min() == pytest.approx(1.1, abs=0.01)
    assert radius.max() == pytest.approx(1.65, abs=0.02)
    momentum = radius**2 * rate
    assert np.ptp(momentum) < 1e-2 * momentum.mean()  # but for drag, areas are swept evenly
    assert radius[100] == pytest.approx(1.1, abs=0.01)  # after one orbit
