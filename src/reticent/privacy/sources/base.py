"""Sources: where records come from, and the one interface to read them by.

A source delivers chosen columns as blocks of float64 rows. What it delivers for a record is a
function of that record alone (cell_values.py), in any order and in blocks of any size: all that is
built on it is sums over records.

What is public about a source, and may stand in an error message: the names and dtypes of its
columns, the names of files, the number of records. A source refuses for reasons among these alone,
before any record is read. Proof: reading.md.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from reticent.errors import BadInput
from reticent.privacy.sources.cell_values import Label, LabelTable, label_table
from reticent.privacy.statistics.exact_sum import Total, add_up

__all__ = ["Field", "Source", "check_features", "scan"]

# What the schema says of a column; "any" may be read as numbers and as labels, whatever its cells
# are.
Kind: TypeAlias = Literal["number", "text", "category", "any", "other"]
# From records, shape (rows, fields), to the exact sum over them, in integers.
BlockSum: TypeAlias = Callable[[NDArray[np.float64]], NDArray[Any]]

_MOST_NAMES = 20  # of columns, in an error message


@dataclass(frozen=True)
class Field:
    """Column that is wanted.

    ``key`` is its name or its position. With ``classes`` the column holds labels, and is delivered
    as the position of the label in ``classes``; a missing or unknown label counts as the first
    class, a public point.
    """

    key: str | int
    classes: tuple[Label, ...] | None = None

    def label_table(self) -> LabelTable | None:
        """Return the position of each class by its label; None for a column of numbers."""
        if self.classes is None:
            return None
        return label_table(self.classes)


class Source(ABC):
    """Abstract: records that can be read, as often as needed, a block at a time.

    ``names`` are the public column names (None for plain arrays), ``width`` the number of columns
    (0 for lists before they are `shaped`), ``targets`` how many of the last ones came as ``y``.
    ``known_n`` is the number of records where that costs no read, else None. ``local`` is False
    where blocks are summed elsewhere, so that nothing of them can be kept here.

    Privacy: a source protects nothing by itself. It sees to it that reading tells nothing: no
    error, warning or shape depends on the value of a record.
    """

    names: tuple[str, ...] | None
    width: int
    targets: int = 0
    known_n: int | None = None
    local: bool = True

    @abstractmethod
    def count(self) -> int:
        """Return the number of records, reading whatever is needed."""

    @abstractmethod
    def blocks(self, fields: Sequence[Field]) -> Iterator[NDArray[np.float64]]:
        """Yield all records as C-contiguous arrays of shape ``(rows, len(fields))``.

        In the order of their rows, in the units of the data; NaN where a number is missing. Blocks
        may be of any length, and read-only.
        """

    @abstractmethod
    def kind(self, position: int) -> tuple[Kind, str]:
        """Return what the schema says of a column, and its dtype in words."""

    def total(
        self, fields: Sequence[Field], block_sum: BlockSum, *, rows: int, threads: int
    ) -> Total:
        """Add ``block_sum`` over all records: ``for block in self.blocks(fields)``, in threads.

        In pieces of at most ``rows``, whose sums are exact.
        """
        return add_up(self.blocks(fields), block_sum, rows=rows, threads=threads)

    def shaped(self, inputs: int | None, targets: int) -> "Source":
        """Return the source with a public number of columns, for lists, which have none.

        ``inputs`` and ``targets`` are the numbers of columns of X and y; ``inputs`` is None where
        nothing public says it.
        """
        return self

    def position(self, key: str | int) -> int:
        """Return the position of a column, or say which columns there are."""
        if isinstance(key, str):
            if self.names is None:
                raise BadInput(
                    f"There is no column {key!r}: these columns have no names. Give positions, "
                    "from 0."
                )
            if key not in self.names:
                raise _no_column(key, self.names)
            return self.names.index(key)
        if not 0 <= key < self.width:
            raise BadInput(
                f"There is no column {key}: there are {self.width} columns, counted from 0."
            )
        return key

    def check(self, fields: Sequence[Field]) -> None:
        """Refuse unknown columns and unusable dtypes.

        Decided from the schema, no record is read.
        """
        for field in fields:
            kind, dtype = self.kind(self.position(field.key))
            if field.classes is None:
                usable = kind in ("number", "any")
            else:
                usable = _holds_labels(kind, field.classes)
            if not usable:
                raise _unusable(field, dtype)


def _holds_labels(kind: Kind, classes: Sequence[object]) -> bool:
    """Whether a column of this kind may hold these labels."""
    texts = [isinstance(label, str) for label in classes]
    fits = {
        "number": not all(texts),
        "text": any(texts),
        "category": True,
        "any": True,
        "other": False,
    }
    return fits[kind]


def _no_column(key: str, names: tuple[str, ...]) -> BadInput:
    shown = list(map(repr, names[:_MOST_NAMES]))
    if len(names) > _MOST_NAMES:
        shown.append("…")
    return BadInput(f"There is no column {key!r}. The columns are: {', '.join(shown)}.")


def _unusable(field: Field, dtype: str) -> BadInput:
    want = "labels"
    advice = (
        "Give the classes in the column's own dtype, or convert the column to text or whole "
        "numbers."
    )
    if field.classes is None:
        want = "numbers"
        advice = "Convert it to numbers first, or give its classes if it is a label."
    return BadInput(
        f"Column {field.key!r} has dtype {dtype} and cannot be read as {want}. {advice}"
    )


def check_features(width: int, n: int | str) -> None:
    """Refuse data without columns (the wording is scikit-learn's)."""
    if width == 0:
        raise BadInput(
            f"Found array with 0 feature(s) (shape=({n}, 0)) while a minimum of 1 is required. "
            "Give data with at least one column."
        )


def scan(data: Any, *, y: Any = None) -> Source:
    """Return a source of records; nothing but names, dtypes and sizes is read yet.

    ``data`` is a path (a CSV file with a header, a Parquet file, or a folder of either), a data
    frame (pandas, polars, pyarrow), a dask data frame, a NumPy array, a list of records, or a
    source. With ``y``, the columns of ``y`` follow those of ``data``, which must then be held in
    memory.

    How many columns a list has is for the bounds to say: one for each of their ranges. A record
    that is not a list, a tuple or an array of so many cells is a record whose values are all
    missing.

    In a CSV file a record is a line that is not blank. A line with a wrong number of fields is a
    record whose values are all missing, and a quoted field cannot reach into the next line.

    Privacy: nothing is spent and nothing is released. Public, and visible in errors: column names,
    dtypes, file names, the number of records. Whatever the value of a cell, it changes only what is
    read for its own record.

    >>> scan([[1.0, 2.0], [3.0, None]]).known_n
    2
    """
    if y is not None and isinstance(data, (Source, str, os.PathLike)):
        raise BadInput(
            "y goes with arrays and data frames only. Name the target column in the bounds instead."
        )
    if isinstance(data, Source):
        return data
    if isinstance(data, (str, os.PathLike)):
        from reticent.privacy.sources.paths import scan_path

        return scan_path(data)
    if type(data).__module__.partition(".")[0] in ("dask", "dask_expr"):
        from reticent.privacy.sources.dask import DaskSource

        if y is not None:
            raise BadInput(
                "y cannot be given beside a dask frame. Join it as a column and name it in the "
                "bounds."
            )
        return DaskSource(data)
    from reticent.privacy.sources.in_memory import ListSource, MemorySource

    if isinstance(data, (list, tuple)) or isinstance(y, (list, tuple)):
        return ListSource(data, y)
    return MemorySource(data, y)
