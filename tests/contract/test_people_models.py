"""Every estimator protects people: by identifiers, added or removed, and with weights of records.

One case for each model. What people have in common with records (bounds, maps, noise) is tested
elsewhere.
"""

import gc
import pickle
import types
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

import reticent
from reticent.privacy.curator import Curator
from reticent.privacy.people.person_counts import PersonCounts
from reticent.privacy.people.weights import RecordWeights
from reticent.privacy.release import NUMBER, number_scale
from reticent.privacy.sources.base import Source
from reticent.privacy.statistics.feature_cache import FeatureCache
from tests.contract.cases import ESTIMATORS, records, relation, split

# records have labels that are no classes, and a fit that leaves most of them out says so
pytestmark = pytest.mark.filterwarnings("ignore:About .* of the records:UserWarning")

MODELS = {
    name: model
    for name, model in ESTIMATORS.items()
    if name.partition(" ")[0] == name
    or name in ("BinnedGPRegressor of labels", "BinnedGPRegressor of counts")
    or name in ("GPClassifier by class", "GPRegressor with noise levels")
}
UNITS = {
    "person": {},
    "add-remove": {"neighbours": "add-remove"},
    "weights": {"contribution": 2, "weight_bound": 2.0},
}
CASES = {
    f"{name}, {unit}": (model, unit)
    for name, model in MODELS.items()
    for unit in UNITS
    if not (relation(model) == "label" and unit == "add-remove")
}
each = pytest.mark.parametrize(("model", "unit"), CASES.values(), ids=CASES)
UNWEIGHTED = {name: case for name, case in CASES.items() if case[1] != "weights"}
each_unweighted = pytest.mark.parametrize(("model", "unit"), UNWEIGHTED.values(), ids=UNWEIGHTED)
N = 100  # people
TABLE = records(290)  # of 300 records


def people(n: int, count: int = N) -> np.ndarray:
    """Whose each of n records is: some people have one, some many."""
    places = np.arange(n)
    return np.where(places < count, places, places**2 % max(count, 1))


def fit(model, unit, data=TABLE, ids=None, **params):
    beside = {"person": people(len(data)) if ids is None else ids}
    if unit == "weights":
        beside["sample_weight"] = 1.5 + np.cos(np.arange(len(data)))
    changed = clone(model).set_params(**UNITS[unit], **params)
    return changed.fit(*split(model, data), **beside)


_ONCE = {}


def fitted(model, unit):
    if (id(model), unit) not in _ONCE:
        _ONCE[id(model), unit] = fit(model, unit)
    return _ONCE[id(model), unit]


def learned(model) -> dict:
    return {name: pickle.dumps(value) for name, value in vars(model).items() if name.endswith("_")}


def test_every_estimator_is_here():
    assert {type(model) for model in MODELS.values()} == {*map(type, ESTIMATORS.values())}


@each
def test_rebuilt_saved_and_loaded_bit_for_bit(model, unit, tmp_path):
    first = fitted(model, unit)
    rebuilt = type(first).from_releases(first.releases_, **first.get_params(deep=False))
    assert learned(rebuilt) == learned(first)
    first.save(tmp_path / "m.reticent")
    loaded = reticent.load(tmp_path / "m.reticent")
    assert learned(loaded).keys() == learned(first).keys()
    for name in vars(first):
        if name.endswith("_") and isinstance(getattr(first, name), np.ndarray):
            assert np.array_equal(getattr(loaded, name), getattr(first, name)), name
    assert loaded.guarantee_ == first.guarantee_


@each
def test_it_says_who_is_protected_and_refuses_to_say_more(model, unit):
    one = fitted(model, unit)
    guarantee = one.guarantee_
    assert guarantee.private
    assert guarantee.epsilon == pytest.approx(1.0, rel=1e-6)
    assert guarantee.person == "person"
    assert "all records of one person" in guarantee.statement or relation(model) == "label"
    if unit == "add-remove":
        assert guarantee.neighbours == "add-remove"
        assert guarantee.units is None
    else:
        assert guarantee.units == one.releases_[0].n == N
    for other in ({"neighbours": "add-remove"}, {"contribution": 7}, {"person": "somebody"}):
        params = {**one.get_params(deep=False), **other}
        if params != one.get_params(deep=False):
            with pytest.raises(reticent.ReticentError):
                type(one).from_releases(one.releases_, **params)


@each
def test_the_releases_are_what_was_paid_for(model, unit):
    """All of μ², the number of people included, is that of the event."""
    one = fitted(model, unit)
    numbers = [release for release in one.releases_ if release.statistic["name"] == NUMBER]
    search = isinstance(one, reticent.PrivateSearch)
    assert len(numbers) == (unit == "add-remove") * (1 + search)
    if numbers and not search:
        event = one.releases_[0].event
        assert one.releases_[0] is numbers[0]
        assert numbers[0].scale[0] == pytest.approx(number_scale(event, numbers[0].unit) ** 0.5)
        assert numbers[0].n == one.releases_[-1].n == max(1, round(float(numbers[0].value[0])))


@each_unweighted
def test_nothing_but_noise_depends_on_the_records(model, unit, monkeypatch, tmp_path, capfd):
    """With the noisy sums replaced by constants, no byte differs between neighbours of neighbours.

    With "replace" between tables of as many people, however many records they have; with
    "add-remove" between tables of any size, and of none.
    """

    def constant(self, exact, statistic, scales, number):
        scale = np.empty(len(exact))
        multiplicity = statistic.sensitivity(self.unit.neighbours).multiplicity
        for share, one in scales.items():  # public, and compared when a model is rebuilt
            step = statistic.step / self._grid
            scale[multiplicity == share] = float(one.exact) * step
        return np.linspace(0.0, 100.0, len(exact)), scale

    release_number = Curator._release_number
    monkeypatch.setattr(Curator, "_add_noise", constant)
    monkeypatch.setattr(Curator, "_release_number", lambda self, units: release_number(self, 90))
    monkeypatch.setattr("secrets.token_hex", lambda size: "0" * 2 * size)
    zero = type("Zero", (), {"words": lambda self, n: np.zeros(n, "<u8"), "more": lambda self: 0})
    monkeypatch.setattr("reticent.privacy.curator.seeded_bits", lambda seed, what: zero())
    noiseless = (np.zeros(1, dtype=object), np.ones(1))
    monkeypatch.setattr("reticent.privacy.curator.draw_noise", lambda *_: noiseless)
    scales = "reticent.models.replay.check_scale"
    monkeypatch.setattr(scales, lambda *_: None)
    halves = "reticent.privacy.selection.private_selection.split"
    monkeypatch.setattr(halves, lambda n, some, bits: np.arange(n) < some)
    single = [0] * 201 + list(range(1, N))
    tables = [
        (TABLE, people(300)),
        (np.full((300, 3), 1e300), np.array(single)),
        (np.full((300, 3), np.nan), np.array(single[::-1])),
    ]
    if relation(model) == "label":  # all but the labels is public
        tables = [
            (np.column_stack([TABLE[:, :2], table[:, 2]]), people(300)) for table, _ in tables
        ]
    if unit == "add-remove":
        tables += [(TABLE[:5], np.zeros(5)), (TABLE[:0], np.zeros(0)), (TABLE[:1], np.zeros(1))]
        tables.append((TABLE[:7], np.full(7, np.nan)))  # records of nobody
    seen = []
    for i, (data, ids) in enumerate(tables):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            one = fit(model, unit, data, ids)
            one.save(tmp_path / f"{i}.reticent")
        said = [str(w.message) for w in caught]
        content = (tmp_path / f"{i}.reticent").read_bytes()
        seen.append((learned(one), content, said, capfd.readouterr()))
    assert all(one == seen[0] for one in seen)


@each_unweighted
def test_nothing_exact_is_kept(model, unit):
    labels = relation(model) == "label"
    stack = [fitted(model, unit)]
    known = set()
    while stack:
        thing = stack.pop()
        if id(thing) in known or isinstance(
            thing, (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType)
        ):
            continue
        known.add(id(thing))
        reads = (Curator, FeatureCache, Source, PersonCounts, RecordWeights)
        assert not isinstance(thing, reads), "something that reads records was kept"
        if isinstance(thing, np.ndarray) and not labels:
            assert len(TABLE) not in thing.shape, "an array with one row per record"
        stack.extend(gc.get_referents(thing))
    assert len(known) > 10


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_an_account_of_people_is_charged_and_no_other(model, tmp_path):
    book = reticent.Ledger(str(tmp_path / "budget.db"))
    book.open("people", 1.2, 1e-6, relation=relation(model), person="person")
    book.open("records", 1.2, 1e-6, relation=relation(model))
    ledger = {"ledger": book.url}
    with pytest.raises(reticent.ReticentError):
        fit(model, "person", **ledger, dataset="records")
    assert not book.history("records")
    one = fit(model, "person", **ledger, dataset="people")
    assert book.spent("people") == pytest.approx(1.0, abs=1e-9)
    assert one.releases_[0].entry == book.history("people")[0].hash
    with pytest.raises(reticent.BudgetExceeded):
        fit(model, "person", **ledger, dataset="people")


def test_the_best_estimator_of_a_search_does_not_count_those_it_protects():
    """It has seen one half; the promise is to all."""
    search = fitted(MODELS["PrivateSearch"], "person")
    assert search.guarantee_.units == N
    assert search.best_estimator_.guarantee_.units is None
    assert search.best_estimator_.guarantee_ == search.guarantee_


REFUSED = {
    "kernel by scores": (
        clone(ESTIMATORS["BinnedGPRegressor, kernel by scores"]),
        {},
        "learn_kernel",
    ),
    "labels, added or removed": (
        clone(ESTIMATORS["LabelGPRegressor"]),
        {"neighbours": "add-remove"},
        "number of records is public",
    ),
    "a search that forgets its estimator's person": (
        clone(ESTIMATORS["PrivateSearch"]).set_params(
            estimator=reticent.PrivateMean(contribution=3, person="id")
        ),
        {},
        "PrivateSearch itself",
    ),
    "a search of kernels by scores": (
        reticent.PrivateSearch(
            reticent.BinnedGPRegressor(bins=2),
            [{"learn_kernel": True}, {"learn_kernel": "exponential"}],
            bounds=ESTIMATORS["GPRegressor"].bounds,
            epsilon=1.0,
            delta=1e-6,
        ),
        {},
        "learn_kernel",
    ),
    "weights without a bound": (clone(ESTIMATORS["PrivateMean"]), {"weight": "w"}, "upper bound"),
    "a noise column in one stage": (
        clone(ESTIMATORS["GPRegressor with noise levels"]).set_params(stages=1),
        {"contribution": 2},
        "two stages",
    ),
}


@pytest.mark.parametrize(("model", "params", "words"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_protected_is_refused_before_the_charge(model, params, words, tmp_path):
    book = reticent.Ledger(str(tmp_path / "budget.db"))
    unit = {"relation": relation(model), "person": "person"}
    book.open("people", 1.2, 1e-6, **unit)
    with pytest.raises(reticent.BadInput, match=words):
        fit(model.set_params(**params), "person", ledger=book.url, dataset="people")
    assert not book.history("people")


# ---- as privacy costs nothing, answers are those of weighted records

RICH = {"epsilon": 1e6, "delta": 1e-6}
PLANE = reticent.Bounds(x=[(0, 10), (0, 10)])
_rng = np.random.default_rng(3)
MIDDLES = _rng.choice([[2.5, 6.0], [6.5, 4.0]], size=1000)  # of two clusters
ONE_EACH = np.clip(_rng.normal(MIDDLES, [1.2, 0.8]), 0, 10)
COPIES = _rng.integers(1, 6, 1000)
OF = np.repeat(np.arange(1000), COPIES)


def numbers(model) -> np.ndarray:
    """What a descriptive model says, as one array."""
    if isinstance(model, reticent.PrivateTable):
        name = next(key for key in model.table_[0] if key.endswith("_mean"))
        return np.array([row[name] for row in model.table_])
    if isinstance(model, reticent.PrivateHistogram):
        return np.array(model.probabilities())
    if isinstance(model, reticent.PrivateMean):
        return model.mean_
    if isinstance(model, reticent.KMeans):
        return model.cluster_centers_
    if isinstance(model, reticent.BinnedGPRegressor):
        return model.counts_ / model.counts_.sum()
    return model.get_covariance() if hasattr(model, "get_covariance") else model.covariance_


DESCRIPTIVE = {
    "mean": reticent.PrivateMean(),
    "histogram": reticent.PrivateHistogram(bins=5),
    "covariance": reticent.PrivateCovariance(),
    "table": reticent.PrivateTable(by=[(0, [0, 5, 10])], mean=[1]),
    "factors": reticent.FactorAnalysis(1),
    "clusters": reticent.KMeans(2, epsilon=1e4),
    "density": reticent.BinnedGPRegressor(kind="count", bins=(4, 3), learn_kernel=False),
}


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize("name", DESCRIPTIVE)
def test_answers_are_those_of_weighted_records(name, neighbours):
    """Copies of one record weigh what the record does; with a large contribution each copy counts;
    whole weights are repetitions.
    """
    model = clone(DESCRIPTIVE[name]).set_params(bounds=PLANE, delta=1e-6)
    model.set_params(epsilon=model.epsilon or RICH["epsilon"])
    once = numbers(clone(model).fit(ONE_EACH))
    repeated = numbers(clone(model).fit(ONE_EACH[OF]))
    assert np.abs(repeated - once).max() > 2e-3  # they differ by much more than noise
    model.set_params(neighbours=neighbours)
    close = {"atol": 0.2 * np.abs(once - repeated).max() + 1e-4, "rtol": 0}
    persons = clone(model).fit(ONE_EACH[OF], person=OF)
    np.testing.assert_allclose(numbers(persons), once, **close)
    many = clone(model).set_params(contribution=5).fit(ONE_EACH[OF], person=OF)
    np.testing.assert_allclose(numbers(many), repeated, **close)
    weighted = clone(model).set_params(weight_bound=5).fit(ONE_EACH, sample_weight=COPIES)
    np.testing.assert_allclose(numbers(weighted), repeated, **close)


@pytest.mark.parametrize("estimator", [reticent.GPRegressor, reticent.LabelGPRegressor])
def test_a_gaussian_process_is_that_of_noise_by_weight(estimator):
    """As scikit-learn's with a noise variance of s²/w for a record of weight w."""
    rng = np.random.default_rng(4)
    x = np.round(rng.uniform(0, 10, size=(150, 1)), 1)
    y = np.sin(x[:, 0]) + 0.3 * rng.normal(size=150)
    weights = rng.integers(1, 6, 150)
    kernel = ConstantKernel(1.0, "fixed") * RBF(2.0, "fixed")
    bounds = reticent.Bounds(x=[(0, 10)], y=(-3, 3))
    fixed = {"noise": 0.3, "learn_kernel": False, "bounds": bounds, **RICH}
    model = estimator(kernel, stages=4, weight_bound=5.0, **fixed)
    model.fit(x, y, sample_weight=weights)
    exact = GaussianProcessRegressor(kernel, alpha=0.09 / (weights / 5.0), optimizer=None)
    grid = np.linspace(0, 10, 15)[:, None]
    mean, sd = model.predict(grid, return_std=True)
    exact_mean, exact_sd = exact.fit(x, y).predict(grid, return_std=True)
    unweighted = estimator(kernel, stages=4, **fixed).fit(x, y).predict(grid)
    assert np.abs(mean - exact_mean).max() < 0.02 < np.abs(mean - unweighted).max()
    np.testing.assert_allclose(sd, exact_sd, rtol=0.15)
