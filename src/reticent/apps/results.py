"""The models that the command line and the report know. A new one is a line here; its entry stands in the file that shows it."""

from typing import Any

from reticent.apps.columns import COVARIANCE, HISTOGRAM, MEAN
from reticent.apps.parts import MIXTURE
from reticent.apps.report_classes import CLASSIFIER
from reticent.apps.report_curves import BINNED, LABELS, REGRESSION
from reticent.apps.shown import Model
from reticent.apps.structure import CLUSTERS, COMPONENTS, FACTORS
from reticent.errors import BadInput

__all__ = ["MODELS", "model_of"]

MODELS = {  # by their word in ``reticent fit``
    "mean": MEAN,
    "mixture": MIXTURE,
    "histogram": HISTOGRAM,
    "covariance": COVARIANCE,
    "gp": REGRESSION,
    "gp-binned": BINNED,
    "gp-labels": LABELS,
    "classifier": CLASSIFIER,
    "kmeans": CLUSTERS,
    "factors": FACTORS,
    "components": COMPONENTS,
}


def model_of(estimator: Any) -> Model:
    """Find the entry of a fitted estimator."""
    while hasattr(estimator, "model"):  # of which it may be one output, or which a search has found
        estimator = estimator.model
    entries = {model.estimator: model for model in MODELS.values()}
    for kind in type(estimator).__mro__:
        if kind.__name__ in entries:
            return entries[kind.__name__]
    name = type(estimator).__name__
    raise BadInput(f"There is no report and no drawing of {name} yet: use it from Python, reticent.load(…).predict(…).")
