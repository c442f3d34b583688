"""What missing values do to Gaussian-process models.

Outputs (labels) or inputs are missing at random in a share of the records, which add nothing then.
The yardstick is a fit of the complete records alone, in a table that holds no others, with the same
noise: a table in which 30 % lack a value must be as good as a table of the other 70 %. Errors and
bands are compared in pairs. Beside that, each fit by itself: bias, coverage, and whether the number
of complete records is found. A number (age) and two words (sex) as inputs, ε = 1, δ = 1e-6.

Bias: the mean of the errors over all places and repeats, and its standard error over repeats.
"""

import math
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from reticent.models.base import IncompleteRecords
from reticent.models.gp.binned_regressor import BinnedGPRegressor
from reticent.models.gp.classifier import GPClassifier
from reticent.models.gp.label_regressor import LabelGPRegressor
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

_QUICK_SHARE = 5  # of the records, with --quick
_EPSILON = 1.0
_DELTA = 1e-6
_SHARES = (0.0, 0.1, 0.3, 0.6)
_QUICK_SHARES = (0.0, 0.3)
_RECORDS = {
    "GPRegressor": 8000,
    "GPClassifier": 8000,
    "BinnedGPRegressor": 8000,
    "LabelGPRegressor": 400,  # its time grows with the square of the records
}
_MODELS = tuple(_RECORDS)
_ESTIMATORS = {
    "GPRegressor": GPRegressor,
    "BinnedGPRegressor": BinnedGPRegressor,
    "LabelGPRegressor": LabelGPRegressor,
}
# bins by default follow from the public number of records: with others, smaller tables would have
# other bins, and the same noise would fall elsewhere
_BINS = {"bins": [26, None]}  # what 8,000 records have
_SIGMA = 0.3
_COVERAGE = (0.93, 0.97)
_ERRORS = 2.0  # standard errors within which a bias may be
# By how much errors and bands, bias (by the RMSE) and the share of places inside the bands may
# differ from those of the complete records alone, apart from two standard errors. Where the noise
# is the same, standard errors are next to nothing.
_AS_GOOD = 0.05
_SAME_COVERAGE = 0.02
_X = [(0.0, 100.0), ["F", "M"]]  # age and sex
_PLACES = 25  # of each sex


class _Trial(NamedTuple):
    bias: float
    rmse: float
    coverage: float
    width: float  # mean half-width of the bands
    counted: float  # error of the number of complete records, in its own standard deviations


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


def _trial(
    model: str, where: str, share: float, n: int, rng: np.random.Generator, complete_only: bool
) -> _Trial:
    """One fit; with ``complete_only``, to a table that holds the complete records alone."""
    # what is missing changes nothing else: function, records and privacy noise are the same
    streams = rng.spawn(6)
    truth = _Truth(streams[0])
    age = streams[1].uniform(0, 100, n)
    male = streams[1].random(n) < 0.4
    table = _table(age, male)
    if model == "GPClassifier":
        ill = streams[3].random(n) < expit(truth(age, male))
        outputs: NDArray[Any] = np.where(ill, "ill", "well").astype(object)
        no_output: object = "?"
    else:
        outputs = truth(age, male) + _SIGMA * streams[3].normal(size=n)
        no_output = math.nan
    if where == "outputs":
        missing = streams[2].random(n) < share
        outputs[missing] = no_output
    else:
        missing = streams[5].random(n) < share
        column = streams[5].integers(0, 2, n)
        table[missing & (column == 0), 0] = np.nan
        table[missing & (column == 1), 1] = "not asked"
    complete = int((~missing).sum())
    if complete_only:
        table = table[~missing]
        outputs = outputs[~missing]
    at = np.tile(np.linspace(2, 98, _PLACES), 2)
    who = np.arange(2 * _PLACES) >= _PLACES
    exact = truth(at, who)
    queries = _table(at, who)
    options: dict[str, Any] = {"epsilon": _EPSILON, "delta": _DELTA, "random_state": streams[4]}
    if model == "BinnedGPRegressor":
        options |= _BINS
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IncompleteRecords)
        if model == "GPClassifier":
            bounds = Bounds(x=_X, classes=["well", "ill"])
            fitted: Any = GPClassifier(bounds=bounds, **options).fit(table, outputs)
            exact = expit(exact)
            mean = fitted.predict_proba(queries)[:, 1]
            low, high = (ends[:, 1] for ends in fitted.predict_proba_band(queries))
        else:
            bounds = Bounds(x=_X, y=(-3.0, 3.0))
            fitted = _ESTIMATORS[model](bounds=bounds, **options).fit(table, outputs)
            mean, sd = fitted.predict(queries, return_std=True)
            low = mean - 1.96 * sd
            high = mean + 1.96 * sd
    error = mean - exact
    return _Trial(
        float(error.mean()),
        float(np.sqrt(np.mean(error**2))),
        float(np.mean((low <= exact) & (exact <= high))),
        float(np.mean(high - low) / 2),
        (fitted.n_complete_ - complete) / max(fitted.n_complete_sd_, 1.0),
    )


Cell = tuple[str, str, float]  # model, what is missing, in which share of the records


class _Cell(NamedTuple):
    """Trials of a cell, one for each repeat, and beside each a fit of its complete records."""

    found: list[_Trial]
    alone: list[_Trial]  # the same trials where nothing is missing

    def mean(self, name: str) -> float:
        return float(np.mean([getattr(one, name) for one in self.found]))

    def added(self, name: str) -> tuple[float, float]:
        """What missing values add to a number, and its standard error."""
        pairs = zip(self.found, self.alone, strict=True)
        return mean_error(getattr(one, name) - getattr(other, name) for one, other in pairs)

    def log_ratio(self, name: str) -> tuple[float, float]:
        """Logarithm of a number by that of the complete records alone, and its standard error."""
        pairs = zip(self.found, self.alone, strict=True)
        return mean_error(
            math.log(getattr(one, name) / getattr(other, name)) for one, other in pairs
        )

    @property
    def count_rms(self) -> float:
        return float(np.sqrt(np.mean([one.counted**2 for one in self.found])))


def run(out: Path, *, repeats: int, quick: bool, seed: int, progress: Progress) -> Findings:
    """Compute and tabulate."""
    shares: tuple[float, ...] = _SHARES
    records = _RECORDS
    if quick:
        shares = _QUICK_SHARES
        records = {model: n // _QUICK_SHARE for model, n in _RECORDS.items()}
    cells: list[Cell] = []
    for model in _MODELS:
        cells.append((model, "nothing", 0.0))
        cells += [(model, "outputs", share) for share in shares if share]
        if model != "LabelGPRegressor" and not quick:  # of labels the inputs are public
            cells += [(model, "inputs", share) for share in shares if share]
    trials = {cell: _Cell([], []) for cell in cells}
    for done, (repeat, cell) in enumerate((r, c) for r in range(repeats) for c in cells):
        model, where, share = cell
        progress(done, repeats * len(cells), f"{model}, {share:.0%} of {where} missing")
        found, alone = trials[cell]
        for complete_only, kept in ((False, found), (True, alone)):
            if complete_only and not share:
                kept.append(found[-1])
                continue
            rng = np.random.default_rng([seed, repeat])
            kept.append(_trial(model, where, share, records[model], rng, complete_only))
    claims = []
    if not quick:
        claims = [claim for cell in cells for claim in _claims(cell, trials[cell])]
    tables = []
    for model in _MODELS:
        tables += [_by_itself(model, records[model], trials), _against_complete(model, trials)]
    findings = Findings(
        "Missing values",
        [_record(cell, records[cell[0]], found) for cell, found in trials.items()],
        tables,
        claims,
        [
            f"ε={_EPSILON:g}, δ={_DELTA:g}; {times(repeats)}, seed {seed}. Error and coverage are "
            f"of the function (of the probability), at {2 * _PLACES} places over both sexes. The "
            "complete records alone: a fit to a table that holds no others, same noise; ratios are "
            "geometric means. Claims about differences allow for two standard errors besides."
        ],
        [],
    )
    findings.write(out)
    return findings


def _record(cell: Cell, n: int, trials: _Cell) -> dict[str, Value]:
    model, where, share = cell
    bias, bias_error = mean_error(one.bias for one in trials.found)
    coverage, coverage_error = mean_error(one.coverage for one in trials.found)
    record: dict[str, Value] = {
        "model": model,
        "missing": where,
        "share": share,
        "records": n,
        "repeats": len(trials.found),
        "bias": bias,
        "bias_error": bias_error,
        "rmse": trials.mean("rmse"),
        "coverage": coverage,
        "coverage_error": coverage_error,
        "band": trials.mean("width"),
        "count_rms": trials.count_rms,
    }
    for name, (value, error) in {
        "bias_added": trials.added("bias"),
        "coverage_added": trials.added("coverage"),
        "log_rmse_ratio": trials.log_ratio("rmse"),
        "log_band_ratio": trials.log_ratio("width"),
    }.items():
        record[name] = value
        record[f"{name}_error"] = error
    return record


def _ratio(log_ratio: tuple[float, float]) -> str:
    value, error = log_ratio
    ratio = math.exp(value)
    return f"{ratio:.3f} ± {ratio * error:.3f}"


def _difference(added: tuple[float, float], digits: int) -> str:
    value, error = added
    return f"{value:+.{digits}f} ± {error:.{digits}f}"


def _share(where: str, share: float) -> str:
    if not share:
        return where
    return f"{share:.0%} of {where}"


def _by_itself(model: str, n: int, trials: dict[Cell, _Cell]) -> ResultTable:
    rows = []
    for (one, where, share), found in trials.items():
        if one != model:
            continue
        rows.append(
            (
                _share(where, share),
                _difference(mean_error(trial.bias for trial in found.found), 4),
                f"{found.mean('rmse'):.4f}",
                f"{found.mean('width'):.4f}",
                f"{found.mean('coverage'):.3f}",
                f"{found.count_rms:.2f}",
            )
        )
    headings = ("missing", "bias", "RMSE", "band ±", "cover", "count, rms error in its sd")
    return ResultTable(f"{model}, {n:,} records", headings, rows)


def _against_complete(model: str, trials: dict[Cell, _Cell]) -> ResultTable:
    rows = []
    for (one, where, share), found in trials.items():
        if one != model or not share:
            continue
        rows.append(
            (
                _share(where, share),
                _ratio(found.log_ratio("rmse")),
                _ratio(found.log_ratio("width")),
                _difference(found.added("coverage"), 3),
                _difference(found.added("bias"), 4),
            )
        )
    headings = ("missing", "RMSE, ratio", "band, ratio", "cover, difference", "bias, difference")
    return ResultTable(f"{model}, against the complete records alone", headings, rows)


def _within(difference: tuple[float, float], tolerance: float) -> bool:
    """Whether a difference is as small as that, apart from two standard errors."""
    value, error = difference
    return abs(value) <= tolerance + _ERRORS * error


def _claims(cell: Cell, trials: _Cell) -> list[Claim]:
    model, where, share = cell
    what = f"{model}, {_share(where, share)} missing"
    bias = mean_error(one.bias for one in trials.found)
    coverage, coverage_error = mean_error(one.coverage for one in trials.found)
    low, high = _COVERAGE
    claims = [
        Claim(
            f"{what}: no bias, within two standard errors",
            _difference(bias, 4),
            abs(bias[0]) <= _ERRORS * bias[1],
        ),
        Claim(
            f"{what}: 95 % bands cover {low:.2f} to {high:.2f}",
            f"{coverage:.3f} ± {coverage_error:.3f}",
            low <= coverage <= high,
        ),
    ]
    if not share:
        return claims
    added = trials.added("bias")
    claims.append(
        Claim(
            f"{what}: bias within {_AS_GOOD:.0%} of the RMSE of that of the complete records alone",
            _difference(added, 4),
            _within(added, _AS_GOOD * trials.mean("rmse")),
        )
    )
    for name, word in (("rmse", "RMSE"), ("width", "bands")):
        log_ratio = trials.log_ratio(name)
        claims.append(
            Claim(
                f"{what}: {word} within {_AS_GOOD:.0%} of those of the complete records alone",
                _ratio(log_ratio),
                _within(log_ratio, _AS_GOOD),
            )
        )
    more = trials.added("coverage")
    claims.append(
        Claim(
            f"{what}: bands cover as those of the complete records alone, to {_SAME_COVERAGE:.2f}",
            _difference(more, 3),
            _within(more, _SAME_COVERAGE),
        )
    )
    return claims
