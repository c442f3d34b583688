"""What each model releases, statistic by statistic, as the Privacy sections of its docstring and
its proof say; and no more.
"""

from collections import Counter

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF

import reticent
from tests.contract.cases import BOX, CLASSED, ESTIMATORS, PLANE, records, relation, split
from tests.contract.test_estimators import fitted_once

# records have labels that are no classes, and a fit that leaves most of them out says so
pytestmark = pytest.mark.filterwarnings("ignore:About .* of the records:UserWarning")

PROMISE = {"epsilon": 1.0, "delta": 1e-6}
MUCH = {"epsilon": 1e4, "delta": 1e-6}  # hardly any noise, so that a few records are many
WIDE = reticent.Bounds(x=[(-2.0, 3.0)] * 5)
GIVEN = {"kernel": RBF([3.0, 50.0], "fixed"), "learn_kernel": False, "basis": 6}

# what is asked for, and how many of the paid releases each takes
SIZED = [("ResidualSizeGram", 1), ("ResidualGram", 1)]
RELEASED = {
    "means": (reticent.PrivateMean(bounds=BOX, **PROMISE), [("ColumnMeans", 1)]),
    "counts": (reticent.PrivateHistogram(bounds=BOX, **PROMISE), [("ColumnCounts", 1)]),
    "moments": (reticent.PrivateCovariance(bounds=BOX, **PROMISE), [("MomentGram", 1)]),
    "groups": (reticent.PrivateTable(mean=[0], bounds=BOX, **PROMISE), [("GroupSums", 1)]),
    "components, noise": (
        reticent.PCA(1, bounds=BOX, epsilon=0.05, delta=1e-6),
        [("ResidualMoments", 1), ("ScaledGram", 7)],
    ),
    "components": (
        reticent.PCA(1, bounds=BOX, **MUCH),
        [("ColumnMoments", 1)] * 4 + [("ScaledGram", 4)],
    ),
    "factors": (
        reticent.FactorAnalysis(1, bounds=BOX, **MUCH),
        [("ColumnMoments", 1)] * 4 + [("ScaledGram", 4)],
    ),
    "clusters, noise": (
        reticent.KMeans(2, bounds=BOX, **PROMISE),
        [("GridCounts", 15), ("NearestCounts", 1)],
    ),
    "clusters": (
        reticent.KMeans(2, bounds=BOX, **MUCH),
        [("GridCounts", 6), ("LeafSums", 6)]
        + [("ResidualMoments", 1)] * 3
        + [("NearestCounts", 1)],
    ),
    "clusters of many columns, noise": (
        reticent.KMeans(2, bounds=WIDE, **PROMISE),
        [("ColumnMoments", 2), ("ScaledGram", 2)]
        + [("ResidualMoments", 1)] * 5
        + [("ResidualMoments", 2)] * 3
        + [("NearestCounts", 1)],
    ),
    "clusters of many columns": (
        reticent.KMeans(2, bounds=WIDE, **MUCH),
        [("ColumnMoments", 1)] * 2
        + [("ScaledGram", 2)]
        + [("ResidualMoments", 1)] * 11
        + [("NearestCounts", 1)],
    ),
    "one normal law": (
        reticent.GaussianMixture(1, bounds=BOX, **PROMISE),
        [
            ("LengthCounts", 4),
            ("CentredGram", 8),
            ("LengthCounts", 1),
            ("CentredGram", 11),
            ("LengthCounts", 2),
            ("CentredGram", 43),
            ("LengthCounts", 5),
            ("CentredGram", 86),
        ],
    ),
    "regression": (
        reticent.GPRegressor(bounds=PLANE, basis=6, learn_kernel=False, **MUCH),
        [("InputMoments", 1), ("InputCounts", 1)] + [("ResidualGram", 1)] * 20 + SIZED,
    ),
    "regression, noise": (
        reticent.GPRegressor(bounds=PLANE, basis=6, learn_kernel=False, **PROMISE),
        [("InputMoments", 2)] + [("ResidualGram", 1)] * 20 + SIZED,
    ),
    "regression, few stages": (
        reticent.GPRegressor(bounds=PLANE, basis=6, learn_kernel=False, stages=11, **MUCH),
        [("ResidualGram", 1)] * 9 + SIZED,
    ),
    "regression, hardly any stages": (
        reticent.GPRegressor(bounds=PLANE, basis=6, learn_kernel=False, stages=5, **MUCH),
        [("ResidualGram", 1)] * 5,
    ),
    "regression of amounts": (
        reticent.GPRegressor(
            bounds=reticent.Bounds(x=[(0, 1), (0, 1)], y=(0, 1)),
            outcome="positive",
            basis=6,
            learn_kernel=False,
            stages=8,
            **MUCH,
        ),
        [("ResidualGram", 1)] * 8,
    ),
    "regression with a kernel": (
        reticent.GPRegressor(bounds=PLANE, **GIVEN, **PROMISE),
        [("InputMoments", 1)] + [("ResidualGram", 1)] * 21 + SIZED,
    ),
    "classes": (
        reticent.GPClassifier(bounds=CLASSED, basis=6, learn_kernel=False, **MUCH),
        [("InputMoments", 1), ("InputCounts", 1)] + [("ClassGram", 1)] * 22,
    ),
    "classes, linear": (
        reticent.GPClassifier(bounds=CLASSED, method="labels", stages=3, **GIVEN, **PROMISE),
        [("ClassGram", 1)] * 3,
    ),
    "classes by themselves": (
        reticent.GPClassifier(bounds=CLASSED, method="dirichlet", **GIVEN, **PROMISE),
        [("GramByClass", 1)],
    ),
    "bins": (
        reticent.BinnedGPRegressor(bounds=PLANE, bins=2, learn_kernel=False, noise=9.0, **PROMISE),
        [("BinSums", 1)],
    ),
    "bins of labels": (
        reticent.BinnedGPRegressor(
            bounds=PLANE, bins=2, protect="labels", learn_kernel=False, noise=9.0, **PROMISE
        ),
        [("LabelSums", 1)],
    ),
    "bins of counts": (
        reticent.BinnedGPRegressor(bounds=BOX, bins=2, kind="count", learn_kernel=False, **PROMISE),
        [("BinCounts", 1)],
    ),
    "bins and a choice": (
        reticent.BinnedGPRegressor(
            bounds=PLANE, bins=2, learn_kernel="exponential", noise=9.0, **PROMISE
        ),
        [("BinSums", 3), ("Choice by score", 1)],
    ),
    "labels": (
        reticent.LabelGPRegressor(RBF(50.0, "fixed"), bounds=PLANE, learn_kernel=False, **PROMISE),
        [("LabelSum", 1)] * 8,
    ),
}


def fit(model, n=150):
    d = len(model.bounds.x) + bool(model.bounds.y or model.bounds.classes)
    data = records(n) if d == 3 else np.tile(records(n)[:, :1], d) + np.arange(d) / 9
    if model.bounds.classes:
        data[:, -1] = np.arange(len(data)) % 3
    return clone(model).fit(*split(model, data))


@pytest.mark.parametrize(("model", "want"), RELEASED.values(), ids=RELEASED)
def test_what_is_released_is_what_the_docstring_says(model, want):
    found = fit(model).releases_
    assert [(release.statistic["name"], release.shares_spent) for release in found] == want
    assert sum(release.shares_spent for release in found) == found[0].event.count, (
        "all that was paid for is used, and no more"
    )


@pytest.mark.parametrize(
    ("n", "parts", "bounds"), [(60, 3, WIDE), (60, 2, BOX), (3000, 2, WIDE), (3000, 3, BOX)]
)
@pytest.mark.parametrize("promise", [PROMISE, MUCH], ids=["noise", "little noise"])
def test_every_path_of_a_mixture_takes_at_most_what_was_paid(n, parts, bounds, promise):
    one = fit(reticent.GaussianMixture(parts, bounds=bounds, **promise), n)
    assert (
        sum(release.shares_spent for release in one.releases_)
        <= 160
        == one.releases_[0].event.count
    )
    names = Counter(release.statistic["name"] for release in one.releases_)
    looks = {"LengthCounts", "CentredGram", "CellCounts", "ResidualMoments", "LogRatio"}
    assert set(names) <= looks
    assert names["LengthCounts"] >= 1
    assert one.releases_[0].statistic["name"] == "LengthCounts"


def test_a_search_tells_the_best_run_and_no_other():
    """Its candidate, its releases and its score.

    Not how many runs there were, nor what others scored.
    """
    search = reticent.PrivateSearch(
        reticent.PrivateHistogram(), {"bins": [2, 5, 9]}, expected_runs=30, bounds=BOX, **PROMISE
    ).fit(records(100))
    names = [release.statistic["name"] for release in search.releases_[1:]]
    assert names == ["ColumnCounts", "ScoreCounts", "ScoreSum", "ScoreSum", "ScoreSum"]
    assert search.releases_[1].statistic["bins"] == search.best_candidate_["bins"]
    held = {name for name in vars(search) if not name.startswith("__")}
    held -= set(search.get_params(deep=False))
    assert not [name for name in held if "run" in name]
    assert not [name for name in held if name in ("_ready", "cv_results_", "scores_")]
    assert search.releases_[0].statistic.keys().isdisjoint({"runs", "scores", "attempts"})


@pytest.mark.parametrize("name", ESTIMATORS)
def test_questions_to_a_fitted_model_are_not_charged_and_leave_it_as_it_was(name, tmp_path):
    """Records that `score`, `predict` and `transform` are given are not protected, and nothing of
    them is kept.
    """
    model = ESTIMATORS[name]
    ledger = reticent.Ledger(tmp_path / "budget.db")
    ledger.open("people", 5.0, 1e-6, relation=relation(model))
    one = fitted_once(model)
    one.save(tmp_path / "before")
    before = {key: id(value) for key, value in vars(one).items()}
    asked = split(model, np.nan_to_num(records(15)).clip(-1e6, 1e6).round())
    for method in (
        "predict",
        "predict_proba",
        "transform",
        "score_samples",
        "variance_parts",
        "predict_proba_band",
    ):
        if hasattr(one, method):
            getattr(one, method)(asked[0])
    if hasattr(one, "score") and getattr(model, "kind", "") != "count":  # which predicts no output
        one.score(*asked)
    if hasattr(one, "sample"):
        assert _sampled(one) == 4
    one.save(tmp_path / "after")
    assert (tmp_path / "before").read_bytes() == (tmp_path / "after").read_bytes()
    assert {key: id(value) for key, value in vars(one).items()} == before
    assert ledger.history("people") == []


@pytest.mark.parametrize(
    "name", ["KMeans", "GaussianMixture", "PCA", "FactorAnalysis", "PrivateHistogram"]
)
def test_what_scikit_learns_namesakes_tell_of_records_is_not_there(name):
    """Labels, inertia, the number of steps, lower bounds of the likelihood.

    Each is a function of single records.
    """
    one = fitted_once(ESTIMATORS[name])
    for told in (
        "labels_",
        "inertia_",
        "n_iter_",
        "lower_bound_",
        "loglike_",
        "n_samples_",
        "converged_",
        "X_",
    ):
        assert not hasattr(one, told)


def _sampled(model):
    """How many records four samples are; where columns are mixed, a dict of columns."""
    words = any(kind.levels is not None for kind in model.bounds.x_kinds)
    if isinstance(model, reticent.FactorAnalysis) and words:
        with pytest.raises(reticent.BadInput, match="draw no records"):
            model.sample(4)
        return 4
    drawn = model.sample(4)
    if isinstance(drawn, dict):
        (rows,) = {len(column) for column in drawn.values()}
        return rows
    return len(drawn)
