"""No attack that broke version 0.1.0 has an advantage now."""

import pytest

from tests.attacks.harness import all_attacks


@pytest.mark.parametrize("one", all_attacks(), ids=lambda one: one.name)
def test_no_attack_succeeds(one, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    outcome = one.run()
    assert not outcome.broke, outcome.figure
