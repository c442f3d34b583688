"""``reticent predict``: the output for each line of a file, in the same order, in bounded memory.

Nothing here needs protection: the model holds releases only, and the inputs are its user's own. So lines may be named in
messages and counted, unlike in ``reticent fit``.
"""

import csv
from collections.abc import Callable, Iterator
from io import TextIOWrapper
from math import floor, isnan, log10
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.apps.chances import class_names
from reticent.apps.curve_files import is_curve, predict_curve
from reticent.apps.notes import heard
from reticent.apps.outfile import check_new, new_text
from reticent.apps.outputs import output_names, outputs
from reticent.apps.results import MODELS, model_of
from reticent.apps.searched import seen
from reticent.apps.structure import placed, placed_names, placed_words
from reticent.apps.tables import TableWriter
from reticent.apps.terminal import BadFile, aside, line
from reticent.errors import BadInput
from reticent.models.storage import load
from reticent.privacy.cells import text_number
from reticent.privacy.files import CsvSource
from reticent.privacy.lines import read_header
from reticent.privacy.sources import Field, Source, scan

__all__ = ["predict", "print_prediction"]

Block = NDArray[np.float64]

_ROWS = 4096  # of a block: some megabytes for a model of a hundred functions
_RESULTS = ("{}", "{}_std", "{}_output_std")  # the mean, its standard deviation, and that of a single output
_RESOLVED = 1e-3  # of a standard deviation: more digits are noise


def predict(file: Path, data: str, out: Path, advance: Callable[[int], None]) -> dict[str, Any]:
    """Write predictions of the model in ``file`` for the lines of ``data``; say what was done, as plain values."""
    check_new(out, "It is not replaced")
    with heard():
        model: Any = seen(load(file))
    if is_curve(model):
        return predict_curve(model, data, out)
    places = model_of(model).places
    if not (model_of(model).outputs or places):
        able = ", ".join(f"reticent fit {word}" for word, one in MODELS.items() if one.outputs)
        raise BadInput(f"{file} holds a {type(model).__name__}, which does not predict. Models that do: {able}.")
    source, fields, columns = _open(data, model)
    bounds = model.releases_[0].bounds
    ranges, spread = list(bounds.x), bounds.level is None or len(fields) > len(bounds.x)
    if len(fields) > len(bounds.x):
        ranges.insert(bounds.level.at, (bounds.level.low, bounds.level.high))
    low, high = np.array(ranges).T
    classes = class_names(model) if model_of(model).labels else []
    suffixes = _chances(classes) if classes else _RESULTS if spread else _RESULTS[:-1]
    results = (
        _named(placed_names(model), columns, ("{}",)) if places else _named(output_names(model), columns, suffixes)
    )
    records = missing = outside = 0
    with new_text(out) as written:
        lines = TableWriter(written)
        lines.line([*columns, *results])
        for block in _blocks(source, fields):
            given = ([_cell(v) for v in row] for row in block.tolist())
            told = (
                placed(model, block)
                if places
                else _classified(model, block)
                if classes
                else _predicted(model, block, spread=spread)
            )
            lines.lines([*one, *found] for one, found in zip(given, told, strict=True))
            records += len(block)
            missing += int(np.isnan(block).sum())
            outside += int(((block < low) | (block > high)).sum())
            advance(len(block))
        if not records:
            raise BadFile(f"{data} has no records.")
    return {
        "model": type(model).__name__,
        "private": model.guarantee_.private,
        "outputs": placed_names(model) if places else output_names(model),
        **({"about": placed_words(model)} if places else {}),
        **({"classes": classes} if classes else {}),
        "records": records,
        "missing": missing,
        "outside": outside,
        "inputs": columns,
        "columns": [*columns, *results],
        "out": str(out),
    }


def print_prediction(about: dict[str, Any]) -> None:
    """Say to a person what ``predict`` did."""
    results = about["columns"][len(about["inputs"]) :]
    first, *rest = results[: len(results) // len(about["outputs"])]
    line("Predicted", f"{', '.join(about['outputs'])} for {about['records']:,} lines, in their order")
    if "about" in about:
        told = about["about"]
    elif "classes" in about:
        told = f"{first}: the likeliest class; {rest[0]} to {rest[-1]}: the chance of each, doubt and privacy noise counted in."
    else:
        told = f"{first}: the mean; {rest[0]}: its standard deviation, model doubt and privacy noise"
        told += (
            f"; {rest[1]}: of a single output."
            if rest[1:]
            else ". How noisy single outputs are, the file does not say."
        )
    aside(told, 12)
    if about["missing"] or about["outside"]:
        aside(
            f"Values that were missing, and counted as the middle of their range: {about['missing']:,}. Values outside, counted "
            f"as the nearest edge: {about['outside']:,}.",
            12,
        )
    if not about["private"]:
        line("Note", "the model is NOT PRIVATE: its noise came from a seed")
    line("Charged", "nothing: predictions use the model's releases only")
    aside("The inputs are not protected, and need not be: nothing is learned from them.", 12)
    line("Written", about["out"])


def _open(data: str, model: Any) -> tuple[Source, tuple[Field, ...], list[str]]:
    """Find the model's inputs in a file, and noise levels if there are any; by name, or by position where there are none."""
    bounds = model.releases_[0].bounds
    try:
        source = scan(data)
        found = list(bounds.resolve(source, targets=False)[1])
        if bounds.level is not None and (level := bounds.level.field(source, len(bounds.x))) is not None:
            found.insert(bounds.level.at, level)
        fields = tuple(found)
        source.check(fields)
    except BadInput as error:
        raise BadFile(f"{data} does not serve for predictions. {error}") from None
    names = source.names or ()
    return source, fields, [names[source.position(field.key)] for field in fields]


def _blocks(source: Source, fields: tuple[Field, ...]) -> Iterator[Block]:
    """Give the inputs in the order of the file; NaN where a cell is no number."""
    if isinstance(source, CsvSource):  # gives records in any order, so its lines are read here
        yield from _csv_blocks(source, [source.position(field.key) for field in fields])
        return
    try:
        for block in source.blocks(fields):
            yield from (block[i : i + _ROWS] for i in range(0, len(block), _ROWS))
    except BadInput as error:
        raise BadFile(str(error)) from None


def _csv_blocks(source: CsvSource, positions: list[int]) -> Iterator[Block]:
    rows: list[list[float]] = []
    for path in source.paths:
        delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
        with path.open("rb") as file:
            read_header(file, path, delimiter.encode())
            # bytes that are not UTF-8 may stand in columns that are ignored
            lines = csv.reader(TextIOWrapper(file, "utf-8", "replace", newline=""), delimiter=delimiter)
            for cells in _readable(lines, path):
                if len(cells) != source.width:
                    raise BadFile(
                        f"{path}: line {lines.line_num} below the header has {len(cells)} fields instead of {source.width}."
                    )
                rows.append([text_number(cells[i].encode()) for i in positions])
                if len(rows) == _ROWS:
                    yield np.array(rows)
                    rows.clear()
    if rows:
        yield np.array(rows)


def _readable(lines: Any, path: Path) -> Iterator[list[str]]:
    """Give the records of a CSV file that are not blank."""
    try:
        for cells in lines:
            if cells and not (len(cells) == 1 and cells[0].isspace()):
                yield cells
    except csv.Error:
        raise BadFile(f"{path}: line {lines.line_num} below the header cannot be read as CSV.") from None


def _named(outputs: list[str], columns: list[str], results: tuple[str, ...]) -> list[str]:
    """Name the results by their outputs; none may be called like an input."""
    names = [name.format(output) for output in outputs for name in results]
    return [name if name not in columns else f"predicted_{name}" for name in names]


def _chances(classes: list[str]) -> tuple[str, ...]:
    """Patterns for the names of the likeliest class, and of the chance of each."""
    return ("{}", *("{}_" + label.replace("{", "{{").replace("}", "}}") for label in classes))


def _classified(model: Any, block: Block) -> list[list[str]]:
    """Give for each row the likeliest class, and the chance of each; as they are written."""
    chances = model.predict_proba(block)
    likeliest = model.classes_[chances.argmax(axis=1)].tolist()
    return [[str(label), *(f"{chance:.4g}" for chance in row)] for label, row in zip(likeliest, chances, strict=True)]


def _predicted(model: Any, block: Block, *, spread: bool) -> list[list[str]]:
    """Give for each row, and each output, its mean, standard deviation, and that of a single output; as they are written.

    ``spread``: whether it is known how much single outputs spread.
    """
    cells: list[list[str]] = [[] for _ in block]
    for one in outputs(model):
        mean, parts = one.predict(block), one.variance_parts(block)
        std, output_std = np.sqrt(parts["model"] + parts["privacy"]), np.sqrt(sum(parts.values()))
        for row, *values in zip(cells, mean.tolist(), std.tolist(), output_std.tolist(), strict=True):
            digits = _digits(values[1])
            row += [f"{value:.{digits}f}" for value in values[: 3 if spread else 2]]
    return cells


def _digits(std: float) -> int:
    """Decimal places that resolve a thousandth of a standard deviation.

    >>> _digits(2.5), _digits(0.03), _digits(8000.0)
    (3, 5, 0)
    """
    return max(-floor(log10(max(std, 1e-12) * _RESOLVED)), 0)


def _cell(value: float) -> str:
    return "" if isnan(value) else repr(value)
