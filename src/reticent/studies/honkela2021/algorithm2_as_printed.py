"""Honkela's hyperparameter learning (Algorithm 2), as printed.

To compare with, **not a private release to use**. Candidates are drawn at random, fitted (Algorithm
1) and scored on a validation set (CoinPress), each time privately, until a coin says stop; the best
so far is the answer (Liu and Talwar 2019). Where the paper leaves a choice, the one that favours it
is taken:

* The root of t(1 − log t) = δ is the one below 1. The mean log-likelihood, not |V| times it, is
  compared with its range.
* CoinPress (Biswas et al. 2020) is its algorithm for one dimension and unit variance, with a
  failure probability of 0.01 a step.
* Noise is NumPy's, from a seed.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from sklearn.gaussian_process.kernels import RBF

from reticent.studies.honkela2021.algorithm1_as_printed import LiteralGP

__all__ = ["Selected", "SelectionBudget", "coinpress_mean", "select", "selection_budget"]

Array = NDArray[np.float64]

_GAMMA = 0.01  # of the coin
# of CoinPress
_STEPS = 12
_LAST_SHARE = 0.75
_BETA = 0.01


@dataclass(frozen=True)
class SelectionBudget:
    """What each of the tries may cost, and how many there are at most."""

    epsilon: float
    delta: float
    tries: int

    @property
    def rho(self) -> float:
        """Eq. (19): the budget of CoinPress."""
        log = math.log(1 / self.delta)
        return (math.sqrt(self.epsilon + log) - math.sqrt(log)) ** 2


def selection_budget(epsilon: float, delta: float) -> SelectionBudget:
    """Divide the total promise, Eqs (20) and (35)."""
    t = float(brentq(lambda log_t: math.exp(log_t) * (1 - log_t) - delta, -700, 0))
    each = _GAMMA**2 * math.exp(2 * t) / 2
    return SelectionBudget(epsilon / 3 - math.sqrt(2 * each), each, int(-t / _GAMMA))


def coinpress_mean(
    values: Array,
    centre: float | Array,
    radius: float | Array,
    rho: float,
    rng: np.random.Generator,
) -> Array:
    """A private mean, along the last axis, of values that lie around centre ± radius.

    Their spread is taken to be one.
    """
    n = values.shape[-1]
    found = np.asarray(centre, dtype=np.float64)
    wide = np.asarray(radius, dtype=np.float64)
    far = math.sqrt(2 * math.log(2 * n / _BETA))
    for step in range(_STEPS):
        if step == _STEPS - 1:
            share = _LAST_SHARE
        else:
            share = (1 - _LAST_SHARE) / (_STEPS - 1)
        reach = wide + far
        sd = 2 * reach / n / math.sqrt(2 * share * rho)
        inside = np.clip(values, (found - reach)[..., None], (found + reach)[..., None])
        found = inside.mean(axis=-1) + sd * rng.normal(size=found.shape)
        wide = math.sqrt(2 * math.log(2 / _BETA)) * np.sqrt(1 / n + sd**2)
    return found


@dataclass(frozen=True)
class Selected:
    """The chosen candidate, and its fit; none if no score was in its range."""

    length: float
    sigma: float
    model: LiteralGP | None


def select(
    x: Array,
    y: Array,
    lengths: tuple[float, ...],
    sigmas: tuple[float, ...],
    inducing: Array,
    reach: float,
    shares: SelectionBudget,
    rng: np.random.Generator,
) -> Selected:
    """Algorithm 2, with the first half of the records to fit and the second to validate."""
    half = len(x) // 2
    best = -math.inf
    found = Selected(math.nan, math.nan, None)
    for _ in range(shares.tries):
        length = float(rng.choice(lengths))
        sigma = float(rng.choice(sigmas))
        model = LiteralGP(RBF(length), inducing, sigma, reach, shares.epsilon, shares.delta).fit(
            x[:half], y[:half], rng
        )
        mean, sd = model.predict(x[half:])
        variance = sd**2 + sigma**2
        scores = -(np.log(2 * math.pi * variance) + (y[half:] - mean) ** 2 / variance) / 2
        radius = reach**2 / sigma**2
        top = -math.log(2 * math.pi) / 2 - math.log(sigma)
        inside = np.clip(scores, top - 2 * radius, top)
        score = float(coinpress_mean(inside, top - radius, radius, shares.rho, rng))
        if best < score <= top:
            best = score
            found = Selected(length, sigma, model)
        if rng.random() < _GAMMA:
            break
    return found
