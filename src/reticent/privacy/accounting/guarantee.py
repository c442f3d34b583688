"""Guarantee: what a release promises, in numbers and in words."""

import math
from dataclasses import dataclass, field

from reticent.privacy.accounting.composition import epsilon
from reticent.privacy.accounting.events import Event
from reticent.privacy.accounting.rounding import rounded_up
from reticent.privacy.unit import REPLACE, PrivacyUnit

__all__ = ["Guarantee"]


@dataclass(frozen=True)
class Guarantee:
    """What holds for everything that a fitted model shows.

    Attributes
    ----------
    delta, relation, events, private, records_per_person
        The δ of the promise; what changes between two neighbouring data sets; what was done to the
        data; False if the noise came from a seed, which voids the promise; how many records one
        person may have.
    person, neighbours
        The column that tells people apart, if all records of a person are protected together; and
        whether neighbours replace a unit, or add or remove one.
    units : int, optional
        How many people (or records) there are, where that is public.
    """

    delta: float
    relation: str
    events: tuple[Event, ...]
    private: bool
    records_per_person: int = 1
    person: str | None = None
    neighbours: str = REPLACE
    units: int | None = field(default=None, compare=False)  # no part of the promise

    def __post_init__(self) -> None:
        _ = self.unit  # refuses what is no unit

    @property
    def unit(self) -> PrivacyUnit:
        """Who is protected."""
        return PrivacyUnit(
            relation=self.relation,
            records_per_person=self.records_per_person,
            person=self.person,
            neighbours=self.neighbours,
        )

    @property
    def epsilon(self) -> float:
        """ε at ``delta``, composed exactly from the events."""
        return epsilon(self.events, self.delta)

    @property
    def who(self) -> str:
        """Who is protected in this table, in words; without a number where that is protected."""
        if self.units is None:
            return f"any one {self.unit.who()}"
        k = self.records_per_person
        records = f"{self.units:,} records"
        if self.person is not None:
            one = f"any one of the {self.units:,} people in {self.person!r}"
            if self.relation == "label":
                return f"{one}, with the labels of all of their records"
            return f"{one}, with all of their records"
        if k > 1:
            return f"any one person with up to {k} {self.relation}s of {records}"
        if self.relation == "label":
            return f"the label of any one of the {records}"
        return f"any one of the {records}"

    @property
    def statement(self) -> str:
        """The promise in words; its numbers are rounded up."""
        if not self.private:
            return (
                "NOT PRIVATE: the noise was drawn from a seed (random_state), "
                "so whoever knows the seed can take it away again. Use it for "
                "tests only, and fit without random_state for a release."
            )
        neighbours = self.unit.how_neighbours_differ()
        comma = ""
        if self.person is not None and self.units is not None:
            comma = ","
        difference = f"had {self.who}{comma} been another"
        if not self.unit.number_is_public:
            difference = f"without {self.who}, or with one more"
        rest = ""
        if self.relation == "label":
            rest = " The inputs are NOT protected: they are part of the release."
        eps = self.epsilon
        return (
            f"({_at_most(eps, 6)}, {_at_most(self.delta, 6)})-differential privacy; {neighbours}. "
            "Whatever an attacker concludes from this release, knowing all other records, is at "
            f"most e^{_at_most(eps, 4)} = {_factor(eps)} times as likely as it would be "
            f"{difference}, but for a chance of {_at_most(self.delta, 2)}.{rest}"
        )


def _at_most(value: float, digits: int) -> str:
    """A number of the promise in so many digits, never below it."""
    return f"{rounded_up(value, digits):.{digits}g}"


def _factor(eps: float) -> str:
    if eps < 100:
        return _at_most(math.exp(eps), 3)
    return "a very large number of"
