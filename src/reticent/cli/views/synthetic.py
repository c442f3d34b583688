"""``reticent sample``.

Synthetic records from a released model, in a file that looks like the one it was fitted to.
"""

from math import isnan, nan
from pathlib import Path
from typing import Any

import numpy as np

from reticent.cli.captured_warnings import captured_warnings
from reticent.cli.terminal import aside, line
from reticent.errors import BadInput
from reticent.files.csv_tables import TableWriter
from reticent.files.output import check_new, new_binary, new_text
from reticent.models.serialization import load
from reticent.privacy.bounds import Bounds
from reticent.privacy.sources.parquet import write_parquet
from reticent.reporting.columns import column_names
from reticent.reporting.presenter import SCREEN
from reticent.reporting.registry import has_presenter, presenter_of, unwrap_search

__all__ = ["print_sample", "write_sample"]

_ROWS = 65_536  # of a block
_NUMBERS = ("number", "cyclic")  # kinds that are written with decimals


def write_sample(file: Path, count: int, out: Path, seed: int | None) -> dict[str, Any]:
    """Write synthetic records of the model in ``file`` to a new CSV or Parquet file."""
    check_new(out, "It is not replaced")
    with captured_warnings():
        fitted: Any = load(file)
    model: Any = unwrap_search(fitted)
    if not hasattr(model, "sample"):
        raise BadInput(
            f"{file} holds a {type(fitted).__name__}, which draws no records. Models that do: "
            "reticent fit mixture or factors."
        )
    if out.suffix.lower() not in (".csv", ".parquet"):
        raise BadInput(f"{out} must end in .csv or .parquet: that says how it is written.")
    if count < 1:
        raise BadInput(f"-n must be at least 1, not {count}: how many records shall be drawn?")
    names = [str(name) for name in getattr(model, "feature_names_in_", [])] or column_names(model)
    bounds = model.releases_[0].bounds
    if out.suffix.lower() == ".parquet":
        with new_binary(out) as written:
            drawn = _columns(model.sample(count, random_state=seed), bounds)
            write_parquet(written, dict(zip(names, drawn, strict=True)))
    else:
        rng = np.random.default_rng(seed)
        with new_text(out) as written:
            lines = TableWriter(written)
            lines.line(names)
            for start in range(0, count, _ROWS):
                block = model.sample(min(_ROWS, count - start), random_state=rng)
                lines.lines(zip(*_texts(_columns(block, bounds), bounds), strict=True))
    return {
        "model": type(fitted).__name__,
        "private": fitted.guarantee_.private,
        "records": count,
        "columns": names,
        "out": str(out),
        "notes": presenter_of(fitted).notes(SCREEN) if has_presenter(fitted) else [],
    }


def _columns(drawn: Any, bounds: Bounds) -> list[Any]:
    """The columns as people write them: numbers, words, ISO dates; None where a value is missing.

    ``drawn``: what a model's ``sample`` gives, an array of plain numbers or columns by name.
    """
    if not isinstance(drawn, dict):
        return list(drawn.T)
    columns: list[Any] = []
    for i, values in zip(bounds.given_inputs(), drawn.values(), strict=True):
        if bounds.x_kinds[i].name in _NUMBERS:
            columns.append(np.array([nan if value is None else value for value in values]))
        else:
            columns.append(values)
    return columns


def _texts(columns: list[Any], bounds: Bounds) -> list[list[str]]:
    """The columns as they stand in a CSV file; a missing value is an empty cell."""
    texts = []
    for i, column in zip(bounds.given_inputs(), columns, strict=True):
        if bounds.x_kinds[i].name in _NUMBERS:
            digits = digits_for_range(*bounds.x[i])
            texts.append(["" if isnan(v) else f"{v:.{digits}f}" for v in column.tolist()])
        else:
            texts.append(["" if value is None else str(value) for value in column])
    return texts


def digits_for_range(low: float, high: float) -> int:
    """Decimal places that tell a hundred-thousandth of the range."""
    return min(max(5 - int(np.floor(np.log10(high - low))), 0), 15)


def print_sample(about: dict[str, Any]) -> None:
    """Say to a person what was drawn."""
    line("Drawn", f"{about['records']:,} synthetic records of {len(about['columns'])} columns")
    aside("Nobody's records: drawn from the released model, within the ranges that were given.", 12)
    aside(
        "Words, dates and whole numbers where the model was told of them; all other columns have "
        "decimals.",
        12,
    )
    if not about["private"]:
        line("Note", "the model is NOT PRIVATE: its noise came from a seed")
    for note in about["notes"]:
        aside(f"Note: {note}", 12)
    if about["notes"]:
        aside("Synthetic records have the same faults.", 12)
    line("Charged", "nothing: samples use the model's releases only, as many as you like")
    line("Written", about["out"])
