"""GPRegressor in one to eight dimensions.

Its error relative to a mean of all outputs that is released with the same promise. Functions are
drawn from Gaussian processes with random length scales for each input (by random Fourier features),
log-uniform between a quarter of the box and 2.5 boxes. The model is given no kernel ("default"), or
the family without its scales ("family"), which it learns, or takes the mean of ("average", in some
cells). δ = 1e-6, outputs within ±3, observation noise 0.1.
"""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import RBF

from reticent.models.descriptive.mean import PrivateMean
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
    times,
)

__all__ = ["run"]

Array = NDArray[np.float64]

DIMENSIONS = (1, 2, 4, 8)
RECORDS = (2_000, 20_000, 200_000)
EPSILONS = (0.1, 1.0)
_DELTA = 1e-6
_SIGMA = 0.1
_REACH = 3.0
# length scales; the box is [−1, 1]ᵈ
_SHORT = 0.5
_LONG = 5.0
_WAVES = 400
KERNELS = ("default", "family")
AVERAGE = "average"
MOST = 1.05


class Trial(NamedTuple):
    """What one fit measured."""

    rmse: float
    relative: float
    coverage: float


Key = tuple[int, int, float, str]  # dimension, records, ε, kernel


def random_function(d: int, rng: np.random.Generator) -> Callable[[Array], Array]:
    """A sum of cosines whose lengthscales, one an input, are drawn."""
    lengths = np.exp(rng.uniform(math.log(_SHORT), math.log(_LONG), d))
    frequencies = rng.normal(size=(d, _WAVES)) / lengths[:, None]
    phases = rng.uniform(0, 2 * math.pi, _WAVES)
    heights = rng.normal(size=_WAVES) * math.sqrt(2 / _WAVES)

    # cosines in single precision take a tenth of the time, and their sum is exact to 1e-5
    waves = [one.astype(np.float32) for one in (frequencies, phases, heights)]

    def value(x: Array) -> Array:
        blocks = np.array_split(x.astype(np.float32), -(-len(x) // 2000))
        return np.concatenate(
            [np.cos(block @ waves[0] + waves[1]) @ waves[2] for block in blocks]
        ).astype(np.float64)

    return value


def _trial(key: Key, rng: np.random.Generator) -> Trial:
    d, n, epsilon, kernel = key
    truth = random_function(d, rng)
    x = rng.uniform(-1, 1, (n, d))
    at = rng.uniform(-1, 1, (1000, d))
    y = truth(x) + _SIGMA * rng.normal(size=n)
    expected = truth(at)
    middle = math.sqrt(_SHORT * _LONG)
    model = GPRegressor(
        None if kernel == "default" else RBF([middle] * d, (_SHORT, _LONG)),
        bounds=Bounds(x=[(-1, 1)] * d, y=(-_REACH, _REACH)),
        epsilon=epsilon,
        delta=_DELTA,
        random_state=rng,
        learn_kernel="average" if kernel == AVERAGE else True,
    ).fit(x, y)
    mean, sd = model.predict(at, return_std=True)
    level = PrivateMean(
        bounds=Bounds(x=[(-_REACH, _REACH)]), epsilon=epsilon, delta=_DELTA, random_state=rng
    )
    spread = math.hypot(float(expected.std()), float(level.fit(y[:, None]).mean_sd_[0]))
    error = np.abs(mean - expected)
    rmse = float(np.sqrt(np.mean(error**2)))
    return Trial(rmse, rmse / spread, float(np.mean(error < 1.96 * sd)))


def run(out: Path, *, repeats: int, quick: bool, seed: int, progress: Progress) -> Findings:
    """Compute, tabulate and draw."""
    dimensions, records = (DIMENSIONS[:2], RECORDS[:1]) if quick else (DIMENSIONS, RECORDS)
    keys = [
        (d, n, e, kernel)
        for kernel in KERNELS
        for d in dimensions
        for n in records
        for e in EPSILONS
    ]
    keys += [(d, *compared(records), AVERAGE) for d in dimensions]
    cells = [(key, repeat) for key in keys for repeat in range(repeats)]
    trials: dict[Key, list[Trial]] = {}
    for done, (key, repeat) in enumerate(cells):
        progress(done, len(cells), f"{key[0]} inputs, {key[1]:,} records, ε={key[2]:g}, {key[3]}")
        trials.setdefault(key, []).append(
            _trial(key, np.random.default_rng([seed, repeat, key[0]]))
        )
    findings = Findings(
        "GPRegressor in one to eight dimensions",
        [_record(key, found) for key, found in trials.items()],
        [
            *(_table(kernel, trials) for kernel in KERNELS),
            _learned(trials, dimensions, *compared(records)),
        ],
        [] if quick else judge(trials),
        [
            f"δ = {_DELTA:g}, {times(repeats)}, seed {seed}. Relative: RMSE by that of predicting "
            "the mean of all outputs, which is released with the same ε and δ; below 1 is better. "
            "Cover: the share of the function inside 95 % bands."
        ],
        [_picture(out, trials, dimensions, records)],
    )
    findings.write(out)
    return findings


def _record(key: Key, trials: Sequence[Trial]) -> dict[str, Value]:
    relative, error = mean_error(one.relative for one in trials)
    return {
        "inputs": key[0],
        "records": key[1],
        "epsilon": key[2],
        "kernel": key[3],
        "repeats": len(trials),
        "rmse": mean_error(one.rmse for one in trials)[0],
        "relative": relative,
        "relative_error": error,
        "worst_relative": max(one.relative for one in trials),
        "coverage": mean_error(one.coverage for one in trials)[0],
    }


def _table(kernel: str, trials: dict[Key, list[Trial]]) -> ResultTable:
    rows = []
    for d, n in dict.fromkeys(key[:2] for key in trials if key[3] == kernel):
        cells: list[str] = []
        for epsilon in EPSILONS:
            found = trials[d, n, epsilon, kernel]
            relative = [one.relative for one in found]
            cover = np.mean([one.coverage for one in found])
            cells += [f"{np.mean(relative):.2f}", f"{max(relative):.2f}", f"{cover:.2f}"]
        rows.append((str(d), f"{n:,}", *cells))
    headings = [word for epsilon in EPSILONS for word in (f"ε={epsilon:g}", "worst", "cover")]
    return ResultTable(
        f"RMSE relative to a private mean, kernel: {kernel}", ("inputs", "records", *headings), rows
    )


def compared(records: Sequence[int]) -> tuple[int, float]:
    """Records and ε with which a learned kernel is compared with the mean of its family."""
    return records[:2][-1], EPSILONS[-1]


def _ratio(trials: dict[Key, list[Trial]], d: int, n: int, epsilon: float) -> float:
    """Errors with the learned kernel by those with the mean of its family: the geometric mean."""
    pairs = zip(trials[d, n, epsilon, "family"], trials[d, n, epsilon, AVERAGE], strict=True)
    return math.exp(np.mean([math.log(learned.rmse / mean.rmse) for learned, mean in pairs]))


def _learned(
    trials: dict[Key, list[Trial]], dimensions: Sequence[int], n: int, epsilon: float
) -> ResultTable:
    rows = []
    for d in dimensions:
        both = [
            mean_error(one.rmse for one in trials[d, n, epsilon, kernel])[0]
            for kernel in ("family", AVERAGE)
        ]
        rows.append(
            (str(d), *(f"{error:.4f}" for error in both), f"{_ratio(trials, d, n, epsilon):.2f}")
        )
    title = f"RMSE of a learned kernel and of the mean of its family, {n:,} records, ε={epsilon:g}"
    return ResultTable(title, ("inputs", "learned", "mean", "ratio"), rows)


def judge(trials: dict[Key, list[Trial]]) -> list[Claim]:
    """Claims, each kept or not by these results."""
    claims = []
    for kernel in KERNELS:
        found = [
            (one.relative, key) for key, cell in trials.items() if key[3] == kernel for one in cell
        ]
        worst, (d, n, epsilon, _) = max(found)
        words = f"worst {worst:.2f}, {d} inputs, {n:,} records, ε={epsilon:g}"
        claims.append(
            Claim(
                f"{kernel}: never worse than a private mean by more than 5 %", words, worst <= MOST
            )
        )
    ratios = {d: _ratio(trials, d, *compared(RECORDS)) for d in DIMENSIONS}
    words = ", ".join(f"{ratio:.2f} with {d}" for d, ratio in ratios.items())
    return [
        *claims,
        Claim(
            "a learned kernel beats the mean of its family, inputs", words, max(ratios.values()) < 1
        ),
    ]


def _picture(
    out: Path, trials: dict[Key, list[Trial]], dimensions: Sequence[int], records: Sequence[int]
) -> Path:
    rows = []
    for kernel in KERNELS:
        row = []
        for d in dimensions:
            lines = [Line("private mean", [1.0], colour="truth", style=":")]
            for epsilon, colour in zip(EPSILONS, ("paper", "reticent"), strict=True):
                found = [
                    mean_error(one.relative for one in trials[d, n, epsilon, kernel])
                    for n in records
                ]
                means, errors = zip(*found, strict=True)
                lines.append(Line(f"ε={epsilon:g}", means, records, errors, colour, marker="o"))
            options = {
                "xscale": "log",
                "yscale": "log",
                "xlabel": "records",
                "ylabel": "relative RMSE",
            }
            row.append(Panel(f"{d} inputs, {kernel}", lines, options))
        rows.append(row)
    return draw(out / "dimensions.png", rows)
