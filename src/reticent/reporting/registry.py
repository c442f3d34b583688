"""Registry: the presenter of each model, by the model's class.

A new model is a line here. Its presenter is imported when it is needed.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from reticent.errors import BadInput

if TYPE_CHECKING:
    from reticent.models.base import PrivateEstimator
    from reticent.reporting.presenter import Presenter

__all__ = ["PRESENTERS", "has_presenter", "presenter_class", "presenter_of", "unwrap_search"]

PRESENTERS = {  # module in `reporting.presenters` and class, by the name of the model's class
    "PrivateMean": ("descriptive", "MeanPresenter"),
    "PrivateHistogram": ("descriptive", "HistogramPresenter"),
    "PrivateCovariance": ("descriptive", "CovariancePresenter"),
    "PrivateTable": ("binned", "TablePresenter"),
    "GaussianMixture": ("mixture", "MixturePresenter"),
    "KMeans": ("clusters", "ClusterPresenter"),
    "FactorAnalysis": ("factors", "FactorPresenter"),
    "PCA": ("factors", "ComponentPresenter"),
    "GPRegressor": ("regression", "RegressionPresenter"),
    "LabelGPRegressor": ("regression", "LabelPresenter"),
    "BinnedGPRegressor": ("binned", "BinnedPresenter"),
    "GPClassifier": ("classification", "ClassificationPresenter"),
}


def unwrap_search(fitted: "PrivateEstimator") -> "PrivateEstimator":
    """Give the model that a search has found; any other model is itself."""
    if hasattr(fitted, "best_estimator_"):
        found: PrivateEstimator = fitted.best_estimator_
        return found
    return fitted


def has_presenter(fitted: "PrivateEstimator") -> bool:
    """Whether there is a presenter of a fitted model; a class of the user's own may have none."""
    bases = type(unwrap_search(fitted)).__mro__
    return any(base.__name__ in PRESENTERS for base in bases)


def presenter_class(kind: type) -> "type[Presenter[Any]]":
    """Find the presenter of a class of models, or of the class that it extends."""
    for base in kind.__mro__:
        if base.__name__ in PRESENTERS:
            module, name = PRESENTERS[base.__name__]
            found = getattr(import_module(f"reticent.reporting.presenters.{module}"), name)
            presenter: type[Presenter[Any]] = found
            return presenter
    raise BadInput(
        f"There is no report and no drawing of {kind.__name__} yet: use it from Python, "
        "reticent.load(…).predict(…)."
    )


def presenter_of(fitted: "PrivateEstimator") -> "Presenter[Any]":
    """Give the presenter of a fitted model; of a search, that of the model it found."""
    model = unwrap_search(fitted)
    return presenter_class(type(model))(model, fitted)
