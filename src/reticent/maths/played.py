"""What a noisy Gram matrix says about the true one, where a guess of the law of its rows is at hand.

A bandit can play in thought: it knows how it will choose, and guesses from which candidates. So it has a guess L of E[φφᵀ] before
the batch, and the batch's B is n·L, up to chance and to a law of candidates that is not the one thought of. In the axes of L,
in which the noise of a release is what it was, entries of B − n·L are taken as independent, of variance

    λ_i·λ_j · (n·(1 + n/plays) + κ·n²),      twice that on the diagonal:

where nobody was expected to be, little is believed of what looks like records. κ says how wrong the guess is, and the more so,
the more records may be anywhere. It is the same for all batches: the likelihood of all releases tells, of which each has many
entries. Of all κ that are likely, the largest is taken: who believes in a wrong law is sure of wrong things, and stays so.
"""

import numpy as np
from numpy.typing import NDArray

__all__ = ["WRONG", "PlayedGram"]

Array = NDArray[np.float64]
WRONG = np.array([0.0, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3, 1.0])  # κ
_ELSEWHERE = 0.02 + WRONG**0.5 / 2  # share of records that may be anywhere
_LIKELY = 2.0  # in twice the logarithm


class PlayedGram:
    """``mean`` of B and, in the orthonormal ``axes`` (columns), the variances of its entries' errors (``variance``).

    Parameters: features of the records that were played in thought, the law of features of candidates that are drawn evenly, the
    number of records, the released matrix with the standard deviation of its noise outside the diagonal, and ``misfit``, what
    earlier batches said about each κ. ``misfit`` as an attribute: with what this one says.
    """

    def __init__(self, points: Array, even: Array, n: int, released: Array, sd: float, misfit: Array) -> None:
        played, twice = points.T @ points / len(points), 1 + np.eye(len(even))
        chance, noise = n * (1 + n / len(points)), twice * sd**2
        found, added = [], np.zeros(len(WRONG))
        for k, (wrong, share) in enumerate(zip(WRONG, _ELSEWHERE, strict=True)):
            values, axes = np.linalg.eigh((1 - share) * played + share * even)
            values = np.maximum(values, 1e-12 * values[-1])
            away = axes.T @ released @ axes - np.diag(n * values)
            usual = twice * np.outer(values, values) * (chance + wrong * n**2)
            added[k] = np.sum(np.triu(np.log(usual + noise) + away**2 / (usual + noise)))
            found.append((axes, values, away, usual))
        self.misfit: Array = misfit + added - added.min()
        chosen = int(np.flatnonzero(self.misfit <= self.misfit.min() + _LIKELY)[-1])
        self.wrong = float(WRONG[chosen])
        self.axes, values, away, usual = found[chosen]
        kept = usual / (usual + noise)
        self.mean: Array = self.axes @ (np.diag(n * values) + kept * away) @ self.axes.T
        self.variance: Array = kept * noise
