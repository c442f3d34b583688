"""The comparison of classes.

The methods, each as a function of the same training records, test inputs, bounds, ε and δ.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from reticent.models.descriptive.histogram import PrivateHistogram
from reticent.models.gp.classifier import GPClassifier
from reticent.privacy.bounds import Bounds
from reticent.studies.own.classification import calibration_error
from reticent.studies.peers.baselines import diffprivlib as diffpriv
from reticent.studies.peers.baselines import dpsgd
from reticent.studies.peers.classification_tasks import CLASS_TASKS
from reticent.studies.peers.comparison import (
    Cell,
    Comparison,
    Measure,
    Method,
    Prediction,
    digest,
    one_by_one,
)
from reticent.studies.peers.regression_methods import CODE, EASIER, PEER, RELATIONS

__all__ = ["CLASSES", "CLASS_METHODS"]

Array = NDArray[np.float64]
OURS = "GPClassifier"
_LEAST = (
    1e-3  # a chance that is said to be smaller counts as this, for all methods alike: some say zero
)
_LEGEND = (
    "Accuracy and log loss (mean −log chance of the true class; no chance counts as less than "
    "0.001) on a third of the records, mean over random splits ± standard error. **Bold**: the "
    "best private method, and those whose paired difference to it is within 2 standard errors. "
    "Gap: expected calibration error of GPClassifier; s: its seconds of CPU for one fit."
)


def _gp(cell: Cell, epsilon: float) -> Prediction:
    model = GPClassifier(
        bounds=cell.bounds, epsilon=epsilon, delta=cell.delta, random_state=cell.seed
    )
    return Prediction(model.fit(cell.X, cell.y).predict_proba(cell.X_new))


def _dpsgd(cell: Cell, epsilon: float, replaced: bool) -> Prediction:
    return Prediction(
        dpsgd.chances(
            cell.X, cell.y, cell.X_new, cell.bounds, epsilon, cell.delta, cell.seed, replaced
        )
    )


def _diffprivlib(cell: Cell, epsilons: Sequence[float], model: str) -> dict[float, Prediction]:
    return {
        epsilon: Prediction(told)
        for epsilon, told in diffpriv.predictions(model, cell, epsilons).items()
    }


def _shares(cell: Cell, epsilon: float) -> Prediction:
    classes = len(cell.bounds.classes or ())
    model = PrivateHistogram(
        classes, bounds=Bounds(x=[(-0.5, classes - 0.5)]), epsilon=epsilon, delta=cell.delta
    )
    counts = model.set_params(random_state=cell.seed).fit(cell.y[:, None]).counts_[0]
    shares = np.maximum(counts, 1.0)
    return Prediction(np.tile(shares / shares.sum(), (len(cell.X_new), 1)))


def _logistic(cell: Cell, _: float) -> Prediction:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(cell.X, cell.y)
    return Prediction(model.predict_proba(cell.X_new))


def _judge(prediction: Prediction, y: Array) -> dict[str, float]:
    chances = prediction.mean
    truth = y.astype(np.int64)
    true = np.maximum(chances[np.arange(len(truth)), truth], _LEAST)
    return {
        "accuracy": float(np.mean(chances.argmax(axis=1) == truth)),
        "loss": float(-np.mean(np.log(true))),
        "gap": calibration_error(chances, truth),
    }


def _sgd(name: str, replaced: bool, style: str, marker: str) -> Method:
    code = digest(_dpsgd, dpsgd)
    return Method(
        name,
        one_by_one(partial(_dpsgd, replaced=replaced)),
        code,
        True,
        replaced,
        ("paper", style, marker),
    )


def _library(model: str, style: str) -> Method:
    found = partial(_diffprivlib, model=model)
    return Method(
        f"diffprivlib {model}", found, digest(_diffprivlib, diffpriv), style=("dots", style, "^")
    )


CLASS_METHODS = {
    method.name: method
    for method in (
        Method(OURS, one_by_one(_gp), digest(_gp, *CODE), style=("reticent", "-", "o")),
        _sgd(PEER, True, "-", "s"),
        _sgd(EASIER, False, ":", ""),
        _library("LogisticRegression", "-"),
        _library("GaussianNB", ":"),
        Method("shares of classes", one_by_one(_shares), digest(_shares), style=("naive", "-", "")),
        Method("logistic, not private", one_by_one(_logistic), digest(_logistic), private=False),
    )
}
CLASSES = Comparison(
    OURS,
    EASIER,
    "shares of classes",
    CLASS_TASKS,
    CLASS_METHODS,
    _judge,
    (Measure("accuracy", "Accuracy", higher=True), Measure("loss", "Log loss")),
    Measure("gap", "gap"),
    (_LEGEND, RELATIONS),
    quick="cancer",
    splits=(5, 3, 2),
)
