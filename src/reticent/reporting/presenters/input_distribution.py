"""Distribution of the inputs, as far as releases tell it, and the points where a model is shown.

Lines along one input go through the *anchor*, where the other inputs stay: the median of each input
where releases tell how inputs are distributed, since there are records; else the middle of the box.
Of an input that is 0 or 1, as counts tell, these two values are shown: between them is nobody, and
the curve says nothing.
"""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from reticent.models.gp.input_features import extrapolation_along
from reticent.privacy.row_maps.input_marginals import InputCounts
from reticent.privacy.row_maps.label_sum import LabelSum
from reticent.reporting.columns import column_names

if TYPE_CHECKING:
    from reticent.models.base import PrivateEstimator

__all__ = [
    "anchored_lines",
    "binary_inputs",
    "box_points",
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


def input_ranges(model: "PrivateEstimator") -> Values:
    """Give the lowest value of each input, its anchor, and the highest, (3, n_features).

    A norm may keep inputs from the box's edges.
    """
    bounds = model.releases_[0].bounds
    low, high = np.array(bounds.x).T
    middle = low / 2 + high / 2
    half = high / 2 - low / 2
    if bounds.norm is not None:
        half = np.minimum(half, bounds.norm)
    elif (known := input_medians(model)) is not None:
        return np.array([low, known, high])
    return np.array([middle - half, middle, middle + half])


def input_medians(model: "PrivateEstimator") -> Values | None:
    """Give the median of each input in round numbers, where releases tell it."""
    bounds = model.releases_[0].bounds
    fractions, noise = _bin_fractions(model)
    if noise > _MOST_MEDIAN_NOISE:
        return None
    if bounds.norm is not None:  # away from the middle, lines would leave the ball
        return None
    return np.array([_median(row, *ends) for row, ends in zip(fractions, bounds.x, strict=True)])


def populated_ranges(model: "PrivateEstimator") -> list[tuple[float, float]]:
    """Give for each input the ends beyond which hardly any records are, where releases tell them.

    Else its range.
    """
    bounds = model.releases_[0].bounds
    fractions, noise = _bin_fractions(model)
    if noise > _MOST_RANGE_NOISE:
        return [(float(low), float(high)) for low, high in bounds.x]
    found = []
    for weight, (low, high) in zip(_extrapolation(model, fractions), bounds.x, strict=True):
        populated = np.nonzero(weight < _EXTRAPOLATED)[0]
        first = 0
        last = _RESOLUTION - 1
        if len(populated):
            first = populated[0]
            last = populated[-1]
        found.append(
            (
                float(low + (high - low) * first / (_RESOLUTION - 1)),
                float(low + (high - low) * last / (_RESOLUTION - 1)),
            )
        )
    return found


def _extrapolation(model: "PrivateEstimator", fractions: Values) -> list[Values]:
    """Extrapolation weight along each input: the model's own, by which it opens its bands."""
    densities = getattr(model, "_record_densities", [])
    if len(densities):
        return [
            extrapolation_along(one, _RESOLUTION, model._density_threshold) for one in densities
        ]
    return [extrapolation_along(row, _RESOLUTION) for row in fractions]


def binary_inputs(model: "PrivateEstimator") -> list[bool]:
    """Say of each input whether nearly all records are at the two ends of its range (0 or 1)."""
    bounds = model.releases_[0].bounds
    fractions, noise = _bin_fractions(model)
    if not fractions.size or bounds.norm is not None:
        return [False] * len(bounds.x)
    bin_noise = noise / fractions.shape[1] ** 0.5
    ends = fractions[:, [0, -1]]
    both = ends.sum(axis=1) > _BOTH_ENDS
    each = ends.min(axis=1) > max(_EACH_END, 3 * bin_noise)
    binary: list[bool] = (both & each & (bin_noise < _MOST_END_NOISE)).tolist()
    return binary


def _bin_fractions(model: "PrivateEstimator") -> tuple[Values, float]:
    """How inputs are distributed, as far as releases say.

    Fractions of the records in equal bins, (n_features, bins), and the standard deviation of the
    noise of a sum of them. From counts of the inputs; from the inputs themselves, where they are
    public; from the bins of a regression on bins. Nothing, and infinite noise, without these.
    """
    first = model.releases_[0]
    counted = [release for release in model.releases_ if release.is_of(InputCounts)]
    if counted:
        complete = getattr(model, "n_complete_", first.n)
        decoded = [InputCounts.decode(one).counts for one in counted]
        finest = max(len(one) for one in decoded[0])
        fractions = (
            np.mean([[_spread(one, finest) for one in each] for each in decoded], axis=0) / complete
        )
        noise = float(counted[0].sd[0]) * (finest / len(counted)) ** 0.5 / complete
        return fractions, noise
    if first.is_of(LabelSum):
        public = LabelSum.decode(first)
        fractions = np.array(
            [_rebin(column, column, public.counts / first.n) for column in public.inputs.T]
        )
        return fractions, 0.0
    if _has_bins(model):
        return _binned_fractions(model)
    return np.empty((0, 0)), np.inf


def _spread(counts: Values, bins: int) -> Values:
    """Counts in equal bins, or of levels, spread over more bins of the same range."""
    place = np.arange(bins) * len(counts) // bins
    return np.asarray(counts[place] / np.bincount(place)[place])


def _has_bins(model: "PrivateEstimator") -> bool:
    """Whether it is a regression of means on a grid of bins."""
    return hasattr(model, "bins_") and model.kind == "mean" and model._params["regions"] is None


def _binned_fractions(model: "PrivateEstimator") -> tuple[Values, float]:
    first = model.releases_[0]
    counts = model.counts_.reshape([len(edges) - 1 for edges in model.edges_])
    fractions = []
    for j, (edges, (low, high)) in enumerate(zip(model.edges_, first.bounds.x, strict=True)):
        unit = (edges - low) / (high - low) * 2 - 1
        marginal = counts.sum(axis=tuple(i for i in range(counts.ndim) if i != j))
        fractions.append(_rebin(unit[:-1], unit[1:], marginal / first.n))
    noise = float(np.sqrt(np.square(model.counts_sd_).sum())) / first.n
    return np.array(fractions), noise


def _rebin(low: Values, high: Values, fractions: Values) -> Values:
    """Move fractions, each spread evenly from ``low`` to ``high`` in [−1, 1], to equal bins."""
    edges = np.linspace(-1, 1, _BINS + 1)
    width = np.maximum(high - low, 1e-9)
    below = np.clip((edges[:, None] - low) / width, 0.0, 1.0)
    below[-1] = 1.0
    return np.asarray(np.diff(below @ fractions))


def _cumulative(fractions: Values) -> Values:
    """Fraction of the records below each edge of the bins: sums of noisy ones, made to rise."""
    below = np.concatenate([[0.0], np.cumsum(fractions)])
    return np.asarray((np.maximum.accumulate(below) + np.minimum.accumulate(below[::-1])[::-1]) / 2)


def _median(fractions: Values, low: float, high: float) -> float:
    """Where half of the records are below, by noisy fractions in equal bins.

    An edge where very many records are (0 or 1).
    """
    edges = np.linspace(low, high, len(fractions) + 1)
    middle = np.interp(0.5, _cumulative(fractions), edges)
    last = len(fractions) - 1
    index = min(int((middle - low) / (high - low) * len(fractions)), last)
    if index in (0, last) and fractions[index] > _SPIKE:
        if index == 0:
            return low
        return high
    step = 10.0 ** np.floor(np.log10((high - low) / 50))
    return float(np.clip(round(middle / step) * step, low, high))


def anchored_lines(model: "PrivateEstimator", points: int) -> list[tuple[str, Values]]:
    """Give for each input its name, and points (points, n_features) on the line along it.

    Its two ends, where it has two values.
    """
    low, anchor, high = input_ranges(model)
    found = []
    inputs = zip(column_names(model), binary_inputs(model), strict=True)
    for j, (name, binary) in enumerate(inputs):
        count = points
        if binary:
            count = 2
        line = np.tile(anchor, (count, 1))
        line[:, j] = np.linspace(low[j], high[j], count)
        found.append((name, line))
    return found


def grid_points(model: "PrivateEstimator", side: int) -> tuple[Values, Values, Values]:
    """Give the values along two inputs, and all points of their grid, row by row."""
    low, _, high = input_ranges(model)
    x = np.linspace(low[0], high[0], side)
    y = np.linspace(low[1], high[1], side)
    return x, y, np.array([(a, b) for b in y for a in x])


def box_points(model: "PrivateEstimator") -> Values:
    """Give points that are spread evenly over the box, (512, n_features)."""
    low, _, high = input_ranges(model)
    return np.asarray(low + (high - low) * _halton(len(low)))


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
    inputs = zip(
        _halton(len(bounds.x)).T, fractions, bounds.x, populated_ranges(model), strict=True
    )
    for even, row, (low, high), populated in inputs:
        below = _cumulative(row)
        edges = np.linspace(low, high, row.size + 1)
        first, last = np.interp(populated, edges, below)
        found.append(np.interp(first + even * (last - first), below, edges))
    return np.stack(found, axis=1)


def _halton(dimension: int) -> Values:
    from scipy.stats import qmc

    return np.asarray(qmc.Halton(dimension, scramble=False).random(_BOX_POINTS))
