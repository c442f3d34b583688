"""What a function may be, for models that release in stages: hypotheses around a kernel, tried out before anything is charged."""

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    Kernel,
    KernelOperator,
    Matern,
    RationalQuadratic,
    WhiteKernel,
)

from reticent.errors import BadInput
from reticent.maths.anova import AnovaPriors
from reticent.maths.basis import Basis
from reticent.maths.evidence import population
from reticent.maths.priors import KernelPriors, kernels_around, projected, range_around
from reticent.maths.stages import Staged
from reticent.maths.warp import outskirts, unwarped
from reticent.memo import memo
from reticent.privacy.bounds import Bounds
from reticent.privacy.sums import one_blas_thread

__all__ = ["LEAST", "MOST", "exponent", "hypotheses_of", "refined", "rehearsed", "worthwhile"]

Array = NDArray[np.float64]
LEAST, MOST = 4, 150  # basis functions
_TRIALS = 48
_AROUND, _STEP = 24, 1e-4  # kernels around the best one; a difference of logarithms that tells a slope
_NOTHING = 0.01
_MUCH = 1000.0  # records, against privacy noise


def hypotheses_of(
    kernel: Kernel | None, bounds: Bounds, unit: float, *, learn: bool, warp: Sequence[Sequence[float]] = ()
) -> Any:
    """Priors that the evidence chooses from, and the basis that serves all; ``unit``: what counts as one of the output.

    ``warp``: maps of the inputs, after which the basis is used; a kernel speaks of the inputs as they were before.
    """
    trials = _TRIALS if learn else 0
    if kernel is None:
        return _default(len(bounds.x), trials)
    halves = np.array([high / 2 - low / 2 for low, high in bounds.x])
    kernels = kernels_around(clone(kernel), halves, trials) if trials else [clone(kernel)]
    # between the kernels that a rehearsal tries, others must not fail
    within = range_around(kernels[0], halves) if len(kernels) > 1 and _surely_definite(kernels[0]) else None
    if within is not None and not (within[1] > within[0]).any():
        within = None  # lengths that the box cannot tell apart

    def natural(u: Array) -> Array:
        return np.asarray(bounds.natural(unwarped(warp, u) if len(warp) else u))

    def make() -> KernelPriors:
        return KernelPriors(kernels, len(bounds.x), natural, unit, outskirts(warp), within)

    # not kept: matrices of many kernels, which are too large; what a warp tells, for it is from a release
    said = _said(kernels[0]) if len(kernels) == 1 and not len(warp) else None
    if said is None:
        return make()
    # while a kernel is tried out, NumPy's warnings are errors: what was made without them does not count there
    return _kept(_Asked(repr((said, bounds.x, bounds.norm, unit, np.geterr())), make))


def refined(priors: KernelPriors, belief: Staged, energy: Array) -> tuple[KernelPriors, Array]:
    """Priors of kernels around the one that the releases so far speak for most, and logarithms of what each stands for."""
    _, projection = priors.shown(len(energy))
    projection = projection / energy[:, None]

    def evidence(theta: Array) -> tuple[float, Array]:
        gram = priors.gram(theta)
        value, slope = belief.evidence(projected(gram, projection))
        back = projection.T @ slope @ projection
        steps = theta + _STEP * np.eye(len(theta))
        return value, np.array([((priors.gram(step) - gram) * back).sum() / _STEP for step in steps])

    assert priors.within is not None
    low, high = priors.within
    start = np.clip(priors.kernels[int(belief.weights.argmax())].theta, low, high)
    points, odds = population(evidence, start, low, high, _AROUND)
    return priors.refined([priors.kernels[0].clone_with_theta(theta) for theta in points]), odds


@dataclass(frozen=True)
class _Asked:
    """Priors to be made; those of equal public numbers are the same."""

    public: str
    make: Callable[[], KernelPriors] = field(compare=False)


@memo(8)  # of 2 MB each: whoever fits often, fits the same again
def _kept(asked: _Asked) -> KernelPriors:
    with one_blas_thread():  # whoever asked first: a rebuild elsewhere must give the same bits
        return asked.make()


@memo(8)
def _default(dimension: int, trials: int) -> AnovaPriors:
    with one_blas_thread():
        return AnovaPriors(dimension, trials)


def _said(thing: object) -> str | None:
    """A kernel with all its numbers, to the last bit; None for one that is not scikit-learn's own, which may be anything."""
    if isinstance(thing, Kernel) and type(thing).__module__ == Kernel.__module__:
        parts = [_said(one) for one in thing.get_params(deep=False).values()]
        return None if None in parts else f"{type(thing).__name__}{parts}"
    if isinstance(thing, np.ndarray) and thing.dtype.kind == "f":
        return f"{thing.dtype} {thing.tolist()}"
    if isinstance(thing, (list, tuple)):
        return None if None in (parts := [_said(one) for one in thing]) else repr(parts)
    return repr(thing) if isinstance(thing, (str, int, float)) else None


def worthwhile(share: float, priors: Any, dimension: int, loud: float = 1.0) -> int:
    """How many basis functions the budget can carry: those whose prior variance can stand out from the noise.

    ``loud``: the function's standard deviation by that of the observation noise, where this is known. Residuals shrink to it, and
    privacy noise with them: where records tell much, smaller functions stand out.
    """
    share *= max(min(share / _MUCH, loud), 1.0)
    relative = priors.variances / priors.variances.sum()
    worth, not_nothing = (int((relative * share >= least).sum()) for least in (priors.stands_out, _NOTHING))
    worth = min(max(worth, min(int(share), priors.some)), not_nothing)
    return min(max(worth, LEAST + 3 * dimension), MOST, priors.most)


def exponent(told: float) -> float:
    """Of the prior variance in a feature's energy: ½ where privacy noise drowns small coefficients anyway, ¼ where it doesn't."""
    return float(np.clip(0.375 - 0.125 * math.log(told / 1.3) / math.log(2.2), 0.25, 0.5))


_DEFINITE = (RBF, Matern, RationalQuadratic, DotProduct, ConstantKernel, WhiteKernel)


def _surely_definite(kernel: Kernel) -> bool:
    """Positive definite however many inputs there are: needs no look. With negative parameters nothing is sure."""
    if isinstance(kernel, KernelOperator):
        return _surely_definite(kernel.k1) and _surely_definite(kernel.k2)
    if type(kernel) not in _DEFINITE:
        return False
    return all(
        np.all(np.asarray(one) >= 0) for one in kernel.get_params().values() if not isinstance(one, (str, tuple))
    )


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
            fits &= kernel is None or _surely_definite(kernel) or not priors.indefinite()
    except (ArithmeticError, ValueError, TypeError, Warning):
        fits = False
    if not fits:
        with np.errstate(invalid="ignore"):  # it writes an amplitude as a square
            named = str(kernel)
        raise BadInput(
            f"The kernel {named} cannot be used for {len(bounds.x)} inputs and these ranges: give a positive definite "
            f"scikit-learn kernel with one length scale, or one per input, {units}."
        )
    return priors
