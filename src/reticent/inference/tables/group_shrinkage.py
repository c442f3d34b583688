"""A model of the groups: cells that the noise hides borrow from the others.

Means: m_cell = μ + Σ_key effect of its level + interaction, all Gaussian with mean zero and one
variance for each key and one for the interaction; with a single key the levels are exchangeable.
The mean of P records varies about that by chance, with the variance of single values over P. The
variances of the effects maximise the likelihood of the released sums, whose noise is known (EM).
Counts are drawn towards what independent keys would give.
"""

import numpy as np
from numpy.typing import NDArray

from reticent.inference.tables.cell_estimates import (
    nonnegative_counts,
    sd_over_range,
    summed,
)
from reticent.number_kinds import Numerical, Tuned

__all__ = ["MOST_CELLS", "MOST_LEVELS", "shrink_counts", "shrink_means"]

Array = NDArray[np.float64]
MOST_CELLS: Numerical[int] = 20_000  # with more, no model of the groups is made
MOST_LEVELS: Numerical[int] = 500  # of all keys together
_ROUNDS: Numerical[int] = 200  # of EM, at most
_FIRST_VARIANCE: Numerical[float] = 0.1  # of each effect, on a scale where the range is [−1, 1]
_LEAST_VARIANCE: Numerical[float] = 1e-8  # of each effect
_INTERACTIONS = np.geomspace(_LEAST_VARIANCE, 1.0, 33)  # its variances that are averaged over
_NODES: Numerical[int] = 7  # values of the variance of single values
_FEWEST: Numerical[float] = 1e-3  # records of a cell
# how much closer smoothed counts keep to the margins than to the cells
_MARGINS: Tuned[float] = 100.0


def shrink_means(
    total: Array,
    present: Array,
    records: Array,
    covariance: Array,
    variance: float,
    within: tuple[float, float],
    overall: float,
) -> tuple[Array, Array]:
    """Posterior mean and standard deviation of each cell's mean m ∈ [−1, 1].

    Parameters
    ----------
    total, present : arrays of the table's shape
        Noisy S and P.
    records : array of the same shape
        P as it is shown, not negative.
    covariance : array (2, 2)
        Of (S, P), by ``variance``.
    variance : float
        Of one released number.
    within : pair of float
        Variance of single values in a cell, and its standard error.
    overall : float
        Mean of all cells together, in [−1, 1].
    """
    square = covariance[0, 0] - 2 * overall * covariance[0, 1] + overall**2 * covariance[1, 1]
    # y = S − μP = P·(m − μ) + noise: of the same variance in every cell
    y = (total - overall * present).ravel()
    weight = np.maximum(records, 0.0).ravel()
    noise = square * variance / np.maximum(weight, _FEWEST) ** 2  # of y/P
    sampling = within[0] / np.maximum(weight, 1.0)
    deviation = y / np.maximum(weight, _FEWEST)
    z, groups = _levels(total.shape)
    effects = np.full(groups.max(initial=-1) + 1, _FIRST_VARIANCE)
    interaction = _FIRST_VARIANCE
    line = np.zeros(len(y))
    line_variance = np.zeros(len(y))
    for _ in range(_ROUNDS):
        joint = 1 / (interaction + sampling + noise)
        inner = np.linalg.inv(z.T @ (z * joint[:, None]) + np.diag(1 / effects[groups]))
        b = inner @ (z.T @ (joint * deviation))
        line = z @ b
        line_variance = np.einsum("ij,jk,ik->i", z, inner, z)
        squares = b**2 + np.diag(inner)
        effects = np.array([squares[groups == key].mean() for key in range(len(effects))])
        effects = np.maximum(effects, _LEAST_VARIANCE)
        share = interaction * joint
        own = share**2 * ((deviation - line) ** 2 + line_variance) + interaction * (1 - share)
        interaction = max(float(own.mean()), _LEAST_VARIANCE)
    # of the overall mean, which all cells share
    shared = square * variance * len(y) / max(float(weight.sum()), 1.0) ** 2
    mean, spread2 = _over_variances(deviation - line, line_variance + shared, noise, weight, within)
    shown = np.clip(overall + line + mean, -1.0, 1.0)
    spread = np.minimum(np.sqrt(spread2), sd_over_range(shown))
    return shown.reshape(total.shape), spread.reshape(total.shape)


def _over_variances(
    deviation: Array,
    line_variance: Array,
    noise: Array,
    weight: Array,
    within: tuple[float, float],
) -> tuple[Array, Array]:
    """How far cells are from their line, and the variance of that error, (cells,) each.

    Averaged over the variance of their interaction, whose logarithm is flat a priori, and over the
    variance of single values: with few cells, a single value of them would be too sure.
    """
    laws = [
        (interaction, single, chance)
        for single, chance in zip(*_normal_nodes(*within), strict=True)
        for interaction in _INTERACTIONS
    ]
    fits = []
    for interaction, single, chance in laws:
        whole = interaction + single / np.maximum(weight, 1.0) + noise + line_variance
        fits.append(np.log(chance) - np.sum(np.log(whole) + deviation**2 / whole) / 2)
    probabilities = np.exp(np.array(fits) - max(fits))
    probabilities /= probabilities.sum()
    mean = np.zeros(len(deviation))
    square = np.zeros(len(deviation))
    for probability, (interaction, single, _) in zip(probabilities, laws, strict=True):
        apart = interaction + single / np.maximum(weight, 1.0)
        share = apart / (apart + noise)
        mean += probability * share * deviation
        variance = (1 - share) ** 2 * line_variance + share * noise
        square += probability * ((share * deviation) ** 2 + variance)
    return mean, np.maximum(square - mean**2, 0.0)


def _normal_nodes(mean: float, sd: float) -> tuple[Array, Array]:
    """Values of a normal number that is not negative, and their probabilities."""
    if sd == 0:
        return np.array([mean]), np.ones(1)
    values = mean + sd * np.linspace(-3, 3, _NODES)
    chances = np.exp(-0.5 * ((values - mean) / sd) ** 2)
    return np.maximum(values, 0.0), chances / chances.sum()


def _levels(shape: tuple[int, ...]) -> tuple[Array, NDArray[np.int64]]:
    """Which levels each cell has, (cells, levels), and the key of each level.

    None with a single key, whose levels are the cells.
    """
    cells = int(np.prod(shape, dtype=np.int64))
    if len(shape) < 2:
        return np.zeros((cells, 0)), np.zeros(0, dtype=np.int64)
    places = np.indices(shape).reshape(len(shape), -1)
    parts = [
        (places[key][:, None] == np.arange(size)).astype(np.float64)
        for key, size in enumerate(shape)
    ]
    return np.hstack(parts), np.repeat(np.arange(len(shape)), shape)


def shrink_counts(counts: Array, variance: float) -> tuple[Array, Array]:
    """Counts drawn towards what independent keys would give, and their standard deviations.

    ``counts`` are noisy with ``variance``, in the table's shape. Around its expectation e under
    independence a count has the variance e + κe², κ from the released counts. Margins stay nearly
    as they were.
    """
    keys = counts.ndim
    shown = nonnegative_counts(counts)
    total = max(float(shown.sum()), 1.0)
    expected = np.full(counts.shape, total)
    for key in range(keys):
        share = summed(shown, (key,), keys) / total
        expected = expected * share.reshape([-1 if axis == key else 1 for axis in range(keys)])
    excess = float(((counts - expected) ** 2 - variance - expected).sum())
    kappa = max(excess, 0.0) / max(float((expected**2).sum()), 1.0)
    prior = np.maximum(expected, 1.0) + kappa * expected**2
    share = prior / (prior + variance)
    drawn = expected + share * (counts - expected)
    spread = np.sqrt(share * variance)
    return nonnegative_counts(drawn, shown, _MARGINS), spread
