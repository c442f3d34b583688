"""The comparison on mixed tables: ours reads words and dates; peers get what they can read.

All get the same public ranges and words, the same records, ε and δ.
"""

from functools import partial

import numpy as np
import pyarrow
from numpy.typing import NDArray

from reticent.models.gp.classifier import GPClassifier
from reticent.models.gp.regressor import GPRegressor
from reticent.privacy.bounds import Bounds
from reticent.studies.peers.baselines import dpsgd
from reticent.studies.peers.classification_methods import CLASS_METHODS, CLASSES
from reticent.studies.peers.comparison import (
    Cell,
    Comparison,
    Method,
    Prediction,
    digest,
    one_by_one,
)
from reticent.studies.peers.mixed import ebm_baseline as ebm
from reticent.studies.peers.mixed.tasks import (
    MIXED_CLASS_TASKS,
    MIXED_NUMBER_TASKS,
    as_columns,
    one_hot,
)
from reticent.studies.peers.regression_methods import CODE, METHODS, NUMBERS, PEER

__all__ = ["DELTA", "EBM", "MIXED_CLASSES", "MIXED_NUMBERS"]

Array = NDArray[np.float64]
DELTA = 1e-6
EBM = "DP-EBM, one added or removed"
_RELATIONS = (
    "GP and DP-SGD protect against one record being replaced. DP-EBM, as packaged, means one "
    "record added or removed, which takes about half of the noise, and keeps less than that "
    "(residuals are not clipped, words are read from the records); the verdict counts it all the "
    "same. "
    f"δ = {DELTA:g}. Words are indicators for DP-SGD, ordered words are numbered."
)


def _gp(cell: Cell, epsilon: float) -> Prediction:
    model = GPRegressor(
        bounds=cell.bounds, epsilon=epsilon, delta=cell.delta, random_state=cell.seed
    )
    model.fit(_records(cell))
    new = pyarrow.table(as_columns(cell.bounds, cell.X_new))
    parts = model.variance_parts(new)
    return Prediction(model.predict(new), 1.96 * np.sqrt(sum(parts.values())))


def _gp_classes(cell: Cell, epsilon: float) -> Prediction:
    model = GPClassifier(
        bounds=cell.bounds, epsilon=epsilon, delta=cell.delta, random_state=cell.seed
    )
    model.fit(_records(cell))
    return Prediction(model.predict_proba(pyarrow.table(as_columns(cell.bounds, cell.X_new))))


def _records(cell: Cell) -> pyarrow.Table:
    """Inputs and output as people have them."""
    (output,) = cell.bounds.y_names or ()
    outputs = cell.y
    if cell.bounds.classes is not None:
        outputs = cell.y.astype(np.int64)
    return pyarrow.table({**as_columns(cell.bounds, cell.X), output: outputs})


def _dpsgd(cell: Cell, epsilon: float) -> Prediction:
    X, ranges = one_hot(cell.bounds, cell.X)
    X_new, _ = one_hot(cell.bounds, cell.X_new)
    if cell.bounds.classes is not None:
        bounds = Bounds(x=ranges, classes=list(cell.bounds.classes))
        return Prediction(
            dpsgd.chances(X, cell.y, X_new, bounds, epsilon, cell.delta, cell.seed, True)
        )
    bounds = Bounds(x=ranges, y=cell.bounds.y[0])
    found = dpsgd.predict(X, cell.y, X_new, bounds, epsilon, cell.delta, cell.seed, True)
    return Prediction(np.clip(found, *cell.bounds.y[0]))


def _ebm(cell: Cell, epsilon: float) -> Prediction:
    if cell.bounds.classes is not None:
        return Prediction(ebm.chances(cell, epsilon))
    return Prediction(np.clip(ebm.predict(cell, epsilon), *cell.bounds.y[0]))


def _boosting(cell: Cell, _: float, classes: bool) -> Prediction:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    words = [kind.levels is not None and not kind.ordered for kind in cell.bounds.x_kinds]
    options = {
        "learning_rate": 0.05,
        "early_stopping": True,
        "random_state": cell.seed,
        "categorical_features": words,
    }
    if classes:
        classifier = HistGradientBoostingClassifier(**options).fit(cell.X, cell.y)
        return Prediction(classifier.predict_proba(cell.X_new))
    return Prediction(
        HistGradientBoostingRegressor(**options).fit(cell.X, cell.y).predict(cell.X_new)
    )


def _methods(ours: Method, plain: Method, classes: bool) -> dict[str, Method]:
    found = (
        ours,
        Method(EBM, one_by_one(_ebm), digest(_ebm, ebm), style=("dots", "-", "^")),
        Method(PEER, one_by_one(_dpsgd), digest(_dpsgd, one_hot, dpsgd), style=("paper", "-", "s")),
        plain,
        Method(
            "boosting, not private",
            one_by_one(partial(_boosting, classes=classes)),
            digest(_boosting),
            private=False,
            style=("truth", "--", ""),
        ),
    )
    return {method.name: method for method in found}


_OURS = Method("GPRegressor", one_by_one(_gp), digest(_gp, *CODE), style=("reticent", "-", "o"))
_OUR_CLASSES = Method(
    "GPClassifier",
    one_by_one(_gp_classes),
    digest(_gp_classes, *CODE),
    style=("reticent", "-", "o"),
)
MIXED_NUMBERS = Comparison(
    _OURS.name,
    None,
    NUMBERS.plain,
    MIXED_NUMBER_TASKS,
    _methods(_OURS, METHODS[NUMBERS.plain], False),
    NUMBERS.judge,
    NUMBERS.measures,
    NUMBERS.aside,
    (NUMBERS.legend[0], _RELATIONS),
    quick="patients",
    splits=(5, 3, 3),
    delta=DELTA,
)
MIXED_CLASSES = Comparison(
    _OUR_CLASSES.name,
    None,
    CLASSES.plain,
    MIXED_CLASS_TASKS,
    _methods(_OUR_CLASSES, CLASS_METHODS[CLASSES.plain], True),
    CLASSES.judge,
    CLASSES.measures,
    CLASSES.aside,
    (CLASSES.legend[0], _RELATIONS),
    quick="patients",
    splits=(5, 3, 3),
    delta=DELTA,
)
