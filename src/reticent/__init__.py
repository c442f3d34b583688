"""reticent: models that learn from everyone and tell on no one.

The public names, imported on first use so that ``import reticent`` stays quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from reticent import errors

__version__ = "0.2.0.dev0"

_HOMES = {
    "reticent.apps.plan": ("plan",),
    "reticent.apps.service.client": ("BanditClient", "LocalClient"),
    "reticent.errors": errors.__all__,
    "reticent.privacy.accounting": ("calibrate", "epsilon"),
    "reticent.privacy.bounds": ("Bounds",),
    "reticent.privacy.curator": ("Curator", "Release", "Replay"),
    "reticent.privacy.events": ("Event", "Gaussian", "Laplace", "Pure", "Selection"),
    "reticent.privacy.guarantee": ("Guarantee",),
    "reticent.privacy.ledger": ("Ledger",),
    "reticent.privacy.shared": ("Shared",),
    "reticent.privacy.sources": ("scan",),
    "reticent.privacy.statistic": ("Counts", "Gram", "Statistic", "Sum"),
    "reticent.models.bandit": ("JointBandit",),
    "reticent.models.base": ("PrivateEstimator",),
    "reticent.models.binned_gp": ("BinnedGPRegressor",),
    "reticent.models.classifier": ("GPClassifier",),
    "reticent.models.clusters": ("KMeans",),
    "reticent.models.covariance": ("PrivateCovariance",),
    "reticent.models.factors": ("PCA", "FactorAnalysis"),
    "reticent.models.gp": ("GPRegressor",),
    "reticent.models.histogram": ("PrivateHistogram",),
    "reticent.models.label_gp": ("LabelGPRegressor",),
    "reticent.models.mixture": ("GaussianMixture",),
    "reticent.models.local_bandit": ("LocalBanditClient", "LocalBanditServer"),
    "reticent.models.mean": ("PrivateMean",),
    "reticent.models.obfuscator": ("Obfuscator",),
    "reticent.models.search": ("PrivateSearch",),
    "reticent.models.storage": ("load",),
}
_MODULES = {"plot": "reticent.plot"}
_HOME = {name: home for home, names in _HOMES.items() for name in names} | _MODULES

__all__ = [
    "PCA",
    "BadInput",
    "BanditClient",
    "BinnedGPRegressor",
    "Bounds",
    "BoundsMissing",
    "BudgetExceeded",
    "CorruptModel",
    "Counts",
    "Curator",
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
    "Obfuscator",
    "PrivateCovariance",
    "PrivateEstimator",
    "PrivateHistogram",
    "PrivateMean",
    "PrivateSearch",
    "Pure",
    "Release",
    "ReleaseRefused",
    "Replay",
    "ReticentError",
    "Selection",
    "Shared",
    "Statistic",
    "Sum",
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
    from reticent.apps.plan import plan
    from reticent.apps.service.client import BanditClient, LocalClient
    from reticent.errors import (
        BadInput,
        BoundsMissing,
        BudgetExceeded,
        CorruptModel,
        LedgerError,
        ReleaseRefused,
        ReticentError,
    )
    from reticent.models.bandit import JointBandit
    from reticent.models.base import PrivateEstimator
    from reticent.models.binned_gp import BinnedGPRegressor
    from reticent.models.classifier import GPClassifier
    from reticent.models.clusters import KMeans
    from reticent.models.covariance import PrivateCovariance
    from reticent.models.factors import PCA, FactorAnalysis
    from reticent.models.gp import GPRegressor
    from reticent.models.histogram import PrivateHistogram
    from reticent.models.label_gp import LabelGPRegressor
    from reticent.models.local_bandit import LocalBanditClient, LocalBanditServer
    from reticent.models.mean import PrivateMean
    from reticent.models.mixture import GaussianMixture
    from reticent.models.obfuscator import Obfuscator
    from reticent.models.search import PrivateSearch
    from reticent.models.storage import load
    from reticent.privacy.accounting import calibrate, epsilon
    from reticent.privacy.bounds import Bounds
    from reticent.privacy.curator import Curator, Release, Replay
    from reticent.privacy.events import Event, Gaussian, Laplace, Pure, Selection
    from reticent.privacy.guarantee import Guarantee
    from reticent.privacy.ledger import Ledger
    from reticent.privacy.shared import Shared
    from reticent.privacy.sources import scan
    from reticent.privacy.statistic import Counts, Gram, Statistic, Sum


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'reticent' has no attribute {name!r}")
    home = import_module(_HOME[name])
    value = home if name in _MODULES else getattr(home, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
