"""Unit of privacy: who is protected, and what two neighbouring tables differ in.

    record             one record, or up to k of one person (`records_per_person`, believed)
    label              the label of one record, where all inputs are public
    person             all records of one person, however many, found by a column of identifiers

Of a person's k_i records each counts with the weight 1/max(k_i, contribution), so that the weights
of one person add up to at most one: what a whole person adds to a sum lies in the convex hull of
what single records can add, and the sensitivity is that of one record (weights.md). Neighbours
differ by replacing one unit, with the number of units public, or by adding or removing one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from reticent.errors import BadInput
from reticent.validation import as_float, check_choice, check_integer

__all__ = ["ADD_REMOVE", "NEIGHBOURS", "RELATIONS", "REPLACE", "PrivacyUnit"]

RELATIONS = {
    "record": (
        "neighbours differ in one record, replaced by any other; the number of records is public"
    ),
    "label": "neighbours differ in the label of one record; all inputs and the "
    "number of records are public",
}
REPLACE = "replace"
ADD_REMOVE = "add-remove"
NEIGHBOURS = (REPLACE, ADD_REMOVE)
MOST_RECORDS = 10**6  # of one person, where they are believed
_LONGEST_NAME = 200
_SMALLEST_BOUND = 1e-100  # of weights: quotients by it neither overflow nor become subnormal
_LARGEST_BOUND = 1e100


@dataclass(frozen=True)
class PrivacyUnit:
    """Who is protected.

    Attributes
    ----------
    relation : str
        What of the unit is protected: its records, or their labels alone (a key of ``RELATIONS``).
    records_per_person : int
        How many records one person may have, where no column tells: believed, never checked.
    person : str or None
        Name of the column whose equal values are one person.
    contribution : int
        How many records' weight a person may have: each of k_i records counts
        1/max(k_i, contribution). With 1, every person counts once.
    neighbours : str
        "replace": one unit becomes another, and how many there are is public; "add-remove": one
        more or one less, and their number is protected too.
    weight, weight_bound
        Name of a column of record weights (of a survey, for example), and the public number above
        which a weight counts as that number.
    """

    relation: str = "record"
    records_per_person: int = 1
    person: str | None = None
    contribution: int = 1
    neighbours: str = REPLACE
    weight: str | None = None
    weight_bound: float | None = None

    def __post_init__(self) -> None:
        check_choice("relation", self.relation, RELATIONS)
        check_choice("neighbours", self.neighbours, NEIGHBOURS)
        check_integer("records_per_person", self.records_per_person, 1, MOST_RECORDS)
        check_integer("contribution", self.contribution, 1, MOST_RECORDS)
        for name in ("records_per_person", "contribution"):
            object.__setattr__(self, name, int(getattr(self, name)))
        for name in ("person", "weight"):
            _check_name(name, getattr(self, name))
        if self.person is not None and self.records_per_person > 1:
            raise BadInput(
                "person= finds all records of each person; records_per_person= is for tables "
                "without such a column. Give one of them.",
                parameter="records_per_person",
            )
        if self.contribution > 1 and self.person is None:
            raise BadInput(
                "contribution= says how much one person may count, and needs person=, the column "
                "that tells who a record is of.",
                parameter="contribution",
            )
        if self.relation == "label" and self.neighbours == ADD_REMOVE:
            raise BadInput(
                "Where labels alone are protected, the number of records is public: neighbours "
                "replace one label. Take neighbours='replace'.",
                parameter="neighbours",
            )
        self._check_weight()

    def _check_weight(self) -> None:
        if (self.weight is None) != (self.weight_bound is None):
            raise BadInput(
                "Weights of records need both the column and a public upper bound: "
                "weight='w', weight_bound=20. A larger weight counts as the bound.",
                parameter="weight_bound",
            )
        if self.weight_bound is None:
            return
        bound = as_float(self.weight_bound)
        if not _SMALLEST_BOUND <= bound <= _LARGEST_BOUND:
            raise BadInput(
                f"weight_bound must be a positive number, not {self.weight_bound!r}.",
                parameter="weight_bound",
            )
        object.__setattr__(self, "weight_bound", bound)

    @property
    def weighted(self) -> bool:
        """Whether records have weights of their own."""
        return self.person is not None or self.weight is not None

    @property
    def one_each(self) -> bool:
        """Whether each unit weighs one in all: then their number is the total weight."""
        return self.weight is None and self.contribution == 1

    @property
    def number_is_public(self) -> bool:
        """Whether the number of units is public."""
        return self.neighbours == REPLACE

    @property
    def records_are_public(self) -> bool:
        """Whether the number of records is public: not where people, or numbers, are protected."""
        return self.number_is_public and (self.person is None or self.relation == "label")

    @property
    def noun(self) -> str:
        """One word for the unit: record, label or person."""
        if self.person is not None and self.relation == "record":
            return "person"
        return self.relation

    @property
    def nouns(self) -> str:
        """The same of several: records, labels or people."""
        if self.noun == "person":
            return "people"
        return f"{self.noun}s"

    def for_account(self) -> dict[str, Any]:
        """What an account of a ledger is about: who is protected, not how much each counts."""
        account: dict[str, Any] = {
            "relation": self.relation,
            "records_per_person": self.records_per_person,
        }
        if self.person is not None:
            account["person"] = self.person
        if self.neighbours != REPLACE:
            account["neighbours"] = self.neighbours
        return account

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values: relation and records per person, and what else is not the default."""
        always = ("relation", "records_per_person")
        values = {one.name: (getattr(self, one.name), one.default) for one in fields(self)}
        return {
            name: value
            for name, (value, default) in values.items()
            if name in always or value != default
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "PrivacyUnit":
        """Rebuild a unit from `to_dict` or `for_account`; what else stands there is left alone."""
        known = {one.name for one in fields(cls)}
        return cls(**{name: value for name, value in values.items() if name in known})

    def who(self) -> str:
        """Who is protected, in words: what "any one …" is followed by."""
        if self.relation == "label":
            if self.person is not None:
                return f"person with the labels of all their records ({self.person})"
            return _group(self.records_per_person, "label")
        if self.person is not None:
            return f"person with all of their records ({self.person})"
        return _group(self.records_per_person, "record")

    def how_neighbours_differ(self) -> str:
        """How two neighbouring tables differ, and what is public, in words."""
        k = self.records_per_person
        if self.relation == "label":
            if self.person is not None:
                return (
                    "neighbours differ in the labels of all records of one person; all inputs, "
                    "who each record is of, and the number of records are public"
                )
            if k > 1:
                return (
                    f"neighbours differ in the labels of up to {k} records of one person; all "
                    "inputs and the number of records are public"
                )
            return RELATIONS["label"]
        unit = "one record"
        of = "records"
        if self.person is not None:
            unit = "all records of one person, however many"
            of = "people"
        elif k > 1:
            unit = f"up to {k} records of one person"
        if self.neighbours == ADD_REMOVE:
            return f"neighbours differ in {unit}, added or removed; the number of {of} is protected"
        if self.person is not None:
            return (
                f"neighbours differ in {unit}, replaced by those of any other; the number of "
                "people is public"
            )
        if k > 1:
            return (
                f"neighbours differ in {unit}, replaced by any others; the number of records is "
                "public"
            )
        return RELATIONS["record"]


def _group(k: int, noun: str) -> str:
    if k == 1:
        return noun
    return f"group of {k} {noun}s of one person"


def _check_name(name: str, value: object) -> None:
    if value is None:
        return
    if not isinstance(value, str) or not 1 <= len(value) <= _LONGEST_NAME:
        raise BadInput(
            f"{name} is the name of a column, not {value!r}.",
            parameter=name,
        )
    if not value.isprintable():
        raise BadInput(f"{name} must be a printable name, not {value!r}.", parameter=name)
