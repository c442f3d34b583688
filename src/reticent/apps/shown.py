"""How a model is shown, for people and for machines: what an entry of ``results.MODELS`` holds.

Everything shown is computed from releases; nothing reads a record.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["Model"]


def _nothing(model: Any) -> list[str]:
    return []


@dataclass(frozen=True)
class Model:
    """One word of ``reticent fit``: the class behind it, and all that is said of its results."""

    estimator: str
    numbers: Callable[[Any], dict[str, Any]]  # for machines
    show: Callable[[Any], "RenderableType"]  # on a terminal
    page: Callable[[Any], dict[str, Any]]  # in the report: caption, tables and words
    quality: Callable[[Any], dict[str, Any]]  # how far off it can be, in the report: tables or lines
    remarks: Callable[[Any], list[str]] = _nothing  # how results are to be read
    notes: Callable[[Any], list[str]] = _nothing  # on results that say next to nothing
    title: Callable[[Any], str] | None = None  # what was released, before the names of the columns
    described: Callable[[Any], str] | None = None  # the drawing in words; its title, if there is nothing to add
    assumed: Callable[[Any], list[str]] = _nothing
    filled: str = "A missing value counts as the middle of its range, a value outside as the nearest edge."
    covers: str = "The ± covers the privacy noise only, not what such values change."
    outputs: bool = False  # whether it predicts a column from others
    labels: bool = False  # and whether that holds labels
    places: bool = False  # whether it tells new records their clusters or factors
