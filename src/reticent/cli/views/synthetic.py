"""``reticent sample``.

Synthetic records from a released model, in a file that looks like the one it was fitted to.
"""

from pathlib import Path
from typing import Any

import numpy as np

from reticent.cli.captured_warnings import captured_warnings
from reticent.cli.terminal import aside, line
from reticent.errors import BadInput
from reticent.files.csv_tables import TableWriter
from reticent.files.output import check_new, new_binary, new_text
from reticent.models.serialization import load
from reticent.privacy.sources.parquet import write_parquet
from reticent.reporting.columns import column_names
from reticent.reporting.registry import unwrap_search

__all__ = ["print_sample", "write_sample"]

_ROWS = 65_536  # of a block


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
    if out.suffix.lower() == ".parquet":
        columns = _columns(model.sample(count, random_state=seed))
        with new_binary(out) as written:
            write_parquet(written, dict(zip(names, map(_as_array, columns), strict=True)))
    else:
        bounds = model.releases_[0].bounds
        given = bounds.given_inputs()
        digits = [_column_digits(*bounds.x[j]) for j in given]
        rng = np.random.default_rng(seed)
        with new_text(out) as written:
            lines = TableWriter(written)
            lines.line(names)
            for start in range(0, count, _ROWS):
                block = _columns(model.sample(min(_ROWS, count - start), random_state=rng))
                lines.lines(
                    [_cell(v, k) for v, k in zip(row, digits, strict=True)]
                    for row in zip(*block, strict=True)
                )
    return {
        "model": type(fitted).__name__,
        "private": fitted.guarantee_.private,
        "records": count,
        "columns": names,
        "out": str(out),
    }


def _columns(drawn: Any) -> list[list[Any]]:
    """The columns of what a model draws: an array of numbers, or lists by name."""
    if isinstance(drawn, dict):
        return list(drawn.values())
    columns: list[list[Any]] = drawn.T.tolist()
    return columns


def _as_array(column: list[Any]) -> Any:
    """A column for a Parquet file: numbers (NaN where missing), or texts."""
    if all(value is None or isinstance(value, (int, float)) for value in column):
        if all(isinstance(value, int) for value in column):
            return np.array(column, dtype=np.int64)
        return np.array([np.nan if value is None else value for value in column])
    return np.array(column, dtype=object)


def _cell(value: Any, digits: int) -> str:
    """One cell of a CSV file: empty if missing, numbers with so many decimals."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.{digits}f}"
    return str(value)


def _column_digits(low: float, high: float) -> int:
    """Decimal places that tell a hundred-thousandth of the range."""
    return min(max(5 - int(np.floor(np.log10(high - low))), 0), 15)


def print_sample(about: dict[str, Any]) -> None:
    """Say to a person what was drawn."""
    line("Drawn", f"{about['records']:,} synthetic records of {len(about['columns'])} columns")
    aside("Nobody's records: drawn from the released model, within the ranges that were given.", 12)
    aside(
        "Whole numbers, words and dates come out as such if the bounds or the codebook said so.", 12
    )
    if not about["private"]:
        line("Note", "the model is NOT PRIVATE: its noise came from a seed")
    line("Charged", "nothing: samples use the model's releases only, as many as you like")
    line("Written", about["out"])
