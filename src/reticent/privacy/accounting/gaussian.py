"""Gaussian mechanisms: their exact privacy curve δ(ε), and its inverses.

Everything rounds to the safe side. J Gaussian events with multipliers z_j act as one with
μ² = Σ 1/z_j², for which

    δ(ε) = Φ(−x) − e^ε Φ(−x−μ) = pdf(x) (M(x) − M(x+μ)),    x = ε/μ − μ/2,

with Mills' ratio M(t) = (1−Φ(t))/pdf(t). The second form, in logarithms, loses no digits however
small δ is. μ² is summed in integers, so that neither the order of the events nor the way they were
grouped changes the total by a single bit. Proof: accounting.md, 1.
"""

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import erfcx, ndtr

from reticent.memo import memo
from reticent.privacy.accounting.events import Event, Gaussian

__all__ = ["gaussian_epsilon", "gaussian_mu", "largest_mu", "log_delta", "log_delta_bound"]

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)
_FIXED = 512  # μ² is an integer multiple of 2^-512

Array = NDArray[np.float64]


def _minus_mills_slope(t: Array) -> Array:
    """−M′(t) = 1 − t·M(t), for t ≥ −1; its asymptotic series where the difference would cancel."""
    direct = 1 - t * math.sqrt(math.pi / 2) * erfcx(t / math.sqrt(2))
    v = 1 / np.maximum(t, 1) ** 2
    series = v * (1 - v * (3 - v * (15 - v * (105 - v * (945 - v * 10395)))))
    slope: Array = np.where(t > 50, series, direct)
    return slope


def log_delta(eps: float, mu: float) -> float:
    """log δ(ε) of a Gaussian mechanism with μ = sensitivity / standard deviation."""
    x = eps / mu - mu / 2
    if mu <= 1:  # M(x) − M(x+μ) would cancel: integrate its slope, which is smooth and positive
        t = x + mu * (_NODES + 1) / 2
        difference = mu / 2 * float(_WEIGHTS @ _minus_mills_slope(t))
    elif x >= 0:
        difference = math.sqrt(math.pi / 2) * float(
            erfcx(x / math.sqrt(2)) - erfcx((x + mu) / math.sqrt(2))
        )
    else:  # δ is not small here, and no digits are lost
        return math.log(
            float(ndtr(-x)) - math.exp(-x * x / 2) / 2 * float(erfcx((x + mu) / math.sqrt(2)))
        )
    return -x * x / 2 - math.log(2 * math.pi) / 2 + math.log(difference)


def log_delta_bound(eps: float, mu: float) -> float:
    """Return an upper bound on log δ(ε): `log_delta` and more than its rounding error.

    The rounding error was checked against mpmath.
    """
    x = eps / mu - mu / 2
    return log_delta(eps, mu) + 1e-12 + 4e-15 * (abs(x) + 1) * (abs(x) + mu)


def gaussian_mu(events: Iterable[Event]) -> float:
    """Return μ of the Gaussian events among ``events``, composed and rounded up.

    Zero if there are none.
    """
    total = 0
    for event in events:
        if isinstance(event, Gaussian):
            p, q = event.noise_multiplier.as_integer_ratio()
            total += event.count * -(-((q * q) << _FIXED) // (p * p))
    if not total:
        return 0.0
    root = math.isqrt(total) + 1
    return math.nextafter(root / (1 << _FIXED // 2), math.inf)


@memo(4096)
def gaussian_epsilon(mu: float, delta: float) -> float:
    """Return the least ε at which a Gaussian mechanism of ``mu`` has ``delta``; rounded up."""
    target = math.log(delta)
    if mu == math.inf:
        return math.inf
    if log_delta_bound(0.0, mu) <= target:
        return 0.0
    high = mu * mu / 2 + mu * math.sqrt(2 * -target) + mu  # δ(ε) ≤ Φ(−x) ≤ exp(−x²/2)
    eps = brentq(
        lambda e: log_delta_bound(e, mu) - target,
        0.0,
        high,
        xtol=1e-300,
        rtol=8.9e-16,
        maxiter=1000,
    )
    step = 1e-15
    while log_delta_bound(eps, mu) > target:  # the root may lie a few units on the wrong side
        eps *= 1 + step
        step *= 2
    return float(eps)


def largest_mu(eps: float, delta: float) -> float:
    """Return the largest μ of a Gaussian mechanism that is (ε, δ)-DP, to float precision."""
    target = math.log(delta)
    low = high = math.sqrt(2) * math.sqrt(eps)  # x = 0
    while log_delta_bound(eps, high) <= target:
        high *= 2
    while log_delta_bound(eps, low) > target:
        low /= 2
    return float(
        brentq(lambda mu: log_delta_bound(eps, mu) - target, low, high, xtol=1e-300, rtol=8.9e-16)
    )
