"""Anchor in words: where the other inputs are while one is moved."""

from typing import TYPE_CHECKING

from reticent.reporting.columns import input_columns
from reticent.reporting.presenters.input_distribution import input_medians, input_ranges

if TYPE_CHECKING:
    from reticent.models.base import PrivateEstimator
    from reticent.reporting.presenter import Medium

__all__ = ["anchor_sentences"]


def anchor_sentences(model: "PrivateEstimator", medium: "Medium") -> list[str]:
    """Say where the other inputs are while one is moved; nothing for a model with one input."""
    columns = input_columns(model)
    if len(columns) == 1:
        return []
    words = any(column.kind.levels is not None for column in columns)
    numbers = any(column.kind.levels is None for column in columns)
    place = "in the middle of their ranges"
    levels = "at their first level"
    noisy = ""
    if input_medians(model) is not None:
        place = "near their medians"
        levels = "at their most frequent level"
        noisy = ", as far as the noisy counts tell them"
    places = [place] * numbers + [levels] * words
    anchor = ", ".join(
        column.at(value) for column, value in zip(columns, input_ranges(model)[1], strict=True)
    )
    return [
        f"Each {medium.effect} moves one input and leaves the others "
        f"{' or '.join(places)}{noisy}: {anchor}.",
        "There may be nobody with some of these combinations: what is said of "
        "them rests on the prior.",
    ]
