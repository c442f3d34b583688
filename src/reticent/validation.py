"""Argument validation shared by all modules.

Booleans and durations, which Python and NumPy count among the integers, are refused where numbers
are expected.
"""

import math
from collections.abc import Iterable

import numpy as np

from reticent.errors import BadInput

__all__ = [
    "as_float",
    "as_generator",
    "check_choice",
    "check_epsilon_delta",
    "check_integer",
    "is_integer",
]

_NUMBERS = (int, float, np.integer, np.floating)
_NOT_NUMBERS = (bool, np.timedelta64)  # although they derive from integers


def as_float(value: object) -> float:
    """Return a number as a float, and NaN for everything else.

    NaN stands for what is not a number, is too large for a float, or would round to 0. Comparisons
    with it are false: ``0 < as_float(value) < 1`` is the whole check.
    """
    if isinstance(value, _NOT_NUMBERS) or not isinstance(value, _NUMBERS):
        return math.nan
    try:
        converted = float(value)
    except OverflowError:
        return math.nan
    if converted == 0 != value:
        return math.nan
    return converted


def is_integer(value: object, least: float = 1, most: float = math.inf) -> bool:
    """Whether ``value`` is an integer from ``least`` to ``most``."""
    return (
        isinstance(value, (int, np.integer))
        and not isinstance(value, _NOT_NUMBERS)
        and least <= int(value) <= most
    )


def check_integer(name: str, value: object, least: int = 1, most: float = math.inf) -> None:
    """Refuse anything but an integer from ``least`` to ``most`` for the parameter ``name``."""
    if is_integer(value, least, most):
        return
    if most == math.inf:
        limits = f"of at least {least}"
    else:
        limits = f"from {least} to {most:,}"
    raise BadInput(f"{name} must be a whole number {limits}, not {value!r}.", parameter=name)


def check_choice(name: str, value: object, known: Iterable[str]) -> None:
    """Refuse anything but one of the ``known`` strings for the parameter ``name``."""
    # Not a string: not compared, because an array would compare element by element.
    if not isinstance(value, str) or value not in known:
        choices = ", ".join(known)
        raise BadInput(f"{name} must be one of {choices}, not {value!r}.", parameter=name)


def as_generator(random_state: object) -> np.random.Generator:
    """Return a generator from None, a seed or a generator, to draw from a model that is public.

    Never for privacy noise.
    """
    # scikit-learn hands on a RandomState, which old versions of NumPy do not convert.
    if isinstance(random_state, np.random.RandomState):
        return np.random.Generator(random_state._bit_generator)
    try:
        return np.random.default_rng(random_state)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise BadInput(
            "random_state must be None, a whole number or a NumPy generator, not "
            f"{random_state!r}.",
            parameter="random_state",
        ) from None


def check_epsilon_delta(eps: object, delta: object, *, pure: bool = False) -> tuple[float, float]:
    """Return (ε, δ) as floats, or say what is wrong with them; ``pure`` allows δ = 0."""
    if not 0 < as_float(eps) < math.inf:
        raise BadInput(
            f"epsilon must be a positive number, not {eps!r}. It is the strength of the promise: 1 "
            "is a common choice, smaller protects more. There is no default, because it is yours "
            "to decide.",
            parameter="epsilon",
        )
    valid = 0 < as_float(delta) < 1 or (pure and as_float(delta) == 0)
    if not valid:
        least = "0 < delta"
        if pure:
            least = "0 <= delta"
        raise BadInput(
            f"delta must be a number with {least} < 1, not {delta!r}. It is the probability that "
            "the promise may fail: take it well below 1/(number of records), for example 1e-6.",
            parameter="delta",
        )
    return as_float(eps), as_float(delta)
