"""Not a test: models that were never fitted, with what is shown of them and no more, so that every
number is known by hand.
"""

from types import SimpleNamespace as Bare

import numpy as np

import reticent
from reticent import Release
from reticent.cli.terminal import console
from reticent.cli.views.results import render_blocks
from reticent.privacy.unit import PrivacyUnit

__all__ = [
    "Bare",
    "BareRelease",
    "Classifier",
    "Regression",
    "printed",
    "printed_summary",
    "simple",
]


class BareRelease(Bare):
    """A release of few fields, which knows what it is of."""

    is_of = Release.is_of
    unit = PrivacyUnit()


PROMISE = Bare(private=True, epsilon=1.0, delta=1e-5)


def simple(ranges, names=None, n=1000, **values):
    """A model of single columns.

    A release of ``n`` records within ``ranges``, and whatever it has found.
    """
    bounds = reticent.Bounds(x=dict(zip(names, ranges, strict=True)) if names else ranges)
    named = {} if names is None else {"feature_names_in_": np.array(names, dtype=object)}
    release = BareRelease(bounds=bounds, n=n, statistic={"name": "Sums"})
    return Bare(
        releases_=[release], n_features_in_=len(ranges), guarantee_=PROMISE, **named, **values
    )


class Regression:
    """A regression whose function, and the variances of whose doubt, are given."""

    def __init__(self, function, ranges, variances=(0.04, 0.05, 0.16), **own):
        self.function = function
        self.variances = variances
        bounds = reticent.Bounds(x=ranges, y={"yield": (0, 10)}, norm=own.pop("norm", None))
        self.releases_ = [BareRelease(bounds=bounds, n=1000, statistic={"name": "Sums"})]
        self.n_features_in_ = len(ranges)
        self.guarantee_ = PROMISE
        self.noise_ = variances[2] ** 0.5
        self.prior_std_ = 1.0
        self._params = {"kernel": None, "learn_kernel": True}
        if isinstance(ranges, dict):
            self.feature_names_in_ = np.array(list(ranges), dtype=object)
        vars(self).update(own)

    def predict(self, X, return_std=False):
        mean = self.function(np.asarray(X, dtype=float))
        sd = np.full(len(mean), (self.variances[0] + self.variances[1]) ** 0.5)
        return (mean, sd) if return_std else mean

    def variance_parts(self, X):
        return {
            part: np.full(len(X), v)
            for part, v in zip(("model", "privacy", "noise"), self.variances, strict=True)
        }


class Classifier:
    """A classifier whose probabilities are given.

    Its bands reach ``doubt`` to both sides, half as far without privacy noise.
    """

    method = "softmax"

    def __init__(self, chances, ranges, classes=("no", "yes"), doubt=0.1):
        self.chances = chances
        self.doubt = doubt
        self.classes_ = np.array(classes, dtype=object)
        bounds = reticent.Bounds(x=ranges, classes={"ill": list(classes)})
        self.releases_ = [BareRelease(bounds=bounds, n=1000, statistic={"name": "Sums"})]
        self.guarantee_ = PROMISE
        self.n_features_in_ = len(ranges)
        self._params = {"kernel": None, "learn_kernel": True}
        self.feature_names_in_ = np.array(list(ranges), dtype=object)

    def predict_proba(self, X):
        return self.chances(np.asarray(X, dtype=float))

    def predict_proba_band(self, X, privacy=True):
        found = self.predict_proba(X)
        reach = self.doubt if privacy else self.doubt / 2
        return np.clip(found - reach, 0, 1), np.clip(found + reach, 0, 1)


def printed(capsys, content):
    """Give what a terminal of 80 letters shows of ``content``."""
    capsys.readouterr()
    console().print(content)
    return capsys.readouterr().out


def printed_summary(capsys, presenter):
    """Give what a terminal of 80 letters shows of a model."""
    return printed(capsys, render_blocks(presenter.summary()))
