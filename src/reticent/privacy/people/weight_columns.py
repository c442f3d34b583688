"""Weight columns: which columns of a source say whose a record is, and how much it counts.

Decided by names and positions alone, before anything is charged. Identifiers are read as two
numbers (columns/identifiers.py) with a secret key of their own for every fit.
"""

import math
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from reticent.errors import BadInput
from reticent.privacy.columns.identifiers import Identifier
from reticent.privacy.columns.numbers import Number
from reticent.privacy.people.person_counts import PersonCounts
from reticent.privacy.people.unit import PrivacyUnit
from reticent.privacy.people.weights import RecordWeights
from reticent.privacy.sources.base import Field, Source
from reticent.privacy.sources.cell_values import text_number

__all__ = ["WeightColumns", "weight_columns"]

_KEY_BYTES = 16


@dataclass(frozen=True, eq=False)
class WeightColumns:
    """Columns that decide weights: two halves of an identifier, and a stated weight."""

    unit: PrivacyUnit
    person: tuple[Field, ...] = ()
    weight: tuple[Field, ...] = ()
    nobody: tuple[tuple[float, float], ...] = ()  # codes of identifiers whose records do not count
    key: int = field(default_factory=lambda: secrets.randbits(64))  # of checksums

    @property
    def fields(self) -> tuple[Field, ...]:
        """All of them, in the order in which they follow a record's values."""
        return self.person + self.weight

    def weights(self, columns: int, people: PersonCounts | None) -> RecordWeights | None:
        """Weights of records that have so many values; None where every record counts as one."""
        if not self.fields:
            return None
        return RecordWeights(
            columns, people, self.unit.contribution, self.unit.weight_bound, self.nobody
        )


def weight_columns(source: Source, unit: PrivacyUnit) -> WeightColumns:
    """Find the columns in a source, and refuse those that it does not have."""
    person: tuple[Field, ...] = ()
    weight: tuple[Field, ...] = ()
    nobody: tuple[tuple[float, float], ...] = ()
    if unit.person is not None:
        key = _key(source, "person", unit.person)
        secret = secrets.token_bytes(_KEY_BYTES)
        halves = Identifier(0, secret), Identifier(1, secret)
        person = tuple(Field(key, half) for half in halves)
        nobody = tuple(_pairs(source.nobody, *halves))
    if unit.weight is not None:
        key = _key(source, "weight", unit.weight)
        bound = unit.weight_bound or 1.0
        weight = (Field(key, Number(0.0, bound, missing=source.weightless)),)
    found = WeightColumns(unit, person, weight, nobody)
    source.check(found.fields)
    return found


def _pairs(
    codes: Sequence[str], first: Identifier, second: Identifier
) -> Iterator[tuple[float, float]]:
    """Pairs of the identifiers that are one of these codes, as a text or as a number."""
    for code in codes:
        for value in (code, text_number(code.encode("utf-8", "surrogatepass"))):
            pair = first.code_value(value), second.code_value(value)
            if not any(map(math.isnan, pair)):
                yield pair


def _key(source: Source, what: str, name: str) -> str | int:
    """Where a column is: beside the records, or among their columns by name or position.

    What came beside is named after what it is. Two answers are refused: an account that is open for
    one column of identifiers is not charged with others.
    """
    if what in source.beside:
        if name != what or name in (source.names or ()):
            raise BadInput(
                f"{what} is the column {name!r}, and came beside the records too. Leave one out.",
                parameter=what,
            )
        return source.beside[what]
    if source.names is None:
        if name.isdecimal() and int(name) < source.width:
            return int(name)
        raise BadInput(
            f"These records have no column names. Give {what} by position, counted from 0 "
            f"({what}='2'), or beside the records: fit(X, y, {_ARGUMENTS[what]}=...).",
            parameter=what,
        )
    source.position(name)  # says which columns there are
    return name


_ARGUMENTS = {"person": "person", "weight": "sample_weight"}
