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
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import PurePath
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from reticent.errors import BadInput
from reticent.privacy.columns.base import Kind
from reticent.privacy.columns.dates import Date
from reticent.privacy.columns.words import MissingIndicator
from reticent.privacy.people.person_counts import (
    COUNTED_AT_ONCE,
    MOST_REMEMBERED,
    PersonCounts,
)
from reticent.privacy.statistics.exact_sum import Total, add_up

__all__ = [
    "Field",
    "Source",
    "as_source",
    "check_features",
    "joined_blocks",
    "refuse_reading",
    "scan",
]

# What the schema says of a column; "any" may be read as numbers, words and dates, whatever its
# cells are; "moment" holds dates or moments.
DtypeKind: TypeAlias = Literal["number", "text", "category", "moment", "any", "other"]
# From records, shape (rows, fields), to the exact sum over them, in integers.
BlockSum: TypeAlias = Callable[[NDArray[np.float64]], NDArray[Any]]

_MOST_NAMES = 20  # of columns, in an error message

_NUMBERS: frozenset[DtypeKind] = frozenset({"number", "text", "category", "any"})
_DATES: frozenset[DtypeKind] = frozenset({"text", "category", "moment", "any"})
_AS_WORDS = {
    "words": "words",
    "ordered": "words",
    "yesno": "yes or no",
    "labels": "labels",
    "date": "dates",
}
_READ_WITH = {
    "table": "databases: scan('sqlite:///clinic.db', table='patients')",
    "query": "databases: scan('sqlite:///clinic.db', query='SELECT …')",
    "sheet": "workbooks: scan('people.xlsx', sheet='2024')",
}
_CLUSTERS = {"dask": "dask", "dask_expr": "dask", "pyspark": "Spark"}
_CONVERT = "Convert the column first: to numbers, texts or dates."
_ADVICE: dict[DtypeKind, str] = {
    "moment": "Give its bounds as dates, such as (date(2019, 1, 1), date(2024, 12, 31)).",
}
_DATE_ADVICE: dict[DtypeKind, str] = {
    "number": "If its digits are dates, say how: Date(low, high, format='%Y%m%d').",
}


@dataclass(frozen=True)
class Field:
    """Column that is wanted.

    ``key`` is its name or its position. It is delivered as the codes of its ``kind``, NaN where a
    value is missing; without a kind, as plain numbers.
    """

    key: str | int
    kind: Kind | None = None


class Source(ABC):
    """Abstract: records that can be read, as often as needed, a block at a time.

    ``names`` are the public column names (None for plain arrays), ``width`` the number of columns
    (0 for lists before they are `shaped`), ``targets`` how many of the last ones came as ``y``.
    ``known_n`` is the number of records where that costs no read, else None. ``local`` is False
    where blocks are summed elsewhere, so that nothing of them can be kept here. ``beside`` has the
    positions of columns that came beside X and y, after all of theirs: "person" and "weight".
    ``apart`` are positions of columns that are no inputs, since they say whose a record is or how
    much it counts (`with_apart`). ``nobody`` are public codes, such as "NA", that a column of
    identifiers has for records of nobody, and ``weightless`` those that a column of weights has
    for records without a weight, which do not count (`with_nobody`). ``ordered`` is False where two
    readings may give the same records in different orders. ``prunes`` is True where which records
    there are may depend on the columns that are asked for: a program may drop lines that it cannot
    read in these.

    Privacy: a source protects nothing by itself. It sees to it that reading tells nothing: no
    error, warning or shape depends on the value of a record.
    """

    names: tuple[str, ...] | None
    width: int
    targets: int = 0
    known_n: int | None = None
    local: bool = True
    beside: Mapping[str, int] = MappingProxyType({})
    apart: frozenset[int] = frozenset()
    nobody: tuple[str, ...] = ()
    weightless: tuple[str, ...] = ()
    ordered: bool = True
    prunes: bool = False

    @abstractmethod
    def count(self) -> int:
        """Return the number of records, reading whatever is needed."""

    def count_read(self, fields: Sequence[Field], *, threads: int) -> int:
        """Return the number of records that readings of these columns give."""
        if not self.prunes:
            return self.count()
        return self.total(fields, _no_sum, rows=COUNTED_AT_ONCE, threads=threads).rows

    @abstractmethod
    def blocks(self, fields: Sequence[Field]) -> Iterator[NDArray[np.float64]]:
        """Yield all records as C-contiguous arrays of shape ``(rows, len(fields))``.

        In the order of their rows, in the units of the data; NaN where a number is missing. Blocks
        may be of any length, and read-only.
        """

    @abstractmethod
    def kind(self, position: int) -> tuple[DtypeKind, str]:
        """Return what the schema says of a column, and its dtype in words."""

    def total(
        self, fields: Sequence[Field], block_sum: BlockSum, *, rows: int, threads: int
    ) -> Total:
        """Add ``block_sum`` over all records: ``for block in self.blocks(fields)``, in threads.

        In pieces of at most ``rows``, whose sums are exact; short blocks are joined.
        """
        blocks = joined_blocks(self.blocks(fields), rows)
        return add_up(blocks, block_sum, rows=rows, threads=threads)

    def count_people(self, fields: Sequence[Field], key: int) -> PersonCounts:
        """Count the records of each person.

        ``fields`` are the two halves of identifiers, and columns that are read along, if any.

        Memory is that of the identifiers, and of the number of each record's person where that is
        remembered. ``key`` is the secret of the checksum.
        """
        people = PersonCounts(key)
        version = self.version()
        if version is None or self.known_n is None or self.known_n > MOST_REMEMBERED:
            for block in joined_blocks(self.blocks(fields), COUNTED_AT_ONCE):
                people.add(block)
            return people
        by_row = np.zeros(self.known_n, np.int32)
        for block in joined_blocks(self.blocks(fields), COUNTED_AT_ONCE):
            rows = by_row[people.records :][: len(block)]
            rows[:] = people.add(block)[: len(rows)]
        if people.records == len(by_row) and self.version() == version:
            people.by_row = by_row
            people.version = version
        return people

    def version(self) -> Hashable | None:
        """Return what stays the same as long as all readings give the same records in one order.

        None where only reading them can tell.
        """
        return None

    def snapshot(self) -> "Source":
        """Return the source that one fit reads: all its readings see the same records.

        Connects where there is something to connect to, and reads no record. A file or a frame
        that nobody changes is its own snapshot. What `close` ends.
        """
        return self

    def close(self) -> None:  # noqa: B027 - most sources have nothing to let go of
        """End a snapshot: let go of connections."""

    def shaped(self, inputs: int | None, targets: int) -> "Source":
        """Return the source with a public number of columns, for lists, which have none.

        ``inputs`` and ``targets`` are the numbers of columns of X and y; ``inputs`` is None where
        nothing public says it.
        """
        return self

    def with_apart(self, *keys: str | int | None) -> "Source":
        """Return the same source with these columns set apart from the inputs; None is none."""
        places = frozenset(self.position(key) for key in keys if key is not None)
        if places == self.apart:
            return self
        changed = copy(self)
        changed.apart = places
        return changed

    def with_nobody(self, codes: Sequence[str], *, weightless: Sequence[str] = ()) -> "Source":
        """Return the same source with codes for nobody, among identifiers of people.

        ``weightless`` are codes for no weight, in a column of weights.
        """
        changed = copy(self)
        changed.nobody = tuple(codes)
        changed.weightless = tuple(weightless)
        return changed

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
        if not 0 <= key < self.width and key not in self.beside.values():
            raise BadInput(
                f"There is no column {key}: there are {self.width} columns, counted from 0."
            )
        return key

    def check(self, fields: Sequence[Field]) -> None:
        """Refuse unknown columns and unusable dtypes.

        Decided from the schema, no record is read.
        """
        for field in fields:
            dtype_kind, dtype = self.kind(self.position(field.key))
            kind = "number"
            readable = _NUMBERS
            if isinstance(field.kind, Date):
                kind = field.kind.name
                readable = _DATES
                if field.kind.format is not None:  # digits: 20190131 as %Y%m%d
                    readable |= {"number"}
            elif isinstance(field.kind, MissingIndicator):
                kind = field.kind.of.name
                readable |= {"moment"}  # the column itself is checked, too
            elif field.kind is not None:
                kind = field.kind.name
            if dtype_kind not in readable:
                advice = _ADVICE.get(dtype_kind, _CONVERT)
                if isinstance(field.kind, Date):
                    advice = _DATE_ADVICE.get(dtype_kind, _CONVERT)
                raise BadInput(
                    f"Column {field.key!r} has dtype {dtype} and cannot be read as "
                    f"{_AS_WORDS.get(kind, 'numbers')}. {advice}"
                )


def _no_sum(_block: NDArray[np.float64]) -> NDArray[np.int64]:
    """Sum of nothing, where records are counted."""
    return np.zeros(0, np.int64)


def joined_blocks(
    blocks: Iterator[NDArray[np.float64]], rows: int
) -> Iterator[NDArray[np.float64]]:
    """Yield the same records in longer blocks, of at most ``rows`` where several are joined."""
    waiting: list[NDArray[np.float64]] = []
    for block in blocks:
        if sum(map(len, waiting)) + len(block) > rows:
            yield from _as_one(waiting)
            waiting = []
        waiting.append(block)
    yield from _as_one(waiting)


def _as_one(blocks: list[NDArray[np.float64]]) -> list[NDArray[np.float64]]:
    if len(blocks) > 1:
        return [np.concatenate(blocks)]
    return blocks


def _no_column(key: str, names: tuple[str, ...]) -> BadInput:
    shown = list(map(repr, names[:_MOST_NAMES]))
    if len(names) > _MOST_NAMES:
        shown.append("…")
    return BadInput(f"There is no column {key!r}. The columns are: {', '.join(shown)}.")


def check_features(width: int, n: int | str) -> None:
    """Refuse data without columns (the wording is scikit-learn's)."""
    if width == 0:
        raise BadInput(
            f"Found array with 0 feature(s) (shape=({n}, 0)) while a minimum of 1 is required. "
            "Give data with at least one column."
        )


def scan(
    data: Any,
    *,
    y: Any = None,
    person: Any = None,
    weight: Any = None,
    separator: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    table: str | None = None,
    query: str | None = None,
    sheet: str | None = None,
) -> Source:
    """Return a source of records; nothing but names, dtypes and sizes is read yet.

    ``data`` is a path, a data frame (pandas, polars, pyarrow, dask, Spark), a NumPy array, a list
    of records, or a source. With ``y``, the columns of ``y`` follow those of ``data``, which
    must then be held in memory; so must ``person``, whose each record is, and ``weight``, how much
    it counts, if they are no columns of ``data``.

    A path is that of a CSV file with a header (compressed or not: .csv.gz, .csv.zst), a Parquet
    file, a folder of either, or a pattern such as ``"2024-*.parquet"``; a list of paths is one
    table. Files may lie elsewhere: ``"s3://hospital/2024.parquet"``.

    A workbook (.xlsx) is read by one ``sheet``, which need not be named if it is the only one.

    Lazy frames and relations (polars, DuckDB, Ibis), data sets of pyarrow, and whatever else
    exports Arrow's stream are streamed, and run again for each reading of a fit.

    The address of a database (``"postgresql://user@host/clinic"``, ``"sqlite:///clinic.db"``,
    ``"duckdb:///clinic.db"``) goes with a ``table`` ("patients", "schema.patients") or a
    ``query``. All readings of a fit are in one read-only transaction, and see the same rows.

    How many columns a list has is for the bounds to say: one for each of their ranges. A record
    that is not a list, a tuple or an array of so many cells is a record whose values are all
    missing.

    In a CSV file a record is a line that is not blank. A line with a wrong number of fields is a
    record whose values are all missing, and a quoted field cannot reach into the next line.
    ``separator`` (a comma, a semicolon, a tab, a pipe) is told by the header line if it is not
    given; ``decimal`` is a point, or either sign where the separator is a semicolon; ``encoding``
    is UTF-8, and Windows-1252 for cells that are not.

    Privacy: nothing is spent and nothing is released. Public, and visible in errors: column names,
    dtypes, file names, the number of records. Whatever the value of a cell, it changes only what is
    read for its own record.

    >>> scan([[1.0, 2.0], [3.0, None]]).known_n
    2
    """
    dialect = {"separator": separator, "decimal": decimal, "encoding": encoding}
    reading = dialect | {"table": table, "query": query, "sheet": sheet}
    if _are_paths(data) and y is None and person is None and weight is None:
        from reticent.privacy.sources.paths import scan_paths

        return scan_paths(data, **reading)
    return as_source(data, y=y, person=person, weight=weight, **reading)


def as_source(
    data: Any, *, y: Any = None, person: Any = None, weight: Any = None, **reading: str | None
) -> Source:
    """Return a source of what a fit may be given: as `scan`, but every list is one of records.

    ``reading``: how files and databases are read.
    """
    if y is not None and isinstance(data, (Source, str, os.PathLike)):
        raise BadInput(
            "y goes with arrays and data frames only. Name the target column in the bounds instead."
        )
    beside = {
        name: one for name, one in (("person", person), ("weight", weight)) if one is not None
    }
    held = not isinstance(data, (Source, str, os.PathLike)) and _cluster(data) is None
    if beside and not held:
        raise BadInput(
            f"{' and '.join(beside)} beside the records go with arrays and data frames only. Name "
            "the column of the data instead: person='patient_id'."
        )
    if isinstance(data, (str, os.PathLike)):
        from reticent.privacy.sources.paths import scan_path

        return scan_path(data, **reading)
    refuse_reading(reading)
    if isinstance(data, Source):
        return data
    cluster = _cluster(data)
    if cluster is not None:
        if y is not None:
            raise BadInput(
                f"y cannot be given beside a {cluster} frame. Join it as a column and name it in "
                "the bounds."
            )
        return _on_cluster(data, cluster)
    from reticent.privacy.sources.in_memory import ListSource, MemorySource, is_held

    if isinstance(data, (list, tuple)) or isinstance(y, (list, tuple)):
        return ListSource(data, y, beside=beside)
    if y is None and not beside and not is_held(data):
        from reticent.privacy.sources.arrow.streams import StreamSource, stream_of

        stream = stream_of(data)
        if stream is not None:
            return StreamSource(stream)
    return MemorySource(data, y, beside=beside)


def refuse_reading(reading: Mapping[str, str | None], *, of: Sequence[str] = ()) -> None:
    """Refuse what was said about the reading of something else; ``of`` names what is in place."""
    for parameter, said in reading.items():
        if said is not None and parameter not in of:
            where = _READ_WITH.get(parameter, "CSV files only")
            raise BadInput(f"{parameter} is for {where}.", parameter=parameter)


def _are_paths(data: Any) -> bool:
    """Whether it is a list of texts or paths, by the types of its entries, which are not asked."""
    if type(data) not in (list, tuple) or not data:  # no list of the caller's own class
        return False
    return all(issubclass(type(one), (str, PurePath)) for one in data)


def _cluster(data: object) -> str | None:
    """Name of the engine that computes it, by the module of its type; None if there is none."""
    return _CLUSTERS.get(type(data).__module__.partition(".")[0])


def _on_cluster(data: Any, engine: str) -> Source:
    if engine == "Spark":
        from reticent.privacy.sources.clusters.spark import SparkSource

        return SparkSource(data)
    from reticent.privacy.sources.clusters.dask import DaskSource

    return DaskSource(data)
