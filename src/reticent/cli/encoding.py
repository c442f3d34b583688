"""Letters that a terminal lacks, spelled with those it has (``epsilon=1``, no question mark)."""

import codecs
import sys

__all__ = ["SPELLED", "spelled"]

# the name of the way to treat such letters, for ``stream.reconfigure(errors=…)``
SPELLED = "reticent-spelled"

_WORDS = {"ε": "epsilon", "δ": "delta", "±": "+/-", "≥": ">=", "…": "..."}
_SIGNS = str.maketrans("–−×▁▂▃▄▅▆▇█", "--x_.:-=+*#")


def _spell(error: UnicodeError) -> tuple[str | bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    letter = error.object[error.start]
    word = _WORDS.get(letter, letter.translate(_SIGNS))
    if word.isascii():
        return word, error.start + 1
    return codecs.backslashreplace_errors(error)  # a name: no two of them may look the same


codecs.register_error(SPELLED, _spell)


def spelled(text: str) -> str:
    """Give the text as standard output will show it, so that a table can be laid out for it."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    return text.encode(encoding, SPELLED).decode(encoding)
