"""Search result: the candidates, which one was chosen, its noisy score, and what that cost.

What the candidates were is public; which one is best, and its noisy score, were released. The
others' scores were not.
"""

from typing import TYPE_CHECKING

from reticent.privacy.accounting.events import Selection
from reticent.privacy.accounting.selection import expected_runs
from reticent.privacy.bounds import Bounds
from reticent.reporting.formatting import (
    format_short,
    format_short_up,
    format_with_error,
    printable,
)
from reticent.reporting.presenter import Json, Table
from reticent.reporting.protected_unit import unit_noun

if TYPE_CHECKING:
    from reticent.models.selection.private_search import PrivateSearch

__all__ = ["search_description", "search_results", "search_sentences", "search_table"]

_SCORES = {
    "absolute": "minus the mean absolute error",
    "squared": "minus the mean squared error",
    "likelihood": "the mean log-likelihood",
    "accuracy": "the share of right labels",
    "log": "the mean log-probability of the right label",
    "density": "the mean log-density",
}


def _format_value(value: object) -> str:
    """Write a parameter of a candidate; bounds by the names of their inputs."""
    if isinstance(value, Bounds) and value.x_names:
        return printable(" + ".join(value.x_names))
    if isinstance(value, float):
        return format_short(value)
    return printable(str(value))


def _format_candidate(candidate: dict[str, object]) -> str:
    if not candidate:
        return "as given"
    parts = []
    for name, value in candidate.items():
        if isinstance(value, Bounds) and value.x_names:
            name = "inputs"
        parts.append(f"{name} {_format_value(value)}")
    return ", ".join(parts)


def _expected_runs(search: "PrivateSearch") -> float:
    event = search.guarantee_.events[0]
    assert isinstance(event, Selection)
    return expected_runs(event)


def search_table(search: "PrivateSearch") -> Table:
    """A row for each candidate: its parameters, and the noisy score of the one that was chosen."""
    rows = [
        [str(index + 1), _format_candidate(candidate), ""]
        for index, candidate in enumerate(search.candidates_)
    ]
    best = search.best_index_
    rows[best][-1] = format_with_error(search.best_score_, search.best_score_sd_)
    head = ["", "candidate", "score ± privacy noise"]
    return Table(head, rows, text_columns=2, emphasized=best)


def search_sentences(search: "PrivateSearch") -> list[str]:
    """Say what was searched, how it ended, and what it cost."""
    split = search.releases_[0].statistic
    scoring = search.scoring
    if not isinstance(scoring, str):
        scoring = search.releases_[-1].statistic["score"]
    runs = format_short(_expected_runs(search))
    noun = unit_noun(search.releases_[0].unit)
    return [
        f"Candidate {search.best_index_ + 1} of {len(search.candidates_)} was the best run's. It "
        f"was fitted on {split['training']:,} {noun} and judged on {split['validation']:,} "
        f"others, by {_SCORES.get(scoring, 'a score of its own')}, higher is better. Being the "
        "best of several, the score flatters.",
        f"About {runs} runs were to be expected; how many there were, "
        "and what the other candidates scored, was not released and is not known.",
        f"The whole search cost ε = {format_short_up(search.guarantee_.epsilon)}; showing every "
        "run would have cost that of all of them.",
    ]


def search_description(search: "PrivateSearch") -> str:
    """Say in words what the drawing of a search shows, for those who do not see it."""
    return (
        f"Candidate {search.best_index_ + 1} of {len(search.candidates_)} was chosen. The other "
        "candidates’ scores were not released."
    )


def search_results(search: "PrivateSearch") -> Json:
    """Every result of a search, for machines."""
    split = search.releases_[0].statistic
    return {
        "candidates": [
            {name: _format_value(value) for name, value in candidate.items()}
            for candidate in search.candidates_
        ],
        "best": search.best_index_,
        "score": search.best_score_,
        "score_noise_sd": search.best_score_sd_,
        "training": split["training"],
        "validation": split["validation"],
        "expected_runs": _expected_runs(search),
        "scheme": search.scheme,
    }
