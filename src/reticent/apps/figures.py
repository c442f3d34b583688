"""Numbers as people read them, and the names that stand beside them."""

from collections.abc import Sequence
from math import floor, log10
from typing import Any

from reticent.apps.letters import printable
from reticent.apps.terminal import compact
from reticent.privacy.accounting import rounded_up

__all__ = [
    "column_names",
    "counted",
    "digits_beside",
    "figure",
    "figure_up",
    "level_name",
    "listed",
    "measured",
    "printable",
    "shortened",
]

_MOST_LETTERS, _NAMED = 28, 5
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


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


def digits_beside(sd: float) -> int:
    """How many decimal places are worth showing beside this much noise."""
    return min(max(1 - floor(log10(sd)), 0), 12) if sd > 0 else 6


def measured(value: float, sd: float) -> str:
    """Write a number with the standard deviation of its noise, both to the digit where the noise begins.

    >>> measured(41.3719, 0.0283), measured(-1234.5, 87.0)
    ('41.372 ± 0.028', '-1,234 ± 87')
    """
    digits = digits_beside(sd)
    return f"{value:z,.{digits}f} ± {sd:,.{digits}f}"


def figure(number: float, digits: int = 4) -> str:
    """Write a number as print does: 0.5, 1.28, −3, 10⁻⁵, 2.5·10⁻⁷.

    >>> figure(1e-5), figure(-2.5e-7), figure(0.1234, 2)
    ('10⁻⁵', '−2.5·10⁻⁷', '0.12')
    """
    main, _, power = compact(number, digits).partition("e")
    if power:
        main = ("" if main == "1" else f"{main}·") + f"10{str(int(power)).translate(_RAISED)}"
    return main.replace("-", "−")


def figure_up(number: float, digits: int = 4) -> str:
    """Write an ε or δ in the same way, rounded up: what is shown of a promise is never better than it.

    >>> figure_up(1.00001), figure(1.00001)
    ('1.001', '1')
    """
    return figure(rounded_up(number, digits), digits)


def listed(names: Sequence[str]) -> str:
    """Name the first few: a, b, c and d."""
    if not names:
        return ""
    if len(names) > _NAMED:
        names = [*names[: _NAMED - 1], f"{len(names) - _NAMED + 1} more"]
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def counted(number: int, thing: str) -> str:
    """Say how many: 1 release, 24 releases."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"
