"""Adaptive grid: where records are, from two noisy rounds of counts.

Cells of a grid, then leaves of its heavy cells and blocks of its light ones.

Heavy cells are cut: there is more to be seen. Far from them a heap of few records may lie across
several cells, none of which stands out; so light cells are joined to blocks where the first look
has most in them, and the second look has one noise for a block. A block holds as many records as
are expected in it. A priori it is empty, or has a size that is even on a logarithmic scale; and
blocks that touch tend to be alike (an Ising model, by belief propagation: `expected`).
"""

import heapq
import math
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import binary_dilation

__all__ = ["AdaptiveGridCounts", "cell_splits", "expected_counts", "merge_light_cells"]

Array = NDArray[np.float64]
Whole = NDArray[np.int64]
# a leaf's expected records over the noise of its count; limits
_FINE = 6.0
_MOST_SPLIT = 32
_MOST_LEAVES = 4096.0
# a block of K clusters spans at most a fifth and a K-th of a column, and so many cells
_WIDEST = 5
_MOST_SIDE = 3
_PLACES = 5  # the least number of blocks that hold as many records as a cluster has on average
_PLACE2 = 1 / 12  # variance of a place that may be anywhere in its leaf


def cell_splits(counts: Array, sd: float, dimension: int) -> tuple[int, ...]:
    """Into how many leaves along each column, a power of two, cells with noisy counts are cut.

    ``sd``: noise of a leaf's count.
    """
    fine = max(_FINE, float(np.maximum(counts, 0.0).sum()) / (_MOST_LEAVES * sd))
    along = np.maximum(counts / (fine * sd), 1.0) ** (1 / dimension)
    return tuple(
        (2 ** np.minimum(np.floor(np.log2(along)), np.log2(_MOST_SPLIT)).astype(int)).tolist()
    )


def merge_light_cells(
    counts: Array, cut: tuple[int, ...], dimension: int, n: int, clusters: int
) -> tuple[int, ...]:
    """To which block each light cell (not cut) is joined, and −1 for the others.

    Windows of the grid, the clearest first. Cells beside a heavy one stay alone: what they hold is
    near enough to it for its place to matter. There must be several places for each cluster: with
    many clusters blocks are narrow, and cells stay alone that seem to hold too many of the ``n``
    records.
    """
    bins = round(len(counts) ** (1 / dimension))
    most = n / (_PLACES * clusters)
    light = np.reshape(cut, (bins,) * dimension) == 1
    grid = counts.reshape((bins,) * dimension)
    free = light & ~binary_dilation(~light, np.ones((3,) * dimension))
    found = np.full(grid.shape, -1)
    number = 0

    def clear(window: tuple[slice, ...]) -> float:
        own = grid[window][free[window]]
        total = float(own.sum())
        fits = len(own) == 1 or (len(own) > 1 and total <= most)
        if fits:
            return total / math.sqrt(len(own))
        return -math.inf

    queue = []
    for side in range(1, max(min(bins // max(clusters, _WIDEST), _MOST_SIDE), 1) + 1):
        for corner in product(range(bins - side + 1), repeat=dimension):
            window = tuple(slice(start, start + side) for start in corner)
            if free[window].any():
                queue.append((-clear(window), side, corner))
    heapq.heapify(queue)
    while queue:
        before, side, corner = heapq.heappop(queue)
        window = tuple(slice(start, start + side) for start in corner)
        now = -clear(window)
        if now > before:  # some of its cells are taken: it waits for its turn
            if now < math.inf:
                heapq.heappush(queue, (now, side, corner))
            continue
        if now < math.inf:
            found[window][free[window]] = number
            free[window] = False
            number += 1
    alone = light & (found < 0)
    found[alone] = number + np.arange(alone.sum())
    return tuple(found.ravel().tolist())


# a priori that there are records; of two that touch, that they are alike: logarithm of the odds
_ODDS = 0.2
_ALIKE = 1.2
_SIZES = np.exp(
    np.linspace(math.log(0.25), math.log(40.0), 64)
)  # of what there may be, in standard deviations
_SURE = 20.0  # standard deviations from which a count is taken as it is
_ROUNDS = 40


def expected_counts(clear: Array, edges: Whole, strength: Array) -> Array:
    """How many records are expected in each block, in standard deviations of its noise; ``clear``.

    Its noisy count in these.

    ``edges``: pairs of blocks that touch, and how strongly each pair tends to be alike. Chances
    that there is anything come from belief propagation with damping.
    """
    fit = np.clip(clear, -30.0, _SIZES[-1])[:, None] * _SIZES - _SIZES**2 / 2
    top = fit.max(axis=1)
    weight = np.exp(fit - top[:, None])
    own = np.clip(math.log(_ODDS) + top + np.log(weight.mean(axis=1)), -40.0, 40.0)
    start, end = np.concatenate([edges, edges[:, ::-1]]).T
    back = np.roll(np.arange(len(start)), len(edges))  # the same edge the other way
    pull = np.tanh(np.tile(strength, 2) * _ALIKE / 4)
    said = np.zeros(len(start))
    for _ in range(_ROUNDS):
        odds = own + np.bincount(end, said, len(own))
        said = said / 2 + np.arctanh(pull * np.tanh((odds[start] - said[back]) / 2))
    odds = own + np.bincount(end, said, len(own))
    size = (weight * _SIZES).sum(axis=1) / weight.sum(axis=1)
    return np.where(clear > _SURE, clear, size / (1 + np.exp(-odds)))


def touching_cells(node: Whole, side: Array) -> tuple[Whole, Array]:
    """Pairs of numbers that stand beside each other in a grid.

    And which fraction of the longer one's side they have in common.
    """
    pairs = [np.zeros((0, 2), dtype=np.int64)]
    for axis in range(node.ndim):
        along = np.moveaxis(node, axis, 0)
        pairs.append(np.stack([along[1:].ravel(), along[:-1].ravel()], axis=1))
    found = np.sort(np.concatenate(pairs), axis=1)
    edges, faces = np.unique(found[found[:, 0] != found[:, 1]], axis=0, return_counts=True)
    return edges, faces / side[edges].max(axis=1) ** (node.ndim - 1)


@dataclass(frozen=True)
class AdaptiveGridCounts:
    """Noisy counts of cells, and of their leaves and blocks with the sums of places in them."""

    coarse: Array  # counts of cells
    coarse_sd: float
    block: Whole  # of each cell, or −1
    cell: Whole  # of each leaf; blocks come last
    corner: Array
    width: Array
    counts: Array  # of leaves
    places: Array  # Σv of each leaf, v in [0, 1]ᵈ
    counts_sd: float
    places_sd: float

    def points(self) -> tuple[Array, Array, Array]:
        """Points with weights, and how far apart the records of each may be.

        Squares of standard deviations, over all columns.
        """
        some = self._heavy()
        many = self._light()
        return tuple(np.concatenate(both) for both in zip(some, many, strict=True))  # type: ignore[return-value]

    def _heavy(self) -> tuple[Array, Array, Array]:
        """Leaves that stand out from the noise, and of each cell the rest, if that stands out."""
        cells = len(self.coarse)
        joined = int(self.block.max()) + 1
        cell = self.cell[: len(self.cell) - joined]
        counts = self.counts[: len(self.cell) - joined]
        own = np.bincount(cell, minlength=cells)
        both = 1 / self.coarse_sd**2, 1 / (np.maximum(own, 1) * self.counts_sd**2)
        sd = 1 / np.sqrt(both[0] + both[1])
        total = (self.coarse * both[0] + np.bincount(cell, counts, cells) * both[1]) * sd**2
        sure = max(float(np.sqrt(2 * np.log(cells))), 2.0)
        stands = (own > 0) & (total > sure * sd)
        kept = stands[cell] & (counts > sure * self.counts_sd)
        middle = self.corner[: len(cell)] + self.width[: len(cell), None] / 2
        dim = ~kept
        left = total - np.bincount(cell[kept], counts[kept], cells)
        others = np.bincount(cell[dim], minlength=cells)
        sd_left = np.minimum(
            np.sqrt(others) * self.counts_sd, np.sqrt(sd**2 + (own - others) * self.counts_sd**2)
        )
        found = (others > 0) & stands & (left > sure * sd_left)
        mean = [np.bincount(cell[dim], column, cells) for column in middle[dim].T]
        rest = np.stack(mean, axis=1)[found] / np.maximum(others[found], 1)[:, None]
        where = np.concatenate([self._where(slice(len(cell)), counts)[kept], rest])
        return where, np.concatenate([counts[kept], left[found]]), np.zeros(len(where))

    def _light(self) -> tuple[Array, Array, Array]:
        """Blocks, with as many records as are expected in them."""
        joined = int(self.block.max()) + 1
        first = len(self.cell) - joined
        member = self.block >= 0
        size = np.bincount(self.block[member], minlength=joined)
        both = 1 / (np.maximum(size, 1) * self.coarse_sd**2), 1 / self.counts_sd**2
        sd = 1 / np.sqrt(both[0] + both[1])
        seen = np.bincount(self.block[member], self.coarse[member], joined)
        total = (seen * both[0] + self.counts[first:] * both[1]) * sd**2
        d = self.corner.shape[1]
        bins = round(len(self.coarse) ** (1 / d))
        node = np.where(member, self.block, joined + np.cumsum(~member) - 1).reshape((bins,) * d)
        heavy = int((~member).sum())
        node = np.pad(node, 1, constant_values=joined + heavy)  # nobody is outside of the box
        side = np.concatenate([np.rint(self.width[first:] * bins / 2), np.ones(heavy + 1)])
        clear = np.concatenate(
            [total / sd, np.full(heavy, _SIZES[-1]), [-30.0]]
        )  # there are records in heavy cells
        weight = expected_counts(clear, *touching_cells(node, side))[:joined] * sd
        wide = self.width[first:] ** 2 * d / 24  # half of what even places have: a heap is narrower
        return self._where(slice(first, None), total), weight, wide

    def _where(self, part: slice, counts: Array) -> Array:
        """The mean place in each leaf of a part of them, believed as far as its noise allows."""
        many = np.maximum(counts, self.counts_sd)
        trust = _PLACE2 / (_PLACE2 + (self.places_sd / many) ** 2)
        place = 0.5 + np.clip(self.places[part] / many[:, None] - 0.5, -0.5, 0.5) * trust[:, None]
        return self.corner[part] + place * self.width[part, None]
