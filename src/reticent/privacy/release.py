"""Releases: the only thing that leaves a curator, and `Replay`, which answers from them as the curator did.

A model that cannot tell the two apart is post-processing, and a test holds every model to that, bit for bit.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf, sqrt
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from reticent.errors import BadInput, ReleaseRefused
from reticent.privacy.bounds import Bounds
from reticent.privacy.celled import CellSum
from reticent.privacy.events import Event, Laplace, Selection
from reticent.privacy.exponential import Scores, described
from reticent.privacy.statistic import Counts, Statistic, upper

__all__ = ["CHOICE", "Attempt", "Choice", "Design", "Oracle", "Release", "Replay", "alike", "symmetric"]

CHOICE = "choice"  # the kind of a release that tells which candidate a search chose: its number, and its noisy score


@dataclass(frozen=True, eq=False)
class Release:
    """One noisy statistic and the law of its noise.

    Attributes
    ----------
    statistic : dict
        What was added up (public).
    value, scale : arrays
        The noisy sums, and the exact scale of each one's noise; of running sums (`Stream`), that of a step's fresh noise.
    event : Event
        What was paid, for this release and the others of the same fit (``event.count`` in all); its kind is the law of
        the noise.
    n, bounds, records_per_person
        Number of records, the bounds they were held to, records per person (public).
    private : bool
        False if the noise came from a seed.
    fit : str
        A random name of the fit: releases with the same name were paid for together.
    times : int
        How many of the ``event.count`` releases this one took, for Gaussian noise that is √times smaller.
    """

    statistic: dict[str, Any]
    value: NDArray[np.float64]
    scale: NDArray[np.float64]
    event: Event
    n: int
    bounds: Bounds
    records_per_person: int
    private: bool
    fit: str
    times: int = 1

    @property
    def sd(self) -> NDArray[np.float64]:
        """Standard deviation of the noise on each number."""
        return self.scale * (sqrt(2) if isinstance(self.event, Laplace) else 1.0)

    def matrix(self) -> NDArray[np.float64]:
        """Give the released symmetric matrix of a Gram statistic."""
        return symmetric(self.value)

    def matrix_sd(self) -> NDArray[np.float64]:
        """Standard deviations of ``matrix()``'s entries."""
        return symmetric(self.sd)


def symmetric(triangle: NDArray[np.float64]) -> NDArray[np.float64]:
    """The symmetric matrix with this upper triangle, given row by row."""
    m = round((sqrt(8 * len(triangle) + 1) - 1) / 2)
    row, column = upper(m)
    matrix = np.zeros((m, m))
    matrix[row, column] = matrix[column, row] = triangle
    return matrix


# What a statistic for given inputs is made by, where inputs are public.
Design = Callable[[NDArray[np.float64]], Statistic]


class Oracle(Protocol):
    """What a model learns from: a `Curator`, or a `Replay` of its releases."""

    @property
    def n(self) -> int: ...  # noqa: D102
    @property
    def bounds(self) -> Bounds: ...  # noqa: D102
    def release(self, statistic: Statistic, *, times: int = 1) -> Release: ...  # noqa: D102
    def release_given_inputs(self, design: Design, *, times: int = 1) -> Release: ...  # noqa: D102
    def select(  # noqa: D102
        self, statistic: CellSum | Counts, scores: Scores, *, times: int = 1, counts: NDArray[Any] | None = None
    ) -> Release: ...


# A run of a search: fits the candidate of that number on a first oracle, judges it on a second; higher scores are better.
Attempt = Callable[[int, Oracle, Oracle], float]


@dataclass(frozen=True, eq=False)
class Choice:
    """What leaves a search: the candidate of its best run, that run's score, and its releases."""

    index: int
    score: float
    training: list[Release]
    validation: list[Release]


def alike(a: Any, b: Any) -> bool:
    """Whether two descriptions say the same, but for the last digits, in which machines differ."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(alike(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        if a and all(isinstance(v, (int, float)) for v in [*a, *b]):
            largest = max(map(abs, a))
            return len(a) == len(b) and all(abs(v - w) <= 1e-5 * largest < inf for v, w in zip(a, b, strict=True))
        return len(a) == len(b) and all(map(alike, a, b))
    if isinstance(a, float) and isinstance(b, float):
        return abs(a - b) <= 1e-5 * abs(a) < inf
    return bool(a == b)


def _recorded(releases: Sequence[Release]) -> Choice:
    """The choice that releases of a search tell of; refuse what no curator gives."""
    first, told = releases[0], releases[0].statistic
    own, candidates, *sizes = (_whole(told.get(n)) for n in ("releases", "candidates", "training", "validation"))
    if not 1 <= own < len(releases) - 1 or first.value.shape != (2,) or not isinstance(first.event, Selection):
        raise BadInput("These are not all releases of a search, as its curator gave them.")
    index, score = first.value.tolist()
    training, validation = list(releases[1 : 1 + own]), list(releases[1 + own :])
    Replay(training), Replay(validation)  # each by itself is checked as those of a fit are
    same = {(one.fit, one.event, one.records_per_person, one.private) for one in releases}
    if len(same) > 1 or sizes != [training[0].n, validation[0].n] or sum(sizes) != first.n:
        raise BadInput("These releases are not of one search, so no one guarantee covers them.")
    if index not in range(candidates) or not np.isfinite(score) or training[0].bounds != first.bounds:
        raise BadInput("A release holds a number that no curator gives: it was altered.")
    return Choice(int(index), score, training, validation)


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0


class Replay:
    """Answers ``release`` from recorded releases, in order: a model rebuilt from it saw no data."""

    def __init__(self, releases: Sequence[Release]) -> None:
        if not releases:
            raise BadInput("There are no releases to rebuild from.")
        first = releases[0]
        self.releases, self._next = list(releases), 0
        self._choice = _recorded(releases) if first.statistic.get("kind") == CHOICE else None
        if self._choice is not None:
            return
        same = (first.fit, first.event, first.n, first.bounds, first.records_per_person, first.private)
        for one in releases:
            if (one.fit, one.event, one.n, one.bounds, one.records_per_person, one.private) != same:
                raise BadInput(
                    "These releases are not of one fit, so no one guarantee covers them: rebuild each fit by itself."
                )
            if one.value.shape != (one.statistic.get("size"),) or one.scale.shape != one.value.shape:
                raise BadInput("A release does not have as many numbers as its statistic: it was altered.")
            if not (np.isfinite(one.value).all() and np.isfinite(one.scale).all() and (one.scale > 0).all()):
                raise BadInput("A release holds a number that no curator gives: it was altered.")
        if any(not isinstance(one.times, int) or one.times < 1 for one in releases):
            raise BadInput("A release does not say how often it counts: it was altered.")
        if sum(one.times for one in releases) > first.event.count and not isinstance(first.event, Selection):
            raise BadInput("There are more releases than were paid for.")

    @property
    def n(self) -> int:
        """Number of records (public)."""
        return self.releases[0].n

    @property
    def bounds(self) -> Bounds:
        """The bounds the records were held to."""
        return self.releases[0].bounds

    def release(self, statistic: Statistic, *, times: int = 1) -> Release:
        """Give the next recorded release, which must be of the same statistic, and have taken as many releases."""
        return self._recorded(statistic.describe(), times)

    def select(
        self, statistic: CellSum | Counts, scores: Scores, *, times: int = 1, counts: NDArray[Any] | None = None
    ) -> Release:
        """Give the recorded choice, which must be among as many candidates."""
        release = self._recorded(described(statistic.describe(), scores), times)
        if release.value[0] not in range(len(scores.constants)):
            raise BadInput("A release holds a number that no curator gives: it was altered.")
        return release

    def _recorded(self, asked: dict[str, Any], times: int) -> Release:
        release = self._following()
        if times != release.times or not alike(release.statistic, asked):
            raise ReleaseRefused(
                f"The model asks for {asked['name']} with {asked['size']} numbers, but the record holds "
                f"{release.statistic['name']} with {release.statistic['size']}, or one with other parameters: rebuild it "
                "with the parameters it had."
            )
        self._next += 1
        return release

    def release_given_inputs(self, design: Design, *, times: int = 1) -> Release:
        """Give the next recorded release; nothing is designed again. The model must look whether it is what it can use."""
        release = self._following()
        if times != release.times:
            raise ReleaseRefused(
                "The record holds a release that counts otherwise: rebuild it with the parameters it had."
            )
        self._next += 1
        return release

    def _following(self) -> Release:
        if self._next >= len(self.releases):
            raise ReleaseRefused(
                "The model asks for more releases than were recorded: its parameters must be those it had."
            )
        return self.releases[self._next]

    def choose(self, attempt: Attempt) -> Choice:
        """Give the recorded choice of a search; nothing is tried."""
        if self._choice is None:
            raise ReleaseRefused("These releases are not of a search: rebuild them with the estimator that made them.")
        self._next = len(self.releases)
        return self._choice

    def check_used(self) -> None:
        """Refuse releases that the model did not ask for: its guarantee would not speak of them."""
        if self._next < len(self.releases):
            raise BadInput(
                f"The model uses {self._next} of {len(self.releases)} releases: its parameters must be those it had."
            )
