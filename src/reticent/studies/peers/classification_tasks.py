"""Classification tasks: real tables with two to ten classes, and bounds that a user would state.

From the same packages as `regression_tasks`, with bounds of the same kind.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from reticent.privacy.bounds import Bounds
from reticent.studies.own.classification import CELLS
from reticent.studies.peers.regression_tasks import frame, ranked, told

__all__ = ["CLASS_TASKS", "ClassTask"]

Array = NDArray[np.float64]
Range = tuple[float, float]


@dataclass(frozen=True)
class ClassTask:
    """The class of a record, to be predicted from inputs of one table with stated ranges."""

    name: str
    table: str  # package/table
    inputs: Mapping[str, Range]  # for scikit-learn's tables, all of them in their order
    output: str
    classes: tuple[str, ...]
    above: float | None = (
        None  # if given, the output is a number, and the second class is what lies above
    )
    held_out: bool = False  # not looked at while the default was made
    ranks: Mapping[str, str] = field(
        default_factory=dict
    )  # text columns: their values in order, numbered from 1

    @property
    def bounds(self) -> Bounds:
        """The bounds of the inputs, and the classes as numbers."""
        return Bounds(x=list(self.inputs.values()), classes=list(range(len(self.classes))))

    @property
    def about(self) -> str:
        """What is predicted."""
        return f"{self.output}, {len(self.classes)} classes"

    def load(self) -> tuple[Array, Array]:
        """Give inputs and classes, numbered from 0, of all complete rows."""
        package, table = self.table.split("/")
        if package == "sklearn":
            from sklearn import datasets

            X, y = getattr(datasets, f"load_{table}")(return_X_y=True)
            return np.ascontiguousarray(X), y.astype(np.float64)
        columns = ranked(frame(package, table, [*self.inputs, self.output]), self.ranks)
        X = columns[list(self.inputs)].to_numpy(dtype=np.float64)
        if self.above is None:
            numbers = {word: number for number, word in enumerate(self.classes)}
            y = columns[self.output].map(numbers).to_numpy(dtype=np.float64)
        else:
            late = columns[self.output].to_numpy(dtype=np.float64)
            y = np.where(np.isnan(late), np.nan, late > self.above)
        complete = np.isfinite(X).all(axis=1) & np.isfinite(y)
        return np.ascontiguousarray(X[complete]), y[complete]


# scikit-learn (BSD-3); UCI (CC BY 4.0): cells of breast tumours, and images of 8 × 8 pixels
_CELLS = {f"input {i}": (0, high) for i, high in enumerate(CELLS)}
_PIXELS = {f"pixel {i}": (0, 16) for i in range(64)}
CLASS_TASKS = {
    "cancer": ClassTask(
        "cancer", "sklearn/breast_cancer", _CELLS, "diagnosis", ("malignant", "benign")
    ),
    "digits": ClassTask("digits", "sklearn/digits", _PIXELS, "digit", tuple("0123456789")),
    **{name: ClassTask(**task) for name, task in told("classes").items()},
}
