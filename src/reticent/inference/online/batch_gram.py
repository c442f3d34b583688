"""Gram matrix of a batch: a noisy release combined with a simulation of the batch.

The policy can simulate its next batch under an assumed context distribution, which gives a prior
guess L of E[φφᵀ]; the batch's B is n·L, up to sampling and to a context distribution that is not
the assumed one. In the axes ψ of L, in which the noise of a release is what it was, entries of
B − n·L are taken as independent, of variance

    E[ψ_i²ψ_j²]·(n·(1 + n/simulated) + κ·n²) + U[ψ_i²ψ_j²]·(un + (un)²),

E over the simulated records and U over the whole box. κ, the mismatch, says how wrong the guess is,
as if it were known from 1/κ records alone. un is how many records may be anywhere,
u = 1/simulated + √κ/2: none is expected, for "no residual there" would be learned of places where
nobody was. By the fourth moments a direction in which few records are long is known worse than its
mean square.

κ is the same for all batches, and the likelihood of all releases determines it. Of all likely κ the
largest is taken, because overconfidence in a wrong context distribution is never corrected.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reticent.number_kinds import Prior, Tuned

__all__ = ["MISMATCH_GRID", "SimulatedGramPrior", "SimulatedGramSettings"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class SimulatedGramSettings:
    """Tuned numbers of `SimulatedGramPrior`.

    Parameters
    ----------
    mismatches : tuple of float
        Candidates of κ.
    likely_misfit : float
        Excess over the least misfit (twice the negative log-likelihood) of a κ that is likely.
    clear_release : float
        Part of the prior variance of B that a release removes, from which on eigenvalues are told
        from those of noise. Below it the simulation says more about them.
    """

    mismatches: Prior[tuple[float, ...]] = (0.0, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3, 1.0)
    likely_misfit: Tuned[float] = 2.0
    clear_release: Tuned[float] = 0.9


_SETTINGS = SimulatedGramSettings()
MISMATCH_GRID = np.array(_SETTINGS.mismatches)


class SimulatedGramPrior:
    """Posterior of B = Σφφᵀ of one batch, from a simulated prior and a noisy release.

    Parameters: features of the simulated records (simulated, m); features of candidates that fill
    the box evenly (points, m); the number of records; the released matrix (m, m) with the standard
    deviation of its noise off the diagonal; and ``misfit`` (mismatches,), what earlier batches said
    about each κ.

    Attributes: ``estimate`` of B (m, m); in the orthonormal ``axes`` (columns), the variances of
    its entries' errors, ``entry_variance``, and of the noise in its rows, ``noise_variances`` (m,);
    ``hidden``, the mean of B along a direction in which the estimate is below the noise;
    ``mismatch``, the chosen κ; ``misfit`` with this batch.
    """

    def __init__(
        self, simulated: Array, even: Array, n: float, released: Array, sd: float, misfit: Array
    ) -> None:
        unseen = 1 / len(simulated)  # a share of records as small as this may not show
        moment = simulated.T @ simulated / len(simulated)
        anywhere = even.T @ even / len(even)
        # with a few records anywhere, so that directions in which none was simulated have an order
        self.axes: Array = np.linalg.eigh((1 - unseen) * moment + unseen * anywhere)[1]
        expected = n * (self.axes.T @ moment @ self.axes)
        deviation = self.axes.T @ released @ self.axes - expected
        noise = (1 + np.eye(len(moment))) * sd**2
        simulated_squares = _mean_square_products(simulated @ self.axes)
        even_squares = _mean_square_products(even @ self.axes)

        def prior_variance_of(k: int) -> Array:
            """Variances of the entries of B (m, m) under the k-th κ."""
            rounds_anywhere = n * (unseen + math.sqrt(MISMATCH_GRID[k]) / 2)
            sampling = n * (1 + n * unseen) + MISMATCH_GRID[k] * n**2
            elsewhere = rounds_anywhere + rounds_anywhere**2
            return np.asarray(simulated_squares * sampling + even_squares * elsewhere)

        new_misfit = np.zeros(len(MISMATCH_GRID))
        for k in range(len(MISMATCH_GRID)):
            total = prior_variance_of(k) + noise
            new_misfit[k] = np.sum(np.triu(np.log(total) + deviation**2 / total))
        self.misfit: Array = misfit + new_misfit - new_misfit.min()
        chosen = int(np.flatnonzero(self.misfit <= self.misfit.min() + _SETTINGS.likely_misfit)[-1])
        self.mismatch = float(MISMATCH_GRID[chosen])
        prior_variance = prior_variance_of(chosen)
        kept = prior_variance / (prior_variance + noise)
        self.entry_variance: Array = kept * noise
        self.noise_variances: Array = (kept**2 * noise).sum(axis=1)
        estimate = expected + kept * deviation
        if float((kept * prior_variance).sum()) >= _SETTINGS.clear_release * prior_variance.sum():
            estimate = _without_noise(estimate, self.noise_variances)
        guess = self.axes @ estimate @ self.axes.T
        self.estimate: Array = self._with_released_trace(guess, released, sd, n)

    def _with_released_trace(self, guess: Array, released: Array, sd: float, n: float) -> Array:
        """The guess of B, scaled in all directions in which it does not stand above the noise.

        To what the release says of their sum, which it tells far better than any one of them; a
        priori they are as the guess says, but for the mismatch. Were they left as they are, "no
        residual" would be learned of places that are assumed to be visited, and are not.
        """
        values, vectors = np.linalg.eigh(guess)
        noise_variances = self.noise_variances @ (self.axes.T @ vectors) ** 2
        hidden = vectors[:, values <= 2 * np.sqrt(noise_variances)]
        expected = float(((guess @ hidden) * hidden).sum())
        found = max(float(((released @ hidden) * hidden).sum()), 0.0)
        self.hidden = found / max(hidden.shape[1], 1)
        if expected <= 0:
            return guess
        error_variance = 2 * sd**2 * hidden.shape[1] / expected**2
        prior_variance = self.mismatch + 1 / n
        factor = 1 + (found / expected - 1) * prior_variance / (prior_variance + error_variance)
        inside = hidden @ hidden.T @ guess
        return guess + (min(factor, 1.0) - 1) * (inside + inside.T) / 2


def _mean_square_products(features: Array) -> Array:
    """E[φ_i²φ_j²] over rows of features (records, m); an array (m, m)."""
    squares = features**2
    return np.asarray(squares.T @ squares / len(squares))


def _without_noise(matrix: Array, row_variances: Array) -> Array:
    """A positive matrix (m, m) with eigenvalues as they were before noise was added to it.

    Independent noise has eigenvalues up to 2σ, where σ² is the variance of a row's noise. It makes
    an eigenvalue θ > σ to θ + σ²/θ, and smaller ones cannot be told from none (Benaych-Georges and
    Nadakuditi, 2011). Left as they are, they would say where candidates were chosen that nobody
    chose: in a batch of fewer rounds than features, however little noise there is.
    """
    values, vectors = np.linalg.eigh(matrix)
    inside = values**2 - 4 * (row_variances @ vectors**2)
    resolved = (values > 0) & (inside > 0)
    denoised = np.where(resolved, (values + np.sqrt(np.maximum(inside, 0.0))) / 2, 0.0)
    return np.asarray((vectors * denoised) @ vectors.T)
