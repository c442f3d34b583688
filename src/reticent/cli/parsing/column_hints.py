"""Columns that a file does not have, and which one may have been meant."""

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from shlex import quote

from reticent.cli.columns import column_name, split_name
from reticent.codebook import Codebook
from reticent.errors import BadFile, BadInput

__all__ = ["check_codebook", "check_columns", "similar_column"]


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


def check_columns(option: str, texts: Sequence[str], names: Sequence[str], file: str) -> None:
    """Refuse ``COLUMN=…`` that names no column of the file, with the words that would."""
    for text in texts:
        name, value = split_name(text)
        if name in names or not names:
            continue
        meant = similar_column(name, names)
        hint = ""
        if meant is not None:
            said = "" if value is None else f"={value}"
            hint = f" Did you mean {option} {quote(f'{column_name(meant)}{said}')}?"
        raise BadInput(
            f"{option} {text}: there is no column {name!r} in {file}. Columns: "
            f"{', '.join(names)}.{hint}"
        )


def check_codebook(
    codebook: Codebook | None, used: Iterable[str], names: Sequence[str], file: str
) -> None:
    """Refuse columns of a codebook that the file does not have."""
    if codebook is None:
        return
    for name in used:
        if name in names or name not in codebook.kinds or not names:
            continue
        meant = similar_column(name, names)
        hint = "" if meant is None else f" Did you mean {meant!r}?"
        raise BadFile(
            f"{codebook.path} has a column {name!r}, which {file} has not. Columns in it: "
            f"{', '.join(names)}.{hint} Correct the name, delete the column from the codebook, or "
            'give it use = "no".'
        )
