"""Slot scores: scores of records that are the same bits whatever other records there are.

Proof: private_search.md. Predictions contain matrix products, whose last bits depend on the place
of a row in its block and on the length of the block, though on no other row's values. Where a
neighbour has more or fewer records, the rows behind them move, and with them the last bits of other
people's scores. Here each record is scored in a block of one length, at a place that is a function
of the record itself.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from reticent.models.selection.settings import SEARCH

__all__ = ["SlotScores"]

Array = NDArray[np.float64]
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # odd: multiplying by it loses nothing


class SlotScores:
    """Scores (n,) of scaled records (n, d), by ``scores_of_block`` at places of their own.

    ``filler`` (1, d): a public record for places that nobody takes. Records of different weights
    are asked for apart, and some several times: scores are remembered, up to a limit.
    """

    def __init__(self, scores_of_block: Callable[[Array], Array], filler: Array) -> None:
        self._scores_of_block = scores_of_block
        self._filler = filler
        self._known: dict[bytes, float] = {}

    def __call__(self, records: Array) -> Array:
        """Scores of some records, in their order."""
        rows = np.ascontiguousarray(records)
        keys = [row.tobytes() for row in rows]
        new = {key: i for i, key in enumerate(keys) if key not in self._known}
        found = dict(zip(new, self._scored(rows[list(new.values())]).tolist(), strict=True))
        scores = [found[key] if key in found else self._known[key] for key in keys]
        if len(self._known) + len(found) <= SEARCH.remembered_scores:
            self._known.update(found)
        return np.array(scores, dtype=np.float64)

    def _scored(self, rows: Array) -> Array:
        """Scores of different records, (n, d)."""
        size = SEARCH.score_block
        slots = _slots(rows, size)
        order = np.argsort(slots, kind="stable")
        taken = np.bincount(slots, minlength=size)
        first = np.cumsum(taken) - taken
        block = np.empty(len(rows), dtype=np.intp)
        block[order] = np.arange(len(rows)) - first[slots[order]]
        table = np.repeat(self._filler, size * int(taken.max()), axis=0)
        places = block * size + slots
        table[places] = rows
        blocks = [self._scores_of_block(table[i : i + size]) for i in range(0, len(table), size)]
        return np.concatenate([np.zeros(0), *blocks])[places]


def _slots(rows: Array, size: int) -> NDArray[np.intp]:
    """A place below ``size`` for each row (n, d), by its bits."""
    mixed = np.zeros(len(rows), dtype=np.uint64)
    for column in rows.view(np.uint64).T:
        mixed = (mixed ^ column) * _MULTIPLIER
        mixed ^= mixed >> np.uint64(32)
    return (mixed % np.uint64(size)).astype(np.intp)
