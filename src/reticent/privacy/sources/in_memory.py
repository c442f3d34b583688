"""Records in memory: NumPy arrays, lists and, through narwhals, data frames.

An array and a frame have a shape and dtypes of their own, which are public. A list has neither: all
that is public about it is how many records it has. How many columns there are is for the bounds to
say, never for the records. Proof: reading.md.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NoReturn, TypeAlias, final

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from reticent.errors import BadInput
from reticent.privacy.columns.base import Kind
from reticent.privacy.columns.identifiers import Identifier
from reticent.privacy.sources.base import DtypeKind, Field, Source, check_features
from reticent.privacy.sources.cell_values import list_cells, numbers, without_masked
from reticent.privacy.sources.codes import code_array, is_plain

__all__ = ["LazyFrame", "ListSource", "MemorySource", "is_held", "lazy_columns", "lazy_frame"]

LazyFrame: TypeAlias = nw.LazyFrame[Any]

_BLOCK_CELLS = 2**20  # 8 MB a block
_BLOCK_ROWS = 2**16

_NO_WIDTH = (
    "A list does not say how many columns its records have: a record of another length would "
    "change how the others are read. Give one range per column in the bounds, as in Bounds(x=[(0, "
    "1), (0, 5)]), or the records as a NumPy array or a data frame."
)

# (place in the block, column of the part, kind of the column)
_Wanted: TypeAlias = tuple[int, int, Kind | None]


@final
class MemorySource(Source):
    """Records held in memory, with the columns of ``y`` behind them if there are any.

    ``inputs`` and ``targets`` are the public numbers of columns of ``data`` and ``y``, for lists,
    which have none.
    """

    def __init__(
        self,
        data: Any,
        y: Any = None,
        *,
        inputs: int | None = None,
        targets: int | None = None,
        beside: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        first = _part(data, "X", inputs)
        if first.flat:
            raise BadInput(
                "Expected 2D array, got 1D array instead. Reshape your data "
                "either using array.reshape(-1, 1) if it has a single column "
                "or array.reshape(1, -1) if it is a single record."
            )
        check_features(first.width, first.rows)
        self._parts = [first]
        if y is not None:
            second = _part(y, "y", targets)
            if second.rows != first.rows:
                raise BadInput(  # no numbers: they may be protected (add-remove, people)
                    "X and y have inconsistent numbers of samples. Each record needs its own y."
                )
            check_features(second.width, second.rows)
            self._parts.append(second)
            self.targets = second.width
        self.width = first.width + self.targets
        self.beside = {}
        for what, column in beside.items():
            part = _part(column, what, 1)
            if part.rows != first.rows or part.width != 1:
                raise BadInput(f"{what} must have one value for each record of X.")  # no numbers
            self.beside[what] = self.width + len(self.beside)
            self._parts.append(part)
        self.known_n = first.rows
        self.names = first.names
        if first.names is not None and y is not None:
            self.names = first.names + (second.names or _target_names(second.width))

    def count(self) -> int:
        """Return the number of records."""
        return self._parts[0].rows

    def kind(self, position: int) -> tuple[DtypeKind, str]:
        """Return what the dtype of a column says."""
        part, column = self._find(position)
        return self._parts[part].kind(column)

    def blocks(self, fields: Sequence[Field]) -> Iterator[NDArray[np.float64]]:
        """Yield the records in order.

        Slices of a float64 array without a copy where the columns allow it.
        """
        whole = self._as_it_is(fields)
        n = self.count()
        step = max(1, min(_BLOCK_ROWS, _BLOCK_CELLS // max(1, len(fields))))
        wanted: list[list[_Wanted]] = [[] for _ in self._parts]
        for place, field in enumerate(fields):
            part, column = self._find(self.position(field.key))
            wanted[part].append((place, column, field.kind))
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
        """Which table a column is in, and where."""
        for place, part in enumerate(self._parts):
            if position < part.width:
                return place, position
            position -= part.width
        raise AssertionError("positions are checked before")

    def _as_it_is(self, fields: Sequence[Field]) -> NDArray[np.float64] | None:
        part = self._parts[0]
        if len(self._parts) > 1 or not isinstance(part, _Array) or part.mask is not None:
            return None
        if part.array.dtype != np.float64:
            return None
        places = [self.position(f.key) for f in fields]
        if places != list(range(self.width)) or not all(is_plain(f.kind) for f in fields):
            return None
        view = part.array.view()
        view.flags.writeable = False  # nobody downstream may change the caller's data
        return view


@final
class ListSource(Source):
    """Records of which X, y or both are lists, before bounds say how many columns they have.

    See `shaped`.
    """

    names = None
    width = 0

    def __init__(
        self, data: Any, y: Any = None, *, beside: Mapping[str, Any] = MappingProxyType({})
    ) -> None:
        self._data = data
        self._y = y
        self._beside = beside
        # what is wrong with an array beside a list, or with the numbers of records, is said at once
        self.known_n = MemorySource(data, y, inputs=1, targets=1, beside=beside).known_n

    def shaped(self, inputs: int | None, targets: int) -> MemorySource:
        """Return the records by these numbers of columns.

        Whatever does not fit is a record of missing cells.
        """
        records = MemorySource(
            self._data, self._y, inputs=inputs, targets=targets, beside=self._beside
        )
        records.nobody = self.nobody
        records.weightless = self.weightless
        return records

    def count(self) -> int:
        """Return the number of records."""
        return self.known_n or 0

    def position(self, key: str | int) -> NoReturn:
        """Refuse: there are no columns yet."""
        raise BadInput(_NO_WIDTH)

    def kind(self, position: int) -> NoReturn:
        """Refuse: there are no columns yet."""
        raise BadInput(_NO_WIDTH)

    def blocks(self, fields: Sequence[Field]) -> NoReturn:
        """Refuse: there are no columns yet."""
        raise BadInput(_NO_WIDTH)


def _target_names(width: int) -> tuple[str, ...]:
    if width == 1:
        return ("y",)
    return tuple(f"y{i}" for i in range(width))


class _Part(ABC):
    """Abstract: a table in memory."""

    rows: int
    width: int
    names: tuple[str, ...] | None = None
    flat = False  # came with one dimension

    @abstractmethod
    def kind(self, column: int) -> tuple[DtypeKind, str]:
        """Return what the dtype of a column says."""

    @abstractmethod
    def fill(
        self, block: NDArray[np.float64], wanted: Sequence[_Wanted], start: int, stop: int
    ) -> None:
        """Write records ``start`` to ``stop`` into their places of a block."""


def _part(data: Any, what: str, width: int | None) -> _Part:
    """Find out what was given, by its type, its shape and its dtypes."""
    if hasattr(data, "nnz") and hasattr(data, "toarray"):
        raise BadInput(f"Sparse input is not supported: pass {what}.toarray().")
    if isinstance(data, np.ma.MaskedArray):
        return _Array(np.ma.getdata(data), np.ma.getmaskarray(data))
    if isinstance(data, np.ndarray):
        return _Array(np.asarray(data))
    if isinstance(data, (list, tuple)):
        if width is None:
            raise BadInput(_NO_WIDTH)
        return _Lists(data, width)
    try:
        frame = nw.from_native(data, pass_through=True, allow_series=True)
    except (nw.exceptions.NarwhalsError, ValueError):
        raise BadInput(
            f"The column names of {what} are not unique. Rename the columns first."
        ) from None
    if isinstance(frame, nw.LazyFrame):
        raise BadInput(
            f"{what} is a lazy frame, and columns beside the records go with records in memory. "
            "Join all of them to one frame, and name the columns in the bounds."
        )
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
            raise BadInput(
                f"{what} of type {type(data).__name__} cannot be turned into "
                "an array. Give a NumPy array."
            )
        return _Array(array)
    raise BadInput(
        f"{what} of type {type(data).__name__} cannot be read. Give a NumPy "
        "array, lists, a pandas, polars or pyarrow data frame, a lazy frame, a dask "
        "data frame, or the path of a CSV or Parquet file."
    )


@final
class _Array(_Part):
    """A NumPy array; what is masked is missing."""

    def __init__(self, array: NDArray[Any], mask: NDArray[np.bool_] | None = None) -> None:
        if array.dtype.kind == "c":
            raise BadInput(
                "Complex data not supported. Give real and imaginary parts as columns of their own."
            )
        if array.ndim not in (1, 2):
            if array.ndim == 0:
                found = "scalar array"
            else:
                found = f"{array.ndim}D array"
            raise BadInput(
                f"Expected 2D array, got {found} instead. Reshape your data to (records, columns)."
            )
        self.flat = array.ndim == 1
        if self.flat:
            self.array = array.reshape(-1, 1)
        else:
            self.array = array
        if mask is None:
            self.mask = mask
        else:
            self.mask = mask.reshape(self.array.shape)
        self.rows, self.width = self.array.shape

    def kind(self, column: int) -> tuple[DtypeKind, str]:
        dtype = self.array.dtype
        kinds: dict[str, DtypeKind] = {
            **dict.fromkeys("biuf", "number"),
            "U": "text",
            "O": "any",
            "M": "moment",
        }
        return kinds.get(dtype.kind, "other"), str(dtype)

    def fill(
        self, block: NDArray[np.float64], wanted: Sequence[_Wanted], start: int, stop: int
    ) -> None:
        if self.mask is None:
            mask = None
        else:
            mask = self.mask[start:stop]
        _fill(block, wanted, self.array[start:stop], mask)


@final
class _Lists(_Part):
    """A list of records, laid out by a public number of columns when it is read."""

    def __init__(self, records: Sequence[object], width: int) -> None:
        self.records = records
        self.rows = len(records)
        self.width = width

    def kind(self, column: int) -> tuple[DtypeKind, str]:
        return "any", "object"

    def fill(
        self, block: NDArray[np.float64], wanted: Sequence[_Wanted], start: int, stop: int
    ) -> None:
        _fill(block, wanted, list_cells(self.records[start:stop], self.width), None)


def _fill(
    block: NDArray[np.float64],
    wanted: Sequence[_Wanted],
    cells: NDArray[Any],
    mask: NDArray[np.bool_] | None,
) -> None:
    """Write an array of cells, of shape (rows, columns), into its places of a block."""
    plain: list[tuple[int, int]] = []
    if cells.dtype.kind in "biuf" and mask is None:
        plain = [(place, column) for place, column, kind in wanted if is_plain(kind)]
    if plain:
        places, columns = (_run(list(p)) for p in zip(*plain, strict=True))
        block[:, places] = numbers(cells[:, columns])
    done = {place for place, _ in plain}
    for place, column, kind in wanted:
        if place in done:
            continue
        values = cells[:, column]
        if mask is not None:
            values = without_masked(values, mask[:, column])
        block[:, place] = code_array(values, kind)


def _run(positions: list[int]) -> slice | list[int]:
    """Return neighbouring positions as a slice, which NumPy copies faster."""
    first = positions[0]
    last = positions[-1]
    if positions == list(range(first, last + 1)):
        return slice(first, last + 1)
    return positions


@final
class _Frame(_Part):
    """The columns of a data frame."""

    def __init__(self, columns: Sequence[nw.Series[Any]], rows: int, *, flat: bool = False) -> None:
        self.columns = columns
        self.rows = rows
        self.width = len(columns)
        self.flat = flat
        names = [column.name for column in columns]
        if all(isinstance(name, str) for name in names):  # else by position, as scikit-learn does
            self.names = tuple(names)

    def kind(self, column: int) -> tuple[DtypeKind, str]:
        native = self.columns[column].to_native()
        name = str(getattr(native, "dtype", None) or native.type)
        if name == "object":  # before narwhals is asked, which would look at the values
            return "category", name
        return _kind_of(self.columns[column].dtype), name

    def fill(
        self, block: NDArray[np.float64], wanted: Sequence[_Wanted], start: int, stop: int
    ) -> None:
        for place, column, kind in wanted:
            cells = self.columns[column][start:stop]
            dtype_kind = self.kind(column)[0]
            if isinstance(kind, Identifier) and dtype_kind == "number":
                block[:, place] = _identifier_codes(cells, kind)
            else:
                block[:, place] = code_array(_as_array(cells, dtype_kind), kind)


def _kind_of(dtype: nw.dtypes.DType) -> DtypeKind:
    if dtype.is_numeric() or dtype == nw.Boolean:
        return "number"
    if dtype in (nw.Categorical, nw.Enum):
        return "category"
    if dtype == nw.String:
        return "text"
    if dtype in (nw.Date, nw.Datetime):
        return "moment"
    return "other"


def lazy_frame(data: Any) -> LazyFrame | None:
    """Return a lazy frame of any library that narwhals knows, or None for what is none."""
    frame = nw.from_native(data, pass_through=True)
    if isinstance(frame, nw.LazyFrame):
        return frame
    return None


def is_held(data: Any) -> bool:
    """Whether it is an array, or a frame or a series in memory."""
    if isinstance(data, np.ndarray):
        return True
    try:
        frame = nw.from_native(data, pass_through=True, allow_series=True)
    except (nw.exceptions.NarwhalsError, ValueError):  # names that are not unique
        return True
    return isinstance(frame, (nw.DataFrame, nw.Series))


def lazy_columns(frame: LazyFrame) -> list[tuple[str, DtypeKind, str]]:
    """Return name, kind and dtype of each column, without collecting the frame."""
    schema = frame.collect_schema()
    return [(name, _kind_of(dtype), str(dtype)) for name, dtype in schema.items()]


def _as_array(cells: nw.Series[Any], dtype_kind: DtypeKind) -> NDArray[Any]:
    """The cells as an array; moments without their time zone, in UTC."""
    try:
        if dtype_kind == "number":
            return cells.to_numpy()
        if dtype_kind == "moment":
            if getattr(cells.dtype, "time_zone", None) is not None:
                cells = cells.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
            return cells.to_numpy()
    except Exception:  # a dtype that NumPy lacks, such as 128-bit integers
        pass
    return np.fromiter(_values(cells), dtype=object, count=len(cells))


def _identifier_codes(cells: nw.Series[Any], kind: Identifier) -> NDArray[np.float64]:
    """Codes of identifiers; integers beside missing ones, which NumPy has no dtype for, exactly."""
    if not cells.dtype.is_integer() or not cells.null_count():
        return code_array(_as_array(cells, "number"), kind)
    known = ~cells.is_null().to_numpy()
    codes = np.full(len(cells), np.nan)
    codes[known] = code_array(_as_array(cells.drop_nulls(), "number"), kind)
    return codes


def _values(cells: nw.Series[Any]) -> list[object]:
    """Return the cells as Python objects; one that cannot be (undecodable text) is missing."""
    try:
        return list(cells.to_list())
    except Exception:
        return [_value(cells, i) for i in range(len(cells))]


def _value(cells: nw.Series[Any], i: int) -> object:
    try:
        return cells[i]
    except Exception:
        return None
