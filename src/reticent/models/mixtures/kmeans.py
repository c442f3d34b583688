"""K-means with differential privacy. Proof: kmeans.md.

Few columns (up to three): counts on a grid over the box, once; K centres of the cells, weighted by
their counts, for free. Where n allows it, a coarse grid first, then leaves of its cells, the finer
the more records a cell has, and blocks of cells with few records, with the records' mean position
in each; and at the end one Lloyd step on the records themselves.

More columns: a private covariance gives the directions in which records differ; many centres, drawn
from the normal distribution with that covariance, take Lloyd steps in these directions; k-means of
the many centres, for free, leaves K; these take the last steps in all columns.

A Lloyd step releases for each centre how many records are nearest to it, and the sum of their
differences from it, clipped to a threshold that follows their mean square: all jointly
(`mixture_moments.residual_moments`).
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from reticent.inference.mixtures.adaptive_grid import (
    AdaptiveGridCounts,
    cell_splits,
    merge_light_cells,
)
from reticent.inference.mixtures.spread import looks_pay
from reticent.inference.mixtures.weighted_kmeans import (
    nearest_centres,
    residual_radius,
    significant_points,
    squared_distances,
    weighted_kmeans,
)
from reticent.models.base import PrivateEstimator
from reticent.models.mixtures.complete_records import CompleteRecords, of_complete
from reticent.models.mixtures.mixed_columns import (
    check_encoded_width,
    distance_encoding,
    encode_complete,
    encoded_bounds,
    encoded_edges,
    encoded_names,
    encoded_units,
)
from reticent.models.mixtures.record_view import count_sd
from reticent.models.mixtures.settings import KMEANS
from reticent.models.mixtures.standardized_covariance import (
    fit_around,
    fit_covariance,
    look_for_middle,
    mean_noise,
)
from reticent.models.unit_total import unit_total
from reticent.privacy.bounds import Bounds
from reticent.privacy.curator import Oracle
from reticent.privacy.row_maps.features.column_encoding import encoded_widths
from reticent.privacy.row_maps.grid_counts import GridCounts, LeafSums, bins_for
from reticent.privacy.row_maps.mixture_moments import NearestCounts, metric, residual_moments
from reticent.validation import check_integer

__all__ = ["KMeans"]

Array = NDArray[np.float64]


@dataclass(repr=False, eq=False)
class KMeans(ClassNamePrefixFeaturesOutMixin, TransformerMixin, PrivateEstimator):  # type: ignore[misc]
    """K-means clustering, with differential privacy.

    Distances are measured on the scale of the bounds: each column's range counts as one length
    (with ``Bounds(norm=…)``, in the columns' own units). Two different words, and opposite points
    of a cycle, are half that length apart; words in order count as numbers. There is no
    ``labels_``, ``inertia_`` or ``n_iter_``: they would reveal single records.

    Parameters
    ----------
    n_clusters : int
        Number of clusters.
    bounds, epsilon, delta, ledger, dataset, records_per_person, random_state
        As for every private estimator (``PrivateEstimator``). ``delta`` must be positive.

    Attributes
    ----------
    cluster_centers_ : array of shape (n_clusters, n_features)
        The centres, inside the bounds, the one with most records first. A column of words has the
        share of each level in its place (of two levels, that of the second), a cycle its cosine
        and sine.
    encoded_names_ : list of str
        Names of the numbers of a centre: "age", "sex=M", "hour (cos)".
    cluster_sizes_, cluster_sizes_sd_ : arrays of shape (n_clusters,)
        How many records are nearest to each centre, released once the centres stand, and the
        standard deviation of the privacy noise in it.
    n_complete_, n_complete_sd_ : float
        Number of records that lack no value, by the releases, and the noise in it.
    guarantee_, releases_, n_features_in_, feature_names_in_
        As for every private estimator.

    Privacy
    -------
    Neighbours: one record replaced, number of records public. Released: with up to three columns
    the counts on a grid, once, and where public numbers allow it the counts of leaves and blocks of
    its cells with the sums of positions in them, and jointly for each centre the number of records
    nearest to it and the sum of their clipped differences from it, up to three times; with more
    columns the moments that ``PCA`` releases, and such joint sums up to eleven times; last, the
    number of records nearest to each centre as it is told. Must be public: the bounds, the
    number of clusters and of records, all parameters. ``predict``, ``transform`` and ``score`` read
    the records they are given without protection.

    Examples
    --------
    >>> import numpy as np, reticent
    >>> rng = np.random.default_rng(0)
    >>> X = rng.choice([[2.0, 3.0], [7.0, 8.0]], size=20_000) + 0.5 * rng.normal(size=(20_000, 2))
    >>> model = reticent.KMeans(2, bounds=reticent.Bounds(x=(0, 10)), epsilon=1, delta=1e-6).fit(X)
    >>> bool(np.abs(np.sort(model.cluster_centers_, axis=0) - [[2, 3], [7, 8]]).max() < 0.1)
    True
    """

    _pure = False
    _releases = KMEANS.shares
    _n_features_out = property(lambda self: len(self.cluster_centers_))

    n_clusters: int = 8

    def _check(self) -> None:
        check_integer("n_clusters", self.n_clusters, 1, KMEANS.most_clusters)

    def _validate_before_charge(self, bounds: Bounds) -> None:
        check_encoded_width(distance_encoding(bounds))

    def learn(self, curator: Oracle) -> None:
        """Find centres from a grid, or by searching in the directions of most variance."""
        noise = curator.noise_multiplier
        complete = CompleteRecords(unit_total(curator))
        random = np.random.default_rng(0)  # public: the same in every fit
        k = int(self.n_clusters)
        encoding = distance_encoding(curator.bounds)
        if encoding or len(curator.bounds.x) > KMEANS.most_grid_columns:
            centres = _search_centres(curator, complete, noise, k, random, encoding)
        elif curator.n * math.sqrt(KMEANS.shares) / (noise * k) >= KMEANS.refined_cluster_size:
            centres = _cluster_leaves(curator, complete, noise, k, random)
        else:
            centres = _cluster_grid(curator, complete, noise, k, random)
        low, high = curator.bounds.scale_unclipped(np.array(curator.bounds.x).T)
        if encoding:
            low, high = encoded_edges(encoding)
        centres = np.clip(centres, low, high)
        sizes, sizes_sd = _nearest_counts(curator, complete, centres, encoding)
        order = np.argsort(-sizes, kind="stable")
        self._encoding = encoding
        self._centres = centres[order]
        offset, scale = encoded_units(curator.bounds, encoding)
        self.cluster_centers_ = offset + scale * self._centres
        self.encoded_names_ = encoded_names(curator.bounds, encoding)
        self.encoded_bounds_ = encoded_bounds(curator.bounds, encoding)
        self.cluster_sizes_ = np.clip(sizes[order], 0, unit_total(curator).most)
        self.cluster_sizes_sd_ = np.full(k, sizes_sd)
        self.n_complete_ = complete.number
        self.n_complete_sd_ = complete.sd

    def _coordinates(self, X: object) -> Array:
        """Scaled records, encoded where columns are mixed; NaN where a value is missing."""
        return encode_complete(self._unit(X), self._encoding)

    def predict(self, X: object) -> NDArray[np.intp]:
        """Index of the nearest centre of each record; −1 where a value is missing.

        Not protected.
        """
        distances = self.transform(X)
        return np.where(np.isnan(distances[:, 0]), -1, distances.argmin(axis=1))

    def transform(self, X: object) -> Array:
        """Distances of each record from all centres, on the bounds' scale. Not protected.

        NaN where a value is missing.
        """

        def distances(unit: Array) -> Array:
            return np.sqrt(squared_distances(unit, self._centres))

        return of_complete(self._coordinates(X), distances, len(self._centres))

    def score_samples(self, X: object) -> Array:
        """Minus the squared distance of each record from its nearest centre, on the bounds' scale.

        NaN where a value is missing. Not protected.
        """

        def score(unit: Array) -> Array:
            return -nearest_centres(unit, self._centres)[1]

        return of_complete(self._coordinates(X), score)

    def score_limits(self) -> tuple[float, float]:
        """Least and largest value that ``score_samples`` can have."""
        if self._encoding:
            low, high = encoded_edges(self._encoding)
            return -float(((high - low) ** 2).sum()), 0.0
        return -4.0 * self.releases_[0].bounds.radius2, 0.0


def _nearest_counts(
    curator: Oracle, complete: CompleteRecords, centres: Array, encoding: tuple[int, ...]
) -> tuple[Array, float]:
    """How many records are nearest to each of the centres (K, d), (K,), and the noise of each."""
    where = metric(np.eye(centres.shape[1]), centres, encoding)
    release = curator.release(NearestCounts(where), shares_spent=KMEANS.count_shares)
    sd = count_sd(release)
    complete.add(float(release.value.sum()), sd * math.sqrt(len(centres)))
    return release.value, sd


@dataclass(frozen=True)
class _Clusters:
    """Centres (K, p) after a step, and the numbers of records before it (K,), with noise (K,)."""

    centres: Array
    sizes: Array
    sizes_sd: Array


def _cluster_grid(
    curator: Oracle, complete: CompleteRecords, noise: float, k: int, random: np.random.Generator
) -> Array:
    """K-means of the noisy cells of one grid, weighted by their counts: centres (K, d).

    ``noise``: multiplier of one budget share.
    """
    d = len(curator.bounds.x)
    shares = KMEANS.shares - KMEANS.count_shares
    grid = GridCounts(d, bins_for(curator.n, noise * math.sqrt(2 / shares), d))
    release = curator.release(grid, shares_spent=shares)
    cell_sd = count_sd(release)
    complete.add(float(release.value.sum()), cell_sd * math.sqrt(len(release.value)))
    points, weights = significant_points(release.value, grid.bins, d, cell_sd)
    if (weights > 0).sum() < k:
        points = grid.centres()
        weights = np.maximum(release.value, 0.0)
    return weighted_kmeans(points, weights, k, random)


def _cluster_leaves(
    curator: Oracle, complete: CompleteRecords, noise: float, k: int, random: np.random.Generator
) -> Array:
    """K-means of leaves and blocks of a coarse grid's cells, and one Lloyd step on the records."""
    d = len(curator.bounds.x)
    leaves = _release_leaves(curator, complete, noise, k)
    points, weights, variances = leaves.points()
    if (weights > 0).sum() < k:
        points = leaves.corner + leaves.width[:, None] / 2
        weights = np.maximum(leaves.counts, 0.0)
        variances = leaves.width**2 * d / 12
    centres = weighted_kmeans(points, weights, k, random)
    assigned, distance2 = nearest_centres(points, centres)
    sizes = np.maximum(np.bincount(assigned, weights, k), leaves.counts_sd)
    mean_square = (
        np.bincount(assigned, weights * (distance2 + variances), k) / sizes
        + (leaves.width.min() ** 2) * d / 12
    )
    steps = 1
    step_noise = 2 * noise / math.sqrt(KMEANS.step_shares)
    clip = residual_radius(complete.number, step_noise, k, d)
    if clip > KMEANS.idle_clip:
        steps = KMEANS.step_shares
    clip = max(clip, KMEANS.step_clip)
    clusters = _Clusters(centres, sizes, np.ones(k))
    for _ in range(steps):
        clusters, _ = _lloyd_step(
            curator,
            complete,
            np.eye(d),
            clusters.centres,
            clip * np.sqrt(mean_square),
            shares=KMEANS.step_shares // steps,
            shrink=True,
        )
    return clusters.centres


def _release_leaves(
    curator: Oracle, complete: CompleteRecords, noise: float, k: int
) -> AdaptiveGridCounts:
    """Release a coarse grid, and then leaves of its heavy cells and blocks of its light ones."""
    d = len(curator.bounds.x)
    # as in `count_sd`: however large the budget is, counts are half a record off
    coarse_noise = math.hypot(noise * math.sqrt(2 / KMEANS.coarse_shares), 0.5)
    grid = GridCounts(d, bins_for(curator.n, coarse_noise, d, KMEANS.coarse_cells))
    coarse = curator.release(grid, shares_spent=KMEANS.coarse_shares)
    complete.add(float(coarse.value.sum()), count_sd(coarse) * math.sqrt(len(coarse.value)))
    leaf_sd = noise * math.sqrt(2 * (1 + d / 4) / KMEANS.leaf_shares)
    cut = cell_splits(coarse.value, leaf_sd, d)
    blocks = merge_light_cells(coarse.value, cut, d, complete.number, k)
    statistic = LeafSums(d, grid.bins, cut, blocks)
    fine = LeafSums.decode(curator.release(statistic, shares_spent=KMEANS.leaf_shares))
    return AdaptiveGridCounts(
        coarse.value,
        count_sd(coarse),
        np.array(statistic.blocks),
        *statistic.leaves(),
        fine.counts,
        fine.places,
        fine.counts_sd,
        fine.places_sd,
    )


def _search_centres(
    curator: Oracle,
    complete: CompleteRecords,
    noise: float,
    k: int,
    random: np.random.Generator,
    encoding: tuple[int, ...],
) -> Array:
    """Many centres search where records vary most; then K of them move in all columns.

    Where public numbers say that noise would move centres farther than records lie apart, most is
    spent on the mean and the covariance instead, and centres are placed along its first axes.
    """
    d = sum(encoded_widths(encoding)) if encoding else len(curator.bounds.x)
    step_noise = 2 * noise / math.sqrt(KMEANS.final_step_shares)
    if KMEANS.search_clip * step_noise * k * math.sqrt(d) > curator.n:
        return _place_centres(curator, complete, noise, d, k, encoding)
    covariance = fit_covariance(
        curator, noise, KMEANS.covariance_shares, complete=complete, encoding=encoding
    )
    values, vectors = np.linalg.eigh(covariance.covariance)
    directions = min(len(values), math.ceil(KMEANS.directions_per_cluster * k))
    variances = np.maximum(values[: -directions - 1 : -1], 1e-9)
    axes = vectors[:, : -directions - 1 : -1]
    origin = covariance.mean @ axes
    # as many as have records enough to stand far above the noise
    carried = curator.n / (KMEANS.clear_centre * noise * math.sqrt(directions) * k)
    searching = k * int(min(max(carried, KMEANS.centres_per_cluster), KMEANS.most_per_cluster))
    start = origin + random.standard_normal((searching, directions)) * np.sqrt(variances)
    many = _Clusters(start, np.ones(searching), np.ones(searching))
    mean_square = float(variances.sum())
    clip = min(
        residual_radius(complete.number, 2 * noise, searching, directions), KMEANS.search_clip
    )
    for _ in range(KMEANS.search_steps):
        many, mean_square = _lloyd_step(
            curator,
            complete,
            axes,
            many.centres,
            _clip_thresholds(mean_square, clip, searching),
            shares=1,
            encoding=encoding,
        )
    weights = np.maximum(many.sizes - 2 * many.sizes_sd, 0.0)
    few = weighted_kmeans(many.centres, weights, k, random)
    centres = np.clip(covariance.mean + (few - origin) @ axes.T, -1.0, 1.0)
    clusters = _Clusters(centres, many.sizes[:k], many.sizes_sd[:k])
    other_directions = 0.0
    if directions < len(values):
        other_directions = float(np.maximum(values[:-directions], 0.0).sum())
    mean_square = 2 * mean_square + other_directions
    shares = KMEANS.final_step_shares
    steps = KMEANS.final_steps
    clip = residual_radius(complete.number, 2 * noise / math.sqrt(shares), k, len(values))
    if clip > KMEANS.idle_clip:
        steps = steps * shares
        shares = 1
    for _ in range(steps):
        clusters, mean_square = _lloyd_step(
            curator,
            complete,
            np.eye(len(values)),
            clusters.centres,
            _clip_thresholds(mean_square, clip, k),
            shares=shares,
            encoding=encoding,
            middle=covariance.mean,
        )
    return clusters.centres


def _place_centres(
    curator: Oracle,
    complete: CompleteRecords,
    noise: float,
    d: int,
    k: int,
    encoding: tuple[int, ...],
) -> Array:
    """Centres at the mean, and one standard deviation from it along the axes of most variance.

    More centres than one never cost more than the one. One Lloyd step moves them as far as that
    stands above the noise. Where it would hide the axes, all is spent on one look for the mean, and
    the columns take their place.
    """
    shares = KMEANS.lost_covariance_shares
    looks = KMEANS.lost_looks
    noise_length = mean_noise(curator, noise, shares, d)
    pays = [looks_pay(noise_length, part) for part in KMEANS.lost_look_parts]
    if not any(pays):
        every = KMEANS.shares - KMEANS.count_shares
        middle = look_for_middle(curator, noise, d, complete, encoding, looks=1, each=every)
        return _around(middle.mean, np.eye(d) * math.sqrt(middle.square / d), k)
    each = shares // looks - sum(pays)
    middle = look_for_middle(curator, noise, d, complete, encoding, looks=looks, each=each)
    found = fit_around(curator, middle, shares - looks * each, complete, encoding)
    values, vectors = np.linalg.eigh(found.covariance)
    centres = _around(middle.mean, (vectors * np.sqrt(values))[:, ::-1].T, k)
    clusters, _ = _lloyd_step(
        curator,
        complete,
        np.eye(d),
        centres,
        _clip_thresholds(middle.square, KMEANS.search_clip, k),
        shares=KMEANS.shares - KMEANS.lost_covariance_shares - KMEANS.count_shares,
        shrink=True,
        encoding=encoding,
    )
    return clusters.centres


def _around(mean: Array, axes: Array, k: int) -> Array:
    """Centres (k, d) at the mean (d,), and at both ends of axes (·, d) around it."""
    both = np.stack([axes, -axes], axis=1).reshape(-1, len(mean))
    away = np.zeros((k, len(mean)))
    away[1 : 1 + len(both)] = both[: k - 1]
    return np.clip(mean + away, -1.0, 1.0)


def _clip_thresholds(mean_square: float, clip: float, k: int) -> Array:
    """The same clip threshold for all centres; ``clip`` is in root mean squares."""
    return np.full(k, math.sqrt(max(mean_square, 1e-8)) * clip)


def _lloyd_step(
    curator: Oracle,
    complete: CompleteRecords,
    axes: Array,
    centres: Array,
    clip_thresholds: Array,
    *,
    shares: int,
    shrink: bool = False,
    encoding: tuple[int, ...] = (),
    middle: Array | None = None,
) -> tuple[_Clusters, float]:
    """Clusters after one Lloyd step along ``axes`` (d, p), and the mean square of residuals.

    Centres are (K, p), clip thresholds (K,). ``shrink``: centres move only as far as their steps
    stand above the noise. ``middle`` (p,): of all records, from which centres are only as far as
    that stands above the noise (James and Stein): where there is noise alone, one centre is best.
    """
    k, p = centres.shape
    diameter = 2 * math.sqrt(p if encoding else curator.bounds.radius2)
    clip_thresholds = np.minimum(clip_thresholds, diameter)
    statistic = residual_moments(
        metric(axes, centres, encoding),
        radius=clip_thresholds,
        second="trace",
        together=True,
        weights=KMEANS.moment_weights,
        hard=True,
    )
    release = curator.release(statistic, shares_spent=shares)
    sizes = release.value[:k]
    sums = release.value[k:-1].reshape(k, p)
    square = float(release.value[-1])
    sizes_sd = release.sd[:k]
    square_sd = float(release.sd[-1])
    complete.add(float(sizes.sum()), float(sizes_sd[0]) * math.sqrt(k))
    divisors = np.maximum(sizes, KMEANS.least_count * sizes_sd)
    step = sums / divisors[:, None] * (sizes > 0)[:, None]
    noise2 = p * (release.sd[k] / divisors) ** 2
    if shrink:
        step *= _signal(step, noise2)
    moved = centres + clip_thresholds[:, None] * step
    if middle is not None:
        away = moved - middle
        moved = middle + away * _signal(away, noise2 * clip_thresholds**2)
    fraction = min(max((square + square_sd) / complete.number, KMEANS.least_mean_square), 1.0)
    mean_square = float((clip_thresholds**2).mean()) * fraction
    return _Clusters(moved, sizes, sizes_sd), mean_square


def _signal(vectors: Array, noise2: Array) -> Array:
    """Which fraction of vectors (K, p) stands above their noise, (K, 1).

    ``noise2`` (K,): expected squared length of the noise.
    """
    length2 = (vectors**2).sum(axis=1)
    return np.asarray((np.maximum(length2 - noise2, 0.0) / np.maximum(length2, 1e-300))[:, None])
