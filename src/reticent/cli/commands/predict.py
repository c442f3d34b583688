"""``reticent predict``: the output for each line of a file, in the same order, in bounded memory.

Nothing here needs protection: the model holds releases only, and the inputs are its user's own. So
lines may be named in messages and counted, unlike in ``reticent fit``.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import floor, isnan, log10
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.cli.captured_warnings import captured_warnings
from reticent.cli.columns import check_dialect, column_name
from reticent.cli.model_words import MODEL_WORDS
from reticent.cli.terminal import aside, line
from reticent.errors import BadFile, BadInput
from reticent.files.csv_tables import TableWriter
from reticent.files.output import check_new, new_text
from reticent.models.serialization import load
from reticent.obfuscation.files import is_curve, predict_curve
from reticent.privacy.bounds import Bounds
from reticent.privacy.columns.base import Kind
from reticent.privacy.columns.words import MissingIndicator
from reticent.privacy.sources.base import DtypeKind, Field, Source, scan
from reticent.privacy.sources.codes import code_text
from reticent.privacy.sources.csv import CsvSource
from reticent.privacy.sources.csv_lines import lines_in_order, read_header
from reticent.privacy.sources.files import open_text
from reticent.reporting.columns import output_names
from reticent.reporting.formatting import printable
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
_NO_CSV = (".xlsx", ".xls", ".xlsm", ".ods", ".parquet", ".pq", ".json", ".html")
_KEPT = 1000  # different words of a column that are remembered
_SHOWN = 6  # words of a column that are named
_OFTEN = 2  # times that a code for missing occurs, at least
_RESOLVED = 1e-3  # of a standard deviation: more digits are noise


@dataclass(frozen=True)
class _Lines:
    """Some lines of a file: codes of what the model needs, and cells as they are copied.

    ``codes`` has the shape (lines, fields), NaN where a value is missing.
    """

    codes: Block
    cells: list[list[str]]


@dataclass
class _Told:
    """What is to be said of one input: the user's own, so that cells may be named.

    ``lacking`` counts lines without a value, ``unknown`` their words, ``outside`` numbers.
    """

    column: str
    kind: Kind | None
    low: float
    high: float
    lacking: int = 0
    unknown: Counter[str] = field(default_factory=Counter)
    outside: Counter[float] = field(default_factory=Counter)
    beyond: int = 0  # numbers outside

    def add(self, codes: Block, cells: Sequence[str]) -> None:
        """Count the codes of some lines, and the cells that are no value."""
        gaps = np.flatnonzero(np.isnan(codes))
        self.lacking += len(gaps)
        for place in gaps.tolist():
            cell = cells[place]
            if cell and (cell in self.unknown or len(self.unknown) < _KEPT):
                self.unknown[cell] += 1
        beyond = codes[(codes < self.low) | (codes > self.high)].tolist()
        self.beyond += len(beyond)
        for value in beyond:
            if value in self.outside or len(self.outside) < _KEPT:
                self.outside[value] += 1

    def lacking_words(self) -> str:
        """Which values could not be read, and which would be."""
        told = f"{self.column}: {self.lacking:,} without a value"
        if self.unknown:
            words = [repr(word) for word, _ in self.unknown.most_common(_SHOWN)]
            told += f", not known: {', '.join(words)}{'…' * (len(self.unknown) > _SHOWN)}"
            if self.kind is not None and self.kind.levels is not None:
                known = [repr(level) for level in self.kind.levels[:_SHOWN]]
                more = "…" * (len(self.kind.levels) > _SHOWN)
                told += f" (known: {', '.join(known)}{more})"
            elif self.kind is not None and self.kind.name == "date":
                written = getattr(self.kind, "format", None) or "%Y-%m-%d"
                told += f" (dates are written {written})"
        return told

    def outside_words(self) -> str:
        """How many lie outside, and what looks like a code."""
        assert self.kind is not None
        told = f"{self.column}: {self.beyond:,} outside {self.kind.describe()}"
        for value, count in self.outside.most_common():
            if count >= _OFTEN and looks_like_code(value):
                told += (
                    f"; {value:g} occurs {count:,} times: a code for missing? Leave these cells "
                    f"empty, or fit with --missing {column_name(self.column)}={value:g}"
                )
        return told


def looks_like_code(value: float) -> bool:
    """Whether a number outside its range is one of those that are written for missing values.

    >>> looks_like_code(999), looks_like_code(-9), looks_like_code(120)
    (True, True, False)
    """
    digits = f"{abs(value):.15g}"
    if len(digits) == 1:
        return value < 0
    return len(set(digits)) == 1 and digits[0] in "789"


class _CodedRows(Source):
    """Rows whose cells are codes already, with the schema of the file they come from."""

    def __init__(self, source: Source, fields: Sequence[Field], codes: Block) -> None:
        self._schema = source
        self._places = {field: place for place, field in enumerate(fields)}
        self._codes = codes
        self.names = source.names
        self.width = source.width
        self.known_n = len(codes)

    def count(self) -> int:
        return len(self._codes)

    def kind(self, position: int) -> tuple[DtypeKind, str]:
        return self._schema.kind(position)

    def blocks(self, fields: Sequence[Field]) -> Iterator[Block]:
        rows = np.full((len(self._codes), len(fields)), np.nan)
        for place, wanted in enumerate(fields):
            if wanted in self._places:
                rows[:, place] = self._codes[:, self._places[wanted]]
        yield rows


def predict_file(
    file: Path,
    data: str,
    out: Path,
    advance: Callable[[int], None],
    *,
    out_separator: str | None = None,
    out_decimal: str | None = None,
    **dialect: str | None,
) -> dict[str, Any]:
    """Write predictions of the model in ``file`` for the lines of ``data``.

    Say what was done, as plain values. ``dialect``: of a CSV file, as for `scan`;
    ``out_separator``, ``out_decimal``: of the file that is written.
    """
    check_new(out, "It is not replaced")
    signs = {"separator": out_separator or ",", "decimal": out_decimal or "."}
    TableWriter.check_signs(**signs)
    if out.suffix.lower() in _NO_CSV:
        raise BadInput(
            f"--out {out}: predictions are written as CSV, which spreadsheets open, too. Give "
            f"--out {quote(str(out.with_suffix('.csv')))}."
        )
    with captured_warnings():
        fitted: Any = load(file)
    if is_curve(fitted):
        return predict_curve(fitted, data, out, **signs)
    presenter: Any = presenter_of(fitted)
    if not (presenter.predicts or presenter.transforms):
        able = ", ".join(word for word, one in MODEL_WORDS.items() if one.predicts)
        raise BadInput(
            f"{file} holds a {type(fitted).__name__}, which says nothing of single records: "
            f"reticent inspect {quote(str(file))} shows its results. Models that predict: {able} "
            "(reticent fit MODEL)."
        )
    model = presenter.model
    source, fields, level = _open_inputs(data, model, dialect)
    copied = [i for i, one in enumerate(fields) if not isinstance(one.kind, MissingIndicator)]
    header = source.names or ()
    columns = [header[source.position(fields[i].key)] for i in copied]
    bounds = model.releases_[0].bounds
    spread = bounds.noise_column is None or level is not None
    needed = [i for i in range(len(fields)) if i != level]
    low, high = np.array([_code_range(bounds, field) for field in fields]).T
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
    told_of = [
        _Told(column, fields[i].kind, low[i], high[i])
        for i, column in zip(copied, columns, strict=True)
    ]
    records = missing = incomplete = 0
    with new_text(out) as written:
        lines = TableWriter(written, **signs)
        lines.line([*columns, *results])
        for block in _input_blocks(source, fields, copied):
            codes = block.codes
            complete = ~np.isnan(codes[:, needed]).any(axis=1)
            told = [[""] * len(results) for _ in codes]
            if complete.any():
                rows = _CodedRows(source, fields, codes[complete])
                if presenter.transforms:
                    found = presenter.transform_rows(rows)
                elif classes:
                    found = _classified(model, rows)
                else:
                    found = _prediction_rows(model, rows, spread=spread)
                for row, one in zip(np.flatnonzero(complete).tolist(), found, strict=True):
                    told[row] = one
            lines.lines([*one, *found] for one, found in zip(block.cells, told, strict=True))
            records += len(codes)
            incomplete += int((~complete).sum())
            missing += int(np.isnan(codes[:, copied]).sum())
            for at, (i, input_told) in enumerate(zip(copied, told_of, strict=True)):
                input_told.add(codes[:, i], [cells[at] for cells in block.cells])
            advance(len(codes))
        if not records:
            raise BadFile(f"{data} has no records.")
        lacking = [
            one for i, one in zip(copied, told_of, strict=True) if one.lacking and i != level
        ]
        if incomplete == records:
            raise BadFile(
                f"{data}: no line has all inputs, so nothing can be predicted. Lines that lack "
                f"one: {'; '.join(one.lacking_words() for one in lacking)}. Nothing was written."
            )
    beyond = [one for one in told_of if one.beyond]
    return {
        "model": type(fitted).__name__,
        "private": fitted.guarantee_.private,
        "outputs": names,
        **({"about": presenter.transform_statement} if presenter.transforms else {}),
        **({"classes": classes} if classes else {}),
        "records": records,
        "missing": missing,
        "not_predicted": incomplete,
        "lacking": {one.column: one.lacking for one in lacking},
        "outside": sum(one.beyond for one in beyond),
        "notes": [
            *(one.lacking_words() for one in lacking),
            *(one.outside_words() for one in beyond),
        ],
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
        meaning = about["about"]
    elif "classes" in about:
        meaning = (
            f"{first}: the likeliest class; {rest[0]} to {rest[-1]}: the probability of each, "
            "uncertainty and privacy noise counted in."
        )
    else:
        meaning = (
            f"{first}: the mean; {rest[0]}: its standard deviation, model uncertainty and privacy "
            "noise"
        )
        if rest[1:]:
            meaning += f"; {rest[1]}: of a single output."
        else:
            meaning += ". How noisy single outputs are, the file does not say."
    aside(meaning, 12)
    if about["not_predicted"]:
        aside(
            f"Lines that lack an input, or have one of another kind, and so have no prediction: "
            f"{about['not_predicted']:,}.",
            12,
        )
    if about["outside"]:
        aside(f"Values outside, counted as the nearest edge: {about['outside']:,}.", 12)
    for note in about.get("notes", ()):
        aside(printable(note) + ".", 12)
    if not about["private"]:
        line("Note", "the model is NOT PRIVATE: its noise came from a seed")
    line("Charged", "nothing: predictions use the model's releases only")
    aside("The inputs are not protected, and need not be: nothing is learned from them.", 12)
    line("Written", about["out"])


def _open_inputs(
    data: str, model: Any, dialect: Mapping[str, str | None]
) -> tuple[Source, tuple[Field, ...], int | None]:
    """Find the model's inputs in a file, and noise levels if there are any: their place, or None.

    By name, or by position where there are none.
    """
    bounds = model.releases_[0].bounds
    place = None
    if "://" in data:  # which may hold a password
        raise BadInput("Predictions are made for files: write the inputs to a CSV or Parquet file.")
    try:
        source = scan(data, **dialect)
        check_dialect(source, data)
        found = list(bounds.resolve(source, targets=False)[1])
        if (
            bounds.noise_column is not None
            and (level := bounds.noise_column.field(source, len(bounds.x))) is not None
        ):
            place = bounds.noise_column.at
            found.insert(place, level)
        fields = tuple(found)
        source.check(fields)
    except BadInput as error:
        if error.parameter in dialect:
            raise
        raise BadFile(f"{data} does not serve for predictions. {error}") from None
    return source, fields, place


def _code_range(bounds: Bounds, field: Field) -> tuple[float, float]:
    """Where codes of a field lie."""
    if field.kind is not None:
        return field.kind.range
    assert bounds.noise_column is not None
    return bounds.noise_column.low, bounds.noise_column.high


def _input_blocks(
    source: Source, fields: tuple[Field, ...], copied: Sequence[int]
) -> Iterator[_Lines]:
    """Give the inputs in the order of the file.

    ``copied``: which of the fields are written again, all but indicators.
    """
    if isinstance(source, CsvSource):  # gives records in any order, so its lines are read here
        yield from _csv_blocks(source, fields, copied)
        return
    try:
        for block in source.blocks(fields):
            for start in range(0, len(block), _ROWS):
                codes = block[start : start + _ROWS]
                columns = [_shown(fields[i].kind, codes[:, i]) for i in copied]
                yield _Lines(codes, [list(row) for row in zip(*columns, strict=True)])
    except BadInput as error:
        raise BadFile(str(error)) from None


def _shown(kind: Kind | None, codes: Block) -> list[str]:
    """A column as it is copied: numbers, words, dates; nothing where a value is missing."""
    if kind is None or kind.name == "number":
        return [exact_cell(value) for value in codes.tolist()]
    return ["" if value is None else str(value) for value in kind.values(codes)]


def _csv_blocks(
    source: CsvSource, fields: tuple[Field, ...], copied: Sequence[int]
) -> Iterator[_Lines]:
    """Give the inputs line by line, each line by the rules that ``reticent fit`` reads it by."""
    positions = [source.position(field.key) for field in fields]
    kinds = [field.kind for field in fields]
    numbers = [kind is None or kind.name == "number" for kind in kinds]
    dialect = source.dialect
    rows: list[list[float]] = []
    texts: list[list[str]] = []
    for path in source.paths:
        with open_text(path) as file:
            read_header(file, path, source.dialect)
            for number, cells in lines_in_order(file, source.dialect.separator):
                if cells is None:
                    raise BadFile(f"{path}: line {number} below the header cannot be read as CSV.")
                if len(cells) != source.width:
                    raise BadFile(
                        f"{path}: line {number} below the header has {len(cells)} fields instead "
                        f"of {source.width}. One line is one record."
                    )
                codes = [
                    code_text(cells[position], kind, dialect)
                    for position, kind in zip(positions, kinds, strict=True)
                ]
                rows.append(codes)
                texts.append(
                    [
                        exact_cell(codes[i])
                        if numbers[i]
                        else dialect.utf8(cells[positions[i]]).decode().strip()
                        for i in copied
                    ]
                )
                if len(rows) == _ROWS:
                    yield _Lines(np.array(rows), texts)
                    rows = []
                    texts = []
    if rows:
        yield _Lines(np.array(rows), texts)


def result_names(outputs: list[str], columns: list[str], results: tuple[str, ...]) -> list[str]:
    """Name the results by their outputs; none may be called like an input."""
    names = [name.format(output) for output in outputs for name in results]
    return [name if name not in columns else f"predicted_{name}" for name in names]


def probability_suffixes(classes: list[str]) -> tuple[str, ...]:
    """Patterns for the names of the likeliest class, and of the chance of each."""
    return ("{}", *("{}_" + label.replace("{", "{{").replace("}", "}}") for label in classes))


def _classified(model: Any, block: Source) -> list[list[str]]:
    """Give for each row the likeliest class, and the chance of each; as they are written."""
    chances = model.predict_proba(block)
    likeliest = model.classes_[chances.argmax(axis=1)].tolist()
    return [
        [str(label), *(f"{chance:.4g}" for chance in row)]
        if not np.isnan(row).any()
        else [""] * (1 + len(row))
        for label, row in zip(likeliest, chances, strict=True)
    ]


def _prediction_rows(model: Any, block: Any, *, spread: bool) -> list[list[str]]:
    """Give for each row and output, as text: mean, its std, and the std of a single output.

    ``spread``: whether it is known how much single outputs spread.
    """
    cells: list[list[str]] = [[] for _ in range(block.count())]
    for one in regression_outputs(model):
        mean = one.predict(block)
        parts = one.variance_parts(block)
        std = np.sqrt(parts["model"] + parts["privacy"])
        output_std = np.sqrt(sum(parts.values()))
        for row, *values in zip(
            cells, mean.tolist(), std.tolist(), output_std.tolist(), strict=True
        ):
            told = values[: 3 if spread else 2]
            if any(map(isnan, told)):
                row += [""] * len(told)
                continue
            digits = digits_for_std(values[1])
            row += [f"{value:.{digits}f}" for value in told]
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
