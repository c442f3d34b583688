"""Adaptive grid: where records are, from two noisy rounds of counts.

Cells of a grid, then leaves of its heavy cells and blocks of its light ones.

Heavy cells are cut: there is more to be seen. Far from them a heap of few records may lie across
several cells, none of which stands out; so light cells are joined to blocks where the first look
has most in them, and the second look has one noise for a block. A block holds as many records as
are expected in it. A priori it is empty, or has a size that is even on a logarithmic scale; and
blocks that touch tend to be alike (an Ising model, by belief propagation: `expected_counts`).
"""

import heapq
import math
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import binary_dilation

from reticent.inference.mixtures.settings import ADAPTIVE_GRID
from reticent.number_kinds import Derived

__all__ = ["AdaptiveGridCounts", "cell_splits", "expected_counts", "merge_light_cells"]

Array = NDArray[np.float64]
Whole = NDArray[np.int64]

_PLACE_VARIANCE: Derived[float] = 1 / 12  # of a place that may be anywhere in its leaf
# of a count, if there are records, in standard deviations of its noise
_SIZES = np.exp(np.linspace(*ADAPTIVE_GRID.log_size_range, ADAPTIVE_GRID.sizes))


def cell_splits(counts: Array, sd: float, dimension: int) -> tuple[int, ...]:
    """Into how many leaves along each column, a power of two, cells with noisy counts are cut.

    ``sd``: noise of a leaf's count.
    """
    total = float(np.maximum(counts, 0.0).sum())
    fine = max(ADAPTIVE_GRID.leaf_size, total / (ADAPTIVE_GRID.max_leaves * sd))
    along = np.maximum(counts / (fine * sd), 1.0) ** (1 / dimension)
    return tuple(
        (
            2 ** np.minimum(np.floor(np.log2(along)), np.log2(ADAPTIVE_GRID.max_split)).astype(int)
        ).tolist()
    )


def merge_light_cells(
    counts: Array, cut: tuple[int, ...], dimension: int, n: float, clusters: int
) -> tuple[int, ...]:
    """To which block each light cell (not cut) is joined, and −1 for the others.

    Windows of the grid, the clearest first. Cells beside a heavy one stay alone: what they hold is
    near enough to it for its place to matter. There must be several places for each cluster: with
    many clusters blocks are narrow, and cells stay alone that seem to hold too many of the ``n``
    records.
    """
    bins = round(len(counts) ** (1 / dimension))
    most = n / (ADAPTIVE_GRID.min_blocks_per_cluster * clusters)
    light = np.reshape(cut, (bins,) * dimension) == 1
    grid = counts.reshape((bins,) * dimension)
    free = light & ~binary_dilation(~light, np.ones((3,) * dimension))
    block = np.full(grid.shape, -1)
    blocks = 0

    def clear(window: tuple[slice, ...]) -> float:
        members = grid[window][free[window]]
        total = float(members.sum())
        fits = len(members) == 1 or (len(members) > 1 and total <= most)
        if fits:
            return total / math.sqrt(len(members))
        return -math.inf

    queue = []
    widest = bins // max(clusters, ADAPTIVE_GRID.min_blocks_across)
    for side in range(1, max(min(widest, ADAPTIVE_GRID.max_block_side), 1) + 1):
        for corner in product(range(bins - side + 1), repeat=dimension):
            window = tuple(slice(start, start + side) for start in corner)
            if free[window].any():
                queue.append((-clear(window), side, corner))
    heapq.heapify(queue)
    while queue:
        priority, side, corner = heapq.heappop(queue)
        window = tuple(slice(start, start + side) for start in corner)
        current = -clear(window)
        if current > priority:  # some of its cells are taken: it waits for its turn
            if current < math.inf:
                heapq.heappush(queue, (current, side, corner))
            continue
        if current < math.inf:
            block[window][free[window]] = blocks
            free[window] = False
            blocks += 1
    alone = light & (block < 0)
    block[alone] = blocks + np.arange(alone.sum())
    return tuple(block.ravel().tolist())


def expected_counts(sizes: Array, edges: Whole, strength: Array) -> Array:
    """Expected records of each block, in standard deviations of its noise; (blocks,).

    ``sizes``: its noisy count in these. ``edges``: pairs of blocks that touch; ``strength``: how
    strongly each pair tends to be alike. Probabilities that there are records come from belief
    propagation with damping.
    """
    log_ratio = np.clip(sizes, ADAPTIVE_GRID.min_size, _SIZES[-1])[:, None] * _SIZES - _SIZES**2 / 2
    top = log_ratio.max(axis=1)
    likelihood = np.exp(log_ratio - top[:, None])
    own_log_odds = np.clip(
        math.log(ADAPTIVE_GRID.prior_odds) + top + np.log(likelihood.mean(axis=1)),
        -ADAPTIVE_GRID.max_log_odds,
        ADAPTIVE_GRID.max_log_odds,
    )
    start, end = np.concatenate([edges, edges[:, ::-1]]).T
    back = np.roll(np.arange(len(start)), len(edges))  # the same edge the other way
    coupling = np.tanh(np.tile(strength, 2) * ADAPTIVE_GRID.coupling / 4)
    messages = np.zeros(len(start))
    for _ in range(ADAPTIVE_GRID.propagation_rounds):
        odds = own_log_odds + np.bincount(end, messages, len(own_log_odds))
        messages = messages / 2 + np.arctanh(coupling * np.tanh((odds[start] - messages[back]) / 2))
    odds = own_log_odds + np.bincount(end, messages, len(own_log_odds))
    mean_size = (likelihood * _SIZES).sum(axis=1) / likelihood.sum(axis=1)
    return np.where(sizes > ADAPTIVE_GRID.certain_size, sizes, mean_size / (1 + np.exp(-odds)))


def touching_cells(node: Whole, side: Array) -> tuple[Whole, Array]:
    """Pairs of numbers that stand beside each other in a grid.

    And which fraction of the longer one's side they have in common.
    """
    pairs = [np.zeros((0, 2), dtype=np.int64)]
    for axis in range(node.ndim):
        along = np.moveaxis(node, axis, 0)
        pairs.append(np.stack([along[1:].ravel(), along[:-1].ravel()], axis=1))
    ordered = np.sort(np.concatenate(pairs), axis=1)
    edges, faces = np.unique(ordered[ordered[:, 0] != ordered[:, 1]], axis=0, return_counts=True)
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
        heavy = self._heavy()
        light = self._light()
        return tuple(np.concatenate(parts) for parts in zip(heavy, light, strict=True))  # type: ignore[return-value]

    def _heavy(self) -> tuple[Array, Array, Array]:
        """Leaves that stand out from the noise, and of each cell the rest, if that stands out."""
        cells = len(self.coarse)
        joined = int(self.block.max()) + 1
        cell = self.cell[: len(self.cell) - joined]
        counts = self.counts[: len(self.cell) - joined]
        leaves = np.bincount(cell, minlength=cells)
        precisions = 1 / self.coarse_sd**2, 1 / (np.maximum(leaves, 1) * self.counts_sd**2)
        sd = 1 / np.sqrt(precisions[0] + precisions[1])
        total = (
            self.coarse * precisions[0] + np.bincount(cell, counts, cells) * precisions[1]
        ) * sd**2
        threshold = max(float(np.sqrt(2 * np.log(cells))), ADAPTIVE_GRID.min_significance)
        stands = (leaves > 0) & (total > threshold * sd)
        kept = stands[cell] & (counts > threshold * self.counts_sd)
        middle = self.corner[: len(cell)] + self.width[: len(cell), None] / 2
        not_kept = ~kept
        remaining = total - np.bincount(cell[kept], counts[kept], cells)
        others = np.bincount(cell[not_kept], minlength=cells)
        remaining_sd = np.minimum(
            np.sqrt(others) * self.counts_sd, np.sqrt(sd**2 + (leaves - others) * self.counts_sd**2)
        )
        remaining_stands = (others > 0) & stands & (remaining > threshold * remaining_sd)
        mean = [np.bincount(cell[not_kept], column, cells) for column in middle[not_kept].T]
        remaining_centres = (
            np.stack(mean, axis=1)[remaining_stands]
            / np.maximum(others[remaining_stands], 1)[:, None]
        )
        places = np.concatenate(
            [self._mean_places(slice(len(cell)), counts)[kept], remaining_centres]
        )
        return (
            places,
            np.concatenate([counts[kept], remaining[remaining_stands]]),
            np.zeros(len(places)),
        )

    def _light(self) -> tuple[Array, Array, Array]:
        """Blocks, with as many records as are expected in them."""
        joined = int(self.block.max()) + 1
        first = len(self.cell) - joined
        member = self.block >= 0
        size = np.bincount(self.block[member], minlength=joined)
        precisions = 1 / (np.maximum(size, 1) * self.coarse_sd**2), 1 / self.counts_sd**2
        sd = 1 / np.sqrt(precisions[0] + precisions[1])
        coarse = np.bincount(self.block[member], self.coarse[member], joined)
        total = (coarse * precisions[0] + self.counts[first:] * precisions[1]) * sd**2
        d = self.corner.shape[1]
        bins = round(len(self.coarse) ** (1 / d))
        node = np.where(member, self.block, joined + np.cumsum(~member) - 1).reshape((bins,) * d)
        heavy = int((~member).sum())
        node = np.pad(node, 1, constant_values=joined + heavy)  # nobody is outside of the box
        side = np.concatenate([np.rint(self.width[first:] * bins / 2), np.ones(heavy + 1)])
        sizes = np.concatenate(
            [total / sd, np.full(heavy, _SIZES[-1]), [ADAPTIVE_GRID.min_size]]
        )  # there are records in heavy cells
        weight = expected_counts(sizes, *touching_cells(node, side))[:joined] * sd
        variance = (
            self.width[first:] ** 2 * d / 24
        )  # half of what even places have: a heap is narrower
        return self._mean_places(slice(first, None), total), weight, variance

    def _mean_places(self, part: slice, counts: Array) -> Array:
        """The mean place in each leaf of a part of them, believed as far as its noise allows."""
        many = np.maximum(counts, self.counts_sd)
        trust = _PLACE_VARIANCE / (_PLACE_VARIANCE + (self.places_sd / many) ** 2)
        place = 0.5 + np.clip(self.places[part] / many[:, None] - 0.5, -0.5, 0.5) * trust[:, None]
        return self.corner[part] + place * self.width[part, None]
