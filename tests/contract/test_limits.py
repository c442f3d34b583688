"""Models at the ends of what they take.

Hardly any noise, nothing but noise, one record, records that are all alike.
"""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

import reticent
from tests.contract.cases import BOX, ESTIMATORS, PLANE, records, split

one_each = {type(model).__name__: model for model in reversed(ESTIMATORS.values())}
each = pytest.mark.parametrize("model", one_each.values(), ids=one_each)
EXACT = {"epsilon": 1e6, "delta": 1e-6}
NOTHING = {"epsilon": 1e-6, "delta": 1e-9}
rng = np.random.default_rng(3)
TWO = np.repeat([[0.0, 20.0, 100.0], [2.0, 90.0, 800.0]], [40, 80], axis=0) + rng.normal(
    size=(120, 3)
) * [0.1, 2, 20]


def answers(model, X):
    """What a fitted model says of records, as floats."""
    for name in ("predict", "predict_proba", "score_samples", "transform"):
        if hasattr(model, name):
            yield np.asarray(getattr(model, name)(X), dtype=np.float64)


def whole(data):
    """The records that lack nothing: of the others models say NaN."""
    return data[~np.isnan(data).any(axis=1)]


@each
@pytest.mark.parametrize(
    ("params", "data"),
    [
        ({"epsilon": 1e-6}, records(20)),
        ({"epsilon": 1e6}, records(20)),
        ({"records_per_person": 10**6}, records(20)),
        ({"delta": 1e-60}, records(20)),
        ({}, records(1)[:2]),
        ({}, np.repeat(records(1)[:1], 20, axis=0)),
        ({"epsilon": 1e6}, np.full((20, 3), 1e300)),
        ({"epsilon": 1e6}, np.full((20, 3), np.nan)),
    ],
    ids=["noise", "no noise", "one person", "surely", "two records", "equal", "outside", "missing"],
)
def test_every_limit_gives_finite_numbers_and_no_warning(model, params, data):
    if isinstance(model, reticent.PrivateSearch):  # whose price is known between these
        params = {**params, "epsilon": float(np.clip(params.get("epsilon", 1.0), 1e-3, 500.0))}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # by the released count: labels that are no class, and values that are missing
        warnings.filterwarnings("ignore", "About .* of the records", UserWarning)
        one = clone(model).set_params(**params).fit(*split(model, data))
        told = list(answers(one, split(model, whole(records(9)))[0]))
    learned = [
        v
        for k, v in vars(one).items()
        if k.endswith("_") and isinstance(v, np.ndarray) and v.dtype.kind == "f"
    ]
    assert all(np.isfinite(values).all() for values in [*learned, *told])
    promised = params.get("epsilon", 1.0)
    assert 0.9 * promised < one.guarantee_.epsilon <= promised * (1 + 1e-12), (
        "what was asked for, and never more"
    )


def _complete(queries):
    """Those that lack no value: of the others nothing can be told."""
    return queries[~np.isnan(queries).any(axis=1)]


@pytest.mark.parametrize(
    "model",
    [m for name, m in one_each.items() if name != "PrivateSearch"],
    ids=lambda m: type(m).__name__,
)
def test_a_single_record_is_enough_to_be_protected(model):
    """Nothing divides by n − 1, and what is told of one record is noise."""
    one = clone(model).fit(*split(model, records(1)[:1]))
    assert one.releases_[0].n == 1
    assert all(np.isfinite(told).all() for told in answers(one, split(model, whole(records(5)))[0]))


def test_a_search_of_one_record_is_refused_before_it_is_charged(tmp_path):
    ledger = reticent.Ledger(tmp_path / "budget.db")
    ledger.open("people", 5.0, 1e-6)
    search = clone(ESTIMATORS["PrivateSearch"]).set_params(ledger=ledger, dataset="people")
    with pytest.raises(reticent.BadInput, match="1 sample is not enough"):
        search.fit(records(1)[:1])
    assert ledger.history("people") == []


@pytest.mark.parametrize("columns", [1, 7])
@pytest.mark.parametrize(
    "model",
    [
        reticent.PrivateMean(),
        reticent.PrivateHistogram(bins=3),
        reticent.PrivateCovariance(),
        reticent.FactorAnalysis(1),
        reticent.KMeans(2),
        reticent.GaussianMixture(2),
    ],
    ids=lambda model: type(model).__name__,
)
def test_one_column_or_many(model, columns):
    data = np.tile(TWO[:, :1], columns) + 0.05 * np.random.default_rng(0).normal(
        size=(120, columns)
    )
    bounds = reticent.Bounds(x=[(-2.0, 3.0)] * columns)
    one = clone(model).set_params(bounds=bounds, **EXACT).fit(data)
    assert one.n_features_in_ == columns
    middle = next(
        getattr(one, name)
        for name in ("mean_", "pooled_mean_", "edges_", "cluster_centers_")
        if hasattr(one, name)
    )
    assert np.asarray(middle).shape[-1] == columns or middle.shape == (columns, 4)
    assert np.isfinite(one.score(data))
    assert one.score(data) > one.score(np.full((5, columns), -1.9)), (
        "where no record is, less is to be expected"
    )


def test_means_and_covariances_without_noise_are_those_of_the_records():
    mean = reticent.PrivateMean(bounds=BOX, **EXACT).fit(TWO).mean_
    found = reticent.PrivateCovariance(bounds=BOX, **EXACT).fit(TWO)
    width = np.ptp(np.array(BOX.x), axis=1)
    assert mean / width == pytest.approx(TWO.mean(axis=0) / width, abs=1e-3)
    assert found.mean_ / width == pytest.approx(TWO.mean(axis=0) / width, abs=1e-3)
    assert found.covariance_ / np.outer(width, width) == pytest.approx(
        np.cov(TWO.T, bias=True) / np.outer(width, width), abs=1e-3
    )
    assert found.correlation_ == pytest.approx(np.corrcoef(TWO.T), abs=0.02)


def test_counts_without_noise_are_those_of_the_records():
    found = reticent.PrivateHistogram(bins=5, bounds=BOX, **EXACT).fit(TWO)
    for column, (low, high), counts in zip(TWO.T, BOX.x, found.counts_, strict=True):
        assert counts == pytest.approx(np.histogram(column, 5, (low, high))[0], abs=1)
    assert found.probabilities().sum(axis=1) == pytest.approx(1)


def test_directions_without_noise_are_those_of_the_records():
    found = reticent.PCA(2, bounds=BOX, **EXACT).fit(TWO)
    values, vectors = np.linalg.eigh(np.cov(TWO.T, bias=True))
    assert found.explained_variance_[0] == pytest.approx(values[-1], rel=0.05)
    assert abs(found.components_[0] @ vectors[:, -1]) == pytest.approx(1, abs=1e-3)
    assert found.explained_variance_ratio_[0] == pytest.approx(values[-1] / values.sum(), abs=0.01)
    assert found.inverse_transform(found.transform(TWO)) == pytest.approx(TWO, abs=0.5), (
        "two directions hold three columns here"
    )
    factors = reticent.FactorAnalysis(1, bounds=BOX, **EXACT).fit(TWO)
    assert np.diag(factors.get_covariance()) == pytest.approx(TWO.var(axis=0), rel=0.1)
    assert factors.components_[0] == pytest.approx(TWO.std(axis=0), rel=0.1), (
        "one cause moves all three"
    )


def test_clusters_and_parts_without_noise_are_those_of_the_records():
    want = np.array([TWO[40:].mean(axis=0), TWO[:40].mean(axis=0)])
    found = reticent.KMeans(2, bounds=BOX, **EXACT).fit(TWO)
    assert found.cluster_centers_ == pytest.approx(want, rel=0.05, abs=0.1), "the larger one first"
    assert found.cluster_sizes_ == pytest.approx([80, 40], abs=2)
    assert (found.predict(TWO) == np.repeat([1, 0], [40, 80])).all()
    parts = reticent.GaussianMixture(2, bounds=BOX, **EXACT).fit(np.tile(TWO, (20, 1)))
    order = np.argsort(-parts.weights_)
    assert parts.weights_[order] == pytest.approx([2 / 3, 1 / 3], abs=0.02)
    assert parts.means_[order] == pytest.approx(want, rel=0.05, abs=0.1)


X = np.column_stack([np.linspace(-2, 3, 200), np.tile(np.linspace(0, 110, 20), 10)])
Y = 300 + 100 * X[:, 0] + 2 * X[:, 1]


@pytest.mark.parametrize(
    "model",
    [
        reticent.GPRegressor(
            ConstantKernel(3e5) * RBF([3.0, 60.0], "fixed"), stages=4, basis=20, learn_kernel=False
        ),
        reticent.LabelGPRegressor(
            ConstantKernel(3e5) * RBF([3.0, 60.0], "fixed"), stages=2, learn_kernel=False, noise=5.0
        ),
        reticent.BinnedGPRegressor(
            ConstantKernel(3e5) * RBF([3.0, 60.0], "fixed"),
            bins=(5, 4),
            learn_kernel=False,
            noise=5.0,
            protect="labels",
        ),
    ],
    ids=lambda model: type(model).__name__,
)
def test_functions_without_noise_are_those_of_the_records_and_with_nothing_else_are_the_prior(
    model,
):
    known = clone(model).set_params(bounds=PLANE, **EXACT).fit(X, Y)
    mean, sd = known.predict(X, return_std=True)
    assert np.abs(mean - Y).max() < 60
    assert sd.max() < 100
    blind = clone(model).set_params(bounds=PLANE, **NOTHING).fit(X, Y)
    mean, sd = blind.predict(X, return_std=True)
    assert sd == pytest.approx(np.full(200, blind.prior_std_), rel=0.2), "as unsure as before"
    parts = blind.variance_parts(X[:5])
    assert (parts["model"] >= 0).all()
    assert (parts["privacy"] >= 0).all()
    assert np.sqrt(parts["model"] + parts["privacy"]) == pytest.approx(sd[:5], rel=1e-9)


def test_classes_without_noise_are_those_of_the_records_and_with_nothing_else_are_even():
    bounds = reticent.Bounds(x=list(PLANE.x), classes=["low", "mid", "high"])
    labels = np.array(["low", "mid", "high"])[np.digitize(Y, [250, 500])]
    model = reticent.GPClassifier(
        RBF([2.0, 40.0], "fixed"), stages=4, basis=20, learn_kernel=False, bounds=bounds
    )
    known = clone(model).set_params(**EXACT).fit(X, labels)
    assert (known.predict(X) == labels).mean() > 0.85
    assert known.classes_.tolist() == ["low", "mid", "high"], (
        "in the order of the bounds, not of the alphabet"
    )
    blind = clone(model).set_params(**NOTHING).fit(X, labels)
    assert blind.predict_proba(X) == pytest.approx(np.full((200, 3), 1 / 3), abs=0.2)
    low, high = blind.predict_proba_band(X)
    assert (low < 0.2).all()
    assert (high > 0.6).all()
