"""The statistic of label-only models.

Each label, times the public column that its public input has. Proof: label_regressor.md.

Inputs are public here, so a table of columns, one for each different input, may depend on all of
them. A record finds its own column by its own input, bit by bit; what it adds is a function of that
record, of public numbers, and of nothing else.
"""

from base64 import b64decode, b64encode
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.errors import BadInput
from reticent.privacy.release import Release, check_scale, noise_scale
from reticent.privacy.statistics.enforced import saved_as, saved_name
from reticent.privacy.statistics.sum import Sum

__all__ = ["DecodedLabelSum", "LabelSum", "label_sum"]

Array = NDArray[np.float64]
_BITS = 24  # of the grid that columns lie on


@dataclass(frozen=True)
class LabelSum(Sum):
    """Σ (cos·t·c(x), sin·(2t² − 1)), t = clip(v − centre(x), ±r)/r, r the clip threshold.

    Over scaled labels v at public inputs x.

    Columns have a length of at most one: that is enforced, like every bound. ``inputs``, ``table``
    (columns in steps of 2⁻²⁴) and ``centre`` are arrays as base64 text: they are part of the
    release, and so are public.
    """

    dimension: int
    length: int  # of a column
    design: str  # how the columns were made, in words
    inputs: str  # float64, different inputs × dimension: where each input stands
    counts: str  # float64, how many records there are at each
    table: str  # int32, different inputs × length
    centre: str  # float64, what each label is compared with
    clip_threshold: float = field(metadata=saved_as("reach"))
    cos: float  # the share of a row that is about the function; the rest is about the noise
    sin: float

    # one sum for each entry of a column, and one of squares where they are asked for
    columns = property(lambda self: self.length + (self.sin > 0))
    norm2 = 1  # cos²t²‖c‖² + sin²(2t² − 1)² is convex in t², so at most max(sin², cos² + sin²) ≤ 1

    @cached_property
    def _places(self) -> dict[bytes, int]:
        return {
            row.tobytes(): i
            for i, row in enumerate(unpacked(self.inputs, np.float64, self.dimension))
        }

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
        t = np.clip(
            (records[:, self.dimension] - self._centres[at]) / self.clip_threshold, -1.0, 1.0
        )
        rows = np.empty((len(records), self.columns))
        np.multiply(self._columns[at], t[:, None], out=rows[:, : self.length])
        if self.sin:
            rows[:, self.length] = (t * t * 2.0 - 1.0) * self.sin
        return rows

    @classmethod
    def decode(cls, release: Release) -> "DecodedLabelSum":
        """Sums in half-ranges of y, with the design that was released beside them.

        A rebuilt model designs nothing again, so that nobody else has compared the statistic with
        the release: a release of another statistic or noise scale is refused here.
        """
        if not release.is_of(cls):
            raise BadInput(
                "These releases are not of a label-only model: rebuild them with "
                "the estimator that made them."
            )
        asked = cls(**{one.name: release.statistic[saved_name(one)] for one in fields(cls)})
        check_scale(
            release,
            noise_scale(asked, release.event, release.records_per_person, release.shares_spent),
        )
        m = asked.length
        r = asked.clip_threshold
        mean_square = None
        if asked.sin:  # from Σ(2t² − 1)
            per_record = 2 * release.n * asked.sin
            square = float(release.value[m]) / per_record
            square_sd = float(release.sd[m]) / per_record
            mean_square = (square + 0.5) * r**2, square_sd * r**2
        unit = r / asked.cos
        return DecodedLabelSum(
            design=asked.design,
            inputs=unpacked(asked.inputs, np.float64, asked.dimension),
            counts=unpacked(asked.counts, np.float64, 1)[:, 0],
            columns=unpacked(asked.table, np.int32, m) * 2.0**-_BITS,
            value=release.value[:m] * unit,
            sd=float(release.sd[0]) * unit,
            centre=unpacked(asked.centre, np.float64, 1)[:, 0],
            clip_threshold=r,
            mean_square=mean_square,
        )


def label_sum(
    inputs: Array,
    counts: Array,
    columns: Array,
    *,
    design: str,
    centre: Array,
    clip_threshold: float,
    squares: float,
) -> LabelSum:
    """The statistic with these ``columns`` (one row per input), put on their grid; ``squares``.

    Share for Σt².
    """
    steps = np.trunc(columns * 2.0**_BITS).astype(np.int32)
    return LabelSum(
        inputs.shape[1],
        columns.shape[1],
        design,
        packed(inputs),
        packed(counts),
        packed(steps),
        packed(centre),
        float(clip_threshold),
        float(np.sqrt(1.0 - squares)) if squares else 1.0,
        float(np.sqrt(squares)),
    )


@dataclass(frozen=True, eq=False)
class DecodedLabelSum:
    """Noisy sum of clipped label residuals e = clip(v − centre, ±r), in half-ranges of y.

    Attributes
    ----------
    design : str
        How the columns were made, in words.
    inputs : array (k, d)
        The k different public inputs, scaled.
    counts : array (k,)
        Number of records at each.
    columns : array (k, m)
        Column of each input.
    value : array (m,)
        Σ e·column.
    sd : float
        Standard deviation of the noise of each entry.
    centre : array (k,)
        What the labels at each input are compared with.
    clip_threshold : float
        r.
    mean_square : tuple of two floats, optional
        Mean of e², and the standard deviation of its noise; None if it was not released.
    """

    design: str
    inputs: Array
    counts: Array
    columns: Array
    value: Array
    sd: float
    centre: Array
    clip_threshold: float
    mean_square: tuple[float, float] | None


def packed(array: NDArray[Any]) -> str:
    """An array as text, bit for bit, in little-endian order."""
    return b64encode(
        np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).tobytes()
    ).decode()


def unpacked(text: str, dtype: Any, width: int) -> NDArray[Any]:
    """What was packed, as rows of ``width``."""
    stored = np.frombuffer(b64decode(text), dtype=np.dtype(dtype).newbyteorder("<"))
    return stored.astype(dtype).reshape(-1, width)
