"""Columns of a model as people read them: names, labels, units, and values in words."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from reticent.privacy.columns.base import Kind
from reticent.privacy.columns.dates import Date
from reticent.privacy.columns.numbers import Cyclic, Number, Whole
from reticent.privacy.columns.words import MISSING_LEVEL, MissingIndicator, Ordered, YesNo
from reticent.reporting.formatting import format_in_range, format_number, printable, quoted_word

if TYPE_CHECKING:
    from reticent.models.base import PrivateEstimator
    from reticent.privacy.bounds import Bounds
    from reticent.privacy.noise_column import NoiseColumn

__all__ = [
    "Column",
    "as_given",
    "column_names",
    "encoded_columns",
    "input_columns",
    "noise_column_name",
    "output_columns",
    "output_names",
    "public_columns",
]

Values = NDArray[np.float64]
_FEW_WHOLE = 7  # whole numbers that are shown one by one
_MOST_LISTED = 12  # words that are listed


@dataclass(frozen=True)
class Column:
    """A column as it is shown.

    Codes are what models compute with: the number, the position of a word, days since 1970-01-01.
    """

    name: str
    kind: Kind

    @property
    def title(self) -> str:
        """Its label, or else its name: "Age at admission"."""
        if self.kind.label:
            return printable(self.kind.label)
        return self.name

    @property
    def heading(self) -> str:
        """Title and unit, as on an axis: "Age at admission (years)"."""
        if self.unit:
            return f"{self.title} ({self.unit})"
        return self.title

    @property
    def unit(self) -> str:
        """What it is measured in; empty if nobody said, and for words."""
        if self.kind.unit and self.kind.levels is None:
            return printable(self.kind.unit)
        return ""

    @property
    def is_date(self) -> bool:
        """Whether codes are days since 1970-01-01."""
        return isinstance(self.kind, Date)

    @property
    def is_rate(self) -> bool:
        """Whether its mean is the rate of one answer of two."""
        return isinstance(self.kind, YesNo)

    @property
    def categories(self) -> Values | None:
        """The codes of all its values, if each is shown by itself; None for a continuum."""
        cells = self.kind.cells
        if cells is None or (isinstance(self.kind, Whole) and cells > _FEW_WHOLE):
            return None
        return np.arange(cells, dtype=np.float64) + (self.kind.range[0] + 0.5)

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the largest code that it can have."""
        low, high = self.kind.range
        if self.kind.cells is not None:
            return low + 0.5, high - 0.5
        if self.is_date and high - 1 > low and high.is_integer():
            return low, high - 1
        return low, high

    @property
    def shown_ends(self) -> tuple[str, str]:
        """The ends of its range as they are written; of a rate, 0 % and 100 %."""
        if self.is_rate:
            return "0 %", "100 %"
        low, high = self.ends
        return self.show_in_print(low), self.show_in_print(high)

    @property
    def limits(self) -> tuple[float, float]:
        """Where a mean of it can lie at all: rates from 0 to 1, counts not below the least."""
        if self.is_rate:
            return 0.0, 1.0
        if isinstance(self.kind, Whole):
            return float(self.kind.low), float(self.kind.high)
        return -np.inf, np.inf

    def show(self, code: float) -> str:
        """A value: "F", "2021-03-01", "42"."""
        if self.kind.levels is not None or self.is_date:
            return printable(self.kind.show(code))
        return format_in_range(code, *self.ends)

    def show_in_print(self, code: float) -> str:
        """A value as print has it: "−3", "2·10⁻⁷"."""
        shown = self.show(code)
        if self.kind.levels is not None or self.is_date:
            return shown
        if "e" in shown:
            return format_number(code)
        return shown.replace("-", "−")

    def show_with_unit(self, code: float) -> str:
        """A value with its unit, as print has it: "42 years"."""
        if self.unit:
            return f"{self.show_in_print(code)} {self.unit}"
        return self.show_in_print(code)

    def at(self, code: float) -> str:
        """Where an input stands: "sex = F", "age 42 years"."""
        equals = " "
        if self.kind.levels is not None:
            equals = " = "
        return f"{self.title}{equals}{self.show_with_unit(code)}"

    def plain(self, codes: Values) -> list[Any]:
        """Values for machines: numbers, words, ISO dates."""
        if type(self.kind) is Number:
            return codes.tolist()
        return self.kind.values(codes)

    def nearest(self, code: float) -> float:
        """The nearest code that is a value: a whole number, a level, a whole day."""
        low, high = self.ends
        if self.kind.cells is not None or (self.is_date and low.is_integer()):
            code = float(np.round(code))
        return float(min(max(code, low), high))

    def line(self, points: int) -> Values:
        """Codes along the column: every category, or about so many values from end to end."""
        if self.categories is not None:
            return self.categories
        even = np.linspace(*self.ends, points)
        return np.unique([self.nearest(code) for code in even])

    def describe(self) -> str:
        """What can stand in it: "F, M", "I < II < III", "0 to 110 years"."""
        kind = self.kind
        if isinstance(kind, MissingIndicator):
            return "no, yes"
        if kind.levels is not None:
            between = ", "
            if isinstance(kind, Ordered):
                between = " < "
            sign = between.strip()
            words = [quoted_word(printable(level), sign) for level in kind.levels]
            if kind.keep_missing:
                words = words[:-1]
            if len(words) > _MOST_LISTED:
                words = [*words[: _MOST_LISTED - 1], f"… ({len(words)} in all)"]
            listed = between.join(words)
            if kind.keep_missing:
                return f"{listed}, or {MISSING_LEVEL}"
            return listed
        low, high = self.ends
        span = f"{self.show(low)} to {self.show(high)}"
        if self.unit:
            span = f"{span} {self.unit}"
        if isinstance(kind, Whole):
            return f"{span}, whole numbers"
        if isinstance(kind, Cyclic):
            return f"{span}, coming round"
        return span

    def missing_words(self) -> str:
        """What stands for a missing value: "999, refused"; empty if nothing was named."""
        codes = [
            printable(code) if isinstance(code, str) else f"{code:g}" for code in self.kind.missing
        ]
        words = ", ".join(codes)
        if self.kind.keep_missing:
            return f"{words}; kept".removeprefix("; ")
        return words


def input_columns(model: "PrivateEstimator") -> list[Column]:
    """Give a model's inputs in the order of its bounds, indicators of missing values too."""
    bounds = model.releases_[0].bounds
    names = _names(bounds)
    return [Column(name, kind) for name, kind in zip(names, bounds.x_kinds, strict=True)]


def _names(bounds: "Bounds") -> list[str]:
    if bounds.x_names is not None:
        return [printable(name) for name in bounds.x_names]
    names: list[str] = []
    given = 0
    for kind in bounds.x_kinds:
        if isinstance(kind, MissingIndicator):
            names.append(f"{names[-1]} is missing")
        else:
            names.append(f"column {given}")
            given += 1
    return names


def output_columns(model: "PrivateEstimator") -> list[Column]:
    """Give the outputs of a regression; those of a density of records are plain numbers."""
    bounds = model.releases_[0].bounds
    kinds: Sequence[Kind] = bounds.y_kinds
    if not kinds:
        kinds = (Number(0.0, 1.0),)
    return [Column(name, kind) for name, kind in zip(output_names(model), kinds, strict=False)]


def encoded_columns(model: "PrivateEstimator") -> list[Column]:
    """Give the numbers that clusters and factors are about, each as a column.

    Words in no order are a share of each level (of two levels, of the second), a cycle its cosine
    and sine; other columns are themselves.
    """
    found = []
    names = [printable(name) for name in getattr(model, "encoded_names_", [])]
    columns = input_columns(model)
    if len(names) <= len(columns) and not any(map(_is_encoded, columns)):
        return columns
    if not names:
        return columns
    for column in columns:
        if column.kind.periodic:
            found += [Column(f"{column.title} ({part})", Number(-1, 1)) for part in ("cos", "sin")]
        elif _is_encoded(column):
            levels = column.kind.levels or ()
            first = int(len(levels) == 2)
            found += [
                Column(f"{column.title} = {printable(level)}", YesNo()) for level in levels[first:]
            ]
        else:
            found.append(column)
    if len(found) != len(names):
        return [Column(name, Number(0.0, 1.0)) for name in names]
    return found


def _is_encoded(column: Column) -> bool:
    kind = column.kind
    return kind.periodic or (kind.levels is not None and not kind.ordered)


def as_given(bounds: "Bounds", codes: Values) -> Any:
    """Turn codes of the inputs, (n, inputs), into records as `predict` takes them.

    Numbers stay an array; words and dates are written out. A value that happens to be a code for
    "missing" is moved by one part in 10¹⁶.
    """
    if all(type(kind) is Number and not kind.missing for kind in bounds.x_kinds) and (
        bounds.columns_in == len(bounds.x_kinds)
    ):
        return codes
    columns = []
    for i in bounds.given_inputs():
        kind = bounds.x_kinds[i]
        values = kind.values(_not_missing(kind, codes[:, i]))
        if isinstance(kind, Date):  # as moments, since texts may have a format of their own
            values = [None if one is None else datetime.fromisoformat(one) for one in values]
        after = i + 1
        if after < len(bounds.x_kinds) and isinstance(bounds.x_kinds[after], MissingIndicator):
            lacking = codes[:, after] > 0.5
            values = [None if gone else value for gone, value in zip(lacking, values, strict=True)]
        columns.append(values)
    return [list(row) for row in zip(*columns, strict=True)]


def _not_missing(kind: Kind, codes: Values) -> Values:
    if not isinstance(kind, (Number, Cyclic)) or not kind.missing:
        return codes
    low, high = kind.range
    stands_for_missing = np.isin(
        codes, [code for code in kind.missing if not isinstance(code, str)]
    )
    return np.where(stands_for_missing, np.nextafter(codes, low / 2 + high / 2), codes)


def column_names(model: "PrivateEstimator") -> list[str]:
    """Give the names of a model's inputs, or their numbers where they have none."""
    names = getattr(model, "feature_names_in_", [])
    if len(names):
        return [printable(str(name)) for name in names]
    return [f"column {i}" for i in range(model.n_features_in_)]


def noise_column_name(column: "NoiseColumn") -> str:
    """Give the name of a column of noise levels, or its number where it has none."""
    name = f"column {column.at}"
    if column.name:
        name = printable(column.name)
    return f"{name} (noise level)"


def output_names(model: "PrivateEstimator") -> list[str]:
    """Give the names of a model's outputs, or their numbers where they have none."""
    bounds = model.releases_[0].bounds
    if bounds.y_names:
        return [printable(name) for name in bounds.y_names]
    if getattr(model, "kind", "") == "count":
        return ["density"]
    if bounds.classes is not None:
        return ["class"]
    if len(bounds.y) == 1:
        return ["output"]
    return [f"output {j}" for j in range(len(bounds.y))]


def public_columns(model: "PrivateEstimator") -> list[list[str]]:
    """Say what was public about each column: name, label, values, and codes for "missing"."""
    bounds = model.releases_[0].bounds
    columns = [(column, "") for column in input_columns(model)]
    if bounds.y_kinds:
        columns += [(column, " (output)") for column in output_columns(model)]
    rows = []
    for column, role in columns:
        name = column.name
        if column.title != name:
            name = f"{name}: {column.title}"
        rows.append([f"{name}{role}", column.describe(), column.missing_words()])
    if (level := bounds.noise_column) is not None:
        span = Column("", Number(level.low, level.high)).describe()
        rows.append([noise_column_name(level), span, ""])
    if not any(row[-1] for row in rows):
        return [row[:-1] for row in rows]
    return rows
