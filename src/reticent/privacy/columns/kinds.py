"""Kinds of columns: what is public about the values of one column.

    Number(low, high)        a number in a range              age=0:110
    Whole(low, high)         a whole number                   children=0:15:whole
    Words([...])             one of some words, in no order   sex=F,M
    Ordered([...])           one of some words, in order      stage=I<II<III
    YesNo()                  yes or no                        smoker=yes/no
    Date(low, high)          a day, or a moment               visit=2019-01-01:2024-12-31
    Cyclic(low, high)        a number that comes round        hour=0:24:cyclic

A kind turns the cell of one record into a *code*, a float64, or NaN where the cell is missing: the
number itself; the position of a word among the levels, from 0; the days since 1970-01-01. A cell
that is not of its kind is missing, and so is a word that is not among the levels and a value among
the ``missing`` codes. The code of a cell is a function of that cell alone. Proof: reading.md.

A code lies in the kind's ``range``. Levels and whole numbers are the middles of cells of width one:
L levels have the range (−½, L − ½).
"""

from collections.abc import Callable, Mapping
from dataclasses import fields
from datetime import date
from typing import Any

import numpy as np

from reticent.errors import BadInput, BoundsMissing
from reticent.privacy.columns.base import Kind
from reticent.privacy.columns.dates import Date
from reticent.privacy.columns.numbers import Cyclic, Number, Whole, checked_range
from reticent.privacy.columns.words import Ordered, Words, YesNo

__all__ = ["as_kind", "kind_from_dict"]

_KINDS: dict[str, type[Kind]] = {
    cls.name: cls for cls in (Number, Whole, Words, Ordered, YesNo, Date, Cyclic)
}


def kind_from_dict(given: Mapping[str, Any]) -> Kind:
    """A kind from `Kind.to_dict`: a copy that nobody else holds."""
    options = {name: value for name, value in given.items() if name != "kind"}
    if given.get("kind") not in _KINDS:
        known = ", ".join(_KINDS)
        raise BadInput(f"There is no kind of column {given.get('kind')!r}. Kinds: {known}.")
    cls = _KINDS[given["kind"]]
    wrong = set(options) - {one.name for one in fields(cls)}
    if wrong:
        raise BadInput(f"A column of kind {cls.name} has no {', '.join(sorted(wrong))}.")
    return cls(**options)


# ---- literals


def as_kind(what: str, given: object) -> Kind:
    """The kind that a literal stands for: (0, 110), ["F", "M"], bool, (date, date), or a kind.

    >>> as_kind("x column 'sex'", ["F", "M"])
    Words(words=['F', 'M'])
    """
    if isinstance(given, Kind):
        if type(given) not in _KINDS.values():
            raise BadInput(f"The kind of {what} must be one of reticent's own.")
        return kind_from_dict(given.to_dict())
    if given is bool:
        return YesNo()
    if isinstance(given, list) and given and all(isinstance(one, str) for one in given):
        words = tuple(given)
        return _about(what, lambda: Words(words))
    low, high = _pair(what, given)
    moments = (date, np.datetime64)
    if isinstance(low, moments) or isinstance(high, moments):
        return _about(what, lambda: Date(low, high))
    return Number(*checked_range(what, low, high))


def _pair(what: str, given: Any) -> tuple[Any, Any]:
    try:
        low, high = given
    except (TypeError, ValueError):
        raise BoundsMissing(
            f"The bounds of {what} must be a pair (low, high), a list of words, bool, or a kind "
            f"such as Ordered([...]), not {given!r}."
        ) from None
    return low, high


def _about(what: str, make: Callable[[], Kind]) -> Kind:
    try:
        return make()
    except BoundsMissing as error:
        raise BoundsMissing(f"{what}: {error}") from None
