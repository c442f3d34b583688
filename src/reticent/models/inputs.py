"""What a fit asks about the inputs alone, before its stages: how they are spread, so that the basis can be where they are."""

import math

import numpy as np
from numpy.typing import NDArray

from reticent.maths.basis import Basis, public_points
from reticent.maths.warp import BINS, bins_that_tell, counted_law, input_law, places, remoteness, shared, spread_out
from reticent.models.residuals import Features, InputCounts, InputMoments
from reticent.privacy.curator import Oracle

__all__ = ["features", "input_laws", "remote_along"]

Array = NDArray[np.float64]
_POINTS = 512


def input_laws(curator: Oracle, releases: int, noise: float) -> list[Array]:
    """How the records are spread over each input: one release of moments, the others of counts; [] if there are none.

    Where counts would be all noise, whose multiplier is ``noise``, moments take their share too.
    """
    if not releases:
        return []
    d, n, rest = len(curator.bounds.x), curator.n, releases - 1
    bins = bins_that_tell(noise * math.sqrt(2 * d / rest), n) if rest else 0
    if not bins:
        rest = 0
    moments = curator.release(InputMoments(d), times=releases - rest)
    (means, squares), sd = shared(moments.value.reshape(2, d) / n, float(moments.sd[0]) / n)
    laws = [input_law(mean, square + 1.0, sd) for mean, square in zip(means, squares, strict=True)]
    if not rest:
        return laws
    counted = curator.release(InputCounts(d, bins), times=rest)
    counts = counted.value.reshape(d, bins)
    return [counted_law(law, one, float(counted.sd[0]), n) for law, one in zip(laws, counts, strict=True)]


def features(basis: Basis, energy: Array, laws: list[Array]) -> tuple[Features, Array]:
    """The basis on inputs that are spread evenly, and points of the box that are spread like the records."""
    head = Features(basis, tuple(energy.tolist()), 1.0, tuple(spread_out(law) for law in laws))
    like = public_points(basis.dimension, _POINTS)
    for j, law in enumerate(laws):
        like[:, j] = places(law, like[:, j])
    return head, like


def remote_along(shares: Array, points: int, *, finely: bool = False) -> Array:
    """How remote places along one input are, from its lowest value to its highest, by shares in bins (rows: several laws)."""
    laws = np.atleast_2d(shares)
    fine = BINS // laws.shape[1]
    return remoteness([np.repeat(laws, fine, axis=1) / fine], np.linspace(-1, 1, points)[:, None], finely=finely)
