"""Layout of a table by group: its keys, what is told of each cell, and where that is released.

All of it is public: it follows from the parameters of a `PrivateTable` and its bounds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite, nan, prod
from typing import Any

from reticent.errors import BadInput, BoundsMissing
from reticent.models.descriptive.columns import has_mean
from reticent.number_kinds import Derived, Limit, Tuned
from reticent.privacy.bounds import Bounds
from reticent.privacy.columns.base import Kind
from reticent.privacy.columns.dates import Date
from reticent.privacy.columns.numbers import Whole
from reticent.privacy.columns.words import YesNo
from reticent.privacy.row_maps.binned_sums import GroupSums
from reticent.privacy.row_maps.column_moments import bin_edges

__all__ = ["MARGIN", "QUARTILES", "Key", "TableLayout", "Wanted", "layout_of", "wanted"]

Column = str | int
MARGIN = "all"  # in a margin, in place of the key that was summed over
QUARTILES: Derived[tuple[float, float, float]] = (0.25, 0.5, 0.75)
MOST_KEYS: Limit[int] = 6  # columns that a table goes by
MOST_CELLS: Limit[int] = 100_000  # of a table
MOST_NUMBERS: Limit[int] = 5_000_000  # in all of them together
# of the count's own number beside bins, where no value is averaged
_COUNT_WEIGHT: Tuned[float] = 0.75


@dataclass(frozen=True)
class Wanted:
    """What was asked for: columns by name or place, and what of them."""

    keys: tuple[tuple[Column, tuple[Any, ...] | None], ...]  # with the edges given for it, if any
    mean: tuple[Column, ...]
    rate: tuple[Column, ...]
    total: tuple[Column, ...]
    quantile: tuple[tuple[Column, tuple[float, ...]], ...]

    @property
    def averaged(self) -> tuple[Column, ...]:
        """Columns whose sums are released, each once."""
        return tuple(dict.fromkeys([*self.mean, *self.rate, *self.total]))

    @property
    def columns(self) -> tuple[Column, ...]:
        """All columns, each once."""
        keys = [column for column, _ in self.keys]
        binned = [column for column, _ in self.quantile]
        return tuple(dict.fromkeys([*keys, *self.averaged, *binned]))


def wanted(by: Any, mean: Any, rate: Any, total: Any, quantile: Any) -> Wanted:
    """Bring the ways to ask for a table into one; refuse what makes no sense with any bounds."""
    keys = _with_options("by", by, None)
    known = [column for column, _ in keys]
    asked = Wanted(
        keys=tuple((column, _edges(column, edges)) for column, edges in keys),
        mean=_columns("mean", mean),
        rate=_columns("rate", rate),
        total=_columns("total", total),
        quantile=tuple(
            (column, _levels_of(q)) for column, q in _with_options("quantile", quantile, QUARTILES)
        ),
    )
    if len(known) > MOST_KEYS:
        raise BadInput(f"A table has at most {MOST_KEYS} keys, not {len(known)}.", parameter="by")
    for column in asked.columns[len(known) :]:
        if column in known:
            raise BadInput(
                f"{column!r} is a key of the table, and the same in every record of a cell: take "
                "it out of by, or out of what is told of the cells.",
                parameter="by",
            )
    return asked


def _with_options(what: str, given: Any, otherwise: Any) -> list[tuple[Column, Any]]:
    """Columns with something said of each: a mapping, or a list of columns or pairs."""
    if given is None:
        return []
    if isinstance(given, Mapping):
        pairs = list(given.items())
    elif isinstance(given, str) or _is_place(given):
        pairs = [(given, otherwise)]
    else:
        pairs = []
        for one in _listed(what, given):
            pair = isinstance(one, (tuple, list)) and len(one) == 2
            pairs.append((one[0], one[1]) if pair else (one, otherwise))
    columns = _columns(what, [column for column, _ in pairs])
    if what == "quantile":
        pairs = [(column, otherwise if q is None else q) for column, q in pairs]
    return list(zip(columns, [option for _, option in pairs], strict=True))


def _listed(what: str, given: Any) -> list[Any]:
    if not isinstance(given, Sequence) or isinstance(given, bytes):
        raise BadInput(
            f"{what} takes a list of columns, such as ['sex', 'ward'], not {given!r}.",
            parameter=what,
        )
    return list(given)


def _is_place(given: Any) -> bool:
    return isinstance(given, int) and not isinstance(given, bool)


def _columns(what: str, given: Any) -> tuple[Column, ...]:
    """Columns by name or place, each once."""
    if given is None:
        return ()
    if isinstance(given, str) or _is_place(given):
        given = [given]
    columns = _listed(what, given)
    for column in columns:
        if not (isinstance(column, str) and column) and not (_is_place(column) and column >= 0):
            raise BadInput(
                f"{what} takes names of columns, or their places from 0 on, not {column!r}.",
                parameter=what,
            )
    if len(set(columns)) < len(columns):
        raise BadInput(f"{what} names a column twice.", parameter=what)
    return tuple(columns)


def _edges(column: Column, edges: Any) -> tuple[Any, ...] | None:
    if edges is None:
        return None
    if isinstance(edges, (str, bytes)) or not hasattr(edges, "__iter__"):
        raise BadInput(
            f"The groups of {column!r} are given by the list of their edges, for example "
            f"[0, 18, 65, 110], not {edges!r}.",
            parameter="by",
        )
    return tuple(edges)


def _levels_of(q: Any) -> tuple[float, ...]:
    given = [q] if isinstance(q, (int, float)) else _listed("quantile", q)
    for one in given:
        if isinstance(one, bool) or not isinstance(one, (int, float)) or not 0 < one < 1:
            raise BadInput(
                f"quantile takes numbers between 0 and 1, such as 0.5, not {one!r}.",
                parameter="quantile",
            )
    if not given:
        raise BadInput("quantile takes at least one number.", parameter="quantile")
    return tuple(map(float, given))


@dataclass(frozen=True)
class Key:
    """One key of a table: its column, and the groups that it makes."""

    name: str
    place: int
    kind: Kind
    edges: tuple[float, ...]  # in codes
    labels: tuple[Any, ...]  # of the groups, as people write them


@dataclass(frozen=True)
class TableLayout:
    """Keys, values and quantiles of a table, by their places among the inputs of some bounds."""

    bounds: Bounds
    keys: tuple[Key, ...]
    averaged: tuple[int, ...]
    mean: tuple[int, ...]
    rate: tuple[int, ...]
    total: tuple[int, ...]
    quantile: tuple[tuple[int, tuple[float, ...]], ...]
    bin_edges: tuple[tuple[float, ...], ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Groups of each key."""
        return tuple(len(key.labels) for key in self.keys)

    @property
    def count_weight(self) -> float:
        """Weight of the count's own number: none where averaged values say the count."""
        if self.averaged:
            return 0.0
        if self.quantile:
            return _COUNT_WEIGHT
        return 1.0

    def name(self, place: int) -> str:
        """What a column is called in the table."""
        if self.bounds.x_names is None:
            return f"column {place}"
        return self.bounds.x_names[place]

    def statistic(self, *, laplace: bool = False) -> GroupSums:
        """What is released."""
        return GroupSums(
            self.bounds,
            tuple(key.place for key in self.keys),
            tuple(key.edges for key in self.keys),
            self.averaged,
            tuple(place for place, _ in self.quantile),
            self.bin_edges,
            self.count_weight,
            spread=bool(self.averaged) and not laplace,
        )


def layout_of(asked: Wanted, bounds: Bounds, bins: int) -> TableLayout:
    """The layout of a table whose columns have these bounds; refuse what they do not allow."""
    if bounds.norm is not None:
        raise BadInput("A table has no use for norm: leave it out of the bounds.")
    keys = tuple(_key(bounds, column, edges) for column, edges in asked.keys)

    def places(columns: Sequence[Column]) -> tuple[int, ...]:
        return tuple(_place(bounds, column) for column in columns)

    quantile = tuple((_place(bounds, column), q) for column, q in asked.quantile)
    layout = TableLayout(
        bounds=bounds,
        keys=keys,
        averaged=places(asked.averaged),
        mean=places(asked.mean),
        rate=places(asked.rate),
        total=places(asked.total),
        quantile=quantile,
        bin_edges=tuple(bin_edges(bounds.x_kinds[place], bins) for place, _ in quantile),
    )
    _check_values(layout)
    cells = prod(layout.shape)
    numbers = cells * layout.statistic().own
    if cells > MOST_CELLS or numbers > MOST_NUMBERS:
        groups = " × ".join(map(str, layout.shape))
        raise BadInput(
            f"The table would have {groups} = {cells:,} cells and {numbers:,} numbers, more than "
            f"{MOST_CELLS:,} or {MOST_NUMBERS:,}: leave a key out, join levels into groups, or "
            "give edges of fewer groups.",
            parameter="by",
        )
    return layout


def _check_values(layout: TableLayout) -> None:
    for place in (*layout.mean, *layout.total):
        kind = layout.bounds.x_kinds[place]
        if not has_mean(kind):
            raise BadInput(
                f"There is no mean of {layout.name(place)!r}, a column of kind {kind.name}: make "
                "it a key, or leave it out.",
                parameter="mean",
            )
    for place in layout.total:
        if isinstance(layout.bounds.x_kinds[place], Date):
            raise BadInput(
                f"There is no total of {layout.name(place)!r}: dates do not add up.",
                parameter="total",
            )
    for place in layout.rate:
        kind = layout.bounds.x_kinds[place]
        if not isinstance(kind, YesNo):
            raise BadInput(
                f"A rate is one of yes and no, and {layout.name(place)!r} is a column of kind "
                f"{kind.name}: say bool in its bounds, or ask for its mean.",
                parameter="rate",
            )
    for place, _ in layout.quantile:
        kind = layout.bounds.x_kinds[place]
        if not kind.ordered or kind.periodic:
            raise BadInput(
                f"There is no quantile of {layout.name(place)!r}: the values of a column of kind "
                f"{kind.name} have no order.",
                parameter="quantile",
            )


def _place(bounds: Bounds, column: Column) -> int:
    names = bounds.x_names
    if isinstance(column, str):
        if names is None or column not in names:
            known = ", ".join(map(repr, names or ())) or "none by name"
            raise BoundsMissing(
                f"The column {column!r} has no bounds, and reticent never takes them from the "
                f"data. Say what can stand in it, for example Bounds(x={{{column!r}: ...}}). "
                f"Columns that have bounds: {known}."
            )
        return names.index(column)
    if column >= len(bounds.x_kinds):
        raise BoundsMissing(
            f"There is no column {column}: the bounds are for {len(bounds.x_kinds)}, from 0 on."
        )
    return column


def _key(bounds: Bounds, column: Column, given: tuple[Any, ...] | None) -> Key:
    place = _place(bounds, column)
    kind = bounds.x_kinds[place]
    name = column if isinstance(column, str) else f"column {column}"
    if bounds.x_names is not None:
        name = bounds.x_names[place]
    if given is None:
        if kind.cells is None:
            raise BadInput(
                f"{name!r} is a column of kind {kind.name}: as a key of a table it needs the edges "
                f"of its groups, for example by=[({name!r}, [0, 18, 65, 110])].",
                parameter="by",
            )
        if kind.cells > MOST_CELLS:
            raise BadInput(
                f"{name!r} has {kind.cells:,} values, too many for a key: give the edges of its "
                "groups.",
                parameter="by",
            )
        edges = bin_edges(kind, kind.cells)
        low = kind.range[0]
        codes = [low + 0.5 + i for i in range(kind.cells)]
        labels: tuple[Any, ...] = kind.levels or tuple(int(code) for code in codes)
        return Key(name, place, kind, edges, labels)
    if kind.levels is not None:
        raise BadInput(
            f"{name!r} is a column of words, whose groups are its levels: leave the edges out.",
            parameter="by",
        )
    edges = _key_edges(name, kind, given)
    return Key(name, place, kind, edges, _group_labels(kind, edges))


def _key_edges(name: str, kind: Kind, given: tuple[Any, ...]) -> tuple[float, ...]:
    """Edges in codes, with the ends of the range."""
    low, high = kind.range
    codes = [_code(kind, edge) for edge in given]
    inner = [code for code in codes if low < code < high]
    rising = all(a < b for a, b in pairwise(codes))
    first, last = (kind.low, kind.high) if isinstance(kind, Whole) else (low, high)
    inside = all(isfinite(code) and first <= code <= max(last, high) for code in codes)
    if not rising or not inside:
        raise BadInput(
            f"The edges of {name!r} must rise and lie within its bounds, {kind.describe()}, not "
            f"{list(given)!r}.",
            parameter="by",
        )
    if isinstance(kind, Whole):
        # [0, 18, 65, 110]: 0 to 17, 18 to 64, 65 to 110
        inner = [code for code in inner if kind.low < code < kind.high]
    if isinstance(kind, Date) and codes and high - codes[-1] == 1 and len(kind.high) <= 10:
        inner = [code for code in inner if code != codes[-1]]  # the last day itself
    return (low, *inner, high)


def _code(kind: Kind, edge: Any) -> float:
    if isinstance(kind, Date):
        return kind.code_value(edge)
    if isinstance(edge, bool) or not isinstance(edge, (int, float)):
        return nan
    return float(edge)


def _group_labels(kind: Kind, edges: tuple[float, ...]) -> tuple[str, ...]:
    labels = []
    for i, (low, high) in enumerate(pairwise(edges)):
        last = i == len(edges) - 2
        if isinstance(kind, Whole):
            least = kind.low if i == 0 else round(low + 0.25)
            most = kind.high if last else round(high - 0.75)
            labels.append(f"{least} – {most}")
        elif isinstance(kind, Date):
            end = high
            if float(low).is_integer() and float(high).is_integer():
                end = high - 1
            labels.append(f"{kind.show(low)} – {kind.show(end)}")
        else:
            labels.append(f"{low:g} – {high:g}")
    return tuple(labels)
