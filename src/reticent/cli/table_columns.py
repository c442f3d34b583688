"""Columns of ``reticent fit table``: keys, and values whose means, rates or quantiles are told.

--by sex=F,M                   a group for each word
--by age=0:18:65:110           groups of numbers or dates by their edges
--mean stay=0:60               a value and its range
--rate died                    a column of yes and no
--quantile stay                a column that another option has described
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from reticent.cli.columns import column_name, parse_column, split_name
from reticent.codebook import Codebook
from reticent.errors import BadInput
from reticent.privacy.columns.base import Kind
from reticent.privacy.columns.words import YesNo

__all__ = ["TABLE_COLUMNS", "described", "table_columns"]

TABLE_COLUMNS = ("by", "mean", "rate", "total", "quantile")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_FORMAT = re.compile(r"((?:\s*\d{4}-\d{2}-\d{2}\s*:)+\s*\d{4}-\d{2}-\d{2}\s*)(:.*%.*)")
_KINDS = ("whole", "cyclic", "number")


def table_columns(
    x: Sequence[str], own: Mapping[str, Any], codebook: Codebook | None
) -> tuple[list[str], dict[str, Any]]:
    """Texts for ``--x`` of all columns that are used, and the model's options with their names."""
    texts = described(x, own, codebook)
    used: list[str] = []
    options = dict(own)
    for option in TABLE_COLUMNS:
        given = own.get(option)
        if not given:
            options[option] = None
            continue
        found: list[Any] = []
        for text in given:
            name, _ = split_name(text)
            edges = _edges(text)
            found.append(name if edges is None else (name, edges[0]))
            if name not in used:
                used.append(name)
        options[option] = found
    if not used:
        raise BadInput(
            "A table needs keys or values: say which groups are told apart, for example --by "
            "sex=F,M, and what is told of them, --mean stay=0:60 --rate died."
        )
    for name in options["by"] or ():
        if isinstance(name, str) and parse_column(texts[name], "--by", codebook)[1].cells is None:
            raise BadInput(
                f"--by {texts[name]}: groups of numbers and dates are made by edges; give them "
                f"all, for example --by {column_name('age')}=0:18:65:110."
            )
    for name in options["rate"] or ():
        _check_rate(name, parse_column(texts[name], "--rate", codebook)[1])
    return [texts[name] for name in used], options


def _check_rate(name: str, kind: Kind) -> None:
    if isinstance(kind, YesNo):
        return
    shown = column_name(name)
    if kind.levels is None:
        hint = f"ask for its mean, --mean {shown}"
    else:
        hint = f"make it a key, --by {shown}"
    raise BadInput(
        f"--rate {shown}: a rate is one of yes and no, and this is a column of kind {kind.name}: "
        f"{hint}, or say its two words, no first: {shown}=alive/dead."
    )


def described(
    x: Sequence[str], own: Mapping[str, Any], codebook: Codebook | None
) -> dict[str, str]:
    """For each column the text that says what is public about it.

    A name alone stands for what another option or the codebook says; of ``--rate``, for yes and no.
    """
    texts: dict[str, str] = {}
    alone: dict[str, str] = {}
    given = [("--x", x), *((f"--{name}", own.get(name) or ()) for name in TABLE_COLUMNS)]
    for option, columns in given:
        for text in columns:
            name, value = split_name(text)
            if value is None:
                alone.setdefault(name, option)
                continue
            edges = _edges(text)
            if option == "--by" and edges is not None:
                text = edges[1]
            elif edges is not None:
                raise BadInput(f"{option} {text}: give the range alone, COLUMN=LOW:HIGH.")
            _, kind = parse_column(text, option, codebook)
            if name in texts and parse_column(texts[name], option, codebook)[1] != kind:
                raise BadInput(
                    f"{option} {text}: column {name!r} was described otherwise before. Describe it "
                    "once, and give its name alone after that."
                )
            texts[name] = text
    for name, option in alone.items():
        if name in texts:
            continue
        if codebook is not None and name in codebook.kinds:
            texts[name] = column_name(name)
        elif option == "--rate":
            texts[name] = f"{column_name(name)}=no/yes"
        else:
            parse_column(column_name(name), option, codebook)  # says what is missing
    return texts


def _edges(text: str) -> tuple[list[float | str], str] | None:
    """Edges of groups, and the range from first to last; None where there are no edges.

    >>> _edges("age=0:18:65:110"), _edges("age=0:110")
    (([0.0, 18.0, 65.0, 110.0], 'age=0:110'), None)
    """
    name, value = split_name(text)
    if value is None:
        return None
    kind = ""
    written = _FORMAT.fullmatch(value)
    if written is not None:
        value = written[1]
        kind = written[2]
    parts = [part.strip() for part in value.split(":")]
    if parts[-1] in _KINDS:
        kind = f":{parts.pop()}"
    if len(parts) < 3:
        return None
    whole = f"{column_name(name)}={parts[0]}:{parts[-1]}{kind}"
    if all(_DAY.fullmatch(part) for part in parts):
        return list(parts), whole
    try:
        return [float(part) for part in parts], whole
    except ValueError:
        return None
