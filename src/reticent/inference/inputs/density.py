"""Densities of the inputs, estimated from noisy moments and counts.

Inputs are scaled to the box [−1, 1]ᵈ. A density along one input is an array (128,) of probabilities
of `DENSITY_BINS` equal bins that add up to one; several densities that agree with the same releases
are the rows of an array (densities, 128). Of an input with L levels the bins are the levels, and
arrays are (L,) and (densities, L). Functions that are told ``levels`` get the number of levels of
each input, 0 where it has none.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr, ndtr

from reticent.inference.linalg import project_onto_simplex
from reticent.number_kinds import Numerical, Prior, Tuned
from reticent.privacy.row_maps.features.polynomial_basis import level_of

__all__ = [
    "COARSE_THRESHOLD",
    "DENSITY_BINS",
    "DensitySettings",
    "dense_interval",
    "density_from_counts",
    "density_from_moments",
    "density_threshold",
    "effective_support",
    "extrapolation_weight",
    "informative_bins",
    "level_threshold",
    "marginal_densities",
    "quantile_points",
    "shrink_to_common_mean",
]

Array = NDArray[np.float64]
DENSITY_BINS: Numerical[int] = 128  # of each input


@dataclass(frozen=True)
class DensitySettings:
    """Tuned numbers of the density estimates.

    Parameters
    ----------
    entropy_bins : int
        Bins in which an entropy is measured. A density on some hundred points is too coarse for
        all `DENSITY_BINS`.
    min_released_bins : int
        Fewest bins that are worth a release of counts.
    max_cdf_noise : float
        Largest noise in the distribution function, as a fraction of all records, with which counts
        are worth a release.
    uniform_fraction : float
        Weight of the uniform density in one made from moments: records may be anywhere.
    uniform_points : float
        Fraction of the representative points that stay uniform: nowhere are there none.
    prior_mean_sd : float
        Standard deviation of an input's mean a priori, in half-widths of the box.
    between_inputs_sd : float
        Standard deviation of means, and of mean squares, between the inputs of one table.
    min_sd : float
        Smallest standard deviation of a density from moments, in half-widths of the box.
    one_input_threshold, several_inputs_threshold : tuple of float
        Kernel width in half-widths of the box, and density relative to a uniform one below which
        predictions count as extrapolation. A basis of several inputs resolves less.
    informative_records : float
        Records near a point, in units of the privacy noise, that determine a function of one input.
    max_dense_width : float
        Largest fraction of an input's range that is worth zooming in on.
    min_dense_excess : float
        Least excess of the fraction of records in an interval over its fraction of the range.
    dense_margin : float
        Margin added on either side of a dense interval, as a fraction of its width.
    """

    entropy_bins: Numerical[int] = 32
    min_released_bins: Tuned[int] = 8
    max_cdf_noise: Tuned[float] = 0.25
    uniform_fraction: Prior[float] = 0.1
    uniform_points: Prior[float] = 0.02
    prior_mean_sd: Prior[float] = 0.5
    between_inputs_sd: Prior[float] = 0.2
    min_sd: Numerical[float] = 0.01
    one_input_threshold: Tuned[tuple[float, float]] = (0.08, 0.5)
    several_inputs_threshold: Tuned[tuple[float, float]] = (0.25, 0.3)
    informative_records: Tuned[float] = 6.0
    max_dense_width: Tuned[float] = 0.5
    min_dense_excess: Tuned[float] = 0.35
    dense_margin: Tuned[float] = 0.15


_SETTINGS = DensitySettings()
COARSE_THRESHOLD = _SETTINGS.several_inputs_threshold


def shrink_to_common_mean(values: Array, sd: float) -> tuple[Array, float]:
    """Noisy numbers of the inputs, shrunk to their mean over the inputs.

    Inputs of one table are alike (most lie low in wide ranges, say), and the mean over many inputs
    is less noisy than each.

    Parameters
    ----------
    values : (k, d) array
        k noisy numbers of each of d inputs.
    sd : float
        Standard deviation of their noise.

    Returns
    -------
    The shrunk values (k, d), and the standard deviation of the noise that is left.
    """
    prior2 = _SETTINGS.between_inputs_sd**2
    keep = prior2 / (prior2 + sd**2)
    mean = values.mean(axis=1, keepdims=True)
    return mean + keep * (values - mean), sd * math.sqrt(keep**2 + (1 - keep**2) / values.shape[1])


def density_from_moments(mean: float, square: float, moment_sd: float) -> Array:
    """Density (128,) along one input, from a noisy mean and mean square: normal, a tenth uniform.

    A mean that is all noise is shrunk to the middle, and a variance is never less than its noise
    ``moment_sd``.
    """
    prior2 = _SETTINGS.prior_mean_sd**2
    centre = min(max(mean, -1.0), 1.0) * prior2 / (prior2 + moment_sd**2)
    sd = math.sqrt(min(max(square - mean**2, moment_sd, _SETTINGS.min_sd**2), 1.0))
    normal = np.diff(ndtr((np.linspace(-1, 1, DENSITY_BINS + 1) - centre) / sd))
    uniform = _SETTINGS.uniform_fraction
    return np.asarray((1 - uniform) * normal / normal.sum() + uniform / DENSITY_BINS)


def informative_bins(sd: float, n: float) -> int:
    """Number of bins whose noisy counts determine a distribution function; 0 if even few do not.

    ``sd``: standard deviation of the noise of a count, of ``n`` records.
    """
    bins = DENSITY_BINS
    fewest = _SETTINGS.min_released_bins
    while bins >= fewest and sd * math.sqrt(bins) > _SETTINGS.max_cdf_noise * n:
        bins //= 2
    if bins >= fewest:
        return bins
    return 0


def density_from_counts(density: Array, counts: Array, sd: float, n: float) -> Array:
    """Density (128,) corrected by noisy counts (bins,).

    Deviations are shrunk by their signal-to-noise ratio; the result is projected on the simplex.
    """
    fine = len(density) // len(counts)
    deviation = counts / n - density.reshape(-1, fine).sum(axis=1)
    noise = (sd / n) ** 2
    signal = max(float(np.mean(deviation**2)) - noise * (1 + math.sqrt(2 / len(deviation))), 0.0)
    return project_onto_simplex(
        density + np.repeat(deviation, fine) / fine * (signal / (signal + noise))
    )


def quantile_points(density: Array, uniform: Array) -> Array:
    """Points distributed as the density, from uniform ones in [−1, 1]; two per cent stay."""
    uniform_part = _SETTINGS.uniform_points
    probabilities = (1 - uniform_part) * density / density.sum() + uniform_part / len(density)
    cdf = np.concatenate([[0.0], np.cumsum(probabilities)])
    edges = np.linspace(-1, 1, len(density) + 1)
    return np.asarray(np.interp((uniform + 1) / 2, cdf / cdf[-1], edges))


def marginal_densities(points: Array, densities: Array, levels: Sequence[int] = ()) -> list[Array]:
    """Densities along each input of densities on points.

    ``points``: (points, d); ``densities``: (densities, points), probabilities of the points. For
    each input an array (densities, 128), or (densities, L).
    """
    marginals = []
    for column, count in zip(points.T, levels or (0,) * points.shape[1], strict=True):
        cells = count or DENSITY_BINS
        scaled = (column + 1) * (cells / 2)
        bins = np.minimum(scaled.astype(np.intp), cells - 1)
        along = np.stack([np.bincount(bins, density, cells) for density in densities])
        marginals.append(along.astype(np.float64))
    return marginals


def effective_support(densities: Sequence[Array], levels: Sequence[int] = ()) -> float:
    """Fraction of the box that records occupy: exp(entropy), averaged over the inputs.

    Levels count as occupied: between them there is nothing.
    """
    coarse = _SETTINGS.entropy_bins
    entropies = []
    for density, count in zip(densities, levels or (0,) * len(densities), strict=True):
        if count:
            entropies.append(math.log(coarse))
        else:
            mean = np.atleast_2d(density).mean(axis=0)
            entropies.append(entr(mean.reshape(-1, DENSITY_BINS // coarse).sum(axis=1)).sum())
    return float(np.exp(np.mean(entropies))) / coarse


def level_threshold(n: float, noise: float) -> float:
    """Share of the records at a level below which predictions there count as extrapolation.

    The same number of records determines an effect however many levels there are, if ``noise``,
    that of all releases together, does not hide them.
    """
    return min(_SETTINGS.informative_records * noise / n, 0.5)


def density_threshold(inputs: int, n: float, noise: float) -> tuple[float, float]:
    """Kernel width and relative-density threshold below which predictions count as extrapolation.

    Of one input, about `informative_records` × ``noise`` records nearby suffice to determine a
    function at a point, however many there are elsewhere. ``noise``: multiplier of all releases
    together.
    """
    if inputs > 1:
        return COARSE_THRESHOLD
    width, threshold = _SETTINGS.one_input_threshold
    informative = _SETTINGS.informative_records * noise / (n * width * math.sqrt(math.pi) / 2)
    return width, min(threshold, informative)


def extrapolation_weight(
    densities: Sequence[Array],
    u: Array,
    threshold: tuple[float, float] = COARSE_THRESHOLD,
    levels: Sequence[int] = (),
    least_share: float = 0.0,
) -> Array:
    """How much a prediction is extrapolation, from 0 (among the records) to 1 (they say nothing).

    Where nearly nobody is, warps compress the inputs, so that a function looks smoother than it may
    be; and a prior that was learned elsewhere need not hold. What counts is the density of records
    nearby, in the box as it was given, relative to a uniform one; the input where it is lowest
    decides. Of several densities that agree with the releases each is as likely as the others: the
    weight is the mean of theirs, so that the variance is that of their mixture.

    Parameters
    ----------
    densities : sequence of array
        One for each input, (128,) or (densities, 128); with L levels (L,) or (densities, L).
    u : (points, d) array
        Inputs, scaled to the box.
    threshold : tuple of float
        Of `density_threshold`.
    levels : sequence of int, optional
        Number of levels of each input. At a level its own share of the records counts.
    least_share : float
        Of `level_threshold`.
    """
    weights = np.zeros((1, len(u)))
    counts = levels or (0,) * len(densities)
    for density, column, count in zip(densities, u.T, counts, strict=True):
        if count:
            along = _sparse_levels(density, column, count, least_share)
        else:
            along = _sparse_places(density, column, threshold)
        weights = np.maximum(weights, along)
    return np.asarray(weights.mean(axis=0))


def _sparse_levels(density: Array, column: Array, count: int, least_share: float) -> Array:
    """Extrapolation weights (densities, points) at levels, by each density."""
    share = np.atleast_2d(density)[:, level_of(column, count)]
    # a level is rare if half of an even share would be more
    rare = min(least_share, 0.5 / count)
    return np.asarray(np.clip(1 - share / max(rare, 1e-300), 0.0, 1.0))


def _sparse_places(density: Array, column: Array, threshold: tuple[float, float]) -> Array:
    """Extrapolation weights (densities, points) along a line, by each density."""
    width, sparse = threshold
    edges = np.linspace(-1, 1, DENSITY_BINS + 1)
    middles = (edges[1:] + edges[:-1]) / 2
    kernel = np.exp(-(((edges[:, None] - middles) / width) ** 2))
    ratios = DENSITY_BINS * (np.atleast_2d(density) @ kernel.T) / kernel.sum(axis=1)
    weights = np.clip(1 - ratios / sparse, 0.0, 1.0)
    return np.stack([np.interp(column, edges, one) for one in weights])


def dense_interval(densities: Array) -> tuple[float, float] | None:
    """The part of [−1, 1] where records surely are, if it is small and holds most of them.

    ``densities``: (densities, 128), all of which must agree.
    """
    edges = np.linspace(-1, 1, DENSITY_BINS + 1)
    weights = _sparse_places(densities, edges, _SETTINGS.one_input_threshold)
    dense = np.nonzero(weights.max(axis=0) < 0.5)[0]
    if not len(dense):
        return None
    margin = 2 + int(_SETTINGS.dense_margin * (dense[-1] - dense[0]))
    low = max(dense[0] - margin, 0)
    high = min(dense[-1] + margin, DENSITY_BINS)
    width = (high - low) / DENSITY_BINS
    probability = float(densities[:, low:high].sum(axis=1).min())
    if width <= _SETTINGS.max_dense_width and probability >= width + _SETTINGS.min_dense_excess:
        return (float(edges[low]), float(edges[high]))
    return None
