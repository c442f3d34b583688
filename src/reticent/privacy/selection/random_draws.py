"""Data-independent randomness of a search.

The number of runs, the candidate of each run, and the split into training and validation records.
All are drawn exactly, from the same random bits as noise, and before a record is read. Proof:
selection.md, 1 and 4.
"""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from reticent.privacy.accounting.events import Selection

if TYPE_CHECKING:
    from reticent.privacy.random_bits import Bits

__all__ = ["coins", "number_of_runs", "split", "uniform"]

_BATCH = 1024  # words of random bits that are read at once


def number_of_runs(event: Selection, bits: "Bits") -> int:
    """Draw the number of runs K from the distribution that the event states."""
    while True:
        runs = _geometric(event.stop, bits)
        if event.shape:
            if event.most:
                return min(runs, event.most)
            return runs
        # (1−γ)^(k−1) γ · 1/k: the logarithmic distribution, but for a factor
        if uniform(runs, bits) == 0:
            return runs


def _geometric(stop: float, bits: "Bits") -> int:
    """Draw the number of the first success of trials with probability ``stop`` = γ.

    A trial reads 64 random bits as a number and succeeds below γ·2⁶⁴, which is an integer.
    """
    below = int(stop * 2**40) << 24
    tried = 0
    if below == 1 << 64:
        return 1
    while True:
        hits = np.flatnonzero(bits.words(_BATCH) < np.uint64(below))
        if len(hits):
            return tried + int(hits[0]) + 1
        tried += _BATCH


def uniform(n: int, bits: "Bits") -> int:
    """Draw an integer from 0 to n − 1 < 2⁶³: mask and reject."""
    mask = (1 << (n - 1).bit_length()) - 1
    while True:
        value = int(bits.words(1)[0]) & mask
        if value < n:
            return value


def split(n: int, validation: int, bits: "Bits") -> NDArray[np.bool_]:
    """Choose ``validation`` of ``n`` rows at random: a mask of shape ``(n,)``, True there."""
    mask = np.zeros(n, dtype=bool)
    mask[np.argsort(bits.words(n), kind="stable")[:validation]] = True
    return mask


def coins(n: int, fraction: float, bits: "Bits") -> NDArray[np.bool_]:
    """Toss a coin for each of ``n`` rows: a mask of shape ``(n,)``, True with ``fraction``."""
    below = np.uint64(int(fraction * 2**53) << 11)  # 0 < fraction < 1
    return np.asarray(bits.words(n) < below)
