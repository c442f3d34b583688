"""What a fit asks about the inputs alone, before its stages: how they are spread, so that the basis can be where they are."""

import math

import numpy as np
from numpy.typing import NDArray

from reticent.maths.basis import Basis, public_points
from reticent.maths.warp import BINS, counted_law, input_law, places, spread_out
from reticent.models.residuals import Features, InputCounts, InputMoments
from reticent.privacy.curator import Oracle

__all__ = ["features", "input_laws"]

Array = NDArray[np.float64]
_POINTS = 512


def input_laws(curator: Oracle, releases: int) -> list[Array]:
    """How the records are spread over each input: one release of moments, the others of counts; [] if there are none."""
    if not releases:
        return []
    d, n = len(curator.bounds.x), curator.n
    moments = curator.release(InputMoments(d))
    mean, square = moments.value.reshape(2, d) / n
    laws = [input_law(a, b + 1.0, float(moments.sd[0]) / n) for a, b in zip(mean, square, strict=True)]
    counted = [curator.release(InputCounts(d, BINS)) for _ in range(releases - 1)]
    if not counted:
        return laws
    counts = np.mean([release.value for release in counted], axis=0).reshape(d, BINS)
    sd = float(counted[0].sd[0]) / math.sqrt(len(counted))
    return [counted_law(law, one, sd, n) for law, one in zip(laws, counts, strict=True)]


def features(basis: Basis, energy: Array, laws: list[Array]) -> tuple[Features, Array]:
    """The basis on inputs that are spread evenly, and its values at points that are spread like the records."""
    head = Features(basis, tuple(energy.tolist()), 1.0, tuple(spread_out(law) for law in laws))
    like = public_points(basis.dimension, _POINTS)
    for j, law in enumerate(laws):
        like[:, j] = places(law, like[:, j])
    return head, head.rows(like)
