"""What a fit asks about the inputs alone, before its stages: how they are spread, so that the basis can be where they are."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from reticent.maths.basis import Basis, public_points
from reticent.maths.warp import (
    BINS,
    WIDELY,
    bins_that_tell,
    counted_law,
    crowded,
    input_law,
    laws_along,
    places,
    remoteness,
    shared,
    spread_out,
    zoomed,
)
from reticent.models.residuals import Features, InputCounts, InputMoments
from reticent.privacy.curator import Oracle

__all__ = ["bent", "closer", "features", "input_laws", "remote_along"]

Array = NDArray[np.float64]
_POINTS, _FEW_POINTS, _FEW_FUNCTIONS = 512, 256, 40  # on a line a few functions need fewer
_BENT = 0.15  # share of an input's variance that no straight line of its map shows
_SHORT = 0.05  # share of the records whose features are not shortened, where privacy noise is felt


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


def features(
    basis: Basis,
    energy: Array,
    laws: Sequence[Array],
    warp: tuple[tuple[float, ...], ...] = (),
    lengthen: bool = False,
    lines: tuple[tuple[int, float, float], ...] = (),
) -> tuple[Features, Array]:
    """The basis on inputs that are spread evenly, or by maps of their own, and points that are spread like the records.

    ``lengthen``: privacy noise is felt, so that features are made as long as they may be where the laws say that records are.
    """
    warp = warp or tuple(spread_out(law) for law in laws)
    head = Features(basis, tuple(energy.tolist()), 1.0, warp, lines=lines)
    few = basis.dimension == 1 and basis.size <= _FEW_FUNCTIONS
    like = public_points(basis.dimension, _FEW_POINTS if few else _POINTS)
    for j, law in enumerate(laws):
        like[:, j] = places(law, like[:, j])
    return (_lengthened(head, like) if lengthen and laws else head), like


def _lengthened(head: Features, like: Array) -> Features:
    """The same features, with energies that make those of most records as long as they may be.

    Noise is made for the longest features. Most records lie in the middle of the inputs' ranges, where features are short: scaled
    by points that fill the box, they had a mean square of .4 and told less than half of what the same noise allows.
    """
    long = np.quantile(np.square(head.long(like)).sum(axis=1), _SHORT)
    return replace(head, energy=tuple((np.array(head.energy) * math.sqrt(head.radius2 / long)).tolist()))


def bent(laws: Sequence[Array]) -> tuple[tuple[int, float, float], ...]:
    """Inputs whose map bends their straight lines: number, mean, and the slope of a line with mean square one among the records.

    Where few records are, in a long tail say, smooth functions of the map can be anything; a line goes on. Of records that
    are all in one bin it would go anywhere.
    """
    found, edges = [], np.linspace(-1, 1, BINS + 1)
    u = (edges[1:] + edges[:-1]) / 2
    for j, law in enumerate(laws):
        knots = np.array(spread_out(law))
        (uu, uv), (_, vv) = np.cov(u, (knots[1:] + knots[:-1]) / 2, aweights=law, bias=True)
        if uu > (2 / BINS) ** 2 and uv**2 < (1 - _BENT) * uu * vv:
            found.append((j, float(u @ law / law.sum()), 1 / math.sqrt(uu)))
    return tuple(found)


def closer(head: Features, like: Array, laws: Array) -> tuple[tuple[float, ...], ...]:
    """Maps that zoom in on where records surely are, by laws on points; () if that is no small part of any input's range."""
    even = np.linspace(-1, 1, BINS + 1)
    found = [crowded(one) for one in laws_along(head.warped(like), laws)]
    if not any(found):
        return ()
    now = [np.array(knots) for knots in head.warp] or [even] * len(found)
    return tuple(tuple(k.tolist()) if part is None else zoomed(k, *part) for k, part in zip(now, found, strict=True))


def remote_along(shares: Array, points: int, sparse: tuple[float, float] = WIDELY) -> Array:
    """How remote places along one input are, from its lowest value to its highest, by shares in bins (rows: several laws)."""
    laws = np.atleast_2d(shares)
    fine = BINS // laws.shape[1]
    return remoteness([np.repeat(laws, fine, axis=1) / fine], np.linspace(-1, 1, points)[:, None], sparse)
