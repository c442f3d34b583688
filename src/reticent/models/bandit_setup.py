"""What a bandit is made of, checked before anything is charged; and how the noise of its running sums hangs together."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.errors import BadInput, BoundsMissing
from reticent.maths.factorisation import (
    buffer_coefficients,
    optimised_buffers,
    root_coefficients,
    row_variances,
    tree_variances,
)
from reticent.privacy.bounds import Bounds
from reticent.privacy.given import check_choice, check_whole, number
from reticent.privacy.stream import TREE, Buffers, Correlation, Echo, Toeplitz

__all__ = ["SHARED", "STEPS", "check", "correlation"]

Array = NDArray[np.float64]
_UNIT = 2.0**30  # coefficients are whole multiples of its inverse
SHARED = Echo(int(0.65 * _UNIT))  # each batch takes back so much of the last one's noise in Σφe
STEPS = 2**30  # releases, where the horizon is not known
_CHOICES = {"release": ("batches", "every"), "mechanism": ("sqrt", "blt", "tree"), "contexts": ("private", "public")}
_WHOLE = {"horizon": 10**9, "arms": 1000, "records_per_person": 10**6, "basis": 500}


def check(params: Mapping[str, Any]) -> None:
    """Refuse parameters that make no sense."""
    bounds = params["bounds"]
    if bounds is None:
        raise BoundsMissing(
            "The candidates and rewards have no bounds, and reticent never takes them from the data. Give their plausible "
            "ranges: bounds=reticent.Bounds(x=[(0, 1)], y=(0, 1))."
        )
    if not isinstance(bounds, Bounds) or len(bounds.y) != 1 or bounds.same:
        raise BadInput(
            "bounds must be a reticent.Bounds with one range for each coordinate of a candidate, and y, the reward's."
        )
    for name, known in _CHOICES.items():
        check_choice(name, params.get(name, known[0]), known)
    for name, most in _WHOLE.items():
        if not (params.get(name, 1) is None and name in ("horizon", "basis")):
            check_whole(name, params.get(name, 1), 1, most)
    width, growth = params["width"], params["growth"]
    paper = isinstance(width, str) and width == "paper"
    if not (paper or 0 <= number(width) < 1e6):
        raise BadInput(f'width must be a number of standard deviations, or "paper", not {width!r}.')
    if not 1 <= number(growth) <= 100:
        raise BadInput(f"growth must be a number from 1 to 100, not {growth!r}.")
    every = params.get("release") == "every"
    if every and (params["horizon"] is None or params["contexts"] == "public"):
        raise BadInput('release="every" needs a horizon, which its noise is made for, and private contexts.')


def correlation(mechanism: str, steps: int) -> tuple[Correlation, Array]:
    """How the noise of running sums hangs together, and the variance of each, in units of the fresh noise's."""
    if mechanism == "tree":
        return TREE, tree_variances(steps)
    if mechanism == "sqrt":
        c = np.floor(root_coefficients(steps) * _UNIT)
        return Toeplitz([int(v) for v in c]), row_variances(c / _UNIT)
    decays, weights = (np.floor(np.array(v) * _UNIT) for v in optimised_buffers(max(steps, 8)))
    c = buffer_coefficients(decays / _UNIT, weights / _UNIT, steps)
    return Buffers([int(v) for v in decays], [int(v) for v in weights]), row_variances(c)
