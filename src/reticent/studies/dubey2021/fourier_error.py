"""Fourier features of kernels on [0, 1]ᵈ.

The largest error found, beside its bound, and their length on 100,000 points.
"""

from pathlib import Path

import numpy as np
from sklearn.gaussian_process.kernels import RBF, Matern

from reticent.studies.common.results import Claim, Findings, Progress, ResultTable, Value
from reticent.studies.dubey2021.fourier_features import (
    matern_features,
    squared_exponential_features,
)

__all__ = ["run"]

_NODES = {1: (5, 9, 17, 33, 65, 101), 2: (5, 9, 17, 33)}
_ROUNDING = 1e-13


def run(out: Path, *, repeats: int, quick: bool, seed: int, progress: Progress) -> Findings:
    """Compute and tabulate."""
    rng = np.random.default_rng(seed)
    records: list[dict[str, Value]] = []
    lengths = (0.1, 1.0) if quick else (0.1, 0.2, 0.5, 1.0)
    cells = [
        (d, length, n)
        for d in (1, 2)
        for length in lengths
        for n in (_NODES[d][:2] if quick else _NODES[d])
    ]
    for done, (d, length, nodes) in enumerate(cells):
        progress(done, len(cells), f"{nodes} nodes")
        few = rng.random((400, d))
        many = rng.random((1000 if quick else 100_000, d))
        # the corners that are farthest apart
        few[0] = 0.0
        few[1] = 1.0
        many[0] = 0.0
        many[1] = 1.0
        product = np.prod([Matern(length, nu=2.5)(few[:, [j]]) for j in range(d)], axis=0)
        for name, features, kernel in (
            (
                "squared exponential",
                squared_exponential_features(d, length, nodes),
                RBF(length)(few),
            ),
            ("Matérn 5/2", matern_features(d, length, nodes), product),
        ):
            phi = features(few)
            blocks = [
                (features(some) ** 2).sum(axis=1).max()
                for some in np.array_split(many, max(nodes**d // 20, 1))
            ]
            records.append(
                {
                    "kernel": name,
                    "inputs": d,
                    "length": length,
                    "features": phi.shape[1],
                    "error": float(np.abs(phi @ phi.T - kernel).max()),
                    "bound": features.bound,
                    "norm2": float(max(blocks)),
                }
            )
    rows = [
        (
            str(one["kernel"]),
            *(f"{one[key]:g}" for key in ("inputs", "length", "features")),
            *_errors(one),
        )
        for one in records
    ]
    within = sum(float(one["error"]) <= float(one["bound"]) + _ROUNDING for one in records)
    longest = max(float(one["norm2"]) for one in records) ** 0.5
    claims = [
        Claim(
            "errors are within their bounds", f"{within} of {len(records)}", within == len(records)
        ),
        Claim("no features are longer than one", f"{longest:.15f}", longest <= 1),
    ]
    headings = ("kernel", "inputs", "length", "features", "largest error", "bound")
    return Findings(
        "Fourier features", records, [ResultTable("On [0, 1]ᵈ", headings, rows)], claims
    ).write(out)


def _errors(one: dict[str, Value]) -> tuple[str, str]:
    return f"{one['error']:.1e}", f"{one['bound']:.1e}"
