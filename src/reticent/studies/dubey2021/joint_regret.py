"""Regret of private bandits in environments that we define (`arms.py`), as a share of random play.

Ours, in one configuration for all; without privacy; and "paper": running sums after every round
with the binary tree and Theorem 1's width. Its noise is exactly calibrated, as ours: that of Lemma
2 is 17 times as large at α = 1, β = .1.
"""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.models.bandits.joint import JointBandit
from reticent.models.bandits.ucb_policy import Policy
from reticent.studies.common.bandit_environments import ARMS, Environment, environment
from reticent.studies.common.figures import Line, Panel, draw
from reticent.studies.common.results import (
    Claim,
    Findings,
    Progress,
    ResultTable,
    mean_error,
    plus_minus,
    times,
)

__all__ = ["play", "run"]

Array = NDArray[np.float64]
PROMISES = ((0.1, 0.1), (1.0, 0.1), (10.0, 0.1), (1.0, 1e-5))
ASKED = {
    "gp-sum": (0.20, 0.12, 0.06, 0.25),
    "camel": (0.09, 0.06, 0.05, 0.20),
    "styblinski": (0.37, 0.20, 0.11, 0.40),
    "michalewicz": (0.47, 0.35, 0.26, 0.52),
}
_NO_NOISE = (1e6, 0.1)
_AT_ONCE = 500  # rounds, to bound memory


def theorem1_weight(policy: Policy, norm: float = 1.0, failure: float = 0.05) -> float:
    """√β_t of Theorem 1 of the GP-UCB analysis, for functions of at most this norm.

    The privacy noise is where it is here, in the posterior covariance. It explores far more than
    pays.
    """
    return norm + math.sqrt(policy.information_gain() + 2 * math.log(2 / failure))


def play(
    where: Environment,
    bandit: JointBandit,
    seed: int,
    rounds: int,
    weight: Callable[[Policy], float] | None = None,
) -> tuple[Array, Array]:
    """Regret of each round, and of a random choice in its place.

    Rounds with the same model are asked for together. ``weight``: the exploration weight of each
    model, if not the bandit's own.
    """
    rng = np.random.default_rng([seed, 3])
    regret = list[Array]()
    chance = list[Array]()
    while (left := rounds - sum(map(len, regret))) > 0:
        sets = where.draw(rng, min(bandit.until_release_, left, _AT_ONCE), ARMS)
        values = where.values(sets)
        if weight is not None:
            bandit.posterior_.exploration_weight = weight(bandit.posterior_)
        chosen = bandit.ask(sets)
        here = np.arange(len(sets))
        bandit.tell(sets[here, chosen], where.rewards(rng, values[here, chosen]))
        regret.append(values.max(axis=1) - values[here, chosen])
        chance.append(values.max(axis=1) - values.mean(axis=1))
    return np.concatenate(regret), np.concatenate(chance)


def run(
    out: Path,
    *,
    names: tuple[str, ...],
    repeats: int,
    quick: bool,
    seed: int,
    progress: Progress,
) -> Findings:
    """Compute, tabulate and draw, for some of the environments."""
    if quick:
        names = names[:1]
    cells: list[tuple[str, str, tuple[float, float], dict[str, Any]]] = []
    for name in names:
        cells += [(name, "ours", promise, {}) for promise in (PROMISES[1:2] if quick else PROMISES)]
        cells.append((name, "not private", _NO_NOISE, {}))
        if name == "gp-sum":
            cells.append(
                (
                    name,
                    "paper",
                    PROMISES[1],
                    {"release": "every", "mechanism": "tree", "exploration_weight": 0, "basis": 9},
                )
            )
    found: dict[tuple[str, str, tuple[float, float]], list[float]] = {}
    curves: dict[tuple[str, str, tuple[float, float]], list[Array]] = {}
    for done, (name, method, promise, how) in enumerate(cells):
        for repeat in range(repeats):
            progress(
                done * repeats + repeat, len(cells) * repeats, f"{name}, {method}, ε={promise[0]:g}"
            )
            where = environment(name, seed + repeat)
            if quick:
                rounds = min(where.rounds, 128)
            else:
                rounds = where.rounds
            bandit = JointBandit(
                bounds=where.bounds,
                horizon=rounds,
                epsilon=promise[0],
                delta=promise[1],
                random_state=seed + repeat,
                **how,
            )
            weight = theorem1_weight if method == "paper" else None
            regret, chance = play(where, bandit, seed + repeat, rounds, weight)
            found.setdefault((name, method, promise), []).append(float(regret.sum() / chance.sum()))
            curves.setdefault((name, method, promise), []).append(np.cumsum(regret) / chance.mean())
    findings = Findings(
        "Private Gaussian-process bandits: regret as a share of random play",
        [
            {
                "environment": name,
                "method": method,
                "epsilon": eps,
                "delta": delta,
                "regret": mean_error(v)[0],
                "error": mean_error(v)[1],
            }
            for (name, method, (eps, delta)), v in found.items()
        ],
        [_table(found, names)],
        [] if quick else judge(found, names),
        [
            f"{ARMS} candidates a round, {times(repeats)}, functions, rewards, noise from seed "
            f"{seed}; one configuration."
        ],
    )
    findings.files.append(_picture(out, curves, names))
    return findings.write(out)


def _table(
    found: dict[tuple[str, str, tuple[float, float]], list[float]], names: Sequence[str]
) -> ResultTable:
    rows = [
        (
            name,
            method,
            "none" if promise == _NO_NOISE else f"ε={promise[0]:g}, δ={promise[1]:g}",
            plus_minus(values),
        )
        for (name, method, promise), values in found.items()
        if name in names
    ]
    return ResultTable(
        "Regret / random play", ("environment", "method", "promise", "regret"), rows, left=3
    )


def judge(
    found: dict[tuple[str, str, tuple[float, float]], list[float]], names: Sequence[str]
) -> list[Claim]:
    """Claims, each kept or not by these results."""
    claims = []
    for name in names:
        for promise, most in zip(PROMISES, ASKED[name], strict=True):
            mean, error = mean_error(found[name, "ours", promise])
            words = (
                f"{name}, ε={promise[0]:g}, δ={promise[1]:g}: regret at most {most} of random play"
            )
            claims.append(Claim(words, f"{mean:.3f} ± {error:.3f}", mean <= most))
    return claims


def _picture(
    out: Path, curves: dict[tuple[str, str, tuple[float, float]], list[Array]], names: Sequence[str]
) -> Path:
    out.mkdir(parents=True, exist_ok=True)
    panels = []
    for name in names:
        lines = []
        for (where, method, promise), some in curves.items():
            if where != name or (method == "ours" and promise[1] != 0.1):
                continue
            mean = np.mean(some, axis=0)
            at = np.unique(np.geomspace(1, len(mean), 40).astype(int)) - 1
            style = {0.1: ":", 1.0: "--"}.get(promise[0], "-")
            colour = {"ours": "reticent", "paper": "paper"}.get(method, "truth")
            if method == "ours":
                label = f"ε={promise[0]:g}"
            else:
                label = f"{method}"
            lines.append(
                Line(label, mean[at].tolist(), (at + 1).tolist(), colour=colour, style=style)
            )
        lines.append(Line("random", at.tolist(), (at + 1).tolist(), colour="naive"))
        panels.append(Panel(name, lines, {"xlabel": "round", "ylabel": "regret, in random rounds"}))
    return draw(out / "regret.png", [panels])
