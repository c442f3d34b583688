"""Columns of numbers: in a range, whole, or coming round."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from reticent.errors import BoundsMissing
from reticent.privacy.columns.base import Codes, Kind
from reticent.privacy.sources.cell_values import text_number

__all__ = ["Cyclic", "Number", "Whole", "checked_range"]

HUGE = 1e150  # ranges up to here scale without overflow or subnormal numbers


def checked_range(what: str, low: object, high: object) -> tuple[float, float]:
    """A range of numbers, low < high, or what is wrong with it."""
    ends = []
    for value in (low, high):
        if isinstance(value, (bool, np.bool_, np.timedelta64)) or not isinstance(
            value, (int, float, np.integer, np.floating)
        ):
            raise BoundsMissing(f"A bound of {what} must be a number, not {value!r}.")
        try:
            ends.append(float(value))
        except OverflowError:  # a whole number that no float64 is near
            raise BoundsMissing(
                f"The bounds of {what} must be finite numbers up to {HUGE:g}."
            ) from None
    least, most = ends
    if not all(map(math.isfinite, ends)) or max(abs(least), abs(most)) > HUGE:
        raise BoundsMissing(
            f"The bounds of {what} must be finite numbers up to {HUGE:g}, not ({least}, {most})."
        )
    if not least < most:
        hint = ""
        if most < least:
            hint = f" Did you mean ({most:g}, {least:g})?"
        raise BoundsMissing(
            f"The bounds of {what} must have low < high, not ({least:g}, {most:g}).{hint}"
        )
    if most / 2 - least / 2 < max(1 / HUGE, 1e-9 * max(abs(least), abs(most))):
        raise BoundsMissing(
            f"The bounds of {what} are too close together for the precision of "
            f"a number: ({least}, {most})."
        )
    return least, most


def _short(value: float) -> str:
    return f"{value:.12g}"


class _Numbers(Kind):
    """Abstract: a number, or the text of one."""

    def code_text(self, text: bytes) -> float:
        """Code of the number that a text stands for."""
        return float(self.code_texts([text])[0])

    def code_texts(self, texts: Sequence[bytes]) -> Codes:
        """`code_text` of each of some texts."""
        return self.code_numbers(np.array([text_number(text) for text in texts], dtype=np.float64))


@final
@dataclass(frozen=True, repr=False)
class Number(_Numbers):
    """A number from ``low`` to ``high``; one outside is moved to the edge.

    >>> Number(0, 110, missing=[999]).code_text(b" 42.5 ")
    42.5
    """

    low: float
    high: float

    name = "number"
    has_output_range = True

    def __post_init__(self) -> None:
        super().__post_init__()
        low, high = checked_range("a number", self.low, self.high)
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    @property
    def range(self) -> tuple[float, float]:
        """The bounds as given."""
        return self.low, self.high

    def code_numbers(self, values: Codes) -> Codes:
        """The numbers themselves."""
        if not self._missing_numbers:
            return self._filled(values)
        return self._filled(self._known(values))

    def values(self, codes: Codes) -> list[Any]:
        """The numbers."""
        return [None if math.isnan(code) else float(code) for code in codes]

    def show(self, code: float) -> str:
        """The number, with as many digits as the range deserves."""
        digits = max(0, 3 - math.floor(math.log10(self.high - self.low)))
        return f"{code:.{min(digits, 12)}f}"

    def describe(self) -> str:
        """LOW:HIGH."""
        return f"{_short(self.low)}:{_short(self.high)}"


@final
@dataclass(frozen=True, repr=False)
class Whole(_Numbers):
    """A whole number from ``low`` to ``high``, both included; 2.5 is not one, and is missing.

    >>> Whole(0, 15).range
    (-0.5, 15.5)
    """

    low: int
    high: int

    name = "whole"
    has_output_range = True

    def __post_init__(self) -> None:
        super().__post_init__()
        low, high = checked_range("a whole number", self.low, self.high)
        if low != math.floor(low) or high != math.floor(high) or max(-low, high) > 2.0**50:
            raise BoundsMissing(
                "The bounds of a whole number must be whole themselves, and at most 2^50 from "
                f"zero, not ({low:g}, {high:g})."
            )
        object.__setattr__(self, "low", int(low))
        object.__setattr__(self, "high", int(high))

    @property
    def range(self) -> tuple[float, float]:
        """Half a step beyond the bounds."""
        return self.low - 0.5, self.high + 0.5

    @property
    def output_range(self) -> tuple[float, float]:
        """The bounds themselves."""
        return float(self.low), float(self.high)

    @property
    def cells(self) -> int:
        """high − low + 1."""
        return self.high - self.low + 1

    def code_numbers(self, values: Codes) -> Codes:
        """The numbers, moved to the nearest bound; NaN where they are not whole."""
        known = self._known(values)
        known[np.floor(known) != known] = np.nan
        return self._filled(np.clip(known, self.low, self.high))

    def values(self, codes: Codes) -> list[Any]:
        """The nearest whole numbers."""
        return [
            None if math.isnan(c) else int(min(max(round(c), self.low), self.high)) for c in codes
        ]

    def show(self, code: float) -> str:
        """The nearest whole number."""
        return f"{round(code)}"

    def describe(self) -> str:
        """LOW:HIGH:whole."""
        return f"{self.low}:{self.high}:whole"


@final
@dataclass(frozen=True, repr=False)
class Cyclic(_Numbers):
    """A number that comes round: ``high`` is ``low`` again, as for hours, months and directions.

    Values outside are moved by whole periods.

    >>> Cyclic(0, 24).code_text(b"25")
    1.0
    """

    low: float
    high: float

    name = "cyclic"
    periodic = True

    def __post_init__(self) -> None:
        super().__post_init__()
        low, high = checked_range("a cycle", self.low, self.high)
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    @property
    def range(self) -> tuple[float, float]:
        """One period."""
        return self.low, self.high

    def code_numbers(self, values: Codes) -> Codes:
        """The numbers within the first period; infinite ones are missing."""
        known = self._known(values)
        period = self.high - self.low
        with np.errstate(all="ignore"):
            turned = known - period * np.floor((known - self.low) / period)
        turned = np.where(turned >= self.high, self.low, np.maximum(turned, self.low))
        return self._filled(np.where(np.isfinite(known), turned, np.nan))

    def values(self, codes: Codes) -> list[Any]:
        """The numbers."""
        return [None if math.isnan(code) else float(code) for code in codes]

    def show(self, code: float) -> str:
        """The number, with as many digits as the period deserves."""
        digits = max(0, 2 - math.floor(math.log10(self.high - self.low)))
        return f"{code:.{min(digits, 12)}f}"

    def describe(self) -> str:
        """LOW:HIGH:cyclic."""
        return f"{_short(self.low)}:{_short(self.high)}:cyclic"
