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

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from datetime import date
from typing import Any

import numpy as np

from reticent.errors import BadInput, BoundsMissing
from reticent.privacy.columns.base import Kind
from reticent.privacy.columns.dates import Date
from reticent.privacy.columns.numbers import Cyclic, Number, Whole, checked_range
from reticent.privacy.columns.words import Labels, MissingIndicator, Ordered, Words, YesNo

__all__ = [
    "KINDS",
    "as_kind",
    "as_literal",
    "is_plain_number",
    "kind_from_dict",
    "kinds_from_dicts",
    "read_columns",
    "with_missing_codes",
]

_BY_NAME: dict[str, type[Kind]] = {
    cls.name: cls for cls in (Number, Whole, Words, Ordered, YesNo, Date, Cyclic)
}
KINDS: tuple[type[Kind], ...] = (
    *_BY_NAME.values(),
    MissingIndicator,
)  # what the columns of bounds can be


def kind_from_dict(given: Mapping[str, Any]) -> Kind:
    """A kind from `Kind.to_dict`: a copy that nobody else holds."""
    options = {name: value for name, value in given.items() if name != "kind"}
    if given.get("kind") not in _BY_NAME:
        known = ", ".join(_BY_NAME)
        raise BadInput(f"There is no kind of column {given.get('kind')!r}. Kinds: {known}.")
    cls = _BY_NAME[given["kind"]]
    wrong = set(options) - {one.name for one in fields(cls)}
    if wrong:
        raise BadInput(f"A column of kind {cls.name} has no {', '.join(sorted(wrong))}.")
    return cls(**options)


def kinds_from_dicts(given: Sequence[Mapping[str, Any]]) -> list[Kind]:
    """The kinds of several columns; an indicator belongs to the column before it."""
    kinds: list[Kind] = []
    for one in given:
        if one.get("kind") == MissingIndicator.name and kinds:
            kinds.append(MissingIndicator(kinds[-1]))
        else:
            kinds.append(kind_from_dict(one))
    return kinds


# ---- literals


def as_kind(what: str, given: object) -> Kind:
    """The kind that a literal stands for: (0, 110), ["F", "M"], bool, (date, date), or a kind.

    >>> as_kind("x column 'sex'", ["F", "M"])
    Words(words=['F', 'M'])
    """
    if isinstance(given, MissingIndicator):
        return given
    if isinstance(given, Kind):
        if type(given) not in _BY_NAME.values():
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


def is_plain_number(kind: Kind) -> bool:
    """Whether a pair (low, high) says all there is to say."""
    return isinstance(kind, Number) and kind == Number(kind.low, kind.high)


def as_literal(kind: Kind) -> object:
    """The shortest way to write a kind in Python."""
    if isinstance(kind, Number) and is_plain_number(kind):
        return kind.range
    if isinstance(kind, Words) and kind == Words(kind.words):
        return list(kind.words)
    return kind


# ---- several columns

Columns = tuple[tuple[str, ...] | None, tuple[Kind, ...]]


def read_columns(what: str, given: Any) -> tuple[tuple[str, ...] | None, tuple[Kind, ...], bool]:
    """Bring the ways to give columns into one.

    Names, kinds, and whether one kind serves all columns.
    """
    if given is None or (isinstance(given, (Sequence, Mapping)) and not given):
        raise BoundsMissing(
            f"The columns of {what} have no bounds, and reticent never takes them from the data "
            "(that would leak the extreme records). Give each its plausible range, for example "
            'Bounds(x={"age": (0, 110)}).'
        )
    if isinstance(given, Mapping):
        if not all(isinstance(name, str) and name for name in given):
            raise BadInput(f"The column names in the bounds of {what} must be non-empty texts.")
        kinds = tuple(as_kind(f"{what} column {name!r}", one) for name, one in given.items())
        return tuple(given), kinds, False
    if _is_one_column(given):
        return None, (as_kind(what, given),), True
    if isinstance(given, np.ndarray) and given.ndim == 2:
        given = list(given)
    if not isinstance(given, (list, tuple)):
        raise BoundsMissing(
            f"The bounds of {what} must be (low, high), a list of columns, or a dict of them by "
            "name."
        )
    kinds = tuple(as_kind(f"{what} column {i}", one) for i, one in enumerate(given))
    return None, kinds, False


def _is_one_column(given: object) -> bool:
    """Whether this is one column: a kind, bool, a pair of numbers or dates, a list of words."""
    if isinstance(given, Kind) or given is bool:
        return True
    if isinstance(given, np.ndarray):
        return given.shape == (2,)
    if not isinstance(given, (list, tuple)):
        return False
    if isinstance(given, list) and all(isinstance(one, str) for one in given):
        return True
    scalars = (str, bytes, int, float, np.generic, date, type(None))
    return len(given) == 2 and all(isinstance(one, scalars) for one in given)


def with_missing_codes(
    x: Columns,
    y: Columns,
    missing: Any,
    labels: tuple[tuple[str, ...] | None, Sequence[Any] | None] = (None, None),
) -> list[tuple[Kind, ...]]:
    """Add the codes that mean "missing" to the columns they are given for.

    A label that is not listed is missing anyway: its codes are checked, and not kept.
    """
    if missing is None:
        return [x[1], y[1]]
    named = isinstance(missing, Mapping)
    if named:
        known = {*(x[0] or ()), *(y[0] or ()), *(labels[0] or ())}
        for name in missing:
            if name not in known:
                columns = ", ".join(map(repr, sorted(known))) or "none has a name"
                raise BadInput(
                    f"missing names the column {name!r}, which has no bounds. Columns: {columns}.",
                    parameter="missing",
                )
    _check_labels(labels, missing)
    changed = []
    for names, kinds in (x, y):
        coded = []
        for place, kind in enumerate(kinds):
            codes = missing
            if named:
                codes = missing.get(names[place], ()) if names is not None else ()
            if isinstance(codes, (str, int, float)):
                codes = (codes,)
            plain = Number(0, 1, missing=codes).missing
            coded.append(replace(kind, missing=(*kind.missing, *plain)))
        changed.append(tuple(coded))
    return changed


def _check_labels(
    labels: tuple[tuple[str, ...] | None, Sequence[Any] | None], missing: Any
) -> None:
    """Refuse a label that is a missing code as well."""
    names, classes = labels
    codes = missing
    if isinstance(missing, Mapping):
        codes = missing.get(names[0], ()) if names is not None else ()
    if classes is None:
        return
    kind = Labels(tuple(classes))
    for code in Number(0, 1, missing=codes).missing:
        if not math.isnan(kind.code_value(code)):  # as a cell, 9 is the label "9", too
            raise BadInput(
                f"{code!r} is a label and means missing: it can be one of them only.",
                parameter="missing",
            )
