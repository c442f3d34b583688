"""Chances that no record has a part in: how many runs a search makes, which candidate a run tries, who is in which half.

All are drawn exactly, from the same random bits as noise, and before a record is read. Proof: selection.md, 1 and 4.
"""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from reticent.privacy.events import Selection

if TYPE_CHECKING:
    from reticent.privacy.noise import Bits

__all__ = ["number_of_runs", "split", "uniform"]

_BATCH = 1024


def number_of_runs(event: Selection, bits: "Bits") -> int:
    """Draw K from the law that the event states."""
    while True:
        runs = _geometric(event.stop, bits)
        if event.shape:
            return min(runs, event.most) if event.most else runs
        if uniform(runs, bits) == 0:  # (1−γ)^(k−1) γ · 1/k: the logarithmic law, but for a factor
            return runs


def _geometric(stop: float, bits: "Bits") -> int:
    """Number of the first success: 64 random bits, read as a number, are below γ·2⁶⁴, which is whole."""
    below, tried = int(stop * 2**40) << 24, 0
    if below == 1 << 64:
        return 1
    while True:
        hits = np.flatnonzero(bits.words(_BATCH) < np.uint64(below))
        if len(hits):
            return tried + int(hits[0]) + 1
        tried += _BATCH


def uniform(n: int, bits: "Bits") -> int:
    """Draw a whole number from 0 to n − 1 < 2⁶³: mask and reject."""
    mask = (1 << (n - 1).bit_length()) - 1
    while True:
        value = int(bits.words(1)[0]) & mask
        if value < n:
            return value


def split(n: int, validation: int, bits: "Bits") -> NDArray[np.bool_]:
    """Choose ``validation`` of n places at random: True there."""
    chosen = np.zeros(n, dtype=bool)
    chosen[np.argsort(bits.words(n), kind="stable")[:validation]] = True
    return chosen
