"""Replay: an oracle that answers from recorded releases; a rebuilt model reads no record."""

from collections.abc import Sequence
from math import inf, isclose, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.errors import BadInput, ReleaseRefused
from reticent.privacy.accounting.events import Event, Gaussian, Laplace, Selection
from reticent.privacy.bounds import Bounds
from reticent.privacy.oracle import CHOICE, Choice, Design, Run
from reticent.privacy.release import (
    CALIBRATION_TOLERANCE,
    NUMBER,
    Release,
    check_scale,
    noise_multiplier,
    noise_scale,
    number_scale,
    number_sd,
    same_event,
)
from reticent.privacy.selection.exponential_mechanism import (
    Scores,
    described,
    epsilon_of,
    exponents,
)
from reticent.privacy.statistics.base import Statistic
from reticent.privacy.statistics.cell_sum import CellSum
from reticent.privacy.statistics.counts import Counts
from reticent.privacy.statistics.enforced import enforce
from reticent.privacy.unit import PrivacyUnit
from reticent.validation import is_integer

__all__ = ["Replay", "alike"]


def alike(a: object, b: object) -> bool:
    """Whether two descriptions say the same, but for the last digits, in which machines differ."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(alike(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        if a and all(isinstance(v, (int, float)) for v in [*a, *b]):
            largest = max(map(abs, a))
            return len(a) == len(b) and all(
                abs(v - w) <= 1e-5 * largest < inf for v, w in zip(a, b, strict=True)
            )
        return len(a) == len(b) and all(map(alike, a, b))
    if isinstance(a, float) and isinstance(b, float):
        return abs(a - b) <= 1e-5 * abs(a) < inf
    return bool(a == b)


def _recorded(releases: Sequence[Release]) -> Choice:
    """The choice that the releases of a search record; refuse what no curator gives."""
    first = releases[0]
    description = releases[0].statistic
    training_releases, candidates, *sizes = (
        _whole(description.get(n)) for n in ("releases", "candidates", "training", "validation")
    )
    if (
        not 1 <= training_releases < len(releases) - 1
        or first.value.shape != (2,)
        or not isinstance(first.event, Selection)
    ):
        raise BadInput("These are not all releases of a search, as its curator gave them.")
    index, score = first.value.tolist()
    training = list(releases[1 : 1 + training_releases])
    validation = list(releases[1 + training_releases :])
    Replay(training), Replay(validation)  # each by itself is checked as those of a fit are
    first.check()
    same = {
        (
            release.fit,
            release.event,
            release.unit,
            release.private,
            release.entry,
        )
        for release in releases
    }
    if len(same) > 1 or sizes != [training[0].n, validation[0].n] or sum(sizes) != first.n:
        raise BadInput("These releases are not of one search, so no one guarantee covers them.")
    if (
        index not in range(candidates)
        or not np.isfinite(score)
        or training[0].bounds != first.bounds
    ):
        raise BadInput("A release holds a number that no curator gives: it was altered.")
    return Choice(int(index), score, training, validation)


def _whole(value: object) -> int:
    return int(value) if is_integer(value) else 0  # type: ignore[call-overload]


def _belongs(release: Release) -> tuple[object, ...]:
    """What all releases of one fit have in common."""
    protection = release.unit, release.private
    return (release.fit, release.event, release.entry, release.n, release.bounds, *protection)


def _is_number(release: Release) -> bool:
    """Whether it is the released number of people or records, where that is protected."""
    return release.statistic.get("name") == NUMBER


def _check_number(release: Release, event: Event | None) -> None:
    """Refuse a number of units that no curator gives."""
    if release.value.shape != (1,) or release.n != max(1, round(float(release.value[0]))):
        raise BadInput("A release holds a number that no curator gives: it was altered.")
    if isinstance(event, (Gaussian, Laplace)):
        check_scale(release, np.array([sqrt(number_scale(event, release.unit))]))


def _check_paid(paid: Event, event: Event) -> None:
    """Refuse releases whose event is not what the parameters pay for."""
    fits = same_event(paid, event)
    if isinstance(event, Selection) and isinstance(
        paid, Gaussian
    ):  # a run: its μ is that of the search's runs
        fits = isclose(
            sqrt(paid.count) * event.noise_multiplier,
            paid.noise_multiplier,
            rel_tol=CALIBRATION_TOLERANCE,
        )
    if not fits:
        raise BadInput(
            f"These releases were paid for with {event}, and the parameters pay for {paid}: "
            "rebuild them with the parameters they had."
        )


class Replay:
    """Answers ``release`` from recorded releases, in order: a model rebuilt from it saw no data.

    ``paid``: what the model's parameters pay for. Releases that were paid for otherwise are
    refused. Of a run of a search it is the noise of that run, within what the search has paid.
    """

    def __init__(self, releases: Sequence[Release], paid: Event | None = None) -> None:
        if not releases:
            raise BadInput("There are no releases to rebuild from.")
        first = releases[0]
        self.releases = list(releases)
        self._next = 0
        self._noise = paid
        if paid is None and not isinstance(first.event, Selection):
            self._noise = first.event
        if paid is not None:
            _check_paid(paid, first.event)
        self._choice = _recorded(releases) if first.statistic.get("kind") == CHOICE else None
        if self._choice is not None:
            return
        if not first.unit.number_is_public:
            if not _is_number(first):
                raise BadInput(
                    "The number of people or records is protected here, and its release is "
                    "missing: give all releases of the fit."
                )
            _check_number(first, self._noise)
            self._next = 1
        if any(map(_is_number, releases[self._next :])):
            raise BadInput("There are more releases than were paid for.")
        together = _belongs(first)
        for release in releases:
            release.check()
            if _belongs(release) != together:
                raise BadInput(
                    "These releases are not of one fit, so no one guarantee "
                    "covers them: rebuild each fit by itself."
                )
            if release.value.shape != (release.statistic.get("size"),):
                raise BadInput(
                    "A release does not have as many numbers as its statistic: it was altered."
                )
            if release.n < 1 or not (release.scale > 0).all():
                raise BadInput("A release holds a number that no curator gives: it was altered.")
        if (
            self._noise is not None
            and sum(release.shares_spent for release in releases[self._next :]) > self._noise.count
        ):
            raise BadInput("There are more releases than were paid for.")

    @property
    def n(self) -> int:
        """Number of records, or of people where they are the unit."""
        return self.releases[0].n

    @property
    def n_sd(self) -> float:
        """Standard deviation of the noise in ``n``; 0 where the number is public."""
        if self.unit.number_is_public:
            return 0.0
        return number_sd(self.releases[0])

    @property
    def unit(self) -> PrivacyUnit:
        """Who is protected, and how much each record counts."""
        return self.releases[0].unit

    @property
    def bounds(self) -> Bounds:
        """The bounds the records were held to."""
        return self.releases[0].bounds

    @property
    def event(self) -> Event:
        """What was paid for; of a run of a search, the noise of that run."""
        if self._noise is None:
            return self.releases[0].event
        return self._noise

    @property
    def noise_multiplier(self) -> float:
        """Noise of one release by the record's sensitivity (`Oracle.noise_multiplier`)."""
        return noise_multiplier(self.event, self.releases[0].unit)

    def release(self, statistic: Statistic, *, shares_spent: int = 1) -> Release:
        """Give the next recorded release.

        Of the same statistic, noise scale, and number of releases that it took.
        """
        release = self._recorded(statistic.describe(), shares_spent)
        if self._noise is not None:
            check_scale(
                release,
                noise_scale(statistic, self._noise, release.unit, shares_spent),
            )
        return release

    def select(
        self,
        statistic: CellSum | Counts,
        scores: Scores,
        *,
        shares_spent: int = 1,
        counts: NDArray[np.int64] | None = None,
    ) -> Release:
        """Give the recorded choice, which must be among as many candidates."""
        release = self._recorded(described(statistic.describe(), scores), shares_spent)
        if release.value[0] not in range(len(scores.constants)):
            raise BadInput("A release holds a number that no curator gives: it was altered.")
        if isinstance(self._noise, Gaussian):
            epsilon = epsilon_of(sqrt(shares_spent) / self._noise.noise_multiplier)
            enforced = enforce(statistic)
            nothing = np.zeros(enforced.size, dtype=object)  # the scale does not depend on the sums
            scale = exponents(
                enforced,
                scores,
                nothing,
                n=release.n,
                people=release.records_per_person,
                counts=counts,
                epsilon=epsilon,
            )[1]
            check_scale(release, np.array([scale]))
        return release

    def _recorded(self, asked: dict[str, Any], shares_spent: int) -> Release:
        release = self._following()
        if shares_spent != release.shares_spent or not alike(release.statistic, asked):
            raise ReleaseRefused(
                f"The model asks for {asked['name']} with {asked['size']} numbers, but the record "
                f"holds {release.statistic['name']} with {release.statistic['size']}, or one with "
                "other parameters: rebuild it with the parameters it had."
            )
        self._next += 1
        return release

    def release_given_inputs(self, design: Design, *, shares_spent: int = 1) -> Release:
        """Give the next recorded release; nothing is designed again.

        The model must look whether it is what it can use.
        """
        release = self._following()
        if shares_spent != release.shares_spent:
            raise ReleaseRefused(
                "The record holds a release that counts otherwise: rebuild it "
                "with the parameters it had."
            )
        self._next += 1
        return release

    def _following(self) -> Release:
        if self._next >= len(self.releases):
            raise ReleaseRefused(
                "The model asks for more releases than were recorded: its "
                "parameters must be those it had."
            )
        return self.releases[self._next]

    def choose(self, run: Run) -> Choice:
        """Give the recorded choice of a search; nothing is tried."""
        if self._choice is None:
            raise ReleaseRefused(
                "These releases are not of a search: rebuild them with the "
                "estimator that made them."
            )
        self._next = len(self.releases)
        return self._choice

    def check_used(self) -> None:
        """Refuse releases that the model did not ask for: its guarantee would not speak of them."""
        if self._next < len(self.releases):
            raise BadInput(
                f"The model uses {self._next} of {len(self.releases)} releases: its parameters "
                "must be those it had."
            )
