"""Private k-means. Proof: clusters.md.

Few columns (up to three): counts on a grid over the box, once; K centres of the cells, weighted by their counts, for free. Where
n allows it, a coarse grid first, then leaves of its cells, the finer the more records a cell has, and blocks of cells with few
records, with the records' mean place in each; and at the end one of Lloyd's steps on the records themselves.

More columns: a private covariance gives the directions in which records differ; many centres, drawn from the normal law with
that covariance, take Lloyd's steps in these directions; k-means of the many centres, for free, leaves K; these take the last
steps in all columns.

A step releases for each centre how many records are nearest to it, and the sum of their differences from it, shortened to a
reach that follows their mean square: all jointly (`responsibilities.residual_moments`).
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from reticent.maths.clusters import nearest, reach, squares, supported, weighted_kmeans
from reticent.maths.leaves import Leaves, blocks, splits
from reticent.models.base import PrivateEstimator
from reticent.models.grids import GridCounts, LeafSums, bins_for
from reticent.models.moments import covariance
from reticent.models.responsibilities import metric, residual_moments
from reticent.privacy.curator import Oracle
from reticent.privacy.given import check_whole

__all__ = ["KMeans"]

Array = NDArray[np.float64]
_RELEASES = 16  # of equal shares
_FEW_COLUMNS = 3
_ENOUGH = 600.0  # records of a cluster, for each 1/μ, from which there are leaves and a step
_COARSE_SHARE, _LEAF_SHARE, _STEP_SHARE = 6, 7, 3
_COARSE = 0.04  # cells of the coarse grid for each n/sd records
_LAST_REACH = 2.5  # root mean squares of a cluster
_COVARIANCE, _SEARCH, _LAST, _LAST_SHARE = 4, 6, 3, 2  # shares with more columns: 4 + 6·1 + 3·2
_MANY = 3  # centres that search, for each cluster
_WEIGHTS = (4, 4, 1)  # of counts, sums, and the one sum of squares
_MOST_CLUSTERS = 1000


@dataclass(repr=False, eq=False)
class KMeans(ClassNamePrefixFeaturesOutMixin, TransformerMixin, PrivateEstimator):  # type: ignore[misc]
    """K-means clustering, with differential privacy.

    Distances are measured on the scale of the bounds: each column's range counts as one length (with ``Bounds(norm=…)``, in the
    columns' own units). There is no ``labels_``, ``inertia_`` or ``n_iter_``: they would tell of single records.

    Parameters
    ----------
    n_clusters : int
        Number of clusters.
    bounds, epsilon, delta, ledger, dataset, records_per_person, random_state
        As for every private estimator (``PrivateEstimator``). ``delta`` must be positive.

    Attributes
    ----------
    cluster_centers_ : array of shape (n_clusters, n_features)
        The centres, inside the bounds, the one with most records first.
    cluster_sizes_, cluster_sizes_sd_ : arrays of shape (n_clusters,)
        How many records are nearest to each centre, as far as the releases tell, and the privacy noise in it.
    guarantee_, releases_, n_features_in_, feature_names_in_
        As for every private estimator.

    Privacy
    -------
    Neighbours: one record replaced, number of records public. Released: with up to three columns the counts on a grid, once, and
    where public numbers allow it the counts of leaves and blocks of its cells with the sums of places in them, and jointly for
    each centre the number of records nearest to it and the sum of their shortened differences from it, once; with more columns
    the moments that ``PCA`` releases, and such joint sums nine times. Must be public: the bounds, the number of clusters and of
    records, all parameters. ``predict``, ``transform`` and ``score`` read the records they are given without protection.

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
    _releases = _RELEASES
    _n_features_out = property(lambda self: len(self.cluster_centers_))

    n_clusters: int = 8

    def _check(self) -> None:
        check_whole("n_clusters", self.n_clusters, 1, _MOST_CLUSTERS)

    def learn(self, curator: Oracle) -> None:
        """Find centres from a grid or by searching in the directions of most variance, then move them to the records' means."""
        noise = self._event().noise_multiplier * self.records_per_person  # type: ignore[attr-defined]
        d, n = len(curator.bounds.x), curator.n
        random = np.random.default_rng(0)  # public chance: the same in every fit
        if d <= _FEW_COLUMNS:
            found = _from_grid(curator, noise, int(self.n_clusters), random)
        else:
            found = _by_search(curator, noise, int(self.n_clusters), random)
        centres, sizes, sd = found
        order = np.argsort(-sizes, kind="stable")
        low, high = curator.bounds.scaled(np.array(curator.bounds.x).T)
        self._centres = np.clip(centres[order], low, high)
        self.cluster_centers_ = curator.bounds.natural(self._centres)
        self.cluster_sizes_, self.cluster_sizes_sd_ = np.clip(sizes[order], 0, n), sd[order]

    def predict(self, X: Any) -> NDArray[np.intp]:
        """The number of the nearest centre for each record. Not protected."""
        return nearest(self._unit(X), self._centres)[0]

    def transform(self, X: Any) -> Array:
        """Distances of each record from all centres, on the bounds' scale. Not protected."""
        return np.sqrt(squares(self._unit(X), self._centres))

    def score_samples(self, X: Any) -> Array:
        """Minus the squared distance of each record from its nearest centre, on the bounds' scale. Not protected."""
        return -nearest(self._unit(X), self._centres)[1]

    def score_limits(self) -> tuple[float, float]:
        """Between which numbers ``score_samples`` lies."""
        return -4.0 * self.releases_[0].bounds.radius2, 0.0


Found = tuple[Array, Array, Array]  # centres, numbers of records, and the noise of these


def _from_grid(curator: Oracle, noise: float, k: int, random: np.random.Generator) -> Found:
    """Centres of noisy cells, weighted by their counts; of leaves and with a step on the records, if there are enough."""
    d, n = len(curator.bounds.x), curator.n
    if n * math.sqrt(_RELEASES) / (noise * k) >= _ENOUGH:
        return _from_leaves(curator, noise, k, random)
    grid = GridCounts(d, bins_for(n, noise * math.sqrt(2 / _RELEASES), d))
    release = curator.release(grid, times=_RELEASES)
    sd = float(release.sd[0])
    points, weights = supported(release.value, grid.bins, d, sd)
    if (weights > 0).sum() < k:
        points, weights = grid.centres(), np.maximum(release.value, 0.0)
    centres = weighted_kmeans(points, weights, k, random)
    which, _ = nearest(points, centres)
    sizes: Array = np.bincount(which, weights, k).astype(np.float64)
    return centres, sizes, sd * np.sqrt(np.bincount(which, minlength=k) + 1.0)


def _from_leaves(curator: Oracle, noise: float, k: int, random: np.random.Generator) -> Found:
    """A coarse grid, leaves and blocks of its cells, and one step on the records, with a reach for each cluster."""
    d, n = len(curator.bounds.x), curator.n
    grid = GridCounts(d, bins_for(n, noise * math.sqrt(2 / _COARSE_SHARE), d, _COARSE))
    first = curator.release(grid, times=_COARSE_SHARE)
    leaf_sd = noise * math.sqrt(2 * (1 + d / 4) / _LEAF_SHARE)
    cut = splits(first.value, leaf_sd, d)
    asked = LeafSums(d, grid.bins, cut, blocks(first.value, cut, d, n, k))
    found = curator.release(asked, times=_LEAF_SHARE)
    counts, places = found.value[: asked.cells], 2 * found.value[asked.cells :].reshape(d, -1).T
    sd = float(found.sd[0])
    leaves = Leaves(
        first.value, float(first.sd[0]), np.array(asked.blocks), *asked.leaves(), counts, places, sd, 2 * sd
    )
    points, weights, spread = leaves.points()
    if (weights > 0).sum() < k:
        points, weights = leaves.corner + leaves.width[:, None] / 2, np.maximum(counts, 0.0)
        spread = leaves.width**2 * d / 12
    centres = weighted_kmeans(points, weights, k, random)
    which, away = nearest(points, centres)
    sizes = np.maximum(np.bincount(which, weights, k), sd)
    within = np.bincount(which, weights * (away + spread), k) / sizes + (leaves.width.min() ** 2) * d / 12
    radius = _LAST_REACH * np.sqrt(within)
    return _step(curator, np.eye(d), centres, radius, times=_STEP_SHARE, careful=True)[0]


def _by_search(curator: Oracle, noise: float, k: int, random: np.random.Generator) -> Found:
    """Many centres look for records where these vary most; then K of them, in all columns."""
    law = covariance(curator, noise, _COVARIANCE)
    values, vectors = np.linalg.eigh(law.covariance)
    directions = min(len(values), math.ceil(1.5 * k))
    spread, axes = np.maximum(values[: -directions - 1 : -1], 1e-9), vectors[:, : -directions - 1 : -1]
    origin = law.mean @ axes
    many = origin + random.standard_normal((_MANY * k, directions)) * np.sqrt(spread)
    within, sizes, sd = float(spread.sum()), np.ones(len(many)), np.ones(len(many))
    for _ in range(_SEARCH):
        radius = _radius(within, min(reach(curator.n, 2 * noise, len(many), directions), _FIRST_REACH), len(many))
        (many, sizes, sd), within = _step(curator, axes, many, radius, times=1)
    few = weighted_kmeans(many, np.maximum(sizes - 2 * sd, 0.0), k, random)
    left = float(np.maximum(values[:-directions], 0.0).sum()) if directions < len(values) else 0.0
    centres = np.clip(law.mean + (few - origin) @ axes.T, -1.0, 1.0)
    found, within = (centres, sizes[:k], sd[:k]), 2 * within + left
    far = reach(curator.n, 2 * noise / math.sqrt(_LAST_SHARE), k, len(values))
    for _ in range(_LAST):
        found, within = _step(curator, np.eye(len(values)), found[0], _radius(within, far, k), times=_LAST_SHARE)
    return found


_FIRST_REACH = 1.2  # root mean squares, while centres are far from where they will be


def _radius(within: float, far: float, k: int) -> Array:
    """The same reach for all centres."""
    return np.full(k, math.sqrt(max(within, 1e-8)) * far)


def _step(
    curator: Oracle, axes: Array, centres: Array, radius: Array, *, times: int, careful: bool = False
) -> tuple[Found, float]:
    """One of Lloyd's steps along ``axes`` (d × p), and the mean square of differences that it tells.

    ``careful``: centres move as far only as their steps stand above the noise.
    """
    n, (k, p) = curator.n, centres.shape
    asked = residual_moments(
        metric(axes, centres), radius=radius, second="trace", together=True, weights=_WEIGHTS, hard=True
    )
    release = curator.release(asked, times=times)
    sizes, sums, square = release.value[:k], release.value[k:-1].reshape(k, p), float(release.value[-1])
    sd, square_sd = release.sd[:k], float(release.sd[-1])
    step = sums / np.maximum(sizes, 4 * sd)[:, None] * (sizes > 0)[:, None]
    if careful:
        length2, noise2 = (step**2).sum(axis=1), p * (release.sd[k] / np.maximum(sizes, 4 * sd)) ** 2
        step *= (np.maximum(length2 - noise2, 0.0) / np.maximum(length2, 1e-300))[:, None]
    moved = centres + radius[:, None] * step
    return (moved, sizes, sd), float((radius**2).mean()) * min(max((square + square_sd) / n, 0.05), 1.0)
