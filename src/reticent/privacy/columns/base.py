"""Kind of a column: what is public about its values, and how one cell becomes a code."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from reticent.errors import BadInput
from reticent.privacy.sources.cell_values import number, text_number

__all__ = ["Codes", "Kind", "exact_text", "plain_text"]

Codes: TypeAlias = NDArray[np.float64]
MissingCode: TypeAlias = str | float


def plain_text(text: bytes) -> bytes:
    """A text without the blanks around it."""
    return text.strip(b" \t")


def exact_text(text: str) -> str:
    """A text of Python's own class: a subclass could compare as it likes."""
    return str.encode(text, "utf-8", "surrogatepass").decode("utf-8", "surrogatepass")


@dataclass(frozen=True, repr=False)
class Kind(ABC):
    """Abstract: what is public about the values of one column.

    Attributes
    ----------
    missing : tuple of texts and numbers
        Codes that stand for "missing" in this column, such as 999 or "refused".
    keep_missing : bool
        Whether a missing value counts as a value of its own: a level "missing" for words, an
        indicator beside a number. Otherwise a record that lacks the value is left out by models
        that need it.
    label, unit : str or None
        For axes and tables: what the column is, and what it is measured in.
    """

    missing: tuple[MissingCode, ...] = field(default=(), kw_only=True)
    keep_missing: bool = field(default=False, kw_only=True)
    label: str | None = field(default=None, kw_only=True)
    unit: str | None = field(default=None, kw_only=True)

    name: ClassVar[str]
    has_output_range: ClassVar[bool] = False  # whether it can be predicted as a number
    periodic: ClassVar[bool] = False
    ordered: ClassVar[bool] = True  # whether neighbouring codes are alike

    def __post_init__(self) -> None:
        codes: Any = self.missing
        if isinstance(codes, (str, int, float)):
            codes = (codes,)
        for code in codes:
            if isinstance(code, bool) or not isinstance(code, (str, int, float, np.number)):
                raise BadInput(
                    f"A missing code is a text or a number, such as 999 or 'NA', not {code!r}.",
                    parameter="missing",
                )
        plain = tuple(exact_text(c) if isinstance(c, str) else float(c) for c in codes)
        object.__setattr__(self, "missing", plain)

    def __repr__(self) -> str:
        given = ", ".join(
            f"{one}={value!r}" for one, value in self.to_dict().items() if one != "kind"
        )
        return f"{type(self).__name__}({given})"

    @property
    @abstractmethod
    def range(self) -> tuple[float, float]:
        """Where codes lie: (low, high), low < high."""

    @property
    def output_range(self) -> tuple[float, float]:
        """Where codes lie that are predicted as numbers."""
        return self.range

    @property
    def levels(self) -> tuple[str, ...] | None:
        """The values by name, in the order of their codes 0, 1, …; None for numbers and dates."""
        return None

    @property
    def cells(self) -> int | None:
        """How many different values there are, one apart; None where they are not counted."""
        if self.levels is None:
            return None
        return len(self.levels)

    # ---- reading: each a function of one cell alone

    @abstractmethod
    def code_numbers(self, values: Codes) -> Codes:
        """Codes of a column of numbers, elementwise."""

    @abstractmethod
    def code_text(self, text: bytes) -> float:
        """Code of a text, in UTF-8."""

    def code_value(self, value: object) -> float:
        """Code of a Python object; what is neither text nor number is missing."""
        try:
            if isinstance(value, str):
                return self.code_text(value.encode("utf-8", "surrogatepass"))
            if isinstance(value, bytes):
                return self.code_text(value)
            return float(self.code_numbers(np.array([number(value)]))[0])
        except Exception:  # an object that pretends
            return math.nan

    def _filled(self, codes: Codes) -> Codes:
        """The codes; with ``keep_missing``, missing ones as the middle of the range."""
        if not self.keep_missing:
            return codes
        low, high = self.range
        return np.where(np.isnan(codes), low / 2 + high / 2, codes)

    def _known(self, values: Codes) -> Codes:
        """The numbers without those that are missing codes."""
        known = np.array(values, dtype=np.float64)
        for code in self._missing_numbers:
            known[known == code] = np.nan
        return known

    @cached_property
    def _missing_numbers(self) -> tuple[float, ...]:
        numbers = []
        for code in self.missing:
            value = text_number(code.encode()) if isinstance(code, str) else code
            if not math.isnan(value):
                numbers.append(value)
        return tuple(numbers)

    @cached_property
    def _missing_texts(self) -> frozenset[bytes]:
        return frozenset(plain_text(c.encode()) for c in self.missing if isinstance(c, str))

    # ---- the way back: for people

    @abstractmethod
    def values(self, codes: Codes) -> list[Any]:
        """Codes as people write them; None for NaN."""

    @abstractmethod
    def show(self, code: float) -> str:
        """One code in a sentence or on an axis."""

    @abstractmethod
    def describe(self) -> str:
        """What can stand in the column, as the command line writes it."""

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; `kind_from_dict` is the inverse."""
        given: dict[str, Any] = {"kind": self.name}
        for one in fields(self):
            value = getattr(self, one.name)
            if value is not one.default and value != ():
                given[one.name] = list(value) if isinstance(value, tuple) else value
        return given
