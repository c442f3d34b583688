"""How many rounds a second does a private bandit manage? `python benchmarks/bandit.py [--quick]`

End to end, in CPU time of one thread: features of 25 candidates a round, choice, exact sums, noise,
releases, learning; rounds come in groups of up to 1,000, as from a service that answers many people
at once. Candidates are made beforehand. At least 30,000 rounds a second with 50 features, and 5,000
with 200.
"""

import argparse
import time

import numpy as np

from reticent import Bounds, JointBandit

AT_ONCE = 1000
ARMS = 25


def rounds_a_second(m, rounds):
    rng = np.random.default_rng(0)
    bandit = JointBandit(
        bounds=Bounds(x=[(-1, 1)] * 2, y=(0, 1)), horizon=rounds, epsilon=1.0, delta=1e-5, basis=m
    )
    pool = rng.uniform(-1, 1, size=(min(rounds, 20_000), ARMS, 2))
    rewards = rng.uniform(size=len(pool))
    start = time.process_time()
    for first in range(0, rounds, AT_ONCE):
        place = first % len(pool)
        sets = pool[place : place + min(AT_ONCE, rounds - first)]
        chosen = bandit.ask(sets)
        bandit.tell(sets[np.arange(len(sets)), chosen], rewards[place : place + len(sets)])
    seconds = time.process_time() - start
    assert bandit.rounds_ == rounds
    return rounds / seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    for m, least in ((50, 30_000), (200, 5_000)):
        speed = rounds_a_second(m, 4_000 if quick else 100_000)
        if quick:
            judged = ""
        else:
            judged = f"   (asked: {least:,})"
        print(f"{m:4} features: {speed:10,.0f} rounds a second{judged}")


if __name__ == "__main__":
    main()
