"""What a comparison is made of: tasks, methods, and how their predictions are judged.

There is one of numbers, one of classes.
"""

import hashlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from reticent.privacy.bounds import Bounds

__all__ = [
    "Cell",
    "Comparison",
    "Measure",
    "Method",
    "Prediction",
    "Predictions",
    "Task",
    "digest",
    "one_by_one",
]

Array = NDArray[np.float64]


class Task(Protocol):
    """One output to predict from some inputs, with the ranges a user would state."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def held_out(self) -> bool:
        """Whether it was not looked at while the default was made."""

    @property
    def bounds(self) -> Bounds:
        """The bounds of inputs and outputs."""

    @property
    def about(self) -> str:
        """What is predicted, in words."""

    def load(self) -> tuple[Array, Array]:
        """Give inputs and outputs of all complete rows."""


@dataclass(frozen=True)
class Cell:
    """What a method is given: one split of one task, and δ. Classes are numbers from 0."""

    X: Array
    y: Array
    X_new: Array
    bounds: Bounds
    delta: float
    seed: int


@dataclass(frozen=True)
class Prediction:
    """The predicted outputs, or chances of the classes.

    And half the width of the outputs' 95 % bands if there are any.
    """

    mean: Array
    band: Array | None = None


Predictions = Callable[[Cell, Sequence[float]], dict[float, Prediction]]


@dataclass(frozen=True)
class Method:
    """A method: its name, its predictions for some values of ε, and a digest of its code.

    A stored result depends on that digest.
    """

    name: str
    predictions: Predictions
    digest: str
    private: bool = True
    counts: bool = (
        True  # in the verdict: not if it is shown with an easier relation than a like-for-like peer
    )
    style: tuple[str, str, str] = (
        "truth",
        ":",
        "",
    )  # of its line in the picture: colour, dashes, marker


@dataclass(frozen=True)
class Measure:
    """A number by which predictions are judged."""

    name: str  # in results and tables
    title: str
    higher: bool = False  # is better


@dataclass(frozen=True)
class Comparison:
    """Methods on tasks.

    All but ``ours`` are peers; ``easier`` is the one with an easier promise that the verdict leaves
    out, if there is one.
    """

    ours: str
    easier: str | None
    plain: str  # a private method that looks at no input
    tasks: Mapping[str, Task]
    methods: Mapping[str, Method]
    judge: Callable[
        [Prediction, Array], dict[str, float]
    ]  # of what was predicted and what came true: all measures
    measures: tuple[Measure, ...]
    aside: Measure  # is shown for our own method only
    legend: tuple[str, ...]
    quick: str  # the task that CI runs
    splits: tuple[int, int, int]  # of small, middle and large data, on which they differ little
    delta: float | None = None  # by the number of records if not given


def one_by_one(predict: Callable[[Cell, float], Prediction]) -> Predictions:
    """A method that fits anew for each ε."""
    return lambda cell, epsilons: {epsilon: predict(cell, epsilon) for epsilon in epsilons}


def digest(*parts: ModuleType | Callable[..., object] | Path) -> str:
    """Results are kept as long as the code they came from stays the same."""
    text = hashlib.sha256()
    for part in parts:
        if isinstance(part, Path):
            for path in sorted(part.rglob("*.py")):
                text.update(path.read_bytes())
        else:
            text.update(inspect.getsource(part).encode())
    return text.hexdigest()[:16]
