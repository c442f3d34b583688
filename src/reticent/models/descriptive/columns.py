"""Columns of the descriptive models: which kinds each of them takes."""

from collections.abc import Callable
from dataclasses import replace

from reticent.errors import BadInput
from reticent.privacy.bounds import Bounds
from reticent.privacy.columns.base import Kind
from reticent.privacy.columns.words import YesNo

__all__ = ["column_name", "has_mean", "missing_apart", "refuse_columns"]


def column_name(bounds: Bounds, place: int) -> str:
    """What a column is called in a sentence."""
    if bounds.x_names is None:
        return f"column {place}"
    return repr(bounds.x_names[place])


def missing_apart(bounds: Bounds, *, words: bool) -> Bounds:
    """Bounds in which missing numbers stay missing, since they are counted apart anyway.

    An indicator beside a number would put the middle of its range in the number's place. ``words``:
    whether the level "missing" of words goes as well.
    """
    kinds = tuple(
        replace(kind, keep_missing=False)
        if kind.keep_missing and (words or kind.levels is None)
        else kind
        for kind in bounds.x_kinds
    )
    return bounds.with_kinds(kinds)


def refuse_columns(bounds: Bounds, what: str, takes: Callable[[Kind], bool]) -> None:
    """Refuse columns that have no mean."""
    for place, kind in enumerate(bounds.x_kinds):
        if not takes(kind):
            raise BadInput(
                f"There is no {what} of {column_name(bounds, place)}, a column of kind "
                f"{kind.name}: leave it out, or count its values with PrivateHistogram.",
                parameter="bounds",
            )


def has_mean(kind: Kind) -> bool:
    """Whether a mean of the column says something: of numbers, dates, and yes and no."""
    return not kind.periodic and (kind.levels is None or isinstance(kind, YesNo))
