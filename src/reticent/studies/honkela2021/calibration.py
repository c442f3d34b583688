"""Honkela et al., Sec 6.2 (Fig 2).

How often a band of level α holds, ours, the paper's, and the paper's naive one without S₂. The
paper asks for "test set points within the central high posterior density region": here both
readings, the function by its band, and noisy test outputs by the band with the observation noise.
δ = 1e-4.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from reticent.studies.common.figures import Line, Panel, draw
from reticent.studies.common.results import (
    Claim,
    Findings,
    Progress,
    ResultTable,
    Value,
    mean_error,
    times,
)
from reticent.studies.honkela2021.data import DELTA, EPSILONS, SETUPS, Data, Setup
from reticent.studies.honkela2021.methods import literal, reticent

__all__ = ["run"]

Array = NDArray[np.float64]

LEVELS = (0.1, 0.25, 0.5, 0.68, 0.8, 0.9, 0.95, 0.99)
_SHOWN = (0.5, 0.8, 0.95)  # in the picture like the paper's
METHODS = ("reticent", "paper", "naive")
_TARGETS = ("function", "outputs")
_FAR = 0.05  # largest difference between level and coverage at level 0.9 and more

Shares = dict[
    tuple[str, str, float, str], list[Array]
]  # by setting, method, ε, target: shares at all levels, per repeat


def run(out: Path, *, repeats: int, quick: bool, seed: int, progress: Progress) -> Findings:
    """Compute, tabulate and draw."""
    setups = [setup for setup in SETUPS if setup.section == "6.2"][: 1 if quick else None]
    epsilons = EPSILONS[::2] if quick else EPSILONS
    cells = [
        (setup, epsilon, repeat)
        for setup in setups
        for epsilon in epsilons
        for repeat in range(repeats)
    ]
    shares: Shares = {}
    for done, (setup, epsilon, repeat) in enumerate(cells):
        progress(done, len(cells), f"{setup.name}, ε={epsilon:g}")
        rng = np.random.default_rng([seed, repeat, SETUPS.index(setup), 2])
        data = setup.draw(rng)
        for method, mean, sd in _predictions(setup, data, epsilon, rng):
            for target, far in _distances(mean, sd, setup, data).items():
                found = np.array([np.mean(far < ndtri((1 + level) / 2)) for level in LEVELS])
                shares.setdefault((setup.name, method, epsilon, target), []).append(found)
    return Findings(
        "Private Gaussian processes: calibration (Honkela, Fig 2)",
        list(_records(shares)),
        [coverage_table(target, shares, setups, epsilons) for target in _TARGETS],
        [] if quick else judge(shares, setups, epsilons),
        [
            f"δ = {DELTA:g}, {times(repeats)}, seed {seed}. The paper's are as printed, not "
            "private releases to use."
        ],
        [_like_the_paper(out, shares, setups, epsilons), _curves(out, shares, setups)],
    ).write(out)


def _predictions(
    setup: Setup, data: Data, epsilon: float, rng: np.random.Generator
) -> Iterator[tuple[str, Array, Array]]:
    yield "reticent", *reticent(setup, data, epsilon, rng)(data.at)
    model = literal(setup, data, epsilon, rng)
    yield "paper", *model.predict(data.at)
    yield "naive", *model.predict(data.at, aware=False)


def _distances(mean: Array, sd: Array, setup: Setup, data: Data) -> dict[str, Array]:
    """How far off the truth is, in standard deviations."""
    least = np.maximum(sd, 1e-12)  # the paper's can be zero
    return {
        "function": np.abs(mean - data.truth(data.at)) / least,
        "outputs": np.abs(mean - data.y_at) / np.hypot(sd, setup.sigma),
    }


def _records(shares: Shares) -> Iterator[dict[str, Value]]:
    for (setup, method, epsilon, target), found in shares.items():
        for level, values in zip(LEVELS, np.array(found).T, strict=True):
            mean, error = mean_error(values)
            labels: dict[str, Value] = {
                "setting": setup,
                "method": method,
                "epsilon": epsilon,
                "target": target,
            }
            yield {
                **labels,
                "level": level,
                "repeats": len(found),
                "coverage": mean,
                "coverage_error": error,
            }


def coverage_table(
    target: str, shares: Shares, setups: Sequence[Setup], epsilons: Sequence[float]
) -> ResultTable:
    """Coverage of nominal 95 % intervals, by setting, method and ε."""
    place = LEVELS.index(0.95)
    rows = []
    for setup in setups:
        for method in METHODS:
            found = [
                mean_error(one[place] for one in shares[setup.name, method, e, target])[0]
                for e in epsilons
            ]
            rows.append((setup.name, method, *(f"{share:.3f}" for share in found)))
    title = {"function": "the function", "outputs": "noisy test outputs"}[target]
    headings = ("setting", "method", *(f"ε={e:g}" for e in epsilons))
    return ResultTable(f"Share of {title} inside 95 % bands", headings, rows, left=2)


def judge(shares: Shares, setups: Sequence[Setup], epsilons: Sequence[float]) -> list[Claim]:
    """Claims, each kept or not by these results."""
    worst = {}
    for method in METHODS[:2]:
        mean = [
            np.mean(shares[setup.name, method, e, "function"], axis=0)
            for setup in setups
            for e in epsilons
        ]
        high = [i for i, level in enumerate(LEVELS) if level >= 0.9]
        worst[method] = float(np.abs(np.array(mean)[:, high] - np.array(LEVELS)[high]).max())
    found = f"at most {worst['reticent']:.3f} off (the paper's {worst['paper']:.3f})"
    claim = f"bands of level 0.9 and more are off by at most {_FAR} at every ε and σ"
    return [Claim(claim, found, worst["reticent"] <= _FAR)]


def _like_the_paper(
    out: Path, shares: Shares, setups: Sequence[Setup], epsilons: Sequence[float]
) -> Path:
    rows = []
    for setup in setups:
        row = []
        for level in _SHOWN:
            lines = [Line("the band's level", [level], colour="truth", style=":")]
            for method in METHODS:
                found = [
                    np.array(shares[setup.name, method, e, "function"])[:, LEVELS.index(level)]
                    for e in epsilons
                ]
                means, errors = zip(*(mean_error(values) for values in found), strict=True)
                lines.append(Line(method, means, epsilons, errors, method, marker="o"))
            options = {"xscale": "log", "ylim": (0, 1.03), "xlabel": "ε", "ylabel": "coverage"}
            row.append(Panel(f"α={level:g}, σ={setup.sigma:g}", lines, options))
        rows.append(row)
    return draw(out / "coverage.png", rows)


def _curves(out: Path, shares: Shares, setups: Sequence[Setup]) -> Path:
    """Coverage against level at ε = 1: of the function above, of outputs below."""
    rows = []
    for target in _TARGETS:
        row = []
        for setup in setups:
            lines = [Line("perfect", (0, 1), (0, 1), colour="truth", style=":")]
            for method in METHODS:
                found = np.array(shares[setup.name, method, 1.0, target]).T
                means, errors = zip(*(mean_error(values) for values in found), strict=True)
                lines.append(Line(method, means, LEVELS, errors, method, marker="o"))
            options = {
                "xlabel": "level of the band",
                "ylabel": f"coverage of {target}",
                "ylim": (0, 1.03),
            }
            row.append(Panel(f"ε=1, σ={setup.sigma:g}", lines, options))
        rows.append(row)
    return draw(out / "levels.png", rows)
