"""Responsibilities and residuals: what mixtures and clusters ask about records, stage after stage.

Proof: mixture_moments.md.

A `Metric` measures how far a record u lies from each of K centres, each in its own or in one common
linear map:

    z_k = u·A_k − c_k,     D_k = ‖z_k‖²

LengthCounts      how many records have ‖z‖ between public edges, z from the likeliest centre: finds
                  a radius
CellCounts        how many records have z in each cell of a grid (one centre): a histogram, for one
                  or two dimensions
CentredGram       Σ f fᵀ of f = (s, u), u = z/max(‖z‖, r) (one centre): mean and covariance of
                  everything
ResidualMoments   Σ γ_k (1, u_k, u_k u_kᵀ), γ = softmax(level − D/2) or all for the nearest centre,
                  u_k = z_k/max(‖z_k‖, r_k)
LogRatio          Σ clip(log p − log q, ±c)/c of two mixtures p and q, for two thresholds c: which
                  of them fits better
LevelCounts       how many records have each level, in each column of words
LevelMoments      Σ γ_k (1, u), where u says which levels a record has

With columns of words, responsibilities are softmax(level − D/2 + Σ_j log p_kj(level in column j)).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import chain

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reticent.errors import BadInput
from reticent.privacy.release import Release, symmetric
from reticent.privacy.row_maps.features.column_encoding import encode, level_of
from reticent.privacy.statistics.assignment_moments import AssignmentMoments, Pairs, Share
from reticent.privacy.statistics.base import BLOCK_NUMBERS
from reticent.privacy.statistics.counts import Counts
from reticent.privacy.statistics.exact_products import product
from reticent.privacy.statistics.gram import Gram
from reticent.privacy.statistics.sum import Sum

__all__ = [
    "CellCounts",
    "CentredGram",
    "DecodedLevels",
    "DecodedMoments",
    "LengthCounts",
    "LevelCounts",
    "LevelMoments",
    "LogRatio",
    "Metric",
    "ResidualMoments",
    "WordTable",
    "level_moments",
    "metric",
    "residual_moments",
]

Array = NDArray[np.float64]
_RECORD_BITS = 24
_PRODUCT_BITS = 52
_FINE = 14  # z in steps of 2^-14
_LONGEST = 2**26  # of z, in these steps
# steps of 2^(1/4096), a relative error of 1e-4 at most: responsibilities are in steps of 2^-12
_TABLE_BITS = 12
_STEPS = 5909.278887481194  # 4096/log 2, written out: the same on every machine
_FARTHEST = (
    -8.5
)  # of a logit from the largest, beyond which a share is below 2^-12, and so is nothing on the grid
_RATIO_ROOTS = (0.89, 0.4559)  # √w of `LogRatio`: the first has 12 % more noise than alone
_LOWEST = -700.0  # of a logit; below are chances of 1e-304


@dataclass(frozen=True)
class Metric:
    """Maps A (d, p), one for all centres or one for each, and centres c (p,).

    In steps of 2^-shift, and of 2^-(24 + shift).
    """

    maps: tuple[tuple[tuple[int, ...], ...], ...]
    shift: int
    centres: tuple[tuple[int, ...], ...]
    encoding: tuple[int, ...] = ()  # of mixed columns (`column_encoding`): u is a row of these

    def __post_init__(self) -> None:
        if self._extent[0] > 2 ** (_PRODUCT_BITS - _RECORD_BITS):
            raise BadInput(
                "A map of records is too long for an exact product: choose a smaller shift."
            )
        if self._extent[1] > 2**_PRODUCT_BITS:
            raise BadInput(
                "A centre lies too far outside for an exact difference: choose a smaller shift."
            )
        if len(self.maps) not in (1, len(self.centres)):
            raise BadInput("There must be one map for all centres, or one for each.")

    @property
    def inputs(self) -> int:
        """Columns of a record that are looked at."""
        return len(self.maps[0])

    @property
    def columns(self) -> int:
        """Length of z."""
        return len(self.centres[0])

    @property
    def longest(self) -> float:
        """A length that no z exceeds."""
        longest_map, farthest = self._extent
        reach = (longest_map + farthest * 2.0**-_RECORD_BITS) * 2.0**-self.shift
        return math.sqrt(self.columns) * reach

    @cached_property
    def _extent(self) -> tuple[int, int]:
        """The longest column of a map, Σ_j|A_jl|, and the farthest centre, in steps.

        Sums of whole numbers ≥ 0: exact up to 2^53, and what is beyond cannot round to below.
        """
        wide, far = map(np.abs, self._tables)
        return int(wide.sum(axis=1).max()), int(far.max())

    @cached_property
    def _tables(self) -> tuple[Array, Array]:
        """Maps and centres as arrays."""
        numbers = chain.from_iterable  # np.array looks for a shape in every row of a long table
        maps = np.fromiter(numbers(numbers(self.maps)), np.float64).reshape(
            -1, self.inputs, self.columns
        )
        return maps, np.fromiter(numbers(self.centres), np.float64).reshape(-1, self.columns)

    @cached_property
    def _products(self) -> tuple[Array, Array]:
        """Maps as one matrix, a row for each column of each z, and centres, in steps of 2^-14."""
        unit = 2.0 ** (_FINE - _RECORD_BITS - self.shift)
        maps, centres = self._tables
        rows = np.ascontiguousarray(maps.transpose(2, 0, 1) * unit).reshape(-1, self.inputs)
        return rows, np.ascontiguousarray(centres.T)[:, :, None] * unit

    def away(self, records: Array) -> tuple[Array, Array]:
        """z (p × K × records) in steps of 2^-14, whole numbers, and D (K × records).

        Products and sums are exact.
        """
        maps, centres = self._products
        q = encode(records, self.encoding)[:, : self.inputs] * 2.0**_RECORD_BITS
        np.trunc(np.clip(q, -(2.0**_RECORD_BITS), 2.0**_RECORD_BITS, out=q), out=q)
        mapped = product(maps, q.T, records="right").reshape(self.columns, len(self.maps), -1)
        z = np.subtract(
            mapped, centres, out=mapped if len(self.maps) == len(self.centres) else None
        )
        np.rint(z, out=z)
        if self._long:
            longest = float(math.isqrt(_LONGEST**2 // self.columns))
            np.clip(z, -longest, longest, out=z)
        square = np.einsum("pki,pki->ki", z, z)
        square *= 4.0**-_FINE
        return z, square

    @cached_property
    def _long(self) -> bool:
        """Whether this metric can reach further than z may: otherwise nothing has to be clipped."""
        longest_map, farthest = self._extent
        finer = _RECORD_BITS + self.shift - _FINE
        furthest = (longest_map << _RECORD_BITS) + farthest
        return furthest << max(-finer, 0) > math.isqrt(_LONGEST**2 // self.columns) << max(finer, 0)

    @staticmethod
    def shortened(z: Array, square: Array, radius: float | Array) -> Array:
        """z/max(‖z‖, r), a row for each column of z, which is written over."""
        length = np.sqrt(square)
        np.divide(2.0**-_FINE, np.maximum(length, radius, out=length), out=length)
        z *= length
        return z.T


def metric(maps: ArrayLike, centres: ArrayLike, encoding: tuple[int, ...] = ()) -> Metric:
    """A metric from real numbers.

    One map (d × p) or one for each centre, and centres (K × p) in the maps' coordinates; d counts
    encoded columns, where there is an encoding.
    """
    A = np.asarray(maps, dtype=np.float64)
    c = np.asarray(centres, dtype=np.float64)
    if A.ndim == 2:
        A = A[None]
    longest = max(float(np.abs(A).sum(axis=1).max()), float(np.abs(c).max()) / 2, 2.0**-30)
    shift = _PRODUCT_BITS - 1 - _RECORD_BITS - math.ceil(math.log2(longest))
    whole = np.trunc(A * 2.0**shift).astype(np.int64).tolist()
    steps = np.rint(c * 2.0 ** (shift + _RECORD_BITS)).astype(np.int64).tolist()
    tables = tuple(tuple(map(tuple, one)) for one in whole)
    return Metric(tables, shift, tuple(map(tuple, steps)), encoding)


@dataclass(frozen=True)
class WordTable:
    """Logarithms of the chances of a column's L levels in each of K parts, (K, L)."""

    column: int
    logs: tuple[tuple[float, ...], ...]

    @property
    def levels(self) -> int:
        """L."""
        return len(self.logs[0])

    @cached_property
    def _table(self) -> Array:
        return np.array(self.logs)

    def add_to(self, logits: Array, records: Array) -> None:
        """Add to each part's logits (K × records) what its level tells: a look-up, elementwise."""
        level = level_of(records[:, self.column], self.levels).astype(np.int64)
        logits += self._table.take(level, axis=1)


def _check_words(words: tuple[WordTable, ...], parts: int) -> None:
    """Refuse tables that lack a part or a level: a look-up would fail for some records alone."""
    for table in words:
        widths = {len(row) for row in table.logs}
        if len(table.logs) != parts or len(widths) != 1 or min(widths) < 2:
            raise BadInput("A table of levels must have a row for each part, all of one length.")


def _check_parts(where: Metric, levels: tuple[float, ...], words: tuple[WordTable, ...]) -> None:
    """Refuse levels and tables that do not belong to as many parts as there are centres."""
    if len(levels) != len(where.centres):
        raise BadInput("There must be one level for each centre.")
    _check_words(words, len(levels))


def _log_heights(
    where: Metric, levels: tuple[float, ...], words: tuple[WordTable, ...], records: Array
) -> tuple[Array, Array]:
    """D and level − D/2 + Σ log p of the words, both (K × records)."""
    _, square = where.away(records)
    logits = square * -0.5
    logits += np.array(levels)[:, None]
    for table in words:
        table.add_to(logits, records)
    return square, logits


def _by_pieces(where: Metric, records: Array, row_map: Callable[[Array], Array]) -> Array:
    """Rows of the records, in pieces: z from all centres, (p × K × records), must stay small."""
    size = max(64, BLOCK_NUMBERS // (where.columns * len(where.centres)))
    starts = range(0, max(len(records), 1), size)
    return np.concatenate([row_map(records[start : start + size]) for start in starts])


@dataclass(frozen=True)
class LengthCounts(Counts):
    """How many records have ‖z‖ in each bin between public edges.

    The first bin begins at 0, the last has no end.
    """

    metric: Metric
    edges: tuple[float, ...]
    levels: tuple[float, ...]  # logarithms of weights and scales, one for each centre
    words: tuple[WordTable, ...] = ()

    groups = property(lambda self: (len(self.edges) + 1,))

    def __post_init__(self) -> None:
        _check_parts(self.metric, self.levels, self.words)

    def cells(self, records: Array) -> Array:
        """How many edges are not longer than z of the likeliest centre."""
        return _by_pieces(self.metric, records, self._cells)

    def _cells(self, records: Array) -> Array:
        square, logits = _log_heights(self.metric, self.levels, self.words, records)
        nearest = logits.argmax(axis=0)[None]
        length = np.take_along_axis(square, nearest, axis=0)
        return np.searchsorted(np.square(self.edges), length.T, side="right").astype(np.float64)


@dataclass(frozen=True)
class LogRatio(Sum):
    """Σ √w·clip(log p − log q, ±c)/c of two mixtures, with two clip thresholds c and weights w.

    p is the first ``first`` parts, q the others. The weights add up to one.
    """

    metric: Metric
    levels: tuple[float, ...]  # logarithms of weights and scales, one for each part
    first: int
    largest: tuple[float, float]  # c
    words: tuple[WordTable, ...] = ()

    columns = property(lambda self: 2)
    norm2 = property(lambda self: 1)

    def __post_init__(self) -> None:
        _check_parts(self.metric, self.levels, self.words)
        if not 0 < self.first < len(self.levels):
            raise BadInput("Each of the two mixtures must have a part.")

    def rows(self, records: Array) -> Array:
        """The clipped difference of log-densities."""
        return _by_pieces(self.metric, records, self._rows)

    def _rows(self, records: Array) -> Array:
        _, logits = _log_heights(self.metric, self.levels, self.words, records)
        ratio = _log_sum(logits[: self.first]) - _log_sum(logits[self.first :])
        clipped = [
            root * np.clip(ratio / largest, -1.0, 1.0)
            for root, largest in zip(_RATIO_ROOTS, self.largest, strict=True)
        ]
        return np.stack(clipped, axis=1)


@dataclass(frozen=True)
class CellCounts(Counts):
    """How many records lie in each cell of a grid over z in [−side, side]^p.

    Those outside count in the nearest cell.
    """

    metric: Metric  # of one centre
    side: float
    cuts: int  # cells along each column of z

    groups = property(lambda self: (self.cuts**self.metric.columns,))

    def cells(self, records: Array) -> Array:
        """The number of the cell, the last column counting fastest."""
        z, _ = self.metric.away(records)
        at = np.clip(
            np.floor((z[:, 0] * 2.0**-_FINE + self.side) * (self.cuts / (2 * self.side))),
            0,
            self.cuts - 1,
        )
        number = np.zeros(at.shape[1])
        for row in at:
            number = number * self.cuts + row
        return number[:, None]


@dataclass(frozen=True)
class CentredGram(Gram):
    """Σ f fᵀ of f = (s, u): sums of u times s, and of uuᵀ."""

    metric: Metric  # of one centre
    radius: float
    side: float  # s

    columns = property(lambda self: 1 + self.metric.columns)  # s, and one for each column of z
    norm2 = property(lambda self: Fraction(self.side) ** 2 + 1)  # ‖u‖ is at most 1

    def rows(self, records: Array) -> Array:
        """(s, z/max(‖z‖, r))."""
        z, square = self.metric.away(records)
        u = self.metric.shortened(z[:, 0], square[0], self.radius)
        return np.hstack([np.full((len(u), 1), self.side), u])


@dataclass(frozen=True)
class ResidualMoments(AssignmentMoments):
    """Σ γ_k (1, u_k, u_k u_kᵀ).

    Responsibilities from distances, residuals from the centres no longer than their radius.
    """

    metric: Metric
    radius: tuple[float, ...]
    levels: tuple[float, ...]  # logarithms of weights and scales
    hard: bool
    words: tuple[WordTable, ...] = ()

    def __post_init__(self) -> None:
        _check_words(self.words, self.parts)

    @cached_property
    def _levels(self) -> Array:
        return np.array(self.levels)[:, None]

    def _radius(self, records: int) -> Array:
        """The radius of each pair (part, record), or the one of all."""
        if len(set(self.radius)) == 1:
            return np.array(self.radius[:1])
        return np.repeat(self.radius, records)

    def responsibilities(self, records: Array) -> Share:
        """Responsibilities, and residuals of pairs (part, record)."""
        z, square = self.metric.away(records)
        logits = square * -0.5  # columns of records: numbers of one part lie side by side
        logits += self._levels
        for table in self.words:
            table.add_to(logits, records)
        if not self.hard:
            nearest = None
        else:
            nearest = np.arange(len(logits))[:, None] == logits.argmax(axis=0)
        if nearest is None:
            gamma = _chances(logits)
        else:
            gamma = nearest.astype(np.float64)

        def residuals(pairs: Pairs | None) -> Array:
            place = z.reshape(len(z), -1)
            away = square.ravel()
            radius = self._radius(len(records))
            if pairs is not None:
                place = place.take(pairs, axis=1)
                away = away.take(pairs)
                if len(radius) == 1:
                    radius = radius
                else:
                    radius = radius.take(pairs)
            return self.metric.shortened(place, away, radius)

        return gamma.T, residuals

    @classmethod
    def decode(cls, release: Release) -> "DecodedMoments":
        """Counts, first and second moments of each component."""
        asked = release.statistic
        parts = asked["parts"]
        d = asked["columns"]
        sd = release.sd
        counts, first, rest = np.split(release.value, [parts, parts * (1 + d)])
        second: list[Array] = []
        if asked["second"] != "none":
            second = np.split(rest, 1 if asked["together"] else parts)
        if asked["second"] == "full":
            second = [symmetric(triangle) for triangle in second]
        second_sd = 0.0
        if second:
            second_sd = float(sd[-1]) / math.sqrt(2)
        return DecodedMoments(
            counts=counts,
            first=first.reshape(parts, d),
            second=second,
            counts_sd=sd[0],
            first_sd=sd[parts],
            second_sd=second_sd,
        )


@dataclass(frozen=True)
class LevelMoments(AssignmentMoments):
    """Σ γ_k (1, u), where u says which level a record has in each column of words.

    A level of L is a corner of the regular simplex, √(L/(L − 1))·(e − 1/L), times the square root
    of the column's part of the squared length; these parts add up to one.
    """

    metric: Metric
    levels: tuple[float, ...]
    words: tuple[WordTable, ...]
    norms: tuple[float, ...]  # squared length of each column of words

    def __post_init__(self) -> None:
        _check_words(self.words, self.parts)
        if len(self.norms) != len(self.words) or not self.words:
            raise BadInput("There must be a squared length for each column of words.")

    @cached_property
    def _corners(self) -> list[Array]:
        """For each column the part of a row that each level is, (L, L)."""
        corners = []
        for table, norm in zip(self.words, self.norms, strict=True):
            many = table.levels
            corners.append(_simplex_scale(many, norm) * (np.eye(many) - 1 / many))
        return corners

    def responsibilities(self, records: Array) -> Share:
        """Responsibilities, and the same row u for all parts."""
        _, logits = _log_heights(self.metric, self.levels, self.words, records)
        gamma = _chances(logits)

        def rows(pairs: Pairs | None) -> Array:
            found = []
            for table, corners in zip(self.words, self._corners, strict=True):
                level = level_of(records[:, table.column], table.levels).astype(np.int64)
                found.append(corners.take(level, axis=0))
            each = np.hstack(found)
            if pairs is None:
                return np.tile(each, (self.parts, 1))
            return each.take(pairs % len(records), axis=0)

        return gamma.T, rows

    @classmethod
    def decode(cls, release: Release) -> "DecodedLevels":
        """Noisy number of records of each part, and of each level among them."""
        asked = release.statistic
        parts = asked["parts"]
        counts, first = np.split(release.value, [parts])
        counts_sd = float(release.sd[0])
        sums = first.reshape(parts, -1)
        levels, levels_sd = [], []
        start = 0
        for table, norm in zip(asked["words"], asked["norms"], strict=True):
            many = len(table["logs"][0])
            scale = _simplex_scale(many, norm)
            centred = sums[:, start : start + many] / scale
            start += many
            centred = centred - centred.mean(axis=1, keepdims=True)  # noise alone
            levels.append(centred + counts[:, None] / many)
            noise = float(release.sd[parts]) / scale
            levels_sd.append(math.sqrt(noise**2 * (1 - 1 / many) + (counts_sd / many) ** 2))
        return DecodedLevels(counts, counts_sd, levels, levels_sd)


def _simplex_scale(levels: int, norm: float) -> float:
    return math.sqrt(norm * levels / (levels - 1))


@dataclass(frozen=True, eq=False)
class DecodedLevels:
    """Noisy numbers of records of K parts, Σγ_k, and of those with each level, Σγ_k·1[level].

    Attributes
    ----------
    counts : array (K,)
    counts_sd : float
    levels : list of arrays (K, L)
        One for each column of words.
    levels_sd : list of float
    """

    counts: Array
    counts_sd: float
    levels: list[Array]
    levels_sd: list[float]


def level_moments(
    where: Metric,
    *,
    levels: Sequence[float] | Array,
    words: tuple[WordTable, ...],
    weights: tuple[int, int, int] = (1, 1, 0),
) -> LevelMoments:
    """The statistic of one look at words; columns with more levels get more of the length."""
    parts = len(where.centres)
    roots = np.sqrt([table.levels - 1.0 for table in words])
    norms = tuple((roots / roots.sum()).tolist())
    columns = sum(table.levels for table in words)
    level = tuple(np.asarray(levels, dtype=np.float64).tolist())
    return LevelMoments(parts, columns, "none", False, weights, where, level, words, norms)


@dataclass(frozen=True)
class LevelCounts(Counts):
    """How many records have each level, in each column of words."""

    words: tuple[tuple[int, int], ...]  # column and number of levels

    groups = property(lambda self: tuple(levels for _, levels in self.words))

    def cells(self, records: Array) -> Array:
        """The level in each column."""
        return np.stack([level_of(records[:, j], levels) for j, levels in self.words], axis=1)


def _powers() -> Array:
    """2^(j/4096) for j below 4096, by square roots and products.

    The same digits on every machine.
    """
    table = np.ones(1)
    root = 2.0
    for _ in range(_TABLE_BITS):
        root = math.sqrt(root)
        table = np.stack([table, table * root], axis=1).ravel()
    return table


_POWERS = _powers()
_LOG2 = 0.6931471805599453
# log of (1 + (j + 1/2)/4096)/2 for j below 4096; digits that machines may differ in are cut off
_LOGARITHMS = (
    np.rint(np.log((1 + (np.arange(2**_TABLE_BITS) + 0.5) / 2**_TABLE_BITS) / 2) * 2.0**40)
    * 2.0**-40
)


def _chances(logits: Array) -> Array:
    """Softmax of columns, but all for one part where no other's share could reach the grid.

    Logits are written over.
    """
    below = np.subtract(logits, logits.max(axis=0), out=logits)
    near = below > _FARTHEST
    unsure = near.sum(axis=0, dtype=np.int32) > 1
    chances = near.astype(np.float64)
    if 2 * np.count_nonzero(unsure) > len(unsure):
        np.copyto(chances, _softmax(below), where=unsure)
    else:
        some = unsure.nonzero()[0]
        chances[:, some] = _softmax(below.take(some, axis=1))
    return chances


def _softmax(below: Array) -> Array:
    """Softmax of columns whose largest number is 0, by a table.

    ×, +, look-ups and shifts of exponents, and sums part by part.

    The same bits wherever a number stands.
    """
    chances, total = _exponentials(below)
    chances /= total
    return chances


def _exponentials(below: Array) -> tuple[Array, Array]:
    """Exponentials of numbers ≤ 0 (K × records), by a table, and their sums part by part.

    The numbers are written over.
    """
    np.maximum(below, _LOWEST, out=below)
    below *= _STEPS
    below -= 0.5  # and truncation rounds to the nearest
    steps = below.astype(np.int64)
    chances = _POWERS.take(steps & (2**_TABLE_BITS - 1))
    steps >>= _TABLE_BITS
    steps += 1023
    steps <<= 52
    chances *= steps.view(np.float64)  # 2^k: its exponent, as IEEE 754 writes it
    total = chances[0].copy()
    for part in chances[1:]:
        total += part
    return chances, total


def _log_sum(logits: Array) -> Array:
    """Logarithm of the sum of exponentials of each column, to within 3e-4, by tables."""
    largest = logits.max(axis=0)
    _, total = _exponentials(logits - largest)
    mantissa, exponent = np.frexp(total)  # 1/2 ≤ mantissa < 1
    place = ((mantissa - 0.5) * 2.0 ** (_TABLE_BITS + 1)).astype(np.int64)
    return np.asarray(largest + (_LOGARITHMS.take(place) + exponent * _LOG2))


def residual_moments(
    where: Metric,
    *,
    radius: Sequence[float] | Array,
    levels: Sequence[float] | Array | None = None,
    second: str = "none",
    together: bool = False,
    weights: tuple[int, int, int] = (1, 1, 0),
    hard: bool = False,
    words: tuple[WordTable, ...] = (),
) -> ResidualMoments:
    """The statistic of one stage; without levels all parts weigh the same."""
    parts = len(where.centres)
    if levels is None:
        constants = np.zeros(parts)
    else:
        constants = np.asarray(levels, dtype=np.float64)
    if len(constants) != parts or len(radius) != parts:
        raise BadInput("There must be one level and one radius for each part.")
    clip_radius = tuple(float(r) for r in radius)
    level = tuple(constants.tolist())
    return ResidualMoments(
        parts, where.columns, second, together, weights, where, clip_radius, level, hard, words
    )


@dataclass(frozen=True, eq=False)
class DecodedMoments:
    """Noisy moments of residuals u_k under the responsibilities γ_k of K components.

    Attributes
    ----------
    counts : array (K,)
        Σγ_k.
    first : array (K, p)
        Σγ_k u_k.
    second : list of arrays
        Σγ_k u_k u_kᵀ (p, p), or its diagonal (p,), or its trace (1,), of each component, or one of
        all together; empty if none was released.
    counts_sd, first_sd : float
        Standard deviations of the noise of each entry.
    second_sd : float
        The same off the diagonal of a matrix; of a diagonal or trace, divided by √2.
    """

    counts: Array
    first: Array
    second: list[Array]
    counts_sd: float
    first_sd: float
    second_sd: float
