"""How many records lack a value, from a released number of them."""

import math

from scipy.special import log_ndtr, ndtr

__all__ = ["missing_records"]


def missing_records(value: float, sd: float, n: float) -> tuple[float, float]:
    """Mean and variance of the number of incomplete records among n.

    ``value``: that number, with normal noise of standard deviation ``sd``. As likely as not there
    is none, which is where most tables stand; otherwise it is anything from 0 to n.
    """
    none = math.exp(-0.5 * (value / sd) ** 2) / (math.sqrt(2 * math.pi) * sd)
    low = -value / sd
    high = (n - value) / sd
    some = float(ndtr(high) - ndtr(low)) / n
    if some <= 0 or not math.isfinite(low):  # beyond all noise: the nearest number that can be
        return min(max(value, 0.0), n), sd**2
    mean, variance = _truncated(low, high)
    mean = min(max(value + sd * mean, 0.0), n)
    weight = some / (some + none)
    return weight * mean, weight * (sd**2 * variance + (1 - weight) * mean**2)


def _truncated(low: float, high: float) -> tuple[float, float]:
    """Mean and variance of a standard normal number between ``low`` and ``high``."""
    log_mass = float(log_ndtr(high)) + math.log1p(
        -math.exp(min(float(log_ndtr(low) - log_ndtr(high)), -1e-12))
    )
    at_low, at_high = (
        math.exp(-0.5 * end**2 - 0.5 * math.log(2 * math.pi) - log_mass) for end in (low, high)
    )
    mean = at_low - at_high
    return mean, max(1 + low * at_low - high * at_high - mean**2, 1e-6)
