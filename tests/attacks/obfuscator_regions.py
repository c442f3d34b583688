"""Regions of a curve.

Kernels that do not fall with distance, whose values between the checked points are released.
"""

import numpy as np
from sklearn.gaussian_process.kernels import RBF, Kernel, PairwiseKernel

import reticent
from tests.attacks.harness import Outcome, attack

PERIOD = 1 / 20_000  # half a cell of the region (0, 1): centres and corners are all in phase
PROMISED = 0.5


def wave(a, b):
    return np.cos(2 * np.pi * (a[:, :1] - b[:, 0]) / PERIOD)


class Cosine(Kernel):
    """A wave of one period with random phase: a covariance, and a legal kernel of scikit-learn."""

    def __init__(self):
        pass

    def __call__(self, X, Y=None, eval_gradient=False):
        return wave(X, X if Y is None else Y)

    def diag(self, X):
        return np.ones(len(X))

    def is_stationary(self):
        return True


class Renamed(RBF):
    """An RBF by its class's parent, a wave by its values."""

    def __call__(self, X, Y=None, eval_gradient=False):
        return wave(X, X if Y is None else Y)


def same_wave(a, b, gamma):
    return float(np.cos(2 * np.pi * (a[0] - b[0]) / PERIOD))


def hidden_between_the_centres(kernel: Kernel) -> Outcome:
    """Release records inside the sensitive region, a quarter of a wave from every checked point."""
    x = (np.arange(40) * 500 + 0.25) * PERIOD
    y = 1.3 * np.sin(2 * np.pi * x / PERIOD)
    hide = reticent.Obfuscator(kernel, sensitive=[(0.0, 1.0)], variance=PROMISED, mean=0.0)
    released = hide.obfuscate(x, y)
    variance = float(hide.predict(x[:1], return_std=True)[1][0] ** 2)
    figure = (
        f"promised {PROMISED}, kept {variance:.1e}; released − true at most "
        f"{np.abs(released - y).max():.0e}"
    )
    return Outcome(variance < PROMISED * (1 - 1e-6), figure)


@attack("8a", "A kernel of one's own that oscillates between the points checked in a region")
def own_kernel() -> Outcome:
    return hidden_between_the_centres(Cosine())


@attack("8a", "The same as a subclass of RBF")
def subclass() -> Outcome:
    return hidden_between_the_centres(Renamed(1.0))


@attack("8a", "The same by scikit-learn's PairwiseKernel, with a function of one's own")
def pairwise() -> Outcome:
    return hidden_between_the_centres(PairwiseKernel(metric=same_wave))


@attack(
    "8a",
    "A promised variance that is a kernel of one's own: high between the "
    "checked points, low at them",
)
def promised_kernel() -> Outcome:
    class High(Cosine):
        """Variance .05 at the centres of cells, which are even multiples of half the period, .5
        between them.
        """

        def __init__(self):
            pass

        def __call__(self, X, Y=None, eval_gradient=False):
            def spread(at):
                return np.sqrt(0.05 + 0.45 * np.sin(2 * np.pi * at[:, 0] / PERIOD) ** 2)

            other = X if Y is None else Y
            return np.outer(spread(X), spread(other)) * RBF(0.2)(X, other)

    x = np.linspace(0, 1, 21)
    hide = reticent.Obfuscator(RBF(0.2, "fixed"), sensitive=[(0.0, 1.0)], variance=High(), mean=0.0)
    hide.obfuscate(x, np.sin(6 * x))
    at = np.array([[1000.25 * PERIOD]])
    promised = float(High()(at, at.copy())[0, 0])
    variance = float(hide.predict(at, return_std=True)[1][0] ** 2)
    return Outcome(
        variance < promised * (1 - 1e-6), f"promised {promised:.2f} there, kept {variance:.3f}"
    )
