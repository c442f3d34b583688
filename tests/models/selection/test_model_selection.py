"""Model selection, copies and restarts.

Every fit is charged, none is charged twice, none is forgotten.
"""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import FitFailedWarning
from sklearn.gaussian_process.kernels import RBF
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import reticent
from reticent import Bounds, BudgetExceeded, Ledger, PrivateHistogram, PrivateMean

DATA = np.random.default_rng(0).uniform(0, 10, size=(300, 2))


@pytest.fixture
def ledger(tmp_path):
    url = str(tmp_path / "budget.db")
    Ledger(url).open("people", 10.0, 1e-5)
    return url


def model(ledger, **params):
    return PrivateHistogram(
        bounds=Bounds(x=(0, 10)), epsilon=0.5, delta=1e-6, ledger=ledger, dataset="people", **params
    )


def charged(ledger):
    return len(Ledger(ledger).history("people"))


def test_grid_search_charges_every_fit(ledger):
    GridSearchCV(model(ledger), {"bins": [5, 10]}, cv=3).fit(DATA)
    assert charged(ledger) == 2 * 3 + 1  # the last one is the refit
    events = [entry.event for entry in Ledger(ledger).history("people")]
    assert Ledger(ledger).spent("people") == reticent.epsilon(events, 1e-5)


def test_parallel_workers_charge_the_same_account(ledger):
    scores = cross_val_score(model(ledger), DATA, cv=4, n_jobs=2)
    assert np.isfinite(scores).all()
    assert charged(ledger) == 4


def test_clones_copies_and_pipelines_share_the_account(ledger):
    first = model(ledger).fit(DATA)
    clone(first).fit(DATA)
    pickle.loads(pickle.dumps(first)).fit(DATA)
    make_pipeline(FunctionTransformer(), model(ledger)).fit(DATA)
    assert charged(ledger) == 4
    pickle.loads(pickle.dumps(first)).score(DATA)
    assert charged(ledger) == 4


def regression(ledger, **params):
    bounds = Bounds(x=[(0, 3.2)] * 2, y=(-2, 2))  # of the roots
    own = {
        "stages": 2,
        "basis": 4,
        "epsilon": 0.5,
        "delta": 1e-6,
        "ledger": ledger,
        "dataset": "people",
        **params,
    }
    return make_pipeline(
        FunctionTransformer(np.sqrt), reticent.GPRegressor(RBF(1.0, "fixed"), bounds=bounds, **own)
    )


def test_a_regression_in_a_pipeline_is_charged_exactly_for_each_fit(ledger):
    pipe = regression(ledger)
    y = np.sin(DATA[:, 0])
    assert np.isfinite(cross_val_score(pipe, DATA, y, cv=3)).all()
    search = GridSearchCV(pipe, {"gpregressor__basis": [3, 4]}, cv=2, error_score="raise").fit(
        DATA, y
    )
    assert search.predict(DATA).shape == (300,)
    history = Ledger(ledger).history("people")
    assert [entry.what for entry in history] == ["GPRegressor, 2 releases"] * (3 + 2 * 2 + 1)
    one = reticent.Gaussian(noise_multiplier=reticent.calibrate(0.5, 1e-6, releases=2), count=2)
    assert {entry.event for entry in history} == {one}
    assert Ledger(ledger).spent("people") == reticent.epsilon([one] * 8, 1e-5)
    assert search.best_estimator_[-1].guarantee_.epsilon == pytest.approx(0.5)


def test_fits_that_were_refused_are_nan_unless_they_shall_be_raised(tmp_path):
    book = Ledger(tmp_path / "small.db")
    book.open("people", 0.8, 1e-6)  # for two fits
    pipe = regression(str(tmp_path / "small.db"))
    search = GridSearchCV(pipe, {"gpregressor__basis": [3, 4]}, cv=2, refit=False)
    with (
        pytest.warns(FitFailedWarning, match="2 fits failed out of a total of 4"),
        pytest.warns(match="non-finite"),
    ):
        search.fit(DATA, np.sin(DATA[:, 0]))
    assert np.isnan(search.cv_results_["mean_test_score"]).tolist() == [False, True]
    assert len(book.history("people")) == 2
    assert book.spent("people") <= 0.8


def test_a_restart_goes_on_where_it_stopped(ledger, elsewhere):
    code = f"""
import numpy as np, reticent
bounds = reticent.Bounds(x=(0, 10))
mean = reticent.PrivateMean(
    bounds=bounds, epsilon=0.5, delta=1e-6, ledger={ledger!r}, dataset="people"
)
mean.fit(np.zeros((10, 2)))
"""
    model(ledger).fit(DATA)
    assert elsewhere(code) == (0, "")
    assert charged(ledger) == 2


@pytest.mark.parametrize("jobs", [1, 2])
def test_search_is_refused_past_the_cap(tmp_path, jobs):
    ledger = str(tmp_path / "small.db")
    book = Ledger(ledger)
    multiplier = reticent.calibrate(0.5, 1e-6)
    cap = reticent.epsilon(reticent.Gaussian(noise_multiplier=multiplier, count=3), 1e-6)
    book.open("people", cap, 1e-6)
    with pytest.raises(BudgetExceeded):
        GridSearchCV(model(ledger), {"bins": [5, 10]}, cv=3, error_score="raise", n_jobs=jobs).fit(
            DATA
        )
    assert len(book.history("people")) == 3
    assert book.spent("people") <= cap


def test_two_models_one_account(ledger):
    PrivateMean(
        bounds=Bounds(x=(0, 10)), epsilon=0.3, delta=1e-6, ledger=ledger, dataset="people"
    ).fit(DATA)
    model(ledger).fit(DATA)
    history = Ledger(ledger).history("people")
    assert [entry.what for entry in history] == [
        "PrivateMean, 1 release",
        "PrivateHistogram, 1 release",
    ]
    assert Ledger(ledger).spent("people") < 0.8  # composed exactly, which is less than the sum
