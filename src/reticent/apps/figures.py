"""Numbers as people read them, and the names that stand beside them."""

from math import floor, log10
from typing import Any

__all__ = ["column_names", "digits_beside", "level_name", "measured", "printable", "shortened"]

_MOST_LETTERS = 28


def column_names(model: Any) -> list[str]:
    """Give the names of a model's inputs, or their numbers where they have none."""
    names: list[str] = getattr(model, "feature_names_in_", [])
    return (
        [printable(str(name)) for name in names] if len(names) else [f"column {i}" for i in range(model.n_features_in_)]
    )


def level_name(level: Any) -> str:
    """Give the name of a column of noise levels, or its number where it has none."""
    return f"{printable(level.name) if level.name else f'column {level.at}'} (noise level)"


def shortened(name: str, most: int = _MOST_LETTERS) -> str:
    """A name as an axis can bear it."""
    shown = printable(name)
    return shown if len(shown) <= most else shown[: most - 1] + "…"


def printable(text: str) -> str:
    """Without control characters, which could talk to a terminal or turn a line around."""
    return "".join(letter if letter.isprintable() else "�" for letter in text)


def digits_beside(sd: float) -> int:
    """How many decimal places are worth showing beside this much noise."""
    return min(max(1 - floor(log10(sd)), 0), 12) if sd > 0 else 6


def measured(value: float, sd: float) -> str:
    """Write a number with the standard deviation of its noise, both to the digit where the noise begins.

    >>> measured(41.3719, 0.0283), measured(-1234.5, 87.0)
    ('41.372 ± 0.028', '-1,234 ± 87')
    """
    digits = digits_beside(sd)
    return f"{value:,.{digits}f} ± {sd:,.{digits}f}"
