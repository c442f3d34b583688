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
        with new_binary(out) as written:
            write_parquet(
                written, dict(zip(names, model.sample(count, random_state=seed).T, strict=True))
            )
    else:
        digits = [digits_for_range(low, high) for low, high in model.releases_[0].bounds.x]
        rng = np.random.default_rng(seed)
        with new_text(out) as written:
            lines = TableWriter(written)
            lines.line(names)
            for start in range(0, count, _ROWS):
                block = model.sample(min(_ROWS, count - start), random_state=rng)
                lines.lines(
                    [f"{v:.{k}f}" for v, k in zip(row, digits, strict=True)]
                    for row in block.tolist()
                )
    return {
        "model": type(fitted).__name__,
        "private": fitted.guarantee_.private,
        "records": count,
        "columns": names,
        "out": str(out),
    }


def digits_for_range(low: float, high: float) -> int:
    """Decimal places that tell a hundred-thousandth of the range."""
    return min(max(5 - int(np.floor(np.log10(high - low))), 0), 15)


def print_sample(about: dict[str, Any]) -> None:
    """Say to a person what was drawn."""
    line("Drawn", f"{about['records']:,} synthetic records of {len(about['columns'])} columns")
    aside("Nobody's records: drawn from the released model, within the ranges that were given.", 12)
    aside(
        "With decimals in every column: round those that held whole numbers, such as 0 and 1.", 12
    )
    if not about["private"]:
        line("Note", "the model is NOT PRIVATE: its noise came from a seed")
    line("Charged", "nothing: samples use the model's releases only, as many as you like")
    line("Written", about["out"])
