"""Private selection: the runs of a search, and the best of them.

Which candidate is tried in which run, on which records, and which run scores best. Everything here
happens inside a curator (`Curator.choose`), which has paid for it. Proof: selection.md.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, TypedDict

import numpy as np
from numpy.typing import NDArray

from reticent.errors import BadInput, ReleaseRefused
from reticent.privacy.accounting.events import Event, Gaussian, Selection, checked_event
from reticent.privacy.bounds import Bounds, checked_bounds
from reticent.privacy.guard import call_safely, remember_signals, suppress_warnings
from reticent.privacy.oracle import CHOICE, Choice, Run
from reticent.privacy.release import Release, derived
from reticent.privacy.selection.random_draws import coins, number_of_runs, split, uniform
from reticent.privacy.selection.random_split import MEMORY
from reticent.privacy.sources.base import Field, Source
from reticent.privacy.statistics.feature_cache import CACHE_BYTES, FeatureCache
from reticent.privacy.unit import PrivacyUnit

if TYPE_CHECKING:
    from reticent.privacy.curator import Curator
    from reticent.privacy.random_bits import Bits

__all__ = [
    "Candidate",
    "DrawnRuns",
    "Paid",
    "ScoredRun",
    "best_run",
    "check_candidates",
    "check_divisible",
    "draw_runs",
    "exceeds_memory",
    "released_choice",
]

_RECORDS = PrivacyUnit()
# a curator of a subset of the records, by its bounds, its noise, and a name for its seed
MakeCurator = Callable[[Source, Bounds, Gaussian, bytes], "Curator"]


class Paid(TypedDict):
    """What a search as a whole has paid, and its releases carry."""

    event: Event
    fit: str
    entry: str | None


@dataclass(frozen=True)
class Candidate:
    """Candidate of a search: bounds and noise of its fit, and of its validation."""

    bounds: Bounds
    validation_bounds: Bounds
    event: Gaussian
    validation_event: Gaussian

    def __post_init__(self) -> None:
        for name in ("event", "validation_event"):  # Gaussian noise is what selection.md is about
            object.__setattr__(self, name, checked_event(getattr(self, name), Gaussian))
        for name in ("bounds", "validation_bounds"):
            object.__setattr__(self, name, checked_bounds(getattr(self, name)))

    @property
    def train_and_validation(self) -> tuple[tuple[Bounds, Gaussian], tuple[Bounds, Gaussian]]:
        """Bounds and noise for the training records, and for the validation records."""
        return (self.bounds, self.event), (self.validation_bounds, self.validation_event)


def check_candidates(
    candidates: Sequence[Candidate],
    event: Selection,
    source: Source,
    *,
    targets: bool,
    unit: PrivacyUnit = _RECORDS,
) -> tuple[Field, ...]:
    """Refuse what cannot be searched, from public numbers; return the columns in use.

    The number of records is among them only where they are the unit, and their number is public.
    """
    if not candidates:
        raise BadInput("A search needs candidates to choose from.")
    paid = 1 / Fraction(event.noise_multiplier) ** 2
    columns: dict[Field, None] = {}
    for candidate in candidates:
        if type(candidate) is not Candidate:  # a subclass may say something else when it is run
            raise BadInput(
                f"A search chooses from Candidate objects, not {type(candidate).__name__}."
            )
        for bounds, noise in candidate.train_and_validation:
            squared_mu = noise.count / Fraction(noise.noise_multiplier) ** 2  # exact
            if squared_mu > paid:
                raise BadInput(
                    "A candidate asks for less noise than a run of this search is paid for."
                )
            columns |= dict.fromkeys(bounds.resolve(source, targets=targets)[1])
    source.check(tuple(columns))
    if not source.local:
        raise BadInput(
            "A search divides the records by their row numbers, and rows on a cluster have none: "
            "give a file or an array."
        )
    if not unit.records_are_public:
        return tuple(columns)
    if source.known_n == 1:
        raise BadInput(
            "A search fits candidates on one half of the records and judges them on the other: 1 "
            "sample is not enough."
        )
    if source.known_n is not None and exceeds_memory(source.known_n, len(columns)):
        raise BadInput(
            "The candidates' columns do not fit in the memory of a search (1 "
            "GiB): take fewer columns or records."
        )
    return tuple(columns)


def exceeds_memory(n: int, columns: int) -> bool:
    """Whether a table of ``n`` records is more than a search holds in memory."""
    return 8 * n * columns > MEMORY


def check_divisible(units: int, unit: PrivacyUnit, *, held: bool) -> None:
    """Refuse a table that cannot be divided, by numbers that are public.

    ``units`` records or people; ``held``: whether all records fit in memory. Where the number of
    records is not public, they are read again and again instead.
    """
    if unit.records_are_public and not held:
        raise ReleaseRefused(
            "The columns of a search must fit in 1 GiB of memory. The charge stays."
        )
    if unit.number_is_public and units < 2:
        raise ReleaseRefused(
            "A search needs 2 records (2 people, where they are the unit). The charge stays."
        )


@dataclass(frozen=True)
class DrawnRuns:
    """What is drawn before a record is read: the index of each run's candidate."""

    order: list[int]
    bits: "Bits"

    def validation_mask(
        self, n: int, fraction: float, *, number_is_public: bool = True
    ) -> NDArray[np.bool_]:
        """Draw which of ``n`` rows are validation records.

        A fixed number of them, at least one on either side; where n is protected, by a coin for
        each, so that one more row changes nothing about the others.
        """
        if not number_is_public:
            return coins(n, fraction, self.bits)
        return split(n, min(max(round(n * fraction), 1), n - 1), self.bits)


def draw_runs(event: Selection, candidates: int, bits: "Bits") -> DrawnRuns:
    """Draw the number of runs, and the candidate of each."""
    runs = number_of_runs(event, bits)
    return DrawnRuns([uniform(candidates, bits) for _ in range(runs)], bits)


@dataclass(frozen=True)
class ScoredRun:
    """A run: its score, its candidate and its releases; a score of −inf if it failed."""

    score: float = -math.inf
    index: int = 0
    training: tuple[Release, ...] = ()
    validation: tuple[Release, ...] = ()


def best_run(
    run: Run,
    candidates: Sequence[Candidate],
    order: Sequence[int],
    subsets: tuple[Source, Source],
    make_curator: MakeCurator,
) -> ScoredRun:
    """Make all runs, and return the one of the best score; a run that fails counts as the worst.

    ``order`` holds the candidate of each run, ``subsets`` the training and validation records.
    ``make_curator`` returns a curator of a subset for one run.
    """
    best = ScoredRun()
    caches = dict[int, FeatureCache]()  # exact sums are the same in all fits of a candidate
    with remember_signals(), suppress_warnings():
        try:
            for number, index in enumerate(order):
                rules = candidates[index].train_and_validation
                training, validation = (
                    make_curator(subset, bounds, event, b"run %d side %d" % (number, side))
                    for side, (subset, (bounds, event)) in enumerate(
                        zip(subsets, rules, strict=True)
                    )
                )
                if index not in caches:
                    caches[index] = FeatureCache(CACHE_BYTES // len(candidates), keep_totals=True)
                training.use_cache(caches[index])
                scored = _scored(run, index, training, validation)
                if scored.score > best.score:
                    best = scored
        finally:
            for cache in caches.values():
                cache.close()
    return best


def _scored(run: Run, index: int, training: "Curator", validation: "Curator") -> ScoredRun:
    # Whatever the run raises or warns of is said to nobody.
    score = call_safely("A run", lambda: float(run(index, training, validation)))
    if score is None or not math.isfinite(score):
        return ScoredRun()
    if not training.releases or not validation.releases:
        return ScoredRun()
    return ScoredRun(score, index, tuple(training.releases), tuple(validation.releases))


def released_choice(best: ScoredRun, candidates: int, paid: Paid) -> tuple[Release, Choice]:
    """What leaves of a search: its choice as a release, and the releases of the best run.

    All of them carry what the search as a whole has paid.
    """
    if not best.training:
        raise ReleaseRefused(
            "No run of the search could be fitted and judged. Nothing is released; the charge "
            "stays."
        )
    training = [derived(one, **paid) for one in best.training]
    validation = [derived(one, **paid) for one in best.validation]
    description = {
        "name": "Choice",
        "kind": CHOICE,
        "size": 2,
        "candidates": candidates,
        "releases": len(training),
        "training": training[0].n,
        "validation": validation[0].n,
    }
    first = derived(
        training[0],
        statistic=description,
        value=np.array([best.index, best.score], dtype=np.float64),
        scale=np.zeros(2),  # of their own: the noise is in the releases that follow
        n=training[0].n + validation[0].n,
        shares_spent=1,
    )
    return first, Choice(best.index, best.score, training, validation)
