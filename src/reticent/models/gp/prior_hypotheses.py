"""Prior of a function: hypotheses about its kernel, validated before anything is charged."""

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

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
from reticent.inference.inputs.warping import compressed_fraction, unwarp
from reticent.inference.kernels.anova import AnovaPriors
from reticent.inference.kernels.axes import LINE, Axis
from reticent.inference.kernels.projection import (
    KernelPriors,
    kernels_around,
    project_covariance,
    theta_range,
)
from reticent.inference.linalg import as_matrix
from reticent.inference.moment_model.hyperparameters import sample_around_mode
from reticent.inference.moment_model.posterior import StagedPosterior
from reticent.memo import memo
from reticent.models.gp.settings import BASIS, INPUTS
from reticent.models.gp.staged_fit import Prior
from reticent.privacy.bounds import Bounds
from reticent.privacy.columns.base import Kind
from reticent.privacy.row_maps.features.polynomial_basis import Basis
from reticent.privacy.statistics.exact_sum import one_blas_thread

__all__ = [
    "PreparedPrior",
    "axes_of",
    "check_kernel_columns",
    "choose_basis_size",
    "covariances_of_weights",
    "make_prior",
    "refine_prior",
    "scaling_exponent",
    "validated_prior",
]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class PreparedPrior:
    """Hypotheses about the kernel, validated before a charge, for the fit after it."""

    prior: Prior


def make_prior(
    kernel: Kernel | None,
    bounds: Bounds,
    y_half_range: float,
    *,
    learn: bool,
    warp: Sequence[Sequence[float]] = (),
) -> Prior:
    """Hypotheses that the evidence chooses from, and the basis that serves all.

    ``y_half_range``: prior variances are in its square; 1 for logits. ``warp``: maps of the inputs,
    after which the basis is used; a kernel speaks of the inputs as they were before.
    """
    if learn:
        trials = BASIS.hypotheses
    else:
        trials = 0
    if kernel is None:
        return _default_prior(axes_of(bounds), trials)
    halves = np.array([high / 2 - low / 2 for low, high in bounds.x])
    if trials:
        kernels = kernels_around(clone(kernel), halves, trials)
    else:
        kernels = [clone(kernel)]
    # θ may be refined between the hypotheses only if every kernel there is positive definite:
    # `validated_prior` tries the hypotheses alone
    if len(kernels) > 1 and _surely_definite(kernels[0]):
        theta_bounds = theta_range(kernels[0], halves)
    else:
        theta_bounds = None
    if theta_bounds is not None and not (theta_bounds[1] > theta_bounds[0]).any():
        theta_bounds = None  # lengths that the box cannot tell apart

    def natural(u: Array) -> Array:
        return np.asarray(bounds.unscale(unwarp(warp, u) if len(warp) else u))

    def make() -> KernelPriors:
        return KernelPriors(
            kernels, len(bounds.x), natural, y_half_range, compressed_fraction(warp), theta_bounds
        )

    # not kept: matrices of many kernels, which are too large; what a warp tells, for
    # it is from a release
    if len(kernels) == 1 and not len(warp):
        key = _kernel_key(kernels[0])
    else:
        key = None
    if key is None:
        return make()
    # NumPy's error state is in the key: `validated_prior` turns warnings into errors, and a prior
    # that was made without them has not been validated
    return _cached_prior(
        _PriorRequest(repr((key, bounds.x, bounds.norm, y_half_range, np.geterr())), make)
    )


def refine_prior(
    prior: KernelPriors, posterior: StagedPosterior, feature_scale: Array
) -> tuple[KernelPriors, Array]:
    """Prior of kernels around the one with the largest evidence, and their log-weights.

    ``feature_scale``: factors of the features that the posterior is about, (m,).
    """
    _, projection = prior.leading_functions(len(feature_scale))
    projection = projection / feature_scale[:, None]

    def evidence(theta: Array) -> tuple[float, Array]:
        gram = prior.kernel_matrix(theta)
        value, slope = posterior.evidence(project_covariance(gram, projection))
        back = projection.T @ slope @ projection
        steps = theta + BASIS.gradient_step * np.eye(len(theta))
        return value, np.array(
            [
                ((prior.kernel_matrix(step) - gram) * back).sum() / BASIS.gradient_step
                for step in steps
            ]
        )

    assert prior.theta_bounds is not None
    low, high = prior.theta_bounds
    start = np.clip(prior.kernels[int(posterior.hypothesis_weights.argmax())].theta, low, high)
    points, log_weights = sample_around_mode(evidence, start, low, high, BASIS.refined_hypotheses)
    return prior.with_kernels(
        [prior.kernels[0].clone_with_theta(theta) for theta in points]
    ), log_weights


@dataclass(frozen=True)
class _PriorRequest:
    """Priors to be made; those of equal public numbers are the same."""

    public: str
    make: Callable[[], KernelPriors] = field(compare=False)


@memo(8)  # of 2 MB each: whoever fits often, fits the same again
def _cached_prior(asked: _PriorRequest) -> KernelPriors:
    with one_blas_thread():  # whoever asked first: a rebuild elsewhere must give the same bits
        return asked.make()


@memo(8)
def _default_prior(axes: tuple[Axis, ...], trials: int) -> AnovaPriors:
    with one_blas_thread():
        return AnovaPriors(len(axes), trials, axes=axes)


def axes_of(bounds: Bounds) -> tuple[Axis, ...]:
    """What lies along each input by its kind: a line, a circle, ordered levels or words.

    Whole numbers are ordered levels where they are few. In a ball all inputs are lines.
    """
    if bounds.norm is not None:
        return (LINE,) * len(bounds.x)
    return tuple(_axis_of(kind) for kind in bounds.x_kinds)


def _axis_of(kind: Kind) -> Axis:
    cells = kind.cells
    if kind.periodic:
        return Axis("circle")
    if cells is None or (kind.levels is None and cells > INPUTS.most_whole_levels):
        return LINE
    if kind.ordered and cells > 2:
        return Axis("ordered", cells)
    return Axis("words", cells)


def check_kernel_columns(kernel: Kernel | None, bounds: Bounds) -> None:
    """Refuse a kernel that would see words in no order as numbers."""
    if kernel is None:
        return
    names: Sequence[object] = bounds.x_names or range(len(bounds.x))
    for name, axis in zip(names, axes_of(bounds), strict=True):
        if axis.shape == "words" and axis.levels > 2:
            raise BadInput(
                f"A kernel sees the words of column {name!r} as numbers 0, 1, 2, …, and they are "
                "in no order. Give no kernel: then each word has an effect of its own. Or list "
                "them in an order that means something, as Ordered([...]).",
                parameter="kernel",
            )


def _kernel_key(thing: object) -> str | None:
    """A kernel with all its numbers, to the last bit.

    None for one that is not scikit-learn's own, which may be anything.
    """
    if isinstance(thing, Kernel) and type(thing).__module__ == Kernel.__module__:
        parts = [_kernel_key(value) for value in thing.get_params(deep=False).values()]
        if None in parts:
            return None
        return f"{type(thing).__name__}{parts}"
    if isinstance(thing, np.ndarray) and thing.dtype.kind == "f":
        return f"{thing.dtype} {thing.tolist()}"
    if isinstance(thing, (list, tuple)):
        if None in (parts := [_kernel_key(part) for part in thing]):
            return None
        return repr(parts)
    if isinstance(thing, (str, int, float)):
        return repr(thing)
    return None


def choose_basis_size(
    signal: float, prior: Prior, dimension: int, signal_to_noise: float = 1.0
) -> int:
    """Number of basis functions whose prior variance stands out from the noise.

    ``signal``: n·√stages over the noise multiplier. ``signal_to_noise``: standard deviation of the
    function by that of the observation noise, where this is known. Residuals shrink to it, and
    privacy noise with them: where there are many records, smaller functions stand out.
    """
    signal *= max(min(signal / BASIS.many_records, signal_to_noise), 1.0)
    relative = prior.variances / prior.variances.sum()
    worthwhile = int((relative * signal >= prior.min_relative_signal).sum())
    not_negligible = int((relative * signal >= BASIS.negligible_signal).sum())
    size = min(max(worthwhile, min(int(signal), prior.unconditional_size)), not_negligible)
    return min(
        max(size, BASIS.min_size + BASIS.inputs_room * dimension), BASIS.max_size, prior.max_size
    )


def covariances_of_weights(hypotheses: Array, feature_scale: Array) -> Array:
    """Prior covariances of the weights of features, from those of basis coefficients.

    ``hypotheses``: (H, m, m), or the variances (H, m) of independent coefficients;
    ``feature_scale``: factor of each feature, (m,).
    """
    if hypotheses.ndim == 2:
        return np.asarray(hypotheses / feature_scale**2)
    return np.asarray(hypotheses / np.outer(feature_scale, feature_scale))


def scaling_exponent(snr_per_function: float) -> float:
    """Power of the prior variance that a feature is scaled by.

    ½ where privacy noise drowns small coefficients anyway, ¼ where it does not.
    """
    low, high = BASIS.scaling_exponent_range
    distance = math.log(snr_per_function / BASIS.middle_snr)
    middle = (low + high) / 2
    half_range = (high - low) / 2
    exponent = middle - half_range * distance / math.log(BASIS.snr_ratio)
    return float(np.clip(exponent, low, high))


_DEFINITE = (RBF, Matern, RationalQuadratic, DotProduct, ConstantKernel, WhiteKernel)


def _surely_definite(kernel: Kernel) -> bool:
    """Positive definite however many inputs there are: needs no look.

    With negative parameters nothing is sure.
    """
    if isinstance(kernel, KernelOperator):
        return _surely_definite(kernel.k1) and _surely_definite(kernel.k2)
    if type(kernel) not in _DEFINITE:
        return False
    return all(
        np.all(np.asarray(value) >= 0)
        for value in kernel.get_params().values()
        if not isinstance(value, (str, tuple))
    )


def validated_prior(
    kernel: Kernel | None,
    bounds: Bounds,
    make: Callable[[], Prior],
    usable: Callable[[Prior, Basis], bool],
    units: str,
) -> PreparedPrior:
    """Go through the public part of a fit: refuse a kernel that cannot be used before any charge.

    ``make`` gives the prior, ``usable`` says whether features of its smallest basis can be
    released, ``units`` is what the error says of length scales and amplitudes.
    """
    check_kernel_columns(kernel, bounds)
    fits = False
    try:
        with np.errstate(over="raise", invalid="raise", divide="raise"), warnings.catch_warnings():
            warnings.simplefilter("error")
            prior = make()
            basis, covariances, _ = prior.choose(min(BASIS.min_size, prior.max_size))
            fits = all(np.linalg.eigvalsh(as_matrix(S))[0] > 0 for S in covariances)
            fits = fits and usable(prior, basis)
            if kernel is not None and isinstance(prior, KernelPriors):
                fits &= _surely_definite(kernel) or not prior.indefinite()
    except (ArithmeticError, ValueError, TypeError, Warning):
        fits = False
    if not fits:
        with np.errstate(invalid="ignore"):  # it writes an amplitude as a square
            named = str(kernel)
        raise BadInput(
            f"The kernel {named} cannot be used for {len(bounds.x)} inputs and "
            "these ranges: give a positive definite scikit-learn kernel with "
            f"one length scale, or one per input, {units}."
        )
    return PreparedPrior(prior)
