"""Paid releases: what a curator and a stream do alike.

Both charge a ledger once before they see a record, add noise to exact integer sums, and stay in the
process that paid.
"""

import os
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from reticent.errors import BadInput, ReleaseRefused
from reticent.privacy.accounting.events import Event
from reticent.privacy.ledger.ledger import Ledger
from reticent.privacy.noise import Scale, floor_noise
from reticent.privacy.process import Identity, identity
from reticent.privacy.random_bits import Bits
from reticent.privacy.statistics.enforced import check_noise

__all__ = ["charge", "check_account", "check_process", "draw_noise", "in_units", "seeded_bits"]

# Which coordinates, as a mask of shape (size,), have noise of which scale, in grid steps.
Scales = Iterable[tuple[NDArray[np.bool_], Scale]]


def check_account(ledger: str | os.PathLike[str] | None, dataset: str | None) -> None:
    """Refuse a ledger without a data set, and the other way round."""
    if (ledger is None) != (dataset is None):
        raise BadInput(
            "Give both ledger and dataset, or neither: a charge needs an account to go to."
        )


def charge(
    ledger: str | os.PathLike[str] | None,
    dataset: str | None,
    event: Event,
    *,
    relation: str,
    records_per_person: int,
    what: str,
) -> str | None:
    """Charge the event, durably, and return the hash of the ledger's entry.

    None without a ledger.
    """
    if ledger is None or dataset is None:
        return None
    entry = Ledger(ledger).charge(
        dataset, event, relation=relation, records_per_person=records_per_person, what=what
    )
    return entry.hash


def check_process(paid_in: Identity) -> None:
    """Refuse to work in another process than the one that paid."""
    if identity() != paid_in:
        raise ReleaseRefused(
            "This was paid for in another process: a fork cannot use what its parent paid, and "
            "would draw noise for the same sums again. Pay and release in one process."
        )


def seeded_bits(seed: bytes | None, name: bytes) -> Bits:
    """Random bits for one purpose: from the operating system, or from a seed and ``name``."""
    if seed is None:
        return Bits(None)
    return Bits(seed + b" " + name)


def draw_noise(
    kind: str, scales: Scales, size: int, step: float, bits: Bits
) -> tuple[NDArray[np.object_], NDArray[np.float64]]:
    """Draw noise for ``size`` coordinates; one without a scale is refused.

    Returns ⌊noise⌋ in grid steps, as Python integers, and the scale of each in the units of the
    release; both of shape ``(size,)``. ``kind`` is "gaussian" or "laplace", ``step`` a grid step.
    """
    noise = np.full(size, None, dtype=object)
    scale = np.zeros(size)
    for mask, fresh in scales:
        noise[mask] = floor_noise(kind, fresh, int(mask.sum()), bits)
        scale[mask] = float(fresh.exact) * step
    check_noise(noise, scale)
    return noise, scale


def in_units(noisy: NDArray[np.object_], step: float) -> NDArray[np.float64]:
    """Noisy sums, from grid steps to the units of the release.

    ⌊·⌋ has mean −1/2. From here on everything is post-processing, this line included.
    """
    return np.asarray((noisy.astype(np.float64) + 0.5) * step)
