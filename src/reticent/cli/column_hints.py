"""Columns that a file does not have, and which one may have been meant."""

import re
from collections.abc import Sequence
from difflib import get_close_matches
from shlex import quote

from reticent.errors import BadInput

__all__ = ["check_columns", "similar_column"]


def similar_column(name: str, names: Sequence[str]) -> str | None:
    """Find the column that was probably meant.

    One that has the given words among its own, such as a unit more; else one that is spelled nearly
    like it.

    >>> similar_column("height", ["age", "height (cm)", "weight"])
    'height (cm)'
    >>> similar_column("Wieght", ["age", "height (cm)", "weight"])
    'weight'
    """
    wanted = _words(name)
    longer = [known for known in names if wanted and wanted <= _words(known)]
    if longer:
        return min(longer, key=len)
    by_letters = {known.lower(): known for known in reversed(names)}
    close = get_close_matches(name.lower(), by_letters, 1)
    if close:
        return by_letters[close[0]]
    return None


def _words(name: str) -> set[str]:
    return set(re.findall(r"[^\W_]+", name.lower()))


def _split(option: str, text: str) -> tuple[str, str]:
    """Column and the rest; a range has no ``=`` in it, a label may."""
    if option == "--classes":
        name, _, value = text.partition("=")
    else:
        name, _, value = text.rpartition("=")
    return name, value


def check_columns(option: str, texts: Sequence[str], names: Sequence[str], file: str) -> None:
    """Refuse ``COLUMN=…`` that names no column of the file, with the words that would."""
    for text in texts:
        name, value = _split(option, text)
        if name in names or not names or (len(names) == 1 and ";" in names[0]):
            continue
        meant = similar_column(name, names)
        hint = ""
        if meant is not None:
            hint = f" Did you mean {option} {quote(f'{meant}={value}')}?"
        raise BadInput(
            f"{option} {text}: there is no column {name!r} in {file}. Columns: "
            f"{', '.join(names)}.{hint}"
        )
