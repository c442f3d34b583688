"""What a caller gives: is it a number, is it whole? Asked in one way everywhere; True and False are neither."""

import math

import numpy as np

from reticent.errors import BadInput

__all__ = ["check_whole", "number", "whole"]


def number(value: object) -> float:
    """Give the number as a float; NaN, which no bound holds for, for what is not a number or has no float."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        return math.nan
    try:
        found = float(value)
    except OverflowError:
        return math.nan
    return math.nan if found == 0 != value else found


def whole(value: object, least: float = 1, most: float = math.inf) -> bool:
    """Whether it is a whole number from ``least`` to ``most``."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and least <= int(value) <= most


def check_whole(name: str, value: object, least: int = 1, most: float = math.inf) -> None:
    """Refuse anything but a whole number from ``least`` to ``most``."""
    if not whole(value, least, most):
        which = f"of at least {least}" if most == math.inf else f"from {least} to {most:,}"
        raise BadInput(f"{name} must be a whole number {which}, not {value!r}.")
