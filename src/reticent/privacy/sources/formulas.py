"""Formulas in CSV files: text that spreadsheet programs would run.

Cells that begin with =, +, -, @, a tab or a line break. In East Asian settings some take the wide
forms of these signs for them, too.

Whoever names a column or a class ``=HYPERLINK(…)`` has it run on the machine of whoever opens the
file. An apostrophe before it makes it plain text in all common programs. Numbers stay as they are.
Names of columns come back without it when a file is read again, so that a file that was written
here can be used here.
"""

import re

__all__ = ["neutral", "original"]

_RUN = re.compile(r"'*[=+\-@\t\r\n＝＋－＠]")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def neutral(text: str) -> str:
    """Return the text as it may be written: with an apostrophe before what a spreadsheet would run.

    >>> neutral("=1+1"), neutral("-4.5e-3"), neutral("weight")
    ("'=1+1", '-4.5e-3', 'weight')
    """
    if not _RUN.match(text) or _NUMBER.fullmatch(text):
        return text
    return f"'{text}"


def original(text: str) -> str:
    """Return back what `neutral` was given.

    >>> original("'=1+1"), original("weight"), original("'weight")
    ('=1+1', 'weight', "'weight")
    """
    if text.startswith("'") and _RUN.match(text):
        return text[1:]
    return text
