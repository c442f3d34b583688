"""Identifiers of people: cells that are compared for equality, and for nothing else.

An identifier becomes a pair of whole numbers, (first, second), each exact in float64, so that it
travels through a source like any other column, in two fields:

* a whole number from −2⁶³ to 2⁶⁴ − 1, or the text of one as Python writes it: its bits above and
  below 2³². Different numbers have different pairs.
* any other text, and any other number, by the text that Python writes for it: 104 bits of a keyed
  hash of its bytes (text_hash.py), with 2³⁴ added to the first, so that no whole number of 64 bits
  has such a pair. Numbers that are neither whole nor floats (fractions, decimals) are read as the
  nearest float64 before. The key is secret and of one fit, so nobody can prepare identifiers that
  collide; N different texts do with a probability of at most N²/2¹⁰⁵ (weights.md).

Texts are compared byte by byte, without blanks around them: "7", " 7" and the number 7 are one
person, "07" and "7.0" are others. An empty cell and a missing code are nobody's.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from reticent.privacy.columns.base import Codes, Kind, plain_text
from reticent.privacy.columns.text_hash import LONGEST, TextHash
from reticent.privacy.sources.cell_values import number, text_of

__all__ = ["Identifier"]

_LOW = 32  # bits of a whole number that the second of the pair has
_HASHED = 2.0**34  # beyond the first number of every whole number
_WHOLE = re.compile(rb"0|-?[1-9][0-9]{0,19}")
_LEAST = -(2**63)
_MOST = 2**64 - 1
_NOBODY = (math.nan, math.nan)
_ALL_DIGITS = Context(prec=400)
_BULK_DIGITS = 18  # of whole numbers that are read many at a time: below 2⁶³
_BLANKS = (ord(" "), ord("\t"))


@final
@dataclass(frozen=True, repr=False)
class Identifier(Kind):
    """One half of the code of an identifier: ``half`` is 0 or 1, ``key`` the secret of the hash."""

    half: int
    key: bytes

    name = "identifier"

    def __repr__(self) -> str:
        return f"Identifier({self.half})"  # the key is not shown

    @property
    def range(self) -> tuple[float, float]:
        """Where codes lie."""
        return -(2.0**_LOW), 2.0**53

    def code_numbers(self, values: Codes) -> Codes:
        """Codes of floats, each by its value: 7.0 is the whole number 7."""
        codes = np.empty(len(values))
        with np.errstate(invalid="ignore"):
            whole = (values == np.trunc(values)) & (np.abs(values) < 2.0**63)
        codes[whole] = self.code_integers(values[whole].astype(np.int64))
        others = values[~whole].tolist()
        codes[~whole] = [self._half(_float_pair(value, self)) for value in others]
        return codes

    def code_integers(self, values: NDArray[Any]) -> Codes:
        """Codes of an array of integers or truth values, exact for all 64 bits."""
        return self._half_of_integers(values, self.half)

    def _half_of_integers(self, values: NDArray[Any], half: int) -> Codes:
        wide: np.dtype[Any] = np.dtype(np.int64)
        if values.dtype.kind == "u":
            wide = np.dtype(np.uint64)
        whole: NDArray[Any] = values.astype(wide, copy=False)
        if half == 0:
            halves = whole >> wide.type(_LOW)
        else:
            halves = whole & wide.type(2**_LOW - 1)
        codes = halves.astype(np.float64)
        for code in self._missing_numbers:
            codes[values == code] = np.nan
        return codes

    def code_text(self, text: bytes) -> float:
        """Code of a text, in UTF-8."""
        return self._half(_text_pair(text, self))

    def code_texts(self, texts: Sequence[bytes]) -> Codes:
        """`code_text` of each of some texts, many at a time."""
        if not texts:
            return np.empty(0)
        lengths = np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))
        ends = np.cumsum(lengths)
        return self.pairs(b"".join(texts), ends - lengths, ends)[self.half]

    def pairs(self, data: bytes, starts: NDArray[np.int64], ends: NDArray[np.int64]) -> Codes:
        """`code_text` of many texts, which lie in ``data`` from ``starts`` to ``ends``.

        Both halves of each, whichever this one is: shape ``(2, texts)``.
        """
        cells = np.frombuffer(data + bytes(LONGEST), dtype=np.uint8)
        lengths = ends - starts
        first = cells[starts]
        last = cells[ends - 1]
        numeric = ((first - 48 < 10) | (first == ord("-"))) & (last - 48 < 10)
        alone = (lengths == 0) | (lengths > LONGEST)
        for blank in _BLANKS:
            alone |= (first == blank) | (last == blank)
        for text in self._missing_texts:
            alone |= lengths == len(text)
        codes = np.empty((2, len(starts)))
        maybe = np.flatnonzero(numeric & ~alone)
        whole, known = _whole_numbers(cells, starts[maybe], lengths[maybe])
        for half in (0, 1):
            codes[half, maybe[known]] = self._half_of_integers(whole[known], half)
        alone[maybe[~known]] = True
        texts: Any = np.flatnonzero(~numeric & ~alone)
        if len(texts) == len(starts):
            texts = slice(None)  # the same without gathering
        codes[:, texts] = self._hash.pairs(cells, starts[texts], lengths[texts])
        codes[0, texts] += _HASHED
        for place in np.flatnonzero(alone).tolist():
            codes[:, place] = _text_pair(data[starts[place] : ends[place]], self)
        return codes

    def _code_objects(self, values: Sequence[object]) -> Codes:
        return np.array([self._half(_object_pair(value, self)) for value in values])

    def code_value(self, value: object) -> float:
        """Code of a Python object; what is neither text nor number is nobody's."""
        text = text_of(value)
        if text is not None:
            return self.code_text(text)
        return self._half(_object_pair(value, self))

    def _half(self, pair: tuple[float, float]) -> float:
        return pair[self.half]

    @cached_property
    def _hash(self) -> TextHash:
        return TextHash(self.key)

    def hashed(self, text: bytes) -> tuple[float, float]:
        """The pair of a text that is no whole number."""
        first, second = self._hash.halves(text)
        return _HASHED + first, float(second)

    def is_missing(self, text: bytes, value: float) -> bool:
        """Whether a text, or the number that it is, means "missing" in this column."""
        return text in self._missing_texts or value in self._missing_numbers

    def values(self, codes: Codes) -> list[Any]:
        """Nothing: identifiers do not leave."""
        return [None] * len(codes)

    def show(self, code: float) -> str:
        """Nothing: identifiers do not leave."""
        return "a person"

    def describe(self) -> str:
        """What can stand in the column."""
        return "identifiers"


def _whole_numbers(
    data: NDArray[np.uint8], starts: NDArray[np.int64], lengths: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Numbers that texts in a buffer are, and which of them are whole ones of at most 18 digits.

    As Python writes them: no zeros before others, no zero with a sign.
    """
    negative = data[starts] == ord("-")
    starts = starts + negative
    digits = lengths - negative
    zero = data[starts] == ord("0")
    known = (digits > 0) & (digits <= _BULK_DIGITS) & (~zero | (lengths == 1))
    numbers = np.zeros(len(starts), dtype=np.int64)
    for place in range(int(digits[known].max(initial=0))):
        inside = known & (place < digits)
        digit = data[starts + place] - 48
        known &= ~inside | (digit < 10)
        numbers[inside] = 10 * numbers[inside] + digit[inside]
    return np.where(negative, -numbers, numbers), known


def _whole_pair(value: int) -> tuple[float, float]:
    return float(value >> _LOW), float(value & (2**_LOW - 1))


def _text_pair(text: bytes, kind: Identifier) -> tuple[float, float]:
    text = plain_text(text)
    if not text:
        return _NOBODY
    value = math.nan
    if _WHOLE.fullmatch(text):
        whole = int(text)
        value = float(whole)
        if not kind.is_missing(text, value) and _LEAST <= whole <= _MOST:
            return _whole_pair(whole)
    if kind.is_missing(text, value):
        return _NOBODY
    return kind.hashed(text)


def _float_pair(value: float, kind: Identifier) -> tuple[float, float]:
    if math.isnan(value) or value in kind._missing_numbers:
        return _NOBODY
    if value.is_integer():
        return _any_whole_pair(int(value), kind)
    return kind.hashed(repr(value).encode())


def _object_pair(value: object, kind: Identifier) -> tuple[float, float]:
    """Pair of an object that is no text; whole numbers, decimals too, are exact."""
    rounded = number(value)
    if math.isnan(rounded) or rounded in kind._missing_numbers:
        return _NOBODY
    whole = _whole(value, rounded)
    if whole is None:
        return _float_pair(rounded, kind)
    return _any_whole_pair(whole, kind)


def _any_whole_pair(value: int, kind: Identifier) -> tuple[float, float]:
    """Pair of a whole number within the range of floats, as of its text."""
    if _LEAST <= value <= _MOST:
        return _whole_pair(value)
    return kind.hashed(b"%d" % value)


def _whole(value: object, rounded: float) -> int | None:
    """The whole number that an object is, within the range of floats; None if it is none."""
    if math.isinf(rounded):
        return None
    try:
        if type(value) in (int, bool) or isinstance(value, np.integer):
            return int(value)  # type: ignore[call-overload]
        if type(value) is Decimal and value == value.to_integral_value(context=_ALL_DIGITS):
            return int(value)
    except Exception:  # an object that pretends
        return None
    return None
