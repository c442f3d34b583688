"""Label-only Gaussian processes as printed, and with single corrections.

To compare with, **not private releases to use**. All of them take labels y with a public width
(what one label may change), fit the mean f(x*) = C y of a Gaussian process with a known kernel, and
add noise to it; what they differ in is the noise. It is NumPy's, from a seed, and its sums are
floats.
"""

import math
import warnings
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from reticent.inference.labels.cloaking import cloak
from reticent.models.gp.label_regressor import LabelGPRegressor
from reticent.privacy.accounting.composition import calibrate
from reticent.privacy.bounds import Bounds
from reticent.studies.smith2018.printed_sensitivities import (
    exact_sensitivity,
    fitc_map,
    row_sum,
    smith_kernel,
)

__all__ = ["DELTA", "Problem", "label_model", "noise_root"]

Array = NDArray[Any]
DELTA = 0.01  # the paper's
_JITTER = 1e-9


@dataclass(frozen=True, eq=False)
class Problem:
    """Public inputs, test points, inducing inputs, and the kernel's parameters.

    Inputs are scaled so that the kernel has one length scale.
    """

    x: Array
    at: Array
    inducing: Array
    length: float  # of exp(−r²/ℓ²)
    variance: float
    noise2: float
    width: float  # of the range of y

    def map(self, inducing: bool) -> Array:
        """C, without inducing inputs or with."""
        if inducing:
            alpha, _ = fitc_map(self.x, self.inducing, self.length, self.noise2 / self.variance)
            return smith_kernel(self.at, self.inducing, self.length) @ alpha
        gram = smith_kernel(self.x, self.x, self.length) + self.noise2 / self.variance * np.eye(
            len(self.x)
        )
        return np.asarray(np.linalg.solve(gram, smith_kernel(self.x, self.at, self.length)).T)


def noise_root(problem: Problem, method: str, epsilon: float, delta: float) -> tuple[Array, Array]:
    """C, and a root of the covariance of the noise.

    C y + root @ (independent normal numbers) is what ``method`` releases.

    Methods: "printed", "exact", "logdet cloak", "trace cloak", each also with the word "inducing"
    in it.
    """
    few = "inducing" in method
    C = problem.map(few)
    if "cloak" in method:
        found = cloak(C, "logdet" if "logdet" in method else "trace")
        return C, found.back * (problem.width * calibrate(epsilon, delta))
    ratio = problem.noise2 / problem.variance
    if few:
        alpha, gram = fitc_map(problem.x, problem.inducing, problem.length, ratio)
    else:
        gram = smith_kernel(problem.x, problem.x, problem.length)
        alpha = np.linalg.inv(gram + ratio * np.eye(len(gram)))
    if method.startswith("printed"):  # kernels of variance one
        scale = problem.width * row_sum(alpha) * math.sqrt(2 * math.log(1.25 / delta)) / epsilon
    else:
        scale = problem.width * exact_sensitivity(alpha, gram) * calibrate(epsilon, delta)
    path = smith_kernel(problem.at, problem.at, problem.length)
    return C, scale * np.linalg.cholesky(path + _JITTER * np.eye(len(path)))


class _AtPapersDelta(LabelGPRegressor):
    """Ours, without the remark that δ = .01 is too large for so few records.

    The comparison needs it.
    """

    def fit(self, X: Any, y: Any = None, **beside: Any) -> Self:
        """Pay, read, learn."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            return super().fit(X, y, **beside)


def label_model(
    bounds: Bounds, epsilon: float, seed: int, params: dict[str, Any]
) -> LabelGPRegressor:
    """Our model at the paper's δ, with noise from a seed."""
    return _AtPapersDelta(bounds=bounds, epsilon=epsilon, delta=DELTA, random_state=seed, **params)
