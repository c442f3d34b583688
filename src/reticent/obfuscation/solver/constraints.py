"""Constraints: sensitive points or regions, and the posterior variance that each must keep.

A region is a box, checked on a lattice of about 10,000 cell centres. Between them the promise holds
by a margin that follows from the prior alone: sd[f(s)|W] − sd[f(s′)|W] ≤ sd[f(s) − f(s′)|W] ≤
sd[f(s) − f(s′)], and every s is within half a cell of a centre s′. So the centres are promised (√ξ
+ margin)², and all of the region has ξ. The margin is the largest sd[f(s) − f(s′)] in a cell; it is
known for kernels that fall with distance, and regions are refused for others.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import Kernel

from reticent.obfuscation.solver.covariance import prior_variance
from reticent.obfuscation.solver.decreasing_kernels import largest_difference
from reticent.obfuscation.solver.settings import SOLVER

__all__ = ["Promise", "cells", "promise"]

Array = NDArray[np.float64]
_ROUNDED = 8 * np.finfo(np.float64).eps  # of a coordinate: more than a computed centre is off


@dataclass(frozen=True)
class Promise:
    """Constraints on the posterior variance at g points.

    Attributes
    ----------
    at : array of shape (g, d)
        The checked points s.
    prior, promised, margin : arrays of shape (g,)
        Prior variance K(s, s), promised variance ξ, and the margin of a cell, which is a standard
        deviation.
    regions : int
        Number of regions that the points fill; 0 if the points themselves are meant.
    """

    at: Array
    prior: Array
    promised: Array
    margin: Array
    regions: int

    @property
    def kept(self) -> Array:
        """(√ξ + margin)²."""
        return np.asarray((np.sqrt(self.promised) + self.margin) ** 2)


def cells(boxes: Array) -> tuple[Array, Array, NDArray[np.intp]]:
    """Cell centres of boxes (k, d, 2), half the cells' sizes, and the box of each."""
    k, d, _ = boxes.shape
    centres = []
    halves = []
    owner = []
    for number, box in enumerate(boxes):
        wide = box[:, 1] > box[:, 0]
        per = max(int((SOLVER.region_cells / k) ** (1 / max(wide.sum(), 1))), 2)
        half = np.where(wide, (box[:, 1] - box[:, 0]) / (2 * per), 0.0)
        axes = [
            low + (2 * np.arange(per if w else 1) + 1) * h
            for (low, _), h, w in zip(box, half, wide, strict=True)
        ]
        grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, d)
        centres.append(grid)
        halves.append(np.broadcast_to(half, grid.shape))
        owner.append(np.full(len(grid), number))
    return np.vstack(centres), np.vstack(halves), np.concatenate(owner)


def promise(
    kernel: Kernel, at: Array, promised: Array, half: Array | None, regions: int
) -> Promise:
    """Put together what is promised; ``half``: half the cells of regions, none for points."""
    prior = prior_variance(kernel, at)
    if not prior.min() > 0:
        where = np.array2string(at[int(prior.argmin())], precision=6)
        raise ValueError(
            f"the prior variance at {where} is {prior.min():g}: {kernel} knows the function there, "
            "and nothing can be hidden. Take a kernel that varies there, such as RBF(0.1)"
        )
    if not (np.isfinite(promised).all() and promised.min() > 0):
        wrong = promised[~(promised > 0) | ~np.isfinite(promised)]
        raise ValueError(f"a promised variance must be a positive number, not {wrong[0]:g}")
    margin = np.zeros(len(at))
    if half is not None:
        margin = largest_difference(kernel, half + _ROUNDED * (np.abs(at).max(axis=0) + half))
    made = Promise(at, prior, promised, margin, regions)
    kept = made.kept
    if regions:
        where = "near"
    else:
        where = "at"
    worst = int((kept / prior).argmax())
    if kept[worst] >= prior[worst]:
        if regions:
            more = f" (and {kept[worst]:.6g} with the margin between checked points)"
        else:
            more = ""
        most = max(np.sqrt(prior[worst]) - margin[worst], 0.0) ** 2
        rather = f"Promise less than {most:.4g}" + (", or hide a smaller region" if regions else "")
        raise ValueError(
            f"the promised variance {promised[worst]:.6g}{more} {where} "
            f"{np.array2string(at[worst], precision=6)} is not below the prior variance "
            f"{prior[worst]:.6g}: nobody can know less of a function than before any data. {rather}"
        )
    return made
