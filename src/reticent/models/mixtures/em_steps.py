"""Expectation–maximisation by releases.

Each step asks for one joint release of moments; the rest is computed from it. `em_step` is the
general scheme: a mixture says which residuals it wants, one release gives their noisy moments, and
the M-step moves the mixture. Stages differ in which second moments they ask for, and in how many
budget shares one step spends.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from reticent.inference.mixtures.gaussian_mixture import (
    ClipGains,
    LengthHistogram,
    NormalMixture,
    chi_quantile,
    clamp_eigenvalues,
    clip_edges,
    clip_gains,
    correct_moments,
    grid_mixture,
    merge_components,
    significant_counts,
)
from reticent.inference.mixtures.latent_class import LatentClassMixture
from reticent.inference.mixtures.merging import best_by_counts, merge_path
from reticent.models.mixtures.record_view import RecordView, count_sd
from reticent.models.mixtures.settings import MIXTURE
from reticent.privacy.release import Release
from reticent.privacy.row_maps.mixture_moments import (
    CellCounts,
    CentredGram,
    DecodedMoments,
    LengthCounts,
    LogRatio,
    Metric,
    ResidualMoments,
    WordTable,
    residual_moments,
)

__all__ = [
    "add_counts",
    "best_radius",
    "component_weights",
    "em_step",
    "fewest_components",
    "find_centres",
    "fit_histogram",
    "fit_pooled_normal",
    "fits_better",
    "likelier",
    "mixture_lengths",
    "refine_normal",
    "residual_lengths",
    "with_axis_aligned_covariances",
]

Array = NDArray[np.float64]
_UNCLIPPED = ClipGains(1.0, 1.0, 1.0, 1.0, 1.0)
_SECOND_MOMENTS = {"full": "full", "tied": "full", "diag": "diagonal", "spherical": "trace"}


def fit_pooled_normal(
    view: RecordView, shares: tuple[int, int, int]
) -> tuple[NormalMixture, NormalMixture, float]:
    """One normal distribution for all records, one for most, and the noise of a count.

    The second is as wide as the shorter half of the records asks for, where a few are far away.
    ``shares``: budget shares for the histogram of norms, for the first moments, and for a look at
    whitened residuals; the noise is with one budget share.
    """
    radius, one_count_sd = _first_radius(view, shares[0], shares[1])
    first = _normal_within(view, radius, shares[1])
    # far records shall not widen the law around which components are looked for
    normal, lengths = _refined(view, first, shares[2], hidden=False)
    wider = np.linalg.slogdet(normal.roots[0])[1] - np.linalg.slogdet(first.roots[0])[1]
    half = lengths.median() / chi_quantile(view.dimension, 0.5) / math.exp(wider / view.dimension)
    most = normal
    if half < MIXTURE.long_tails:
        most = NormalMixture(normal.weights, normal.means, _held(normal.roots * half))
    return normal, most, one_count_sd * math.sqrt(shares[0])


def _first_radius(view: RecordView, shares: int, moment_shares: int) -> tuple[float, float]:
    """Clip threshold of the first moments, and the noise of one count of the histogram of norms.

    ``shares``: for the histogram; ``moment_shares``: for the moments afterwards.
    """
    d = view.dimension
    longest = math.sqrt(view.radius2)
    octaves = np.arange(1 - MIXTURE.norm_bins, 1) / MIXTURE.norm_bins_per_octave
    origin = view.metric(np.eye(d), np.zeros((1, d)))
    lengths = _count_lengths(view, origin, longest * 2.0**octaves, shares, (0.0,))
    noise = _gram_noise(lengths.noise_sd, shares / moment_shares) * d * lengths.edges**2 / lengths.n
    # those who are within a threshold that half of the records exceed may all be at one point
    noise[~lengths.holding()] = np.inf
    radius = lengths.best_clip(lengths.edges, noise**2, np.ones(len(noise)))
    return radius, lengths.noise_sd


def _count_lengths(
    view: RecordView,
    where: Metric,
    edges: Array,
    shares: int,
    levels: Sequence[float] | Array,
    words: tuple[WordTable, ...] = (),
) -> LengthHistogram:
    """A histogram of lengths; none exceeds the last edge."""
    level = tuple(np.asarray(levels, dtype=np.float64).tolist())
    release = view.release(LengthCounts(where, tuple(edges[:-1].tolist()), level, words), shares)
    sd = count_sd(release)
    view.complete.add(float(release.value.sum()), sd * math.sqrt(len(release.value)))
    return LengthHistogram(edges, release.value, sd, float(release.sd[0]), view.complete.number)


def _gram_noise(sd: float, shares: float) -> float:
    """Noise off the diagonal of second moments, about.

    Given that of counts with ``shares`` budget shares for each of the moments.
    """
    return sd * math.sqrt(shares / 2) * (1 + MIXTURE.intercept**2)


def _normal_within(view: RecordView, radius: float, shares: int) -> NormalMixture:
    """Normal distribution by first and second moments of records clipped to a radius."""
    d = view.dimension
    origin = view.metric(np.eye(d), np.zeros((1, d)))
    release = view.release(CentredGram(origin, radius, MIXTURE.intercept), shares)
    n = _count_complete(release, view)
    moments = release.matrix() / n
    noise_sd = float(release.matrix_sd()[0, 1]) / n * radius**2
    mean = np.clip(moments[0, 1:] / MIXTURE.intercept * radius, -1.0, 1.0)
    noisy = moments[1:, 1:] * radius**2 - np.outer(mean, mean)
    variance = max(float(np.trace(noisy)) / d, MIXTURE.least_sd**2)
    _, values, vectors = correct_moments(
        _UNCLIPPED, np.zeros(d), noisy / variance, (noise_sd / variance) ** 2
    )
    covariance = clamp_eigenvalues(
        variance * (vectors * values) @ vectors.T, max(noise_sd, MIXTURE.least_sd**2)
    )
    root = np.asarray(np.linalg.cholesky(covariance))
    return NormalMixture(np.ones(1), mean[None], root[None])


def _count_complete(release: Release, view: RecordView) -> float:
    """Number of complete records, after one more count of them: the sum of squared intercepts."""
    squares = MIXTURE.intercept**2
    view.complete.add(
        float(release.matrix()[0, 0]) / squares, float(release.matrix_sd()[0, 0]) / squares
    )
    return view.complete.number


def refine_normal(view: RecordView, normal: NormalMixture, shares: int) -> NormalMixture:
    """A normal distribution, after a look at its whitened residuals."""
    return _refined(view, normal, shares)[0]


def _refined(
    view: RecordView, normal: NormalMixture, shares: int, *, hidden: bool = True
) -> tuple[NormalMixture, LengthHistogram]:
    """The same, and the histogram of the residuals' lengths."""
    d = normal.means.shape[1]
    root = normal.roots[0]
    whitened = view.metric(normal.whitening[0], normal.means @ normal.whitening[0])
    for_lengths, for_moments = _divided(shares)
    lengths = residual_lengths(view, whitened, (0.0,), for_lengths)
    gain = clip_gains(d, best_radius(lengths, d, for_lengths / for_moments, hidden=hidden))
    release = view.release(CentredGram(whitened, gain.radius, MIXTURE.intercept), for_moments)
    n = _count_complete(release, view)
    moments = release.matrix() / n
    noise_sd = float(release.matrix_sd()[0, 1]) / n
    shift, values, vectors = correct_moments(
        gain,
        moments[0, 1:] / MIXTURE.intercept,
        moments[1:, 1:],
        noise_sd**2,
    )
    new_root = _updated_root(root, values, vectors)
    moved = NormalMixture(normal.weights, normal.means + root @ shift, new_root[None])
    return moved, lengths


def _divided(shares: int) -> tuple[int, int]:
    """Budget shares of a look for the lengths of residuals, and for their moments."""
    for_lengths = max(shares // MIXTURE.length_shares, 1)
    return for_lengths, shares - for_lengths


def residual_lengths(
    view: RecordView,
    whitened: Metric,
    levels: Sequence[float] | Array,
    shares: int,
    words: tuple[WordTable, ...] = (),
) -> LengthHistogram:
    """A histogram of the lengths of whitened residuals, from the likeliest component."""
    first = chi_quantile(whitened.columns, MIXTURE.clip_quantile)
    edges = clip_edges(first, whitened.longest)
    return _count_lengths(view, whitened, edges, shares, levels, words)


def best_radius(
    lengths: LengthHistogram, d: int, shares: float, components: int = 1, *, hidden: bool = True
) -> float:
    """Clip threshold of whitened residuals (d,), by a histogram of their lengths.

    What is clipped is put back as if residuals were normal. The threshold is as wide as it must be
    for that to be true, and as the noise allows: as the budget grows, it grows to the box.
    ``shares``: of the histogram, for each of the moments that are clipped; ``components``: whose
    moments are asked for one by one. ``hidden``: whether a bias counts that noise may hide.
    """
    wide_enough = lengths.edges >= chi_quantile(d, MIXTURE.clip_quantile)
    thresholds = lengths.edges[wide_enough]
    gains = [clip_gains(d, radius) for radius in thresholds.tolist()]
    squares = thresholds**2
    trace = np.array([gain.trace_gain for gain in gains])
    deviation = np.array([gain.deviation_gain for gain in gains])
    size = lengths.n / components
    idle = MIXTURE.idle_noise * math.sqrt(size)
    noise = _gram_noise(lengths.noise_sd, shares)
    # E‖noise‖² of a symmetric matrix (d, d): of its trace, and of the rest
    cost2 = 2 * np.maximum(noise / trace, idle) ** 2
    cost2 += (d * (d + 1) - 2) * np.maximum(noise / deviation, idle) ** 2
    return lengths.best_clip(thresholds, cost2 / size**2, trace * squares, d, hidden=hidden)


def _updated_root(root: Array, values: Array, vectors: Array) -> Array:
    """Root (d, d) of a covariance, given that of the whitened residuals by its eigenpairs."""
    return _held(root @ (vectors * np.sqrt(values)))


def _held(roots: Array) -> Array:
    """Symmetric roots (…, d, d) of the same covariances, in no direction below the least."""
    variances, axes = np.linalg.eigh(roots @ roots.swapaxes(-1, -2))
    held = np.sqrt(np.maximum(variances, MIXTURE.least_sd**2))
    return np.asarray((axes * held[..., None, :]) @ axes.swapaxes(-1, -2))


def find_centres(
    view: RecordView,
    pooled: NormalMixture,
    components: int,
    shares: int,
    *,
    units: Array | None = None,
    directions: int | None = None,
) -> NormalMixture:
    """Weights and centres of components, with one covariance for all.

    Many centres move in the leading directions of the ``pooled`` normal distribution, by nearest
    records; are merged; and move again, by soft assignments. ``shares``: of each step. ``units``
    (d,): in which coordinates are measured to find the leading directions; ``directions``: how
    many.
    """
    mean = pooled.means[0]
    d = pooled.means.shape[1]
    if units is None:
        units = np.ones(d)
    if directions is None:
        directions = max(2, math.ceil(MIXTURE.directions_per_component * components))
    q = min(d, directions)
    values, vectors = np.linalg.eigh(pooled.covariances[0] / np.outer(units, units))
    values, vectors = values[-q:], vectors[:, -q:]
    whiten = vectors / units[:, None] / np.sqrt(values)  # (x − mean)·whiten has covariance I
    unwhiten = vectors * units[:, None] * np.sqrt(values)
    random = np.random.default_rng(0)  # public: the same for all records
    searching = MIXTURE.centres_per_component * components
    weights = np.full(searching, 1 / searching)
    means = random.normal(size=(searching, q))
    hard_steps, soft_steps = MIXTURE.centre_steps
    move = partial(_centre_step, view, whiten, mean, shares=shares)
    for step in range(hard_steps):
        averaged = max(step - MIXTURE.splitting_steps + 1, 1)
        decoded, means = move(weights, means, hard=True, least_step=1 / averaged)
        weights = component_weights(decoded)
        found = decoded.counts > MIXTURE.visible_centre * decoded.counts_sd
        if step < MIXTURE.splitting_steps:
            weights, means = _reseeded(weights, means, found, random)
    if np.count_nonzero(found) >= components:
        weights, means = weights[found] / weights[found].sum(), means[found]
    weights, means = _merge_centres(weights, means, components)
    for step in range(soft_steps):
        decoded, means = move(weights, means, hard=False, least_step=1 / (step + 1))
        weights = component_weights(decoded)
    from_mean = means @ unwhiten.T
    white = (from_mean - weights @ from_mean) @ pooled.whitening[0]
    within = clamp_eigenvalues(
        np.eye(d) - white.T @ (white * weights[:, None]), MIXTURE.narrowest_variance
    )
    root = _updated_root(pooled.roots[0], *np.linalg.eigh(within))
    return NormalMixture(weights, mean + from_mean, np.repeat(root[None], len(means), axis=0))


def _centre_step(
    view: RecordView,
    whiten: Array,
    origin: Array,
    weights: Array,
    means: Array,
    *,
    shares: int,
    hard: bool,
    least_step: float,
) -> tuple[DecodedMoments, Array]:
    """What one EM step with one covariance releases, and means (K, q) after it.

    In the coordinates (x − origin)·whiten, in which all records have covariance I. ``hard``: each
    record belongs to its nearest centre.
    """
    q = means.shape[1]
    radius = chi_quantile(q, MIXTURE.clip_quantile)
    root = np.eye(q)
    log_weights = np.zeros(len(means))
    if not hard:
        root = _within_covariance_root(weights, means)
        log_weights = np.log(weights)
    map_ = np.linalg.inv(root).T
    statistic = residual_moments(
        view.metric(whiten @ map_, (origin @ whiten + means) @ map_),
        radius=np.full(len(means), radius),
        levels=log_weights,
        hard=hard,
    )
    decoded = ResidualMoments.decode(view.release(statistic, shares))
    sizes = np.maximum(decoded.counts, MIXTURE.least_count * decoded.counts_sd)
    shift = _shrunk_shift(decoded, sizes, clip_gains(q, radius), least_step)
    return decoded, means + shift @ root.T


def _reseeded(
    weights: Array, means: Array, found: NDArray[np.bool_], random: np.random.Generator
) -> tuple[Array, Array]:
    """Centres (K, q) of which those that no records are near share the records of large ones.

    A centre without records would only follow the noise. It is put beside the one with the largest
    weight, on a random side: if that one stands for two heaps, they are told apart.
    """
    weights, means = weights.copy(), means.copy()
    for lost in np.flatnonzero(~found):
        largest = int(weights.argmax())
        side = random.normal(size=means.shape[1])
        side *= MIXTURE.split_distance / float(np.linalg.norm(side))
        means[lost] = means[largest] + side
        means[largest] = means[largest] - side
        weights[lost] = weights[largest] = weights[largest] / 2
    return weights, means


def component_weights(decoded: DecodedMoments) -> Array:
    """Probabilities of the components, none below the noise of its count."""
    counts = np.maximum(decoded.counts, decoded.counts_sd)
    return np.asarray(counts / counts.sum())


def add_counts(view: RecordView, decoded: DecodedMoments) -> None:
    """Each complete record has responsibilities that add up to one."""
    view.complete.add(
        float(decoded.counts.sum()), float(decoded.counts_sd) * math.sqrt(len(decoded.counts))
    )


def _merge_centres(weights: Array, means: Array, components: int) -> tuple[Array, Array]:
    """Centres merged by Ward's rule until so many are left, in within-component distances."""
    whiten = np.linalg.inv(_within_covariance_root(weights, means)).T
    weights, joined = merge_components(weights, means @ whiten, components)
    return weights, joined @ np.linalg.inv(whiten)


def _within_covariance_root(weights: Array, means: Array) -> Array:
    """Root of the covariance within components, where that of all records is I."""
    middle = weights @ means
    between = (means - middle).T @ ((means - middle) * weights[:, None])
    within = clamp_eigenvalues(np.eye(means.shape[1]) - between, MIXTURE.narrowest_variance)
    return np.asarray(np.linalg.cholesky(within))


def em_step(
    view: RecordView,
    mixture: NormalMixture,
    shares: int,
    *,
    covariance_type: str,
    least_step: float,
    moment_weights: tuple[int, int, int] | None = None,
    words: tuple[WordTable, ...] = (),
    radius: float | None = None,
) -> NormalMixture:
    """One step of expectation–maximisation in all directions.

    ``shares``: budget shares that it spends. ``least_step``: fraction of the estimated shift by
    which a centre moves at least, however large the noise in it is. ``moment_weights``: squared
    weights of counts, sums and second moments. ``words``:
    probabilities of the levels of words, which responsibilities depend on, too. ``radius``: clip
    threshold of residuals; without one, some of the shares are spent on finding it.
    """
    components, d = mixture.means.shape
    if radius is None:
        for_lengths, shares = _divided(shares)
        asked_alone = 1 if covariance_type == "tied" else components
        lengths = mixture_lengths(view, mixture, for_lengths, words)
        radius = best_radius(lengths, d, for_lengths / shares, asked_alone)
    gain = clip_gains(d, radius)
    decoded = _residual_moments(
        view, mixture, shares, gain.radius, covariance_type, moment_weights, words
    )
    add_counts(view, decoded)
    sizes = np.maximum(decoded.counts, MIXTURE.least_count * decoded.counts_sd)
    weights = component_weights(decoded)
    shift = _shrunk_shift(decoded, sizes, gain, least_step)
    means = mixture.means + np.einsum("kp,kdp->kd", shift, mixture.roots)
    if covariance_type == "tied":
        root = _tied_root(decoded, mixture.roots[0], weights, shift, gain, view.complete.number)
        return NormalMixture(weights, means, np.repeat(root[None], components, axis=0))
    roots = []
    for k in range(components):
        noise2 = (decoded.second_sd / sizes[k]) ** 2 + gain.identity_moment**2 / sizes[k]
        second = np.squeeze(decoded.second[k] / sizes[k])
        _, values, vectors = correct_moments(gain, shift[k] * gain.mean_gain, second, noise2)
        roots.append(_updated_root(mixture.roots[k], values, vectors))
    return NormalMixture(weights, means, np.array(roots))


def mixture_lengths(
    view: RecordView, mixture: NormalMixture, shares: int, words: tuple[WordTable, ...] = ()
) -> LengthHistogram:
    """A histogram of the lengths of a mixture's whitened residuals."""
    centres = np.einsum("kd,kdp->kp", mixture.means, mixture.whitening)
    where = view.metric(mixture.whitening, centres)
    return residual_lengths(view, where, mixture.log_heights, shares, words)


def _residual_moments(
    view: RecordView,
    mixture: NormalMixture,
    shares: int,
    radius: float,
    covariance_type: str,
    moment_weights: tuple[int, int, int] | None,
    words: tuple[WordTable, ...],
) -> DecodedMoments:
    """Release the moments of a mixture's whitened residuals, under its responsibilities."""
    tied = covariance_type == "tied"
    maps = mixture.whitening
    if tied:
        maps = mixture.whitening[0]
    if moment_weights is None:
        moment_weights = MIXTURE.uncertain_centres.moment_weights
        if tied:
            moment_weights = MIXTURE.tied_moment_weights
    centres = np.einsum("kd,kdp->kp", mixture.means, mixture.whitening)
    statistic = residual_moments(
        view.metric(maps, centres),
        radius=np.full(len(centres), radius),
        levels=mixture.log_heights,
        second=_SECOND_MOMENTS[covariance_type],
        together=tied,
        weights=moment_weights,
        words=words,
    )
    return ResidualMoments.decode(view.release(statistic, shares))


def _shrunk_shift(
    decoded: DecodedMoments, sizes: Array, gain: ClipGains, least_step: float
) -> Array:
    """By how much each centre moves, (K, d) in whitened units: less where it is mostly noise."""
    shift = decoded.first / sizes[:, None] / gain.mean_gain
    noise2 = (decoded.first_sd / sizes / gain.mean_gain) ** 2 + 1 / sizes
    signal2 = np.maximum((shift**2).mean(axis=1) - noise2, 0.0)
    return np.asarray(shift * np.maximum(signal2 / (signal2 + noise2), least_step)[:, None])


def _tied_root(
    decoded: DecodedMoments, root: Array, weights: Array, shift: Array, gain: ClipGains, n: float
) -> Array:
    """Root of the one covariance within all components."""
    total = decoded.second[0] / n
    between = np.einsum("k,kp,kq->pq", weights, shift, shift) * gain.deviation_gain
    noise2 = (decoded.second_sd / n) ** 2 + gain.identity_moment**2 / n
    _, values, vectors = correct_moments(gain, np.zeros(len(root)), total - between, noise2)
    return _updated_root(root, values, vectors)


def fit_histogram(
    view: RecordView,
    pooled: NormalMixture,
    components: int,
    shares: int,
    count_sd: float,
    *,
    at_most: bool = False,
) -> NormalMixture:
    """A mixture fitted to one noisy histogram of whitened records; for one or two dimensions.

    ``count_sd``: noise of a count with one budget share. ``at_most``: whether there may be fewer
    components, if the histogram says so.
    """
    d = pooled.means.shape[1]
    half_width = MIXTURE.histogram_half_width
    cells = MIXTURE.histogram_cells * view.complete.number * math.sqrt(shares) / count_sd
    bins = int(min(max(cells ** (1 / d), MIXTURE.fewest_bins), MIXTURE.most_bins[d - 1]))
    whitened = view.metric(pooled.whitening[0], pooled.means @ pooled.whitening[0])
    release = view.release(CellCounts(whitened, half_width, bins), shares)
    width = 2 * half_width / bins
    line = (np.arange(bins) + 0.5) * width - half_width
    points = np.stack(np.meshgrid(*[line] * d, indexing="ij"), axis=-1).reshape(-1, d)
    counts = significant_counts(release.value.reshape((bins,) * d), float(release.sd[0]))
    noise = math.hypot(float(release.sd[0]), 0.5)  # cut to whole records
    fit = partial(grid_mixture, points, counts, width, count_sd=noise)
    if at_most:
        inside = np.abs(points).max(axis=1) < half_width - width  # the outermost cells hold more
        whitened_mixture = best_by_counts(
            fit, components, points[inside], release.value[inside], width, noise
        )
    else:
        whitened_mixture = fit(components)
    return NormalMixture(
        whitened_mixture.weights,
        pooled.means + whitened_mixture.means @ pooled.roots[0].T,
        pooled.roots[0] @ whitened_mixture.roots,
    )


def with_axis_aligned_covariances(mixture: NormalMixture, *, spherical: bool) -> NormalMixture:
    """The mixture with covariances along the columns only, or the same in all directions."""
    variances = np.diagonal(mixture.covariances, axis1=1, axis2=2)
    if spherical:
        variances = np.repeat(variances.mean(axis=1, keepdims=True), variances.shape[1], axis=1)
    roots = np.array([np.diag(np.sqrt(v)) for v in variances])
    return NormalMixture(mixture.weights, mixture.means, roots)


def fits_better(
    view: RecordView,
    mixture: NormalMixture,
    other: NormalMixture,
    shares: int,
    handicap: float = 0.0,
) -> bool:
    """Whether the first mixture has the larger log-likelihood, by a release.

    ``handicap``: so many nats a record it may be behind.
    """
    combined = NormalMixture(
        np.concatenate([mixture.weights, other.weights]),
        np.vstack([mixture.means, other.means]),
        np.concatenate([mixture.roots, other.roots]),
    )
    centres = np.einsum("kd,kdp->kp", combined.means, combined.whitening)
    where = view.metric(combined.whitening, centres)
    return likelier(view, where, combined.log_heights, len(mixture.weights), shares, (), handicap)


def likelier(
    view: RecordView,
    where: Metric,
    log_heights: Array,
    first: int,
    shares: int,
    words: tuple[WordTable, ...] = (),
    handicap: float = 0.0,
) -> bool:
    """Whether the ``first`` components have the larger log-likelihood, or the others.

    ``handicap``: so many nats a record they may be behind.

    By the mean of log-ratios, which are clipped: the less, the less noise there is. They are
    clipped at a wide threshold besides: a few records that are next to impossible may decide.
    """
    noise = 2 * view.curator.noise_multiplier / math.sqrt(shares)
    largest = MIXTURE.comparison_noise * view.complete.number / noise
    narrow = max(largest, MIXTURE.least_log_ratio)
    wide = MIXTURE.wide_log_ratio * narrow
    levels = tuple(log_heights.tolist())
    release = view.release(LogRatio(where, levels, first, (narrow, wide), words), shares)
    much_worse = release.value[1] < -MIXTURE.visible_ratio * release.sd[1]
    allowed = handicap / narrow * view.complete.number
    return bool(release.value[0] > -allowed and not much_worse)


def fewest_components(
    view: RecordView,
    mixture: LatentClassMixture,
    count_sd: float,
    better: Callable[[LatentClassMixture, LatentClassMixture, float], bool],
) -> tuple[LatentClassMixture, int]:
    """The mixture with as many of its components joined as the records allow; questions asked.

    Along the path of joined pairs, by halving: is it ``better`` than one with more components, or
    by a handicap behind, which is the price that the Bayesian information criterion sets on the
    weights and means of the components between? Components within the noise of a count, which is
    ``count_sd`` with one budget share, are left out before.
    """
    n = view.complete.number
    price = (1 + view.dimension) * math.log(max(n, 2.0)) / (2 * n)
    path = merge_path(mixture, MIXTURE.visible_centre * count_sd / n)
    least, most, asked = 1, max(path), 0
    while least < most:
        middle = (least + most) // 2
        asked += 1
        if better(path[middle], path[most], (most - middle) * price):
            most = middle
        else:
            least = middle + 1
    return path[most], asked
