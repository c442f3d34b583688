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
    min_uniform_fraction : float
        Fraction of the records that may be anywhere if κ = 0; it grows by √κ/2.
    likely_misfit : float
        Excess over the least misfit (twice the negative log-likelihood) of a κ that is likely.
    clear_release : float
        Part of the prior variance of B that a release removes, from which on eigenvalues are told
        from those of noise. Below it the simulation says more about them.
    """

    mismatches: Prior[tuple[float, ...]] = (0.0, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3, 1.0)
    min_uniform_fraction: Prior[float] = 0.02
    likely_misfit: Tuned[float] = 2.0
    clear_release: Tuned[float] = 0.9


_SETTINGS = SimulatedGramSettings()
MISMATCH_GRID = np.array(_SETTINGS.mismatches)
_UNIFORM_FRACTIONS = _SETTINGS.min_uniform_fraction + MISMATCH_GRID**0.5 / 2


class SimulatedGramPrior:
    """Posterior of B = Σφφᵀ of one batch, from a simulated prior and a noisy release.

    Parameters: features of the simulated records (simulated, m); E[φφᵀ] of candidates that are
    drawn uniformly (m, m); the number of records; the released matrix (m, m) with the standard
    deviation of its noise off the diagonal; and ``misfit`` (mismatches,), what earlier batches said
    about each κ.

    Attributes: ``estimate`` of B (m, m); in the orthonormal ``axes`` (columns), the variances of
    its entries' errors, ``entry_variance``, and of the noise in its rows, ``noise_variances`` (m,);
    ``hidden``, the mean of B along a direction in which the estimate is below the noise;
    ``mismatch``, the chosen κ; ``misfit`` with this batch.
    """

    def __init__(
        self, points: Array, uniform: Array, n: float, released: Array, sd: float, misfit: Array
    ) -> None:
        simulated = points.T @ points / len(points)
        symmetry = 1 + np.eye(len(uniform))
        sampling_variance = n * (1 + n / len(points))
        noise = symmetry * sd**2
        candidates = []
        new_misfit = np.zeros(len(MISMATCH_GRID))
        for k, (mismatch, uniform_fraction) in enumerate(
            zip(MISMATCH_GRID, _UNIFORM_FRACTIONS, strict=True)
        ):
            values, axes = np.linalg.eigh(
                (1 - uniform_fraction) * simulated + uniform_fraction * uniform
            )
            values = np.maximum(values, 1e-12 * values[-1])
            deviation = axes.T @ released @ axes - np.diag(n * values)
            prior_variance = (
                symmetry * np.outer(values, values) * (sampling_variance + mismatch * n**2)
            )
            new_misfit[k] = np.sum(
                np.triu(np.log(prior_variance + noise) + deviation**2 / (prior_variance + noise))
            )
            candidates.append((axes, values, deviation, prior_variance))
        self.misfit: Array = misfit + new_misfit - new_misfit.min()
        chosen = int(np.flatnonzero(self.misfit <= self.misfit.min() + _SETTINGS.likely_misfit)[-1])
        self.mismatch = float(MISMATCH_GRID[chosen])
        self.axes, values, deviation, prior_variance = candidates[chosen]
        kept = prior_variance / (prior_variance + noise)
        self.entry_variance: Array = kept * noise
        self.noise_variances: Array = (kept**2 * noise).sum(axis=1)
        estimate = np.diag(n * values) + kept * deviation
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
