"""Nanoseconds per draw of exact noise, against NumPy's normal in the same run:
`python benchmarks/noise.py [--quick]`.
"""

import sys
import time
from statistics import median

import numpy as np

from reticent.privacy.noise import FAMILIES, Scale, floor_noise
from reticent.privacy.random_bits import Bits

if "--quick" in sys.argv:
    SIZE = 20_000
    RUNS = 2
else:
    SIZE = 500_000
    RUNS = 5
SCALES = {
    "0.5": Scale(2**40, 41),
    "1000": Scale(1000 << 31, 31),
    "2^20 + 1": Scale((2**20 + 1) << 20, 20),
    "2^40": Scale(2**40, 0),
    "2^40 + 1": Scale(2**40 + 1, 0),  # half of all attempts fall outside: the worst case
    "2^58": Scale(2**58, 0),
}


def nanoseconds(draw) -> float:
    """Median over several runs."""
    draw()
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        draw()
        times.append(time.perf_counter() - start)
    return median(times) / SIZE * 1e9


def main() -> None:
    rng = np.random.default_rng()
    plain = nanoseconds(lambda: rng.normal(size=SIZE))
    print(f"{SIZE:,} draws, median of {RUNS} runs; NumPy's normal: {plain:.1f} ns per draw")
    print(f"{'family':<10}{'scale':>10}{'ns per draw':>14}{'times NumPy':>14}")
    for family in FAMILIES:
        for name, scale in SCALES.items():
            exact = nanoseconds(
                lambda family=family, scale=scale: floor_noise(family, scale, SIZE, Bits())
            )
            print(f"{family:<10}{name:>10}{exact:>14.1f}{exact / plain:>14.1f}")


if __name__ == "__main__":
    main()
