"""Not a test: models that were never fitted, with what is shown of them and no more, so that every number is known by hand."""

from types import SimpleNamespace as Bare

import numpy as np

import reticent
from reticent.apps.terminal import console

__all__ = ["Bare", "Classifier", "Regression", "said", "simple"]

PROMISE = Bare(private=True, epsilon=1.0, delta=1e-5)


def simple(ranges, names=None, n=1000, **values):
    """A model of single columns: a release of ``n`` records within ``ranges``, and whatever it has found."""
    bounds = reticent.Bounds(x=dict(zip(names, ranges, strict=True)) if names else ranges)
    named = {} if names is None else {"feature_names_in_": np.array(names, dtype=object)}
    release = Bare(bounds=bounds, n=n, statistic={"name": "Sums"})
    return Bare(releases_=[release], n_features_in_=len(ranges), guarantee_=PROMISE, **named, **values)


class Regression:
    """A regression whose function, and the variances of whose doubt, are given."""

    def __init__(self, function, ranges, variances=(0.04, 0.05, 0.16), **own):
        self.function, self.variances = function, variances
        bounds = reticent.Bounds(x=ranges, y={"yield": (0, 10)}, norm=own.pop("norm", None))
        self.releases_ = [Bare(bounds=bounds, n=1000, statistic={"name": "Sums"})]
        self.n_features_in_, self.guarantee_, self.noise_ = len(ranges), PROMISE, variances[2] ** 0.5
        self.prior_std_, self._params = 1.0, {"kernel": None, "learn_kernel": True}
        if isinstance(ranges, dict):
            self.feature_names_in_ = np.array(list(ranges), dtype=object)
        vars(self).update(own)

    def predict(self, X, return_std=False):
        mean = self.function(np.asarray(X, dtype=float))
        sd = np.full(len(mean), (self.variances[0] + self.variances[1]) ** 0.5)
        return (mean, sd) if return_std else mean

    def variance_parts(self, X):
        return {part: np.full(len(X), v) for part, v in zip(("model", "privacy", "noise"), self.variances, strict=True)}


class Classifier:
    """A classifier whose chances are given; its bands reach ``doubt`` to both sides, half as far without privacy noise."""

    method = "softmax"

    def __init__(self, chances, ranges, classes=("no", "yes"), doubt=0.1):
        self.chances, self.doubt, self.classes_ = chances, doubt, np.array(classes, dtype=object)
        bounds = reticent.Bounds(x=ranges, classes={"ill": list(classes)})
        self.releases_, self.guarantee_ = [Bare(bounds=bounds, n=1000, statistic={"name": "Sums"})], PROMISE
        self.n_features_in_, self._params = len(ranges), {"kernel": None, "learn_kernel": True}
        self.feature_names_in_ = np.array(list(ranges), dtype=object)

    def predict_proba(self, X):
        return self.chances(np.asarray(X, dtype=float))

    def predict_proba_band(self, X, privacy=True):
        found, reach = self.predict_proba(X), self.doubt if privacy else self.doubt / 2
        return np.clip(found - reach, 0, 1), np.clip(found + reach, 0, 1)


def said(capsys, content):
    """What a terminal of 80 letters shows."""
    capsys.readouterr()
    console().print(content)
    return capsys.readouterr().out
