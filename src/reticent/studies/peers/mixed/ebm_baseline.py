"""DP-EBM, private boosting of additive models, as the package interpret-core has it.

Its defaults: 32 bins, 300 rounds, rate .01, a tenth of ε for the bins. It gets the same public
ranges; its neighbours differ by one record added or removed. As packaged (0.7.8) it keeps less than
it says: residuals are not clipped, and the set of words in a column is read from the records, since
it takes no list of them. It is compared as what a user would run.
"""

import warnings
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.privacy.bounds import Bounds
from reticent.studies.common.python_environments import Unavailable
from reticent.studies.peers.comparison import Cell
from reticent.studies.peers.mixed.tasks import as_columns

__all__ = ["chances", "predict"]

Array = NDArray[np.float64]


def predict(cell: Cell, epsilon: float) -> Array:
    """Train a regressor and predict at the cell's new inputs."""
    low, high = cell.bounds.y[0]
    model = _private_models().DPExplainableBoostingRegressor(
        privacy_target_min=low, privacy_target_max=high, **_options(cell, epsilon)
    )
    return np.asarray(_fitted(model, cell, cell.y).predict(_cells(cell.bounds, cell.X_new)))


def chances(cell: Cell, epsilon: float) -> Array:
    """Train a classifier of two classes; probabilities (n, 2) at the cell's new inputs."""
    model = _private_models().DPExplainableBoostingClassifier(**_options(cell, epsilon))
    fitted = _fitted(model, cell, cell.y.astype(np.int64))
    return np.asarray(fitted.predict_proba(_cells(cell.bounds, cell.X_new)))


def _private_models() -> Any:
    try:
        return import_module("interpret.privacy")
    except ImportError:
        raise Unavailable("it is not installed: pip install interpret-core") from None


def _options(cell: Cell, epsilon: float) -> dict[str, Any]:
    types: list[Any] = []
    ranges = {}
    for j, kind in enumerate(cell.bounds.x_kinds):
        if kind.levels is None:
            types.append("continuous")
            ranges[j] = kind.range
        elif kind.ordered:
            types.append(list(kind.levels))
        else:
            types.append("nominal")
    return {
        "feature_names": list(cell.bounds.x_names or ()),
        "feature_types": types,
        "privacy_bounds": ranges,
        "epsilon": epsilon,
        "delta": cell.delta,
        "random_state": cell.seed,
        "n_jobs": 1,
    }


def _fitted(model: Any, cell: Cell, y: Array | NDArray[np.int64]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a seed is for studies only
        return model.fit(_cells(cell.bounds, cell.X), y)


def _cells(bounds: Bounds, codes: Array) -> NDArray[np.object_]:
    """Words as words, all else as numbers inside the public range."""
    found = np.empty(codes.shape, dtype=object)
    words = as_columns(bounds, codes)
    for j, (name, kind) in enumerate(zip(words, bounds.x_kinds, strict=True)):
        if kind.levels is None:
            found[:, j] = np.clip(codes[:, j], *kind.range)
        else:
            found[:, j] = words[name]
    return found
