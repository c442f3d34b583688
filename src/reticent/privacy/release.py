"""Releases: the only thing that leaves a curator, and `Replay`, which answers from them as the curator did.

A model that cannot tell the two apart is post-processing, and a test holds every model to that, bit for bit.

A release carries a checksum over all its fields, which is computed when it is made and compared
whenever it is copied or used. So no field can be changed by accident (`dataclasses.replace`, an
array that is written to, a line of JSON that is edited), and the core itself changes one by
`derived` alone. It proves nothing against a program that computes a checksum of its own: who
wrote a file is proved by a signature (models.storage), and by nothing else.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from math import inf, isclose, sqrt
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from reticent.errors import BadInput, ReleaseRefused
from reticent.privacy.bounds import Bounds
from reticent.privacy.celled import CellSum
from reticent.privacy.events import Event, Gaussian, Laplace, Selection
from reticent.privacy.exponential import Scores, described, epsilon_of, exponents
from reticent.privacy.given import whole
from reticent.privacy.ledger import RELATIONS
from reticent.privacy.plan import planned
from reticent.privacy.statistic import Counts, Statistic, upper

__all__ = [
    "CHOICE",
    "Attempt",
    "Choice",
    "Design",
    "Oracle",
    "Release",
    "Replay",
    "alike",
    "check_scale",
    "derived",
    "noise_scale",
    "same_event",
    "symmetric",
]

CHOICE = "choice"  # the kind of a release that tells which candidate a search chose: its number, and its noisy score
_ALTERED = (
    "This release was altered: a field was changed after a curator made it. "
    "Take the release as it was given, or fit again."
)
_MULTIPLIER = 1e-6  # relative: versions of SciPy calibrate to other last digits
_SCALE = 1e-5  # relative, as descriptions of statistics are compared


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
    relation : str
        What is protected: a key of ``ledger.RELATIONS``.
    entry : str, optional
        Hash of the ledger's entry that paid for it; None if no ledger was charged.
    checksum : str, optional
        SHA-256 of all other fields; computed if it is not given, compared if it is.
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
    relation: str = field(kw_only=True)
    entry: str | None = field(default=None, kw_only=True)
    checksum: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        problem = _problem(self)
        if problem:
            raise BadInput(f"{problem} No curator makes such a release: it was altered.")
        for name in ("value", "scale"):
            array = getattr(self, name).view()
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        own = self._checksum()
        if self.checksum is None:
            object.__setattr__(self, "checksum", own)
        elif self.checksum != own:
            raise BadInput(_ALTERED)

    def check(self) -> None:
        """Refuse a release that was changed in place since it was made."""
        if self.checksum != self._checksum():
            raise BadInput(_ALTERED)

    def header(self) -> dict[str, Any]:
        """All that is not an array, in plain JSON values."""
        return {
            "statistic": self.statistic,
            "event": self.event.to_dict(),
            "n": self.n,
            "bounds": self.bounds.to_dict(),
            "records_per_person": self.records_per_person,
            "private": self.private,
            "fit": self.fit,
            "times": self.times,
            "relation": self.relation,
            "entry": self.entry,
        }

    def _checksum(self) -> str:
        try:
            text = json.dumps(self.header(), sort_keys=True)
        except (RecursionError, TypeError, ValueError):
            raise BadInput("The statistic of a release must be plain JSON values.") from None
        seal = sha256(text.encode())
        for array in (self.value, self.scale):
            seal.update(np.ascontiguousarray(array, dtype="<f8").tobytes())
        return seal.hexdigest()

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


_TYPES = {
    "statistic": dict,
    "event": Event,
    "bounds": Bounds,
    "private": bool,
    "fit": str,
    "relation": str,
    "entry": str | None,
}


def _problem(release: Release) -> str:
    """What is wrong with a field, in a sentence; nothing if they can be those of a release."""
    for name, least in (("n", 0), ("records_per_person", 1), ("times", 1)):
        value = getattr(release, name)
        if type(value) is not int or value < least:
            return f"{name} must be a whole number of at least {least}, not {value!r}."
    for name, kind in _TYPES.items():
        if not isinstance(getattr(release, name), kind):
            return f"{name} must be of type {kind}, not {type(getattr(release, name)).__name__}."
    if release.relation not in RELATIONS:
        return f"relation must be one of {', '.join(map(repr, RELATIONS))}, not {release.relation!r}."
    arrays: tuple[object, object] = (release.value, release.scale)
    if not all(isinstance(one, np.ndarray) and one.dtype == np.float64 and one.ndim == 1 for one in arrays):
        return "value and scale must be arrays of float64."
    if release.value.shape != release.scale.shape:
        return "value and scale must have as many numbers."
    if not (np.isfinite(release.value).all() and np.isfinite(release.scale).all()):
        return "value and scale must be finite."
    if (release.scale < 0).any():
        return "A noise scale cannot be below 0."
    return ""


def derived(release: Release, **changes: Any) -> Release:
    """A release that the core makes from another, with some fields changed; noise of a seed stays noise of a seed."""
    if changes.get("private", False) and not release.private:
        raise BadInput("The noise of this release came from a seed: nothing made from it is private.")
    release.check()
    return replace(release, checksum=None, **changes)


def same_event(paid: Event, event: Event) -> bool:
    """Whether two events are the same, but for last digits in which versions of SciPy calibrate differently."""
    a = paid.to_dict()
    b = event.to_dict()
    if a.keys() != b.keys():
        return False
    for name, value in a.items():
        near = isinstance(value, float) and isclose(value, b[name], rel_tol=_MULTIPLIER)
        if value != b[name] and not near:
            return False
    return True


def noise_scale(statistic: Statistic, event: Event, records_per_person: int, times: int = 1) -> NDArray[np.float64]:
    """The scale of the noise that a curator adds to each number of a statistic (but for the last digits)."""
    plan = planned(statistic)
    multiplier: float = event.noise_multiplier  # type: ignore[attr-defined]
    if isinstance(event, Laplace):
        length = np.full(plan.size, float(plan.sensitivity1 or inf))
    else:
        length = np.sqrt(float(plan.sensitivity2) / times / plan.shares())
    return np.asarray(multiplier * records_per_person * plan.step * length)


def check_scale(release: Release, expected: NDArray[np.float64]) -> None:
    """Refuse a release that names another noise scale than the one its event and statistic have."""
    if release.scale.shape != expected.shape or not np.allclose(release.scale, expected, rtol=_SCALE, atol=0):
        raise BadInput(
            "A release names another noise scale than its statistic has by what was paid: it was altered, or made "
            "with other parameters. Rebuild it with those it had."
        )


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
    first.check()
    same = {(one.fit, one.event, one.records_per_person, one.private, one.relation, one.entry) for one in releases}
    if len(same) > 1 or sizes != [training[0].n, validation[0].n] or sum(sizes) != first.n:
        raise BadInput("These releases are not of one search, so no one guarantee covers them.")
    if index not in range(candidates) or not np.isfinite(score) or training[0].bounds != first.bounds:
        raise BadInput("A release holds a number that no curator gives: it was altered.")
    return Choice(int(index), score, training, validation)


def _whole(value: object) -> int:
    return int(value) if whole(value) else 0  # type: ignore[call-overload]


def _belongs(release: Release) -> tuple[object, ...]:
    """What all releases of one fit have in common."""
    who = release.records_per_person, release.relation, release.private
    return (release.fit, release.event, release.entry, release.n, release.bounds, *who)


def _check_paid(paid: Event, event: Event) -> None:
    """Refuse releases whose event is not what the parameters pay for."""
    fits = same_event(paid, event)
    if isinstance(event, Selection) and isinstance(paid, Gaussian):  # a run: its μ is that of the search's runs
        fits = isclose(sqrt(paid.count) * event.noise_multiplier, paid.noise_multiplier, rel_tol=_MULTIPLIER)
    if not fits:
        raise BadInput(
            f"These releases were paid for with {event}, and the parameters pay for {paid}: rebuild them with the "
            "parameters they had."
        )


class Replay:
    """Answers ``release`` from recorded releases, in order: a model rebuilt from it saw no data.

    ``paid``: what the model's parameters pay for. Releases that were paid for otherwise are refused.
    Of a run of a search it is the noise of that run, within what the search has paid.
    """

    def __init__(self, releases: Sequence[Release], paid: Event | None = None) -> None:
        if not releases:
            raise BadInput("There are no releases to rebuild from.")
        first = releases[0]
        self.releases, self._next = list(releases), 0
        self._noise = paid
        if paid is None and not isinstance(first.event, Selection):
            self._noise = first.event
        if paid is not None:
            _check_paid(paid, first.event)
        self._choice = _recorded(releases) if first.statistic.get("kind") == CHOICE else None
        if self._choice is not None:
            return
        together = _belongs(first)
        for one in releases:
            one.check()
            if _belongs(one) != together:
                raise BadInput(
                    "These releases are not of one fit, so no one guarantee covers them: rebuild each fit by itself."
                )
            if one.value.shape != (one.statistic.get("size"),):
                raise BadInput("A release does not have as many numbers as its statistic: it was altered.")
            if one.n < 1 or not (one.scale > 0).all():
                raise BadInput("A release holds a number that no curator gives: it was altered.")
        if self._noise is not None and sum(one.times for one in releases) > self._noise.count:
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
        """Give the next recorded release: of the same statistic, noise scale, and number of releases that it took."""
        release = self._recorded(statistic.describe(), times)
        if self._noise is not None:
            check_scale(release, noise_scale(statistic, self._noise, release.records_per_person, times))
        return release

    def select(
        self, statistic: CellSum | Counts, scores: Scores, *, times: int = 1, counts: NDArray[Any] | None = None
    ) -> Release:
        """Give the recorded choice, which must be among as many candidates."""
        release = self._recorded(described(statistic.describe(), scores), times)
        if release.value[0] not in range(len(scores.constants)):
            raise BadInput("A release holds a number that no curator gives: it was altered.")
        if isinstance(self._noise, Gaussian):
            epsilon = epsilon_of(sqrt(times) / self._noise.noise_multiplier)
            plan = planned(statistic)
            nothing = np.zeros(plan.size, dtype=object)  # the scale does not depend on the sums
            how: dict[str, Any] = {"n": release.n, "people": release.records_per_person, "counts": counts}
            scale = exponents(plan, scores, nothing, **how, epsilon=epsilon)[1]
            check_scale(release, np.array([scale]))
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
