"""Columns as the command line gives them: a name, and what is public about its values.

    age=0:110                        a number
    children=0:12:whole              a whole number
    hour=0:24:cyclic                 a number that comes round
    sex=F,M                          one of some words
    stage=I<II<III                   one of some words, in order
    smoker=yes/no                    yes or no, in whichever words: alive/dead means dead=yes
    visit=2019-01-01:2024-12-31      a date; other ways to write it: visit=…:…:%d.%m.%Y
    age                              what the codebook says of it

A name or a word that holds one of the signs ``= , < / :`` stands in double quotes.
"""

import csv
import re
from collections.abc import Sequence
from dataclasses import replace

from reticent.codebook import Codebook
from reticent.errors import BadInput, BoundsMissing, ReticentError
from reticent.privacy.columns.base import Kind
from reticent.privacy.columns.dates import Date
from reticent.privacy.columns.numbers import Cyclic, Number, Whole
from reticent.privacy.columns.words import Ordered, Words, YesNo

__all__ = [
    "SHAPES",
    "column_name",
    "parse_column",
    "parse_columns",
    "parse_missing",
    "split_name",
    "with_kept_missing",
]

SHAPES = "a range (0:110), words (F,M), an order (I<II<III), yes/no, or dates"

_NUMBER = r"\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*"
_RANGE = re.compile(rf"{_NUMBER}:{_NUMBER}(?::\s*([^:]*?)\s*)?", re.ASCII)
_DAY = r"\s*(\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2})?)?)\s*"
_DATES = re.compile(rf"{_DAY}:{_DAY}(?::(.*%.*))?", re.ASCII)
_OTHER_DATE = re.compile(r"\s*\d{1,4}[./-]\d{1,2}[./-]\d{1,4}\s*:.*", re.ASCII)
_DECIMAL_COMMAS = re.compile(r"\s*[-+]?\d*(?:,\d+)?:[-+]?\d*(?:,\d+)?\s*", re.ASCII)
_LONGEST = 80  # signs of an option that an error repeats
_QUOTED = re.compile(r'"((?:[^"]|"")+)"\s*(?:=(.*))?', re.DOTALL)
_YES = ("yes", "y", "true", "t", "1", "ja", "oui", "si", "sí", "sim", "da", "tak")
_NUMERIC: dict[str, type[Number] | type[Whole] | type[Cyclic]] = {
    "": Number,
    "number": Number,
    "whole": Whole,
    "cyclic": Cyclic,
}


def parse_column(
    text: str, option: str = "--x", codebook: Codebook | None = None
) -> tuple[str, Kind]:
    """A column's name and kind; errors name the option that it was given with.

    >>> parse_column("sex=F,M"), parse_column('"a=b"=0:3:whole')
    (('sex', Words(words=['F', 'M'])), ('a=b', Whole(low=0, high=3)))
    """
    name, value = split_name(text)
    if not name:
        raise BadInput(
            f"{option} takes COLUMN=LOW:HIGH with two numbers, for example {option} age=0:110, or "
            f"COLUMN= with {SHAPES}; not {text!r}."
        )
    if value is None:
        return name, _from_codebook(name, option, codebook)
    given = f"{option} {text}"
    if len(given) > _LONGEST:
        given = given[:_LONGEST] + "…"
    try:
        return name, _kind(name, value, given)
    except ReticentError as error:
        if str(error).startswith(option):
            raise
        words = str(error).replace("keep_missing=True", f"--keep-missing {column_name(name)}")
        raise BoundsMissing(f"{given}: {words}") from None


def parse_columns(
    option: str, texts: Sequence[str], codebook: Codebook | None = None
) -> dict[str, Kind]:
    """The columns that were given with one option, each once.

    >>> list(parse_columns("--x", ["age=0:110", "sex=F,M"]))
    ['age', 'sex']
    """
    columns: dict[str, Kind] = {}
    for text in texts:
        name, kind = parse_column(text, option, codebook)
        if name in columns:
            raise BadInput(
                f"{option} was given twice for column {name!r}: give each column one range."
            )
        columns[name] = kind
    return columns


def split_name(text: str) -> tuple[str, str | None]:
    """The name, and what stands behind its ``=``; None if there is no ``=``.

    A name in double quotes may hold anything. Otherwise it ends at the first ``=``, or at the last
    one where a range stands behind that.

    >>> split_name("income=<=50K,>50K"), split_name("a=b=0:10"), split_name("age")
    (('income', '<=50K,>50K'), ('a=b', '0:10'), ('age', None))
    """
    quoted = _QUOTED.fullmatch(text)
    if quoted is not None:
        return quoted[1].replace('""', '"'), quoted[2]
    if "=" not in text:
        return text.strip(), None
    name, _, value = text.rpartition("=")
    if not (_RANGE.fullmatch(value) or _DATES.fullmatch(value)):
        name, _, value = text.partition("=")
    return name.strip(), value


def column_name(text: str) -> str:
    """A column's name as it stands on the command line: in quotes if it needs them."""
    if "=" not in text and not text.startswith('"') and text == text.strip():
        return text
    doubled = text.replace('"', '""')
    return f'"{doubled}"'


def _from_codebook(name: str, option: str, codebook: Codebook | None) -> Kind:
    if codebook is None:
        raise BadInput(
            f"{option} takes COLUMN=LOW:HIGH with two numbers, for example {option} age=0:110; or "
            f"say what else stands in {name}: {SHAPES}. A name alone needs a --codebook."
        )
    if name not in codebook.kinds:
        raise BadInput(
            f"{option} {name}: {codebook.path} has no such column. Columns: "
            f"{', '.join(codebook.kinds)}. Or say what stands in it: {SHAPES}."
        )
    return codebook.kinds[name]


# ---- kinds


def _kind(name: str, value: str, given: str) -> Kind:
    if not value.strip():
        raise BadInput(f"{given} says nothing of the column: give {SHAPES}.")
    dates = _DATES.fullmatch(value)
    if dates is not None:
        return _date(name, given, dates)
    numbers = _RANGE.fullmatch(value)
    if numbers is not None:
        return _numeric(name, given, numbers)
    bare = "".join(value.split('"')[::2])  # outside of quotes
    if "," in bare and _DECIMAL_COMMAS.fullmatch(value):
        raise BadInput(f"{given}: bounds are written with a decimal point, such as 0.5:2.5.")
    if "," in bare:
        return Words(_words(value, ",", given))
    if "<" in bare:
        return Ordered(_words(value, "<", given))
    if _OTHER_DATE.fullmatch(value):
        raise BadInput(
            f"{given}: bounds of dates are written 2019-01-31:2024-12-31. If the file writes them "
            f"otherwise, say how behind them: {column_name(name)}=2019-01-31:2024-12-31:%d.%m.%Y."
        )
    if ":" in bare:
        raise BadInput(
            f"{given} is not understood. A range is LOW:HIGH with two numbers, with :whole or "
            f":cyclic behind it if it is one, for example {column_name(name)}=0:110 or "
            f"{column_name(name)}=0:24:cyclic."
        )
    if "/" in bare:
        return _yes_no(_words(value, "/", given), given)
    return Words(_words(value, ",", given))  # one word: it says what is wrong with that


def _numeric(name: str, given: str, match: re.Match[str]) -> Kind:
    said = (match[3] or "").lower()
    if said not in _NUMERIC:
        raise BadInput(f"{given}: behind a range may stand :whole or :cyclic, not {match[3]!r}.")
    low = float(match[1])
    high = float(match[2])
    if low > high:
        raise BoundsMissing(
            f"{given} does not have low < high: did you mean "
            f"{column_name(name)}={match[2]}:{match[1]}?"
        )
    if low == high:
        raise BoundsMissing(
            f"{given} has no width: give the plausible range of {name}, from the "
            "codebook or common knowledge, or leave the column out."
        )
    if said == "whole":
        return Whole(low, high)  # type: ignore[arg-type]  # it refuses what is not whole
    return _NUMERIC[said](low, high)  # type: ignore[arg-type]


def _date(name: str, given: str, match: re.Match[str]) -> Kind:
    if match[1].strip() > match[2].strip():
        raise BoundsMissing(
            f"{given}: the dates are reversed. Did you mean "
            f"{column_name(name)}={match[2]}:{match[1]}?"
        )
    return Date(match[1], match[2], match[3])


def _words(value: str, separator: str, given: str) -> tuple[str, ...]:
    try:
        reader = csv.reader([value], delimiter=separator, skipinitialspace=True, strict=True)
        return tuple(next(reader))
    except (csv.Error, StopIteration):
        raise BadInput(
            f"{given}: a quote does not close. A word with a quote in it is written with two: "
            '"5"" pipe".'
        ) from None


def _yes_no(words: Sequence[str], given: str) -> YesNo:
    if len(words) != 2:
        raise BadInput(
            f"{given} has {len(words)} words between slashes: yes and no are two, and words in no "
            "order stand between commas."
        )
    first, second = words
    if first.strip().lower() in _YES:
        return YesNo(no=second, yes=first)
    return YesNo(no=first, yes=second)


# ---- missing values


def parse_missing(texts: Sequence[str]) -> tuple[tuple[str, ...], dict[str, tuple[str, ...]]]:
    """Read ``--missing``: codes for all columns, and codes for some by name.

    >>> parse_missing(["999,NA", "age=998"])
    (('999', 'NA'), {'age': ('998',)})
    """
    everywhere: tuple[str, ...] = ()
    by_name: dict[str, tuple[str, ...]] = {}
    for text in texts:
        name, value = split_name(text)
        given = f"--missing {text}"
        codes = tuple(code.strip() for code in _words(text if value is None else value, ",", given))
        if not codes or not all(codes) or not name:
            raise BadInput(
                f"{given} has an empty code: an empty cell is missing anyway. Give the codes that "
                "mean missing, for example --missing 999,NA or --missing age=999."
            )
        if value is None:
            everywhere += codes
        else:
            by_name[name] = by_name.get(name, ()) + codes
    return everywhere, by_name


def with_kept_missing(columns: dict[str, Kind], names: Sequence[str]) -> dict[str, Kind]:
    """The inputs; those of ``--keep-missing`` with missing as a value of its own."""
    for name in names:
        if name not in columns:
            raise BadInput(
                f"--keep-missing {name}: no such input. It is for inputs, by their names: "
                f"{', '.join(columns)}."
            )
    return {
        name: replace(kind, keep_missing=True) if name in names else kind
        for name, kind in columns.items()
    }
