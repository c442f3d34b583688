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
import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from reticent.cli.class_labels import parse_classes
from reticent.codebook import Codebook, did_you_mean, read_codebook
from reticent.errors import BadFile, BadInput, BoundsMissing, ReticentError
from reticent.privacy.columns.base import Kind
from reticent.privacy.columns.dates import Date
from reticent.privacy.columns.numbers import Cyclic, Number, Whole
from reticent.privacy.columns.words import Labels, Ordered, Words, YesNo
from reticent.privacy.people.unit import PrivacyUnit
from reticent.privacy.sources.base import Source, scan
from reticent.privacy.sources.cell_values import text_number
from reticent.privacy.sources.csv import CsvSource
from reticent.privacy.sources.csv_dialect import SEPARATORS

__all__ = [
    "DATA_OPTIONS",
    "SHAPES",
    "DataOptions",
    "check_dialect",
    "column_name",
    "parse_column",
    "parse_columns",
    "parse_missing",
    "split_name",
    "with_kept_missing",
    "with_missing",
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

    What an option does not say of a column, its missing codes, unit, label and format of dates, the
    codebook does.

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
        kind = _kind(name, value, given)
    except ReticentError as error:
        if str(error).startswith(option):
            raise
        words = str(error).replace("keep_missing=True", f"--keep-missing {column_name(name)}")
        raise BoundsMissing(f"{given}: {words}") from None
    if codebook is not None and name in codebook.kinds:
        kind = _completed(kind, codebook.kinds[name])
    return name, kind


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


def _again(name: str, given: str) -> str:
    """The option and the name of a column as they were given, for advice on what stands behind."""
    option, _, _ = given.partition(" ")
    return f"{option} {column_name(name)}"


def _from_codebook(name: str, option: str, codebook: Codebook | None) -> Kind:
    if codebook is None:
        raise BadInput(
            f"{option} takes COLUMN=LOW:HIGH with two numbers, for example {option} age=0:110, or "
            f"COLUMN= with {SHAPES}; not {name!r}. A name alone needs a --codebook."
        )
    if name in codebook.unused:
        raise BadInput(
            f'{option} {name}: {codebook.path} says use = "no" of it. Delete that line, and say '
            f"what stands in the column; or say it here: {SHAPES}."
        )
    if name not in codebook.kinds:
        raise BadInput(
            f"{option} {name}: {codebook.path} has no such column. Columns: "
            f"{', '.join(codebook.kinds)}.{did_you_mean(name, codebook.kinds)} Or say what stands "
            f"in it: {SHAPES}."
        )
    return codebook.kinds[name]


def _completed(kind: Kind, known: Kind) -> Kind:
    """A kind as an option gives it, with all else that the codebook knows of the column."""
    said: dict[str, Any] = {"unit": known.unit, "label": known.label}
    if isinstance(kind, Date) and isinstance(known, Date) and kind.format is None:
        said["format"] = known.format
    full = replace(kind, **said)
    for code in known.missing:
        full = _unless_refused(full, missing=(*full.missing, code))  # a level now: no code any more
    return _unless_refused(full, keep_missing=known.keep_missing)


def _unless_refused(kind: Kind, **changes: Any) -> Kind:
    try:
        return replace(kind, **changes)
    except BoundsMissing:
        return kind


# ---- kinds


def _kind(name: str, value: str, given: str) -> Kind:
    again = _again(name, given)
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
            f"otherwise, say how behind them: {again}=2019-01-31:2024-12-31:%d.%m.%Y."
        )
    if ":" in bare:
        raise BadInput(
            f"{given} is not understood. A range is COLUMN=LOW:HIGH with two numbers, :whole or "
            f":cyclic behind it where it is that, for example {again}=0:110 or {again}=0:24:cyclic."
        )
    if "/" in bare:
        return _yes_no(_words(value, "/", given), given)
    words = _words(value, ",", given)
    raise BadInput(
        f"{given} is one word, and a column with one level tells nothing. Give COLUMN=LOW:HIGH "
        f"with two numbers, for example {again}=0:110, or all words that can occur: "
        f"{again}={words[0].strip()},…"
    )


def _numeric(name: str, given: str, match: re.Match[str]) -> Kind:
    said = (match[3] or "").lower()
    if said not in _NUMERIC:
        raise BadInput(f"{given}: behind a range may stand :whole or :cyclic, not {match[3]!r}.")
    low = float(match[1])
    high = float(match[2])
    if low > high:
        behind = f":{said}" if said else ""
        raise BoundsMissing(
            f"{given} does not have low < high: did you mean "
            f"{_again(name, given)}={match[2]}:{match[1]}{behind}?"
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
        behind = "" if match[3] is None else f":{match[3]}"
        raise BoundsMissing(
            f"{given}: the dates are reversed. Did you mean "
            f"{_again(name, given)}={match[2]}:{match[1]}{behind}?"
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


def with_missing(
    columns: dict[str, Kind], everywhere: Sequence[str], by_name: Mapping[str, Sequence[str]]
) -> dict[str, Kind]:
    """The columns, with the codes of ``--missing``; a word cannot be a level and a code."""
    coded = {}
    for name, kind in columns.items():
        codes = (*everywhere, *by_name.get(name, ()))
        for code in codes:
            if kind.levels is not None and code in kind.levels:
                raise BadInput(
                    f"--missing {code}: this is a level of column {name!r}. Take it out of the "
                    "levels, or of the missing codes."
                )
        meant = [_missing_code(kind, code) for code in codes]
        coded[name] = replace(kind, missing=(*kind.missing, *meant)) if codes else kind
    return coded


def _missing_code(kind: Kind, code: str) -> str | float:
    """A code of a column of numbers is a number, if it is one."""
    value = text_number(code.encode())
    if isinstance(kind, (Number, Whole, Cyclic)) and math.isfinite(value):
        return value
    return code


def check_dialect(source: Source, data: str) -> None:
    """Refuse a header line that does not fit what was said of the file; both are public."""
    if not isinstance(source, CsvSource):
        return
    names = source.names or ()
    if not names and source.dialect.encoding is not None:
        raise BadFile(
            f"The first line of {data} is not written in {source.dialect.encoding}: leave out "
            "--encoding, and encoding of the codebook; then each cell is read by itself."
        )
    others = [mark.decode() for mark in SEPARATORS if mark != source.dialect.separator]
    if len(names) == 1 and any(mark in names[0] for mark in others):
        said = source.dialect.separator.decode()
        raise BadFile(
            f"{data} has one column only, {names[0]!r}, with the separator {said!r}: a wrong one? "
            "Leave out --separator, and separator of the codebook; the header line tells it."
        )


# ---- all that is said about a file

Classes = dict[str, list[str] | YesNo]  # the column of labels: all labels, or yes and no
DATA_OPTIONS = (
    *("missing", "keep_missing", "codebook"),
    *("separator", "decimal", "encoding", "table", "query", "sheet"),
)


@dataclass(frozen=True)
class DataOptions:
    """What the options say about a file: its columns, codes of missing values, its dialect.

    Parameters
    ----------
    x, y, classes : texts of the options
    missing, keep_missing : texts of the options
    codebook : Codebook or None
    dialect : dict
        ``separator``, ``decimal`` and ``encoding`` of a CSV file, ``table`` or ``query`` of a
        database, as far as they are said.
    """

    x: tuple[str, ...]
    y: tuple[str, ...]
    classes: tuple[str, ...]
    missing: tuple[str, ...]
    keep_missing: tuple[str, ...]
    codebook: Codebook | None
    dialect: dict[str, str]

    @classmethod
    def read(
        cls,
        *,
        x: Sequence[str] = (),
        y: Sequence[str] = (),
        classes: Sequence[str] = (),
        missing: Sequence[str] = (),
        keep_missing: Sequence[str] = (),
        codebook: str | os.PathLike[str] | None = None,
        **dialect: str | None,
    ) -> "DataOptions":
        """The options, and the codebook if there is one."""
        known = None if codebook is None else read_codebook(codebook)
        said = {} if known is None else dict(known.dialect)
        said |= {name: value for name, value in dialect.items() if value is not None}
        return cls(
            tuple(x), tuple(y), tuple(classes), tuple(missing), tuple(keep_missing), known, said
        )

    def scan(self, data: str, unit: PrivacyUnit | None = None) -> Source:
        """The records of a file, or a fault of it; ``unit`` names columns of people and weights."""
        dialect = self.dialect
        if Path(data).suffix.lower() in (".parquet", ".pq"):  # a codebook may serve both
            codebook = {} if self.codebook is None else self.codebook.dialect
            dialect = {
                name: value for name, value in dialect.items() if codebook.get(name) != value
            }
        try:
            source = scan(data, **dialect)
        except BadInput as error:
            if error.parameter in dialect or error.parameter in ("table", "query", "sheet"):
                if self.codebook is not None and error.parameter in self.codebook.dialect:
                    raise BadFile(f"{self.codebook.path}, [file]: {error}") from None
                raise
            words = str(error).replace("separator=';'", "--separator ';'")
            raise BadFile(words) from None
        if dialect:
            check_dialect(source, data)
        everywhere, by_name = parse_missing(self.missing)
        if unit is None:
            unit = PrivacyUnit()
        return source.with_nobody(
            (*everywhere, *by_name.get(unit.person or "", ())),
            weightless=(*everywhere, *by_name.get(unit.weight or "", ())),
        )

    def columns(
        self,
        *,
        outputs: bool,
        labels: bool,
        noise_column: str | None = None,
        alike: bool = False,
        unit: PrivacyUnit | None = None,
    ) -> "Columns":
        """The columns in their roles; ``outputs`` and ``labels`` say what a model predicts.

        ``alike``: whether a model tells no inputs from outputs, and describes all columns.
        ``unit`` names columns of people and weights, which may have codes of missing values.
        """
        codebook = self.codebook
        y = parse_columns("--y", self.y, codebook)
        if not self.y and outputs and not labels:
            y = self._by_use("y")
        classes = self._labels() if labels and outputs else {}
        noise = None
        if noise_column is not None:
            noise, level = parse_column(noise_column, "--noise-column", codebook)
            if type(level) is not Number:
                raise BadInput(
                    f"--noise-column {noise_column}: a noise level is a number, LOW:HIGH."
                )
        x = parse_columns("--x", self.x, codebook)
        if not self.x:
            taken = {*y, *classes, noise}
            uses = ("x", "y", "class") if alike else ("x",)
            x = {name: kind for name, kind in self._by_use(*uses).items() if name not in taken}
        _check_roles({"--x": x, "--y": y, "--classes": classes, "--noise-column": (noise,)})
        everywhere, by_name = parse_missing(self.missing)
        x = with_missing(with_kept_missing(x, self.keep_missing), everywhere, by_name)
        y = {name: replace(kind, keep_missing=False) for name, kind in y.items()}
        y = with_missing(y, everywhere, by_name)
        for name, listed in classes.items():
            if isinstance(listed, YesNo):  # of others, what is not listed is missing anyway
                coded = with_missing({name: listed}, everywhere, by_name)[name]
                assert isinstance(coded, YesNo)
                classes[name] = coded
        if noise is not None:
            level = replace(level, keep_missing=False)
            x |= with_missing({noise: level}, everywhere, by_name)
        known = [*x, *y, *classes]
        if unit is not None:
            known += [name for name in (unit.person, unit.weight) if name is not None]
        for name in by_name:
            if name not in known:
                raise BadInput(
                    f"--missing {name}=…: no such column is used. Columns: {', '.join(known)}."
                    f"{did_you_mean(name, known)}"
                )
        return Columns(x, y, classes, noise)

    def described(self, unit: PrivacyUnit | None = None) -> dict[str, tuple[str, Kind]]:
        """All columns that something is said of: role (the option, without dashes) and kind."""
        if self.x or self.y or self.classes or self.codebook is None:
            columns = self.columns(outputs=not self.classes, labels=False, unit=unit)
            classes = self._labels() if self.classes else {}
            found: dict[str, tuple[str, Kind]] = {}
            found |= {name: ("x", kind) for name, kind in columns.x.items()}
            found |= {name: ("y", kind) for name, kind in columns.y.items()}
            for name, one in classes.items():
                kind = one if isinstance(one, YesNo) else Labels(tuple(one))
                found[name] = ("class", kind)
            return found
        everywhere, by_name = parse_missing(self.missing)
        kinds = with_kept_missing(self.codebook.kinds, self.keep_missing)
        kinds = with_missing(kinds, everywhere, by_name)
        return {name: (self.codebook.uses[name], kind) for name, kind in kinds.items()}

    def _labels(self) -> Classes:
        if self.classes:
            if self.codebook is not None and len(self.classes) == 1:
                name, value = split_name(self.classes[0])
                if value is None and name in self.codebook.kinds:
                    return {name: self.codebook.labels(name)}
            return {**parse_classes(self.classes)}
        names = list(self._by_use("class"))
        if self.codebook is None or not names:
            return {}
        if len(names) > 1:
            raise BadInput(
                f"{self.codebook.path} has several columns whose use is class: choose one, "
                f"--classes {column_name(names[0])}."
            )
        return {names[0]: self.codebook.labels(names[0])}

    def _by_use(self, *wanted: str) -> dict[str, Kind]:
        if self.codebook is None:
            return {}
        uses = self.codebook.uses
        return {name: kind for name, kind in self.codebook.kinds.items() if uses[name] in wanted}


@dataclass(frozen=True)
class Columns:
    """Columns in their roles: inputs (and the noise column among them), outputs, labels."""

    x: dict[str, Kind]
    y: dict[str, Kind]
    classes: Classes
    noise_column: str | None


def _check_roles(roles: Mapping[str, Iterable[str | None]]) -> None:
    """Refuse a column that is given with two options."""
    first: dict[str, str] = {}
    for option, names in roles.items():
        for name in names:
            if name is None:
                continue
            if name in first:
                raise BadInput(
                    f"Column {name!r} is given both with {first[name]} and with {option}: "
                    "it can be one of them."
                )
            first[name] = option
