"""The statistic of label-only models: each label, times the public column that its public input has. Proof: label_gp.md.

Inputs are public here, so a table of columns, one for each different input, may depend on all of them. A record finds its own
column by its own input, bit by bit; what it adds is a function of that record, of public numbers, and of nothing else.
"""

from base64 import b64decode, b64encode
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.errors import BadInput
from reticent.privacy.curator import Release
from reticent.privacy.release import check_scale, noise_scale
from reticent.privacy.statistic import Sum

__all__ = ["LabelSum", "Told", "label_sum", "told"]

Array = NDArray[np.float64]
_BITS = 24  # of the grid that columns lie on


@dataclass(frozen=True)
class LabelSum(Sum):
    """Σ (cos·t·c(x), sin·(2t² − 1)), t = clip(v − centre(x), ±reach)/reach, over scaled labels v at public inputs x.

    Columns have a length of at most one: that is enforced, like every bound. ``inputs``, ``table`` (columns in steps of 2⁻²⁴) and
    ``centre`` are arrays as base64 text: they are part of the release, and so are public.
    """

    dimension: int
    length: int  # of a column
    design: str  # how the columns were made, in words
    inputs: str  # float64, different inputs × dimension: where each input stands
    counts: str  # float64, how many records there are at each
    table: str  # int32, different inputs × length
    centre: str  # float64, what each label is compared with
    reach: float
    cos: float  # the share of a row that is about the function; the rest is about the noise
    sin: float

    # one sum for each entry of a column, and one of squares where they are asked for
    columns = property(lambda self: self.length + (self.sin > 0))
    norm2 = 1  # cos²t²‖c‖² + sin²(2t² − 1)² is convex in t², so at most max(sin², cos² + sin²) ≤ 1

    @cached_property
    def _places(self) -> dict[bytes, int]:
        return {row.tobytes(): i for i, row in enumerate(unpacked(self.inputs, np.float64, self.dimension))}

    @cached_property
    def _columns(self) -> Array:
        """The columns, and a last one of zeros for inputs that are not in the table."""
        table = unpacked(self.table, np.int32, self.length) * (self.cos * 2.0**-_BITS)
        return np.vstack([table, np.zeros(self.length)])

    @cached_property
    def _centres(self) -> Array:
        return np.append(unpacked(self.centre, np.float64, 1)[:, 0], 0.0)

    def rows(self, records: Array) -> Array:
        """The label's distance from its centre, clipped, times its input's column."""
        inputs = np.ascontiguousarray(records[:, : self.dimension]) + 0.0  # −0 is 0
        at = np.array([self._places.get(row.tobytes(), -1) for row in inputs], dtype=np.intp)
        t = np.clip((records[:, self.dimension] - self._centres[at]) / self.reach, -1.0, 1.0)
        rows = np.empty((len(records), self.columns))
        np.multiply(self._columns[at], t[:, None], out=rows[:, : self.length])
        if self.sin:
            rows[:, self.length] = (t * t * 2.0 - 1.0) * self.sin
        return rows


def label_sum(
    inputs: Array, counts: Array, columns: Array, *, design: str, centre: Array, reach: float, squares: float
) -> LabelSum:
    """The statistic with these ``columns`` (one row per input), put on their grid; ``squares``: share for Σt²."""
    steps = np.trunc(columns * 2.0**_BITS).astype(np.int32)
    return LabelSum(
        inputs.shape[1],
        columns.shape[1],
        design,
        packed(inputs),
        packed(counts),
        packed(steps),
        packed(centre),
        float(reach),
        float(np.sqrt(1.0 - squares)) if squares else 1.0,
        float(np.sqrt(squares)),
    )


@dataclass(frozen=True, eq=False)
class Told:
    """What a released `LabelSum` tells, in units of half the range of y."""

    inputs: Array
    counts: Array
    columns: Array  # a row for each input
    value: Array  # Σ clip(v − centre, ±reach)·column
    sd: float
    centre: Array
    reach: float
    second: tuple[float, float] | None  # the mean of clip(v − centre, ±reach)², and the sd of its noise


def told(release: Release) -> Told:
    """Read a release. What was really asked counts, so that a rebuilt model designs nothing again."""
    asked, n = release.statistic, release.n
    if asked["name"] != LabelSum.__name__:
        raise BadInput("These releases are not of a label-only model: rebuild them with the estimator that made them.")
    statistic = LabelSum(**{one.name: asked[one.name] for one in fields(LabelSum)})
    check_scale(release, noise_scale(statistic, release.event, release.records_per_person, release.times))
    inputs, counts, centre = (
        unpacked(asked[name], np.float64, width)
        for name, width in (("inputs", asked["dimension"]), ("counts", 1), ("centre", 1))
    )
    m, r, sin = asked["length"], asked["reach"], asked["sin"]
    columns = unpacked(asked["table"], np.int32, m) * 2.0**-_BITS
    back, second = r / asked["cos"], None
    if sin:  # Σ(2t² − 1)
        square, sd = float(release.value[m]) / (2 * n * sin), float(release.sd[m]) / (2 * n * sin)
        second = (square + 0.5) * r**2, sd * r**2
    value, noise = release.value[:m] * back, float(release.sd[0]) * back
    return Told(inputs, counts[:, 0], columns, value, noise, centre[:, 0], r, second)


def packed(array: NDArray[Any]) -> str:
    """An array as text, bit for bit, in little-endian order."""
    return b64encode(np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).tobytes()).decode()


def unpacked(text: str, dtype: Any, width: int) -> NDArray[Any]:
    """What was packed, as rows of ``width``."""
    stored = np.frombuffer(b64decode(text), dtype=np.dtype(dtype).newbyteorder("<"))
    return stored.astype(dtype).reshape(-1, width)
