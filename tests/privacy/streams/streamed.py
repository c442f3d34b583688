"""What tests of streams release: two statistics, and correlations of the noise of sixteen steps."""

from dataclasses import dataclass

from reticent.inference.online.matrix_factorization import root_coefficients
from reticent.privacy.bounds import Bounds
from reticent.privacy.statistics.gram import Gram
from reticent.privacy.statistics.sum import Sum
from reticent.privacy.streams.correlated_noise import (
    COEFFICIENT_BITS,
    BinaryTree,
    BufferedToeplitz,
    GeometricCorrelation,
    IndependentNoise,
    Toeplitz,
)

BOUNDS = Bounds(x=[(-1, 1)], y=(-1, 1))
STEPS = 16
INDEPENDENT = IndependentNoise()
TREE = BinaryTree()
ROOT = Toeplitz([int(c * 2**COEFFICIENT_BITS) for c in root_coefficients(STEPS)])
SOME = BufferedToeplitz(
    [int(0.6 * 2**COEFFICIENT_BITS), int(0.97 * 2**COEFFICIENT_BITS)],
    [int(0.3 * 2**COEFFICIENT_BITS), int(0.15 * 2**COEFFICIENT_BITS)],
)

BACK = 0.65
ECHO = GeometricCorrelation(int(BACK * 2**COEFFICIENT_BITS))


class _AsTheyAre:
    columns = 2
    norm2 = 2

    def rows(self, records):
        return records


@dataclass(frozen=True)
class Pair(_AsTheyAre, Gram):
    """Moments of (x, y)."""


@dataclass(frozen=True)
class Both(_AsTheyAre, Sum):
    """x and y."""
