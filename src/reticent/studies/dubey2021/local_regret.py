"""Regret of the local bandit in the environment of Sec 6.1, by horizon; as a share of random play.

Reports of a batch are added up before they are noisy, and the sum gets the noise of all of them, √n
times one report's: the same law as that of the server's sum, without a client object for each of
16,384 rounds.
"""

import math
from pathlib import Path

import numpy as np

from reticent.models.bandits.local import LocalBanditServer
from reticent.privacy.accounting.composition import calibrate
from reticent.privacy.accounting.events import Gaussian
from reticent.privacy.streams.stream import Stream
from reticent.studies.common.bandit_environments import ARMS, environment
from reticent.studies.common.results import (
    Claim,
    Findings,
    Progress,
    ResultTable,
    mean_error,
    plus_minus,
)

__all__ = ["run"]

_EPSILON = 1.0
_DELTA = 0.1
_ASKED = 0.20
_PIECE = 1000  # rounds


def _share(seed: int, rounds: int) -> float:
    where = environment("gp-sum", seed)
    rng = np.random.default_rng([seed, 5])
    server = LocalBanditServer(bounds=where.bounds, horizon=rounds, epsilon=_EPSILON, delta=_DELTA)
    one = calibrate(_EPSILON, _DELTA)
    regret = 0.0
    chance = 0.0
    while server.rounds_ < rounds:
        policy = server.posterior_
        n = server.until_release_
        noise = Gaussian(noise_multiplier=one * math.sqrt(n))
        stream = Stream(bounds=where.bounds, event=noise, seed=b"%d %d" % (seed, server.rounds_))
        for start in range(0, n, _PIECE):
            sets = where.draw(rng, min(_PIECE, n - start), ARMS)
            values = where.values(sets)
            here = np.arange(len(sets))
            chosen = policy.choose(sets, rng.integers(2**64, size=len(sets), dtype=np.uint64))
            records = np.column_stack(
                [sets[here, chosen], where.rewards(rng, values[here, chosen])]
            )
            stream.add(policy.statistic, records)
            regret += float((values.max(axis=1) - values[here, chosen]).sum())
            chance += float((values.max(axis=1) - values.mean(axis=1)).sum())
        server.learn(stream.release(policy.statistic))
    return regret / chance


def run(out: Path, *, repeats: int, quick: bool, seed: int, progress: Progress) -> Findings:
    """Compute and tabulate."""
    horizons = (256,) if quick else (1024, 16_384)
    found: dict[int, list[float]] = {}
    for done, rounds in enumerate(horizons):
        for repeat in range(repeats):
            progress(done * repeats + repeat, len(horizons) * repeats, f"{rounds:,} rounds")
            found.setdefault(rounds, []).append(_share(seed + repeat, rounds))
    rows = [(f"{rounds:,}", plus_minus(values)) for rounds, values in found.items()]
    claims = []
    if not quick:
        mean, error = mean_error(found[16_384])
        words = f"16,384 rounds: regret at most {_ASKED} of random play"
        claims = [Claim(words, f"{mean:.3f} ± {error:.3f}", mean <= _ASKED)]
    return Findings(
        "Local bandits: regret as a share of random play",
        [
            {"rounds": n, "regret": mean_error(v)[0], "error": mean_error(v)[1]}
            for n, v in found.items()
        ],
        [
            ResultTable(
                f"Regret / random play, ε={_EPSILON:g}, δ={_DELTA:g}", ("rounds", "regret"), rows
            )
        ],
        claims,
    ).write(out)
