"""One fit with a word among its inputs, or a fit for each word.

Whoever asks how an output depends on age, for each sex, can fit one model with sex as an input, or
one model for each sex. The first can borrow what the sexes have in common; it must not lose where
they have nothing in common. Records have an age, a word (2 or 5 levels, uneven shares) and an
output. Between levels the function is the same ("none"), shifted ("shift") or another one
("shapes"). All models are `GPRegressor` with nothing given.

**The price of separate fits.** Each spends the whole ε, on the table of all records in which the
outputs of other levels are missing, so that the number of records of a level is not public there
either. Neighbours differ in one record, which may move from one level to another: two of the fits
then see one record less or more. A stage releases Σffᵀ with ‖f‖² ≤ s, and noise for the
‖ffᵀ − ggᵀ‖ ≤ √2·s of a record that is replaced; the sums of two levels together move by
√(‖f‖⁴ + ‖g‖⁴) ≤ √2·s, the same. So it is with counts of the inputs. Moments of the inputs, which
tell the number of records, move by up to √2 times what their noise is for: they are one or two of
24 releases, so that all separate fits together cost √(25/24) or √(26/24) of a joint fit, in noise
multipliers. This is not taken from them: the comparison favours separate fits by 2 to 4 % of the
noise. (A ledger does not know any of it, and charges each of them.)
"""

import math
import warnings
from collections.abc import Iterable
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reticent.models.base import IncompleteRecords
from reticent.models.gp.regressor import GPRegressor
from reticent.privacy.bounds import Bounds
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

_SHARES = {2: (0.6, 0.4), 5: (0.3, 0.25, 0.2, 0.15, 0.1)}  # of the records, by level
_EFFECTS = ("none", "shift", "shapes")
_RECORDS = (1000, 10_000)
_EPSILONS = (0.3, 1.0, 3.0)
_QUICK_RECORDS = 1000
_DELTA = 1e-6
_SIGMA = 0.3
_SHIFT_SD = 0.4  # of the functions between levels
_COVERAGE = 0.93
_ERRORS = 2.0  # standard errors by which a joint fit may look worse
_AT = np.linspace(2, 98, 25)  # ages
_AGE = (0.0, 100.0)
_Y = (-3.0, 3.0)


class _Trial(NamedTuple):
    joint: float  # RMSE over ages, levels by their shares of the records
    separate: float
    joint_coverage: float
    separate_coverage: float

    @property
    def log_ratio(self) -> float:
        return math.log(self.joint / self.separate)


Cell = tuple[int, str, int, float]  # levels, effect, records, ε


class _Truth:
    """A smooth function of age for each level, drawn at random."""

    def __init__(self, effect: str, levels: int, rng: np.random.Generator) -> None:
        self._slopes = rng.normal(0, 0.5, levels)
        self._phases = rng.uniform(0, 2 * math.pi, levels)
        self._heights = 0.5 + rng.normal(0, 0.3, levels)
        shifts = rng.normal(0, _SHIFT_SD, levels)
        if effect != "shapes":
            self._slopes[:] = self._slopes[0]
            self._phases[:] = self._phases[0]
            self._heights[:] = self._heights[0]
        if effect == "shift":
            self._heights += shifts

    def __call__(self, age: Array, level: NDArray[np.intp]) -> Array:
        u = age / 50 - 1
        waves = 0.5 * np.sin(2.5 * u + self._phases[level])
        return np.asarray(self._heights[level] + self._slopes[level] * u + waves)


def _trial(cell: Cell, seed: int, repeat: int) -> _Trial:
    levels, effect, n, epsilon = cell
    rng = np.random.default_rng([seed, repeat, levels, n])
    truth_rng, record_rng, noise_rng = rng.spawn(3)
    truth = _Truth(effect, levels, truth_rng)
    shares = np.array(_SHARES[levels])
    names = [f"level {one}" for one in range(levels)]
    age = record_rng.uniform(*_AGE, n)
    level = record_rng.choice(levels, n, p=shares)
    outputs = truth(age, level) + _SIGMA * record_rng.normal(size=n)
    places = [np.full(len(_AT), one) for one in range(levels)]
    exact = np.stack([truth(_AT, place) for place in places])
    seeds = [int(one) for one in noise_rng.integers(0, 2**31, levels + 1)]

    joint = _fitted([_AGE, names], _table(age, level, names), outputs, epsilon, seeds[0])
    queries = [_table(_AT, place, names) for place in places]
    joint_error, joint_inside = _compare([joint] * levels, queries, exact)
    parts = []
    for one in range(levels):
        own = np.where(level == one, outputs, np.nan)
        parts.append(_fitted([_AGE], age[:, None], own, epsilon, seeds[one + 1]))
    error, inside = _compare(parts, [_AT[:, None]] * levels, exact)
    return _Trial(
        math.sqrt(float(shares @ joint_error)),
        math.sqrt(float(shares @ error)),
        float(shares @ joint_inside),
        float(shares @ inside),
    )


def _table(age: Array, level: NDArray[np.intp], names: list[str]) -> NDArray[Any]:
    """Ages and words, as people have them."""
    table = np.empty((len(age), 2), dtype=object)
    table[:, 0] = age
    table[:, 1] = np.array(names, dtype=object)[level]
    return table


def _fitted(
    x: list[Any], inputs: NDArray[Any], outputs: Array, epsilon: float, seed: int
) -> GPRegressor:
    model = GPRegressor(bounds=Bounds(x=x, y=_Y), epsilon=epsilon, delta=_DELTA, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IncompleteRecords)
        return model.fit(inputs, outputs)


def _compare(
    models: list[GPRegressor], queries: list[NDArray[Any]], exact: Array
) -> tuple[Array, Array]:
    """Mean squared error of each level (levels,), and the share of ages inside its 95 % bands."""
    errors = []
    inside = []
    for model, at, truth in zip(models, queries, exact, strict=True):
        mean, sd = model.predict(at, return_std=True)
        errors.append(np.mean((mean - truth) ** 2))
        inside.append(np.mean(np.abs(mean - truth) <= 1.96 * sd))
    return np.array(errors), np.array(inside)


def run(out: Path, *, repeats: int, quick: bool, seed: int, progress: Progress) -> Findings:
    """Compute and tabulate."""
    cells: list[Cell] = list(product(_SHARES, _EFFECTS, _RECORDS, _EPSILONS))
    if quick:
        cells = [(2, effect, _QUICK_RECORDS, 1.0) for effect in _EFFECTS]
    trials: dict[Cell, list[_Trial]] = {cell: [] for cell in cells}
    for done, (repeat, cell) in enumerate((r, c) for r in range(repeats) for c in cells):
        levels, effect, n, epsilon = cell
        what = f"{levels} levels, effect {effect}, {n:,} records, ε={epsilon:g}"
        progress(done, repeats * len(cells), what)
        trials[cell].append(_trial(cell, seed, repeat))
    claims = []
    if not quick:
        groups = dict.fromkeys((cell[0], cell[1]) for cell in cells)
        claims = [claim for group in groups for claim in _claims(group, trials)]
    findings = Findings(
        "One fit with a word, or one for each",
        [_record(cell, found) for cell, found in trials.items()],
        [_result_table(trials)],
        claims,
        [
            f"δ={_DELTA:g}, noise {_SIGMA:g}; {times(repeats)}, seed {seed}. Ratio: geometric mean "
            "of the joint fit's RMSE by that of separate fits, on the same records; below 1 the "
            "joint fit is better. Separate fits spend the whole ε each; all together cost 2 to 4 % "
            "more than the joint fit, in noise multipliers. Errors and coverage count levels by "
            "their shares of the records."
        ],
        [],
    )
    findings.write(out)
    return findings


def _mean(trials: Iterable[_Trial], name: str) -> float:
    return float(np.mean([getattr(one, name) for one in trials]))


def _record(cell: Cell, trials: list[_Trial]) -> dict[str, Value]:
    levels, effect, n, epsilon = cell
    log_ratio, error = mean_error(one.log_ratio for one in trials)
    return {
        "levels": levels,
        "effect": effect,
        "records": n,
        "epsilon": epsilon,
        "repeats": len(trials),
        "joint_rmse": _mean(trials, "joint"),
        "separate_rmse": _mean(trials, "separate"),
        "log_ratio": log_ratio,
        "log_ratio_error": error,
        "joint_coverage": _mean(trials, "joint_coverage"),
        "separate_coverage": _mean(trials, "separate_coverage"),
    }


def _ratio(trials: list[_Trial]) -> str:
    log_ratio, error = mean_error(one.log_ratio for one in trials)
    ratio = math.exp(log_ratio)
    if len(trials) == 1:
        return f"{ratio:.2f}"
    return f"{ratio:.2f} ± {ratio * error:.2f}"


def _result_table(trials: dict[Cell, list[_Trial]]) -> ResultTable:
    rows = []
    for (levels, effect, n, epsilon), found in trials.items():
        rows.append(
            (
                str(levels),
                effect,
                f"{n:,}",
                f"{epsilon:g}",
                f"{_mean(found, 'joint'):.3f}",
                f"{_mean(found, 'separate'):.3f}",
                _ratio(found),
                f"{_mean(found, 'joint_coverage'):.2f}",
                f"{_mean(found, 'separate_coverage'):.2f}",
            )
        )
    headings = (
        "levels",
        "effect",
        "records",
        "ε",
        "joint RMSE",
        "separate",
        "ratio",
        "joint bands cover",
        "separate",
    )
    return ResultTable("Joint and separate fits", headings, rows, left=2)


def _as_good(trials: list[_Trial]) -> bool:
    """Whether joint fits are no worse than separate ones, within two standard errors."""
    log_ratio, error = mean_error(one.log_ratio for one in trials)
    return log_ratio <= _ERRORS * error


def _claims(group: tuple[int, str], trials: dict[Cell, list[_Trial]]) -> list[Claim]:
    levels, effect = group
    cells = {cell: found for cell, found in trials.items() if cell[:2] == group}
    pooled = [one for found in cells.values() for one in found]
    worse = [
        f"{n:,} records, ε={epsilon:g}: {_ratio(found)}"
        for (_, _, n, epsilon), found in cells.items()
        if not _as_good(found)
    ]
    coverage, spread = mean_error(one.joint_coverage for one in pooled)
    what = f"{levels} levels, effect {effect}"
    return [
        Claim(
            f"{what}: on average a joint fit is at least as good as separate ones, within two "
            "standard errors",
            f"ratio {_ratio(pooled)}",
            _as_good(pooled),
        ),
        Claim(
            f"{what}: so it is at every number of records and ε",
            "; ".join(worse) or "none is worse",
            not worse,
        ),
        Claim(
            f"{what}: 95 % bands of the joint fit cover at least {_COVERAGE:.2f}",
            f"{coverage:.3f} ± {spread:.3f}",
            coverage >= _COVERAGE,
        ),
    ]
