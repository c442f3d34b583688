"""Kind of a column: what is public about its values, and how one cell becomes a code."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from reticent.errors import BadInput
from reticent.privacy.sources.cell_values import is_truth, number, text_number, text_of

__all__ = ["Codes", "Kind", "exact_text", "plain_text"]

Codes: TypeAlias = NDArray[np.float64]
MissingCode: TypeAlias = str | float


def plain_text(text: bytes) -> bytes:
    """A text without the blanks around it."""
    return text.strip(b" \t")


def exact_text(text: str) -> str:
    """A text of Python's own class: a subclass could compare as it likes."""
    return str.encode(text, "utf-8", "surrogatepass").decode("utf-8", "surrogatepass")


def _plain_codes(given: Any) -> tuple[MissingCode, ...]:
    """Codes that mean "missing", as texts and numbers of Python's own classes."""
    if isinstance(given, (str, int, float, np.number)):
        given = (given,)
    if not isinstance(given, (Sequence, set, frozenset, np.ndarray)) or isinstance(given, bytes):
        raise BadInput(
            f"Missing codes are a list of texts and numbers, such as [999, 'NA'], not {given!r}.",
            parameter="missing",
        )
    codes: list[MissingCode] = []
    for code in given:
        if isinstance(code, str):
            codes.append(exact_text(code))
            continue
        if isinstance(code, (bool, np.bool_)) or not isinstance(code, (int, float, np.number)):
            raise BadInput(
                f"A missing code is a text or a number, such as 999 or 'NA', not {code!r}.",
                parameter="missing",
            )
        try:
            number_code = float(code)
        except (OverflowError, TypeError, ValueError):
            number_code = math.inf
        if math.isinf(number_code):
            raise BadInput("A missing code must be a finite number.", parameter="missing")
        if not math.isnan(number_code):  # missing anyway
            codes.append(number_code)
    return tuple(dict.fromkeys(codes))


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

    def __getstate__(self) -> dict[str, Any]:
        """All that was given, without what is computed from it when it is asked for."""
        kind = type(self)
        return {
            name: value
            for name, value in vars(self).items()
            if not isinstance(getattr(kind, name, None), cached_property)
        }

    def __post_init__(self) -> None:
        object.__setattr__(self, "missing", _plain_codes(self.missing))
        if not isinstance(self.keep_missing, (bool, np.bool_)):
            raise BadInput(
                f"keep_missing is True or False, not {self.keep_missing!r}.",
                parameter="keep_missing",
            )
        object.__setattr__(self, "keep_missing", bool(self.keep_missing))
        for what in ("label", "unit"):
            text = getattr(self, what)
            if text is None:
                continue
            if not isinstance(text, str) or not text.isprintable():
                raise BadInput(f"The {what} of a column is a printable text, not {text!r}.")
            object.__setattr__(self, what, exact_text(text))

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

    def code_truths(self, values: NDArray[np.bool_]) -> Codes:
        """Codes of a column of truth values, elementwise: as numbers they are 0 and 1."""
        return self.code_numbers(values.astype(np.float64))

    @abstractmethod
    def code_text(self, text: bytes) -> float:
        """Code of a text, in UTF-8."""

    def code_texts(self, texts: Sequence[bytes]) -> Codes:
        """`code_text` of each of some texts."""
        return np.array([self.code_text(text) for text in texts], dtype=np.float64)

    def code_value(self, value: object) -> float:
        """Code of a Python object; what is neither text nor number is missing."""
        text = text_of(value)
        if text is not None:
            return self.code_text(text)
        return float(self._code_objects([value])[0])

    def code_values(self, values: Sequence[object]) -> Codes:
        """`code_value` of each of some objects; a text that is there often is read once."""
        codes = np.empty(len(values))
        texts: dict[bytes, list[int]] = {}
        others: list[int] = []
        for place, value in enumerate(values):
            text = text_of(value)
            if text is None:
                others.append(place)
            else:
                texts.setdefault(text, []).append(place)
        codes[others] = self._code_objects([values[place] for place in others])
        for places, code in zip(texts.values(), self.code_texts(list(texts)), strict=True):
            codes[places] = code
        return codes

    def _code_objects(self, values: Sequence[object]) -> Codes:
        """`code_value` of objects that are no texts."""
        codes = self.code_numbers(np.array([number(value) for value in values], dtype=np.float64))
        truths = np.array([is_truth(value) for value in values], dtype=np.bool_)
        if truths.any():
            chosen = [bool(value) for value, truth in zip(values, truths, strict=True) if truth]
            codes[truths] = self.code_truths(np.array(chosen, dtype=np.bool_))
        return codes

    @property
    def missing_code(self) -> float:
        """Code of a cell that is not there."""
        return self.code_text(b"")

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
            value = code
            if isinstance(value, str):
                value = text_number(value.encode("utf-8", "surrogatepass"))
            if not math.isnan(value):
                numbers.append(value)
        return tuple(numbers)

    @cached_property
    def _missing_texts(self) -> frozenset[bytes]:
        texts = [code for code in self.missing if isinstance(code, str)]
        return frozenset(plain_text(code.encode("utf-8", "surrogatepass")) for code in texts)

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
