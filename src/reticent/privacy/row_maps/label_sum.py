"""The statistic of label-only models.

Each label, times the public column that its public input has. Proof: label_regressor.md.

Inputs are public here, so a table of columns, one for each different input, may depend on all of
them. A record finds its own column by its own input, bit by bit; what it adds is a function of that
record, of public numbers, and of nothing else.

A record whose label is missing adds its column to sums of its own, which tell where labels are
missing. That is free: no row is longer than before, and two rows of length one are never further
apart than the two ends of the clip are.
"""

from base64 import b64decode, b64encode
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from reticent.errors import BadInput
from reticent.privacy.release import Release, check_scale, noise_scale
from reticent.privacy.statistics.enforced import saved_as, saved_name
from reticent.privacy.statistics.sum import Sum

__all__ = ["DecodedLabelSum", "LabelSum", "label_sum"]

Array = NDArray[np.float64]
_BITS = 24  # of the grid that columns lie on
_HALF = 0.5**0.5


@dataclass(frozen=True)
class LabelSum(Sum):
    """Σ (cos·t·c(x), sin·(2t² − 1)), and Σ (c(x), 1)/√2 over records without a label.

    t = clip(v − centre(x), ±r)/r, r the clip threshold, over scaled labels v at public inputs x.

    Columns have a length of at most one: that is enforced, like every bound. ``inputs``, ``table``
    (columns in steps of 2⁻²⁴) and ``centre`` are arrays as base64 text: they are part of the
    release, and so are public.
    """

    complete_records: ClassVar[bool] = False  # a missing label is told of

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

    # one sum for each entry of a column, one of squares where they are asked for; and for records
    # without a label one for each entry of a column, and their number
    columns = property(lambda self: 2 * self.length + (self.sin > 0) + 1)
    # cos²t²‖c‖² + sin²(2t² − 1)² is convex in t², so at most max(sin², cos² + sin²) ≤ 1; and
    # (‖c‖² + 1)/2 ≤ 1
    norm2 = 1

    @cached_property
    def _places(self) -> dict[bytes, int]:
        return {
            row.tobytes(): i
            for i, row in enumerate(unpacked(self.inputs, np.float64, self.dimension))
        }

    @cached_property
    def _columns(self) -> Array:
        """The columns, and a last one of zeros for inputs that are not in the table."""
        table = unpacked(self.table, np.int32, self.length) * 2.0**-_BITS
        return np.vstack([table, np.zeros(self.length)])

    @cached_property
    def _centres(self) -> Array:
        return np.append(unpacked(self.centre, np.float64, 1)[:, 0], 0.0)

    def rows(self, records: Array) -> Array:
        """The label's distance from its centre, clipped, times its input's column.

        Of a record without a label the column itself; of one whose input is not in the table, and
        so of one that lacks an input, nothing.
        """
        inputs = np.ascontiguousarray(records[:, : self.dimension]) + 0.0  # −0 is 0
        at = np.array([self._places.get(row.tobytes(), -1) for row in inputs], dtype=np.intp)
        t = np.clip(
            (records[:, self.dimension] - self._centres[at]) / self.clip_threshold, -1.0, 1.0
        )
        missing = np.isnan(t)
        t[missing] = 0.0
        m = self.length
        rows = np.zeros((len(records), self.columns))
        np.multiply(self._columns[at], t[:, None] * self.cos, out=rows[:, :m])
        if self.sin:
            rows[:, m] = np.where(missing, 0.0, (t * t * 2.0 - 1.0) * self.sin)
        rows[:, -m - 1 : -1] = np.where(missing[:, None], self._columns[at] * _HALF, 0.0)
        rows[:, -1] = np.where(missing, _HALF, 0.0)
        rows[at < 0] = 0.0
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
            noise_scale(asked, release.event, release.unit, release.shares_spent),
        )
        m = asked.length
        r = asked.clip_threshold
        squares = None
        if asked.sin:
            squares = float(release.value[m]) / asked.sin, float(release.sd[m]) / asked.sin
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
            squares=squares,
            missing=release.value[-m - 1 :] / _HALF,
            missing_sd=float(release.sd[-1]) / _HALF,
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
    squares : tuple of two floats, optional
        Σ(2e²/r² − 1), and the standard deviation of its noise; None if it was not released.
    missing : array (m + 1,)
        Over records without a label: Σ column, and last their number.
    missing_sd : float
        Standard deviation of the noise of each of these.
    """

    design: str
    inputs: Array
    counts: Array
    columns: Array
    value: Array
    sd: float
    centre: Array
    clip_threshold: float
    squares: tuple[float, float] | None
    missing: Array
    missing_sd: float


def packed(array: NDArray[Any]) -> str:
    """An array as text, bit for bit, in little-endian order."""
    return b64encode(
        np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).tobytes()
    ).decode()


def unpacked(text: str, dtype: Any, width: int) -> NDArray[Any]:
    """What was packed, as rows of ``width``."""
    stored = np.frombuffer(b64decode(text), dtype=np.dtype(dtype).newbyteorder("<"))
    return stored.astype(dtype).reshape(-1, width)
