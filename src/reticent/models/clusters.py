"""Private k-means. Proof: clusters.md.

Few columns (up to three): counts on a grid over the box, once; K centres of the cells, weighted by their counts, for free; where
n allows it, one of Lloyd's steps on the records themselves.

More columns: a private covariance gives the directions in which records differ; many centres, drawn from the normal law with
that covariance, take Lloyd's steps in these directions; k-means of the many centres, for free, leaves K; these take the last
steps in all columns.

A step releases for each centre how many records are nearest to it, and the sum of their differences from it, shortened to a
reach that follows their mean square: all jointly (`responsibilities.residual_moments`).
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from reticent.errors import BadInput
from reticent.maths.clusters import nearest, reach, squares, supported, weighted_kmeans
from reticent.models.base import PrivateEstimator
from reticent.models.grids import GridCounts, bins_for
from reticent.models.moments import covariance
from reticent.models.responsibilities import metric, residual_moments
from reticent.privacy.accounting import check_epsilon_delta
from reticent.privacy.curator import Oracle

__all__ = ["KMeans"]

Array = NDArray[np.float64]
_RELEASES = 16  # of equal shares
_FEW_COLUMNS = 3
_STEP_SHARE, _ENOUGH = 6, 600.0  # for a step after the grid, if a cluster has that many records for each 1/μ
_COVARIANCE, _SEARCH, _LAST, _LAST_SHARE = 4, 6, 3, 2  # shares with more columns: 4 + 6·1 + 3·2
_MANY = 3  # centres that search, for each cluster
_WEIGHTS = (4, 4, 1)  # of counts, sums, and the one sum of squares
_MOST_CLUSTERS = 1000


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
    jointly for each centre the number of records nearest to it and the sum of their shortened differences from it, once or not at
    all, as public numbers say; with more columns the moments that ``PCA`` releases, and such joint sums nine times. Must be
    public: the bounds, the number of clusters and of records, all parameters. ``predict``, ``transform`` and ``score`` read the
    records they are given without protection.

    Examples
    --------
    >>> import numpy as np, reticent
    >>> rng = np.random.default_rng(0)
    >>> X = rng.choice([[2.0, 3.0], [7.0, 8.0]], size=20_000) + 0.5 * rng.normal(size=(20_000, 2))
    >>> model = reticent.KMeans(2, bounds=reticent.Bounds(x=(0, 10)), epsilon=1, delta=1e-6).fit(X)
    >>> bool(np.abs(np.sort(model.cluster_centers_, axis=0) - [[2, 3], [7, 8]]).max() < 0.1)
    True
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        bounds: Any = None,
        epsilon: float | None = None,
        delta: float | None = None,
        ledger: str | None = None,
        dataset: str | None = None,
        records_per_person: int = 1,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            bounds=bounds,
            epsilon=epsilon,
            delta=delta,
            ledger=ledger,
            dataset=dataset,
            records_per_person=records_per_person,
            random_state=random_state,
        )
        self.n_clusters = n_clusters

    @property
    def _releases(self) -> int:
        return _RELEASES

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)

    def _check(self) -> None:
        if check_epsilon_delta(self.epsilon, self.delta, pure=True)[1] == 0:
            raise BadInput("KMeans needs delta > 0: its sums are released with Gaussian noise.")
        if isinstance(self.n_clusters, bool) or not isinstance(self.n_clusters, (int, np.integer)):
            raise BadInput(f"n_clusters must be a whole number, not {self.n_clusters!r}.")
        if not 1 <= self.n_clusters <= _MOST_CLUSTERS:
            raise BadInput(f"n_clusters must be from 1 to {_MOST_CLUSTERS:,}, not {self.n_clusters}.")

    def learn(self, curator: Oracle) -> None:
        """Find centres from a grid or by searching in the directions of most variance, then move them to the records' means."""
        noise = self._event().noise_multiplier * self.records_per_person  # type: ignore[attr-defined]
        d, n, random = (
            len(curator.bounds.x),
            curator.n,
            np.random.default_rng(0),
        )  # public chance: the same in every fit
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

    def score(self, X: Any, y: Any = None) -> float:
        """Minus the mean squared distance of the records ``X`` from their nearest centres. Not protected."""
        return float(np.mean(self.score_samples(X)))

    def score_limits(self) -> tuple[float, float]:
        """Between which numbers ``score_samples`` lies."""
        return -4.0 * self.releases_[0].bounds.radius2, 0.0


Found = tuple[Array, Array, Array]  # centres, numbers of records, and the noise of these


def _from_grid(curator: Oracle, noise: float, k: int, random: np.random.Generator) -> Found:
    """Centres of noisy cells, weighted by their counts; then steps on the records, if there are enough of them."""
    d, n = len(curator.bounds.x), curator.n
    step = n * math.sqrt(_RELEASES) / (noise * k) >= _ENOUGH
    times = _RELEASES - _STEP_SHARE if step else _RELEASES
    grid = GridCounts(d, bins_for(n, noise * math.sqrt(2 / times), d))
    release = curator.release(grid, times=times)
    sd = float(release.sd[0])
    points, weights = supported(release.value, grid.bins, d, sd)
    if (weights > 0).sum() < k:
        points, weights = grid.centres(), np.maximum(release.value, 0.0)
    centres = weighted_kmeans(points, weights, k, random)
    which, away = nearest(points, centres)
    sizes: Array = np.bincount(which, weights, k).astype(np.float64)
    within = float(weights @ away) / max(float(weights.sum()), 1e-9) + d / (3 * grid.bins**2)  # in cells, too
    if step:
        return _step(curator, np.eye(d), centres, within, times=_STEP_SHARE, noise=noise)[0]
    return centres, sizes, sd * np.sqrt(np.bincount(which, minlength=k) + 1.0)


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
        (many, sizes, sd), within = _step(curator, axes, many, within, times=1, noise=noise, most=_FIRST_REACH)
    few = weighted_kmeans(many, np.maximum(sizes - 2 * sd, 0.0), k, random)
    left = float(np.maximum(values[:-directions], 0.0).sum()) if directions < len(values) else 0.0
    centres = np.clip(law.mean + (few - origin) @ axes.T, -1.0, 1.0)
    found, within = (centres, sizes[:k], sd[:k]), 2 * within + left
    for _ in range(_LAST):
        found, within = _step(curator, np.eye(len(values)), found[0], within, times=_LAST_SHARE, noise=noise)
    return found


_FIRST_REACH = 1.2  # root mean squares, while centres are far from where they will be


def _step(
    curator: Oracle, axes: Array, centres: Array, within: float, *, times: int, noise: float, most: float = np.inf
) -> tuple[Found, float]:
    """One of Lloyd's steps along ``axes`` (d × p); ``within``: the mean square of differences, which the step tells anew."""
    n, (k, p) = curator.n, centres.shape
    radius = math.sqrt(max(within, 1e-8)) * min(reach(n, 2 * noise / math.sqrt(times), k, p), most)
    asked = residual_moments(
        metric(axes, centres), radius=[radius] * k, second="trace", together=True, weights=_WEIGHTS, hard=True
    )
    release = curator.release(asked, times=times)
    sizes, sums, square = release.value[:k], release.value[k:-1].reshape(k, p), float(release.value[-1])
    sd, square_sd = release.sd[:k], float(release.sd[-1])
    moved = centres + radius * sums / np.maximum(sizes, 4 * sd)[:, None] * (sizes > 0)[:, None]
    return (moved, sizes, sd), radius**2 * min(max((square + square_sd) / n, 0.05), 1.0)
