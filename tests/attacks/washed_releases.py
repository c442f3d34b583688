"""Releases that are changed after they were made.

A seed that is forgotten, a promise that grows.
"""

from dataclasses import replace

import numpy as np

import reticent
from tests.attacks.harness import Outcome, attack

X = np.random.default_rng(0).uniform(0, 10, (500, 1))
Y = np.sin(X[:, 0])
BOUNDS = reticent.Bounds(x=[(0, 10)], y=(-2, 2))
BOX = reticent.Bounds(x=[(0, 10)])
PROMISE = {"epsilon": 1.0, "delta": 1e-6}


@attack("4g", "dataclasses.replace(release, private=True) forgets that the noise came from a seed")
def forgotten_seed() -> Outcome:
    model = reticent.PrivateMean(bounds=BOX, **PROMISE, random_state=1).fit(X)
    washed = [replace(release, private=True) for release in model.releases_]
    again = reticent.PrivateMean.from_releases(washed, bounds=BOX, **PROMISE)
    figure = f"private={model.guarantee_.private} becomes private={again.guarantee_.private}"
    return Outcome(again.guarantee_.private, figure)


def forged(releases: list[reticent.Release], **changes: object) -> list[reticent.Release]:
    """Releases with some fields changed, and with a checksum that is right again."""
    again = {"checksum": None} if hasattr(releases[0], "checksum") else {}
    return [replace(release, **again, **changes) for release in releases]


@attack("4h", "A release is said to have had more noise than it had")
def more_noise() -> Outcome:
    model = reticent.PrivateMean(bounds=BOX, **PROMISE).fit(X)
    event = reticent.Gaussian(noise_multiplier=1e20)
    washed = forged(model.releases_, event=event)
    again = reticent.PrivateMean.from_releases(washed, bounds=BOX, **PROMISE)
    return Outcome(
        again.guarantee_.epsilon < 0.9, f"ε = 1 becomes ε = {again.guarantee_.epsilon:.2g}"
    )


@attack("4i", "A model for people with one record is read as one for people with fifty")
def more_records() -> Outcome:
    model = reticent.PrivateMean(bounds=BOX, **PROMISE).fit(X)
    washed = forged(model.releases_, records_per_person=50)
    again = reticent.PrivateMean.from_releases(washed, bounds=BOX, **PROMISE, records_per_person=50)
    protected = again.guarantee_.records_per_person
    return Outcome(
        protected > 1, f"the statement protects {protected} records of a person; the noise hides 1"
    )


class Whole(reticent.LabelGPRegressor):
    """A class of one's own that reads label releases, and says that whole records are protected."""

    _relation = "record"


@attack("4j", "A subclass reads releases that protect labels as if they protected records")
def labels_as_records() -> Outcome:
    model = reticent.LabelGPRegressor(bounds=BOUNDS, **PROMISE, learn_kernel=False, stages=1).fit(
        X[:40], Y[:40]
    )
    again = Whole.from_releases(model.releases_, **{**model.get_params(deep=False)})
    washed = again.guarantee_.relation != model.guarantee_.relation
    return Outcome(
        washed, f"protects one {model.guarantee_.relation}, says one {again.guarantee_.relation}"
    )


@attack("4k", "A statistic's noise is said to be a thousandth of what it was")
def forged_scale() -> Outcome:
    model = reticent.PrivateMean(bounds=BOX, **PROMISE).fit(X)
    washed = forged(model.releases_, scale=model.releases_[0].scale / 1000)
    again = reticent.PrivateMean.from_releases(washed, bounds=BOX, **PROMISE)
    return Outcome(
        True, f"the mean says ± {again.mean_sd_[0]:.1g} and has ± {model.mean_sd_[0]:.1g}"
    )


@attack("7", "The statement of a promise rounds its numbers down")
def rounded_statement() -> Outcome:
    eps = 1.0000004
    delta = 1.0000004e-6
    event = reticent.Gaussian(noise_multiplier=reticent.calibrate(eps, delta))
    promise = reticent.Guarantee(delta=delta, relation="record", events=(event,), private=True)
    stated = [float(word) for word in promise.statement.partition(")")[0].strip("(").split(", ")]
    worse = stated[0] < promise.epsilon or stated[1] < promise.delta
    return Outcome(
        worse,
        f"says ({stated[0]}, {stated[1]}), and is ({promise.epsilon:.8g}, {promise.delta:.8g})",
    )
