"""Counts and sums by group: what a table by public keys is made of.

The keys of a record name one cell of a table. To it the record adds, for each value that is
averaged, v ∈ [−1, 1] after scaling, the three numbers

    (1 + v)/2, (1 − v)/2, 0        if it has the value
    0, 0, 1                        if it lacks it

and for each value whose quantiles are wanted a one in the bin of the value, or in a last bin if it
lacks it. None is negative, the squares of each part add up to at most 1 and its numbers to 1, and
how many records a cell has is the sum of any part. Where no part says it well (no value is
averaged), the record adds a number of its own for it. With ``spread``, what is left of the length
of a part, (1 − v²)/√2, is added up over all cells: it tells how much values vary. Proof:
models/descriptive/table.md.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import prod, sqrt

import numpy as np
from numpy.typing import NDArray

from reticent.privacy.bounds import Bounds
from reticent.privacy.row_maps.column_moments import stretch
from reticent.privacy.statistics.cell_sum import CellSum

__all__ = ["GroupSums"]

Array = NDArray[np.float64]
_HALF = sqrt(0.5)


@dataclass(frozen=True)
class GroupSums(CellSum):
    """For each cell of a table by keys: counts, sums of halves, and counts in bins of values.

    Columns are given by their place among the inputs of ``bounds``; edges are in codes.
    """

    bounds: Bounds
    keys: tuple[int, ...]
    key_edges: tuple[tuple[float, ...], ...]
    averaged: tuple[int, ...]
    binned: tuple[int, ...]
    bin_edges: tuple[tuple[float, ...], ...]
    count_weight: float  # of the number that a record adds for itself; 0 for none
    spread: bool  # not for Laplace noise: absolute values would add up to more

    complete_records = False
    nonnegative = True

    shared = property(lambda self: len(self.averaged) * self.spread)
    cells = property(lambda self: prod(self.shape))
    own = property(
        lambda self: (
            int(self.count_weight > 0) + 3 * len(self.averaged) + sum(map(len, self.bin_edges))
        )
    )
    norm2 = property(lambda self: self._parts + Fraction(self.count_weight) ** 2)
    norm1 = property(
        lambda self: None if self.spread else self._parts + Fraction(self.count_weight)
    )

    @property
    def shape(self) -> tuple[int, ...]:
        """How many groups each key makes."""
        return tuple(len(edges) - 1 for edges in self.key_edges)

    @property
    def _parts(self) -> int:
        return len(self.averaged) + len(self.binned)

    def cell(self, records: Array) -> Array:
        """The cell, the last key running fastest; −1 for a record that lacks a key."""
        flat = np.zeros(len(records))
        lacks = np.zeros(len(records), dtype=bool)
        for place, edges in zip(self.keys, self._scaled_key_edges, strict=True):
            u = records[:, place]
            lacks |= np.isnan(u)
            flat = flat * (len(edges) - 1) + _bins(u, edges)
        return np.where(lacks, -1.0, flat)

    def short_rows(self, records: Array) -> Array:
        """What a record adds to its cell: the parts one after the other; then the spreads."""
        parts = []
        spreads = []
        if self.count_weight > 0:
            parts.append(np.full((len(records), 1), self.count_weight))
        for place in self.averaged:
            u = records[:, place] * stretch(self.bounds.x_kinds[place])
            lacks = np.isnan(u)
            v = np.clip(np.where(lacks, 0.0, u), -1.0, 1.0)
            halves = np.column_stack([(1.0 + v) * 0.5, (1.0 - v) * 0.5])
            parts.append(np.where(lacks[:, None], 0.0, halves))
            parts.append(lacks[:, None].astype(np.float64))
            if self.spread:
                spreads.append(np.where(lacks, 0.0, (1.0 - v * v) * _HALF)[:, None])
        for place, edges in zip(self.binned, self._scaled_bin_edges, strict=True):
            u = records[:, place]
            bins = np.where(np.isnan(u), len(edges) - 1.0, _bins(u, edges))
            parts.append((bins[:, None] == np.arange(len(edges))).astype(np.float64))
        return np.hstack([*parts, *spreads])

    @cached_property
    def _scaled_key_edges(self) -> list[Array]:
        return self._scaled(self.keys, self.key_edges)

    @cached_property
    def _scaled_bin_edges(self) -> list[Array]:
        return self._scaled(self.binned, self.bin_edges)

    def _scaled(self, places: tuple[int, ...], edges: tuple[tuple[float, ...], ...]) -> list[Array]:
        """Edges scaled exactly as records are: a value on an edge stays on it."""
        scaled = []
        for place, own in zip(places, edges, strict=True):
            table = np.zeros((len(own), len(self.bounds.x) + len(self.bounds.y)))
            table[:, place] = own
            scaled.append(self.bounds.scale_unclipped(table)[:, place])
        return scaled


def _bins(u: Array, edges: Array) -> Array:
    """The bin [edge, next edge) of each value, the last one closed; any for NaN."""
    place = np.searchsorted(edges, u, side="right") - 1.0
    return np.minimum(np.maximum(place, 0.0), len(edges) - 2.0)
