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
from reticent.models.serialization import NOT_STORED
from reticent.reporting.attack_curve import composed_mu
from reticent.reporting.columns import output_names, public_columns
from reticent.reporting.formatting import (
    format_count,
    format_number,
    format_number_up,
    join_names,
)
from reticent.reporting.release_table import ReleaseGroup, release_groups

if TYPE_CHECKING:
    from reticent.models.base import PrivateEstimator
    from reticent.privacy.accounting.guarantee import Guarantee
    from reticent.reporting.presenter import Json, Presenter

__all__ = ["guarantee_words", "headline", "public", "reproduction"]

_PACKAGES = ("numpy", "scipy", "scikit-learn", "matplotlib")


def headline(presenter: "Presenter[Any]") -> "Json":
    """Part 1: what, from how many records, with which guarantee."""
    return {
        "title": presenter.title(),
        "output": join_names(output_names(presenter.model)),
        "model": type(presenter.source).__name__,
        "n": presenter.releases[0].n,
        "releases": format_count(len(presenter.releases), "release"),
        "promise": presenter.guarantee,
        "protected": _protected(presenter.guarantee),
    }


def _protected(guarantee: "Guarantee") -> str:
    """Who or what is protected."""
    if guarantee.relation == "label":
        return "the label of one record"
    if guarantee.records_per_person == 1:
        return "one record"
    return f"one person with up to {guarantee.records_per_person} records"


def guarantee_words(presenter: "Presenter[Any]") -> "Json":
    """Part 2: the guarantee in plain words, and exactly."""
    promise = presenter.guarantee
    sums = (
        f"{format_count(len(presenter.releases), 'release')} of noisy sums over "
        f"{presenter.releases[0].n:,} records"
    )
    plain = [f"Everything on this page was computed from {sums}, and from nothing else."]
    if promise.private:
        plain += [
            "Whoever reads it, even somebody who knows every other record, this software and all "
            f"its settings, learns almost the same about {_protected(promise)} as if the truth "
            f"about it had been different; ε = {format_number_up(promise.epsilon)} says how strong "
            "this “almost” is: smaller protects more.",
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
        "statement": presenter.statement,
        "mu": composed_mu(promise),
        "whom": whom,
    }


def public(presenter: "Presenter[Any]") -> "Json":
    """Part 6: what had to be public, and what was assumed."""
    most = "one record"
    if presenter.guarantee.records_per_person > 1:
        most = f"{presenter.guarantee.records_per_person} records"
    columns = public_columns(presenter.model)
    head = ["column", "values", "stands for missing"]
    return {
        "n": presenter.releases[0].n,
        "head": head[: len(columns[0])],
        "columns": columns,
        "classes": presenter.class_names(),
        "norm": presenter.bounds.norm,
        "assumed": [
            f"No person has more than {most} in the data.",
            *presenter.assumptions(),
        ],
        "params": _settings(presenter.source),
    }


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
