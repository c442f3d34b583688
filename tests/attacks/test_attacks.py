"""No attack that broke version 0.1.0 has an advantage now."""

import os
from pathlib import Path

import pytest

import reticent
from tests.attacks.harness import all_attacks

SOURCE = Path(reticent.__file__).parents[1]
TOP = Path(__file__).parents[2]


@pytest.mark.parametrize("one", all_attacks(), ids=lambda one: one.name)
def test_no_attack_succeeds(one, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = [path for path in [os.environ.get("PYTHONPATH")] if path]
    # processes that an attack starts attack the same version, and find the attacks
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([*before, str(SOURCE), str(TOP)]))
    outcome = one.run()
    assert not outcome.broke, outcome.figure
