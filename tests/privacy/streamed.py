"""What tests of streams release: two statistics, and correlations of the noise of sixteen steps."""

from dataclasses import dataclass

from reticent.maths.factorisation import root_coefficients
from reticent.privacy.bounds import Bounds
from reticent.privacy.statistic import Gram, Sum
from reticent.privacy.stream import SHIFT, Buffers, Echo, Toeplitz

BOUNDS = Bounds(x=[(-1, 1)], y=(-1, 1))
STEPS = 16
ROOT = Toeplitz([int(c * 2**SHIFT) for c in root_coefficients(STEPS)])
SOME = Buffers([int(0.6 * 2**SHIFT), int(0.97 * 2**SHIFT)], [int(0.3 * 2**SHIFT), int(0.15 * 2**SHIFT)])

BACK = 0.65
ECHO = Echo(int(BACK * 2**SHIFT))


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
