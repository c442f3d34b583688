"""Cells of `KMeans`: mean squared distance from the nearest centre, and sizes of clusters."""

import numpy as np

from reticent.models.mixtures.kmeans import KMeans
from reticent.privacy.bounds import Bounds
from reticent.studies.own.calibration.cells import FREE, Cell, Family, Trial, grid
from reticent.studies.own.calibration.laws import TABLES
from reticent.studies.own.calibration.references import clusters_cost

__all__ = ["FAMILY"]

_MODEL = "KMeans, 5 clusters"
_CLUSTERS = 5
_POINTS = (
    (500, 1.0),
    (5_000, 0.1),
    (5_000, 1.0),
    (5_000, 10.0),
    (5_000, 1e3),
    (5_000, FREE),
    (50_000, 0.1),
    (50_000, 1.0),
    (50_000, 10.0),
)


def _trial(cell: Cell, rng: np.random.Generator) -> Trial:
    table = TABLES[cell.law]
    _, records, noise = rng.spawn(3)
    X = table.draw(cell.n, records)
    model = KMeans(
        _CLUSTERS,
        bounds=Bounds(x=[table.bounds] * X.shape[1]),
        epsilon=cell.epsilon,
        delta=0.1 / cell.n,
        random_state=noise,
    ).fit(X)
    inside = np.clip(X, *table.bounds)
    distances = np.linalg.norm(inside[:, None] - model.cluster_centers_, axis=2)
    sizes = np.bincount(model.predict(X), minlength=_CLUSTERS).astype(np.float64)
    reference = float("nan")
    if cell.epsilon == FREE:
        reference = clusters_cost(inside, _CLUSTERS, seed=0)
    return Trial(
        float(np.mean(distances.min(axis=1) ** 2)),
        reference,
        sizes,
        model.cluster_sizes_,
        model.cluster_sizes_sd_,
        resolution=2.0,
    )


FAMILY = Family(
    "k-means",
    grid("k-means", (_MODEL,), TABLES, _POINTS),
    grid("k-means", (_MODEL,), TABLES, ((500, 1.0), (500, FREE))),
    _trial,
    "mean squared distance",
)
