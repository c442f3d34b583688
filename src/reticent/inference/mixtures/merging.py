"""How many components: those that there are, joined two by two.

Pure functions of public numbers and releases. Components are joined in the order of what that costs
at the most (Runnalls, IEEE Transactions on Aerospace and Electronic Systems 43, 2007); how many are
to be left is not theirs to say: two halves of one normal distribution look like two components. It
is asked of the records, or of their histogram.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from reticent.inference.mixtures.gaussian_mixture import NormalMixture, count_deviance
from reticent.inference.mixtures.latent_class import LatentClassMixture
from reticent.inference.mixtures.settings import MIXTURE_MOMENTS

__all__ = ["best_by_counts", "heavy_components", "merge_path", "mixture_parameters"]

Array = NDArray[np.float64]


def merge_path(
    mixture: LatentClassMixture, least_weight: float = 0.0
) -> dict[int, LatentClassMixture]:
    """By number of components, from one to all: the mixture, and what it becomes pair by pair.

    Components of less than ``least_weight`` are left out beforehand. A pair keeps its weight, mean,
    covariance and chances of levels. The next pair is the one for which the divergence of the
    mixtures before and after is bounded by least.
    """
    mixture = heavy_components(mixture, least_weight)
    path = {len(mixture.weights): mixture}
    while len(mixture.weights) > 1:
        many = len(mixture.weights)
        pairs = [(i, j) for i in range(many) for j in range(i)]
        joined = [_joined(mixture, i, j) for i, j in pairs]
        entropies = _entropies(mixture)
        costs = [
            _entropies(one)[-1] - entropies[i] - entropies[j]
            for (i, j), one in zip(pairs, joined, strict=True)
        ]
        i, j = pairs[int(np.argmin(costs))]
        mixture = _with(mixture, i, j, joined[int(np.argmin(costs))])
        path[many - 1] = mixture
    return path


def heavy_components(mixture: LatentClassMixture, least_weight: float) -> LatentClassMixture:
    """Components of at least this weight, or the heaviest."""
    kept = mixture.weights >= min(least_weight, float(mixture.weights.max()))
    if kept.all():
        return mixture
    weights = mixture.weights[kept] / mixture.weights[kept].sum()
    normal = mixture.normal
    if normal is not None:
        normal = NormalMixture(weights, normal.means[kept], normal.roots[kept])
    levels = tuple(chances[kept] for chances in mixture.level_probabilities)
    return LatentClassMixture(weights, normal, levels)


def _joined(mixture: LatentClassMixture, i: int, j: int) -> LatentClassMixture:
    """One component instead of two."""
    pair = [i, j]
    weight = mixture.weights[pair].sum()
    odds = mixture.weights[pair] / weight
    normal = None
    if mixture.normal is not None:
        means = mixture.normal.means[pair]
        mean = odds @ means
        away = means - mean
        roots = mixture.normal.roots[pair]
        within = np.einsum("k,kpr,kqr->pq", odds, roots, roots)
        covariance = within + np.einsum("k,kp,kq->pq", odds, away, away)
        root = np.linalg.cholesky((covariance + covariance.T) / 2)
        normal = NormalMixture(np.array([weight]), mean[None], root[None])
    levels = tuple((odds @ chances[pair])[None] for chances in mixture.level_probabilities)
    return LatentClassMixture(np.array([weight]), normal, levels)


def _with(
    mixture: LatentClassMixture, i: int, j: int, pair: LatentClassMixture
) -> LatentClassMixture:
    """The mixture with the component of a pair at the end, in place of the two."""
    kept = [k for k in range(len(mixture.weights)) if k not in (i, j)]
    weights = np.append(mixture.weights[kept], pair.weights)
    normal = None
    if mixture.normal is not None and pair.normal is not None:
        normal = NormalMixture(
            weights,
            np.vstack([mixture.normal.means[kept], pair.normal.means]),
            np.concatenate([mixture.normal.roots[kept], pair.normal.roots]),
        )
    levels = tuple(
        np.vstack([chances[kept], more])
        for chances, more in zip(mixture.level_probabilities, pair.level_probabilities, strict=True)
    )
    return LatentClassMixture(weights, normal, levels)


def _entropies(mixture: LatentClassMixture) -> Array:
    """Weight times entropy of each component (K,), up to what is the same for all."""
    entropies = np.zeros(len(mixture.weights))
    if mixture.normal is not None:
        entropies += np.linalg.slogdet(mixture.normal.roots)[1]
    for chances in mixture.level_probabilities:
        entropies -= xlogy(chances, chances).sum(axis=1)
    return np.asarray(mixture.weights * entropies)


def mixture_parameters(components: int, d: int) -> float:
    """Free numbers of a mixture of normal distributions of d columns, each with its covariance."""
    return components * (1 + d + d * (d + 1) / 2) - 1


def best_by_counts(
    fits: Callable[[int], NormalMixture],
    most: int,
    points: Array,
    counts: Array,
    width: float,
    count_sd: float,
) -> NormalMixture:
    """The mixture, of up to ``most`` components, that says noisy counts of cells (J,) best.

    By the Bayesian information criterion, one component after the other, until more have been no
    better for a while. ``fits``: the mixture of so many components. ``points`` (J, d) are in cells
    of this ``width``; ``count_sd``: noise of a count.
    """
    price = math.log(max(float(counts.sum()), 2.0))
    best = fits(1)
    least = math.inf
    worse = 0
    for components in range(1, most + 1):
        mixture = best if components == 1 else fits(components)
        criterion = count_deviance(mixture, points, counts, width, count_sd)
        criterion += price * mixture_parameters(components, points.shape[1])
        worse += 1
        if criterion < least:
            best, least, worse = mixture, criterion, 0
        if worse == MIXTURE_MOMENTS.patience:
            break
    return best
