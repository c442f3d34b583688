"""Reference implementation of every kind of statistic: what the fast path computes, in plain loops.

Auditors read this file first. For each kind one function maps *one* record to the integers that it
adds to the sum; `reference_sum` adds them up over the records. Python's integers and fractions are
exact, so this file needs no argument about rounding. The fast path (privacy/statistics) gives the
same integers for every table: a test compares the two, number by number, over all statistics of the
library, records at the edge of floats, maps that fail, and statistics that users may write. The
proof (statistics/statistics.md) is about the fast path; sections 2 and 4 hold for this file too.

Where people are the unit, or records state weights, each record's integers are multiplied by a
whole number before they are added; `reference_weights` says which (weights.md).

A record is a row of scaled numbers (`Bounds.scale`), shape ``(1, columns)``. `_ask` asks the
statistic's map for the row of one record; a map that fails gives NaN.
"""

import math
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.privacy.statistics.assignment_moments import (
    RESPONSIBILITY_BITS,
    ROW_BITS,
    EnforcedAssignmentMoments,
)
from reticent.privacy.statistics.cell_sum import EnforcedCellSum
from reticent.privacy.statistics.counts import EnforcedCounts
from reticent.privacy.statistics.enforced import Enforced
from reticent.privacy.statistics.gram import EnforcedGram
from reticent.privacy.statistics.partitioned_gram import EnforcedPartitionedGram
from reticent.privacy.statistics.sum import COLUMN_BITS, EnforcedColumnSum, EnforcedSum
from reticent.privacy.weights import WEIGHT_BITS

__all__ = ["reference_sum", "reference_weights"]

Record = NDArray[np.float64]
_MARGIN = 1 - 2.0**-40


def reference_sum(
    enforced: Enforced, records: Record, weights: Sequence[int] | None = None
) -> list[int]:
    """The exact sum over scaled records, shape ``(n, columns)``, one integer a released number.

    With ``weights``, one whole number a record, in steps of 2⁻²⁴ of the sum without.
    """
    total = [0] * enforced.size
    for i in range(len(records)):
        record = records[i : i + 1].copy()
        record.flags.writeable = False
        weight = 1
        if weights is not None:
            weight = weights[i]
        for place, value in enumerate(_contribution(enforced, record)):
            total[place] += weight * value
    return total


def reference_weights(
    people: Sequence[Hashable] | None,
    *,
    contribution: int = 1,
    stated: Sequence[float] | None = None,
    bound: float = 1.0,
) -> list[int]:
    """The weight of each record in steps of 2⁻²⁴, from 0 to 2²⁴.

    ``people``: whose each record is, None for nobody's; ``stated``: the weight that it states.
    """
    weights = []
    records_of = Counter(people or ())
    for i in range(len(people or stated or ())):
        weight = 2**WEIGHT_BITS
        if stated is not None:
            fraction = stated[i] / bound
            weight = 0
            if fraction > 0:  # not so for NaN
                weight = math.trunc(min(fraction, 1.0) * 2**WEIGHT_BITS)
        if people is not None:
            person = people[i]
            weight //= max(records_of[person], contribution)
            if person is None:
                weight = 0
        weights.append(weight)
    return weights


def _contribution(enforced: Enforced, record: Record) -> list[int]:
    """The integers that one record adds: nothing, if it lacks a value that is needed."""
    if enforced.complete_records and np.isnan(record).any():
        return [0] * enforced.size
    if isinstance(enforced, EnforcedPartitionedGram):
        return _products(_partitioned_row(enforced, record))
    if isinstance(enforced, EnforcedGram):
        return _products(_row(enforced, record))
    if isinstance(enforced, EnforcedCellSum):
        return _cell_row(enforced, record)
    if isinstance(enforced, EnforcedSum):
        return _sum_row(enforced, record)
    if isinstance(enforced, EnforcedCounts):
        return _counts(enforced, record)
    if isinstance(enforced, EnforcedColumnSum):
        return _column_values(enforced, record)
    assert isinstance(enforced, EnforcedAssignmentMoments)
    return _moments(enforced, record)


# ---- rows: truncated to the grid of 2^-bits, and clipped to Σq² ≤ limit2


def quantize_and_clip(
    row: Sequence[float],
    bits: int,
    limit2: int,
    limit1: int | None = None,
    nonnegative: bool = False,
) -> list[int]:
    """A row on the grid: Σq² ≤ limit2, and Σ|q| ≤ limit1, q ≥ 0 where stated."""
    scaled = [float(value) * 2.0**bits for value in row]
    if nonnegative:
        scaled = [value if math.isnan(value) else max(value, 0.0) for value in scaled]
    if all(map(math.isfinite, scaled)):
        q = [math.trunc(value) for value in scaled]
        if _within(q, limit2, limit1):
            return q
    q = [_clip_number(value, math.isqrt(limit2)) for value in scaled]
    q = _shorten(q, limit2, limit1)
    if _within(q, limit2, limit1):
        return q
    return [0] * len(q)


def _within(q: list[int], limit2: int, limit1: int | None) -> bool:
    return sum(v * v for v in q) <= limit2 and (limit1 is None or sum(map(abs, q)) <= limit1)


def _clip_number(value: float, most: int) -> int:
    """Not a number counts as zero, infinity as the largest number."""
    if math.isnan(value):
        return 0
    return math.trunc(min(max(value, -float(most)), float(most)))


def _shorten(q: list[int], limit2: int, limit1: int | None) -> list[int]:
    """Scale a row down by one float factor; any would do, since the result is tested."""
    square = 0.0
    length = 0.0
    for value in q:
        square += float(value) * float(value)
        length += abs(float(value))
    factor = math.sqrt(limit2 / max(square, float(limit2)))
    if limit1 is not None:
        factor = min(factor, limit1 / max(length, float(limit1)))
    return [math.trunc(value * (factor * _MARGIN)) for value in q]


def _ask(ask: Callable[[], Any], *shape: int) -> list[float]:
    """What a map gives for one record; NaN if it fails, or is no array of numbers of this shape."""
    with suppress(BaseException):
        row = np.asarray(ask())
        if row.dtype.kind in "biuf" and row.shape == shape:
            return [float(value) for value in row.astype(np.float64).ravel()]
    return [math.nan] * math.prod(shape)


# ---- Sum


def _sum_row(enforced: EnforcedSum, record: Record) -> list[int]:
    """The row; then, where records are counted, what a complete record counts as."""
    row = _row(enforced, record)
    if enforced.counts_records:
        row.append(enforced.count_weight)
    return row


def _row(enforced: EnforcedSum | EnforcedGram, record: Record) -> list[int]:
    row = _ask(lambda: enforced.statistic.rows(record), 1, enforced.columns)
    return quantize_and_clip(
        row, enforced.bits, enforced.limit2, enforced.limit1, enforced.nonnegative
    )


def _cell_row(enforced: EnforcedCellSum, record: Record) -> list[int]:
    """The record's own numbers in the places of its cell, then what all cells share."""
    row = [0] * enforced.columns
    length = enforced.own + enforced.shared
    cell = _ask(lambda: np.reshape(enforced.statistic.cell(record), 1), 1)[0]
    if not 0 <= cell < enforced.cells and not -1 < cell < 0:  # −1 < cell < 0 is truncated to 0
        return row
    short = quantize_and_clip(
        _ask(lambda: enforced.statistic.short_rows(record), 1, length),
        enforced.bits,
        enforced.limit2,
        enforced.limit1,
        enforced.nonnegative,
    )
    for part in range(enforced.own):
        row[part * enforced.cells + math.trunc(cell)] = short[part]
    row[enforced.own * enforced.cells :] = short[enforced.own :]
    return row


# ---- ColumnSum


def _column_values(enforced: EnforcedColumnSum, record: Record) -> list[int]:
    """The values, each at most one; then for each column what a record that has it counts as."""
    found = _ask(lambda: enforced.statistic.values(record), 1, enforced.columns)
    scaled = [value * 2.0**COLUMN_BITS for value in found]
    values = [_clip_number(value, 2**COLUMN_BITS) for value in scaled]
    counts = [0 if math.isnan(value) else enforced.count_weight for value in scaled]
    return values + counts


# ---- Gram


def _products(q: list[int]) -> list[int]:
    """The upper triangle of qqᵀ, row by row."""
    return [q[i] * q[j] for i in range(len(q)) for j in range(i, len(q))]


def _partitioned_row(enforced: EnforcedPartitionedGram, record: Record) -> list[int]:
    """Features, then residuals, which may depend on the features; each with a limit of its own."""
    features = quantize_and_clip(
        _ask(lambda: enforced.feature_map.rows(record), 1, enforced.feature_columns),
        enforced.bits,
        enforced.feature_limit2,
    )
    given = np.array([features], dtype=np.float64)
    given.flags.writeable = False
    residuals = quantize_and_clip(
        _ask(lambda: enforced.statistic.residuals(given, record), 1, enforced.residual_columns),
        enforced.bits,
        enforced.residual_limit2,
    )
    return features + residuals


# ---- Counts


def _counts(enforced: EnforcedCounts, record: Record) -> list[int]:
    """At most one in each group: in the record's cell, moved to the nearest one that there is."""
    counted = []
    cells = _ask(lambda: enforced.statistic.cells(record), 1, len(enforced.groups))
    for cell, size in zip(cells, enforced.groups, strict=True):
        group = [0] * size
        if not math.isnan(cell):
            group[math.trunc(min(max(cell, 0), size - 1))] = 1
        counted += group
    return counted


# ---- AssignmentMoments


def _moments(enforced: EnforcedAssignmentMoments, record: Record) -> list[int]:
    """Σ γ_k, Σ γ_k u_k and Σ γ_k u_k u_kᵀ of one record, all in steps of the second moments."""
    d = enforced.columns
    responsibilities, rows = _assigned(enforced, record)
    zeroth = [responsibility * 4**ROW_BITS for responsibility in responsibilities]
    first: list[int] = []
    second: list[list[int]] = []
    for responsibility, row in zip(responsibilities, rows, strict=True):
        u = quantize_and_clip(row, ROW_BITS, 4**ROW_BITS)
        if not responsibility:
            u = [0] * d
        first += [responsibility * v * 2**ROW_BITS for v in u]
        products = {
            "none": [],
            "trace": [sum(v * v for v in u)],
            "diagonal": [v * v for v in u],
            "full": _products(u),
        }[enforced.second_moment]
        second.append([responsibility * product for product in products])
    if enforced.pooled_covariance:
        second = [[sum(numbers) for numbers in zip(*second, strict=True)]]
    return zeroth + first + [number for numbers in second for number in numbers]


def _assigned(
    enforced: EnforcedAssignmentMoments, record: Record
) -> tuple[list[int], list[list[float]]]:
    """Responsibilities in steps of 2^-12, at most one in all, and the row of each part.

    The map may be asked for the rows of all parts, or of those with a responsibility. A record for
    which both ways fail belongs to no part.
    """
    parts, d = enforced.parts, enforced.columns
    for all_parts in (False, True):
        with suppress(BaseException):
            gamma, ask = enforced.statistic.responsibilities(record)
            responsibilities = _responsibilities(_ask(partial(np.asarray, gamma), 1, parts))
            wanted = [k for k in range(parts) if all_parts or responsibilities[k] > 0]
            pairs = None
            if not all_parts:
                pairs = np.array(wanted, dtype=np.intp)
            found = np.asarray(ask(pairs))
            if found.dtype.kind in "biuf" and found.shape == (len(wanted), d):
                rows = [[0.0] * d for _ in range(parts)]
                for k, row in zip(wanted, found.astype(np.float64), strict=True):
                    rows[k] = [float(value) for value in row]
                return responsibilities, rows
    return [0] * parts, [[0.0] * d] * parts


def _responsibilities(gamma: list[float]) -> list[int]:
    """Whole numbers g ≥ 0 with Σg ≤ 2^12; what truncation leaves goes to the largest."""
    one = 2**RESPONSIBILITY_BITS
    if any(map(math.isnan, gamma)):
        return [0] * len(gamma)
    responsibilities = [math.trunc(min(max(value * one, 0.0), float(one))) for value in gamma]
    left = one - sum(responsibilities)
    if left < 0:
        return [0] * len(gamma)
    if sum(responsibilities) > 0:
        responsibilities[responsibilities.index(max(responsibilities))] += left
    return responsibilities
