"""Codebooks: TOML files that say what is public about the columns of a table.

    [file]                              # of a CSV file; what its header does not tell
    separator = ";"
    decimal = ","
    encoding = "latin-1"

    [columns.age]
    kind = "number"                     # number, whole, words, ordered, yesno, date, cyclic
    low = 0
    high = 110
    missing = [999]
    unit = "years"
    label = "Age at admission"
    use = "x"                           # x: an input, y: an output, class: a label, no: not used

    [columns.sex]
    kind = "words"
    words = ["F", "M"]

    [columns.patient_id]
    use = "person"                      # whose a record is; has no kind

    [columns.w]
    use = "weight"                      # how much a record counts, up to a public bound
    high = 20

    [release]                           # public text for readers of the release (about.py)
    controller = "City hospital"
    contact = "dpo@example.org"

A codebook is written by a person, from common knowledge; a template has names and kinds from the
schema, never a value of a record.
"""

import math
import os
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from reticent.about import ABOUT, checked_about
from reticent.errors import BadFile, BadInput, ReticentError
from reticent.privacy.bounds import Bounds
from reticent.privacy.columns.base import Kind
from reticent.privacy.columns.dates import Date
from reticent.privacy.columns.kinds import kind_from_dict
from reticent.privacy.columns.numbers import Cyclic, Number, Whole
from reticent.privacy.columns.words import Ordered, Words, YesNo
from reticent.privacy.sources.base import DtypeKind, Source, scan

__all__ = ["Codebook", "did_you_mean", "read_codebook", "template"]

_FILE_KEYS = ("separator", "decimal", "encoding")
_IN_ORDER = (
    *("low", "high", "words", "no", "yes", "format"),
    *("missing", "keep_missing", "unit", "label"),
)
_WRITTEN: tuple[type[Kind], ...] = (Number, Whole, Words, Ordered, YesNo, Date, Cyclic)
_KIND_KEYS = {
    cls.name: (*sorted((one.name for one in fields(cls)), key=_IN_ORDER.index), "use")
    for cls in _WRITTEN
}
_OTHER_WORDS = {
    **dict.fromkeys(("levels", "values", "categories", "labels"), "words"),
    **dict.fromkeys(("min", "minimum", "lower", "from"), "low"),
    **dict.fromkeys(("max", "maximum", "upper", "to"), "high"),
    **dict.fromkeys(("na", "codes", "na_values"), "missing"),
    **dict.fromkeys(("true", "positive"), "yes"),
    **dict.fromkeys(("false", "negative"), "no"),
}
_USES = ("x", "y", "class", "person", "weight", "no")
_PERSON_KEYS = ("label",)
_WEIGHT_KEYS = ("kind", "low", "high", "label", "unit")
_HINTS: dict[DtypeKind, str] = {
    "number": 'kind = "number"\nlow =\nhigh =',
    "moment": 'kind = "date"\nlow =        # such as 2019-01-01\nhigh =',
    "text": 'kind = "words"\nwords = []    # all words that can occur',
    "category": 'kind = "words"\nwords = []    # all words that can occur',
}
_UNKNOWN = 'kind = ""     # number, whole, words, ordered, yesno, date or cyclic; then its range'
_HEAD = """\
# Codebook of {name}: what is public about its columns. Fill it in from common knowledge or from the
# study's own codebook, never from the records: a range taken from the data tells on the extremes.
#
#   kind = "number", "whole" or "cyclic"   low and high: plausible ends, both included
#   kind = "words" or "ordered"            words: all that can occur; others count as missing
#   kind = "yesno"                         true/false, yes/no, 1/0; or no = "alive", yes = "dead"
#   kind = "date"                          low and high, such as 2019-01-01; format = "%d.%m.%Y"
#
# For every column, if you like: missing = [999, "NA"] (codes that mean missing), keep_missing =
# true (missing counts as a value of its own), unit = "kg", label = "Weight at birth", and use = "x"
# (an input), "y" (an output), "class" (a label to predict) or "no". Delete columns you do not need.
#
# use = "person" is for the column that says whose a record is: all records of one person are then
# protected together, however many. It has no kind and no range. use = "weight" is for a weight of
# each record (of a survey): low = 0, and high, above which a weight counts as high.
"""
_FILE = """\
# [file]                 # where the header line does not tell it
# separator = ";"
# decimal = ","
# encoding = "latin-1"
"""
_RELEASE = """\
# [release]              # public text for whoever reads the release; all of it is optional
# title = ""
# controller = ""        # who is responsible for the records
# purpose = ""
# source = ""            # where the records come from
# period = ""            # of which time they are
# contact = ""           # whom to ask
# confirmed_by = ""      # who confirmed what the guarantee assumes
# note = ""
"""


@dataclass(frozen=True)
class Codebook:
    """What is public about the columns of a table.

    Attributes
    ----------
    path : str
    kinds : dict of name → Kind
    uses : dict of name → "x", "y", "class" or "no"
    dialect : dict
        ``separator``, ``decimal`` and ``encoding`` of CSV files, as far as they are said.
    person : str or None
        The column that says whose a record is.
    weight, weight_bound
        The column of record weights, and the number above which a weight counts as that number.
    unused : tuple of str
        Columns of use "no".
    release : dict
        Public text for readers of a release (`reticent.about.ABOUT`).
    """

    path: str
    kinds: dict[str, Kind]
    uses: dict[str, str]
    dialect: dict[str, str]
    person: str | None = None
    weight: str | None = None
    weight_bound: float | None = None
    release: dict[str, str] = field(default_factory=dict)
    unused: tuple[str, ...] = ()

    def bounds(
        self,
        *,
        x: Iterable[str] | None = None,
        y: str | Iterable[str] | None = None,
        classes: str | None = None,
        norm: float | None = None,
    ) -> Bounds:
        """Bounds for the columns in their roles, or for the columns that are named here."""
        outputs = self._chosen(y, "y")
        labels = self._chosen(classes, "class")
        if y is not None:
            labels = self._chosen(classes, "")
        elif classes is not None:
            outputs = []
        inputs = self._chosen(x, "x")
        if x is None:
            inputs = [name for name in inputs if name not in outputs + labels]
        if not inputs:
            raise BadInput(f'{self.path} has no column whose use is "x": say which are inputs.')
        if len(labels) > 1:
            raise BadInput(f'{self.path} has several columns of use "class": choose one.')
        wanted: dict[str, Any] = {"x": {name: self.kinds[name] for name in inputs}, "norm": norm}
        if labels:
            wanted["classes"] = {labels[0]: self.labels(labels[0])}
        elif outputs:
            # a record without an output says nothing of it, whatever is kept as an input
            wanted["y"] = {name: replace(self.kinds[name], keep_missing=False) for name in outputs}
        return Bounds(**wanted)

    def labels(self, name: str) -> list[str] | YesNo:
        """The words of a column, as labels to be predicted; yes and no in all their spellings."""
        kind = self.kinds[name]
        if not isinstance(kind, (Words, Ordered, YesNo)):
            raise BadInput(
                f"Column {name!r} is of kind {kind.name}: labels to be predicted are words."
            )
        if isinstance(kind, YesNo):
            return replace(kind, keep_missing=False)
        return list(replace(kind, keep_missing=False).levels)

    def scan(self, data: Any) -> Source:
        """The records of a file, read as the codebook says."""
        return scan(data, **self.dialect)

    def _chosen(self, names: str | Iterable[str] | None, use: str) -> list[str]:
        if names is None:
            return [name for name, said in self.uses.items() if said == use]
        listed = [names] if isinstance(names, str) else list(names)
        for name in listed:
            if name not in self.kinds:
                known = ", ".join(self.kinds)
                raise BadInput(f"{self.path} has no column {name!r}. Columns: {known}.")
        return listed


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A sentence with what is spelled nearly like a name, or nothing.

    >>> did_you_mean("mising", ["low", "high", "missing"])
    " Did you mean 'missing'?"
    """
    by_letters = {one.lower(): one for one in known}
    close = get_close_matches(name.lower(), by_letters, 1)
    if not close:
        return ""
    return f" Did you mean {by_letters[close[0]]!r}?"


def read_codebook(path: str | os.PathLike[str]) -> Codebook:
    """Read a codebook, and say what is wrong with it."""
    try:
        text = Path(path).read_bytes().decode("utf-8-sig")
        given = tomllib.loads(text)
    except FileNotFoundError:
        raise BadFile(f"There is no file {path}. Check the path.") from None
    except OSError:
        raise BadFile(f"{path} cannot be read. Check the path.") from None
    except UnicodeDecodeError:
        raise BadFile(f"{path} is not UTF-8. Save it as UTF-8.") from None
    except tomllib.TOMLDecodeError as error:
        raise BadFile(
            f"{path} is not a codebook: {str(error).rstrip('.')}. A value that is not filled in "
            'yet is such an error, too; names with spaces go in quotes, [columns."CRP (mg/l)"]; '
            "numbers have a decimal point."
        ) from None
    _check_keys(path, given, ("file", "columns", "release"))
    file = _table(path, given, "file")
    _check_keys(f"{path}, [file]", file, _FILE_KEYS)
    kinds = {}
    uses = {}
    unused: list[str] = []
    special: dict[str, Any] = {"release": _release(path, given)}
    for name in _table(path, given, "columns"):
        entry = dict(_table(f"{path}, [columns]", given["columns"], name))
        use = entry.pop("use", "x")
        if use not in _USES:
            raise BadFile(
                f"{path}, column {name!r}: use is one of {', '.join(_USES)}, not {use!r}."
            )
        if use == "no":
            unused.append(name)
            continue
        if use in ("person", "weight"):
            if use in special:
                raise BadFile(f'{path} has two columns of use "{use}": choose one.')
            special[use] = name
            if use == "person":
                _check_person(f"{path}, column {name!r}", entry)
            else:
                special["weight_bound"] = _weight_bound(f"{path}, column {name!r}", entry)
            continue
        uses[name] = use
        kinds[name] = _kind(f"{path}, column {name!r}", entry)
    if not kinds:
        raise BadFile(f"{path} has no columns: each has a table of its own, [columns.age].")
    dialect = {key: str(value) for key, value in file.items()}
    return Codebook(str(path), kinds, uses, dialect, unused=tuple(unused), **special)


def _release(path: object, given: Mapping[str, Any]) -> dict[str, str]:
    """Public text for readers of the release."""
    table = _table(path, given, "release")
    _check_keys(f"{path}, [release]", table, tuple(ABOUT))
    try:
        return checked_about(table)
    except BadInput as error:
        raise BadFile(f"{path}, [release]: {error}") from None


def _check_person(where: str, entry: Mapping[str, Any]) -> None:
    """Refuse what a column of identifiers does not have; an empty kind is that of a template."""
    for key, value in entry.items():
        if key in _PERSON_KEYS or (key == "kind" and not value):
            continue
        raise BadFile(
            f'{where}: a column of use "person" is compared for equality alone, and has no {key}. '
            "Delete that line; for a code that stands for nobody, say --missing COLUMN=CODE."
        )


def _weight_bound(where: str, entry: Mapping[str, Any]) -> float:
    """The public bound of a column of weights."""
    _check_keys(where, entry, _WEIGHT_KEYS)
    if entry.get("kind", "number") not in ("number", "whole", ""):
        raise BadFile(f'{where}: a column of use "weight" is of kind number.')
    low = entry.get("low", 0)
    high = entry.get("high", math.nan)
    numbers = all(type(value) in (int, float) for value in (low, high))
    if not numbers or low != 0 or not 0 < high < math.inf:
        raise BadFile(
            f'{where}: a column of use "weight" has low = 0 and a public high above 0, such as '
            "high = 20. A larger weight counts as high."
        )
    return float(high)


def _kind(where: str, entry: Mapping[str, Any]) -> Kind:
    if not entry.get("kind"):
        raise BadFile(
            f"{where} has no kind yet: number, whole, words, ordered, yesno, date, cyclic. Or "
            'say use = "no" of it; or use = "person", if it says whose a record is.'
        )
    if entry["kind"] in _KIND_KEYS:
        _check_kind_keys(where, entry)
    given = dict(entry)
    for key in ("low", "high"):
        if hasattr(given.get(key), "isoformat"):
            given[key] = given[key].isoformat()
    try:
        return kind_from_dict(given)
    except TypeError:
        raise BadFile(
            f"{where}: a column of kind {entry['kind']} lacks its range or words."
        ) from None
    except ReticentError as error:
        raise BadFile(f"{where}: {error}") from None


def _check_kind_keys(where: str, entry: Mapping[str, Any]) -> None:
    known = _KIND_KEYS[entry["kind"]]
    for key in entry:
        if key in known or key == "kind":
            continue
        meant = _OTHER_WORDS.get(key.lower())
        if meant in known:
            hint = f" Did you mean {meant!r}?"
        else:
            hint = did_you_mean(key, known)
        raise BadFile(
            f"{where}: unknown key {key!r}; keys of kind {entry['kind']}: {', '.join(known)}.{hint}"
        )


def _table(where: object, given: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    table = given.get(name, {})
    if not isinstance(table, Mapping):
        raise BadFile(f"{where}: {name} is a table of its own, not {table!r}.")
    return table


def _check_keys(where: object, given: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for key in given:
        if key not in known:
            raise BadFile(
                f"{where} has {key!r}, which means nothing. Known: {', '.join(known)}."
                f"{did_you_mean(key, known)}"
            )


# ---- templates


def template(source: Source, name: str, dialect: Mapping[str, str] | None = None) -> str:
    """A codebook to be filled in, from names and dtypes alone.

    ``dialect``: what was said about how the file is written.
    """
    if source.names is None:
        raise BadInput("A codebook is for columns with names.")
    shown = "".join(c if c.isprintable() else "?" for c in name)
    parts = [_HEAD.format(name=shown)]
    if dialect:
        lines = [f"{key} = {_quoted(value)}" for key, value in dialect.items()]
        parts.append("\n".join(["[file]", *lines, ""]))
    elif source.kind(0) == ("any", "text"):
        parts.append(_FILE)
    for position, column in enumerate(source.names):
        hint = _HINTS.get(source.kind(position)[0], _UNKNOWN)
        parts.append(f"[columns.{_key(column)}]\n{hint}\n")
    parts.append(_RELEASE)
    return "\n".join(parts)


def _key(name: str) -> str:
    """A column name as a TOML key."""
    if name and all(c.isascii() and (c.isalnum() or c in "-_") for c in name):
        return name
    return _quoted(name)


def _quoted(text: str) -> str:
    """A text in TOML."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    shown = "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in escaped)
    return f'"{shown}"'
