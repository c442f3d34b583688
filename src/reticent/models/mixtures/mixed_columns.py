"""Mixed columns: which are numbers and which are levels, and synthetic tables as people read them.

All of it follows from the bounds, which are public.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.errors import BadInput
from reticent.models.mixtures.settings import MIXTURE
from reticent.privacy.bounds import Bounds
from reticent.privacy.columns.base import Kind
from reticent.privacy.columns.numbers import Number, Whole
from reticent.privacy.columns.words import MissingIndicator
from reticent.privacy.row_maps.features.column_encoding import (
    CYCLE,
    INDICATOR,
    NUMBER,
    encode,
    encoded_widths,
    level_of,
)

__all__ = [
    "MixedColumns",
    "as_table",
    "check_encoded_width",
    "distance_encoding",
    "encode_complete",
    "encoded_bounds",
    "encoded_edges",
    "encoded_names",
    "encoded_units",
    "level_codes",
    "rounding_variances",
]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class MixedColumns:
    """Places of the columns of numbers, and places and numbers of levels of the others."""

    numbers: tuple[int, ...]
    words: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, bounds: Bounds) -> "MixedColumns":
        """Words, few whole numbers and the cells of cycles are levels."""
        levels = [_level_count(kind) for kind in bounds.x_kinds]
        return cls(
            tuple(j for j, many in enumerate(levels) if not many),
            tuple((j, many) for j, many in enumerate(levels) if many),
        )

    @property
    def encoding(self) -> tuple[int, ...]:
        """Of each column, without the first of its levels: these coordinates vary freely."""
        codes = [NUMBER] * (len(self.numbers) + len(self.words))
        for j, many in self.words:
            codes[j] = 2 if many == 2 else -many
        return tuple(codes)

    def coordinates(self) -> tuple[tuple[int, ...], list[slice]]:
        """Encoded coordinates of the numbers, and of the levels of each column of words."""
        numbers = []
        words = []
        start = 0
        many = dict(self.words)
        for j in range(len(self.numbers) + len(self.words)):
            width = many.get(j, 2) - 1
            if j in many:
                words.append(slice(start, start + width))
            else:
                numbers.append(start)
            start += width
        return tuple(numbers), words

    def level_probabilities(self, means: Array) -> list[Array]:
        """Chances of the levels of each column of words, from means of coordinates (K, D)."""
        found = []
        for (_, many), part in zip(self.words, self.coordinates()[1], strict=True):
            later = means[:, part] / (1.0 if many == 2 else INDICATOR)
            found.append(np.hstack([1 - later.sum(axis=1, keepdims=True), later]))
        return found

    def units(self, covariance: Array) -> Array:
        """Standard deviations of the coordinates (D,); times √(L − 1) for those of L levels.

        Divided by these, each column has as much variance as any other.
        """
        units = np.sqrt(np.diag(covariance))
        for (_, many), part in zip(self.words, self.coordinates()[1], strict=True):
            units[part] *= math.sqrt(many - 1)
        return np.asarray(units)

    def split(self, unit: Array) -> tuple[Array, NDArray[np.int64]]:
        """Numbers (n, p) and levels (n, words) of scaled records."""
        levels = [level_of(unit[:, j], many) for j, many in self.words]
        return unit[:, list(self.numbers)], np.stack(levels, axis=1).astype(np.int64)


def _level_count(kind: Kind) -> int:
    """How many levels a column has; 0 for a column of numbers."""
    if kind.periodic:
        return MIXTURE.cycle_cells
    if kind.levels is not None:
        return len(kind.levels)
    if kind.cells is not None and kind.cells <= MIXTURE.most_whole_levels:
        return kind.cells
    return 0


def distance_encoding(bounds: Bounds) -> tuple[int, ...]:
    """How columns are encoded for distances and correlations; empty if all are numbers.

    Levels in no order become indicators, cycles points of a circle; ordered levels count as
    numbers.
    """
    codes = []
    for kind in bounds.x_kinds:
        if kind.periodic:
            codes.append(CYCLE)
        elif kind.levels is not None and not kind.ordered:
            codes.append(len(kind.levels))
        else:
            codes.append(NUMBER)
    if not any(codes):
        return ()
    return tuple(codes)


def encoded_names(bounds: Bounds, encoding: tuple[int, ...]) -> list[str]:
    """Names of the encoded coordinates: "age", "sex=M", "hour (cos)"."""
    given = bounds.x_names or tuple(f"x{j}" for j in range(len(bounds.x)))
    if not encoding:
        return list(given)
    names = []
    for name, kind, code in zip(given, bounds.x_kinds, encoding, strict=True):
        if code == NUMBER:
            names.append(name)
        elif code == CYCLE:
            names += [f"{name} (cos)", f"{name} (sin)"]
        else:
            levels = kind.levels or ()
            first = 1 if code == 2 else 0
            names += [f"{name}={level}" for level in levels[first:]]
    return names


def encoded_units(bounds: Bounds, encoding: tuple[int, ...]) -> tuple[Array, Array]:
    """Offset and scale (D,) that turn encoded coordinates into units of their own.

    Those of the columns for numbers, 0 to 1 for indicators, −1 to 1 for cosines and sines.
    """
    d = len(bounds.x)
    middle = bounds.unscale(np.zeros(d))
    half_range = bounds.unscale(np.ones(d)) - middle
    if not encoding:
        return middle, half_range
    offsets: list[float] = []
    scales: list[float] = []
    for j, (code, width) in enumerate(zip(encoding, encoded_widths(encoding), strict=True)):
        if code == NUMBER:
            offsets.append(float(middle[j]))
            scales.append(float(half_range[j]))
            continue
        offsets += [0.0] * width
        scales += [{CYCLE: 2.0, 2: 1.0}.get(code, 1 / INDICATOR)] * width
    return np.array(offsets), np.array(scales)


def encoded_edges(encoding: tuple[int, ...]) -> tuple[Array, Array]:
    """Least and largest value (D,) of the encoded coordinates of a box."""
    low: list[float] = []
    high: list[float] = []
    for code, width in zip(encoding, encoded_widths(encoding), strict=True):
        edges = {NUMBER: (-1.0, 1.0), CYCLE: (-0.5, 0.5), 2: (0.0, 1.0)}.get(code, (0.0, INDICATOR))
        low += [edges[0]] * width
        high += [edges[1]] * width
    return np.array(low), np.array(high)


def encoded_bounds(bounds: Bounds, encoding: tuple[int, ...]) -> Bounds:
    """Bounds of the encoded coordinates, by the names of these: what a table or an axis shows."""
    if not encoding:
        return bounds
    kinds: list[Kind] = []
    for kind, code, width in zip(bounds.x_kinds, encoding, encoded_widths(encoding), strict=True):
        if code == NUMBER:
            kinds.append(kind)
        else:
            kinds += [Number(-1.0 if code == CYCLE else 0.0, 1.0)] * width
    return bounds.with_columns(tuple(kinds), tuple(encoded_names(bounds, encoding)), None)


def check_encoded_width(encoding: tuple[int, ...]) -> None:
    """Refuse columns of words with so many levels that a covariance of these has no room."""
    width = sum(encoded_widths(encoding))
    most = math.isqrt(MIXTURE.most_covariance_numbers)
    if any(encoding) and width > most:
        raise BadInput(
            f"The levels of all columns are {width} numbers, more than {most}: join rare levels "
            "into groups, or choose fewer columns."
        )


def encode_complete(unit: Array, encoding: tuple[int, ...]) -> Array:
    """Encoded coordinates (n, D) of scaled records; NaN for a record that lacks a value."""
    lacking = np.isnan(unit).any(axis=1)
    coordinates = np.array(encode(np.where(np.isnan(unit), 0.0, unit), encoding))
    coordinates[lacking] = np.nan
    return coordinates


def rounding_variances(bounds: Bounds) -> Array:
    """Variance that rounding adds to each column, in its own units: 1/12 for whole numbers."""
    return np.array([1 / 12 if type(kind) is Whole else 0.0 for kind in bounds.x_kinds])


def as_table(bounds: Bounds, codes: Array) -> Any:
    """Synthetic records as an array if all columns are plain numbers, else columns by name.

    A dict of lists: words, whole numbers, ISO dates, numbers, and None where a value is missing.
    """
    if all(type(kind) is Number and not kind.keep_missing for kind in bounds.x_kinds):
        return codes
    names = bounds.x_names or tuple(f"x{j}" for j in range(len(bounds.x)))
    table: dict[str, list[Any]] = {}
    for j in bounds.given_inputs():
        values = bounds.x_kinds[j].values(codes[:, j])
        if j + 1 < len(names) and isinstance(bounds.x_kinds[j + 1], MissingIndicator):
            lacking = codes[:, j + 1] > 0.5
            values = [None if no else v for v, no in zip(values, lacking, strict=True)]
        table[names[j]] = values
    return table


def level_codes(kind: Kind, levels: NDArray[np.int64], random: np.random.Generator) -> Array:
    """Codes of sampled levels; any place in the cell of a cycle."""
    low, high = kind.range
    if kind.periodic:
        width = (high - low) / MIXTURE.cycle_cells
        return low + width * (levels + random.uniform(size=len(levels)))
    return math.floor(low + 1) + levels.astype(np.float64)
