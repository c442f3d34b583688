"""The coins of a bandit's `ask`: one person's must tell nothing of another's candidates."""

import os

import numpy as np

import reticent
from tests.attacks.harness import Outcome, attack


@attack("7", "The position of shared coins tells how many candidates a person brought")
def coins_after_another() -> Outcome:
    """The operating system's randomness is replayed.

    Do my coins differ by what another person brought?
    """
    bounds = reticent.Bounds(x=[(0, 1)], y=(0, 1))

    def my_answers(theirs: int, run: int) -> list[int]:
        bandit = reticent.JointBandit(bounds=bounds, horizon=400, epsilon=1, delta=1e-5)
        bandit.ask([[0.5]])  # pays
        replayed = np.random.Generator(np.random.PCG64(run))
        bandit._rng = np.random.Generator(
            np.random.PCG64(run)
        )  # which version 0.1.0 throws coins with
        drawn = os.urandom
        os.urandom = replayed.bytes
        try:
            bandit.ask(np.full((theirs, 1), 0.5))
            return [bandit.ask(np.full((50, 1), 0.5)) for _ in range(6)]
        finally:
            os.urandom = drawn

    found = 0
    runs = 6
    for run in range(runs):
        by_count = [my_answers(theirs, run) for theirs in range(1, 11)]
        secret = run % 10
        found += by_count.count(by_count[secret]) == 1
    figure = (
        f"their number of candidates, from 1 to 10, is found in {found} of "
        f"{runs} cases by whoever knows the state"
    )
    return Outcome(found > 1, figure)
