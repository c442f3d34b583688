"""Columns of words: in no order, in order, or yes and no."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from reticent.errors import BoundsMissing
from reticent.privacy.columns.base import Codes, Kind, exact_text, plain_text
from reticent.privacy.sources.cell_values import (
    LabelTable,
    label,
    label_table,
    text_label,
    text_number,
)
from reticent.privacy.sources.formulas import neutral

__all__ = [
    "MISSING_LEVEL",
    "MOST_LEVELS",
    "Labels",
    "MissingIndicator",
    "Ordered",
    "Words",
    "YesNo",
]

MOST_LEVELS = 1000
MISSING_LEVEL = "missing"  # the name of the level of words that are missing
_FORMULAS = ("=", "@", "＝", "＠")
_YES = ("yes", "y", "true", "t")
_NO = ("no", "n", "false", "f")
_TRUTHS = (("False", "false", "FALSE"), ("True", "true", "TRUE"))  # of 0 and of 1, in files


class _Levels(Kind):
    """Abstract: one of some words."""

    _given: tuple[str, ...]

    def _check(self) -> None:
        """Refuse levels that could never be told from missing values."""
        for place, level in enumerate(self._given):
            if self.code_text(level.encode()) != place:
                raise BoundsMissing(
                    f"The level {level!r} is among the missing codes: it can be one of them only."
                )
        self._check_equals()
        if self.keep_missing and MISSING_LEVEL in self._given:
            raise BoundsMissing(
                f"keep_missing=True adds a level {MISSING_LEVEL!r}, and one is called so already. "
                "Rename it, or leave keep_missing out: what is listed is kept."
            )

    def _check_equals(self) -> None:
        """Refuse levels that are one value where a column holds numbers or truth values."""
        known: dict[float | str, str] = {}
        for level in self._given:
            number = text_number(level.encode())
            value: float | str = number
            what = "number"
            if math.isnan(number):
                value = level
                what = "truth value"
                for spellings in _TRUTHS:
                    if level in spellings:
                        value = spellings[0]
            first = known.setdefault(value, level)
            if first != level:
                raise BoundsMissing(
                    f"The levels {first!r} and {level!r} are the same {what}: an array, a frame "
                    "and a file would be read differently. List it once, or rename one of them in "
                    "the data first."
                )

    @property
    def levels(self) -> tuple[str, ...]:
        """The words; with ``keep_missing`` one more, for what is none of them."""
        if self.keep_missing:
            return (*self._given, MISSING_LEVEL)
        return self._given

    @property
    def range(self) -> tuple[float, float]:
        """Half a step beyond the first and the last level."""
        return -0.5, len(self.levels) - 0.5

    @cached_property
    def _texts(self) -> dict[bytes, int]:
        """Levels by the bytes of each text that stands for one: its own, and truth values."""
        texts = {level.encode(): place for place, level in enumerate(self._given)}
        texts |= self._other_spellings(texts)
        for place, level in enumerate(self._given):  # as reticent writes "+" in CSV files
            texts.setdefault(neutral(level).encode(), place)
        for truth, spellings in enumerate(_TRUTHS):
            places = [texts.get(spelling.encode()) for spelling in spellings]
            places.append(self._numbers.get(float(truth)))
            found = [place for place in places if place is not None]
            for spelling in spellings:
                if found:
                    texts.setdefault(spelling.encode(), found[0])
        return texts

    def _other_spellings(self, texts: dict[bytes, int]) -> dict[bytes, int]:
        """Texts beside the levels' own ``texts`` that stand for a level."""
        return {}

    @cached_property
    def _numbers(self) -> dict[float, int]:
        """Levels that are numbers, so that 1, 1.0 and the text "1" are the same level."""
        numbers: dict[float, int] = {}
        for place, level in enumerate(self._given):
            value = text_number(level.encode())
            if not math.isnan(value):
                numbers.setdefault(value, place)
        return numbers

    @property
    def _unknown(self) -> float:
        if self.keep_missing:
            return float(len(self._given))
        return math.nan

    def code_numbers(self, values: Codes) -> Codes:
        """Positions of the levels that are these numbers."""
        known = self._known(values)
        codes = np.full(len(known), self._unknown)
        if self._numbers:
            levels = np.array(sorted(self._numbers))
            nearest = np.minimum(np.searchsorted(levels, known), len(levels) - 1)
            places = np.array([self._numbers[level] for level in levels.tolist()], dtype=np.float64)
            found = levels[nearest] == known
            codes[found] = places[nearest[found]]
        return codes

    def code_truths(self, values: NDArray[np.bool_]) -> Codes:
        """Positions of the levels that truth values are: what their texts are in a file."""
        places = [self.code_text(spellings[0].encode()) for spellings in _TRUTHS]
        return np.array(places)[values.astype(np.int64)]

    def code_text(self, text: bytes) -> float:
        """Position of the level that a text is, byte by byte, or as a number."""
        text = plain_text(text)
        value = text_number(text)
        if text in self._missing_texts or value in self._missing_numbers:
            return self._unknown
        place = self._texts.get(text)
        if place is None:
            place = self._numbers.get(value)
        if place is None:
            return self._unknown
        return float(place)

    def values(self, codes: Codes) -> list[Any]:
        """The words; None for a missing one."""
        words: list[str | None] = [*self._given, None]
        last = len(self.levels) - 1
        return [
            None if math.isnan(code) else words[int(min(max(round(code), 0), last))]
            for code in codes
        ]

    def show(self, code: float) -> str:
        """The word."""
        return self.levels[int(min(max(round(code), 0), len(self.levels) - 1))]


def _checked_levels(what: str, given: object) -> tuple[str, ...]:
    if isinstance(given, (str, bytes)) or not isinstance(given, (Sequence, np.ndarray)):
        raise BoundsMissing(
            f"{what} are given as the list of all levels, for example ['F', 'M'], not {given!r}."
        )
    levels = []
    for level in given:
        plain = level.item() if isinstance(level, np.generic) else level
        if isinstance(plain, float) and plain.is_integer():
            plain = int(plain)
        if not isinstance(plain, (str, int, float)) or isinstance(plain, bool):
            raise BoundsMissing(f"A level is a text or a number, not {level!r}.")
        levels.append(exact_text(str(plain)).strip(" \t"))
    if any(not level for level in levels):
        raise BoundsMissing(
            "A level is empty. An empty cell is missing anyway: leave it out of the list, or keep "
            "missing values as a level of their own (keep_missing=True)."
        )
    repeated = sorted({level for level in levels if levels.count(level) > 1})
    if repeated:
        raise BoundsMissing(f"The level {repeated[0]!r} is given twice: name each level once.")
    if any(not level.isprintable() for level in levels):
        raise BoundsMissing("A level holds a line break or another sign that cannot be printed.")
    formulas = [level for level in levels if level.lstrip("'")[:1] in _FORMULAS]
    if formulas:
        raise BoundsMissing(
            f"The level {formulas[0]!r} would run as a formula in a spreadsheet: rename it in the "
            "data first."
        )
    if len(levels) < 2:
        raise BoundsMissing(
            f"A column with the one level {', '.join(levels)!r} tells nothing: leave it out, or "
            "list all levels that can occur."
        )
    if len(levels) > MOST_LEVELS:
        raise BoundsMissing(
            f"{len(levels)} levels are more than {MOST_LEVELS}: join rare ones into groups first."
        )
    return tuple(levels)


@final
@dataclass(frozen=True, repr=False)
class Words(_Levels):
    """One of some words, in no order; a word that is not listed is missing.

    >>> Words(["F", "M"]).code_text(b"M")
    1.0
    """

    words: tuple[str, ...]

    name = "words"
    ordered = False

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "words", _checked_levels("Words", self.words))
        object.__setattr__(self, "_given", self.words)
        self._check()

    def describe(self) -> str:
        """A,B,C."""
        return ",".join(self.words)


@final
@dataclass(frozen=True, repr=False)
class Ordered(_Levels):
    """One of some words in order, as stages and grades are.

    >>> Ordered(["I", "II", "III"]).show(2)
    'III'
    """

    words: tuple[str, ...]

    name = "ordered"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "words", _checked_levels("Ordered words", self.words))
        object.__setattr__(self, "_given", self.words)
        self._check()

    def describe(self) -> str:
        """A<B<C."""
        return "<".join(self.words)


@final
@dataclass(frozen=True, repr=False)
class YesNo(_Levels):
    """Yes or no: true and false, 1 and 0, or the two words ``no`` and ``yes``.

    >>> YesNo().code_text(b"TRUE"), YesNo().code_value(False)
    (1.0, 0.0)
    """

    no: str = "no"
    yes: str = "yes"

    name = "yesno"
    has_output_range = True
    ordered = False

    def __post_init__(self) -> None:
        super().__post_init__()
        no, yes = _checked_levels("Yes and no", (self.no, self.yes))
        object.__setattr__(self, "no", no)
        object.__setattr__(self, "yes", yes)
        object.__setattr__(self, "_given", (no, yes))
        self._check()

    @property
    def output_range(self) -> tuple[float, float]:
        """A rate, from 0 to 1."""
        return 0.0, 1.0

    def _other_spellings(self, texts: dict[bytes, int]) -> dict[bytes, int]:
        """Yes and no as they are often written."""
        others = {}
        for place, words in enumerate((_NO, _YES)):
            for word in words:
                spellings = [one.encode() for one in (word, word.capitalize(), word.upper())]
                known = [texts[one] for one in spellings if one in texts]
                for spelling in spellings:
                    others[spelling] = texts.get(spelling, (*known, place)[0])
        return others

    @cached_property
    def _numbers(self) -> dict[float, int]:
        numbers = {0.0: 0, 1.0: 1}
        for place, level in enumerate(self._given):
            value = text_number(level.encode())
            if not math.isnan(value):
                numbers[value] = place
        return numbers

    def describe(self) -> str:
        """NO/YES."""
        return f"{self.no}/{self.yes}"


# ---- made by the bounds, not given by users


@final
@dataclass(frozen=True, repr=False)
class Labels(Kind):
    """Labels of a classification: one of ``classes``, texts or numbers; others are missing.

    1 is 1.0, True and the text "1", in files and frames alike.
    """

    classes: tuple[str | int | float | bool, ...]

    name = "labels"
    ordered = False

    @property
    def levels(self) -> tuple[str, ...]:
        """The classes as texts."""
        return tuple(map(str, self.classes))

    @property
    def range(self) -> tuple[float, float]:
        """Half a step beyond the first and the last class."""
        return -0.5, len(self.classes) - 0.5

    @cached_property
    def _table(self) -> LabelTable:
        return label_table(self.classes)

    def code_numbers(self, values: Codes) -> Codes:
        """Positions of the classes that are these numbers."""
        found, where = np.unique(values, return_inverse=True)
        return self.code_values(found.tolist())[where]

    def code_text(self, text: bytes) -> float:
        """Position of the class that a text in a file stands for."""
        return text_label(text, self._table)

    def code_value(self, value: object) -> float:
        """Position of the class that equals the value."""
        return label(value, self._table)

    def code_values(self, values: Sequence[object]) -> Codes:
        """`code_value` of each of some objects."""
        return np.array([label(value, self._table) for value in values], dtype=np.float64)

    def values(self, codes: Codes) -> list[Any]:
        """The classes."""
        return [None if math.isnan(code) else self.classes[int(code)] for code in codes]

    def show(self, code: float) -> str:
        """The class."""
        return self.levels[int(code)]

    def describe(self) -> str:
        """A,B,C."""
        return ",".join(self.levels)


@final
@dataclass(frozen=True, repr=False)
class MissingIndicator(Kind):
    """Whether a value of another kind is missing: yes or no."""

    of: Kind

    name = "indicator"
    ordered = False

    def to_dict(self) -> dict[str, Any]:
        """The kind alone: an indicator stands behind the column that it is about."""
        return {"kind": self.name}

    @property
    def levels(self) -> tuple[str, ...]:
        """No and yes."""
        return "no", "yes"

    @property
    def range(self) -> tuple[float, float]:
        """As for yes and no."""
        return -0.5, 1.5

    @cached_property
    def _plain(self) -> Kind:
        return replace(self.of, keep_missing=False)

    def code_numbers(self, values: Codes) -> Codes:
        """1 where a number is missing."""
        return np.isnan(self._plain.code_numbers(values)).astype(np.float64)

    def code_text(self, text: bytes) -> float:
        """1 if the text means nothing."""
        return float(math.isnan(self._plain.code_text(text)))

    def code_texts(self, texts: Sequence[bytes]) -> Codes:
        """1 where a text means nothing."""
        return np.isnan(self._plain.code_texts(texts)).astype(np.float64)

    def code_value(self, value: object) -> float:
        """1 if the value means nothing."""
        return float(math.isnan(self._plain.code_value(value)))

    def code_values(self, values: Sequence[object]) -> Codes:
        """1 where a value means nothing."""
        return np.isnan(self._plain.code_values(values)).astype(np.float64)

    def values(self, codes: Codes) -> list[Any]:
        """No and yes."""
        return [None if math.isnan(code) else self.levels[int(code)] for code in codes]

    def show(self, code: float) -> str:
        """No or yes."""
        return self.levels[round(min(max(code, 0), 1))]

    def describe(self) -> str:
        """NO/YES."""
        return "no/yes"
