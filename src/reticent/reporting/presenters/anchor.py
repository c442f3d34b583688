"""Anchor in words: where the other inputs are while one is moved."""

from typing import TYPE_CHECKING

from reticent.reporting.columns import column_names
from reticent.reporting.formatting import format_short
from reticent.reporting.presenters.input_distribution import input_medians, input_ranges

if TYPE_CHECKING:
    from reticent.models.base import PrivateEstimator
    from reticent.reporting.presenter import Medium

__all__ = ["anchor_sentences"]


def anchor_sentences(model: "PrivateEstimator", medium: "Medium") -> list[str]:
    """Say where the other inputs are while one is moved; nothing for a model with one input."""
    if model.n_features_in_ == 1:
        return []
    place = "in the middle of their ranges"
    if input_medians(model) is not None:
        place = "near their medians, as far as the noisy counts tell them"
    anchor = ", ".join(
        f"{name} {format_short(value)}"
        for name, value in zip(column_names(model), input_ranges(model)[1], strict=True)
    )
    return [
        f"Each {medium.effect} moves one input and leaves the others {place}: {anchor}.",
        "There may be nobody with some of these combinations: what is said of "
        "them rests on the prior.",
    ]
