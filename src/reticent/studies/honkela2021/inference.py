"""Honkela et al., Secs 6.1 and 6.2 (Fig 1).

Error and 95 % coverage of a private Gaussian process, ours and the paper's. Both know the kernel
and the noise level, as in the paper; δ = 1e-4. The error is that of the mean to the true function;
coverage is that of the function by its band, and of noisy test outputs by the band with the
observation noise.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from reticent.studies.common.figures import Band, Line, Panel, draw
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
from reticent.studies.honkela2021.data import DELTA, EPSILONS, HALF, SETUPS, Data, Setup
from reticent.studies.honkela2021.methods import Predict, paper, reticent

__all__ = ["run"]

_LEVEL = 1.96
_ERROR = " ± standard error"  # of several repeats
_METHODS = {"reticent": reticent, "paper": paper}
# Errors of a reference implementation of staged releases, at each ε: ours must be no worse.
_REFERENCE = {
    "6.1, σ=0.1": (0.195, 0.081, 0.037, 0.022, 0.015),
    "6.2, σ=0.1": (0.566, 0.247, 0.102, 0.060, 0.043),
    "6.2, σ=1": (0.718, 0.399, 0.243, 0.180, 0.150),
}
_WELL = (0.93, 0.97)  # coverage of 95 % bands


class Trial(NamedTuple):
    """What one fit measured."""

    rmse: float
    coverage: float  # of the function
    outputs: float  # coverage of noisy outputs


Trials = dict[tuple[str, str, float], list[Trial]]  # by setting, method, ε


def run(out: Path, *, repeats: int, quick: bool, seed: int, progress: Progress) -> Findings:
    """Compute, tabulate and draw."""
    setups, epsilons = (SETUPS[:2], EPSILONS[::2]) if quick else (SETUPS, EPSILONS)
    cells = [
        (setup, epsilon, repeat)
        for setup in setups
        for epsilon in epsilons
        for repeat in range(repeats)
    ]
    trials: Trials = {}
    for done, (setup, epsilon, repeat) in enumerate(cells):
        progress(done, len(cells), f"{setup.name}, ε={epsilon:g}")
        rng = np.random.default_rng([seed, repeat, SETUPS.index(setup)])
        data = setup.draw(rng)
        for name, method in _METHODS.items():
            found = _measure(method(setup, data, epsilon, rng), setup, data)
            trials.setdefault((setup.name, name, epsilon), []).append(found)
    records = [_record(key, values) for key, values in trials.items()]
    return Findings(
        "Private Gaussian processes: error and coverage (Honkela, Fig 1)",
        records,
        [
            _table(
                f"Mean RMSE to the function{_ERROR if repeats > 1 else ''}",
                "rmse",
                trials,
                setups,
                epsilons,
            ),
            _table("Share of the function inside 95 % bands", "coverage", trials, setups, epsilons),
            _table(
                "Share of noisy test outputs inside 95 % bands", "outputs", trials, setups, epsilons
            ),
        ],
        [] if quick else judge(trials, setups, epsilons),
        [
            f"δ = {DELTA:g}, {times(repeats)}, seed {seed}. The paper's variant is as printed; it "
            "is not a private release to use."
        ],
        [_errors(out, trials, setups, epsilons), _posteriors(out, seed, epsilons)],
    ).write(out)


def _measure(predict: Predict, setup: Setup, data: Data) -> Trial:
    mean, sd = predict(data.at)
    error = np.abs(mean - data.truth(data.at))
    noisy = np.abs(mean - data.y_at)
    return Trial(
        float(np.sqrt(np.mean(error**2))),
        float(np.mean(error < _LEVEL * sd)),
        float(np.mean(noisy < _LEVEL * np.hypot(sd, setup.sigma))),
    )


def _record(key: tuple[str, str, float], trials: Sequence[Trial]) -> dict[str, Value]:
    rmse, error = mean_error(one.rmse for one in trials)
    return {
        "setting": key[0],
        "method": key[1],
        "epsilon": key[2],
        "repeats": len(trials),
        "rmse": rmse,
        "rmse_error": error,
        "coverage": mean_error(one.coverage for one in trials)[0],
        "coverage_of_outputs": mean_error(one.outputs for one in trials)[0],
    }


def _table(
    title: str, what: str, trials: Trials, setups: Sequence[Setup], epsilons: Sequence[float]
) -> ResultTable:
    rows = []
    for setup in setups:
        for method in _METHODS:
            cells = [
                [getattr(one, what) for one in trials[setup.name, method, epsilon]]
                for epsilon in epsilons
            ]
            words = [
                plus_minus(cell) if what == "rmse" else f"{np.mean(cell):.3f}" for cell in cells
            ]
            rows.append((setup.name, method, *words))
    return ResultTable(
        title, ("setting", "method", *(f"ε={epsilon:g}" for epsilon in epsilons)), rows, left=2
    )


def judge(trials: Trials, setups: Sequence[Setup], epsilons: Sequence[float]) -> list[Claim]:
    """Claims, each kept or not by these results."""
    claims = []
    for setup in setups:
        ours = {
            e: mean_error(one.rmse for one in trials[setup.name, "reticent", e]) for e in epsilons
        }
        theirs = mean_error(one.rmse for one in trials[setup.name, "paper", 10.0])[0]
        if setup.name in _REFERENCE:
            excess = [
                (
                    ours[epsilon][0] - value - 2 * ours[epsilon][1],
                    f"{ours[epsilon][0]:.3f} at ε={epsilon:g}",
                )
                for epsilon, value in zip(EPSILONS, _REFERENCE[setup.name], strict=True)
                if epsilon in epsilons
            ]
            worse = [words for amount, words in excess if amount > 0]
            claim = f"{setup.name}: no worse than the reference within 2 standard errors"
            claims.append(Claim(claim, ", ".join(worse) or "at every ε", not worse))
        reached = [epsilon for epsilon in epsilons if ours[epsilon][0] <= theirs]
        if reached:
            found = f"{theirs:.3f} from ε={min(reached):g}"
        else:
            found = f"{theirs:.3f} at no ε"
        claim = f"{setup.name}: the paper's error at ε=10 at ε=1 or less"
        claims.append(Claim(claim, found, min(reached, default=99.0) <= 1))
        if setup.section == "6.2":
            covers = [
                float(np.mean([one.coverage for one in trials[setup.name, "reticent", e]]))
                for e in epsilons
            ]
            inside = all(_WELL[0] <= round(share, 3) <= _WELL[1] for share in covers)
            found = f"{min(covers):.3f} to {max(covers):.3f}"
            claims.append(
                Claim(
                    f"{setup.name}: 95 % bands cover {_WELL[0]} to {_WELL[1]} at every ε",
                    found,
                    inside,
                )
            )
    return claims


def _errors(out: Path, trials: Trials, setups: Sequence[Setup], epsilons: Sequence[float]) -> Path:
    panels = []
    for what, label in (("rmse", "RMSE"), ("coverage", "coverage of 95 % bands")):
        row = []
        for setup in setups:
            if what == "coverage":
                lines = [Line("95 %", [0.95], colour="truth", style=":")]
            else:
                lines = []
            for method in _METHODS:
                found = [
                    mean_error(getattr(o, what) for o in trials[setup.name, method, e])
                    for e in epsilons
                ]
                means, errors = zip(*found, strict=True)
                lines.append(Line(method, means, epsilons, errors, method, marker="o"))
            limits = {"yscale": "log"} if what == "rmse" else {"ylim": (0, 1.03)}
            row.append(
                Panel(
                    setup.name, lines, {"xscale": "log", "xlabel": "ε", "ylabel": label, **limits}
                )
            )
        panels.append(row)
    return draw(out / "errors.png", panels)


def _posteriors(out: Path, seed: int, epsilons: Sequence[float]) -> Path:
    """Fig 1: both posteriors of Sec 6.1 at each ε, with bands of two standard deviations."""
    setup = SETUPS[0]
    at = np.linspace(-HALF, HALF, 200)
    rows: list[list[Panel]] = []
    for name, method in _METHODS.items():
        row = []
        for epsilon in epsilons:
            rng = np.random.default_rng([seed, 0, 0])
            data = setup.draw(rng)
            predict = method(setup, data, epsilon, rng)
            mean, sd = predict(at)
            parts: list[Band | Line] = [
                Band(f"{name}: mean ± 2 sd", at, mean - 2 * sd, mean + 2 * sd, name),
                Line("truth", data.truth(at).tolist(), at.tolist(), colour="truth"),
                Line(name, mean.tolist(), at.tolist(), colour=name),
            ]
            if name == "paper":
                dots = predict(np.array(setup.inducing))[0]
                parts.append(
                    Line(
                        "inducing points",
                        dots.tolist(),
                        setup.inducing,
                        colour="dots",
                        style="",
                        marker="o",
                    )
                )
            row.append(
                Panel(f"{name}, ε={epsilon:g}", parts, {"ylim": (-0.9, 1.5), "xlim": (-HALF, HALF)})
            )
        rows.append(row)
    return draw(out / "posteriors.png", rows)
