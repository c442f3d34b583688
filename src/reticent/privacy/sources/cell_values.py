"""Cell values: what one cell of a record turns into, the same for arrays, frames and files.

This is where the privacy rule of reading is kept: the result for a cell is a function of that cell
alone, and no cell whatever raises, warns or changes anything but its own result.

* As a number: the nearest float64 of an int, float, bool, decimal or fraction; NaN for all else
  (missing values, text, containers, dates, complex numbers); ±inf stays, and is also where a number
  beyond float64 goes.
* As the text of a number (CSV): the same, for what `_NUMBER` accepts: "1", "-1.5e3", " .5 ", "inf",
  "nan".
* As a label: the position of the class that it stands for; NaN, missing, for everything else.
* As a record of a list: its cells if it has as many as there are columns, which is public; else all
  missing.

Proof: reading.md.
"""

import math
import re
from collections.abc import Iterable, Sequence
from decimal import Decimal
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Column",
    "Label",
    "LabelTable",
    "fitting_width",
    "is_truth",
    "label",
    "label_table",
    "labels",
    "list_cells",
    "number",
    "numbers",
    "plain_array",
    "text_label",
    "text_number",
    "text_of",
    "without_masked",
]

Label: TypeAlias = str | int | float | bool
Column: TypeAlias = NDArray[np.float64]
LabelTable: TypeAlias = dict[object, int]  # positions of classes, by the class and by its bytes

# Possessive (++), so that no text takes more than linear time.
_NUMBER = re.compile(
    rb"[ \t]*+("
    rb"[+-]?(?:(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:e[+-]?[0-9]++)?|inf(?:inity)?)|nan"
    rb")[ \t]*+",
    re.IGNORECASE,
)
_LONGEST_NUMBER = 1000  # bytes; a longer text is not a number
# Nothing else is hashed, but bytes: a deeply nested tuple would end the process.
_NUMBERS = (Real, Decimal, np.bool_)


def number(value: object) -> float:
    """Return one Python object as a float64. A str is not a number, even if it looks like one."""
    try:
        if isinstance(value, np.timedelta64) or not isinstance(value, _NUMBERS):
            return math.nan
        try:
            return float(value)
        except OverflowError:
            sign = 1 if value > 0 else -1  # type: ignore[operator]
            return math.copysign(math.inf, sign)
    except Exception:  # a signalling NaN, or an object that pretends
        return math.nan


def numbers(values: NDArray[Any]) -> Column:
    """Return an array of any dtype as float64, cell by cell; a float64 array as it is."""
    if values.dtype.kind in "biuf":
        with np.errstate(all="ignore"):  # longdouble may overflow
            return values.astype(np.float64, copy=False)
    with np.errstate(all="ignore"):
        flat = [number(value) for value in values.ravel().tolist()]
    return np.array(flat, dtype=np.float64).reshape(values.shape)


def plain_array(values: NDArray[Any]) -> NDArray[Any]:
    """Return an array of NumPy's own type; what is masked is missing (None, among objects)."""
    if isinstance(values, np.ma.MaskedArray):
        return without_masked(np.ma.getdata(values), np.ma.getmaskarray(values))
    return np.asarray(values)


def without_masked(values: NDArray[Any], mask: NDArray[np.bool_]) -> NDArray[Any]:
    """Return a copy with what is masked missing: no time among moments, None among objects."""
    if values.dtype.kind == "M":
        return np.where(mask, np.datetime64("NaT"), values)
    cells = values.astype(object)
    cells[mask] = None
    return cells


def list_cells(records: Sequence[object], width: int) -> NDArray[np.object_]:
    """Lay out a list of records by a public shape: (len(records), width) cells, as objects.

    A record is a list, a tuple or a one-dimensional array of exactly ``width`` cells; where
    ``width`` is 1, anything that is not one of these is the cell itself. Whatever does not fit is a
    record whose cells are all missing (None). NumPy is never asked for a shape or a dtype: it would
    find them by looking at all records, so that one record could change how the others are read.
    """
    cells = np.full((len(records), width), None, dtype=object)
    for i, record in enumerate(records):
        for j, cell in enumerate(_cells_of(record, width)):
            cells[i, j] = cell
    return cells


def _cells_of(record: object, width: int) -> Sequence[object]:
    """Return the cells of one record of a list, or none if it does not have ``width`` of them."""
    try:
        listed = isinstance(record, (list, tuple))
        listed = listed or (isinstance(record, np.ndarray) and record.ndim == 1)
        if listed:
            found = list(record)  # type: ignore[call-overload]
            if len(found) == width:
                return found
            return []
    except Exception:  # an object that pretends to be a list
        return []
    if width == 1:
        return [record]
    return []


def fitting_width(rows: Sequence[object], widths: Sequence[int]) -> int | None:
    """Return the first of ``widths`` that some row has, or None.

    For rows that are not protected: it looks at them. None is a row of any width, and tells none
    beside others.
    """
    telling = [row for row in rows if row is not None] or rows
    for width in widths:
        if any(_cells_of(row, width) for row in telling):
            return width
    return None


def text_number(text: bytes) -> float:
    """Return the number that a text stands for, or NaN."""
    if len(text) <= _LONGEST_NUMBER:
        match = _NUMBER.fullmatch(text)
    else:
        match = None
    if match:
        return float(match[1])
    return math.nan


def text_of(value: object) -> bytes | None:
    """The bytes of a text, in UTF-8; None for what is no text, or only pretends to be one."""
    try:
        if isinstance(value, str):
            return str.encode(value, "utf-8", "surrogatepass")
        if isinstance(value, bytes):
            return bytes.__add__(value, b"")
    except Exception:
        return None
    return None


def is_truth(value: object) -> bool:
    """Whether an object is a truth value by its own type, of which nobody makes subclasses."""
    return type(value) is bool or type(value) is np.bool_


def label_table(classes: Sequence[Label]) -> LabelTable:
    """Return the position of each class, under the class itself and under its bytes.

    A text of a number stands for the number as well, and a text of a truth value for that, as long
    as no class is that itself.
    """
    table: LabelTable = {}
    for position, label in enumerate(classes):
        table.setdefault(label, position)
        if isinstance(label, str):
            table.setdefault(label.encode("utf-8", "surrogatepass"), position)
        elif isinstance(label, (bool, np.bool_)):
            for text in (str(label), str(label).lower(), str(label).upper()):
                table.setdefault(text.encode(), position)
    for position, label in enumerate(classes):
        if isinstance(label, str):
            value = text_number(label.encode("utf-8", "surrogatepass"))
            if not math.isnan(value):
                table.setdefault(value, position)
            elif label.lower() in ("true", "false"):
                table.setdefault(label.lower() == "true", position)
    for truth in (False, True):
        name = str(truth)
        spellings = [one.encode() for one in (name, name.lower(), name.upper())]
        found = [table[key] for key in (*spellings, truth) if key in table]
        for spelling in spellings:
            if found:
                table.setdefault(spelling, found[0])
    return table


def labels(values: Iterable[object], table: LabelTable) -> Column:
    """Return the position of the class that each value stands for, else NaN."""
    return np.array([label(value, table) for value in values], dtype=np.float64)


def label(value: object, table: LabelTable) -> float:
    """Return the position of the class that a value stands for, else NaN.

    1 is 1.0, True and the text "1", as in a file.
    """
    text = text_of(value)
    if text is not None:
        return text_label(text, table)
    try:
        if isinstance(value, _NUMBERS):
            return table.get(value, math.nan)
        return math.nan
    except Exception:  # an object that pretends
        return math.nan


def text_label(text: bytes, table: LabelTable) -> float:
    """Return the position of the class that a text stands for.

    By its bytes, else by its number, else NaN.
    """
    place = table.get(text)
    if place is None:
        place = table.get(text_number(text))
    if place is None:
        return math.nan
    return place
