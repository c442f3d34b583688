"""Oracle: the interface that models learn through, of a `Curator` or of a `Replay` of its releases.

A model that cannot tell the two apart is post-processing of releases; a test holds every model to
that, bit for bit.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from numpy.typing import NDArray

from reticent.privacy.accounting.events import Event
from reticent.privacy.bounds import Bounds
from reticent.privacy.release import Release
from reticent.privacy.selection.exponential_mechanism import Scores
from reticent.privacy.statistics.base import Statistic
from reticent.privacy.statistics.cell_sum import CellSum
from reticent.privacy.statistics.counts import Counts
from reticent.privacy.unit import PrivacyUnit

__all__ = ["CHOICE", "Choice", "Design", "Oracle", "Run"]

# Kind of the release that holds the candidate that a search chose: its number and noisy score.
CHOICE = "choice"


# Makes a statistic from the scaled inputs (n, d) of all records, where inputs are public; where
# records have weights, these (n,) are its second argument, and public too.
Design = Callable[..., Statistic]


class Oracle(Protocol):
    """What a model learns from: a `Curator`, or a `Replay` of its releases."""

    @property
    def n(self) -> int:
        """Number of records, or of people where they are the unit: public, or released."""

    @property
    def n_sd(self) -> float:
        """Standard deviation of the noise in ``n``; 0 where the number is public."""

    @property
    def unit(self) -> PrivacyUnit:
        """Who is protected, and how much each record counts."""

    @property
    def bounds(self) -> Bounds:
        """Public ranges of the columns, one per column."""

    @property
    def event(self) -> Event:
        """What was paid for: ``event.count`` releases, with noise of its ``noise_multiplier``."""

    @property
    def noise_multiplier(self) -> float:
        """Standard deviation (Laplace: scale) of one release's noise, by the record's sensitivity.

        All records of one person are protected together: ``records_per_person`` is a factor of it.
        """

    def release(self, statistic: Statistic, *, shares_spent: int = 1) -> Release:
        """Noisy sum of ``statistic`` over the records, for ``shares_spent`` paid releases."""

    def release_given_inputs(self, design: Design, *, shares_spent: int = 1) -> Release:
        """The same of the statistic that ``design`` makes from public inputs."""

    def select(
        self,
        statistic: CellSum | Counts,
        scores: Scores,
        *,
        shares_spent: int = 1,
        counts: NDArray[Any] | None = None,
    ) -> Release:
        """Number of one candidate, chosen privately by its score."""


# A run of a search: fits the candidate of that number on a first oracle, judges it on a second;
# higher scores are better.
Run = Callable[[int, Oracle, Oracle], float]


@dataclass(frozen=True, eq=False)
class Choice:
    """What leaves a search: the candidate of its best run, that run's score, and its releases."""

    index: int
    score: float
    training: list[Release]
    validation: list[Release]
