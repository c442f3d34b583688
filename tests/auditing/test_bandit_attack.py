"""Attacks on bandits.

Through ask and tell they reach what is allowed, never more, and find noise that is too small.
"""

import itertools

import numpy as np
import pytest

import reticent
from reticent.auditing.bandit_attack import BANDITS, BanditAttack

PROMISE = {"epsilon": 2.0, "delta": 0.1}
LIMIT = 1 / reticent.calibrate(**PROMISE)


@pytest.mark.parametrize("name", BANDITS)
def test_all_releases_together_reach_the_promise_and_no_more(name):
    """Noise that steps share is undone.

    What is left is white, and independent from step to step.
    """
    attack = BanditAttack(name, **PROMISE, limit=LIMIT)
    runs = [attack.run(with_a=bool(i % 2)) for i in range(30)]
    for run in runs:
        assert run.faults == ()
        assert run.attacked == run.released == len(run.noise)
        assert 0.9 * LIMIT < run.shift <= LIMIT * (1 + 1e-9)
    steps = [np.array(one) for one in zip(*(run.noise for run in runs), strict=True)]
    for noise in steps:
        assert noise.std() == pytest.approx(1, abs=4 / np.sqrt(2 * noise.size))
    for one, other in itertools.pairwise(steps):
        assert np.mean(one * other) == pytest.approx(0, abs=4.5 / np.sqrt(one.size))


@pytest.mark.parametrize("name", ["bandit", "bandit-running", "bandit-rewards"])
def test_a_bandit_makes_several_releases(name):
    assert BanditAttack(name, **PROMISE, limit=LIMIT).run(with_a=True).released >= 3
