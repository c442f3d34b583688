"""Context distributions: the regret if candidates are not uniform over the box, as is assumed.

Camel, with candidates in five heaps, or crowded towards one corner. Regret of the bandit as it is,
beside that of one that plays in thought with candidates of the true law; and of bandits whose
candidates were permuted, which must not matter.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from reticent.models.bandits.joint import JointBandit
from reticent.studies.common.bandit_environments import environment
from reticent.studies.common.results import (
    Claim,
    Findings,
    Progress,
    ResultTable,
    mean_error,
    plus_minus,
)
from reticent.studies.dubey2021.joint_regret import play

__all__ = ["run"]

Array = NDArray[np.float64]
_MOST = 1.5
_EPSILON = 1.0
_DELTA = 0.1


def _heaps(rng: np.random.Generator, count: int) -> Array:
    """In [−1, 1]²."""
    centres = np.random.default_rng(4).uniform(-0.8, 0.8, size=(5, 2))
    return np.clip(centres[rng.integers(5, size=count)] + 0.15 * rng.normal(size=(count, 2)), -1, 1)


def _corner(rng: np.random.Generator, count: int) -> Array:
    return 2 * rng.beta(1.5, 3.0, size=(count, 2)) - 1


def _even(rng: np.random.Generator, count: int) -> Array:
    return rng.uniform(-1, 1, size=(count, 2))


_LAWS: dict[str, Callable[[np.random.Generator, int], Array]] = {
    "even": _even,
    "heaps": _heaps,
    "corner": _corner,
}


def _share(law: str, told: bool, permuted: bool, seed: int, rounds: int) -> float:
    box = environment("camel", seed)
    draw = _LAWS[law]
    half = np.array([high for _, high in box.box])

    def sets(rng: np.random.Generator, n: int, arms: int) -> Array:
        found = (half * draw(rng, n * arms)).reshape(n, arms, 2)
        if permuted:
            return found[:, ::-1]
        return found

    bandit = JointBandit(
        bounds=box.bounds,
        horizon=rounds,
        epsilon=_EPSILON,
        delta=_DELTA,
        random_state=seed + 7 * permuted,
    )
    if told:
        coins = np.random.default_rng([seed, 9])
        bandit.posterior_.set_context_sampler(lambda count: draw(coins, count))
    regret, chance = play(replace(box, draw=sets), bandit, seed, rounds)
    return float(regret.sum() / chance.sum())


def _method(told: bool, permuted: bool) -> str:
    """What the policy assumes about the distribution of contexts, as a column's title."""
    if told:
        return "told"
    if permuted:
        return "permuted"
    return "assumed even"


def run(out: Path, *, repeats: int, quick: bool, seed: int, progress: Progress) -> Findings:
    """Compute and tabulate."""
    if quick:
        rounds = 300
    else:
        rounds = 10_000
    cells = [("even", False, False), ("even", False, True)]
    cells += [(law, told, False) for law in ("heaps", "corner") for told in (False, True)]
    found: dict[tuple[str, bool, bool], list[float]] = {}
    for done, cell in enumerate(cells):
        for repeat in range(repeats):
            progress(
                done * repeats + repeat, len(cells) * repeats, f"{cell[0]}{', told' * cell[1]}"
            )
            found.setdefault(cell, []).append(_share(*cell, seed + repeat, rounds))
    names = {cell: _method(*cell[1:]) for cell in cells}
    claims = []
    if not quick:
        for law in ("heaps", "corner"):
            ratio = mean_error(found[law, False, False])[0] / mean_error(found[law, True, False])[0]
            claims.append(Claim(f"{law}: costs at most {_MOST}×", f"{ratio:.2f}×", ratio <= _MOST))
        a, s = mean_error(found[cells[0]])
        b, t = mean_error(found[cells[1]])
        claims.append(
            Claim(
                "permuting arms does not change mean regret",
                f"{a:.3f}, {b:.3f}",
                abs(a - b) <= 3 * (s**2 + t**2) ** 0.5,
            )
        )
    return Findings(
        "Candidates of another law than the bandit assumes: camel, regret as "
        "a share of random play",
        [
            {
                "law": cell[0],
                "bandit": names[cell],
                "regret": mean_error(v)[0],
                "error": mean_error(v)[1],
            }
            for cell, v in found.items()
        ],
        [
            ResultTable(
                f"Regret / random play, ε={_EPSILON:g}, δ={_DELTA:g}",
                ("candidates", "bandit", "regret"),
                [(cell[0], names[cell], plus_minus(v)) for cell, v in found.items()],
                left=2,
            )
        ],
        claims,
    ).write(out)
