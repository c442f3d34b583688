"""The guarantee: what a release promises, in numbers and in words."""

import math
from dataclasses import dataclass

from reticent.privacy.accounting import epsilon, rounded_up
from reticent.privacy.events import Event
from reticent.privacy.given import check_whole
from reticent.privacy.ledger import RELATIONS

__all__ = ["Guarantee"]


@dataclass(frozen=True)
class Guarantee:
    """What holds for everything that a fitted model shows.

    Attributes
    ----------
    delta, relation, events, private, records_per_person
        The δ of the promise; what changes between two neighbouring data sets; what was done to the data; False if the
        noise came from a seed, which voids the promise; how many records one person may have.
    """

    delta: float
    relation: str
    events: tuple[Event, ...]
    private: bool
    records_per_person: int = 1

    def __post_init__(self) -> None:
        check_whole("records_per_person", self.records_per_person)

    @property
    def epsilon(self) -> float:
        """ε at ``delta``, composed exactly from the events."""
        return epsilon(self.events, self.delta)

    @property
    def statement(self) -> str:
        """The promise in words; its numbers are rounded up."""
        if not self.private:
            return (
                "NOT PRIVATE: the noise was drawn from a seed (random_state), so whoever knows the seed can take it away again. "
                "Use it for tests only, and fit without random_state for a release."
            )
        who, neighbours, rest = "record", RELATIONS[self.relation], ""
        if self.records_per_person > 1:
            many = f"up to {self.records_per_person} records of one person"
            who = f"group of {self.records_per_person} records of one person"
            neighbours = neighbours.replace("one record, replaced by any other", f"{many}, replaced by any others")
            neighbours = neighbours.replace("the label of one record", f"the labels of {many}")
        if self.relation == "label":
            who = who.replace("record", "label")
            rest = " The inputs are NOT protected: they are part of the release."
        eps = self.epsilon
        return (
            f"({_at_most(eps, 6)}, {_at_most(self.delta, 6)})-differential privacy; {neighbours}. "
            f"Whatever an attacker concludes from this release, knowing all other records, is at most "
            f"e^{_at_most(eps, 4)} = {_factor(eps)} times as likely as it would be had any one {who} been another, "
            f"but for a chance of {_at_most(self.delta, 2)}.{rest}"
        )


def _at_most(value: float, digits: int) -> str:
    """A number of the promise in so many digits, never below it."""
    return f"{rounded_up(value, digits):.{digits}g}"


def _factor(eps: float) -> str:
    return _at_most(math.exp(eps), 3) if eps < 100 else "a very large number of"
