"""Codes of whole columns: what a kind makes of each cell, for arrays and for columns of texts.

Fast where the cells allow it, and the same as asking the kind cell by cell. Proof: reading.md.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from reticent.privacy.columns.base import Kind
from reticent.privacy.columns.dates import Date
from reticent.privacy.columns.identifiers import Identifier
from reticent.privacy.columns.numbers import Cyclic, Number, Whole
from reticent.privacy.columns.words import Labels, MissingIndicator
from reticent.privacy.sources.base import Field
from reticent.privacy.sources.cell_values import Column, number, numbers, text_number
from reticent.privacy.sources.csv_dialect import Dialect

__all__ = [
    "TextColumns",
    "code_array",
    "code_rows",
    "code_text",
    "code_texts",
    "is_plain",
    "reads_numbers",
]

# Numbers that every version of arrow reads as Python does: never out of range, no spaces, no plus
# sign.
_PLAIN_NUMBER = r"^-?[0-9]{1,20}(\.[0-9]{0,40})?([eE][+-]?[0-9]{1,2})?$"


def code_array(values: NDArray[Any], kind: Kind | None) -> Column:
    """Return the codes of the cells of an array of one column, of any dtype."""
    if values.dtype.kind == "M":
        return _code_moments(values, kind)
    if values.dtype.kind == "m":  # as a list they would be whole numbers
        return np.full(len(values), math.nan if kind is None else kind.missing_code)
    if values.dtype.kind in "biuf":
        if isinstance(kind, Labels):  # beyond 2^53 two labels may be one float64
            found, where = np.unique(values, return_inverse=True)
            return kind.code_values(found.tolist())[where]
        if isinstance(kind, Identifier) and values.dtype.kind != "f":
            return kind.code_integers(values)
        if kind is not None and values.dtype.kind == "b":
            return kind.code_truths(values)
        plain = numbers(values)
        if kind is None:
            return plain
        return kind.code_numbers(plain)
    if kind is None:
        return np.array([number(value) for value in values.tolist()], dtype=np.float64)
    return kind.code_values(values.tolist())


def code_rows(table: NDArray[Any], fields: Sequence[Field]) -> NDArray[np.float64]:
    """Return the codes of records that are rows of an array; fields are columns by position."""
    if table.dtype.kind in "biuf" and all(is_plain(field.kind) for field in fields):
        return numbers(table[:, [int(field.key) for field in fields]])
    codes = np.empty((len(table), len(fields)))
    for place, field in enumerate(fields):
        codes[:, place] = code_array(table[:, int(field.key)], field.kind)
    return codes


def is_plain(kind: Kind | None) -> bool:
    """Whether the codes of numbers are the numbers."""
    if kind is None:
        return True
    return isinstance(kind, Number) and not kind.missing and not kind.keep_missing


def _code_moments(values: NDArray[Any], kind: Kind | None) -> Column:
    """Return the codes of NumPy's moments: days since 1970-01-01, where dates are wanted."""
    if kind is None:
        return np.full(len(values), np.nan)
    if isinstance(kind, Date):
        return kind.code_moments(values)
    if isinstance(kind, MissingIndicator) and isinstance(kind.of, Date):
        known = replace(kind.of, keep_missing=False).code_moments(values)
        return np.isnan(known).astype(np.float64)
    return np.full(len(values), kind.missing_code)


def code_texts(cells: pa.Array, kind: Kind | None, dialect: Dialect | None = None) -> Column:
    """Return the codes of an arrow column of texts, cell by cell."""
    if dialect is None:
        dialect = Dialect()
    if pa.types.is_string_view(cells.type):
        cells = cells.cast(pa.large_binary()).cast(pa.large_string(), safe=False)
    if kind is None:
        return _text_numbers(dialect.plain_numbers(cells))
    if reads_numbers(kind):
        return kind.code_numbers(_text_numbers(dialect.plain_numbers(cells)))
    if isinstance(kind, Identifier):
        return identifier_pairs(cells, kind, dialect)[kind.half]
    return _each(cells, lambda texts: _level_codes(texts, kind, dialect))


def code_text(text: bytes, kind: Kind | None, dialect: Dialect) -> float:
    """Return the code of one text: what `code_texts` gives for its cell."""
    plain = text_number(dialect.plain_number(text))
    if kind is None:
        return plain
    if reads_numbers(kind):
        return float(kind.code_numbers(np.array([plain]))[0])
    return float(_level_codes([text], kind, dialect)[0])


def identifier_pairs(cells: pa.Array, kind: Identifier, dialect: Dialect) -> Column:
    """Return both halves of the codes of identifiers, shape ``(2, cells)``.

    In bulk: most are there but a few times.
    """
    encoded = cells.cast(pa.large_binary()).fill_null(b"")
    if not len(encoded):
        return np.empty((2, 0))
    _, offsets, data = encoded.buffers()
    ends = np.frombuffer(offsets, dtype=np.int64)[encoded.offset :][: len(encoded) + 1]
    texts = memoryview(data or b"")[ends[0] : ends[-1]].tobytes()
    if not texts.isascii():  # else it is in UTF-8
        utf8 = [dialect.utf8(text) for text in encoded.to_pylist()]
        return np.array([replace(kind, half=half).code_texts(utf8) for half in (0, 1)])
    ends = ends - ends[0]
    return kind.pairs(texts, ends[:-1], ends[1:])


class TextColumns:
    """Columns of texts of one block, and their codes; both halves of identifiers are made at once.

    ``cells`` gives the cells of a column by its name.
    """

    def __init__(self, cells: Callable[[str], pa.Array], dialect: Dialect | None = None) -> None:
        self._cells = cells
        self._dialect = dialect or Dialect()
        self._pairs: dict[tuple[str, Identifier], Column] = {}

    def codes(self, name: str, kind: Kind | None) -> Column:
        """Return `code_texts` of a column."""
        if not isinstance(kind, Identifier):
            return code_texts(self._cells(name), kind, self._dialect)
        column = name, replace(kind, half=0)
        if column not in self._pairs:
            self._pairs[column] = identifier_pairs(self._cells(name), kind, self._dialect)
        return self._pairs[column][kind.half]


def _level_codes(texts: Sequence[bytes], kind: Kind, dialect: Dialect) -> Column:
    """Return the codes of words and dates; a level that is a number has the decimal sign, too."""
    codes = kind.code_texts([dialect.utf8(text) for text in texts])
    if dialect.decimal == b"." or kind.levels is None:
        return codes
    missing = kind.missing_code
    unknown = np.isnan(codes) | (codes == missing)
    for place in np.flatnonzero(unknown).tolist():
        codes[place] = kind.code_text(dialect.plain_number(dialect.utf8(texts[place])))
    return codes


def reads_numbers(kind: Kind | None) -> bool:
    """Whether the cells of a column are wanted as numbers."""
    if kind is None:
        return True
    if isinstance(kind, MissingIndicator):
        kind = kind.of
    return isinstance(kind, (Number, Whole, Cyclic))


def _text_numbers(cells: pa.Array) -> Column:
    """Return `text_number` of each cell: most in bulk, which is the same, others one by one."""
    cells = cells.fill_null("")
    plain = pc.match_substring_regex(cells, _PLAIN_NUMBER)
    result: Column = (
        pc.if_else(plain, cells, None).cast(pa.float64()).to_numpy(zero_copy_only=False)
    )
    others = ~plain.to_numpy(zero_copy_only=False)
    if others.any():
        result = result.copy()
        result[others] = _each(
            cells.filter(pa.array(others)), lambda texts: np.array(list(map(text_number, texts)))
        )
    return result


def _each(cells: pa.Array, function: Callable[[list[bytes]], Column]) -> Column:
    """Return ``function`` of the bytes of each cell, computed once per different cell."""
    encoded = cells.cast(pa.large_binary()).fill_null(b"").dictionary_encode()
    values = function(encoded.dictionary.to_pylist())
    result: Column = values[encoded.indices.to_numpy(zero_copy_only=False)]
    return result
