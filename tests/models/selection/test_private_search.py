"""PrivateSearch.

Finds what is better, is rebuilt from the best run's releases, and is charged as a whole.
"""

from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_classifier, is_regressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.model_selection import GridSearchCV

import reticent
from reticent import (
    BadInput,
    Bounds,
    GPRegressor,
    Ledger,
    PrivateCovariance,
    PrivateHistogram,
    PrivateMean,
    PrivateSearch,
    Selection,
)
from reticent.models.replay import Replay
from reticent.models.selection import scoring as rules
from reticent.models.selection.scoring import (
    MEAN_ESTIMATORS,
    SCORES,
    MeanScore,
    release_mean_score,
)
from reticent.models.selection.settings import SEARCH
from reticent.privacy.curator import Curator
from reticent.privacy.sources.base import scan
from reticent.privacy.statistics.counts import Counts

RNG = np.random.default_rng(0)
AGES = RNG.gamma(9, 5, size=(4000, 1))
X = RNG.uniform(0, 10, size=(3000, 2))
Y = np.sin(X[:, 0]) + 0.1 * RNG.normal(size=3000)
PLANE = Bounds(x=[(0, 10), (0, 10)], y=(-2, 2))
PROMISE = {"epsilon": 3.0, "delta": 1e-6}
HISTOGRAM = {"bounds": Bounds(x=(0, 110)), **PROMISE}


def gp(**options):
    """A small, quick one."""
    return GPRegressor(**{"stages": 3, "basis": 8, "learn_kernel": False, **options})


@dataclass(frozen=True)
class LabelCounts(Counts):
    """Labels in the left half and in the right half of the first input."""

    classes: int

    @property
    def groups(self):
        return (2 * self.classes,)

    def cells(self, records):
        return (records[:, -1] + self.classes * (records[:, 0] > 0))[:, None]


@dataclass(repr=False, eq=False)
class Halves(ClassifierMixin, reticent.PrivateEstimator):
    """A classifier for tests.

    The share of each label in either half; ``split=False`` ignores the input.
    """

    _targets = True

    split: bool = True

    def learn(self, curator):
        labels = curator.bounds.classes
        counts = curator.release(LabelCounts(len(labels))).value.reshape(2, len(labels))
        counts = np.maximum(counts if self.split else counts.sum(axis=0) * np.ones((2, 1)), 1.0)
        self.classes_ = np.array(labels)
        self._shares = counts / counts.sum(axis=1, keepdims=True)

    def predict_proba(self, X):
        return self._shares[(self._unit(X)[:, 0] > 0).astype(int)]

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


def test_the_better_candidate_is_found():
    bins = PrivateSearch(PrivateHistogram(), {"bins": [2, 20]}, **HISTOGRAM, random_state=1).fit(
        AGES
    )
    assert bins.best_candidate_ == {"bins": 20}
    assert bins.candidates_ == [{"bins": 2}, {"bins": 20}]
    kernels = [{"kernel": RBF(1.5, "fixed")}, {"kernel": RBF(500.0, "fixed")}]
    search = PrivateSearch(gp(), kernels, bounds=PLANE, **PROMISE, random_state=0).fit(X, Y)
    assert search.best_index_ == 0
    assert search.best_score_ == pytest.approx(
        -np.abs(search.predict(X) - Y).mean(), abs=5 * search.best_score_sd_
    )
    assert search.score(X, Y) > 0.5
    assert set(search.variance_parts(X)) == {"model", "privacy", "noise"}
    assert is_regressor(search)
    assert not hasattr(search, "predict_proba")


def test_columns_and_bounds_are_candidates_and_scored_alike():
    """Narrow bounds of y would make a task look easy: all are scored within those of the search."""
    import pandas as pd

    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": Y})
    named = {
        name: Bounds(x={name: (0, 10)}, y={"y": limits})
        for name, limits in (("a", (-2, 2)), ("b", (-2, 2)))
    }
    narrow = Bounds(x={"b": (0, 10)}, y={"y": (-0.01, 0.01)})
    candidates = [{"bounds": named["b"]}, {"bounds": narrow}, {"bounds": named["a"]}]
    whole = Bounds(x={"a": (0, 10), "b": (0, 10)}, y={"y": (-2, 2)})
    search = PrivateSearch(
        gp(), candidates, bounds=whole, **PROMISE, expected_runs=40, random_state=0
    ).fit(frame)
    assert search.best_index_ == 2
    assert search.feature_names_in_.tolist() == ["a"]
    assert search.predict(frame[["a"]]).shape == (3000,)
    assert search.releases_[0].n == 3000
    assert search.releases_[-1].bounds.y == ((-2.0, 2.0),)
    with pytest.raises(BadInput, match="cannot be compared"):
        PrivateSearch(PrivateMean(), [{}, {"bounds": Bounds(x=(0, 50))}], **HISTOGRAM).fit(AGES)


@pytest.mark.parametrize("scoring", ["accuracy", "log"])
def test_classifiers(scoring):
    labels = np.where(X[:, 0] > 5, "yes", "no")
    bounds = Bounds(x=[(0, 10), (0, 10)], classes=["no", "perhaps", "yes"])
    search = PrivateSearch(
        Halves(),
        {"split": [False, True]},
        scoring=scoring,
        bounds=bounds,
        **PROMISE,
        random_state=0,
    )
    search.fit(X, labels)
    assert is_classifier(search)
    assert search.best_candidate_ == {"split": True}
    assert search.classes_.tolist() == ["no", "perhaps", "yes"]
    assert (search.predict(X) == labels).mean() > 0.95
    assert search.predict_proba(X).shape == (3000, 3)
    assert search.best_score_ == pytest.approx(1.0 if scoring == "accuracy" else 0.0, abs=0.1)


@pytest.mark.parametrize(
    "estimator", [PrivateMean(), PrivateHistogram(), PrivateCovariance()], ids=repr
)
@pytest.mark.parametrize("mean", MEAN_ESTIMATORS)
def test_every_estimator_and_mean(estimator, mean, tmp_path):
    search = PrivateSearch(estimator, [{}, {}], mean=mean, **HISTOGRAM, random_state=0).fit(AGES)
    assert search.best_score_ == pytest.approx(
        search.score(AGES), abs=5 * search.best_score_sd_ + 0.05
    )
    assert len(search.releases_) == 1 + 1 + SEARCH.shares(mean)
    search.save(tmp_path / "m")
    loaded = reticent.load(tmp_path / "m")
    assert loaded.best_score_ == search.best_score_
    assert repr(loaded.best_estimator_) == repr(search.best_estimator_)


@pytest.mark.parametrize("scoring", ["absolute", "squared", "likelihood"])
@pytest.mark.parametrize("mean", MEAN_ESTIMATORS)
def test_scores_of_numbers(scoring, mean):
    search = PrivateSearch(
        gp(), [{}], scoring=scoring, mean=mean, bounds=PLANE, epsilon=30.0, delta=1e-6
    ).fit(X, Y)
    best = search.best_estimator_
    error = Y - search.predict(X)
    variance = sum(best.variance_parts(X).values())
    expected = {
        "absolute": -np.abs(error),
        "squared": -(error**2),
        "likelihood": -(np.log(2 * np.pi * variance) + error**2 / variance) / 2,
    }[scoring]
    assert search.best_score_ == pytest.approx(
        expected.mean(), abs=0.1 * abs(expected).mean() + 5 * search.best_score_sd_
    )


def mean_score(values, mean, low=-1.0, high=0.0, multiplier=0.02):
    """Private mean of given scores, by a search's own means; the record is its score."""
    SCORES["given"] = rules._Score(lambda m, b: (low, high), lambda m, X, y, b: X[:, 0], 0.01)
    try:
        bounds = Bounds(x=[(low, high)])
        event = reticent.Gaussian(
            count=SEARCH.shares(mean), noise_multiplier=multiplier * SEARCH.shares(mean) ** 0.5
        )
        return release_mean_score(
            None, Curator(scan(values[:, None]), bounds=bounds, event=event), "given", mean
        )
    finally:
        del SCORES["given"]


def test_means_are_right_and_narrowing_pays():
    scores = -np.abs(RNG.normal(0.02, 0.005, size=2000))
    told = {mean: mean_score(scores, mean, multiplier=5.0) for mean in MEAN_ESTIMATORS}
    for mean, one in told.items():
        assert isinstance(one, MeanScore)
        assert one.score == pytest.approx(scores.mean(), abs=5 * one.sd + 0.002), mean
    for mean in (
        "coinpress",
        "robust",
    ):  # where the scores lie is found with noise, and missed now and then
        usual = np.median([mean_score(scores, mean, multiplier=5.0).sd for _ in range(9)])
        assert usual < 0.3 * told["clipped"].sd
    for mean in MEAN_ESTIMATORS:
        assert mean_score(scores, mean).score == pytest.approx(scores.mean(), abs=2e-3)
        constant = mean_score(np.full(500, -1.0), mean)
        assert constant.score == pytest.approx(-1.0, abs=0.01)
    outliers = np.concatenate([scores, np.full(60, -1.0)])
    assert mean_score(outliers, "robust").score == pytest.approx(scores.mean(), abs=0.005)
    assert mean_score(outliers, "clipped").score == pytest.approx(outliers.mean(), abs=0.001)


def test_a_score_of_ones_own():
    def near_forty(model, X, y):
        assert y is None
        return 1.0 - np.abs(X[:, 0] - 40) / 110 + model.bins * 10.0

    search = PrivateSearch(
        PrivateHistogram(), {"bins": [3, 5]}, scoring=near_forty, **HISTOGRAM
    ).fit(AGES)
    assert search.best_score_ == pytest.approx(1.0, abs=5 * search.best_score_sd_)  # held to [0, 1]
    with pytest.raises(BadInput, match="cannot be written"):
        search.save("never")


def test_rebuilt_and_saved_with_all_that_candidates_hold(tmp_path):
    candidates = [
        {"kernel": RBF(1.0), "basis": 6},
        {"bounds": Bounds(x=[(0, 5), (0, 10)], y=(-1, 1)), "noise": 0.5},
    ]
    search = PrivateSearch(gp(), candidates, bounds=PLANE, **PROMISE).fit(X, Y)
    search.save(tmp_path / "m")
    loaded = reticent.load(tmp_path / "m")
    assert loaded.best_index_ == search.best_index_
    assert list(loaded.candidates_[1]) == ["bounds", "noise"]
    assert loaded.candidates_[0]["kernel"] == RBF(1.0)
    assert np.array_equal(loaded.predict(X), search.predict(X))
    assert loaded.guarantee_ == search.guarantee_ == search.best_estimator_.guarantee_
    assert search.guarantee_.epsilon == pytest.approx(3.0)
    search.best_estimator_.save(tmp_path / "inner")
    inner = reticent.load(tmp_path / "inner")
    assert inner.guarantee_ == search.guarantee_, "the inner model never claims the cost of one run"
    other = PrivateSearch.from_releases(search.releases_, **search.get_params(deep=False))
    assert np.array_equal(other.predict(X), search.predict(X))
    with pytest.raises((BadInput, reticent.ReleaseRefused)):
        PrivateSearch.from_releases(
            search.releases_, **{**search.get_params(deep=False), "mean": "clipped"}
        )


def test_what_it_costs(tmp_path):
    ledger = str(tmp_path / "budget.db")
    book = Ledger(ledger)
    book.open("people", 2.0, 1e-6)
    options = {**HISTOGRAM, "epsilon": 1.0, "ledger": ledger, "dataset": "people"}
    search = PrivateSearch(PrivateHistogram(), {"bins": [2, 20, 40]}, **options).fit(AGES)
    (entry,) = book.history("people")
    assert entry.what == "PrivateSearch of PrivateHistogram, 3 candidates"
    assert (
        entry.event
        == search.guarantee_.events[0]
        == Selection(1, entry.event.noise_multiplier, 1, entry.event.stop)
    )
    assert 1 / entry.event.stop == pytest.approx(24)
    assert book.spent("people") == pytest.approx(1.0, abs=1e-9)
    PrivateMean(**{**options, "epsilon": 0.2}).fit(AGES)
    assert 1.05 < book.spent("people") < 1.4
    with pytest.raises(reticent.BudgetExceeded):
        clone(search).set_params(epsilon=2.0).fit(AGES)
    assert len(book.history("people")) == 2


@pytest.mark.parametrize(
    ("options", "multiplier", "epsilon"),
    [
        ({"expected_runs": 100, "run_count_distribution": "logarithmic"}, 6.57, 1.0),
        ({"expected_runs": 36}, 6.63, 1.0),
        ({"expected_runs": 100, "scheme": "liu-talwar"}, 23.36, 0.305),
    ],
    ids=str,
)
def test_schemes(options, multiplier, epsilon):
    search = PrivateSearch(
        PrivateMean(), [{}, {}], **options, bounds=Bounds(x=(0, 110)), epsilon=1.0, delta=1e-5
    )
    assert search._event().noise_multiplier == pytest.approx(multiplier, rel=2e-3)
    assert search.fit(AGES).guarantee_.epsilon == pytest.approx(epsilon, rel=3e-3)


def test_parameters_of_the_estimator_can_be_set_and_cloned(tmp_path):
    search = PrivateSearch(PrivateHistogram(bins=7, **HISTOGRAM), [{"bins": 3}], **PROMISE)
    assert search.get_params()["estimator__bins"] == 7
    twin = clone(search).set_params(estimator__bins=9, epsilon=0.5)
    assert (search.estimator.bins, twin.estimator.bins) == (7, 9)
    assert search.fit(AGES).best_estimator_.bins == 3  # bounds come from the estimator
    search.estimator.bins = 99
    search.save(tmp_path / "m")
    assert reticent.load(tmp_path / "m").estimator.bins == 7, "as it was when it was fitted"
    assert search.fit(AGES).best_estimator_.epsilon != search.epsilon


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"estimator": None}, "private estimator"),
        ({"estimator": BaseEstimator()}, "private estimator"),
        ({"estimator": GridSearchCV(PrivateMean(), {})}, "private estimator"),
        ({"candidates": None}, "list of dicts"),
        ({"candidates": []}, "candidates"),
        ({"candidates": {"bins": 3}}, "dict of lists"),
        ({"candidates": {}}, "dict of lists"),
        ({"candidates": [3]}, "list of dicts"),
        ({"candidates": [{"epsilon": 9.0}]}, "cannot set 'epsilon'"),
        ({"candidates": [{"ledger": "x"}]}, "cannot set 'ledger'"),
        ({"candidates": [{"bin": 3}]}, "cannot set 'bin'"),
        ({"candidates": [{"bins": 3}, {"bins": 1}]}, "bins"),
        ({"candidates": [{"bins": 3}] * 1001}, "from 1 to 1,000"),
        ({"scheme": "grid"}, "scheme"),
        ({"run_count_distribution": "poisson"}, "run_count_distribution"),
        ({"scoring": "accuracy"}, "scoring"),
        ({"scoring": 3}, "scoring"),
        ({"mean": "median"}, "mean"),
        ({"validation": 1.0}, "validation"),
        ({"validation": "half"}, "validation"),
        ({"expected_runs": 0}, "runs"),
        ({"expected_runs": "many"}, "runs"),
        ({"delta": 0}, "delta must be above 0"),
        ({"scheme": "liu-talwar", "epsilon": 1e-12}, "too small"),
        ({"scheme": "liu-talwar", "run_count_distribution": "logarithmic"}, "liu-talwar"),
    ],
    ids=str,
)
def test_wrong_use_is_refused_before_the_charge(change, words, tmp_path):
    ledger = str(tmp_path / "budget.db")
    Ledger(ledger).open("people", 5.0, 1e-6)
    own = {
        **HISTOGRAM,
        "ledger": ledger,
        "dataset": "people",
        "estimator": PrivateHistogram(),
        "candidates": [{}],
    }
    with pytest.raises(BadInput, match=words):
        PrivateSearch(**{**own, **change}).fit(AGES)
    assert Ledger(ledger).history("people") == []


@dataclass(repr=False, eq=False)
class Fails(PrivateMean):
    """Fails after it has released, but for one candidate."""

    works: bool = False

    def learn(self, curator):
        super().learn(curator)
        if not self.works:
            raise FloatingPointError("4711")


def test_candidates_that_fail_to_fit_do_not_stop_the_search(tmp_path):
    ledger = str(tmp_path / "budget.db")
    book = Ledger(ledger)
    book.open("people", 3.0, 1e-6)
    search = PrivateSearch(
        Fails(),
        [{}, {}, {"works": True}],
        expected_runs=200,
        **HISTOGRAM,
        ledger=ledger,
        dataset="people",
    )
    assert search.fit(AGES).best_index_ == 2
    assert book.spent("people") == pytest.approx(3.0, abs=1e-9)
    with pytest.raises(reticent.ReleaseRefused, match="charge stays") as error:
        PrivateSearch(Fails(), [{}, {}], **HISTOGRAM).fit(AGES)
    assert "4711" not in repr(error.value.__context__)


@pytest.mark.parametrize("n", [2, 3])
def test_hardly_any_records(n):
    search = PrivateSearch(PrivateMean(), [{}, {}], **HISTOGRAM).fit(AGES[:n])
    assert np.isfinite(search.best_score_)


def test_learns_only_from_what_was_paid_for_it():
    search = PrivateSearch(PrivateMean(), [{}], **HISTOGRAM).fit(AGES)
    with pytest.raises(BadInput, match="paid for it"):
        search.learn(object())
    with pytest.raises(reticent.ReleaseRefused):
        search.learn(Replay(PrivateMean(**HISTOGRAM).fit(AGES).releases_))


def test_scores_of_ones_own_cannot_tell_records_by_failing_or_by_looking_at_several():
    """The attack: a function that raises where a certain record is, or compares records, would tell
    of them without noise.
    """
    asked = []

    def curious(model, X, y):
        asked.append(len(X))
        if (X[:, 0] > 49).any():
            raise ValueError("found")
        return np.full(len(X), 0.5)

    ages = np.where(np.arange(4000)[:, None] % 2, 50.0, 20.0)
    search = PrivateSearch(
        PrivateHistogram(), [{"bins": 3}], scoring=curious, mean="clipped", **HISTOGRAM
    ).fit(ages)
    assert set(asked) == {1}
    # half of the records have the worst score, and nothing else shows
    assert search.best_score_ == pytest.approx(0.25, abs=0.1)


def test_a_search_does_not_promise_more_than_its_estimator():
    class Labels(PrivateHistogram):
        _relation = "label"

    with pytest.raises(BadInput, match="protects less than whole records"):
        PrivateSearch(Labels(), [{"bins": 3}], **HISTOGRAM).fit(AGES)


def test_a_candidate_that_protects_less_is_refused_before_the_charge(tmp_path):
    ledger = str(tmp_path / "budget.db")
    Ledger(ledger).open("people", epsilon=5, delta=1e-5)
    model = reticent.BinnedGPRegressor(bins=4)
    search = PrivateSearch(
        model,
        {"protect": ["records", "labels"]},
        bounds=PLANE,
        **PROMISE,
        ledger=ledger,
        dataset="people",
    )
    with pytest.raises(BadInput, match="protects less than whole records"):
        search.fit(X, Y)
    assert Ledger(ledger).history("people") == []
