"""Input densities and feature maps: where the records are, and a basis that fits there.

A fit first asks how the inputs are distributed, so that the basis can be where the records are.
"""

import math
import warnings
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from reticent.inference.inputs.complete_records import (
    CompleteRecords,
    UnitTotal,
    complete_records,
)
from reticent.inference.inputs.density import (
    COARSE_THRESHOLD,
    DENSITY_BINS,
    dense_interval,
    density_from_counts,
    density_from_moments,
    extrapolation_weight,
    informative_bins,
    marginal_densities,
    quantile_points,
    shrink_to_common_mean,
)
from reticent.inference.inputs.warping import equalizing_warp, magnify_interval
from reticent.inference.kernels.axes import LINE, Axis
from reticent.inference.kernels.eigenbasis import quasi_random_points
from reticent.models.base import IncompleteRecords
from reticent.models.gp.settings import INPUTS
from reticent.models.unit_total import unit_total
from reticent.number_kinds import Derived
from reticent.privacy.curator import Oracle
from reticent.privacy.row_maps.features.basis_features import FeatureMap
from reticent.privacy.row_maps.features.polynomial_basis import Basis
from reticent.privacy.row_maps.input_marginals import InputCounts, InputMoments

__all__ = [
    "count_complete_records",
    "count_from_gram",
    "estimate_inputs",
    "extrapolation_along",
    "fill_missing",
    "inputs_needing_linear_term",
    "make_feature_map",
    "mean_of_products",
    "warn_of_missing_values",
    "zoom_warp",
]

Array = NDArray[np.float64]
Line = tuple[int, float, float]  # input, middle and slope of a linear term
# knots of a map that leaves an input as it is
_IDENTITY: Derived[tuple[float, float]] = (-1.0, 1.0)


def estimate_inputs(
    oracle: Oracle, releases: int, noise_multiplier: float, axes: Sequence[Axis]
) -> tuple[list[Array], CompleteRecords | None]:
    """Density of the records along each input, and how many are complete.

    Densities are in equal bins of [−1, 1], one for each level where an input has levels. One
    release is of moments, with the number of complete records, the others are of counts. Where
    counts would be all noise, moments take their releases too. Nothing without releases.
    """
    if not releases:
        return [], None
    d = len(oracle.bounds.x)
    count_releases = releases - 1
    bins = 0
    if count_releases:
        bins = informative_bins(noise_multiplier * math.sqrt(2 * d / count_releases), oracle.n)
    if not bins:
        count_releases = 0
    complete, means, sd = _input_means(oracle, releases - count_releases)
    n = complete.mean
    densities = [np.full(axis.levels, 1 / max(axis.levels, 1)) for axis in axes]
    numbers = [j for j, axis in enumerate(axes) if not axis.levels]
    if numbers:
        (first, second), moment_sd = shrink_to_common_mean(means[:, numbers], sd)
        for j, mean, square in zip(numbers, first, second, strict=True):
            densities[j] = density_from_moments(mean, square + 1.0, moment_sd)
    if not count_releases:
        return densities, complete
    groups: int | tuple[int, ...] = bins
    if len(numbers) < d:
        groups = tuple(axis.levels or bins for axis in axes)
    release = oracle.release(InputCounts(d, groups), shares_spent=count_releases)
    counted = InputCounts.decode(release)
    return [
        density_from_counts(density, counts, counted.sd, n)
        for density, counts in zip(densities, counted.counts, strict=True)
    ], complete


def count_complete_records(oracle: Oracle, releases: int) -> CompleteRecords:
    """How many records are complete, from a release of moments of the inputs."""
    complete, _, _ = _input_means(oracle, releases)
    return complete


def count_from_gram(
    gram: Array, gram_sd: Array, phi: Array, total: UnitTotal, constant: int = -1
) -> CompleteRecords:
    """How many records of a ``total`` are complete, from a noisy Gram matrix of their features.

    By the length of the matrix (m, m) along the one that features ``phi`` (points, m) of
    representative points have; where feature ``constant`` is a constant, by that one alone.
    """
    expected = phi.T @ phi / len(phi)
    if constant >= 0:
        only = np.zeros_like(expected)
        only[constant, constant] = expected[constant, constant]
        expected = only
    length2 = float((expected**2).sum())
    count = float((gram * expected).sum()) / length2
    noise = math.sqrt(float(((gram_sd * expected) ** 2).sum())) / length2
    size = float(total.n)
    if not total.one_each:
        size = min(max(count, noise), size)
    return complete_records(count, math.hypot(noise, INPUTS.gram_count_error * size), total)


def warn_of_missing_values(complete: CompleteRecords) -> None:
    """Warn where the releases say that clearly fewer than all records are complete."""
    if complete.warning is not None:
        warnings.warn(complete.warning, IncompleteRecords, stacklevel=5)


def fill_missing(unit: Array) -> tuple[Array, NDArray[np.bool_]]:
    """Scaled inputs with the middle in place of missing values, and which rows lack one."""
    missing = np.isnan(unit)
    return np.where(missing, 0.0, unit), np.asarray(missing.any(axis=1))


def _input_means(oracle: Oracle, shares: int) -> tuple[CompleteRecords, Array, float]:
    """How many records are complete; means (2, d) of u and u² − 1, and the sd of their noise."""
    release = oracle.release(InputMoments(len(oracle.bounds.x)), shares_spent=shares)
    moments = InputMoments.decode(release)
    complete = complete_records(moments.count, moments.count_sd, unit_total(oracle))
    return complete, moments.sums / complete.mean, moments.sd / complete.mean


def make_feature_map(
    basis: Basis,
    feature_scale: Array,
    densities: Sequence[Array],
    axes: Sequence[Axis],
    warp: tuple[tuple[float, ...], ...] = (),
    rescale: bool = False,
    lines: tuple[Line, ...] = (),
) -> tuple[FeatureMap, Array]:
    """Feature map on warped inputs, and representative points (points, d).

    ``warp``: given maps of the inputs; default, those that spread the densities of numbers evenly.
    ``rescale``: privacy noise is felt, so that features get as large a norm as they may have where
    the densities say that records are.
    """
    if densities and not warp:
        warp = tuple(
            equalizing_warp(density) if axis == LINE else _IDENTITY
            for density, axis in zip(densities, axes, strict=True)
        )
    feature_map = FeatureMap(basis, tuple(feature_scale.tolist()), 1.0, warp, lines=lines)
    count = INPUTS.points
    if basis.dimension == 1 and basis.size <= INPUTS.few_functions:
        count = INPUTS.few_points
    points = representative_points(basis.dimension, count, densities)
    if rescale and densities:
        feature_map = rescale_to_data(feature_map, points)
    return feature_map, points


def representative_points(dimension: int, count: int, densities: Sequence[Array]) -> Array:
    """Points (count, d) that fill the box as the densities of its inputs ask for."""
    points = quasi_random_points(dimension, count)
    for j, density in enumerate(densities):
        points[:, j] = quantile_points(density, points[:, j])
    return points


def mean_of_products(feature_map: FeatureMap, densities: Sequence[Array]) -> Array:
    """E[φφᵀ] (m, m) over inputs with these densities, by many points.

    Those that densities are fitted on are too few to integrate products of many functions.
    """
    dimension = feature_map.basis.dimension
    points = representative_points(dimension, INPUTS.quadrature_points, densities)
    total = np.zeros((feature_map.columns, feature_map.columns))
    for start in range(0, len(points), INPUTS.points):
        phi = feature_map.rows(points[start : start + INPUTS.points])
        total += phi.T @ phi
    return total / len(points)


def rescale_to_data(feature_map: FeatureMap, representative_points: Array) -> FeatureMap:
    """The same features, scaled so that those of most records have the largest norm allowed.

    Noise is calibrated to the largest norm. Most records lie in the middle of the inputs' ranges,
    where features are small: scaled by points that fill the box, they had a mean square of .4, and
    the signal was less than half of what the same noise allows.
    """
    squares = np.square(feature_map.long(representative_points)).sum(axis=1)
    small = np.quantile(squares, INPUTS.unclipped_fraction)
    factor = math.sqrt(feature_map.radius2 / small)
    return replace(
        feature_map, feature_scale=tuple((np.array(feature_map.feature_scale) * factor).tolist())
    )


def inputs_needing_linear_term(
    densities: Sequence[Array], axes: Sequence[Axis]
) -> tuple[Line, ...]:
    """Inputs whose warp bends their straight lines.

    Of each its number, mean, and the slope of a line with mean square one among the records. Where
    few records are, in a long tail say, smooth functions of the warped input can be anything; a
    line goes on. Of records that are all in one bin it would go anywhere.
    """
    lines = []
    edges = np.linspace(-1, 1, DENSITY_BINS + 1)
    u = (edges[1:] + edges[:-1]) / 2
    for j, density in enumerate(densities):
        if axes[j] != LINE:
            continue
        knots = np.array(equalizing_warp(density))
        warped = (knots[1:] + knots[:-1]) / 2
        (uu, uv), (_, vv) = np.cov(u, warped, aweights=density, bias=True)
        nonlinear = uv**2 < (1 - INPUTS.nonlinear_fraction) * uu * vv
        if uu > (2 / DENSITY_BINS) ** 2 and nonlinear:
            lines.append((j, float(u @ density / density.sum()), 1 / math.sqrt(uu)))
    return tuple(lines)


def zoom_warp(
    feature_map: FeatureMap, representative_points: Array, densities: Array
) -> tuple[tuple[float, ...], ...]:
    """Maps that magnify the interval of each input in which the records surely are.

    ``densities``: of the records at the points, a row for each hypothesis. () if the records fill
    no small part of any input's range.
    """
    even = np.linspace(-1, 1, DENSITY_BINS + 1)
    warped = feature_map.warped(representative_points)
    intervals = [dense_interval(along) for along in marginal_densities(warped, densities)]
    if not any(intervals):
        return ()
    current = [np.array(knots) for knots in feature_map.warp] or [even] * len(intervals)
    zoomed = []
    for knots, interval in zip(current, intervals, strict=True):
        if interval is None:
            zoomed.append(tuple(knots.tolist()))
        else:
            zoomed.append(magnify_interval(knots, *interval))
    return tuple(zoomed)


def extrapolation_along(
    densities: Array, points: int, threshold: tuple[float, float] = COARSE_THRESHOLD
) -> Array:
    """Extrapolation weight at ``points`` equidistant values of one input, lowest to highest.

    For the report's drawing only; predictions use `GPRegressor._extrapolation_weight`.
    ``densities``: of the records in equal bins, a row for each hypothesis.
    """
    rows = np.atleast_2d(densities)
    coarse = rows.shape[1]
    if DENSITY_BINS % coarse:  # bins of levels: no level lies between two of them
        place = np.arange(DENSITY_BINS) * coarse // DENSITY_BINS
        rows = rows[:, place] / np.bincount(place)[place]
        coarse = DENSITY_BINS
    fine = DENSITY_BINS // coarse
    return extrapolation_weight(
        [np.repeat(rows, fine, axis=1) / fine], np.linspace(-1, 1, points)[:, None], threshold
    )
