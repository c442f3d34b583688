"""Real classification tasks with two to ten classes, from the same packages as those of `data`, with bounds of the same kind."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from reticent.experiments.gp_classes import CELLS
from reticent.experiments.peers.data import frame, ranked
from reticent.privacy.bounds import Bounds

__all__ = ["CLASS_TASKS", "ClassTask"]

Array = NDArray[np.float64]
Range = tuple[float, float]


@dataclass(frozen=True)
class ClassTask:
    """The class of a record, to be told from some inputs of one table, with the ranges a user would state."""

    name: str
    table: str  # package/table
    inputs: Mapping[str, Range]  # for scikit-learn's tables, all of them in their order
    output: str
    classes: tuple[str, ...]
    above: float | None = None  # if given, the output is a number, and the second class is what lies above
    held_out: bool = False  # not looked at while the default was made
    ranks: Mapping[str, str] = field(default_factory=dict)  # text columns: their values in order, numbered from 1

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


CLASS_TASKS = {
    task.name: task
    for task in (
        # scikit-learn (BSD-3); UCI (CC BY 4.0): cells of breast tumours
        ClassTask(
            "cancer",
            "sklearn/breast_cancer",
            {f"input {i}": (0, high) for i, high in enumerate(CELLS)},
            "diagnosis",
            ("malignant", "benign"),
        ),
        # scikit-learn (BSD-3); UCI (CC BY 4.0): images of 8 × 8 pixels
        ClassTask(
            "digits",
            "sklearn/digits",
            {f"pixel {i}": (0, 16) for i in range(64)},
            "digit",
            tuple("0123456789"),
        ),
        # palmerpenguins (CC0); Horst, Hill, Gorman (2020): penguins near Palmer Station
        ClassTask(
            "penguins",
            "palmerpenguins/penguins",
            {
                "bill_length_mm": (20, 80),
                "bill_depth_mm": (5, 30),
                "flipper_length_mm": (100, 300),
                "body_mass_g": (1000, 8000),
            },
            "species",
            ("Adelie", "Chinstrap", "Gentoo"),
            held_out=True,
        ),
        # modeldata (MIT): loans and whether they were paid back
        ClassTask(
            "credit",
            "modeldata/credit_data",
            {
                "Seniority": (0, 50),
                "Time": (0, 72),
                "Age": (18, 80),
                "Expenses": (0, 200),
                "Income": (0, 1000),
                "Assets": (0, 100_000),
                "Debt": (0, 20_000),
                "Amount": (0, 5000),
                "Price": (0, 10_000),
                "Records": (1, 2),
            },
            "Status",
            ("bad", "good"),
            held_out=True,
            ranks={"Records": "no,yes"},
        ),
        # ggplot2 (MIT): round-cut diamonds, and how well they are cut
        ClassTask(
            "cut",
            "ggplot2/diamonds",
            {
                "carat": (0, 6),
                "depth": (40, 80),
                "table": (40, 100),
                "price": (0, 25_000),
                "color": (1, 7),
                "clarity": (1, 8),
            },
            "cut",
            ("Fair", "Good", "Very Good", "Premium", "Ideal"),
            held_out=True,
            ranks={"color": "J,I,H,G,F,E,D", "clarity": "I1,SI2,SI1,VS2,VS1,VVS2,VVS1,IF"},
        ),
        # nycflights13 (CC0): flights that left New York in 2013, and whether they arrived more than 15 minutes late
        ClassTask(
            "late",
            "nycflights13/flights",
            {"dep_delay": (-60, 1440), "distance": (0, 6000), "hour": (0, 24), "month": (1, 12)},
            "arr_delay",
            ("in time", "late"),
            above=15.0,
            held_out=True,
        ),
    )
}
