"""Projection of kernels: prior covariances of basis coefficients.

A kernel is evaluated on public points that fill the box and projected on the basis there; what the
basis cannot represent is counted as noise. The basis is made for the mean of all kernels that may
be chosen later, so one release serves each of them.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import Kernel

from reticent.inference.kernels.eigenbasis import (
    corners,
    eigenbasis,
    quasi_random_points,
    tensor_basis,
)
from reticent.inference.kernels.settings import PROJECTION
from reticent.inference.linalg import quadratic_forms
from reticent.privacy.row_maps.features.polynomial_basis import DEGREE, Basis

__all__ = [
    "KernelPriors",
    "feature_scales",
    "kernels_around",
    "norm_quantile",
    "project_covariance",
    "theta_range",
    "white_noise_variance",
]

Array = NDArray[np.float64]
Covariance = Callable[[Array, Array], Array]


class KernelPriors:
    """Kernels as covariances of basis coefficients, by projection on public points.

    In units of y's half-range.
    """

    unconditional_size = PROJECTION.unconditional_size
    constant_index = -1  # among the functions: none is exactly one
    min_relative_signal = PROJECTION.min_relative_signal

    def __init__(
        self,
        kernels: list[Kernel],
        dimension: int,
        natural: Callable[[Array], Array],
        y_half: float,
        # fraction of the box, where the basis represents functions worst, that does not count:
        # nearly nobody is there
        ignored_fraction: float = 0.0,
        theta_bounds: tuple[Array, Array] | None = None,  # of θ, if it is to be refined
        wider_priors: "KernelPriors | None" = None,  # those that stages began with
        highest_degree: int = DEGREE,  # of the polynomials that functions of an input are made of
    ) -> None:
        self.kernels = kernels
        self._dimension = dimension
        self._natural = natural
        self._ignored_fraction = ignored_fraction
        self._y_half = y_half
        self.theta_bounds = theta_bounds
        self._highest_degree = highest_degree
        # the functions on a line are few
        if dimension > 1:
            count = PROJECTION.points
        else:
            count = PROJECTION.points // 2
        points = quasi_random_points(dimension, 2 * count)
        # two halves that fill the box: between different points, what no function
        # shows does not look like one
        self._points = points[::2]
        other_points = points[1::2]
        natural_points = natural(self._points)
        other_natural = natural(other_points)
        self._grams = [
            kernel(natural_points, natural_points.copy()) / y_half**2 for kernel in kernels
        ]
        mean = sum(kernel(natural_points, other_natural) for kernel in kernels) / (
            len(kernels) * y_half**2
        )
        self.white_noise_variance = white_noise_variance(kernels[0], natural_points) / y_half**2
        pairs = self._functions_of_inputs()
        # inputs that are alike have functions alike, which rounding must not order
        fractions = [(v / v.sum()).round(PROJECTION.digits) for v, _ in pairs]
        # more functions than half of the points could not be distinguished
        self._all, products = tensor_basis(fractions, [q for _, q in pairs], count // 2)
        # by projection: sums over points have errors, from functions that are large,
        # as large as small variances
        known = self._all.part(np.flatnonzero(products > 10.0**-PROJECTION.digits))
        projection, other_projection = (
            np.linalg.pinv(known.evaluate(half)) for half in (self._points, other_points)
        )
        variances = np.zeros(len(products))
        variances[: known.size] = ((projection @ mean) * other_projection).sum(axis=1)
        self._order = np.argsort(
            -(variances / max(variances.max(), 1e-300)).round(PROJECTION.digits), kind="stable"
        )
        self.variances = self.scaling_variance = np.maximum(variances[self._order], 0.0)
        # scales stay broad: refined kernels may be sure of functions that records still move
        if wider_priors is not None:
            gram = sum(wider_priors._grams) / len(wider_priors._grams)
            broad = np.zeros(len(products))
            broad[: known.size] = ((projection @ gram) * projection).sum(axis=1)
            self.scaling_variance = np.maximum(broad[self._order], 0.0)
        self.max_size = len(self._order)

    def with_kernels(self, kernels: list[Kernel]) -> "KernelPriors":
        """The same for other kernels, which are not to be refined again."""
        return KernelPriors(
            kernels,
            self._dimension,
            self._natural,
            self._y_half,
            self._ignored_fraction,
            wider_priors=self,
            highest_degree=self._highest_degree,
        )

    def _functions_of_inputs(self) -> list[tuple[Array, Array]]:
        """Eigenvalues and functions of the mean kernel along each input.

        Of polynomials whose degree is doubled until no more than ``most_missed`` of the variance is
        left out.
        """
        degree = DEGREE
        at = quasi_random_points(1, PROJECTION.points)[:, 0]
        slices = [self._slice(j) for j in range(self._dimension)]
        variances = [float(np.mean(np.diag(kernel(at, at)))) for kernel in slices]
        while True:
            pairs = [eigenbasis(kernel, degree + 1, degree) for kernel in slices]
            missed = max(
                1 - float(values.sum()) / max(variance, 1e-300)
                for (values, _), variance in zip(pairs, variances, strict=True)
            )
            if missed <= PROJECTION.most_missed or degree >= self._highest_degree:
                return pairs
            degree = 2 * degree + 1

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

    def residual_covariance(self, residual_map: Array) -> Array:
        """Covariance of ``residual_map`` (k, points) times a function's values at the points.

        For the mean kernel; an array (k, k).
        """
        return np.asarray(residual_map @ (sum(self._grams) / len(self._grams)) @ residual_map.T)

    def _slice(self, j: int) -> Covariance:
        """The prior-mean kernel along one input, the others in the middle."""

        def kernel(a: Array, b: Array) -> Array:
            at = []
            for values in (a, b):
                unit = np.zeros((len(values), self._dimension))
                unit[:, j] = values
                at.append(self._natural(unit))
            return np.asarray(sum(k(at[0], at[1]) for k in self.kernels) / len(self.kernels))

        return kernel

    def choose(self, m: int) -> tuple[Basis, Array, Array]:
        """The m leading functions, and for each kernel their covariance and truncation variance.

        Returns the basis, and arrays (kernels, m, m) and (kernels,), in squared half-ranges of y.
        """
        basis = self._all.part(self._order[:m])
        values, projection = self.leading_functions(m)
        priors = []
        truncation_variances = []
        for gram in self._grams:
            S = project_covariance(gram, projection)
            priors.append(S)
            missed = np.maximum(np.diag(gram) - quadratic_forms(values, S), 0.0)
            if self._ignored_fraction:
                missed = np.sort(missed)[
                    : max(math.ceil((1 - self._ignored_fraction) * len(missed)), 1)
                ]
            truncation_variances.append(float(np.mean(missed)))
        return basis, np.array(priors), np.array(truncation_variances)

    def indefinite(self) -> bool:
        """Whether the first kernel has a negative variance in the span of its functions."""
        span, _ = np.linalg.qr(self._all.part(self._order[: self.max_size]).evaluate(self._points))
        variances = np.linalg.eigvalsh(span.T @ self._grams[0] @ span)
        return bool(variances[0] < -1e-9 * variances[-1])


def project_covariance(gram: Array, projection: Array) -> Array:
    """Covariance of coefficients whose function has this covariance at points."""
    S = projection @ gram @ projection.T
    return positive_definite_part((S + S.T) / 2, PROJECTION.jitter * np.trace(S) / len(S))


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
    energy = np.maximum(variances, PROJECTION.min_scaling_variance * variances.max()) ** exponent
    points = quasi_random_points(basis.dimension, PROJECTION.points)
    lengths = ((basis.evaluate(points) * energy) ** 2).sum(axis=1)
    most = ((basis.evaluate(corners(basis.dimension)) * energy) ** 2).sum(axis=1).max()
    return np.asarray(
        energy
        / math.sqrt(max(lengths.max(), most) if quantile == 1 else np.quantile(lengths, quantile))
    )


def norm_quantile(snr_per_function: float) -> float:
    """Quantile of the features' norms that they are clipped at.

    ``snr_per_function``: squared signal of n records over the privacy noise, per function.
    """
    if snr_per_function < PROJECTION.drowned_snr:
        return PROJECTION.drowned_quantile
    if snr_per_function < PROJECTION.negligible_noise_snr:
        return PROJECTION.noisy_quantile
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
    point = X[:1]
    return float(kernel.diag(point)[0] - kernel(point, point.copy())[0, 0])


def theta_range(
    kernel: Kernel, half: Array, shortest: float = PROJECTION.length_range[0]
) -> tuple[Array, Array]:
    """Lowest and highest θ, two arrays (p,).

    Within a factor of ten and the kernel's own bounds, with lengths that the box can tell apart:
    from ``shortest`` half-ranges of the input on.
    """
    widest = math.log(PROJECTION.hyperparameter_factor)
    low, high = (np.clip(kernel.theta + step, *kernel.bounds.T) for step in (-widest, widest))
    longest = PROJECTION.length_range[1]
    short = math.log(shortest * half.min())
    long = math.log(longest * half.max())
    names = [
        name
        for hyperparameter in kernel.hyperparameters
        for name in [hyperparameter.name]
        * (0 if hyperparameter.fixed else hyperparameter.n_elements)
    ]
    length = np.array(["length_scale" in name for name in names], dtype=bool)
    low = np.where(length, np.minimum(np.maximum(low, short), kernel.theta), low)
    high = np.where(length, np.maximum(np.minimum(high, long), kernel.theta), high)
    return low, high
