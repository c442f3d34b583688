"""Distribution of the inputs, as far as releases tell it, and the points where a model is shown.

Lines along one input go through the *anchor*, where the other inputs stay: numbers at their median
where releases tell how inputs are distributed, since there are records, else in the middle of the
box; words at the most frequent level, else at the first. No input ever stands between two levels.
Of a number that is 0 or 1, as counts tell, these two values are shown: between them is nobody, and
the curve says nothing. All points are codes (`Column`); `as_given` turns them into records.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from reticent.models.gp.input_features import extrapolation_along
from reticent.privacy.columns.numbers import Number
from reticent.privacy.columns.words import MissingIndicator
from reticent.privacy.row_maps.label_sum import LabelSum
from reticent.reporting.columns import Column, input_columns
from reticent.reporting.released_checks import complete_number
from reticent.reporting.released_counts import released_counts

if TYPE_CHECKING:
    from reticent.models.base import PrivateEstimator

__all__ = [
    "AnchoredLine",
    "anchored_lines",
    "binary_inputs",
    "box_points",
    "frequent_levels",
    "grid_points",
    "input_medians",
    "input_ranges",
    "populated_ranges",
    "record_like_points",
]

Values = NDArray[np.float64]

_RESOLUTION = 101  # points along an input, where its populated range is looked for
_BOX_POINTS = 512
_BINS = 64
_SPIKE = 0.3  # of the records in one of many bins: they are all at one place
# standard deviation of a distribution function, as a fraction of the records
_MOST_MEDIAN_NOISE = 0.25  # with more noise a median says nothing
_MOST_RANGE_NOISE = 0.2  # with more noise nobody knows where records end
_EXTRAPOLATED = 0.14  # extrapolation weight beyond which hardly any records are
# fractions of the records at the ends of an input with two values, and most noise of one
_BOTH_ENDS = 0.85
_EACH_END = 0.05
_MOST_END_NOISE = 0.02


@dataclass(frozen=True)
class AnchoredLine:
    """Points on the line along one input, (points, inputs) codes; ``at``: of that input.

    ``separate``: each point is shown by itself, and nothing between them.
    """

    column: Column
    index: int
    points: Values
    separate: bool

    @property
    def at(self) -> Values:
        """The codes of the input that is moved."""
        return self.points[:, self.index]


def input_ranges(model: "PrivateEstimator") -> Values:
    """Give the lowest value of each input, its anchor, and the highest, (3, inputs) codes.

    A norm may keep inputs from the box's edges.
    """
    bounds = model.releases_[0].bounds
    columns = input_columns(model)
    low, high = np.array([column.ends for column in columns]).T
    middle = low / 2 + high / 2
    half = high / 2 - low / 2
    if bounds.norm is not None:
        half = np.minimum(half, bounds.norm)
        return np.array([middle - half, middle, middle + half])
    anchor = input_medians(model)
    if anchor is None:
        anchor = np.array([_middle(column) for column in columns])
    return np.array([low, anchor, high])


def _middle(column: Column) -> float:
    """The middle of a range; the first of some words."""
    if column.kind.levels is not None:
        return 0.0
    low, high = column.ends
    return column.nearest(low / 2 + high / 2)


def input_medians(model: "PrivateEstimator") -> Values | None:
    """Give the median of each number in round numbers, where releases tell it.

    Of words the most frequent one; of cycles, which have no median, the middle of the period.
    """
    bounds = model.releases_[0].bounds
    fractions, noise = _bin_fractions(model)
    if noise > _MOST_MEDIAN_NOISE:
        return None
    if bounds.norm is not None:  # away from the middle, lines would leave the ball
        return None
    found = []
    for column, row in zip(input_columns(model), fractions, strict=True):
        if isinstance(column.kind, MissingIndicator):
            found.append(0.0)
        elif column.kind.levels is not None:
            found.append(float(_level_fractions(column, row).argmax()))
        elif column.kind.periodic:
            found.append(_middle(column))
        else:
            found.append(column.nearest(median_of_shares(row, *column.kind.range)))
    return np.array(found)


def frequent_levels(model: "PrivateEstimator", index: int, most: int) -> Values:
    """Give the codes of at most so many categories of an input, in their order.

    Those with most records as counts tell, else the first ones.
    """
    column = input_columns(model)[index]
    codes = column.categories
    assert codes is not None
    if len(codes) <= most:
        return codes
    fractions, noise = _bin_fractions(model)
    if noise > _MOST_MEDIAN_NOISE:
        return codes[:most]
    order = np.argsort(-_level_fractions(column, fractions[index]), kind="stable")
    return codes[np.sort(order[:most])]


def _level_fractions(column: Column, fractions: Values) -> Values:
    """Fractions of the records of each category, from those in equal bins.

    A bin that holds several of them is shared out.
    """
    codes = column.categories
    assert codes is not None
    low, high = column.kind.range
    place = ((codes - low) / (high - low) * len(fractions)).astype(int)
    return np.asarray(fractions[place] / np.bincount(place)[place])


def populated_ranges(model: "PrivateEstimator") -> list[tuple[float, float]]:
    """Give for each input the ends beyond which hardly any records are, where releases tell them.

    Else its range, and that of all words.
    """
    fractions, noise = _bin_fractions(model)
    columns = input_columns(model)
    if noise > _MOST_RANGE_NOISE:
        return [column.ends for column in columns]
    found = []
    for column, weight in zip(columns, _extrapolation(model, fractions), strict=True):
        low, high = column.ends
        populated = np.nonzero(weight < _EXTRAPOLATED)[0]
        first = 0
        last = _RESOLUTION - 1
        if len(populated) and column.categories is None:
            first = populated[0]
            last = populated[-1]
        found.append(
            (
                float(low + (high - low) * first / (_RESOLUTION - 1)),
                float(low + (high - low) * last / (_RESOLUTION - 1)),
            )
        )
    return found


def _extrapolation(model: "PrivateEstimator", fractions: list[Values]) -> list[Values]:
    """Extrapolation weight along each input: the model's own, by which it opens its bands."""
    densities = getattr(model, "_record_densities", [])
    if len(densities):
        return [
            extrapolation_along(one, _RESOLUTION, model._density_threshold) for one in densities
        ]
    return [extrapolation_along(row, _RESOLUTION) for row in fractions]


def binary_inputs(model: "PrivateEstimator") -> list[bool]:
    """Say of each number whether nearly all records are at the two ends of its range (0 or 1)."""
    bounds = model.releases_[0].bounds
    fractions, noise = _bin_fractions(model)
    if not fractions or bounds.norm is not None:
        return [False] * len(bounds.x)
    found = []
    for kind, row in zip(bounds.x_kinds, fractions, strict=True):
        bin_noise = noise / len(row) ** 0.5
        ends = row[[0, -1]]
        both = ends.sum() > _BOTH_ENDS
        each = ends.min() > max(_EACH_END, 3 * bin_noise)
        binary = both and each and bin_noise < _MOST_END_NOISE
        found.append(bool(binary) and type(kind) is Number)
    return found


def _bin_fractions(model: "PrivateEstimator") -> tuple[list[Values], float]:
    """How inputs are distributed, as far as releases say.

    For each input the fractions of the complete records in equal bins, (bins,), and the largest
    standard deviation of the noise of a sum of them. From counts of the inputs; from the inputs
    themselves, where they are public; from the bins of a regression on bins. Nothing, and infinite
    noise, without these.
    """
    first = model.releases_[0]
    counted = released_counts(model)
    if _has_bins(model):
        return _binned_fractions(model)
    if counted:
        complete = complete_number(model)
        noise = max(one.sd * len(one.counts) ** 0.5 for one in counted) / complete
        return [one.counts / complete for one in counted], noise
    if first.is_of(LabelSum):
        public = LabelSum.decode(first)
        fractions = [rebin(column, column, public.counts / first.n) for column in public.inputs.T]
        return fractions, 0.0
    return [], np.inf


def _has_bins(model: "PrivateEstimator") -> bool:
    """Whether it is a regression of means on a grid of bins."""
    return hasattr(model, "bins_") and model.kind == "mean" and model._params["regions"] is None


def _binned_fractions(model: "PrivateEstimator") -> tuple[list[Values], float]:
    first = model.releases_[0]
    counts = model.counts_.reshape([len(edges) - 1 for edges in model.edges_])
    fractions = []
    for j, (edges, (low, high)) in enumerate(zip(model.edges_, first.bounds.x, strict=True)):
        unit = (edges - low) / (high - low) * 2 - 1
        marginal = counts.sum(axis=tuple(i for i in range(counts.ndim) if i != j))
        fractions.append(rebin(unit[:-1], unit[1:], marginal / first.n))
    noise = float(np.sqrt(np.square(model.counts_sd_).sum())) / first.n
    return fractions, noise


def rebin(low: Values, high: Values, fractions: Values) -> Values:
    """Move fractions, each spread evenly from ``low`` to ``high`` in [−1, 1], to equal bins."""
    edges = np.linspace(-1, 1, _BINS + 1)
    width = np.maximum(high - low, 1e-9)
    below = np.clip((edges[:, None] - low) / width, 0.0, 1.0)
    below[-1] = 1.0
    return np.asarray(np.diff(below @ fractions))


def cumulative_shares(fractions: Values) -> Values:
    """Fraction of the records below each edge of the bins: sums of noisy ones, made to rise."""
    below = np.concatenate([[0.0], np.cumsum(fractions)])
    return np.asarray((np.maximum.accumulate(below) + np.minimum.accumulate(below[::-1])[::-1]) / 2)


def median_of_shares(fractions: Values, low: float, high: float) -> float:
    """Where half of the records are below, by noisy fractions in equal bins.

    An edge where very many records are (0 or 1).
    """
    edges = np.linspace(low, high, len(fractions) + 1)
    middle = np.interp(0.5, cumulative_shares(fractions), edges)
    last = len(fractions) - 1
    index = min(int((middle - low) / (high - low) * len(fractions)), last)
    if index in (0, last) and fractions[index] > _SPIKE:
        if index == 0:
            return low
        return high
    step = 10.0 ** np.floor(np.log10((high - low) / 50))
    return float(np.clip(round(middle / step) * step, low, high))


def anchored_lines(model: "PrivateEstimator", points: int) -> list[AnchoredLine]:
    """Give for each input the points on the line along it.

    All its categories, or its two ends, where it has two values.
    """
    low, anchor, high = input_ranges(model)
    found = []
    inputs = zip(input_columns(model), binary_inputs(model), strict=True)
    for j, (column, binary) in enumerate(inputs):
        at = column.line(points)
        if type(column.kind) is Number:
            at = np.linspace(low[j], high[j], points)
        if binary:
            at = np.array([low[j], high[j]])
        line = np.tile(anchor, (len(at), 1))
        line[:, j] = at
        found.append(AnchoredLine(column, j, line, binary or column.categories is not None))
    return found


def grid_points(model: "PrivateEstimator", side: int) -> tuple[Values, Values, Values]:
    """Give the values along two inputs, and all points of their grid, row by row."""
    low, _, high = input_ranges(model)
    ends = zip(input_columns(model), low, high, strict=True)
    x, y = (
        np.array([column.nearest(at) for at in np.linspace(a, b, side)]) for column, a, b in ends
    )
    x, y = np.unique(x), np.unique(y)
    return x, y, np.array([(a, b) for b in y for a in x])


def box_points(model: "PrivateEstimator") -> Values:
    """Give points that are spread evenly over the box, (512, inputs); of words over the levels."""
    low, _, high = input_ranges(model)
    even = _halton(len(low))
    points = low + (high - low) * even
    for j, column in enumerate(input_columns(model)):
        points[:, j] = _placed(column, points[:, j], even[:, j])
    return np.asarray(points)


def _placed(column: Column, points: Values, even: Values) -> Values:
    """Points on values that the column can have; ``even``: their ranks in [0, 1)."""
    if isinstance(column.kind, MissingIndicator):
        return np.zeros(len(points))
    if column.categories is not None:
        codes = column.categories
        return np.asarray(codes[(even * len(codes)).astype(int)])
    return np.array([column.nearest(code) for code in points])


def record_like_points(model: "PrivateEstimator") -> Values | None:
    """Give points distributed like the records, each input by itself, where releases tell how.

    Noisy counts put too many beyond the ends where hardly any records are: these are left out, as
    curves are dashed there.
    """
    bounds = model.releases_[0].bounds
    fractions, noise = _bin_fractions(model)
    if noise > _MOST_RANGE_NOISE or bounds.norm is not None:
        return None
    found = []
    columns = input_columns(model)
    inputs = zip(columns, _halton(len(columns)).T, fractions, populated_ranges(model), strict=True)
    for column, even, row, populated in inputs:
        below = cumulative_shares(row)
        if column.categories is not None:
            levels = np.maximum(_level_fractions(column, row), 0.0)
            levels = np.cumsum(levels) / max(levels.sum(), 1e-9)
            place = np.minimum(np.searchsorted(levels, even, side="right"), len(levels) - 1)
            found.append(column.categories[place])
            continue
        edges = np.linspace(*column.kind.range, row.size + 1)
        first, last = np.interp(populated, edges, below)
        drawn = np.interp(first + even * (last - first), below, edges)
        found.append(_placed(column, drawn, even))
    return np.stack(found, axis=1)


def _halton(dimension: int) -> Values:
    from scipy.stats import qmc

    return np.asarray(qmc.Halton(dimension, scramble=False).random(_BOX_POINTS))
