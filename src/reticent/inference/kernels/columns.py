"""Kernels of single columns: words, cycles, and any kernel on some of the columns.

They are scikit-learn kernels, of codes: a word is its position among the levels.
"""

from collections.abc import Sequence
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    Hyperparameter,
    Kernel,
    Matern,
    NormalizedKernelMixin,
    StationaryKernelMixin,
)

from reticent.inference.kernels.axes import Axis
from reticent.number_kinds import Prior

__all__ = ["Levels", "OnColumns", "Periodic", "mixed_kernel", "smooth_columns"]

Array = NDArray[np.float64]
# between records with different words
_CORRELATION: Prior[tuple[float, float]] = (0.03, 0.95)


class Levels(StationaryKernelMixin, NormalizedKernelMixin, Kernel):  # type: ignore[misc]
    """Words in no order: 1 between records with the same word, ``correlation`` between others."""

    def __init__(
        self,
        column: int,
        correlation: float = 0.3,
        correlation_bounds: Any = _CORRELATION,
    ) -> None:
        self.column = column
        self.correlation = correlation
        self.correlation_bounds = correlation_bounds

    @property
    def hyperparameter_correlation(self) -> Hyperparameter:
        """The correlation between different words."""
        return Hyperparameter("correlation", "numeric", self.correlation_bounds)

    def __call__(self, X: Array, Y: Array | None = None, eval_gradient: bool = False) -> Array:
        """Covariance between rows; without a gradient."""
        if eval_gradient:
            raise NotImplementedError("Levels has no gradient: weigh hypotheses instead.")
        other = X if Y is None else Y
        same = np.rint(X[:, self.column])[:, None] == np.rint(other[:, self.column])
        return np.where(same, 1.0, self.correlation)

    def __repr__(self) -> str:
        return f"Levels(column={self.column}, correlation={self.correlation:.3g})"


class Periodic(StationaryKernelMixin, NormalizedKernelMixin, Kernel):  # type: ignore[misc]
    """A smooth function on a circle: an RBF kernel of the chord, in the units of the column."""

    def __init__(
        self,
        length_scale: float = 1.0,
        period: float = 1.0,
        length_scale_bounds: Any = (1e-5, 1e5),
    ) -> None:
        self.length_scale = length_scale
        self.period = period
        self.length_scale_bounds = length_scale_bounds

    @property
    def hyperparameter_length_scale(self) -> Hyperparameter:
        """The lengthscale along the circle."""
        return Hyperparameter("length_scale", "numeric", self.length_scale_bounds)

    def __call__(self, X: Array, Y: Array | None = None, eval_gradient: bool = False) -> Array:
        """Covariance between rows of one column; without a gradient."""
        if eval_gradient:
            raise NotImplementedError("Periodic has no gradient: weigh hypotheses instead.")
        other = X if Y is None else Y
        chord = np.sin(np.pi * (X - other.T) / self.period) * (self.period / np.pi)
        return np.exp(-0.5 * (chord / self.length_scale) ** 2)

    def __repr__(self) -> str:
        return f"Periodic(length_scale={self.length_scale:.3g}, period={self.period:.3g})"


class OnColumns(Kernel):  # type: ignore[misc]
    """A kernel that sees some of the columns."""

    def __init__(self, kernel: Kernel, columns: Sequence[int]) -> None:
        self.kernel = kernel
        self.columns = columns

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters, and with ``deep`` those of the kernel."""
        params = {"kernel": self.kernel, "columns": self.columns}
        if deep:
            params |= {f"kernel__{k}": value for k, value in self.kernel.get_params().items()}
        return params

    @property
    def hyperparameters(self) -> list[Hyperparameter]:
        """Those of the kernel."""
        return [
            Hyperparameter(f"kernel__{one.name}", one.value_type, one.bounds, one.n_elements)
            for one in self.kernel.hyperparameters
        ]

    @property
    def theta(self) -> Array:
        """That of the kernel."""
        return np.asarray(self.kernel.theta)

    @theta.setter
    def theta(self, theta: Array) -> None:
        self.kernel.theta = theta

    @property
    def bounds(self) -> Array:
        """Those of the kernel."""
        return np.asarray(self.kernel.bounds)

    def __call__(self, X: Array, Y: Array | None = None, eval_gradient: bool = False) -> Any:
        """Covariance between rows."""
        columns = list(self.columns)
        return self.kernel(X[:, columns], None if Y is None else Y[:, columns], eval_gradient)

    def diag(self, X: Array) -> Array:
        """Variance at each row."""
        return np.asarray(self.kernel.diag(X[:, list(self.columns)]))

    def is_stationary(self) -> bool:
        """Whether the kernel is."""
        return bool(self.kernel.is_stationary())

    def __repr__(self) -> str:
        return f"OnColumns({self.kernel!r}, {list(self.columns)})"


def smooth_columns(axes: Sequence[Axis]) -> list[int]:
    """Columns that an RBF kernel serves: numbers, dates and ordered levels."""
    return [j for j, axis in enumerate(axes) if axis.shape in ("line", "ordered")]


def mixed_kernel(
    axes: Sequence[Axis],
    lengths: Array,
    length_bounds: Array,
    constant: Kernel,
    size: Kernel,
    periods: Sequence[float] | None = None,
    nu: float = inf,
) -> Kernel:
    """The default prior of a function of some columns: all of them at once, and words alone.

    Parameters
    ----------
    axes : sequence of Axis
        Of each column.
    lengths, length_bounds : arrays (columns,) and (columns, 2)
        In the columns' units.
    constant, size : kernels
        Variances of the constant, and of every effect, each with bounds.
    periods : sequence of float, optional
        Of each column, for cycles; without them cycles are smooth columns.
    nu : float
        How smooth functions of numbers are: an RBF kernel if infinite, else a Matérn kernel.
    """
    smooth = smooth_columns(axes)
    if periods is None:
        smooth = [j for j, axis in enumerate(axes) if axis.shape != "words"]
    whole = constant_like(size)
    if len(smooth) == len(axes) > 1:
        whole = whole * _smooth(lengths, length_bounds, nu)
    elif len(smooth) == len(axes):
        whole = whole * _smooth(float(lengths[0]), tuple(length_bounds[0]), nu)
    elif len(smooth) == 1:
        j = smooth[0]
        of_column = _smooth(float(lengths[j]), tuple(length_bounds[j]), nu)
        whole = whole * OnColumns(of_column, (j,))
    elif smooth:
        of_columns = _smooth(lengths[smooth], length_bounds[smooth], nu)
        whole = whole * OnColumns(of_columns, tuple(smooth))
    total = constant
    for j, axis in enumerate(axes):
        if axis.shape == "words":
            total = total + constant_like(size) * Levels(j, 0.0, "fixed")
            whole = whole * Levels(j)
        elif j not in smooth and periods is not None:
            cycle = Periodic(float(lengths[j]), float(periods[j]), tuple(length_bounds[j]))
            whole = whole * OnColumns(cycle, (j,))
    return total + whole


def _smooth(lengths: Array | float, bounds: Any, nu: float) -> Kernel:
    if nu == inf:
        return RBF(lengths, bounds)
    return Matern(lengths, bounds, nu=nu)


def constant_like(kernel: Kernel) -> ConstantKernel:
    """Another constant kernel with the same value and bounds."""
    return ConstantKernel(kernel.constant_value, kernel.constant_value_bounds)
