"""The data of Honkela's Secs 6.1 to 6.3, made from a seed.

The paper leaves open the bound on |y|, where inputs lie, and the kernel's amplitude: here |y| ≤ 1.3
in 6.1 and 6.3, where the function is at most 1; |y| ≤ 3 in 6.2, three standard deviations of the
prior; inputs are uniform; the amplitude is 1.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import RBF

__all__ = [
    "DELTA",
    "EPSILONS",
    "HALF",
    "SETUPS",
    "Data",
    "Setup",
    "noisy_sinc",
    "prior_draw",
    "sinc",
]

Array = NDArray[np.float64]
Function = Callable[[Array], Array]

EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
DELTA = 1e-4
HALF = 4.0  # inputs are in [−4, 4]
_GRID = np.linspace(-HALF, HALF, 161)
_ROOT = np.linalg.cholesky(RBF(1.0)(_GRID[:, None]) + 1e-9 * np.eye(len(_GRID)))


@dataclass(frozen=True)
class Data:
    """Records for the fit, points and outputs to test it, and the function behind both."""

    truth: Function
    x: Array
    y: Array
    at: Array
    y_at: Array


@dataclass(frozen=True)
class Setup:
    """One section of the paper: records, noise, bound on |y|, inducing points of its method."""

    section: str
    n: int
    sigma: float
    reach: float
    inducing: tuple[float, ...]

    @property
    def name(self) -> str:
        """Section and noise level."""
        return f"{self.section}, σ={self.sigma:g}"

    def draw(self, rng: np.random.Generator) -> Data:
        """Fresh data; in Sec 6.2 from a fresh function."""
        truth = sinc if self.section == "6.1" else prior_draw(rng)
        x = rng.uniform(-HALF, HALF, self.n)
        at = rng.uniform(-HALF, HALF, 512)
        y, y_at = (truth(one) + self.sigma * rng.normal(size=len(one)) for one in (x, at))
        return Data(truth, x, y, at, y_at)


def sinc(x: Array) -> Array:
    """sin(2x)/2x."""
    return np.sinc(2 * x / np.pi)


def prior_draw(rng: np.random.Generator) -> Function:
    """A function from the prior of Sec 6.2: exponentiated quadratic, length 1, on a fine grid."""
    values = _ROOT @ rng.normal(size=len(_GRID))
    return lambda x: np.interp(x, _GRID, values)


def noisy_sinc(n: int, sigma: float, rng: np.random.Generator) -> tuple[Array, Array]:
    """The records of Sec 6.3."""
    x = rng.uniform(-HALF, HALF, n)
    return x, sinc(x) + sigma * rng.normal(size=n)


_NINE = tuple(np.linspace(-3, 3, 9))
_FIFTEEN = tuple(np.linspace(-3.5, 3.5, 15))
SETUPS = (
    Setup("6.1", 1024, 0.1, 1.3, _NINE),
    Setup("6.2", 512, 0.1, 3.0, _FIFTEEN),
    Setup("6.2", 512, 0.3, 3.0, _FIFTEEN),
    Setup("6.2", 512, 1.0, 3.0, _FIFTEEN),
)
