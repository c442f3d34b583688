"""Figs 2 and 3 of the DP-EM paper on stand-ins.

Test log-likelihood per record against ε, by the paper's scheme and by ours. A tenth of the records
is put aside for testing. δ = 1e-4, as in the paper.
"""

import warnings
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from reticent.models.mixtures.gaussian_mixture import GaussianMixture
from reticent.privacy.bounds import Bounds
from reticent.studies.common.results import (
    Claim,
    Findings,
    Progress,
    ResultTable,
    Value,
    mean_error,
    plus_minus,
    times,
)
from reticent.studies.park2017.as_printed import COMPOSITIONS, literal_mixture, multiplier
from reticent.studies.park2017.data import LIFE, STROKE, Kind

__all__ = ["run"]

Array = NDArray[np.float64]
EPSILONS = (0.1, 0.3, 0.5, 1.0, 2.0, 4.0)
_DELTA = 1e-4
LEAST = {  # asked of ours at each ε
    LIFE.name: (9.2, 10.5, 10.6, 10.6, 10.6, 10.6),
    STROKE.name: (None, 223.0, 228.0, 234.0, 238.0, 242.0),
}
_QUICK = 3000
OURS = "ours"
ONE_NORMAL = "ours, one normal law"
_TRUTH = "the law itself"
_PLAIN = "normal law without privacy"

Trials = dict[tuple[str, str, float], list[float]]  # by data, method, ε


def run(out: Path, *, repeats: int, quick: bool, seed: int, progress: Progress) -> Findings:
    """Compute and tabulate."""
    kinds = (LIFE,) if quick else (LIFE, STROKE)
    epsilons = (4.0,) if quick else EPSILONS
    trials: Trials = {}
    cells = [(kind, repeat) for kind in kinds for repeat in range(repeats)]
    for done, (kind, repeat) in enumerate(cells):
        progress(done, len(cells), f"{kind.name}, repeat {repeat + 1}")
        _trial(kind, epsilons, seed + repeat, _QUICK if quick else None, trials)
    return Findings(
        "DP-EM: mixtures of normal laws",
        [_record(key, values) for key, values in trials.items()],
        [_table(kind, trials, epsilons) for kind in kinds],
        [] if quick else judge(trials),
        [
            f"δ = {_DELTA:g}, {times(repeats)}, data and noise from seed {seed}. The paper's "
            f"scheme: {LIFE.name} only."
        ],
    ).write(out)


def _trial(
    kind: Kind, epsilons: tuple[float, ...], seed: int, n: int | None, trials: Trials
) -> None:
    """All methods on one draw of the data."""
    X, law = kind.draw(seed, n)
    known, new = np.split(X, [int(0.9 * len(X))])

    def add(method: str, epsilon: float, score: float) -> None:
        trials.setdefault((kind.name, method, epsilon), []).append(score)

    bounds = Bounds(x=[(-1, 1)] * kind.d, norm=1.0)
    rng = np.random.default_rng(seed)
    covariance = np.cov(known.T)
    mean = known.mean(axis=0)
    away = (new - mean) @ np.linalg.inv(np.linalg.cholesky(covariance)).T
    plain = -((away**2).sum(axis=1).mean() + np.linalg.slogdet(2 * np.pi * covariance)[1]) / 2
    for epsilon in epsilons:
        add(_TRUTH, epsilon, float(law.score(new).mean()))
        add(_PLAIN, epsilon, float(plain))
        for method, parts in ((OURS, kind.parts), (ONE_NORMAL, 1)):
            model = GaussianMixture(
                parts, bounds=bounds, epsilon=epsilon, delta=_DELTA, random_state=seed
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that the paper's δ is large for so many records
                add(method, epsilon, model.fit(known).score(new))
        for name in COMPOSITIONS if kind is LIFE else ():
            uses = kind.steps * (2 * kind.parts + 1)
            noise = multiplier(name, epsilon, _DELTA, uses, kind.each_delta)
            add(
                name,
                epsilon,
                float(literal_mixture(known, kind.parts, kind.steps, noise, rng).score(new).mean()),
            )


def _record(key: tuple[str, str, float], values: list[float]) -> dict[str, Value]:
    mean, error = mean_error(values)
    return {
        **dict(zip(("data", "method", "epsilon"), key, strict=True)),
        "score": mean,
        "score_error": error,
    }


def _table(kind: Kind, trials: Trials, epsilons: tuple[float, ...]) -> ResultTable:
    methods = [
        m
        for m in (*COMPOSITIONS, ONE_NORMAL, OURS, _PLAIN, _TRUTH)
        if (kind.name, m, epsilons[0]) in trials
    ]
    rows = [
        (method, *(plus_minus(trials[kind.name, method, e], 2) for e in epsilons))
        for method in methods
    ]
    title = f"{kind.name}: test log-likelihood per record"
    return ResultTable(title, ("method", *(f"ε={epsilon:g}" for epsilon in epsilons)), rows)


def judge(trials: Trials) -> list[Claim]:
    """Claims, each kept or not by these results."""
    claims = []
    for name, asked in LEAST.items():
        for epsilon, least in zip(EPSILONS, asked, strict=True):
            ours, error = mean_error(trials[name, OURS, epsilon])
            one, _ = mean_error(trials[name, ONE_NORMAL, epsilon])
            found = f"{ours:.2f} ± {error:.2f}, one normal law {one:.2f}"
            if least is not None:
                claims.append(
                    Claim(f"{name}, ε={epsilon:g}: at least {least:g}", found, ours >= least)
                )
                claims.append(
                    Claim(f"{name}, ε={epsilon:g}: not below one normal law", found, ours >= one)
                )
    return claims
