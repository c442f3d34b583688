"""Libraries that are exact for small products only.

Sums that are off are sums that somebody's record can be read from.
"""

import subprocess
import sys

import numpy as np

import reticent
from tests.attacks.harness import Outcome, attack

_matmul = np.matmul


def _strassen(a: np.ndarray, b: np.ndarray, levels: int = 2) -> np.ndarray:
    """Strassen's method: seven products of sums instead of eight products."""
    m, k = a.shape
    n = b.shape[1]
    if not levels or m % 2 or k % 2 or n % 2:
        return _matmul(a, b)
    a11, a12, a21, a22 = (
        a[i : i + m // 2, j : j + k // 2] for i in (0, m // 2) for j in (0, k // 2)
    )
    b11, b12, b21, b22 = (
        b[i : i + k // 2, j : j + n // 2] for i in (0, k // 2) for j in (0, n // 2)
    )
    pairs = [
        (a11 + a22, b11 + b22),
        (a21 + a22, b11),
        (a11, b12 - b22),
        (a22, b21 - b11),
        (a11 + a12, b22),
        (a21 - a11, b11 + b12),
        (a12 - a22, b21 + b22),
    ]
    p = [_strassen(left, right, levels - 1) for left, right in pairs]
    return np.block(
        [[p[0] + p[3] - p[4] + p[6], p[2] + p[4]], [p[1] + p[3], p[0] - p[1] + p[2] + p[5]]]
    )


def _single(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return _matmul(a.astype(np.float32), b.astype(np.float32)).astype(np.float64)


def _fits_with(method, least: int = 256) -> Outcome:
    """Fit 299 columns with a library that takes ``method`` from ``least`` columns on."""

    def multiply(a: np.ndarray, b: np.ndarray, **options: object) -> np.ndarray:
        whole = a.ndim == b.ndim == 2 and not (a.shape[0] % 2 or a.shape[1] % 2 or b.shape[1] % 2)
        large = whole and min(a.shape[0], b.shape[1]) >= least
        return method(a, b) if large else _matmul(a, b, **options)

    random = np.random.default_rng(0)
    q = np.zeros((2048, 300))
    for part in range(4):  # rows as long as a Gram matrix allows
        q[512 * part : 512 * (part + 1), 75 * part] = 2**21 - random.integers(1, 1000, 512)
    whole = q.astype(np.int64)
    off = int(np.abs(multiply(q.T, q) - whole.T @ whole).max())
    np.matmul = multiply
    try:
        model = reticent.PrivateCovariance(bounds=reticent.Bounds(x=(-1, 1)), epsilon=1, delta=1e-6)
        model.fit(random.uniform(-1, 1, (1000, 299)))
    finally:
        np.matmul = _matmul
    return Outcome(
        off > 0,
        f"accepted, and exact sums of 300 columns are off by up to {off:,} steps of the grid",
    )


@attack("7", "A BLAS that takes Strassen's method from 256 columns on passes the check")
def strassen() -> Outcome:
    return _fits_with(_strassen)


@attack("7", "A BLAS that takes single precision from 256 columns on passes the check")
def single_precision() -> Outcome:
    return _fits_with(_single)


@attack("7", "A BLAS that takes Strassen's method from 290 columns on passes the check")
def strassen_later() -> Outcome:
    return _fits_with(_strassen, 290)


def _in_a_new_process(code: str) -> Outcome:
    """Run a program that prints what came of it: libraries are looked at once per process."""
    command = [sys.executable, "-W", "ignore", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    refused = done.stdout.startswith("refused")
    figure = done.stdout.strip().removeprefix("refused: ")[:90]
    return Outcome(not refused, figure, refused=refused)


@attack("7", "Noise is drawn with an np.exp of single precision")
def exponential() -> Outcome:
    return _in_a_new_process("""if True:
        import numpy as np, reticent
        real = np.exp
        def single(x, *arguments, **options):
            found = real(np.asarray(x, dtype=np.float32), *arguments, **options)
            return np.asarray(found, dtype=np.float64)
        np.exp = single
        x = np.linspace(-6, 0, 1000)
        off = np.abs(single(x) - real(x)).max()
        model = reticent.PrivateMean(bounds=reticent.Bounds(x=(-1, 1)), epsilon=1, delta=1e-6)
        try:
            model.fit(np.zeros((10, 1)))
            print(f"accepted, and off by up to {off:.0e}; the sampler's proof allows {2**-31:.0e}")
        except reticent.ReleaseRefused as refusal:
            print("refused:", refusal)
    """)


@attack("7", "A worker of a cluster adds up with a BLAS of single precision that nobody looked at")
def worker() -> Outcome:
    return _in_a_new_process("""if True:
        import numpy as np, pandas as pd, reticent, tests.attacks
        from reticent.privacy.sources.clusters.dask import _partition_total
        from reticent.privacy.sources.base import Field
        np.matmul = lambda a, b: (a.astype(np.float32) @ b.astype(np.float32)).astype(float)
        frame, one = pd.DataFrame({"a": [16777217.0]}), np.ones((1, 1))
        work = (Field(0),), lambda block: np.matmul(block.T, one), 10
        try:
            print("off by", abs(int(_partition_total(frame, work).integers()[0, 0]) - 16777217))
        except reticent.ReleaseRefused as refusal:
            print("refused:", refusal)
    """)
