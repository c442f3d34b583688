"""Credible bands of class probabilities, from the posterior of their logits.

The logits η_c of a softmax have independent errors of variance v. The log-odds of class c against
all others,

    o_c = η_c − log Σ_{k≠c} exp η_k,    have the gradient ∂o_c/∂η_c = 1, ∂o_c/∂η_k = −r_k, r =
                                        softmax of the others,

and so, to first order, the variance v·(1 + Σ r_k²): twice v for two classes. A band of log-odds is
one of probabilities. Errors that add up to zero over the classes give the same, because the
gradient does.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logsumexp

__all__ = ["probability_bands"]

Array = NDArray[np.float64]


def probability_bands(logits: Array, variance: Array, width: float) -> tuple[Array, Array]:
    """Lowest and highest probabilities, two arrays (points, C).

    ``logits``: (points, C); ``variance``: (points,), of each logit; ``width``: half-width of the
    band in standard deviations of the log-odds.
    """
    low = np.empty_like(logits)
    high = np.empty_like(logits)
    for c, logit in enumerate(logits.T):
        others = np.delete(logits, c, axis=1)
        together = logsumexp(others, axis=1)
        squared_odds = (np.exp(others - together[:, None]) ** 2).sum(axis=1)
        sd = width * np.sqrt(variance * (1 + squared_odds))
        low[:, c], high[:, c] = expit(logit - together - sd), expit(logit - together + sd)
    return low, high
