"""Smith, Zwiessele and Lawrence.

The numbers in the text, as printed and with the sensitivity that one label really has. Their kernel
is exp(−r²/ℓ²), which is an RBF with length scale ℓ/√2. They bound what one label moves the mean by
with row sums of the matrix that takes labels to coefficients; one label changes one *column* c of
it, so the exact distance, in the norm of the kernel's own space, is √(cᵀKc) for one unit of the
label.
"""

import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.privacy.accounting.composition import calibrate
from reticent.studies.common.results import Claim, Findings, Progress, ResultTable

__all__ = ["exact_sensitivity", "fitc_map", "row_sum", "run", "smith_kernel"]

Array = NDArray[Any]


def smith_kernel(a: Array, b: Array, length: float) -> Array:
    """exp(−r²/ℓ²), for points as rows."""
    return np.asarray(np.exp(-np.square(a[:, None] - b[None]).sum(axis=-1) / length**2))


def row_sum(matrix: Array) -> float:
    """The largest sum of absolute values of a row: the paper's ‖·‖_∞."""
    return float(np.abs(matrix).sum(axis=1).max())


def exact_sensitivity(matrix: Array, gram: Array) -> float:
    """max_j √(c_jᵀKc_j).

    How far one unit of one label moves Σ α_i k(x_i, ·) in the kernel's own norm.
    """
    return math.sqrt(float(((gram @ matrix) * matrix).sum(axis=0).max()))


def fitc_map(x: Array, inducing: Array, length: float, noise2: float) -> tuple[Array, Array]:
    """Eq. (8), labels to coefficients of the inducing inputs, and K_uu."""
    kuu = smith_kernel(inducing, inducing, length)
    kuf = smith_kernel(inducing, x, length)
    lam = np.maximum(1.0 - (kuf * np.linalg.solve(kuu, kuf)).sum(axis=0), 0.0) + noise2
    return np.linalg.solve(kuu + (kuf / lam) @ kuf.T, kuf / lam), kuu


def run(out: Path, *, repeats: int, quick: bool, seed: int, progress: Progress) -> Findings:
    """Compute them."""
    progress(0, 1, "sensitivities")
    ages = np.arange(50)[:, None] * 2.0
    gram = smith_kernel(ages, ages, 8.0)
    inverse = np.linalg.inv(gram + 10.0 * np.eye(50))
    c = math.sqrt(2 * math.log(1.25 / 0.00625))
    line = np.linspace(0, 4, 401)[:, None]
    dense = smith_kernel(line, line, 1.0)
    full = np.linalg.inv(dense + 0.01 * np.eye(401))
    few, kuu = fitc_map(line, np.linspace(0, 4, 5)[:, None], 1.0, 0.01)
    b = row_sum(inverse)
    exact = exact_sensitivity(inverse, gram)
    wide = row_sum(full)
    narrow = row_sum(few)
    scale = b * c
    true_scale = exact * calibrate(1.0, 0.00625)
    found: list[tuple[str, str, float, float]] = [
        ("b(K): 50 ages, 2 years apart, length 8, noise variance 10", "0.130", b, exact),
        ("c(δ) at δ = 0.00625; noise multiplier at ε = 1", "3.26", c, calibrate(1.0, 0.00625)),
        ("factor of the noise path at ε = 1", "0.42", scale, true_scale),
        (
            "401 points on [0, 4], length 1, noise variance 0.01",
            "293.7",
            wide,
            exact_sensitivity(full, dense),
        ),
        ("the same with 5 inducing inputs (FITC)", "3.33", narrow, exact_sensitivity(few, kuu)),
        (
            "gain by inducing inputs",
            "88",
            wide / narrow,
            exact_sensitivity(full, dense) / exact_sensitivity(few, kuu),
        ),
    ]
    records: list[dict[str, Any]] = [
        {"what": what, "printed": printed, "as_printed": literal, "exact": right}
        for what, printed, literal, right in found
    ]
    rows = [
        (what, printed, f"{literal:.4g}", f"{right:.4g}") for what, printed, literal, right in found
    ]
    table = ResultTable(
        "Numbers in the text", ("what", "printed", "by the paper's formula", "exact"), rows
    )
    at30 = math.sqrt(2 * math.log(1.25 / 0.01)) / 30
    claims = [
        Claim(
            "the paper's numbers come out of its formulas",
            ", ".join(row[2] for row in rows),
            _near(found),
        ),
        Claim(
            "exact sensitivities are smaller than printed bounds",
            f"{wide / found[3][3]:.0f} and {narrow / found[4][3]:.0f} times",
            all(one[3] < one[2] for one in (found[0], found[3], found[4])),
        ),
        Claim(
            "at ε = 30, δ = .01 the printed factor c(δ)/ε adds too little noise",
            f"{at30:.3f}, needed {calibrate(30.0, 0.01):.3f}",
            at30 < calibrate(30.0, 0.01),
        ),
    ]
    notes = ["b(K) is printed as 0.130 and is 0.1289: rounded up."]
    return Findings("Smith et al.: numbers in the text", records, [table], claims, notes).write(out)


def _near(found: list[tuple[str, str, float, float]]) -> bool:
    return all(abs(literal - float(printed)) <= 0.01 * literal for _, printed, literal, _ in found)
