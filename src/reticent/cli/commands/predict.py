"""``reticent predict``: the output for each line of a file, in the same order, in bounded memory.

Nothing here needs protection: the model holds releases only, and the inputs are its user's own. So
lines may be named in messages and counted, unlike in ``reticent fit``.
"""

from collections.abc import Callable, Iterator
from math import floor, isnan, log10
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.cli.captured_warnings import captured_warnings
from reticent.cli.model_words import MODEL_WORDS
from reticent.cli.terminal import aside, line
from reticent.errors import BadFile, BadInput
from reticent.files.csv_tables import TableWriter
from reticent.files.output import check_new, new_text
from reticent.models.serialization import load
from reticent.obfuscation.files import is_curve, predict_curve
from reticent.privacy.sources.base import Field, Source, scan
from reticent.privacy.sources.cell_values import text_number
from reticent.privacy.sources.csv import CsvSource
from reticent.privacy.sources.csv_lines import lines_in_order, read_header
from reticent.reporting.columns import output_names
from reticent.reporting.presenters.effects import regression_outputs
from reticent.reporting.registry import presenter_of

__all__ = ["predict_file", "print_prediction"]

Block = NDArray[np.float64]

_ROWS = 4096  # of a block: some megabytes for a model of a hundred functions
_RESULTS = (
    "{}",
    "{}_std",
    "{}_output_std",
)  # the mean, its standard deviation, and that of a single output
_RESOLVED = 1e-3  # of a standard deviation: more digits are noise


def predict_file(
    file: Path, data: str, out: Path, advance: Callable[[int], None]
) -> dict[str, Any]:
    """Write predictions of the model in ``file`` for the lines of ``data``.

    Say what was done, as plain values.
    """
    check_new(out, "It is not replaced")
    with captured_warnings():
        fitted: Any = load(file)
    if is_curve(fitted):
        return predict_curve(fitted, data, out)
    presenter: Any = presenter_of(fitted)
    if not (presenter.predicts or presenter.transforms):
        able = ", ".join(word for word, one in MODEL_WORDS.items() if one.predicts)
        raise BadInput(
            f"{file} holds a {type(fitted).__name__}, which says nothing of single records: "
            f"reticent inspect {quote(str(file))} shows its results. Models that predict: {able} "
            "(reticent fit MODEL)."
        )
    model = presenter.model
    source, fields, columns = _open_inputs(data, model)
    bounds = model.releases_[0].bounds
    ranges = list(bounds.x)
    spread = bounds.noise_column is None or len(fields) > len(bounds.x)
    if len(fields) > len(bounds.x):
        ranges.insert(bounds.noise_column.at, (bounds.noise_column.low, bounds.noise_column.high))
    low, high = np.array(ranges).T
    classes = presenter.class_names()
    if presenter.transforms:
        names = presenter.transform_names()
        suffixes: tuple[str, ...] = ("{}",)
    else:
        names = output_names(model)
        suffixes = _RESULTS[:-1]
    if classes:
        suffixes = probability_suffixes(classes)
    elif spread and presenter.predicts:
        suffixes = _RESULTS
    results = result_names(names, columns, suffixes)
    records = missing = outside = 0
    with new_text(out) as written:
        lines = TableWriter(written)
        lines.line([*columns, *results])
        for block in _input_blocks(source, fields):
            given = ([exact_cell(v) for v in row] for row in block.tolist())
            if presenter.transforms:
                told = presenter.transform_rows(block)
            elif classes:
                told = _classified(model, block)
            else:
                told = _prediction_rows(model, block, spread=spread)
            lines.lines([*one, *found] for one, found in zip(given, told, strict=True))
            records += len(block)
            missing += int(np.isnan(block).sum())
            outside += int(((block < low) | (block > high)).sum())
            advance(len(block))
        if not records:
            raise BadFile(f"{data} has no records.")
    return {
        "model": type(fitted).__name__,
        "private": fitted.guarantee_.private,
        "outputs": names,
        **({"about": presenter.transform_statement} if presenter.transforms else {}),
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
    line(
        "Predicted", f"{', '.join(about['outputs'])} for {about['records']:,} lines, in their order"
    )
    if "about" in about:
        told = about["about"]
    elif "classes" in about:
        told = (
            f"{first}: the likeliest class; {rest[0]} to {rest[-1]}: the chance of each, doubt and "
            "privacy noise counted in."
        )
    else:
        told = (
            f"{first}: the mean; {rest[0]}: its standard deviation, model doubt and privacy noise"
        )
        if rest[1:]:
            told += f"; {rest[1]}: of a single output."
        else:
            told += ". How noisy single outputs are, the file does not say."
    aside(told, 12)
    if about["missing"] or about["outside"]:
        aside(
            "Values that were missing, and counted as the middle of their range: "
            f"{about['missing']:,}. Values outside, counted as the nearest edge: "
            f"{about['outside']:,}.",
            12,
        )
    if not about["private"]:
        line("Note", "the model is NOT PRIVATE: its noise came from a seed")
    line("Charged", "nothing: predictions use the model's releases only")
    aside("The inputs are not protected, and need not be: nothing is learned from them.", 12)
    line("Written", about["out"])


def _open_inputs(data: str, model: Any) -> tuple[Source, tuple[Field, ...], list[str]]:
    """Find the model's inputs in a file, and noise levels if there are any.

    By name, or by position where there are none.
    """
    bounds = model.releases_[0].bounds
    try:
        source = scan(data)
        found = list(bounds.resolve(source, targets=False)[1])
        if (
            bounds.noise_column is not None
            and (level := bounds.noise_column.field(source, len(bounds.x))) is not None
        ):
            found.insert(bounds.noise_column.at, level)
        fields = tuple(found)
        source.check(fields)
    except BadInput as error:
        raise BadFile(f"{data} does not serve for predictions. {error}") from None
    names = source.names or ()
    return source, fields, [names[source.position(field.key)] for field in fields]


def _input_blocks(source: Source, fields: tuple[Field, ...]) -> Iterator[Block]:
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
    """Give the inputs line by line, each line by the rules that ``reticent fit`` reads it by."""
    rows: list[list[float]] = []
    for path in source.paths:
        with path.open("rb") as file:
            read_header(file, path, source.dialect)
            for number, cells in lines_in_order(file, source.dialect.separator):
                if cells is None:
                    raise BadFile(f"{path}: line {number} below the header cannot be read as CSV.")
                if len(cells) != source.width:
                    raise BadFile(
                        f"{path}: line {number} below the header has {len(cells)} fields instead "
                        f"of {source.width}. One line is one record."
                    )
                rows.append([text_number(cells[i]) for i in positions])
                if len(rows) == _ROWS:
                    yield np.array(rows)
                    rows.clear()
    if rows:
        yield np.array(rows)


def result_names(outputs: list[str], columns: list[str], results: tuple[str, ...]) -> list[str]:
    """Name the results by their outputs; none may be called like an input."""
    names = [name.format(output) for output in outputs for name in results]
    return [name if name not in columns else f"predicted_{name}" for name in names]


def probability_suffixes(classes: list[str]) -> tuple[str, ...]:
    """Patterns for the names of the likeliest class, and of the chance of each."""
    return ("{}", *("{}_" + label.replace("{", "{{").replace("}", "}}") for label in classes))


def _classified(model: Any, block: Block) -> list[list[str]]:
    """Give for each row the likeliest class, and the chance of each; as they are written."""
    chances = model.predict_proba(block)
    likeliest = model.classes_[chances.argmax(axis=1)].tolist()
    return [
        [str(label), *(f"{chance:.4g}" for chance in row)]
        for label, row in zip(likeliest, chances, strict=True)
    ]


def _prediction_rows(model: Any, block: Block, *, spread: bool) -> list[list[str]]:
    """Give for each row and output, as text: mean, its std, and the std of a single output.

    ``spread``: whether it is known how much single outputs spread.
    """
    cells: list[list[str]] = [[] for _ in block]
    for one in regression_outputs(model):
        mean = one.predict(block)
        parts = one.variance_parts(block)
        std = np.sqrt(parts["model"] + parts["privacy"])
        output_std = np.sqrt(sum(parts.values()))
        for row, *values in zip(
            cells, mean.tolist(), std.tolist(), output_std.tolist(), strict=True
        ):
            digits = digits_for_std(values[1])
            row += [f"{value:.{digits}f}" for value in values[: 3 if spread else 2]]
    return cells


def digits_for_std(std: float) -> int:
    """Decimal places that resolve a thousandth of a standard deviation.

    >>> digits_for_std(2.5), digits_for_std(0.03), digits_for_std(8000.0)
    (3, 5, 0)
    """
    return max(-floor(log10(max(std, 1e-12) * _RESOLVED)), 0)


def exact_cell(value: float) -> str:
    """A number with all of its digits; empty if missing."""
    if isnan(value):
        return ""
    return repr(value)
