"""Regression and classification of tables as people have them: words, cycles, missing values."""

import warnings
from functools import cache

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

import reticent
from reticent.inference.kernels.axes import LINE, Axis
from reticent.models.gp.prior_hypotheses import axes_of

PROMISE = {"epsilon": 3.0, "delta": 1e-6, "random_state": 0}
N = 3000
X = [(0.0, 100.0), ["F", "M"]]


def table(age, male):
    cells = np.empty((len(age), 2), dtype=object)
    cells[:, 0] = age
    cells[:, 1] = np.where(male, "M", "F")
    return cells


def truth(age, male):
    return np.where(male, 0.9, 0.2) + 0.5 * np.sin(age / 20)


@cache
def people(share):
    """Inputs, outputs and labels; a share of the outputs and labels is missing."""
    rng = np.random.default_rng(1)
    age = rng.uniform(0, 100, N)
    male = rng.random(N) < 0.4
    y = truth(age, male) + 0.2 * rng.normal(size=N)
    ill = np.where(rng.random(N) < 1 / (1 + np.exp(-4 * (y - 0.7))), "ill", "well").astype(object)
    missing = rng.random(N) < share
    y[missing] = np.nan
    ill[missing] = "?"
    return table(age, male), y, ill


@cache
def regression(share):
    cells, y, _ = people(share)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        model = reticent.GPRegressor(bounds=reticent.Bounds(x=X, y=(-3, 3)), **PROMISE).fit(
            cells, y
        )
    return model, [str(one.message) for one in seen]


@cache
def classification(share):
    cells, _, ill = people(share)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        bounds = reticent.Bounds(x=X, classes=["well", "ill"])
        model = reticent.GPClassifier(bounds=bounds, stages=12, **PROMISE).fit(cells, ill)
    return model, [str(one.message) for one in seen]


PLACES = table(np.tile(np.linspace(5, 95, 10), 2), np.arange(20) >= 10)
EXACT = truth(np.tile(np.linspace(5, 95, 10), 2), np.arange(20) >= 10)


@pytest.mark.parametrize("share", [0.0, 0.4])
def test_missing_outputs_move_nothing(share):
    model, said = regression(share)
    mean, sd = model.predict(PLACES, return_std=True)
    # the middle of the range, 0, would draw the function down by its share
    assert abs(np.mean(mean - EXACT)) < 0.03
    assert np.mean(np.abs(mean - EXACT) < 3 * sd) > 0.9
    assert model.n_complete_ == pytest.approx((1 - share) * N, abs=120)
    assert (
        abs(model.n_complete_ - (~np.isnan(people(share)[1])).sum()) < 4 * model.n_complete_sd_ + 1
    )
    assert model.noise_ == pytest.approx(0.2, rel=0.3)
    assert bool(said) == bool(share)
    if share:
        assert f"About {100 * model.n_complete_ / N:.0f} % of the records" in said[0]


def test_two_words_are_two_values():
    """A 0/1 number has a band that is several times as wide: nobody is between 0 and 1."""
    cells, y, _ = people(0.0)
    _, sd = regression(0.0)[0].predict(PLACES, return_std=True)
    numbers = reticent.GPRegressor(
        bounds=reticent.Bounds(x=[(0, 100), (0, 1)], y=(-3, 3)), **PROMISE
    ).fit(np.column_stack([cells[:, 0].astype(float), cells[:, 1] == "M"]), y)
    as_numbers = np.column_stack([PLACES[:, 0].astype(float), PLACES[:, 1] == "M"])
    _, wide = numbers.predict(as_numbers, return_std=True)
    assert sd.mean() < 0.6 * wide.mean()


@pytest.mark.parametrize("fitted", [regression, classification])
def test_a_row_that_lacks_an_input_has_no_prediction(fitted):
    model, _ = fitted(0.4)
    asked = np.array([[50.0, "M"], [np.nan, "M"], [50.0, "X"], [20.0, "F"]], dtype=object)
    lacking = [False, True, True, False]
    if fitted is regression:
        mean, sd = model.predict(asked, return_std=True)
        assert np.isnan(mean).tolist() == np.isnan(sd).tolist() == lacking
        _, covariance = model.predict(asked, return_cov=True)
        assert np.isnan(np.diag(covariance)).tolist() == lacking
        assert np.isfinite(covariance[0, 3])
        assert np.isnan(model.sample_y(asked, 3)[:, 0]).tolist() == lacking
        outputs = [0.7, 1e9, 1e9, 0.6]
    else:
        assert np.isnan(model.predict_proba(asked)[:, 0]).tolist() == lacking
        assert np.isnan(model.predict_proba_band(asked)[0][:, 0]).tolist() == lacking
        words = model.predict(asked)
        assert [isinstance(one, str) for one in words] == [not one for one in lacking]
        outputs = ["well", "ill", "ill", "well"]
    kept = asked[[0, 3]]
    expected = model.score(kept, [outputs[0], outputs[3]])
    assert model.score(asked, outputs) == pytest.approx(expected, rel=1e-9)
    assert np.isnan(model.score(asked[1:3], outputs[1:3]))


def test_outputs_that_are_missing_are_left_out_of_a_score():
    model, _ = regression(0.0)
    y = np.linspace(0, 1, 20)
    y[3] = np.nan
    expected = model.score(np.delete(PLACES, 3, 0), np.delete(y, 3))
    assert model.score(PLACES, y) == pytest.approx(expected, rel=1e-9)
    model, _ = classification(0.4)
    labels = ["ill", "well"] * 10
    assert model.score(PLACES, [*labels[:19], "?"]) == model.score(PLACES[:19], labels[:19])


@pytest.mark.parametrize("fitted", [regression, classification])
def test_it_is_rebuilt_bit_for_bit_and_without_a_warning(fitted):
    model, said = fitted(0.4)
    assert said
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = type(model).from_releases(model.releases_, **model.get_params(deep=False))
    assert again.n_complete_ == model.n_complete_
    answer = "predict" if fitted is regression else "predict_proba"
    assert (getattr(again, answer)(PLACES) == getattr(model, answer)(PLACES)).all()


def test_labels_that_are_unknown_do_not_count_as_the_first_class():
    (plain, _), (missing, _) = classification(0.0), classification(0.4)
    difference = missing.predict_proba(PLACES)[:, 0] - plain.predict_proba(PLACES)[:, 0]
    assert abs(difference.mean()) < 0.05
    assert missing.n_complete_ == pytest.approx(0.6 * N, abs=250)


@pytest.mark.parametrize(
    ("kernel", "stages"), [(None, 3), (RBF(30.0), 24), (RBF(30.0), 3)], ids=str
)
def test_complete_records_are_counted_with_any_kernel(kernel, stages):
    _, y, _ = people(0.4)
    age = people(0.4)[0][:, :1].astype(float)
    bounds = reticent.Bounds(x=[(0, 100)], y=(-3, 3))
    model = reticent.GPRegressor(
        kernel, stages=stages, learn_kernel=False, basis=8, bounds=bounds, **PROMISE
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(age, y)
    assert model.n_complete_ == pytest.approx(0.6 * N, rel=0.2)
    assert model.noise_ == pytest.approx(np.hypot(0.2, 0.35), rel=0.35)


def test_complete_records_are_counted_by_class():
    cells, _, ill = people(0.4)
    model = reticent.GPClassifier(
        method="dirichlet",
        basis=8,
        bounds=reticent.Bounds(x=X, classes=["well", "ill"]),
        **PROMISE,
    )
    with pytest.warns(UserWarning, match="of the records have all values"):
        model.fit(cells, ill)
    assert model.n_complete_ == pytest.approx(0.6 * N, rel=0.1)


def test_kinds_decide_what_lies_along_an_input():
    bounds = reticent.Bounds(
        x={
            "age": (0, 110),
            "sex": ["F", "M"],
            "ward": ["A", "B", "C"],
            "stage": reticent.Ordered(["I", "II", "III"]),
            "smoker": bool,
            "children": reticent.Whole(0, 15),
            "pulse": reticent.Whole(0, 250),
            "hour": reticent.Cyclic(0, 24),
        },
        y=(0, 1),
    )
    assert axes_of(bounds) == (
        LINE,
        Axis("words", 2),
        Axis("words", 3),
        Axis("ordered", 3),
        Axis("words", 2),
        Axis("ordered", 16),
        LINE,
        Axis("circle"),
    )


@pytest.mark.parametrize("cls", [reticent.GPRegressor, reticent.GPClassifier])
def test_a_kernel_on_words_in_no_order_is_refused_before_the_charge(cls, tmp_path):
    ledger = str(tmp_path / "budget.db")
    reticent.Ledger(ledger).open("people", 10, 1e-4)
    outputs = {"y": (0, 1)} if cls is reticent.GPRegressor else {"classes": [0, 1]}
    bounds = reticent.Bounds(x=[["A", "B", "C"]], **outputs)
    model = cls(RBF(1.0), bounds=bounds, epsilon=1, delta=1e-6, ledger=ledger, dataset="people")
    with pytest.raises(reticent.BadInput, match="in no order"):
        model.fit(np.array([["A"], ["B"]], dtype=object), [0, 1])
    assert not reticent.Ledger(ledger).history("people")


def test_five_hundred_words():
    """The frequent ones are told apart, the others share an effect and have wide bands."""
    rng = np.random.default_rng(0)
    words = [f"place {i}" for i in range(500)]
    n = 20_000
    place = np.where(rng.random(n) < 0.7, rng.integers(300, 310, n), rng.integers(0, 500, n))
    effects = rng.normal(0, 0.5, 500)
    y = effects[place] + 0.2 * rng.normal(size=n)
    cells = np.array(words, dtype=object)[place][:, None]
    bounds = reticent.Bounds(x=[words], y=(-2, 2))
    model = reticent.GPRegressor(bounds=bounds, **PROMISE).fit(cells, y)
    mean, sd = model.predict(np.array(words, dtype=object)[:, None], return_std=True)
    assert np.abs(mean - effects)[300:310].max() < 0.15
    rare = np.delete(np.arange(500), np.arange(300, 310))
    assert sd[rare].mean() > 2 * sd[300:310].mean()
    assert np.mean(np.abs(mean - effects)[rare] < 1.96 * sd[rare]) > 0.85


def test_a_cycle_comes_round():
    rng = np.random.default_rng(0)
    hour = rng.uniform(0, 24, 4000)
    y = np.cos(2 * np.pi * (hour - 1) / 24) + 0.2 * rng.normal(size=4000)
    bounds = reticent.Bounds(x=[reticent.Cyclic(0, 24)], y=(-2, 2))
    model = reticent.GPRegressor(bounds=bounds, **PROMISE).fit(hour[:, None], y)
    at = np.array([[0.0], [23.999], [24.0], [12.0]])
    mean = model.predict(at)
    assert mean[1] == pytest.approx(mean[0], abs=1e-2)
    assert mean[2] == mean[0]
    assert mean == pytest.approx(np.cos(2 * np.pi * (at[:, 0] - 1) / 24), abs=0.12)


def test_a_column_that_is_all_missing_fails_nothing():
    """It says so, after the charge: nobody can know before."""
    cells, y, _ = people(0.0)
    cells = cells[:500].copy()
    cells[:, 1] = "male"  # none of the levels
    model = reticent.GPRegressor(
        stages=12, basis=8, bounds=reticent.Bounds(x=X, y=(-3, 3)), **PROMISE
    )
    with pytest.warns(UserWarning, match="Was everything read"):
        model.fit(cells, y[:500])
    mean, sd = model.predict(PLACES, return_std=True)
    assert np.isfinite(mean).all()
    assert (sd > 0.3).all()
