"""DP-EBM, private boosting of additive models, for columns of numbers, as interpret-core has it.

Its defaults: 32 bins, 300 rounds, rate .01, a tenth of ε for the bins. It gets the same public
ranges; its neighbours differ by one record added or removed. As packaged (0.7.8) it keeps less than
it says, since residuals are not clipped. It is compared as what a user would run.
"""

import warnings
from importlib import import_module

import numpy as np
from numpy.typing import NDArray

from reticent.studies.peers.comparison import Cell
from reticent.studies.peers.diffprivlib_baselines import Unavailable

__all__ = ["predict"]

Array = NDArray[np.float64]


def predict(cell: Cell, epsilon: float) -> Array:
    """Train on the cell's records and predict at its new inputs."""
    try:
        private_models = import_module("interpret.privacy")
    except ImportError:
        raise Unavailable("it is not installed: pip install interpret-core") from None
    low, high = np.array(cell.bounds.x).T
    output_low, output_high = cell.bounds.y[0]
    model = private_models.DPExplainableBoostingRegressor(
        feature_types=["continuous"] * len(low),
        privacy_bounds=dict(enumerate(zip(low, high, strict=True))),
        privacy_target_min=output_low,
        privacy_target_max=output_high,
        epsilon=epsilon,
        delta=cell.delta,
        random_state=cell.seed,
        n_jobs=1,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a seed is for studies only
        model.fit(np.clip(cell.X, low, high), cell.y)
    return np.asarray(model.predict(np.clip(cell.X_new, low, high)))
