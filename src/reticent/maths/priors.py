"""Kernels as prior covariances of basis coefficients.

A kernel is evaluated on public points that fill the box and projected on the basis there; what the basis cannot represent is
counted as noise. The basis is made for the mean of all kernels that may be chosen later, so one release serves each of them.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import Kernel

from reticent.maths.basis import Basis, corners, eigenbasis, public_points, tensor_basis
from reticent.maths.linalg import quadratic

__all__ = [
    "CLEAR",
    "KernelPriors",
    "energies",
    "kernels_around",
    "projected",
    "range_around",
    "usual_length",
    "white_noise",
]

Array = NDArray[np.float64]
_POINTS = 512
_ONE_DIMENSION = 32
_DIGITS = 9  # of a share of the variance: far more than matter, fewer than machines agree on
CLEAR = 30.0  # squared signal over privacy noise, per function, from which on features are not shortened
_SHORTEST, _LONGEST = 0.1, 10.0  # lengthscales that a box of half-width 1 can tell apart


class KernelPriors:
    """Kernels as covariances of basis coefficients, by projection on public points; in units of y's half-range."""

    some = 0  # functions to take whatever their variance: none, for this prior is the user's own
    constant = -1  # among the functions: none is exactly one
    stands_out = 0.1  # share of the prior variance, times n/noise, of a function that is worth having

    def __init__(
        self,
        kernels: list[Kernel],
        dimension: int,
        natural: Callable[[Array], Array],
        y_half: float,
        aside: float = 0.0,  # share of the box, where functions are shown worst, that does not count: nearly nobody is there
        within: tuple[Array, Array] | None = None,  # what θ may be, if it is to be refined
        before: "KernelPriors | None" = None,  # with which other kernels stages began
    ) -> None:
        self.kernels, self._dimension, self._natural, self._aside = kernels, dimension, natural, aside
        self._y_half, self.within = y_half, within
        count = _POINTS if dimension > 1 else _POINTS // 2  # the functions on a line are few
        both = public_points(dimension, 2 * count)
        # two halves that fill the box: between different points, what no function shows does not look like one
        self._points, others = both[::2], both[1::2]
        at, there = natural(self._points), natural(others)
        self._grams = [kernel(at, at.copy()) / y_half**2 for kernel in kernels]
        mean = sum(kernel(at, there) for kernel in kernels) / (len(kernels) * y_half**2)
        self.white = white_noise(kernels[0], at) / y_half**2
        pairs = [eigenbasis(self._slice(j), _ONE_DIMENSION) for j in range(dimension)]
        # inputs that are alike have functions alike, which rounding must not order
        shares = [(v / v.sum()).round(_DIGITS) for v, _ in pairs]
        self._all, products = tensor_basis(shares, [q for _, q in pairs], count // 2)  # more, points cannot tell apart
        # by projection: sums over points have errors, from functions that are large, as large as small variances
        known = self._all.part(np.flatnonzero(products > 10.0**-_DIGITS))
        here, opposite = (np.linalg.pinv(known.evaluate(half)) for half in (self._points, others))
        variances = np.zeros(len(products))
        variances[: known.size] = ((here @ mean) * opposite).sum(axis=1)
        self._order = np.argsort(-(variances / max(variances.max(), 1e-300)).round(_DIGITS), kind="stable")
        self.variances = self.emphasis = np.maximum(variances[self._order], 0.0)
        if before is not None:  # energies stay broad: refined kernels may be sure of functions that records still move
            gram = sum(before._grams) / len(before._grams)
            broad = np.zeros(len(products))
            broad[: known.size] = ((here @ gram) * here).sum(axis=1)
            self.emphasis = np.maximum(broad[self._order], 0.0)
        self.most = len(self._order)

    def refined(self, kernels: list[Kernel]) -> "KernelPriors":
        """The same for other kernels, which are not to be refined again."""
        return KernelPriors(kernels, self._dimension, self._natural, self._y_half, self._aside, before=self)

    def gram(self, theta: Array) -> Array:
        """The first kernel with other hyperparameters, at the public points."""
        at = self._natural(self._points)
        return np.asarray(self.kernels[0].clone_with_theta(theta)(at, at.copy()) / self._y_half**2)

    def shown(self, m: int) -> tuple[Array, Array]:
        """The m leading functions at the public points, and the projection of values there on them."""
        values = self._all.part(self._order[:m]).evaluate(self._points)
        return values, np.asarray(np.linalg.pinv(values))

    def missed_by(self, other: "KernelPriors", m: int) -> float:
        """Mean variance that m leading functions of the other do not show."""
        values, projection = other.shown(m)
        return float(np.mean(np.diag(self.beyond(np.eye(len(values)) - values @ projection))))

    def beyond(self, rest: Array) -> Array:
        """Covariance of what rows of this matrix take from a function's values at the public points, for the mean kernel."""
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
        """The m leading functions, the covariance of their coefficients under each kernel, and what these leave out."""
        basis = self._all.part(self._order[:m])
        values, projection = self.shown(m)
        priors, outside = [], []
        for gram in self._grams:
            S = projected(gram, projection)
            priors.append(S)
            missed = np.maximum(np.diag(gram) - quadratic(values, S), 0.0)
            if self._aside:
                missed = np.sort(missed)[: max(math.ceil((1 - self._aside) * len(missed)), 1)]
            outside.append(float(np.mean(missed)))
        return basis, priors, np.array(outside)

    def indefinite(self) -> bool:
        """Whether the first kernel has a negative variance somewhere in the span of all functions that may be taken."""
        span, _ = np.linalg.qr(self._all.part(self._order[: self.most]).evaluate(self._points))
        variances = np.linalg.eigvalsh(span.T @ self._grams[0] @ span)
        return bool(variances[0] < -1e-9 * variances[-1])


def projected(gram: Array, projection: Array) -> Array:
    """Covariance of coefficients whose function has this covariance at points."""
    S = projection @ gram @ projection.T
    return _definite((S + S.T) / 2, 1e-7 * np.trace(S) / len(S))


def _definite(S: Array, least: float) -> Array:
    """S + least·I. A kernel may be positive definite with some parameters only: then without its negative variances."""
    lifted: Array = S + least * np.eye(len(S))
    try:
        np.linalg.cholesky(lifted)
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(S)
        lifted = (vectors * (np.maximum(values, 0.0) + least)) @ vectors.T
    return lifted


def energies(basis: Basis, variances: Array, exponent: float, quantile: float) -> Array:
    """Factors for the basis functions: a power of the prior variance, such that most features have a length of at most one."""
    energy = np.maximum(variances, 1e-9 * variances.max()) ** exponent
    points = public_points(basis.dimension, _POINTS)
    lengths = ((basis.evaluate(points) * energy) ** 2).sum(axis=1)
    most = ((basis.evaluate(corners(basis.dimension)) * energy) ** 2).sum(axis=1).max()
    return np.asarray(energy / math.sqrt(max(lengths.max(), most) if quantile == 1 else np.quantile(lengths, quantile)))


def usual_length(told: float) -> float:
    """The quantile of the features' lengths beyond which they are shortened: that blurs corners of the box, and saves noise.

    ``told`` is the squared signal of n records over the privacy noise, per function.
    """
    return 0.5 if told < 1 else 0.95 if told < CLEAR else 1.0


def kernels_around(kernel: Kernel, half: Array, trials: int) -> list[Kernel]:
    """The kernel and others within a factor of ten, inside its own bounds, with lengths that the box can tell apart."""
    if len(kernel.theta) == 0:
        return [kernel]
    from scipy.stats import qmc

    low, high = range_around(kernel, half)
    places = qmc.Halton(len(kernel.theta), scramble=False).random(trials + 1)[1:]
    return [kernel, *(kernel.clone_with_theta(low + (high - low) * place) for place in places)]


def white_noise(kernel: Kernel, X: Array) -> float:
    """Variance of the kernel's white noise, which scikit-learn leaves out between a point and its copy."""
    one = X[:1]
    return float(kernel.diag(one)[0] - kernel(one, one.copy())[0, 0])


def range_around(kernel: Kernel, half: Array) -> tuple[Array, Array]:
    """What θ may be: within a factor of ten and the kernel's own bounds, with lengths that the box can tell apart."""
    low, high = (np.clip(kernel.theta + step, *kernel.bounds.T) for step in (-math.log(10), math.log(10)))
    short, long = math.log(_SHORTEST * half.min()), math.log(_LONGEST * half.max())
    names = [name for one in kernel.hyperparameters for name in [one.name] * (0 if one.fixed else one.n_elements)]
    length = np.array(["length_scale" in name for name in names], dtype=bool)
    low = np.where(length, np.minimum(np.maximum(low, short), kernel.theta), low)
    high = np.where(length, np.maximum(np.minimum(high, long), kernel.theta), high)
    return low, high
