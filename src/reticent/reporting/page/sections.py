"""Sections of the report about the release itself: guarantee, public inputs, how to reproduce it.

What is said about the model is its presenter's. Computed from releases and public parameters.
"""

import platform
from importlib.metadata import version
from inspect import signature
from io import StringIO
from tokenize import TokenError, generate_tokens
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

import reticent
from reticent.about import ABOUT, checked_about
from reticent.models.serialization import NOT_STORED
from reticent.reporting.attack_curve import composed_mu
from reticent.reporting.columns import output_names, public_columns
from reticent.reporting.formatting import (
    format_count,
    format_number,
    format_number_up,
    join_names,
)
from reticent.reporting.protected_unit import (
    assumed_unit,
    mechanisms,
    number_and_noun,
    protected_words,
    short_protected,
    strength_warning,
    unit_noun,
    weighting_words,
)
from reticent.reporting.release_table import ReleaseGroup, release_groups

if TYPE_CHECKING:
    from reticent.models.base import PrivateEstimator
    from reticent.privacy.accounting.guarantee import Guarantee
    from reticent.reporting.presenter import Json, Presenter

__all__ = ["documentation", "guarantee_words", "headline", "public", "reproduction"]

_PACKAGES = ("numpy", "scipy", "scikit-learn", "matplotlib")


def headline(presenter: "Presenter[Any]") -> "Json":
    """Part 1: what, from how many records, with which guarantee."""
    about = checked_about(presenter.source._params.get("about"))
    return {
        "title": about.get("title", presenter.title()),
        "subject": presenter.title(),
        "output": join_names(output_names(presenter.model)),
        "model": type(presenter.source).__name__,
        "n": presenter.releases[0].n,
        "from": number_and_noun(presenter.releases),
        "releases": format_count(len(presenter.releases), "release"),
        "promise": presenter.guarantee,
        "protected": short_protected(presenter.guarantee),
        "whom": protected_words(presenter.guarantee, presenter.releases),
    }


def documentation(presenter: "Presenter[Any]") -> list[list[str]]:
    """What people ask of a release besides its numbers, such as the controller."""
    about = checked_about(presenter.source._params.get("about"))
    return [[ABOUT[key], text] for key, text in about.items() if key != "title"]


def guarantee_words(presenter: "Presenter[Any]") -> "Json":
    """Part 2: the guarantee in plain words, and exactly."""
    promise = presenter.guarantee
    sums = (
        f"{format_count(len(presenter.releases), 'release')} of noisy sums over "
        f"{number_and_noun(presenter.releases)}"
    )
    plain = [f"Everything on this page was computed from {sums}, and from nothing else."]
    if promise.private:
        plain += [
            "Whoever reads it, even somebody who knows every other record, this software and all "
            f"its settings, learns almost the same about {short_protected(promise)} as if the "
            f"truth about {_it(promise)} had been different; ε = "
            f"{format_number_up(promise.epsilon)} says how strong this “almost” is: smaller "
            "protects more.",
            f"Protected is {protected_words(promise, presenter.releases)}.",
            "What holds for people in general can be learned from it: that is its purpose.",
        ]
    else:
        plain += [
            "The noise came from a seed, for a test, and whoever knows the seed can take it away "
            "again: nothing is promised to anybody in the data.",
            "Do not publish it; for a release, fit again without random_state.",
        ]
    whom = "people"
    if promise.relation == "label":
        whom = "labels"
    return {
        "plain": plain,
        "weak": strength_warning(promise),
        "statement": presenter.statement,
        "mu": composed_mu(promise),
        "mechanisms": mechanisms(promise),
        "whom": whom,
    }


def _it(guarantee: "Guarantee") -> str:
    if guarantee.person is not None or guarantee.records_per_person > 1:
        return "them"
    return "it"


def public(presenter: "Presenter[Any]") -> "Json":
    """Part 6: what had to be public, and what was assumed."""
    unit = presenter.releases[0].unit
    columns = public_columns(presenter.model)
    head = ["column", "values", "stands for missing"]
    return {
        "n": presenter.releases[0].n,
        "number": _public_number(presenter),
        "weights": weighting_words(unit),
        "head": head[: len(columns[0])],
        "columns": columns,
        "classes": presenter.class_names(),
        "norm": presenter.bounds.norm,
        "assumed": [
            *assumed_unit(presenter.guarantee, presenter.source),
            *presenter.assumptions(),
        ],
        "params": _settings(presenter.source),
    }


def _public_number(presenter: "Presenter[Any]") -> str:
    """What is public of the number of records or people, at the beginning of a sentence."""
    unit = presenter.releases[0].unit
    noun = unit_noun(unit)
    if not unit.number_is_public:
        return "Not the number of records or people: a noisy one was released. Public are"
    return f"The number of {noun}, {presenter.releases[0].n:,};"


def _settings(model: "PrivateEstimator") -> list[str]:
    """The parameters that the fit was given and a file keeps, as Python; without defaults."""
    settings = []
    for name, parameter in signature(type(model)).parameters.items():
        value = model._params[name]
        if isinstance(value, np.generic):
            value = value.item()
        if hasattr(value, "learn") and hasattr(value, "get_params"):
            # an estimator: its own ledger's URL may hold a password
            value = clone(value).set_params(**dict.fromkeys(NOT_STORED))
        stored = name != "random_state" or isinstance(value, int)
        default = repr(value) == repr(parameter.default)
        if not stored or default or name in ("ledger", "dataset"):
            continue
        settings.append(f"{name}={_qualified(repr(value))}")
    return settings


def _qualified(written: str) -> str:
    """Python in which reticent's own classes have its name before them: ``reticent.Bounds(…)``."""
    calls = []
    try:
        tokens = list(generate_tokens(StringIO(written).readline))
    except (TokenError, SyntaxError):  # a representation that is no Python
        return written
    for before, token, after in zip([None, *tokens], tokens, tokens[1:], strict=False):
        attribute = before is not None and before.string == "."
        if token.string in reticent.__all__ and after.string == "(" and not attribute:
            calls.append(token.start)
    lines = written.splitlines(keepends=True)
    for row, column in reversed(calls):
        line = lines[row - 1]
        lines[row - 1] = f"{line[:column]}reticent.{line[column:]}"
    return "".join(lines)


def reproduction(presenter: "Presenter[Any]") -> "Json":
    """Part 7: how to come to this page again, and the list of all that it was made from."""
    source = presenter.source
    settings = _settings(source)
    if (dataset := source._params["dataset"]) is not None:
        settings.append(f'ledger="LEDGER", dataset={dataset!r}')
    arguments = "".join(f"    {setting},\n" for setting in settings)
    versions = {"reticent": reticent.__version__, "Python": platform.python_version()}
    return {
        "fit": f'model = reticent.{type(source).__name__}(\n{arguments})\nmodel.fit("DATA")',
        "versions": {**versions, **{name: version(name) for name in _PACKAGES}},
        "releases": [_release_row(group) for group in release_groups(presenter.releases)],
    }


def _release_row(group: ReleaseGroup) -> list[str]:
    noise = format_number(group.least_sd)
    if noise != format_number(group.most_sd):
        noise = f"{noise} – {format_number(group.most_sd)}"
    return [group.title, group.kind, group.numbers, noise]
