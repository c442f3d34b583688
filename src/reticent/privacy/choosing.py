"""The runs of a search: which candidate is tried when, on which half of the records, and which run is the best.

Everything here happens inside a curator (`Curator.choose`), which has paid for it. Proof: selection.md.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from reticent.errors import BadInput
from reticent.privacy.bounds import Bounds, checked_bounds
from reticent.privacy.draws import number_of_runs, split, uniform
from reticent.privacy.events import Gaussian, Selection, checked_event
from reticent.privacy.guard import attempted
from reticent.privacy.halves import MEMORY, Part
from reticent.privacy.kept import MEMORY as KEPT
from reticent.privacy.kept import Keeper
from reticent.privacy.release import Attempt, Release
from reticent.privacy.sources import Field, Source

if TYPE_CHECKING:
    from reticent.privacy.noise import Bits

__all__ = ["Best", "Candidate", "Draw", "best_run", "check_candidates", "draw", "too_much"]


@dataclass(frozen=True)
class Candidate:
    """One of those a search chooses from: bounds to fit it with and to judge it with, and the noise of either."""

    bounds: Bounds
    judged: Bounds
    event: Gaussian
    judging: Gaussian

    def __post_init__(self) -> None:
        for name in ("event", "judging"):  # Gaussian noise is what selection.md is about
            object.__setattr__(self, name, checked_event(getattr(self, name), Gaussian))
        for name in ("bounds", "judged"):
            object.__setattr__(self, name, checked_bounds(getattr(self, name)))

    @property
    def sides(self) -> tuple[tuple[Bounds, Gaussian], tuple[Bounds, Gaussian]]:
        """For the training half and for the validation half."""
        return (self.bounds, self.event), (self.judged, self.judging)


def check_candidates(
    candidates: Sequence[Candidate], event: Selection, source: Source, *, targets: bool
) -> tuple[Field, ...]:
    """Refuse what could not be searched, from public numbers; give the columns that the candidates use."""
    if not candidates:
        raise BadInput("A search needs candidates to choose from.")
    paid = 1 / Fraction(event.noise_multiplier) ** 2
    columns: dict[Field, None] = {}
    for candidate in candidates:
        if type(candidate) is not Candidate:  # a subclass may say something else when it is run
            raise BadInput(f"A search chooses from Candidate objects, not {type(candidate).__name__}.")
        for bounds, noise in candidate.sides:
            if noise.count / Fraction(noise.noise_multiplier) ** 2 > paid:  # μ² of one side of a run, exactly
                raise BadInput("A candidate asks for less noise than a run of this search is paid for.")
            columns |= dict.fromkeys(bounds.resolve(source, targets=targets)[1])
    source.check(tuple(columns))
    if not source.local:
        raise BadInput(
            "A search divides the records by their row numbers, and rows on a cluster have none: give a file or an array."
        )
    if source.known_n == 1:
        raise BadInput(
            "A search fits candidates on one half of the records and judges them on the other: 1 sample is not enough."
        )
    if source.known_n is not None and too_much(source.known_n, len(columns)):
        raise BadInput(
            "The candidates' columns do not fit in the memory of a search (1 GiB): take fewer columns or records."
        )
    return tuple(columns)


def too_much(n: int, columns: int) -> bool:
    """Whether the columns are more than a search holds in memory."""
    return 8 * n * columns > MEMORY


@dataclass(frozen=True)
class Draw:
    """All that chance decides before a record is read: the candidate of each run."""

    order: list[int]
    bits: "Bits"

    def split(self, n: int, share: float) -> NDArray[np.bool_]:
        """Choose the places of the validation half; at least one place in either half."""
        return split(n, min(max(round(n * share), 1), n - 1), self.bits)


def draw(event: Selection, candidates: int, bits: "Bits") -> Draw:
    """Draw how many runs there are, and the candidate of each."""
    return Draw([uniform(candidates, bits) for _ in range(number_of_runs(event, bits))], bits)


@dataclass(frozen=True)
class Best:
    """The best run so far; ``score`` is −inf if none could be made."""

    score: float = -math.inf
    index: int = 0
    training: tuple[Release, ...] = ()
    validation: tuple[Release, ...] = ()


def best_run(
    attempt: Attempt,
    candidates: Sequence[Candidate],
    order: Sequence[int],
    halves: tuple[Part, Part],
    side: Callable[..., Any],
) -> Best:
    """Make all runs; ``side`` gives a curator for one side of a run. A run that fails counts as the worst."""
    best, kept = Best(), dict[int, Keeper]()  # exact sums are the same in all fits of a candidate
    try:
        for number, index in enumerate(order):
            both = enumerate(zip(halves, candidates[index].sides, strict=True))
            sides = [side(half, *rules, b"run %d side %d" % (number, i)) for i, (half, rules) in both]
            if index not in kept:
                kept[index] = Keeper(sides[0].bounds, KEPT // len(candidates), again=True)
            sides[0].share(kept[index])
            run = _run(attempt, index, sides)
            best = run if run.score > best.score else best
    finally:
        for keeper in kept.values():
            keeper.close()
    return best


def _run(attempt: Attempt, index: int, sides: Sequence[Any]) -> Best:
    score = attempted("A run", lambda: float(attempt(index, *sides)))  # whatever it says, it says to nobody
    if score is None:
        return Best()
    training, validation = (tuple(one.releases) for one in sides)
    return Best(score, index, training, validation) if math.isfinite(score) and training and validation else Best()
