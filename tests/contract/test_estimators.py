"""What every estimator must keep.

Pay first, read once, show nothing but releases, be rebuilt from them bit for bit.
"""

import gc
import logging
import pickle
import types
import warnings

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import RBF
from sklearn.utils.estimator_checks import parametrize_with_checks

import reticent
from reticent.models.base import IncompleteRecords
from reticent.privacy.curator import Curator
from reticent.privacy.sources.base import Source, scan
from reticent.privacy.statistics.feature_cache import FeatureCache
from tests.contract.cases import (
    BOX,
    ESTIMATORS,
    PURE,
    all_of,
    records,
    relation,
    split,
    uses_outputs,
)

# records have labels that are no classes, and a fit that leaves most of them out says so
pytestmark = pytest.mark.filterwarnings("ignore:About .* of the records:UserWarning")

each = pytest.mark.parametrize("model", ESTIMATORS.values(), ids=ESTIMATORS)


def fitted(model, data=None, **params):
    return (
        clone(model).set_params(**params).fit(*split(model, records(300) if data is None else data))
    )


_ONCE: dict[int, reticent.PrivateEstimator] = {}


def fitted_once(model):
    """A private fit of `records(300)` for tests that look at one and change nothing."""
    if id(model) not in _ONCE:
        _ONCE[id(model)] = fitted(model)
    return _ONCE[id(model)]


def learned(model) -> dict:
    """Everything a fitted model holds, as bytes per attribute."""
    return {name: pickle.dumps(value) for name, value in vars(model).items() if name.endswith("_")}


class Forbidden(Source):
    """A source that must not be read."""

    names = None
    width = 3
    targets = 0
    known_n = 100

    def __init__(self, model, known_n=100):
        self.known_n = known_n
        self.targets = int(uses_outputs(model))

    def kind(self, position):
        return "number", "float64"

    def count(self):
        raise AssertionError("counted")

    def blocks(self, fields):
        raise AssertionError("read")


def test_every_estimator_is_listed():
    assert {type(model) for model in ESTIMATORS.values()} == all_of(reticent.PrivateEstimator)


BROAD = reticent.Bounds(x=(-100.0, 100.0), y=(-100.0, 100.0))
BROAD_CLASSES = reticent.Bounds(x=(-100.0, 100.0), classes=[0, 1, 2])
OUTPUTS = {"check_supervised_y_no_nan": "What is missing among the outputs is private too."}
WEIGHTS = {
    "check_all_zero_sample_weights_error": "Whether all weights are zero is private.",
    "check_sample_weight_equivalence_on_dense_data": (
        "It fits with weights and without: a bound on weights that are not given is refused. "
        "test_people.py compares weights with repeated records."
    ),
}
CLASSES = {
    "check_classifiers_classes": (
        "Its labels are other than the list of classes that the bounds must give."
    ),
    "check_classifiers_regression_target": (
        "Whether a label is in the list of classes is private: nothing is raised."
    ),
    "check_classifiers_train": (
        "It wants classes_ to be those in the data; here they are those of the bounds, public."
    ),
    "check_classifiers_one_label": "Ten records say nothing beside the noise of ε = 1.",
}


# checks that give lists, which have as many columns as the bounds have ranges; the
# columns of their data
LISTS = {
    "check_regressors_train": 10,
    "check_transformer_data_not_an_array": 3,
    "check_classifiers_train": 2,
}


# the same class with another link; all that the checks look at is the class's
ALIKE = [
    name
    for name, model in ESTIMATORS.items()
    if is_classifier(model) and name != type(model).__name__
]


def cheap(model):
    """With a kernel that is given, where one is learned by default.

    How an estimator behaves does not depend on it.
    """
    given = (
        {"kernel": RBF(100.0, "fixed")}
        if isinstance(model, (reticent.GPRegressor, reticent.GPClassifier))
        else {}
    )
    return clone(model).set_params(
        bounds=BROAD_CLASSES if is_classifier(model) else BROAD, random_state=0, **given
    )


@parametrize_with_checks(
    [
        cheap(model)
        for name, model in ESTIMATORS.items()
        if name not in ALIKE
        and getattr(model, "noise_column", None)
        is None  # which needs a range of its own; the checks' data have none
        and getattr(model, "regions", None) is None  # which are of so many inputs, and not more
        and getattr(model, "kind", "") != "count"  # which predicts no y
        and getattr(model, "by", None) is None  # whose edges are of these bounds
        and not isinstance(getattr(model, "bins", None), tuple)  # of so many inputs, and not more
    ],
    expected_failed_checks=lambda model: {
        "check_dtype_object": "It wants a TypeError when a cell is not a number. Whether a record "
        "has such a cell is private: it becomes a public point instead, and nothing is raised.",
        **WEIGHTS,
        **(OUTPUTS if uses_outputs(model) else {}),
        **(CLASSES if is_classifier(model) else {}),
    },
)
def test_scikit_learn_checks(estimator, check, request):
    if "sample_weight" in check.func.__name__:  # without a public bound they are refused
        estimator = clone(estimator).set_params(weight_bound=10.0)
    columns = LISTS.get(check.func.__name__)
    if columns is not None:
        bounds = BROAD_CLASSES if is_classifier(estimator) else BROAD
        fields = {**bounds.to_dict(), "x": bounds.to_dict()["x"] * columns, "same": False}
        estimator = clone(estimator).set_params(bounds=reticent.Bounds.from_dict(fields))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            check(estimator)
        except Exception as failed:
            if request.node.get_closest_marker("xfail") is None:
                raise
            raise AssertionError(
                str(failed)
            ) from None  # to write a long traceback takes longer than the check


@each
def test_rebuilt_from_its_releases_bit_for_bit(model, tmp_path):
    first = fitted_once(model)
    params = first.get_params(deep=False)
    rebuilt = type(first).from_releases(first.releases_, **params)
    assert learned(rebuilt) == learned(first)
    first.save(tmp_path / "m.reticent")
    loaded = reticent.load(tmp_path / "m.reticent")
    assert learned(loaded).keys() == learned(first).keys()
    for name in vars(first):
        if name.endswith("_") and isinstance(getattr(first, name), np.ndarray):
            assert np.array_equal(getattr(loaded, name), getattr(first, name)), name
    assert loaded.guarantee_ == first.guarantee_


@each
def test_everything_but_the_noisy_sum_is_the_same_for_all_data(
    model, monkeypatch, tmp_path, caplog, capfd
):
    """Replace the noisy sum by a constant.

    Then nothing at all may differ between two tables of the same size.

    Attributes, saved file, warnings, log lines, output: one byte of difference would be a leak
    around the release.
    """

    def constant(self, exact, statistic, scales, number):
        scale = np.empty(len(exact))
        for share, one in scales.items():  # public, and compared when a model is rebuilt
            scale[statistic.coordinate_multiplicity() == share] = float(one.exact) * statistic.step
        return np.linspace(0.0, 100.0, len(exact)), scale

    seen = []
    with monkeypatch.context() as patched:
        patched.setattr(Curator, "_add_noise", constant)
        patched.setattr(
            "reticent.privacy.curator.pick", lambda values, bits: 0
        )  # a choice by scores
        patched.setattr(
            "secrets.token_hex", lambda size: "0" * 2 * size
        )  # the random name of the fit
        tables = [
            records(300),
            np.zeros((310, 3)),
            np.full((310, 3), np.nan),
            np.full((310, 3), 1e300),
        ]
        if relation(model) == "label":  # inputs are public, and the same in all tables
            tables = [np.column_stack([tables[0][:, :2], table[:, 2]]) for table in tables]
        for i, data in enumerate(tables):
            with warnings.catch_warnings(record=True) as caught, caplog.at_level(logging.DEBUG):
                warnings.simplefilter("always")
                one = fitted(model, data)
                one.save(tmp_path / f"{i}.reticent")
            out = capfd.readouterr()
            content = (tmp_path / f"{i}.reticent").read_bytes()
            # the constant may say that few records are complete: then a fit warns of it
            of_count = [w for w in caught if issubclass(w.category, IncompleteRecords)]
            seen.append(
                (
                    learned(one),
                    content,
                    [str(w.message) for w in of_count],
                    [str(w.message) for w in caught if w not in of_count],
                    caplog.text,
                    out.out,
                    out.err,
                )
            )
    assert all(one == seen[0] for one in seen)
    assert seen[0][3:] == ([], "", "", "")


@each
def test_no_record_exact_sum_or_noise_is_kept(model):
    """Walk every object that can be reached from the fitted model.

    None may hold the data or anything that reads it.
    """
    data = records(300)
    labels = relation(model) == "label"  # inputs are public there, and part of the release
    private = data[:, 2] if labels else data.ravel()
    forbidden = {
        v.hex()
        for v in private[np.isfinite(private)]  # of infinity there is only one
        if v not in (0.0,) and abs(v) not in (2.0, 3.0, 110.0, 1000.0, 0.001)
    }
    stack = [fitted_once(model)]
    known = set()
    while stack:
        thing = stack.pop()
        if id(thing) in known or isinstance(
            thing, (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType)
        ):
            continue
        known.add(id(thing))
        assert not isinstance(thing, (Curator, FeatureCache, Source)), (
            "something that reads records was kept"
        )
        if isinstance(thing, np.ndarray) and not labels:
            assert len(data) not in thing.shape, "an array with one row per record"
        if isinstance(thing, np.ndarray) and thing.dtype.kind == "f":
            assert not ({v.hex() for v in thing.ravel().tolist()} & forbidden), (
                "a value from a record"
            )
        if isinstance(thing, float):
            assert thing.hex() not in forbidden
        stack.extend(gc.get_referents(thing))
    assert len(known) > 10


@each
def test_charged_before_the_first_read_and_refused_past_the_cap(model, tmp_path):
    ledger = str(tmp_path / "budget.db")
    book = reticent.Ledger(ledger)
    book.open("people", 1.2, 1e-6, relation=relation(model))
    careful = clone(model).set_params(ledger=ledger, dataset="people")
    with pytest.raises(reticent.ReleaseRefused, match="the charge stays"):
        careful.fit(Forbidden(model))  # the read fails, after the charge
    assert len(book.history("people")) == 1
    assert book.spent("people") == pytest.approx(1.0, abs=1e-9)
    with pytest.raises(reticent.BudgetExceeded):
        careful.fit(Forbidden(model))  # refused before any read: Forbidden would have raised
    assert len(book.history("people")) == 1


WRONG_USE = [
    ({"bounds": None}, reticent.BoundsMissing),
    ({"bounds": (0, 1)}, reticent.BadInput),
    ({"epsilon": 0}, reticent.BadInput),
    ({"epsilon": -1.0}, reticent.BadInput),
    ({"epsilon": float("nan")}, reticent.BadInput),
    ({"epsilon": None}, reticent.BadInput),
    ({"epsilon": "1"}, reticent.BadInput),
    ({"epsilon": True}, reticent.BadInput),
    ({"delta": 1.0}, reticent.BadInput),
    ({"delta": -1e-9}, reticent.BadInput),
    ({"delta": None}, reticent.BadInput),
    ({"delta": float("nan")}, reticent.BadInput),
    ({"records_per_person": 0}, reticent.BadInput),
    ({"records_per_person": 1.5}, reticent.BadInput),
    ({"random_state": "seed"}, reticent.BadInput),
    ({"dataset": None}, reticent.BadInput),
    ({"dataset": "others"}, reticent.LedgerError),
    ({"bounds": reticent.Bounds(x=[(0, 1)] * 4, y=(0, 1))}, reticent.BadInput),
    ({"bounds": reticent.Bounds(x={"age": (0, 1)}, y=(0, 1))}, reticent.BadInput),
]


@each
def test_wrong_use_is_refused_before_anything_is_charged_or_read(model, tmp_path):
    ledger = str(tmp_path / "budget.db")
    reticent.Ledger(ledger).open("people", 5.0, 1e-6, relation=relation(model))
    careful = clone(model).set_params(ledger=ledger, dataset="people")
    for params, error in WRONG_USE:
        with pytest.raises(error) as caught:
            clone(careful).set_params(**params).fit(Forbidden(model))
        assert len(str(caught.value)) > 40, f"{params}: an error says what to do next"
        assert reticent.Ledger(ledger).history("people") == [], params


@each
def test_no_records_is_refused_before_the_charge(model, tmp_path):
    ledger = str(tmp_path / "budget.db")
    reticent.Ledger(ledger).open("people", 5.0, 1e-6, relation=relation(model))
    careful = clone(model).set_params(ledger=ledger, dataset="people")
    for empty in (Forbidden(model, known_n=0), np.empty((0, 3))):
        with pytest.raises(reticent.BadInput, match="0 sample"):
            careful.fit(*split(model, empty))
    assert reticent.Ledger(ledger).history("people") == []


@each
def test_a_failing_source_says_nothing_about_records(model):
    class Leaky(Forbidden):
        def blocks(self, fields):
            warnings.warn("record 17 is 4711", stacklevel=1)
            raise ValueError("record 17 is 4711")

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with pytest.raises(reticent.ReleaseRefused) as error:
            clone(model).fit(Leaky(model))
    assert caught == []
    chain = error.value
    while chain is not None:
        assert "4711" not in str(chain)
        chain = chain.__cause__ or chain.__context__


@each
def test_seeded_is_stamped_not_private_everywhere(model, tmp_path):
    private = fitted_once(model)
    seeded = fitted(model, random_state=0)
    assert private.guarantee_.private
    assert not seeded.guarantee_.private
    assert "NOT PRIVATE" in seeded.guarantee_.statement
    assert not any(release.private for release in seeded.releases_)
    seeded.save(tmp_path / "m")
    assert not reticent.load(tmp_path / "m").guarantee_.private
    assert np.array_equal(
        seeded.releases_[0].value, fitted(model, random_state=0).releases_[0].value
    )
    for random_state in (np.random.RandomState(0), np.random.default_rng(0)):
        assert not fitted(model, random_state=random_state).guarantee_.private


@each
def test_noise_is_fresh_and_ignores_global_seeds(model):
    import random

    values = []
    for _ in range(3):
        np.random.seed(0)  # noqa: NPY002
        random.seed(0)
        values.append(fitted(model).releases_[0].value)
    assert not np.array_equal(values[0], values[1])
    assert not np.array_equal(values[1], values[2])


@each
def test_people_with_several_records_need_proportionally_more_noise(model):
    # so little noise that it does not decide what is asked for first
    one, ten = (fitted(model, epsilon=1e5, records_per_person=k).releases_[0] for k in (1, 10))
    # of a single share; how many numbers there are may depend on the noise
    kinds = [
        np.unique(np.round(release.sd * release.shares_spent**0.5, 9)) for release in (one, ten)
    ]
    assert kinds[1] == pytest.approx(10 * kinds[0], rel=1e-6)
    assert ten.records_per_person == 10


@each
def test_releases_of_several_fits_are_not_one_model(model):
    """Their guarantee would speak of one fit and show several."""
    one = fitted_once(model)
    two = fitted(model)
    params = one.get_params(deep=False)
    for releases in (one.releases_ + two.releases_, one.releases_ * 2):
        with pytest.raises(reticent.BadInput):
            type(one).from_releases(releases, **params)


@each
def test_unfitted_and_closed(model, tmp_path):
    with pytest.raises(NotFittedError):
        clone(model).save(tmp_path / "m")
    event = reticent.Gaussian(noise_multiplier=1.0, count=2)  # two, for who scores kernels first
    curator = Curator(scan(records(10)), bounds=BOX, event=event, targets=False)
    if uses_outputs(model):
        X, y = split(model, records(10))
        levels = getattr(model, "noise_column", None)
        bounds = model.bounds if levels is None else model.bounds.with_noise_column(levels)
        curator = Curator(
            scan(X, y=y),
            bounds=bounds,
            event=event,
            targets=True,
            relation=relation(model),
        )
    curator.close()
    with pytest.raises(reticent.ReleaseRefused):
        clone(model).learn(curator)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_pure_differential_privacy(name):
    if name in PURE:
        model = fitted(ESTIMATORS[name], delta=0)
        assert model.guarantee_.epsilon == pytest.approx(1.0, rel=1e-12)
        assert model.guarantee_.epsilon <= 1.0
        assert isinstance(model.releases_[0].event, reticent.Laplace)
    else:
        with pytest.raises(reticent.BadInput, match=r"delta (> 0|must be above 0)"):
            fitted(ESTIMATORS[name], delta=0)


# Sources do not know who reads them: one model without y, one with, and one with classes read all.
EVERY_SOURCE = [ESTIMATORS[name] for name in ("PrivateMean", "GPRegressor", "GPClassifier")]


@each
def test_frames_files_and_arrays_give_the_same_integers(model, tmp_path):
    """Seeded noise is the same, so equal releases mean equal exact sums."""
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    data = records(200)
    names = ["a", "b", "c"]
    frame = pd.DataFrame(data, columns=names)
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    box = dict(zip(names, model.bounds.x_kinds + model.bounds.y_kinds, strict=False))
    outputs = {"c": box.pop("c")} if model.bounds.y else None
    classes = {"c": list(model.bounds.classes)} if model.bounds.classes else None
    by_name = {"bounds": reticent.Bounds(x=box, y=outputs, classes=classes)}
    if getattr(model, "noise_column", None) is not None:
        by_name["noise_column"] = names[model.noise_column]
    expected = [release.value for release in fitted(model, data, random_state=1).releases_]
    tables = [frame[["c", "a", "b"]], str(tmp_path / "t.parquet")]
    if model in EVERY_SOURCE:
        tables += [frame, pl.from_pandas(frame), pa.Table.from_pandas(frame)]
        tables += [tmp_path / "t.csv", reticent.scan(tmp_path / "t.csv")]
    for table in tables:
        found = fitted(model, table, random_state=1, **by_name).releases_
        assert all(
            np.array_equal(one.value, value) for one, value in zip(found, expected, strict=True)
        )


@each
def test_a_delta_that_is_too_large_for_so_many_records_is_remarked(model):
    with pytest.warns(UserWarning, match="not below 1/n") as told:
        n = fitted(model, delta=0.01).releases_[0].n
    (remark,) = [str(one.message) for one in told if "not below 1/n" in str(one.message)]
    advised = float(remark.rpartition("for example ")[2].rstrip("."))
    assert 1 / (1000 * n) <= advised <= 1 / (100 * n)


@each
def test_a_ledger_object_serves_as_well_as_its_path(model, tmp_path):
    book = reticent.Ledger(tmp_path / "budget.db")
    book.open("people", 5.0, 1e-6, relation=relation(model))
    one = fitted(model, ledger=book, dataset="people")
    clone(one).fit(*split(model, records(300)))
    assert len(book.history("people")) == 2
    one.save(tmp_path / "m")
    assert b"budget.db" not in (tmp_path / "m").read_bytes()
