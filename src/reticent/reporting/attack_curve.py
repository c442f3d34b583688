"""The best that an attacker can do against a guarantee.

How many they recognise for the false alarms they accept. Gaussian releases with μ = sensitivity /
noise, composed, keep every test on the curve TPR = Φ(Φ⁻¹(FPR) + μ) or below it. This is exact: it
says all of the noise, where (ε, δ) is one line above the curve. Other kinds are held to what (ε, δ)
says.
"""

from math import ceil

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri

from reticent.privacy.accounting.events import Gaussian, Selection
from reticent.privacy.accounting.gaussian import gaussian_mu
from reticent.privacy.accounting.guarantee import Guarantee
from reticent.privacy.accounting.selection import selection_delta

__all__ = ["FALSE_ALARMS", "composed_mu", "percent", "recognised"]

FALSE_ALARMS = 0.05  # the point of the curve that is said in words


def composed_mu(guarantee: Guarantee) -> float | None:
    """Give μ of all events together if all are Gaussian."""
    if not all(isinstance(event, Gaussian) for event in guarantee.events):
        return None
    return gaussian_mu(guarantee.events)


def recognised(guarantee: Guarantee, false_alarms: ArrayLike) -> NDArray[np.float64]:
    """Give the largest true-positive rate of any attack with these false-positive rates.

    1 where nothing is promised.

    >>> from reticent.privacy.accounting.composition import calibrate
    >>> event = Gaussian(noise_multiplier=calibrate(1, 1e-6))
    >>> promise = Guarantee(1e-6, "record", (event,), private=True)
    >>> round(float(recognised(promise, 0.05)), 4)
    0.0795
    """
    rate = np.asarray(false_alarms, dtype=np.float64)
    if not guarantee.private:
        return np.ones_like(rate)
    mu = composed_mu(guarantee)
    if mu is not None:
        return np.asarray(ndtr(ndtri(rate) + mu))
    best = np.ones_like(rate)
    for eps, delta in _privacy_points(guarantee):
        few = np.exp(eps) * rate + delta
        many = 1 - np.exp(-eps) * (1 - rate - delta)
        best = np.minimum(best, np.minimum(few, many))
    return np.clip(best, rate, 1.0)


def _privacy_points(guarantee: Guarantee) -> list[tuple[float, float]]:
    """What is known of δ(ε): one point, or for a search as many as are asked for."""
    (first, *more) = guarantee.events
    eps = min(guarantee.epsilon, 700.0)
    if more or not isinstance(first, Selection) or first.count > 1:
        return [(eps, guarantee.delta)]
    return [
        (share * eps, selection_delta(first, share * eps))
        for share in np.linspace(0.02, 1, 50).tolist()
    ]


def percent(share: float) -> str:
    """Write a share in per cent, rounded up, since it is the most that can be.

    >>> percent(0.0721), percent(0.05)
    ('7.3 %', '5 %')
    """
    return f"{ceil(1000 * share) / 10:g} %"
