"""GPRegressor with known noise levels.

The weighted posterior, better than without them, and no more to ask of predictions.
"""

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

import reticent
from reticent import BadInput, Bounds, GPRegressor, PrivateSearch
from reticent.models.base import IncompleteRecords

BOUNDS = Bounds(x=[(-4, 4), (0.1, 1)], y=(-1.3, 1.3))
NAMED = Bounds(x={"sd": (0.1, 1), "x": (-4, 4)}, y={"y": (-1.3, 1.3)})
AT = np.linspace(-4, 4, 101)[:, None]


def sinc(x):
    return np.sinc(2 * np.asarray(x)[:, 0] / np.pi)


def data(n=2000, seed=0):
    """Half of the records are ten times noisier than the others."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-4, 4, n)
    sd = np.where(rng.random(n) < 0.5, 1.0, 0.1)
    return np.column_stack([x, sd]), sinc(x[:, None]) + sd * rng.normal(size=n)


def gp(kernel=None, **params):
    return GPRegressor(
        kernel, **{"bounds": BOUNDS, "noise_column": 1, "epsilon": 1.0, "delta": 1e-6, **params}
    )


def rmse(model):
    return float(np.sqrt(np.mean((model.predict(AT) - sinc(AT)) ** 2)))


def test_without_noise_it_is_the_posterior_of_a_gp_with_noise_of_each_record():
    X, y = data(1000)
    model = gp(RBF(1.0, "fixed"), epsilon=1e9, basis=28, stages=4).fit(X, y)
    exact = GaussianProcessRegressor(RBF(1.0, "fixed"), alpha=X[:, 1] ** 2).fit(X[:, :1], y)
    (mean, std), (true_mean, true_std) = (
        one.predict(AT, return_std=True) for one in (model, exact)
    )
    assert np.abs(mean - true_mean).max() < 0.3 * true_std.min()
    assert std == pytest.approx(true_std, rel=0.25)


@pytest.mark.parametrize(("epsilon", "times"), [(10.0, 2.0), (1e4, 2.5)])
def test_levels_help_where_half_of_the_records_are_noisy(epsilon, times):
    errors = {"known": [], "ignored": []}
    covered = []
    for seed in range(2):
        X, y = data(4000, seed)
        known = gp(epsilon=epsilon, random_state=seed).fit(X, y)
        plain = Bounds(x=[(-4, 4)], y=(-1.3, 1.3))
        ignored = gp(epsilon=epsilon, noise_column=None, bounds=plain, random_state=seed).fit(
            X[:, :1], y
        )
        errors["known"].append(rmse(known))
        errors["ignored"].append(rmse(ignored))
        mean, std = known.predict(AT, return_std=True)
        covered.append(np.mean(np.abs(mean - sinc(AT)) < 1.96 * std))
    assert np.mean(errors["ignored"]) > times * np.mean(errors["known"])
    assert np.mean(covered) > 0.85


def test_levels_that_are_all_the_same_are_a_given_noise():
    X, y = data(3000)
    x = X[:, :1]
    y = sinc(X) + 0.2 * np.random.default_rng(5).normal(size=3000)
    bounds = Bounds(x=[(-4, 4), (0.2, 1)], y=(-1.3, 1.3))
    same = gp(RBF(1.0, "fixed"), bounds=bounds, epsilon=1e6).fit(
        np.hstack([x, np.full((3000, 1), 0.2)]), y
    )
    given = gp(
        RBF(1.0, "fixed"),
        noise=0.2,
        noise_column=None,
        epsilon=1e6,
        bounds=Bounds(x=[(-4, 4)], y=(-1.3, 1.3)),
    ).fit(x, y)
    assert same.predict(AT) == pytest.approx(given.predict(AT), abs=5e-3)
    assert same.noise_ is None
    assert given.noise_ == 0.2


def test_predictions_take_inputs_with_and_without_levels():
    X, y = data(500)
    frame = pd.DataFrame({"x": X[:, 0], "sd": X[:, 1], "y": y})
    model = gp(bounds=NAMED, noise_column="sd", stages=3).fit(frame)
    assert (model.n_features_in_, model.feature_names_in_.tolist()) == (1, ["x"])
    at = frame[:5]
    mean = model.predict(at[["x"]])
    # arrays in the order of the bounds
    for other in (
        at,
        at[["sd", "x"]],
        at[["x"]].to_numpy(),
        at[["sd", "x"]].to_numpy(),
    ):
        assert (model.predict(other) == mean).all()
    assert model.predict(at, return_cov=True)[1].shape == (5, 5)
    assert model.sample_y(at, 3).shape == (5, 3)
    assert model.score(frame, y) == model.score(frame[["x"]], y)
    for other in (at, at[["sd", "x"]].to_numpy()):
        assert model.variance_parts(other)["noise"].tolist() == (at["sd"] ** 2).tolist()
    odd = pd.DataFrame({"x": [0.0] * 4, "sd": [np.nan, 0.0, 1e-3, 50.0]})
    assert model.variance_parts(odd)["noise"] == pytest.approx([1.0, 1.0, 0.01, 1.0])
    for other in (at[["x"]], at[["x"]].to_numpy()):
        parts = model.variance_parts(other)
        assert np.isnan(parts["noise"]).all()
        assert (parts["model"] + parts["privacy"] > 0).all()
    with pytest.raises(BadInput, match="expecting 1 features"):
        model.predict(np.zeros((2, 3)))


def test_rebuilt_and_loaded_bit_for_bit(tmp_path):
    X, y = data(500)
    frame = pd.DataFrame({"x": X[:, 0], "sd": X[:, 1], "y": y})
    model = gp(bounds=NAMED, noise_column="sd").fit(frame)
    model.save(tmp_path / "m")
    params = model.get_params(deep=False)
    for other in (
        reticent.load(tmp_path / "m"),
        GPRegressor.from_releases(model.releases_, **params),
    ):
        assert (other.predict(frame) == model.predict(frame)).all()
        assert (other.variance_parts(frame)["noise"] == X[:, 1] ** 2).all()
    with pytest.raises(BadInput, match="another noise_column"):
        GPRegressor.from_releases(model.releases_, **{**params, "noise_column": None})
    assert all(
        one.statistic["head"]["weighted"] for one in model.releases_ if "head" in one.statistic
    )


@pytest.mark.parametrize("case", ["missing", "zero", "huge"])
@pytest.mark.parametrize("eps", [1e-6, 1.0, 1e6])
@pytest.mark.filterwarnings("ignore::reticent.models.base.IncompleteRecords")
def test_levels_that_say_nothing_leave_a_sensible_posterior(case, eps):
    X, y = data(300)
    X[:, 1] = {"missing": np.nan, "zero": 0.0, "huge": np.inf}[case]
    model = gp(epsilon=eps, bounds=Bounds(x=[(-4, 4), (1e-4, 1e4)], y=(-1.3, 1.3))).fit(X, y)
    mean, std = model.predict(AT, return_std=True)
    assert np.isfinite(mean).all()
    assert (np.abs(mean) < 10).all()
    assert ((std > 0) & (std < 10)).all()


@pytest.mark.parametrize("stages", [2, 8, 12])
@pytest.mark.parametrize("kernel", [None, RBF(1.0)], ids=["default", "kernel"])
@pytest.mark.parametrize("lacking", ["output", "input", "level"])
def test_records_that_lack_something_are_counted_however_few_the_stages(lacking, kernel, stages):
    """Sums of squared weights do not tell that records are few; all were taken to be complete."""
    X, y = data(2000)
    missing = np.random.default_rng(3).random(2000) < 0.6
    column = {"output": y, "input": X[:, 0], "level": X[:, 1]}[lacking]
    column[missing] = np.nan
    model = gp(kernel, stages=stages, basis=12, learn_kernel=False, epsilon=3)
    with pytest.warns(IncompleteRecords, match="of the records have all values"):
        model.fit(X, y)
    assert abs(model.n_complete_ - 800) < 5 * model.n_complete_sd_ + 60
    assert 0 < model.n_complete_sd_ < 100


@pytest.mark.filterwarnings("ignore::reticent.models.base.IncompleteRecords")
def test_bands_cover_with_few_stages_where_most_outputs_are_missing():
    """With all records taken to be complete, they covered .86."""
    covered = []
    bounds = Bounds(x=[(-4, 4), (0.3, 0.31)], y=(-2, 2))
    for seed in range(4):
        rng = np.random.default_rng(seed)
        x = rng.uniform(-4, 4, (4000, 1))
        y = 0.5 + sinc(x) + 0.3 * rng.normal(size=4000)
        y[rng.random(4000) < 0.6] = np.nan
        model = gp(bounds=bounds, stages=4, epsilon=3, random_state=seed)
        model.fit(np.hstack([x, np.full((4000, 1), 0.3)]), y)
        mean, std = model.predict(AT, return_std=True)
        covered.append(np.mean(np.abs(mean - 0.5 - sinc(AT)) < 1.96 * std))
    assert np.mean(covered) > 0.94


def test_a_record_that_was_noisy_counts_less():
    """Records with a wild output and an honest level hardly matter; with a low level they would."""
    X, y = data(2000)
    wild = X[:, 1] == 1.0
    y[wild] += 1.0
    honest = rmse(gp(epsilon=100).fit(X, y))
    X[wild, 1] = 0.1
    assert rmse(gp(epsilon=100).fit(X, y)) > 5 * honest


@pytest.mark.parametrize("scoring", ["absolute", "likelihood"])
@pytest.mark.parametrize("named", [True, False])
def test_candidates_of_a_search_are_judged_with_their_levels(named, scoring):
    X, y = data(3000)
    frame = pd.DataFrame({"x": X[:, 0], "sd": X[:, 1], "y": y})
    inner = GPRegressor(noise_column="sd" if named else 1, stages=4, basis=15)
    search = PrivateSearch(
        inner,
        [{}],
        scoring=scoring,
        bounds=NAMED if named else BOUNDS,
        epsilon=20,
        delta=1e-6,
        random_state=0,
    )
    search = search.fit(frame) if named else search.fit(X, y)
    truth = {"absolute": -0.44, "likelihood": -0.3}[scoring]  # of a perfect prediction, about
    assert search.best_score_ == pytest.approx(truth, abs=0.2)
    assert rmse(search) < 0.1


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"bounds": Bounds(x=[(-4, 4), (0, 1)], y=(-1.3, 1.3))}, "lower bound above 0, not 0"),
        ({"noise_column": 2}, "has no bounds"),
        ({"noise_column": "sd"}, "has no bounds"),
        ({"noise_column": 1.0}, "name or the position"),
        ({"noise_column": True}, "name or the position"),
        ({"noise": 0.1}, "not both"),
        ({"stages": 1}, "at least two stages"),
        ({"bounds": Bounds(x=(0.1, 4), y=(-1.3, 1.3))}, "a range of its own"),
        ({"bounds": Bounds(x=[(-4, 4), (0.1, 1)], y=[(-1, 1), (-1, 1)])}, "for one output"),
        ({"bounds": Bounds(x=[(-4, 4), (1e-90, 1)], y=(-1, 1))}, "these ranges"),
    ],
    ids=str,
)
def test_wrong_use_is_refused_before_the_charge(params, words, tmp_path):
    url = str(tmp_path / "budget.db")
    reticent.Ledger(url).open("people", epsilon=3, delta=1e-3)
    X, y = data(20)
    with pytest.raises(BadInput, match=words):
        gp(**params, ledger=url, dataset="people").fit(X, y)
    assert reticent.Ledger(url).history("people") == []
