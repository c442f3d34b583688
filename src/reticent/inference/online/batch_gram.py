"""Gram matrix of a batch: a noisy release combined with a simulation of the batch.

The policy can simulate its next batch under an assumed context distribution, which gives a prior
guess L of E[φφᵀ]; the batch's B is n·L, up to sampling and to a context distribution that is not
the assumed one. In the axes of L, in which the noise of a release is what it was, entries of B −
n·L are taken as independent, of variance

    λ_i·λ_j · (n·(1 + n/simulated) + κ·n²),      twice that on the diagonal.

κ, the mismatch, says how wrong the guess is, and how many records may be anywhere. It is the same
for all batches, and the likelihood of all releases determines it. Of all likely κ the largest is
taken, because overconfidence in a wrong context distribution is never corrected.
"""

import numpy as np
from numpy.typing import NDArray

__all__ = ["MISMATCH_GRID", "SimulatedGramPrior"]

Array = NDArray[np.float64]
MISMATCH_GRID = np.array([0.0, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3, 1.0])  # κ
_ELSEWHERE = 0.02 + MISMATCH_GRID**0.5 / 2  # share of records that may be anywhere
_LIKELY = 2.0  # in twice the logarithm


class SimulatedGramPrior:
    """Posterior of B = Σφφᵀ of one batch, from a simulated prior and a noisy release.

    Parameters: features of the simulated records (simulated, m); E[φφᵀ] of candidates that are
    drawn uniformly (m, m); the number of records; the released matrix (m, m) with the standard
    deviation of its noise off the diagonal; and ``misfit`` (mismatches,), what earlier batches said
    about each κ.

    Attributes: ``estimate`` of B (m, m); in the orthonormal ``axes`` (columns), the variances of
    its entries' errors, ``entry_variance``; ``mismatch``, the chosen κ; ``misfit`` with this batch.
    """

    def __init__(
        self, points: Array, even: Array, n: int, released: Array, sd: float, misfit: Array
    ) -> None:
        played = points.T @ points / len(points)
        twice = 1 + np.eye(len(even))
        chance = n * (1 + n / len(points))
        noise = twice * sd**2
        found = []
        added = np.zeros(len(MISMATCH_GRID))
        for k, (wrong, share) in enumerate(zip(MISMATCH_GRID, _ELSEWHERE, strict=True)):
            values, axes = np.linalg.eigh((1 - share) * played + share * even)
            values = np.maximum(values, 1e-12 * values[-1])
            away = axes.T @ released @ axes - np.diag(n * values)
            usual = twice * np.outer(values, values) * (chance + wrong * n**2)
            added[k] = np.sum(np.triu(np.log(usual + noise) + away**2 / (usual + noise)))
            found.append((axes, values, away, usual))
        self.misfit: Array = misfit + added - added.min()
        chosen = int(np.flatnonzero(self.misfit <= self.misfit.min() + _LIKELY)[-1])
        self.mismatch = float(MISMATCH_GRID[chosen])
        self.axes, values, away, usual = found[chosen]
        kept = usual / (usual + noise)
        self.estimate: Array = self.axes @ (np.diag(n * values) + kept * away) @ self.axes.T
        self.entry_variance: Array = kept * noise
