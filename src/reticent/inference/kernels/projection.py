"""Projection of kernels: prior covariances of basis coefficients.

A kernel is evaluated on public points that fill the box and projected on the basis there; what the
basis cannot represent is counted as noise. The basis is made for the mean of all kernels that may
be chosen later, so one release serves each of them.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import Kernel

from reticent.inference.kernels.eigenbasis import (
    corners,
    eigenbasis,
    quasi_random_points,
    tensor_basis,
)
from reticent.inference.linalg import quadratic_forms
from reticent.privacy.row_maps.polynomial_basis import Basis

__all__ = [
    "NEGLIGIBLE_NOISE_SNR",
    "KernelPriors",
    "feature_scales",
    "kernels_around",
    "norm_quantile",
    "project_covariance",
    "theta_range",
    "white_noise_variance",
]

Array = NDArray[np.float64]
_POINTS = 512
_ONE_DIMENSION = 32
_DIGITS = 9  # of a share of the variance: far more than matter, fewer than machines agree on
# squared signal over privacy noise, per function, from which on features are not shortened
NEGLIGIBLE_NOISE_SNR = 30.0
# lengthscales that a box of half-width 1 can tell apart
_SHORTEST = 0.1
_LONGEST = 10.0


class KernelPriors:
    """Kernels as covariances of basis coefficients, by projection on public points.

    In units of y's half-range.
    """

    unconditional_size = (
        0  # functions to take whatever their variance: none, for this prior is the user's own
    )
    constant_index = -1  # among the functions: none is exactly one
    min_relative_signal = (
        0.1  # share of the prior variance, times n/noise, of a function that is worth having
    )

    def __init__(
        self,
        kernels: list[Kernel],
        dimension: int,
        natural: Callable[[Array], Array],
        y_half: float,
        # share of the box, where functions are shown worst, that does not count:
        # nearly nobody is there
        aside: float = 0.0,
        within: tuple[Array, Array] | None = None,  # what θ may be, if it is to be refined
        before: "KernelPriors | None" = None,  # with which other kernels stages began
    ) -> None:
        self.kernels = kernels
        self._dimension = dimension
        self._natural = natural
        self._aside = aside
        self._y_half = y_half
        self.theta_bounds = within
        # the functions on a line are few
        if dimension > 1:
            count = _POINTS
        else:
            count = _POINTS // 2
        both = quasi_random_points(dimension, 2 * count)
        # two halves that fill the box: between different points, what no function
        # shows does not look like one
        self._points = both[::2]
        others = both[1::2]
        at = natural(self._points)
        there = natural(others)
        self._grams = [kernel(at, at.copy()) / y_half**2 for kernel in kernels]
        mean = sum(kernel(at, there) for kernel in kernels) / (len(kernels) * y_half**2)
        self.white_noise_variance = white_noise_variance(kernels[0], at) / y_half**2
        pairs = [eigenbasis(self._slice(j), _ONE_DIMENSION) for j in range(dimension)]
        # inputs that are alike have functions alike, which rounding must not order
        shares = [(v / v.sum()).round(_DIGITS) for v, _ in pairs]
        self._all, products = tensor_basis(
            shares, [q for _, q in pairs], count // 2
        )  # more, points cannot tell apart
        # by projection: sums over points have errors, from functions that are large,
        # as large as small variances
        known = self._all.part(np.flatnonzero(products > 10.0**-_DIGITS))
        here, opposite = (np.linalg.pinv(known.evaluate(half)) for half in (self._points, others))
        variances = np.zeros(len(products))
        variances[: known.size] = ((here @ mean) * opposite).sum(axis=1)
        self._order = np.argsort(
            -(variances / max(variances.max(), 1e-300)).round(_DIGITS), kind="stable"
        )
        self.variances = self.scaling_variance = np.maximum(variances[self._order], 0.0)
        if (
            before is not None
        ):  # energies stay broad: refined kernels may be sure of functions that records still move
            gram = sum(before._grams) / len(before._grams)
            broad = np.zeros(len(products))
            broad[: known.size] = ((here @ gram) * here).sum(axis=1)
            self.scaling_variance = np.maximum(broad[self._order], 0.0)
        self.max_size = len(self._order)

    def with_kernels(self, kernels: list[Kernel]) -> "KernelPriors":
        """The same for other kernels, which are not to be refined again."""
        return KernelPriors(
            kernels, self._dimension, self._natural, self._y_half, self._aside, before=self
        )

    def kernel_matrix(self, theta: Array) -> Array:
        """The first kernel with other hyperparameters, at the public points."""
        at = self._natural(self._points)
        return np.asarray(self.kernels[0].clone_with_theta(theta)(at, at.copy()) / self._y_half**2)

    def leading_functions(self, m: int) -> tuple[Array, Array]:
        """The m leading functions at the points (points, m), and their projection (m, points)."""
        values = self._all.part(self._order[:m]).evaluate(self._points)
        return values, np.asarray(np.linalg.pinv(values))

    def truncation_variance_under(self, other: "KernelPriors", m: int) -> float:
        """Mean variance that m leading functions of the other do not show."""
        values, projection = other.leading_functions(m)
        return float(
            np.mean(np.diag(self.residual_covariance(np.eye(len(values)) - values @ projection)))
        )

    def residual_covariance(self, rest: Array) -> Array:
        """Covariance of ``rest`` (k, points) times a function's values at the points.

        For the mean kernel; an array (k, k).
        """
        return np.asarray(rest @ (sum(self._grams) / len(self._grams)) @ rest.T)

    def _slice(self, j: int) -> Any:
        """The prior-mean kernel along one input, the others in the middle."""

        def kernel(a: Array, b: Array) -> Array:
            at = []
            for values in (a, b):
                unit = np.zeros((len(values), self._dimension))
                unit[:, j] = values
                at.append(self._natural(unit))
            return np.asarray(sum(k(at[0], at[1]) for k in self.kernels) / len(self.kernels))

        return kernel

    def choose(self, m: int) -> tuple[Basis, list[Array], Array]:
        """The m leading functions, and for each kernel their covariance and truncation variance.

        Returns the basis, a list of (m, m) arrays, and an array (kernels,), in squared half-ranges
        of y.
        """
        basis = self._all.part(self._order[:m])
        values, projection = self.leading_functions(m)
        priors = []
        outside = []
        for gram in self._grams:
            S = project_covariance(gram, projection)
            priors.append(S)
            missed = np.maximum(np.diag(gram) - quadratic_forms(values, S), 0.0)
            if self._aside:
                missed = np.sort(missed)[: max(math.ceil((1 - self._aside) * len(missed)), 1)]
            outside.append(float(np.mean(missed)))
        return basis, priors, np.array(outside)

    def indefinite(self) -> bool:
        """Whether the first kernel has a negative variance in the span of its functions."""
        span, _ = np.linalg.qr(self._all.part(self._order[: self.max_size]).evaluate(self._points))
        variances = np.linalg.eigvalsh(span.T @ self._grams[0] @ span)
        return bool(variances[0] < -1e-9 * variances[-1])


def project_covariance(gram: Array, projection: Array) -> Array:
    """Covariance of coefficients whose function has this covariance at points."""
    S = projection @ gram @ projection.T
    return positive_definite_part((S + S.T) / 2, 1e-7 * np.trace(S) / len(S))


def positive_definite_part(S: Array, least: float) -> Array:
    """S + least·I. A kernel may be positive definite with some parameters only.

    Then without its negative variances.
    """
    lifted: Array = S + least * np.eye(len(S))
    try:
        np.linalg.cholesky(lifted)
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(S)
        lifted = (vectors * (np.maximum(values, 0.0) + least)) @ vectors.T
    return lifted


def feature_scales(basis: Basis, variances: Array, exponent: float, quantile: float) -> Array:
    """Factors (m,) of the basis functions: a power of the prior variance.

    Such that a ``quantile`` of the features have a norm of at most one.
    """
    energy = np.maximum(variances, 1e-9 * variances.max()) ** exponent
    points = quasi_random_points(basis.dimension, _POINTS)
    lengths = ((basis.evaluate(points) * energy) ** 2).sum(axis=1)
    most = ((basis.evaluate(corners(basis.dimension)) * energy) ** 2).sum(axis=1).max()
    return np.asarray(
        energy
        / math.sqrt(max(lengths.max(), most) if quantile == 1 else np.quantile(lengths, quantile))
    )


def norm_quantile(told: float) -> float:
    """The quantile of the features' lengths beyond which they are shortened.

    That blurs corners of the box, and saves noise.

    ``told`` is the squared signal of n records over the privacy noise, per function.
    """
    if told < 1:
        return 0.5
    if told < NEGLIGIBLE_NOISE_SNR:
        return 0.95
    return 1.0


def kernels_around(kernel: Kernel, half: Array, trials: int) -> list[Kernel]:
    """The kernel and others within a factor of ten, inside its own bounds.

    With lengthscales that the box can tell apart.
    """
    if len(kernel.theta) == 0:
        return [kernel]
    from scipy.stats import qmc

    low, high = theta_range(kernel, half)
    places = qmc.Halton(len(kernel.theta), scramble=False).random(trials + 1)[1:]
    return [kernel, *(kernel.clone_with_theta(low + (high - low) * place) for place in places)]


def white_noise_variance(kernel: Kernel, X: Array) -> float:
    """Variance of the kernel's white noise.

    scikit-learn leaves it out between a point and its copy.
    """
    one = X[:1]
    return float(kernel.diag(one)[0] - kernel(one, one.copy())[0, 0])


def theta_range(kernel: Kernel, half: Array) -> tuple[Array, Array]:
    """What θ may be.

    Within a factor of ten and the kernel's own bounds, with lengths that the box can tell apart.
    """
    low, high = (
        np.clip(kernel.theta + step, *kernel.bounds.T) for step in (-math.log(10), math.log(10))
    )
    short = math.log(_SHORTEST * half.min())
    long = math.log(_LONGEST * half.max())
    names = [
        name
        for one in kernel.hyperparameters
        for name in [one.name] * (0 if one.fixed else one.n_elements)
    ]
    length = np.array(["length_scale" in name for name in names], dtype=bool)
    low = np.where(length, np.minimum(np.maximum(low, short), kernel.theta), low)
    high = np.where(length, np.maximum(np.minimum(high, long), kernel.theta), high)
    return low, high
