"""Numbers as people read them, and the names that stand beside them."""

from collections.abc import Sequence
from math import floor, log10

__all__ = [
    "NOT_SIGNED",
    "decimal_places",
    "format_count",
    "format_in_range",
    "format_number",
    "format_number_up",
    "format_short",
    "format_short_up",
    "format_with_error",
    "join_names",
    "printable",
    "quoted_word",
    "signature_statement",
    "truncate_name",
]

NOT_SIGNED = "no: nothing proves who wrote this file"
_MOST_LETTERS = 28
_NAMED = 5
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def printable(text: str) -> str:
    """Without control characters, which could talk to a terminal or turn a line around."""
    return "".join(letter if letter.isprintable() else "�" for letter in text)


def quoted_word(word: str, between: str = ",") -> str:
    """Write a word as the command line takes it: in quotes if it holds what separates words."""
    if between in word or '"' in word:
        doubled = word.replace('"', '""')
        return f'"{doubled}"'
    return word


def truncate_name(name: str, most: int = _MOST_LETTERS) -> str:
    """A name as an axis can bear it."""
    shown = printable(name)
    if len(shown) <= most:
        return shown
    return shown[: most - 1] + "…"


def decimal_places(sd: float) -> int:
    """How many decimal places are worth showing beside this much noise."""
    if sd > 0:
        return min(max(1 - floor(log10(sd)), 0), 12)
    return 6


def format_with_error(value: float, sd: float) -> str:
    """Write a number with its standard deviation, both to the digit where the noise begins.

    >>> format_with_error(41.3719, 0.0283), format_with_error(-1234.5, 87.0)
    ('41.372 ± 0.028', '-1,234 ± 87')
    """
    digits = decimal_places(sd)
    return f"{value:z,.{digits}f} ± {sd:,.{digits}f}"


def format_short(number: float, digits: int | None = None) -> str:
    """Write a number in at most four digits, for people: 0.5, 1e-5, 1.279, 12,345.

    Or rounded to as many as are asked for.
    """
    if digits is not None:
        number = float(f"{number:.{digits}g}")
    if 9999.5 <= abs(number) < 1e12:
        text = f"{number:,.0f}"
    else:
        text = f"{number:z.{max(digits or 4, 4)}g}"
    return text.replace("e-0", "e-")


def format_in_range(number: float, low: float, high: float) -> str:
    """Write a number in four digits, or as many as tell a thousandth of its range.

    >>> format_in_range(45.00826, 45.0, 45.02), format_in_range(18.3333, 0, 110)
    ('45.00826', '18.33')
    """
    shown = format_short(number)
    places = min(3 - floor(log10(high - low)), 12)
    if "e" in shown or places <= len(shown.partition(".")[2]):
        return shown
    separator = ""
    if abs(number) >= 9999.5:
        separator = ","
    longer = f"{number:z{separator}.{places}f}"
    return longer.rstrip("0").rstrip(".")


def format_short_up(number: float, digits: int = 4) -> str:
    """Write an ε or δ as `compact` does, rounded up.

    What is shown of a promise is never better than it.

    >>> format_short_up(1.00001), format_short_up(1e-5), format_short(1.00001)
    ('1.001', '1e-5', '1')
    """
    from reticent.privacy.accounting.rounding import rounded_up

    return format_short(rounded_up(number, digits))


def format_number(number: float, digits: int = 4) -> str:
    """Write a number as print does: 0.5, 1.28, −3, 10⁻⁵, 2.5·10⁻⁷.

    >>> format_number(1e-5), format_number(-2.5e-7), format_number(0.1234, 2)
    ('10⁻⁵', '−2.5·10⁻⁷', '0.12')
    """
    main, _, power = format_short(number, digits).partition("e")
    if power:
        main = ("" if main == "1" else f"{main}·") + f"10{str(int(power)).translate(_RAISED)}"
    return main.replace("-", "−")


def format_number_up(number: float, digits: int = 4) -> str:
    """Write an ε or δ in the same way, rounded up.

    What is shown of a promise is never better than it.

    >>> format_number_up(1.00001), format_number(1.00001)
    ('1.001', '1')
    """
    from reticent.privacy.accounting.rounding import rounded_up

    return format_number(rounded_up(number, digits), digits)


def join_names(names: Sequence[str]) -> str:
    """Name the first few: a, b, c and d."""
    if not names:
        return ""
    if len(names) > _NAMED:
        names = [*names[: _NAMED - 1], f"{len(names) - _NAMED + 1} more"]
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def format_count(number: int, thing: str) -> str:
    """Say how many: 1 release, 24 releases."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def signature_statement(signer: str | None) -> str:
    """Say who signed a file: the fingerprint of the key."""
    if signer is None:
        return NOT_SIGNED
    return f"by the key with the fingerprint {signer}"
