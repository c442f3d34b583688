"""How much of the regret is the price of noise? `python benchmarks/bandit_floor.py [--quick]`

A bandit that is told Σφφᵀ exactly, and after every batch the running sum Σφe of all rounds with
noise of standard deviation 2/μ: that of one single Gaussian release of it. Nothing is paid for
releasing again and again, nor for Σφφᵀ. Releases after batches that grow by a factor g, of any
Toeplitz correlation, have at least 1 + 1/g times that noise (docs/lab/bandits.md). Features are
scaled by the prior and stay: a bandit that scales them anew, as ours does, can do better than the
row of 1 + 1/g.
"""

import argparse

import numpy as np

from reticent.models.bandits.settings import EXPLORATION_WEIGHT, GROWTH
from reticent.models.bandits.ucb_policy import Policy, batch_sizes, random_words
from reticent.privacy.accounting.composition import calibrate
from reticent.studies.common.bandit_environments import ARMS, environment

EPSILON, DELTA = 1.0, 1e-5
FINE = (1.05, 8)  # growth, rounds of the first batch: more releases than a bandit could pay for


def regret(
    name: str,
    seed: int,
    mu: float,
    noise: float,
    growth: float = GROWTH,
    first: float | None = None,
) -> float:
    """Regret, as a share of random play, with ``noise`` times the least standard deviation."""
    where = environment(name, seed)
    policy = Policy(
        where.bounds,
        kernel=None,
        mu=mu,
        horizon=where.rounds,
        arms=ARMS,
        exploration_weight=EXPLORATION_WEIGHT,
        staged=False,
    )
    rng = np.random.default_rng([seed, 3])
    privacy = np.random.default_rng([seed, 77])
    m = policy.feature_map.columns
    cross, gram, square = np.zeros(m), np.zeros((m, m)), 0.0
    lost = by_chance = 0.0
    rounds = 0
    sd = max(noise * 2 / mu, 1e-6)
    for size in batch_sizes(mu, where.rounds, growth, first):
        sets = where.draw(rng, size, ARMS)
        values = where.values(sets)
        here = np.arange(size)
        chosen = policy.choose(sets, random_words(size, rounds, b"%d" % seed))
        lost += float((values.max(axis=1) - values[here, chosen]).sum())
        by_chance += float((values.max(axis=1) - values.mean(axis=1)).sum())
        reward = 2 * np.clip(where.rewards(rng, values[here, chosen]), 0, 1) - 1
        phi = policy.features(sets[here, chosen][:, None])[:, 0]
        cross += phi.T @ reward
        gram += phi.T @ phi
        square += float(reward @ reward)
        rounds += size
        policy.reset()
        policy.posterior.add(
            A=cross + sd * privacy.normal(size=m),
            A_sd=sd,
            B=gram,
            q=square,
            q_sd=1e-3,
            n=rounds,
            clip_threshold=1.0,
            centre=np.zeros(m),
            unclipped=True,
        )
        policy._after_batch(size, 256)
    return lost / by_chance


def main(repeats: int, seed: int) -> None:
    """Print a table."""
    mu = 1 / calibrate(EPSILON, DELTA)
    rows = [
        ("no noise", 0.0, {}),
        ("a single release", 1.0, {}),
        (f"a single release, batches of {FINE}", 1.0, {"growth": FINE[0], "first": FINE[1]}),
        ("releases after batches", 1 + 1 / GROWTH, {}),
    ]
    for name, runs in (("gp-sum", repeats), ("styblinski", max(repeats // 8, 2))):
        for words, noise, how in rows:
            if name == "styblinski" and how:
                continue  # hundreds of batches of 141 functions
            found = [regret(name, seed + i, mu, noise, **how) for i in range(runs)]
            error = np.std(found, ddof=1) / np.sqrt(runs)
            print(f"{name:12}{words:40}{np.mean(found):.3f} ± {error:.3f}", flush=True)


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--quick", action="store_true")
    options.add_argument("--repeats", type=int, default=16)
    options.add_argument("--seed", type=int, default=2026119100)
    asked = options.parse_args()
    if asked.quick:
        asked.repeats = 2
    main(asked.repeats, asked.seed)
