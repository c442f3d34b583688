"""Laws of the data that come from real tables, whose E[y | x] is known all the same.

An input is that of a record of the table; its output is that of a record whose input has nearly
the same rank, drawn with Nadaraya and Watson's weights. So E[y | x] is exactly that smoother's
value, while ties, gaps and long tails of the input, and how outputs scatter, lean and pile up at
each place, are the table's. The tables are bundled with scikit-learn: nothing is fetched.
"""

from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray
from sklearn import datasets

__all__ = ["REAL_LAWS", "RealLaw", "cell_nuclei"]

Array = NDArray[np.float64]
Generator = np.random.Generator
# standard deviation of the weights, as a share of the records: wiggles below are noise
_WIDTH = 0.1


@dataclass(frozen=True)
class RealLaw:
    """One input and one output of a real table.

    Attributes
    ----------
    table, x, y : str
        Name of the table, and of its two columns.
    x_bounds, y_bounds : pairs
        Public bounds, as somebody would give them who has not seen the table.
    """

    table: str
    x: str
    y: str
    x_bounds: tuple[float, float]
    y_bounds: tuple[float, float]

    @cached_property
    def _columns(self) -> tuple[Array, Array]:
        frame = _table(self.table)
        return frame[self.x], frame[self.y]

    def _weights(self, x: Array) -> Array:
        """Chance of each record of the table to give the output at x, (len(x), records)."""
        nodes = self._columns[0]
        ordered = np.sort(nodes)
        ranks = _mean_rank(ordered, x)[:, None] - _mean_rank(ordered, nodes)
        weights = np.exp(-0.5 * (ranks / (_WIDTH * len(nodes))) ** 2)
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))

    def draw(self, n: int, rng: Generator) -> tuple[Array, Array]:
        """Inputs and outputs of n records, two arrays of shape (n,)."""
        nodes, outputs = self._columns
        values, which = np.unique(rng.choice(nodes, n), return_inverse=True)
        chances = np.cumsum(self._weights(values), axis=1)
        chosen = np.empty(n, dtype=np.intp)
        uniform = rng.random(n)
        for i in range(len(values)):
            here = which == i
            chosen[here] = np.searchsorted(chances[i, :-1], uniform[here])
        return values[which], outputs[chosen]

    def mean(self, x: Array) -> Array:
        """E[y | x] at inputs of the table."""
        return np.asarray(self._weights(x) @ self._columns[1])

    def places(self, number: int) -> Array:
        """Where answers are looked at: evenly spaced quantiles of the inputs."""
        levels = (np.arange(number) + 0.5) / number
        return np.asarray(np.quantile(self._columns[0], levels, method="nearest"))

    @property
    def spread(self) -> float:
        """Standard deviation of all outputs."""
        return float(np.std(self._columns[1]))


def _mean_rank(ordered: Array, x: Array) -> Array:
    """Mean rank, among these values, of those equal to x."""
    first = np.searchsorted(ordered, x, side="left")
    last = np.searchsorted(ordered, x, side="right")
    return np.asarray((first + last) / 2)


@cache
def _table(name: str) -> dict[str, Array]:
    """Columns of a table that scikit-learn brings along, in the units they were measured in."""
    if name == "diabetes":
        data = datasets.load_diabetes(scaled=False)
        return dict(zip(data.feature_names, data.data.T, strict=True)) | {"target": data.target}
    if name == "nuclei":
        data = datasets.load_breast_cancer()
        columns = dict(zip(data.feature_names, data.data.T, strict=True))
        return columns | {"malignant": 1.0 - data.target}
    digits = datasets.load_digits()
    pixels = digits.images
    return {"upper": pixels[:, 2, 3], "side": pixels[:, 3, 6]}


REAL_LAWS = {
    "progression by body mass": RealLaw("diabetes", "bmi", "target", (15, 50), (0, 400)),
    "pressure by age": RealLaw("diabetes", "age", "bp", (0, 110), (40, 180)),
    "malignant by radius": RealLaw("nuclei", "mean radius", "malignant", (0, 40), (0, 1)),
    "error by area": RealLaw("nuclei", "mean area", "area error", (0, 5_000), (0, 1_000)),
    "ink by ink": RealLaw("digits", "upper", "side", (0, 16), (0, 16)),
}


@cache
def cell_nuclei(columns: tuple[str, ...]) -> Array:
    """Columns of the table of cell nuclei, each by its standard deviation, (569, columns)."""
    table = np.stack([_table("nuclei")[name] for name in columns], axis=1)
    return np.asarray(table / table.std(axis=0))
