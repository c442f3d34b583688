"""Classification.

As accurate as promised, calibrated, and at ease with classes that are missing or unknown.
"""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.gaussian_process.kernels import RBF, ExpSineSquared
from sklearn.model_selection import train_test_split

import reticent
from reticent import Bounds, GPClassifier
from reticent.errors import BadInput
from reticent.models.gp.prior_hypotheses import PreparedPrior
from reticent.models.gp.settings import CLASSES
from reticent.privacy.row_maps.class_gram import ClassGram, exponential, softmax
from reticent.studies.own.classification import CELLS

PLANE = Bounds(x=[(-1, 1), (-1, 1)], classes=["a", "b", "c"])
AT = np.random.default_rng(9).uniform(-1, 1, size=(500, 2))


def kinds(X):
    return np.where(X[:, 0] > 0.3, "c", np.where(X[:, 1] > 0, "b", "a"))


def plane(n=3000, seed=0):
    X = np.random.default_rng(seed).uniform(-1, 1, size=(n, 2))
    return X, kinds(X)


def classifier(**params):
    return GPClassifier(
        **{"bounds": PLANE, "epsilon": 2, "delta": 1e-6, "random_state": 0, **params}
    )


def test_exponential_is_one_to_the_last_digits():
    x = np.concatenate([-np.geomspace(1e-12, 700, 2000), [0.0]])
    assert exponential(x) == pytest.approx(np.exp(x), rel=1e-13)
    assert exponential(np.array([-1e9]))[0] < 1e-300


def test_exponential_has_the_same_bits_at_every_place():
    x = -np.random.default_rng(0).exponential(5, size=1003)
    alone = np.array([exponential(x[i : i + 1])[0] for i in range(len(x))])
    assert (exponential(x) == alone).all()


def test_chances_add_up_to_one():
    chances = softmax(np.array([[1e6, 0.0, -1e6], [0.0, 0.0, 0.0]]))
    assert chances.sum(axis=1) == pytest.approx(1)
    assert chances[1] == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("params", "least"),
    [
        ({}, 0.93),
        ({"method": "labels"}, 0.88),
        ({"method": "dirichlet"}, 0.85),
        ({"kernel": RBF(0.7)}, 0.9),
        ({"learn_kernel": False}, 0.9),
    ],
)
def test_regions_are_found(params, least):
    model = classifier(**params).fit(*plane())
    assert (model.predict(AT) == kinds(AT)).mean() > least
    assert model.predict_proba(AT).sum(axis=1) == pytest.approx(1)
    again = GPClassifier.from_releases(model.releases_, **model.get_params(deep=False))
    assert (again.predict_proba(AT) == model.predict_proba(AT)).all()


def accuracy_and_calibration(X, y, bounds, epsilon, seed):
    train, test, y_train, y_test = train_test_split(
        X, y, test_size=1 / 3, random_state=seed, stratify=y
    )
    model = GPClassifier(bounds=bounds, epsilon=epsilon, delta=1e-5, random_state=seed).fit(
        train, y_train
    )
    chances = model.predict_proba(test)
    right = model.classes_[chances.argmax(axis=1)] == y_test
    sure = chances.max(axis=1)
    bins = np.minimum((sure * 10).astype(int), 9)
    gaps = [
        abs(right[bins == b].mean() - sure[bins == b].mean()) * (bins == b).mean()
        for b in np.unique(bins)
    ]
    return right.mean(), sum(gaps)


@pytest.mark.parametrize(("epsilon", "least", "widest"), [(1, 0.70, 0.2), (10, 0.91, 0.06)])
def test_digits(epsilon, least, widest):
    """64 pixels, ten classes, 1,198 records to learn from."""
    bounds = Bounds(x=[(0, 16)] * 64, classes=list(range(10)))
    accuracy, gap = accuracy_and_calibration(
        *load_digits(return_X_y=True), bounds, epsilon, seed=100
    )
    assert accuracy > least
    assert gap < widest


def test_breast_cancer():
    """30 inputs that depend on each other, 379 records to learn from, ε = 1.

    Nothing but sums over all inputs is well known.
    """
    X, y = load_breast_cancer(return_X_y=True)
    bounds = Bounds(x=[(0, high) for high in CELLS], classes=[0, 1])
    found = [accuracy_and_calibration(X, y, bounds, 1, seed) for seed in range(106, 110)]
    accuracy, gap = np.mean(found, axis=0)
    assert accuracy > 0.9
    assert gap < 0.06


def test_where_counts_of_inputs_would_be_noise_moments_take_their_share():
    few, many = (classifier(stages=24, basis=4).fit(*plane(n)).releases_ for n in (100, 3000))
    assert [one.statistic["name"] for one in few[:2]] == ["InputMoments", "ClassGram"]
    assert [one.shares_spent for one in few[:2]] == [2, 1]
    assert [one.statistic["name"] for one in many[:2]] == ["InputMoments", "InputCounts"]


def test_far_from_the_records_chances_are_nearer_to_even():
    X = np.random.default_rng(0).uniform(-0.3, 0.3, size=(3000, 2))
    bounds = Bounds(x=[(-1, 1), (-1, 1)], classes=[False, True])
    model = classifier(bounds=bounds, kernel=RBF(0.3), learn_kernel=False).fit(
        X, X[:, 0] + X[:, 1] > 0
    )
    near, far = model.predict_proba([[0.2, 0.2], [0.9, -0.9]]).max(axis=1)
    assert near > 0.9
    assert far < 0.8


@pytest.mark.parametrize("method", ["softmax", "labels", "dirichlet"])
def test_a_class_may_be_missing(method):
    X, y = plane()
    bounds = Bounds(x=[(-1, 1), (-1, 1)], classes=["a", "b", "c", "d"])
    model = classifier(bounds=bounds, method=method).fit(X, y)
    assert model.classes_.tolist() == ["a", "b", "c", "d"]
    assert model.predict_proba(AT)[:, 3].mean() < 0.15


def test_records_with_an_unknown_label_are_left_out():
    """As if it were missing; not as one of the first class."""
    X, y = plane()
    half = np.arange(len(y)) % 2 == 0
    with pytest.warns(UserWarning, match="the others were left out"):
        strange = classifier().fit(X, np.where(half, "?", y)).predict_proba(AT)
    with pytest.warns(UserWarning, match="the others were left out"):
        missing = classifier().fit(X, np.where(half, None, y)).predict_proba(AT)
    assert (strange == missing).all()
    assert np.abs(strange - classifier().fit(X, y).predict_proba(AT)).mean() < 0.1


@pytest.mark.parametrize("classes", [2, 50])
def test_few_and_many_classes(classes):
    X = np.random.default_rng(0).uniform(-1, 1, size=(4000, 1))
    y = np.minimum(((X[:, 0] + 1) / 2 * classes).astype(int), classes - 1)
    bounds = Bounds(x=[(-1, 1)], classes=list(range(classes)))
    model = classifier(bounds=bounds, epsilon=8, stages=12).fit(X, y)
    away = np.abs(model.predict(X[:500]) - y[:500])
    assert np.median(away) <= classes / 10


@pytest.mark.parametrize("method", ["softmax", "labels", "dirichlet"])
@pytest.mark.parametrize("epsilon", [1e-9, 1e6])
def test_any_budget_leaves_chances(epsilon, method):
    stages = None if method == "dirichlet" else 13
    chances = (
        classifier(epsilon=epsilon, stages=stages, method=method).fit(*plane(50)).predict_proba(AT)
    )
    assert np.isfinite(chances).all()
    assert (chances >= 0).all()


@pytest.mark.parametrize("method", ["softmax", "labels", "dirichlet"])
@pytest.mark.parametrize("n", [1, 2])
def test_very_few_records(n, method):
    assert np.isfinite(classifier(method=method).fit(*plane(n)).predict_proba(AT)).all()


def test_a_release_by_class_is_never_too_long(monkeypatch):
    settings = replace(CLASSES, max_class_columns=300)
    monkeypatch.setattr("reticent.models.gp.classifier.CLASSES", settings)
    many = Bounds(x=[(-1, 1)], classes=list(range(50)))
    X = np.random.default_rng(0).uniform(-1, 1, size=(300, 1))
    model = classifier(bounds=many, method="dirichlet", epsilon=1e6).fit(X, np.arange(300) % 50)
    assert 250 < len(model.releases_[0].matrix()) <= 300


def test_a_fit_does_not_keep_the_prior_it_prepared():
    model = classifier(stages=2, basis=4).fit(*plane(50))
    assert not [value for value in vars(model).values() if isinstance(value, PreparedPrior)]


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"method": "probit"}, "softmax, labels, dirichlet"),
        ({"method": "dirichlet", "stages": 3}, "single release"),
        ({"method": "dirichlet", "basis": 500}, "most 499, or another method"),
        ({"stages": 0}, "from 1 to 64"),
        ({"basis": 2.5}, "from 1 to 500"),
        ({"kernel": "rbf"}, "scikit-learn kernel"),
        ({"learn_kernel": "average"}, "True or False"),
        ({"delta": 0}, "delta must be above 0"),
        ({"bounds": Bounds(x=[(-1, 1), (-1, 1)], y=(0, 1))}, "list of classes"),
        ({"kernel": RBF([1.0, 2.0, 3.0])}, "cannot be used for 2 inputs"),
        (
            {"kernel": ExpSineSquared(1.0, 2.5)},
            "positive definite",
        ),  # with few functions it seems to be
    ],
)
def test_wrong_use_is_refused_before_anything_is_charged(params, words, tmp_path):
    ledger = f"{tmp_path}/budget.db"
    reticent.Ledger(ledger).open("people", 10, 1e-4)
    with pytest.raises(BadInput, match=words):
        classifier(ledger=ledger, dataset="people", **params).fit(*plane(50))
    assert not reticent.Ledger(ledger).history("people")


def test_links_are_known():
    model = classifier(stages=2, basis=4, kernel=RBF(1.0)).fit(*plane(50))
    with pytest.raises(BadInput, match="softmax, linear"):
        ClassGram(model._feature_map, ((0,) * 4,) * 3, 0, 1.0, "probit")


def test_a_search_may_choose_among_classifiers():
    candidates = [{"basis": 4}, {"basis": 30}]
    search = reticent.PrivateSearch(
        GPClassifier(stages=3),
        candidates,
        bounds=PLANE,
        epsilon=8,
        delta=1e-6,
        expected_runs=4,
        random_state=0,
    ).fit(*plane(2000))
    assert (search.predict(AT) == kinds(AT)).mean() > 0.6


def noisy_labels(seed, n=3000):
    """Labels that chance decides: what is told must not be surer than that."""
    random = np.random.default_rng(seed)
    X = random.uniform(-1, 1, size=(n, 2))
    chance = 1 / (1 + np.exp(-2 * np.sin(3 * X[:, 0]) - X[:, 1]))
    return X, chance, (random.random(n) < chance).astype(int)


@pytest.mark.parametrize("method", ["softmax", "labels", "dirichlet"])
def test_chances_and_bands_where_labels_are_noisy(method):
    """Gradients are clipped, so that surprises count too little.

    Chances that do not know it are off by .07, bands hold half.
    """
    bounds = Bounds(x=[(-1, 1)] * 2, classes=[0, 1])
    gaps = []
    held = []
    wider = []
    for seed in (0, 1, 2):
        X, _, y = noisy_labels(seed)
        model = GPClassifier(
            method=method, bounds=bounds, epsilon=3, delta=1e-5, basis=30, random_state=seed
        ).fit(X, y)
        new, chance, _ = noisy_labels(seed + 100, 1000)
        told = model.predict_proba(new)[:, 1]
        low, high = model.predict_proba_band(new)
        own = model.predict_proba_band(new, privacy=False)
        assert (low[:, 1] <= told).all()
        assert (told <= high[:, 1]).all()
        gaps.append(np.abs(told - chance).mean())
        held.append(((low[:, 1] <= chance) & (chance <= high[:, 1])).mean())
        wider.append((high - low).mean() / (own[1] - own[0]).mean())
    assert np.mean(gaps) < {"softmax": 0.05}.get(method, 0.12)
    if method == "softmax":
        assert np.mean(held) > 0.85
    assert np.mean(wider) > 1.0
