"""What wrong assumptions do to GPRegressor.

Sec 6.2 of Honkela with one thing wrong at a time, and larger data at growing ε. The kernel and the
noise level are given as in the paper ("given"), or the kernel's family is ("learned"), or nothing
("default"). ε = 1, δ = 1e-4 and n = 512.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

from reticent.models.gp.regressor import GPRegressor
from reticent.privacy.bounds import Bounds
from reticent.studies.common.figures import Line, Panel, draw
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
from reticent.studies.honkela2021.data import DELTA, HALF, prior_draw

__all__ = ["run"]

Array = NDArray[np.float64]

_N = 512
_SIGMA = 0.1
_REACH = 3.0
_EPSILON = 1.0
_LARGE = 20_000
_GROWING = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
_FREE = 1e6  # ε of hardly any privacy noise: what the records themselves leave unknown
MODES = ("given", "learned", "default")
EXACT = "given, no privacy"
_NEAR = 1.2
_MOST = 1.05
_LEAST_COVERAGE = 0.9
# where the error is no larger than so many times that without privacy noise, it need
# not fall further
_FLOOR = 1.1


def _same(values: Array, rng: np.random.Generator) -> Array:
    return values


def _outliers(share: float) -> Callable[[Array, np.random.Generator], Array]:
    def spoil(y: Array, rng: np.random.Generator) -> Array:
        return np.where(rng.random(len(y)) < share, rng.choice([-_REACH, _REACH], len(y)), y)

    return spoil


def _heavy(degrees: int) -> Callable[[int, np.random.Generator], Array]:
    """Student's t with the quartiles of the usual noise."""

    def noise(n: int, rng: np.random.Generator) -> Array:
        return rng.standard_t(degrees, n) * (_SIGMA * 0.67449 / float(student.ppf(0.75, degrees)))

    return noise


def _normal(n: int, rng: np.random.Generator) -> Array:
    return _SIGMA * rng.normal(size=n)


def _uniform(n: int, rng: np.random.Generator) -> Array:
    return rng.uniform(-HALF, HALF, n)


def _clustered(n: int, rng: np.random.Generator) -> Array:
    """Nine of ten around −1, the others around 2."""
    return np.where(rng.random(n) < 0.9, -1.0, 2.0) + 0.15 * rng.normal(size=n)


@dataclass(frozen=True)
class _Case:
    """One thing that is wrong; ``near`` says that the error should stay near that of clean data."""

    name: str
    near: bool = True
    inputs: Callable[[int, np.random.Generator], Array] = _uniform
    noise: Callable[[int, np.random.Generator], Array] = _normal
    spoil: Callable[[Array, np.random.Generator], Array] = _same
    x_half: float = HALF
    y_half: float = _REACH
    present: float = 1.0  # share of the records that are there at all


_CLEAN = _Case("clean")
_CLUSTERS = _Case("inputs in two clusters", near=False, inputs=_clustered)
_FEWER = _Case(
    "a tenth of the records missing", present=0.9
)  # what a tenth of outliers costs who knows them
CASES = (
    _CLEAN,
    _Case("y bounds 10 × too wide", y_half=10 * _REACH),
    _Case("2 % outliers at the bounds", spoil=_outliers(0.02)),
    _Case("10 % outliers at the bounds", spoil=_outliers(0.1)),
    _FEWER,
    _Case("noise of Student's t, 3 degrees", noise=_heavy(3)),
    _Case("noise of Student's t, 2 degrees", noise=_heavy(2)),
    _Case("y bounds 6 × too small", y_half=_REACH / 6),
    _CLUSTERS,
    _Case("half of y beyond its bounds", near=False, y_half=0.67),
    _Case("x bounds 10 × too wide", near=False, x_half=10 * HALF),
)


class Trial(NamedTuple):
    """What one fit measured."""

    rmse: float
    coverage: float
    size: float  # of the function: its root mean square


Trials = dict[tuple[str, str], list[Trial]]


def _trial(case: _Case, mode: str, n: int, epsilon: float, rng: np.random.Generator) -> Trial:
    streams = rng.spawn(
        6
    )  # what a case does not change is the same in all of them, privacy noise included
    truth = prior_draw(streams[0])
    x = np.clip(case.inputs(n, streams[1]), -HALF, HALF)
    at = streams[2].uniform(-HALF, HALF, 512)
    y = case.spoil(truth(x) + case.noise(n, streams[3]), streams[4])
    x = x[: round(case.present * n)]
    y = y[: round(case.present * n)]
    if mode == EXACT:
        mean, sd = _exact(x, y, at)
    else:
        mean, sd = _private(case, mode, epsilon, x, y, at, streams[5])
    error = np.abs(mean - truth(at))
    size = float(np.sqrt(np.mean(truth(at) ** 2)))
    return Trial(float(np.sqrt(np.mean(error**2))), float(np.mean(error < 1.96 * sd)), size)


def _private(
    case: _Case, mode: str, epsilon: float, x: Array, y: Array, at: Array, rng: np.random.Generator
) -> tuple[Array, Array]:
    model = GPRegressor(
        {"given": RBF(1.0, "fixed"), "learned": RBF(1.0), "default": None}[mode],
        noise=_SIGMA if mode == "given" else None,
        bounds=Bounds(x=[(-case.x_half, case.x_half)], y=(-case.y_half, case.y_half)),
        epsilon=epsilon,
        delta=min(DELTA, 0.1 / len(x)),
        random_state=rng,
    ).fit(x[:, None], y)
    mean, sd = model.predict(at[:, None], return_std=True)
    return mean, sd


def _exact(x: Array, y: Array, at: Array) -> tuple[Array, Array]:
    """Regression on the records themselves, without privacy, with the true kernel and noise.

    On average none can do better.
    """
    exact = GaussianProcessRegressor(RBF(1.0, "fixed"), alpha=_SIGMA**2, optimizer=None).fit(
        x[:, None], y
    )
    mean, sd = exact.predict(at[:, None], return_std=True)
    return mean, sd


def run(out: Path, *, repeats: int, quick: bool, seed: int, progress: Progress) -> Findings:
    """Compute, tabulate and draw."""
    cases, growing = (
        (CASES[::3], (*_GROWING[1::3], _FREE)) if quick else (CASES, (*_GROWING, _FREE))
    )
    wrong: Trials = {}
    rising: dict[str, list[list[Trial]]] = {mode: [] for mode in MODES}
    draws = [np.random.default_rng([seed, repeat]) for repeat in range(repeats)]
    wrong[_CLUSTERS.name, EXACT] = [_trial(_CLUSTERS, EXACT, _N, _FREE, rng) for rng in draws]
    total = len(MODES) * repeats * (len(cases) + len(growing))
    done = 0
    for mode in MODES:
        for repeat in range(repeats):
            for case in cases:
                progress(done, total, f"{case.name}, {mode}")
                rng = np.random.default_rng([seed, repeat])
                wrong.setdefault((case.name, mode), []).append(
                    _trial(case, mode, _N, _EPSILON, rng)
                )
                done += 1
            row = []
            for epsilon in growing:
                progress(done, total, f"{_LARGE:,} records, ε={epsilon:g}, {mode}")
                rng = np.random.default_rng([seed, repeat, 1])
                row.append(_trial(_CLEAN, mode, _LARGE, epsilon, rng))
                done += 1
            rising[mode].append(row)
    findings = Findings(
        "GPRegressor when something is wrong, and at growing ε",
        [
            _record(case, mode, _N, _FREE if mode == EXACT else _EPSILON, trials)
            for (case, mode), trials in wrong.items()
        ]
        + [
            _record("clean", mode, _LARGE, epsilon, [row[i] for row in rows])
            for mode, rows in rising.items()
            for i, epsilon in enumerate(growing)
        ],
        [
            *(_wrong_table(wrong, mode) for mode in (*MODES, EXACT)),
            _rising_table(rising, growing),
        ],
        [] if quick else judge(wrong, rising),
        [
            f"{_N} records: ε={_EPSILON:g}, δ={DELTA:g}; {_LARGE:,} records: δ={0.1 / _LARGE:g}; "
            f"{times(repeats)}, seed {seed}. Error and coverage are of the function, at points "
            "that are uniform where the true inputs may be."
        ],
        [_picture(out, rising, growing)],
    )
    findings.write(out)
    return findings


def _record(
    case: str, mode: str, n: int, epsilon: float, trials: Sequence[Trial]
) -> dict[str, Value]:
    rmse, error = mean_error(one.rmse for one in trials)
    return {
        "case": case,
        "hyperparameters": mode,
        "records": n,
        "epsilon": epsilon,
        "repeats": len(trials),
        "rmse": rmse,
        "rmse_error": error,
        "worst_rmse": max(one.rmse for one in trials),
        "worst_to_size": _worst(trials),
        "coverage": _coverage(trials),
    }


def _coverage(trials: Sequence[Trial]) -> float:
    return float(np.mean([one.coverage for one in trials]))


def _ratio(wrong: Trials, case: str, mode: str) -> float:
    ours, clean = ([one.rmse for one in wrong[name, mode]] for name in (case, _CLEAN.name))
    return float(np.mean(ours) / np.mean(clean))


def _worst(trials: Sequence[Trial]) -> float:
    return max(one.rmse / one.size for one in trials)


def _wrong_table(wrong: Trials, mode: str) -> ResultTable:
    rows = []
    for name, trials in ((case, trials) for (case, one), trials in wrong.items() if one == mode):
        errors = plus_minus([one.rmse for one in trials])
        if mode == EXACT:
            ratio = ""
        else:
            ratio = f"{_ratio(wrong, name, mode):.2f}"
        rows.append((name, errors, ratio, f"{_worst(trials):.2f}", f"{_coverage(trials):.3f}"))
    headings = ("one thing wrong", "RMSE", "to clean", "worst to size", "cover")
    return ResultTable(f"One thing wrong, kernel and noise {mode}", headings, rows)


def _rising_table(rising: dict[str, list[list[Trial]]], growing: Sequence[float]) -> ResultTable:
    rows = []
    for mode, found in rising.items():
        columns = list(zip(*found, strict=True))
        rows.append(
            (f"RMSE ({mode})", *(f"{np.mean([one.rmse for one in c]):.4f}" for c in columns))
        )
        rows.append((f"coverage ({mode})", *(f"{_coverage(c):.3f}" for c in columns)))
    headings = ("", *(f"ε={epsilon:g}" if epsilon < _FREE else "no noise" for epsilon in growing))
    return ResultTable(f"Clean, {_LARGE:,} records, at growing ε", headings, rows)


def judge(wrong: Trials, rising: dict[str, list[list[Trial]]]) -> list[Claim]:
    """Claims, each kept or not by these results."""
    claims = []
    for mode in MODES:
        ratio, name = max(
            (_ratio(wrong, case.name, mode), case.name)
            for case in CASES
            if case.near and case != _FEWER
        )
        claim = f"{mode}: RMSE within 20 % of clean whatever is wrong with y"
        fewer = f"{_FEWER.name}: {_ratio(wrong, _FEWER.name, mode):.2f}"
        claims.append(Claim(claim, f"worst {ratio:.2f}, {name}; {fewer}", ratio <= _NEAR))
        covers = [(_coverage(wrong[case.name, mode]), case.name) for case in CASES if not case.near]
        cover, name = min(covers)
        claim = (
            f"{mode}: with clusters, clipped y or too wide a box, 95 % bands "
            f"cover at least {_LEAST_COVERAGE}"
        )
        claims.append(Claim(claim, f"least {cover:.3f}, {name}", cover >= _LEAST_COVERAGE))
        blown = max(_worst(trials) for key, trials in wrong.items() if key[1] == mode)
        least = _worst(
            wrong[_CLUSTERS.name, EXACT]
        )  # where nobody is, even the best guess may be worse than none
        claim = (
            f"{mode}: the error never exceeds the function's size by more than 5 %, or than exact "
            "regression's in clusters"
        )
        claims.append(
            Claim(claim, f"worst {blown:.2f}, exact {least:.2f}", blown <= max(_MOST, least))
        )
        stays = [_stays([one.rmse for one in row]) for row in rising[mode]]
        falls = sum(not one for one in stays)
        well = sum(max(one, default=0.0) <= _FLOOR for one in stays)
        claim = (
            f"{mode}: {_LARGE:,} records, ε times ten: on each draw RMSE falls or is within 10 % "
            "of that without noise"
        )
        highest = max((max(one) for one in stays if one), default=0.0)
        found = (
            f"on {well} of {len(stays)}; falls on {falls}, on the others at "
            f"most {highest:.2f} of that without noise"
        )
        claims.append(Claim(claim, found, well == len(stays)))
    return claims


def _stays(errors: Sequence[float]) -> list[float]:
    """Where errors, at ε in steps of half a decade, do not fall over a decade.

    Their ratios to the last, without noise.
    """
    *private, floor = errors
    return [
        later / floor
        for earlier, later in zip(private, private[2:], strict=False)
        if later >= earlier
    ]


def _picture(out: Path, rising: dict[str, list[list[Trial]]], growing: Sequence[float]) -> Path:
    panels = []
    for mode, rows in rising.items():
        private = growing[:-1]
        lines = [
            Line("each draw", [one.rmse for one in row[:-1]], private, colour="naive")
            for row in rows
        ]
        found = [mean_error(one.rmse for one in column) for column in zip(*rows, strict=True)]
        means, errors = zip(*found[:-1], strict=True)
        lines.append(Line("mean", means, private, errors, marker="o"))
        lines.append(Line("mean, no noise", [found[-1][0]], colour="truth", style="--"))
        options = {"xscale": "log", "yscale": "log", "xlabel": "ε", "ylabel": "RMSE"}
        panels.append(Panel(f"{_LARGE:,} records, {mode}", lines, options))
    return draw(out / "growing.png", [panels])
