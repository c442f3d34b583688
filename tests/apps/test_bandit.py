"""reticent bandit simulate, and the environments it plays in."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from reticent.apps.cli import app
from reticent.experiments.arms import ENVIRONMENTS, environment


def call(*words):
    return CliRunner().invoke(app, ["bandit", "simulate", *words])


def test_simulate_tells_what_privacy_costs():
    found = json.loads(call("--rounds", "60", "--epsilon", "5", "--delta", "0.01", "--json").stdout)
    assert found["rounds"] == 60
    assert found["releases"] >= 2
    assert 0 <= found["not private"] < 1.2
    plain = call("--rounds", "40", "--epsilon", "5", "--delta", "0.01")
    assert "of random play" in plain.stdout
    assert plain.exit_code == 0


@pytest.mark.parametrize("words", [("nowhere",), ("--rounds", "0")])
def test_wrong_use(words):
    assert call(*words).exit_code == 2


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_environments_are_what_they_say(name):
    where, rng = environment(name, 3), np.random.default_rng(0)
    sets = where.draw(rng, 50, 25)
    values = where.values(sets)
    low, high = np.array(where.box).T
    assert ((sets >= low) & (sets <= high)).all()
    assert values.min() > -0.3
    assert values.max() < 1.3
    assert set(np.unique(where.rewards(rng, values))) <= {0.0, 1.0} or not where.binary
    if name == "gp-sum":
        assert ((values >= 0.8).sum(axis=1) == 1).all()
        assert ((values <= 0.6).sum(axis=1) == 24).all()


@pytest.mark.parametrize("name", ["none.db", "people.csv"])
def test_serving_what_is_no_ledger_is_refused_in_words(tmp_path, name):
    (tmp_path / "people.csv").write_text("age\n1\n")
    answer = CliRunner().invoke(app, ["bandit", "serve", str(tmp_path / name)])
    assert answer.exit_code == 5
    assert "ledger" in answer.output
    assert "Traceback" not in answer.output
