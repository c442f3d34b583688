"""How fast are exact Gram sums? `python benchmarks/gram.py [--quick]`

Everything is timed in one run, by turns, in CPU seconds of one thread, so that the ratios mean
something on a shared machine:

    peak          dgemm on 2048 × 2048 matrices: what a core of this machine can do
    XᵀX           NumPy's float product alone, with no bound on any record
    float         the same statistic in plain NumPy: clip to the bounds, scale, clip the norm,
                  multiply; not exact, not private
    exact         reticent's, from raw records to integers
    sklearn RBF   scikit-learn's rbf_kernel(X, Z) and its product, in blocks so that it fits in
                  memory
    exact RBF     the same features by an exact row map: integer distances, exp by table, integers

`exact` must not be slower than 1.15 × `float`.
"""

import argparse
import math
import os
import time
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel
from threadpoolctl import threadpool_limits

from reticent import Bounds, Gram, scan
from reticent.privacy.record_sum import BlockSum
from reticent.privacy.statistics.enforced import enforce

GRID = 2**16  # of inputs and centres, so that squared distances are exact integers
FINE = 4096
SPAN = 32  # exp(−32) is below every grid used here


@dataclass(frozen=True)
class Box(Gram):
    """The records themselves, scaled to the box."""

    m: int

    columns = property(lambda self: self.m)
    norm2 = property(lambda self: self.m)

    def rows(self, records):
        return records


@dataclass(frozen=True)
class RBF(Gram):
    """exp(−‖x−z‖²/2ℓ²) at m public centres.

    Exact integer distances, two table look-ups, one multiplication.
    """

    m: int
    d: int
    length: float

    columns = property(lambda self: self.m)
    norm2 = property(lambda self: self.m)

    @cached_property
    def centres(self):
        return np.trunc(np.random.default_rng(0).uniform(-1, 1, size=(self.m, self.d)) * GRID)

    @cached_property
    def tables(self):
        step = Decimal(SPAN) / FINE**2
        coarse = [float((-step * FINE * i).exp()) for i in range(FINE)] + [0.0]
        return np.array(coarse), np.array([float((-step * i).exp()) for i in range(FINE)])

    def rows(self, records):
        x = np.trunc(records * GRID)
        z = self.centres
        squares = x @ z.T  # whole numbers below 2^53: exact, wherever the row stands
        squares *= -2
        squares += (x * x).sum(axis=1)[:, None]
        squares += (z * z).sum(axis=1)
        squares *= FINE**2 / SPAN / (2 * self.length**2 * GRID**2)
        np.minimum(squares, FINE**2, out=squares)
        index = squares.astype(np.int32)
        coarse, fine = self.tables
        rows = coarse.take(index >> 12)
        rows *= fine.take(index & (FINE - 1))
        return rows


def exact(X, statistic, bounds):
    source = scan(X)
    resolved, fields = bounds.resolve(source, targets=False)
    return source.total(
        fields, BlockSum(enforce(statistic), resolved), rows=statistic.block_rows, threads=1
    ).integers()


def plain(X, m):
    Z = np.clip(np.nan_to_num((X - 0.5) * 2.0), -1, 1)
    Z *= np.minimum(1, math.sqrt(m) / np.sqrt(np.einsum("ij,ij->i", Z, Z)))[:, None]
    return Z.T @ Z


def sklearn_rbf(X, centres, length):
    total = 0.0
    for start in range(0, len(X), 50_000):
        K = rbf_kernel(
            (X[start : start + 50_000] - 0.5) * 2.0, centres / GRID, gamma=1 / (2 * length**2)
        )
        total = total + K.T @ K
    return total


def by_turns(tasks, repeats):
    """Least CPU seconds of each task, all tasks taking turns."""
    best = dict.fromkeys(tasks, math.inf)
    for _ in range(repeats):
        for name, task in tasks.items():
            start = time.process_time()
            task()
            best[name] = min(best[name], time.process_time() - start)
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    if quick:
        side = 1024
    else:
        side = 2048
    square = np.random.default_rng(0).normal(size=(side, side))
    bounds = Bounds(x=(0, 1))
    for n, m, d in [(1_000_000, 100, 8), (200_000, 500, 8)]:
        if quick:
            n = n // 100
        X = np.random.default_rng(1).uniform(-0.05, 1.05, size=(n, m))
        few = np.random.default_rng(2).uniform(0, 1, size=(n, d))
        kernel = RBF(m, d, 0.7)
        tasks = {
            "peak": lambda: square @ square,
            "XᵀX": lambda X=X: X.T @ X,
            "float": lambda X=X, m=m: plain(X, m),
            "exact": lambda X=X, m=m: exact(X, Box(m), bounds),
            "sklearn RBF": lambda few=few, kernel=kernel: sklearn_rbf(
                few, kernel.centres, kernel.length
            ),
            "exact RBF": lambda few=few, kernel=kernel: exact(few, kernel, bounds),
        }
        with threadpool_limits(1):
            best = by_turns(tasks, 2 if quick else 4)
        peak = 2 * side**3 / best["peak"] / 1e9
        error = np.abs(
            exact(few, kernel, bounds).astype(float) * 4.0**-kernel.bits / n
            - sklearn_rbf(few, kernel.centres, kernel.length) / n
        )
        print(
            f"n = {n:,}, m = {m}   (dgemm peak of a core {peak:.0f} GFlop/s; RBF "
            f"features agree to {error.max():.1e}; load {os.getloadavg()[0]:.1f})"
        )
        for name, seconds in best.items():
            if name != "peak":
                rate = (
                    n * m * (m + 1) / seconds / 1e9
                )  # a symmetric product needs half the multiplications
                print(
                    f"  {name:12s} {seconds:8.3f} s   {rate:6.1f} GFlop/s = "
                    f"{rate / peak:4.0%} of peak"
                )
        print(
            f"  exact / float = {best['exact'] / best['float']:.2f}   "
            f"exact RBF / sklearn RBF = {best['exact RBF'] / best['sklearn RBF']:.2f}"
        )


if __name__ == "__main__":
    main()
