"""Studies of bandits: their quick runs give what they promise."""

import numpy as np
import pytest

from reticent.studies import STUDIES
from reticent.studies.common.bandit_environments import ENVIRONMENTS, environment


def quick(name, out):
    return STUDIES[name].run(out, repeats=1, quick=True, seed=1, progress=lambda *told: None)


@pytest.mark.parametrize("name", ["gpucb-local", "gpucb-contexts"])
def test_regret_lies_between_none_and_random_play(name, tmp_path):
    found = quick(name, tmp_path)
    assert all(0 < one["regret"] < 1.5 for one in found.records)
    assert (tmp_path / "table.md").exists()


def test_fourier_features_keep_their_bounds(tmp_path):
    found = quick("gpucb-features", tmp_path)
    assert all(claim.kept for claim in found.claims)
    assert {one["kernel"] for one in found.records} == {"squared exponential", "Matérn 5/2"}


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_environments_are_what_they_say(name):
    where = environment(name, 3)
    rng = np.random.default_rng(0)
    sets = where.draw(rng, 40, 25)
    low, high = np.array(where.box).T
    assert ((sets >= low) & (sets <= high)).all()
    values = where.values(sets)
    assert ((values > -0.2) & (values < 1.2)).all()
    if name == "gp-sum":
        assert ((values >= 0.8).sum(axis=1) == 1).all()
        assert ((values <= 0.6).sum(axis=1) == 24).all()


def test_running_sums_have_a_tenth_of_the_trees_variance(tmp_path):
    found = quick("gpucb-factorisations", tmp_path)
    (record,) = found.records
    assert record["rounds"] == 1024
    assert (
        0.09 < record["root"] <= record["buffers"] < 0.1
    )  # a square root is what buffers stand in for
    assert [claim.kept for claim in found.claims] == [True, True]
