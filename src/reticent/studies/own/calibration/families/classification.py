"""Cells of `GPClassifier`: chances of the second of two classes."""

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from reticent.models.gp.classifier import GPClassifier
from reticent.privacy.bounds import Bounds
from reticent.studies.own.calibration.cells import FREE, Cell, Family, Trial, grid
from reticent.studies.own.calibration.families.regression import root_mean_square
from reticent.studies.own.calibration.laws import (
    CLASSES,
    INPUTS,
    LENGTH,
    places,
    smooth_function,
)
from reticent.studies.own.calibration.references import class_chances

__all__ = ["FAMILY"]

Array = NDArray[np.float64]
_METHODS = {"GPClassifier, softmax": "softmax", "GPClassifier, labels": "labels"}
# name of the law: chances, inputs
_LAWS = {name: (name, "even") for name in CLASSES} | {
    f"{name} inputs": ("logistic", name) for name in INPUTS if name != "even"
}
_POINTS = (
    (500, 1.0),
    (5_000, 0.1),
    (5_000, 1.0),
    (5_000, 10.0),
    (5_000, FREE),
    (50_000, FREE),
)
_SOFTMAX, _LABELS = _METHODS
_PLACES = 32
_NORMAL = 1.959964
_SURE = 1e-6  # a chance nearer to 0 or 1 has no band of log-odds


def _trial(cell: Cell, rng: np.random.Generator) -> Trial:
    chances = CLASSES[_LAWS[cell.law][0]]
    inputs = INPUTS[_LAWS[cell.law][1]]
    truths, records, noise = rng.spawn(3)
    function = smooth_function(truths)
    x = inputs.draw(cell.n, records)
    label = (records.random(cell.n) < chances(function(x), x)).astype(np.int64)
    at = places(inputs, _PLACES)
    truth = chances(function(at), at)
    model = GPClassifier(
        method=_METHODS[cell.model],
        bounds=Bounds(x=[(-inputs.half, inputs.half)], classes=[0, 1]),
        epsilon=cell.epsilon,
        delta=0.1 / cell.n,
        random_state=noise,
    ).fit(x[:, None], label)
    estimate = model.predict_proba(at[:, None])[:, 1]
    low, high = (end[:, 1] for end in model.predict_proba_band(at[:, None]))
    reference = float("nan")
    if cell.epsilon == FREE:
        exact = class_chances(x, label, at, length=LENGTH, spread=2.0)
        reference = root_mean_square(exact - truth)
    loss = root_mean_square(estimate - truth)
    if truth.min() < _SURE or truth.max() > 1 - _SURE:
        return Trial(loss, reference)
    return Trial(loss, reference, logit(truth), *_normal_band(low, high))


def _normal_band(low: Array, high: Array) -> tuple[Array, Array]:
    """Centre and standard deviation of log-odds from the ends of 95 % bands of chances."""
    ends = logit(np.clip([low, high], _SURE, 1 - _SURE))
    return ends.mean(axis=0), (ends[1] - ends[0]) / (2 * _NORMAL)


FAMILY = Family(
    "classification",
    (
        *grid("classification", (_SOFTMAX,), _LAWS, _POINTS),
        *grid("classification", (_LABELS,), _LAWS, ((5_000, 1.0), (5_000, FREE))),
    ),
    grid("classification", (_SOFTMAX,), ("logistic", "constant"), ((500, FREE),)),
    _trial,
    "RMSE of the chance",
    negligible=0.002,
)
