"""Cells of `PCA` and `FactorAnalysis`: two factors of six columns; bands are of the means."""

import numpy as np
from numpy.typing import NDArray
from scipy.stats import multivariate_normal
from sklearn import decomposition

from reticent.models.mixtures.factor_analysis import PCA, FactorAnalysis
from reticent.privacy.bounds import Bounds
from reticent.studies.own.calibration.cells import FREE, Cell, Family, Trial, grid
from reticent.studies.own.calibration.laws import FACTOR_TABLES

__all__ = ["FACTOR_FAMILY", "PCA_FAMILY"]

Array = NDArray[np.float64]
_FACTORS = 2
_POINTS = (
    (500, 1.0),
    (5_000, 0.1),
    (5_000, 1.0),
    (5_000, 10.0),
    (5_000, 1e3),
    (5_000, FREE),
    (50_000, 1.0),
)
_TESTS = 5_000


def _pca_trial(cell: Cell, rng: np.random.Generator) -> Trial:
    unseen, X, model = _fitted(PCA, cell, rng)
    exact = decomposition.PCA(_FACTORS).fit(X)
    return Trial(
        _left_over(unseen, model.components_),
        _left_over(unseen, exact.components_),
        X.mean(axis=0),
        model.mean_,
        model.mean_sd_,
    )


def _left_over(X: Array, components: Array) -> float:
    """Share of the variance that components do not explain."""
    centred = X - X.mean(axis=0)
    return float(1 - np.sum((centred @ components.T) ** 2) / np.sum(centred**2))


def _factor_trial(cell: Cell, rng: np.random.Generator) -> Trial:
    unseen, X, model = _fitted(FactorAnalysis, cell, rng)
    exact = decomposition.FactorAnalysis(_FACTORS).fit(X)
    density = multivariate_normal(model.mean_, model.get_covariance())
    return Trial(
        -float(np.mean(density.logpdf(unseen))),
        -float(exact.score(unseen)),
        X.mean(axis=0),
        model.mean_,
        model.mean_sd_,
    )


def _fitted(
    kind: type[PCA] | type[FactorAnalysis], cell: Cell, rng: np.random.Generator
) -> tuple[Array, Array, PCA | FactorAnalysis]:
    """Test records, records and a model that was fitted to these."""
    table = FACTOR_TABLES[cell.law]
    tests, records, noise = rng.spawn(3)
    unseen = np.clip(table.draw(_TESTS, tests), *table.bounds)
    X = np.clip(table.draw(cell.n, records), *table.bounds)
    model = kind(
        _FACTORS,
        bounds=Bounds(x=[table.bounds] * X.shape[1]),
        epsilon=cell.epsilon,
        delta=0.1 / cell.n,
        random_state=noise,
    ).fit(X)
    return unseen, X, model


PCA_FAMILY = Family(
    "pca",
    grid("pca", ("PCA",), FACTOR_TABLES, _POINTS),
    grid("pca", ("PCA",), ("normal", "point masses"), ((500, 1.0), (500, FREE))),
    _pca_trial,
    "share of the variance that is not explained",
)
FACTOR_FAMILY = Family(
    "factor analysis",
    grid("factor analysis", ("FactorAnalysis",), FACTOR_TABLES, _POINTS),
    grid("factor analysis", ("FactorAnalysis",), ("normal",), ((500, 1.0), (500, FREE))),
    _factor_trial,
    "−log-density of a fresh record",
    in_nats=True,
)
