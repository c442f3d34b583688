"""Records in memory: NumPy arrays, nested lists and, through narwhals, data frames."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias, final

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from reticent.errors import BadInput
from reticent.privacy.cells import Column, label_table, labels, numbers
from reticent.privacy.sources import Field, Kind, Source, check_features

__all__ = ["MemorySource"]

_BLOCK_CELLS = 2**20  # 8 MB a block
_BLOCK_ROWS = 2**16

# (place in the block, column of the part, classes as a table or None)
_Wanted: TypeAlias = tuple[int, int, dict[object, int] | None]


@final
class MemorySource(Source):
    """Records held as an array or a data frame, with the columns of ``y`` behind them if there are any."""

    def __init__(self, data: Any, y: Any = None) -> None:
        first = _part(data, "X")
        if first.flat:
            raise BadInput(
                "Expected 2D array, got 1D array instead. Reshape your data either using array.reshape(-1, 1) "
                "if it has a single column or array.reshape(1, -1) if it is a single record."
            )
        check_features(first.width, first.rows)
        self._parts = [first]
        if y is not None:
            second = _part(y, "y")
            if second.rows != first.rows:
                raise BadInput(
                    f"X and y have inconsistent numbers of samples: {first.rows} and {second.rows}. "
                    "Each record needs its own y."
                )
            check_features(second.width, second.rows)
            self._parts.append(second)
            self.targets = second.width
        self.width = first.width + self.targets
        self.known_n = first.rows
        self.names = first.names
        if first.names is not None and y is not None:
            self.names = first.names + (second.names or _target_names(second.width))

    def count(self) -> int:
        """Give the number of records."""
        return self._parts[0].rows

    def kind(self, position: int) -> tuple[Kind, str]:
        """Give what the dtype of a column says."""
        part, column = self._find(position)
        return self._parts[part].kind(column)

    def blocks(self, fields: Sequence[Field]) -> Iterator[NDArray[np.float64]]:
        """Give the records in order; slices of a float64 array without a copy where the columns allow it."""
        whole = self._as_it_is(fields)
        n, step = self.count(), max(1, min(_BLOCK_ROWS, _BLOCK_CELLS // max(1, len(fields))))
        wanted: list[list[_Wanted]] = [[] for _ in self._parts]
        for place, field in enumerate(fields):
            part, column = self._find(self.position(field.key))
            wanted[part].append((place, column, None if field.classes is None else label_table(field.classes)))
        for start in range(0, n, step):
            stop = min(n, start + step)
            if whole is not None:
                block = np.ascontiguousarray(whole[start:stop])
            else:
                block = np.empty((stop - start, len(fields)))
                for table, columns in zip(self._parts, wanted, strict=True):
                    table.fill(block, columns, start, stop)
            yield block

    def _find(self, position: int) -> tuple[int, int]:
        inside = self._parts[0].width
        return (0, position) if position < inside else (1, position - inside)

    def _as_it_is(self, fields: Sequence[Field]) -> NDArray[np.float64] | None:
        part = self._parts[0]
        if len(self._parts) > 1 or not isinstance(part, _Array) or part.array.dtype != np.float64:
            return None
        places = [self.position(f.key) for f in fields]
        if places != list(range(self.width)) or any(f.classes is not None for f in fields):
            return None
        view = part.array.view()
        view.flags.writeable = False  # nobody downstream may change the caller's data
        return view


def _target_names(width: int) -> tuple[str, ...]:
    return ("y",) if width == 1 else tuple(f"y{i}" for i in range(width))


class _Part(ABC):
    """Abstract: a table in memory."""

    rows: int
    width: int
    names: tuple[str, ...] | None = None
    flat = False  # came with one dimension

    @abstractmethod
    def kind(self, column: int) -> tuple[Kind, str]:
        """Give what the dtype of a column says."""

    @abstractmethod
    def fill(self, block: NDArray[np.float64], wanted: Sequence[_Wanted], start: int, stop: int) -> None:
        """Write records ``start`` to ``stop`` into their places of a block."""


def _part(data: Any, what: str) -> _Part:
    """Find out what was given. Nested lists are read as objects: their dtype would depend on their values."""
    if hasattr(data, "nnz") and hasattr(data, "toarray"):
        raise BadInput(f"Sparse input is not supported: pass {what}.toarray().")
    if isinstance(data, np.ma.MaskedArray):  # masked means missing
        objects = data.dtype.kind not in "biuf"
        data = np.ma.filled(data.astype(object if objects else np.float64), None if objects else np.nan)
    if isinstance(data, np.ndarray):
        return _Array(np.asarray(data))
    if isinstance(data, (list, tuple)):
        return _Array(_nested(data, what))
    try:
        frame = nw.from_native(data, pass_through=True, allow_series=True)
    except (nw.exceptions.NarwhalsError, ValueError):
        raise BadInput(f"The column names of {what} are not unique. Rename the columns first.") from None
    if isinstance(frame, nw.LazyFrame):
        raise BadInput(f"{what} is a lazy frame. Call .collect() on it, or write it to a Parquet file and scan that.")
    if isinstance(frame, nw.DataFrame):
        return _Frame([frame[:, i] for i in range(frame.shape[1])], len(frame))
    if isinstance(frame, nw.Series):
        return _Frame([frame], len(frame), flat=True)
    if hasattr(data, "__array__"):
        try:
            array = np.asarray(data)
        except Exception:
            array = None  # refused outside of the handler, so that its words do not travel along
        if array is None:
            raise BadInput(f"{what} of type {type(data).__name__} cannot be turned into an array. Give a NumPy array.")
        return _Array(array)
    raise BadInput(
        f"{what} of type {type(data).__name__} cannot be read. Give a NumPy array, nested lists, a pandas, "
        "polars or pyarrow data frame, a dask data frame, or the path of a CSV or Parquet file."
    )


def _nested(data: Sequence[Any], what: str) -> NDArray[Any]:
    """Lay out nested lists cell by cell. NumPy would look into the cells to find a shape."""
    rows = [row for row in data if isinstance(row, (list, tuple)) or (isinstance(row, np.ndarray) and row.ndim == 1)]
    if not rows or (what == "y" and len(rows) < len(data)):  # an output that is no number is a cell like any other
        flat = np.empty(len(data), dtype=object)
        for i, cell in enumerate(data):
            flat[i] = cell
        return flat
    if len(rows) < len(data) or len({len(row) for row in rows}) > 1:
        raise BadInput(f"The rows of {what} do not all have the same length.")
    table = np.empty((len(rows), len(rows[0])), dtype=object)
    for i, row in enumerate(rows):
        for j, cell in enumerate(row):
            table[i, j] = cell
    return table


@final
class _Array(_Part):
    """A NumPy array."""

    def __init__(self, array: NDArray[Any]) -> None:
        if array.dtype.kind == "c":
            raise BadInput("Complex data not supported. Give real and imaginary parts as columns of their own.")
        if array.ndim not in (1, 2):
            found = "scalar array" if array.ndim == 0 else f"{array.ndim}D array"
            raise BadInput(f"Expected 2D array, got {found} instead. Reshape your data to (records, columns).")
        self.flat = array.ndim == 1
        self.array = array.reshape(-1, 1) if self.flat else array
        self.rows, self.width = self.array.shape

    def kind(self, column: int) -> tuple[Kind, str]:
        dtype = self.array.dtype
        kinds: dict[str, Kind] = {**dict.fromkeys("biuf", "number"), "U": "text", "O": "any"}
        return kinds.get(dtype.kind, "other"), str(dtype)

    def fill(self, block: NDArray[np.float64], wanted: Sequence[_Wanted], start: int, stop: int) -> None:
        records = self.array[start:stop]
        plain = [(place, column) for place, column, table in wanted if table is None]
        if plain:
            places, columns = (_run(list(p)) for p in zip(*plain, strict=True))
            block[:, places] = numbers(records[:, columns])
        for place, column, table in wanted:
            if table is not None:
                block[:, place] = labels(records[:, column].tolist(), table)


def _run(positions: list[int]) -> slice | list[int]:
    """Give neighbouring positions as a slice, which NumPy copies faster."""
    first, last = positions[0], positions[-1]
    return slice(first, last + 1) if positions == list(range(first, last + 1)) else positions


@final
class _Frame(_Part):
    """The columns of a data frame."""

    def __init__(self, columns: Sequence[nw.Series[Any]], rows: int, *, flat: bool = False) -> None:
        self.columns, self.rows, self.width, self.flat = columns, rows, len(columns), flat
        names = [column.name for column in columns]
        if all(isinstance(name, str) for name in names):  # else by position, as scikit-learn does
            self.names = tuple(names)

    def kind(self, column: int) -> tuple[Kind, str]:
        native = self.columns[column].to_native()
        told = str(getattr(native, "dtype", None) or native.type)
        if told == "object":  # before narwhals is asked, which would look at the values
            return "category", told
        dtype = self.columns[column].dtype
        if dtype.is_numeric() or dtype == nw.Boolean:
            return "number", told
        if dtype in (nw.Categorical, nw.Enum):
            return "category", told
        return ("text" if dtype == nw.String else "other"), told

    def fill(self, block: NDArray[np.float64], wanted: Sequence[_Wanted], start: int, stop: int) -> None:
        for place, column, table in wanted:
            cells = self.columns[column][start:stop]
            block[:, place] = _numbers(cells) if table is None else labels(_values(cells), table)


def _numbers(cells: nw.Series[Any]) -> Column:
    try:
        return numbers(cells.to_numpy())
    except Exception:  # a dtype that NumPy lacks, such as 128-bit integers
        return numbers(np.fromiter(_values(cells), dtype=object, count=len(cells)))


def _values(cells: nw.Series[Any]) -> list[object]:
    """Give the cells as Python objects; a cell that cannot be one (undecodable text) is missing."""
    try:
        return list(cells.to_list())
    except Exception:
        return [_value(cells, i) for i in range(len(cells))]


def _value(cells: nw.Series[Any], i: int) -> object:
    try:
        return cells[i]
    except Exception:
        return None
