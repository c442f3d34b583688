"""Tables of the counts that a model has released of its columns."""

from collections.abc import Sequence
from math import floor
from typing import TYPE_CHECKING

from reticent.reporting.columns import Column
from reticent.reporting.formatting import format_number
from reticent.reporting.presenter import Table
from reticent.reporting.presenters.effects import MOST_LEVELS
from reticent.reporting.protected_unit import counted_noun
from reticent.reporting.released_counts import released_counts

if TYPE_CHECKING:
    from reticent.models.base import PrivateEstimator

__all__ = ["count_tables", "format_released_count", "undrawn_levels"]

_MOST_BINS = 16  # of a column in the report


def format_released_count(count: float) -> str:
    """Write a released count: a whole number, and 0 where noise has made it negative.

    A count is released as a whole number plus 1/2, which would be rounded to an even one: it is
    rounded down.
    """
    return f"{max(floor(count), 0):,}"


def count_tables(model: "PrivateEstimator") -> list[Table]:
    """Give a table for each column that was counted: how many records lie in each of its bins.

    As released: what noise has made negative stays so, and sums are right on average.
    """
    tables = []
    for counted in (one.merged(_MOST_BINS) for one in released_counts(model)):
        rows = [
            [name, f"{floor(count):,}".replace("-", "−")]
            for name, count in zip(counted.names(), counted.counts, strict=True)
        ]
        noise = format_number(counted.sd, 2)
        noun = counted_noun(model.releases_[0].unit)
        tables.append(
            Table([counted.column.heading, f"{noun} ± {noise} (noisy: may be negative)"], rows)
        )
    return tables


def undrawn_levels(columns: Sequence[Column]) -> list[str]:
    """Say of which columns not all words are drawn."""
    return [
        f"Of {len(column.categories)} values of {column.title}, the {MOST_LEVELS} with most "
        "records are drawn, as far as counts tell."
        for column in columns
        if column.categories is not None and len(column.categories) > MOST_LEVELS
    ]
