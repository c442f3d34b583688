"""What protecting people costs on panels: tables in which a person has several rows.

A mean, a table of means by group and a regression, each fitted to the same table
    rows            with every row protected by itself
    people, c       with all rows of a person protected, contribution c = 1, 2, 5
    believed        with records_per_person = the largest number of rows that anybody has

Errors are root mean squares over groups (places of a regression), in units of the output: against
the answer without privacy in which every person counts once, and in which every row does. Bands of
95 % are judged by repeated noise on the table itself, and on people drawn from it with replacement:
the table is the population then, and its answer the truth.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow
from numpy.typing import NDArray

from reticent.models.descriptive.mean import PrivateMean
from reticent.models.descriptive.table import PrivateTable
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
from reticent.studies.own.panels import PANELS, Panel, simulated

__all__ = ["run"]

Array = NDArray[np.float64]

_EPSILONS = (0.3, 1.0, 3.0)
_DELTA = 1e-6
_NO_NOISE = 1e6  # ε of answers without privacy, where they are not sums
_MODELS = ("mean", "table", "regression")
_ROWS = "rows"
_PEOPLE = {f"people, {c}": c for c in (1, 2, 5)}
_ONCE = "people, 1"
_BELIEVED = "believed"
_DRAWN = "people drawn"  # one of `_ONCE`, on people drawn with replacement
_PLACES = 25
_RESAMPLES = 200
_FEWER = 5  # a regression is repeated a fifth as often as means are
_BAND = 1.96
_LEAST_COVERAGE = 0.93


class _Estimate(NamedTuple):
    value: Array  # shape (groups or places,)
    sd: Array  # of the same shape: of the noise, or of a regression's posterior
    release_sd: float  # noise of the first released number


class _Trial(NamedTuple):
    from_people: float  # root mean square error against the answer of people
    from_rows: float  # against that of rows
    cover: float  # share of the answers of people inside the bands
    cover_drawn: float  # the same, with the sampling error of people in the bands
    sd: float
    release_sd: float


@dataclass(frozen=True, eq=False)
class _Answers:
    """Answers without privacy: where people count once, where rows do, and sampling error."""

    people: Array
    rows: Array
    sampling_sd: Array | None


def run(out: Path, *, repeats: int, quick: bool, seed: int, progress: Progress) -> Findings:
    """Compute and tabulate."""
    epsilons: Sequence[float] = _EPSILONS
    if quick:
        panels = [simulated(np.random.default_rng(seed))]
        epsilons = (1.0,)
    else:
        panels = [load() for load in PANELS.values()]
    findings = Findings("People with several rows", [], [])
    methods = (_ROWS, *_PEOPLE, _BELIEVED, _DRAWN)
    cells = [(panel, model) for panel in panels for model in _MODELS]
    differences = []
    for done, (panel, model) in enumerate(cells):
        places = _places(panel)
        rng = np.random.default_rng([seed, *f"{panel.name}, {model}".encode()])
        answers = _answers(panel, model, places, rng)
        if model == "mean":
            differences.append(_difference(panel, answers))
        again = repeats
        if model == "regression":
            again = max(1, repeats // _FEWER)
        trials: dict[tuple[float, str], list[_Trial]] = {}
        for number, (epsilon, method) in enumerate((e, m) for e in epsilons for m in methods):
            share = number / len(epsilons) / len(methods)
            what = f"{panel.name}, {model}, ε = {epsilon:g}, {method}"
            progress(round(100 * (done + share)), 100 * len(cells), what)
            trials[epsilon, method] = [
                _trial(panel, model, method, epsilon, answers, places, rng) for _ in range(again)
            ]
        findings.records += _records(panel, model, trials)
        findings.tables.append(_result_table(panel, model, trials))
        if not quick:
            findings.claims += _claims(panel, model, trials)
    findings.tables.append(
        ResultTable(
            "Means without privacy",
            ("table", "rows", "people", "most rows", "people count once", "rows", "difference"),
            differences,
        )
    )
    findings.notes.append(
        f"δ = {_DELTA:g}; {times(repeats)} (regressions a fifth), seed {seed}. Noise: mean "
        "standard deviation that the model states for its answers; a regression's is that of its "
        "posterior."
    )
    findings.write(out)
    return findings


# ---- answers without privacy


def _places(panel: Panel) -> Array:
    """Where a regression is asked: rows at equal distances in the order of the first input."""
    order = np.argsort(panel.inputs[:, 0], kind="stable")
    inner = np.linspace(0.02, 0.98, _PLACES) * (len(order) - 1)
    return panel.inputs[order[inner.astype(np.int64)]]


def _answers(panel: Panel, model: str, places: Array, rng: np.random.Generator) -> _Answers:
    if model == "regression":
        # the same model, with a noise that is nothing
        once = _regression(panel, places, _options(_NO_NOISE, rng), panel.person)
        rows = _regression(panel, places, _options(_NO_NOISE, rng), None)
        return _Answers(once.value, rows.value, None)
    groups = _groups(panel, model)
    people = _means(panel, groups, panel.weights(1))
    rows_alone = _means(panel, groups, np.ones(len(panel.person)))
    drawn = []
    for _ in range(_RESAMPLES):
        sample = _drawn(panel, rng)
        drawn.append(_means(sample, _groups(sample, model), sample.weights(1)))
    return _Answers(people, rows_alone, np.nanstd(drawn, axis=0))


def _groups(panel: Panel, model: str) -> NDArray[np.int64]:
    if model == "mean":
        return np.zeros(len(panel.person), np.int64)
    return panel.group


def _means(panel: Panel, groups: NDArray[np.int64], weights: Array) -> Array:
    """Weighted mean of the outputs, inside their bounds, of each group."""
    outputs = np.clip(panel.output, *panel.output_range)
    size = int(groups.max()) + 1
    sums = np.bincount(groups, weights * outputs, minlength=size)
    return np.asarray(sums / np.bincount(groups, weights, minlength=size))


def _drawn(panel: Panel, rng: np.random.Generator) -> Panel:
    return panel.of_people(rng.integers(0, panel.people, panel.people))


def _difference(panel: Panel, answers: _Answers) -> tuple[str, ...]:
    people = float(answers.people[0])
    rows = float(answers.rows[0])
    assert answers.sampling_sd is not None
    return (
        panel.name,
        f"{len(panel.person):,}",
        f"{panel.people:,}",
        f"{panel.records_of_each.max():,}",
        f"{people:.3f} ± {answers.sampling_sd[0]:.3f}",
        f"{rows:.3f}",
        f"{people - rows:+.3f}",
    )


# ---- private answers


def _options(epsilon: float, rng: np.random.Generator) -> dict[str, Any]:
    return {"epsilon": epsilon, "delta": _DELTA, "random_state": int(rng.integers(2**62))}


def _trial(
    panel: Panel,
    model: str,
    method: str,
    epsilon: float,
    answers: _Answers,
    places: Array,
    rng: np.random.Generator,
) -> _Trial:
    options = _options(epsilon, rng)
    person: NDArray[np.int64] | None = panel.person
    if method == _DRAWN:
        panel = _drawn(panel, rng)
        person = panel.person
    elif method in _PEOPLE:
        options["contribution"] = _PEOPLE[method]
    else:
        person = None
        if method == _BELIEVED:
            options["records_per_person"] = int(panel.records_of_each.max())
    if model == "regression":
        found = _regression(panel, places, options, person)
    else:
        found = _private_means(panel, model, options, person)
    error = found.value - answers.people
    own = found.sd
    drawn = found.sd
    if answers.sampling_sd is not None:
        drawn = np.hypot(own, answers.sampling_sd)
    return _Trial(
        float(np.sqrt(np.mean(error**2))),
        float(np.sqrt(np.mean((found.value - answers.rows) ** 2))),
        float(np.mean(np.abs(error) <= _BAND * own)),
        float(np.mean(np.abs(error) <= _BAND * drawn)),
        float(np.mean(own)),
        found.release_sd,
    )


def _private_means(
    panel: Panel, model: str, options: Mapping[str, Any], person: NDArray[np.int64] | None
) -> _Estimate:
    outputs = np.clip(panel.output, *panel.output_range)
    if model == "mean":
        fitted = PrivateMean(bounds=Bounds(x=[panel.output_range]), **options)
        fitted.fit(outputs[:, None], person=person)
        return _Estimate(fitted.mean_, fitted.mean_sd_, float(fitted.releases_[0].sd[0]))
    names = [f"group {number}" for number in range(panel.groups)]
    bounds = Bounds(x={"group": names, "output": panel.output_range})
    table = PrivateTable(by=["group"], mean=["output"], bounds=bounds, **options)
    group = [names[number] for number in panel.group.tolist()]
    table.fit(pyarrow.table({"group": group, "output": outputs}), person=person)
    return _Estimate(
        np.array([row["output_mean"] for row in table.table_]),
        np.array([row["output_mean_sd"] for row in table.table_]),
        float(table.releases_[0].sd[0]),
    )


def _regression(
    panel: Panel, places: Array, options: Mapping[str, Any], person: NDArray[np.int64] | None
) -> _Estimate:
    bounds = Bounds(x=list(panel.ranges), y=panel.output_range)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = GPRegressor(bounds=bounds, **options)
        model.fit(panel.inputs, panel.output, person=person)
    value, sd = model.predict(places, return_std=True)
    return _Estimate(value, sd, float(model.releases_[0].sd[0]))


# ---- tables and claims


def _column(trials: Sequence[_Trial], name: str) -> list[float]:
    return [getattr(one, name) for one in trials]


def _records(
    panel: Panel, model: str, trials: Mapping[tuple[float, str], Sequence[_Trial]]
) -> list[dict[str, Value]]:
    found: list[dict[str, Value]] = []
    for (epsilon, method), some in trials.items():
        record: dict[str, Value] = {
            "table": panel.name,
            "model": model,
            "epsilon": epsilon,
            "method": method,
            "repeats": len(some),
        }
        for name in _Trial._fields:
            mean, error = mean_error(_column(some, name))
            record[name] = mean
            record[f"{name}_error"] = error
        found.append(record)
    return found


def _result_table(
    panel: Panel, model: str, trials: Mapping[tuple[float, str], Sequence[_Trial]]
) -> ResultTable:
    rows = []
    for (epsilon, method), some in trials.items():
        means = {name: mean_error(_column(some, name)) for name in _Trial._fields}
        cover = f"{means['cover'][0]:.3f}"
        if method == _DRAWN and model != "regression":
            cover = f"{means['cover_drawn'][0]:.3f} ({cover} without sampling error)"
        rows.append(
            (
                method,
                f"{epsilon:g}",
                f"{means['from_people'][0]:.4f} ± {means['from_people'][1]:.4f}",
                f"{means['from_rows'][0]:.4f} ± {means['from_rows'][1]:.4f}",
                f"{means['release_sd'][0]:.4g}",
                f"{means['sd'][0]:.4f}",
                cover,
            )
        )
    headings = (
        "protected",
        "ε",
        "error, people",
        "error, rows",
        "noise of a sum",
        "noise",
        "cover, people",
    )
    return ResultTable(f"{panel.name}, {model}: {panel.about}", headings, rows)


def _claims(
    panel: Panel, model: str, trials: Mapping[tuple[float, str], Sequence[_Trial]]
) -> list[Claim]:
    claims = []
    for epsilon in dict.fromkeys(one for one, _ in trials):
        where = f"{panel.name}, {model}, ε = {epsilon:g}"
        once = trials[epsilon, _ONCE]
        if model != "regression":
            ratio = once[0].release_sd / trials[epsilon, _ROWS][0].release_sd
            claims.append(
                Claim(
                    f"{where}: a sum over people has the noise of one over rows",
                    f"{ratio:.4f} of it",
                    abs(ratio - 1) < 1e-9,
                )
            )
        ours, error = mean_error(_column(once, "from_people"))
        theirs, other = mean_error(_column(trials[epsilon, _BELIEVED], "from_people"))
        claims.append(
            Claim(
                f"{where}: a smaller error than with records_per_person, or within two errors",
                f"{ours:.4f} ± {error:.4f} against {theirs:.4f} ± {other:.4f}",
                ours <= theirs + 2 * float(np.hypot(error, other)),
            )
        )
        for method, name in ((_ONCE, "cover"), (_DRAWN, "cover_drawn")):
            cover, error = mean_error(_column(trials[epsilon, method], name))
            claims.append(
                Claim(
                    f"{where}, {method}: 95 % bands cover at least {_LEAST_COVERAGE}, or within "
                    "two errors",
                    f"{cover:.3f} ± {error:.3f}",
                    cover >= _LEAST_COVERAGE - 2 * error,
                )
            )
    return claims
