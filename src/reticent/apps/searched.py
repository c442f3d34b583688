"""A search, seen as the model it found: all that shows a model shows the best one, with the releases and cost of the search.

What the candidates were is public; which one is best, and its noisy score, were released. The others' scores were not.
"""

from inspect import signature
from typing import TYPE_CHECKING, Any

from reticent.apps.figures import measured, printable
from reticent.apps.terminal import compact, compact_up, table
from reticent.models.search import PrivateSearch
from reticent.privacy.bounds import Bounds
from reticent.privacy.selection import expected_runs

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["search_numbers", "search_rows", "search_table", "search_words", "seen"]


class _Found:
    """The best estimator of a search, but for what was released and what it cost, which are the search's."""

    __signature__ = signature(PrivateSearch)

    def __init__(self, search: Any) -> None:
        self.search, self.model = search, search.best_estimator_
        self.releases_, self.guarantee_, self.epsilon = search.releases_, search.guarantee_, search.epsilon
        self._params = {**self.model._params, **search._params}

    def __getattr__(self, name: str) -> Any:
        return getattr(self.model, name)

    def save(self, *args: Any, **options: Any) -> None:
        self.search.save(*args, **options)


_Found.__name__ = _Found.__qualname__ = PrivateSearch.__name__


def seen(model: Any) -> Any:
    """The model itself, or what a search has found."""
    return _Found(model) if isinstance(model, PrivateSearch) else model


def _said(value: Any) -> str:
    if isinstance(value, Bounds) and value.x_names:
        return printable(" + ".join(value.x_names))
    return printable(compact(value) if isinstance(value, float) else str(value))


def _names(name: str, value: Any) -> str:
    return "inputs" if isinstance(value, Bounds) and value.x_names else name


def search_rows(search: Any) -> list[list[str]]:
    """A row for each candidate: its parameters, and the noisy score of the one that was chosen."""
    score = measured(search.best_score_, search.best_score_sd_)
    rows = []
    for index, candidate in enumerate(search.candidates_):
        parameters = (
            ", ".join(f"{_names(name, value)} {_said(value)}" for name, value in candidate.items()) or "as given"
        )
        rows.append([str(index + 1), parameters, score if index == search.best_index_ else ""])
    return rows


def search_words(search: Any) -> list[str]:
    """What was searched, how it ended, and what it cost, in words."""
    first, event = search.releases_[0], search.guarantee_.events[0]
    told, number = first.statistic, len(search.candidates_)
    scoring = search.scoring if isinstance(search.scoring, str) else search.releases_[-1].statistic["score"]
    return [
        f"Candidate {search.best_index_ + 1} of {number} was the best run's. It was fitted on {told['training']:,} records and "
        f"judged on {told['validation']:,} others, by {_SCORES.get(scoring, 'a score of its own')}, higher is better. Being the "
        "best of several, the score flatters.",
        f"About {compact(expected_runs(event))} runs were to be expected; how many there were, and what the other candidates "
        "scored, was not released and is not known.",
        f"The whole search cost ε = {compact_up(search.guarantee_.epsilon)}; showing every run would have cost that of "
        "all of them.",
    ]


_SCORES = {
    "absolute": "minus the mean absolute error",
    "squared": "minus the mean squared error",
    "likelihood": "the mean log-likelihood",
    "accuracy": "the share of right labels",
    "log": "the mean log-probability of the right label",
    "density": "the mean log-density",
}


def search_table(search: Any) -> "RenderableType":
    """The candidates, for a terminal."""
    from rich.text import Text

    rows = table("", "candidate", "score ± privacy noise", left=2)
    for row in search_rows(search):
        style = "bold" if row[-1] else ""
        rows.add_row(*(Text(cell, style) for cell in row))
    return rows


def search_numbers(search: Any) -> dict[str, Any]:
    """The same for machines."""
    told = search.releases_[0].statistic
    return {
        "candidates": [{name: _said(value) for name, value in one.items()} for one in search.candidates_],
        "best": search.best_index_,
        "score": search.best_score_,
        "score_noise_sd": search.best_score_sd_,
        "training": told["training"],
        "validation": told["validation"],
        "expected_runs": expected_runs(search.guarantee_.events[0]),
        "scheme": search.scheme,
    }
