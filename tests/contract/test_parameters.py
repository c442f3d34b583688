"""What every model does with its parameters.

Odd ones are refused in words before the charge, and none is changed by a fit.
"""

import copy
import pickle
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF

import reticent
from reticent.models.base import COMMON
from reticent.models.gp.binning import make_grid
from tests.contract.cases import ESTIMATORS, records, relation, split, uses_outputs
from tests.contract.test_estimators import Forbidden, cheap, fitted_once

# most labels of the contract's records are no class, which the releases of a classifier tell
pytestmark = pytest.mark.filterwarnings("ignore:About .* of the records:UserWarning")

one_each = {type(model).__name__: model for model in reversed(ESTIMATORS.values())}
each = pytest.mark.parametrize("model", one_each.values(), ids=one_each)

LINE = reticent.Bounds(x=[(0, 1)], y=(0, 1))
PROMISE = {"epsilon": 5.0, "delta": 0.01}

# what looks like a number or a word and is none, what compares with nothing, and what has no length
ODD = [
    np.timedelta64(3),
    np.timedelta64(3, "s"),
    np.timedelta64("NaT"),
    np.array([1.0, 2.0]),
    np.array(["a", "b"]),
    np.array(0.5),
    np.array([[np.nan]]),
    np.ma.masked,
    pd.NA,
    10**400,
    [[]],
    {"a": [1]},
    sys,
]
# whose errors say what they must be in other words: the name alone would tell less
FREE = {"candidates", "ledger", "dataset", "expected_runs", "scoring"}


@each
def test_odd_values_of_every_parameter_are_refused_in_words_before_anything_is_read(model):
    """Whatever is wrong is a BadInput.

    A raw error of NumPy or Python names no parameter, and may come after the charge.
    """
    told = {}
    for name in model.get_params(deep=False):
        for value in ODD:
            wrong = clone(model)
            setattr(wrong, name, value)
            with pytest.raises(reticent.ReticentError) as caught:
                wrong.fit(Forbidden(model))
            told[name, str(type(value))] = str(caught.value)
    own = {name: words for (name, _), words in told.items() if name not in FREE}
    assert all(name in words for name, words in own.items()), "an error names its parameter"


@each
def test_a_duration_is_no_number_and_costs_nothing(model, tmp_path):
    """NumPy counts it among the whole numbers.

    Several models paid first, and failed when they divided by it.
    """
    ledger = str(tmp_path / "budget.db")
    reticent.Ledger(ledger).open("people", 5.0, 1e-6, relation=relation(model))
    for name in ("records_per_person", "epsilon", "delta", "random_state"):
        wrong = (
            clone(model)
            .set_params(ledger=ledger, dataset="people")
            .set_params(**{name: np.timedelta64(3)})
        )
        with pytest.raises(reticent.BadInput, match=name):
            wrong.fit(*split(model, records(20)))
    assert reticent.Ledger(ledger).history("people") == []


def whole_parameters(model):
    """Parameters that hold a whole number, in this example."""
    return {
        name: value
        for name, value in model.get_params(deep=False).items()
        if isinstance(value, int) and not isinstance(value, bool)
    }


@each
def test_narrow_numpy_integers_are_as_good_as_pythons(model):
    """An int8 that is multiplied wraps around at 127, and what wraps may be the noise."""
    given = {**whole_parameters(model), "records_per_person": 3, "random_state": 5}
    one = clone(model).set_params(**given).fit(*split(model, records(90)))
    narrow = {name: np.int8(value) for name, value in given.items()}
    other = clone(model).set_params(**narrow).fit(*split(model, records(90)))
    for ours, theirs in zip(one.releases_, other.releases_, strict=True):
        np.testing.assert_array_equal(ours.value, theirs.value)
        np.testing.assert_array_equal(ours.scale, theirs.scale)
    assert one.guarantee_ == other.guarantee_


@pytest.mark.parametrize(
    ("params", "narrow"),
    [
        ({"horizon": 100, "records_per_person": 20}, np.int8),
        ({"horizon": 100, "basis": 6, "release": "every"}, np.int8),
        ({"horizon": 200, "arms": 120, "contexts": "public"}, np.uint8),
    ],
)
def test_a_bandit_counts_in_pythons_integers(params, narrow):
    """The noise of a stream has an allowance for rounding, from horizon times numbers released.

    In an int8 that was negative.
    """
    turned = {
        name: narrow(value) if isinstance(value, int) else value for name, value in params.items()
    }
    made = []
    for given in (params, turned):
        one = reticent.JointBandit(bounds=LINE, **PROMISE, random_state=1, **given)
        sets = np.linspace(0, 1, 2 * one.until_release_).reshape(-1, 2, 1)
        one.ask(sets)
        one.tell(sets[:, 0], sets[:, 1, 0])
        made.append(one)
    (ours,), (theirs,) = (one.releases_ for one in made)
    np.testing.assert_array_equal(ours.value, theirs.value)
    np.testing.assert_array_equal(ours.scale, theirs.scale)
    assert type(made[1].horizon) is int


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.longdouble])
def test_a_bandit_takes_numpys_numbers_for_exploration_and_growth(kind):
    one = reticent.JointBandit(
        bounds=LINE, horizon=300, exploration_weight=kind(0.5), growth=kind(1.5), **PROMISE
    )
    plain = reticent.JointBandit(
        bounds=LINE, horizon=300, exploration_weight=0.5, growth=1.5, **PROMISE
    )
    assert one.posterior_.exploration_weight == plain.posterior_.exploration_weight == 0.5
    assert list(one._batch_sizes) == list(plain._batch_sizes)


@pytest.mark.parametrize(
    "name",
    [
        "horizon",
        "exploration_weight",
        "growth",
        "arms",
        "basis",
        "records_per_person",
        "epsilon",
        "delta",
    ],
)
@pytest.mark.parametrize("value", ODD, ids=repr)
def test_odd_numbers_make_no_bandit(name, value):
    with pytest.raises(reticent.BadInput, match=name):
        reticent.JointBandit(**{"bounds": LINE, "horizon": 50, **PROMISE, name: value})


@pytest.mark.parametrize(
    "missing",
    [
        {"horizon": None},
        {"bounds": None},
        {"exploration_weight": "paper"},
        {"exploration_weight": None},
    ],
    ids=str,
)
def test_a_local_server_says_what_it_needs(missing):
    with pytest.raises(reticent.BadInput, match=r"bounds|horizon|exploration_weight"):
        reticent.LocalBanditServer(**{"bounds": LINE, "horizon": 50, **PROMISE, **missing})


@each
def test_a_fit_changes_no_parameter(model):
    given = {**model.get_params(deep=False), "random_state": 1}
    before = {name: pickle.dumps(value) for name, value in given.items()}
    fit = type(model)(**given).fit(*split(model, records(60)))
    assert {
        name: pickle.dumps(value) for name, value in fit.get_params(deep=False).items()
    } == before
    for name, value in given.items():
        assert getattr(fit, name) is value, "kept as it was given, as scikit-learn's clone wants it"


@each
@pytest.mark.parametrize(
    "way", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))]
)
def test_copies_hold_the_same_and_answer_the_same(model, way, tmp_path):
    one = fitted_once(model)
    twin = way(one)
    assert twin.guarantee_ == one.guarantee_
    assert [release.fit for release in twin.releases_] == [release.fit for release in one.releases_]
    twin.save(tmp_path / "twin")
    one.save(tmp_path / "one")
    assert (tmp_path / "twin").read_bytes() == (tmp_path / "one").read_bytes()
    asked = records(20)[
        :, : one.n_features_in_ + (getattr(model, "noise_column", None) is not None)
    ]
    for method in ("predict", "predict_proba", "transform", "score_samples"):
        if hasattr(one, method) and not (uses_outputs(model) and method == "score_samples"):
            np.testing.assert_array_equal(getattr(twin, method)(asked), getattr(one, method)(asked))


@each
def test_a_clone_has_the_parameters_and_nothing_that_was_learned(model):
    fresh = clone(fitted_once(model))
    assert not [name for name in vars(fresh) if name.endswith("_") and not name.startswith("_")]
    assert not hasattr(fresh, "_params")
    with pytest.raises(reticent.BadInput, match="bounds"):
        fresh.set_params(bounds=3).fit(*split(model, records(20)))


@each
def test_a_file_gives_the_parameters_back(model, tmp_path):
    """All but the ledger.

    Lists come back as tuples, arrays as tuples of tuples, kernels and bounds as they were.
    """
    one = fitted_once(model)
    one.save(tmp_path / "m")
    back = reticent.load(tmp_path / "m").get_params(deep=False)
    for name, value in one.get_params(deep=False).items():
        if name == "estimator":
            assert str(back[name]) == str(
                clone(value).set_params(ledger=None, dataset=None, random_state=None)
            )
        elif isinstance(value, list):
            assert np.array_equal(np.array(back[name], dtype=object), np.array(value, dtype=object))
        elif name != "ledger":
            assert back[name] == value, name
    assert back["ledger"] is None


@each
def test_parameters_set_after_a_fit_change_nothing_that_was_learned(model, tmp_path):
    one = copy.deepcopy(fitted_once(model))
    releases = one.releases_
    stated = one.guarantee_.statement
    one.set_params(epsilon=99.0, delta=0.1, records_per_person=7, random_state=3)
    assert one.releases_ is releases
    assert one.guarantee_.statement == stated
    one.save(tmp_path / "m")
    assert reticent.load(tmp_path / "m").epsilon == 1.0


def test_common_parameters_come_last_and_are_by_name_alone():
    """`GPRegressor(RBF(2.0))` means a kernel: were bounds or ε first, a slip would be a promise."""
    import inspect

    for model in one_each.values():
        parameters = inspect.signature(type(model)).parameters
        assert all(parameters[name].kind is inspect.Parameter.KEYWORD_ONLY for name in COMMON)
        assert parameters["records_per_person"].default == 1
        assert parameters["contribution"].default == 1
        assert parameters["neighbours"].default == "replace"
        others = COMMON - {"records_per_person", "contribution", "neighbours"}
        assert all(parameters[name].default is None for name in others)


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"bins": np.array(0.5)}, "whole numbers or lists of edges"),
        ({"bins": 0}, "bins must be a whole number from 1"),
        ({"bins": -3}, "bins must be a whole number from 1"),
        ({"bins": True}, "whole numbers or lists of edges"),
        ({"bins": [10**400, 3]}, "grid of|whole number"),
        ({"bins": [[-2, 10**400], 3]}, "lists of edges"),
        ({"bins": [3, 3, 3]}, "each of 2 inputs"),
        ({"bins": [[-2, 1, 0, 3], 2]}, "must rise"),
        ({"bins": [[-2, 2], 2]}, "here from -2 to 3"),
        ({"bins": (100, 100)}, "4,096 is the most"),
    ],
    ids=str,
)
def test_bins_that_cannot_be_say_which_can(params, words):
    with pytest.raises(reticent.BadInput, match=words):
        clone(ESTIMATORS["BinnedGPRegressor"]).set_params(**params).fit(
            Forbidden(ESTIMATORS["BinnedGPRegressor"])
        )


@pytest.mark.parametrize(
    "bins",
    [4, np.int16(4), np.array(4), [4, 4], np.array([4, 4]), (4, [-2, -0.75, 0.5, 1.75, 3])],
    ids=repr,
)
def test_bins_can_be_said_in_several_ways(bins):
    bounds = reticent.Bounds(x=[(-2, 3), (-2, 3)], y=(0, 1))
    assert make_grid(bins, None, bounds) == make_grid([4, 4], None, bounds)


def test_a_kernel_or_a_stage_more_does_what_it_says():
    """Each keyword acts, and on nothing else: more stages are more releases of the same price."""
    few, more = (cheap(ESTIMATORS["GPRegressor"]).set_params(stages=k) for k in (2, 3))
    data = split(few, records(60))
    assert [len(one.fit(*data).releases_) for one in (few, more)] == [2, 3]
    assert few.guarantee_.epsilon == pytest.approx(more.guarantee_.epsilon, rel=1e-9)
    wide = clone(few).set_params(kernel=RBF(1.0, "fixed")).fit(*data)
    assert wide.kernel_.length_scale == 1.0
    assert few.kernel_.length_scale == 100.0
