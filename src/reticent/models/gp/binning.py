"""Bins: a grid over the box, and regions made of its cells. Proof: binned_regressor.md.

A record in region b with its output scaled to u in [−1, 1] is divided between two half-counts of
its region, (1+u)/2 and (1−u)/2: their sums' sum is the region's count, their difference its sum of
outputs. Both halves are at least zero and add up to one, so a replaced record moves all half-counts
together by √2 (L2) or 2 (L1): as far as a count alone. What is left of the row's length goes to
Σ(1−u²)/√2, which says how much outputs spread, free of charge.
"""

from collections.abc import Sequence
from math import inf, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.errors import BadInput
from reticent.inference.binned.posterior import Regions
from reticent.inference.kernels.integral import Boxes
from reticent.models.gp.settings import BINNED
from reticent.privacy.bounds import Bounds
from reticent.privacy.columns.base import Kind
from reticent.privacy.row_maps.binned_sums import Grid, LabelSums
from reticent.validation import check_integer, is_integer

__all__ = [
    "check_volumes",
    "given_regions",
    "label_sums",
    "make_grid",
    "region_boxes",
    "region_neighbours",
]

Array = NDArray[np.float64]


def make_grid(bins: Any, regions: Any, bounds: Bounds) -> Grid:
    """Read ``bins`` and ``regions``, or say what is wrong with them.

    An input with levels has one bin for each of them, whatever number is given for all inputs.
    """
    d = len(bounds.x)
    if isinstance(bins, np.ndarray):
        bins = bins.tolist()
    if isinstance(bins, (str, bytes)) or not isinstance(bins, Sequence):
        bins = [bins if kind.levels is None else None for kind in bounds.x_kinds]
    elif d == 1 and len(bins) > 1:
        bins = [bins]
    if len(bins) != d:
        raise BadInput(
            f"bins must be a whole number, or one number (or list of edges) for each of {d} "
            f"inputs, not {bins!r}.",
            parameter="bins",
        )
    edges = tuple(
        _edges(of_input, *kind.range) if kind.levels is None else _level_edges(of_input, kind)
        for of_input, kind in zip(bins, bounds.x_kinds, strict=True)
    )
    cells = prod(len(of_input) - 1 for of_input in edges)
    if cells > BINNED.max_cells:
        raise BadInput(
            f"So many bins make a grid of {cells:,} cells; {BINNED.max_cells:,} is the most. Take "
            "fewer."
        )
    grid = Grid(edges, _region_numbers(regions, tuple(len(of_input) - 1 for of_input in edges)))
    if grid.size > BINNED.max_regions:
        raise BadInput(
            f"There would be {grid.size:,} bins; {BINNED.max_regions:,} is the most, since a "
            "Gaussian process takes the cube of time. Take fewer bins, or join cells by regions."
        )
    return grid


def check_volumes(grid: Grid) -> None:
    """Refuse a grid whose volumes, or the squares of their ratios to counts, are no numbers."""
    widths = [np.diff(of_input) for of_input in grid.edges]
    least = BINNED.smallest_volume
    smallest = prod(float(width.min()) for width in widths)
    largest = prod(float(width.sum()) for width in widths)
    if not (smallest > least and largest < 1 / least):
        raise BadInput(
            f"The volumes of the box and of its bins must lie between {least:g} and "
            f"{1 / least:g}: give the inputs in other units."
        )


def _level_edges(bins: Any, kind: Kind) -> tuple[float, ...]:
    """Edges between the levels of an input: one bin for each."""
    levels = len(kind.levels or ())
    if bins is not None and not (is_integer(bins, -inf) and int(bins) == levels):
        raise BadInput(
            f"An input with {levels} levels has {levels} bins, one for each: give None for it "
            "among the bins.",
            parameter="bins",
        )
    return tuple((np.arange(levels + 1) - 0.5).tolist())


def _edges(bins: Any, low: float, high: float) -> tuple[float, ...]:
    if is_integer(bins, -inf):
        check_integer("bins", bins, 1, BINNED.max_cells)
        return tuple(np.linspace(low, high, int(bins) + 1).tolist())
    try:
        edges = np.array([float(edge) for edge in bins])
    except (OverflowError, TypeError, ValueError):
        raise BadInput(
            f"bins must be whole numbers or lists of edges, not {bins!r}.", parameter="bins"
        ) from None
    if len(edges) < 2 or not (np.diff(edges) > 0).all() or edges[0] != low or edges[-1] != high:
        raise BadInput(
            f"Edges of bins must rise from one bound to the other, here from {low:g} to {high:g}."
        )
    if np.diff(edges).min() < BINNED.narrowest_bin * (high - low):
        raise BadInput(
            f"Edges of bins are too close together: give bins that have {BINNED.narrowest_bin:g} of"
            " the range or more."
        )
    return tuple(edges.tolist())


def _region_numbers(regions: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    if regions is None:
        return ()
    table = np.asarray(regions)
    if table.shape != shape or table.dtype.kind not in "iub":
        raise BadInput(
            f"regions must be an array of whole numbers, shaped like the grid, {shape}: the region "
            "of each cell, −1 for none."
        )
    if table.dtype.kind == "b":  # a mask: cells of their own where it is true
        table = np.where(table, np.cumsum(table).reshape(shape) - 1, -1)
    numbers = np.unique(table[table >= 0])
    if not len(numbers) or (numbers != np.arange(len(numbers))).any():
        raise BadInput(
            "Regions are numbered 0, 1, 2, … without gaps, and there is at "
            "least one; −1 is for cells in none."
        )
    return tuple(int(v) for v in table.ravel())


def given_regions(regions: Any, dimension: int) -> Regions:
    """Read regions as lists of boxes as lists of (low, high)."""
    try:
        boxes = [np.array(region, dtype=np.float64).reshape(-1, dimension, 2) for region in regions]
        stacked = np.concatenate(boxes)
        fine = bool(
            len(stacked)
            and np.isfinite(stacked).all()
            and (stacked[:, :, 0] < stacked[:, :, 1]).all()
        )
    except (TypeError, ValueError):
        fine = False
    if not fine or not all(map(len, boxes)):
        raise BadInput(
            "Give regions as a list, each a list of boxes, each a list of (low, high) with low < "
            "high for every input: [[[(0, 18)]]] is one region of one box of one input."
        )
    of = np.repeat(np.arange(len(boxes)), [len(region) for region in boxes])
    return Regions(Boxes(stacked[:, :, 0].copy(), stacked[:, :, 1].copy()), of, len(boxes))


def label_sums(
    grid: Grid, bounds: Bounds, spread: bool, inputs: Array, weights: Array | None = None
) -> LabelSums:
    """The statistic for public inputs: how many of them are in which region is part of it.

    With ``weights`` (n,), how much they weigh.
    """
    region = grid.of(inputs, bounds)
    inside = region >= 0
    numbers = region[inside].astype(np.int64)
    if weights is None:
        counts = np.bincount(numbers, minlength=grid.size)
    else:
        counts = np.bincount(numbers, weights[inside], grid.size)
    return LabelSums(grid, bounds, spread, tuple(counts.tolist()))


def region_boxes(grid: Grid) -> tuple[Boxes, NDArray[np.int64]]:
    """Boxes that the regions consist of, and the region of each.

    Neighbours along the last input are joined.
    """
    lows = np.stack(
        np.meshgrid(*(edges[:-1] for edges in grid.edges), indexing="ij"), axis=-1
    ).reshape(-1, len(grid.edges))
    highs = np.stack(
        np.meshgrid(*(edges[1:] for edges in grid.edges), indexing="ij"), axis=-1
    ).reshape(lows.shape)
    numbers = grid.region_numbers.reshape(-1, grid.shape[-1])
    starts = np.ones(numbers.shape, dtype=bool)
    starts[:, 1:] = numbers[:, 1:] != numbers[:, :-1]
    ends = np.roll(starts, -1, axis=1)
    ends[:, -1] = True
    region = grid.region_numbers[starts.ravel()]
    kept = region >= 0
    return Boxes(lows[starts.ravel()][kept], highs[ends.ravel()][kept]), region[kept]


def region_neighbours(grid: Grid, bounds: Bounds) -> NDArray[np.int64]:
    """Pairs of regions that have cells side by side, (pairs, 2); not along levels.

    >>> from reticent import Bounds
    >>> region_neighbours(make_grid(3, None, Bounds(x=(0, 1))), Bounds(x=(0, 1))).tolist()
    [[0, 1], [1, 2]]
    """
    numbers = grid.region_numbers.reshape(grid.shape)
    pairs = [np.zeros((0, 2), dtype=np.int64)]
    for axis, kind in enumerate(bounds.x_kinds):
        if kind.levels is None:
            along = np.moveaxis(numbers, axis, 0)
            pairs.append(np.column_stack([along[:-1].ravel(), along[1:].ravel()]))
    found = np.concatenate(pairs)
    apart = (found[:, 0] != found[:, 1]) & (found >= 0).all(axis=1)
    return found[apart]
