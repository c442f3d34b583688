"""``reticent fit``: from a file and its public bounds to a model file, paid for and charged."""

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import reticent
from reticent.apps.results import MODELS
from reticent.apps.terminal import BadFile
from reticent.errors import BadInput, BoundsMissing
from reticent.privacy.bounds import Bounds
from reticent.privacy.ledger import Entry, Ledger
from reticent.privacy.sources import Source, scan

__all__ = ["fit", "parse_ranges"]

_NUMBER = r"\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*"
_RANGE = re.compile(f"{_NUMBER}:{_NUMBER}", re.ASCII)


def parse_ranges(option: str, texts: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Read ``age=0:110``. The name ends at the last ``=``, so that it may hold one itself.

    >>> parse_ranges("--x", ["age=0:110", "t=-4e1:50"])
    {'age': (0.0, 110.0), 't': (-40.0, 50.0)}
    """
    ranges: dict[str, tuple[float, float]] = {}
    for text in texts:
        name, _, numbers = text.rpartition("=")
        match = _RANGE.fullmatch(numbers)
        if not name or match is None:
            raise BadInput(
                f"{option} takes COLUMN=LOW:HIGH with two numbers, for example {option} age=0:110, not {text!r}."
            )
        if name in ranges:
            raise BadInput(f"{option} was given twice for column {name!r}: give each column one range.")
        ranges[name] = (float(match[1]), float(match[2]))
    return ranges


def fit(
    word: str,
    data: str,
    *,
    x: Sequence[str],
    norm: float | None,
    epsilon: float | None,
    delta: float | None,
    own: Mapping[str, Any],
    ledger: str | None,
    dataset: str | None,
    records_per_person: int,
    out: Path,
) -> Any:
    """Fit the model that is called ``word`` and save it. All that can be known before is checked before anything is charged."""
    if word not in MODELS:
        raise BadInput(f"There is no model {word!r}. Models: {', '.join(MODELS)}.")
    model = MODELS[word]
    for name, value in own.items():
        if value is not None and name not in model.options:
            raise BadInput(f"{word} has no option --{name}: leave it out.")
    ranges = parse_ranges("--x", x)
    source = _open(data)
    if not ranges:
        raise BoundsMissing(_no_bounds(data, source.names))
    if epsilon is None or delta is None:
        raise BadInput(
            "How strong shall the promise be? Give --epsilon, for example --epsilon 1 (smaller protects more), and --delta, the "
            "chance that the promise may fail, well below 1/(number of records), for example --delta 1e-6. There are no "
            "defaults, because both are yours to decide."
        )
    _check_out(out)
    bounds = Bounds(x=ranges, norm=norm)
    _check_data(source, bounds, data)
    estimator = getattr(reticent, model.estimator)(
        bounds=bounds,
        epsilon=epsilon,
        delta=delta,
        ledger=ledger,
        dataset=dataset,
        records_per_person=records_per_person,
        **{name: value for name, value in own.items() if value is not None},
    )
    charged = _Charged(ledger, dataset)
    try:
        estimator.fit(source)
        estimator.save(out)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(charged.words()) from None
    except OSError as error:
        raise BadFile(f"{out} cannot be written: {error.strerror}. The release is lost. {charged.words()}") from None
    return estimator


class _Charged:
    """What was charged to an account since this object was made."""

    def __init__(self, ledger: str | None, dataset: str | None) -> None:
        self._ledger, self._dataset = ledger, dataset
        self._before = len(self._history())

    def _history(self) -> list[Entry]:
        if self._ledger is None or self._dataset is None:
            return []
        return Ledger(self._ledger).history(self._dataset)

    def words(self) -> str:
        if self._ledger is None:
            return "There is no ledger (--ledger), so nothing was charged anywhere."
        new = self._history()[self._before :]
        if not new:
            return f"Nothing was charged to data set {self._dataset!r}."
        what = "; ".join(f"entry {entry.number}, {entry.what}, {entry.event.kind}" for entry in new)
        return f"Charged to data set {self._dataset!r}, and stays charged: {what}."


def _open(data: str) -> Source:
    try:
        return scan(data)
    except BadInput as error:
        raise BadFile(str(error)) from None


def _check_data(source: Source, bounds: Bounds, data: str) -> None:
    """Tell a fault of the file (exit code 5) from wrong use (2); the curator checks it all again."""
    fields = bounds.resolve(source, targets=False)[1]
    try:
        source.check(fields)
    except BadInput as error:
        raise BadFile(f"{data}: {error}") from None
    if source.known_n == 0:
        raise BadFile(f"{data} has no records.")


def _check_out(out: Path) -> None:
    """Find out before paying whether the model can be written. A release is never overwritten: it was paid for."""
    if out.exists():
        raise BadFile(f"{out} exists already. What is in it may have been paid for: choose another name for --out.")
    if not out.parent.is_dir():
        raise BadFile(f"{out} cannot be written: there is no folder {out.parent}. Make it first.")
    if not os.access(out.parent, os.W_OK):
        raise BadFile(
            f"{out} cannot be written: the folder {out.parent} is read-only for you. Choose another for --out."
        )


def _no_bounds(data: str, names: tuple[str, ...] | None) -> str:
    columns = list(names or ())
    example = " ".join(f"--x {name}=LOW:HIGH" for name in columns[:2]) or "--x age=0:110"
    if {"age", "height"} <= set(columns):
        example = "--x age=0:110 --x height=40:220"
    return (
        "the inputs have no bounds, and reticent never takes them from the data (that would leak the extreme records).\n"
        "Give each input column its plausible range, from the codebook or common knowledge, for example\n"
        f"      {example}\n"
        f"Columns in {Path(data).name}: {', '.join(columns)} (column names are treated as public)."
    )
