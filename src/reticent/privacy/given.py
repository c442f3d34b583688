"""What a caller gives: is it a number, is it whole, a seed? Asked in one way everywhere; True and False are neither."""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from reticent.errors import BadInput

__all__ = ["check_choice", "check_whole", "generator", "number", "whole"]

_NUMBERS = (int, float, np.integer, np.floating)
_NONE = (bool, np.timedelta64)  # which Python and NumPy count among the whole numbers


def number(value: object) -> float:
    """Give the number as a float; NaN, which no bound holds for, for what is not a number or has no float."""
    if isinstance(value, _NONE) or not isinstance(value, _NUMBERS):
        return math.nan
    try:
        found = float(value)
    except OverflowError:
        return math.nan
    return math.nan if found == 0 != value else found


def whole(value: object, least: float = 1, most: float = math.inf) -> bool:
    """Whether it is a whole number from ``least`` to ``most``."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, _NONE) and least <= int(value) <= most


def check_whole(name: str, value: object, least: int = 1, most: float = math.inf) -> None:
    """Refuse anything but a whole number from ``least`` to ``most``."""
    if not whole(value, least, most):
        which = f"of at least {least}" if most == math.inf else f"from {least} to {most:,}"
        raise BadInput(f"{name} must be a whole number {which}, not {value!r}.")


def check_choice(name: str, value: object, known: Iterable[str]) -> None:
    """Refuse anything but one of the words that are known."""
    if not (isinstance(value, str) and value in known):  # first: what is no text need not compare with one
        raise BadInput(f"{name} must be one of {', '.join(known)}, not {value!r}.")


def generator(random_state: Any) -> np.random.Generator:
    """Give what draws from a model that is public already: from a seed, or the caller's own; nothing private hangs on it."""
    if isinstance(random_state, np.random.RandomState):  # which scikit-learn hands on, and old NumPy does not take
        return np.random.Generator(random_state._bit_generator)
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        raise BadInput(
            f"random_state must be None, a whole number or a NumPy generator, not {random_state!r}."
        ) from None
