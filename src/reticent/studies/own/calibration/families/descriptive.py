"""Cells of means, covariances, tables and histograms, whose bands are of the privacy noise alone.

The truth is what the records themselves say, not what they are a sample of.
"""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reticent.models.descriptive.covariance import PrivateCovariance
from reticent.models.descriptive.histogram import PrivateHistogram
from reticent.models.descriptive.mean import PrivateMean
from reticent.models.descriptive.table import PrivateTable
from reticent.privacy.bounds import Bounds
from reticent.studies.own.calibration.cells import FREE, Cell, Family, Trial, grid
from reticent.studies.own.calibration.laws import OUTPUTS

__all__ = ["FAMILY"]

Array = NDArray[np.float64]
_MEAN = "PrivateMean"
_COVARIANCE = "PrivateCovariance"
_TABLE = "PrivateTable, means"
_SMOOTH = "PrivateTable, means, smooth"
_HISTOGRAM = "PrivateHistogram"
_LAWS = ("normal", "t2", "lognormal", "two-point", "0/1, .3", "0/1, .02", "zero-inflated")
_POINTS = ((500, 1.0), (5_000, 0.1), (5_000, 1.0), (5_000, 10.0), (5_000, FREE), (50_000, 1.0))
_COLUMNS = 8
_GROUPS = list("abcdefgh")
_SIZES = np.array([40, 20, 15, 10, 6, 5, 3, 1]) / 100  # shares of the groups
_BINS = 16
_RESOLUTION = 1e-3  # of means of values of size one


def _trial(cell: Cell, rng: np.random.Generator) -> Trial:
    return _TRIALS[cell.model](cell, rng)


def _values(cell: Cell, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Values of the law, inside their bounds."""
    law = OUTPUTS[cell.law]
    flat = np.zeros(int(np.prod(shape)))
    return np.clip(law.draw(flat, flat, rng), *law.bounds).reshape(shape)


def _mean_trial(cell: Cell, rng: np.random.Generator) -> Trial:
    records, noise = rng.spawn(2)
    X = _values(cell, (cell.n, _COLUMNS), records)
    model = PrivateMean(
        bounds=Bounds(x=[OUTPUTS[cell.law].bounds] * _COLUMNS),
        epsilon=cell.epsilon,
        delta=0.1 / cell.n,
        random_state=noise,
    ).fit(X)
    return _compared(X.mean(axis=0), model.mean_, model.mean_sd_)


def _covariance_trial(cell: Cell, rng: np.random.Generator) -> Trial:
    """Variances and covariances of three columns, of which two share half of their values."""
    records, noise = rng.spawn(2)
    X = _values(cell, (cell.n, 3), records)
    same = records.random(cell.n) < 0.5
    X[same, 1] = X[same, 0]
    model = PrivateCovariance(
        bounds=Bounds(x=[OUTPUTS[cell.law].bounds] * 3),
        epsilon=cell.epsilon,
        delta=0.1 / cell.n,
        random_state=noise,
    ).fit(X)
    upper = np.triu_indices(3)
    truth = np.cov(X.T, bias=True)[upper]
    return _compared(truth, model.covariance_[upper], model.covariance_sd_[upper])


def _table_trial(cell: Cell, rng: np.random.Generator) -> Trial:
    """Eight groups of unequal sizes, whose means do not differ but by chance."""
    records, noise = rng.spawn(2)
    group = records.choice(len(_GROUPS), cell.n, p=_SIZES)
    group[: len(_GROUPS)] = np.arange(len(_GROUPS))  # none is empty
    values = _values(cell, (cell.n,), records)
    model = PrivateTable(
        by=["group"],
        mean=["value"],
        smooth=cell.model == _SMOOTH,
        bounds=Bounds(x={"group": _GROUPS, "value": OUTPUTS[cell.law].bounds}),
        epsilon=cell.epsilon,
        delta=0.1 / cell.n,
        random_state=noise,
    ).fit(pa.table({"group": np.array(_GROUPS)[group], "value": values}))
    truth = np.array([values[group == one].mean() for one in range(len(_GROUPS))])
    told = np.array([(row["value_mean"], row["value_mean_sd"]) for row in model.table_])
    return _compared(truth, told[:, 0], told[:, 1])


def _histogram_trial(cell: Cell, rng: np.random.Generator) -> Trial:
    """Counts with their bands; the loss is that of three quartiles, in widths of a bin."""
    records, noise = rng.spawn(2)
    low, high = OUTPUTS[cell.law].bounds
    x = _values(cell, (cell.n,), records)
    model = PrivateHistogram(
        _BINS,
        bounds=Bounds(x=[(low, high)]),
        epsilon=cell.epsilon,
        delta=0.1 / cell.n,
        random_state=noise,
    ).fit(x[:, None])
    counts, edges = np.histogram(x, _BINS, (low, high))
    quartiles = (0.25, 0.5, 0.75)
    told = np.array([model.quantile(q)[0] for q in quartiles])
    exact = np.interp(quartiles, np.append(0.0, np.cumsum(counts) / cell.n), edges)
    loss = float(np.mean(np.abs(told - exact))) / (edges[1] - edges[0])
    sd = np.full(_BINS, model.counts_sd_)
    truth = counts.astype(np.float64)
    return Trial(loss, 0.0, truth, np.asarray(model.counts_[0]), sd, resolution=2.0)


def _compared(truth: Array, estimate: Array, sd: Array) -> Trial:
    loss = float(np.mean(np.abs(estimate - truth)))
    return Trial(loss, 0.0, truth, estimate, sd, resolution=_RESOLUTION)


_TRIALS = {
    _MEAN: _mean_trial,
    _COVARIANCE: _covariance_trial,
    _TABLE: _table_trial,
    _SMOOTH: _table_trial,
    _HISTOGRAM: _histogram_trial,
}
FAMILY = Family(
    "descriptive",
    grid("descriptive", _TRIALS, _LAWS, _POINTS),
    grid("descriptive", _TRIALS, ("normal", "0/1, .02"), ((500, 1.0), (500, FREE))),
    _trial,
    "mean absolute error to the records' own numbers",
    negligible=0.001,
)
