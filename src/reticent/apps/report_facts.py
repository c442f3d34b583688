"""What the report says, part by part, as plain values: computed from a model's releases and public parameters."""

import platform
from collections.abc import Sequence
from importlib.metadata import version
from inspect import signature
from itertools import combinations
from math import floor
from typing import Any

import numpy as np

import reticent
from reticent.apps.attacker import composed_mu, percent
from reticent.apps.chances import class_names
from reticent.apps.effects import COUNTED, OWN_LEVELS, effect_numbers, kernel_words
from reticent.apps.figures import column_names, digits_beside, level_name, measured
from reticent.apps.outputs import output_name, output_names, outputs
from reticent.apps.parts import column_rows, part_rows, weights_noise
from reticent.apps.release_groups import Group, groups
from reticent.apps.report_classes import class_assumed, class_described, class_quality, class_results
from reticent.apps.results import model_of
from reticent.apps.searched import search_rows, search_words
from reticent.apps.slices import BAND, MOST_COLUMNS, MOST_LINES, Line, average_sd, grouped, lines
from reticent.apps.structure import has_structure, structure_quality, structure_results, structure_title
from reticent.apps.terminal import compact
from reticent.privacy.guarantee import Guarantee

__all__ = [
    "described",
    "figure",
    "headline",
    "public",
    "quality",
    "reproduce",
    "results",
    "searched",
    "title",
    "words",
]

_NAMED, _ROWS, _TOLD, _MOST_PAIRED = 5, 11, 6, 10
_PACKAGES = ("numpy", "scipy", "scikit-learn", "matplotlib")
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

_REGRESSION = (
    "The line is the mean. The bands hold 95 % each, one around the other: the model’s own doubt, that and the "
    "privacy noise, and both with the spread of single outputs."
)
_BINNED = (
    f"{_REGRESSION} With one input, the bins are drawn as they were released, with 95 % of their privacy noise; a count can "
    "come out below zero."
)
_LEVELS = (
    "The line is the mean. The bands hold 95 % each, one around the other: the model’s own doubt, and that with the privacy "
    "noise. Single outputs spread around it by their own levels."
)
_MEANS = "Each mean on the range of its column, with its 95 % band of privacy noise."
_COUNTS = "Counts as they were released, with 95 % bands of privacy noise; a count can come out below zero."
_PARTS = "Each part as an ellipse that holds 86 % of it, drawn thicker where it has more records; its mean is a dot."
_CORRELATIONS = "Correlations: blue for columns that rise together, orange where one falls as the other rises."

Table = dict[str, Any]


def figure(number: float, digits: int = 4) -> str:
    """Write a number as print does: 0.5, 1.28, −3, 10⁻⁵, 2.5·10⁻⁷.

    >>> figure(1e-5), figure(-2.5e-7), figure(0.1234, 2)
    ('10⁻⁵', '−2.5·10⁻⁷', '0.12')
    """
    main, _, power = compact(float(f"{number:.{digits}g}")).partition("e")
    if power:
        main = ("" if main == "1" else f"{main}·") + f"10{str(int(power)).translate(_RAISED)}"
    return main.replace("-", "−")


def title(model: Any) -> str:
    """Say what was released."""
    names = _listed(column_names(model))
    if model_of(model).outputs:
        return f"{_listed(output_names(model))}, predicted from {names}"
    if hasattr(model, "pooled_mean_"):
        return f"Mixture of {_count(model.n_components_, 'normal law')} for {names}"
    if has_structure(model):
        return f"{structure_title(model)} of {names}"
    kinds = {"counts_": "Histogram", "correlation_": "Means and correlations", "mean_": "Mean"}
    kind = next(kind for attribute, kind in kinds.items() if hasattr(model, attribute))
    return f"{kind}{'' if model.n_features_in_ == 1 or kind.endswith('s') else 's'} of {names}"


def _listed(names: Sequence[str]) -> str:
    if not names:
        return ""
    if len(names) > _NAMED:
        names = [*names[: _NAMED - 1], f"{len(names) - _NAMED + 1} more"]
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def headline(model: Any) -> dict[str, Any]:
    """Part 1: what, from how many records, with which guarantee."""
    promise = model.guarantee_
    return {
        "title": title(model),
        "output": _listed(output_names(model)),
        "model": type(model).__name__,
        "n": model.releases_[0].n,
        "releases": _count(len(model.releases_), "release"),
        "promise": promise,
        "protected": _protected(promise),
    }


def _count(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def _protected(promise: Guarantee) -> str:
    if promise.relation == "label":
        return "the label of one record"
    return (
        "one record"
        if promise.records_per_person == 1
        else f"one person with up to {promise.records_per_person} records"
    )


def words(model: Any) -> dict[str, Any]:
    """Part 2: the guarantee in plain words, and exactly."""
    promise = model.guarantee_
    sums = f"{_count(len(model.releases_), 'release')} of noisy sums over {model.releases_[0].n:,} records"
    plain = [f"Everything on this page was computed from {sums}, and from nothing else."]
    if promise.private:
        plain += [
            "Whoever reads it, even somebody who knows every other record, this software and all its settings, learns almost the "
            f"same about {_protected(promise)} as if the truth about it had been different; ε = {figure(promise.epsilon)} says "
            "how strong this “almost” is: smaller protects more.",
            "What holds for people in general can be learned from it: that is its purpose.",
        ]
    else:
        plain += [
            "The noise came from a seed, for a test, and whoever knows the seed can take it away again: nothing is promised to "
            "anybody in the data.",
            "Do not publish it; for a release, fit again without random_state.",
        ]
    whom = "labels" if promise.relation == "label" else "people"
    return {"plain": plain, "statement": promise.statement, "mu": composed_mu(promise), "whom": whom}


def described(model: Any) -> str:
    """Say in words what the drawing of a model, or of one of its outputs, shows, for those who do not see it."""
    if model_of(model).labels:
        return class_described(model)
    if model_of(model).outputs:
        told = [_told(line) for line in lines(model)[:_TOLD]]
        return f"The mean of {output_name(model)} with its 95 % bands. {' '.join(told)} The numbers are in the tables below."
    bands = "" if has_structure(model) else ", with 95 % bands of the privacy noise"
    return f"{title(model)}{bands}. The numbers are in the tables below."


def _told(line: Line) -> str:
    low, high = int(line.mean.argmin()), int(line.mean.argmax())
    ends = f"from {figure(line.mean[0])} at {figure(line.at[0])} to {figure(line.mean[-1])} at {figure(line.at[-1])}"
    return (
        f"Along {line.name}: {ends}, lowest {figure(line.mean[low])} at {figure(line.at[low])}, "
        f"highest {figure(line.mean[high])} at {figure(line.at[high])}."
    )


def results(model: Any) -> dict[str, Any]:
    """Part 4: the numbers behind the drawing of a model, or of one of its outputs, and how they are to be read."""
    shown = model_of(model)
    remarks = [text.replace("Each table", "Each curve") for text in shown.remarks(model)]
    drawn, columns = MOST_LINES if shown.outputs else MOST_COLUMNS, model.n_features_in_
    if columns > drawn:
        chosen = "along which the output moves most" if shown.outputs else "that come first"
        remarks.append(f"Of {columns} columns, the {drawn} {chosen} are drawn.")
    if shown.labels:
        return class_results(model, remarks)
    if shown.outputs:
        found = effect_numbers(model)
        by = OWN_LEVELS if model.noise_ is None else f"by about {figure(model.noise_, 2)}"
        spread = COUNTED if found["counts"] else f"{found['output']} spreads {by} around the function"
        said = [text.removesuffix(": see --json") for text in kernel_words(found)]
        along = lines(model)
        tables = [_line_table(model, one) for one in along]
        return {
            "heading": "" if len(model.releases_[0].bounds.y) == 1 else output_name(model),
            "caption": _LEVELS if model.noise_ is None else _BINNED if hasattr(model, "bins_") else _REGRESSION,
            "tables": tables,
            "words": [*_moves(model, along), *said, spread, *_guessed(along)],
            "remarks": remarks,
        }
    if hasattr(model, "pooled_mean_"):
        head, rows = part_rows(model)
        tables = [{"head": head, "rows": rows}]
        return {"heading": "", "caption": _PARTS, "tables": tables, "words": [], "remarks": remarks}
    if has_structure(model):
        return structure_results(model, remarks)
    if hasattr(model, "counts_"):
        return {"heading": "", "caption": _COUNTS, "tables": _histogram_tables(model), "words": [], "remarks": remarks}
    rows = [
        [name, measured(m, sd)] for name, m, sd in zip(column_names(model), model.mean_, model.mean_sd_, strict=True)
    ]
    tables = [{"head": ["column", "mean ± privacy noise"], "rows": rows}]
    if hasattr(model, "correlation_"):
        numbers = shown.numbers(model)
        for row, one in zip(rows, numbers["standard_deviation"].values(), strict=True):
            row.append(measured(one["value"], one["noise_sd"]) if one["noise_sd"] else "0")
        tables[0]["head"].append("standard deviation ±")
        tables.append(_correlation_table(numbers))
    caption = _CORRELATIONS if hasattr(model, "correlation_") else _MEANS
    return {"heading": "", "caption": caption, "tables": tables, "words": [], "remarks": remarks}


def searched(search: Any) -> dict[str, Any]:
    """Between budget and model: what a search chose from, and how it ended."""
    best, number = search.best_index_ + 1, len(search.candidates_)
    return {
        "words": search_words(search),
        "table": {"head": ["", "candidate", "score ± privacy noise"], "rows": search_rows(search)},
        "described": f"Candidate {best} of {number} was chosen. The other candidates’ scores were not released.",
    }


def _moves(model: Any, along: Sequence[Line]) -> list[str]:
    """The inputs that matter most, the first of them first."""
    largest = sorted(along, key=lambda one: -np.ptp(one.mean))[:_NAMED]
    return [
        f"along {one.name} the mean of {output_name(model)} moves by {figure(np.ptp(one.mean), 2)}" for one in largest
    ]


def _guessed(along: Sequence[Line]) -> list[str]:
    """Where hardly anybody is: there a curve goes on as smoothly as it came."""
    said = [
        f"hardly any records have {one.name} outside {figure(one.ends[0], 2)} to {figure(one.ends[1], 2)}, as counts tell"
        for one in along
        if one.guessed.any()
    ]
    if not said:
        return []
    return [
        *said[:_NAMED],
        "there (dashed), the curve is a guess, and its band opens to what the model thought possible beforehand",
    ]


def _correlation_table(numbers: dict[str, Any]) -> Table:
    names, noise = numbers["columns"], numbers["correlation_noise_sd"]
    rows = []
    for i, j in combinations(range(min(len(names), _MOST_PAIRED)), 2):
        value, sd = numbers["correlation"][i][j], noise[i][j]
        rows.append([f"{names[i]} and {names[j]}", f"{value:.2f}" if sd is None else measured(value, max(sd, 1e-3))])
    return {"head": ["columns", "correlation ±"], "rows": rows}


def _line_table(model: Any, line: Line) -> Table:
    chosen = np.linspace(0, len(line.at) - 1, _ROWS).round().astype(int)
    bands = [part for part in ("privacy", "noise") if part in line.sds]
    digits = digits_beside(float(np.median(line.sds[bands[-1]])))

    def between(mean: float, sd: float) -> str:
        return f"{mean - BAND * sd:,.{digits}f} to {mean + BAND * sd:,.{digits}f}".replace("-", "−")

    rows = [
        [figure(line.at[i]), f"{line.mean[i]:,.{digits}f}"]
        + [between(line.mean[i], line.sds[part][i]) for part in bands]
        for i in chosen
    ]
    output = output_name(model)
    head = [line.name, f"mean of {output}", "95 % band of the mean", f"95 % of {output}"]
    return {"head": head[: 2 + len(bands)], "rows": rows}


def _histogram_tables(model: Any) -> list[Table]:
    tables = []
    for name, edges, counts in zip(column_names(model), model.edges_, model.counts_, strict=True):
        at, sums, noise = grouped(edges, counts, model.counts_sd_, 2 * _ROWS)
        rows = [[f"{at[i]:g} – {at[i + 1]:g}", f"{floor(total):,}"] for i, total in enumerate(sums)]
        tables.append({"head": [name, f"records ± {figure(noise, 2)}"], "rows": rows})
    return tables


def quality(model: Any) -> dict[str, Any]:
    """Part 5: how far off the results can be, by what the releases themselves say."""
    shown, first = model_of(model), model.releases_[0]
    about: dict[str, Any] = {"notes": shown.notes(model), "tables": [], "lines": []}
    if shown.outputs:
        about["tables"] = [class_quality(model)] if shown.labels else [_doubt(one) for one in outputs(model)]
        return {
            **about,
            "about": "This is what the model expects of itself, where there are records and where there are none.",
        }
    about["about"] = "This is the privacy noise only. That the records are a sample, or wrong, comes on top of it."
    if hasattr(model, "pooled_mean_"):
        head = ["column", "mean, mixture", "mean, all", "standard deviation, mixture", "standard deviation, all"]
        told = (
            f"Each share has a privacy noise of ± {percent(weights_noise(model))}." if model.n_components_ > 1 else ""
        )
        compared = "Released twice: what the mixture implies for each column, and one normal law for all, from the first stage."
        return {
            **about,
            "tables": [{"head": head, "rows": column_rows(model)}],
            "lines": [*filter(None, [told]), compared],
        }
    if has_structure(model):
        line = structure_quality(model)
    elif hasattr(model, "counts_"):
        usual = f"{first.n / model.counts_.shape[1]:,.0f}"
        line = f"Each count has a privacy noise of ± {figure(model.counts_sd_, 2)}; a bin holds {usual} records on average."
    else:
        low, high = np.array(first.bounds.x).T
        share = percent(float((model.mean_sd_ / (high - low)).max()))
        line = f"The privacy noise of each mean is ± {share} of its column’s range, or less."
    return {**about, "lines": [line]}


def _doubt(model: Any) -> Table:
    """The standard deviations of one output by their causes."""
    sd, output = average_sd(model), output_name(model)
    causes = {
        "the model’s own doubt": "model",
        "privacy noise": "privacy",
        f"both: error of the mean of {output}": "function",
        f"spread of {output} around the mean": "noise",
        f"all: error of one {output}": "output",
    }
    digits = digits_beside(min(sd.values()))  # the same for all, so that they can be added up
    rows = [[words, f"{sd[cause]:,.{digits}f}"] for words, cause in causes.items() if cause in sd]
    return {"head": [f"{output}, on average over the box", "standard deviation"], "rows": rows}


def public(model: Any) -> dict[str, Any]:
    """Part 6: what had to be public, and what was assumed."""
    first, promise = model.releases_[0], model.guarantee_
    names, ranges = column_names(model), [*first.bounds.x, *first.bounds.y]
    names += [f"{name} (output)" for name, _ in zip(output_names(model), first.bounds.y, strict=False)]
    if (level := first.bounds.level) is not None:
        names, ranges = [*names, level_name(level)], [*ranges, (level.low, level.high)]
    columns = [[name, figure(low), figure(high)] for name, (low, high) in zip(names, ranges, strict=True)]
    one = "one record" if promise.records_per_person == 1 else f"{promise.records_per_person} records"
    assumed = [f"No person has more than {one} in the data."]
    if model_of(model).labels:
        assumed += class_assumed(model)
    elif model_of(model).outputs:
        prior = (
            "reticent’s default for these bounds" if model._params["kernel"] is None else str(model._params["kernel"])
        )
        chosen = (
            "its hyperparameters were learned from the releases"
            if model._params["learn_kernel"]
            else "it was left as it is"
        )
        assumed.append(f"Before the fit the function followed a Gaussian process with a kernel, {prior}; {chosen}.")
        assumed.append(
            "The bands hold as far as that is so: errors around the function independent, of "
            f"{'one size' if level is None else 'the sizes given'} and normal."
        )
    return {
        "n": first.n,
        "columns": columns,
        "classes": None if first.bounds.classes is None else class_names(model),
        "norm": first.bounds.norm,
        "assumed": assumed,
        "params": _settings(model),
    }


def _settings(model: Any) -> list[str]:
    """The parameters that the fit was given and a file keeps, but for those left to their defaults; as Python."""
    said = []
    for name, parameter in signature(type(model)).parameters.items():
        value = model._params[name]
        value = value.item() if isinstance(value, np.generic) else value
        plain = name != "random_state" or isinstance(value, int)
        if plain and name not in ("ledger", "dataset") and repr(value) != repr(parameter.default):
            said.append(f"{name}={'reticent.' if name == 'bounds' else ''}{value!r}")
    return said


def reproduce(model: Any) -> dict[str, Any]:
    """Part 7: how to come to this page again, and the list of all that it was made from."""
    settings = _settings(model)
    if (dataset := model._params["dataset"]) is not None:
        settings.append(f'ledger="LEDGER", dataset={dataset!r}')
    inside = "".join(f"    {one},\n" for one in settings)
    versions = {"reticent": reticent.__version__, "Python": platform.python_version()}
    return {
        "fit": f'model = reticent.{type(model).__name__}(\n{inside})\nmodel.fit("DATA")',
        "versions": {**versions, **{name: version(name) for name in _PACKAGES}},
        "releases": [_release(one) for one in groups(model.releases_)],
    }


def _release(one: Group) -> list[str]:
    low, high = figure(one.least_sd), figure(one.most_sd)
    return [one.title, one.kind, one.numbers, low if low == high else f"{low} – {high}"]
