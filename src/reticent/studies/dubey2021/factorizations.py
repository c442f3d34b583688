"""Noise of running sums.

Binary tree, square root and four buffers, by the largest variance over all rounds.
"""

import time
from pathlib import Path

import numpy as np

from reticent.inference.online.matrix_factorization import (
    buffer_coefficients,
    largest_variance,
    optimised_buffers,
    root_coefficients,
    tree_variances,
)
from reticent.studies.common.results import Claim, Findings, Progress, ResultTable, Value

__all__ = ["run"]

_LIMITS = {1024: (0.098, 0.098), 10_000: (0.088, 0.089)}


def run(out: Path, *, repeats: int, quick: bool, seed: int, progress: Progress) -> Findings:
    """Compute and tabulate; nothing here is random."""
    records: list[dict[str, Value]] = []
    rows = []
    claims = []
    for done, n in enumerate((1024,) if quick else (1024, 10_000, 100_000)):
        progress(done, 3, f"{n} rounds")
        tree = float(tree_variances(n).max()) * n.bit_length()
        root = largest_variance(root_coefficients(n)) / tree
        start = time.process_time()
        decays, weights = optimised_buffers(n)
        seconds = time.process_time() - start
        four = largest_variance(buffer_coefficients(np.array(decays), np.array(weights), n)) / tree
        records.append(
            {"rounds": n, "tree": tree, "root": root, "buffers": four, "seconds": seconds}
        )
        rows.append((f"{n:,}", f"{tree:.0f}", f"{root:.4f}", f"{four:.4f}", f"{seconds:.1f}"))
        for name, value, most in zip(
            ("square root", "four buffers"), (root, four), _LIMITS.get(n, ()), strict=False
        ):
            claims.append(
                Claim(
                    f"{n} rounds, {name}: at most {most} of the tree's variance",
                    f"{value:.4f}",
                    value <= most,
                )
            )
    headings = ("rounds", "tree", "square root / tree", "buffers / tree", "optimised in s")
    table = ResultTable(
        "Largest variance of a running sum, one record moving the whole by one", headings, rows
    )
    return Findings("Factorisations of running sums", records, [table], claims).write(out)
