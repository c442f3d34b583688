"""Methods that the studies of Honkela's paper compare: functions from data to predictions."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import RBF

from reticent.models.gp.regressor import GPRegressor
from reticent.privacy.bounds import Bounds
from reticent.studies.honkela2021.algorithm1_as_printed import LiteralGP
from reticent.studies.honkela2021.data import DELTA, HALF, Data, Setup

__all__ = ["Predict", "literal", "paper", "reticent"]

Array = NDArray[np.float64]
Predict = Callable[
    [Array], tuple[Array, Array]
]  # points to mean and standard deviation of the function


def reticent(setup: Setup, data: Data, epsilon: float, rng: np.random.Generator) -> Predict:
    """Fit GPRegressor as a user would, but from a seed, because a study must be repeatable."""
    bounds = Bounds(x=[(-HALF, HALF)], y=(-setup.reach, setup.reach))
    model = GPRegressor(
        RBF(1.0, "fixed"),
        noise=setup.sigma,
        bounds=bounds,
        epsilon=epsilon,
        delta=DELTA,
        random_state=rng,
    ).fit(data.x[:, None], data.y)
    return lambda at: model.predict(at[:, None], return_std=True)


def literal(setup: Setup, data: Data, epsilon: float, rng: np.random.Generator) -> LiteralGP:
    """Fit the paper's method, as printed."""
    model = LiteralGP(RBF(1.0), np.array(setup.inducing), setup.sigma, setup.reach, epsilon, DELTA)
    return model.fit(data.x, data.y, rng)


def paper(setup: Setup, data: Data, epsilon: float, rng: np.random.Generator) -> Predict:
    """The paper's method, with its account of the noise."""
    return literal(setup, data, epsilon, rng).predict
