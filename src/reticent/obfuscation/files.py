"""Values and tables of a released curve, for the command line and for files."""

from pathlib import Path
from typing import Any

from reticent.errors import BadFile, ReticentError
from reticent.files.csv_tables import TableWriter
from reticent.files.output import new_text
from reticent.models.serialization import ModelFile
from reticent.obfuscation.obfuscator import Obfuscator
from reticent.privacy.sources.base import Field, scan

__all__ = [
    "describe_curve",
    "is_curve",
    "predict_curve",
    "read_columns",
    "release_values",
]


def is_curve(model: Any) -> bool:
    """Whether a loaded model is an obfuscated curve."""
    return isinstance(model, Obfuscator)


def release_values(model: Any) -> dict[str, Any]:
    """Promise, certificate, kernel and size of a fitted `Obfuscator`, as plain values."""
    return {
        "private": model.private_,
        "differential_privacy": False,
        "conditional": model.conditional_,
        "statement": model.statement_,
        "certificate": model.certificate_.to_dict(),
        "kernel": str(model.kernel_),
        "theta": model.kernel_.theta.tolist(),
        "mean": model.mean_,
        "trained_on": model.trained_on_,
        "releases": model.releases,
        "number": model.number_,
        "columns": list(model.names_),
        "records": len(model.released_),
    }


def describe_curve(model: Any, path: Path, file: ModelFile) -> dict[str, Any]:
    """Everything about the file of a curve, as plain values."""
    names = {"model": file.header["model"], "reticent": file.header["version"]}
    return {
        "file": str(path),
        "sha256": file.digest,
        "signed_by": file.signer,
        **names,
        **release_values(model),
    }


def read_columns(data: str, names: list[str]) -> Any:
    """Read columns of a file as numbers.

    A curve, and where it is predicted, are their owner's: messages may name lines.
    """
    import numpy as np

    if "://" in data:  # which may hold a password
        raise BadFile("A curve is read from a file: write it to a CSV or Parquet file.")
    try:
        source = scan(data)
        known = list(source.names or ())
        for name in names:
            if name not in known:
                raise BadFile(f"there is no column {name!r}. Columns: {', '.join(known)}.")
        fields = tuple(Field(name) for name in names)
        source.check(fields)
        table = np.vstack(list(source.blocks(fields)))
    except ReticentError as error:
        raise BadFile(f"{data} cannot be used: {error}") from None
    bad = np.flatnonzero(~np.isfinite(table).all(axis=1))
    if len(bad):
        raise BadFile(
            f"{data}: record {bad[0] + 1} has a cell that is no number. Remove it, or fill it in."
        )
    return table


def predict_curve(model: Any, data: str, out: Path, **signs: str) -> dict[str, Any]:
    """Write what a reader of the release can conclude at the inputs in ``data``.

    Mean and standard deviation. ``signs``: separator and decimal sign, as for `TableWriter`.
    """
    *inputs, output = model.names_
    at = read_columns(data, inputs)
    mean, sd = model.predict(at, return_std=True)
    columns = [output if output not in inputs else f"predicted_{output}", f"{output}_std"]
    with new_text(out) as text:
        lines = TableWriter(text, **signs)
        lines.line([*inputs, *columns])
        for row, one, spread in zip(at.tolist(), mean.tolist(), sd.tolist(), strict=True):
            lines.line([*map(repr, row), f"{one:.9g}", f"{spread:.6g}"])
    return {
        "model": "Obfuscator",
        "private": model.private_,
        "outputs": [output],
        "about": f"{columns[0]}: the mean; {columns[1]}: its standard deviation, what anybody can "
        "conclude from the release.",
        "records": len(at),
        "missing": 0,
        "not_predicted": 0,
        "outside": 0,
        "inputs": inputs,
        "columns": [*inputs, *columns],
        "out": str(out),
    }
