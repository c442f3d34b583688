"""What the report says, part by part, as plain values: computed from a model's releases and public parameters."""

import platform
from importlib.metadata import version
from inspect import signature
from typing import Any

import numpy as np
from sklearn.base import clone

import reticent
from reticent.apps.attacker import composed_mu
from reticent.apps.chances import class_names
from reticent.apps.figures import column_names, counted, figure, figure_up, listed
from reticent.apps.outputs import output_names, public_ranges
from reticent.apps.release_groups import Group, groups
from reticent.apps.results import model_of
from reticent.apps.searched import search_rows, search_words
from reticent.apps.slices import MOST_COLUMNS, MOST_LINES
from reticent.models.storage import NOT_STORED
from reticent.privacy.guarantee import Guarantee

__all__ = ["described", "headline", "public", "quality", "reproduce", "results", "searched", "title", "words"]

_PACKAGES = ("numpy", "scipy", "scikit-learn", "matplotlib")


def title(model: Any) -> str:
    """Say what was released."""
    names, shown = listed(column_names(model)), model_of(model)
    if shown.title is None:
        return f"{listed(output_names(model))}, predicted from {names}"
    return f"{shown.title(model)} {names}"


def headline(model: Any) -> dict[str, Any]:
    """Part 1: what, from how many records, with which guarantee."""
    promise = model.guarantee_
    return {
        "title": title(model),
        "output": listed(output_names(model)),
        "model": type(model).__name__,
        "n": model.releases_[0].n,
        "releases": counted(len(model.releases_), "release"),
        "promise": promise,
        "protected": _protected(promise),
    }


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
    sums = f"{counted(len(model.releases_), 'release')} of noisy sums over {model.releases_[0].n:,} records"
    plain = [f"Everything on this page was computed from {sums}, and from nothing else."]
    if promise.private:
        plain += [
            "Whoever reads it, even somebody who knows every other record, this software and all its settings, learns almost the "
            f"same about {_protected(promise)} as if the truth about it had been different; "
            f"ε = {figure_up(promise.epsilon)} says how strong this “almost” is: smaller protects more.",
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
    shown = model_of(model)
    bands = "" if shown.places else ", with 95 % bands of the privacy noise"
    said = f"{title(model)}{bands}." if shown.described is None else shown.described(model)
    return f"{said} The numbers are in the tables below."


def results(model: Any) -> dict[str, Any]:
    """Part 4: the numbers behind the drawing of a model, or of one of its outputs, and how they are to be read."""
    shown = model_of(model)
    remarks = [text.replace("Each table", "Each curve") for text in shown.remarks(model)]
    drawn, columns = MOST_LINES if shown.outputs else MOST_COLUMNS, model.n_features_in_
    if columns > drawn:
        chosen = "along which the output moves most" if shown.outputs else "that come first"
        remarks.append(f"Of {columns} columns, the {drawn} {chosen} are drawn.")
    return {"heading": "", "words": [], "remarks": remarks, **shown.page(model)}


def searched(search: Any) -> dict[str, Any]:
    """Between budget and model: what a search chose from, and how it ended."""
    best, number = search.best_index_ + 1, len(search.candidates_)
    return {
        "words": search_words(search),
        "table": {"head": ["", "candidate", "score ± privacy noise"], "rows": search_rows(search)},
        "described": f"Candidate {best} of {number} was chosen. The other candidates’ scores were not released.",
    }


def quality(model: Any) -> dict[str, Any]:
    """Part 5: how far off the results can be, by what the releases themselves say."""
    shown = model_of(model)
    about = "This is the privacy noise only. That the records are a sample, or wrong, comes on top of it."
    if shown.outputs:
        about = "This is what the model expects of itself, where there are records and where there are none."
    return {"about": about, "notes": shown.notes(model), "tables": [], "lines": [], **shown.quality(model)}


def public(model: Any) -> dict[str, Any]:
    """Part 6: what had to be public, and what was assumed."""
    first, promise = model.releases_[0], model.guarantee_
    one = "one record" if promise.records_per_person == 1 else f"{promise.records_per_person} records"
    return {
        "n": first.n,
        "columns": [[name, figure(low), figure(high)] for name, low, high in public_ranges(model)],
        "classes": None if first.bounds.classes is None else class_names(model),
        "norm": first.bounds.norm,
        "assumed": [f"No person has more than {one} in the data.", *model_of(model).assumed(model)],
        "params": _settings(model),
    }


def _settings(model: Any) -> list[str]:
    """The parameters that the fit was given and a file keeps, but for those left to their defaults; as Python."""
    said = []
    for name, parameter in signature(type(model)).parameters.items():
        value = model._params[name]
        value = value.item() if isinstance(value, np.generic) else value
        if hasattr(value, "learn") and hasattr(value, "get_params"):  # its own ledger's URL may hold a password
            value = clone(value).set_params(**dict.fromkeys(NOT_STORED))
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
