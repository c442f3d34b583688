"""Rounding of what is printed of a promise: never to a better one."""

import math
from decimal import ROUND_CEILING, Context

__all__ = ["rounded_up"]


def rounded_up(value: float, digits: int) -> float:
    """Return the least number of ``digits`` significant digits that is not below ``value``.

    >>> rounded_up(1.0000004, 6), rounded_up(0.1, 6), rounded_up(9.99e-6, 2)
    (1.00001, 0.1, 1e-05)
    """
    if not math.isfinite(value):
        return value
    return float(Context(prec=digits, rounding=ROUND_CEILING).create_decimal(repr(float(value))))
