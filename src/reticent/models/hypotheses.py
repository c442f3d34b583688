"""What a function may be, for models that release in stages: hypotheses around a kernel, tried out before anything is charged."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.gaussian_process.kernels import Kernel

from reticent.errors import BadInput
from reticent.maths.anova import AnovaPriors
from reticent.maths.basis import Basis
from reticent.maths.priors import KernelPriors, kernels_around
from reticent.privacy.bounds import Bounds

__all__ = ["LEAST", "MOST", "hypotheses_of", "rehearsed"]

Array = NDArray[np.float64]
LEAST, MOST = 4, 150  # basis functions
_TRIALS = 48


def hypotheses_of(kernel: Kernel | None, bounds: Bounds, unit: float, *, learn: bool) -> Any:
    """Priors that the evidence chooses from, and the basis that serves all; ``unit``: what counts as one of the output."""
    trials = _TRIALS if learn else 0
    if kernel is None:
        return AnovaPriors(len(bounds.x), trials)
    halves = np.array([high / 2 - low / 2 for low, high in bounds.x])
    kernels = kernels_around(clone(kernel), halves, trials) if trials else [clone(kernel)]
    return KernelPriors(kernels, len(bounds.x), bounds.natural, unit)


def rehearsed(
    kernel: Kernel | None, bounds: Bounds, make: Callable[[], Any], usable: Callable[[Any, Basis], bool], units: str
) -> Any:
    """Go through the public part of a fit, so that a kernel that cannot be used is found before anything is charged."""
    fits = False
    try:
        with np.errstate(over="raise", invalid="raise", divide="raise"), warnings.catch_warnings():
            warnings.simplefilter("error")
            priors = make()
            basis, covariances, _ = priors.choose(min(LEAST, priors.most))
            fits = all(np.linalg.eigvalsh(S)[0] > 0 for S in covariances) and usable(priors, basis)
    except (ArithmeticError, ValueError, TypeError, Warning):
        fits = False
    if not fits:
        raise BadInput(
            f"The kernel {kernel} cannot be used for {len(bounds.x)} inputs and these ranges: give a positive definite "
            f"scikit-learn kernel with one length scale, or one per input, {units}."
        )
    return priors
