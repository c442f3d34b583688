"""reticent: models that learn from everyone and tell on no one.

The public names, imported on first use so that ``import reticent`` stays quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from reticent import errors

__version__ = "0.3.0.dev0"

_HOMES = {
    "reticent.planning.plan": ("plan",),
    "reticent.service.client": ("BanditClient", "LocalClient"),
    "reticent.errors": errors.__all__,
    "reticent.privacy.accounting.composition": ("calibrate", "epsilon"),
    "reticent.privacy.bounds": ("Bounds",),
    "reticent.privacy.columns.dates": ("Date",),
    "reticent.privacy.columns.numbers": ("Cyclic", "Number", "Whole"),
    "reticent.privacy.columns.words": ("Ordered", "Words", "YesNo"),
    "reticent.models.replay": ("Replay",),
    "reticent.privacy.curator": ("Curator", "Release"),
    "reticent.privacy.accounting.events": ("Event", "Gaussian", "Laplace", "Pure", "Selection"),
    "reticent.privacy.accounting.guarantee": ("Guarantee",),
    "reticent.privacy.ledger.ledger": ("Ledger",),
    "reticent.privacy.statistics.assignment_moments": ("AssignmentMoments",),
    "reticent.privacy.sources.base": ("scan",),
    "reticent.privacy.statistics.base": ("Statistic",),
    "reticent.privacy.statistics.counts": ("Counts",),
    "reticent.privacy.statistics.gram": ("Gram",),
    "reticent.privacy.statistics.sum": ("Sum",),
    "reticent.models.bandits.joint": ("JointBandit",),
    "reticent.models.base": ("PrivateEstimator",),
    "reticent.models.gp.binned_regressor": ("BinnedGPRegressor",),
    "reticent.models.gp.classifier": ("GPClassifier",),
    "reticent.models.mixtures.kmeans": ("KMeans",),
    "reticent.models.descriptive.covariance": ("PrivateCovariance",),
    "reticent.models.mixtures.factor_analysis": ("PCA", "FactorAnalysis"),
    "reticent.models.gp.regressor": ("GPRegressor",),
    "reticent.models.descriptive.histogram": ("PrivateHistogram",),
    "reticent.models.gp.label_regressor": ("LabelGPRegressor",),
    "reticent.models.mixtures.gaussian_mixture": ("GaussianMixture",),
    "reticent.models.bandits.local": ("LocalBanditClient", "LocalBanditServer"),
    "reticent.models.descriptive.mean": ("PrivateMean",),
    "reticent.models.descriptive.table": ("PrivateTable",),
    "reticent.obfuscation.obfuscator": ("Obfuscator",),
    "reticent.models.selection.private_search": ("PrivateSearch",),
    "reticent.models.serialization": ("load",),
}
_MODULES = {"plot": "reticent.plot"}
_HOME = {name: home for home, names in _HOMES.items() for name in names} | _MODULES

__all__ = [
    "PCA",
    "AssignmentMoments",
    "BadFile",
    "BadInput",
    "BanditClient",
    "BinnedGPRegressor",
    "Bounds",
    "BoundsMissing",
    "BudgetExceeded",
    "CorruptModel",
    "Counts",
    "Curator",
    "Cyclic",
    "Date",
    "Event",
    "FactorAnalysis",
    "GPClassifier",
    "GPRegressor",
    "Gaussian",
    "GaussianMixture",
    "Gram",
    "Guarantee",
    "JointBandit",
    "KMeans",
    "LabelGPRegressor",
    "Laplace",
    "Ledger",
    "LedgerError",
    "LocalBanditClient",
    "LocalBanditServer",
    "LocalClient",
    "Number",
    "Obfuscator",
    "Ordered",
    "PrivateCovariance",
    "PrivateEstimator",
    "PrivateHistogram",
    "PrivateMean",
    "PrivateSearch",
    "PrivateTable",
    "Pure",
    "Release",
    "ReleaseRefused",
    "Replay",
    "ReticentError",
    "Selection",
    "Statistic",
    "Sum",
    "Whole",
    "Words",
    "YesNo",
    "__version__",
    "calibrate",
    "epsilon",
    "load",
    "plan",
    "plot",
    "scan",
]

if TYPE_CHECKING:
    from reticent import plot
    from reticent.errors import (
        BadFile,
        BadInput,
        BoundsMissing,
        BudgetExceeded,
        CorruptModel,
        LedgerError,
        ReleaseRefused,
        ReticentError,
    )
    from reticent.models.bandits.joint import JointBandit
    from reticent.models.bandits.local import LocalBanditClient, LocalBanditServer
    from reticent.models.base import PrivateEstimator
    from reticent.models.descriptive.covariance import PrivateCovariance
    from reticent.models.descriptive.histogram import PrivateHistogram
    from reticent.models.descriptive.mean import PrivateMean
    from reticent.models.descriptive.table import PrivateTable
    from reticent.models.gp.binned_regressor import BinnedGPRegressor
    from reticent.models.gp.classifier import GPClassifier
    from reticent.models.gp.label_regressor import LabelGPRegressor
    from reticent.models.gp.regressor import GPRegressor
    from reticent.models.mixtures.factor_analysis import PCA, FactorAnalysis
    from reticent.models.mixtures.gaussian_mixture import GaussianMixture
    from reticent.models.mixtures.kmeans import KMeans
    from reticent.models.replay import Replay
    from reticent.models.selection.private_search import PrivateSearch
    from reticent.models.serialization import load
    from reticent.obfuscation.obfuscator import Obfuscator
    from reticent.planning.plan import plan
    from reticent.privacy.accounting.composition import calibrate, epsilon
    from reticent.privacy.accounting.events import Event, Gaussian, Laplace, Pure, Selection
    from reticent.privacy.accounting.guarantee import Guarantee
    from reticent.privacy.bounds import Bounds
    from reticent.privacy.columns.dates import Date
    from reticent.privacy.columns.numbers import Cyclic, Number, Whole
    from reticent.privacy.columns.words import Ordered, Words, YesNo
    from reticent.privacy.curator import Curator, Release
    from reticent.privacy.ledger.ledger import Ledger
    from reticent.privacy.sources.base import scan
    from reticent.privacy.statistics.assignment_moments import AssignmentMoments
    from reticent.privacy.statistics.base import Statistic
    from reticent.privacy.statistics.counts import Counts
    from reticent.privacy.statistics.gram import Gram
    from reticent.privacy.statistics.sum import Sum
    from reticent.service.client import BanditClient, LocalClient


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'reticent' has no attribute {name!r}")
    home = import_module(_HOME[name])
    if name in _MODULES:
        value = home
    else:
        value = getattr(home, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
