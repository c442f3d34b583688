"""Cells of `GaussianMixture`: log-density of fresh records, with one component and with five."""

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from reticent.models.mixtures.gaussian_mixture import GaussianMixture
from reticent.privacy.bounds import Bounds
from reticent.studies.own.calibration.cells import FREE, Cell, Family, Trial, grid
from reticent.studies.own.calibration.laws import TABLES
from reticent.studies.own.calibration.references import mixture_log_likelihood

__all__ = ["FAMILY"]

Array = NDArray[np.float64]
_COMPONENTS = {"GaussianMixture, 1 component": 1, "GaussianMixture, 5 components": 5}
_POINTS = (
    (500, 1.0),
    (5_000, 0.1),
    (5_000, 1.0),
    (5_000, 10.0),
    (5_000, 1e3),
    (5_000, FREE),
    (50_000, 1.0),
)
_FEW_POINTS = ((5_000, 1.0), (5_000, 10.0), (5_000, FREE))
_ONE, _FIVE = _COMPONENTS
# several components have no best fit to point masses: a density grows there without limit
_SPREAD_OUT = [law for law in TABLES if law != "point masses"]
_TESTS = 5_000
_LEAST = -1e5  # log-density of a record that a singular covariance holds for impossible


def _trial(cell: Cell, rng: np.random.Generator) -> Trial:
    table = TABLES[cell.law]
    tests, records, noise = rng.spawn(3)
    unseen = table.draw(_TESTS, tests)
    X = table.draw(cell.n, records)
    model = GaussianMixture(
        _COMPONENTS[cell.model],
        bounds=Bounds(x=[table.bounds] * X.shape[1]),
        epsilon=cell.epsilon,
        delta=0.1 / cell.n,
        random_state=noise,
    ).fit(X)
    reference = float("nan")
    if cell.epsilon == FREE:
        reference = -mixture_log_likelihood(X, unseen, _COMPONENTS[cell.model], seed=0)
    return Trial(-_log_likelihood(model, unseen), reference)


def _log_likelihood(model: GaussianMixture, X: Array) -> float:
    """Mean log-density in the columns' own units (``score`` has the units of the bounds)."""
    components = zip(model.weights_, model.means_, model.covariances_, strict=True)
    logs = [
        np.log(weight) + multivariate_normal(mean, covariance, allow_singular=True).logpdf(X)
        for weight, mean, covariance in components
    ]
    return float(np.mean(np.maximum(logsumexp(logs, axis=0), _LEAST)))


FAMILY = Family(
    "mixtures",
    (
        *grid("mixtures", (_ONE,), TABLES, _POINTS),
        *grid("mixtures", (_FIVE,), _SPREAD_OUT, _FEW_POINTS),
    ),
    grid("mixtures", (_ONE,), TABLES, ((500, 1.0), (500, FREE))),
    _trial,
    "−log-density of a fresh record",
    in_nats=True,
)
