"""What missing values do to GPRegressor and GPClassifier.

Outputs (labels) or inputs are missing at random in a share of the records, which add nothing then.
The function must not move, bands must cover as they do without missing values, and the number of
complete records must be found. A number (age) and two words (sex) as inputs, ε = 1, δ = 1e-6.

Bias: the mean of the errors over all places and repeats, and its standard error over repeats; and
what missing values add to it, against the same records, noise and function without missing values.
"""

import math
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from reticent.models.gp.classifier import GPClassifier
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

_N = 8000
_QUICK_N = 1500
_EPSILON = 1.0
_DELTA = 1e-6
_SHARES = (0.0, 0.1, 0.3, 0.6)
_MODELS = ("regression", "classification")
_WHERE = ("outputs", "inputs")
_SIGMA = 0.3
_COVERAGE = (0.93, 0.97)
_ERRORS = 2.0  # standard errors within which a bias may be
_X = [(0.0, 100.0), ["F", "M"]]  # age and sex


class _Trial(NamedTuple):
    bias: float
    rmse: float
    coverage: float
    counted: float  # error of the number of complete records, in its own standard deviations
    width: float  # mean half-width of the bands


class _Truth:
    """A smooth function of age for each sex, drawn at random; not centred in its range."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._phases = rng.uniform(0, 2 * math.pi, 2)
        self._slopes = rng.normal(0, 0.5, 2)
        self._levels = 0.8 + rng.normal(0, 0.3, 2)

    def __call__(self, age: Array, male: NDArray[np.bool_]) -> Array:
        sex = male.astype(np.intp)
        u = age / 50 - 1
        waves = 0.5 * np.sin(2.5 * u + self._phases[sex])
        return np.asarray(self._levels[sex] + self._slopes[sex] * u + waves)


def _table(age: Array, male: NDArray[np.bool_]) -> NDArray[Any]:
    """The inputs as people have them."""
    table = np.empty((len(age), 2), dtype=object)
    table[:, 0] = age
    table[:, 1] = np.where(male, "M", "F")
    return table


def _trial(model: str, where: str, share: float, n: int, rng: np.random.Generator) -> _Trial:
    # what is missing changes nothing else: function, records and privacy noise are the same
    streams = rng.spawn(6)
    truth = _Truth(streams[0])
    age = streams[1].uniform(0, 100, n)
    male = streams[1].random(n) < 0.4
    table = _table(age, male)
    missing = streams[2].random(n) < share
    if where == "inputs":
        missing = streams[5].random(n) < share
        column = streams[5].integers(0, 2, n)
        table[missing & (column == 0), 0] = np.nan
        table[missing & (column == 1), 1] = "not asked"
    at = np.tile(np.linspace(2, 98, 25), 2)
    who = np.arange(50) >= 25
    exact = truth(at, who)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "About", UserWarning)
        if model == "regression":
            outputs = truth(age, male) + _SIGMA * streams[3].normal(size=n)
            if where == "outputs":
                outputs[missing] = np.nan
            bounds = Bounds(x=_X, y=(-3.0, 3.0))
            fitted = GPRegressor(
                bounds=bounds, epsilon=_EPSILON, delta=_DELTA, random_state=streams[4]
            ).fit(table, outputs)
            mean, sd = fitted.predict(_table(at, who), return_std=True)
            low = mean - 1.96 * sd
            high = mean + 1.96 * sd
        else:
            ill = streams[3].random(n) < expit(truth(age, male))
            labels = np.where(ill, "ill", "well").astype(object)
            if where == "outputs":
                labels[missing] = "?"
            bounds = Bounds(x=_X, classes=["well", "ill"])
            fitted = GPClassifier(
                bounds=bounds, epsilon=_EPSILON, delta=_DELTA, random_state=streams[4]
            ).fit(table, labels)
            exact = expit(exact)
            queries = _table(at, who)
            mean = fitted.predict_proba(queries)[:, 1]
            low, high = (ends[:, 1] for ends in fitted.predict_proba_band(queries))
    error = mean - exact
    counted = (fitted.n_complete_ - float((~missing).sum())) / max(fitted.n_complete_sd_, 1.0)
    return _Trial(
        float(error.mean()),
        float(np.sqrt(np.mean(error**2))),
        float(np.mean((low <= exact) & (exact <= high))),
        counted,
        float(np.mean(high - low) / 2),
    )


Cell = tuple[str, str, float]


def run(out: Path, *, repeats: int, quick: bool, seed: int, progress: Progress) -> Findings:
    """Compute and tabulate."""
    shares: tuple[float, ...] = _SHARES
    n = _N
    if quick:
        shares = (_SHARES[0], _SHARES[2])
        n = _QUICK_N
    cells: list[Cell] = []
    for model in _MODELS:
        cells.append((model, "nothing", 0.0))
        cells += [(model, where, share) for where in _WHERE for share in shares if share]
    trials: dict[Cell, list[_Trial]] = {cell: [] for cell in cells}
    for done, (repeat, cell) in enumerate((r, c) for r in range(repeats) for c in cells):
        model, where, share = cell
        progress(done, repeats * len(cells), f"{model}, {share:.0%} of {where} missing")
        rng = np.random.default_rng([seed, repeat])
        trials[cell].append(_trial(model, where, share, n, rng))
    claims = []
    if not quick:
        claims = [claim for cell in cells for claim in _claims(cell, trials)]
    findings = Findings(
        "Missing values",
        [_record(cell, n, found) for cell, found in trials.items()],
        [_result_table(model, trials) for model in _MODELS],
        claims,
        [
            f"{n:,} records, ε={_EPSILON:g}, δ={_DELTA:g}; {times(repeats)}, seed {seed}. Error "
            "and coverage are of the function (of the probability), at 50 places over both sexes."
        ],
        [],
    )
    findings.write(out)
    return findings


def _mean(trials: Sequence[_Trial], name: str) -> float:
    return float(np.mean([getattr(one, name) for one in trials]))


def _record(cell: Cell, n: int, trials: Sequence[_Trial]) -> dict[str, Value]:
    model, where, share = cell
    bias, error = mean_error(one.bias for one in trials)
    return {
        "model": model,
        "missing": where,
        "share": share,
        "records": n,
        "repeats": len(trials),
        "bias": bias,
        "bias_error": error,
        "rmse": _mean(trials, "rmse"),
        "coverage": _mean(trials, "coverage"),
        "band": _mean(trials, "width"),
        "count_rms": float(np.sqrt(np.mean([one.counted**2 for one in trials]))),
    }


def _result_table(model: str, trials: dict[Cell, list[_Trial]]) -> ResultTable:
    rows = []
    for (one, where, share), found in trials.items():
        if one != model:
            continue
        bias, error = mean_error(trial.bias for trial in found)
        rows.append(
            (
                f"{share:.0%} of {where}",
                f"{bias:+.4f} ± {error:.4f}",
                f"{_mean(found, 'rmse'):.4f}",
                f"{_mean(found, 'width'):.4f}",
                f"{_mean(found, 'coverage'):.3f}",
                f"{np.sqrt(np.mean([trial.counted**2 for trial in found])):.2f}",
            )
        )
    headings = ("missing", "bias", "RMSE", "band ±", "cover", "count, rms error in its sd")
    return ResultTable(f"GP {model}", headings, rows)


def _claims(cell: Cell, trials: dict[Cell, list[_Trial]]) -> list[Claim]:
    model, where, share = cell
    found = trials[cell]
    what = f"{model}, {share:.0%} of {where} missing"
    bias, error = mean_error(one.bias for one in found)
    claims = [
        Claim(
            f"{what}: no bias, within two standard errors",
            f"{bias:+.4f} ± {error:.4f}",
            abs(bias) <= _ERRORS * error,
        )
    ]
    if share:
        complete = trials[model, "nothing", 0.0]
        added, error = mean_error(
            one.bias - other.bias for one, other in zip(found, complete, strict=True)
        )
        claims.append(
            Claim(
                f"{what}: missing values add no bias, within two standard errors",
                f"{added:+.4f} ± {error:.4f}",
                abs(added) <= _ERRORS * error,
            )
        )
    coverage, spread = mean_error(one.coverage for one in found)
    low, high = _COVERAGE
    claims.append(
        Claim(
            f"{what}: 95 % bands cover {low:.2f} to {high:.2f}",
            f"{coverage:.3f} ± {spread:.3f}",
            low <= coverage <= high,
        )
    )
    return claims
