"""``--classes ill=no,yes``.

The column that a classifier predicts, and all labels that can stand in it.
"""

import csv
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from reticent.errors import BadInput
from reticent.privacy.sources.base import Source

__all__ = ["as_the_column_has_them", "parse_classes"]

_QUOTED = re.compile(r'"((?:[^"]|"")+)"=(.*)', re.DOTALL)
_EXAMPLE = "for example --classes ill=no,yes"


def parse_classes(texts: Sequence[str]) -> dict[str, list[str]]:
    """Read ``ill=no,yes``.

    The name ends at the first ``=``; a name that holds one, or a label with a comma, stands in
    double quotes.

    >>> parse_classes(["income=<=50K,>50K"]), parse_classes(['why="no, never", yes'])
    ({'income': ['<=50K', '>50K']}, {'why': ['no, never', 'yes']})
    """
    if not texts:
        return {}
    if len(texts) > 1:
        raise BadInput(
            f"--classes was given {len(texts)} times, but a classifier predicts one column: give "
            f"all its labels at once, {_EXAMPLE}."
        )
    (text,) = texts
    quoted = _QUOTED.fullmatch(text)
    if quoted is None:
        name, _, values = text.partition("=")
    else:
        name = quoted[1].replace('""', '"')
        values = quoted[2]
    labels = next(csv.reader([values], skipinitialspace=True), [])
    if not name or not labels:
        raise BadInput(f"--classes takes COLUMN=LABEL,LABEL,… {_EXAMPLE}, not {text!r}.")
    if not all(labels):
        raise BadInput(
            f"--classes {text} has an empty label: leave it out. A record without a label, or with "
            "one that is not listed, is left out of the fit."
        )
    twice = [label for label, times in Counter(labels).items() if times > 1]
    if twice:
        raise BadInput(f"--classes lists {twice[0]!r} twice: name each class once.")
    if len(labels) == 1:
        raise BadInput(
            f"--classes {text} names one class, so there is nothing to tell apart: name all labels "
            f"that can occur, {_EXAMPLE}."
        )
    return {name: labels}


def as_the_column_has_them(labels: Sequence[str], source: Source, column: str) -> list[Any]:
    """Give labels as numbers where all of them are, so that 1, 1.0 and 01 are one class.

    But not for a column of texts. Decided by the labels and the file's schema; no record is read.
    """
    kind, dtype = source.kind(source.position(column))
    numbers = _as_numbers(labels)
    if kind == "text" or (kind != "number" and numbers is None):
        return list(labels)
    if numbers is not None:
        return numbers
    truths = {"true": True, "false": False}
    if all(label.lower() in truths for label in labels):
        return [truths[label.lower()] for label in labels]
    raise BadInput(
        f"Column {column!r} holds numbers ({dtype}), and {labels[0]!r} is none: give its classes "
        f"as they stand in the file, for example --classes {column}=0,1."
    )


def _as_numbers(labels: Sequence[str]) -> list[float | int] | None:
    """The labels as numbers, if they are different numbers that arithmetic can tell apart."""
    try:
        exact = [float(label) for label in labels]
        whole = [int(value) if value.is_integer() else value for value in exact]
    except (ValueError, OverflowError):
        return None
    kept = all(
        int(label) == value
        for label, value in zip(labels, whole, strict=True)
        if label.lstrip("+-").isdigit()
    )
    if kept and len(set(whole)) == len(whole) and all(abs(value) < 2**53 for value in exact):
        return whole
    return None
